"""A whole table as one list, for the patterns that the model itself says are scans."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from graph.cursor import Position, is_key_position
from graph.entity import fits_any
from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Function, Not
from graph.keys import Literal
from graph.loaders import Operation
from graph.model import Layout
from graph.requests import Item, Scan, key_value
from graph.sources import Batch, Entry, Reading, not_expired, not_ours, read_live

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
        self,
        ahead: dict[int, asyncio.Task[dict[str, Any]]],
        segment: int,
        current: Scan | None,
        filter_: Condition | None,
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
            entity = read_live(self.operation, layout, item)
            if entity is not None and entity.key is not None:
                self.operation.prime_item(entity.key, item)
                return Entry((segment, self._key(segment, item)), entity)
        if not fits_any(self.operation.model, self._tables[segment // SCAN_SEGMENTS], item):
            self.operation.meter.skipped[self.place] += 1
        return None

    def check(self, position: Position) -> None:
        """Refuse a position outside the tables' segments."""
        known = len(position) == 2 and isinstance(position[0], int)
        if not known or not 0 <= position[0] < len(self._tables) * SCAN_SEGMENTS:
            raise not_ours()
        table = self._tables[position[0] // SCAN_SEGMENTS]
        if not is_key_position(position[1], len(self.operation.model.tables[table].key_attributes)):
            raise not_ours()

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Know only whether this is the very item: a scan has no order to compare by."""
        return position == stop or position[0] > stop[0]

    async def count(self, condition: Condition | None) -> int:
        """Count with a Scan of every segment side by side."""
        segments = range(len(self._tables) * SCAN_SEGMENTS)
        return sum(await asyncio.gather(*(self._count(segment, condition) for segment in segments)))

    async def _count(self, segment: int, condition: Condition | None) -> int:
        alive = not_expired(self.operation, self.layouts)
        condition = AllOf((alive, condition)) if alive and condition else alive or condition
        request = replace(self._request(segment, None, condition), count=True)
        total: int = 0
        while True:
            response = await self.operation.page(request)
            total += response["Count"]
            if "LastEvaluatedKey" not in response:
                return total
            start = self._request(segment, self._key(segment, response["LastEvaluatedKey"]), condition).start
            request = replace(request, start=start)
