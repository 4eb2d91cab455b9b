"""The index for those who outgrow a file: OpenSearch, over HTTP.

The words are cut and folded here and OpenSearch takes them as they come, so that both indexes find the same. Of each
type there is an alias that is searched, and one under which all its indexes are kept: two of them during a rebuild.
Sources: OpenSearch API, Bulk, Search, Count, Aliases; "Index document", external versions.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import orjson
import urllib3

from graph.cursor import Position
from graph.errors import SearchBusy, SearchUnavailable
from graph.search.index import Document, Hit, Rebuilding, Searched, Status, missing, of_another_model
from graph.search.words import Word
from graph.streams.change import Place

SCHEMES = ("opensearch+http://", "opensearch+https://")
TIMEOUT_SECS = 30.0
KIND = 100.0
"""What a better kind of hit is worth: more than any relevance within a kind."""
DELETES_KEPT = "1d"
"""So long OpenSearch remembers the version of what was deleted: a rebuild must not bring it back."""
TENANT = "tablegraph-tenant"
"""The field that says whose a document is; no field of a model has such a name."""
MANTISSA_BITS = 52
PASSING = (429, 500, 502, 503, 504)
"""The statuses of what is no fault of the request."""

Json = dict[str, Any]


class OpenSearchIndex:
    """Search indexes in an OpenSearch, whose names begin with the path of the URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url.removeprefix("opensearch+"))
        self._prefix = parts.path.strip("/") or "tablegraph"
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        self._base = f"{parts.scheme}://{host}:{parts.port or (443 if parts.scheme == 'https' else 9200)}"
        login = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        self._headers = urllib3.make_headers(basic_auth=login) if parts.username else {}
        self._pool = urllib3.PoolManager(
            maxsize=8, timeout=TIMEOUT_SECS, retries=urllib3.Retry(2, redirect=0, status=0, raise_on_status=False)
        )
        self._checked: set[str] = set()
        """The indexes that are known to be of our model."""

    # --- what is asked ---

    async def search(self, of: Searched, words: Sequence[Word], limit: int, after: Position | None) -> list[Hit]:
        """Find the best hits, or those behind a place."""
        await self._check(of)
        body: Json = {
            "size": limit,
            "_source": False,
            "track_total_hits": False,
            "query": query(of, words),
            "sort": [{"_score": "desc"}, {"id": "asc"}],
        }
        if after is not None:
            body["search_after"] = [float(after[0]), after[1]]
        found = await self._asked(of, "_search", body)
        hits = [hit["sort"] for hit in found["hits"]["hits"]]
        return [Hit(id_, float(score), (repr(float(score)), id_)) for score, id_ in hits]

    def check(self, position: Position) -> bool:
        """Say whether a position may be one of this index's."""
        return (
            len(position) == 2
            and all(isinstance(part, str) for part in position)
            and re.fullmatch(r"\d{1,9}\.\d{1,20}(e-\d{1,3})?", position[0], re.ASCII) is not None
        )

    async def count(self, of: Searched, words: Sequence[Word]) -> int:
        """Count all hits."""
        await self._check(of)
        return int((await self._asked(of, "_count", {"query": query(of, words)}))["count"])

    async def status(self, of: Searched) -> Status:
        """Say how the index of a type stands."""
        kept = await self._kept(of)
        try:
            await self._check(of)
        except SearchUnavailable as error:
            return Status(of, problem=str(error), is_building=bool(kept))
        counted = await self._asked(of, "_count", {"query": {"match_all": {}}})
        return Status(of, int(counted["count"]), is_building=len(kept) > 1)

    async def _check(self, of: Searched) -> None:
        """Make sure once that the index is of our model. Raises SearchUnavailable."""
        alias = self._alias(of)
        if alias in self._checked:
            return
        status, found = await self._send("GET", f"/{alias}/_mapping")
        if status == 404:
            raise missing(of)
        _expect(status, found, "GET _mapping")
        makings = orjson.loads(orjson.dumps(of.makings))
        if any(one["mappings"].get("_meta", {}).get("makings") != makings for one in found.values()):
            raise of_another_model(of)
        self._checked.add(alias)

    async def _asked(self, of: Searched, what: str, body: Json) -> Json:
        status, found = await self._send("POST", f"/{self._alias(of)}/{what}", body)
        if status == 404:
            self._checked.discard(self._alias(of))
            raise missing(of)
        return _expect(status, found, what)

    # --- what is written ---

    async def apply(self, documents: Sequence[Document]) -> None:
        """Take changes into every index of their types; older ones than those that are there are passed over."""
        kept = {name: await self._kept(of) for name, of in {one.of.name: one.of for one in documents}.items()}
        await self.put([(index, one) for one in documents for index in kept[one.of.name]])

    async def put(self, documents: Sequence[tuple[str, Document]]) -> None:
        """Write documents by bulk, each to an index. Raises SearchUnavailable unless all are taken."""
        if not documents:
            return
        lines: list[bytes] = []
        for index, document in documents:
            identity = {
                "_index": index,
                "_id": hashlib.sha256(document.id.encode()).hexdigest(),
                "version": version(document.place),
                "version_type": "external_gte",
            }
            if document.texts is None:
                lines.append(orjson.dumps({"delete": identity}))
            else:
                tenant = {} if document.tenant is None else {TENANT: document.tenant}
                content = {"id": document.id, **tenant, **document.texts}
                lines += [orjson.dumps({"index": identity}), orjson.dumps(content)]
        status, answer = await self._send("POST", "/_bulk", b"\n".join([*lines, b""]))
        for item in _expect(status, answer, "_bulk")["items"]:
            (action, told), *_ = item.items()
            # 409: a later version is there. 404: what is to be deleted is not.
            if told["status"] >= 300 and told["status"] != 409 and (action, told["status"]) != ("delete", 404):
                raise _refused("_bulk", told["status"], told.get("error"))

    async def rebuild(self, types: Sequence[Searched]) -> Rebuilding:
        """Begin new indexes of these types."""
        made: dict[str, str] = {}
        for of in types:
            alias = self._alias(of)
            current = await self._behind(alias)
            for left in await self._kept(of):
                if left not in current:
                    await self.drop(left)
            made[alias] = f"{alias}-{time.time_ns():x}"
            status, answer = await self._send("PUT", f"/{made[alias]}", self._settings(of))
            _expect(status, answer, "PUT index")
        return _OpenSearchRebuilding(self, made, {of.name: made[self._alias(of)] for of in types})

    def _settings(self, of: Searched) -> Json:
        text = {"type": "text", "analyzer": "whitespace", "index_options": "positions"}
        tenant: Json = {}
        if of.tenant is not None:
            # How rare a word is would tell of other tenants' texts.
            text["similarity"] = "boolean"
            tenant[TENANT] = {"type": "keyword"}
        return {
            "settings": {"index": {"gc_deletes": DELETES_KEPT}},
            "mappings": {
                "dynamic": "strict",
                "_meta": {"makings": of.makings},
                "properties": {"id": {"type": "keyword", "index": False}, **tenant, **dict.fromkeys(of.fields, text)},
            },
            "aliases": {_kept_alias(self._alias(of)): {}},
        }

    async def switch(self, made: Mapping[str, str]) -> None:
        """Have every alias lead to its new index, all at once, and drop what they led to."""
        old = {alias: await self._behind(alias) for alias in made}
        actions: list[Json] = []
        for alias, index in made.items():
            actions += [{"remove": {"index": one, "alias": alias}} for one in old[alias]]
            actions.append({"add": {"index": index, "alias": alias}})
            status, answer = await self._send("POST", f"/{index}/_refresh")
            _expect(status, answer, "_refresh")
        status, answer = await self._send("POST", "/_aliases", {"actions": actions})
        _expect(status, answer, "_aliases")
        for indexes in old.values():
            for index in indexes:
                await self.drop(index)

    async def drop(self, index: str) -> None:
        """Drop an index that may be gone already."""
        status, answer = await self._send("DELETE", f"/{index}")
        if status != 404:
            _expect(status, answer, "DELETE index")

    async def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    async def _kept(self, of: Searched) -> list[str]:
        """List all indexes of a type: asked for each time, for another process may have begun a rebuild."""
        return await self._behind(_kept_alias(self._alias(of)))

    async def _behind(self, alias: str) -> list[str]:
        status, answer = await self._send("GET", f"/_alias/{alias}")
        return [] if status == 404 else sorted(_expect(status, answer, "_alias"))

    def _alias(self, of: Searched) -> str:
        """Name what is searched of a type. Names of indexes have lower case only, and ours may differ by case alone."""
        digest = hashlib.sha256(of.name.encode()).hexdigest()[:8]
        return f"{self._prefix}-{of.name.lower()}-{digest}"

    async def _send(self, method: str, path: str, body: Json | bytes | None = None) -> tuple[int, Any]:
        return await asyncio.to_thread(self._sent, method, path, body)

    def _sent(self, method: str, path: str, body: Json | bytes | None) -> tuple[int, Any]:
        is_bulk = isinstance(body, bytes)
        content = orjson.dumps(body) if isinstance(body, dict) else body
        headers = {**self._headers, "Content-Type": "application/x-ndjson" if is_bulk else "application/json"}
        try:
            response = self._pool.request(method, self._base + path, body=content, headers=headers)
            return response.status, orjson.loads(response.data) if response.data else {}
        except (urllib3.exceptions.HTTPError, ValueError) as error:
            raise SearchBusy(
                f"OpenSearch at {self._base} does not answer {method} {path}: {error}. See that it runs, and that "
                "--search names it"
            ) from error


