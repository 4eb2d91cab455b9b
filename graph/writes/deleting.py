"""Deletions: an item goes with its mirrors, its counts, and, when that is asked for, with what cannot be without it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from graph.entity import Entity
from graph.errors import HasEdges, InputPath, NotFound, TooLarge, WriteError
from graph.model import Inward, ItemType, Model
from graph.requests import ItemKey
from graph.rules import Right
from graph.tasks import together
from graph.transaction import Guard, Rule
from graph.writes.counters import counters_of
from graph.writes.draft import Draft, behind_keys, written_layouts
from graph.writes.guards import name_of, present, unchanged
from graph.writes.history import drop_versions, version_count
from graph.writes.inward import linked
from graph.writes.writing import Conditions, Writing

SHOWN = 3
MOST_AT_ONCE = 90
"""How many items the deletions of one transaction touch, with room for locks and checks."""

FEW_VERSIONS = 50


@dataclass(slots=True)
class _Along:
    """What goes along with a node, in the order of going: every item before the one that it names."""

    items: list[tuple[Entity, list[Guard]]] = field(default_factory=list)
    is_cut: bool = False
    """There is more than one mutation takes along."""


async def delete(writing: Writing, named: Entity, asked: Conditions, at: InputPath, *, cascade: bool) -> Entity:
    """Delete an item and give it as it was; a node that is linked only with `cascade`, and its edges with it.

    Cost:   one read; for a node that others may name a lock, and one Query for each of those ways. What goes along
            goes in the same transaction where it fits in there, else before it in several.
    Raises: NotFound, HasEdges, ConditionFailed, TooLarge, WriteError; Forbidden, also where a node that lies under its
            key would go along which the caller may not delete. Edges go along, whosoever they are.
    """
    writing.rights.refuse(named.type, Right.DELETE)
    if looked_at := asked.looked_at(named.type):
        writing.rights.refuse(named.type, Right.READ, fields=looked_at)
    before, rest = await writing.take(named, Right.DELETE, at, (), asked)
    key = writing.key(before)
    if key in writing.gone:
        raise NotFound(f"there is no {name_of(before.type, key)} any more: the same transaction deletes it", at)
    guards = [
        present(before.type, key, writing.operation.now, at),
        *rest,
        *writing.conditions(before.type, key, asked, at),
        *writing.decide(before, key, asked, at),
    ]
    along = _Along()
    await _gather(writing, along, before, guards, at, cascade=cascade)
    if writing.is_alone:
        await _drop_in_parts(writing, along, at)
    if writing.is_alone and (along.is_cut or _weight(writing.model, along.items) > MOST_AT_ONCE):
        await _remove_in_parts(writing, along, at)
    if along.is_cut:
        raise TooLarge(
            f"{name_of(before.type, key)} is linked by more items than go along with one mutation. "
            f"{writing.operation.limits.max_cascade} are deleted: send the same again to go on",
            at,
        )
    await _remove_all(writing, along.items, at)
    return before


async def _remove_in_parts(writing: Writing, along: _Along, at: InputPath) -> None:
    """Delete what goes along in transactions of its own, and leave the item itself for the last one."""
    *others, last = along.items
    along.items = [last]
    for item, _ in others:
        await writing.release(Draft.of(item), at)
    writing.refuse_unmet()
    while others:
        part: list[tuple[Entity, list[Guard]]] = []
        while others and _weight(writing.model, [*part, others[0]]) <= MOST_AT_ONCE:
            part.append(others.pop(0))
        await writing.part(partial(_remove_all, items=part, at=at))


async def _drop_in_parts(writing: Writing, along: _Along, at: InputPath) -> None:
    """Delete the earlier versions of items that have too many for one transaction, the last ones left."""
    for item, _ in along.items:
        draft = Draft.of(item)
        first, last = 1, version_count(draft)
        while last - first >= FEW_VERSIONS:
            numbers = range(first, first + FEW_VERSIONS)
            await writing.part(partial(_drop, draft=draft, numbers=numbers, at=at))
            writing.dropped[writing.key(item)] = first = numbers.stop


async def _drop(writing: Writing, draft: Draft, numbers: range, at: InputPath) -> None:
    drop_versions(writing, draft, numbers, at)


def _weight(model: Model, items: list[tuple[Entity, list[Guard]]]) -> int:
    """Count the items that a transaction touches at most: those that go, their mirrors, and what counts them."""
    mirrors = sum(len({layout.mirror for layout in written_layouts(model, item.type)}) for item, _ in items)
    mirrors += sum(min(version_count(Draft.of(item)), FEW_VERSIONS) for item, _ in items)
    return mirrors + sum(len(list(counters_of(model, item.type))) for item, _ in items)


async def _remove_all(writing: Writing, items: list[tuple[Entity, list[Guard]]], at: InputPath) -> None:
    for item, guards in items:
        await remove(writing, item, guards, at)


async def _gather(
    writing: Writing, along: _Along, before: Entity, guards: list[Guard], at: InputPath, *, cascade: bool
) -> None:
    """Find what goes along with an item, and lock the nodes among it. Raises HasEdges."""
    key = writing.key(before)
    if key in writing.gone:
        return
    if key in writing.seen:
        raise WriteError(
            f"{name_of(before.type, key)} is changed by the transaction that deletes it: leave out one of the two", at
        )
    writing.seen.add(key)
    writing.gone.add(key)
    inward = writing.model.inward.get(before.type.name, ()) if before.type.is_node else ()
    if inward:
        guards = [*guards, await writing.locks.take(before, key, at)]
    most = writing.operation.limits.max_cascade if cascade else SHOWN
    groups = await together([linked(writing.operation, way, before, most, is_cut_short=True) for way in inward])
    for way, group in zip(inward, groups, strict=True):
        found = [item for item in group if writing.key(item) not in writing.gone]
        if found and not (cascade and may_go_along(writing.model, way)):
            raise _linked(before.type, key, way, found, [one for one in found if writing.rights.sees(one)], at)
        along.is_cut |= cascade and len(group) == most
        for item in found:
            item_key = writing.key(item)
            own = [present(item.type, item_key, writing.operation.now, at, Rule.UNCHANGED)]
            if item.type.is_node:
                own += writing.rights.rest(item, item_key, Right.DELETE, at)
            await _gather(writing, along, item, own, at, cascade=cascade)
    along.items.append((before, guards))


def may_go_along(model: Model, way: Inward) -> bool:
    """Say whether an item cannot be without the node that it names: an edge, or one whose key is made of the node's."""
    item = model.items[way.item_type]
    names = model.tables[item.layouts[0].table].key_attributes
    variables = [v for name in names for v in item.layouts[0].templates[name].variables]
    return not item.is_node or any(variable.path[0] == way.field for variable in variables)


