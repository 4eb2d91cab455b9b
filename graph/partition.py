"""A key range as a list: one Query after the other, in the order of the sort key."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import dropwhile

from graph.client import Response
from graph.cursor import Position, is_key_position
from graph.errors import TableMissing
from graph.expressions import AnyOf, Compare, Condition, Exists, Not
from graph.loaders import Operation
from graph.model import Model, Projection
from graph.planner import KeyRange
from graph.requests import Item, KeyAttributes, Query, key_value
from graph.sort import SortKey, SortRange, just_above, just_below
from graph.sources import (
    LARGEST_LIMIT,
    NO_SIEVE,
    SPARSE_LIMIT,
    Batch,
    Entry,
    Reader,
    Reading,
    Sieve,
    all_of,
    not_expired,
    not_ours,
    read_layouts,
    send,
)


def discriminator(model: Model, key_range: KeyRange) -> Condition | None:
    """Make the filter on the type attribute, for a range in which only that attribute tells the types apart."""
    layouts = key_range.layouts
    name = model.tables[layouts[0].table].type_attribute
    if name is None or not any(model.rivals_of(layout, key_range.index.name) for layout in layouts):
        return None
    types = dict.fromkeys(model.items[layout.type_name].type_name for layout in layouts)
    tests: tuple[Condition, ...] = tuple(Compare(name, "=", ("S", type_)) for type_ in types)
    return AnyOf((*tests, Not(Exists(name))))


def collected(operation: Operation, key_range: KeyRange) -> tuple[list[Item], bool] | None:
    """Give what a Query for the item collection has brought of a range already, and whether that is all of it."""
    index = key_range.index
    collection = operation.collections.get((key_range.table, index.name, key_range.partition))
    return collection.part(key_range.sort) if collection and index.sort_keys else None


@dataclass(slots=True)
class RangeSource:
    """One key range, in the order of its sort key. A position is the key values that place an item in its index."""

    operation: Operation
    range: KeyRange
    place: str
    sieve: Sieve = NO_SIEVE
    consistent: bool = False
    names: tuple[str, ...] = field(init=False)
    """The attributes that a position is made of, the sort key's first."""

    def __post_init__(self) -> None:
        self.names = self.operation.model.tables[self.range.index.table].position_attributes(self.range.index)

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk.

        Cost: as many items as are wanted and one Query where nothing is dropped; else from 100 items, or from what
        `most` allows, twice as many with each Query up to 1,000.
        """
        return _RangeReader(self, reading)

    def request(self, sort: SortRange, *, limit: int | None = None, descending: bool = False) -> Query:
        """Make the Query of one piece of the range."""
        index = self.range.index
        return Query(
            table=self.range.table,
            index=index.name,
            partition=self._partition,
            sort=sort.condition(index.sort_keys),
            filter=all_of(discriminator(self.operation.model, self.range), self.sieve.condition),
            limit=limit,
            descending=descending,
            consistent=self.consistent or self.operation.reads_consistently(index),
        )

    @property
    def _partition(self) -> KeyAttributes:
        return tuple(zip(self.range.index.partition_keys, self.range.partition, strict=True))

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
        values = dict(zip(self.names, position, strict=True)) | dict(self._partition)
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
        return (*self._partition, *zip(self.names, position, strict=True))

    def sort_key(self, position: Position) -> SortKey:
        """Give the sort key of a position."""
        return position[: len(self.range.index.sort_keys)]

    @property
    def is_unique(self) -> bool:
        """Say whether no two items can share a sort key."""
        return self.range.index.name is None

    @property
    def may_hold_self(self) -> bool:
        """Say whether a node's own item may lie among its edges."""
        model, index = self.operation.model, self.range.index
        rivals = (rival for layout in self.range.layouts for rival in model.rivals_of(layout))
        is_turned = set(index.key_attributes) == set(model.tables[index.table].key_attributes)
        return is_turned and index.sort_keys != () and any(rival.self_keyed for rival in rivals)

    def check(self, position: Position) -> None:
        """Refuse a position that is not the keys of an item in this range."""
        if not is_key_position(position, len(self.names)):
            raise not_ours()
        templates = self.range.layouts[0].templates
        for name, value in zip(self.names, position, strict=True):
            if isinstance(value, Decimal) is not templates[name].is_number:
                raise not_ours()
        if not self.range.sort.contains(self.sort_key(position)):
            raise not_ours()

    async def count(self) -> int | None:
        """Count with Select=COUNT. Cost: one Query for each megabyte that the range holds."""
        if self.sieve.keep is not None:
            return None
        parts = self.range.parts or (self.range.sort,)
        if self.may_hold_self:
            parts = tuple(part for whole in parts for part in _without(whole, self.range.partition))
        return sum(await self.operation.together([self._count(piece) for part in parts for piece in part.pieces()]))

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
        is_closed = reading.with_start and source.is_unique
        self._start = None if is_closed else reading.start
        self._limit = self._first_limit()
        self._pieces = deque(self._narrowed())
        is_open = reading.start is None and reading.stop is None and source.sieve.condition is None
        self._collected = collected(source.operation, source.range) if is_open else None

    def _narrowed(self) -> list[SortRange]:
        """List what is to be read, piece by piece, in the direction of reading."""
        start, stop = (
            None if position is None else self._source.sort_key(position)
            for position in (self._reading.start, self._reading.stop)
        )
        low, high = (stop, start) if self._reading.descending else (start, stop)
        sort = self._source.range.sort
        sort = sort if low is None else sort.from_(low)
        sort = sort if high is None else sort.to(high)
        if sort.empty:
            return []
        if self._start is not None:
            # An ExclusiveStartKey outside of the key condition is refused: together with one, only the stop narrows it.
            sort = self._source.range.sort
            sort = sort if stop is None else sort.from_(stop) if self._reading.descending else sort.to(stop)
        pieces = sort.pieces()[::-1] if self._reading.descending else sort.pieces()
        if self._start is None or start is None:
            return list(pieces)
        return list(dropwhile(lambda piece: not piece.contains(start), pieces))

    def _first_limit(self) -> int:
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
        items, evaluated, end = self._take_collected() or await self._query()
        entries = [entry for item in items if (entry := source.entry(item)) is not None]
        places = [entry.position for entry in entries]
        if self._reading.stop in places:
            end, entries = None, entries[: places.index(self._reading.stop) + self._reading.with_stop]
        if end is not None:
            self._start = end
            self._limit = max(self._limit, min(LARGEST_LIMIT, self._limit * 2)) if evaluated else self._limit
        return Batch(entries if source.sieve.keep is None else await source.sieve.keep(entries), evaluated, end)

    def _take_collected(self) -> tuple[list[Item], int, Position | None] | None:
        taken, self._collected = self._collected, None
        if taken is None:
            return None
        items, is_all = taken
        if self._reading.descending:
            return (items[::-1], 0, None) if is_all else None
        return items, 0, None if is_all else self._source.position(items[-1])

    async def _query(self) -> tuple[list[Item], int, Position | None]:
        """Query piece after piece, until one has more than it brought."""
        items: list[Item] = []
        evaluated = 0
        while self._pieces:
            response = await self._source.send(self._request(self._limit - evaluated))
            items += response["Items"]
            evaluated += response["ScannedCount"]
            if "LastEvaluatedKey" in response:
                return items, evaluated, self._source.position(response["LastEvaluatedKey"])
            self._pieces.popleft()
            self._start = None
        return items, evaluated, None

    def _request(self, limit: int) -> Query:
        source, start = self._source, self._start
        request = source.request(self._pieces[0], limit=max(1, limit), descending=self._reading.descending)
        return request if start is None else replace(request, start=source.start(start))


def _without(sort: SortRange, key: SortKey) -> Iterator[SortRange]:
    """Split a range so that one sort key is not in it."""
    for part in (sort.to(just_below(key)), sort.from_(just_above(key))):
        if not part.empty:
            yield part
