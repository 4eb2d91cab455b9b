"""New items: with the nodes that come along, what hangs on them, and everything that must be right about their ends."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from graph.entity import Entity
from graph.errors import InputPath
from graph.keys import Path
from graph.lookups import by_keys
from graph.model import FieldKind, ItemType
from graph.tasks import together
from graph.transaction import Rule
from graph.writes.blobs import store_blobs
from graph.writes.changing import Patch, change, stamped
from graph.writes.defaults import initial
from graph.writes.draft import Draft, behind, paths_of, refuse_unfit
from graph.writes.guards import absent
from graph.writes.history import keep_version
from graph.writes.names import claim, refuse_taken
from graph.writes.naming import by_name, may_have_another_key
from graph.writes.writing import NO_CONDITIONS, Writing


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


async def create(writing: Writing, new: NewItem) -> Draft | Entity:
    """Create an item, the nodes that it brings along, and what hangs on it.

    Cost:   reads only what its keys and copies hold of other nodes, for the transaction checks that these are there;
            where the key of a node holds more than what names it, one Query for a node of this name.
    Raises: AlreadyExists, NotFound, KeyValueError, WriteError.
    """
    draft = await _draft(writing, new)
    is_named = may_have_another_key(writing.model, new.type)
    taken = [refuse_taken(writing, by_name(draft), new.at)] if is_named else []
    await together([*taken, _know_keys(writing, draft, new.at)])
    await _put(writing, draft, new.at)
    await _hang(writing, new, draft, create)
    return draft


async def upsert(writing: Writing, new: NewItem) -> Draft | Entity:
    """Create an item, or change the one that is there so that it has the values given.

    Cost:   reads the item, beside what creating it reads.
    Raises: NotFound, KeyValueError, WriteError.
    """
    draft = await _draft(writing, new)
    if may_have_another_key(writing.model, new.type):
        found = await claim(writing, by_name(draft), new.at)
    else:
        (found,) = await by_keys(writing.operation, [_keyed(draft)])
    if found is None:
        await _put(writing, draft, new.at, Rule.UNCHANGED)
        await _hang(writing, new, draft, upsert)
        return draft
    given = {name: draft.values[name] for name in new.values}
    patch = stamped(writing, new.type, Patch(given))
    changed = await change(writing, found, patch, NO_CONDITIONS, new.at, Rule.UNCHANGED)
    await _hang(writing, new, Draft.of(changed), upsert)
    return changed


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
    """Take the values given, make those that are not, create the nodes that come along, and read what is copied."""
    given = await with_nodes(writing, new.values)
    values = {
        entry.name: given[entry.name] if entry.name in given else initial(new.type, entry, writing.now)
        for entry in new.type.fields.values()
        if entry.kind is not FieldKind.RELATIONSHIP
    }
    draft = Draft(writing.model, new.type, values)
    refuse_unfit(draft)
    await writing.complete(draft, behind(writing.model, draft, new.type.fields), new.at)
    draft.values = await store_blobs(writing.operation, new.type, draft.values, draft.key())
    return draft


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