def _linked(
    type_: ItemType, key: ItemKey, way: Inward, found: list[Entity], seen: list[Entity], at: InputPath
) -> HasEdges:
    count = f"{len(found)} or more" if len(found) >= SHOWN else str(len(found))
    names = ", ".join(name_of(item.type, item.key) for item in seen[:SHOWN] if item.key)
    which = f"{count} {way.item_type} ({names})" if len(seen) == len(found) else f"some {way.item_type}"
    return HasEdges(
        f"{name_of(type_, key)} is the `{way.field}` of {which}: delete those first, or give "
        "`cascade: true`, which deletes edges and what lies under the node's key along with it",
        at,
    )


async def remove(writing: Writing, before: Entity, guards: list[Guard], at: InputPath) -> None:
    """Delete the items of what was read, and take it off the counters."""
    old = Draft.of(before)
    await writing.complete(old, behind_keys(writing.model, old), at)
    summed = [counter.summed for counter in counters_of(writing.model, before.type) if counter.summed]
    attributes = [before.type.fields[name].attribute for name in summed]
    for layout in old.written_layouts:
        if layout.mirror:
            writing.transaction.delete(old.key(layout), (), at)
        else:
            key = writing.key(before)
            writing.transaction.delete(key, [*guards, *unchanged(before, key, attributes, at)], at)
    drop_versions(writing, old, range(writing.dropped.get(writing.key(before), 1), version_count(old) + 1), at)
    await writing.count(old, None, at)
    await writing.release(old, at)
