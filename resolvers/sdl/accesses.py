"""Which ways into the tables serve layouts whose partition keys are bound, and in which order they are preferred."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graph.bounds import Bound
from graph.keys import Path
from graph.model import Access, ItemType, Layout
from graph.planner import is_bound
from resolvers.sdl.paths import places
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


# --- what a relationship makes of a way ---------------------------------------------------------------------------


def needs(access: Access, start: str) -> tuple[Path, ...]:
    """List what must be known of the source: the paths below the reference to it that the partition key holds."""
    return tuple(
        dict.fromkeys(
            variable.path[1:]
            for layout in access.layouts
            for template in layout.partition(access.index)
            for variable in template.variables
            if variable.path[0] == start
        )
    )


def holds_alone(access: Access, start: str) -> bool:
    """Say whether an attribute of the partition key is made of the source alone."""
    return all(
        any(
            template.variables and all(variable.path[0] == start for variable in template.variables)
            for template in layout.partition(access.index)
        )
        for layout in access.layouts
    )


def asks(access: Access, start: str) -> tuple[Path, ...]:
    """List what a filter must bind of a partition key: all but the source and what can be fanned out over."""
    return tuple(
        dict.fromkeys(
            variable.path
            for layout in access.layouts
            for template in layout.partition(access.index)
            for variable in template.variables
            if variable.path[0] != start and not variable.scalar.values
        )
    )


def mentions(access: Access, name: str) -> bool:
    """Say whether a key of the index names what a reference does."""
    return all(
        any(
            variable.path[0] == name
            for template in (*layout.partition(access.index), *layout.sort(access.index))
            for variable in template.variables
        )
        for layout in access.layouts
    )


def ways_from(
    tables: Tables,
    layouts: Iterable[Layout],
    start: str,
    source: str,
    prefer_copy: str | None = None,
    *,
    by_filter: bool = False,
) -> tuple[Access, ...]:
    """List the ways to the items whose field `start` names a node of the type `source`, best first.

    A partition of shards alone is bound as well, but holds everybody's items: the source must be in the key. With
    `by_filter` they are those where a filter has to bind what stands beside the source in a partition key.
    """
    named = [layout for layout in layouts if layout.ends.get(start, source) == source]
    bound = {path: SOME_VALUE for path in paths_of(named) if by_filter or path[0] == start}
    ways = (access for access in accesses(tables, named, bound, prefer_copy) if needs(access, start))
    return tuple(access for access in ways if not by_filter or (asks(access, start) and holds_alone(access, start)))


def alike(ways: Sequence[Access], start: str) -> tuple[Access, ...]:
    """Keep the ways that need no more of the source than the best one does."""
    return tuple(access for access in ways if set(needs(access, start)) <= set(needs(ways[0], start)))


def is_filled(items: Mapping[str, ItemType], layout: Layout, attribute: str, start: str) -> bool:
    """Say whether every item that names a node by `start` has a key attribute: no field that it holds may be null."""
    return all(
        items[owner].fields[name].type.required
        for variable in layout.templates[attribute].variables
        for owner, name in places(items, layout.type_name, variable.path, layout)
        if (owner, name) != (layout.type_name, start)
    )
