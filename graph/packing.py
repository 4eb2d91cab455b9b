"""Large values as bytes: compressed where that makes them smaller, and pointers to those that lie outside of the table.

Whatever form a value was written in, reading knows it again: a table that was filled before the model said @blob goes
on as it is.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Final

from graph.scalars import AttributeValue, write_json

MOST_BYTES: Final = 64_000_000
"""The largest value that is kept: what grows beyond it when it is decompressed is a bomb, and no value of ours."""
POINTER: Final = "tablegraph-blob"
"""The entry by which a map is known as a pointer."""

_GZIP = b"\x1f\x8b"
# The second in which everything was compressed: equal values are equal bytes, and ours are told from binaries of the
# caller's that are gzip themselves.
_SECOND = int.from_bytes(b"blob", "little")
_OURS = _GZIP + b"\x08\x00blob"
_KEY = re.compile(r"\w+/[0-9a-f]+/\w+/[0-9a-f-]{36}", re.ASCII)


class Form(Enum):
    """What the bytes of a value are."""

    TEXT = "the text, in UTF-8"
    BINARY = "the binary itself"
    JSON = "JSON, in UTF-8, of what the attribute would hold"


@dataclass(frozen=True, slots=True)
class Pointer:
    """Where a value lies that is not in its item: the object's key in the bucket, and what its bytes must be."""

    key: str
    bytes: int
    sha256: str

    def attribute(self) -> AttributeValue:
        """Write the pointer in the place of the value."""
        return {"M": {POINTER: {"S": self.key}, "bytes": {"N": str(self.bytes)}, "sha256": {"S": self.sha256}}}


def pointed(attribute: AttributeValue) -> str | None:
    """Give the key of the object that an attribute points to, if it is a pointer."""
    key = attribute["M"].get(POINTER, {}).get("S") if "M" in attribute else None
    return str(key) if key is not None else None


def read_pointer(attribute: AttributeValue) -> Pointer | None:
    """Read a pointer, or None where the attribute is none. Raises ValueError for one that nobody of us has written."""
    key = pointed(attribute)
    if key is None:
        return None
    try:
        size, digest = int(attribute["M"]["bytes"]["N"]), str(attribute["M"]["sha256"]["S"])
    except (KeyError, ValueError):
        size, digest = -1, ""
    if not (_KEY.fullmatch(key) and 0 <= size <= MOST_BYTES):
        raise ValueError(f"a pointer to an object of ours, of at most {MOST_BYTES:,} bytes")
    return Pointer(key, size, digest)


@dataclass(frozen=True, slots=True)
class Stored:
    """An attribute as it lies in the table or is to lie there: nobody looks into it, and it is written as it is."""

    attribute: AttributeValue


@dataclass(frozen=True, slots=True)
class Blob:
    """How a field keeps large values: compressed, or from some number of bytes on as objects in a bucket.

    `read_plain` and `write_plain` are for attributes that hold the value as it is; `read_json` reads an attribute that
    was made of JSON, which has no binaries.
    """

    gzip: bool
    bucket: str | None
    over: int
    form: Form
    read_plain: Callable[[AttributeValue], Any] = field(compare=False, repr=False)
    write_plain: Callable[[Any], AttributeValue] = field(compare=False, repr=False)
    read_json: Callable[[AttributeValue], Any] = field(compare=False, repr=False)

    def read(self, attribute: AttributeValue) -> Any:
        """Read the value, or the Pointer to it. Raises ValueError."""
        if self.bucket is not None and (pointer := read_pointer(attribute)) is not None:
            return pointer
        if "B" in attribute and self._is_packed(content := base64.b64decode(attribute["B"])):
            return self.unpack(content)
        return self.read_plain(attribute)

    def write(self, value: Any) -> AttributeValue:
        """Write a value or a Pointer; what is Stored stays as it is."""
        if isinstance(value, Stored):
            return value.attribute
        return value.attribute() if isinstance(value, Pointer) else self.pack(value)[0]

    def pack(self, value: Any) -> tuple[AttributeValue, bytes]:
        """Give the attribute that holds a value, and the bytes that an object would hold in its place.

        Raises: ValueError when the value is larger than any that is read.
        """
        plain = self.write_plain(value)
        content = self._content(plain)
        if len(content) > MOST_BYTES:
            raise ValueError(f"a value of at most {MOST_BYTES:,} bytes")
        # What would be taken for compressed, or for a pointer to somebody else's object, is compressed in any case.
        must_be_packed = self._is_packed(content) or pointed(plain) is not None
        packed = gzip.compress(content, mtime=_SECOND) if self.gzip or must_be_packed else content
        if must_be_packed or len(packed) < len(content):
            return {"B": base64.b64encode(packed).decode()}, packed
        return plain, content

    def unpack(self, content: bytes) -> Any:
        """Read a value from the bytes of an object. Raises ValueError."""
        if self._is_packed(content):
            content = expand(content)
        if self.form is Form.BINARY:
            return base64.b64encode(content).decode()
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise ValueError("text in UTF-8") from None
        return text if self.form is Form.TEXT else self.read_json(_from_json(text))

    def _is_packed(self, content: bytes) -> bool:
        # Neither text nor JSON begins like this, so others' compression is read as well; a binary may.
        return content.startswith(_OURS if self.form is Form.BINARY else _GZIP)

    def _content(self, plain: AttributeValue) -> bytes:
        if self.form is Form.BINARY:
            return base64.b64decode(plain["B"])
        return (plain["S"] if self.form is Form.TEXT else _as_json(plain)).encode()


def expand(content: bytes) -> bytes:
    """Decompress gzip. Raises ValueError when it is damaged, or grows too large."""
    found = b""
    while content:
        member = zlib.decompressobj(wbits=31)
        try:
            found += member.decompress(content, MOST_BYTES + 1 - len(found))
        except zlib.error:
            raise ValueError("gzip that is not damaged") from None
        if len(found) > MOST_BYTES:
            raise ValueError(f"gzip of at most {MOST_BYTES:,} bytes")
        if not member.eof:
            raise ValueError("gzip that is whole")
        content = member.unused_data
    return found


def _as_json(value: AttributeValue) -> str:
    """Write an attribute as JSON, the same text for the same value; numbers keep their digits."""
    ((letter, content),) = value.items()
    if letter == "N":
        return str(content)
    if letter == "L":
        return f"[{','.join(map(_as_json, content))}]"
    if letter == "M":
        entries = (f"{json.dumps(name, ensure_ascii=False)}:{_as_json(content[name])}" for name in sorted(content))
        return f"{{{','.join(entries)}}}"
    if letter == "NS":
        return f"[{','.join(content)}]"
    return json.dumps(None if letter == "NULL" else content, ensure_ascii=False)


def _from_json(text: str) -> AttributeValue:
    try:
        return write_json(json.loads(text, parse_int=Decimal, parse_float=Decimal))
    except (RecursionError, ValueError, ArithmeticError):
        raise ValueError("JSON that an attribute can hold") from None
