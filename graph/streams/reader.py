"""The reader: follows the streams of a model's tables, and hands their changes to whoever keeps something in step.

One process among many reads, that which has the lease. It reads every shard by a task of its own, parents before
children, and writes down with each renewal of the lease how far all handlers are: after a `kill -9` the next reader
goes on there, so each change is handled at least once, and those of one item in their order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from graph.errors import GraphError, IteratorExpired, PlaceLost
from graph.streams.change import Change, Handler, read_changes
from graph.streams.lanes import Figures, Lanes
from graph.streams.lease import Checkpoint, Lease, LeaseLost
from graph.streams.shards import BEGINNING, Progress, Shard, from_now, pruned, readable, trimmed
from graph.streams.source import POLL_SECS, Source, Stream
from graph.streams.watermark import latest, moment_of

logger = logging.getLogger(__name__)

LOOK_SECS = 10.0
"""How often to look for new tables, streams and shards; the children of a shard are looked for when it ends."""
SOON_SECS = 0.5
PAST_SECS = 2
"""What was written so shortly before the first reader began is handed on: a change tells its time to the second."""


class Listener(Protocol):
    """Is told which shards are read: a Hub."""

    def begin(self, places: Mapping[str, int]) -> None:
        """Hear that changes behind these places will come."""

    def end(self, shards: Iterable[str]) -> None:
        """Hear that nothing more comes of these shards, and that their children have begun."""


class Reader:
    """Reads the streams while it has the lease, and waits for the lease while it has not."""

    def __init__(
        self,
        source: Source,
        lease: Lease,
        handlers: Mapping[str, Handler],
        poll_secs: float = POLL_SECS,
        listener: Listener | None = None,
    ) -> None:
        """Take the streams, the lease, and the handlers by their names, which the log uses."""
        self._listener = listener
        self._source = source
        self._lease = lease
        self._handlers = handlers
        self._poll_secs = poll_secs
        self._tenure: _Tenure | None = None
        self._watermark: float | None = None
        self._moved = asyncio.Event()
        """Something was read, or found to be all there is."""
        self.figures = Figures()
        self.problem: str | None = None
        """Why nothing is read, where that is so for another reason than the lease."""

    async def run(self, *, forgets: Callable[[], bool] = lambda: False) -> None:
        """Read until cancelled; then give up the lease, and where it `forgets` what was read as well."""
        while True:
            try:
                checkpoint = await self._lease.take()
            except GraphError as error:
                self._report(error)
                await asyncio.sleep(self._lease.renewal_secs)
                continue
            tenure = self._tenure = _Tenure(self, checkpoint)
            try:
                await tenure.run()
            except LeaseLost as lost:
                logger.warning("not reading the streams any more: %s", lost)
            finally:
                self._tenure = None
                await tenure.close()
                await self._lease.give_up({} if forgets() else tenure.checkpoint())

    @property
    def is_reading(self) -> bool:
        """Say whether this process has the lease."""
        return self._tenure is not None

    @property
    def lag(self) -> float | None:
        """Tell how many seconds behind the handlers are: 0 if nothing is left to do, None if this process reads not."""
        return None if self._tenure is None else self._tenure.lag

    @property
    def watermark(self) -> float | None:
        """Tell before when all was written that the handlers are done with, on the event loop's clock; None: not known.

        What this process reads tells it, or what another has written down with its lease; it never goes back. As far
        as the streams tell: DynamoDB promises no time in which they show a write.
        """
        read = None if self._tenure is None else self._tenure.watermark
        self._watermark = latest(self._watermark, self._lease.watermark, read)
        return self._watermark

    def places(self, handler: str | None = None) -> Mapping[str, int]:
        """Tell by shard up to where a handler is, or all of them: what `replay` takes to go on there."""
        return {} if self._tenure is None else self._tenure.places(handler)

    async def following(self) -> None:
        """Wait until this process reads all that is written from then on."""
        while self._tenure is None or not self._tenure.is_following:
            self._moved.clear()
            await self._moved.wait()

    async def caught_up(self) -> None:
        """Wait until everything is handled that had been written when this was called, as far as the streams tell."""
        asked = asyncio.get_running_loop().time()
        while self._tenure is None or not self._tenure.is_past(asked):
            self._moved.clear()
            await self._moved.wait()

    def _report(self, error: GraphError) -> None:
        if str(error) != self.problem:
            logger.error("the streams cannot be followed: %s", error)
        self.problem = str(error)


@dataclass(slots=True, eq=False)
class _Reading:
    """One shard that is being read."""

    stream: Stream
    shard: Shard
    lanes: Lanes
    task: asyncio.Task[None] | None = None
    empty_at: float = -1.0
    """When the last GetRecords was sent that brought nothing new; below zero: the last one brought something."""


@dataclass(slots=True, eq=False)
class _Followed:
    """One table's stream: how far it is read, and what is being read of it."""

    stream: Stream
    progress: Progress
    fresh: set[str] = field(default_factory=set)
    """The shards of which what comes next is to be read, and nothing that is there."""
    readings: dict[str, _Reading] = field(default_factory=dict)

    def now(self) -> Progress:
        """Tell how far it is read by now."""
        positions = {**self.progress.positions, **{name: one.lanes.position for name, one in self.readings.items()}}
        return Progress(self.progress.stream, positions, self.progress.ended)

    def end(self, shard: str) -> None:
        """Stop to read a shard that is at its end."""
        progress = self.now()
        del self.readings[shard]
        positions = dict(progress.positions)
        last = positions.pop(shard)
        self.progress = Progress(progress.stream, positions, {**progress.ended, shard: last})

    def stop(self, shard: str) -> None:
        """Stop to read a shard where the handlers are."""
        self.progress = self.now()
        del self.readings[shard]


