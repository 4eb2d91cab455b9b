"""A sample: some segments of a table, drawn at random and read to their ends, within a number of read units."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from graph.apply.state import Target
from graph.doctor.shares import Share, share_of
from graph.keys import KeyValue
from graph.maintenance.walk import Walk
from graph.model import Index
from graph.requests import Item, KeyAttributes, Query, Scan, key_value
from graph.sizes import item_bytes
from graph.tasks import together

UNIT_BYTES = 8192
"""What a read unit reads, eventually consistently."""
SEGMENTS = 64
"""As many are drawn: enough for an error to be told, and few enough for each to hold several items."""
MOST_SEGMENTS = 1_000_000
SIDE_BY_SIDE = 4
PAGE_ITEMS = 1000
FEW_ITEMS = 25
"""The first page, of items of which nothing is known."""
GUESSED_BYTES = 400
RESERVOIR = 500
MOST_VALUES = 50_000
"""More partitions of one index are not counted apart; those left out hold too little to matter."""
LARGEST = 20

Partition = tuple[KeyValue, ...]


@dataclass(slots=True)
class Collection:
    """The items of one partition of the table, as far as they were read."""

    partition: Partition
    items: int = 0
    bytes: float = 0.0
    local_bytes: float = 0.0
    """What they take in local indexes, which count for its limit."""
    is_whole: bool = False
    last: KeyAttributes = ()
    units: float = 0.0

    @property
    def total_bytes(self) -> float:
        """Say how large it is with its part in the local indexes."""
        return self.bytes + self.local_bytes


@dataclass(slots=True)
class Segment:
    """What one segment holds, as far as it was read."""

    items: int = 0
    bytes: float = 0.0
    is_whole: bool = False


@dataclass(slots=True)
class Sample:
    """What was read of a table: sums by segment, and a few of the items themselves."""

    target: Target
    of: int
    """How many segments the table was cut into."""
    described: Any
    segments: list[Segment] = field(default_factory=list)
    collections: list[Collection] = field(default_factory=list)
    """The largest ones."""
    partitions: int = 0
    items: list[Item] = field(default_factory=list)
    """Some of the items, each with the same chance."""
    by_index: dict[str, dict[Partition, dict[int, list[float]]]] = field(default_factory=dict)
    """Of each global index by partition and number of the segment: items, and their bytes in it."""
    in_index: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    """The same for all of an index."""

    @property
    def is_whole(self) -> bool:
        """Say whether all of the table was read."""
        return len(self.segments) == self.of and all(one.is_whole for one in self.segments)

    @property
    def count(self) -> int:
        """Count the items read."""
        return sum(one.items for one in self.segments)

    @property
    def bytes(self) -> float:
        """Count the bytes read."""
        return sum(one.bytes for one in self.segments)

    @property
    def read(self) -> float:
        """Say which part of the table was read: by what DynamoDB counts, or by the segments where it counts nothing."""
        if self.is_whole:
            return 1.0
        counted = self.described.get("ItemCount") or 0
        by_segments = sum(1 for one in self.segments if one.is_whole) / self.of
        # What is counted may be six hours old.
        return min(0.999, self.count / counted if counted > self.count else max(by_segments, 1 / self.of / 2))

    @property
    def table_bytes(self) -> float:
        """Say how large the table is: as described, else as the sample says."""
        if self.is_whole:
            return self.bytes
        return max(self.described.get("TableSizeBytes") or 0, self.bytes / self.read)

    def share(self, index: str, partition: Partition) -> Share:
        """Estimate which part of an index's items a partition of it holds."""
        part, whole = self.by_index[index][partition], self.in_index[index]
        return share_of([(part.get(number, (0.0, 0.0))[0], all_[0]) for number, all_ in whole.items()], self.read)


Visit = Callable[[int, list[Item]], None]


async def draw(walk: Walk, target: Target, described: Any, units: float, visit: Visit, seed: int) -> Sample:
    """Read a sample of a table; `visit` is given every page, with the number of its segment.

    Cost:   at most so many read units, and a page for each of four segments more.
    Raises: StoreError.
    """
    return await _Drawing(walk, target, described, units, visit, seed).run()


