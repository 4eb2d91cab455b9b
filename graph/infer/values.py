"""What the values of an attribute are: the scalar, list, set or map that reads all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from graph.scalars import DATE, DATE_TIME, AttributeValue

MOST_INT = 2**31 - 1
FLOAT_DIGITS = 15
MOST_MEMBERS = 40
"""A map with more attributes than these is a dictionary, and not an object."""
MOST_DEPTH = 6
ENUM_SEEN, ENUM_VALUES, ENUM_EACH = 20, 8, 3
"""A text is one of a few values if so many were seen, of so many different ones, each so often."""

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
KSUID = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*[A-Z])[0-9A-Za-z]{27}")
NAMED_ID = re.compile(r"(?:^|[a-z0-9_.-])(?:ID|Id|_id|-id)$|^id$")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
ENUM_NAME = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)
TIME_NAME = re.compile(r"at$|time|date|ttl|expir|until|since|timestamp|epoch", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Kind:
    """What values are: a scalar by its name, or a list, set or map of others."""

    name: str = ""
    of: Kind | None = None
    has_nulls: bool = False
    """A list holds nulls."""
    is_set: bool = False
    members: Mapping[str, Member] = field(default_factory=dict)
    """The attributes of a map."""
    values: tuple[str, ...] = ()
    """The values of an enum."""
    note: str = ""
    """Why it is not sure."""

    @property
    def is_map(self) -> bool:
        """Say whether it is an object."""
        return bool(self.members)


@dataclass(frozen=True, slots=True)
class Member:
    """An attribute of a map."""

    kind: Kind
    is_always: bool


JSON = Kind("JSON")


def kind_of(values: Iterable[AttributeValue], name: str = "", depth: int = 0) -> Kind:
    """Say what values are, those of the attribute of this name."""
    found = [value for value in values if "NULL" not in value]
    letters = {next(iter(value)) for value in found}
    if len(letters) != 1:
        seen = ", ".join(sorted(letters))
        return Kind("JSON", note=f"values of types {seen}" if letters else "nothing but nulls")
    (letter,) = letters
    contents = [value[letter] for value in found]
    if letter == "S":
        return _text(contents, name)
    if letter == "N":
        return _number([Decimal(one) for one in contents], name)
    if letter in ("SS", "NS", "BS"):
        inner = kind_of(({letter[0]: one} for content in contents for one in content), name, depth)
        return Kind(of=inner, is_set=True)
    if letter == "L":
        return _list([entry for content in contents for entry in content], name, depth)
    if letter == "M":
        return _map(contents, depth)
    return Kind({"BOOL": "Boolean", "B": "Base64"}.get(letter, "JSON"))


def _text(texts: Sequence[str], name: str) -> Kind:
    if found := date_kind(texts):
        return Kind(found)
    if NAMED_ID.search(name) or all(UUID.fullmatch(text) or ULID.fullmatch(text) for text in texts):
        return Kind("ID")
    counts = Counter(texts)
    few = len(texts) >= ENUM_SEEN and 2 <= len(counts) <= ENUM_VALUES and min(counts.values()) >= ENUM_EACH
    reserved = ("TRUE", "FALSE", "NULL")
    if few and all(ENUM_NAME.fullmatch(text) and text not in reserved and "__" not in text for text in counts):
        note = f"{len(texts)} values seen, {len(counts)} different ones: another one would be an error"
        return Kind("Enum", values=tuple(sorted(counts)), note=note)
    return Kind("String")


def date_kind(texts: Sequence[str]) -> str | None:
    """Name the scalar of texts that are all dates, or all dates with times."""
    for scalar in (DATE, DATE_TIME):
        if texts and all(_is(scalar.from_text, text) for text in texts):
            return scalar.name
    return None


def _is(read: object, text: str) -> bool:
    assert callable(read)
    try:
        read(text)
    except ValueError:
        return False
    return True


def _number(numbers: Sequence[Decimal], name: str) -> Kind:
    if all(number == number.to_integral_value() for number in numbers):
        most = max(abs(number) for number in numbers)
        note = ""
        if TIME_NAME.search(name) and all(10**9 <= number < 10**13 for number in numbers):
            unit = "seconds" if most < 10**11 else "milliseconds"
            note = f"{unit} since 1970? Declared DateTime it reads as a time, and is written as text"
        return Kind("Int" if most <= MOST_INT else "BigInt", note=note)
    digits = max(len(number.as_tuple().digits) for number in numbers)
    sizes = [number.adjusted() for number in numbers if number]
    return Kind("Float" if digits <= FLOAT_DIGITS and max(map(abs, sizes)) < 100 else "Decimal")


def _list(entries: list[AttributeValue], name: str, depth: int) -> Kind:
    inner = kind_of(entries, name, depth + 1) if entries and depth < MOST_DEPTH else JSON
    if inner.name == "JSON" or inner.of is not None:
        return Kind("JSON", note=inner.note and f"a list of {inner.note}")
    return Kind(of=inner, has_nulls=any("NULL" in entry for entry in entries))


def _map(maps: Sequence[Mapping[str, AttributeValue]], depth: int) -> Kind:
    names = by_frequency(maps)
    typical = max((len(one) for one in maps), default=0)
    is_dictionary = len(names) > MOST_MEMBERS or len(names) > 3 * max(typical, 2)
    if not names or is_dictionary or depth >= MOST_DEPTH or not all(is_field_name(name) for name in names):
        return Kind("JSON", note="a map whose names are values" if is_dictionary else "")
    members = {
        name: Member(kind_of((one[name] for one in maps if name in one), name, depth + 1), is_always(name, maps))
        for name in names
    }
    return Kind(members=members)


def is_always(name: str, items: Sequence[Mapping[str, AttributeValue]]) -> bool:
    """Say whether every item has an attribute that is not null, and there are enough of them to tell."""
    return len(items) >= ENOUGH and all(name in item and "NULL" not in item[name] for item in items)


ENOUGH = 3
"""Of fewer items than these nobody can tell what all of them have."""


def is_field_name(name: str) -> bool:
    """Say whether a name may be that of a field."""
    return NAME.fullmatch(name) is not None and not name.startswith("__")


def by_frequency(items: Iterable[Mapping[str, AttributeValue]]) -> list[str]:
    """List the attributes of items, those first that most of them have: DynamoDB keeps no order."""
    counts = Counter(name for item in items for name in item)
    return sorted(counts, key=lambda name: (-counts[name], name))