class _Tenure:
    """What is done under one hold of the lease."""

    def __init__(self, reader: Reader, checkpoint: Checkpoint) -> None:
        self._reader = reader
        self._source = reader._source
        self._lease = reader._lease
        self._is_first = not checkpoint
        self._left = dict(checkpoint)
        """What is known of streams that have not been looked at yet."""
        self._followed: dict[str, _Followed] = {}
        self._changed = asyncio.Event()
        self._is_complete = self._has_looked = False
        self._last_lag = 0.0
        self._looked: float | None = None
        """When the streams and shards were looked for that are known."""
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Read until the lease is lost. Raises LeaseLost."""
        self._tasks = [asyncio.create_task(work) for work in (self._renew(), self._follow())]
        done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def close(self) -> None:
        """Stop reading, wherever the handlers are."""
        tasks = [*self._tasks, *(one.task for one in self._readings() if one.task is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def checkpoint(self) -> Checkpoint:
        """Tell how far all streams are read."""
        return self._left | {table: followed.now() for table, followed in self._followed.items()}

    def places(self, handler: str | None) -> Mapping[str, int]:
        """Tell how far the shards are read: by a handler, or by all of them."""
        found: dict[str, int] = {}
        for followed in self._followed.values():
            found |= followed.progress.known
            for name, one in followed.readings.items():
                found[name] = one.lanes.position if handler is None else one.lanes.positions[handler]
        return found

    @property
    def lag(self) -> float:
        """Tell how many seconds behind the handlers are."""
        waiting = [one.lanes.oldest for one in self._readings()]
        if oldest := [at for at in waiting if at is not None]:
            self._last_lag = max(0.0, time.time() - min(oldest))
        elif self.is_past(-1.0):
            self._last_lag = 0.0
        return self._last_lag

    @property
    def watermark(self) -> float | None:
        """Tell before when all was written that the handlers are done with; None while not all shards are known."""
        found = [one.lanes.watermark for one in self._readings()] if self._is_complete else []
        if any(table.period is not None for table in self._source.model.tables.values()):
            # Since the last look there may be a table of another period.
            found.append(self._looked)
        known = [moment for moment in found if moment is not None]
        return min(known) if known and len(known) == len(found) else None

    @property
    def is_following(self) -> bool:
        """Say whether what is written from now on is read: the shards are known, and those begun anew have an end."""
        return self._has_looked and not any(followed.fresh for followed in self._followed.values())

    def is_past(self, moment: float) -> bool:
        """Say whether all shards had nothing new after a moment, nor after the handlers were done."""
        readings = list(self._readings())
        if not self._is_complete or not all(one.lanes.is_idle for one in readings):
            return False
        # A handler may write what another shard tells.
        since = max([moment, *(one.lanes.idle_since for one in readings)])
        return all(one.empty_at > since for one in readings)

    def _readings(self) -> Iterator[_Reading]:
        for followed in self._followed.values():
            yield from followed.readings.values()

    # --- the lease ---

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._lease.renewal_secs)
            await self._lease.renew(self.checkpoint(), self._reader.watermark)

    # --- which shards ---

    async def _follow(self) -> None:
        while True:
            self._changed.clear()
            pause = LOOK_SECS
            try:
                if self._is_first:
                    await self._begin_now()
                await self._look()
                self._reader.problem = None
            except LeaseLost:
                raise
            except GraphError as error:
                self._reader._report(error)
                pause = SOON_SECS
            try:
                async with asyncio.timeout(pause if self._is_complete else SOON_SECS):
                    await self._changed.wait()
            except TimeoutError:
                pass

    async def _begin_now(self) -> None:
        """Begin with what comes next, and write down what that is before anything is read: else it could be lost."""
        second = int(time.time()) - PAST_SECS
        followed: dict[str, _Followed] = {}
        for stream in await self._source.streams():
            progress = from_now(stream.arn, await self._source.shards(stream.arn), second)
            followed[stream.table] = _Followed(stream, progress, set(progress.positions))
        self._followed, self._is_first = followed, False
        await self._lease.renew(self.checkpoint())

    async def _look(self) -> None:
        """Look for streams and shards, and begin to read those that may be read."""
        began = asyncio.get_running_loop().time()
        is_complete = True
        for stream in await self._source.streams():
            followed = self._followed.get(stream.table) or self._begin(stream)
            try:
                shards = await self._source.shards(followed.stream.arn)
            except PlaceLost:
                # It was turned off, and is not kept any longer.
                shards = []
            for gone in trimmed(shards, followed.progress):
                if gone not in followed.readings:
                    self._lose(f"the shard {gone} is trimmed away")
            now = [shard for shard in readable(shards, followed.progress) if shard.id not in followed.readings]
            for shard in now:
                self._start(followed, shard)
            known, followed.progress = followed.now().known, pruned(shards, followed.now())
            over = known.keys() - followed.now().known.keys()
            if self._reader._listener is not None and over:
                self._reader._listener.end(sorted(over))
            if not followed.readings and followed.stream != stream:
                # The one that was turned off is read to its end.
                del self._followed[stream.table]
                self._left[stream.table] = Progress(stream.arn)
                self._changed.set()
            # One that has ended, and whose children are not told yet, is still to be gone on with.
            is_complete = is_complete and bool(followed.readings) and not followed.progress.ended
        self._is_complete = is_complete and not self._changed.is_set()
        self._looked = began
        self._has_looked = True
        self._reader._moved.set()

    def _begin(self, stream: Stream) -> _Followed:
        progress = self._left.pop(stream.table, Progress(stream.arn))
        followed = self._followed[stream.table] = _Followed(Stream(stream.table, progress.stream), progress)
        return followed

    def _lose(self, what: str) -> None:
        self._reader.figures.gaps += 1
        logger.error("changes are lost: %s, and was not read to its end. Search and copies may be behind", what)

    # --- one shard ---

    def _start(self, followed: _Followed, shard: Shard) -> None:
        position = followed.progress.positions.get(shard.id, BEGINNING)
        if self._reader._listener is not None:
            self._reader._listener.begin({shard.id: position})
        lanes = Lanes(self._reader._handlers, position, self._reader.figures)
        reading = followed.readings[shard.id] = _Reading(followed.stream, shard, lanes)
        reading.task = asyncio.create_task(self._read(followed, reading))

    async def _read(self, followed: _Followed, reading: _Reading) -> None:
        """Read a shard to its end."""
        shard = reading.shard.id
        try:
            await self._read_records(followed, reading)
            await reading.lanes.drained()
        except Exception:
            logger.exception("the shard %s cannot be read, and is begun again where the handlers are", shard)
            self._reader.figures.failures += 1
            await asyncio.sleep(SOON_SECS)
            followed.stop(shard)
            self._is_complete = False
        else:
            followed.end(shard)
            self._is_complete = False
        finally:
            await reading.lanes.close()
        self._changed.set()

    async def _read_records(self, followed: _Followed, reading: _Reading) -> None:
        loop = asyncio.get_running_loop()
        stream, shard, lanes = reading.stream.arn, reading.shard.id, reading.lanes
        position, since = lanes.position, -lanes.position
        iterator: str | None = None
        while True:
            began = loop.time()
            try:
                if iterator is None and shard in followed.fresh:
                    iterator = await self._source.latest(stream, shard)
                    followed.fresh.discard(shard)
                elif iterator is None:
                    iterator = await self._source.iterator(stream, shard, position)
                answer = await self._source.records(iterator)
            except IteratorExpired:
                iterator = None
                continue
            except PlaceLost as lost:
                self._lose(f"of the shard {shard} something is trimmed away ({lost})")
                if position <= BEGINNING:
                    return
                iterator, position = None, BEGINNING
                continue
            except GraphError as error:
                self._reader._report(error)
                await asyncio.sleep(SOON_SECS)
                continue
            changes: list[Change] = []
            if answer.records:
                position = int(answer.records[-1]["dynamodb"]["SequenceNumber"])
                at = float(answer.records[-1]["dynamodb"]["ApproximateCreationDateTime"])
                lanes.show(min(began, moment_of(at)))
                if at >= since:
                    changes = read_changes(self._source.model, reading.stream.table, answer.records, shard)
                    await lanes.put([change for change in changes if change.at >= since], position)
            iterator = answer.next
            # At its end others go on, which may have something.
            reading.empty_at = -1.0 if changes or iterator is None else began
            if iterator is None:
                return
            if not answer.records:
                lanes.show(began)
            self._reader._moved.set()
            await asyncio.sleep(max(0.0, began + self._reader._poll_secs - loop.time()))
