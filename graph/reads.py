"""What a field asks of the table: a node, the one node or the page behind a relationship, a count."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graph.bounds import Bound
from graph.chain import ChainSource
from graph.collection import Companion, collect
from graph.cursor import Position, fingerprint, write_cursor
from graph.distinct import DistinctSource
from graph.entity import UNKNOWN, Entity, read_entity
from graph.errors import BudgetExceeded, GraphError, ItemError
from graph.filters import NO_FILTER, Filter, bounds, holds, paths, push_down, pushes_all, residue
from graph.keys import Path
from graph.loaders import Operation
from graph.merge import MergeSource
from graph.model import FieldKind, Find, ItemType, Relationship
from graph.paging import Keep, Page, PageArguments, Window, read_page, window
from graph.planner import Plan, plan
from graph.scan import ScanSource
from graph.sources import Entry, RangeSource, Reading, Source, read_live

Needs = Callable[[str], frozenset[str]]
"""What the query selects of a node, by the name of its type: only what is asked for is read."""


def nothing_needed(_: str) -> frozenset[str]:
    """Need nothing of any type."""
    return frozenset()


# --- nodes --------------------------------------------------------------------------------------------------------


def begin_load(
    operation: Operation, entities: Sequence[Entity | None], needs: Needs
) -> Coroutine[Any, Any, list[Entity | None]]:
    """Ask for those of the nodes that lack something needed: their keys are queued now, the answer awaited later.

    A node that does not exist is None.
    Cost: BatchGetItems of 100 shared with the whole operation; a bounded Query for a node whose full key is not known.
    """
    results = list(entities)
    lacking = [(i, one) for i, one in enumerate(entities) if one is not None and one.lacks(needs(one.type.name))]
    keyed = [(i, one, one.key) for i, one in lacking if one.key is not None]
    futures = operation.request_items([key for _, _, key in keyed])
    searches = [(i, asyncio.ensure_future(_search(operation, one))) for i, one in lacking if one.key is None]

    async def finish() -> list[Entity | None]:
        items = await operation.answers(futures)
        for (i, one, _), item in zip(keyed, items, strict=True):
            results[i] = None if item is None else _of_type(operation, one, item)
        for i, search in searches:
            results[i] = await search
        return results

    return finish()


async def load(operation: Operation, entities: Sequence[Entity | None], needs: Needs) -> list[Entity | None]:
    """Load those of the nodes that lack something needed, and wait for them."""
    return await begin_load(operation, entities, needs)


def _of_type(operation: Operation, named: Entity, item: Mapping[str, Any]) -> Entity | None:
    for layout in named.type.layouts:
        entity = read_live(operation, layout, item)
        if entity is not None:
            return entity
    if not any(read_entity(operation.model, layout, item) for layout in named.type.layouts):
        operation.meter.skipped[named.type.name] += 1
    return None


async def _search(operation: Operation, named: Entity) -> Entity | None:
    """Find a node of which only some fields are known by the first item of a range."""
    bound = {path: Bound(values=(value,)) for path, value in named.paths.items()}
    found = plan(operation.model.lookups[named.type.name], bound)
    if found is None:
        return None
    source = _source(operation, found, named.type.name)
    # Among other types' items in the partition the first page is likely to hold it; one item at a time would not.
    sparse = any(operation.model.rivals_of(layout) for layout in named.type.layouts)
    async for batch in source.batches(Reading(want=1, sparse=sparse)):
        for entry in batch.entries:
            if all(entry.entity.at(path) == value for path, value in named.named.items()):
                (whole,) = await load(
                    operation, [entry.entity], lambda name: frozenset(operation.model.items[name].fields)
                )
                return whole
    return None


async def lookup(
    operation: Operation, type_: ItemType, named: Mapping[Path, Any], companions: Sequence[Companion] = ()
) -> Entity | None:
    """Get the node of these key fields, or None; what is asked for with it is read along where one Query can.

    Raises: KeyValueError when the fields cannot make a key.
    """
    entity = Entity(operation.model, type_, named=named)
    if type_.virtual:
        return entity
    with operation.reading():
        if companions:
            await collect(operation, entity, companions)
        if entity.key is None:
            return await _search(operation, entity)
    # That the node exists is part of the answer, even when nothing of it is asked for.
    (item,) = await operation.items([entity.key])
    return None if item is None else _of_type(operation, entity, item)


async def by_keys(operation: Operation, named: Sequence[Entity | None]) -> list[Entity | None]:
    """Get the nodes of full keys, in order; None for those that do not exist."""
    stored = [
        (i, entity, entity.key) for i, entity in enumerate(named) if entity is not None and not entity.type.virtual
    ]
    items = await operation.items([key for _, _, key in stored if key is not None])
    results = list(named)
    for (i, entity, _), item in zip(stored, items, strict=True):
        results[i] = None if item is None else _of_type(operation, entity, item)
    return results


async def reference(operation: Operation, entity: Entity, field: str, needs: Needs) -> Entity | None:
    """Get the node that a field of an item names."""
    named = entity.reference(entity.type.fields[field])
    if not isinstance(named, Entity):
        return None
    (node,) = await load(operation, [named], needs)
    return node


# --- relationships ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query wants of a connection besides the page: its filter, its order, and what it selects of the nodes."""

    where: Filter = NO_FILTER
    descending: bool = False
    needs: Needs = nothing_needed
    wants_nodes: bool = True
    wants_page: bool = True
    wants_count: bool = False
    in_all: bool = False
    """Of several partitions that may lead to the same node every one must, not any: for a find that is distinct."""


