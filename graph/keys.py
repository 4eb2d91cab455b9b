"""Key templates: one declaration, compiled once into format, prefix and parse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, product
from typing import Any

from graph.errors import KeyValueError
from graph.scalars import Scalar, TextOrder, date_time_to_epoch, epoch_to_date_time, number_text, storable

Path = tuple[str, ...]
"""The fields that lead from an item to a variable: ("number",), or ("container", "number") through a reference."""

KeyValue = str | Decimal
"""A key attribute's value: text, or a number where the template is one numeric field alone."""

PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
AFTER_ALL = "\U0010ffff"
"""Sorts after every continuation of a prefix: DynamoDB orders text by its UTF-8 bytes."""

OURS = "tablegraph-"
"""How the partition keys of items begin that are nobody's data: the receipts of mutations."""

FORMATS = ("lower", "epoch")
EPOCH_DIGITS = 10
MAX_DIGITS = 38
MAX_SHARDS = 1000


@dataclass(frozen=True, slots=True)
class Literal:
    """Text that stands in the key as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Variable:
    """A field's value inside a key. `format` is "", "lower", "epoch" or digits such as "012"."""

    path: Path
    scalar: Scalar
    format: str = ""

    @property
    def name(self) -> str:
        return ".".join(self.path)

    @property
    def lossy(self) -> bool:
        """Say whether the key cannot give the value back whole, so that an attribute must keep it."""
        return self.format in ("lower", "epoch")

    @property
    def order(self) -> TextOrder:
        """Say how the order of the texts in the key relates to the order of the values."""
        if self.format == "lower":
            return TextOrder.NONE
        if self.format == "epoch" or self.format.isdigit():
            return TextOrder.FIXED
        return self.scalar.order

    @property
    def pattern(self) -> str:
        if self.format.isdigit():
            return rf"\d{{{int(self.format)}}}"
        return r"-?\d+" if self.format == "epoch" else self.scalar.pattern

    @property
    def is_free(self) -> bool:
        """Say whether any text at all can stand here."""
        return self.pattern == ".+?"

    def text(self, value: Any) -> str:
        """Write a value for the key. Raises KeyValueError when it cannot stand there."""
        if self.format == "epoch":
            # Ten digits are what a time since 2001 has anyway; the times before it are padded to keep the order.
            expected = "a time from 1970-01-01T00:00:00Z to 2286-11-20T17:46:39Z"
            return self._padded(str(date_time_to_epoch(value)), EPOCH_DIGITS, expected, value)
        text = self.scalar.to_text(value)
        if self.format == "lower":
            return text.lower()
        if self.format:
            digits = int(self.format)
            return self._padded(text, digits, f"a whole number from 0 to {'9' * digits}", text)
        return text

    def _padded(self, text: str, digits: int, expected: str, value: Any) -> str:
        if not text.isdigit() or len(text) > digits:
            raise KeyValueError(
                f"{self.name} is kept in a key with {digits} digits, so that text order is number order: expected "
                f"{expected}, got {value}"
            )
        return text.zfill(digits)

    def value(self, text: str) -> Any:
        """Read a value back from the key's text. Raises ValueError when the text is not one."""
        if self.format == "epoch":
            return epoch_to_date_time(int(text))
        return self.scalar.from_text(text)


@dataclass(frozen=True, slots=True)
class Shard:
    """A number below `count` that spreads a hot partition: random, or the hash of a field."""

    count: int
    path: Path | None = None


Part = Literal | Variable | Shard