class _OpenSearchRebuilding:
    """New indexes, by their aliases and by the names of their types."""

    def __init__(self, index: OpenSearchIndex, made: Mapping[str, str], names: Mapping[str, str]) -> None:
        self._index = index
        self._made = made
        self._names = names

    async def add(self, documents: Sequence[Document]) -> None:
        """Take documents as they were read from the table: without a version, so that any change wins."""
        await self._index.put([(self._names[one.of.name], one) for one in documents if one.texts is not None])

    async def finish(self) -> None:
        """Put the new indexes in the place of the old ones."""
        await self._index.switch(self._made)

    async def abandon(self) -> None:
        """Drop the new indexes."""
        for index in self._made.values():
            await self._index.drop(index)


def version(place: Place | None) -> int:
    """Make a version of a sequence number, which is too long for one: later ones have no lesser version.

    It keeps the number's length and its first 52 bits, in order; changes that share both are taken as they come.
    """
    if place is None:
        return 0
    length = place.sequence.bit_length()
    first = place.sequence >> (length - MANTISSA_BITS) if length > MANTISSA_BITS else place.sequence
    return max(1, (max(0, length - MANTISSA_BITS) << (MANTISSA_BITS + 1)) + first)


def query(of: Searched, words: Sequence[Word]) -> Json:
    """Write what is searched for: all words, with typos; worth more where they are begun, and most as they are."""
    *others, last = words
    exact = _all([_as_is(of, word) for word in words])
    begun = _all([*(_as_is(of, word) for word in others), _begun(of, last)])
    widest = [_any([_as_is(of, word), *_misspelt(of, word)]) for word in others]
    widest.append(_any([_as_is(of, last), _begun(of, last), *_misspelt(of, last)]))
    kinds = [{"constant_score": {"filter": kind, "boost": KIND}} for kind in (exact, begun)]
    whose: Json = {} if of.tenants is None else {"filter": [{"terms": {TENANT: sorted(of.tenants)}}]}
    return {"bool": {"must": widest, "should": kinds, **whose}}


