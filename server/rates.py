"""How often one client may ask: a bucket of operations that fills up again by and by.

Each process counts for itself: with several workers, or servers, a client may have so many times as much.

Source: "GCRA", the generic cell rate algorithm (ITU-T I.371), which is a token bucket kept as one number: the second at
        which it is full again. The headers: RateLimit header fields for HTTP, draft-ietf-httpapi-ratelimit-headers-10.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

from server import view
from server.view import Header, Refusal

MOST_CLIENTS = 50_000
"""Clients that are remembered, about 10 MB of them; the one that was heard of longest ago is forgotten first."""


class Rate(NamedTuple):
    """So many operations at once, and again so many in each window."""

    most: int
    window_secs: int


def read_rate(text: str) -> Rate | None:
    """Read a rate like 600/60; None where there is none. Raises ValueError with the expectation as its message."""
    if not text:
        return None
    most, _, window = text.partition("/")
    try:
        rate = Rate(int(most), int(window))
    except ValueError:
        rate = Rate(0, 0)
    if min(rate) < 1:
        raise ValueError("operations and seconds, two whole numbers of at least 1, like 600/60")
    return rate


class Taken(NamedTuple):
    """What is left to a client."""

    remaining: int
    full_secs: float
    """How long until it may ask for all of it again."""


class RateLimiter:
    """Counts the operations of each client."""

    def __init__(
        self, rate: Rate, clock: Callable[[], float] = time.monotonic, most_clients: int = MOST_CLIENTS
    ) -> None:
        self._rate = rate
        self._interval_secs = rate.window_secs / rate.most
        self._clock = clock
        self._most_clients = most_clients
        self._full: dict[str, float] = {}
        """When the bucket of each client is full again; the one heard of last stands last."""
        self.policy: Header = (b"ratelimit-policy", b'"default";q=%d;w=%d' % rate)

    def __len__(self) -> int:
        return len(self._full)

    def take(self, client: str) -> Taken:
        """Count an operation of a client. Raises: Refusal when it has to wait, and then nothing is counted."""
        now = self._clock()
        # Taken out and put back, it stands last.
        before = self._full.pop(client, now)
        full = max(now, before) + self._interval_secs
        wait_secs = full - now - self._rate.window_secs
        # A difference of clocks is never exact.
        is_refused = wait_secs > 1e-6
        self._full[client] = before if is_refused else full
        if len(self._full) > self._most_clients:
            del self._full[next(iter(self._full))]
        if is_refused:
            raise self._refusal(wait_secs, before - now)
        return Taken(int((-wait_secs + 1e-6) / self._interval_secs), full - now)

    def headers(self, taken: Taken) -> tuple[Header, ...]:
        """Tell a client what is left to it."""
        return self.policy, _left(taken)

    def _refusal(self, wait_secs: float, full_secs: float) -> Refusal:
        return view.rate_limited(*self._rate, math.ceil(wait_secs), self.policy, _left(Taken(0, full_secs)))


def _left(taken: Taken) -> Header:
    return b"ratelimit", b'"default";r=%d;t=%d' % (taken.remaining, math.ceil(taken.full_secs))
