"""The planner's rule, and nothing else: an access pattern and what is bound of it → the key ranges to read.

Among the ways into a table, take those whose partition template is fully bound: by constants, by values, by fanning
out over an enum or over shards. Of these take the one with the longest bound sort prefix, then one range on the next
variable. Ties go to the way listed first (the table, then local indexes, then what projects all).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import product
from typing import Any

from graph.bounds import Bound
from graph.keys import AFTER_ALL, KeyValue, Literal, Part, Path, Shard, Template, Variable, shard_path
from graph.model import Access, Index, Layout
from graph.requests import SortRange
from graph.scalars import TextOrder, number_text

Bounds = Mapping[Path, Bound]


@dataclass(frozen=True, slots=True)
class KeyRange:
    """One range of one partition, and the layouts of the items expected there.

    `merge_from` is where the sort key begins that ranges of a fan-out are merged by: after the values fanned out over.
    """

    index: Index
    table: str
    partition: KeyValue
    sort: SortRange
    layouts: tuple[Layout, ...]
    merge_from: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read: the ranges are disjoint, and all of one index.

    `consumed` are the paths whose bounds the key conditions express exactly; all others remain to be filtered.
    """

    index: Index
    ranges: tuple[KeyRange, ...]
    consumed: frozenset[Path]


@dataclass(frozen=True, slots=True)
class _Sort:
    """What is bound of a sort key: its ranges, how many parts they bind, and what they express exactly."""

    ranges: tuple[tuple[SortRange, int], ...]
    length: float
    consumed: frozenset[Path]


def plan(accesses: Iterable[Access], bounds: Bounds) -> Plan | None:
    """Choose the way to read and make its key ranges; None when no way has its partition bound.

    Raises: KeyValueError when a bound value cannot be part of the key.
    """
    best: tuple[float, Access, list[_Sort]] | None = None
    for access in accesses:
        if all(is_bound(layout.templates[access.index.partition_key], bounds) for layout in access.layouts):
            sorts = [_bind_sort(_sort_template(access.index, layout), bounds) for layout in access.layouts]
            length = min(sort.length for sort in sorts)
            if best is None or length > best[0]:
                best = (length, access, sorts)
    if best is None:
        return None
    _, access, sorts = best
    ranges = [
        KeyRange(access.index, table, partition, sort_range, (layout,), merge_from)
        for table in _tables(access.index, bounds)
        for layout, sort in zip(access.layouts, sorts, strict=True)
        for partition in _partitions(layout.templates[access.index.partition_key], bounds)
        for sort_range, merge_from in sort.ranges
    ]
    consumed = frozenset.intersection(
        *(
            sort.consumed | _consumed_by_partition(layout.templates[access.index.partition_key], bounds)
            for layout, sort in zip(access.layouts, sorts, strict=True)
        )
    )
    return Plan(access.index, tuple(_share_partitions(ranges)), consumed)


def _tables(index: Index, bounds: Bounds) -> tuple[str, ...]:
    """Name the tables to read: one, or for a time series those of the periods that the bounds reach."""
    return (index.table,) if index.period is None else index.period.names(bounds.get((index.period.field,)))


def is_bound(template: Template, bounds: Bounds) -> bool:
    """Say whether the values of a partition key are all known, or few enough to fan out over."""
    return all(isinstance(part, (Literal, Shard)) or _choices(part, bounds) is not None for part in template.parts)


def _choices(part: Part, bounds: Bounds) -> tuple[Any, ...] | None:
    """List the values that a part can take, or None when they are unknown or endless."""
    if isinstance(part, Literal):
        return ("",)
    if isinstance(part, Shard):
        if part.path is None or part.path not in bounds or bounds[part.path].values is None:
            return tuple(range(part.count))
        return tuple(dict.fromkeys(shard_of(part, value) for value in bounds[part.path].values or ()))
    bound = bounds.get(part.path)
    if bound is not None and bound.values is not None:
        return bound.values
    return part.scalar.values or None


