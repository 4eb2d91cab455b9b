"""Sources: ordered lists of items, read in batches from any place in either direction.

The plainest one is here: a key range, which is one Query after the other. merge.py reads many ranges as one list,
chain.py follows a path of relationships, scan.py walks a whole table. Paging knows only that they are sources.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

from graph.client import Response
from graph.cursor import Position, is_key_position
from graph.entity import Entity, fits_any, read_entity
from graph.errors import CursorError, TableMissing
from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Not
from graph.loaders import Operation
from graph.model import Layout, Model, Projection
from graph.planner import KeyRange
from graph.requests import Item, KeyAttributes, Query, key_value


@dataclass(slots=True)
class Entry:
    """One item of a source, and its place there."""

    position: Position
    entity: Entity


@dataclass(slots=True)
class Batch:
    """What one round of requests brought: the entries, how many items it evaluated, and how far it went."""

    entries: list[Entry]
    evaluated: int
    end: Position | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is to be read. `want` is how many entries the reader hopes for; `start` is exclusive.

    `inclusive` also gives the item at `start` itself, should it be there.
    """

    want: int
    start: Position | None = None
    descending: bool = False
    filter: Condition | None = None
    sparse: bool = False
    """Entries may be dropped by the reader, so that reading just as many as it wants would take many rounds."""
    inclusive: bool = False