@dataclass(frozen=True, slots=True)
class Template:
    """A key's shape.

    `read_template("CONTAINER_{number}")` resolved for a type whose `number` is an ID:

    format: {("number",): "009998"} → "CONTAINER_009998"
    prefix: {} → "CONTAINER_"
    parse:  "CONTAINER_009998" → {("number",): "009998"}, "PALLET_1" → None
    """

    source: str
    parts: tuple[Part, ...]
    variables: tuple[Variable, ...] = field(init=False, repr=False, compare=False)
    """The variables in order, without the shards."""
    is_number: bool = field(init=False, repr=False, compare=False)
    """The key attribute is of type N: the template is one numeric field alone."""
    _regex: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _groups: tuple[tuple[int, Variable], ...] = field(init=False, repr=False, compare=False)
    """The group of each variable, those first that lose nothing."""

    def __post_init__(self) -> None:
        variables = tuple(part for part in self.parts if isinstance(part, Variable))
        is_number = len(self.parts) == 1 and any(part.scalar.numeric and not part.format for part in variables)
        object.__setattr__(self, "variables", variables)
        object.__setattr__(self, "is_number", is_number)
        object.__setattr__(self, "_regex", re.compile(_pattern(self.parts), re.DOTALL | re.ASCII))
        groups = sorted(enumerate(variables, 1), key=lambda group: group[1].lossy)
        object.__setattr__(self, "_groups", tuple(groups))

    def format(self, values: Mapping[Path, Any], *, limit: int = PARTITION_KEY_BYTES) -> KeyValue:
        """Make the key of these values.

        Raises: KeyValueError when a value is missing, empty, too long, or would read back differently.
        """
        if self.is_number:
            return self._number(self.variables[0], values)
        text = "".join(self._text(part, values) for part in self.parts)
        try:
            size_bytes = len(text.encode())
        except UnicodeEncodeError:
            raise KeyValueError(f"the key {self.source!r} must be valid Unicode text, got {text!r}") from None
        if size_bytes > limit:
            raise KeyValueError(
                f"the key {self.source!r} may hold {limit} bytes, the values given make {size_bytes}: shorten "
                f"{', '.join(variable.name for variable in self.variables)}"
            )
        self._refuse_unreadable(text, values)
        return text

    @staticmethod
    def _number(variable: Variable, values: Mapping[Path, Any]) -> Decimal:
        try:
            return storable(_required(values, variable))
        except ValueError as error:
            raise KeyValueError(f"{variable.name} is a key: expected {error}, got {values[variable.path]!r}") from None

    def _text(self, part: Part, values: Mapping[Path, Any]) -> str:
        if isinstance(part, Literal):
            return part.text
        if isinstance(part, Shard):
            return str(values[shard_path(part)])
        text = part.text(_required(values, part))
        if not text:
            raise KeyValueError(f"{part.name} is part of a key ({self.source!r}) and may not be empty")
        return text

    def _refuse_unreadable(self, text: str, values: Mapping[Path, Any]) -> None:
        parsed = self.parse(text)
        for variable in self.variables:
            back = None if parsed is None else parsed[variable.path]
            if back is None or variable.text(back) != variable.text(values[variable.path]):
                raise KeyValueError(
                    f"{variable.name} = {values[variable.path]!r} cannot be kept in the key {self.source!r}: it would "
                    f"read back as {back!r}. Use a value that does not look like the text around it"
                )

    def parse(self, key: KeyValue) -> dict[Path, Any] | None:
        """Read the values back from a key, or None when the key has another shape."""
        if isinstance(key, Decimal) is not self.is_number:
            return None
        values: dict[Path, Any] = {}
        try:
            match = self._regex.fullmatch(number_text(storable(key)) if isinstance(key, Decimal) else key)
            if match is None:
                return None
            for group, variable in self._groups:
                text = match[group]
                value = values.setdefault(variable.path, variable.value(text))
                # One node, one key: text that we would write otherwise, like 007 for 7, is of another shape.
                if not variable.lossy and variable.text(value) != text:
                    return None
        except (ValueError, KeyValueError):
            return None
        return values

    def prefix(self, values: Mapping[Path, Any]) -> str:
        """Write the key up to the first variable that is not known: what a begins_with may ask for."""
        text = ""
        for part in self.parts:
            if not isinstance(part, Literal) and _path(part) not in values:
                break
            text += self._text(part, values)
        return text


def _pattern(parts: tuple[Part, ...]) -> str:
    """Write the regular expression of a key, with a group for each variable.

    It is cut before each variable that can hold any text. A piece between two of those is right wherever it fits
    first, for the later one can hold the rest: the atomic groups `(?>…)` keep `re` from trying every other place,
    which takes time to the power of the number of variables.
    """
    pieces = [""]
    for part in parts:
        if isinstance(part, Variable):
            if part.is_free:
                pieces.append("")
            pieces[-1] += f"({part.pattern})"
        else:
            pieces[-1] += re.escape(part.text) if isinstance(part, Literal) else r"\d+"
    head, *free = pieces
    return head + "".join(f"(?>{piece})" for piece in free[:-1]) + "".join(free[-1:])


def _path(part: Variable | Shard) -> Path:
    return part.path if isinstance(part, Variable) else shard_path(part)


def shard_path(shard: Shard) -> Path:
    """Name the value of a shard among the values of a key; two equal shards of an item share it."""
    return (f"shard({shard.count})" if shard.path is None else f"shard({shard.count},{'.'.join(shard.path)})",)


def _required(values: Mapping[Path, Any], variable: Variable) -> Any:
    value = values.get(variable.path)
    if value is None:
        raise KeyValueError(f"{variable.name} is part of a key and must have a value")
    return value


# --- reading a template's source ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hole:
    """A `{…}` as written, before the model says what its names mean."""

    names: Path
    format: str = ""


class TemplateSyntaxError(ValueError):
    """A template is not well formed; the message says where and what was expected."""


