"""Scalars: how each is checked, stored, read and written into a key, and that no digit is lost on the way."""

from __future__ import annotations

import re
from datetime import timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.scalars import (
    SCALARS,
    Scalar,
    TextOrder,
    date_time_to_epoch,
    enum_scalar,
    epoch_to_date_time,
    instant,
    number_text,
    read_json,
    storable,
    write_json,
)
from tests.strategies import ALL_SCALARS, DECIMALS, JSON_VALUES, MOMENTS, STATUS, values

DIGITS_38 = "12345678901234567890123456789012345678"
each_scalar = pytest.mark.parametrize("scalar", ALL_SCALARS, ids=lambda scalar: scalar.name)
each_key_scalar = pytest.mark.parametrize(
    "scalar", [scalar for scalar in ALL_SCALARS if scalar.in_key], ids=lambda scalar: scalar.name
)


def named(name: str) -> Scalar:
    return STATUS if name == "Status" else SCALARS[name]


@pytest.mark.parametrize(
    ("scalar", "given_", "canonical"),
    [
        pytest.param("ID", 7, "7", id="an-integer-is-an-id"),
        pytest.param("ID", "007", "007", id="zeros-of-an-id-stay"),
        pytest.param("String", "", "", id="empty-text-is-text"),
        pytest.param("Int", -3, -3, id="int"),
        pytest.param("BigInt", DIGITS_38, int(DIGITS_38), id="big-int-from-text"),
        pytest.param("BigInt", "-0", 0, id="minus-zero-is-zero"),
        pytest.param("BigInt", "1e3", 1000, id="big-int-with-exponent"),
        pytest.param("Float", 1, 1.0, id="float-from-int"),
        pytest.param("Decimal", "0.10", Decimal("0.1"), id="decimal-from-text"),
        pytest.param("Decimal", 0.1, Decimal("0.1"), id="decimal-from-float-is-what-was-written"),
        pytest.param("Decimal", DIGITS_38, Decimal(DIGITS_38), id="decimal-of-38-digits"),
        pytest.param("Decimal", "0." + "0" * 100 + "1", Decimal("1e-101"), id="zeros-in-front-are-no-digits"),
        pytest.param("Decimal", "0e999999999", Decimal(0), id="zero-has-no-exponent"),
        pytest.param("Boolean", False, False, id="boolean"),
        pytest.param("Date", "2024-02-29", "2024-02-29", id="leap-day"),
        pytest.param("DateTime", "2022-07-19T19:59:58+02:00", "2022-07-19T17:59:58Z", id="offset-becomes-utc"),
        pytest.param("DateTime", "2022-07-19t17:59:58z", "2022-07-19T17:59:58Z", id="small-letters"),
        pytest.param(
            "DateTime", "2022-07-19T17:59:58.5Z", "2022-07-19T17:59:58.500000Z", id="fraction-to-microseconds"
        ),
        pytest.param("DateTime", "2022-07-19T17:59:58.000Z", "2022-07-19T17:59:58Z", id="fraction-of-nothing-goes"),
        pytest.param("Base64", "aGk=", "aGk=", id="base64"),
        pytest.param("JSON", {"a": [1, None]}, {"a": [1, None]}, id="json-is-taken-as-it-is"),
        pytest.param("Status", "OPEN", "OPEN", id="enum"),
    ],
)
def test_check_gives_the_canonical_value(scalar: str, given_: Any, canonical: Any) -> None:
    value = named(scalar).check(given_)

    assert (value, type(value)) == (canonical, type(canonical))


