"""Sources: ordered lists of items, read round by round from any place in either direction.

The plainest one is here: a key range, which is one Query after the other. items.py reads items of whole keys, merge.py
many ranges as one list, chain.py follows a path of relationships, scan.py walks a whole table. Paging knows only that
they are sources.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any, Protocol, TypeVar

from graph.client import Response
from graph.cursor import Position, is_key_position
from graph.entity import Entity, fits_any, read_entity
from graph.errors import CursorError, TableMissing
from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Not
from graph.keys import KeyValue
from graph.loaders import Operation
from graph.model import Layout, Model, Projection
from graph.planner import KeyRange
from graph.ranges import just_above, just_below
from graph.requests import Item, KeyAttributes, Query, Scan, SortRange, key_value

SPARSE_LIMIT = 100
LARGEST_LIMIT = 1000

T = TypeVar("T")


@dataclass(slots=True)
class Entry:
    """One item of a source, and its place there."""

    position: Position
    entity: Entity


@dataclass(slots=True)
class Batch:
    """What one round of requests brought: the entries, how many items it evaluated, and how far it went.

    Without an `end` the list has ended; else it goes on behind that place, which need not be an entry's.
    """

    entries: list[Entry]
    evaluated: int = 0
    end: Position | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is to be read: from one place to another, both exclusive.

    Where items of an index share a sort key, DynamoDB alone knows their order: there a `stop` before the `start`, or
    one whose item is gone, ends the reading behind that sort key.

    `want` is how many entries the reader hopes for, `most` how many items the first round may evaluate. `with_start`
    and `with_stop` also give the items at the two places, should they still be there.
    """

    want: int
    most: int = LARGEST_LIMIT
    start: Position | None = None
    stop: Position | None = None
    descending: bool = False
    with_start: bool = False
    with_stop: bool = False


class Reader(Protocol):
    """One walk along a source."""

    async def read(self) -> Batch:
        """Read one round further; not to be called again once the list has ended."""


