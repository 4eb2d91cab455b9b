"""Sources: ordered lists of items, read in batches from any place in either direction.

A range is one Query after the other; a merge reads many ranges as one list; a chain follows a path of relationships; a
scan walks a table's segments. Paging knows only that they are sources.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from math import ceil
from typing import Any, Protocol

from graph.cursor import Position, is_key_position
from graph.entity import Entity, read_entity
from graph.errors import CursorError
from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Function, Not
from graph.keys import KeyValue, Literal
from graph.loaders import Operation
from graph.model import Layout, Model, Projection, Relationship
from graph.planner import KeyRange
from graph.requests import Item, KeyAttributes, Query, Scan, SortRange, key_value


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


def _not_ours() -> CursorError:
    return CursorError("the cursor does not fit this connection: start again without it")


@dataclass(slots=True)
class RangeSource:
    """One key range, in the order of its sort key. A position is the key values that place an item in its index."""

    operation: Operation
    range: KeyRange
    place: str
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
        while True:
            response = await self.operation.page(request)
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
            table=index.table,
            index=index.name,
            partition=(index.partition_key, self.range.partition),
            sort=sort.condition(index.sort_key) if index.sort_key else None,
            filter=self._filter(reading.filter),
            limit=min(limit, LARGEST_LIMIT + 1),
            start=None if reading.start is None or reading.inclusive else self._start(reading.start),
            descending=reading.descending,
        )

    def _may_hold_self(self, layout: Layout) -> bool:
        return any(rival.self_keyed for rival in self.operation.model.rivals.get(layout.name, ()))

    def _filter(self, condition: Condition | None) -> Condition | None:
        parts = tuple(filter(None, (discriminator(self.operation.model, self.range), condition)))
        return parts[0] if len(parts) == 1 else AllOf(parts) if parts else None

    def entry(self, item: Item) -> Entry | None:
        """Take an item as an entry, or count it as skipped when it fits none of the expected layouts."""
        model, index = self.operation.model, self.range.index
        holds = None if index.projection is Projection.ALL else frozenset(item)
        for layout in self.range.layouts:
            entity = read_entity(model, layout, item, holds)
            if entity is not None:
                key = entity.key
                if holds is None and key is not None:
                    self.operation.prime_item(key, item)
                return Entry(self._position(item), entity)
        if not is_of_rival(model, self.range.layouts, item):
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
            raise _not_ours()

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare by the sort key; items that share it have no order that we could know, but their own equality."""
        if position == stop or not position:
            return position == stop
        return bool(position[0] < stop[0] if descending else position[0] > stop[0])

    async def count(self, condition: Condition | None) -> int:
        """Count with Select=COUNT. Cost: one Query for each megabyte that the range holds."""
        request = self._request(Reading(want=1, filter=condition))
        assert request is not None
        request = replace(request, limit=None, count=True)
        total = 0
        while True:
            response = await self.operation.page(request)
            total += response["Count"]
            last = response.get("LastEvaluatedKey")
            if last is None:
                return total
            request = replace(request, start=self._start(self._position(last)))


def discriminator(model: Model, key_range: KeyRange) -> Condition | None:
    """Make the filter on the type attribute, for a range in which only that attribute tells the types apart."""
    layouts = key_range.layouts
    name = model.tables[layouts[0].table].type_attribute
    if name is None or not any(model.rivals.get(layout.name) for layout in layouts):
        return None
    types = dict.fromkeys(model.items[layout.type_name].type_name for layout in layouts)
    tests: tuple[Condition, ...] = tuple(Compare(name, "=", ("S", type_)) for type_ in types)
    return AnyOf((*tests, Not(Exists(name))))


def is_of_rival(model: Model, layouts: Sequence[Layout], item: Item) -> bool:
    """Say whether an item that fits none of the layouts is known to be of another type: nothing to warn of."""
    return any(
        read_entity(model, rival, item) is not None
        for layout in layouts
        for rival in model.rivals.get(layout.name, ())
    )  # fmt: skip


