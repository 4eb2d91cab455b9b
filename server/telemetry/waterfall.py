"""The calls of one operation in short: how many of each kind, when the first began and the last ended."""

from __future__ import annotations

from dataclasses import dataclass

from graph.observation import Call

KINDS = 50
"""So many kinds of calls are told apart; an operation on one table has a handful."""


@dataclass(slots=True)
class _Kind:
    began_ns: int
    ended_ns: int = 0
    count: int = 0
    secs: float = 0.0
    units: float = 0.0
    items: int = 0
    failed: int = 0


class Waterfall:
    """Adds up calls by operation, table and index."""

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, tuple[str, ...], str | None], _Kind] = {}

    def add(self, call: Call) -> None:
        """Add a call that is over."""
        name = call.request.operation, call.tables, call.request.index
        kind = self._kinds.get(name)
        if kind is None:
            if len(self._kinds) == KINDS:
                name = ("others", (), None)
            kind = self._kinds.setdefault(name, _Kind(call.began_ns))
        kind.began_ns = min(kind.began_ns, call.began_ns)
        kind.ended_ns = max(kind.ended_ns, call.began_ns + int(call.secs * 1e9))
        kind.count += 1
        kind.secs += call.secs
        kind.units += call.capacity_units
        kind.items += call.items_read
        kind.failed += call.error is not None

    def lines(self, began_ns: int) -> list[str]:
        """Write a line for each kind, the one that began first before all others; times are since `began_ns`."""
        return [
            _line(name, kind, began_ns) for name, kind in sorted(self._kinds.items(), key=lambda each: each[1].began_ns)
        ]


def _line(name: tuple[str, tuple[str, ...], str | None], kind: _Kind, began_ns: int) -> str:
    operation, tables, index = name
    where = " ".join([operation, *tables, *([index] if index else [])])
    began, ended = ((moment - began_ns) / 1e6 for moment in (kind.began_ns, kind.ended_ns))
    failed = f", {kind.failed} failed" if kind.failed else ""
    return (
        f"{where}: {kind.count} from {began:.1f} to {ended:.1f} ms, {kind.secs * 1000:.1f} ms together, "
        f"{kind.items} items, {kind.units:g} units{failed}"
    )