class Source(Protocol):
    """An ordered list of items."""

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk."""

    def check(self, position: Position) -> None:
        """Refuse a position that this source never gave. Raises CursorError."""

    async def count(self) -> int | None:
        """Count the items without reading them; None when they must be read to tell."""


Keep = Callable[[list[Entry]], Awaitable[list[Entry]]]
"""Drops the entries that a filter refuses, keeping the order."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What of a filter is left to a source: the condition for DynamoDB, and what else drops entries.

    `sparse`: so much may be dropped that reading just as many items as are wanted would take many rounds.
    """

    condition: Condition | None = None
    keep: Keep | None = None
    sparse: bool = False


NO_SIEVE = Sieve()


def not_ours() -> CursorError:
    """Refuse a cursor whose position no source of this connection can have given."""
    return CursorError("the cursor does not fit this connection: start again without it")


async def together(work: list[Coroutine[Any, Any, T]]) -> list[T]:
    """Await all of these side by side; when one fails, or the caller has gone, the others end before this does."""
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def send(operation: Operation, request: Query | Scan) -> Response:
    """Send a request, and have the keys that wait to be loaded wait for the keys that its answer may add."""
    with operation.reading():
        return await operation.page(request)


def read_layouts(
    operation: Operation, layouts: tuple[Layout, ...], item: Item, place: str, *, is_whole: bool = True
) -> Entity | None:
    """Take an item as one of these layouts, unless it has expired; count it as skipped when it fits no type at all."""
    for layout in layouts:
        entity = read_live(operation, layout, item, None if is_whole else frozenset(item))
        if entity is not None:
            # An index is behind the table: what it shows does for a query, and not for a write.
            if is_whole and entity.key is not None and not operation.consistent:
                operation.prime_item(entity.key, item)
            return entity
    if not fits_any(operation.model, layouts[0].table, item):
        operation.meter.skipped[place] += 1
    return None


def read_live(operation: Operation, layout: Layout, item: Item, holds: frozenset[str] | None = None) -> Entity | None:
    """Take an item as one of a layout, unless it has expired: DynamoDB deletes such items when it finds the time."""
    entity = read_entity(operation.model, layout, item, holds)
    return None if entity is None or has_expired(entity, operation.now) else entity


def has_expired(entity: Entity, now: int) -> bool:
    """Say whether an item no longer exists in a second."""
    expiry = entity.wire.get(entity.type.expiry or "", {}).get("N")
    return expiry is not None and Decimal(expiry) <= now


def not_expired(operation: Operation, layouts: tuple[Layout, ...]) -> Condition | None:
    """Make the filter that keeps a COUNT from counting expired items."""
    names = {operation.model.items[layout.type_name].expiry for layout in layouts}
    tests = tuple(
        AnyOf((Not(Exists(name)), Compare(name, ">", ("N", str(operation.now)))))
        for name in sorted(filter(None, names))
    )
    return AllOf(tests) if tests else None


def discriminator(model: Model, key_range: KeyRange) -> Condition | None:
    """Make the filter on the type attribute, for a range in which only that attribute tells the types apart."""
    layouts = key_range.layouts
    name = model.tables[layouts[0].table].type_attribute
    if name is None or not any(model.rivals_of(layout, key_range.index.name) for layout in layouts):
        return None
    types = dict.fromkeys(model.items[layout.type_name].type_name for layout in layouts)
    tests: tuple[Condition, ...] = tuple(Compare(name, "=", ("S", type_)) for type_ in types)
    return AnyOf((*tests, Not(Exists(name))))


def all_of(*conditions: Condition | None) -> Condition | None:
    """Join the conditions that there are."""
    given = tuple(condition for condition in conditions if condition is not None)
    return AllOf(given) if len(given) > 1 else given[0] if given else None


def collected(operation: Operation, key_range: KeyRange) -> tuple[list[Item], bool] | None:
    """Give what a Query for the item collection has brought of a range already, and whether that is all of it."""
    index = key_range.index
    collection = operation.collections.get((key_range.table, index.name, key_range.partition))
    return collection.part(index.sort_key, key_range.sort) if collection and index.sort_key else None


# --- a key range --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class RangeSource:
    """One key range, in the order of its sort key. A position is the key values that place an item in its index."""

    operation: Operation
    range: KeyRange
    place: str
    sieve: Sieve = NO_SIEVE
    consistent: bool = False
    names: tuple[str, ...] = field(init=False)
    """The attributes that a position is made of, the sort key first if there is one."""

    def __post_init__(self) -> None:
        self.names = self.operation.model.tables[self.range.index.table].position_attributes(self.range.index)

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk.

        Cost: as many items as are wanted and one Query where nothing is dropped; else from 100 items, or from what
        `most` allows, twice as many with each Query up to 1,000.
        """
        return _RangeReader(self, reading)

    def request(self, sort: SortRange, *, limit: int | None = None, descending: bool = False) -> Query:
        """Make the Query of a part of the range."""
        index = self.range.index
        return Query(
            table=self.range.table,
            index=index.name,
            partition=(index.partition_key, self.range.partition),
            sort=sort.condition(index.sort_key) if index.sort_key else None,
            filter=all_of(discriminator(self.operation.model, self.range), self.sieve.condition),
            limit=limit,
            descending=descending,
            consistent=self.consistent or self.operation.reads_consistently(index),
        )

    async def send(self, request: Query) -> Response:
        """Send a request. Raises StoreError."""
        try:
            return await send(self.operation, request)
        except TableMissing:
            # A period in which nothing happened has no table.
            if self.range.index.period is None:
                raise
            return {"Items": [], "Count": 0, "ScannedCount": 0}

    def entry(self, item: Item) -> Entry | None:
        """Take an item as an entry, if it is one."""
        is_whole = self.range.index.projection is Projection.ALL
        entity = read_layouts(self.operation, self.range.layouts, item, self.place, is_whole=is_whole)
        return None if entity is None else Entry(self.position(item), entity)

    async def at(self, position: Position) -> Entry | None:
        """Give the item at a position, if it is still there. Cost: its key joins a BatchGetItem."""
        index = self.range.index
        values = dict(zip(self.names, position, strict=True)) | {index.partition_key: self.range.partition}
        key = tuple((name, values[name]) for name in self.operation.model.tables[index.table].key_attributes)
        (item,) = await self.operation.items([(self.range.table, key)])
        if item is None or any(name not in item or key_value(item[name]) != value for name, value in values.items()):
            return None
        entity = read_layouts(self.operation, self.range.layouts, item, self.place)
        return None if entity is None else Entry(position, entity)

    def position(self, item: Item) -> Position:
        """Give the place of an item, or that which LastEvaluatedKey says."""
        return tuple(key_value(item[name]) for name in self.names)

    def start(self, position: Position) -> KeyAttributes:
        """Write a position as an ExclusiveStartKey."""
        return ((self.range.index.partition_key, self.range.partition), *zip(self.names, position, strict=True))

    @property
    def is_unique(self) -> bool:
        """Say whether no two items can share a sort key."""
        return self.range.index.name is None

    @property
    def may_hold_self(self) -> bool:
        """Say whether a node's own item may lie among its edges."""
        model, index = self.operation.model, self.range.index
        rivals = (rival for layout in self.range.layouts for rival in model.rivals_of(layout))
        is_turned = {index.partition_key, index.sort_key} == set(model.tables[index.table].key_attributes)
        return is_turned and any(rival.self_keyed for rival in rivals)

    def check(self, position: Position) -> None:
        """Refuse a position that is not the keys of an item in this range."""
        if not is_key_position(position, len(self.names)):
            raise not_ours()
        templates = self.range.layouts[0].templates
        for name, value in zip(self.names, position, strict=True):
            if isinstance(value, Decimal) is not templates[name].is_number:
                raise not_ours()
        if self.range.index.sort_key and not self.range.sort.contains(position[0]):
            raise not_ours()

    async def count(self) -> int | None:
        """Count with Select=COUNT. Cost: one Query for each megabyte that the range holds."""
        if self.sieve.keep is not None:
            return None
        parts = self.range.parts or (self.range.sort,)
        if self.may_hold_self:
            parts = tuple(part for whole in parts for part in _without(whole, self.range.partition))
        return sum(await together([self._count(part) for part in parts]))

    async def _count(self, part: SortRange) -> int:
        request = self.request(part)
        alive = not_expired(self.operation, self.range.layouts)
        request = replace(request, count=True, filter=all_of(request.filter, alive))
        total: int = 0
        while True:
            response = await self.send(request)
            total += response["Count"]
            if "LastEvaluatedKey" not in response:
                return total
            request = replace(request, start=self.start(self.position(response["LastEvaluatedKey"])))