# --- many ranges as one list --------------------------------------------------------------------------------------


@dataclass(slots=True)
class MergeSource:
    """Several ranges of one index as one list: by the sort key after what was fanned out over, then by range.

    A position is the number of the range and the position in it. The other ranges go on from the same place by a key
    condition, so that one position is enough.
    """

    sources: list[RangeSource]

    async def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Read all ranges side by side and give out what is certain to come first."""
        share = ceil(reading.want * 2 / len(self.sources)) + 1
        reading = replace(reading, want=min(reading.want, max(share, 10)))
        order = sorted(range(len(self.sources)), reverse=reading.descending)
        async with AsyncExitStack() as stack:
            heads = [await stack.enter_async_context(aclosing(_Head(self, i, reading))) for i in order]
            while True:
                evaluated = sum(await asyncio.gather(*(head.fill() for head in heads)))
                entries = _take_certain(heads, reading.descending)
                if not entries and all(head.done for head in heads):
                    return
                yield Batch(entries, evaluated, entries[-1].position if entries else None)

    def merge_key(self, number: int, position: Position) -> KeyValue:
        """Give what an item is ordered by among all ranges."""
        source = self.sources[number]
        if source.range.index.sort_key is None:
            return ""
        value: KeyValue = position[0]
        return value[source.range.merge_from :] if isinstance(value, str) else value

    def resume(self, number: int, reading: Reading) -> Reading | None:
        """Give how range `number` is read so as to go on behind a position that may be of another range."""
        start = reading.start
        if start is None:
            return reading
        if start[0] == number:
            return replace(reading, start=start[1])
        return replace(reading, start=None)

    def check(self, position: Position) -> None:
        """Refuse a position whose range does not exist or does not know it."""
        if len(position) != 2 or not isinstance(position[0], int) or not 0 <= position[0] < len(self.sources):
            raise _not_ours()
        self.sources[position[0]].check(position[1])

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare by merge key, then by range."""
        if position[0] == stop[0]:
            return self.sources[position[0]].passed(position[1], stop[1], descending)
        one, other = (self.merge_key(*position), position[0]), (self.merge_key(*stop), stop[0])
        return bool(one < other if descending else one > other)  # type: ignore[operator]

    async def count(self, condition: Condition | None) -> int:
        """Sum the counts of all ranges."""
        return sum(await asyncio.gather(*(source.count(condition) for source in self.sources)))


class _Head:
    """The unread front of one range of a merge."""

    def __init__(self, merge: MergeSource, number: int, reading: Reading) -> None:
        self.number = number
        self.buffer: list[tuple[KeyValue, Entry]] = []
        self.done = False
        self._merge = merge
        self._start = reading.start
        self._descending = reading.descending
        own = merge.resume(number, reading)
        assert own is not None
        self._batches = self._source(reading).batches(own)

    def _source(self, reading: Reading) -> RangeSource:
        """Narrow the range of another position than its own by a key condition on the merge key."""
        source, start = self._merge.sources[self.number], reading.start
        if start is None or start[0] == self.number or source.range.index.sort_key is None:
            return source
        key = self._merge.merge_key(*start)
        if isinstance(key, str):
            low = source.range.sort.low
            key = (low[: source.range.merge_from] if isinstance(low, str) else "") + key
        sort = source.range.sort
        narrowed = sort.to(key) if reading.descending else sort.from_(key)
        return replace_range(source, narrowed)

    async def fill(self) -> int:
        """Read until something is in front or the range ends; give the number of items evaluated."""
        evaluated = 0
        while not self.buffer and not self.done:
            batch = await anext(self._batches, None)
            if batch is None:
                self.done = True
                break
            evaluated += batch.evaluated
            for entry in batch.entries:
                position = (self.number, entry.position)
                if not self._is_behind(position):
                    key = self._merge.merge_key(*position)
                    self.buffer.append((key, Entry(position, entry.entity)))
        return evaluated

    def _is_behind(self, position: Position) -> bool:
        """Say whether an item of another range than the start's was given out before it: the key condition is closed."""
        if self._start is None or self._start[0] == self.number:
            return False
        key, start = self._merge.merge_key(*position), self._merge.merge_key(*self._start)
        one, other = (key, position[0]), (start, self._start[0])
        return bool(one > other if self._descending else one < other)  # type: ignore[operator]

    async def aclose(self) -> None:
        """Stop reading."""
        await self._batches.aclose()  # type: ignore[attr-defined]


