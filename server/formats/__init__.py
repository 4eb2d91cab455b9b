"""The files that load reads and export writes: what a line of each is, and how a file tells its format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import orjson

from graph.errors import InputError

RECORDS, ITEMS = "records", "items"
FORMATS = ("jsonl", "csv", "dynamodb-json", "dynamodb-export")

_LETTERS = {"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}


@dataclass(frozen=True, slots=True)
class Damaged:
    """What stands for a line that cannot be read."""

    reason: str


class Lines(Protocol):
    """An input, which may be read more than once."""

    kind: str
    """RECORDS or ITEMS."""
    size_bytes: int

    def read(self) -> Iterator[tuple[int, Any]]:
        """Read every line that is not empty, with its number: its content, or Damaged."""

    def where(self, number: int) -> str:
        """Say where a line stands."""


def format_of(path: Path) -> str:
    """Tell the format of an input by its name, and of JSON Lines by the first line. Raises InputError."""
    if path.is_dir():
        return "dynamodb-export"
    if path.suffix == ".csv":
        return "csv"
    if path.suffix in (".jsonl", ".ndjson", ".json"):
        return format_of_lines(path)
    raise InputError(f"{path}: expected a name that ends in .jsonl or .csv, or a folder; or say --format")


def format_of_lines(path: Path) -> str:
    """Tell records from items by the first line that is not empty."""
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"{}")
    try:
        content = orjson.loads(first)
    except orjson.JSONDecodeError:
        return "jsonl"
    return "dynamodb-json" if _is_item(content) else "jsonl"


def _is_item(content: Any) -> bool:
    if not isinstance(content, dict) or not content:
        return False
    if isinstance(content.get("Item"), dict) and content.keys() <= {"Item", "TableName"}:
        return True
    return all(isinstance(value, dict) and len(value) == 1 and value.keys() <= _LETTERS for value in content.values())
