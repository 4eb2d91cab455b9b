"""Stored counters: what an item adds to the nodes that count it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from graph.entity import Entity
from graph.model import Field, ItemType, Model
from graph.writes.draft import Draft


@dataclass(frozen=True, slots=True)
class Counter:
    """A field of a node type that counts items of another type, or sums up a field of theirs, by their reference."""

    node_type: ItemType
    field: Field
    reference: str
    summed: str | None


def counters_of(model: Model, type_: ItemType) -> Iterator[Counter]:
    """List the counters that items of a type add to."""
    for node in model.nodes:
        for field in node.fields.values():
            if field.count is not None:
                relationship = model.relationships[node.name, field.count.relationship]
                if type_.name in relationship.item_types:
                    yield Counter(node, field, relationship.start, field.count.field)


@dataclass(frozen=True, slots=True)
class Share:
    """What one item adds to one counter."""

    node: Any
    field: Field
    amount: Decimal


def shares(model: Model, draft: Draft) -> Iterator[Share]:
    """List what an item adds to the counters of the nodes that it names."""
    for counter in counters_of(model, draft.type):
        node = draft.values.get(counter.reference)
        if isinstance(node, (Draft, Entity)) and node.type is counter.node_type:
            value = 1 if counter.summed is None else draft.values.get(counter.summed)
            yield Share(node, counter.field, Decimal(0 if value is None else str(value)))
