"""New items: with the nodes that come along, what hangs on them, and everything that must be right about their ends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from graph.entity import Entity
from graph.errors import InputError, InputPath
from graph.keys import Path
from graph.lookups import by_keys
from graph.model import FieldKind, ItemType
from graph.rules import Right
from graph.tasks import together
from graph.transaction import Guard, Rule
from graph.writes.blobs import store_blobs
from graph.writes.changing import Patch, change, is_same, stamped
from graph.writes.defaults import initial
from graph.writes.draft import Draft, behind, paths_of, refuse_unfit
from graph.writes.guards import absent, name_of
from graph.writes.history import keep_version
from graph.writes.names import claim, is_taken, refuse_taken
from graph.writes.naming import by_name, may_have_another_key
from graph.writes.rights import implied_fields
from graph.writes.writing import NO_CONDITIONS, Conditions, Writing, taken


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item to be created, as the caller describes it; what is not among `values` takes its default.

    A reference's value is the node that it names (Entity), or one that is created along with it (NewItem). `lists` are
    the items to be created behind relationships, each without its reference back.
    """

    type: ItemType
    values: Mapping[str, Any]
    lists: Mapping[str, tuple[NewItem, ...]] = field(default_factory=dict)
    at: InputPath = ()

    @property
    def given(self) -> list[str]:
        """List the fields that the caller gives: the node behind whose relationship it comes is not among them."""
        return [name for name, value in self.values.items() if not isinstance(value, Draft)]


async def create(writing: Writing, new: NewItem) -> Draft | Entity:
    """Create an item, the nodes that it brings along, and what hangs on it.

    Cost:   reads only what its keys and copies hold of other nodes, for the transaction checks that these are there;
            where the key of a node holds more than what names it, one Query for a node of this name.
    Raises: AlreadyExists, NotFound, KeyValueError, WriteError, Forbidden.
    """
    refuse(writing, new, Right.CREATE)
    draft = await _draft(writing, new)
    writing.rights.refuse_draft(draft, Right.CREATE, new.given)
    await _complete(writing, draft, new.at)
    is_named = may_have_another_key(writing.model, new.type)
    taken = [refuse_taken(writing, by_name(draft), new.at)] if is_named else []
    await together([*taken, _know_keys(writing, draft, new.at)])
    await _put(writing, draft, new.at)
    await _hang(writing, new, draft, create)
    return draft


async def upsert(writing: Writing, new: NewItem) -> Draft | Entity:
    """Create an item, or change the one that is there so that it has the values given.

    Cost:   reads the item, beside what creating it reads.
    Raises: NotFound, KeyValueError, WriteError, Forbidden.
    """
    refuse(writing, new, Right.CREATE, Right.UPDATE)
    draft = await _draft(writing, new)
    await _complete(writing, draft, new.at)
    if may_have_another_key(writing.model, new.type):
        found = await claim(writing, by_name(draft), new.at)
    else:
        (found,) = await by_keys(writing.operation, [_keyed(draft)])
    if found is None or not (writing.rights.sees(found) or writing.rights.has(found, Right.UPDATE)):
        writing.rights.refuse_draft(draft, Right.CREATE, new.given)
    if found is None:
        await _put(writing, draft, new.at, Rule.UNCHANGED)
        await _hang(writing, new, draft, upsert)
        return draft
    given = {name: draft.values[name] for name in new.values}
    guards = _rest(writing, found, draft, new)
    patch = stamped(writing, new.type, Patch(given))
    changed = await change(writing, found, patch, NO_CONDITIONS, new.at, Rule.UNCHANGED, given=new.given, guards=guards)
    await _hang(writing, new, Draft.of(changed), upsert)
    return changed


def _rest(writing: Writing, found: Entity, draft: Draft, new: NewItem) -> list[Guard]:
    """Ask for the right to change the item that is there. Raises Forbidden, and AlreadyExists where it is hidden."""
    key = writing.key(found)
    if not (writing.rights.sees(found) or writing.rights.has(found, Right.UPDATE)):
        # As to whoever creates it, and with no more of its key than what was given.
        is_named = may_have_another_key(writing.model, new.type)
        raise is_taken(by_name(draft), new.at) if is_named else taken(name_of(new.type, key), new.at)
    old = Draft.of(found)
    changed = [name for name in new.given if not is_same(old, name, draft.values[name])]
    return writing.rights.rest(found, key, Right.UPDATE, new.at, changed)


def refuse(writing: Writing, new: NewItem, *rights: Right) -> None:
    """Refuse items that the caller may not create, whatever they are, and what comes along. Raises Forbidden."""
    writing.rights.refuse(new.type, *rights, fields=[*new.given, *new.lists])
    for value in new.values.values():
        if isinstance(value, NewItem):
            refuse(writing, value, Right.CREATE)
    for entry in chain.from_iterable(new.lists.values()):
        refuse(writing, entry, *rights)


