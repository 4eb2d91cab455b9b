"""Work whose client has gone is cancelled, and what would never end by itself ends with the process."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

from starlette.types import Receive

TICK_SECS = 0.02
"""How long work takes at least before anybody asks whether its client is still there; at most it is twice as long."""

T = TypeVar("T")


class ClientGone(Exception):
    """The client closed the connection before it had its answer."""


class ShuttingDown(Exception):
    """The process is about to end; whoever follows something is to ask again, and finds another process."""


class _Visit:
    """A client, and the task that works for it; neither is kept once that is done."""

    __slots__ = ("is_gone", "receive", "task", "watcher")

    def __init__(self, task: asyncio.Task[Any], receive: Receive) -> None:
        self.task: asyncio.Task[Any] | None = task
        self.receive: Receive | None = receive
        self.is_gone = False
        self.watcher: asyncio.Task[None] | None = None

    async def watch(self) -> None:
        """Wait until the client goes, and cancel the work."""
        while self.receive is not None and self.task is not None:
            if (await self.receive())["type"] == "http.disconnect":
                self.is_gone = True
                self.task.cancel()
                return


class Watch:
    """Asks after the clients of all that takes longer than a moment.

    Asking takes a task, of ten times the cost of noting that there is a visit, and most visits are over before: so one
    timer looks after them all, and only what is still there at its second tick is watched.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop in which the timer runs; None when it does not."""
        self._new: list[_Visit] = []
        self._old: list[_Visit] = []

    async def unless_client_goes(self, work: Coroutine[Any, Any, T], receive: Receive) -> T:
        """Await the work, and cancel it when the client disconnects. Raises: ClientGone."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        visit = _Visit(task, receive)
        self._new.append(visit)
        if self._loop is not task.get_loop():
            self._start(task.get_loop())
        # The watcher, not the work, gets a task of its own. Cancelling from the side and then taking the cancellation
        # back is how asyncio.timeout() does it.
        try:
            return await work
        except asyncio.CancelledError:
            if visit.is_gone and not task.uncancel():
                raise ClientGone from None
            raise
        finally:
            visit.task = visit.receive = None
            if visit.watcher is not None:
                visit.watcher.cancel()

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        loop.call_later(TICK_SECS, self._tick)

    def _tick(self) -> None:
        loop, self._loop = cast("asyncio.AbstractEventLoop", self._loop), None
        for visit in self._old:
            if visit.task is not None:
                visit.watcher = loop.create_task(visit.watch())
        self._old = [visit for visit in self._new if visit.task is not None]
        self._new = []
        if self._old:
            self._start(loop)


class Streams:
    """All that goes on until somebody ends it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._has_ended = False

    async def until_shutdown(self, work: Coroutine[Any, Any, T]) -> T:
        """Await the work, and cancel it when the process is about to end. Raises: ShuttingDown."""
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self._tasks.add(task)
        if self._has_ended:
            task.cancel()
        try:
            return await work
        except asyncio.CancelledError:
            if self._has_ended and not task.uncancel():
                raise ShuttingDown from None
            raise
        finally:
            self._tasks.discard(task)

    def end(self) -> None:
        """Cancel all of it, and all that is yet to begin."""
        self._has_ended = True
        for task in self._tasks:
            task.cancel()
