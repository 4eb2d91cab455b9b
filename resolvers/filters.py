"""The filter inputs of the API, and how their values become filters of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from graph.errors import Forbidden, InputError
from graph.filters import Every, Filter, Never, Some, Test
from graph.keys import Path
from graph.model import Argument, Field, FieldKind, ItemType, Model
from graph.permissions import Permissions
from graph.rules import Right
from graph.scalars import Scalar, TextOrder

EQUALITY = ("eq", "ne", "in")
ORDER = ("lt", "le", "gt", "ge", "between")
TEXT = ("beginsWith", "contains")

OPERATOR_TEXTS = {
    "eq": "Equal to; null finds absent values.",
    "ne": "Different from; absent values are.",
    "in": "One of.",
    "lt": "Less than.",
    "le": "Less than or equal to.",
    "gt": "Greater than.",
    "ge": "Greater than or equal to.",
    "between": "From the first to the second of two values, both included.",
    "beginsWith": "Text that begins so.",
    "contains": "Text that has this in it; a list that has this entry.",
    "exists": "Whether there is a value.",
}


def operators(scalar: Scalar, *, is_list: bool) -> tuple[str, ...]:
    """List the operators that a field offers."""
    if is_list:
        return ("contains", "exists")
    if not scalar.in_key:
        return ("exists",)
    if scalar.values or scalar.name == "Boolean":
        return (*EQUALITY, "exists")
    text = TEXT if scalar.order is TextOrder.FREE else ()
    return (*EQUALITY, *ORDER, *text, "exists")


def filter_name(scalar: Scalar, *, is_list: bool) -> str:
    """Name the input type of a scalar's operators."""
    return f"{scalar.name}{'List' if is_list else ''}Filter"


def where_name(type_name: str) -> str:
    """Name the filter input of a type."""
    return f"{type_name}Where"


def is_filterable(model: Model, field: Field) -> bool:
    """Say whether a filter input offers a field."""
    if field.kind is FieldKind.RELATIONSHIP or field.blob is not None:
        return False
    if field.kind is FieldKind.REFERENCE:
        return len(field.refs) == 1
    if field.scalar is not None:
        return field.type.of is None or field.type.of.of is None
    return field.type.of is None and field.type.named in model.objects


def read_where(
    model: Model, type_name: str, value: Mapping[str, Any] | None, permissions: Permissions | None = None
) -> Filter:
    """Turn the value of a `where` argument into a filter, for a caller with these permissions (None: all).

    Raises: InputError, Forbidden where what passes would tell of a field that they may not read.
    """
    if permissions is not None and value:
        _refuse_hidden(model, type_name, value, permissions, ())
    return Every(tuple(_parts(model, type_name, value or {}, ())))


def _refuse_hidden(
    model: Model, type_name: str, value: Mapping[str, Any], permissions: Permissions, prefix: Path
) -> None:
    type_ = model.items.get(type_name) or model.objects[type_name]
    for name, content in value.items():
        if content is None:
            continue
        if name in ("and", "or", "not"):
            for entry in [content] if name == "not" else content:
                _refuse_hidden(model, type_name, entry, permissions, prefix)
            continue
        field, path = type_.fields[name], (*prefix, name)
        # Of a copied node DynamoDB itself looks at the fields, whoever may read them.
        is_copied = isinstance(type_, ItemType) and any(layout.copy == name for layout in type_.layouts)
        ends = [permissions.of(target, Right.READ) for target in field.refs] if is_copied else []
        if not all(grant.always for grant in (permissions.by(field.auth, Right.READ), *ends)):
            raise Forbidden(
                f"`where: {{ {'.'.join(path)}: … }}` looks at what you may not read in every item: expected a filter "
                "by fields that you may. Leave it out"
            )
        if field.scalar is None:
            _refuse_hidden(model, field.type.named, content, permissions, path)


def _parts(model: Model, type_name: str, value: Mapping[str, Any], prefix: Path) -> Iterator[Filter]:
    fields = (model.items.get(type_name) or model.objects[type_name]).fields
    for name, content in value.items():
        if content is None:
            continue
        if name in ("and", "or"):
            parts = tuple(Every(tuple(_parts(model, type_name, entry, prefix))) for entry in content)
            yield Every(parts) if name == "and" else Some(parts)
        elif name == "not":
            yield Never(Every(tuple(_parts(model, type_name, content, prefix))))
        elif fields[name].scalar is not None:
            yield from _tests(fields[name], content, (*prefix, name))
        else:
            yield from _parts(model, fields[name].type.named, content, (*prefix, name))


def _tests(field: Field, content: Mapping[str, Any], path: Path) -> Iterator[Filter]:
    scalar = field.scalar
    assert scalar is not None
    for operator, value in content.items():
        if value is None and operator not in ("eq", "ne"):
            raise InputError(
                f"`{'.'.join(path)}: {{ {operator}: null }}` compares with nothing: expected a value, or leave it out"
            )
        if operator == "between" and len(value) != 2:
            raise InputError(
                f"`{'.'.join(path)}: {{ between: … }}` takes two values, the least and the greatest: got {len(value)}"
            )
        yield Test(path, operator, value if operator == "exists" else _checked(path, scalar, _plain(value)), scalar)


def _checked(path: Path, scalar: Scalar, value: Any) -> Any:
    """Check that DynamoDB can hold a value: GraphQL lets numbers pass that it cannot. Raises InputError."""
    for entry in value if isinstance(value, tuple) else (value,):
        try:
            if entry is not None:
                scalar.write(scalar.check(entry))
        except ValueError as expected:
            raise InputError(f"`{'.'.join(path)}` is compared with {entry!r}: expected {expected}") from None
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_plain(entry) for entry in value)
    return value.value if isinstance(value, Enum) else value


def read_arguments(arguments: tuple[Argument, ...], values: Mapping[str, Any]) -> Filter:
    """Turn the arguments of a @find field into the filter that they stand for."""
    return Every(tuple(part for argument in arguments for part in _argument_tests(argument, values.get(argument.name))))


def _argument_tests(argument: Argument, value: Any) -> Iterator[Filter]:
    if value is None:
        return
    if argument.range_fields is not None:
        for name, operator in zip(argument.range_fields, ("ge", "le"), strict=True):
            if value.get(name) is not None:
                bound = _checked(argument.path, argument.scalar, _plain(value[name]))
                yield Test(argument.path, operator, bound, argument.scalar)
    else:
        checked = _checked(argument.path, argument.scalar, _plain(value))
        yield Test(argument.path, "in" if isinstance(value, list) else "eq", checked, argument.scalar)
