"""The planner's rule, and nothing else: an access pattern and what is bound of it → the key ranges to read.

Among the ways into a table, take those whose partition key is fully bound in all its attributes: by constants, by
values, by fanning out over an enum or over shards. Of these take one whose partition is known before one to fan out
over, then the longest bound sort prefix, attribute after attribute, and one range on the next variable, then what
decides most of the filter with its partition too, then the fewest ranges. Ties go to the table, then to a local index,
then to what projects all, then to the way listed first.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, product, takewhile
from typing import Any

from graph.errors import InputError, KeyValueError
from graph.filters import Test
from graph.keys import KeyValue, Literal, Part, Path, Shard, Variable, shard_path
from graph.model import Access, Index, Layout, Projection
from graph.ranges import BEGINNING, MOST_VALUES, Bounds, MergeFrom, SortRanges, sort_ranges
from graph.sort import SortKey, SortRange


@dataclass(frozen=True, slots=True)
class KeyRange:
    """One range of one partition, and the layouts of the items expected there.

    `merge_from` is where the sort key begins that ranges of a fan-out are merged by: after the values fanned out over.
    `parts` are the ranges inside it in which only such items lie, where several layouts are read by one Query.
    """

    index: Index
    table: str
    partition: tuple[KeyValue, ...]
    sort: SortRange
    layouts: tuple[Layout, ...]
    merge_from: MergeFrom = BEGINNING
    parts: tuple[SortRange, ...] = ()

    def merge_key(self, sort: SortKey) -> SortKey:
        """Give what a sort key is ordered by among all ranges: what was fanned out over is the same for all of them."""
        place, letter = self.merge_from
        same = ("" if isinstance(value, str) else Decimal(0) for value in sort[:place])
        return (*same, str(sort[place])[letter:], *sort[place + 1 :]) if letter else (*same, *sort[place:])

    def sort_key(self, merge_key: SortKey) -> SortKey:
        """Give the sort key in this range that has a merge key."""
        place, letter = self.merge_from
        same, own = self.sort.low[:place], self.sort.low[place:]
        if not letter:
            return (*same, *merge_key[place:])
        return (*same, f"{str(own[0])[:letter]}{merge_key[place]}", *merge_key[place + 1 :])


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
        is_single = not self.index.sort_keys
        # A period in which nothing happened has no table, which a Query takes for an empty one.
        is_table = self.index.name is None and self.index.period is None
        return is_table and all(
            is_single or key_range.sort.low == key_range.sort.high != () for key_range in self.ranges
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
            for part in partition_parts(layout, index)
        )
        table_first = (index.name is None, index.local, index.projection is Projection.ALL)
        decided = sum(1 for path in self.near if path in bounds and bounds[path].tests)
        return is_known, self.bound, decided, -len(self.ranges), table_first


def plan(accesses: Iterable[Access], bounds: Bounds) -> Plan | None:
    """Choose the way to read and make its key ranges; None when no way has its partition bound.

    A bound that nothing satisfies, or that no key can hold, gives a plan without ranges.
    """
    open_ = [access for access in accesses if all(is_bound(layout, access.index, bounds) for layout in access.layouts)]
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


def partition_parts(layout: Layout, index: Index) -> Iterator[Part]:
    """List what the attributes of a partition key are made of, one after another."""
    return chain.from_iterable(template.parts for template in layout.partition(index))


def is_bound(layout: Layout, index: Index, bounds: Bounds) -> bool:
    """Say whether the values of a partition key are all known, or few enough to fan out over."""
    return all(
        _values(part, bounds) is not None for part in partition_parts(layout, index) if isinstance(part, Variable)
    )


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
        parts = tuple(partition_parts(layout, access.index))
        partitions.append(frozenset(part.path for part in parts if isinstance(part, Variable) and not part.lossy))
        for assigned in _assignments(parts, bounds):
            sort = sort_ranges(layout.sort(access.index), bounds, assigned)
            sorts.append(sort)
            try:
                partition = tuple(template.format(assigned) for template in layout.partition(access.index))
            except KeyValueError:
                continue  # No item can have this key.
            ranges += (
                KeyRange(access.index, table, partition, span.sort, (layout,), span.merge_from)
                for table in tables
                for span in sort.ranges
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


def _assignments(parts: Sequence[Part], bounds: Bounds) -> Iterator[dict[Path, Any]]:
    """List the ways to fill in a partition key; a shard that hashes a bound field follows that field's value."""
    shards = [part for part in parts if isinstance(part, Shard)]
    choices = {part.path: _values(part, bounds) or () for part in parts if isinstance(part, Variable)}
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
    partitions: dict[tuple[str, tuple[KeyValue, ...]], list[KeyRange]] = {}
    for key_range in ranges:
        if not key_range.sort.empty:
            partitions.setdefault((key_range.table, key_range.partition), []).append(key_range)
    for group in partitions.values():
        yield from group if len(group) == 1 else _shared(_united(group))


def _united(group: list[KeyRange]) -> list[KeyRange]:
    united: list[KeyRange] = []
    for key_range in sorted(group, key=lambda one: one.sort.low):
        if united and united[-1].sort.meets(key_range.sort):
            united[-1] = _union(united[-1], key_range)
        else:
            united.append(key_range)
    return united


def _union(one: KeyRange, later: KeyRange) -> KeyRange:
    layouts = _layouts([one, later])
    if one.sort.holds(later.sort):
        return replace(one, layouts=layouts, merge_from=min(one.merge_from, later.merge_from))
    return replace(one, sort=SortRange.around((one.sort, later.sort)), layouts=layouts, merge_from=BEGINNING)


def _shared(group: list[KeyRange]) -> list[KeyRange]:
    """Read layouts that lie side by side with one Query over their common prefix, where all are plain prefixes."""
    layouts = _layouts(group)
    sorts = [one.sort for one in group if one.sort.prefix and one.merge_from == BEGINNING]
    before = {sort.low[:-1] for sort in sorts}
    if len(group) == 1 or len(layouts) == 1 or len(sorts) < len(group) or len(before) > 1:
        return group
    common = SortRange.beginning(_common_prefix([sort.prefix or "" for sort in sorts])).behind(before.pop())
    return [replace(group[0], sort=common, layouts=layouts, parts=tuple(sorts))]


def _layouts(ranges: list[KeyRange]) -> tuple[Layout, ...]:
    return tuple({layout.name: layout for key_range in ranges for layout in key_range.layouts}.values())


def _common_prefix(texts: list[str]) -> str:
    pairs = zip(min(texts), max(texts), strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
