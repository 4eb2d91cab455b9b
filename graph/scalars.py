"""The scalar types: how each is stored in an attribute, written into a key, compared and checked."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any

AttributeValue = Mapping[str, Any]
"""An attribute as DynamoDB's JSON carries it: one type letter and the value, `{"N": "1.5"}`."""


class TextOrder(Enum):
    """How the order of a scalar's key texts relates to the order of its values."""

    NONE = "no relation"
    FREE = "same order, but texts differ in length: only a template's last variable may be ranged over"
    FIXED = "same order, and no text is a prefix of another"
    SECONDS = "same order down to the second: a range is widened to whole seconds and filtered again"


@dataclass(frozen=True, slots=True, repr=False)
class Scalar:
    """One scalar type.

    `check` turns a caller's value into the canonical Python value, `read` and `write` go from and to an attribute,
    `to_text` and `from_text` go to and from a key; what takes in values of others (`check`, `read`, `from_text`) raises
    ValueError with the expectation as its message.
    """

    name: str
    check: Callable[[Any], Any]
    read: Callable[[AttributeValue], Any]
    write: Callable[[Any], AttributeValue]
    to_text: Callable[[Any], str]
    from_text: Callable[[str], Any]
    pattern: str
    order: TextOrder
    numeric: bool = False
    in_key: bool = True
    comparable: Callable[[Any], Any] = lambda value: value
    same_in_store: bool = True
    """DynamoDB's comparison of the attribute agrees with ours, so that a filter may be left to it."""
    values: tuple[str, ...] = ()
    """All values of an enum."""

    def __repr__(self) -> str:
        # A filter's text names its connection in every process alike: nothing of where the functions lie in memory.
        return f"Scalar({self.name})"


def _only(letter: str) -> Callable[[AttributeValue], Any]:
    def read(value: AttributeValue) -> Any:
        if letter in value:
            return value[letter]
        raise ValueError(f"type {letter}")

    return read


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("a string")


def _id(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError("a string or an integer")


def _read_id(value: AttributeValue) -> str:
    if "S" in value:
        return str(value["S"])
    if "N" in value:
        return str(value["N"])
    raise ValueError("type S or N")


_NUMBER = re.compile(r"[-+]?[\d.]+(?:[Ee][-+]?\d+)?", re.ASCII)


def storable(value: Any, expected: str = "a decimal number of at most 38 digits, best as a string") -> Decimal:
    """Take a number as DynamoDB keeps it: 38 digits, from 1E-130 to 9.9E+125 in size. Raises ValueError."""
    try:
        text = str(value)
        number = Decimal(text)
    except (ValueError, ArithmeticError):
        raise ValueError(expected) from None
    digits = "".join(map(str, number.as_tuple().digits)).strip("0")
    # Decimal reads much that is no number elsewhere: NaN, 1_000, digits of other scripts.
    if isinstance(value, bool) or not _NUMBER.fullmatch(text) or len(digits) > 38:
        raise ValueError(expected)
    if digits and not -130 <= number.adjusted() <= 125:
        raise ValueError(expected)
    return number if digits else Decimal(0)


def number_text(value: Any) -> str:
    """Write a number the one way that equal numbers share: no exponent, no trailing zeros."""
    # Not by normalize(), which rounds to the 28 digits of the decimal context: DynamoDB keeps 38.
    text = format(value if isinstance(value, Decimal) else Decimal(str(value)), "f")
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _int(value: Any) -> int:
    expected = "an integer of at most 38 digits"
    number = storable(value, expected)
    if number != number.to_integral_value():
        raise ValueError(expected)
    return int(number)


def _read_int(value: AttributeValue) -> int:
    number = Decimal(_only("N")(value))
    if number != number.to_integral_value():
        raise ValueError("a whole number")
    return int(number)


def _float(value: Any) -> float:
    return float(storable(value, "a number, 0 or from 1E-130 to 9.9E+125 in size"))


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("true or false")


def _bool_from_text(text: str) -> bool:
    if text in ("true", "false"):
        return text == "true"
    raise ValueError("true or false")


_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _date(value: Any) -> str:
    if isinstance(value, str) and _DATE.fullmatch(value):
        with suppress(ValueError):
            return date.fromisoformat(value).isoformat()
    raise ValueError("a date like 2022-07-19")


_DATE_TIME = re.compile(_DATE.pattern + r"[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_SECOND = 10**11
"""The largest number of seconds since 1970 that is read as such: larger ones are milliseconds."""


def instant(text: str) -> datetime:
    """Read a date and time with its offset, to the microsecond. Raises ValueError when it is not one (RFC 3339)."""
    if _DATE_TIME.fullmatch(text):
        with suppress(ValueError):
            return datetime.fromisoformat(text.upper().replace("Z", "+00:00"))
    raise ValueError("a date and time with offset, like 2022-07-19T17:59:58Z")


def date_time_text(moment: datetime) -> str:
    """Write a moment in UTC, with as much of a fraction as it has. Raises ValueError outside the years 1 to 9999."""
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise ValueError("a date and time between the years 1 and 9999") from None


def _date_time(value: Any) -> str:
    return date_time_text(instant(_string(value)))


def _as_written(text: str) -> str:
    instant(text)
    return text


def _read_date_time(value: AttributeValue) -> str:
    """Read ISO text, or seconds since 1970 as many tables keep them (milliseconds when too large for seconds)."""
    if "S" in value:
        return _as_written(value["S"])
    if "N" in value:
        seconds = Decimal(value["N"])
        return epoch_to_date_time(seconds / 1000 if abs(seconds) > LAST_SECOND else seconds)
    raise ValueError("type S (ISO 8601) or N (seconds since 1970)")


def epoch_to_date_time(seconds: Decimal | int) -> str:
    """Write seconds since 1970 as a date and time in UTC."""
    try:
        return date_time_text(_EPOCH + timedelta(microseconds=int(Decimal(seconds) * 10**6)))
    except OverflowError:
        raise ValueError("seconds since 1970") from None


def date_time_to_epoch(text: str) -> int:
    """Count the whole seconds since 1970 of a date and time."""
    return (instant(text) - _EPOCH) // timedelta(seconds=1)


def _base64(value: Any) -> str:
    try:
        raw = base64.b64decode(_string(value), validate=True)
    except ValueError:
        raise ValueError("standard base64") from None
    return base64.b64encode(raw).decode()


def _plain_number(text: str) -> int | float | str:
    """Turn a DynamoDB number into a JSON number where that loses nothing, else leave its text."""
    number = Decimal(text)
    if number == number.to_integral_value() and -(2**63) <= number < 2**63:
        return int(number)
    as_float = float(number)
    return as_float if Decimal(repr(as_float)) == number else text


def read_json(value: AttributeValue) -> Any:
    """Turn any attribute into the JSON value nearest to it; binary becomes base64."""
    ((letter, content),) = value.items()
    if letter in ("S", "B", "BOOL", "SS", "BS"):
        return content
    if letter == "NULL":
        return None
    if letter == "N":
        return _plain_number(content)
    if letter == "NS":
        return [_plain_number(number) for number in content]
    if letter == "L":
        return [read_json(entry) for entry in content]
    return {name: read_json(entry) for name, entry in content.items()}


def write_json(value: Any) -> AttributeValue:
    """Store a JSON value as the attribute nearest to it."""
    if value is None:
        return {"NULL": True}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, (int, float, Decimal)):
        return _number(storable(value))
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, Mapping):
        return {"M": {str(name): write_json(entry) for name, entry in value.items()}}
    if isinstance(value, (list, tuple)):
        return {"L": [write_json(entry) for entry in value]}
    raise ValueError("a JSON value")


