"""An item as a record: its fields, what it holds of the nodes that it names, and what they do not say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graph.bulk.records import RecordReader
from graph.bulk.rest import rest_of
from graph.bulk.shapes import ATTRIBUTES, IS_VERSION, TYPENAME, held_paths, named_paths, value_fields
from graph.bulk.values import given
from graph.entity import UNKNOWN, Entity
from graph.keys import Path
from graph.model import Field, FieldKind, ItemType, Layout, Model
from graph.packing import Pointer
from graph.requests import ItemKey
from graph.writes.draft import Draft
from graph.writes.stored import copied_fields


class RecordWriter:
    """Turns items into the records that give them back; `reader` reads every one for proof."""

    def __init__(self, model: Model, reader: RecordReader) -> None:
        self._model = model
        self._reader = reader

    def record(
        self, entity: Entity, mirrors: Sequence[Entity] = (), nodes: Mapping[str, Entity] | None = None
    ) -> dict[str, Any]:
        """Write an item as a record; its mirrors, and nodes by the reference that names them, say what it does not.

        Raises: ItemError when an attribute is not of its declared type, InputError when the record cannot be loaded.
        """
        known = _Known((entity, *mirrors), nodes or {})
        draft = Draft.of(entity)
        record: dict[str, Any] = {TYPENAME: entity.type.name}
        for entry in value_fields(entity.type):
            value = draft.values[entry.name]
            if entry.kind is FieldKind.ATTRIBUTE:
                content = entity.value(entry) if entry.blob else value
                # What a pointer points to stays where it is: the attribute is kept beside the fields.
                record[entry.name] = None if isinstance(content, Pointer) else given(self._model, entry, content)
            else:
                record[entry.name] = self._node(draft, entry, value, known)
        assert entity.layout is not None, "an item has a layout"
        if entity.layout is entity.type.history:
            record[IS_VERSION] = True
        pointers = {entry.attribute: entity.wire[entry.attribute] for entry in _pointing(entity)}
        made, _ = self._reader.draft({**record, ATTRIBUTES: pointers} if pointers else record)
        if rest := rest_of(self._model, entity.layout, entity.wire, self._reader.item(made, entity.layout)):
            record[ATTRIBUTES] = rest
        return record

    def _node(self, draft: Draft, entry: Field, node: Entity | None, known: _Known) -> dict[str, Any] | None:
        if node is None:
            return None
        found: dict[str, Any] = {}
        if entry.type.named not in self._model.items:
            found[TYPENAME] = node.type.name
        paths = dict.fromkeys(named_paths(node.type))
        for layout in draft.layouts:
            paths |= dict.fromkeys(held_paths(self._model, layout, entry, node.type))
        for path in paths:
            value = known.at(entry.name, node, path)
            self._put(found, node.type, path, None if value is UNKNOWN else value)
        return found

    def _put(self, found: dict[str, Any], type_: ItemType, path: Path, value: Any) -> None:
        """Put a value behind a path of references and nested objects."""
        entry = type_.fields[path[0]]
        if entry.kind is FieldKind.REFERENCE:
            self._put_node(found, entry, path, value)
        elif len(path) == 1:
            found[entry.name] = given(self._model, entry, value)
        else:
            for name in path[:-1]:
                found = found.setdefault(name, {})
                fields = self._model.objects[entry.type.named].fields
                entry = fields[path[path.index(name) + 1]]
            found[path[-1]] = given(self._model, entry, value)

    def _put_node(self, found: dict[str, Any], entry: Field, path: Path, value: Any) -> None:
        if len(path) == 1 and not isinstance(value, Entity):
            found[entry.name] = None
            return
        target = value.type if len(path) == 1 else self._model.items[next(iter(entry.refs))]
        below = found.get(entry.name)
        if below is None:
            below = found[entry.name] = {}
            if entry.type.named not in self._model.items:
                below[TYPENAME] = target.name
        named = [(path[1:], value)] if len(path) > 1 else [(one, value.at(one)) for one in named_paths(target)]
        for one, content in named:
            self._put(below, target, one, content)


def _pointing(entity: Entity) -> Iterator[Field]:
    for entry in entity.type.fields.values():
        if entry.blob is not None and isinstance(entity.value(entry), Pointer):
            yield entry


class _Known:
    """What several items say of the nodes that one of them names."""

    def __init__(self, items: Sequence[Entity], nodes: Mapping[str, Entity]) -> None:
        self._items = items
        self._nodes = nodes

    def at(self, name: str, node: Entity, path: Path) -> Any:
        """Give what is behind a reference, or UNKNOWN."""
        for item in self._items:
            value = _copied(item, name, node, path)
            if value is not UNKNOWN:
                return value
            if (name, *path) in item.paths:
                return item.paths[name, *path]
        value = node.at(path)
        if value is UNKNOWN and name in self._nodes:
            return self._nodes[name].at(path)
        return value


def _copied(item: Entity, name: str, node: Entity, path: Path) -> Any:
    """Give a field of the node that an item holds a copy of; what the copy lacks is null."""
    layout = item.layout
    if layout is None or layout.copy != name or len(path) != 1:
        return UNKNOWN
    if all(entry.name != path[0] for entry in copied_fields(item.model, layout, node.type)):
        return UNKNOWN
    end = item.end(name)
    value = UNKNOWN if end is None else end.at(path)
    return None if value is UNKNOWN else value


def mirror_keys(draft: Draft) -> dict[str, ItemKey]:
    """Make the keys of an item's mirrors, by layout, as far as the item says what they are made of."""
    found: dict[str, ItemKey] = {}
    for layout in draft.layouts:
        if layout.mirror and _is_known(draft, layout):
            found[layout.name] = draft.key(layout)
    return found


def _is_known(draft: Draft, layout: Layout) -> bool:
    table = draft.model.tables[layout.table]
    templates = [layout.templates[name] for name in table.key_attributes]
    paths = [variable.path for template in templates for variable in template.variables]
    if table.period is not None:
        paths.append((table.period.field,))
    return all(draft.at(path) not in (None, UNKNOWN) for path in paths)


def unknown_nodes(entity: Entity, mirrors: Sequence[Entity]) -> dict[str, Entity]:
    """List the nodes, by reference, of which the items of a mirrored edge should hold more than they do."""
    known = _Known((entity, *mirrors), {})
    found: dict[str, Entity] = {}
    draft = Draft.of(entity)
    for entry in entity.type.references:
        node = draft.values[entry.name]
        if not isinstance(node, Entity) or node.type.virtual:
            continue
        for layout in draft.layouts:
            # What an item's own keys do not hold has no value; what its mirror would hold has to be looked up.
            if layout.mirror and any(
                known.at(entry.name, node, path) is UNKNOWN
                for path in held_paths(entity.model, layout, entry, node.type)
            ):
                found[entry.name] = node
    return found
