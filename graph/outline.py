"""The model as plain data, for a picture of it: types, what connects them, and which key or index serves what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from graph.model import Field, Index, ItemType, Layout, Model, Projection, Relationship, Table
from graph.patterns import access_patterns

BY_KEY = "key"
"""What serves a reference: the node's own key, which the item names."""


def outline(model: Model) -> dict[str, Any]:
    """Describe a model.

    `links` are the directions in which one can go: a relationship, or a reference to a node. Two of them with the same
    `id` between the same types are the two directions of one thing in the table.
    """
    patterns = [asdict(pattern) for pattern in access_patterns(model)]
    serving = {pattern["field"].partition("(")[0]: pattern["index"] for pattern in patterns}
    return {
        "tables": [_table(table) for table in model.tables.values()],
        "types": [_type(model, item) for item in model.items.values()],
        "links": [*_relationships(model, serving), *_references(model)],
        "patterns": patterns,
    }


def _table(table: Table) -> dict[str, Any]:
    return {"name": table.name, "indexes": [_index(index) for index in (table.primary, *table.indexes)]}


def _index(index: Index) -> dict[str, Any]:
    held = index.projection
    return {
        "name": index.name or "table",
        "partition": index.partition_keys,
        "sort": index.sort_keys,
        "projection": held.name if isinstance(held, Projection) else sorted(held),
        "local": index.local,
    }


def _type(model: Model, item: ItemType) -> dict[str, Any]:
    named = {path[0] for path in item.named_by}
    return {
        "name": item.name,
        "isNode": item.is_node,
        "isVirtual": item.virtual,
        "description": item.description,
        "table": item.layouts[0].table if item.layouts else None,
        "fields": [_field(field, is_key=field.name in named) for field in item.fields.values()],
        "layouts": [_layout(model, layout) for layout in item.layouts],
    }


def _field(field: Field, *, is_key: bool) -> dict[str, Any]:
    return {
        "name": field.name,
        "type": str(field.type),
        "kind": field.kind.name,
        "isKey": is_key,
        "description": field.description,
    }


def _layout(model: Model, layout: Layout) -> dict[str, Any]:
    table = model.tables[layout.table]
    indexes = [index for index in (table.primary, *table.indexes) if layout.is_in(index)]
    return {
        "name": layout.name,
        "keys": {
            index.name or "table": {name: layout.templates[name].source for name in index.key_attributes}
            for index in indexes
        },
    }


def _relationships(model: Model, serving: dict[str, str]) -> Iterator[dict[str, Any]]:
    for relationship in model.relationships.values():
        index = serving[f"{relationship.source}.{relationship.name}"]
        for target in relationship.targets:
            yield {
                "id": _link_id(relationship),
                "from": relationship.source,
                "field": relationship.name,
                "to": target,
                "isMany": relationship.many,
                "index": index,
                "through": [
                    name for name in relationship.item_types if not model.items[name].is_node and name != target
                ],
                "path": [hop.name for hop in relationship.path],
            }


def _link_id(relationship: Relationship) -> str:
    if relationship.path:
        return f"{relationship.source}.{relationship.name}"
    ends = sorted(filter(None, (relationship.start, relationship.end)))
    return f"{'|'.join(relationship.item_types)}({', '.join(ends)})"


def _references(model: Model) -> Iterator[dict[str, Any]]:
    """List what items refer to, but for edges that one cannot come to: their ends are what relationships lead to."""
    reached = {target for relationship in model.relationships.values() for target in relationship.targets}
    for item in model.items.values():
        if not item.is_node and item.name not in reached:
            continue
        for field in item.references:
            for target in field.refs:
                yield {
                    "id": f"{item.name}({field.name})",
                    "from": item.name,
                    "field": field.name,
                    "to": target,
                    "isMany": field.type.of is not None,
                    "index": BY_KEY,
                    "through": [],
                    "path": [],
                }
