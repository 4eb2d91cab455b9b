"""Cursors: an edge's own place in its connection, opaque, versioned, and refused by every other connection."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import orjson

from graph.errors import CursorError
from graph.scalars import number_text, storable

VERSION = 1

MAX_DEPTH = 20
"""A position is nested as deep as a path is long, and Python's own recursion ends at about 1,000."""

_URL_SAFE = bytes.maketrans(b"+/", b"-_")

Position = tuple[Any, ...]
"""The place of an item among those that a source reads: key values, with the source's own numbering around them."""


def fingerprint(*identity: object) -> str:
    """Name a connection by everything that decides which list it is: 48 bits, so that a mix-up cannot pass."""
    text = "\x00".join(map(repr, identity))
    return base64.urlsafe_b64encode(
        hashlib.blake2b(text.encode(errors="backslashreplace"), digest_size=6).digest()
    ).decode()


def write_cursor(position: Position, connection: str) -> str:
    """Write a position as the cursor of a connection."""
    plain = position if set(map(type, position)) == {str} else _encode(position)
    return _opaque(orjson.dumps([VERSION, connection, plain]))


def write_cursors(texts: Sequence[str], connection: str) -> list[str]:
    """Write positions that are a single text each."""
    begin = orjson.dumps([VERSION, connection])[:-1]
    return [_opaque(b"%b,[%b]]" % (begin, orjson.dumps(text))) for text in texts]


def _opaque(content: bytes) -> str:
    return binascii.b2a_base64(content, newline=False).translate(_URL_SAFE, b"=").decode()


def read_cursor(cursor: str, connection: str, argument: str) -> Position:
    """Read the position back.

    Raises: CursorError when the cursor is damaged, of another version, or was issued for another connection.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        content = orjson.loads(base64.b64decode(padded.encode("ascii"), altchars=b"-_", validate=True))
        _, issuer, encoded = content
        position = _decode(encoded)
        # A lenient reader would let several texts stand for one cursor: accept only the one that we write.
        if not isinstance(position, tuple) or write_cursor(position, issuer) != cursor:
            raise ValueError("not as we write it")
    except (ValueError, TypeError):
        raise CursorError(_damaged(cursor, argument)) from None
    if issuer != connection:
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