_HOLE = re.compile(
    r"\{\s*(?:shard\(\s*(?P<count>\d{1,9})\s*(?:,\s*(?P<by>\w+(?:\.\w+)*)\s*)?\)"
    r"|(?P<names>[A-Za-z_]\w*(?:\.\w+)*)\s*(?::\s*(?P<format>\w{1,40}))?)\s*\}",
    re.ASCII,
)


def read_template(source: str) -> tuple[Literal | Hole | Shard, ...]:
    """Split a template's source into literals and holes. Raises TemplateSyntaxError."""
    parts: list[Literal | Hole | Shard] = []
    position = 0
    while position < len(source):
        brace = source.find("{", position)
        literal = source[position:] if brace < 0 else source[position:brace]
        if "}" in literal:
            raise TemplateSyntaxError(f"the template {source!r} closes a brace that it never opened")
        if literal:
            parts.append(Literal(literal))
        if brace < 0:
            break
        match = _HOLE.match(source, brace)
        if match is None:
            raise TemplateSyntaxError(
                f"the template {source!r} has a variable that cannot be read at position {brace + 1}: expected "
                "{field}, {reference.field}, {field:lower}, {field:epoch}, {field:012}, {shard(15)} or {shard(15, "
                "field)}"
            )
        parts.append(_hole(source, match))
        position = match.end()
    if not parts:
        raise TemplateSyntaxError("a template may not be empty: DynamoDB refuses empty keys")
    return tuple(parts)


def _hole(source: str, match: re.Match[str]) -> Hole | Shard:
    if match["count"]:
        if not 1 <= int(match["count"]) <= MAX_SHARDS:
            raise TemplateSyntaxError(
                f"the template {source!r} has {match['count']} shards: expected from 1 to {MAX_SHARDS}, for "
                "a page reads them all"
            )
        return Shard(int(match["count"]), tuple(match["by"].split(".")) if match["by"] else None)
    format_ = match["format"] or ""
    if format_.isdigit() and not 1 <= int(format_) <= MAX_DIGITS:
        raise TemplateSyntaxError(
            f"the template {source!r} pads {match['names']} to {format_} digits: expected from 1 to {MAX_DIGITS}, "
            "as many as a number can have"
        )
    return Hole(tuple(match["names"].split(".")), format_)


# --- telling templates apart --------------------------------------------------------------------------------------

_DIGIT, _ANY = "digit", "any"
Spelling = tuple[tuple[str, bool], ...]
_INTEGERS: list[Spelling] = [((_DIGIT, True),), (("-", False), (_DIGIT, True))]


def overlap(one: Template, other: Template) -> bool:
    """Say whether some key could have both shapes: the two are walked together as automata, variables as loops."""
    if one.is_number or other.is_number:
        return one.is_number == other.is_number
    return any(_walk(left, right) for left in _spellings(one) for right in _spellings(other))


def _walk(left: Spelling, right: Spelling) -> bool:
    seen: set[tuple[int, int]] = set()
    todo = [(0, 0)]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        i, j = state
        if i == len(left) and j == len(right):
            return True
        if i == len(left) or j == len(right):
            continue
        if _share_letter(left[i][0], right[j][0]):
            # A loop may take one more letter and stay, or hand over to what follows it.
            for next_i in {i + 1, i} if left[i][1] else {i + 1}:
                todo.extend((next_i, next_j) for next_j in ({j + 1, j} if right[j][1] else {j + 1}))
    return False


def _spellings(template: Template) -> Iterator[Spelling]:
    """Spell a template as (letter or class, may repeat), once for each value of its enums."""
    for choice in product(*(_alternatives(part) for part in template.parts)):
        yield tuple(chain.from_iterable(choice))


def _alternatives(part: Part) -> list[Spelling]:
    if isinstance(part, Literal):
        return [_spell(part.text)]
    if isinstance(part, Shard):
        return [((_DIGIT, True),)]
    if part.format.isdigit():
        return [((_DIGIT, False),) * int(part.format)]
    if part.format == "epoch" or part.scalar.name in ("Int", "BigInt"):
        return _INTEGERS
    if part.scalar.numeric:
        return [*_INTEGERS, *((*integer, (".", False), (_DIGIT, True)) for integer in _INTEGERS)]
    if part.scalar.name == "Date":
        return [_spell("0000-00-00", digits=True)]
    if part.scalar.name == "DateTime":
        return [(*_spell("0000-00-00", digits=True), (_ANY, True))]
    if part.scalar.values:
        return [_spell(part.text(value)) for value in part.scalar.values]
    return [((_ANY, True),)]


def _spell(text: str, *, digits: bool = False) -> Spelling:
    return tuple((_DIGIT if digits and letter == "0" else letter, False) for letter in text)


def _share_letter(one: str, other: str) -> bool:
    if _ANY in (one, other):
        return True
    if _DIGIT in (one, other):
        return all(letter == _DIGIT or letter in "0123456789" for letter in (one, other))
    return one == other
