"""A path of relationships as one list: containers' pallets' boxes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from math import ceil

from graph.cursor import Position
from graph.entity import Entity, read_entity
from graph.expressions import Condition
from graph.merge import MergeSource
from graph.model import Model
from graph.requests import key_attribute
from graph.sources import LARGEST_LIMIT, Batch, Entry, RangeSource, Reading, Source, not_ours


@dataclass(slots=True)
class ChainSource:
    """The items behind every item of another source, one after the other: containers' pallets' boxes.

    A position is the position of the outer item and that of the inner one.
    """

    model: Model
    outer: Source
    follow: Callable[[Entity], Source | None]
    """The inner source behind an outer item."""

    async def batches(self, reading: Reading) -> AsyncIterator[Batch]:
        """Read the outer items, and as many inner lists side by side as seem needed.

        Cost: one Query for each page of outer items and one for each inner list begun; a first guess of 25 inner items
        an outer one is corrected by what the first lists held.
        """
        outer_start, inner_start = reading.start or (None, None)
        outer_reading = replace(reading, start=outer_start, inclusive=outer_start is not None, filter=None)
        found, lists = 0, 0
        async with aclosing(self.outer.batches(outer_reading)) as batches:  # type: ignore[type-var]
            async for batch in batches:
                todo = batch.entries
                evaluated = batch.evaluated
                while todo:
                    # Under a filter nobody knows how many of them will do: twice as many lists each time.
                    width = max(1, 2 * lists) if reading.sparse else self._width(reading.want - found, found, lists)
                    heads, todo = todo[:width], todo[width:]
                    inner = [
                        self._inner(head, inner_start if head.position == outer_start else None, reading)
                        for head in heads
                    ]
                    firsts = await asyncio.gather(*(anext(batches_, None) for batches_ in inner))
                    ready: list[Entry] = []
                    for head, first, rest in zip(heads, firsts, inner, strict=True):
                        async for part in _continue(first, rest):
                            evaluated += part.evaluated
                            ready += (Entry((head.position, entry.position), entry.entity) for entry in part.entries)
                            if part.end is not None:
                                # This list goes on by another request: give out what came so far before it.
                                found += len(ready)
                                yield Batch(ready, evaluated, (head.position, part.end))
                                ready, evaluated = [], 0
                    found += len(ready)
                    yield Batch(ready, evaluated, ready[-1].position if ready and (todo or batch.end) else None)
                    evaluated = 0
                    lists += len(heads)

    @staticmethod
    def _width(missing: int, found: int, lists: int) -> int:
        each = found / lists if found else 25 if not lists else 1
        return max(1, min(ceil(missing / each), LARGEST_LIMIT))

    def _inner(self, head: Entry, start: Position | None, reading: Reading) -> AsyncIterator[Batch]:
        source = self.follow(head.entity)
        return _nothing() if source is None else source.batches(replace(reading, start=start))

    def check(self, position: Position) -> None:
        """Refuse a position that either source does not know."""
        if len(position) != 2 or not isinstance(position[0], tuple) or not isinstance(position[1], tuple):
            raise not_ours()
        self.outer.check(position[0])
        source = self._inner_source(position[0])
        if source is None:
            raise not_ours()
        source.check(position[1])

    def passed(self, position: Position, stop: Position, descending: bool) -> bool:
        """Compare by the outer position, then by the inner one."""
        if position[0] != stop[0]:
            return self.outer.passed(position[0], stop[0], descending)
        source = self._inner_source(position[0])
        return source is not None and source.passed(position[1], stop[1], descending)

    def _inner_source(self, outer: Position) -> Source | None:
        head = entity_at(self.model, self.outer, outer)
        return None if head is None else self.follow(head)

    async def count(self, condition: Condition | None) -> int:
        """Sum the counts of all inner lists. Cost: the outer items, and a COUNT for each."""
        counts: list[Awaitable[int]] = []
        async for batch in self.outer.batches(Reading(want=LARGEST_LIMIT)):
            for entry in batch.entries:
                source = self.follow(entry.entity)
                if source is not None:
                    counts.append(source.count(condition))
        return sum(await asyncio.gather(*counts))


async def _nothing() -> AsyncIterator[Batch]:
    return
    yield  # makes this a generator


async def _continue(first: Batch | None, rest: AsyncIterator[Batch]) -> AsyncIterator[Batch]:
    if first is not None:
        yield first
        async for batch in rest:
            yield batch


def entity_at(model: Model, source: Source, position: Position) -> Entity | None:
    """Make the item at a position of a range or a merge again, from the keys alone that the position holds."""
    if isinstance(source, MergeSource):
        source, position = source.sources[position[0]], position[1]
    if not isinstance(source, RangeSource):
        return None
    index = source.range.index
    names = model.tables[index.table].position_attributes(index)
    wire = {name: key_attribute(value) for name, value in zip(names, position, strict=True)}
    wire[index.partition_key] = key_attribute(source.range.partition)
    entities = (read_entity(model, layout, wire, frozenset(wire)) for layout in source.range.layouts)
    return next((entity for entity in entities if entity is not None), None)
