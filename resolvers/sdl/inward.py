"""The references that lead to a node, and the ways to find every item that has one: what a write of the node moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graph.model import Access, CopyMode, Inward, ItemType, Layout
from resolvers.sdl.accesses import alike, is_filled, needs, ways_from
from resolvers.sdl.tables import Tables


def inward(items: Mapping[str, ItemType], tables: Tables) -> dict[str, tuple[Inward, ...]]:
    """List for each node type the references of other items that may lead to it."""
    return {node.name: tuple(_inward(items, tables, node.name)) for node in items.values() if node.is_node}


def _inward(items: Mapping[str, ItemType], tables: Tables, node: str) -> Iterator[Inward]:
    for item in items.values():
        for field in item.references:
            if node in field.refs and item.layouts and not item.virtual:
                ways = ways_from(tables, _trusted(tables, item), field.name, node)
                whole = [way for way in ways if _finds_all(items, way, field.name)]
                if _is_followed(tables, items[node]):
                    # What else an index key holds of the node is behind for a while.
                    whole = [way for way in whole if set(needs(way, field.name)) <= items[node].named_by]
                yield Inward(item.name, field.name, alike(whole, field.name))


def _trusted(tables: Tables, item: ItemType) -> tuple[Layout, ...]:
    """List the layouts whose items are there as soon as one is written: mirrors may follow by the stream."""
    is_followed = _is_followed(tables, item)
    return tuple(layout for layout in item.layouts if not (layout.mirror and is_followed))


def _is_followed(tables: Tables, item: ItemType) -> bool:
    return bool(item.layouts) and tables.stored(item.layouts[0].table).copies is CopyMode.STREAM


def _finds_all(items: Mapping[str, ItemType], way: Access, start: str) -> bool:
    """Say whether a way finds every item that names the node by `start`.

    Of a time series nobody knows all tables; and an item that lacks a nullable field is not in an index made of it.
    """
    if way.index.period is not None:
        return False
    return all(is_filled(items, layout, name, start) for layout in way.layouts for name in way.index.key_attributes)
