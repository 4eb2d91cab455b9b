"""Large values as bytes: every form reads back, what was written before @blob still does, and bombs do not."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Field
from graph.packing import MOST_BYTES, POINTER, Pointer, Stored, expand, read_pointer
from graph.scalars import read_json, storable, write_json
from resolvers.sdl import compile_model

MODEL = compile_model(
    """extend schema @table(name: "things", partitionKey: "pk", attributeCase: PASCAL)
enum Colour { RED GREEN }
type Box @node(partition: "BOX#{number}") {
  number: ID!
  text: String @blob(gzip: true)
  binary: Base64 @blob(gzip: true)
  json: JSON @blob(gzip: true)
  texts: [String] @blob(gzip: true)
  binaries: [Base64!] @blob(gzip: true)
  inside: Inside @blob(gzip: true)
  textThere: String @blob(s3: "boxes")
  binaryThere: Base64 @blob(s3: "boxes", over: 10)
  jsonThere: JSON @blob(s3: "boxes", gzip: true, over: 0)
}
type Inside {
  colour: Colour
  exact: Decimal
  whole: BigInt
  raw: Base64
  tags: [ID!] @attribute(set: true)
  at: DateTime
  inner: [Inside]
}
"""
)
FIELDS = MODEL.items["Box"].fields
KEY = "Box/0a1b/text/" + "0" * 8 + "-0000-4000-8000-" + "0" * 12


def binary(content: bytes) -> str:
    return base64.b64encode(content).decode()


# --- what is written reads back -----------------------------------------------------------------------------------

NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**20), max_value=10**20)
FLOATS = st.floats(-1e9, 1e9).map(lambda number: round(number, 6))
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text()
    | st.floats(-1e9, 1e9).map(lambda x: round(x, 6)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
).filter(lambda value: value is not None)
INSIDES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {
        "colour": st.sampled_from(["RED", "GREEN", None]),
        "exact": NUMBERS.map(storable),
        "whole": st.integers(-(10**38) + 1, 10**38 - 1),
        "raw": st.binary().map(binary),
        "tags": st.lists(st.text(min_size=1), min_size=1, unique=True),
        "at": st.just("2022-07-19T17:59:58Z"),
        "inner": st.none() | st.lists(st.none()),
    }
)
BINARIES = st.binary() | st.binary().map(gzip.compress) | st.binary().map(lambda x: gzip.compress(x, mtime=0x626F6C62))
VALUES = {
    "text": st.text(),
    "binary": BINARIES.map(binary),
    "json": JSON_VALUES,
    "texts": st.lists(st.none() | st.text()),
    "binaries": st.lists(BINARIES.map(binary)),
    "inside": INSIDES,
}
LARGER = {"textThere": "text", "binaryThere": "binary", "jsonThere": "json"}


@pytest.mark.parametrize("name", [*VALUES, *LARGER])
@given(data=st.data(), times=st.sampled_from([1, 40]))
def test_a_value_reads_back_from_its_attribute_and_from_its_object(name: str, data: st.DataObject, times: int) -> None:
    entry = FIELDS[name]
    value = data.draw(VALUES[LARGER.get(name, name)])
    if isinstance(value, list) or (isinstance(value, str) and "text" in name):
        value = value * times
    assert entry.blob is not None

    attribute, content = entry.blob.pack(value)

    assert entry.read(entry.write(value)) == as_read(entry, value)
    assert entry.read(attribute) == as_read(entry, value)
    assert entry.blob.unpack(content) == as_read(entry, value)
    assert entry.blob.pack(value) == (attribute, content)


def as_read(entry: Field, value: Any) -> Any:
    """JSON's numbers come back as DynamoDB gives them: 1.0 as 1."""
    return read_json(write_json(value)) if entry.type.name == "JSON" else value


@pytest.mark.parametrize("name", ["text", "json"])
def test_a_value_that_shrinks_is_compressed_and_another_is_not(name: str) -> None:
    entry = FIELDS[name]

    large, small = entry.write("la" * 100), entry.write("la")

    assert set(large) == {"B"}
    assert small == {"S": "la"}
    content = gzip.decompress(base64.b64decode(large["B"])).decode()
    assert content == ("la" * 100 if name == "text" else json.dumps("la" * 100))


def test_equal_values_are_equal_bytes() -> None:
    one, other = {"b": [1, "x" * 99], "a": "é"}, {"a": "é", "b": [1.0, "x" * 99]}

    assert FIELDS["json"].write(one) == FIELDS["json"].write(other)
    packed = base64.b64decode(FIELDS["json"].write(one)["B"])
    assert gzip.decompress(packed) == ('{"a":"é","b":[1,"' + "x" * 99 + '"]}').encode()


