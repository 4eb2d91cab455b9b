"""Interests: which changes concern somebody who follows nodes, or the edges of a node, and what they mean there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from graph.cursor import Issuer, Position
from graph.entity import Entity, read_entity
from graph.errors import InputError
from graph.filters import NO_FILTER, Filter
from graph.keys import Path
from graph.lists import keep_where, knowing, known_of, plan_of, target
from graph.loaders import Operation
from graph.lookups import by_keys
from graph.model import Field, FieldKind, ItemType, Relationship
from graph.planner import Plan
from graph.reads import Asked, Edge, connection_name
from graph.requests import Item, ItemKey, key_value
from graph.rules import Right
from graph.sources import Entry, has_expired
from graph.streams.change import Change, ChangeKind, table_of
from graph.streams.topics import Topic, of_item, of_partition, of_type, partition_of
from graph.visible import visible

T = TypeVar("T")

A_NODE = "expected the `id` of a node that exists, for its other fields say where its edges lie, and who may read them"


@dataclass(frozen=True, slots=True)
class Event(Generic[T]):
    """What a change means to somebody who follows what passes a filter, of what they may read.

    CREATED: it passes now, and did not before, whether it was there or not. REMOVED: it passed, and is gone or does
    not any more; then `after` is None, or what it is now.
    """

    kind: ChangeKind
    before: T | None
    after: T | None

    @property
    def latest(self) -> T:
        """Give what it is now, or was last."""
        found = self.after if self.after is not None else self.before
        assert found is not None, "nothing happens to what never was"
        return found


class Interest(Protocol):
    """What somebody follows."""

    @property
    def topics(self) -> frozenset[Topic]:
        """Name what the changes are about that may concern it."""

    async def event(self, operation: Operation, change: Change) -> Event[Any] | None:
        """Say what a change means; None where it means nothing. Raises StoreError where the filter asks the table."""


@dataclass(frozen=True)
class NodeInterest:
    """Nodes of a type, all of them or the one of a key, that pass a filter."""

    type: ItemType
    key: ItemKey | None = None
    where: Filter = NO_FILTER

    @cached_property
    def topics(self) -> frozenset[Topic]:
        """Name what the changes are about that may concern it."""
        return frozenset((of_type(self.type.name) if self.key is None else of_item(self.key),))

    async def event(self, operation: Operation, change: Change) -> Event[Entity] | None:
        """Say what a change means; None where it means nothing. Raises StoreError where the filter asks the table."""
        before, after = (self._node(operation, change, item) for item in (change.before, change.after))
        return await _event(operation, change, before, after, self.where)

    def _node(self, operation: Operation, change: Change, item: Item | None) -> Entity | None:
        if item is None:
            return None
        table = table_of(operation.model, change.key[0])
        # What happens to a mirror item has happened to the first one too.
        layouts = (layout for layout in self.type.layouts if not layout.mirror and layout.table == table.name)
        return next((found for one in layouts if (found := read_entity(operation.model, one, item))), None)


@dataclass(frozen=True)
class EdgeInterest:
    """The edges behind a relationship of a node, read along the way that its connection is read, that pass a filter."""

    relationship: Relationship
    source: Entity
    """The node, as it was named."""
    connection: Issuer
    """The connection whose edges they are."""
    plan: Plan
    where: Filter = NO_FILTER

    @cached_property
    def topics(self) -> frozenset[Topic]:
        """Name what the changes are about that may concern it: a partition, or those of a fan-out."""
        keys = self.plan.index.partition_keys
        return frozenset(
            of_partition(one.table, self.plan.index.name, tuple(zip(keys, one.partition, strict=True)))
            for one in self.plan.ranges
        )

    async def event(self, operation: Operation, change: Change) -> Event[Edge] | None:
        """Say what a change means; None where it means nothing. Raises StoreError where the filter asks the table."""
        before, after = (self._item(operation, change, item) for item in (change.before, change.after))
        if before is after is None or not await _may_follow(operation, self.source):
            return None
        event = await _event(operation, change, before, after, self.where)
        if event is None:
            return None
        return Event(event.kind, self._edge(event.before), self._edge(event.after))

    def _item(self, operation: Operation, change: Change, item: Item | None) -> Entity | None:
        number = None if item is None else self._range(change.key[0], item)
        if item is None or number is None:
            return None
        layouts = self.plan.ranges[number].layouts
        return next((found for one in layouts if (found := read_entity(operation.model, one, item))), None)

    def _range(self, table: str, item: Item) -> int | None:
        """Say in which of the ranges' partitions an item is."""
        partition = partition_of(self.plan.index, item)
        for number, one in enumerate(self.plan.ranges):
            if one.table == table and partition is not None and one.partition == tuple(value for _, value in partition):
                return number
        return None

    def _edge(self, item: Entity | None) -> Edge | None:
        if item is None:
            return None
        return Edge(self.connection, self._position(item), item, target(self.relationship.end, item))

    def _position(self, item: Entity) -> Position:
        """Give the place of an item in the connection, as the source of its list does."""
        index = self.plan.index
        if self.plan.names_items and not self.relationship.consistent:
            return tuple(key_value(item.wire[name]) for name in index.key_attributes)
        table = item.model.tables[index.table]
        own = tuple(key_value(item.wire[name]) for name in table.position_attributes(index))
        if len(self.plan.ranges) == 1:
            return own
        assert item.key is not None
        return self._range(item.key[0], item.wire), own


