"""Item collections: a node and its first edges lie in one partition, and one Query can bring them together."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graph.bounds import Bound
from graph.entity import Entity
from graph.expressions import Between
from graph.keys import KeyValue, overlap
from graph.loaders import Operation
from graph.model import Index, Model, Relationship
from graph.planner import KeyRange, plan
from graph.records import contents
from graph.requests import Item, ItemKey, Query, key_value
from graph.sort import SortKey, SortRange


@dataclass(frozen=True, slots=True)
class Companion:
    """A relationship that is asked for together with its node: its first `want` items in their own order."""

    relationship: Relationship
    want: int


class Collection:
    """What one Query brought of a partition: the items of a range of sort keys, all of them or the first ones."""

    __slots__ = ("_keys", "_names", "is_whole", "items", "range")

    def __init__(self, names: Sequence[str], range_: SortRange, items: Sequence[Item], *, is_whole: bool) -> None:
        self.range = range_
        self.items = items
        self.is_whole = is_whole
        self._names = names
        self._keys = _first_values(items, names[0])
        """The values of the first sort attribute: the items are in their order."""

    def part(self, wanted: SortRange) -> tuple[list[Item], bool] | None:
        """Give the items of a range within this one, and whether they are all of it; None when they are not known."""
        if not self.range.holds(wanted):
            return None
        found = self._found(wanted)
        is_found = len(found) == 1 and wanted.low == wanted.high and len(wanted.low) == len(self._names)
        is_all = self.is_whole or is_found or self._reaches_behind(wanted)
        return (found, is_all) if found or is_all else None

    def own(self, key: KeyValue) -> tuple[Item | None, bool]:
        """Give the item of a sort key of one attribute within the range, and whether it is known."""
        keys = self._keys
        place = bisect_left(keys, key)
        if place < len(keys) and keys[place] == key:
            return self.items[place], True
        return None, self.is_whole or place < len(keys)

    def _found(self, wanted: SortRange) -> list[Item]:
        if len(self._names) > 1:
            return [item for item in self.items if wanted.contains(_sort_key(item, self._names))]
        low = bisect_left(self._keys, wanted.low[0]) if wanted.low else 0
        high = bisect_right(self._keys, wanted.high[0]) if wanted.high else len(self._keys)
        return list(self.items[low:high])

    def _reaches_behind(self, wanted: SortRange) -> bool:
        return bool(self.items) and wanted.is_below(_sort_key(self.items[-1], self._names))


def _first_values(items: Sequence[Item], name: str) -> list[Any]:
    try:
        return contents(name)(items)
    except KeyError:
        return [key_value(item[name]) for item in items]


def _sort_key(item: Item, names: Sequence[str]) -> SortKey:
    return tuple([key_value(item[name]) for name in names])


class Gathering:
    """What the Queries for nodes of one type with their companions have in common, whatever the node."""

    def __init__(self, own: KeyRange, around: SortRange, limit: int, *, consistent: bool) -> None:
        self.index = own.index
        self.table = own.table
        (self._name,), (self._low,), (self._high,) = own.index.sort_keys, map(str, around.low), map(str, around.high)
        self._limit = limit
        self._consistent = consistent
        self._prototype: Query | None = None

    def query(self, partition: str, sort: str) -> tuple[SortRange, Query]:
        """Make the Query for the node of a key, and give the range that it reads."""
        # As SortRange.around and its condition would have it, for texts.
        low, high = min(sort, self._low), max(sort, self._high)
        whole = SortRange((low,), (high,))
        prototype = self._prototype
        if prototype is None:
            prototype = self._prototype = _query(
                self.index, self.table, (partition,), whole, self._limit, consistent=self._consistent
            )
        return whole, prototype.of((partition,), None, Between(self._name, ("S", low), ("S", high)))


def has_company(operation: Operation, node: Entity, companions: Sequence[Companion]) -> bool:
    """Say whether any of the companions lies in the node's own partition."""
    return _ranges(operation, node, companions) is not None


