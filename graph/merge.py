"""Many key ranges as one list: the fan-out over shards, over an enum's values, or over several partitions."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil

from graph.cursor import Position
from graph.partition import RangeSource
from graph.planner import KeyRange
from graph.sort import SortKey, SortRange, just_above, just_below
from graph.sources import Batch, Entry, Reader, Reading, not_ours

Place = tuple[SortKey, int]
"""What items of all ranges are ordered by: the merge key, then the number of the range."""

LEAST_SHARE = 10


@dataclass(slots=True)
class MergeSource:
    """Several ranges of one index as one list: by the sort key after what was fanned out over, then by range.

    A position is the number of the range and the position in it. The other ranges go on from the same place by a key
    condition, so that one position is enough.
    """

    sources: list[RangeSource]

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk.

        Cost: a Query for each range, of about twice its share of what is wanted, then one more for each range that
        turns out to hold more of it.
        """
        return _MergeReader(self, reading)

    def place(self, position: Position) -> Place:
        """Give what a position is ordered by among all ranges."""
        number, inner = position
        source = self.sources[number]
        return source.range.merge_key(source.sort_key(inner)), number

    def check(self, position: Position) -> None:
        """Refuse a position whose range does not exist or does not know it."""
        match position:
            case (int(number), tuple(inner)) if 0 <= number < len(self.sources):
                self.sources[number].check(inner)
            case _:
                raise not_ours()

    async def count(self) -> int | None:
        """Sum the counts of all ranges."""
        if not self.sources:
            return 0
        counts = await self.sources[0].operation.together([source.count() for source in self.sources])
        return None if None in counts else sum(count or 0 for count in counts)


@dataclass(slots=True)
class _Head:
    """The front of one range: what was read of it and not yet given out, and how far it was read."""

    number: int
    reader: Reader
    waiting: deque[Entry] = field(default_factory=deque)
    reached: Position | None = None
    has_ended: bool = False


class _MergeReader:
    """Reads all ranges side by side and gives out what is certain to come first."""

    def __init__(self, merge: MergeSource, reading: Reading) -> None:
        self._merge = merge
        self._descending = reading.descending
        count = max(1, len(merge.sources))
        share = max(LEAST_SHARE, 2 * ceil(reading.want / count))
        part = replace(reading, want=min(reading.want, share), most=max(1, reading.most // count))
        readers = [(number, _part_reader(merge, number, part)) for number in range(len(merge.sources))]
        self._heads = [_Head(number, reader) for number, reader in readers if reader is not None]

    async def read(self) -> Batch:
        """Read on in every range that may hold what comes next, and give out all up to where one was read least far."""
        blocking = [head for head in self._heads if self._blocks(head)]
        work = [head.reader.read() for head in blocking]
        batches = await self._merge.sources[0].operation.together(work) if work else []
        for head, batch in zip(blocking, batches, strict=True):
            head.waiting.extend(Entry((head.number, entry.position), entry.entity) for entry in batch.entries)
            head.reached, head.has_ended = (head.number, batch.end), batch.end is None
        end = self._first([head.reached for head in self._heads if head.reached and not head.has_ended])
        entries = [entry for head in self._heads for entry in self._certain(head, end)]
        entries.sort(key=lambda entry: self._merge.place(entry.position), reverse=self._descending)
        return Batch(entries, sum(batch.evaluated for batch in batches), end)

    def _blocks(self, head: _Head) -> bool:
        if head.has_ended or head.waiting:
            return False
        following = self._first([other.waiting[0].position for other in self._heads if other.waiting])
        return following is None or head.reached is None or self._is_before(head.reached, following)

    def _certain(self, head: _Head, end: Position | None) -> Iterator[Entry]:
        while head.waiting and (end is None or not self._is_before(end, head.waiting[0].position)):
            yield head.waiting.popleft()

    def _first(self, positions: list[Position]) -> Position | None:
        return (max if self._descending else min)(positions, key=self._merge.place, default=None)

    def _is_before(self, one: Position, other: Position) -> bool:
        place, another = self._merge.place(one), self._merge.place(other)
        return place > another if self._descending else place < another


def _part_reader(merge: MergeSource, number: int, reading: Reading) -> Reader | None:
    """Begin a walk along one range between two places that may be in others; None where none of it lies there."""
    source = merge.sources[number]
    low, high = (reading.stop, reading.start) if reading.descending else (reading.start, reading.stop)
    sort = source.range.sort
    for position, is_low in ((low, True), (high, False)):
        if position is not None and position[0] != number:
            is_beyond = (number > position[0]) is is_low
            if source.range.index.sort_keys:
                sort = _cut(source.range, sort, merge.place(position)[0], is_low=is_low, with_ties=is_beyond)
            elif not is_beyond:
                return None
    part = replace(reading, start=_own(number, reading.start), stop=_own(number, reading.stop))
    return replace(source, range=replace(source.range, sort=sort)).reader(part)


def _cut(key_range: KeyRange, sort: SortRange, merge_key: SortKey, *, is_low: bool, with_ties: bool) -> SortRange:
    key = key_range.sort_key(merge_key)
    if is_low:
        return sort.from_(key if with_ties else just_above(key))
    return sort.to(key if with_ties else just_below(key))


def _own(number: int, position: Position | None) -> Position | None:
    return position[1] if position is not None and position[0] == number else None
