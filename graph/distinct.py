"""Several partitions that may hold the same node, as one list of distinct nodes: what lies under any, or all, tags."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace

from graph.cursor import Position, is_key_position
from graph.expressions import Condition
from graph.keys import KeyValue
from graph.merge import MergeSource, replace_range
from graph.sources import LARGEST_LIMIT, Batch, Entry, Reading, not_ours


@dataclass(slots=True)
class DistinctSource:
    """A merge whose ranges name a node by their whole sort key: equal sort keys are one entry.

    With `in_all` only what lies in every range is given. A position is the sort key, from which every range goes on.
    """

    merge: MergeSource
    in_all: bool

    async def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Read the ranges side by side and give out each group of equal sort keys once it is complete."""
        merge, start = self._behind(reading)
        group: list[Entry] = []
        key: KeyValue | None = None
        async with aclosing(merge.batches(replace(reading, start=None, want=reading.want + 1))) as batches:  # type: ignore[type-var]
            async for batch in batches:
                given: list[Entry] = []
                for entry in batch.entries:
                    found = merge.merge_key(*entry.position)
                    if found == start:
                        continue
                    if group and found != key:
                        given += self._given(group, key)
                        group = []
                    key = found
                    group.append(entry)
                yield Batch(given, batch.evaluated, given[-1].position if given else None)
        yield Batch(self._given(group, key), 0)

    def _given(self, group: list[Entry], key: KeyValue | None) -> list[Entry]:
        is_wanted = group and (not self.in_all or len(group) == len(self.merge.sources))
        return [Entry((key,), group[0].entity)] if is_wanted else []

    def _behind(self, reading: Reading) -> tuple[MergeSource, KeyValue | None]:
        """Narrow every range to what lies behind the start; the start itself may still be met, and is left out."""
        if reading.start is None:
            return self.merge, None
        key: KeyValue = reading.start[0]
        sources = []
        for source in self.merge.sources:
            sort = source.range.sort
            sources.append(replace_range(source, sort.to(key) if reading.descending else sort.from_(key)))
        return MergeSource(sources), key

    def check(self, position: Position) -> None:
        """Refuse a position that is not one sort key."""
        if not is_key_position(position, 1):
            raise not_ours()

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare the sort keys."""
        return bool(position[0] <= stop[0] if descending else position[0] >= stop[0])

    async def count(self, condition: Condition | None) -> int:
        """Count by reading: only the sort keys tell which items are the same."""
        total = 0
        async for batch in self.batches(Reading(want=LARGEST_LIMIT, filter=condition)):
            total += len(batch.entries)
        return total