def gathering(operation: Operation, node: Entity, companions: Sequence[Companion]) -> Gathering | None:
    """Find what nodes of a type have in common, from one of them; None where each has to be looked at."""
    found = _ranges(operation, node, companions)
    if found is None:
        return None
    own, ranges, limit = found
    names = operation.model.tables[own.table].key_attributes if own.table in operation.model.tables else ()
    is_plain = len(own.index.sort_keys) == 1 and own.index.name is None and len(names) == 2
    is_text = all(isinstance(text, str) for text in (*own.partition, *own.sort.low)) and own.sort.low == own.sort.high
    if not is_plain or not is_text or len(own.sort.low) != 1 or any(_depends(one) for one in ranges):
        return None
    around = SortRange.around([one.sort for one in ranges])
    if (
        not all(len(end) == 1 and isinstance(end[0], str) for end in (around.low, around.high))
        or around.low == around.high
    ):
        return None
    return Gathering(own, around, limit, consistent=_is_consistent(operation, own, companions))


def page_gathering(operation: Operation, node: Entity, companions: Sequence[Companion]) -> Gathering | None:
    """Find it for the nodes of a page, which a BatchGetItem would read as well: where nothing else can get in between.

    Else a Query might end before it has brought what it was sent for, and there is one for each node.
    """
    shape = gathering(operation, node, companions)
    found = None if shape is None else _ranges(operation, node, companions)
    if found is None or operation.consistent:
        return None
    own, ranges, _ = found
    own_range = SortRange.beginning(own.layouts[0].sort(own.index)[0].prefix({}))
    is_last = len(ranges) == 1 and own_range.low > ranges[0].sort.low and not own_range.meets(ranges[0].sort)
    whole = SortRange.around([own_range, *(one.sort for one in ranges)])
    return shape if is_last or not _has_others(operation.model, own, ranges, whole) else None


def _has_others(model: Model, own: KeyRange, ranges: Sequence[KeyRange], whole: SortRange) -> bool:
    """Say whether items of other layouts may lie in a range of the partition of a node."""
    (mine,) = own.layouts[0].partition(own.index)
    expected = {layout.name for key_range in (own, *ranges) for layout in key_range.layouts}
    for layout in (layout for type_ in model.items.values() for layout in type_.layouts):
        if layout.table != own.index.table or layout.name in expected:
            continue
        (partition,), (sort,) = layout.partition(own.index), layout.sort(own.index)
        reach = SortRange.beginning(sort.prefix({}))
        if overlap(partition, mine) and reach.low <= whole.high and whole.low <= (reach.high or whole.high):
            return True
    return False


async def accompany(operation: Operation, shape: Gathering, keys: Sequence[ItemKey]) -> None:
    """Read the nodes of a page together with their companions: what fails is left to those who need it.

    Cost: one Query for each node that is not known yet, which the companions need anyway.
    """
    if new := [key for key in dict.fromkeys(keys) if not operation.knows(key)]:
        await gather(operation, shape, new)


async def accompany_nodes(
    operation: Operation, nodes: Sequence[Entity], companions: Callable[[str], Sequence[Companion]]
) -> None:
    """Do that for nodes of any types, as far as they are named plainly."""
    by_type: dict[str, list[Entity]] = {}
    for node in nodes:
        by_type.setdefault(node.type.name, []).append(node)
    for name, ones in by_type.items():
        asked = companions(name)
        shape = page_gathering(operation, ones[0], asked) if asked else None
        keys = [one.key for one in ones if one.key is not None]
        if shape is not None and all(is_plain_key(key) for key in keys):
            await accompany(operation, shape, keys)


def is_plain_key(key: ItemKey) -> bool:
    """Say whether a key is a partition and a sort key of text."""
    return len(key[1]) == 2 and all(isinstance(value, str) for _, value in key[1])


def _depends(key_range: KeyRange) -> bool:
    """Say whether a range holds anything of its source besides the partition key."""
    (layout,) = key_range.layouts[:1]
    held = {variable.path for one in layout.partition(key_range.index) for variable in one.variables}
    sorts = [variable.path for one in layout.sort(key_range.index) for variable in one.variables]
    return len(key_range.layouts) > 1 or any(path in held for path in sorts) or not key_range.sort.low


