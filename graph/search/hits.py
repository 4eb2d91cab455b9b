"""Hits: what a search finds, as a list of nodes in the order of relevance, read page by page."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from graph.batches import BATCH_GET_KEYS
from graph.cursor import Position, issuer
from graph.entity import Entity
from graph.errors import DeadlineExceeded, Forbidden, SearchUnavailable
from graph.lists import keep_where
from graph.loaders import Operation
from graph.lookups import by_keys
from graph.model import ItemType
from graph.paging import PageArguments, read_page, window
from graph.reads import Asked, Connection, Edge, total
from graph.rules import Right
from graph.search.index import Hit, Searched, SearchIndex, item_key, searched
from graph.search.words import Word, wanted
from graph.sources import Batch, Entry, Keep, Reading, not_ours

T = TypeVar("T")


@dataclass(slots=True)
class FoundEdge(Edge):
    """One hit of a search: its node, and how well it fits."""

    score: float


async def search(operation: Operation, item: ItemType, text: str, arguments: PageArguments, asked: Asked) -> Connection:
    """Search the nodes of a type, the best first: a page, and how many there are if that is asked for.

    Cost:   one search and one BatchGetItem for a page of up to 99; under a filter more of both, within the read budget.
    Raises: PageError, CursorError, InputError for the arguments; SearchUnavailable; StoreError.
    """
    index = operation.search
    if index is None:
        raise SearchUnavailable(
            f"this server has no search index, and `{item.name}` is searched: expected --search with the file that "
            "`tablegraph search rebuild` made, or with the URL of an OpenSearch"
        )
    of, is_all = _allowed(operation, searched(operation.model, item))
    source = HitsSource(operation, index, of, wanted(text), keep_where(operation, asked.where), is_all)
    scope = [] if of.tenants is None and not of.hidden else [sorted(of.tenants or ()), sorted(of.hidden)]
    name = issuer(operation.model.seals, "search", item.name, source.words, asked.where, *scope)
    window_ = window(arguments, operation.limits, name, source)
    budget = operation.limits.read_budget
    page = None
    if asked.wants_page:
        page = await read_page(source, window_, budget=budget, is_late=operation.is_late)
    edges: list[Edge] = [
        FoundEdge(name, entry.position, entry.entity, entry.entity, source.scores[entry.position])
        for entry in (page.entries if page is not None else ())
    ]
    return Connection(name, edges, page, await total(source, page, budget, asked))


def _allowed(operation: Operation, of: Searched) -> tuple[Searched, bool]:
    """Narrow a search to what the caller may read, and say whether the index alone then knows what that is.

    Raises: Forbidden where that is nothing.
    """
    permissions = operation.permissions
    if permissions is None:
        return of, True
    grant = permissions.of(of.type_name, Right.READ)
    hidden = [name for name in of.fields if not permissions.of_field(of.type_name, name, Right.READ).always]
    if grant.never or len(hidden) == len(of.fields):
        raise Forbidden(f"you may not search {of.type_name}: expected a caller whom its @auth lets read it")
    of = replace(of, hidden=frozenset(hidden))
    if grant.always:
        return of, True
    ways = [[test.values for test in way if test.path == of.tenant] for way in grant.ways]
    paths = operation.model.items[of.type_name].tenants
    if all(ways):
        of = replace(of, tenants=frozenset().union(*(way[0] for way in ways)))
    return of, all(ways) and all(test.path in paths for way in grant.ways for test in way)


@dataclass(slots=True)
class HitsSource:
    """The nodes that have all of these words, the best first.

    Those that are gone from the table are left out, and those that the caller may not read.
    """

    operation: Operation
    index: SearchIndex
    of: Searched
    words: tuple[Word, ...]
    keep: Keep | None = None
    is_all: bool = True
    """All that the index finds may be read."""
    scores: dict[Position, float] = field(default_factory=dict)
    """How well each hit fits that was read."""

    def reader(self, reading: Reading) -> _HitsReader:
        """Begin a walk from the best hit, or behind a place."""
        assert not reading.descending, "a search has one order"
        return _HitsReader(self, reading)

    def check(self, position: Position) -> None:
        """Refuse a position that the index cannot have given."""
        if not self.index.check(position):
            raise not_ours()

    async def count(self) -> int | None:
        """Count the hits by the index; a filter wants the nodes themselves, and so do rules that look at them."""
        if self.keep is not None or not self.is_all:
            return None
        return await self.ask(self.index.count(self.of, self.words)) if self.words else 0

    async def hits(self, limit: int, after: Position | None) -> list[Hit]:
        """Find hits behind a place."""
        if not self.words:
            return []
        return await self.ask(self.index.search(self.of, self.words, limit, after))

    async def load(self, hits: Sequence[Hit]) -> list[Entry]:
        """Read the nodes of hits. Cost: a BatchGetItem for each 100, shared with the whole operation."""
        model, item = self.operation.model, self.operation.model.items[self.of.type_name]
        named = [Entity(model, item, key=item_key(self.of, hit.id)) for hit in hits]
        nodes = await by_keys(self.operation, named)
        self.scores |= {hit.position: hit.score for hit in hits}
        entries = [Entry(hit.position, node) for hit, node in zip(hits, nodes, strict=True) if node is not None]
        return entries if self.keep is None else await self.keep(entries)

    async def ask(self, question: Coroutine[Any, Any, T]) -> T:
        """Ask the index within the operation's time; what waits to be loaded waits for what it finds."""
        self.operation.meter.searches += 1
        try:
            async with asyncio.timeout_at(self.operation.meter.deadline):
                with self.operation.reading():
                    return await question
        except TimeoutError:
            raise DeadlineExceeded(
                "the search index has not answered within the operation's time: search for more or longer words",
                self.operation.meter.timeout_secs,
            ) from None


class _HitsReader:
    """Asks for as many hits at a time as are wanted, and whole batches once some of them are left out."""

    def __init__(self, source: HitsSource, reading: Reading) -> None:
        self._source = source
        self._want = reading.want if source.keep is None else max(reading.want, BATCH_GET_KEYS)
        self._after = reading.start

    async def read(self) -> Batch:
        """Read one round further."""
        hits = await self._source.hits(self._want, self._after)
        entries = await self._source.load(hits)
        is_over = len(hits) < self._want
        self._after = hits[-1].position if hits else None
        self._want = max(self._want, BATCH_GET_KEYS)
        return Batch(entries, len(hits), None if is_over else self._after)
