"""Several partitions that may hold the same node, as one list of distinct nodes: what lies under any, or all, tags."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from graph.cursor import Position, is_key_position
from graph.merge import MergeSource
from graph.partition import RangeSource
from graph.sort import SortKey, SortRange, just_above, just_below
from graph.sources import LARGEST_LIMIT, Batch, Entry, Reader, Reading, not_ours


@dataclass(slots=True)
class DistinctSource:
    """A merge whose ranges name a node by their whole sort key: equal sort keys are one entry.

    Only what lies in as many ranges as are `wanted` is given. A position is the sort key, from which every range goes
    on.
    """

    merge: MergeSource
    wanted: int = 1

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk. Cost: that of the merge."""
        return _DistinctReader(self, reading)

    @property
    def size(self) -> int:
        """Give the number of values that a sort key has."""
        return max((len(source.range.index.sort_keys) for source in self.merge.sources), default=1)

    def between(self, low: Position | None, high: Position | None) -> MergeSource:
        """Narrow every range to what lies between two places."""
        return MergeSource([_cut(source, low, high) for source in self.merge.sources])

    def check(self, position: Position) -> None:
        """Refuse a position that is not a sort key."""
        if not is_key_position(position, self.size):
            raise not_ours()

    async def count(self) -> int | None:
        """Count by reading: only the sort keys tell which items are the same."""
        if any(source.sieve.keep is not None for source in self.merge.sources):
            return None
        reader, total = self.reader(Reading(LARGEST_LIMIT)), 0
        while True:
            batch = await reader.read()
            total += len(batch.entries)
            if batch.end is None:
                return total


def _cut(source: RangeSource, low: Position | None, high: Position | None) -> RangeSource:
    sort: SortRange = source.range.sort
    if low is not None:
        sort = sort.from_(just_above(low))
    if high is not None:
        sort = sort.to(just_below(high))
    return replace(source, range=replace(source.range, sort=sort))


@dataclass(slots=True)
class _Group:
    """The items of one sort key met so far."""

    key: SortKey
    entries: list[Entry] = field(default_factory=list)


class _DistinctReader:
    """Reads the ranges side by side and gives out each group of equal sort keys once it is complete."""

    def __init__(self, source: DistinctSource, reading: Reading) -> None:
        self._wanted = source.wanted
        self._size = source.size
        self._descending = reading.descending
        low, high = (reading.stop, reading.start) if reading.descending else (reading.start, reading.stop)
        # Two items of each range at least, so that the first round gets beyond the first sort key.
        most = max(reading.most, 2 * len(source.merge.sources))
        part = replace(reading, want=reading.want + 1, most=most, start=None, stop=None)
        self._reader = source.between(low, high).reader(part)
        self._group: _Group | None = None
        self._edge = reading.start

    async def read(self) -> Batch:
        """Read further, by as many rounds as it takes to leave the sort key that the walk stands at."""
        evaluated = 0
        while True:
            batch = await self._round()
            evaluated += batch.evaluated
            # A page that ended where it began would send its reader round in a circle.
            if batch.entries or batch.end is None or batch.end != self._edge:
                self._edge = batch.end
                return replace(batch, evaluated=evaluated)

    async def _round(self) -> Batch:
        batch = await self._reader.read()
        given: list[Entry] = []
        for entry in batch.entries:
            key = entry.position[1][: self._size]
            if self._group is None or self._group.key != key:
                given += self._completed()
                self._group = _Group(key)
            self._group.entries.append(entry)
        if batch.end is None:
            return Batch(given + self._completed(), batch.evaluated)
        reached = batch.end[1][: self._size]
        if self._group is not None and self._group.key != reached:
            given += self._completed()
        # What has this very sort key may not all be read yet.
        edge = just_above(reached) if self._descending else just_below(reached)
        return Batch(given, batch.evaluated, edge)

    def _completed(self) -> list[Entry]:
        group, self._group = self._group, None
        if group is None or len(group.entries) < self._wanted:
            return []
        return [Entry(group.key, group.entries[0].entity)]
