"""From the wire to Python and back: responses parsed fast, attributes decoded late and once, values encoded."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from graph.scalars import BASE64, LAST_SECOND, AttributeValue, date_time_to_epoch

Read = Callable[[AttributeValue], Any]
Write = Callable[[Any], AttributeValue]

Parse = Callable[[bytes], dict[str, Any]]
"""Parses the body of a response. Raises ValueError when it is not a JSON object."""


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a response's body. Raises ValueError when it is not a JSON object."""
    parsed = orjson.loads(body)
    if not isinstance(parsed, dict):
        raise ValueError("the response is not a JSON object")
    return parsed


def parse_body(body: bytes, crc32: str | bytes | None, parse: Parse = parse_json) -> dict[str, Any]:
    """Parse a response's body after checking it against DynamoDB's `x-amz-crc32` header.

    Raises: ValueError when the body is damaged or is not JSON.
    """
    if crc32 is not None and int(crc32) != zlib.crc32(body):
        raise ValueError("the response does not match its checksum")
    return parse(body)


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


def base64_text(value: AttributeValue) -> Any:
    """Read a binary whose base64 is kept as text."""
    return BASE64.check(value.get("S"))


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


# --- values, written ----------------------------------------------------------------------------------------------


def or_null(write: Write) -> Write:
    """Write None as NULL, everything else as `write` does."""

    def write_optional(value: Any) -> AttributeValue:
        return {"NULL": True} if value is None else write(value)

    return write_optional


def as_list(write: Write) -> Write:
    """Write a list entry by entry."""

    def write_list(values: Sequence[Any]) -> AttributeValue:
        return {"L": [write(value) for value in values]}

    return write_list


def as_set(write: Write) -> Write:
    """Write a list of texts, numbers or binaries as a set: each once, and an empty one, which cannot be, as NULL."""

    def write_set(values: Sequence[Any]) -> AttributeValue:
        written = [write(value) for value in values]
        if not written:
            return {"NULL": True}
        (letter,) = written[0]
        return {f"{letter}S": list(dict.fromkeys(entry[letter] for entry in written))}

    return write_set


def as_map(fields: Callable[[], Mapping[str, tuple[str, Write]]]) -> Write:
    """Write a dict of fields (name → attribute name and writer) as a map; what is absent or None is left out."""

    def write_map(value: Mapping[str, Any]) -> AttributeValue:
        return {
            "M": {
                attribute: write(value[name])
                for name, (attribute, write) in fields().items()
                if value.get(name) is not None
            }
        }

    return write_map


def as_seconds(value: str) -> AttributeValue:
    """Write a date and time as whole seconds since 1970. Raises ValueError when they would read back differently."""
    seconds = date_time_to_epoch(value)
    if seconds > LAST_SECOND:
        raise ValueError("a date and time up to 5138-11-16T09:46:40Z")
    return {"N": str(seconds)}
