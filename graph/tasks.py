"""Work done side by side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


async def together(
    work: Sequence[Coroutine[Any, Any, T]], when_done: Callable[[asyncio.Task[T]], None] | None = None
) -> list[T]:
    """Await all of these side by side; when one fails, or the caller has gone, the others end before this does.

    Where there are several, `when_done` is called with each of them as it ends.
    """
    if len(work) == 1:
        return [await work[0]]
    tasks = [asyncio.ensure_future(one) for one in work]
    if when_done is not None:
        for task in tasks:
            task.add_done_callback(when_done)
    try:
        return await asyncio.gather(*tasks)
    finally:
        if left := [task for task in tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
