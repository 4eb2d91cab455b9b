"""How many operations are executed at once, who waits for a turn, and who is refused before he has cost anything.

What a process can do is bounded by its processor: more operations at once make none of them faster, and each one's
answer later, until nobody waits for it any more. So only some are executed, as many wait, and all others are told at
once to come again. How many are some depends on how long they wait for DynamoDB: as long as the event loop does what
is due in time there may be more, and when it is late there are to be fewer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import monotonic

from server.view import overloaded

logger = logging.getLogger(__name__)

TICK_SECS = 0.05
"""How often it is looked whether the event loop is late."""
LATE_SECS = 0.04
"""The lateness at which there are enough operations: all that there is of the processor is used long before."""
BEGINNING, LEAST = 32, 8
"""So many operations there may be at first, and however late the loop is."""
GROWTH = 1.1
"""How many times as many there may be at the next look, when all turns are taken and the loop is not late."""
LEAST_WAITING = 64
"""So many may wait, be there ever so few that are executed."""
LONG_SECS = 0.5
"""When the first has waited so long, the last to come is served first: those before are likelier to have gone."""
MOST_SECS = 1.0
"""How long anybody waits."""
TELL_SECS = 1.0
"""How often the log is told at most."""


class Admission:
    """The turns of one process: `limit` operations have one, at most `most`, and as many wait for theirs.

        if not admission.take():
            await admission.turn()
        try: ...
        finally: admission.leave()

    First come, first served, as long as the wait is short.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = float(min(BEGINNING, most))
        """How many may be executed at once, as busy as the process is."""
        self.running = 0
        self.refused = 0
        """How many were refused since the process began."""
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        """Those who wait, the first first, with the time at which each came."""
        self._due: float | None = None
        """When it is to be looked next, on the event loop's clock; None while nothing is executed."""
        self._arrived = 0
        """How many have come since those who came before were handed on."""
        self._is_handing_on = False
        self._told = 0
        self._told_at = 0.0

    @property
    def waiting(self) -> int:
        """Count those who wait."""
        return len(self._waiting)

    @property
    def is_full(self) -> bool:
        """Say whether nobody else may wait."""
        return self.running >= self.limit and len(self._waiting) >= max(self.limit, LEAST_WAITING)

    @property
    def is_crowded(self) -> bool:
        """Say, of those who are at the door, whether they may be more than there is room for.

        A loop that is late finds many there at once, and hands them on only when it has looked at all of them.
        """
        self._arrived += 1
        if self._arrived + self.running <= self.limit:
            return False
        if not self._is_handing_on:
            self._is_handing_on = True
            asyncio.get_running_loop().call_soon(self._hand_on)
        return self._arrived + self.running + len(self._waiting) > self.limit + max(self.limit, LEAST_WAITING)

    def _hand_on(self) -> None:
        self._arrived = 0
        self._is_handing_on = False

    def check(self) -> None:
        """Refuse who comes when nobody else may wait. Raises Refusal."""
        if self.is_full:
            self.refuse()
            raise overloaded(self.most)

    def refuse(self) -> None:
        """Note that somebody was refused."""
        self.refused += 1
        now = monotonic()
        if now > self._told_at + TELL_SECS:
            fields = {"executing": self.running, "waiting": self.waiting, "refused": self.refused - self._told}
            logger.warning("overloaded: operations are refused", extra={"fields": fields})
            self._told, self._told_at = self.refused, now

    def take(self) -> bool:
        """Take a turn if there is one, which is only while nobody waits."""
        if self.running < self.limit and not self._waiting:
            self.running += 1
            self._arrived = 0
            if self._due is None:
                self._look_later(asyncio.get_running_loop())
            return True
        return False

    async def turn(self) -> None:
        """Wait for a turn and take it. Raises Refusal when too many wait, or it takes too long."""
        self.check()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append((monotonic(), waiter))
        timer = loop.call_later(MOST_SECS, _give_up, waiter)
        try:
            await waiter
        except TimeoutError:
            self.refuse()
            raise overloaded(self.most) from None
        except asyncio.CancelledError:
            # Given a turn already, but gone before he was told.
            if not waiter.cancelled() and waiter.exception() is None:
                self.leave()
            raise
        finally:
            timer.cancel()

    def leave(self) -> None:
        """Give a turn back: to one of those who wait."""
        self.running -= 1
        if self._waiting:
            self._give_turns()

    def _give_turns(self) -> None:
        while self._waiting and self.running < self.limit:
            came, _ = self._waiting[0]
            is_long = monotonic() - came > LONG_SECS
            _, waiter = self._waiting.pop() if is_long else self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self.running += 1

    # --- how many there may be ---

    def _look_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + TICK_SECS
        loop.call_at(self._due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._due is not None
        late_secs = loop.time() - self._due
        if late_secs > LATE_SECS:
            # As many as would not have made it late: while it is late nobody is even refused.
            enough = min(self.limit, self.running) * LATE_SECS / late_secs
            self.limit = max(min(LEAST, self.most), enough)
        elif self.running >= int(self.limit) and self.limit < self.most:
            self.limit = min(self.most, GROWTH * self.limit)
            self._give_turns()
        self._due = None
        if self.running:
            self._look_later(loop)


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError("no turn in time"))
