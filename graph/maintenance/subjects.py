"""Subjects: the items of a page as they are judged, with the nodes that they name and the mirrors that they have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph.entity import UNKNOWN, Entity, Unknown, read_entity
from graph.errors import KeyValueError
from graph.keys import Path
from graph.loaders import Operation
from graph.lookups import by_keys
from graph.maintenance.findings import Finding
from graph.maintenance.truth import Truth, as_keyed, in_primary, truth_of
from graph.model import FieldKind, Layout, Model, Table
from graph.ours import is_ours
from graph.requests import Item, ItemKey, key_value
from graph.sources import has_expired
from graph.writes.draft import Draft, paths_of

Identity = tuple[str, tuple[tuple[Path, Any], ...]]
"""A node as others name it: its type, and the fields that name it."""


@dataclass(slots=True)
class Subject:
    """One item as it is judged; without an `entity` it fits no type.

    `draft` is what the item is to be: its true values, with the nodes that it names as they lie in the table.
    """

    key: ItemKey
    wire: Item
    entity: Entity | None = None
    truth: Truth = field(default_factory=Truth)
    draft: Draft | None = None
    tag: str | None = None
    """The type's name that the item is to have, where it has another one or none."""
    nodes: dict[str, Entity | None] = field(default_factory=dict)
    """By field the nodes named that are stored: as they lie in the table, or None for one that is not there."""
    first: Subject | None = None
    """For a mirror: the first item of its edge."""
    first_key: ItemKey | None = None
    place: ItemKey | None = None
    """For a mirror: where its edge has it."""
    mirrors: list[tuple[Layout, ItemKey, bool]] = field(default_factory=list)
    """For a first item: where its mirrors lie, and whether they do."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def layout(self) -> Layout:
        """Give the layout that the item fits."""
        assert self.entity is not None, "an item of no type has no layout"
        assert self.entity.layout is not None, "it was read from its table"
        return self.entity.layout

    @property
    def unreadable(self) -> frozenset[str]:
        """List the fields whose values are not known: what is made of them cannot be judged."""
        return frozenset(self.truth.bad)


def knows(subject: Subject, paths: Iterable[Path]) -> bool:
    """Say whether everything at these paths of a subject is known, if only to be nothing."""
    draft = subject.draft
    assert draft is not None, "only an item of a type has values"
    return all(path[0] not in subject.unreadable and draft.at(path) is not UNKNOWN for path in paths)


async def subjects_of(operation: Operation, table: Table, name: str, items: Iterable[Item]) -> list[Subject]:
    """Take items of a table as subjects, but for those that have expired and for receipts.

    Cost: BatchGetItems for the nodes named and the mirrors; a bounded Query for a node that its name does not lead to.
    """
    taken = [subject for item in items if (subject := _subject(operation, table, name, item)) is not None]
    typed = [subject for subject in taken if subject.entity is not None]
    await _load_firsts(operation, typed)
    await _load_nodes(operation, typed)
    await _find_mirrors(operation, typed)
    return taken


def key_of(table: Table, name: str, item: Item) -> ItemKey:
    """Give the place of an item."""
    return name, tuple((attribute, key_value(item[attribute])) for attribute in table.key_attributes)


# --- which type? --------------------------------------------------------------------------------------------------


def _subject(operation: Operation, table: Table, name: str, item: Item) -> Subject | None:
    key = key_of(table, name, item)
    if is_ours(item, table):
        return None
    subject = Subject(key, item)
    entity, subject.tag = _read(operation.model, table, item)
    if entity is None:
        return None if _is_version(operation.model, table, item) else subject
    if has_expired(entity, operation.now):
        return None
    subject.entity = entity
    subject.truth = truth_of(entity)
    subject.draft = Draft(operation.model, entity.type, subject.truth.values, item)
    return subject


def _read(model: Model, table: Table, item: Item) -> tuple[Entity | None, str | None]:
    """Take an item as one of its type, and give the type's name where the item lacks it, or has a wrong one."""
    found = next(_fits(model, table, item), None)
    name = table.type_attribute
    if name is None:
        return found, None
    if found is not None:
        return found, None if name in item else found.type.type_name
    known = {
        type_.type_name for type_ in model.items.values() if type_.layouts and type_.layouts[0].table == table.name
    }
    # What names a type that the model does not have is none of our business.
    if name not in item or item[name].get("S", next(iter(known))) not in known:
        return None, None
    untagged = {attribute: value for attribute, value in item.items() if attribute != name}
    fitting = list(_fits(model, table, untagged))
    return (fitting[0], fitting[0].type.type_name) if len(fitting) == 1 else (None, None)


def _is_version(model: Model, table: Table, item: Item) -> bool:
    """Say whether an item is an earlier version of another one, which stays as it was."""
    kept = (type_.history for type_ in model.items.values())
    layouts = (layout for layout in kept if layout is not None and layout.table == table.name)
    return any(read_entity(model, layout, item) is not None for layout in layouts)


def _fits(model: Model, table: Table, item: Item) -> Iterator[Entity]:
    for type_ in model.items.values():
        for layout in type_.layouts:
            if layout.table == table.name:
                entity = read_entity(model, layout, item)
                if entity is not None:
                    yield entity


# --- mirrors ------------------------------------------------------------------------------------------------------


