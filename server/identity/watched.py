"""A file that is read anew when it has changed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from server.settings import SettingsError

logger = logging.getLogger(__name__)

LOOK_SECS = 1.0
"""How often at most a file is looked at."""

T = TypeVar("T")


class Watched(Generic[T]):
    """What a file holds; one that cannot be read any more leaves what there was, and a line in the log."""

    def __init__(
        self, path: Path, read: Callable[[bytes], T], flag: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Read the file. `read` raises ValueError with the expectation. Raises: SettingsError naming the flag."""
        self._path = path
        self._read = read
        self._clock = clock
        self._looked = clock()
        self._state: tuple[int, int, int] | None
        self._complaint = ""
        try:
            self._state = self._look()
            self._value = read(path.read_bytes())
        except (OSError, ValueError) as error:
            raise SettingsError(f"{flag}: {self._problem(error)}") from None

    def value(self) -> T:
        """Give what the file holds. Cost: a look at its state, once in a while; reading it when that has changed."""
        now = self._clock()
        if now - self._looked >= LOOK_SECS:
            self._looked = now
            self._refresh()
        return self._value

    def _refresh(self) -> None:
        state = None
        try:
            state = self._look()
            if state == self._state:
                return
            self._value = self._read(self._path.read_bytes())
        except (OSError, ValueError) as error:
            complaint = self._problem(error)
            if complaint != self._complaint:
                logger.error("%s; going on with what it held before", complaint)
            self._complaint = complaint
        else:
            logger.info("%s has changed and was read", self._path)
            self._complaint = ""
        # Of before it was read: what was written meanwhile is seen at the next look.
        self._state = state

    def _look(self) -> tuple[int, int, int]:
        state = self._path.stat()
        return state.st_mtime_ns, state.st_size, state.st_ino

    def _problem(self, error: Exception) -> str:
        if isinstance(error, OSError):
            return f"{self._path} cannot be read: {error.strerror}"
        return f"{self._path}: expected {error}"