def replace_range(source: RangeSource, sort: SortRange) -> RangeSource:
    """Give the same source over another range of its sort key."""
    return RangeSource(source.operation, replace(source.range, sort=sort), source.place)


def _take_certain(heads: list[_Head], descending: bool) -> list[Entry]:
    """Take entries in order while every range that may still give more has one to compare with."""
    entries: list[Entry] = []
    cursors = dict.fromkeys(range(len(heads)), 0)
    while all(cursors[i] < len(head.buffer) or head.done for i, head in enumerate(heads)):
        fronts = [(head.buffer[cursors[i]][0], i) for i, head in enumerate(heads) if cursors[i] < len(head.buffer)]
        if not fronts:
            break
        # `heads` are in reading order, so that among equal keys the first head comes first in both directions.
        key = max(front[0] for front in fronts) if descending else min(front[0] for front in fronts)  # type: ignore[type-var]
        chosen = next(i for front, i in fronts if front == key)
        entries.append(heads[chosen].buffer[cursors[chosen]][1])
        cursors[chosen] += 1
    for i, head in enumerate(heads):
        del head.buffer[: cursors[i]]
    return entries


# --- a path of relationships --------------------------------------------------------------------------------------


@dataclass(slots=True)
class ChainSource:
    """The items behind every item of another source, one after the other: containers' pallets' boxes.

    A position is the position of the outer item and that of the inner one.
    """

    outer: Source
    follow: Callable[[Entity], Source | None]
    """The inner source behind an outer item."""
    rebuild: Callable[[Position], Entity | None]
    """The outer item that a position names, as far as its keys tell."""

    async def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Read the outer items, and as many inner lists side by side as seem needed.

        Cost: one Query for each page of outer items and one for each inner list begun; a first guess of 25 inner items
        an outer one is corrected by what the first lists held.
        """
        outer_start, inner_start = reading.start or (None, None)
        outer_reading = replace(
            reading, start=outer_start, inclusive=outer_start is not None, filter=None, sparse=False
        )  # fmt: skip
        found, lists = 0, 0
        async with aclosing(self.outer.batches(outer_reading)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                todo = batch.entries
                evaluated = batch.evaluated
                while todo:
                    width = self._width(reading.want - found, found, lists)
                    heads, todo = todo[:width], todo[width:]
                    inner = [
                        self._inner(head, inner_start if head.position == outer_start else None, reading)
                        for head in heads
                    ]
                    firsts = await asyncio.gather(*(anext(batches_, None) for batches_ in inner))
                    for head, first, rest in zip(heads, firsts, inner, strict=True):
                        async for part in _continue(first, rest):
                            entries = [Entry((head.position, entry.position), entry.entity) for entry in part.entries]
                            found += len(entries)
                            yield Batch(
                                entries,
                                part.evaluated + evaluated,
                                None if part.end is None else (head.position, part.end),
                            )
                            evaluated = 0
                    lists += len(heads)

    @staticmethod
    def _width(missing: int, found: int, lists: int) -> int:
        each = found / lists if found else 25 if not lists else 1
        return max(1, min(ceil(missing / each), LARGEST_LIMIT))

    def _inner(self, head: Entry, start: Position | None, reading: Reading) -> AsyncIterator[Batch]:
        source = self.follow(head.entity)
        return _nothing() if source is None else source.batches(replace(reading, start=start))

    def check(self, position: Position) -> None:
        """Refuse a position that either source does not know."""
        if len(position) != 2 or not isinstance(position[0], tuple) or not isinstance(position[1], tuple):
            raise _not_ours()
        self.outer.check(position[0])
        head = self.rebuild(position[0])
        source = None if head is None else self.follow(head)
        if source is None:
            raise _not_ours()
        source.check(position[1])

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare by the outer position, then by the inner one."""
        if position[0] != stop[0]:
            return self.outer.passed(position[0], stop[0], descending)
        head = self.rebuild(position[0])
        source = None if head is None else self.follow(head)
        return source is not None and source.passed(position[1], stop[1], descending)

    async def count(self, condition: Condition | None) -> int:
        """Sum the counts of all inner lists. Cost: the outer items, and a COUNT for each."""
        counts: list[Awaitable[int]] = []
        async for batch in self.outer.batches(Reading(want=LARGEST_LIMIT)):
            for entry in batch.entries:
                source = self.follow(entry.entity)
                if source is not None:
                    counts.append(source.count(condition))
        return sum(await asyncio.gather(*counts))