@pytest.mark.parametrize(
    ("scalar", "given_", "expected"),
    [
        pytest.param("ID", True, "a string or an integer", id="id-boolean"),
        pytest.param("ID", 1.5, "a string or an integer", id="id-float"),
        pytest.param("String", 1, "a string", id="string-number"),
        pytest.param("Int", "x", "an integer of at most 38 digits", id="int-text"),
        pytest.param("Int", True, "an integer of at most 38 digits", id="int-boolean"),
        pytest.param("BigInt", 1.5, "an integer of at most 38 digits", id="big-int-fraction"),
        pytest.param("BigInt", DIGITS_38 + "9", "an integer of at most 38 digits", id="big-int-39-digits"),
        pytest.param("Float", "x", "a number, 0 or from 1E-130 to 9.9E+125 in size", id="float-text"),
        pytest.param("Float", 1e200, "a number, 0 or from 1E-130 to 9.9E+125 in size", id="float-too-large"),
        pytest.param("Float", 1e-200, "a number, 0 or from 1E-130 to 9.9E+125 in size", id="float-too-small"),
        pytest.param("Decimal", "1,5", "a decimal number of at most 38 digits, best as a string", id="decimal-comma"),
        pytest.param("Decimal", None, "a decimal number of at most 38 digits, best as a string", id="decimal-none"),
        pytest.param("Boolean", 1, "true or false", id="boolean-number"),
        pytest.param("Date", "19.7.2022", "a date like 2022-07-19", id="date-of-another-form"),
        pytest.param("Date", "2023-02-29", "a date like 2022-07-19", id="date-that-is-none"),
        pytest.param("Date", "2022-W01-1", "a date like 2022-07-19", id="week-date"),
        pytest.param("Date", 20220719, "a date like 2022-07-19", id="date-number"),
        pytest.param(
            "DateTime",
            "2022-07-19T17:59:58",
            "a date and time with offset, like 2022-07-19T17:59:58Z",
            id="date-time-without-offset",
        ),
        pytest.param(
            "DateTime",
            "2022-13-19T17:59:58Z",
            "a date and time with offset, like 2022-07-19T17:59:58Z",
            id="month-13",
        ),
        pytest.param(
            "DateTime", "0001-01-01T00:00:00+01:00", "a date and time between the years 1 and 9999", id="year-0-in-utc"
        ),
        pytest.param("Base64", "aGk", "standard base64", id="base64-without-padding"),
        pytest.param("Base64", "a_-=", "standard base64", id="base64-of-urls"),
        pytest.param("Base64", "é", "standard base64", id="base64-not-ascii"),
        pytest.param("Status", "CLOSED", "one of OPEN, OPENED, OPEN_AGAIN, SHIPPED", id="enum-unknown"),
        pytest.param("Status", ["OPEN"], "one of OPEN, OPENED, OPEN_AGAIN, SHIPPED", id="enum-list"),
    ],
)
def test_check_refuses_with_what_it_expected(scalar: str, given_: Any, expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(expected)}$"):
        named(scalar).check(given_)


@pytest.mark.parametrize(
    ("scalar", "attribute", "value"),
    [
        pytest.param("ID", {"N": "7"}, "7", id="id-of-a-number"),
        pytest.param("Int", {"N": "3.0"}, 3, id="whole-number-with-a-point"),
        pytest.param("BigInt", {"N": DIGITS_38}, int(DIGITS_38), id="38-digits-of-a-big-int"),
        pytest.param(
            "Decimal", {"N": "1." + DIGITS_38[1:]}, Decimal("1." + DIGITS_38[1:]), id="38-digits-of-a-decimal"
        ),
        pytest.param("Float", {"N": "20.56"}, 20.56, id="float"),
        pytest.param(
            "DateTime", {"S": "2022-07-19T19:59:58+02:00"}, "2022-07-19T19:59:58+02:00", id="moment-as-stored"
        ),
        pytest.param("DateTime", {"N": "1658253598"}, "2022-07-19T17:59:58Z", id="moment-from-seconds"),
        pytest.param("DateTime", {"N": "1658253598.25"}, "2022-07-19T17:59:58.250000Z", id="moment-from-a-fraction"),
        pytest.param("DateTime", {"N": "1658253598123"}, "2022-07-19T17:59:58.123000Z", id="moment-from-milliseconds"),
        pytest.param("DateTime", {"N": "-1"}, "1969-12-31T23:59:59Z", id="moment-before-1970"),
        pytest.param("Boolean", {"BOOL": False}, False, id="boolean"),
        pytest.param("Base64", {"B": "aGk="}, "aGk=", id="binary"),
        pytest.param("Status", {"S": "OPEN"}, "OPEN", id="enum"),
    ],
)
def test_attribute_is_read_as(scalar: str, attribute: dict[str, Any], value: Any) -> None:
    assert named(scalar).read(attribute) == value


@pytest.mark.parametrize(
    ("scalar", "attribute", "expected"),
    [
        pytest.param("ID", {"BOOL": True}, "type S or N", id="id-of-a-boolean"),
        pytest.param("String", {"N": "1"}, "type S", id="string-of-a-number"),
        pytest.param("Int", {"N": "1.5"}, "a whole number", id="int-of-a-fraction"),
        pytest.param("Int", {"S": "1"}, "type N", id="int-of-text"),
        pytest.param("Float", {"NS": ["1"]}, "type N", id="float-of-a-set"),
        pytest.param("Boolean", {"S": "true"}, "type BOOL", id="boolean-of-text"),
        pytest.param("Date", {"S": "yesterday"}, "a date like 2022-07-19", id="date-of-prose"),
        pytest.param("DateTime", {"BOOL": True}, r"type S \(ISO 8601\) or N \(seconds since 1970\)", id="moment"),
        pytest.param("DateTime", {"N": "1e100"}, "seconds since 1970", id="moment-beyond-the-calendar"),
        pytest.param("Base64", {"S": "aGk="}, "type B", id="binary-of-text"),
        pytest.param("Status", {"S": "CLOSED"}, "one of OPEN, OPENED, OPEN_AGAIN, SHIPPED", id="enum-unknown"),
    ],
)
def test_attribute_of_a_wrong_type_is_refused(scalar: str, attribute: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}$"):
        named(scalar).read(attribute)


