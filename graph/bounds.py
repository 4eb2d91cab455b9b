"""What is known of a variable before the items are read: all that the planner goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Bound:
    """What is known of a variable: one of some values, a range, or a prefix."""

    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False
    prefix: str | None = None
    clashes: bool = False
    """Some test on the path did not fit in beside the others: a key condition alone cannot stand for all of them."""

    @property
    def is_one_condition(self) -> bool:
        """Say whether a single key condition can stand for all tests on the path."""
        ranged = self.low is not None or self.high is not None
        return not self.clashes and (self.values is not None) + ranged + (self.prefix is not None) == 1