def _text(value: Any) -> AttributeValue:
    return {"S": value}


def _number(value: Any) -> AttributeValue:
    return {"N": number_text(value)}


ID = Scalar("ID", _id, _read_id, _text, str, str, ".+?", TextOrder.FREE, same_in_store=False)
STRING = Scalar("String", _string, _only("S"), _text, str, str, ".+?", TextOrder.FREE)
INT = Scalar("Int", _int, _read_int, _number, str, int, r"-?\d+", TextOrder.NONE, numeric=True)
BIG_INT = Scalar("BigInt", _int, _read_int, _number, str, int, r"-?\d+", TextOrder.NONE, numeric=True)
FLOAT = Scalar(
    "Float",
    _float,
    lambda value: float(_only("N")(value)),
    _number,
    number_text,
    float,
    r"-?\d+(?:\.\d+)?",
    TextOrder.NONE,
    numeric=True,
)
DECIMAL = Scalar(
    "Decimal",
    storable,
    lambda value: Decimal(_only("N")(value)),
    _number,
    number_text,
    Decimal,
    r"-?\d+(?:\.\d+)?",
    TextOrder.NONE,
    numeric=True,
)
BOOLEAN = Scalar(
    "Boolean",
    _bool,
    _only("BOOL"),
    lambda value: {"BOOL": value},
    lambda value: "true" if value else "false",
    _bool_from_text,
    "true|false",
    TextOrder.NONE,
)
DATE = Scalar(
    "Date",
    _date,
    lambda value: _date(_only("S")(value)),
    _text,
    str,
    _date,
    _DATE.pattern,
    TextOrder.FIXED,
)
DATE_TIME = Scalar(
    "DateTime",
    _date_time,
    _read_date_time,
    _text,
    str,
    _as_written,
    _DATE_TIME.pattern,
    TextOrder.SECONDS,
    comparable=instant,
    same_in_store=False,
)
JSON = Scalar(
    "JSON",
    lambda value: value,
    read_json,
    write_json,
    str,
    str,
    ".+?",
    TextOrder.NONE,
    in_key=False,
    same_in_store=False,
)
BASE64 = Scalar(
    "Base64",
    _base64,
    _only("B"),
    lambda value: {"B": value},
    str,
    str,
    ".+?",
    TextOrder.NONE,
    in_key=False,
    same_in_store=False,
)

SCALARS: Mapping[str, Scalar] = {
    scalar.name: scalar for scalar in (ID, STRING, INT, FLOAT, BOOLEAN, DATE, DATE_TIME, DECIMAL, BIG_INT, JSON, BASE64)
}


def enum_scalar(name: str, values: tuple[str, ...]) -> Scalar:
    """Make the scalar of an enum: its values are stored and written into keys as their names."""
    expected = f"one of {', '.join(values)}"

    def check(value: Any) -> str:
        if value in values:
            return str(value)
        raise ValueError(expected)

    # Longest first, so that a value which another one begins with is not cut short.
    pattern = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
    read_text = _only("S")
    return Scalar(
        name,
        check,
        lambda value: check(read_text(value)),
        _text,
        str,
        check,
        pattern,
        TextOrder.NONE,
        values=values,
    )


def ignoring_case(scalar: Scalar) -> Scalar:
    """Make the variant of a text scalar whose values are compared without regard to case."""
    return replace(scalar, comparable=str.lower, same_in_store=False)


def sample(scalar: Scalar, number: str) -> Any:
    """Make a value of a scalar; another number makes another one."""
    day = f"2022-01-{1 + int(number) % 28:02}"
    samples: dict[str, Any] = {
        "Boolean": True,
        "Date": day,
        "DateTime": f"{day}T00:00:00Z",
        "JSON": {},
        "Base64": "",
    }
    return scalar.values[0] if scalar.values else samples.get(scalar.name, int(number) if scalar.numeric else number)