async def _nothing() -> AsyncIterator[Batch]:
    return
    yield  # makes this a generator


async def _continue(first: Batch | None, rest: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
    if first is not None:
        yield first
        async for batch in rest:
            yield batch


# --- a whole table ------------------------------------------------------------------------------------------------

SCAN_SEGMENTS = 4


@dataclass(slots=True)
class ScanSource:
    """All items of some layouts in their tables, segment by segment: the order is DynamoDB's, and goes one way only.

    A position is the number of the segment and the item's key. Segments are read one at a time until the first
    request did not fill the page; from then on the next ones are read ahead, side by side.
    """

    operation: Operation
    layouts: tuple[Layout, ...]
    place: str

    async def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Scan segment after segment. Cost: one Scan for each megabyte of the table, whatever it holds."""
        first, key = reading.start or (0, None)
        ahead: dict[int, asyncio.Task[dict[str, Any]]] = {}
        try:
            for segment in range(first, len(self._tables) * SCAN_SEGMENTS):
                request: Scan | None = self._request(segment, key if segment == first else None, reading.filter)
                while request is not None:
                    task = ahead.pop(segment, None)
                    response = await (task if task is not None else self.operation.page(request))
                    last = response.get("LastEvaluatedKey")
                    end = (segment, self._key(segment, last)) if last else None
                    entries = [entry for item in response["Items"] if (entry := self._entry(segment, item))]
                    yield Batch(entries, response["ScannedCount"], end)
                    request = None if end is None else self._request(segment, end[1], reading.filter)
                    self._read_ahead(ahead, segment, request, reading.filter)
        finally:
            for task in ahead.values():
                task.cancel()

    def _read_ahead(
        self, ahead: dict[int, asyncio.Task[dict[str, Any]]], segment: int, current: Scan | None, filter_: Condition | None
    ) -> None:
        if current is not None:
            ahead[segment] = asyncio.ensure_future(self.operation.page(current))
        for later in range(segment + 1, min(segment + SCAN_SEGMENTS, len(self._tables) * SCAN_SEGMENTS)):
            if later not in ahead:
                ahead[later] = asyncio.ensure_future(self.operation.page(self._request(later, None, filter_)))

    @property
    def _tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layout.table for layout in self.layouts))

    def _request(self, segment: int, key: Position | None, filter_: Condition | None) -> Scan:
        table = self._tables[segment // SCAN_SEGMENTS]
        names = self.operation.model.tables[table].key_attributes
        layouts = [layout for layout in self.layouts if layout.table == table]
        shape = AnyOf(tuple(self._shape(layout) for layout in layouts))
        return Scan(
            table,
            segment % SCAN_SEGMENTS,
            SCAN_SEGMENTS,
            shape if filter_ is None else AllOf((shape, filter_)),
            start=None if key is None else tuple(zip(names, key, strict=True)),
        )

    def _shape(self, layout: Layout) -> Condition:
        """Make a filter of the literals that a layout's keys begin with, and of its discriminator."""
        model = self.operation.model
        table = model.tables[layout.table]
        parts: list[Condition] = []
        for name in table.key_attributes:
            template = layout.templates[name]
            if isinstance(template.parts[0], Literal):
                text = ("S", template.parts[0].text)
                whole = len(template.parts) == 1
                parts.append(Compare(name, "=", text) if whole else Function("begins_with", name, text))
        if table.type_attribute:
            type_name = model.items[layout.type_name].type_name
            absent = Not(Exists(table.type_attribute))
            parts.append(AnyOf((Compare(table.type_attribute, "=", ("S", type_name)), absent)))
        return AllOf(tuple(parts)) if parts else Exists(table.primary.partition_key)

    def _key(self, segment: int, item: Item) -> Position:
        names = self.operation.model.tables[self._tables[segment // SCAN_SEGMENTS]].key_attributes
        return tuple(key_value(item[name]) for name in names)

    def _entry(self, segment: int, item: Item) -> Entry | None:
        for layout in self.layouts:
            entity = read_entity(self.operation.model, layout, item)
            if entity is not None and entity.key is not None:
                self.operation.prime_item(entity.key, item)
                return Entry((segment, self._key(segment, item)), entity)
        if not is_of_rival(self.operation.model, self.layouts, item):
            self.operation.meter.skipped[self.place] += 1
        return None

    def check(self, position: Position) -> None:
        """Refuse a position outside the tables' segments."""
        known = len(position) == 2 and isinstance(position[0], int)
        if not known or not 0 <= position[0] < len(self._tables) * SCAN_SEGMENTS:
            raise _not_ours()
        table = self._tables[position[0] // SCAN_SEGMENTS]
        if not is_key_position(position[1], len(self.operation.model.tables[table].key_attributes)):
            raise _not_ours()

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Know only whether this is the very item: a scan has no order to compare by."""
        return position == stop or position[0] > stop[0]

    async def count(self, condition: Condition | None) -> int:
        """Count with a Scan of every segment side by side."""
        segments = range(len(self._tables) * SCAN_SEGMENTS)
        return sum(await asyncio.gather(*(self._count(segment, condition) for segment in segments)))

    async def _count(self, segment: int, condition: Condition | None) -> int:
        request = replace(self._request(segment, None, condition), count=True)
        total = 0
        while True:
            response = await self.operation.page(request)
            total += response["Count"]
            if "LastEvaluatedKey" not in response:
                return total
            start = self._request(segment, self._key(segment, response["LastEvaluatedKey"]), condition).start
            request = replace(request, start=start)


def outer_rebuild(model: Model, relationship: Relationship, source: Source) -> Callable[[Position], Entity | None]:
    """Give the function that makes the item of a position again, from the keys in it alone."""

    def rebuild(position: Position) -> Entity | None:
        if isinstance(source, RangeSource):
            range_, number = source.range, position
        elif isinstance(source, MergeSource):
            range_, number = source.sources[position[0]].range, position[1]
        else:
            return None
        names = model.tables[range_.index.table].position_attributes(range_.index)
        values: dict[str, KeyValue] = {range_.index.partition_key: range_.partition, **dict(zip(names, number, strict=True))}
        wire = {
            name: {"N": str(value)} if isinstance(value, Decimal) else {"S": value} for name, value in values.items()
        }  # fmt: skip
        for layout in range_.layouts:
            entity = read_entity(model, layout, wire, frozenset(wire))
            if entity is not None:
                return entity
        return None

    return rebuild
