"""Deletions: an item goes with its mirrors, its counts, and, when that is asked for, with what cannot be without it."""

from __future__ import annotations

from graph.entity import Entity
from graph.errors import HasEdges, InputPath
from graph.model import Inward, ItemType, Model
from graph.requests import ItemKey
from graph.transaction import Guard, Rule
from graph.writes.counters import counters_of
from graph.writes.draft import Draft, behind_keys
from graph.writes.guards import name_of, present, unchanged
from graph.writes.inward import linked
from graph.writes.writing import Conditions, Writing

SHOWN = 3


async def delete(writing: Writing, named: Entity, asked: Conditions, at: InputPath, *, cascade: bool) -> Entity:
    """Delete an item and give it as it was; a node that is linked only with `cascade`, and its edges with it.

    Cost:   one read; for a node that others may name a lock, and one Query for each of those ways.
    Raises: NotFound, HasEdges, ConditionFailed, WriteError.
    """
    before = await writing.read(named, at)
    key = writing.key(before)
    guards = [
        present(before.type, key, writing.operation.now, at),
        *writing.conditions(before.type, key, asked, at),
        *writing.decide(before, key, asked, at),
    ]
    await _delete(writing, before, guards, at, cascade=cascade)
    return before


async def _delete(writing: Writing, before: Entity, guards: list[Guard], at: InputPath, *, cascade: bool) -> None:
    key = writing.key(before)
    if key in writing.seen:
        return
    writing.seen.add(key)
    inward = writing.model.inward.get(before.type.name, ()) if before.type.is_node else ()
    if inward:
        guards = [*guards, await writing.locks.take(before, key, at)]
        most = writing.operation.limits.max_cascade if cascade else SHOWN
        for way in inward:
            found = [item for item in await linked(writing.operation, way, before, most) if not _is_seen(writing, item)]
            if found and not (cascade and may_go_along(writing.model, way)):
                raise _linked(before.type, key, way, found, at)
            for item in found:
                guard = present(item.type, writing.key(item), writing.operation.now, at, Rule.UNCHANGED)
                await _delete(writing, item, [guard], at, cascade=cascade)
    await remove(writing, before, guards, at)


def _is_seen(writing: Writing, item: Entity) -> bool:
    change = writing.transaction.changes.get(writing.key(item))
    return writing.key(item) in writing.seen or (change is not None and change.delete)


def may_go_along(model: Model, way: Inward) -> bool:
    """Say whether an item cannot be without the node that it names: an edge, or one whose key is made of the node's."""
    item = model.items[way.item_type]
    names = model.tables[item.layouts[0].table].key_attributes
    variables = [v for name in names for v in item.layouts[0].templates[name].variables]
    return not item.is_node or any(variable.path[0] == way.field for variable in variables)


def _linked(type_: ItemType, key: ItemKey, way: Inward, found: list[Entity], at: InputPath) -> HasEdges:
    count = f"{len(found)} or more" if len(found) >= SHOWN else str(len(found))
    names = ", ".join(name_of(item.type, item.key) for item in found[:SHOWN] if item.key)
    return HasEdges(
        f"{name_of(type_, key)} is the `{way.field}` of {count} {way.item_type} ({names}): delete those first, or give "
        "`cascade: true`, which deletes edges and what lies under the node's key along with it",
        at,
    )


async def remove(writing: Writing, before: Entity, guards: list[Guard], at: InputPath) -> None:
    """Delete the items of what was read, and take it off the counters."""
    old = Draft.of(before)
    await writing.complete(old, behind_keys(writing.model, old), at)
    summed = [counter.summed for counter in counters_of(writing.model, before.type) if counter.summed]
    attributes = [before.type.fields[name].attribute for name in summed]
    for layout in old.layouts:
        if layout.mirror:
            writing.transaction.delete(old.key(layout), (), at)
        else:
            key = writing.key(before)
            writing.transaction.delete(key, [*guards, *unchanged(before, key, attributes, at)], at)
    await writing.count(old, None, at)
    await writing.release(old, at)
