"""The input types of mutations: keys, references, new items, and what is to become of an item's fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import strawberry
from strawberry.types.field import StrawberryField

from graph.model import Field, FieldKind, ItemType, Model, TypeRef
from graph.patterns import lookup_name
from graph.rules import Right
from graph.writes.naming import naming_fields
from graph.writes.rights import implied_fields
from resolvers.fields import annotation, input_field
from resolvers.inputs import definition, new_input

NULLABLE = TypeRef(False)

WRITE_INPUTS: Mapping[str, Right] = {
    "Create{}Input": Right.CREATE,
    **dict.fromkeys(("Update{}Input", "Increment{}Input", "Append{}Input", "Remove{}Input"), Right.UPDATE),
}
"""The names of the inputs that take the fields of a type, and the right that each field takes there."""


class WriteInputBuilder:
    """Makes each input type once; `scalars` are the classes that stand for scalars and enums."""

    def __init__(self, model: Model, scalars: Mapping[str, Any]) -> None:
        self._model = model
        self._scalars = scalars
        self._made: dict[str, Any] = {}

    def _once(self, name: str, description: str, fields: Callable[[], Iterable[StrawberryField]]) -> Any:
        """Make an input type; its fields may lead back to it."""
        if name not in self._made:
            self._made[name] = cls = new_input(name, [], description)
            definition(cls).fields = list(fields())
        return self._made[name]

    # --- naming items ---

    def key(self, name: str) -> Any:
        """Make the input that names an item: by its global id, or by the fields of its key."""
        return self._once(f"{name}Key", f"Names one {name}.", lambda: self._naming(name, self.key))

    def reference(self, name: str) -> Any:
        """Make the input that names a node, or creates it along."""
        if self._is_virtual(name):
            return self.key(name)
        return self._once(f"{name}Reference", f"Names one {name}, or creates it.", lambda: self._referring(name))

    def _referring(self, name: str) -> Iterable[StrawberryField]:
        yield from self._naming(name, self.reference if name not in self._model.items else self.key)
        if name in self._model.items:
            create = annotation(self.create(self._model.items[name]), NULLABLE)
            yield input_field("create", create, f"A new {name}, written in the same transaction.")

    def _naming(self, name: str, of: Callable[[str], Any]) -> Iterable[StrawberryField]:
        if name not in self._model.items:
            yield input_field("id", annotation(strawberry.ID, NULLABLE), "The global id.")
            for member in sorted(self._model.possible(name)):
                yield input_field(lookup_name(member), annotation(of(member), NULLABLE), f"A {member}.")
            return
        type_ = self._model.items[name]
        if type_.is_node:
            yield input_field("id", annotation(strawberry.ID, NULLABLE), "The global id, instead of all else.")
        for field in naming_fields(self._model, type_):
            entry = type_.fields[field]
            is_reference = entry.kind is FieldKind.REFERENCE
            cls = self.key(entry.type.named) if is_reference else self._scalars[entry.type.named]
            yield input_field(field, annotation(cls, NULLABLE), entry.description)

    def _is_virtual(self, name: str) -> bool:
        return name in self._model.items and self._model.items[name].virtual

    # --- writing items ---

    def create(self, type_: ItemType) -> Any:
        """Make the input of a new item."""
        return self._once(f"Create{type_.name}Input", f"A new {type_.name}.", lambda: self._creating(type_, None))

    def _creating(self, type_: ItemType, start: str | None) -> Iterable[StrawberryField]:
        implied = implied_fields(type_)
        for entry in type_.fields.values():
            if entry.name == start or is_kept_by_us(type_, entry):
                continue
            if entry.kind is not FieldKind.RELATIONSHIP:
                is_required = entry.type.required and entry.default is None and entry.name not in implied
                yield input_field(entry.name, self._value(entry, required=is_required), entry.description)
            elif (cls := self._hanging(type_, entry)) is not None:
                ref = NULLABLE if entry.type.of is None else TypeRef(False, of=TypeRef(True))
                yield input_field(entry.name, annotation(cls, ref), entry.description)

    def _hanging(self, type_: ItemType, entry: Field) -> Any:
        """Make the input of an item behind a relationship, without its reference back."""
        relationship = self._model.relationships[type_.name, entry.name]
        if relationship.path or len(relationship.item_types) != 1:
            return None
        made = self._model.items[relationship.item_types[0]]
        name = f"{type_.name}{entry.name[:1].upper()}{entry.name[1:]}Input"
        return self._once(
            name,
            f"A new {made.name}, as one of the `{entry.name}` of a new {type_.name}.",
            lambda: self._creating(made, relationship.start),
        )

    def update(self, type_: ItemType) -> Any:
        """Make the input of the fields that take new values; null takes a field away."""
        return self._some("Update", type_, is_settable, "New values; null takes a value away, what is left out stays.")

    def increment(self, type_: ItemType) -> Any:
        """Make the input of what is added to numbers, or None where there are none."""
        return self._some("Increment", type_, is_number, "What to add to numbers; below zero takes away.")

    def append(self, type_: ItemType) -> Any:
        """Make the input of what is put into lists and sets, or None where there are none."""
        return self._some("Append", type_, is_list, "What to put behind lists, and into sets.")

    def remove(self, type_: ItemType) -> Any:
        """Make the input of what is taken out of lists and sets, or None where there are none."""
        return self._some("Remove", type_, is_list, "What to take out of lists and sets, wherever it stands.")

    def _some(self, verb: str, type_: ItemType, wanted: Callable[[Field], bool], description: str) -> Any:
        fields = [entry for entry in type_.fields.values() if wanted(entry) and not is_kept_by_us(type_, entry)]
        if not fields:
            return None
        return self._once(
            f"{verb}{type_.name}Input",
            description,
            lambda: [
                input_field(entry.name, self._value(entry, required=False), entry.description) for entry in fields
            ],
        )

    def _value(self, entry: Field, *, required: bool) -> Any:
        if entry.kind is FieldKind.REFERENCE:
            return annotation(self.reference(entry.type.named), TypeRef(required))
        cls = self._scalars[entry.type.named] if entry.scalar is not None else self._object(entry.type.named)
        return annotation(cls, TypeRef(required, entry.type.name, entry.type.of))

    def _object(self, name: str) -> Any:
        """Make the input of a map inside an item."""
        object_ = self._model.objects[name]
        return self._once(
            f"{name}Input",
            f"A {name}.",
            lambda: [
                input_field(entry.name, self._value(entry, required=entry.type.required), entry.description)
                for entry in object_.fields.values()
            ],
        )


def is_kept_by_us(type_: ItemType, entry: Field) -> bool:
    """Say whether a field is written by nobody but us: versions and counters."""
    return entry.name == type_.version or entry.count is not None


def is_settable(entry: Field) -> bool:
    """Say whether a field may take a new value."""
    return entry.kind is not FieldKind.RELATIONSHIP


def is_number(entry: Field) -> bool:
    """Say whether something can be added to a field."""
    return entry.kind is FieldKind.ATTRIBUTE and entry.type.of is None and bool(entry.scalar and entry.scalar.numeric)


def is_list(entry: Field) -> bool:
    """Say whether a field holds a list or a set."""
    return entry.kind is FieldKind.ATTRIBUTE and entry.type.of is not None and entry.blob is None
