"""Item collections: a node and its first edges lie in one partition, and one Query can bring them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graph.bounds import Bound
from graph.entity import Entity
from graph.loaders import Operation
from graph.model import Relationship
from graph.planner import KeyRange, plan
from graph.requests import Item, Query, key_value
from graph.sort import SortKey, SortRange


@dataclass(frozen=True, slots=True)
class Companion:
    """A relationship that is asked for together with its node: its first `want` items in their own order."""

    relationship: Relationship
    want: int


@dataclass(frozen=True, slots=True)
class Collection:
    """What one Query brought of a partition: the items of a range of sort keys, all of them or the first ones."""

    range: SortRange
    items: tuple[Item, ...]
    is_whole: bool

    def part(self, names: Sequence[str], wanted: SortRange) -> tuple[list[Item], bool] | None:
        """Give the items of a range within this one, and whether they are all of it; None when they are not known."""
        if not self.range.holds(wanted):
            return None
        found = [item for item in self.items if wanted.contains(_sort_key(item, names))]
        reached = _sort_key(self.items[-1], names) if self.items else None
        is_found = len(found) == 1 and wanted.low == wanted.high and len(wanted.low) == len(names)
        is_all = self.is_whole or is_found or (reached is not None and wanted.is_below(reached))
        return (found, is_all) if found or is_all else None


def _sort_key(item: Item, names: Sequence[str]) -> SortKey:
    return tuple(key_value(item[name]) for name in names)


async def collect(operation: Operation, node: Entity, companions: Sequence[Companion]) -> None:
    """Read a node and those of its companions that lie in its own partition with one Query.

    Cost: one Query instead of one more for each of them; it reads what lies between them in the partition as well, and
    never more items than were asked for together.
    """
    own = _own_range(operation, node)
    if own is None or not own.index.sort_keys:
        return
    ranges, limit = [own.sort], 1
    for companion in companions:
        key_range = _range_of(node, companion.relationship)
        if key_range is not None and _place(key_range) == _place(own):
            ranges.append(key_range.sort)
            limit += companion.want
    if len(ranges) == 1:
        return
    whole = SortRange.around(ranges)
    if len(whole.pieces()) > 1:
        return
    request = Query(
        own.table,
        own.index.name,
        tuple(zip(own.index.partition_keys, own.partition, strict=True)),
        whole.condition(own.index.sort_keys),
        limit=limit,
        consistent=any(companion.relationship.consistent for companion in companions)
        or operation.reads_consistently(own.index),
    )
    response = await operation.page(request)
    items = tuple(response["Items"])
    collection = Collection(whole, items, "LastEvaluatedKey" not in response)
    operation.collections[own.table, own.index.name, own.partition] = collection
    _prime(operation, node, own, collection)


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
    part = collection.part(own.index.sort_keys, own.sort)
    if part is not None and part[1]:
        operation.prime_item(node.key, part[0][0] if part[0] else None)


def _place(key_range: KeyRange) -> tuple[str, str | None, object]:
    return key_range.table, key_range.index.name, key_range.partition