def shard_of(shard: Shard, value: Any) -> int:
    """Give the shard that a value hashes to: CRC-32 of its text, the same in every process."""
    return zlib.crc32(str(value).encode()) % shard.count


def _partitions(template: Template, bounds: Bounds) -> Iterator[KeyValue]:
    parts = [part for part in template.parts if not isinstance(part, Literal)]
    paths = [shard_path(part) if isinstance(part, Shard) else part.path for part in parts]
    seen = set()
    for values in product(*(_choices(part, bounds) or () for part in parts)):
        key = template.format(dict(zip(paths, values, strict=True)))
        if key not in seen:
            seen.add(key)
            yield key


def _consumed_by_partition(template: Template, bounds: Bounds) -> frozenset[Path]:
    return frozenset(
        variable.path
        for variable in template.variables
        if not variable.lossy and variable.path in bounds and _is_only_values(bounds[variable.path])
    )


def _is_only_values(bound: Bound) -> bool:
    return bound.values is not None and bound.is_one_condition


def _sort_template(index: Index, layout: Layout) -> Template | None:
    return layout.templates[index.sort_key] if index.sort_key else None


# --- the sort key -------------------------------------------------------------------------------------------------


def _bind_sort(template: Template | None, bounds: Bounds) -> _Sort:
    if template is None:
        return _Sort(((SortRange(), 0),), 0, frozenset())
    if template.is_number:
        return _bind_number(template.variables[0], bounds)
    texts: list[tuple[str, int]] = [("", 0)]
    consumed: set[Path] = set()
    for position, part in enumerate(template.parts):
        choices = _sort_choices(template, position, bounds)
        if choices is None:
            assert isinstance(part, Variable)
            ranged, extra, exact = _bind_next(template, position, texts, bounds.get(part.path))
            return _Sort(ranged, position + extra, frozenset(consumed | ({part.path} if exact else set())))
        texts = [
            (text + choice, len(text + choice) if len(choices) > 1 else merge_from)
            for text, merge_from in texts
            for choice in choices
        ]
        if isinstance(part, Variable) and _is_exact(template, position, bounds):
            consumed.add(part.path)
    ranges = tuple((SortRange.exactly(text), merge_from) for text, merge_from in texts)
    return _Sort(ranges, len(template.parts), frozenset(consumed))


def _is_exact(template: Template, position: int, bounds: Bounds) -> bool:
    """Say whether a part's text in the key can only come from its bound values."""
    part, following = template.parts[position], template.parts[position + 1 : position + 2]
    if (
        not isinstance(part, Variable)
        or part.lossy
        or part.path not in bounds
        or not _is_only_values(bounds[part.path])
    ):
        return False
    # A value that holds the literal after it may read back as two values: the key alone does not decide.
    separator = following[0].text if following and isinstance(following[0], Literal) else None
    return separator is None or not any(separator in part.text(value) for value in bounds[part.path].values or ())


def _sort_choices(template: Template, position: int, bounds: Bounds) -> tuple[str, ...] | None:
    """List the texts that a part of a sort key can take; an unbound enum only where that binds something after it."""
    part = template.parts[position]
    if isinstance(part, Literal):
        return (part.text,)
    if isinstance(part, Shard):
        return None
    bound = bounds.get(part.path)
    if bound is not None and bound.values is not None:
        # In the key's own order, so that the ranges are, and with them their merge.
        return tuple(sorted({part.text(value) for value in bound.values}))
    if part.scalar.values and any(
        isinstance(later, Variable) and later.path in bounds for later in template.parts[position + 1 :]
    ):
        return tuple(part.text(value) for value in part.scalar.values)
    return None


def _bind_next(
    template: Template, position: int, texts: list[tuple[str, int]], bound: Bound | None
) -> tuple[tuple[tuple[SortRange, int], ...], float, bool]:
    """Range over the first variable that has no values: the ranges, half a part if bound, and whether exactly."""
    variable = template.parts[position]
    assert isinstance(variable, Variable)
    is_last = position == len(template.parts) - 1
    ranges, bindings, exacts = [], [], []
    for text, merge_from in texts:
        sort_range, is_ranged, exact = _range(variable, text, bound, is_last)
        ranges.append((sort_range, merge_from))
        bindings.append(is_ranged)
        exacts.append(exact)
    return tuple(ranges), 0.5 * all(bindings), all(exacts)


