"""What is true of an item: the value of each field, where its keys and its attributes may contradict each other.

The primary key is right before anything else, for it cannot be changed; then the field's own attribute; and what only
an index key holds last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from graph.entity import Entity, read_entity
from graph.errors import ItemError, KeyValueError
from graph.keys import Path, Variable
from graph.model import Field, FieldKind, Layout, Model, TypeRef
from graph.requests import Item, key_value
from graph.scalars import AttributeValue
from graph.writes.draft import written


@dataclass(slots=True)
class Truth:
    """The values of an item's fields, and what contradicts them."""

    values: dict[str, Any] = field(default_factory=dict)
    bad: dict[str, tuple[str, AttributeValue | None]] = field(default_factory=dict)
    """By field: what was expected in place of the attribute."""
    missing: list[str] = field(default_factory=list)
    disagreeing: dict[str, AttributeValue] = field(default_factory=dict)
    """By field: the attribute as it would have to be, where it differs from what the primary key says."""


def truth_of(entity: Entity) -> Truth:
    """Find out the values of an item's fields."""
    return _Finder(entity).find()


def in_primary(model: Model, layout: Layout, item: Item) -> dict[Path, tuple[Variable, Any]]:
    """List what the primary key of an item holds; what it holds whole wins over what it holds in part."""
    found: dict[Path, tuple[Variable, Any]] = {}
    for name in model.tables[layout.table].key_attributes:
        values = layout.templates[name].parse(key_value(item[name])) or {}
        for variable in layout.templates[name].variables:
            known = found.get(variable.path)
            if known is None or (known[0].lossy and not variable.lossy):
                found[variable.path] = variable, values[variable.path]
    return found


def without_index_keys(model: Model, layout: Layout, item: Item) -> Item:
    """Leave out the attributes that are there for the sake of an index alone."""
    fields = model.items[layout.type_name].fields.values()
    own = {*model.tables[layout.table].key_attributes}
    own |= {entry.attribute for entry in fields if entry.kind is not FieldKind.RELATIONSHIP}
    return {name: value for name, value in item.items() if name not in layout.templates or name in own}


def as_keyed(node: Entity) -> Entity:
    """Take a node without the attributes that say again, and may say wrongly, what its primary key holds whole."""
    assert node.layout is not None, "it was read from its table"
    keys = node.model.tables[node.layout.table].key_attributes
    held = in_primary(node.model, node.layout, node.wire)
    again = {
        entry.attribute
        for entry in node.type.fields.values()
        if (entry.name,) in held and not held[entry.name,][0].lossy and entry.attribute not in keys
    }
    if again.isdisjoint(node.wire):
        return node
    wire = {name: value for name, value in node.wire.items() if name not in again}
    return Entity(node.model, node.type, layout=node.layout, wire=wire, holds=None)


class _Finder:
    def __init__(self, entity: Entity) -> None:
        assert entity.layout is not None, "it was read from its table"
        self._entity = entity
        self._layout = entity.layout
        self._keys = entity.model.tables[entity.layout.table].key_attributes
        self._held = in_primary(entity.model, entity.layout, entity.wire)
        bare = without_index_keys(entity.model, entity.layout, entity.wire)
        # What an index key says is only asked where nothing else says anything.
        self._bare = read_entity(entity.model, entity.layout, bare) or entity
        self._truth = Truth()

    def find(self) -> Truth:
        for entry in self._entity.type.fields.values():
            if entry.kind is not FieldKind.RELATIONSHIP:
                self._truth.values[entry.name] = self._value(entry)
        return self._truth

    def _value(self, entry: Field) -> Any:
        try:
            value = self._scalar(entry) if entry.kind is FieldKind.ATTRIBUTE else self._reference(entry)
        except ItemError as error:
            self._truth.bad[entry.name] = str(error), self._entity.wire.get(entry.attribute)
            held = self._held.get((entry.name,))
            return held[1] if held is not None and not held[0].lossy else None
        # A counter is judged by counting, and an empty set is stored as nothing.
        if value is None and entry.type.required and entry.count is None and not entry.is_set:
            self._truth.missing.append(entry.name)
        elif value is not None:
            self._truth.missing += (
                f"{entry.name}.{'.'.join(path)}" for path in _holes(self._entity.model, entry.type, value)
            )
        return value

    def _scalar(self, entry: Field) -> Any:
        value = self._bare.value(entry)
        if value is None:
            return self._entity.value(entry)
        held = self._held.get((entry.name,))
        if held is None or entry.attribute in self._keys or entry.attribute not in self._entity.wire:
            return value
        variable, from_key = held
        if _agree(variable, value, from_key):
            return from_key if not variable.lossy else value
        if variable.lossy:
            raise ItemError(f"a value that the item's key holds as {from_key}")
        self._truth.disagreeing[entry.name] = written(entry, from_key)
        return from_key

    def _reference(self, entry: Field) -> Entity | None:
        found = self._bare.reference(entry) or self._entity.reference(entry)
        if not isinstance(found, Entity) or found.type.ref is None:
            return None
        named = {variable.path: found.at(variable.path) for variable in found.type.ref.variables}
        return Entity(found.model, found.type, named=named)


def _agree(variable: Variable, value: Any, from_key: Any) -> bool:
    try:
        if variable.text(value) == variable.text(from_key):
            return True
        comparable = variable.scalar.comparable
        return not variable.lossy and bool(comparable(value) == comparable(from_key))
    except (KeyValueError, ValueError, TypeError):
        return False


def _holes(model: Model, type_: TypeRef, value: Any) -> Iterator[Path]:
    """List the places inside a value where something required is missing."""
    if type_.of is not None and isinstance(value, list):
        for entry in value:
            if entry is not None:
                yield from _holes(model, type_.of, entry)
            elif type_.of.required:
                yield ("entry",)
    elif type_.name in model.objects and isinstance(value, Mapping):
        for entry in model.objects[type_.name].fields.values():
            inner = value.get(entry.name)
            if inner is not None:
                yield from ((entry.name, *path) for path in _holes(model, entry.type, inner))
            elif entry.type.required and not entry.is_set and entry.kind is not FieldKind.RELATIONSHIP:
                yield (entry.name,)
