"""Recent changes, kept for those who were away for a moment: the stream need not be read for them."""

from __future__ import annotations

import time
from collections import deque

from graph.streams.change import Change
from graph.streams.places import BEGINNING, Places

MOST_KEPT = 5_000
KEPT_SECS = 120.0


class Recent:
    """The last changes, some thousand of the last two minutes, in the order in which they came."""

    def __init__(self, most: int = MOST_KEPT, secs: float = KEPT_SECS) -> None:
        self._most = most
        self._secs = secs
        self._changes: deque[tuple[float, Change]] = deque()
        self._since: dict[str, int] = {}
        """By shard the place behind which every change is here."""
        self._first: dict[str, int] = {}
        """By shard the first change behind a place that is a second: what numbers lie before it, nobody knows."""

    def begin(self, shard: str, sequence: int) -> None:
        """Keep the changes of a shard behind a place, and not what came before."""
        self._since[shard] = sequence
        self._first.pop(shard, None)
        self._changes = deque(entry for entry in self._changes if entry[1].place.shard != shard)

    def end(self, shard: str) -> None:
        """Forget a shard that is done with."""
        self._since.pop(shard, None)
        self._first.pop(shard, None)
        self._changes = deque(entry for entry in self._changes if entry[1].place.shard != shard)

    def keep(self, change: Change) -> None:
        """Keep a change, and forget those that are too many or too old."""
        now = time.monotonic()
        shard, sequence = change.place
        # Where a shard begins, nobody may have told.
        if self._since.setdefault(shard, sequence - 1) < BEGINNING:
            self._first.setdefault(shard, sequence)
        self._changes.append((now, change))
        while self._changes and (len(self._changes) > self._most or self._changes[0][0] < now - self._secs):
            oldest = self._changes.popleft()[1].place
            self._since[oldest.shard] = oldest.sequence
            self._first.pop(oldest.shard, None)

    def behind(self, places: Places) -> list[Change] | None:
        """List all changes behind places; None where some may be forgotten."""
        if not self._since or any(name not in self._since for name in places):
            return None
        if not all(self._reaches(name, places.get(name, BEGINNING)) for name in self._since):
            return None
        return [one for _, one in self._changes if one.place.sequence > places.get(one.place.shard, BEGINNING)]

    def _reaches(self, shard: str, place: int) -> bool:
        since = self._since[shard]
        if since >= BEGINNING:
            return place >= since
        return place <= since if place < BEGINNING else place >= self._first.get(shard, place + 1)
