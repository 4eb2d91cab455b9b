"""Nodes: those that items name are loaded by their keys, as far as what is known of them does not do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graph.bounds import Bound
from graph.collection import Companion, collect
from graph.entity import Entity, every_layout
from graph.keys import Path
from graph.loaders import Operation
from graph.merge import MergeSource
from graph.model import ItemType
from graph.paging import read_first
from graph.partition import RangeSource
from graph.planner import plan
from graph.requests import Item
from graph.rules import Right
from graph.sources import Entry, Sieve, read_layouts
from graph.tenancy import within_tenant

Needs = Callable[[str], frozenset[str]]
"""What the query selects of a node, by the name of its type: only what is asked for is read."""


def nothing_needed(_: str) -> frozenset[str]:
    """Need nothing of any type."""
    return frozenset()


async def load(operation: Operation, entities: Sequence[Entity | None], needs: Needs) -> list[Entity | None]:
    """Load those of the nodes that lack something needed; one that does not exist is None.

    Cost: BatchGetItems of 100 shared with the whole operation; a bounded Query for a node whose full key is not known.
    """
    lacking = [one for one in entities if one is not None and one.lacks(needs(one.type.name))]
    if not lacking:
        return list(entities)
    found = dict(zip(map(id, lacking), await _get(operation, lacking), strict=True))
    return [found.get(id(one), one) for one in entities]


async def _get(operation: Operation, named: Sequence[Entity]) -> list[Entity | None]:
    """Get nodes from the table, by their keys while those whose keys are not known are searched for.

    A virtual one exists by its name.
    """
    stored = [one for one in named if not one.type.virtual]
    keys = [one.key for one in stored if one.key is not None]
    operation.request_items(keys)
    searched = iter(await operation.together([_search(operation, one) for one in stored if one.key is None]))
    items = iter(await operation.items(keys))

    def found(one: Entity) -> Entity | None:
        if one.type.virtual:
            return permitted(operation, one)
        return next(searched) if one.key is None else _of_type(operation, one, next(items))

    return [found(one) for one in named]


def permitted(operation: Operation, node: Entity) -> Entity | None:
    """Give a virtual node, unless its name tells that the caller may not read it."""
    permissions = operation.permissions
    return node if permissions is None or permissions.of(node.type.name, Right.READ).holds(node) else None


def _of_type(operation: Operation, named: Entity, item: Item | None) -> Entity | None:
    return None if item is None else read_layouts(operation, every_layout(named.type), item, named.type.name)


async def _search(operation: Operation, named: Entity) -> Entity | None:
    """Find a node of which only some fields are known: the first that has them in the ranges that they bind.

    Cost: one Query of 100 items, in most tables; more until one is it, within the read budget.
    """

    wanted = _naming(named)

    async def keep(entries: list[Entry]) -> list[Entry]:
        return [entry for entry in entries if all(entry.entity.at(path) == value for path, value in wanted.items())]

    bounds = {path: Bound(values=(value,)) for path, value in wanted.items()}
    found = plan(operation.model.lookups[named.type.name], bounds)
    ranges = () if found is None else found.ranges
    sieve = Sieve(keep=keep, sparse=True)
    source = MergeSource([RangeSource(operation, key_range, named.type.name, sieve) for key_range in ranges])
    first = await read_first(source, operation.limits.read_budget)
    (whole,) = await load(operation, [None if first is None else first.entity], lambda _: frozenset(named.type.fields))
    return whole


def _naming(named: Entity) -> Mapping[Path, Any]:
    """Give what a node is named by, without what else was said of it: a copy may be behind."""
    variables = named.type.ref.variables if named.type.ref is not None else ()
    if variables and all(variable.path in named.paths for variable in variables):
        return {variable.path: named.paths[variable.path] for variable in variables}
    return named.paths


async def lookup(
    operation: Operation, type_: ItemType, named: Mapping[Path, Any], companions: Sequence[Companion] = ()
) -> Entity | None:
    """Get the node of these key fields, or None; what is asked for with it is read along where one Query can.

    Raises: KeyValueError when the fields cannot make a key; InputError where it is not known of which tenant it is.
    """
    named = within_tenant(operation.model, operation.permissions, type_, named)
    entity = Entity(operation.model, type_, named=named)
    if companions and not type_.virtual:
        with operation.reading():
            await collect(operation, entity, companions)
    # That the node exists is part of the answer, even when nothing of it is asked for.
    (found,) = await by_keys(operation, [entity])
    return found if found is not None and has_fields(found, entity) else None


def has_fields(found: Entity, named: Entity) -> bool:
    """Say whether a node that was found has all the fields by which it was named: where a whole key was, it does."""
    return named.key is not None or all(found.at(path) == value for path, value in named.named.items())


async def by_keys(operation: Operation, named: Sequence[Entity]) -> list[Entity | None]:
    """Get nodes by their keys, in order; None for those that do not exist."""
    return await _get(operation, named)


async def reference(operation: Operation, entity: Entity, field: str, needs: Needs) -> Entity | None:
    """Get the node that a field of an item names."""
    named = entity.reference(entity.type.fields[field])
    (node,) = await load(operation, [named if isinstance(named, Entity) else None], needs)
    return node