@dataclass(slots=True)
class Edge:
    """One edge of a connection: where it lies, the item read, and the node it leads to (None when it dangles)."""

    connection: str
    position: Position
    item: Entity
    node: Entity | None

    @property
    def cursor(self) -> str:
        """Write the edge's cursor: only when somebody asks."""
        return write_cursor(self.position, self.connection)


@dataclass(slots=True)
class Connection:
    """The answer to a connection field."""

    name: str
    edges: list[Edge]
    page: Page | None
    total_count: int | GraphError | None

    def cursor(self, position: Position | None) -> str | None:
        """Write the cursor of a place in this connection."""
        return None if position is None else write_cursor(position, self.name)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """What is common to relationships and finds once their source is known: where to read and what decides."""

    source: Source
    identity: tuple[object, ...]
    end: str | None
    type: ItemType
    where: Filter
    budget: int
    inverses: tuple[str, ...] = ()
    start: str = ""
    """At the end of a path: the field of the items read that names the node before."""


async def connection(
    operation: Operation,
    pattern: Relationship | Find,
    parent: Entity | None,
    arguments: PageArguments,
    asked: Asked,
) -> Connection:
    """Read a connection: the page, its nodes together, and the total count if it is asked for.

    Raises: PageError, CursorError, KeyValueError for the arguments; StoreError.
    """
    with operation.reading():
        found = await _pattern(operation, pattern, parent, asked)
        name = fingerprint(*found.identity, asked.where, asked.descending, asked.in_all)
        window_ = window(arguments, operation.limits, name, found.source)
        page = await _page(operation, found, window_, asked) if asked.wants_page else None
        edges = [] if page is None else [_edge(name, found, entry) for entry in page.entries]
        _prime_inverses(operation, found, parent, edges)
        loading = begin_load(
            operation, [edge.node for edge in edges], asked.needs if asked.wants_nodes else nothing_needed
        )
    for edge, node in zip(edges, await loading, strict=True):
        edge.node = node
    return Connection(name, edges, page, await _total(operation, found, asked, page))


