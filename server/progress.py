"""How far a long task is, on standard error: a bar where a person looks, else a line now and then."""

from __future__ import annotations

import sys
import time
from typing import TextIO

BAR_SECS = 0.1
LINE_SECS = 5.0
WIDTH = 30


class Progress:
    """Counts up to a total, if that is known, and tells the rate and the time that remains."""

    def __init__(self, what: str, total: int | None = None, done: int = 0, file: TextIO | None = None) -> None:
        self._what = what
        self._total = total
        self._before = self._done = done
        self._file = file or sys.stderr
        self._is_bar = self._file.isatty()
        self._began = self._shown = time.monotonic()

    @property
    def seconds(self) -> float:
        """Give the time since the beginning."""
        return time.monotonic() - self._began

    @property
    def rate(self) -> float:
        """Give how many are done in a second."""
        return (self._done - self._before) / max(self.seconds, 1e-9)

    def add(self, count: int) -> None:
        """Count on, and show it when it is time again."""
        self._done += count
        now = time.monotonic()
        if now - self._shown >= (BAR_SECS if self._is_bar else LINE_SECS):
            self._shown = now
            self._file.write(f"\r{self._line()}\x1b[K" if self._is_bar else f"{self._line()}\n")
            self._file.flush()

    def _line(self) -> str:
        rate = self.rate
        if not self._total:
            return f"{self._what}: {self._done:,} ({rate:,.0f}/s)"
        share = min(1.0, self._done / self._total)
        left = _time((self._total - self._done) / rate) if rate and self._done <= self._total else "?"
        filled = int(WIDTH * share)
        bar = f" {'█' * filled}{'░' * (WIDTH - filled)}" if self._is_bar else ":"
        return f"{self._what}{bar} {self._done:,} of {self._total:,} ({share:.0%}), {rate:,.0f}/s, {left} left"

    def end(self) -> None:
        """Take the bar away, for what comes after it."""
        if self._is_bar:
            self._file.write("\r\x1b[K")
            self._file.flush()


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