# --- what was written before, and by others -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attribute", "value"),
    [
        pytest.param("text", {"S": "old"}, "old", id="text-as-it-is"),
        pytest.param("text", {"B": binary(gzip.compress(b"theirs"))}, "theirs", id="text-that-others-compressed"),
        pytest.param("text", {"B": binary(gzip.compress(b"a") + gzip.compress(b"b"))}, "ab", id="gzip-of-two-members"),
        pytest.param("json", {"M": {"a": {"N": "1"}}}, {"a": 1}, id="json-as-it-is"),
        pytest.param("json", {"B": "aGk="}, "aGk=", id="json-that-is-a-binary"),
        pytest.param("json", {"B": binary(gzip.compress(b'{"a": 1.50}'))}, {"a": 1.5}, id="json-of-others"),
        pytest.param("texts", {"SS": ["a", "b"]}, ["a", "b"], id="list-that-is-a-set"),
        pytest.param("binary", {"B": "aGk="}, "aGk=", id="binary-as-it-is"),
        pytest.param(
            "binary", {"B": binary(gzip.compress(b"a"))}, binary(gzip.compress(b"a")), id="binary-that-is-gzip-itself"
        ),
        pytest.param("textThere", {"S": "old"}, "old", id="text-that-lies-in-the-item"),
        pytest.param("inside", {"M": {"Raw": {"B": "aGk="}}}, "aGk=", id="map-as-it-is"),
    ],
)
def test_values_written_without_blob_are_read(name: str, attribute: Any, value: Any) -> None:
    found = FIELDS[name].read(attribute)

    assert (found["raw"] if name == "inside" else found) == value


@pytest.mark.parametrize(
    ("name", "attribute", "expected"),
    [
        pytest.param("text", {"B": "aGk="}, "type S", id="binary-that-is-not-compressed"),
        pytest.param("text", {"B": binary(b"\x1f\x8bno")}, "gzip that is not damaged", id="damaged"),
        pytest.param("text", {"B": binary(gzip.compress(b"x" * 99)[:-9])}, "gzip that is whole", id="cut-short"),
        pytest.param("text", {"B": binary(gzip.compress(b"\xff"))}, "text in UTF-8", id="not-utf-8"),
        pytest.param("json", {"B": binary(gzip.compress(b"{"))}, "JSON that an attribute", id="not-json"),
        pytest.param("json", {"B": binary(gzip.compress(b"[NaN]"))}, "JSON that an attribute", id="not-a-number"),
        pytest.param("json", {"B": binary(gzip.compress(b"[" * 10**6))}, "JSON that an attribute", id="too-deep"),
        pytest.param("inside", {"B": binary(gzip.compress(b"[]"))}, "type M", id="not-a-map"),
        pytest.param("binaries", {"B": binary(gzip.compress(b'["?"]'))}, "standard base64", id="not-base64"),
        pytest.param("binaries", {"B": binary(gzip.compress(b"[1]"))}, "standard base64", id="no-text"),
    ],
)
def test_what_no_value_was_is_refused(name: str, attribute: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}"):
        FIELDS[name].read(attribute)


def test_a_decompression_bomb_is_refused() -> None:
    bomb = gzip.compress(bytes(MOST_BYTES + 1))

    assert len(bomb) < 100_000
    with pytest.raises(ValueError, match="gzip of at most 64,000,000 bytes"):
        FIELDS["text"].read({"B": binary(bomb)})
    with pytest.raises(ValueError, match="gzip of at most 64,000,000 bytes"):
        expand(gzip.compress(bytes(MOST_BYTES)) + gzip.compress(b"x"))
    with pytest.raises(ValueError, match="a value of at most 64,000,000 bytes"):
        FIELDS["text"].write("x" * (MOST_BYTES + 1))


# --- pointers -----------------------------------------------------------------------------------------------------


def test_a_pointer_reads_back() -> None:
    pointer = Pointer(KEY, 12, "ab" * 32)

    assert read_pointer(pointer.attribute()) == pointer
    assert FIELDS["textThere"].read(pointer.attribute()) == pointer
    assert FIELDS["textThere"].write(pointer) == pointer.attribute()
    assert FIELDS["textThere"].write(Stored(pointer.attribute())) == pointer.attribute()


@pytest.mark.parametrize(
    ("key", "size"),
    [
        pytest.param("../../etc/passwd", "1", id="a-path"),
        pytest.param(KEY + "/../x", "1", id="a-path-behind"),
        pytest.param("Box/../text/" + KEY[-36:], "1", id="a-path-within"),
        pytest.param(KEY, "-1", id="less-than-nothing"),
        pytest.param(KEY, "64000001", id="too-large"),
        pytest.param(KEY, "x", id="no-number"),
    ],
)
def test_a_pointer_that_we_did_not_write_is_refused(key: str, size: str) -> None:
    attribute = {"M": {POINTER: {"S": key}, "bytes": {"N": size}, "sha256": {"S": ""}}}

    with pytest.raises(ValueError, match="a pointer to an object of ours"):
        FIELDS["textThere"].read(attribute)


def test_a_caller_cannot_forge_a_pointer() -> None:
    forged = {POINTER: KEY, "bytes": 1, "sha256": "ab" * 32}

    written = FIELDS["jsonThere"].write(forged)

    assert set(written) == {"B"}
    assert FIELDS["jsonThere"].read(written) == forged


def test_a_field_without_a_bucket_has_no_pointers() -> None:
    assert FIELDS["json"].read(Pointer(KEY, 1, "ab").attribute()) == {POINTER: KEY, "bytes": 1, "sha256": "ab"}
