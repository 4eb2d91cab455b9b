"""What a caller may read of an item that did not come by reads of their own: one just written, or told by a stream."""

from __future__ import annotations

from collections.abc import Iterator

from graph.entity import Entity
from graph.loaders import Operation
from graph.model import FieldKind, ItemType
from graph.permissions import Permissions, Valued
from graph.rules import Right


def visible(operation: Operation, entity: Entity) -> Entity | None:
    """Give of an item what the caller may read of it: the fields that they may, or None where that is not known."""
    permissions = operation.permissions
    if permissions is None:
        return entity
    if not permissions.of(entity.type.name, Right.READ).holds(entity):
        return None
    hidden = set(_hidden(permissions, entity.type, entity))
    if entity.layout is not None:
        hidden |= set(_hidden_copies(permissions, entity))
        hidden -= entity.layout.templates.keys()
    wire = {name: value for name, value in entity.wire.items() if name not in hidden}
    holds = None if entity.holds is None else entity.holds - hidden
    # What was loaded on the way is not the caller's: they load it themselves.
    return Entity(operation.model, entity.type, layout=entity.layout, wire=wire, holds=holds, named=entity.named)


def _hidden(permissions: Permissions, type_: ItemType, item: Valued) -> Iterator[str]:
    """List the attributes of fields that the caller may not read in an item."""
    for field in type_.fields.values():
        if field.kind is not FieldKind.RELATIONSHIP and not permissions.by(field.auth, Right.READ).holds(item):
            yield field.attribute


def _hidden_copies(permissions: Permissions, entity: Entity) -> Iterator[str]:
    """List the attributes of a node that is copied into an item which the caller may not read there."""
    node = entity.end(entity.layout.copy) if entity.layout is not None and entity.layout.copy is not None else None
    if node is None or not node.holds:
        return
    if not permissions.of(node.type.name, Right.READ).holds(node):
        yield from node.holds
    else:
        yield from node.holds & set(_hidden(permissions, node.type, node))
