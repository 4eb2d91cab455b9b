"""The references that lead to a node, and the ways to find every item that has one: what a write of the node moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graph.model import Access, Inward, ItemType
from resolvers.sdl.accesses import alike, is_filled, ways_from
from resolvers.sdl.tables import Tables


def inward(items: Mapping[str, ItemType], tables: Tables) -> dict[str, tuple[Inward, ...]]:
    """List for each node type the references of other items that may lead to it."""
    return {node.name: tuple(_inward(items, tables, node.name)) for node in items.values() if node.is_node}


def _inward(items: Mapping[str, ItemType], tables: Tables, node: str) -> Iterator[Inward]:
    for item in items.values():
        for field in item.references:
            if node in field.refs and not item.virtual:
                ways = ways_from(tables, item.layouts, field.name, node)
                whole = [way for way in ways if _finds_all(items, way, field.name)]
                yield Inward(item.name, field.name, alike(whole, field.name))


def _finds_all(items: Mapping[str, ItemType], way: Access, start: str) -> bool:
    """Say whether a way finds every item that names the node by `start`.

    Of a time series nobody knows all tables; and an item that lacks a nullable field is not in an index made of it.
    """
    if way.index.period is not None:
        return False
    return all(is_filled(items, layout, name, start) for layout in way.layouts for name in way.index.key_attributes)
