"""Changes of items: every key, copy and counter that is made of a changed field follows it, in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import zip_longest
from typing import Any

from graph.entity import Entity
from graph.errors import InputPath, KeyValueError, TooLarge, WriteError
from graph.model import Field, FieldKind, ItemType, Layout, Model, Moment
from graph.requests import Item, ItemKey
from graph.rules import Right
from graph.tasks import together
from graph.transaction import MOST_ACTIONS, Guard, Rule, shown
from graph.updates import Update, plus
from graph.writes.blobs import store_blobs
from graph.writes.counters import counters_of
from graph.writes.defaults import moment
from graph.writes.dependents import refuse_unkeyable, taken_along
from graph.writes.draft import (
    Draft,
    behind,
    behind_keys,
    keys_made_of,
    paths_of,
    ref_text,
    refuse_unfit,
    written_layouts,
)
from graph.writes.guards import LOCK, absent, present, unchanged
from graph.writes.history import keep_version
from graph.writes.inward import linked
from graph.writes.names import refuse_taken
from graph.writes.naming import by_name, may_have_another_key
from graph.writes.stored import is_stored
from graph.writes.writing import Conditions, Writing


@dataclass(frozen=True, slots=True)
class Patch:
    """What is to become of an item's fields: None removes one.

    `increment` adds to numbers, `append` and `discard` put entries into lists and sets and take them out.
    """

    put: Mapping[str, Any] = field(default_factory=dict)
    increment: Mapping[str, Any] = field(default_factory=dict)
    append: Mapping[str, list[Any]] = field(default_factory=dict)
    discard: Mapping[str, list[Any]] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """List the fields that change."""
        return (*self.put, *self.increment, *self.append, *self.discard)

    @property
    def relative(self) -> tuple[str, ...]:
        """List the fields whose new value depends on the old one."""
        return (*self.increment, *self.append, *self.discard)


async def update(writing: Writing, named: Entity, patch: Patch, asked: Conditions, at: InputPath) -> Entity:
    """Change an item, and everything that is made of the fields changed.

    Cost:   nothing is read where only the item's own attributes change; else the item, and all that holds a copy of it.
    Raises: NotFound, KeyValueError, ConditionFailed, WriteError.
    """
    key, given = named.key, patch.names
    patch = stamped(writing, named.type, patch)
    patch = replace(patch, put=await store_blobs(writing.operation, named.type, patch.put, key or named.paths))
    is_plain_ = is_plain(writing.model, named.type, patch)
    refuse_unkeyable(writing.model, named.type, patch.put)
    is_sure = writing.rights.is_sure(named, Right.UPDATE, given, asked.looked_at(named.type))
    if key is not None and is_plain_ and is_sure and not writing.must_decide(named.type, asked):
        return _update_plainly(writing, named, key, patch, asked, at)
    before, guards = await writing.take(named, Right.UPDATE, at, given, asked)
    return await change(writing, before, patch, asked, at, given=given, guards=guards)


def stamped(writing: Writing, type_: ItemType, patch: Patch) -> Patch:
    """Add the fields that take the time of every write."""
    stamps = {
        entry.name: moment(entry, writing.now)
        for entry in type_.fields.values()
        if entry.default is not None and entry.default.now is Moment.WRITE and entry.name not in patch.names
    }
    return Patch({**stamps, **patch.put}, patch.increment, patch.append, patch.discard)


# --- what concerns the item's own attributes alone ----------------------------------------------------------------


def is_plain(model: Model, type_: ItemType, patch: Patch) -> bool:
    """Say whether a patch changes attributes of the item that nothing else is made of."""
    names = patch.names
    lists = [name for name in patch.discard if not type_.fields[name].is_set]
    return not (
        lists
        or type_.history
        or any(type_.fields[name].kind is FieldKind.REFERENCE for name in names)
        or any(layout.mirror or any(keys_made_of(layout, names)) for layout in written_layouts(model, type_))
        or any(counter.summed in names for counter in counters_of(model, type_))
        or any(True for _ in taken_along(model, type_, names))
    )


def _update_plainly(
    writing: Writing, named: Entity, key: ItemKey, patch: Patch, asked: Conditions, at: InputPath
) -> Entity:
    type_, guards = named.type, [present(named.type, key, writing.operation.now, at)]
    made = _as_update(type_, patch)
    if type_.version is not None:
        version: Mapping[str, Any] = {type_.fields[type_.version].attribute: {"N": "1"}}
        made = made.merged(Update(add=version)) or made
    writing.transaction.update(key, made, [*guards, *writing.conditions(type_, key, asked, at)], at)
    known = frozenset((*made.put, *made.remove))
    return Entity(writing.model, type_, wire=made.put, holds=known, named=named.paths)


def _as_update(type_: ItemType, patch: Patch) -> Update:
    def written(values: Mapping[str, Any]) -> dict[str, Any]:
        return {type_.fields[name].attribute: type_.fields[name].write(value) for name, value in values.items()}

    put = {name: value for name, value in patch.put.items() if not _is_nothing(type_.fields[name], value)}
    gone = frozenset(type_.fields[name].attribute for name in patch.put.keys() - put.keys())
    added = {name: values for name, values in patch.append.items() if values}
    to_sets = {name: values for name, values in added.items() if type_.fields[name].is_set}
    to_lists = {name: values for name, values in added.items() if name not in to_sets}
    discarded = {name: values for name, values in patch.discard.items() if values}
    return Update(
        written(put), gone, written(patch.increment) | written(to_sets), written(to_lists), written(discarded)
    )


def _is_nothing(entry: Field, value: Any) -> bool:
    return value is None or (entry.is_set and not value)


# --- what concerns more -------------------------------------------------------------------------------------------


async def change(
    writing: Writing,
    before: Entity,
    patch: Patch,
    asked: Conditions,
    at: InputPath,
    rule: Rule = Rule.PRESENT,
    *,
    given: Collection[str],
    guards: Collection[Guard],
) -> Entity:
    """Change an item that was read, and all that is made of it; the write rests on what was read.

    `given` are the fields that the caller changes, and `guards` keep their right to change the item as it is.
    """
    key, type_ = writing.key(before), before.type
    old = Draft.of(before)
    values = {name: value for name, value in patched(old, patch).items() if not is_same(old, name, value)}
    references = [entry for entry in type_.references if entry.name in values]
    summed = [c.summed for c in counters_of(writing.model, type_) if c.summed in values]
    watched = [*patch.relative, *(name for name in summed if name)]
    if type_.version is not None:
        watched.append(type_.version)
        values[type_.version] = (old.values.get(type_.version) or 0) + 1
    after = old.changed(values)
    refuse_unfit(after)
    writing.rights.refuse_draft(after, Right.UPDATE, [name for name in given if name in values])
    await writing.refuse_unseen(after, [entry.name for entry in references], at)
    refuse_unkeyable(writing.model, type_, values)
    naming = {variable.path[0] for variable in type_.ref.variables} if type_.ref is not None else set()
    if may_have_another_key(writing.model, type_) and not naming.isdisjoint(values):
        await refuse_taken(writing, by_name(after), at)
    guards = [
        present(type_, key, writing.operation.now, at, rule),
        *guards,
        *writing.conditions(type_, key, asked, at),
        *writing.decide(before, key, asked, at),
        *unchanged(before, key, [type_.fields[name].attribute for name in watched], at),
    ]
    await writing.complete(after, behind(writing.model, after, values), at)
    item = await rewrite(writing, before, after, frozenset(values), guards, at)
    for entry in references:
        await writing.check_node(after, entry, at)
    if references:
        await writing.release(old, at)
        await writing.meet(after, at)
    if references or summed:
        await writing.count(old, after, at)
    return Entity(writing.model, type_, layout=after.layouts[0], wire=item, holds=None)


def is_same(old: Draft, name: str, value: Any) -> bool:
    """Say whether a value is the one that an item has."""
    known = old.values.get(name)
    if isinstance(value, (Draft, Entity)) and isinstance(known, (Draft, Entity)):
        entry = old.type.fields[name]
        return value.type is known.type and ref_text(entry, value) == ref_text(entry, known)
    return bool(value == known)


def patched(old: Draft, patch: Patch) -> dict[str, Any]:
    """Work out the new values of the fields that a patch names."""
    values = dict(patch.put)
    for name, delta in patch.increment.items():
        entry, value = old.type.fields[name], old.values.get(name)
        total = plus(Decimal(str(value or 0)), Decimal(str(delta)))
        assert entry.scalar is not None
        values[name] = entry.scalar.check(total)
    # What is not there stays so where nothing is put in or taken out, as DynamoDB has it.
    for name, entries in patch.append.items():
        known = old.values.get(name) or []
        is_set = old.type.fields[name].is_set
        new = [entry for entry in entries if not (is_set and entry in known)]
        values[name] = known + new if new else old.values.get(name)
    for name, entries in patch.discard.items():
        known = old.values.get(name)
        values[name] = known and [entry for entry in known if entry not in entries]
    return values


async def rewrite(
    writing: Writing, before: Entity, after: Draft, changed: Collection[str], guards: list[Guard], at: InputPath
) -> Item:
    """Write the items of a draft in the place of what was read, and all items that name it; give its first item."""
    key = writing.key(before)
    if key in writing.seen:
        raise WriteError(
            f"one transaction would change the {before.type.name} {shown(key)} in two ways: send them one after the "
            "other",
            at,
        )
    writing.seen.add(key)
    old = Draft.of(before)
    for draft in (old, after):
        await writing.complete(draft, behind_keys(writing.model, draft), at)
    first: Item = {}
    for layout, target in zip_longest(old.written_layouts, after.written_layouts):
        if layout is None or target is None:
            raise KeyValueError(f"no item of {before.type.name} has these ends: name nodes of other types")
        if target.mirror:
            await _rewrite_mirror(writing, old.key(layout), after, target, changed, at)
        else:
            first = _rewrite_first(writing, before, after, target, changed, guards, at)
    await _rewrite_dependents(writing, before, after, changed, at)
    return first


def _rewrite_first(
    writing: Writing,
    before: Entity,
    after: Draft,
    layout: Layout,
    changed: Collection[str],
    guards: list[Guard],
    at: InputPath,
) -> Item:
    """Write the item that was read, in its place or in another one."""
    old_key, key = writing.key(before), after.key(layout)
    attributes = after.rewritten(layout, changed)
    item = _applied(before.wire, attributes)
    if key == old_key:
        names = {name for name, _ in key[1]}
        put = {n: v for n, v in attributes.items() if v is not None and n not in names and v != before.wire.get(n)}
        gone = frozenset(n for n, v in attributes.items() if v is None and n in before.wire and n not in names)
        guards = [*guards, *unchanged(before, key, _made_of(writing.model, before.type, layout, changed), at)]
        writing.transaction.update(key, Update(put, gone), guards, at)
    elif after.type.history is not None:
        raise KeyValueError(
            f"{before.type.name} keeps its history under its key, which therefore stays: leave the fields of the key, "
            "or create another one"
        )
    else:
        guards = [*guards, *unchanged(before, old_key, before.wire.keys() - {LOCK}, at)]
        writing.transaction.delete(old_key, guards, at, is_moved=True)
        writing.transaction.put(key, item, [absent(after.type, key, writing.operation.now, at)], at)
    if after.type.version in changed:
        keep_version(writing, after, item, at)
    return item


def _made_of(model: Model, type_: ItemType, layout: Layout, changed: Collection[str]) -> Iterator[str]:
    """List the key attributes that are made anew, and the attributes of what they are made of."""
    for name in keys_made_of(layout, changed):
        yield name
        for path in paths_of(layout.templates[name]):
            if is_stored(model, type_, type_.fields[path[0]]):
                yield type_.fields[path[0]].attribute


def _applied(item: Item, attributes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**item, **attributes}
    return {name: value for name, value in merged.items() if value is not None and name != LOCK}


async def _rewrite_mirror(
    writing: Writing, old_key: ItemKey, after: Draft, layout: Layout, changed: Collection[str], at: InputPath
) -> None:
    key = after.key(layout)
    attributes = after.rewritten(layout, changed)
    if key == old_key:
        names = {name for name, _ in key[1]}
        put = {name: value for name, value in attributes.items() if value is not None and name not in names}
        gone = frozenset(name for name, value in attributes.items() if value is None)
        guard = present(after.type, key, writing.operation.now, at, Rule.MIRRORED)
        if put or gone:
            writing.transaction.update(key, Update(put, gone), [guard], at)
        return
    (mirror,) = await writing.operation.items([old_key])
    if mirror is not None:
        # It holds a copy that the first item does not: what is moved must be what is there.
        read = Entity(writing.model, after.type, wire=mirror)
        guards = unchanged(read, old_key, mirror.keys() - {LOCK}, at)
        writing.transaction.delete(old_key, guards, at)
        writing.transaction.put(key, _applied(mirror, attributes), (), at)
        return
    writing.transaction.delete(old_key, (), at)
    # One that was lost is made anew, of nothing but what the model says.
    made = Draft(after.model, after.type, after.values)
    await writing.complete(made, behind(writing.model, made, made.type.fields), at)
    writing.transaction.put(key, made.item(layout), (), at)


# --- what is made of a node elsewhere -----------------------------------------------------------------------------


async def _rewrite_dependents(
    writing: Writing, before: Entity, after: Draft, changed: Collection[str], at: InputPath
) -> None:
    dependents, key = list(taken_along(writing.model, before.type, changed)), writing.key(before)
    if not dependents:
        return
    await take_lock(writing, before, key, at)
    found: dict[ItemKey, tuple[Entity, list[str]]] = {}
    most = writing.operation.limits.max_cascade
    groups = await together([linked(writing.operation, inward, before, most) for inward in dependents])
    for inward, items in zip(dependents, groups, strict=True):
        for item in items:
            # A node may be at both ends of an edge.
            found.setdefault(writing.key(item), (item, []))[1].append(inward.field)
    if len(found) > MOST_ACTIONS:
        raise TooLarge(
            f"{len(found)} items hold what changes of the {before.type.name} {shown(key)}, and all would be rewritten "
            f"in one transaction, which DynamoDB lets touch {MOST_ACTIONS}: change or delete some of them first",
            at,
        )
    for item_key, (item, names) in found.items():
        new = Draft.of(item).changed(dict.fromkeys(names, after))
        await writing.complete(new, behind(writing.model, new, names), at)
        guard = present(item.type, item_key, writing.operation.now, at, Rule.UNCHANGED)
        await rewrite(writing, item, new, names, [guard], at)


async def take_lock(writing: Writing, node: Entity, key: ItemKey, at: InputPath) -> None:
    """Keep others from linking a node until the transaction is done, which takes the lock away again."""
    guard = await writing.locks.take(node, key, at)
    change = writing.transaction.changes.get(key)
    if change is not None and change.delete:
        change.guards.append(guard)
    else:
        writing.transaction.update(key, Update(remove=frozenset((LOCK,))), [guard], at)