class _RangeReader:
    """Sends one Query after the other, each starting where the last one stopped."""

    def __init__(self, source: RangeSource, reading: Reading) -> None:
        self._source = source
        self._reading = reading
        # Where others may share its sort key, the item at the start itself is only to be had by a request of its own.
        self._first = reading.start if reading.with_start and not source.is_unique else None
        self._request = self._first_request()
        is_open = reading.start is None and reading.stop is None and source.sieve.condition is None
        self._collected = collected(source.operation, source.range) if is_open else None

    def _first_request(self) -> Query | None:
        source, reading = self._source, self._reading
        is_closed = reading.with_start and source.is_unique
        sort = wide = source.range.sort
        if source.range.index.sort_key:
            wide = _narrowed(sort, None, reading.stop, reading.descending)
            sort = _narrowed(sort, reading.start, reading.stop, reading.descending)
        if sort.empty:
            return None
        # An ExclusiveStartKey outside of the key condition is refused: together with one, only the stop narrows it.
        request = source.request(sort if is_closed else wide, limit=self._limit(), descending=reading.descending)
        return request if reading.start is None or is_closed else replace(request, start=source.start(reading.start))

    def _limit(self) -> int:
        # A node's own item may lie among its edges; one item more makes up for it without another round.
        limit = self._reading.want + self._source.may_hold_self
        is_mixed = discriminator(self._source.operation.model, self._source.range) is not None
        is_sparse = is_mixed or self._source.sieve.sparse
        return min(max(limit, SPARSE_LIMIT) if is_sparse else limit, self._reading.most)

    async def read(self) -> Batch:
        """Read one round further."""
        source = self._source
        if self._first is not None:
            position, self._first = self._first, None
            entry = await source.at(position)
            return Batch([] if entry is None else [entry], 1, position)
        if self._request is None:
            return Batch([])
        items, evaluated, end = self._take_collected() or await self._query(self._request)
        entries = [entry for item in items if (entry := source.entry(item)) is not None]
        places = [entry.position for entry in entries]
        if self._reading.stop in places:
            end, entries = None, entries[: places.index(self._reading.stop) + self._reading.with_stop]
        if end is not None:
            limit = self._request.limit or SPARSE_LIMIT
            limit = max(limit, min(LARGEST_LIMIT, limit * 2)) if evaluated else limit
            self._request = replace(self._request, start=source.start(end), limit=limit)
        return Batch(entries if source.sieve.keep is None else await source.sieve.keep(entries), evaluated, end)

    def _take_collected(self) -> tuple[list[Item], int, Position | None] | None:
        taken, self._collected = self._collected, None
        if taken is None:
            return None
        items, is_all = taken
        if self._reading.descending:
            return (items[::-1], 0, None) if is_all else None
        return items, 0, None if is_all else self._source.position(items[-1])

    async def _query(self, request: Query) -> tuple[list[Item], int, Position | None]:
        response = await self._source.send(request)
        last = response.get("LastEvaluatedKey")
        return response["Items"], response["ScannedCount"], None if last is None else self._source.position(last)


def _narrowed(sort: SortRange, start: Position | None, stop: Position | None, descending: bool) -> SortRange:
    low, high = (stop, start) if descending else (start, stop)
    sort = sort if low is None else sort.from_(low[0])
    return sort if high is None else sort.to(high[0])


def _without(sort: SortRange, text: KeyValue) -> Iterator[SortRange]:
    """Split a range so that one text is not in it."""
    for part in (sort.to(just_below(text)), sort.from_(just_above(text))):
        if not part.empty:
            yield part
