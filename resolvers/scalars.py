"""The scalars as Strawberry knows them: checked on the way in by the graph's own rules, plain JSON on the way out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any, NewType

import strawberry
from graphql import GraphQLError
from strawberry.types.enum import EnumValueDefinition
from strawberry.types.scalar import ScalarDefinition

from graph.model import EnumType
from graph.scalars import BASE64, BIG_INT, DATE, DATE_TIME, DECIMAL, JSON, Scalar, number_text

DESCRIPTIONS = {
    "DateTime": "A date and time with offset (RFC 3339), like `2022-07-19T17:59:58Z`.",
    "Date": "A date (RFC 3339), like `2022-07-19`.",
    "Decimal": "A decimal number of up to 38 digits, as a string, so that no digit is lost.",
    "BigInt": "A whole number of up to 38 digits, as a string, so that no digit is lost.",
    "JSON": "Any JSON value.",
    "Base64": "Binary data in standard base64.",
}


def _parse(scalar: Scalar) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        try:
            return scalar.check(value)
        except ValueError as error:
            raise GraphQLError(
                f"{scalar.name} expects {error}, got {value!r}", extensions={"code": "BAD_USER_INPUT"}
            ) from None

    return parse


def _serialize(value: Any) -> Any:
    return number_text(value) if isinstance(value, (int, Decimal)) else value


def _definition(scalar: Scalar) -> tuple[Any, ScalarDefinition]:
    marker: Any = NewType(scalar.name, str)  # type: ignore[misc]
    as_text = scalar.name in ("Decimal", "BigInt")
    definition = strawberry.scalar(
        name=scalar.name,
        description=DESCRIPTIONS[scalar.name],
        serialize=_serialize if as_text else lambda value: value,
        parse_value=_parse(scalar),
    )
    return marker, definition


_MADE = {scalar.name: _definition(scalar) for scalar in (DATE_TIME, DATE, DECIMAL, BIG_INT, JSON, BASE64)}

SCALAR_TYPES: Mapping[str, Any] = {
    "ID": strawberry.ID,
    "String": str,
    "Int": int,
    "Float": float,
    "Boolean": bool,
    **{name: marker for name, (marker, _) in _MADE.items()},
}
"""The Python type that stands for each scalar in Strawberry's annotations."""

SCALAR_MAP: Mapping[object, ScalarDefinition] = dict(_MADE.values())
"""What Strawberry's configuration needs to know of our own scalars."""


def enum_class(enum: EnumType) -> Any:
    """Make the class of an enum of the model."""
    # Python's own names are numbered: some names that GraphQL allows mean something to Enum, like `mro`.
    values: dict[str, Any] = {
        f"value_{number}": EnumValueDefinition(
            value.name,
            graphql_name=value.name,
            description=value.description,
            deprecation_reason=value.deprecation_reason,
        )
        for number, value in enumerate(enum.values)
    }
    cls: Any = Enum(enum.name, values)  # type: ignore[misc]  # its name is only known now
    return strawberry.enum(cls, name=enum.name, description=enum.description)