class Source(Protocol):
    """An ordered list of items."""

    def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Read on from the reading's start, batch by batch, until the list ends."""

    def check(self, position: Position) -> None:
        """Refuse a position that this source never gave. Raises CursorError."""

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Say whether a position, in reading order, lies at or beyond another one."""

    async def count(self, condition: Condition | None) -> int:
        """Count the items without reading them."""


SPARSE_LIMIT = 100
LARGEST_LIMIT = 1000


def not_ours() -> CursorError:
    """Refuse a cursor whose position no source of this connection can have given."""
    return CursorError("the cursor does not fit this connection: start again without it")


@dataclass(slots=True)
class RangeSource:
    """One key range, in the order of its sort key. A position is the key values that place an item in its index."""

    operation: Operation
    range: KeyRange
    place: str
    consistent: bool = False
    _names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._names = self.operation.model.tables[self.range.index.table].position_attributes(self.range.index)

    async def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Send one Query after the other, each starting where the last one stopped.

        Cost: `want` items and one Query where nothing is dropped; else 100, 200, 400 … up to 1,000 items a Query.
        """
        request = self._request(reading)
        if request is None:
            return
        if (known := self._collected(reading)) is not None:
            yield known
            if known.end is None:
                return
            request = replace(request, start=self._start(known.end))
        while True:
            response = await self._page(request)
            last = response.get("LastEvaluatedKey")
            entries = [entry for item in response["Items"] if (entry := self.entry(item)) is not None]
            if reading.inclusive and reading.start is not None:
                entries = self._from_start(entries, reading)
            evaluated = response.get("ScannedCount", len(entries))
            yield Batch(entries, evaluated, None if last is None else self._position(last))
            if last is None:
                return
            limit = min(LARGEST_LIMIT, (request.limit or SPARSE_LIMIT) * 2) if reading.sparse else request.limit
            request = replace(request, start=self._start(self._position(last)), limit=limit)

    async def _page(self, request: Query) -> Response:
        try:
            return await self.operation.page(request)
        except TableMissing:
            # A period in which nothing happened has no table.
            if self.range.index.period is None:
                raise
            return {"Items": [], "Count": 0, "ScannedCount": 0}

    def _collected(self, reading: Reading) -> Batch | None:
        """Take what a Query for the whole item collection brought already, from the beginning of the range."""
        index = self.range.index
        collection = self.operation.collections.get((self.range.table, index.name, self.range.partition))
        if collection is None or index.sort_key is None or reading.start is not None or reading.filter is not None:
            return None
        part = collection.part(index.sort_key, self.range.sort)
        if part is None or (reading.descending and not part[1]):
            return None
        items, is_all = part
        end = None if is_all else self._position(items[-1])
        entries = [entry for item in items if (entry := self.entry(item)) is not None]
        return Batch(entries[::-1] if reading.descending else entries, 0, end)

    def _request(self, reading: Reading) -> Query | None:
        index, sort = self.range.index, self.range.sort
        if reading.inclusive and reading.start is not None and index.sort_key:
            bound = reading.start[0]
            sort = sort.to(bound) if reading.descending else sort.from_(bound)
        if sort.empty:
            return None
        limit = max(reading.want, SPARSE_LIMIT) if reading.sparse else reading.want
        # A node's own item may lie among its edges; one item more makes up for it without another round.
        limit += any(self._may_hold_self(layout) for layout in self.range.layouts)
        return Query(
            table=self.range.table,
            index=index.name,
            partition=(index.partition_key, self.range.partition),
            sort=sort.condition(index.sort_key) if index.sort_key else None,
            filter=self._filter(reading.filter),
            limit=min(limit, LARGEST_LIMIT + 1),
            start=None if reading.start is None or reading.inclusive else self._start(reading.start),
            descending=reading.descending,
            consistent=self.consistent,
        )

    def _may_hold_self(self, layout: Layout) -> bool:
        return any(rival.self_keyed for rival in self.operation.model.rivals_of(layout))

    def _filter(self, condition: Condition | None) -> Condition | None:
        own = discriminator(self.operation.model, self.range)
        return AllOf((own, condition)) if own and condition else own or condition

    def entry(self, item: Item) -> Entry | None:
        """Take an item as an entry, or count it as skipped when it fits none of the expected layouts."""
        model, index = self.operation.model, self.range.index
        holds = None if index.projection is Projection.ALL else frozenset(item)
        for layout in self.range.layouts:
            entity = read_live(self.operation, layout, item, holds)
            if entity is not None:
                key = entity.key
                if holds is None and key is not None:
                    self.operation.prime_item(key, item)
                return Entry(self._position(item), entity)
        if not fits_any(model, index.table, item):
            self.operation.meter.skipped[self.place] += 1
        return None

    def _position(self, item: Item) -> Position:
        return tuple(key_value(item[name]) for name in self._names)

    def _start(self, position: Position) -> KeyAttributes:
        return ((self.range.index.partition_key, self.range.partition), *zip(self._names, position, strict=True))

    def _from_start(self, entries: list[Entry], reading: Reading) -> list[Entry]:
        """Drop what an inclusive start shares its sort key with, up to the start itself."""
        places = [entry.position for entry in entries]
        return entries[places.index(reading.start) :] if reading.start in places else entries

    def check(self, position: Position) -> None:
        """Refuse a position that is not the keys of an item in this range."""
        if not is_key_position(position, len(self._names)):
            raise not_ours()

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare by the sort key; items that share it have no order that we could know, but their own equality."""
        if position == stop or not position:
            return position == stop
        return bool(position[0] < stop[0] if descending else position[0] > stop[0])

    async def count(self, condition: Condition | None) -> int:
        """Count with Select=COUNT. Cost: one Query for each megabyte that the range holds."""
        alive = not_expired(self.operation, self.range.layouts)
        condition = AllOf((alive, condition)) if alive and condition else alive or condition
        request = self._request(Reading(want=1, filter=condition))
        assert request is not None
        request = replace(request, limit=None, count=True)
        total: int = 0
        while True:
            response = await self._page(request)
            total += response["Count"]
            last = response.get("LastEvaluatedKey")
            if last is None:
                return total
            request = replace(request, start=self._start(self._position(last)))


def discriminator(model: Model, key_range: KeyRange) -> Condition | None:
    """Make the filter on the type attribute, for a range in which only that attribute tells the types apart."""
    layouts = key_range.layouts
    name = model.tables[layouts[0].table].type_attribute
    if name is None or not any(model.rivals_of(layout, key_range.index.name) for layout in layouts):
        return None
    types = dict.fromkeys(model.items[layout.type_name].type_name for layout in layouts)
    tests: tuple[Condition, ...] = tuple(Compare(name, "=", ("S", type_)) for type_ in types)
    return AnyOf((*tests, Not(Exists(name))))


def read_live(operation: Operation, layout: Layout, item: Item, holds: frozenset[str] | None = None) -> Entity | None:
    """Take an item as one of a layout, unless it has expired: DynamoDB deletes such items when it finds the time."""
    entity = read_entity(operation.model, layout, item, holds)
    return None if entity is None or _has_expired(entity, operation.now) else entity


def _has_expired(entity: Entity, now: int) -> bool:
    expiry = entity.wire.get(entity.type.expiry or "", {}).get("N")
    return expiry is not None and Decimal(expiry) <= now


def not_expired(operation: Operation, layouts: Sequence[Layout]) -> Condition | None:
    """Make the filter that keeps a COUNT from counting expired items."""
    names = {operation.model.items[layout.type_name].expiry for layout in layouts}
    tests = tuple(
        AnyOf((Not(Exists(name)), Compare(name, ">", ("N", str(operation.now)))))
        for name in sorted(filter(None, names))
    )
    return AllOf(tests) if tests else None