async def edge_interest(
    operation: Operation, relationship: Relationship, node: Entity, where: Filter = NO_FILTER
) -> EdgeInterest:
    """Follow the edges of a node, which need not exist unless its name alone does not lead to them.

    Raises: InputError where it does not exist and would have to; StoreError.
    """
    whole = await knowing(operation, relationship, node)
    if not await _may_follow(operation, node):
        raise InputError(f"`{relationship.source}.{relationship.name}` cannot be followed: {A_NODE}")
    known = known_of(relationship, whole)
    if known is None:
        raise InputError(f"`{relationship.source}.{relationship.name}` cannot be followed: {A_NODE}")
    name = connection_name(relationship, whole, Asked(where))
    return EdgeInterest(relationship, node, name, plan_of(relationship, where, known), where)


async def _may_follow(operation: Operation, source: Entity) -> bool:
    """Say whether the caller may read a node now: it is asked for only where its key alone does not say so."""
    permissions = operation.permissions
    if permissions is None or permissions.of(source.type.name, Right.READ).holds(source):
        return True
    (found,) = await by_keys(operation, [source])
    return found is not None and visible(operation, found) is not None


async def _event(
    operation: Operation, change: Change, before: Entity | None, after: Entity | None, where: Filter
) -> Event[Entity] | None:
    if operation.permissions is None:
        operation.prime_item(change.key, change.after)
    # What comes to be another one's goes, for who followed it, and nothing is told of what it is from then on.
    before, after = (None if one is None else visible(operation, one) for one in (before, after))
    if after is not None and has_expired(after, operation.now):
        after = None
    elif after is not None and before is not None and has_expired(before, int(change.at)):
        # Nobody saw it any more: it comes back.
        before = None
    passed, passes = await _pass(operation, (before, after), where)
    if passed and passes:
        assert before is not None
        assert after is not None
        return None if _is_same(before, after) else Event(ChangeKind.CHANGED, before, after)
    if passed or passes:
        return Event(ChangeKind.CREATED if passes else ChangeKind.REMOVED, before, after)
    return None


async def _pass(operation: Operation, images: Sequence[Entity | None], where: Filter) -> list[bool]:
    """Say which images of an item pass a filter; of nodes that it names, what they are now counts, or a copy."""
    entries = [Entry((number,), image) for number, image in enumerate(images) if image is not None]
    keep = keep_where(operation, where)
    kept = {entry.position for entry in (entries if keep is None else await keep(entries))}
    return [(number,) in kept for number in range(len(images))]


def _is_same(before: Entity, after: Entity) -> bool:
    """Say whether two images of an item have the same fields: copies and other attributes do not count."""
    fields = [field for field in after.type.fields.values() if field.kind is not FieldKind.RELATIONSHIP]
    if any(before.wire.get(field.attribute) != after.wire.get(field.attribute) for field in fields):
        return False
    paths = [path for field in fields for path in _own_paths(after, field)]
    return all(before.paths.get(path) == after.paths.get(path) for path in paths)


def _own_paths(image: Entity, field: Field) -> Iterator[Path]:
    """List what a key may hold of a field: of a node that it names the name, whatever else is copied into a key."""
    if field.kind is FieldKind.ATTRIBUTE:
        yield (field.name,)
    for name in field.refs:
        ref = image.model.items[name].ref
        yield from ((field.name, *variable.path) for variable in (ref.variables if ref else ()))
