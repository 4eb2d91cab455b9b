"""A path of relationships as one list: containers' pallets' boxes."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from graph.cursor import Position
from graph.entity import Entity
from graph.loaders import Operation
from graph.sources import LARGEST_LIMIT, Batch, Entry, Reader, Reading, Source, not_ours

LARGEST_WIDTH = 16
"""How many inner lists are begun side by side: as many requests as are in flight at once anyway."""
FIRST_GUESS = 25
"""How many items an inner list is taken to hold before any was seen."""

BEFORE_ALL, BEHIND_ALL = 0, 1
"""In place of an inner position, for the sake of lists in which there is none: before or behind a whole inner list."""


@dataclass(slots=True)
class ChainSource:
    """The items behind every item of another source, one after the other.

    A position is the position of the outer item and that of the inner one.
    """

    operation: Operation
    outer: Source
    follow: Callable[[Sequence[Entity]], Awaitable[list[Source | None]]]
    """Gives the inner source behind each outer item."""

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk.

        Cost: one Query for each page of outer items and one for each inner list begun, as many side by side as the
        lists so far let expect to be needed.
        """
        return _ChainReader(self, reading)

    def check(self, position: Position) -> None:
        """Refuse a position that the outer source does not know; the inner one is asked when it is there."""
        match position:
            case (tuple(outer), tuple() | 0 | 1):
                self.outer.check(outer)
            case _:
                raise not_ours()

    async def count(self) -> int | None:
        """Sum the counts of all inner lists. Cost: the outer items, and a COUNT for each."""
        reader, total = self.outer.reader(Reading(LARGEST_LIMIT)), 0
        while True:
            batch = await reader.read()
            sources = await self.follow([entry.entity for entry in batch.entries])
            counts = await self.operation.together([source.count() for source in sources if source is not None])
            if None in counts:
                return None
            total += sum(count or 0 for count in counts)
            if batch.end is None:
                return total


@dataclass(slots=True)
class _List:
    """An inner list that was begun: the outer item before it, what its first round brought, and how much it gave."""

    outer: Position
    reader: Reader
    is_part: bool
    """It was begun behind a cursor, so that its length says nothing of the others'."""
    first: Batch | None = None
    length: int = 0


class _ChainReader:
    """Reads the outer items, and as many inner lists side by side as seem needed."""

    def __init__(self, chain: ChainSource, reading: Reading) -> None:
        self._chain = chain
        self._reading = reading
        start, stop = (None if end is None else end[0] for end in (reading.start, reading.stop))
        # In the direction of reading.
        self._behind, before = (BEFORE_ALL, BEHIND_ALL) if reading.descending else (BEHIND_ALL, BEFORE_ALL)
        with_start = reading.start is not None and reading.start[1] != self._behind
        with_stop = reading.stop is not None and reading.stop[1] != before
        outer = replace(reading, start=start, stop=stop, with_start=with_start, with_stop=with_stop)
        self._outer: Reader | None = chain.outer.reader(outer)
        self._heads: deque[Entry] = deque()
        self._lists: deque[_List] = deque()
        self._reached: Position = ()
        self._missing = reading.want
        self._lengths: list[int] = []

    async def read(self) -> Batch:
        """Read one round further: up to where an inner list goes on by a request of its own."""
        evaluated = 0 if self._lists else await self._begin_lists()
        entries: list[Entry] = []
        while self._lists:
            inner = self._lists[0]
            batch = inner.first
            if batch is None:
                batch = await inner.reader.read()
                evaluated += batch.evaluated
            inner.first = None
            inner.length += len(batch.entries)
            self._missing -= len(batch.entries)
            entries += (Entry((inner.outer, entry.position), entry.entity) for entry in batch.entries)
            if batch.end is not None:
                return Batch(entries, evaluated, (inner.outer, batch.end))
            self._lists.popleft()
            self._lengths += [] if inner.is_part else [inner.length]
        has_more = self._heads or self._outer is not None
        return Batch(entries, evaluated, (self._reached, self._behind) if has_more else None)

    async def _begin_lists(self) -> int:
        evaluated = 0
        if not self._heads and self._outer is not None:
            batch = await self._outer.read()
            evaluated, self._heads = batch.evaluated, deque(batch.entries)
            if batch.end is None:
                self._outer = None
            else:
                self._reached = batch.end
        heads = [self._heads.popleft() for _ in range(min(self._width(), len(self._heads)))]
        if heads:
            self._reached = heads[-1].position
        sources = await self._chain.follow([head.entity for head in heads])
        for head, source in zip(heads, sources, strict=True):
            if source is not None:
                self._lists.append(self._inner(head.position, source, len(heads)))
        firsts = await self._chain.operation.together([inner.reader.read() for inner in self._lists])
        for inner, first in zip(self._lists, firsts, strict=True):
            inner.first = first
        return evaluated + sum(first.evaluated for first in firsts)

    def _width(self) -> int:
        """Say how many lists to begin: as many as will do if the next ones are as long as those before."""
        found, lists = sum(self._lengths), len(self._lengths)
        if lists and not found:
            # Nobody knows how many will do: twice as many each time.
            return min(2 * lists, LARGEST_WIDTH)
        each = found / lists if lists else FIRST_GUESS
        return max(1, min(ceil(self._missing / each), LARGEST_WIDTH))

    def _inner(self, outer: Position, source: Source, width: int) -> _List:
        """Begin a walk along the list behind an outer item, between the two ends as far as they lie in it."""
        start, stop = (
            end[1] if end is not None and end[0] == outer and isinstance(end[1], tuple) else None
            for end in (self._reading.start, self._reading.stop)
        )
        for end in (start, stop):
            if end is not None:
                source.check(end)
        most = max(1, self._reading.most // width)
        reader = source.reader(replace(self._reading, start=start, stop=stop, most=most))
        return _List(outer, reader, is_part=start is not None)
