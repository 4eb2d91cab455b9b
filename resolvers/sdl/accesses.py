"""Which ways into the tables serve layouts whose partition keys are bound, and in which order they are preferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from graph.bounds import Bound
from graph.keys import Path
from graph.model import Access, Layout
from graph.planner import is_bound
from resolvers.sdl.tables import Tables

SOME_VALUE = Bound(values=("x",))
"""Stands for a value that only the request will bring: that a path is bound is all that the compiler needs."""


def accesses(
    tables: Tables, layouts: Iterable[Layout], bound: Mapping[Path, Bound], prefer_copy: str | None = None
) -> tuple[Access, ...]:
    """List the ways to read layouts whose partition keys are bound, best first: tables, local indexes, global ones.

    The layouts of a mirror that copies the wanted end come before those that do not.
    """
    mirrors: dict[int, list[Layout]] = {}
    for layout in layouts:
        mirrors.setdefault(layout.mirror, []).append(layout)
    found: list[tuple[tuple[int, bool, int], Access]] = []
    for mirror, group in mirrors.items():
        for rank, index in enumerate(tables.stored(group[0].table).ways):
            if all(layout.is_in(index) and is_bound(layout, index, bound) for layout in group):
                copies = prefer_copy is not None and group[0].copy == prefer_copy
                found.append(((rank, not copies, mirror), Access(index, tuple(group))))
    return tuple(access for _, access in sorted(found, key=lambda entry: entry[0]))


def strong(ways: tuple[Access, ...]) -> tuple[Access, ...]:
    """Keep the ways that can be read consistently: a global index is always a little behind."""
    return tuple(way for way in ways if way.index.name is None or way.index.local)


def paths_of(layouts: Iterable[Layout]) -> set[Path]:
    """List every path that the keys of layouts are made of."""
    return {
        variable.path for layout in layouts for template in layout.templates.values() for variable in template.variables
    }
