"""The watermark: the moment before which all was written that is followed.

A moment is one of this event loop's clock. A watermark that was true once stays true: of two the later one counts.
"""

from __future__ import annotations

import asyncio
import time


def latest(*moments: float | None) -> float | None:
    """Give the latest of those moments that are known."""
    return max((moment for moment in moments if moment is not None), default=None)


def moment_of(at: float) -> float:
    """Find the moment of a time in seconds since 1970, by this machine's clock; one yet to come is now."""
    return asyncio.get_running_loop().time() - max(0.0, time.time() - at)


class Watched:
    """The watermark of a process elsewhere, of which one item tells: after each write of it how far behind it was.

    Clocks are not compared. A write begins only when the one before has been answered; so, however long it took, it
    began after the last look that had not yet seen the one before, and from there its seconds are counted.
    """

    def __init__(self) -> None:
        self.watermark: float | None = None
        """None until two writes have been seen to come."""
        self._number: float | None = None
        self._looked: float | None = None
        self._unseen: float | None = None
        """When the last look was sent that had not seen the write which is seen now."""

    def look(self, began: float, number: float, behind_secs: float | None) -> None:
        """Take what a look brought that was sent at a moment: which write it saw, and what that one told."""
        if number != self._number:
            since, self._unseen, self._number = self._unseen, self._looked, number
            if since is not None and behind_secs is not None:
                self.watermark = latest(self.watermark, since - behind_secs)
        self._looked = began