async def _load_firsts(operation: Operation, subjects: Sequence[Subject]) -> None:
    """Load the first items of mirrors, which say what the edge's own fields are."""
    mirrors = [subject for subject in subjects if subject.layout.mirror]
    for subject in mirrors:
        subject.first_key = _key_in(subject, 0)
    wanted = [subject for subject in mirrors if subject.first_key is not None]
    items = await operation.items([subject.first_key for subject in wanted if subject.first_key is not None])
    for subject, item in zip(wanted, items, strict=True):
        if item is not None:
            _take_first(operation, subject, item)


def _take_first(operation: Operation, mirror: Subject, item: Item) -> None:
    """Judge a mirror by the first item of its edge, unless that is one of another type: then it is not judged."""
    assert mirror.first_key is not None
    assert mirror.draft is not None
    type_ = mirror.draft.type
    table = operation.model.tables[type_.layouts[0].table]
    first = _subject(operation, table, mirror.first_key[0], item)
    if first is None:
        return
    if first.entity is None or first.entity.type is not type_:
        mirror.first_key = None
        return
    mirror.first, mirror.place = first, _key_in(first, mirror.layout.mirror)
    # The mirror's own key says which nodes it names; all else the first item says.
    held = {path[0] for path in in_primary(operation.model, mirror.layout, mirror.wire)}
    ends = {entry.name: mirror.truth.values[entry.name] for entry in type_.references if entry.name in held}
    mirror.draft = Draft(operation.model, type_, {**first.truth.values, **ends}, mirror.wire)


def _key_in(subject: Subject, mirror: int) -> ItemKey | None:
    """Say where the item of another mirror lies, where all is known that its key is made of."""
    draft = subject.draft
    assert draft is not None
    for layout in draft.layouts:
        names = draft.model.tables[layout.table].key_attributes
        if layout.mirror == mirror and all(knows(subject, paths_of(layout.templates[name])) for name in names):
            try:
                return draft.key(layout)
            except KeyValueError:
                return None
    return None


async def _find_mirrors(operation: Operation, subjects: Sequence[Subject]) -> None:
    places = [
        (subject, layout, key)
        for subject in subjects
        if not subject.layout.mirror and subject.draft is not None
        for layout in subject.draft.layouts
        if layout.mirror and (key := _key_in(subject, layout.mirror)) is not None
    ]
    items = await operation.items([key for _, _, key in places])
    for (subject, layout, key), item in zip(places, items, strict=True):
        subject.mirrors.append((layout, key, item is not None))


# --- nodes --------------------------------------------------------------------------------------------------------


async def _load_nodes(operation: Operation, subjects: Sequence[Subject]) -> None:
    """Load every node that the subjects name, each once, and what their keys hold of nodes behind those."""
    named: dict[Identity, Entity] = {}
    for subject in subjects:
        for _, node in _named(subject):
            named.setdefault(_identity(node), node)
    loaded = dict(zip(named, await nodes_by_name(operation, list(named.values())), strict=True))
    for subject in subjects:
        assert subject.draft is not None
        for name, node in _named(subject):
            found = loaded[_identity(node)]
            if not isinstance(found, Unknown):
                subject.nodes[name] = found
            if isinstance(found, Entity):
                subject.draft.values[name] = found
    for subject in subjects:
        await _deepen(operation, subject)


def _named(subject: Subject) -> list[tuple[str, Entity]]:
    assert subject.draft is not None
    return [
        (entry.name, value)
        for entry in subject.draft.type.fields.values()
        if entry.kind is FieldKind.REFERENCE
        and isinstance(value := subject.draft.values.get(entry.name), Entity)
        and not value.type.virtual
    ]


def _identity(node: Entity) -> Identity:
    return node.type.name, tuple(node.named.items())


async def nodes_by_name(operation: Operation, named: Sequence[Entity]) -> list[Entity | Unknown | None]:
    """Read nodes as they lie in the table; None for one that does not exist, UNKNOWN where something else lies."""
    possible = [node for node in named if not _is_impossible(node)]
    found = dict(zip(map(id, possible), await by_keys(operation, possible), strict=True))
    lost = [node for node in possible if found[id(node)] is None and node.key is not None]
    items = await operation.items([node.key for node in lost if node.key is not None])
    there = {id(node): _in_its_place(operation, node, item) for node, item in zip(lost, items, strict=True)}
    nodes = [there.get(id(node)) or found.get(id(node)) for node in named]
    return [as_keyed(node) if isinstance(node, Entity) else node for node in nodes]


def _in_its_place(operation: Operation, named: Entity, item: Item | None) -> Entity | Unknown | None:
    """Take the item in the place of a node as that node, should it only lack the type's name."""
    if item is None:
        return None
    table = operation.model.tables[named.type.layouts[0].table]
    entity, _ = _read(operation.model, table, item)
    if entity is None or entity.type is not named.type:
        return UNKNOWN
    return None if has_expired(entity, operation.now) else entity


def _is_impossible(node: Entity) -> bool:
    """Say whether no node can have this name: its key would be too long, or read back differently."""
    try:
        _ = node.key
    except KeyValueError:
        return True
    return False


async def _deepen(operation: Operation, subject: Subject) -> None:
    """Load the nodes behind the nodes named, where keys are made of them."""
    for template in subject.layout.templates.values():
        for path in paths_of(template):
            node = subject.nodes.get(path[0])
            for depth in range(1, len(path) - 1):
                if node is None or node.at(path[depth:]) is not UNKNOWN:
                    break
                further = node.reference(node.type.fields[path[depth]])
                if not isinstance(further, Entity):
                    break
                (found,) = await nodes_by_name(operation, [further])
                if isinstance(found, Unknown):
                    break
                node.nodes[path[depth]] = found
                node = found
