"""Filters decided in plain Python, by what README says of them and nothing of how graph/ does it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from graph.filters import Every, Filter, Never, Some, Test
from graph.keys import Path


def decides(filter_: Filter, value_at: Callable[[Path], Any]) -> bool:
    """Say whether a filter holds for an item that has these values; None stands for no value."""
    if isinstance(filter_, Every):
        return all(decides(part, value_at) for part in filter_.filters)
    if isinstance(filter_, Some):
        return any(decides(part, value_at) for part in filter_.filters)
    if isinstance(filter_, Never):
        return not decides(filter_.filter, value_at)
    return _decides_test(filter_, value_at(filter_.path))


def _decides_test(test: Test, value: Any) -> bool:
    def plain(one: Any) -> Any:
        is_moment = test.scalar.name == "DateTime" and isinstance(one, str)
        return datetime.fromisoformat(one.upper().replace("Z", "+00:00")) if is_moment else one

    wanted = test.value
    if test.operator == "exists":
        return (value is not None) is wanted
    if test.operator == "eq":
        return bool(plain(value) == plain(wanted))
    if test.operator == "ne":
        return bool(plain(value) != plain(wanted))
    if test.operator == "in":
        return any(plain(value) == plain(one) for one in wanted)
    if value is None:
        return False
    if test.operator == "contains":
        return any(plain(one) == plain(wanted) for one in value) if isinstance(value, list) else wanted in value
    if test.operator == "beginsWith":
        return bool(value.startswith(wanted))
    low, high = {
        "lt": (None, wanted),
        "le": (None, wanted),
        "gt": (wanted, None),
        "ge": (wanted, None),
        "between": wanted if test.operator == "between" else (None, None),
    }[test.operator]
    is_open = test.operator in ("lt", "gt")
    return (low is None or plain(low) < plain(value) or (plain(low) == plain(value) and not is_open)) and (
        high is None or plain(value) < plain(high) or (plain(value) == plain(high) and not is_open)
    )
