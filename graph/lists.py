"""From a relationship or a find, and the filter on it, to the list of items to read: planned, filtered, chained."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Any

from graph.chain import ChainSource
from graph.distinct import DistinctSource
from graph.entity import UNKNOWN, Entity
from graph.errors import InputError
from graph.filters import NO_FILTER, Filter, bounds, conjuncts, holds, paths, push_down, without
from graph.items import KeysSource
from graph.keys import Path
from graph.loaders import Operation
from graph.lookups import Needs, load
from graph.merge import MergeSource
from graph.model import FieldKind, Find, Projection, Relationship
from graph.partition import RangeSource
from graph.planner import Plan, plan
from graph.scan import ScanSource
from graph.sources import Entry, Keep, Sieve, Source

NOTHING = MergeSource([])
NOTHING_KNOWN: Mapping[Path, Any] = {}


def target(end: str | None, item: Entity) -> Entity | None:
    """Give what an item read leads to: the node at its end, or itself."""
    return item if end is None else item.end(end)


def prime_inverses(operation: Operation, relationship: Relationship, origin: Entity, node: Entity) -> None:
    """Tell a node's to-one relationships back to where it was found from what they lead to: the way here shows it."""
    for inverse in relationship.inverses:
        if (key := node.key) is not None:
            operation.inverses.setdefault((node.type.name, inverse, key), origin)


# --- relationships ------------------------------------------------------------------------------------------------


async def knowing(operation: Operation, relationship: Relationship, node: Entity) -> Entity:
    """Load a node whose name alone does not lead along a relationship; one that does not exist leads nowhere."""
    (found,) = await load(operation, [node], _needs(relationship))
    return found or node


def relationship_list(
    operation: Operation, relationship: Relationship, node: Entity, where: Filter = NO_FILTER
) -> Source:
    """Make the list behind a relationship of a node of which enough is known."""
    return _walk(operation, relationship.path or (relationship,), node, where)


def _needs(hop: Relationship) -> Needs:
    return lambda _: frozenset(path[0] for path in hop.needs)


def _walk(operation: Operation, hops: Sequence[Relationship], node: Entity, where: Filter) -> Source:
    head, *rest = hops
    if not rest:
        return _hop(operation, head, node, where)

    async def follow(items: Sequence[Entity]) -> list[Source | None]:
        nodes = await load(operation, [target(head.end, item) for item in items], _needs(rest[0]))
        for one in nodes:
            if one is not None:
                prime_inverses(operation, head, node, one)
        return [None if one is None else _walk(operation, rest, one, where) for one in nodes]

    return ChainSource(operation, _hop(operation, head, node, NO_FILTER), follow)


def _hop(operation: Operation, hop: Relationship, node: Entity, where: Filter) -> Source:
    known = known_of(hop, node)
    return NOTHING if known is None else _source(operation, hop, where, known)


def known_of(hop: Relationship, node: Entity) -> Mapping[Path, Any] | None:
    """Say what all items behind a relationship of a node have; None where too little is known of the node."""
    known = {(hop.start, *path): node.at(path) for path in hop.needs}
    return None if any(value is None or value is UNKNOWN for value in known.values()) else known


# --- finds --------------------------------------------------------------------------------------------------------


def find_list(
    operation: Operation, find: Find, where: Filter, known: Mapping[Path, Any] = NOTHING_KNOWN, *, in_all: bool = False
) -> Source:
    """Make the list of a find; its arguments are part of the filter, and `known` is what all its items have."""
    if find.scan:
        return _scan(operation, find, where)
    if find.is_distinct:
        return _distinct(operation, find, where, known, in_all=in_all)
    return _source(operation, find, where, known)


def _scan(operation: Operation, find: Find, where: Filter) -> Source:
    if any(bound.values == () for bound in bounds(where).values()):
        return NOTHING
    layouts = tuple(
        layout for name in find.item_types for layout in operation.model.items[name].layouts if not layout.mirror
    )
    return ScanSource(operation, layouts, _place(find), _sieve(operation, find, where))