@each_scalar
@given(data=st.data())
def test_what_is_written_is_read_back(scalar: Scalar, data: st.DataObject) -> None:
    value = data.draw(values(scalar))

    assert scalar.read(scalar.write(value)) == value


@each_scalar
@given(data=st.data())
def test_a_canonical_value_stays_what_it_is(scalar: Scalar, data: st.DataObject) -> None:
    value = data.draw(values(scalar))

    assert scalar.check(value) == value


@each_key_scalar
@given(data=st.data())
def test_text_in_a_key_fits_the_pattern_and_gives_the_value_back(scalar: Scalar, data: st.DataObject) -> None:
    value = data.draw(values(scalar))

    text = scalar.to_text(value)

    assert re.fullmatch(scalar.pattern, text, re.DOTALL | re.ASCII)
    assert scalar.from_text(text) == value


@pytest.mark.parametrize("name", ["Date", "String", "ID"])
@given(data=st.data())
def test_order_of_texts_is_the_order_of_values(name: str, data: st.DataObject) -> None:
    scalar = SCALARS[name]
    one, other = data.draw(values(scalar)), data.draw(values(scalar))

    assert scalar.order in (TextOrder.FREE, TextOrder.FIXED)
    # DynamoDB compares UTF-8 bytes.
    assert (scalar.to_text(one).encode() < scalar.to_text(other).encode()) == (one < other)


@given(one=MOMENTS, other=MOMENTS)
def test_order_of_moments_survives_down_to_the_second(one: Any, other: Any) -> None:
    texts = [SCALARS["DateTime"].check(moment.isoformat())[:19] for moment in (one, other)]

    assert (texts[0] < texts[1]) == (one.replace(microsecond=0) < other.replace(microsecond=0))


# --- numbers ------------------------------------------------------------------------------------------------------


@given(one=DECIMALS, exponent=st.integers(-5, 5))
def test_equal_numbers_have_one_text(one: Decimal, exponent: int) -> None:
    sign, digits, own = one.as_tuple()
    assert isinstance(own, int)
    padded = Decimal((sign, (*digits, *[0] * abs(exponent)), own - abs(exponent)))

    assert number_text(one) == number_text(padded)
    assert Decimal(number_text(one)) == one


@given(DECIMALS)
def test_number_has_neither_exponent_nor_needless_zeros(number: Decimal) -> None:
    assert re.fullmatch(r"-?(0|[1-9]\d*)(\.\d*[1-9])?", number_text(number))


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(-0.0, "0", id="minus-zero"),
        pytest.param(Decimal("-0.00"), "0", id="minus-zero-with-places"),
        pytest.param(Decimal("1E+3"), "1000", id="exponent"),
        pytest.param(1e-7, "0.0000001", id="small-float"),
        pytest.param(100, "100", id="zeros-before-the-point-stay"),
        pytest.param(Decimal(DIGITS_38), DIGITS_38, id="38-digits"),
    ],
)
def test_number_is_written_as(number: Any, text: str) -> None:
    assert number_text(number) == text


@given(DECIMALS)
def test_every_number_that_dynamodb_keeps_is_storable(number: Decimal) -> None:
    assert storable(number) == number


# --- moments ------------------------------------------------------------------------------------------------------


@given(moment=MOMENTS, offset=st.integers(-23 * 60, 23 * 60))
def test_a_moment_is_the_same_in_every_offset(moment: Any, offset: int) -> None:
    try:
        elsewhere = moment.astimezone(timezone(timedelta(minutes=offset)))
    except OverflowError:
        return

    assert instant(SCALARS["DateTime"].check(elsewhere.isoformat())) == moment


@given(MOMENTS)
def test_epoch_is_the_last_whole_second(moment: Any) -> None:
    seconds = date_time_to_epoch(moment.isoformat())

    assert instant(epoch_to_date_time(seconds)) == moment.replace(microsecond=0)


