"""An event loop whose clock leaps: waiting takes no time, and yet every delay and deadline is just as long as it is."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LeapingLoop(asyncio.SelectorEventLoop):
    """Leaps to the next timer when nothing is ready. For what neither threads nor sockets answer."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0

    def time(self) -> float:
        return self._now

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._now = max(self._now, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on a leaping clock, which begins at 0."""
    with asyncio.Runner(loop_factory=LeapingLoop) as runner:
        return runner.run(main)


def now() -> float:
    """Read the clock."""
    return asyncio.get_running_loop().time()


async def turns(count: int = 20) -> None:
    """Let the loop run what is ready, without any time going by."""
    for _ in range(count):
        await asyncio.sleep(0)