async def one(operation: Operation, relationship: Relationship, parent: Entity, needs: Needs) -> Entity | None:
    """Get the one node behind a to-one relationship: the first, or None."""
    key = parent.key
    known = None if key is None else operation.inverses.get((relationship.source, relationship.name, key))
    with operation.reading():
        if known is None:
            known = await _first(await _pattern(operation, relationship, parent, Asked()))
        loading = begin_load(operation, [known], needs)
    (node,) = await loading
    return node


async def _first(found: _Pattern) -> Entity | None:
    async for batch in found.source.batches(Reading(want=1)):
        for entry in batch.entries:
            return _target(found, entry)
    return None


def _target(found: _Pattern, entry: Entry) -> Entity | None:
    return entry.entity if found.end is None else entry.entity.end(found.end)


def _edge(name: str, found: _Pattern, entry: Entry) -> Edge:
    return Edge(name, entry.position, entry.entity, _target(found, entry))


def _prime_inverses(operation: Operation, found: _Pattern, parent: Entity | None, edges: list[Edge]) -> None:
    """Tell each node's to-one relationships back to where it was found from what they lead to."""
    for edge in edges if found.inverses else ():
        origin = edge.item.end(found.start) if found.start else parent
        if edge.node is not None and origin is not None:
            _prime(operation, edge.node, found.inverses, origin)


def _prime(operation: Operation, node: Entity, inverses: tuple[str, ...], origin: Entity) -> None:
    for inverse in inverses:
        if (key := node.key) is not None:
            operation.inverses.setdefault((node.type.name, inverse, key), origin)


async def _pattern(operation: Operation, pattern: Relationship | Find, parent: Entity | None, asked: Asked) -> _Pattern:
    if isinstance(pattern, Find):
        return _find_pattern(operation, pattern, asked)
    assert parent is not None
    parent = await _know(operation, parent, pattern)
    last = pattern.path[-1] if pattern.path else pattern
    source, decided = _follow(operation, pattern, parent, asked)
    return _Pattern(
        source,
        (pattern.source, pattern.name, *(parent.at(path) for path in pattern.needs)),
        last.end,
        operation.model.items[last.item_types[0]],
        decided,
        operation.limits.read_budget,
        last.inverses,
        last.start if pattern.path else "",
    )


async def _know(operation: Operation, parent: Entity, relationship: Relationship) -> Entity:
    """Load the parent where a reference named it by less than its relationship needs."""
    if any(parent.at(path) is UNKNOWN for path in relationship.needs):
        (loaded,) = await load(operation, [parent], lambda name: frozenset(path[0] for path in relationship.needs))
        return loaded or parent
    return parent


def _follow(operation: Operation, relationship: Relationship, parent: Entity, asked: Asked) -> tuple[Source, Filter]:
    """Make the source behind a relationship of a known node, and the filter that remains to be decided."""
    if not relationship.path:
        bound = bounds(asked.where)
        for path in relationship.needs:
            bound[(relationship.start, *path)] = Bound(values=(parent.at(path),))
        place = f"{relationship.source}.{relationship.name}"
        return _planned(operation, relationship, bound, asked.where, place)
    head, *rest = relationship.path
    outer, _ = _follow(operation, head, parent, Asked(descending=asked.descending))
    tail = (
        Relationship(rest[0].source, relationship.name, rest[-1].item_types, rest[-1].targets, True, path=tuple(rest))
        if len(rest) > 1
        else rest[0]
    )

    def follow(entity: Entity) -> Source | None:
        node = entity if head.end is None else entity.end(head.end)
        if node is None:
            return None
        _prime(operation, node, head.inverses, parent)
        return _follow(operation, tail, node, asked)[0]

    return ChainSource(operation.model, outer, follow), asked.where


def _planned(
    operation: Operation, pattern: Relationship | Find, bound: dict[Path, Bound], where: Filter, place: str
) -> tuple[RangeSource | MergeSource, Filter]:
    found = plan(pattern.accesses, bound)
    if found is None:
        # The compiler has made sure that the partition is bound; only a value that cannot exist leaves it open.
        raise ItemError(f"{place} cannot be read: the item at hand lacks a field that its partition key is made of")
    return _source(operation, found, place, consistent=pattern.consistent), residue(where, found.consumed)