# --- JSON ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        pytest.param({"S": ""}, "", id="text"),
        pytest.param({"N": "1"}, 1, id="whole-number"),
        pytest.param({"N": "1.5"}, 1.5, id="fraction"),
        pytest.param({"N": DIGITS_38}, DIGITS_38, id="more-digits-than-json-keeps-stay-text"),
        pytest.param({"N": "0.1234567890123456789"}, "0.1234567890123456789", id="more-places-than-a-float-stay-text"),
        pytest.param({"BOOL": True}, True, id="boolean"),
        pytest.param({"NULL": True}, None, id="null"),
        pytest.param({"B": "aGk="}, "aGk=", id="binary-is-base64"),
        pytest.param({"SS": ["a", "b"]}, ["a", "b"], id="set-of-texts"),
        pytest.param({"NS": ["1", "2.5", DIGITS_38]}, [1, 2.5, DIGITS_38], id="set-of-numbers"),
        pytest.param({"BS": ["aGk="]}, ["aGk="], id="set-of-binaries"),
        pytest.param({"L": [{"S": "a"}, {"NULL": True}]}, ["a", None], id="list"),
        pytest.param({"M": {"a": {"M": {"b": {"N": "1"}}}}}, {"a": {"b": 1}}, id="map-in-map"),
    ],
)
def test_every_attribute_has_a_json_value(attribute: dict[str, Any], value: Any) -> None:
    assert read_json(attribute) == value
    assert SCALARS["JSON"].read is read_json


@given(JSON_VALUES)
def test_json_value_is_stored_whole(value: Any) -> None:
    assert read_json(write_json(value)) == value


# --- abuse --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Int", "BigInt", "Float", "Decimal"])
@pytest.mark.parametrize(
    "number",
    [
        pytest.param("1e999999999", id="exponent-that-would-fill-the-memory"),
        pytest.param("1e-999999999", id="exponent-that-would-fill-the-memory-with-zeros"),
        pytest.param("1e99999999999999999999", id="exponent-beyond-decimal"),
        pytest.param("9" * 10_000, id="10000-digits"),
        pytest.param(10**5000, id="int-that-python-does-not-print"),
        pytest.param("NaN", id="nan"),
        pytest.param("sNaN", id="signalling-nan"),
        pytest.param("Infinity", id="infinity"),
        pytest.param(float("inf"), id="infinite-float"),
        pytest.param(float("nan"), id="float-that-is-no-number"),
        pytest.param("1_000", id="underscore"),
        pytest.param(" 1", id="space"),
        pytest.param("1\n", id="line-end"),
        pytest.param("٣", id="digit-of-another-script"),
        pytest.param("1.2.3", id="two-points"),
        pytest.param(".", id="point"),
        pytest.param("", id="nothing"),
        pytest.param([], id="list"),
        pytest.param(True, id="boolean"),
    ],
)
def test_what_is_no_number_of_dynamodb_is_refused(name: str, number: Any) -> None:
    with pytest.raises(ValueError, match=r"number|integer"):
        SCALARS[name].check(number)


@pytest.mark.parametrize(
    "value", [float("inf"), float("nan"), 10**130, int(DIGITS_38 + "9"), {"a": [float("nan")]}, object(), {1, 2}]
)
def test_what_dynamodb_cannot_keep_is_no_json(value: Any) -> None:
    with pytest.raises(ValueError, match=r"number|JSON"):
        write_json(value)


@pytest.mark.parametrize("text", ["٢٠٢٢-07-19", "2022-07-19\n", "2022-7-19", "+022-07-19", "2022-07-19T00:00:00Z"])
def test_what_only_resembles_a_date_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a date like"):
        SCALARS["Date"].check(text)


@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.text()) | st.booleans())
def test_check_gives_a_value_or_a_value_error(value: Any) -> None:
    for scalar in ALL_SCALARS:
        try:
            scalar.check(value)
        except ValueError as error:
            assert str(error)  # noqa: PT017  # the property is about every scalar, and most refuse


@given(st.text(max_size=30))
def test_text_of_a_key_is_read_or_a_value_error(text: str) -> None:
    for scalar in ALL_SCALARS:
        if re.fullmatch(scalar.pattern, text, re.DOTALL | re.ASCII):
            try:
                value = scalar.from_text(text)
            except ValueError:
                continue
            assert scalar.to_text(value)


def test_enum_takes_the_longest_value_that_fits() -> None:
    scalar = enum_scalar("Size", ("S", "SM", "SMALL"))

    assert re.compile(scalar.pattern).match("SMALL")[0] == "SMALL"  # type: ignore[index]
