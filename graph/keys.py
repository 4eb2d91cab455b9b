"""Key templates: one declaration, compiled once into format, prefix and parse."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import chain, product
from typing import Any

from graph.errors import KeyValueError
from graph.scalars import Scalar, TextOrder, date_time_to_epoch, epoch_to_date_time, number_text

Path = tuple[str, ...]
"""The fields that lead from an item to a variable: ("number",), or ("container", "number") through a reference."""

KeyValue = str | Decimal
"""A key attribute's value: text, or a number where the template is one numeric field alone."""

PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
AFTER_ALL = "\U0010ffff"
"""Sorts after every continuation of a prefix: DynamoDB orders text by its UTF-8 bytes."""

FORMATS = ("lower", "epoch")


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

    def text(self, value: Any) -> str:
        """Write a value for the key. Raises KeyValueError when it cannot stand there."""
        if self.format == "epoch":
            return str(date_time_to_epoch(value))
        text = self.scalar.to_text(value)
        if self.format == "lower":
            return text.lower()
        if self.format.isdigit():
            if text.startswith("-") or not text.isdigit() or len(text) > int(self.format):
                raise KeyValueError(
                    f"{self.name} is kept in a key with {int(self.format)} digits, so that text order is number order: "
                    f"expected a whole number from 0 to {'9' * int(self.format)}, got {text}"
                )
            return text.zfill(int(self.format))
        return text

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

    `parse_template("CONTAINER_{number}")` resolved for a type whose `number` is an ID:

    format: {("number",): "009998"} → "CONTAINER_009998"
    prefix: {} → "CONTAINER_"
    parse:  "CONTAINER_009998" → {("number",): "009998"}, "PALLET_1" → None
    """

    source: str
    parts: tuple[Part, ...]
    _regex: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _paths: tuple[Path, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pattern = ""
        paths: list[Path] = []
        for part in self.parts:
            if isinstance(part, Literal):
                pattern += re.escape(part.text)
            elif isinstance(part, Shard):
                pattern += r"\d+"
            elif part.path in paths:
                pattern += f"(?P=v{paths.index(part.path)})"
            else:
                pattern += f"(?P<v{len(paths)}>{part.pattern})"
                paths.append(part.path)
        object.__setattr__(self, "_regex", re.compile(pattern, re.DOTALL))
        object.__setattr__(self, "_paths", tuple(paths))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """List the variables in order, without the shards."""
        return tuple(part for part in self.parts if isinstance(part, Variable))

    @property
    def is_number(self) -> bool:
        """Say whether the key attribute is of type N: the template is one numeric field alone."""
        return len(self.parts) == 1 and isinstance(self.parts[0], Variable) and self._is_bare_number(self.parts[0])

    @staticmethod
    def _is_bare_number(part: Variable) -> bool:
        return part.scalar.numeric and not part.format

    def format(self, values: Mapping[Path, Any], *, limit: int = PARTITION_KEY_BYTES) -> KeyValue:
        """Make the key of these values.

        Raises: KeyValueError when a value is missing, empty, too long, or would read back differently.
        """
        if self.is_number:
            (variable,) = self.variables
            return Decimal(number_text(_required(values, variable)))
        text = "".join(self._text(part, values) for part in self.parts)
        self._refuse_unreadable(text, values)
        size_bytes = len(text.encode())
        if size_bytes > limit:
            raise KeyValueError(
                f"the key {self.source!r} may hold {limit} bytes, the values given make {size_bytes}: shorten "
                f"{', '.join(variable.name for variable in self.variables)}"
            )
        return text

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
        try:
            text.encode()
        except UnicodeEncodeError:
            raise KeyValueError(f"the key {self.source!r} must be valid Unicode text, got {text!r}") from None
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
        if self.is_number:
            return {self._paths[0]: self.variables[0].scalar.from_text(str(key))} if isinstance(key, Decimal) else None
        match = self._regex.fullmatch(key) if isinstance(key, str) else None
        if match is None:
            return None
        try:
            return {
                variable.path: variable.value(match[f"v{self._paths.index(variable.path)}"])
                for variable in self.variables
            }
        except ValueError:
            return None

    def leading(self, values: Mapping[Path, Any]) -> Iterator[tuple[Part, str]]:
        """Walk the parts whose text is known, up to the first that is not."""
        for part in self.parts:
            if isinstance(part, Variable) and part.path not in values:
                return
            if isinstance(part, Shard) and shard_path(part) not in values:
                return
            yield part, self._text(part, values)

    def prefix(self, values: Mapping[Path, Any]) -> str:
        """Write the key up to the first variable that is not known: what a begins_with may ask for."""
        return "".join(text for _, text in self.leading(values))


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
    r"\{\s*(?:shard\(\s*(?P<count>\d+)\s*(?:,\s*(?P<by>\w+(?:\.\w+)*)\s*)?\)"
    r"|(?P<names>[A-Za-z_]\w*(?:\.\w+)*)\s*(?::\s*(?P<format>\w+))?)\s*\}"
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
        parts.append(_hole(match))
        position = match.end()
    if not parts:
        raise TemplateSyntaxError("a template may not be empty: DynamoDB refuses empty keys")
    return tuple(parts)


def _hole(match: re.Match[str]) -> Hole | Shard:
    if match["count"]:
        return Shard(int(match["count"]), tuple(match["by"].split(".")) if match["by"] else None)
    return Hole(tuple(match["names"].split(".")), match["format"] or "")


# --- telling templates apart --------------------------------------------------------------------------------------

_DIGIT, _ANY = "digit", "any"
Spelling = tuple[tuple[str, bool], ...]


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
        return [((_DIGIT, True),)]
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
        return all(letter == _DIGIT or letter in "0123456789-" for letter in (one, other))
    return one == other
