"""The codec: bodies that are damaged are refused, and attributes become Python values as the model says."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.codec import (
    Read,
    Write,
    as_list,
    as_map,
    as_seconds,
    as_set,
    list_of,
    map_of,
    optional,
    or_null,
    parse_body,
)
from graph.scalars import BASE64, DATE_TIME, DECIMAL, ID, INT, STRING, Scalar, date_time_text, instant
from tests.strategies import ALL_SCALARS, JSON_VALUES, MOMENTS, values


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON_VALUES))
def test_body_is_parsed_where_its_checksum_agrees(content: dict[str, Any]) -> None:
    body = orjson.dumps(content)

    assert parse_body(body, str(zlib.crc32(body))) == content
    assert parse_body(body, None) == content


@given(content=st.dictionaries(st.text("ab"), st.text("ab"), min_size=1), place=st.integers(0, 200))
def test_body_with_one_letter_changed_is_refused(content: dict[str, str], place: int) -> None:
    body = orjson.dumps(content)
    place %= len(body)
    damaged = body[:place] + bytes([body[place] ^ 1]) + body[place + 1 :]

    with pytest.raises(ValueError, match="does not match its checksum"):
        parse_body(damaged, str(zlib.crc32(body)))


@pytest.mark.parametrize(
    ("body", "crc32", "message"),
    [
        pytest.param(b'{"Count": 1', None, None, id="truncated"),
        pytest.param(b"", None, None, id="empty"),
        pytest.param(b"<html>", None, None, id="not-json"),
        pytest.param(b'{"a": "\xff"}', None, None, id="not-utf-8"),
        pytest.param(b"[]", None, "the response is not a JSON object", id="list"),
        pytest.param(b"null", None, "the response is not a JSON object", id="null"),
        pytest.param(b"{}", "1", "the response does not match its checksum", id="wrong-checksum"),
        pytest.param(b"{}", "x", None, id="checksum-that-is-no-number"),
    ],
)
def test_damaged_body_is_refused(body: bytes, crc32: str | None, message: str | None) -> None:
    with pytest.raises(ValueError, match=message):
        parse_body(body, crc32)


def fields() -> Mapping[str, tuple[str, Read]]:
    return {"name": ("Name", optional(STRING.read)), "sizes": ("Sizes", optional(list_of(optional(INT.read))))}


@pytest.mark.parametrize(
    ("read", "attribute", "value"),
    [
        pytest.param(optional(INT.read), {"N": "1"}, 1, id="optional-value"),
        pytest.param(optional(INT.read), {"NULL": True}, None, id="optional-null"),
        pytest.param(list_of(INT.read), {"L": [{"N": "1"}, {"N": "2"}]}, [1, 2], id="list"),
        pytest.param(list_of(INT.read), {"L": []}, [], id="empty-list"),
        pytest.param(list_of(optional(INT.read)), {"L": [{"NULL": True}]}, [None], id="list-with-null"),
        pytest.param(list_of(list_of(INT.read)), {"L": [{"L": [{"N": "1"}]}]}, [[1]], id="list-of-lists"),
        pytest.param(list_of(STRING.read), {"SS": ["a", "b"]}, ["a", "b"], id="set-of-texts"),
        pytest.param(list_of(DECIMAL.read), {"NS": ["1", "2.5"]}, [1, DECIMAL.check("2.5")], id="set-of-numbers"),
        pytest.param(list_of(BASE64.read), {"BS": ["aGk="]}, ["aGk="], id="set-of-binaries"),
        pytest.param(
            list_of(DATE_TIME.read), {"NS": ["0"]}, ["1970-01-01T00:00:00Z"], id="set-of-moments-kept-as-seconds"
        ),
        pytest.param(map_of(fields), {"M": {"Name": {"S": "a"}}}, {"name": "a", "sizes": None}, id="map-with-a-gap"),
        pytest.param(
            map_of(fields),
            {"M": {"Sizes": {"L": [{"N": "1"}]}, "Other": {"S": "x"}, "Name": {"NULL": True}}},
            {"name": None, "sizes": [1]},
            id="map-with-more-than-the-model-knows",
        ),
        pytest.param(
            list_of(map_of(fields)), {"L": [{"M": {}}]}, [{"name": None, "sizes": None}], id="list-of-empty-maps"
        ),
    ],
)
def test_attribute_is_read_as(read: Read, attribute: Mapping[str, Any], value: Any) -> None:
    assert read(attribute) == value


@pytest.mark.parametrize(
    ("read", "attribute", "expected"),
    [
        pytest.param(list_of(INT.read), {"N": "1"}, "type L, SS, NS or BS", id="number-for-a-list"),
        pytest.param(list_of(INT.read), {"SS": ["a"]}, "type N", id="set-of-texts-for-numbers"),
        pytest.param(list_of(INT.read), {"L": [{"N": "1"}, {"NULL": True}]}, "type N", id="null-in-a-strict-list"),
        pytest.param(map_of(fields), {"L": []}, "type M", id="list-for-a-map"),
        pytest.param(map_of(fields), {"M": {"Name": {"N": "1"}}}, "type S", id="wrong-type-inside"),
    ],
)
def test_attribute_of_a_wrong_type_is_refused(read: Read, attribute: Mapping[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}$"):
        read(attribute)


def test_type_may_hold_itself() -> None:
    def tree() -> Mapping[str, tuple[str, Read]]:
        return {"name": ("n", STRING.read), "inner": ("i", map_of(tree))}

    read = map_of(tree)

    assert read({"M": {"n": {"S": "a"}, "i": {"M": {"n": {"S": "b"}}}}}) == {
        "name": "a",
        "inner": {"name": "b", "inner": None},
    }


# --- values, written ----------------------------------------------------------------------------------------------

STORED = [scalar for scalar in ALL_SCALARS if scalar.name != "JSON"]
"""JSON keeps None and numbers in its own way."""


@given(st.sampled_from(STORED).flatmap(lambda scalar: st.tuples(st.just(scalar), st.lists(values(scalar)))))
def test_list_is_read_as_it_was_written(drawn: tuple[Scalar, list[Any]]) -> None:
    scalar, entries = drawn

    assert list_of(scalar.read)(as_list(scalar.write)(entries)) == entries


@given(st.lists(st.lists(st.none() | values(INT))))
def test_lists_and_nulls_inside_a_list_are_read_as_they_were_written(entries: list[list[int | None]]) -> None:
    write = as_list(as_list(or_null(INT.write)))

    assert list_of(list_of(optional(INT.read)))(write(entries)) == entries


IN_SETS = [scalar for scalar in STORED if scalar.name not in ("Boolean", "Date", "DateTime")]


@given(
    st.sampled_from(IN_SETS).flatmap(
        lambda scalar: st.tuples(st.just(scalar), st.lists(values(scalar), min_size=1, unique=True))
    )
)
def test_set_is_read_as_it_was_written(drawn: tuple[Scalar, list[Any]]) -> None:
    scalar, entries = drawn

    assert list_of(scalar.read)(as_set(scalar.write)(entries)) == entries


def test_set_holds_each_value_once_as_it_is_stored() -> None:
    assert as_set(DECIMAL.write)([DECIMAL.check("1.0"), DECIMAL.check("1"), DECIMAL.check("2")]) == {"NS": ["1", "2"]}
    assert as_set(ID.write)(["b", "a", "b"]) == {"SS": ["b", "a"]}
    assert as_set(BASE64.write)(["aGk="]) == {"BS": ["aGk="]}
    assert as_set(ID.write)([]) == {"NULL": True}


def writers() -> Mapping[str, tuple[str, Write]]:
    return {"name": ("Name", STRING.write), "sizes": ("Sizes", as_list(or_null(INT.write)))}


@given(st.fixed_dictionaries({"name": st.none() | values(STRING), "sizes": st.none() | st.lists(values(INT))}))
def test_map_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    assert map_of(fields)(as_map(writers)(value)) == value


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        pytest.param({}, {"M": {}}, id="empty"),
        pytest.param({"name": None, "sizes": []}, {"M": {"Sizes": {"L": []}}}, id="none"),
        pytest.param({"name": "a", "other": "b"}, {"M": {"Name": {"S": "a"}}}, id="more-than-the-model-knows"),
    ],
)
def test_map_is_written_as(value: dict[str, Any], attribute: Mapping[str, Any]) -> None:
    assert as_map(writers)(value) == attribute


@given(MOMENTS.map(date_time_text).filter(lambda text: text < "5138"))
def test_moment_is_read_to_the_second_that_was_written(text: str) -> None:
    back = DATE_TIME.read(as_seconds(text))

    assert instant(back) == instant(text).replace(microsecond=0)


def test_second_that_would_be_read_as_milliseconds_is_refused() -> None:
    assert as_seconds("5138-11-16T09:46:40Z") == {"N": "100000000000"}
    with pytest.raises(ValueError, match=r"^a date and time up to 5138-11-16T09:46:40Z$"):
        as_seconds("5138-11-16T09:46:41Z")
