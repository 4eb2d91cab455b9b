"""How large DynamoDB finds an item, and what it takes to read so much."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Any

from graph.scalars import AttributeValue

READ_UNIT_BYTES = 4096
WRITE_UNIT_BYTES = 1024
TYPICAL_ITEM_BYTES = 400
"""How large an item is taken to be where nobody has seen it."""


def item_bytes(item: Mapping[str, AttributeValue]) -> int:
    """Count the bytes of an item: its attributes' names and values.

    Source: DynamoDB developer guide, "DynamoDB item sizes and formats".
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: AttributeValue) -> int:
    ((letter, content),) = value.items()
    if letter in ("S", "N", "B"):
        return _scalar_bytes(letter, content)
    if letter in ("SS", "NS", "BS"):
        return sum(_scalar_bytes(letter[0], entry) for entry in content)
    if letter == "L":
        return 3 + sum(1 + _value_bytes(entry) for entry in content)
    if letter == "M":
        return 3 + sum(1 + len(name.encode()) + _value_bytes(entry) for name, entry in content.items())
    return 1


def _scalar_bytes(letter: str, content: Any) -> int:
    if letter == "S":
        return len(content.encode())
    if letter == "B":
        return len(content) // 4 * 3 - str(content).count("=")
    # About one byte for two digits, and one more.
    digits = sum(character.isdigit() for character in str(content).strip("-0."))
    return min(21, (digits + 1) // 2 + 1)


def read_units(size_bytes: float) -> float:
    """Count what an eventually consistent read of so much takes, of one item or of one Query.

    Source: DynamoDB developer guide, "DynamoDB read and write operations".
    """
    return max(1, ceil(size_bytes / READ_UNIT_BYTES)) / 2
