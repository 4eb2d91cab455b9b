"""A whole table as one list, for the patterns that the model itself says are scans."""

from __future__ import annotations

from dataclasses import dataclass, replace

from graph.cursor import Position, is_key_position
from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Function, Not
from graph.keys import OURS, Literal
from graph.loaders import Operation
from graph.model import Layout, Table
from graph.ours import is_ours
from graph.requests import Item, Scan, key_value
from graph.sources import (
    NO_SIEVE,
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

SCAN_SEGMENTS = 4


@dataclass(slots=True)
class ScanSource:
    """All items of some layouts in their tables, segment by segment: the order is DynamoDB's, and goes one way only.

    A position is the number of the segment, counted through all tables, and the key of the item; an empty key means
    the beginning of the segment.
    """

    operation: Operation
    layouts: tuple[Layout, ...]
    place: str
    sieve: Sieve = NO_SIEVE

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk: forward, to the end of the tables.

        Cost: one Scan for each megabyte of the tables, whatever they hold: one at first, and when that does not fill
        the page the next segments' first ones beside the others.
        """
        return _ScanReader(self, reading.start or (0, ()))

    @property
    def segments(self) -> range:
        """Number the segments of all tables."""
        return range(len(self._tables) * SCAN_SEGMENTS)

    @property
    def _tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(layout.table for layout in self.layouts))

    def table(self, segment: int) -> Table:
        """Give the table of a segment."""
        return self.operation.model.tables[self._tables[segment // SCAN_SEGMENTS]]

    def request(self, position: Position) -> Scan:
        """Make the Scan of a segment behind a key."""
        segment, key = position
        table = self.table(segment)
        shape = AnyOf(tuple(self._shape(table, layout) for layout in self.layouts if layout.table == table.name))
        return Scan(
            table.name,
            segment % SCAN_SEGMENTS,
            SCAN_SEGMENTS,
            all_of(shape, self.sieve.condition),
            start=tuple(zip(table.key_attributes, key, strict=True)) if key else None,
        )

    def _shape(self, table: Table, layout: Layout) -> Condition:
        """Make a filter of the literals that a layout's keys begin with, and of its discriminator."""
        parts: list[Condition] = []
        for name in table.key_attributes:
            template = layout.templates[name]
            if isinstance(template.parts[0], Literal):
                text = ("S", template.parts[0].text)
                is_whole = len(template.parts) == 1
                parts.append(Compare(name, "=", text) if is_whole else Function("begins_with", name, text))
            elif name in table.primary.partition_keys and not template.is_number:
                parts.append(Not(Function("begins_with", name, ("S", OURS))))
        if table.type_attribute:
            type_name = self.operation.model.items[layout.type_name].type_name
            absent = Not(Exists(table.type_attribute))
            parts.append(AnyOf((Compare(table.type_attribute, "=", ("S", type_name)), absent)))
        return AllOf(tuple(parts)) if parts else Exists(table.primary.partition_keys[0])

    def position(self, segment: int, item: Item) -> Position:
        """Give the place of an item, or that which LastEvaluatedKey says."""
        return segment, tuple(key_value(item[name]) for name in self.table(segment).key_attributes)

    def entry(self, segment: int, item: Item) -> Entry | None:
        """Take an item as an entry, if it is one."""
        if is_ours(item, self.table(segment)):
            return None
        entity = read_layouts(self.operation, self.layouts, item, self.place)
        return None if entity is None else Entry(self.position(segment, item), entity)

    def check(self, position: Position) -> None:
        """Refuse a position outside of the tables' segments."""
        match position:
            case (int(segment), tuple(key)) if segment in self.segments:
                if key and not is_key_position(key, len(self.table(segment).key_attributes)):
                    raise not_ours()
            case _:
                raise not_ours()

    async def count(self) -> int | None:
        """Count with a Scan of every segment side by side."""
        if self.sieve.keep is not None:
            return None
        return sum(await self.operation.together([self._count(segment) for segment in self.segments]))

    async def _count(self, segment: int) -> int:
        total: int = 0
        position: Position = (segment, ())
        alive = not_expired(self.operation, self.layouts)
        while True:
            request = self.request(position)
            counting = replace(request, count=True, filter=all_of(request.filter, alive))
            response = await send(self.operation, counting)
            total += response["Count"]
            if "LastEvaluatedKey" not in response:
                return total
            position = self.position(segment, response["LastEvaluatedKey"])


class _ScanReader:
    """Scans segment after segment."""

    def __init__(self, source: ScanSource, position: Position) -> None:
        self._source = source
        self._position = position
        self._is_first = True

    async def read(self) -> Batch:
        """Read one round further. The operation keeps the answers for the segments that are read ahead."""
        source, (segment, _) = self._source, self._position
        ahead = () if self._is_first else source.segments[segment + 1 : segment + SCAN_SEGMENTS]
        requests = [source.request(self._position), *(source.request((later, ())) for later in ahead)]
        self._is_first = False
        response, *_ = await source.operation.together([send(source.operation, request) for request in requests])
        entries = [entry for item in response["Items"] if (entry := source.entry(segment, item)) is not None]
        if source.sieve.keep is not None:
            entries = await source.sieve.keep(entries)
        end: Position | None = (segment + 1, ()) if segment + 1 in source.segments else None
        if "LastEvaluatedKey" in response:
            end = source.position(segment, response["LastEvaluatedKey"])
        self._position = end or self._position
        return Batch(entries, response["ScannedCount"], end)
