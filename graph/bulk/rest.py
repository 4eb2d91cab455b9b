"""What a record keeps beside its fields: attributes of its item that the model does not give exactly as they lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graph.bulk.items import check_attribute
from graph.entity import Entity
from graph.errors import InputError, KeyValueError
from graph.keys import OURS, Path, Shard
from graph.model import Field, FieldKind, Layout, Model
from graph.packing import Pointer
from graph.requests import Item, key_value
from graph.scalars import AttributeValue
from graph.writes.draft import Draft
from graph.writes.stored import copied_fields


def rest_of(model: Model, layout: Layout, item: Item, made: Item) -> dict[str, AttributeValue | None]:
    """List the attributes of an item that the one made of its record does not have just so; None for one too many."""
    rest: dict[str, AttributeValue | None] = {
        name: value
        for name, value in item.items()
        if not name.startswith(OURS) and (made.get(name) != value or _is_random(layout, name))
    }
    rest |= {name: None for name in made if name not in item}
    keys = model.tables[layout.table].key_attributes
    return {name: value for name, value in rest.items() if name not in keys}


def _is_random(layout: Layout, name: str) -> bool:
    """Say whether a key attribute has a random shard, which is another one whenever it is made."""
    template = layout.templates.get(name)
    return template is not None and any(isinstance(part, Shard) and part.path is None for part in template.parts)


def with_rest(draft: Draft, layout: Layout, made: dict[str, AttributeValue], rest: Any) -> dict[str, AttributeValue]:
    """Give an item the attributes that its record keeps beside the fields.

    What the model can read there must say the same as the fields: they win, so that no key goes stale by an edit.
    Raises: InputError when it is no such object.
    """
    if not isinstance(rest, Mapping):
        raise InputError("`__attributes`: expected an object of attributes as DynamoDB's JSON, or null for none")
    item = dict(made)
    keys = draft.model.tables[layout.table].key_attributes
    for name, value in rest.items():
        if name in keys or name.startswith(OURS):
            raise InputError(f"`__attributes`: `{name}` is made of the fields. Leave it out")
        if value is not None:
            try:
                check_attribute(value)
            except ValueError as expected:
                raise InputError(f"`__attributes`: `{name}`: expected {expected}") from None
            if _agrees(draft, layout, name, value):
                item[name] = value
        elif name in item and _may_lack(draft, layout, name, rest):
            del item[name]
    return item


def _agrees(draft: Draft, layout: Layout, name: str, kept: AttributeValue) -> bool:
    """Say whether an attribute says what the fields say, as far as the model speaks of it."""
    for owner, entry in _fields_of(draft, layout, name):
        return _says(owner, entry, kept)
    template = layout.templates.get(name)
    if template is None:
        type_attribute = draft.model.tables[layout.table].type_attribute
        return name != type_attribute or kept == {"S": draft.type.type_name}
    try:
        parsed = template.parse(key_value(kept))
        # What is of another shape is nothing that the model would read.
        return parsed is None or all(
            variable.text(parsed[variable.path]) == variable.text(draft.at(variable.path))
            for variable in template.variables
        )
    except (ValueError, TypeError, AttributeError, KeyValueError):
        return False


def _fields_of(draft: Draft, layout: Layout, name: str) -> Iterator[tuple[Draft | Entity, Field]]:
    """List the fields that an attribute holds, each with the item that it is a field of."""
    for entry in draft.type.fields.values():
        if entry.kind is not FieldKind.RELATIONSHIP and entry.attribute == name:
            yield draft, entry
    end = draft.values.get(layout.copy) if layout.copy else None
    if isinstance(end, (Draft, Entity)):
        for entry in copied_fields(draft.model, layout, end.type):
            if entry.attribute == name:
                yield end, entry


def _says(owner: Draft | Entity, entry: Field, kept: AttributeValue) -> bool:
    value = owner.at((entry.name,))
    if "NULL" in kept:
        return value is None
    try:
        if entry.kind is FieldKind.REFERENCE:
            text = key_value(kept)
            named = entry.refs[value.type.name].parse(text) if isinstance(value, (Draft, Entity)) else None
            return named is not None and all(value.at(path) == part for path, part in named.items())
        read = entry.read(kept)
        if isinstance(read, Pointer):
            return value is None
        return value is not None and bool(entry.write(_canonical(entry, read)) == entry.write(value))
    except (ValueError, ArithmeticError):
        return False


def _canonical(entry: Field, value: Any) -> Any:
    if entry.scalar is None or value is None:
        return value
    return [_canonical(entry, one) for one in value] if isinstance(value, list) else entry.scalar.check(value)


def _may_lack(draft: Draft, layout: Layout, name: str, rest: Mapping[str, Any]) -> bool:
    """Say whether an attribute may be left out: no value is in it that no key of the item holds."""
    for owner, entry in _fields_of(draft, layout, name):
        if owner is not draft:
            return True
        value = draft.values.get(entry.name)
        paths: list[Path] = [(entry.name,)]
        if isinstance(value, (Draft, Entity)):
            paths = [(entry.name, *variable.path) for variable in entry.refs[value.type.name].variables]
        held = {
            variable.path
            for attribute, template in layout.templates.items()
            if attribute != name and not (attribute in rest and rest[attribute] is None)
            for variable in template.variables
            if not variable.lossy
        }
        if not held.issuperset(paths):
            return False
    return True
