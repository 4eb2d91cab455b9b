"""From what is bound of its variables to the ranges of a sort key: closed, and never wider than their prefix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal
from itertools import product
from typing import Any

from graph.bounds import Bound
from graph.errors import KeyValueError
from graph.keys import AFTER_ALL, SORT_KEY_BYTES, KeyValue, Literal, Path, Shard, Template, Variable
from graph.requests import SortRange
from graph.scalars import TextOrder, date_time_to_epoch, number_text

Bounds = Mapping[Path, Bound]

MOST_VALUES = 100
"""How many values of a list may each become a range of their own."""


@dataclass(frozen=True, slots=True)
class SortRanges:
    """What is bound of a sort key: its ranges, each with where merging begins, and how many variables they bind.

    The key conditions decide the bounds of the `exact` paths, and keep to those of the `near` ones, which hold them
    too, but for a few items at the ends of the ranges.
    """

    ranges: tuple[tuple[SortRange, int], ...]
    bound: float = 0
    exact: frozenset[Path] = frozenset()
    near: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True)
class _Text:
    """The beginning of a sort key, and the values that it was made of."""

    text: str = ""
    merge_from: int = 0
    values: dict[Path, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Beginnings:
    """The texts that a sort key can begin with, and what is bound by them."""

    template: Template
    texts: list[_Text]
    near: frozenset[Path] = frozenset()
    exact: frozenset[Path] = frozenset()
    is_told: bool = True
    """Every key that goes on like this has the same values so far."""

    def append_literal(self, literal: str) -> None:
        self.texts = [replace(text, text=text.text + literal) for text in self.texts]

    def append(self, position: int, variable: Variable, values: tuple[Any, ...], *, is_bound: bool) -> None:
        # In the key's own order, so that ties between the ranges are in that order too.
        pieces = sorted(_pieces(variable, values), key=lambda piece: piece[1])
        is_fan_out = len(pieces) > 1 and variable is not self.template.variables[-1]
        self.texts = list(self._longer(variable.path, pieces, is_fan_out=is_fan_out))
        self.is_told = self.is_told and all(_is_delimited(self.template, position, piece) for _, piece in pieces)
        if is_bound:
            self.bind(variable, is_exact=not variable.lossy)

    def bind(self, variable: Variable, *, is_exact: bool) -> None:
        path = frozenset((variable.path,))
        self.near |= path
        self.exact |= path if is_exact and self.is_told else frozenset()

    def _longer(self, path: Path, pieces: list[tuple[Any, str]], *, is_fan_out: bool) -> Iterator[_Text]:
        for text, (value, piece) in product(self.texts, pieces):
            # A variable has one value wherever it stands.
            if text.values.get(path, value) == value:
                longer = text.text + piece
                merge_from = len(longer) if is_fan_out else text.merge_from
                yield _Text(longer, merge_from, {**text.values, path: value})


def sort_ranges(template: Template | None, bounds: Bounds, assigned: Mapping[Path, Any]) -> SortRanges:
    """Bind the sort key part by part, and range over the first that has no values.

    `assigned` are the values that the partition key holds.
    """
    if template is None:
        return SortRanges(((SortRange(), 0),))
    if template.is_number:
        return _number_ranges(template.variables[0], bounds)
    known = _Beginnings(template, [_Text()])
    for position, part in enumerate(template.parts):
        if isinstance(part, Literal):
            known.append_literal(part.text)
            continue
        values = _choices(template, position, bounds, assigned)
        if values is None or isinstance(part, Shard):
            return _ranged(known, position, bounds)
        known.append(position, part, values, is_bound=part.path in bounds)
    return _whole(known)


def _choices(template: Template, position: int, bounds: Bounds, assigned: Mapping[Path, Any]) -> tuple[Any, ...] | None:
    """List the values of one part of a sort key; of an unbound enum only where that binds something after it."""
    part = template.parts[position]
    if not isinstance(part, Variable):
        return None
    if part.path in assigned:
        return (assigned[part.path],)
    bound = bounds.get(part.path)
    if bound is None:
        return part.scalar.values if part.scalar.values and _leads_on(template, position, bounds) else None
    # A moment has several spellings, of which a key may hold any: it is searched for by the second.
    is_listed = bound.values is not None and len(bound.values) <= MOST_VALUES
    return bound.values if is_listed and part.order is not TextOrder.SECONDS else None


def _leads_on(template: Template, position: int, bounds: Bounds) -> bool:
    """Say whether the next variable is bound, or an enum behind which one is."""
    for part in template.parts[position + 1 :]:
        if isinstance(part, Variable) and part.path in bounds:
            return True
        if not isinstance(part, Literal) and not (isinstance(part, Variable) and part.scalar.values):
            return False
    return False


def _pieces(variable: Variable, values: tuple[Any, ...]) -> Iterator[tuple[Any, str]]:
    """Write the values for the key, leaving out those that no key can hold."""
    for value in values:
        with suppress(KeyValueError):
            if piece := variable.text(value):
                yield value, piece


def _whole(known: _Beginnings) -> SortRanges:
    """Take keys of which every part is known: they tell their values if they read back as these."""
    texts = [text for text in known.texts if len(text.text.encode()) <= SORT_KEY_BYTES]
    lossless = frozenset(variable.path for variable in known.template.variables if not variable.lossy)
    is_exact = all(_reads_as(known.template, text) for text in texts)
    return SortRanges(
        tuple((SortRange.exactly(text.text), text.merge_from) for text in texts),
        len(known.near),
        known.near & lossless if is_exact else frozenset(),
        known.near,
    )


def _reads_as(template: Template, text: _Text) -> bool:
    parsed = template.parse(text.text)
    return parsed is not None and all(
        variable.text(parsed[variable.path]) == variable.text(text.values[variable.path])
        for variable in template.variables
    )


def _ranged(known: _Beginnings, position: int, bounds: Bounds) -> SortRanges:
    """Range over the part at a position, behind each of the texts."""
    part, bound_before = known.template.parts[position], len(known.near)
    bound = bounds.get(part.path) if isinstance(part, Variable) else None
    found = [_text_spans(known.template, position, text.text, bound) for text in known.texts]
    ranges = tuple(
        (span, text.merge_from) for text, spans in zip(known.texts, found, strict=True) for span in spans.ranges
    )
    is_narrowed = isinstance(part, Variable) and all(spans.is_narrowed for spans in found)
    if isinstance(part, Variable) and is_narrowed:
        known.bind(part, is_exact=all(spans.is_exact for spans in found))
    return SortRanges(ranges, bound_before + 0.5 * is_narrowed, known.exact, known.near)


def _number_ranges(variable: Variable, bounds: Bounds) -> SortRanges:
    bound, path = bounds.get(variable.path), frozenset((variable.path,))
    if bound is None:
        return SortRanges(((SortRange(), 0),))
    if bound.values is None:
        return SortRanges(((_number_span(variable, bound), 0),), 0.5, path, path)
    if len(bound.values) > MOST_VALUES:
        return SortRanges(((_number_span(variable, _spread(variable, bound)), 0),))
    ranges = tuple((_number_span(variable, Bound(low=value, high=value)), 0) for value in bound.values)
    return SortRanges(ranges, 1, path, path)


# --- one variable -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Spans:
    """The ranges of one variable behind a text: whether they narrow anything, and whether nothing else lies in them."""

    ranges: tuple[SortRange, ...]
    is_narrowed: bool = True
    is_exact: bool = False


def _text_spans(template: Template, position: int, before: str, bound: Bound | None) -> _Spans:
    """Range over the part at a position, behind the text of those before it."""
    part, following = template.parts[position], template.parts[position + 1 : position + 2]
    whole = _Spans((SortRange.beginning(before),), is_narrowed=False)
    if bound is None or not isinstance(part, Variable):
        return whole
    if bound.values is not None and len(bound.values) > MOST_VALUES:
        return replace(_text_spans(template, position, before, _spread(part, bound)), is_narrowed=False)
    if part.order is TextOrder.SECONDS:
        return _Spans(tuple(_seconds(part, before, end) for end in _ends(bound)))
    if part.format == "lower":
        return whole if bound.prefix is None else _Spans((SortRange.beginning(before + _lowered(bound.prefix)),))
    if part.order is TextOrder.FREE and following:
        return whole if bound.prefix is None else _free_prefix(before, bound, following[0])
    if part.order is TextOrder.NONE:
        return whole
    span = _span(part, before, bound, is_last=not following)
    return _Spans(() if span is None else (span,), is_exact=not part.lossy)


def _is_delimited(template: Template, position: int, text: str) -> bool:
    """Say whether the value of a variable ends with this text in every key that goes on behind it."""
    variable, following = template.parts[position], template.parts[position + 1 : position + 3]
    if not isinstance(variable, Variable) or not following or not isinstance(following[0], Literal):
        return False
    separator = following[0].text
    if variable.is_free:
        # The shortest text that fits is taken, and it fits at the first separator if anything may come behind it.
        is_open = len(following) == 2 and isinstance(following[1], Variable) and following[1].is_free
        return is_open and (text + separator).find(separator) == len(text)
    return separator[0] not in "0123456789." and not any(
        value.startswith(text + separator[0]) for value in variable.scalar.values
    )


# --- text ---------------------------------------------------------------------------------------------------------


def _ends(bound: Bound) -> list[Bound]:
    return [bound] if bound.values is None else [Bound(low=value, high=value) for value in bound.values]


def _seconds(variable: Variable, before: str, bound: Bound) -> SortRange:
    """Range over moments by whole seconds, for how a fraction of one is written does not keep its order."""
    low = before if bound.low is None else before + variable.text(bound.low)[:19]
    high = before if bound.high is None else before + variable.text(bound.high)[:19]
    return _closed(low, high + AFTER_ALL)


def _lowered(prefix: str) -> str:
    """Lower the case as far as that does not depend on what follows: a final sigma differs from one inside a word."""
    return prefix.lower().partition("ς")[0]


def _free_prefix(before: str, bound: Bound, following: object) -> _Spans:
    prefix = bound.prefix or ""
    is_exact = bound.low is None and bound.high is None
    # A value that ends inside the prefix has the separator there.
    is_exact = is_exact and isinstance(following, Literal) and following.text[0] not in prefix
    return _Spans((SortRange.beginning(before + prefix),), is_exact=is_exact)


def _spread(variable: Variable, bound: Bound) -> Bound:
    """Take the range of values that are too many for a range each."""
    order = variable.scalar.comparable
    values = bound.values or ()
    return Bound(low=min(values, key=order), high=max(values, key=order))


def _span(variable: Variable, before: str, bound: Bound, *, is_last: bool) -> SortRange | None:
    """Range over texts whose order is that of their values; None when no text lies there."""
    low, high = before, before + AFTER_ALL
    if bound.low is not None:
        text = _text(variable, bound.low)
        if text is None:
            return None
        # Behind an open end lies the least text above it; where more follows in the key, above all that goes on.
        behind = "\x00" if is_last else AFTER_ALL
        low += text + (behind if text and bound.low_open and not variable.lossy else "")
    if bound.high is not None:
        text = _text(variable, bound.high)
        if text == "":
            return None
        if text is not None:
            high = before + text
            if not bound.high_open or variable.lossy:
                high += "" if is_last else AFTER_ALL
            elif is_last:
                high = str(just_below(high))
    if bound.prefix is not None:
        low, high = max(low, before + bound.prefix), min(high, before + bound.prefix + AFTER_ALL)
    return _closed(low, high)


def _text(variable: Variable, value: object) -> str | None:
    """Write a bound for the key: "" where all that a key can hold lies above it, None where all lies below it."""
    try:
        return variable.text(value)
    except KeyValueError:
        number = date_time_to_epoch(str(value)) if variable.format == "epoch" else Decimal(str(value))
        return "" if number < 0 else None


def _closed(low: str, high: str) -> SortRange:
    if high == low + AFTER_ALL:
        return SortRange.beginning(low)
    return SortRange(low or None, None if high == AFTER_ALL else high)


# --- neighbours ---------------------------------------------------------------------------------------------------

_LEAST = Decimal("1E-130")
_STORED = Context(prec=38)


def just_above(key: KeyValue) -> KeyValue:
    """Give the least key above this one: of numbers with the 38 digits that DynamoDB stores."""
    if isinstance(key, str):
        return key + "\x00"
    return _STORED.next_plus(key) if key else _LEAST


def just_below(key: KeyValue) -> KeyValue:
    """Give what closes the range of all keys below this one, as AFTER_ALL does behind a prefix."""
    if not isinstance(key, str):
        return Decimal(just_above(key.copy_negate())).copy_negate()  # a minus sign would round to 28 digits
    head, last = key[:-1], ord(key[-1])
    if last == 0:
        return head
    # Between U+D7FF and U+E000 there are no letters.
    return head + chr(0xD7FF if last == 0xE000 else last - 1) + AFTER_ALL


# --- numbers ------------------------------------------------------------------------------------------------------


def _number_span(variable: Variable, bound: Bound) -> SortRange:
    """Range over a number key."""
    low = None if bound.low is None else Decimal(number_text(bound.low))
    high = None if bound.high is None else Decimal(number_text(bound.high))
    # Whole numbers are told by whole numbers, which read better than 38 digits.
    is_whole = variable.scalar.name in ("Int", "BigInt")
    if low is not None and bound.low_open:
        low = _STORED.add(low, 1) if is_whole else Decimal(just_above(low))
    if high is not None and bound.high_open:
        high = _STORED.subtract(high, 1) if is_whole else Decimal(just_below(high))
    return SortRange(low, high)
