"""Conditions as frozen values, and the one allocator of their placeholders.

Names and values reach DynamoDB only through ASCII placeholders `#n0` and `:v0`, numbered in the order of use, so that
no attribute name is ever reserved, injected or (on Dynoxide) fatal, and a request is the same text every time.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Literal

from graph.scalars import AttributeValue

Value = tuple[str, Any]
"""An attribute value as a pair: ("S", "BR"); hashable where it is a scalar."""

Comparator = Literal["=", "<>", "<", "<=", ">", ">="]


def value_of(attribute: AttributeValue) -> Value:
    """Take an attribute value as a pair."""
    ((letter, content),) = attribute.items()
    return letter, content


@dataclass(frozen=True, slots=True)
class Compare:
    """attribute <comparator> value."""

    attribute: str
    comparator: Comparator
    value: Value


@dataclass(frozen=True, slots=True)
class Between:
    """attribute BETWEEN low AND high, both inclusive."""

    attribute: str
    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class In:
    """attribute IN (values)."""

    attribute: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """begins_with(attribute, value) or contains(attribute, value)."""

    name: Literal["begins_with", "contains"]
    attribute: str
    value: Value


@dataclass(frozen=True, slots=True)
class Exists:
    """The attribute is there and is not NULL."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Present:
    """The attribute is there, be it NULL: of a key attribute, that there is an item."""

    attribute: str


@dataclass(frozen=True, slots=True)
class Not:
    """The condition does not hold."""

    condition: Condition


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every condition holds."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one condition holds."""

    conditions: tuple[Condition, ...]


Condition = Compare | Between | In | Function | Exists | Present | Not | AllOf | AnyOf


@dataclass(slots=True)
class Placeholders:
    """Allocates `#n…` and `:v…` in the order of use; the same name or value gets the same placeholder."""

    names: dict[str, str] = field(default_factory=dict)
    values: dict[tuple[str, str], tuple[str, Any]] = field(default_factory=dict)
    """The placeholder and the content of each value, by its type and its text."""

    def name(self, attribute: str) -> str:
        """Give the placeholder of an attribute name."""
        return self.names.setdefault(attribute, f"#n{len(self.names)}")

    def value(self, value: Value) -> str:
        """Give the placeholder of a value."""
        letter, content = value
        return self.values.setdefault((letter, str(content)), (f":v{len(self.values)}", content))[0]

    def parameters(self) -> dict[str, Any]:
        """Give the request parameters that explain the placeholders."""
        parameters: dict[str, Any] = {}
        if self.names:
            parameters["ExpressionAttributeNames"] = {holder: name for name, holder in self.names.items()}
        if self.values:
            parameters["ExpressionAttributeValues"] = {
                holder: {letter: content} for (letter, _), (holder, content) in self.values.items()
            }
        return parameters


def render(condition: Condition, holders: Placeholders) -> str:
    """Write a condition as an expression, with parentheses only where they mean something: redundant ones are refused.

    Source: DynamoDB developer guide, "Condition and filter expressions, operators, and functions".
    """
    condition = _plain(condition)
    match condition:
        case Compare(attribute, comparator, value):
            return f"{holders.name(attribute)} {comparator} {holders.value(value)}"
        case Between(attribute, low, high):
            return f"{holders.name(attribute)} BETWEEN {holders.value(low)} AND {holders.value(high)}"
        case In(attribute, values):
            return f"{holders.name(attribute)} IN ({', '.join(map(holders.value, values))})"
        case Function(function, attribute, value):
            return f"{function}({holders.name(attribute)}, {holders.value(value)})"
        case Exists(attribute):
            name = holders.name(attribute)
            null = holders.value(("S", "NULL"))
            return f"attribute_exists({name}) AND NOT attribute_type({name}, {null})"
        case Present(attribute):
            return f"attribute_exists({holders.name(attribute)})"
        case Not(Present(attribute)):
            return f"attribute_not_exists({holders.name(attribute)})"
        case Not(inner):
            return f"NOT {_nested(inner, holders)}"
        case AllOf(conditions) | AnyOf(conditions):
            word = " AND " if isinstance(condition, AllOf) else " OR "
            return word.join(_nested(part, holders) for part in conditions)