class _Drawing:
    def __init__(self, walk: Walk, target: Target, described: Any, units: float, visit: Visit, seed: int) -> None:
        self._walk = walk
        self._visit = visit
        self._end = walk.tally.read_units + units
        self._random = random.Random(seed)
        self._units = units
        self._most_units = max(1.0, 2 * units / SEGMENTS)
        """What one segment may take."""
        self.sample = Sample(target, 0, described)
        self._numbers: Iterator[int] = iter(())
        self._average = (described.get("TableSizeBytes") or 0) / (described.get("ItemCount") or 1)
        self._seen = 0

    async def run(self) -> Sample:
        """Cut the table into segments, and read those that are drawn."""
        sample, described = self.sample, self.sample.described
        # What is counted may be six hours old; nothing, where a local engine does not count bytes.
        expected = max(described.get("TableSizeBytes") or 0, (described.get("ItemCount") or 0) * 100) / UNIT_BYTES
        if await self._is_tiny():
            self._most_units, sample.of = self._units, 1
        elif 0 < expected <= self._units / 2:
            self._most_units, sample.of = self._units, SIDE_BY_SIDE
        else:
            sample.of = min(MOST_SEGMENTS, max(SEGMENTS, ceil(expected * SEGMENTS / self._units)))
        # Of a million numbers only those drawn are made.
        self._numbers = iter(self._random.sample(range(sample.of), min(sample.of, 16 * SEGMENTS)))
        await together([self._segments() for _ in range(SIDE_BY_SIDE)])
        sample.collections = sorted(sample.collections, key=lambda one: -one.total_bytes)[:LARGEST]
        return sample

    async def _is_tiny(self) -> bool:
        async with self._walk.operation() as operation:
            page = await operation.page(Scan(self.sample.target.name, 0, 1, limit=FEW_ITEMS))
        return page.get("LastEvaluatedKey") is None

    @property
    def _is_over(self) -> bool:
        return self._walk.tally.read_units >= self._end

    async def _segments(self) -> None:
        for number in self._numbers:
            if self._is_over:
                return
            await self._segment(number)

    async def _segment(self, number: int) -> None:
        sample, segment = self.sample, Segment()
        place = len(sample.segments)
        sample.segments.append(segment)
        table, start, spent = sample.target.table, None, 0.0
        current: Collection | None = None
        request = Scan(sample.target.name, number, sample.of)
        while True:
            async with self._walk.operation() as operation:
                asked = replace(request, start=start, limit=self._limit(segment))
                page = await operation.page(asked)
                units = operation.meter.capacity_units
            spent += units
            items = page["Items"]
            current = self._take(place, segment, current, items, units)
            self._visit(place, items)
            self._walk.tally.items += len(items)
            if (last := page.get("LastEvaluatedKey")) is None:
                segment.is_whole = True
                break
            start = tuple((name, key_value(last[name])) for name in table.key_attributes)
            if self._is_over or spent >= self._most_units:
                break
        if current is not None:
            current.is_whole = segment.is_whole
            current.last = () if start is None or segment.is_whole else start
            self._close(current)

    def _limit(self, segment: Segment) -> int:
        """Ask for no more items than a segment may take."""
        average = segment.bytes / segment.items if segment.items else self._average
        if not average and not self.sample.count:
            return FEW_ITEMS
        average = average or self.sample.bytes / self.sample.count
        return max(1, min(PAGE_ITEMS, int(self._most_units * UNIT_BYTES / max(1.0, average))))

    def _take(
        self, place: int, segment: Segment, current: Collection | None, items: list[Item], units: float
    ) -> Collection | None:
        sample = self.sample
        table = sample.target.table
        for item in items:
            size = item_bytes(item)
            partition = partition_of(table.primary, item)
            assert partition is not None, "an item has its primary key"
            if current is None or current.partition != partition:
                if current is not None:
                    current.is_whole = True
                    self._close(current)
                current = Collection(partition)
                sample.partitions += 1
            current.items += 1
            current.bytes += size
            current.units += units / len(items)
            segment.items += 1
            segment.bytes += size
            for index in table.indexes:
                held = held_bytes(sample.described, index, item, size)
                if index.local:
                    current.local_bytes += held
                elif held:
                    self._count(index, place, item, held)
            self._keep(item)
        return current

    def _count(self, index: Index, place: int, item: Item, held: float) -> None:
        name, partition = index.name or "", partition_of(index, item)
        if partition is None:
            return
        counted = self.sample.by_index.setdefault(name, {})
        for sums in (
            counted.setdefault(partition, {}).setdefault(place, [0.0, 0.0]),
            self.sample.in_index.setdefault(name, defaultdict(lambda: [0.0, 0.0]))[place],
        ):
            sums[0] += 1
            sums[1] += held
        if len(counted) > MOST_VALUES:
            most = self.sample.count / 1000
            for key in [key for key, sums in counted.items() if sum(one[0] for one in sums.values()) < most]:
                del counted[key]

    def _keep(self, item: Item) -> None:
        self._seen += 1
        kept = self.sample.items
        if len(kept) < RESERVOIR:
            kept.append(item)
        elif (place := self._random.randrange(self._seen)) < RESERVOIR:
            kept[place] = item

    def _close(self, collection: Collection) -> None:
        found = self.sample.collections
        found.append(collection)
        if len(found) > 50 * LARGEST:
            found.sort(key=lambda one: -one.total_bytes)
            del found[LARGEST:]


