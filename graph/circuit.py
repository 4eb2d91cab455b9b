"""Whether a table answers: one that does not is asked no more for a while, and what fails is not sent ever again."""

from __future__ import annotations

import logging
import random
import time

from graph.errors import CircuitOpen

logger = logging.getLogger(__name__)

WEIGHT = 1 / 16
"""What one answer weighs in the rate of failures: eleven failures in a row open a circuit."""
OPEN_ABOVE = 0.5
CALM_BELOW = 0.001
LEAST_OPEN_SECS, MOST_OPEN_SECS = 0.5, 5.0
"""How long a table is not asked; each time twice as long, until it answers."""
RETRIES = 50.0
"""Retries after faults that a table has at once; throttling is not a fault, and has its own back-off."""
RETRIES_EARNED = 0.5
"""What each answer adds to them: of three requests to a table that fails so often, one is a retry."""


class Circuit:
    """What is known of one table: closed it is asked, open it is not, but for one request now and then.

    Faults open it: no answer, or a 500. Throttling does not, for that is an answer, and may concern one key alone.
    """

    __slots__ = ("_failures", "_is_tried", "_open_secs", "_retries", "_until", "is_calm", "table")

    def __init__(self, table: str) -> None:
        self.table = table
        self.is_calm = True
        """No fault is remembered: nothing need be noted of an answer."""
        self._failures = 0.0
        """The rate of failures, of which the last ones weigh most."""
        self._retries = RETRIES
        self._open_secs = 0.0
        """How long it is open; 0 while it is closed."""
        self._until = 0.0
        """When the next request may try the table, by the monotonic clock."""
        self._is_tried = False

    @property
    def is_open(self) -> bool:
        """Say whether the table is taken not to answer."""
        return self._open_secs > 0

    def enter(self) -> None:
        """Let a request go to the table. Raises CircuitOpen."""
        if not self._open_secs:
            return
        now = time.monotonic()
        if now < self._until:
            raise CircuitOpen(
                f"DynamoDB has not answered for this table of late, and is not asked before {self._until - now:.1f} s "
                "from now: try again then",
                self._until - now,
            )
        # This one tries. Should its caller go before it is answered, another one may.
        self._until = now + MOST_OPEN_SECS
        self._is_tried = True

    def answered(self) -> None:
        """Note an answer, whatever it says."""
        if self._open_secs:
            logger.warning("DynamoDB answers again for %s", self.table)
            self._open_secs = self._failures = 0.0
        self._failures -= WEIGHT * self._failures
        if self._failures < CALM_BELOW:
            self._failures = 0.0
        self._retries = min(RETRIES, self._retries + RETRIES_EARNED)
        self.is_calm = not self._failures and self._retries == RETRIES

    def failed(self) -> bool:
        """Note a fault, and say whether the request may be sent again."""
        self.is_calm = False
        self._failures += WEIGHT * (1 - self._failures)
        if self._open_secs or self._failures > OPEN_ABOVE:
            self._open()
            return False
        self._retries -= 1
        if self._retries < 0:
            self._retries = 0.0
            return False
        return True

    def _open(self) -> None:
        if self._open_secs and not self._is_tried:
            # Sent before it was opened.
            return
        if not self._open_secs:
            logger.error("DynamoDB does not answer for %s: it is not asked for a while", self.table)
        self._open_secs = min(MOST_OPEN_SECS, max(LEAST_OPEN_SECS, 2 * self._open_secs))
        # Not all processes are to ask at the same time.
        self._is_tried = False
        self._until = time.monotonic() + self._open_secs * random.uniform(0.5, 1)
