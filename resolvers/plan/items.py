"""The fields of items: attributes and ids as columns, references and relationships level by level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graph import reads
from graph.columns import Column, column
from graph.entity import Entity
from graph.levels import Follow, Named, Outcome, Way, Ways, load_each, one_by_one, starts
from graph.lookups import Needs
from graph.model import Field, Layout, Model, Relationship
from graph.requests import Item
from graph.rows import Rows
from graph.shapes import named_key
from resolvers.node import write_ids
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


def reference_read(model: Model, field: Field, needs: Needs) -> Read:
    """Make what reads the nodes that items name."""
    spelt: dict[str, Named | None] = {}

    async def read(run: Run, batch: Any) -> Found:
        rows: Rows = batch.rows
        if rows.layout is not None and rows.layout.name not in spelt:
            key = named_key(model, rows.layout, field.name)
            spelt[rows.layout.name] = None if key is None else Named(key, needs)
        named = None if rows.layout is None else spelt[rows.layout.name]
        if named is not None and rows.wires and all(rows.wires):
            spelt_nodes = await named.nodes(run.operation, rows.wires, _named_by(rows, field.name))
            if spelt_nodes is not None:
                return spelt_nodes, named.named.layout
        nodes = [_reference(rows, number, field) for number in range(len(rows))]
        return await load_each(run.operation, nodes, needs), None

    return read


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


def to_one_read(relationship: Relationship, needs: Needs) -> Read:
    """Make what reads the node behind a to-one relationship."""
    ways = Ways(relationship)
    named: dict[int, Named] = {}

    def follow(run: Run, rows: Rows) -> Follow:
        return lambda number: reads.one(run.operation, relationship, rows.entity(number), needs)

    async def read(run: Run, batch: Items) -> Found:
        operation, rows = run.operation, batch.rows
        found: list[Outcome] = [None] * len(rows)
        plain = ways.of(operation, rows)
        if plain is None or (way := plain[0]).end is None or operation.inverses:
            outcomes = await one_by_one(operation, range(len(rows)), follow(run, rows))
            return [outcomes[number] for number in range(len(rows))], None
        assert way.end is not None
        loads = named.setdefault(id(way), Named(way.end, needs))
        numbers = [number for number, wire in enumerate(rows.wires) if wire]
        begun = await _first_items(run, way, plain[1])
        spelt = [(number, start.wires[0]) for number, start in zip(numbers, begun, strict=True) if _is_spelt(start)]
        rest = set(range(len(rows))) - {number for number, _ in spelt}
        for number, start in zip(numbers, begun, strict=True):
            if isinstance(start, Exception) or (start is not None and not start.wires):
                found[number] = start if isinstance(start, Exception) else None
                rest.discard(number)
        loaded = await _nodes(run, way, loads, [item for _, item in spelt])
        outcomes = await one_by_one(operation, sorted(rest), follow(run, rows))
        for (number, _), node in zip(spelt, loaded, strict=True):
            found[number] = node
        for number, node in outcomes.items():
            found[number] = node
        return found, way.end.layout

    return read


async def _first_items(run: Run, way: Way, partitions: Sequence[str]) -> list[Any]:
    most = run.operation.limits.read_budget
    return await starts(run.operation, way, partitions, want=1, keep=1, most=most)


def _is_spelt(start: Any) -> bool:
    return start is not None and not isinstance(start, Exception) and bool(start.wires) and not start.entities


async def _nodes(run: Run, way: Way, named: Named, items: Sequence[Item]) -> list[Outcome]:
    """Load the nodes that items of a way name."""
    if not items:
        return []
    layout = way.source.range.layouts[0]
    rows = Rows(run.operation.model, run.operation.model.items[layout.type_name], layout, items)
    field = way.relationship.end or ""
    nodes = await named.nodes(run.operation, items, _named_by(rows, field))
    if nodes is not None:
        return nodes
    return await load_each(run.operation, [_end(rows, number, field) for number in range(len(rows))], named.needs)


def _end(rows: Rows, number: int, field: str) -> Outcome:
    try:
        return rows.entity(number).end(field)
    except Exception as error:
        return error


def layout_of(way: Way) -> Layout:
    """Give the layout of the items that a way reads."""
    return way.source.range.layouts[0]
