"""The tables of one index of SQLite's: documents, their texts, and the vocabulary that typos are looked up in."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from graph.search.index import Document, Hit, Searched
from graph.search.typos import Wanted, grams, least_shared
from graph.search.words import Word, is_misspelt

KINDS = 3
"""Hits that have all words as they are, those that the last word begins, and those with typos."""
RANKS = 1_000_000
"""Scores are compared as whole numbers of millionths, so that a cursor gives back just the score that was compared."""
MOST_ALTERNATIVES = 50
"""Words that are taken for one that is misspelt: the nearest ones."""
SEQUENCE_BYTES = 17
"""DynamoDB's sequence numbers have up to 40 digits."""
_SHORTEST = 3
"""The shortest word that is one typo away from one that may have a typo."""

_TABLES = (
    """
    CREATE TABLE documents_{n} (
      document INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, is_gone INTEGER NOT NULL, shard INTEGER, sequence BLOB
    )
    """,
    "CREATE TABLE words_{n} (number INTEGER PRIMARY KEY, word TEXT NOT NULL UNIQUE)",
    """
    CREATE TABLE grams_{n} (
      gram TEXT, length INTEGER, word INTEGER, PRIMARY KEY (gram, length, word)
    ) WITHOUT ROWID
    """,
)


class Tables:
    """One index, whose tables have its number in their names."""

    def __init__(self, connection: sqlite3.Connection, number: int) -> None:
        self._connection = connection
        self._number = number
        self._met: set[str] = set()
        """Words that the vocabulary may lack."""

    def create(self, fields: Sequence[str], *, has_tenant: bool) -> None:
        """Make the tables; a field of the type is a column of the texts."""
        # The words come folded, with spaces between them: this tokenizer cuts them at nothing else.
        columns = ", ".join(f"f{number}" for number, _ in enumerate(fields))
        self._run(f"CREATE VIRTUAL TABLE texts_{{n}} USING fts5({columns}, tokenize = 'ascii')")
        for statement in _TABLES:
            self._run(statement)
        if has_tenant:
            self._run("ALTER TABLE documents_{n} ADD COLUMN tenant TEXT")

    def drop(self) -> None:
        """Drop the index."""
        for table in ("documents", "texts", "words", "grams"):
            self._run(f"DROP TABLE IF EXISTS {table}_{{n}}")
        self._run("DELETE FROM indexes WHERE number = ?", (self._number,))

    def documents(self) -> int:
        """Count the documents."""
        return int(self._run("SELECT count(*) FROM documents_{n} WHERE NOT is_gone").fetchone()[0])

    # --- writing ---

    def put(self, document: Document, place: tuple[int, int] | None) -> None:
        """Take a document as a change made it, unless a later change of the same shard was there before."""
        shard, sequence = (None, None) if place is None else (place[0], place[1].to_bytes(SEQUENCE_BYTES, "big"))
        known = self._run(
            "SELECT document, is_gone, shard, sequence FROM documents_{n} WHERE id = ?", (document.id,)
        ).fetchone()
        is_gone = document.texts is None
        if known is None:
            # A node that is gone is kept in mind: what a rebuild read of it before must not bring it back.
            made = self._run(
                "INSERT INTO documents_{n} (id, is_gone, shard, sequence) VALUES (?, ?, ?, ?)",
                (document.id, is_gone, shard, sequence),
            )
            self._put_tenant(int(made.lastrowid or 0), document)
            self._put_texts(int(made.lastrowid or 0), document)
            return
        number, was_gone, last_shard, last_sequence = known
        if shard is not None and shard == last_shard and last_sequence > sequence:
            return
        self._run(
            "UPDATE documents_{n} SET is_gone = ?, shard = ?, sequence = ? WHERE document = ?",
            (is_gone, shard, sequence, number),
        )
        if not was_gone:
            self._run("DELETE FROM texts_{n} WHERE rowid = ?", (number,))
        self._put_tenant(number, document)
        self._put_texts(number, document)

    def put_new(self, document: Document) -> None:
        """Take a document as it lies in the table, unless there is one already."""
        made = self._run(
            "INSERT OR IGNORE INTO documents_{n} (id, is_gone) VALUES (?, ?)", (document.id, document.texts is None)
        )
        if made.rowcount:
            self._put_tenant(int(made.lastrowid or 0), document)
            self._put_texts(int(made.lastrowid or 0), document)

    def _put_tenant(self, number: int, document: Document) -> None:
        if document.of.tenant is not None:
            self._run("UPDATE documents_{n} SET tenant = ? WHERE document = ?", (document.tenant, number))

    def _put_texts(self, number: int, document: Document) -> None:
        if document.texts is None:
            return
        texts = list(document.texts.values())
        marks = ", ".join("?" * (len(texts) + 1))
        columns = ", ".join(f"f{column}" for column, _ in enumerate(texts))
        self._run(f"INSERT INTO texts_{{n}} (rowid, {columns}) VALUES ({marks})", (number, *texts))
        for text in texts:
            self._met.update(text.split(" "))

    def learn(self) -> None:
        """Take the words of all that was put into the vocabulary; to be called once, behind the last document.

        What no document has any more stays there until the next rebuild: it finds nothing.
        """
        for word in sorted(self._met):
            if len(word) < _SHORTEST or not is_misspelt(word):
                continue
            made = self._run("INSERT OR IGNORE INTO words_{n} (word) VALUES (?)", (word,))
            if made.rowcount:
                self._connection.executemany(
                    f"INSERT INTO grams_{self._number} VALUES (?, ?, ?)",
                    [(gram, len(word), made.lastrowid) for gram in grams(word)],
                )
        self._met.clear()

    # --- searching ---

    def search(self, of: Searched, words: Sequence[Word], limit: int, after: tuple[int, str] | None) -> list[Hit]:
        """Find hits, the best kinds first, and no more kinds than it takes."""
        if not words:
            return []
        found: list[Hit] = []
        better: list[str] = []
        for kind, parts in enumerate(self._matches(words)):
            least = KINDS - 1 - kind
            if len(found) < limit and (after is None or after[0] >= least * RANKS):
                found += self._find(of, parts, better, least, limit - len(found), after)
            better = parts
        return found

    def count(self, of: Searched, words: Sequence[Word]) -> int:
        """Count all hits: each kind has those of the better kinds among its own."""
        if not words:
            return 0
        *_, widest = self._matches(words)
        found = self._run(
            "SELECT count(*) FROM texts_{n} JOIN documents_{n} ON document = texts_{n}.rowid "
            f"WHERE texts_{{n}} MATCH :match {_within(of)}",
            {"match": _match(of, widest), **_tenants(of)},
        )
        return int(found.fetchone()[0])

    def _matches(self, words: Sequence[Word]) -> Iterable[list[str]]:
        """Write what must all be found, from the narrowest to the widest: as it is, begun, and with typos."""
        *others, last = words
        exact = [_phrase(word) for word in words]
        yield exact
        begun = [*exact[:-1], f"{exact[-1]} *"]
        yield begun
        also = [self._alternatives(word) for word in others]
        also.append([*self._alternatives(last), *(f"{one} *" for one in self._alternatives(last, is_begun=True))])
        if any(also):
            yield [f"({' OR '.join([one, *more])})" for one, more in zip(begun, also, strict=True)]

    def _find(
        self,
        of: Searched,
        parts: Sequence[str],
        better: Sequence[str],
        least: int,
        limit: int,
        after: tuple[int, str] | None,
    ) -> list[Hit]:
        """Find hits of one kind: their scores lie between that of the kind and the next."""
        relevance, values = _by_all(of) if of.tenant is None else _by_itself(of, parts)
        rows = self._run(
            "SELECT id, rank FROM (SELECT documents_{n}.id AS id, "
            f"{least} * {RANKS} + CAST({RANKS} * ({relevance}) AS INTEGER) AS rank "
            "FROM texts_{n} JOIN documents_{n} ON document = texts_{n}.rowid WHERE texts_{n} MATCH :match "
            + _within(of)
            + (
                "AND texts_{n}.rowid NOT IN (SELECT rowid FROM texts_{n} WHERE texts_{n} MATCH :better) "
                if better
                else ""
            )
            + ") "
            + ("WHERE rank < :rank OR (rank = :rank AND id > :id) " if after else "")
            + "ORDER BY rank DESC, id LIMIT :limit",
            {"match": _match(of, parts), "better": _match(of, better), "limit": limit}
            | values
            | _tenants(of)
            | ({"rank": after[0], "id": after[1]} if after else {}),
        )
        return [Hit(id_, rank / RANKS, (rank, id_)) for id_, rank in rows]

    def _alternatives(self, word: Word, *, is_begun: bool = False) -> list[str]:
        """List the words of the vocabulary that a word may be meant for, or their beginnings, the nearest first."""
        if not word.typos:
            return []
        wanted, typos = word.tokens[0], word.typos
        pairs = grams(wanted, is_whole=not is_begun)
        rows = self._run(
            "SELECT words_{n}.word FROM words_{n} JOIN (SELECT word FROM grams_{n} "
            f"WHERE gram IN ({', '.join('?' * len(pairs))}) AND length BETWEEN ? AND ? "
            "GROUP BY word HAVING count(*) >= ?) AS near ON near.word = number",
            (*pairs, len(wanted) - typos, 10_000 if is_begun else len(wanted) + typos, least_shared(len(pairs), typos)),
        )
        sought = Wanted(wanted)
        measured = {sought.beginning(other, typos) if is_begun else sought.whole(other) for (other,) in rows}
        found = [(distance, other) for distance, other in measured if 0 < distance <= typos and other]
        return [f'"{other}"' for _, other in sorted(found)[:MOST_ALTERNATIVES]]

    def _run(self, statement: str, values: Sequence[object] | dict[str, object] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement.replace("{n}", str(self._number)), values)


