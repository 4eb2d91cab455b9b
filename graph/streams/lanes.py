"""Lanes: the changes of one shard on their way through the handlers, each handler at its own pace and in order."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph.client import Meter, back_off
from graph.errors import (
    AccessRefused,
    BlobUnavailable,
    DeadlineExceeded,
    SearchBusy,
    TableBusy,
    TableMissing,
    Throttled,
    Unavailable,
    WriteConflict,
)
from graph.streams.change import Change, Handler
from graph.streams.watermark import latest, moment_of

logger = logging.getLogger(__name__)

PASSING = (
    Throttled,
    Unavailable,
    DeadlineExceeded,
    TableMissing,
    TableBusy,
    AccessRefused,
    BlobUnavailable,
    SearchBusy,
    WriteConflict,
)
"""Failures that are no fault of the changes: they are tried again for as long as it takes."""
MOST_TRIES = 6
"""How often changes are tried that a handler fails at; then each of them alone, as often again."""
MOST_BATCHES_WAITING = 16
"""So many batches may wait for a slow handler before the shard is not read any further."""


@dataclass(slots=True)
class Figures:
    """What has happened since the process began to read."""

    changes: int = 0
    """Changes handled by all handlers, replays among them."""
    failures: int = 0
    """Failures of handlers: what they were given is given to them again."""
    abandoned: int = 0
    """Changes that a handler failed at every time, and did without."""
    gaps: int = 0
    """Shards of which something was trimmed away before it was read."""


@dataclass(slots=True, eq=False)
class _Batch:
    changes: Sequence[Change]
    last: int
    """The sequence number of its last record, which need not be of a change."""
    left: int


class Lanes:
    """The handlers of one shard; a batch is done when all of them have handled it."""

    def __init__(self, handlers: Mapping[str, Handler], position: int, figures: Figures) -> None:
        self.position = position
        """Up to where all handlers are."""
        self.positions = dict.fromkeys(handlers, position)
        """Up to where each handler is."""
        self.figures = figures
        self._batches: deque[_Batch] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self.idle_since = -1.0
        self._shown: float | None = None
        self._done: float | None = None
        """The watermark when nothing was waiting."""
        self._queues: dict[str, asyncio.Queue[_Batch]] = {
            name: asyncio.Queue(MOST_BATCHES_WAITING) for name in handlers
        }
        self._tasks = [asyncio.create_task(self._run(name, handler)) for name, handler in handlers.items()]

    @property
    def is_idle(self) -> bool:
        """Say whether all is handled that has been put in."""
        return not self._batches

    @property
    def oldest(self) -> float | None:
        """Say when the oldest change was written that is not handled, in seconds since 1970."""
        return next((batch.changes[0].at for batch in self._batches if batch.changes), None)

    @property
    def watermark(self) -> float | None:
        """Tell before when all was written that is handled, of what this shard has; None: not known."""
        return self._shown if self.oldest is None else latest(self._done, moment_of(self.oldest))

    def show(self, moment: float) -> None:
        """Hear that all that was written before a moment has been put in, or is about to be."""
        if self.oldest is None:
            self._done = self._shown
        self._shown = latest(self._shown, moment)

    async def put(self, changes: Sequence[Change], last: int) -> None:
        """Take a batch, and wait while a handler is too far behind."""
        batch = _Batch(changes, last, len(self._queues))
        self._batches.append(batch)
        self._idle.clear()
        for queue in self._queues.values():
            await queue.put(batch)
        self._advance()

    async def drained(self) -> None:
        """Wait until all is handled."""
        await self._idle.wait()

    async def close(self) -> None:
        """Stop, wherever the handlers are."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, name: str, handler: Handler) -> None:
        queue = self._queues[name]
        while True:
            batch = await queue.get()
            if batch.changes:
                await hand(name, handler, batch.changes, self.figures)
            batch.left -= 1
            self.positions[name] = batch.last
            self._advance()

    def _advance(self) -> None:
        while self._batches and not self._batches[0].left:
            batch = self._batches.popleft()
            self.position = batch.last
            self.figures.changes += len(batch.changes)
        if not self._batches and not self._idle.is_set():
            self.idle_since = asyncio.get_running_loop().time()
            self._idle.set()


async def hand(name: str, handler: Handler, changes: Sequence[Change], figures: Figures) -> None:
    """Give changes to a handler until it has handled them, or has failed at one of them once too often.

    What passes by itself is waited for, however long it takes.
    """
    attempt = 1
    while True:
        try:
            await handler(changes)
            return
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise
            # Anything else is the handler's own affair, also that something of its was cancelled.
            figures.failures += 1
            place = changes[0].place
            if attempt >= MOST_TRIES and not isinstance(error, PASSING):
                if len(changes) == 1:
                    figures.abandoned += 1
                    logger.exception("%s cannot handle the change of %s, and goes on without", name, changes[0].key)
                    return
                break
            logger.warning(
                "%s failed at %d changes after %s, and gets them again: %r", name, len(changes), place, error
            )
        await back_off(attempt, Meter())
        attempt += 1
    for change in changes:
        await hand(name, handler, [change], figures)
