"""Items of existing tables: a parallel Scan that ends when there are enough of them, or its read units are spent."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from graph.client import Client, Meter
from graph.errors import StoreError
from graph.infer.sample import Sample, described, others
from graph.requests import DescribeTable, DescribeTimeToLive, Item, KeyAttributes, Scan, key_value
from graph.tasks import together

PAGE_UNITS = 128.5
"""What a page of a Scan may cost: a megabyte, read eventually consistently, and the rest of an item."""
UNIT_BYTES = 8192
"""What half a read unit for 4 KB makes of one."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How much is to be read."""

    items: int | None
    """None: all."""
    segments: int
    units: float | None
    """No more read units than these, for each table; None: as many as it takes."""


class Sampler:
    """Reads samples; it belongs to one event loop."""

    def __init__(self, client: Client, wish: Wish) -> None:
        self._client = client
        self._wish = wish
        self.meter = Meter(report_capacity=True)
        self._reserved = 0.0
        self._before = 0.0

    async def sample(self, name: str) -> Sample:
        """Read a sample of a table, after telling what it costs.

        Cost: DescribeTable, DescribeTimeToLive, and a Scan for each megabyte, or for each segment's share.
        Raises: TableMissing, AccessRefused, StoreError.
        """
        table = (await self._client.send(DescribeTable(name), self.meter))["Table"]
        known = described(table, await self._expiry(name))
        self._tell(name, table)
        self._before = self.meter.capacity_units
        segments = range(self._wish.segments)
        found = await together([self._segment(known, segment) for segment in segments])
        items = [item for items, _ in found for item in items]
        is_whole = all(is_done for _, is_done in found)
        spent = self.meter.capacity_units - self._before
        sys.stderr.write(
            f"{name}: read {len(items):,} items, {'all there are' if is_whole else 'a sample'}, "
            f"for {spent:,.1f} read units\n"
        )
        return replace(known, items=others(known, items), is_whole=is_whole)

    async def _expiry(self, name: str) -> str | None:
        try:
            answer = await self._client.send(DescribeTimeToLive(name), self.meter)
        except StoreError:
            # Whoever may not see it, or has an engine without, can say it in the schema.
            return None
        told = answer.get("TimeToLiveDescription") or {}
        return told.get("AttributeName") if told.get("TimeToLiveStatus") in ("ENABLED", "ENABLING") else None

    def _tell(self, name: str, table: Mapping[str, Any]) -> None:
        count, size = table.get("ItemCount", 0), table.get("TableSizeBytes", 0)
        wanted = self._wish.items
        share = 1.0 if wanted is None or not count else min(1.0, wanted / count)
        about = max(math.ceil(size * share / UNIT_BYTES), 1)
        most = f"at most {self._wish.units:,.0f}" if self._wish.units is not None else "all that it takes"
        what = "all items" if wanted is None else f"up to {wanted:,} items"
        sys.stderr.write(
            f"{name}: reading {what} in {self._wish.segments} segments, about {about:,} read units by DynamoDB's last "
            f"count ({count:,} items), {most}\n"
        )

    async def _segment(self, known: Sample, segment: int) -> tuple[list[Item], bool]:
        """Read a segment's share; say whether it is all of the segment."""
        wish, items = self._wish, list[Item]()
        share = None if wish.items is None else math.ceil(wish.items / wish.segments)
        start: KeyAttributes | None = None
        while share is None or len(items) < share:
            limit = None if share is None else share - len(items)
            # An item has up to 400 KB.
            cost = PAGE_UNITS if limit is None else min(PAGE_UNITS, limit * 50.0)
            if not self._reserve(cost):
                return items, False
            answer = await self._client.send(
                Scan(known.name, segment, wish.segments, limit=limit, start=start), self.meter
            )
            self._reserved -= cost
            items += answer["Items"]
            last = answer.get("LastEvaluatedKey")
            if last is None:
                return items, True
            start = tuple((name, key_value(last[name])) for name in known.keys)
        return items, False

    def _reserve(self, units: float) -> bool:
        """Set read units aside for a request, if there are as many left."""
        spent = self.meter.capacity_units - self._before
        if self._wish.units is not None and spent + self._reserved + units > self._wish.units:
            return False
        self._reserved += units
        return True