def values_in(condition: Condition) -> list[Value]:
    """List the values of a key condition in the order of its expression."""
    match condition:
        case Compare(_, _, value) | Function(_, _, value):
            return [value]
        case Between(_, low, high):
            return [low, high]
        case AllOf(conditions):
            return [value for one in conditions for value in values_in(one)]
        case _:
            raise ValueError(f"a key condition has no {type(condition).__name__}")


def with_values(condition: Condition, values: Iterator[Value]) -> Condition:
    """Write a key condition with other values, taken in the order of its expression."""
    match condition:
        case Compare(attribute, comparator, _):
            return Compare(attribute, comparator, next(values))
        case Function(name, attribute, _):
            return Function(name, attribute, next(values))
        case Between(attribute, _, _):
            return Between(attribute, next(values), next(values))
        case AllOf(conditions):
            return AllOf(tuple(with_values(one, values) for one in conditions))
        case _:
            raise ValueError(f"a key condition has no {type(condition).__name__}")


def _nested(condition: Condition, holders: Placeholders) -> str:
    """Write a condition as part of another one."""
    text = render(condition, holders)
    return f"({text})" if isinstance(_plain(condition), (AllOf, AnyOf, Exists)) else text


def _plain(condition: Condition) -> Condition:
    """Take off what says nothing: all or any of one condition, and not of not."""
    match condition:
        case AllOf((only,)) | AnyOf((only,)):
            return _plain(only)
        case Not(inner):
            inner = _plain(inner)
            return inner.condition if isinstance(inner, Not) else Not(inner)
    return condition


# --- deciding here ------------------------------------------------------------------------------------------------


def holds(condition: Condition, item: Mapping[str, AttributeValue]) -> bool:
    """Decide a condition on an item as DynamoDB does: what is absent or of another type compares with nothing."""
    match condition:
        case Compare(name, comparator, (letter, content)):
            attribute = item.get(name)
            if attribute is None or letter not in attribute:
                return comparator == "<>"
            return bool(_COMPARE[comparator](_place(letter, attribute[letter]), _place(letter, content)))
        case Between(name, low, high):
            return holds(Compare(name, ">=", low), item) and holds(Compare(name, "<=", high), item)
        case In(name, values):
            return any(holds(Compare(name, "=", value), item) for value in values)
        case Function(function, name, value):
            attribute = item.get(name)
            return attribute is not None and _FUNCTIONS[function](attribute, *value)
        case Exists(name):
            return name in item and "NULL" not in item[name]
        case Present(name):
            return name in item
        case Not(inner):
            return not holds(inner, item)
        case AllOf(conditions):
            return all(holds(one, item) for one in conditions)
        case AnyOf(conditions):
            return any(holds(one, item) for one in conditions)


def _place(letter: str, content: Any) -> Any:
    """Give what a value is ordered by: texts as their code points are, which is the order of their UTF-8."""
    return Decimal(content) if letter == "N" else base64.b64decode(content) if letter == "B" else content


def _begins_with(attribute: AttributeValue, letter: str, content: Any) -> bool:
    return letter in attribute and bool(_place(letter, attribute[letter]).startswith(_place(letter, content)))


def _contains(attribute: AttributeValue, letter: str, content: Any) -> bool:
    """Look for a text in a text, or for an entry in a set or a list."""
    wanted = _place(letter, content)
    if letter in ("S", "B") and letter in attribute:
        return wanted in _place(letter, attribute[letter])
    entries = [entry[letter] for entry in attribute.get("L", ()) if letter in entry]
    return wanted in [_place(letter, entry) for entry in (*entries, *attribute.get(f"{letter}S", ()))]


_COMPARE = {"=": eq, "<>": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_FUNCTIONS = {"begins_with": _begins_with, "contains": _contains}
