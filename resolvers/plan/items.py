"""The fields of items: attributes and ids as columns, references and relationships level by level."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from graph import reads
from graph.columns import Column, column
from graph.entity import Entity
from graph.levels import (
    Follow,
    Named,
    Outcome,
    Start,
    item_keys,
    load_each,
    one_by_one,
    starts,
    with_rest,
)
from graph.loaders import Operation
from graph.lookups import Needs
from graph.model import Field, Model, Relationship
from graph.requests import Item
from graph.rows import Rows
from graph.shapes import named_key
from graph.ways import Way, Ways
from resolvers.connection import is_fresh
from resolvers.node import write_ids
from resolvers.plan.arguments import Arguments
from resolvers.plan.failures import Step
from resolvers.plan.objects import Items, below
from resolvers.plan.run import Leaf, Run
from resolvers.plan.values import Leaves
from resolvers.plan.written import Found, Read


def attribute_leaf(model: Model, field: Field, leaves: Leaves, step: Step) -> Leaf:
    """Make the leaf of an attribute: a column for each layout that its items have."""
    columns: dict[str, Column] = {}

    def leaf(run: Run, batch: Any) -> list[Any]:
        rows: Rows = batch.rows
        return leaves.write(run, _column(columns, model, field, rows)(rows), below(batch.at, step))

    return leaf


def attribute_read(model: Model, field: Field) -> Read:
    """Make what reads an attribute that holds objects."""
    columns: dict[str, Column] = {}

    async def read(run: Run, batch: Any) -> Found:
        rows: Rows = batch.rows
        return _column(columns, model, field, rows)(rows), None

    return read


def _column(columns: dict[str, Column], model: Model, field: Field, rows: Rows) -> Column:
    name = "" if rows.layout is None else rows.layout.name
    if name not in columns:
        columns[name] = column(model, field, rows.layout)
    return columns[name]


def id_leaf(leaves: Leaves, step: Step) -> Leaf:
    """Make the leaf of global ids."""

    def leaf(run: Run, batch: Items) -> list[Any]:
        return leaves.write(run, write_ids(batch.rows), below(batch.at, step))

    return leaf


class ReferenceRead:
    """Reads the nodes that items name."""

    def __init__(self, model: Model, field: Field, needs: Needs) -> None:
        self._model = model
        self._field = field
        self._needs = needs
        self._spelt: dict[str, Named | None] = {}

    async def __call__(self, run: Run, batch: Any) -> Found:
        """Read the nodes of a batch."""
        rows: Rows = batch.rows
        named = self._named(rows)
        if named is not None:
            nodes = await named.nodes(run.operation, rows.wires, partial(_named_by, rows, self._field.name))
            if nodes is not None:
                return nodes, named.named.layout
        return await load_each(run.operation, self._entities(rows), self._needs), None

    def ready(self, run: Run, batch: Any) -> list[int]:
        """List the items whose nodes are there already, so that what is read behind them need not wait for others."""
        operation, rows = run.operation, batch.rows
        named = self._named(rows)
        keys = None if named is None else named.named.keys(rows.wires)
        if keys is not None:
            return [number for number, key in enumerate(keys) if operation.has(key)]
        ready: list[int] = []
        for number, node in enumerate(self._entities(rows)):
            try:
                is_there = not isinstance(node, Entity) or not node.lacks(self._needs(node.type.name))
                if is_there or (node.key is not None and operation.has(node.key)):
                    ready.append(number)
            except Exception:
                # It fails without a request: whoever reads it tells the error, and need not wait for that.
                ready.append(number)
        return ready

    def _named(self, rows: Rows) -> Named | None:
        """Give how the items spell the nodes' keys."""
        layout = rows.layout
        if layout is None or not rows.wires or not all(rows.wires):
            return None
        if layout.name not in self._spelt:
            key = named_key(self._model, layout, self._field.name)
            self._spelt[layout.name] = None if key is None else Named(key, self._needs)
        return self._spelt[layout.name]

    def _entities(self, rows: Rows) -> list[Outcome]:
        return [_reference(rows, number, self._field) for number in range(len(rows))]


def _named_by(rows: Rows, field: str) -> Entity | None:
    """Give the node that the first item names."""
    return rows.entity(0).end(field)


def _reference(rows: Rows, number: int, field: Field) -> Outcome:
    try:
        found = rows.entity(number).reference(field)
    except Exception as error:
        return error
    return found if isinstance(found, Entity) else None