def _distinct(operation: Operation, find: Find, where: Filter, known: Mapping[Path, Any], *, in_all: bool) -> Source:
    bound = bounds(where)
    planned = plan_of(find, where, known)
    listed = [bound[argument.path].values for argument in find.arguments if argument.type.of and argument.path in bound]
    wanted = prod(len(values) for values in listed if values is not None) if in_all else 1
    sieve = _sieve(operation, find, where, planned)
    sources = [RangeSource(operation, one, _place(find), sieve, find.consistent) for one in planned.ranges]
    return DistinctSource(MergeSource(sources), wanted)


# --- both ---------------------------------------------------------------------------------------------------------


def _place(pattern: Relationship | Find) -> str:
    return f"{'Query' if isinstance(pattern, Find) else pattern.source}.{pattern.name}"


def plan_of(pattern: Relationship | Find, where: Filter, known: Mapping[Path, Any]) -> Plan:
    """Plan how a pattern is read. Raises InputError where the filter leaves the partition open."""
    planned = plan(pattern.accesses, bounds(where, known))
    if planned is not None:
        return planned
    assert isinstance(pattern, Relationship), "the compiler has made sure that every partition key is bound"
    asked = " and ".join(f"`{'.'.join(path)}`" for path in pattern.asks)
    raise InputError(
        f"`{_place(pattern)}` is read from the index `{pattern.accesses[0].index.name}`, whose partition key holds "
        f"{asked} too: expected a `where` that says which, by `eq` or `in`"
    )


def _source(operation: Operation, pattern: Relationship | Find, where: Filter, known: Mapping[Path, Any]) -> Source:
    planned = plan_of(pattern, where, known)
    place = _place(pattern)
    # A BatchGetItem shared with everybody else's keys is read as they all are: eventually consistent.
    if planned.names_items and not pattern.consistent:
        return KeysSource(operation, planned.ranges, place, keep_where(operation, without(where, planned.exact)))
    sieve = _sieve(operation, pattern, where, planned)
    sources = [RangeSource(operation, one, place, sieve, pattern.consistent) for one in planned.ranges]
    return sources[0] if len(sources) == 1 else MergeSource(sources)


def _sieve(operation: Operation, pattern: Relationship | Find, where: Filter, planned: Plan | None = None) -> Sieve:
    rest = where if planned is None else without(where, planned.exact)
    condition = None
    if len(pattern.item_types) == 1:
        # Another type may keep a field of the same name in another attribute.
        projection = Projection.ALL if planned is None else planned.index.projection
        condition, rest = push_down(rest, operation.model.items[pattern.item_types[0]], projection)
    near: Collection[Filter] = () if planned is None else planned.near
    is_sparse = condition is not None or any(part not in near for part in conjuncts(rest))
    return Sieve(condition, keep_where(operation, rest), is_sparse)


def keep_where(operation: Operation, where: Filter) -> Keep | None:
    """Make what keeps the entries that a filter accepts; None for one that accepts all."""
    looked_at = frozenset(paths(where))
    if where == NO_FILTER:
        return None

    async def keep(entries: list[Entry]) -> list[Entry]:
        whole = await _completed(operation, [entry.entity for entry in entries], looked_at)
        return [
            Entry(entry.position, entity)
            for entry, entity in zip(entries, whole, strict=True)
            if entity is not None and holds(where, entity)
        ]

    return keep


async def _completed(
    operation: Operation, entities: Sequence[Entity | None], looked_at: Collection[Path]
) -> list[Entity | None]:
    """Load what a filter looks at, and then what it looks at behind references, for all entities together."""
    names = sorted({path[0] for path in looked_at})
    whole = await load(operation, entities, lambda _: frozenset(names))
    behind = {name: frozenset(path[1:] for path in looked_at if path[0] == name and len(path) > 1) for name in names}
    await operation.together([_complete_ends(operation, whole, name, rests) for name, rests in behind.items() if rests])
    return whole


async def _complete_ends(
    operation: Operation, entities: Sequence[Entity | None], name: str, looked_at: Collection[Path]
) -> None:
    holders = [one for one in entities if one is not None and one.type.fields[name].kind is FieldKind.REFERENCE]
    ends = await _completed(operation, [holder.end(name) for holder in holders], looked_at)
    for holder, end in zip(holders, ends, strict=True):
        holder.nodes[name] = end