def refuse_update(writing: Writing, type_: ItemType, patch: Patch, asked: Conditions) -> None:
    """Refuse changes that the caller may make to no item, whatever they are, and what comes along. Raises Forbidden."""
    writing.rights.refuse(type_, Right.UPDATE, fields=patch.names)
    if looked_at := asked.looked_at(type_):
        writing.rights.refuse(type_, Right.READ, fields=looked_at)
    for value in patch.put.values():
        if isinstance(value, NewItem):
            refuse(writing, value, Right.CREATE)


async def with_nodes(writing: Writing, values: Mapping[str, Any]) -> dict[str, Any]:
    """Create the nodes that come along with some values, and take those that the transaction creates for what they are.

    Raises: AlreadyExists, NotFound, KeyValueError, WriteError.
    """
    made = dict(values)
    for name, value in values.items():
        if isinstance(value, NewItem):
            made[name] = await create(writing, value)
        elif isinstance(value, Entity):
            made[name] = writing.known(value)
    return made


async def _draft(writing: Writing, new: NewItem) -> Draft:
    """Take the values given, make those that are not, and create the nodes that come along. Raises InputError."""
    implied = writing.rights.implied(new.type, Right.CREATE)
    said = {name for name, value in new.values.items() if value is not None}
    for name in implied_fields(new.type) - said - implied.keys():
        if new.type.fields[name].type.required and new.type.fields[name].default is None:
            raise InputError(
                f"`{'.'.join(map(str, (*new.at, name)))}` is left out: expected it, for your credentials do not say "
                "which one"
            )
    given = implied | await with_nodes(writing, new.values)
    values = {
        entry.name: given[entry.name] if entry.name in given else initial(new.type, entry, writing.now)
        for entry in new.type.fields.values()
        if entry.kind is not FieldKind.RELATIONSHIP
    }
    draft = Draft(writing.model, new.type, values)
    refuse_unfit(draft)
    return draft


async def _complete(writing: Writing, draft: Draft, at: InputPath) -> None:
    """Read what is copied of the nodes that a draft names, which the caller may read, and store its large values."""
    await writing.refuse_unseen(draft, [entry.name for entry in draft.type.references], at)
    await writing.complete(draft, behind(writing.model, draft, draft.type.fields), at)
    draft.values = await store_blobs(writing.operation, draft.type, draft.values, draft.key())


async def _put(writing: Writing, draft: Draft, at: InputPath, rule: Rule = Rule.ABSENT) -> None:
    """Put the items of a draft, check the nodes that it names, and have it counted."""
    for layout in draft.written_layouts:
        key = draft.key(layout)
        guards = [] if layout.mirror else [absent(draft.type, key, writing.operation.now, at, rule)]
        writing.transaction.put(key, draft.item(layout), guards, at)
    keep_version(writing, draft, draft.item(draft.layouts[0]), at)
    for entry in draft.type.references:
        await writing.check_node(draft, entry, at)
    await writing.count(None, draft, at)
    await writing.meet(draft, at)
    writing.created.append(draft)
    if draft.type.is_node:
        writing.require(draft, at)


Write = Callable[[Writing, NewItem], Coroutine[Any, Any, Draft | Entity]]


async def _hang(writing: Writing, new: NewItem, draft: Draft, write: Write) -> None:
    """Write the items behind the relationships of a new one."""
    for name, entries in new.lists.items():
        start = writing.model.relationships[new.type.name, name].start
        whole = [replace(entry, values={**entry.values, start: draft}) for entry in entries]
        await together([write(writing, entry) for entry in whole])


# --- is it there already? -----------------------------------------------------------------------------------------


async def _know_keys(writing: Writing, draft: Draft, at: InputPath) -> None:
    """Have those nodes read together that are only found by a Query: each is asked for again when it is checked."""
    nodes = [(entry.name, draft.values.get(entry.name)) for entry in draft.type.references]
    known = [(name, node) for name, node in nodes if isinstance(node, Entity) and not node.type.virtual]
    await together([writing.key_of(node, (*at, name)) for name, node in known])


def _keyed(draft: Draft) -> Entity:
    """Name an item by its key."""
    layout = draft.layouts[0]
    keys = [layout.templates[name] for name in draft.model.tables[layout.table].key_attributes]
    draft.key(layout)
    paths = [path for template in keys for path in paths_of(template)]
    return Entity(draft.model, draft.type, named=_values_at(draft, paths))


def _values_at(draft: Draft, paths: Any) -> dict[Path, Any]:
    return {path: draft.at(path) for path in paths}
