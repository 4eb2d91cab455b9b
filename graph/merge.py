"""Many key ranges as one list: the fan-out over shards, over an enum's values, or over several partitions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from math import ceil

from graph.cursor import Position
from graph.expressions import Condition
from graph.keys import KeyValue
from graph.requests import SortRange
from graph.sources import Batch, Entry, RangeSource, Reading, not_ours


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
            raise not_ours()
        self.sources[position[0]].check(position[1])

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare by merge key, then by range."""
        if position[0] == stop[0]:
            return self.sources[position[0]].passed(position[1], stop[1], descending)
        one, other = (self.merge_key(*position), position[0]), (self.merge_key(*stop), stop[0])
        return bool(one < other if descending else one > other)

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
        """Say whether an item of another range was given out before the start: the key condition cannot be open."""
        if self._start is None or self._start[0] == self.number:
            return False
        key, start = self._merge.merge_key(*position), self._merge.merge_key(*self._start)
        one, other = (key, position[0]), (start, self._start[0])
        return bool(one > other if self._descending else one < other)

    async def aclose(self) -> None:
        """Stop reading."""
        await self._batches.aclose()  # type: ignore[attr-defined]  # a generator, as every source's batches are


def replace_range(source: RangeSource, sort: SortRange) -> RangeSource:
    """Give the same source over another range of its sort key."""
    return replace(source, range=replace(source.range, sort=sort))


def _take_certain(heads: list[_Head], descending: bool) -> list[Entry]:
    """Take entries in order while every range that may still give more has one to compare with."""
    entries: list[Entry] = []
    cursors = dict.fromkeys(range(len(heads)), 0)
    while all(cursors[i] < len(head.buffer) or head.done for i, head in enumerate(heads)):
        fronts = [(head.buffer[cursors[i]][0], i) for i, head in enumerate(heads) if cursors[i] < len(head.buffer)]
        if not fronts:
            break
        # `heads` are in reading order, so that among equal keys the first head comes first in both directions.
        key = max(front[0] for front in fronts) if descending else min(front[0] for front in fronts)
        chosen = next(i for front, i in fronts if front == key)
        entries.append(heads[chosen].buffer[cursors[chosen]][1])
        cursors[chosen] += 1
    for i, head in enumerate(heads):
        del head.buffer[: cursors[i]]
    return entries