def _as_is(of: Searched, word: Word) -> Json:
    text = " ".join(word.tokens)
    return _any(
        [{"match_phrase": {name: {"query": text, "boost": weight}}} for name, weight in of.shown.items()]
        if len(word.tokens) > 1
        else [{"term": {name: {"value": text, "boost": weight}}} for name, weight in of.shown.items()]
    )


def _begun(of: Searched, word: Word) -> Json:
    if len(word.tokens) > 1:
        return _as_is(of, word)
    return _any([{"prefix": {name: {"value": word.tokens[0], "boost": weight}}} for name, weight in of.shown.items()])


def _misspelt(of: Searched, word: Word) -> list[Json]:
    if not word.typos:
        return []
    asked = {"value": word.tokens[0], "fuzziness": word.typos, "transpositions": True}
    return [{"fuzzy": {name: {**asked, "boost": weight}}} for name, weight in of.shown.items()]


def _any(queries: list[Json]) -> Json:
    return {"dis_max": {"queries": queries}}


def _all(queries: list[Json]) -> Json:
    return {"bool": {"must": queries}}


def _kept_alias(alias: str) -> str:
    return f"{alias}-all"


def _expect(status: int, answer: Any, what: str) -> Json:
    if not 200 <= status < 300 or not isinstance(answer, dict):
        raise _refused(what, status, answer.get("error") if isinstance(answer, dict) else answer)
    return answer


def _refused(what: str, status: int, error: Any) -> SearchUnavailable:
    reason = error.get("reason", error) if isinstance(error, dict) else error
    kind = SearchBusy if status in PASSING else SearchUnavailable
    return kind(f"OpenSearch refuses {what} with {status}: {str(reason)[:300]}")
