"""The planner's rule, and nothing else: an access pattern and what is bound of it → the key ranges to read.

Among the ways into a table, take those whose partition key is fully bound: by constants, by values, by fanning out
over an enum or over shards. Of these take one whose partition is known before one to fan out over, then the longest
bound sort prefix and one range on the next variable, then the fewest ranges. Ties go to the table, then to a local
index, then to what projects all, then to the way listed first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product, takewhile
from typing import Any

from graph.errors import InputError, KeyValueError
from graph.filters import Test
from graph.keys import KeyValue, Literal, Path, Shard, Template, Variable, shard_path
from graph.model import Access, Index, Layout, Projection
from graph.ranges import MOST_VALUES, Bounds, SortRanges, sort_ranges
from graph.requests import SortRange


@dataclass(frozen=True, slots=True)
class KeyRange:
    """One range of one partition, and the layouts of the items expected there.

    `merge_from` is where the sort key begins that ranges of a fan-out are merged by: after the values fanned out over.
    `parts` are the ranges inside it in which only such items lie, where several layouts are read by one Query.
    """

    index: Index
    table: str
    partition: KeyValue
    sort: SortRange
    layouts: tuple[Layout, ...]
    merge_from: int = 0
    parts: tuple[SortRange, ...] = ()

    def merge_key(self, sort: KeyValue) -> KeyValue:
        """Give what a sort key is ordered by among all ranges."""
        return sort[self.merge_from :] if isinstance(sort, str) else sort


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read: the ranges are disjoint, and all of one index.

    `exact` are the tests that the key conditions decide. `near` are those that they keep to but for a few items at
    the ends of the ranges: these remain to be decided, and will hardly drop anything.
    """

    index: Index
    ranges: tuple[KeyRange, ...]
    exact: frozenset[Test] = frozenset()
    near: frozenset[Test] = frozenset()

    @property
    def names_items(self) -> bool:
        """Say whether the ranges are whole primary keys, so that BatchGetItem serves them."""
        is_single = self.index.sort_key is None
        # A period in which nothing happened has no table, which a Query takes for an empty one.
        is_table = self.index.name is None and self.index.period is None
        return is_table and all(
            is_single or key_range.sort.low == key_range.sort.high is not None for key_range in self.ranges
        )


@dataclass(frozen=True, slots=True)
class _Way:
    """One access with the bounds put into its keys; paths bound exactly are among those bound nearly."""

    access: Access
    ranges: list[KeyRange]
    bound: float
    exact: frozenset[Path]
    near: frozenset[Path]

    def rank(self, bounds: Bounds) -> tuple[Any, ...]:
        index = self.access.index
        is_known = all(
            isinstance(part, Literal) or part.path in bounds
            for layout in self.access.layouts
            for part in layout.templates[index.partition_key].parts
        )
        table_first = (index.name is None, index.local, index.projection is Projection.ALL)
        return is_known, self.bound, -len(self.ranges), table_first


def plan(accesses: Iterable[Access], bounds: Bounds) -> Plan | None:
    """Choose the way to read and make its key ranges; None when no way has its partition bound.

    A bound that nothing satisfies, or that no key can hold, gives a plan without ranges.
    """
    open_ = [
        access
        for access in accesses
        if all(is_bound(layout.templates[access.index.partition_key], bounds) for layout in access.layouts)
    ]
    if not open_:
        return None
    if any(bound.values == () for bound in bounds.values()):
        return Plan(open_[0].index, ())
    ways = [_way(access, bounds) for access in open_]
    best = ways[0] if len(ways) == 1 else max(ways, key=lambda way: way.rank(bounds))
    return Plan(
        best.access.index,
        tuple(_disjoint(best.ranges)),
        _tests(best.exact, bounds),
        _tests(best.near - best.exact, bounds),
    )


def is_bound(template: Template, bounds: Bounds) -> bool:
    """Say whether the values of a partition key are all known, or few enough to fan out over."""
    return all(_values(variable, bounds) is not None for variable in template.variables)


def _tables(index: Index, bounds: Bounds) -> tuple[str, ...]:
    """Name the tables to read: one, or for a time series those of the periods that the bounds reach."""
    return (index.table,) if index.period is None else index.period.names(bounds.get((index.period.field,)))


def _tests(paths: frozenset[Path], bounds: Bounds) -> frozenset[Test]:
    return frozenset(test for path in paths if path in bounds for test in bounds[path].tests)