# --- to-one relationships -----------------------------------------------------------------------------------------


class ToOneRead:
    """Reads the nodes behind a to-one relationship: those that the way here has shown, the others level by level."""

    def __init__(self, relationship: Relationship, needs: Needs, arguments: Arguments) -> None:
        self._relationship = relationship
        self._arguments = arguments
        self._needs = needs
        self._ways = Ways(relationship)
        self._named: dict[int, Named] = {}

    async def __call__(self, run: Run, batch: Items) -> Found:
        """Read the nodes of a batch."""
        operation, rows = run.operation, batch.rows
        follow = self._follow(operation, rows, fresh=is_fresh(self._arguments.of(run)))
        if operation.inverses and (known := self._known(operation, rows)):
            return await self._among_known(run, rows, known, follow), None
        way = self._ways.of(operation, rows)
        partitions = None if way is None else way.partitions([wire for wire in rows.wires if wire])
        if way is None or way.end is None or partitions is None:
            outcomes = await one_by_one(operation, range(len(rows)), follow)
            return [outcomes[number] for number in range(len(rows))], None
        most = operation.limits.read_budget
        starts_ = await starts(operation, way, partitions, want=1, keep=1, most=most)
        numbers = [number for number, wire in enumerate(rows.wires) if wire]
        begun = dict(zip(numbers, starts_, strict=True))
        spelt = {number: item for number, start in begun.items() if (item := _spelt(start)) is not None}
        found: list[Outcome] = [_ending(begun.get(number)) for number in range(len(rows))]
        rest = [number for number, one in enumerate(found) if one is Ellipsis and number not in spelt]
        nodes, outcomes = await with_rest(operation, self._nodes(operation, way, list(spelt.values())), rest, follow)
        for number, node in (*zip(spelt, nodes, strict=True), *outcomes.items()):
            found[number] = node
        return found, way.end.layout

    def _follow(self, operation: Operation, rows: Rows, *, fresh: bool) -> Follow:
        return lambda number: reads.one(operation, self._relationship, rows.entity(number), self._needs, fresh=fresh)

    def _known(self, operation: Operation, rows: Rows) -> dict[int, Entity]:
        """Give the nodes that the way here has shown, by the number of their row."""
        source, name = self._relationship.source, self._relationship.name
        known: dict[int, Entity] = {}
        for number, key in enumerate(item_keys(rows)):
            key = rows.entity(number).key if key is None else key
            node = None if key is None else operation.inverses.get((source, name, key))
            if node is not None:
                known[number] = node
        return known

    async def _among_known(self, run: Run, rows: Rows, known: dict[int, Entity], follow: Follow) -> list[Outcome]:
        rest = [number for number in range(len(rows)) if number not in known]
        fresh = is_fresh(self._arguments.of(run))
        nodes_known = [node.without_copy() if fresh else node for node in known.values()]
        load = load_each(run.operation, nodes_known, self._needs)
        nodes, outcomes = await with_rest(run.operation, load, rest, follow)
        found = dict(zip(known, nodes, strict=True)) | outcomes
        return [found[number] for number in range(len(rows))]

    async def _nodes(self, operation: Operation, way: Way, items: Sequence[Item]) -> list[Outcome]:
        """Load the nodes that items of a way name."""
        if not items or way.end is None:
            return []
        layout, field = way.layout, self._relationship.end or ""
        rows = Rows(operation.model, operation.model.items[layout.type_name], layout, items)
        named = self._named.setdefault(id(way), Named(way.end, self._needs))
        nodes = await named.nodes(operation, items, partial(_named_by, rows, field))
        if nodes is not None:
            return nodes
        return await load_each(operation, [end_of(rows, number, field) for number in range(len(rows))], self._needs)


def _spelt(start: Any) -> Item | None:
    """Give the item that a first Query has brought, where it need not be looked at."""
    return start.wires[0] if isinstance(start, Start) and start.wires and not start.entities else None


def _ending(start: Any) -> Outcome:
    """Give what a first Query has decided: nothing there, or that it failed; Ellipsis where it has not."""
    if isinstance(start, Exception):
        return start
    return None if isinstance(start, Start) and not start.wires else Ellipsis


def end_of(rows: Rows, number: int, field: str) -> Outcome:
    """Give the node at an end of an edge, as far as the edge tells it."""
    try:
        return rows.entity(number).end(field)
    except Exception as error:
        return error
