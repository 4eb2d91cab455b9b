"""A bounded number of things under way at once, and whose turn it is when all are."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class Slots:
    """So many slots; who has to wait for one waits behind his own group, and the groups take turns.

    A group with one request waits for a round of the groups, and not for the thousand requests of another one.

        if not slots.take():
            await slots.turn(group)
        try: ...
        finally: slots.free()
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: OrderedDict[object, deque[asyncio.Future[None]]] = OrderedDict()
        """Those who wait, oldest first, of each group; the group whose turn it is first. None is empty."""

    def take(self) -> bool:
        """Take a slot if one is free, which is only while nobody waits."""
        if self._free:
            self._free -= 1
            return True
        return False

    async def turn(self, group: object = None, deadline: float | None = None) -> None:
        """Wait for a slot and take it. Raises TimeoutError at the deadline, on the event loop's clock."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.setdefault(group, deque()).append(waiter)
        # Not by asyncio.timeout_at, which costs as much as all the rest of the waiting.
        timer = None if deadline is None else loop.call_at(deadline, _give_up, waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            # Given a slot already, but gone before it was told.
            if not waiter.cancelled() and waiter.exception() is None:
                self.free()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def free(self) -> None:
        """Give a slot back: to the next who waits, if any does."""
        while self._waiting:
            group, waiters = self._waiting.popitem(last=False)
            waiter = waiters.popleft()
            if waiters:
                self._waiting[group] = waiters
            if not waiter.done():
                waiter.set_result(None)
                return
        self._free += 1


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError("no slot was free in time"))