def _source(operation: Operation, found: Plan, place: str, *, consistent: bool = False) -> RangeSource | MergeSource:
    sources = [RangeSource(operation, key_range, place, consistent) for key_range in found.ranges]
    return sources[0] if len(sources) == 1 else MergeSource(sources)


def _find_pattern(operation: Operation, find: Find, asked: Asked) -> _Pattern:
    type_ = operation.model.items[find.item_types[0]]
    source: Source
    if find.scan:
        layouts = tuple(
            layout for name in find.item_types for layout in operation.model.items[name].layouts if not layout.mirror
        )
        source = ScanSource(operation, layouts, f"Query.{find.name}")
        return _Pattern(source, ("Query", find.name), find.end, type_, asked.where, operation.limits.scan_budget)
    found, decided = _planned(operation, find, bounds(asked.where), asked.where, f"Query.{find.name}")
    source = found
    if find.is_distinct:
        source = DistinctSource(found if isinstance(found, MergeSource) else MergeSource([found]), asked.in_all)
    return _Pattern(source, ("Query", find.name), find.end, type_, decided, operation.limits.read_budget)


async def _page(operation: Operation, found: _Pattern, window_: Window, asked: Asked) -> Page:
    return await read_page(
        found.source,
        window_,
        descending=asked.descending,
        condition=push_down(found.where, found.type),
        keep=_keep(operation, found.where, found.type),
        budget=found.budget,
    )


def _keep(operation: Operation, where: Filter, type_: ItemType) -> Keep | None:
    if pushes_all(where, type_):
        return None

    async def keep(entries: list[Entry]) -> list[Entry]:
        await _load_for_filter(operation, where, [entry.entity for entry in entries])
        return [entry for entry in entries if holds(where, entry.entity)]

    return keep


async def _load_for_filter(operation: Operation, where: Filter, entities: list[Entity]) -> None:
    """Load the referenced nodes that the filter looks into, all entities' together."""
    looked_at: dict[str, set[Path]] = {}
    for path in paths(where):
        looked_at.setdefault(path[0], set()).add(path[1:])
    for name, rests in looked_at.items():
        holders = [entity for entity in entities if entity.type.fields[name].kind is FieldKind.REFERENCE]
        ends = [entity.end(name) for entity in holders]
        lacking = [
            (entity, end)
            for entity, end in zip(holders, ends, strict=True)
            if end is not None
            and any(rest and rest[0] in end.type.fields and end.at(rest) is UNKNOWN for rest in rests)
        ]
        firsts = frozenset(rest[0] for rest in rests if rest)
        loaded = await load(operation, [end for _, end in lacking], lambda _, firsts=firsts: firsts)  # type: ignore[misc]
        for (entity, _), node in zip(lacking, loaded, strict=True):
            entity.nodes[name] = node


async def _total(operation: Operation, found: _Pattern, asked: Asked, page: Page | None) -> int | GraphError | None:
    """Count the connection: by the page where that is all of it, else by COUNT requests, else by reading.

    An error of the count alone is returned, so that it does not take the page with it.
    """
    if not asked.wants_count:
        return None
    if page is not None and page.is_whole:
        return len(page.entries)
    try:
        if pushes_all(found.where, found.type):
            return await found.source.count(push_down(found.where, found.type))
        everything = await _page(operation, found, Window(size=sys.maxsize - 1), asked)
    except GraphError as error:
        return error
    if everything.has_next:
        return BudgetExceeded(
            f"totalCount with this filter would read more than {found.budget} items, which is the read budget: "
            "expected "
            "a filter that a key condition can serve, or no totalCount"
        )
    return len(everything.entries)
