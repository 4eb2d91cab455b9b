"""JSON Lines: records by the model's names, or items as DynamoDB's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import orjson

from server.formats import ITEMS, Damaged


class JsonLines:
    """A file with a JSON value on every line."""

    def __init__(self, path: Path, kind: str) -> None:
        self.kind = kind
        self.size_bytes = path.stat().st_size
        self._path = path

    def read(self) -> Iterator[tuple[int, Any]]:
        """Read every line that is not empty, with its number: its content, or Damaged."""
        with self._path.open("rb") as file:
            yield from read_json_lines(file)

    def where(self, number: int) -> str:
        """Say where a line stands."""
        return f"line {number}"


def read_json_lines(file: Iterable[bytes], start: int = 1) -> Iterator[tuple[int, Any]]:
    """Read the JSON values of a file's lines, numbered from `start`."""
    for number, line in enumerate(file, start):
        if not line.isspace():
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield number, Damaged(f"is not JSON: {error}")


class JsonLinesWriter:
    """Writes records, or items, one a line."""

    def __init__(self, file: IO[bytes], kind: str) -> None:
        self._file = file
        self._is_items = kind == ITEMS

    def write(self, contents: list[dict[str, Any]]) -> None:
        """Write the lines of some records or items."""
        self._file.write(b"".join(orjson.dumps(content) + b"\n" for content in contents))

    def close(self) -> None:
        """Have nothing more to write."""
