"""The values of mutations' inputs, as the graph takes them: items named, new items, patches and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from graph.entity import Entity
from graph.errors import InputError, InputPath
from graph.loaders import Operation
from graph.model import Field, FieldKind, ItemType, Model
from graph.patterns import lookup_name
from graph.rules import Right
from graph.writes.changing import Patch
from graph.writes.creating import NewItem
from graph.writes.naming import named, naming_fields
from graph.writes.rights import Rights
from graph.writes.writing import Conditions
from resolvers.filters import read_where
from resolvers.node import read_id


def read_key(operation: Operation, name: str, value: Mapping[str, Any], at: InputPath) -> Entity:
    """Read the item that a key input names; what the caller's credentials say of it may be left out.

    Raises: InputError, IdError, KeyValueError; Forbidden for an item that cannot be the caller's.
    """
    given = {field: content for field, content in value.items() if content is not None}
    if "id" in given:
        return _by_id(operation, name, given, at)
    if name not in operation.model.items:
        member: Entity = _member(operation, name, given, at, read_key)
        return member
    type_ = operation.model.items[name]
    fields = naming_fields(operation.model, type_)
    rights = Rights(operation.model, operation.permissions)
    implied = rights.implied(type_, Right.READ)
    values: dict[str, Any] = {field: implied[field] for field in fields if field in implied and field not in given}
    missing = [field for field, is_needed in fields.items() if is_needed and field not in given.keys() | values.keys()]
    if missing:
        either = "`id`, or " if type_.is_node else ""
        unsaid = [path[0] for path in type_.tenants if path[0] in missing]
        why = f". Your credentials do not say which {_listed(unsaid)}" if unsaid else ""
        raise _refused(at, f"names a {name} without {_listed(missing)}: expected {either}{_listed(fields)}{why}")
    for field, content in given.items():
        entry = type_.fields[field]
        here = (*at, field)
        is_reference = entry.kind is FieldKind.REFERENCE
        values[field] = (
            read_key(operation, entry.type.named, content, here) if is_reference else _value(entry, content, here)
        )
    entity = named(operation.model, type_, values)
    rights.refuse_key(type_, entity)
    return entity


def _by_id(operation: Operation, name: str, given: Mapping[str, Any], at: InputPath) -> Entity:
    if len(given) > 1:
        raise _refused(
            at, f"gives `id` and {_listed([field for field in given if field != 'id'])}: expected one of them"
        )
    entity = read_id(operation.model, given["id"])
    if entity.type.history is not None and entity.is_version:
        raise _refused(at, f"is the `id` of an earlier version of {name}: expected that of the item itself")
    if entity.type.name not in operation.model.possible(name):
        raise _refused(at, f"is the `id` of a {entity.type.name}: expected one of a {name}")
    return entity


def _member(operation: Operation, name: str, given: Mapping[str, Any], at: InputPath, read: Any) -> Any:
    """Read what an input of a union names: by the one member that is given."""
    members = {lookup_name(member): member for member in sorted(operation.model.possible(name))}
    if len(given) != 1:
        raise _refused(at, f"names {len(given)} of {_listed(members)}: expected exactly one of them, or `id`")
    ((field, content),) = given.items()
    return read(operation, members[field], content, (*at, field))


def read_reference(operation: Operation, name: str, value: Mapping[str, Any], at: InputPath) -> Entity | NewItem:
    """Read a node that is named, or one that is to be created along. Raises InputError, IdError, KeyValueError."""
    given = {field: content for field, content in value.items() if content is not None}
    if "create" in given:
        if len(given) > 1:
            raise _refused(at, "names a node and creates one: expected one of the two")
        return read_new(operation, operation.model.items[name], given["create"], (*at, "create"))
    if name not in operation.model.items and "id" not in given:
        found: Entity | NewItem = _member(operation, name, given, at, read_reference)
        return found
    return read_key(operation, name, given, at)


def read_new(operation: Operation, type_: ItemType, value: Mapping[str, Any], at: InputPath) -> NewItem:
    """Read an item to be created. Raises InputError, IdError, KeyValueError."""
    values: dict[str, Any] = {}
    lists: dict[str, tuple[NewItem, ...]] = {}
    for name, content in value.items():
        entry, here = type_.fields[name], (*at, name)
        if entry.kind is FieldKind.RELATIONSHIP:
            made = operation.model.items[operation.model.relationships[type_.name, name].item_types[0]]
            entries = content if isinstance(content, list) else [] if content is None else [content]
            lists[name] = tuple(read_new(operation, made, one, (*here, number)) for number, one in enumerate(entries))
        else:
            values[name] = _written(operation, entry, content, here)
    return NewItem(type_, values, lists, at)


def read_patch(operation: Operation, type_: ItemType, arguments: Mapping[str, Any]) -> Patch:
    """Read what is to become of an item's fields. Raises InputError, IdError, KeyValueError."""
    parts: dict[str, dict[str, Any]] = {}
    for argument in ("set", "increment", "append", "remove"):
        given = arguments.get(argument) or {}
        parts[argument] = {
            name: _written(operation, type_.fields[name], content, (argument, name))
            for name, content in given.items()
            if argument == "set" or content is not None
        }
    names = [name for part in parts.values() for name in part]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"{_listed(twice)} of {type_.name} is changed in two ways at once: expected one of them")
    for name, content in parts["set"].items():
        if content is None and type_.fields[name].type.required:
            raise _refused(
                ("set", name), f"is null, and {type_.name}.{name} is {type_.fields[name].type}: expected a value"
            )
    return Patch(parts["set"], parts["increment"], parts["append"], parts["remove"])


def read_conditions(model: Model, type_: ItemType, arguments: Mapping[str, Any]) -> Conditions:
    """Read what is asked of the item that is written. Raises InputError."""
    for name in arguments.get("where") or {}:
        field = type_.fields.get(name)
        if field is not None and field.kind is FieldKind.REFERENCE:
            raise _refused(("where", name), "looks behind a reference: expected fields of the item that is written")
    return Conditions(arguments.get("ifVersion"), read_where(model, type_.name, arguments.get("where")))


def _written(operation: Operation, entry: Field, content: Any, at: InputPath) -> Any:
    if content is None:
        return None
    if entry.kind is FieldKind.REFERENCE:
        return read_reference(operation, entry.type.named, content, at)
    return _value(entry, content, at)


def _value(entry: Field, content: Any, at: InputPath) -> Any:
    """Take a value as it is kept, and refuse one that DynamoDB could not keep."""
    plain = _plain(content)
    try:
        value = _checked(entry, plain)
        if value is not None and not (entry.is_set and not value):
            (entry.write if entry.blob is None else entry.blob.write_plain)(value)
    except (ValueError, ArithmeticError) as expected:
        raise _refused(at, f"is {plain!r}: expected {expected}") from None
    return value


def _checked(entry: Field, value: Any) -> Any:
    if value is None or entry.scalar is None:
        return value
    if isinstance(value, list):
        return [_checked(entry, one) for one in value]
    return entry.scalar.check(value)


def _plain(value: Any) -> Any:
    """Take enums by their names, at any depth."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return value.value if isinstance(value, Enum) else value


def _listed(names: Any) -> str:
    return " and ".join(f"`{name}`" for name in names)


def _refused(at: InputPath, problem: str) -> InputError:
    return InputError(f"`{'.'.join(map(str, at))}` {problem}")
