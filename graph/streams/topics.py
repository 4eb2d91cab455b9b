"""Topics: what a change is about, so that it reaches those whom it concerns and wakes nobody else."""

from __future__ import annotations

from collections.abc import Iterator

from graph.entity import Entity
from graph.model import Index, Model
from graph.requests import Item, ItemKey, KeyAttributes, key_value
from graph.streams.change import Change, entity_of, table_of

Topic = tuple[object, ...]
"""Something that changes are about. Topics are equal where they are about the same."""


def of_item(key: ItemKey) -> Topic:
    """Name the writes of one item."""
    return "item", *key


def of_partition(table: str, index: str | None, partition: KeyAttributes) -> Topic:
    """Name the writes of items with this partition key, in the table (None) or in an index."""
    return "partition", table, index, partition


def of_type(name: str) -> Topic:
    """Name the writes of items of a type, mirrors among them."""
    return "type", name


def of_table(name: str) -> Topic:
    """Name all writes of a table."""
    return "table", name


def topics_of(model: Model, change: Change) -> frozenset[Topic]:
    """List what a change is about: what the item was before counts as well as what it is after it."""
    return frozenset(_topics(model, change))


def _topics(model: Model, change: Change) -> Iterator[Topic]:
    name = change.key[0]
    table = table_of(model, name)
    yield of_item(change.key)
    yield of_table(name)
    for item in (change.before, change.after):
        if item is None:
            continue
        entity: Entity | None = entity_of(model, table, item)
        if entity is not None:
            yield of_type(entity.type.name)
        for index in table.ways:
            partition = partition_of(index, item)
            if partition is not None:
                yield of_partition(name, index.name, partition)


def partition_of(index: Index, item: Item) -> KeyAttributes | None:
    """Give the partition key that an item has in an index, None where it is not in it."""
    if any(name not in item or "B" in item[name] for name in index.key_attributes):
        return None
    return tuple((name, key_value(item[name])) for name in index.partition_keys)
