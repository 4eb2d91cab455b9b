"""The ways to an item from the fields that name it: in a root lookup, or in the attribute or key of another item."""

from __future__ import annotations

from collections.abc import Mapping

from graphql import Node

from graph.keys import Path, Template
from graph.model import Access, Field, ItemType, Layout
from resolvers.sdl.accesses import SOME_VALUE, accesses, paths_of
from resolvers.sdl.declarations import Declarations
from resolvers.sdl.report import Report
from resolvers.sdl.tables import Tables
from resolvers.sdl.words import RESOLVER_ARGUMENTS


class Lookups:
    """Resolves lookups; a name that does not lead to its item is reported."""

    def __init__(self, declared: Declarations, tables: Tables, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report

    def all(self) -> dict[str, tuple[Access, ...]]:
        """Resolve the lookups of every item type."""
        found = {name: self._own(item) for name, item in self._items.items()}
        for item in self._items.values():
            for field in item.references:
                if (at := self._own_ref(item, field)) is not None:
                    for target, ref in field.refs.items():
                        ways = self._by_attribute(item, field, target, ref, at)
                        found[target] += tuple(way for way in ways if way not in found[target])
        return found

    def _own(self, item: ItemType) -> tuple[Access, ...]:
        """List the ways to an item from its `ref`, or from its whole key where that alone leads to it."""
        if item.virtual or not item.layouts:
            return ()
        key = paths_of(item.layouts)
        paths = {variable.path for variable in item.ref.variables} if item.ref else key
        self._check_arguments(item, paths | self._primary(item.layouts[0]))
        ways = self._ways(item, paths)
        if ways is None and item.ref is not None and self._is_named(item):
            self._report.add(
                self._declared.items[item.name].keys[0].at("ref"),
                f"`{item.name}` is named by {item.ref.source!r}, which does not lead to its item: expected every field "
                "of its partition key, and those that its sort key begins with where others share the partition. Write "
                "them in `ref`",
            )
        return (self._ways(item, key) if ways is None else ways) or ()

    def _by_attribute(self, item: ItemType, field: Field, target: str, ref: Template, at: Node) -> tuple[Access, ...]:
        """List the ways to a node from what an attribute of another item names it by."""
        ways = self._ways(self._items[target], {variable.path for variable in ref.variables})
        if ways is None:
            self._report.add(
                at,
                f"`{item.name}.{field.name}` names a {target} by {ref.source!r}, which does not lead to its item: "
                "expected the fields of its partition key, or of an index's. Name it by those, or add "
                f'`@index(name: "…", partitionKey: "…")` for {ref.source!r}',
            )
        return ways or ()

    def _own_ref(self, item: ItemType, field: Field) -> Node | None:
        """Give the place of the `ref` that a field has of its own."""
        use = self._declared.items[item.name].fields[field.name].directives.get("attribute")
        return None if use is None or use.get("ref") is None else use.at("ref")

    def _is_named(self, item: ItemType) -> bool:
        """Say whether a node has a `ref`, or another item names it by its partition key for want of one."""
        return self._declared.items[item.name].keys[0].get("ref") is not None or any(
            item.name in field.refs and self._own_ref(other, field) is None
            for other in self._items.values()
            for field in other.references
        )

    def _check_arguments(self, item: ItemType, paths: set[Path]) -> None:
        for name in RESOLVER_ARGUMENTS:
            if any(path[0] == name for path in paths):
                self._report.add(
                    self._declared.items[item.name].fields[name].node,
                    f"`{item.name}.{name}` is part of its key, and a lookup by key cannot have an argument `{name}`, "
                    "which resolvers use themselves: expected another name. Rename the field, and keep its attribute "
                    f'with @attribute(name: "{item.fields[name].attribute}")',
                )

    def _ways(self, item: ItemType, paths: set[Path]) -> tuple[Access, ...] | None:
        """List the ways that read little more than the item of these fields; None where none leads to it at all."""
        if item.virtual or not item.layouts or not self._tables.are_sure:
            return ()
        bound = dict.fromkeys(paths, SOME_VALUE)
        ways = tuple(way for way in accesses(self._tables, item.layouts, bound) if _narrows(way, paths))
        is_whole = any(self._primary(layout) <= paths for layout in item.layouts)
        return ways if ways or is_whole else None

    def _primary(self, layout: Layout) -> set[Path]:
        names = self._tables.stored(layout.table).key_attributes
        return {variable.path for name in names for variable in layout.templates[name].variables}


def _narrows(way: Access, paths: set[Path]) -> bool:
    """Say whether a way reads less than all items: by a variable in its partition, or a known one in its sort key."""
    for layout in way.layouts:
        partition, sort = (
            [variable for template in templates for variable in template.variables]
            for templates in (layout.partition(way.index), layout.sort(way.index))
        )
        if not partition and not (sort and sort[0].path in paths):
            return False
    return True