def partition_of(index: Index, item: Item) -> Partition | None:
    """Give the partition of an index that an item lies in; None where it lacks a part of its key."""
    if not all(name in item for name in index.key_attributes):
        return None
    try:
        return tuple(key_value(item[name]) for name in index.partition_keys)
    except ValueError:
        return None


def held_bytes(described: Any, index: Index, item: Item, size: float) -> float:
    """Say how many bytes of an item an index holds, by the projection that it has."""
    if not all(name in item for name in index.key_attributes):
        return 0.0
    held = held_names(described, index)
    return size if held is None else float(item_bytes({name: item[name] for name in item.keys() & held}))


def held_names(described: Any, index: Index) -> frozenset[str] | None:
    """Name the attributes that an index holds; None: all."""
    kinds = ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
    found = next((one for kind in kinds for one in described.get(kind) or () if one["IndexName"] == index.name), None)
    if found is None or found["Projection"]["ProjectionType"] == "ALL":
        return None
    keys = (key["AttributeName"] for one in (described, found) for key in one["KeySchema"])
    return frozenset((*keys, *found["Projection"].get("NonKeyAttributes", ())))


async def follow(walk: Walk, sample: Sample, collection: Collection, units: float) -> None:
    """Count on where the sample has left a partition, so that its size is known, or as much of it as units allow.

    Cost:   at most so many read units, and a page more.
    Raises: StoreError.
    """
    table, end = sample.target.table, walk.tally.read_units + units
    partition = tuple(zip(table.primary.partition_keys, collection.partition, strict=True))
    ratio = collection.local_bytes / collection.bytes if collection.bytes else 0.0
    while not collection.is_whole and walk.tally.read_units < end:
        query = Query(sample.target.name, None, partition, count=True, start=collection.last)
        async with walk.operation() as operation:
            page = await operation.page(query)
            read = operation.meter.capacity_units * UNIT_BYTES
        collection.items += page["Count"]
        collection.bytes += read
        collection.local_bytes += read * ratio
        if (last := page.get("LastEvaluatedKey")) is None:
            collection.is_whole = True
        else:
            collection.last = tuple((name, key_value(last[name])) for name in table.key_attributes)


def indexes_of(sample: Sample) -> Iterator[Index]:
    """List the global indexes of which items were seen."""
    yield from (index for index in sample.target.table.indexes if (index.name or "") in sample.in_index)
