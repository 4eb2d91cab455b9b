"""What is known of a variable before the items are read: all that the planner goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graph.filters import Test


@dataclass(frozen=True, slots=True)
class Bound:
    """What is known of a variable: it has one of some values, or else lies in a range, begins so, or both.

    `tests` are those that it stands for: where a key condition keeps to the bound, they are decided.
    """

    values: tuple[Any, ...] | None = None
    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False
    prefix: str | None = None
    tests: tuple[Test, ...] = ()
