"""Items whose whole primary keys are known, as one list."""

from __future__ import annotations

from dataclasses import dataclass

from graph.cursor import Position
from graph.loaders import Operation
from graph.partition import collected
from graph.planner import KeyRange
from graph.requests import ItemKey
from graph.sources import Batch, Entry, Keep, Reading, not_ours, read_layouts


@dataclass(slots=True)
class KeysSource:
    """The items of these keys that exist, by sort key as a merge of as many ranges would give them.

    A position is an item's whole key.
    """

    operation: Operation
    ranges: tuple[KeyRange, ...]
    place: str
    keep: Keep | None = None
    is_ordered: bool = False
    """The ranges are in their order already."""

    def reader(self, reading: Reading) -> _KeysReader:
        """Begin a walk. Cost: the keys join the BatchGetItems of the operation, as many at a time as are wanted."""
        return _KeysReader(self, reading)

    def ordered(self, reading: Reading) -> list[tuple[Position, KeyRange]]:
        """List the keys to be read, in the order of reading."""
        keys = [key_range.merge_key(key_range.sort.low) for key_range in self.ranges]
        numbers = list(range(len(keys)))
        if not self.is_ordered:
            numbers.sort(key=lambda number: (keys[number], number))
        if reading.descending:
            numbers.reverse()
        ordered = [(_position(self.ranges[number]), self.ranges[number]) for number in numbers]
        positions = [position for position, _ in ordered]
        begin = 0 if reading.start is None else positions.index(reading.start) + (not reading.with_start)
        end = len(ordered) if reading.stop is None else positions.index(reading.stop) + reading.with_stop
        return ordered[begin:end]

    async def load(self, keys: list[tuple[Position, KeyRange]]) -> list[Entry]:
        """Get the items of these keys that exist and pass the filter."""
        for _, key_range in keys:
            known = collected(self.operation, key_range)
            if known is not None and known[1]:
                self.operation.prime_item(_item_key(key_range), known[0][0] if known[0] else None)
        items = await self.operation.items([_item_key(key_range) for _, key_range in keys])
        entries = [
            Entry(position, entity)
            for (position, key_range), item in zip(keys, items, strict=True)
            if item is not None
            and (entity := read_layouts(self.operation, key_range.layouts, item, self.place)) is not None
        ]
        return entries if self.keep is None else await self.keep(entries)

    def check(self, position: Position) -> None:
        """Refuse a position that is none of the keys."""
        if all(position != _position(key_range) for key_range in self.ranges):
            raise not_ours()

    async def count(self) -> int | None:
        """Count by getting the items, which a page has often done already."""
        return len(await self.load(self.ordered(Reading(want=0))))


class _KeysReader:
    """Gets as many items at a time as are wanted."""

    def __init__(self, source: KeysSource, reading: Reading) -> None:
        self._source = source
        self._want = min(reading.want, reading.most)
        self._left = source.ordered(reading)

    async def read(self) -> Batch:
        """Read one round further."""
        keys, self._left = self._left[: self._want], self._left[self._want :]
        return Batch(await self._source.load(keys), len(keys), keys[-1][0] if self._left else None)


def _position(key_range: KeyRange) -> Position:
    return key_range.partition + key_range.sort.low


def _item_key(key_range: KeyRange) -> ItemKey:
    return key_range.table, tuple(zip(key_range.index.key_attributes, _position(key_range), strict=True))