def _range(variable: Variable, before: str, bound: Bound | None, is_last: bool) -> tuple[SortRange, bool, bool]:
    whole = SortRange.beginning(before)
    if bound is None:
        return whole, False, False
    if bound.prefix is not None and variable.scalar.order is TextOrder.FREE and variable.format in ("", "lower"):
        prefix = bound.prefix.lower() if variable.format else bound.prefix
        return SortRange.beginning(before + prefix), True, not variable.lossy and bound.is_one_condition
    order = variable.order
    if (bound.low is None and bound.high is None) or not (
        order in (TextOrder.FIXED, TextOrder.SECONDS) or (order is TextOrder.FREE and is_last)
    ):
        return whole, False, False
    low = before if bound.low is None else before + _low_text(variable, bound, is_last)
    high = before + AFTER_ALL if bound.high is None else before + _high_text(variable, bound, is_last)
    loose_high = bound.high is not None and bound.high_open and is_last
    exact = order is not TextOrder.SECONDS and not loose_high and bound.is_one_condition and not variable.lossy
    return SortRange(low or None, high), True, exact


def _low_text(variable: Variable, bound: Bound, is_last: bool) -> str:
    text = variable.text(bound.low)
    if variable.order is TextOrder.SECONDS:
        return text[:19]
    if not bound.low_open:
        return text
    # The least text above this one; where more follows in the key, the least above every continuation.
    return text + ("\x00" if is_last else AFTER_ALL)


def _high_text(variable: Variable, bound: Bound, is_last: bool) -> str:
    text = variable.text(bound.high)
    if variable.order is TextOrder.SECONDS:
        return text[:19] + AFTER_ALL
    if is_last or bound.high_open:
        return text
    return text + AFTER_ALL


def _bind_number(variable: Variable, bounds: Bounds) -> _Sort:
    bound = bounds.get(variable.path)
    if bound is None:
        return _Sort(((SortRange(), 0),), 0, frozenset())
    if bound.values is not None:
        ranges = tuple((SortRange.exactly(_number(value)), 0) for value in bound.values)
        return _Sort(ranges, 1, frozenset({variable.path}) if bound.is_one_condition else frozenset())
    if bound.low is None and bound.high is None:
        return _Sort(((SortRange(), 0),), 0, frozenset())
    low = None if bound.low is None else _number(bound.low)
    high = None if bound.high is None else _number(bound.high)
    exact = bound.is_one_condition and not bound.low_open and not bound.high_open
    return _Sort(((SortRange(low, high), 0),), 0.5, frozenset({variable.path}) if exact else frozenset())


def _number(value: Any) -> Decimal:
    return Decimal(number_text(value))


# --- several layouts in one partition -----------------------------------------------------------------------------


def _share_partitions(ranges: list[KeyRange]) -> Iterator[KeyRange]:
    """Read the layouts that share a partition with one Query over their common prefix, where all are plain prefixes."""
    groups: dict[tuple[str, KeyValue], list[KeyRange]] = {}
    for key_range in ranges:
        groups.setdefault((key_range.table, key_range.partition), []).append(key_range)
    for group in groups.values():
        names = {layout.name for key_range in group for layout in key_range.layouts}
        if len(names) == 1 or any(key_range.sort.prefix is None for key_range in group):
            yield from group
        else:
            prefix = _common_prefix([key_range.sort.prefix or "" for key_range in group])
            layouts = tuple(layout for key_range in group for layout in key_range.layouts)
            yield replace(group[0], sort=SortRange.beginning(prefix), layouts=layouts)


def _common_prefix(texts: list[str]) -> str:
    least, greatest = min(texts), max(texts)
    for position, letter in enumerate(least):
        if position >= len(greatest) or greatest[position] != letter:
            return least[:position]
    return least
