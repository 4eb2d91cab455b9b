"""The index that needs nothing else: one file of SQLite with its full-text tables, for as many processes as there are.

Every write is one transaction of SQLite's, so a process may die at any moment, and a rebuild in one process and the
upkeep in another see each other's work. Sources: SQLite FTS5, "Full-text Query Syntax"; Write-Ahead Logging.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import orjson

from graph.cursor import Position
from graph.errors import SearchBusy, SearchUnavailable
from graph.search.index import Document, Hit, Rebuilding, Searched, Status, missing, of_another_model
from graph.search.tables import KINDS, RANKS, Tables
from graph.search.words import Word

T = TypeVar("T")

BUSY_SECS = 30.0
"""So long a writer waits for another one."""

FORMAT = 1
"""Changes with the tables of the file."""

_PASSING = (
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_NOMEM),
)
"""Errors that are none of what the file holds. Source: SQLite, "Result and Error Codes"."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS indexes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, makings TEXT NOT NULL, is_ready INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS shards (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
"""


class SqliteIndex:
    """Search indexes in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._idle: dict[tuple[int, int], list[sqlite3.Connection]] = {}
        """Connections that nobody uses, by process and file."""

    # --- what is asked ---

    async def search(self, of: Searched, words: Sequence[Word], limit: int, after: Position | None) -> list[Hit]:
        """Find the best hits, or those behind a place.

        Cost: what matches is ranked as a whole, better kinds of hits first and the others only if they are needed.
        """
        place = None if after is None else (after[0], after[1])
        return await self._asking(of, lambda tables: tables.search(of, words, limit, place))

    def check(self, position: Position) -> bool:
        """Say whether a position may be one of this index's."""
        return (
            len(position) == 2
            and isinstance(position[0], int)
            and 0 <= position[0] <= KINDS * RANKS
            and isinstance(position[1], str)
        )

    async def count(self, of: Searched, words: Sequence[Word]) -> int:
        """Count all hits."""
        return await self._asking(of, lambda tables: tables.count(of, words))

    async def _asking(self, of: Searched, ask: Callable[[Tables], T]) -> T:
        if not self._path.exists():
            raise missing(of)
        return await self._reading(lambda one: ask(_current(one, of)))

    async def status(self, of: Searched) -> Status:
        """Say how the index of a type stands."""

        def look(one: sqlite3.Connection) -> Status:
            ready, building = _indexes(one, of.name, is_ready=True), _indexes(one, of.name, is_ready=False)
            problem = str(missing(of)) if not ready else None
            if ready and ready[0][1] != _makings(of):
                problem = str(of_another_model(of))
            return Status(of, Tables(one, ready[0][0]).documents() if ready else 0, problem, bool(building))

        if not self._path.exists():
            return Status(of, problem=str(missing(of)))
        return await self._reading(look)

    # --- what is written ---

    async def apply(self, documents: Sequence[Document]) -> None:
        """Take changes, in their order, into the index of each type and into the one that is being built."""
        if not self._path.exists():
            # What is built later is read from the table, as it is then.
            return

        def write(one: sqlite3.Connection) -> None:
            shards = _shards(one, {document.place.shard for document in documents if document.place is not None})
            known: dict[str, list[Tables]] = {}
            for document in documents:
                if document.of.name not in known:
                    found = _indexes(one, document.of.name)
                    same = _makings(document.of)
                    known[document.of.name] = [Tables(one, number) for number, makings in found if makings == same]
                for tables in known[document.of.name]:
                    place = document.place
                    tables.put(document, None if place is None else (shards[place.shard], place.sequence))
            for tables in chain.from_iterable(known.values()):
                tables.learn()

        await self._writing(write)

    async def rebuild(self, types: Sequence[Searched]) -> Rebuilding:
        """Begin new indexes of these types."""

        def begin(one: sqlite3.Connection) -> dict[str, int]:
            numbers: dict[str, int] = {}
            for of in types:
                for number, _ in _indexes(one, of.name, is_ready=False):
                    Tables(one, number).drop()
                made = one.execute(
                    "INSERT INTO indexes (name, makings, is_ready) VALUES (?, ?, 0)", (of.name, _makings(of))
                )
                numbers[of.name] = int(made.lastrowid or 0)
                Tables(one, numbers[of.name]).create(tuple(of.fields), has_tenant=of.tenant is not None)
            return numbers

        self._path.parent.mkdir(parents=True, exist_ok=True)
        return _SqliteRebuilding(self._writing, await self._writing(begin))

    async def close(self) -> None:
        """Close the file."""
        for (process, _), idle in self._idle.items():
            while process == os.getpid() and idle:
                idle.pop().close()

    # --- connections ---

    async def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._work, work, "BEGIN")

    async def _writing(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.to_thread(self._work, work, "BEGIN IMMEDIATE")

    def _work(self, work: Callable[[sqlite3.Connection], T], begin: str) -> T:
        """Do something in a transaction. Raises SearchUnavailable."""
        try:
            with self._connection() as connection:
                connection.execute(begin)
                try:
                    result = work(connection)
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
                return result
        except sqlite3.Error as error:
            kind = SearchBusy if getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING else SearchUnavailable
            raise kind(
                f"the search index {self._path} cannot be used: {error}. See that the file may be written and the disk "
                "has room; if it is damaged, or of another format, delete it, and build a new one: "
                "`tablegraph search rebuild`"
            ) from error

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection; one that had an error of its own is not lent again."""
        mine = self._mine()
        try:
            connection = mine.pop()
        except IndexError:
            connection = self._open()
            # The file may only now be there.
            mine = self._mine()
        try:
            yield connection
        except sqlite3.Error:
            connection.close()
            raise
        except BaseException:
            mine.append(connection)
            raise
        mine.append(connection)

    def _mine(self) -> list[sqlite3.Connection]:
        """List the idle connections of this process to the file that is there now.

        Those that were opened before a fork are the parent's, and those to a file that was deleted lead nowhere.
        """
        number = self._path.stat().st_ino if self._path.exists() else 0
        with self._lock:
            return self._idle.setdefault((os.getpid(), number), [])

    def _open(self) -> sqlite3.Connection:
        if not self._path.parent.is_dir():
            raise sqlite3.OperationalError("there is no such file")
        connection = sqlite3.connect(self._path, BUSY_SECS, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # Whoever reads the stream notes what is done: then it must be, whatever happens to the machine.
            connection.execute("PRAGMA synchronous = FULL")
            (found,) = connection.execute("PRAGMA user_version").fetchone()
            if found not in (0, FORMAT):
                raise sqlite3.DatabaseError(f"it is of format {found}, and this server reads and writes {FORMAT}")
            if not found:
                connection.executescript(f"{_SCHEMA} PRAGMA user_version = {FORMAT};")
        except sqlite3.Error:
            connection.close()
            raise
        return connection


class _SqliteRebuilding:
    """New indexes in the file, by the names of their types."""

    def __init__(self, writing: Any, numbers: dict[str, int]) -> None:
        self._writing = writing
        self._numbers = numbers

    async def add(self, documents: Sequence[Document]) -> None:
        """Take documents as they were read from the table; those that are there already came with a change."""

        def write(one: sqlite3.Connection) -> None:
            self._check(one)
            tables = {name: Tables(one, number) for name, number in self._numbers.items()}
            for document in documents:
                tables[document.of.name].put_new(document)
            for each in tables.values():
                each.learn()

        await self._writing(write)

    async def finish(self) -> None:
        """Put the new indexes in the place of the old ones, all at once."""

        def switch(one: sqlite3.Connection) -> None:
            self._check(one)
            for name, new in self._numbers.items():
                for number, _ in _indexes(one, name, is_ready=True):
                    Tables(one, number).drop()
                one.execute("UPDATE indexes SET is_ready = 1 WHERE number = ?", (new,))

        await self._writing(switch)

    async def abandon(self) -> None:
        """Drop the new indexes."""

        def drop(one: sqlite3.Connection) -> None:
            for name, new in self._numbers.items():
                if new in [number for number, _ in _indexes(one, name, is_ready=False)]:
                    Tables(one, new).drop()

        await self._writing(drop)

    def _check(self, one: sqlite3.Connection) -> None:
        """Refuse to go on where somebody else has begun."""
        for name, new in self._numbers.items():
            if new not in [number for number, _ in _indexes(one, name, is_ready=False)]:
                raise SearchUnavailable(
                    "another rebuild of the search index has begun, and this one is given up: wait for the other one"
                )


def _makings(of: Searched) -> str:
    return orjson.dumps(of.makings).decode()


def _indexes(one: sqlite3.Connection, name: str, *, is_ready: bool | None = None) -> list[tuple[int, str]]:
    states = (0, 1) if is_ready is None else (int(is_ready),) * 2
    found = one.execute(
        "SELECT number, makings FROM indexes WHERE name = ? AND is_ready IN (?, ?) ORDER BY number", (name, *states)
    )
    return [(int(number), str(makings)) for number, makings in found]


def _current(one: sqlite3.Connection, of: Searched) -> Tables:
    found = _indexes(one, of.name, is_ready=True)
    if not found:
        raise missing(of)
    number, makings = found[0]
    if makings != _makings(of):
        raise of_another_model(of)
    return Tables(one, number)


def _shards(one: sqlite3.Connection, names: set[str]) -> dict[str, int]:
    one.executemany("INSERT OR IGNORE INTO shards (name) VALUES (?)", [(name,) for name in sorted(names)])
    return {name: int(one.execute("SELECT number FROM shards WHERE name = ?", (name,)).fetchone()[0]) for name in names}
