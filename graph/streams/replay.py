"""Replay: what has been written behind a place, for a subscriber that comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from graph.errors import IteratorExpired, PlaceLost
from graph.streams.change import Change, read_changes
from graph.streams.shards import BEGINNING, Progress, Shard, readable
from graph.streams.source import POLL_SECS, Source, Stream


async def replay(
    source: Source, places: Mapping[str, int], until: Mapping[str, int] | None = None
) -> AsyncIterator[Change]:
    """Give all changes behind the places (by shard, as `Reader.places` tells them) up to now, shard after shard.

    A shard is read until it has nothing more and, where `until` names it, that place is reached.

    Cost:   a DescribeTable and a DescribeStream for each table, a GetShardIterator for each shard, and GetRecords as
            many as what is read takes, one more included.
    Raises: PlaceLost where something behind the places is trimmed away, StreamError, StoreError.
    """
    streams = {stream: await source.shards(stream.arn) for stream in await source.streams()}
    there = {shard.id for shards in streams.values() for shard in shards}
    if lost := sorted(places.keys() - there):
        raise PlaceLost(
            f"the stream no longer holds what came after this cursor: its shard {lost[0]} is gone. Subscribe without a "
            "cursor, and read what there is"
        )
    for stream, shards in streams.items():
        known = {shard.id: places[shard.id] for shard in shards if shard.id in places}
        async for change in _follow(source, stream, shards, Progress(stream.arn, known), until or {}):
            yield change


async def _follow(
    source: Source, stream: Stream, shards: list[Shard], progress: Progress, until: Mapping[str, int]
) -> AsyncIterator[Change]:
    """Read one stream, parents first."""
    is_read: set[str] = set()
    while todo := [shard for shard in readable(shards, progress) if shard.id not in is_read]:
        for shard in todo:
            is_read.add(shard.id)
            reading = _Reading(source, stream, shard.id, progress.positions.get(shard.id, BEGINNING))
            async for change in reading.changes(until.get(shard.id, BEGINNING)):
                yield change
            if reading.is_at_end:
                positions = {name: place for name, place in progress.positions.items() if name != shard.id}
                progress = Progress(stream.arn, positions, {**progress.ended, shard.id: reading.position})
                # It may have ended only now, and its children be new.
                shards = await source.shards(stream.arn)


class _Reading:
    """One shard, read up to now."""

    def __init__(self, source: Source, stream: Stream, shard: str, position: int) -> None:
        self.position = position
        self.is_at_end = False
        self._source = source
        self._stream = stream
        self._shard = shard

    async def changes(self, until: int) -> AsyncIterator[Change]:
        """Give its changes."""
        since = -self.position
        iterator: str | None = None
        while True:
            try:
                iterator = iterator or await self._source.iterator(self._stream.arn, self._shard, self.position)
                answer = await self._source.records(iterator)
            except IteratorExpired:
                iterator = None
                continue
            for change in read_changes(self._source.model, self._stream.table, answer.records, self._shard):
                if change.at >= since:
                    yield change
            if answer.records:
                self.position = int(answer.records[-1]["dynamodb"]["SequenceNumber"])
            iterator = answer.next
            self.is_at_end = iterator is None
            if self.is_at_end or (not answer.records and max(self.position, BEGINNING) >= until):
                return
            if not answer.records:
                await asyncio.sleep(POLL_SECS)
