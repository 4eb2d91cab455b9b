"""Findings: what can be wrong with an item, how it is told, and what would mend it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import orjson

from graph.model import Layout
from graph.requests import NO_UPDATE, ItemKey, key_attribute
from graph.scalars import AttributeValue
from graph.transaction import shown
from graph.updates import Update


class Code(Enum):
    """What is wrong with an item, in a word that stays the same."""

    NO_TYPE = "the item fits no type of the model"
    BAD_VALUE = "an attribute does not fit the type of its field, or the key that holds the field"
    MISSING_VALUE = "a required field has no value"
    DANGLING = "the item names a node that does not exist"
    STALE_KEY = "a key attribute, a reference's attribute or the type's name is not what a write would make it"
    WRONG_COPY = "a copied attribute differs from that of the node"
    MIRROR_MISSING = "an edge lacks one of its mirror items"
    WRONG_MIRROR = "a mirror item differs from the edge's first item"
    ORPHAN_MIRROR = "a mirror item whose edge has no first item, or has this mirror elsewhere"
    WRONG_COUNT = "a counter is not what it counts"
    REQUIRED = "a required relationship leads to nothing"
    STALE_LOCK = "a lock whose owner has not come back for it"


NEVER_MENDED = frozenset((Code.NO_TYPE, Code.BAD_VALUE, Code.MISSING_VALUE, Code.REQUIRED))
"""What only a person can decide on."""


@dataclass(frozen=True, slots=True)
class Mend:
    """What mends a finding: a change of the item, a mirror to be put, or that the item leaves its place."""

    update: Update = NO_UPDATE
    mirror: Layout | None = None
    delete: bool = False
    move: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one item; without a `mend` it can only be reported."""

    code: Code
    key: ItemKey
    type: str
    field: str
    expected: str
    found: str
    mend: Mend | None = dataclasses.field(default=None, compare=False, repr=False)

    def line(self) -> str:
        """Write the finding on one line."""
        place = ".".join(filter(None, (self.type, self.field)))
        words = (self.code.name, self.key[0], _on_one_line(shown(self.key)), place)
        return f"{' '.join(filter(None, words))}: expected {self.expected}, found {self.found}"

    def as_json(self) -> dict[str, Any]:
        """Give the finding as a JSON object, with its key in DynamoDB's JSON."""
        return {
            "code": self.code.name,
            "table": self.key[0],
            "key": {name: key_attribute(value) for name, value in self.key[1]},
            "type": self.type or None,
            "field": self.field or None,
            "expected": self.expected,
            "found": self.found,
        }


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else orjson.dumps(text).decode()


def told(value: AttributeValue | None) -> str:
    """Write an attribute for a finding: `"text"`, `12`, or DynamoDB's own JSON for what is neither."""
    if value is None:
        return "nothing"
    if "N" in value:
        return str(value["N"])
    return orjson.dumps(value.get("S", value)).decode()


def same(left: AttributeValue | None, right: AttributeValue | None) -> bool:
    """Say whether two attributes hold the same: numbers by value, sets in any order, and null is nothing."""
    if _is_nothing(left) or _is_nothing(right):
        return _is_nothing(left) and _is_nothing(right)
    assert left is not None
    assert right is not None
    ((letter, one),), ((other_letter, other),) = left.items(), right.items()
    return letter == other_letter and _same_content(letter, one, other)


def _is_nothing(value: AttributeValue | None) -> bool:
    return value is None or "NULL" in value


def _same_content(letter: str, one: Any, other: Any) -> bool:
    if letter == "N":
        return Decimal(one) == Decimal(other)
    if letter == "NS":
        return set(map(Decimal, one)) == set(map(Decimal, other))
    if letter in ("SS", "BS"):
        return set(one) == set(other)
    if letter == "L":
        return len(one) == len(other) and all(map(same, one, other))
    if letter == "M":
        return _same_map(one, other)
    return bool(one == other)


def _same_map(one: Mapping[str, AttributeValue], other: Mapping[str, AttributeValue]) -> bool:
    return all(same(one.get(name), other.get(name)) for name in {*one, *other})
