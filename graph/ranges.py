"""From what is bound of its variables to the ranges of a sort key: closed, and never wider than their prefix."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from typing import Any

from graph.bounds import Bound
from graph.errors import KeyValueError
from graph.keys import AFTER_ALL, SORT_KEY_BYTES, Literal, Part, Path, Shard, Template, Variable
from graph.scalars import TextOrder, date_time_to_epoch, number_text
from graph.sort import STORED, SortRange, value_above, value_below

Bounds = Mapping[Path, Bound]

MOST_VALUES = 100
"""How many values of a list may each become a range of their own."""


MergeFrom = tuple[int, int]
"""The place in a sort key that ranges of a fan-out are merged by: an attribute's number, and a letter's in its text."""

BEGINNING: MergeFrom = (0, 0)


@dataclass(frozen=True, slots=True)
class Span:
    """One range of a sort key, where merging begins in it, and the values that it was made of."""

    sort: SortRange
    merge_from: MergeFrom = BEGINNING
    values: Mapping[Path, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SortRanges:
    """What is bound of a sort key: its ranges, and how many variables they bind.

    The key conditions decide the bounds of the `exact` paths, and keep to those of the `near` ones, which hold them
    too, but for a few items at the ends of the ranges. `is_whole`: the ranges are single values, so that what is bound
    of the next attribute can narrow them.
    """

    ranges: tuple[Span, ...]
    bound: float = 0
    exact: frozenset[Path] = frozenset()
    near: frozenset[Path] = frozenset()
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class _Text:
    """The beginning of a sort attribute, and the values that it was made of."""

    text: str = ""
    merge_from: MergeFrom = BEGINNING
    values: dict[Path, Any] = field(default_factory=dict)

    def span(self, sort: SortRange) -> Span:
        return Span(sort, self.merge_from, self.values)


@dataclass(slots=True)
class _Beginnings:
    """The texts that a sort attribute can begin with, and what is bound by them."""

    template: Template
    behind: tuple[Part, ...]
    """What the attributes behind this one are made of."""
    texts: list[_Text] = field(default_factory=lambda: [_Text()])
    near: frozenset[Path] = frozenset()
    exact: frozenset[Path] = frozenset()
    is_told: bool = True
    """Every key that goes on like this has the same values so far."""

    def parts_behind(self, position: int) -> tuple[Part, ...]:
        return self.template.parts[position + 1 :] + self.behind

    def append_literal(self, literal: str) -> None:
        self.texts = [replace(text, text=text.text + literal) for text in self.texts]

    def append(self, position: int, variable: Variable, values: tuple[Any, ...], *, is_bound: bool) -> None:
        # In the key's own order, so that ties between the ranges are in that order too.
        pieces = sorted(_pieces(variable, values), key=lambda piece: piece[1])
        is_fan_out = len(pieces) > 1 and _has_variables(self.parts_behind(position))
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
                merge_from = (0, len(longer)) if is_fan_out else text.merge_from
                yield _Text(longer, merge_from, {**text.values, path: value})


def sort_ranges(templates: Sequence[Template], bounds: Bounds, assigned: Mapping[Path, Any]) -> SortRanges:
    """Bind the sort key attribute by attribute and part by part, and range over the first part that has no values.

    `assigned` are the values that the partition key, or an attribute before these, holds.
    """
    if not templates:
        return SortRanges((Span(SortRange()),))
    template, *others = templates
    behind = tuple(part for other in others for part in other.parts)
    if template.is_number:
        first = _number_ranges(template.variables[0], behind, bounds, assigned)
    else:
        first = _text_ranges(template, behind, bounds, assigned)
    if not (others and first.is_whole and first.ranges):
        return first
    return _joined(first, [sort_ranges(others, bounds, {**assigned, **span.values}) for span in first.ranges])


def _joined(first: SortRanges, following: list[SortRanges]) -> SortRanges:
    """Put the ranges of the following attributes behind the values of the first one."""
    return SortRanges(
        tuple(
            _behind(span, inner)
            for span, inners in zip(first.ranges, following, strict=True)
            for inner in inners.ranges
        ),
        first.bound + min(inners.bound for inners in following),
        first.exact | frozenset.intersection(*(inners.exact for inners in following)),
        first.near | frozenset.intersection(*(inners.near for inners in following)),
        all(inners.is_whole for inners in following),
    )


def _behind(span: Span, inner: Span) -> Span:
    attribute, letter = inner.merge_from
    merge_from = span.merge_from if inner.merge_from == BEGINNING else (attribute + 1, letter)
    return Span(inner.sort.behind(span.sort.low), merge_from, {**span.values, **inner.values})


def _has_variables(parts: Iterable[Part]) -> bool:
    return any(isinstance(part, Variable) for part in parts)


def _text_ranges(
    template: Template, behind: tuple[Part, ...], bounds: Bounds, assigned: Mapping[Path, Any]
) -> SortRanges:
    known = _Beginnings(template, behind)
    for position, part in enumerate(template.parts):
        if isinstance(part, Literal):
            known.append_literal(part.text)
            continue
        values = _choices(part, known.parts_behind(position), bounds, assigned)
        if values is None or isinstance(part, Shard):
            return _ranged(known, position, bounds)
        known.append(position, part, values, is_bound=part.path in bounds)
    return _whole(known)


def _choices(
    part: Part, following: tuple[Part, ...], bounds: Bounds, assigned: Mapping[Path, Any]
) -> tuple[Any, ...] | None:
    """List the values of one part of a sort key; of an unbound enum only where that binds something after it."""
    if not isinstance(part, Variable):
        return None
    if part.path in assigned:
        return (assigned[part.path],)
    bound = bounds.get(part.path)
    if bound is None:
        return part.scalar.values if part.scalar.values and _leads_on(following, bounds) else None
    # A moment has several spellings, of which a key may hold any: it is searched for by the second.
    is_listed = bound.values is not None and len(bound.values) <= MOST_VALUES
    return bound.values if is_listed and part.order is not TextOrder.SECONDS else None


def _leads_on(following: tuple[Part, ...], bounds: Bounds) -> bool:
    """Say whether the next variable is bound, or an enum behind which one is."""
    for part in following:
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
        tuple(text.span(SortRange.exactly(text.text)) for text in texts),
        len(known.near),
        known.near & lossless if is_exact else frozenset(),
        known.near,
        is_whole=True,
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
    ranges = tuple(text.span(sort) for text, spans in zip(known.texts, found, strict=True) for sort in spans.ranges)
    is_narrowed = isinstance(part, Variable) and all(spans.is_narrowed for spans in found)
    if isinstance(part, Variable) and is_narrowed:
        known.bind(part, is_exact=all(spans.is_exact for spans in found))
    return SortRanges(ranges, bound_before + 0.5 * is_narrowed, known.exact, known.near)


def _number_ranges(
    variable: Variable, behind: tuple[Part, ...], bounds: Bounds, assigned: Mapping[Path, Any]
) -> SortRanges:
    bound, path = bounds.get(variable.path), frozenset((variable.path,))
    if variable.path in assigned:
        bound = Bound(values=(assigned[variable.path],))
    if bound is None:
        return SortRanges((Span(SortRange()),))
    if bound.values is None:
        return SortRanges((Span(_number_span(variable, bound)),), 0.5, path, path)
    if len(bound.values) > MOST_VALUES:
        return SortRanges((Span(_number_span(variable, _spread(variable, bound))),))
    # What is behind the number orders the items of all of them.
    merge_from = (1, 0) if len(bound.values) > 1 and _has_variables(behind) else BEGINNING
    ranges = (
        Span(_number_span(variable, Bound(low=value, high=value)), merge_from, {variable.path: value})
        for value in bound.values
    )
    return SortRanges(tuple(ranges), 1, path, path, is_whole=True)


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
                high = str(value_below(high))
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
    return SortRange((low,) if low else (), () if high == AFTER_ALL else (high,))


# --- numbers ------------------------------------------------------------------------------------------------------


def _number_span(variable: Variable, bound: Bound) -> SortRange:
    """Range over a number key."""
    low = None if bound.low is None else Decimal(number_text(bound.low))
    high = None if bound.high is None else Decimal(number_text(bound.high))
    # Whole numbers are told by whole numbers, which read better than 38 digits.
    is_whole = variable.scalar.name in ("Int", "BigInt")
    if low is not None and bound.low_open:
        low = STORED.add(low, 1) if is_whole else Decimal(value_above(low))
    if high is not None and bound.high_open:
        high = STORED.subtract(high, 1) if is_whole else Decimal(value_below(high))
    return SortRange(() if low is None else (low,), () if high is None else (high,))
