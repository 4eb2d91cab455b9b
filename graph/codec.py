"""From the wire to Python: responses parsed fast, attributes decoded late and once."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from graph.scalars import AttributeValue

Read = Callable[[AttributeValue], Any]


def parse_body(body: bytes, crc32: str | None) -> dict[str, Any]:
    """Parse a response's body after checking it against DynamoDB's `x-amz-crc32` header.

    Raises: ValueError when the body is damaged or is not JSON.
    """
    if crc32 is not None and int(crc32) != zlib.crc32(body):
        raise ValueError("the response does not match its checksum")
    parsed = orjson.loads(body)
    if not isinstance(parsed, dict):
        raise ValueError("the response is not a JSON object")
    return parsed


def optional(read: Read) -> Read:
    """Read NULL as None, everything else as `read` does."""

    def read_optional(value: AttributeValue) -> Any:
        return None if "NULL" in value else read(value)

    return read_optional


def list_of(read: Read) -> Read:
    """Read a list, or a set of strings, numbers or binaries, entry by entry."""

    def read_list(value: AttributeValue) -> list[Any]:
        if "L" in value:
            return [read(entry) for entry in value["L"]]
        for letter in ("S", "N", "B"):
            if letter + "S" in value:
                return [read({letter: entry}) for entry in value[letter + "S"]]
        raise ValueError("type L, SS, NS or BS")

    return read_list


def map_of(fields: Callable[[], Mapping[str, tuple[str, Read]]]) -> Read:
    """Read a map as a dict of its fields (name → attribute name and reader); absent fields are None."""

    def read_map(value: AttributeValue) -> dict[str, Any]:
        if "M" not in value:
            raise ValueError("type M")
        content = value["M"]
        return {
            name: read(content[attribute]) if attribute in content else None
            for name, (attribute, read) in fields().items()
        }

    return read_map
