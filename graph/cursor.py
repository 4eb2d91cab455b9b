"""Cursors: an edge's own place in its connection, opaque, versioned, and refused by every other connection."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from graph.errors import CursorError
from graph.scalars import number_text, storable
from graph.seals import UNSIGNED, Seal, Seals

VERSION = 1

MAX_DEPTH = 20
"""A position is nested as deep as a path is long, and Python's own recursion ends at about 1,000."""

Position = tuple[Any, ...]
"""The place of an item among those that a source reads: key values, with the source's own numbering around them."""


def fingerprint(*identity: object) -> str:
    """Name a connection by everything that decides which list it is: 72 bits, so that no mix-up can pass."""
    text = "\x00".join(map(repr, identity))
    return base64.urlsafe_b64encode(
        hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=9).digest()
    ).decode()


@dataclass(frozen=True, slots=True)
class Issuer:
    """The list that issues cursors, by its fingerprint, and what they are signed with."""

    name: str
    seal: Seal = UNSIGNED.cursor


def issuer(seals: Seals, *identity: object) -> Issuer:
    """Name a connection, or whatever else issues cursors to clients."""
    return Issuer(fingerprint(*identity), seals.cursor)


def write_cursor(position: Position, connection: Issuer) -> str:
    """Write a position as the cursor of a connection."""
    plain = position if set(map(type, position)) == {str} else _encode(position)
    return connection.seal.write(_content(connection.name, plain))


def write_cursors(texts: Sequence[str], connection: Issuer) -> list[str]:
    """Write positions that are a single text each."""
    begin = orjson.dumps([VERSION, connection.name])[:-1]
    return connection.seal.write_all([b"%b,[%b]]" % (begin, orjson.dumps(text)) for text in texts])


def _content(name: object, plain: object) -> bytes:
    return orjson.dumps([VERSION, name, plain])


def read_cursor(cursor: str, connection: Issuer, argument: str) -> Position:
    """Read the position back.

    Raises: CursorError when the cursor is damaged, forged, of another version, or was issued for another connection.
    """
    try:
        content = connection.seal.read(cursor)
        _, name, encoded = orjson.loads(content)
        position = _decode(encoded)
        # One position has one cursor: accept only the one that we write.
        if not isinstance(position, tuple) or _content(name, _encode(position)) != content:
            raise ValueError("not as we write it")
    except (ValueError, TypeError):
        raise CursorError(_damaged(cursor, argument)) from None
    if name != connection.name:
        raise CursorError(
            f"the cursor given as `{argument}` belongs to another connection: expected one that this very field "
            "returned with the same `where` and `order` arguments, got one that was issued elsewhere. Start again "
            "without it"
        )
    return position


def _damaged(cursor: str, argument: str) -> str:
    shown = cursor if len(cursor) <= 40 else cursor[:40] + "…"
    return (
        f"`{argument}` is not a cursor of this API: expected the `cursor`, `startCursor` or `endCursor` of an "
        f"earlier page, got {shown!r}"
    )


def _encode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encode(entry) for entry in value]
    return {"N": number_text(value)} if isinstance(value, Decimal) else value


def _decode(value: Any, depth: int = MAX_DEPTH) -> Any:
    if isinstance(value, list) and depth:
        return tuple(_decode(entry, depth - 1) for entry in value)
    if isinstance(value, dict):
        return storable(value.get("N"))
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return value
    raise ValueError("neither a key's value nor a number of ours")


def is_key_position(position: Any, length: int) -> bool:
    """Say whether a position is that many key values: what a cursor claims is checked before it reaches DynamoDB."""
    return (
        isinstance(position, tuple)
        and len(position) == length
        and all(isinstance(value, (str, Decimal)) and value != "" for value in position)
    )
