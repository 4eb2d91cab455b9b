"""Items that look alike: which layouts could be taken for each other, by their own key or in an index."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from graph.keys import overlap
from graph.model import Index, ItemType, Layout, Table
from resolvers.sdl.declarations import Declarations
from resolvers.sdl.report import Report, listed
from resolvers.sdl.tables import Tables


class Rivals:
    """Finds the layouts whose items may look alike; reports those that nothing tells apart, once for each key."""

    def __init__(self, declared: Declarations, tables: Tables, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report
        self._alike: dict[tuple[str, int, str | None], list[tuple[Layout, Layout, Index]]] = {}

    def all(self) -> dict[tuple[str, str | None], tuple[Layout, ...]]:
        """List, by the name of a layout and of an index, the layouts of other types that look the same there."""
        if not self._tables.are_sure:
            return {}  # Nobody knows the keys or the discriminator of a table with a mistake.
        rivals: dict[tuple[str, str | None], list[Layout]] = {}
        for one, other in combinations(self._layouts(), 2):
            if one.table != other.table:
                continue
            table = self._tables.stored(one.table)
            if one.type_name == other.type_name:
                self._compare_variants(one, other, table)
                continue
            colliding = [way for way in table.ways if _overlap(one, other, way)]
            for way in colliding:
                rivals.setdefault((one.name, way.name), []).append(other)
                rivals.setdefault((other.name, way.name), []).append(one)
            if colliding and not self._are_told_apart(one, other, table, colliding[0]):
                self._note(one, other, colliding[0])
        for pairs in self._alike.values():
            self._report_pairs(pairs)
        return {name: tuple(found) for name, found in rivals.items()}

    def _layouts(self) -> list[Layout]:
        """List the layouts of items that exist, and whose keys have no mistake of their own."""
        return [
            layout
            for item in self._items.values()
            for layout in item.layouts
            if not item.virtual and not self._report.blames(self._declared.items[item.name].keys[layout.mirror].node)
        ]

    def _are_told_apart(self, one: Layout, other: Layout, table: Table, index: Index) -> bool:
        """Say whether the discriminator tells the items of two layouts apart, or that one of them is a node's own."""
        names = {self._items[one.type_name].type_name, self._items[other.type_name].type_name}
        is_own = index is table.primary and one.self_keyed != other.self_keyed
        return is_own or (table.type_attribute is not None and len(names) == 2)

    def _compare_variants(self, one: Layout, other: Layout, table: Table) -> None:
        """Compare two layouts of a type whose key mentions a union: it must tell which of its types is meant."""
        names = {variable.path[0] for name in table.key_attributes for variable in one.templates[name].variables}
        differ = any(one.ends.get(name) != other.ends.get(name) for name in names)
        if one.mirror == other.mirror and differ and _overlap(one, other, table.primary):
            self._note(one, other, table.primary)

    def _note(self, one: Layout, other: Layout, index: Index) -> None:
        self._alike.setdefault((other.type_name, other.mirror, index.name), []).append((one, other, index))

    # --- reports ---

    def _report_pairs(self, pairs: list[tuple[Layout, Layout, Index]]) -> None:
        one, other, index = pairs[0]
        node = self._declared.items[other.type_name].keys[other.mirror].node
        owners = dict.fromkeys(pair[0].type_name for pair in pairs)
        if other.type_name in owners:
            self._report.add(node, self._of_one_type(one, other))
        elif index.name is None:
            self._report.add(node, self._in_the_table(other, list(owners)))
        else:
            self._report.add(node, self._in_an_index(one, other, index, list(owners)))

    def _of_one_type(self, one: Layout, other: Layout) -> str:
        name = next(name for name in one.ends if one.ends[name] != other.ends[name])
        return (
            f"the keys of `{one.type_name}` look alike where `{name}` is a {one.ends[name]} and where it is a "
            f"{other.ends[name]}: expected keys that tell the type. Mention it as `{{{name}}}`, and begin the `ref` of "
            "each with a literal of its own"
        )

    def _in_the_table(self, other: Layout, owners: list[str]) -> str:
        table = self._tables.stored(other.table)
        keys = " and ".join(f"{name} = {other.templates[name].source!r}" for name in table.key_attributes)
        cure = (
            "Give each a `typeName` of its own"
            if table.type_attribute
            else 'Begin one of the keys with a literal of its own, or name the attribute of the type: @table(type: "…")'
        )
        return (
            f"an item of `{other.type_name}`, {keys}, could as well be one of {listed(owners, 'or')}: expected a "
            f"literal or a discriminator that tells them apart. {cure}"
        )

    def _in_an_index(self, one: Layout, other: Layout, index: Index, owners: list[str]) -> str:
        names = index.sort_keys or index.partition_keys
        ours = " and ".join(f"{name} = {other.templates[name].source!r}" for name in names)
        theirs = " and ".join(repr(one.templates[name].source) for name in names)
        return (
            f"on the index `{index.name}` items of `{other.type_name}`, {ours}, collide with those of "
            f"{listed(owners)}, {theirs}: a page of one would read the other's too. Expected different literals in "
            'front: add them, or name the attribute of the type: @table(type: "…")'
        )


def _overlap(one: Layout, other: Layout, index: Index) -> bool:
    return all(
        name in one.templates and name in other.templates and overlap(one.templates[name], other.templates[name])
        for name in index.key_attributes
    )
