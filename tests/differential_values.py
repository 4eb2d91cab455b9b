"""Arguments of random queries: values that are likely to meet something, as literals and as variables of every kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    is_enum_type,
    is_input_object_type,
    is_list_type,
    is_non_null_type,
)

from graph.bulk.shapes import TYPENAME
from resolvers.filters import OPERATOR_TEXTS
from tests.differential_data import POOLS, Record


@dataclass
class Known:
    """What is known of the data of a model: values by the field that has them, ids, and cursors of earlier pages."""

    records: Mapping[str, list[Record]]
    values: dict[str, list[Any]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    cursors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for records in self.records.values():
            for record in records:
                for name, value in _leaves(record):
                    known = self.values.setdefault(name, [])
                    if value not in known:
                        known.append(value)


def _leaves(record: Record) -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        if key == TYPENAME:
            continue
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, dict):
                yield from _leaves(entry)
            elif entry is not None and not isinstance(entry, list):
                yield key, entry


@dataclass
class Variables:
    """The variables of an operation: as declared, and as given."""

    declared: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    """By name the type, and the default as text."""
    given: dict[str, Any] = field(default_factory=dict)

    def head(self) -> str:
        """Write the declarations."""
        parts = [
            f"${name}: {type_}" + ("" if default is None else f" = {default}")
            for name, (type_, default) in self.declared.items()
        ]
        return f"({', '.join(parts)})" if parts else ""


class Arguments:
    """Writes the arguments of one operation."""

    def __init__(self, known: Known, dice: Random, tally: Counter[str]) -> None:
        self.known = known
        self.variables = Variables()
        self._dice = dice
        self._tally = tally
        self._share = dice.choice([0.0, 0.15, 0.5])
        """How many of the values become variables."""

    def chance(self, share: float) -> bool:
        """Throw the dice."""
        return self._dice.random() < share

    # --- values ---

    def value(self, type_: GraphQLInputType, hint: str) -> Any:
        """Draw a value of a type for a field of some name."""
        if is_non_null_type(type_):
            return self.value(type_.of_type, hint)
        if is_list_type(type_):
            size = 2 if hint.startswith("between ") else self._dice.choice([0, 1, 1, 2, 2, 3])
            found = [self._value_or_null(type_.of_type, hint) for _ in range(size)]
            return sorted(found, key=repr) if self.chance(0.6) else found
        if is_input_object_type(type_):
            return self._input(type_, hint)
        if is_enum_type(type_):
            return self._dice.choice(sorted(type_.values))
        return self._scalar(str(type_), hint.removeprefix("between "))

    def _value_or_null(self, type_: GraphQLInputType, hint: str) -> Any:
        return None if self.chance(0.04) and not is_non_null_type(type_) else self.value(type_, hint)

    def _scalar(self, name: str, hint: str) -> Any:
        if name == "Boolean":
            return self.chance(0.5)
        seen = self.known.values.get(hint)
        found = self._dice.choice(seen) if seen and self.chance(0.8) else self._dice.choice(POOLS[name])
        if self.chance(0.1) and isinstance(found, str) and name in ("String", "ID"):
            found = found[: self._dice.randrange(0, 3)]
        return found if fits(name, found) else self._dice.choice(POOLS[name])

    def _input(self, type_: GraphQLInputObjectType, hint: str) -> dict[str, Any]:
        names = sorted(type_.fields)
        deep = [name for name in ("and", "or", "not") if name in names]
        plain = [name for name in names if name not in deep]
        is_test = set(plain) <= OPERATOR_TEXTS.keys()
        count = self._dice.choice([1, 1, 1, 2] if is_test else [0, 1, 1, 1, 2, 2])
        chosen = self._dice.sample(plain, min(count, len(plain)))
        if deep and self.chance(0.15) and not hint.endswith("!!"):
            chosen.append(self._dice.choice(deep))
        found = {}
        for name in chosen:
            below = (
                f"{hint}!" if name in deep else ("between " if name == "between" else "") + (hint if is_test else name)
            )
            found[name] = self._value_or_null(type_.fields[name].type, below)
            if is_test:
                self._tally[f"where {name}"] += 1
        return found

    # --- text ---

    def text(self, type_: GraphQLInputType, value: Any, *, is_argument: bool = True) -> str | None:
        """Write a value as a literal or as a variable; None where it turned out to be left out."""
        if self.chance(self._share):
            return self._variable(type_, value)
        if value is None:
            return "null"
        inner = type_.of_type if is_non_null_type(type_) else type_
        if is_list_type(inner):
            if isinstance(value, list):
                return f"[{', '.join(self._entries(inner, value))}]"
            return self.text(inner.of_type, value)
        if is_input_object_type(inner):
            entries = [(name, self.text(inner.fields[name].type, one)) for name, one in value.items()]
            return f"{{{', '.join(f'{name}: {text}' for name, text in entries)}}}"
        return literal(inner, value)

    def _entries(self, type_: GraphQLList[Any], values: list[Any]) -> Iterator[str]:
        for value in values:
            text = self.text(type_.of_type, value)
            if text is not None:
                yield text

    def _variable(self, type_: GraphQLInputType, value: Any) -> str:
        variables, text = self.variables, str(type_)
        same = [name for name, (declared, _) in variables.declared.items() if declared == text]
        if same and self.chance(0.2):
            self._tally["variable used twice"] += 1
            return f"${self._dice.choice(same)}"
        name = f"v{len(variables.declared)}"
        is_required = is_non_null_type(type_)
        kinds = ["given"] * 8 + ["default", "default", "both", "wrong"]
        kinds += ["missing"] if is_required else ["absent", "absent", "null", "required"]
        kind = self._dice.choice(kinds)
        if kind == "missing" and self.chance(0.6):
            kind = "given"
        self._tally[f"variable {kind}"] += 1
        inner: Any = type_.of_type if is_non_null_type(type_) else type_
        default = None
        if kind in ("default", "both") and value is not None:
            default = plain_text(inner, value)
            text = str(inner) if self.chance(0.7) else text
        if kind == "required" and value is not None:
            text += "!"
        variables.declared[name] = text, default
        if kind in ("given", "required") or (kind == "default" and value is None):
            variables.given[name] = value
        elif kind == "both":
            variables.given[name] = self.value(type_, "")
        elif kind == "null":
            variables.given[name] = None
        elif kind == "wrong" and self.chance(0.3):
            variables.given[name] = self._dice.choice([{"x": 1}, [[]], "nonsense", 1.5, True, 2**70, "", None])
        elif kind == "wrong":
            variables.given[name] = value
        return f"${name}"


def fits(name: str, value: Any) -> bool:
    """Say whether JSON may be a value of a scalar, more or less."""
    if name in ("ID", "String"):
        return isinstance(value, str)
    if name == "Int":
        return isinstance(value, int) and not isinstance(value, bool)
    if name == "Float":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name in ("Date", "DateTime"):
        return (
            isinstance(value, str) and len(value) >= 10 and value[4:5] == "-" and ("T" in value) == (name == "DateTime")
        )
    if name in ("BigInt", "Decimal"):
        return isinstance(value, str) and value.lstrip("-").replace(".", "", 1).isdigit()
    return name == "JSON"


def plain_text(type_: GraphQLInputType, value: Any) -> str:
    """Write a value as a literal without variables."""
    if is_non_null_type(type_):
        return plain_text(type_.of_type, value)
    if value is None:
        return "null"
    if is_list_type(type_):
        return (
            f"[{', '.join(plain_text(type_.of_type, one) for one in value)}]"
            if isinstance(value, list)
            else plain_text(type_.of_type, value)
        )
    if is_input_object_type(type_):
        return f"{{{', '.join(f'{name}: {plain_text(type_.fields[name].type, one)}' for name, one in value.items())}}}"
    return literal(type_, value)


def literal(type_: Any, value: Any) -> str:
    """Write a leaf as GraphQL does."""
    if isinstance(type_, GraphQLEnumType):
        return str(value)
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {literal(type_, one)}' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(literal(type_, one) for one in value)}]"
    return (
        "null" if value is None else orjson.dumps(value).decode() if not isinstance(value, int) else str(value).lower()
    )
