"""Values of fields as JSON carries them in GraphQL: taken in and checked, and given out."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from graph.model import Field, Model, TypeRef
from graph.scalars import Scalar, number_text

LARGEST_JSON_INTEGER = 2**63


def taken(model: Model, entry: Field, content: Any, *, whole: bool = True) -> Any:
    """Take a field's value from JSON; unless `whole`, a null may stand for what is required.

    Raises: ValueError with the expectation as its message.
    """
    return _taken(model, entry.scalar, entry.type, content, whole=whole)


def _taken(model: Model, scalar: Scalar | None, ref: TypeRef, content: Any, *, whole: bool) -> Any:
    if content is None:
        if ref.required and whole:
            raise ValueError("a value that is not null")
        return None
    if ref.of is not None:
        if not isinstance(content, list):
            raise ValueError("a list")
        return [_taken(model, scalar, ref.of, one, whole=whole) for one in content]
    return _map(model, ref, content, whole=whole) if scalar is None else scalar.check(content)


def _map(model: Model, ref: TypeRef, content: Any, *, whole: bool) -> dict[str, Any]:
    object_ = model.objects[ref.name]
    if not isinstance(content, Mapping):
        raise ValueError(f"an object with fields of {ref.name}")
    if unknown := sorted(content.keys() - object_.fields.keys()):
        raise ValueError(f"an object of {ref.name}, which has no field {unknown[0]!r}")
    values: dict[str, Any] = {}
    for name, entry in object_.fields.items():
        if name not in content and not whole:
            continue
        try:
            values[name] = taken(model, entry, content.get(name), whole=whole)
        except ValueError as expected:
            raise ValueError(f"{expected} as its `{name}`") from None
    return values


def given(model: Model, entry: Field, value: Any) -> Any:
    """Give a field's value out as JSON has it."""
    return _given(model, entry.scalar, entry.type, value)


def _given(model: Model, scalar: Scalar | None, ref: TypeRef, value: Any) -> Any:
    if value is None:
        return None
    if ref.of is not None:
        return [_given(model, scalar, ref.of, one) for one in value]
    if scalar is None:
        fields = model.objects[ref.name].fields
        return {name: given(model, fields[name], content) for name, content in value.items()}
    if isinstance(value, Decimal) or scalar.name == "BigInt":
        return number_text(value)
    # orjson writes integers of 64 bits; a larger one is as good as text, for it is taken in as well.
    is_large = scalar.name == "Int" and not -LARGEST_JSON_INTEGER <= value < LARGEST_JSON_INTEGER
    return str(value) if is_large else value