def _way(access: Access, bounds: Bounds) -> _Way:
    tables = _tables(access.index, bounds)
    ranges: list[KeyRange] = []
    sorts: list[SortRanges] = []
    partitions: list[frozenset[Path]] = []
    for layout in access.layouts:
        template = layout.templates[access.index.partition_key]
        partitions.append(frozenset(variable.path for variable in template.variables if not variable.lossy))
        for assigned in _assignments(template, bounds):
            sort = sort_ranges(layout.templates[key] if (key := access.index.sort_key) else None, bounds, assigned)
            sorts.append(sort)
            try:
                partition = template.format(assigned)
            except KeyValueError:
                continue  # No item can have this key.
            ranges += (
                KeyRange(access.index, table, partition, span, (layout,), merge_from)
                for table in tables
                for span, merge_from in sort.ranges
            )
    return _Way(
        access,
        ranges,
        min(sort.bound for sort in sorts),
        _common(sort.exact for sort in sorts) | _common(partitions),
        _common(sort.exact | sort.near for sort in sorts) | _common(partitions),
    )


def _common(sets: Iterable[frozenset[Path]]) -> frozenset[Path]:
    return frozenset.intersection(*sets)


# --- the partition key --------------------------------------------------------------------------------------------


def _values(variable: Variable, bounds: Bounds) -> tuple[Any, ...] | None:
    """List the values that a variable can take, or None when they are unknown or endless."""
    bound = bounds.get(variable.path)
    return bound.values if bound and bound.values is not None else variable.scalar.values or None


def _assignments(template: Template, bounds: Bounds) -> Iterator[dict[Path, Any]]:
    """List the ways to fill in a partition key; a shard that hashes a bound field follows that field's value."""
    shards = [part for part in template.parts if isinstance(part, Shard)]
    choices = {variable.path: _values(variable, bounds) or () for variable in template.variables}
    for path in (shard.path for shard in shards if shard.path in bounds):
        if path is not None and (values := bounds[path].values) is not None:
            choices[path] = values
    for path, values in choices.items():
        if len(values) > MOST_VALUES and path in bounds:
            raise InputError(
                f"`{'.'.join(path)}` lists {len(values)} values, and each takes a Query of its own: expected at most "
                f"{MOST_VALUES}"
            )
    for chosen in product(*choices.values()):
        assigned = dict(zip(choices, chosen, strict=True))
        numbers = {
            shard_path(shard): (shard_of(shard, assigned[shard.path]),)
            if shard.path in assigned
            else range(shard.count)
            for shard in shards
        }
        for combination in product(*numbers.values()):
            yield assigned | dict(zip(numbers, combination, strict=True))


def shard_of(shard: Shard, value: Any) -> int:
    """Give the shard that a value hashes to: CRC-32 of its text, the same in every process."""
    return zlib.crc32(str(value).encode()) % shard.count


# --- several ranges in one partition ------------------------------------------------------------------------------


def _disjoint(ranges: list[KeyRange]) -> Iterator[KeyRange]:
    """Unite the ranges of a partition that overlap, and read those of several layouts by one Query where it can be."""
    partitions: dict[tuple[str, KeyValue], list[KeyRange]] = {}
    for key_range in ranges:
        if not key_range.sort.empty:
            partitions.setdefault((key_range.table, key_range.partition), []).append(key_range)
    for group in partitions.values():
        yield from group if len(group) == 1 else _shared(_united(group))


def _united(group: list[KeyRange]) -> list[KeyRange]:
    united: list[KeyRange] = []
    for key_range in sorted(group, key=lambda one: (one.sort.low is not None, one.sort.low)):
        if united and _meet(united[-1].sort, key_range.sort):
            united[-1] = _union(united[-1], key_range)
        else:
            united.append(key_range)
    return united


def _meet(one: SortRange, later: SortRange) -> bool:
    return one.high is None or later.low is None or later.low <= one.high  # type: ignore[operator]  # of one type


def _union(one: KeyRange, later: KeyRange) -> KeyRange:
    layouts = _layouts([one, later])
    high = later.sort.high
    if one.sort.high is None or (high is not None and high <= one.sort.high):  # type: ignore[operator]  # of one type
        return replace(one, layouts=layouts, merge_from=min(one.merge_from, later.merge_from))
    return replace(one, sort=SortRange(one.sort.low, high), layouts=layouts, merge_from=0)


def _shared(group: list[KeyRange]) -> list[KeyRange]:
    """Read layouts that lie side by side with one Query over their common prefix, where all are plain prefixes."""
    layouts = _layouts(group)
    prefixes = [key_range.sort.prefix for key_range in group if key_range.sort.prefix and not key_range.merge_from]
    if len(group) == 1 or len(layouts) == 1 or len(prefixes) < len(group):
        return group
    parts = tuple(key_range.sort for key_range in group)
    return [replace(group[0], sort=SortRange.beginning(_common_prefix(prefixes)), layouts=layouts, parts=parts)]


def _layouts(ranges: list[KeyRange]) -> tuple[Layout, ...]:
    return tuple({layout.name: layout for key_range in ranges for layout in key_range.layouts}.values())


def _common_prefix(texts: list[str]) -> str:
    pairs = zip(min(texts), max(texts), strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