async def gather(operation: Operation, shape: Gathering, keys: Sequence[ItemKey]) -> list[Exception | None]:
    """Read the nodes of many keys, each with its companions by one Query; an exception where that failed."""
    asked = [shape.query(str(key[0][1]), str(key[1][1])) for _, key in keys]
    answers = await operation.pages([query for _, query in asked])
    names = shape.index.sort_keys
    failures: list[Exception | None] = []
    for item_key, (whole, _), answer in zip(keys, asked, answers, strict=True):
        if isinstance(answer, Exception):
            failures.append(answer)
            continue
        key = item_key[1]
        collection = Collection(names, whole, answer["Items"], is_whole="LastEvaluatedKey" not in answer)
        operation.collections[shape.table, None, (key[0][1],)] = collection
        own, is_known = collection.own(key[1][1])
        if is_known:
            operation.prime_item(item_key, own)
        failures.append(None)
    return failures


async def collect(operation: Operation, node: Entity, companions: Sequence[Companion]) -> None:
    """Read a node and those of its companions that lie in its own partition with one Query.

    Cost: one Query instead of one more for each of them; it reads what lies between them in the partition as well, and
    never more items than were asked for together.
    """
    found = _ranges(operation, node, companions)
    if found is None:
        return
    own, ranges, limit = found
    whole = SortRange.around([own.sort, *(one.sort for one in ranges)])
    if len(whole.pieces()) > 1:
        return
    consistent = _is_consistent(operation, own, companions)
    response = await operation.page(_query(own.index, own.table, own.partition, whole, limit, consistent=consistent))
    items = tuple(response["Items"])
    collection = Collection(own.index.sort_keys, whole, items, is_whole="LastEvaluatedKey" not in response)
    operation.collections[own.table, own.index.name, own.partition] = collection
    _prime(operation, node, own, collection)


def _ranges(
    operation: Operation, node: Entity, companions: Sequence[Companion]
) -> tuple[KeyRange, list[KeyRange], int] | None:
    """Find the range of a node, those of its companions in the same partition, and how many items are wanted."""
    own = _own_range(operation, node)
    if own is None or not own.index.sort_keys:
        return None
    ranges: list[KeyRange] = []
    limit = 1
    for companion in companions:
        key_range = _range_of(node, companion.relationship)
        if key_range is not None and _place(key_range) == _place(own):
            ranges.append(key_range)
            limit += companion.want
    return (own, ranges, limit) if ranges else None


def _is_consistent(operation: Operation, own: KeyRange, companions: Sequence[Companion]) -> bool:
    is_asked = any(companion.relationship.consistent for companion in companions)
    return is_asked or operation.reads_consistently(own.index)


def _query(
    index: Index, table: str, partition: tuple[KeyValue, ...], whole: SortRange, limit: int, *, consistent: bool
) -> Query:
    return Query(
        table,
        index.name,
        tuple(zip(index.partition_keys, partition, strict=True)),
        whole.condition(index.sort_keys),
        limit=limit,
        consistent=consistent,
    )


def _own_range(operation: Operation, node: Entity) -> KeyRange | None:
    bound = {path: Bound(values=(value,)) for path, value in node.named.items()}
    found = plan(operation.model.lookups[node.type.name], bound)
    return found.ranges[0] if found is not None and len(found.ranges) == 1 else None


def _range_of(node: Entity, relationship: Relationship) -> KeyRange | None:
    relationship = relationship.path[0] if relationship.path else relationship
    if any(path not in node.named for path in relationship.needs):
        return None
    bound = {(relationship.start, *path): Bound(values=(node.named[path],)) for path in relationship.needs}
    found = plan(relationship.accesses, bound)
    return found.ranges[0] if found is not None and len(found.ranges) == 1 else None


def _prime(operation: Operation, node: Entity, own: KeyRange, collection: Collection) -> None:
    """Answer the lookup of the node itself from the collection, where its key is known: also that it does not exist."""
    if node.key is None:
        return
    part = collection.part(own.sort)
    if part is not None and part[1]:
        operation.prime_item(node.key, part[0][0] if part[0] else None)


def _place(key_range: KeyRange) -> tuple[str, str | None, object]:
    return key_range.table, key_range.index.name, key_range.partition