# --- what is asked of SQLite --------------------------------------------------------------------------------------


def _match(of: Searched, parts: Sequence[str]) -> str:
    """Write that all of these parts are found, in the fields that are searched."""
    match = " AND ".join(parts)
    return f"{{{' '.join(_columns(of))}}} : ({match})" if match and of.hidden else match


def _columns(of: Searched) -> dict[str, float]:
    """Give the columns that are searched, and how much each counts."""
    return {f"f{number}": weight for number, (name, weight) in enumerate(of.fields.items()) if name not in of.hidden}


def _within(of: Searched) -> str:
    """Write whose nodes are found."""
    if of.tenants is None:
        return ""
    return f" AND documents_{{n}}.tenant IN ({', '.join(f':{name}' for name in _tenants(of))}) "


def _tenants(of: Searched) -> dict[str, object]:
    return {f"tenant{number}": tenant for number, tenant in enumerate(sorted(of.tenants or ()))}


def _by_all(of: Searched) -> tuple[str, dict[str, object]]:
    """Write how well a node fits, from 0 to 1, by how rare its words are among all."""
    weights = ", ".join(str(float(weight)) for weight in of.fields.values())
    # bm25() is below zero, and the further the better: this rises with it from 0 to 1.
    return f"1 - 1 / (1 - bm25(texts_{{n}}, {weights}))", {}


def _by_itself(of: Searched, parts: Sequence[str]) -> tuple[str, dict[str, object]]:
    """Write how well a node fits, from 0 to 1, by which of its fields have some of the words and which have all.

    How rare a word is would tell of other tenants' texts.
    """
    columns = _columns(of)
    whole = 2 * sum(columns.values()) or 1.0
    terms: list[str] = []
    values: dict[str, object] = {}
    for column, weight in columns.items():
        for how in ("OR", "AND"):
            values[f"{column}{how}"] = f"{column} : ({f' {how} '.join(parts)})"
            held = f"texts_{{n}}.rowid IN (SELECT rowid FROM texts_{{n}} WHERE texts_{{n}} MATCH :{column}{how})"
            terms.append(f"{weight} * ({held})")
    # Not even all of it is the next kind.
    return f"0.999 * ({' + '.join(terms)}) / {whole}", values


def _phrase(word: Word) -> str:
    # Tokens are letters, digits and the marks on them, so none can end the quotes.
    return f'"{" ".join(word.tokens)}"'
