"""What a caller may read of an item that did not come by reads of their own: one just written, or told by a stream."""

from __future__ import annotations

from graph.entity import Entity
from graph.loaders import Operation
from graph.rules import Right


def visible(operation: Operation, entity: Entity) -> Entity | None:
    """Give of an item what the caller may read of it, or None where that is nothing, or not known without reading it.

    What was loaded on the way is not the caller's: they load it themselves.
    """
    permissions, sight = operation.permissions, operation.sight
    if permissions is None or sight is None:
        return entity
    if entity.holds is None:
        wire = dict(entity.wire)
        table = entity.type.layouts[0].table if entity.layout is None else entity.layout.table
        is_shown = sight.shows(sight.ruled(table), wire)
        return Entity(operation.model, entity.type, layout=entity.layout, wire=wire, holds=None) if is_shown else None
    ruled = [entity.type.auth, *(field.auth for field in entity.type.fields.values())]
    return entity if all(permissions.by(rules, Right.READ).holds(entity) for rules in ruled) else None
