"""Subscriptions: what can be followed, the nodes of every type and the edges of every list, and what is told of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import strawberry
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from graph.cursor import Issuer, issuer
from graph.entity import Entity
from graph.errors import IdError
from graph.loaders import Operation
from graph.lookups import load
from graph.model import ItemType, Model, Relationship, TypeRef
from graph.patterns import lookup_name
from graph.reads import Asked, Edge, load_edges
from graph.streams.change import ChangeKind
from graph.streams.interests import EdgeInterest, Event, Interest, NodeInterest, edge_interest
from resolvers.fields import ResolverField, annotation, argument, resolver_field, value_field
from resolvers.filters import read_where
from resolvers.inputs import InputBuilder
from resolvers.meanings import Follows
from resolvers.mutation import MakeObject
from resolvers.node import needs_of, read_id, write_id
from resolvers.selection import Selection

NULLABLE = TypeRef(False)
WAS = "What it was; null if it was not there."

Follow = Callable[[Operation, Mapping[str, Any]], Awaitable[Interest]]
"""(operation, arguments) → what is followed."""


@dataclass(frozen=True, slots=True)
class Told:
    """The root value of one event's execution: what has happened, and the cursor to go on behind it."""

    interest: Interest
    event: Event[Any]
    cursor: str


class SubscriptionField(ResolverField):
    """A field of Subscription. Its resolver is called for each event, and gives what the event tells."""

    follow: Follow

    def name_of(self, model: Model, arguments: Mapping[str, Any]) -> Issuer:
        """Name what is followed, so that no cursor of anything else is taken for one of it."""
        asked = (arguments.get("id"), arguments.get("where"))
        return issuer(model.seals, "Subscription", self.graphql_name, *sorted(model.tables), *asked)


class SubscriptionBuilder:
    """Makes the fields of Subscription, and their payloads; `edges` are the edge types by type and field."""

    def __init__(
        self,
        model: Model,
        classes: Mapping[str, Any],
        inputs: InputBuilder,
        make: MakeObject,
        edges: Mapping[tuple[str, str], Any],
    ) -> None:
        self._model = model
        self._classes = classes
        self._inputs = inputs
        self._make = make
        self._edges = edges
        self._kind = strawberry.enum(
            ChangeKind,
            name="ChangeKind",
            description="What became of it, among what passes `where`: it came, changed or went.",
        )

    def fields(self) -> list[StrawberryField]:
        """Make every subscription: nodes first, then the lists of each type."""
        stored = [self._of_nodes(item) for item in self._model.nodes if not item.virtual]
        return [*stored, *(self._of_edges(found) for found in followable(self._model))]

    def _of_nodes(self, item: ItemType) -> StrawberryField:
        async def follow(operation: Operation, given: Mapping[str, Any]) -> Interest:
            named = None if given.get("id") is None else read_node(operation.model, given["id"], (item.name,))
            where = read_where(operation.model, item.name, given.get("where"), operation.permissions)
            return NodeInterest(item, None if named is None else named.key, where)

        node = annotation(self._classes[item.name], NULLABLE)
        payload = self._make(
            f"{item.name}Change",
            [
                self._kind_field(),
                # Not `id`: Relay asks for every `id` there is, and would write the change over the node that has it.
                value_field("nodeId", annotation(strawberry.ID), _node_id, "Its global id, also when it is gone."),
                value_field(
                    "node", node, lambda told: told.event.after, f"The {item.name} as it is now; null if it is gone."
                ),
                value_field("before", node, lambda told: told.event.before, WAS),
                _cursor_field(),
            ],
            f"A change of a {item.name}.",
        )
        which = argument("id", annotation(strawberry.ID, NULLABLE), "Which one; all of them unless told.")
        name = f"{lookup_name(item.name)}Changed"
        return self._field(name, payload, follow, which, (item.name,), f"Whenever a {item.name} changes.")

    def _of_edges(self, pattern: Relationship) -> StrawberryField:
        async def follow(operation: Operation, given: Mapping[str, Any]) -> Interest:
            source = read_node(operation.model, given["id"], (pattern.source,))
            where = read_where(operation.model, pattern.item_types[0], given.get("where"), operation.permissions)
            return await edge_interest(operation, pattern, source, where)

        title = f"{pattern.source}{pattern.name[:1].upper()}{pattern.name[1:]}"
        shown = f"{pattern.source}.{pattern.name}"
        fields = [
            self._kind_field(),
            self._edge_field("edge", pattern, lambda told: told.event.after, "The edge as it is now; null if gone."),
            self._edge_field(
                "before", pattern, lambda told: told.event.before, "What it was; null if it was not there."
            ),
            _cursor_field(),
        ]
        if all(self._model.items[name].is_node for name in pattern.targets):
            fields.insert(1, self._far_id_field())
        payload = self._make(f"{title}Change", fields, f"A change of an edge of `{shown}`.")
        which = argument("id", annotation(strawberry.ID), f"The {pattern.source} whose edges they are.")
        name = f"{lookup_name(pattern.source)}{title.removeprefix(pattern.source)}Changed"
        return self._field(name, payload, follow, which, pattern.item_types, f"Whenever an edge of `{shown}` changes.")

    def _field(
        self,
        name: str,
        payload: Any,
        follow: Follow,
        which: StrawberryArgument,
        item_types: tuple[str, ...],
        description: str,
    ) -> StrawberryField:
        async def resolve(source: Told, *_: object) -> Told:
            return source

        arguments = [which]
        if len(item_types) == 1:
            where = annotation(self._inputs.where(item_types[0]), NULLABLE)
            arguments.append(argument("where", where, "Only what this filter accepts, before or after the change."))
        arguments.append(argument("after", annotation(str, NULLABLE), "The cursor to go on behind."))
        field = SubscriptionField(
            python_name=name, graphql_name=name, type_annotation=annotation(payload), description=description
        )
        field.resolve, field.follow = resolve, follow
        field.possible, field.meaning, field.arguments = self._model.possible, Follows(item_types), arguments
        return field

    def _kind_field(self) -> StrawberryField:
        return value_field("kind", annotation(self._kind), lambda told: told.event.kind, "What became of it.")

    def _edge_field(
        self, name: str, pattern: Relationship, edge_of: Callable[[Told], Edge | None], description: str
    ) -> StrawberryField:
        async def resolve(source: Told, operation: Operation, _: Mapping[str, Any], selection: Selection) -> Any:
            edge = edge_of(source)
            if edge is not None:
                await _load_edge(operation, source.interest, edge, selection)
            return edge

        type_ = annotation(self._edges[pattern.source, pattern.name], NULLABLE)
        return resolver_field(name, type_, resolve, self._model.possible, description=description)

    def _far_id_field(self) -> StrawberryField:
        async def resolve(source: Told, operation: Operation, _: Mapping[str, Any], __: Selection) -> str | None:
            edge = source.event.latest
            (node,) = await load(operation, [edge.node], lambda _: frozenset(("id",)))
            return None if node is None else write_id(node)

        description = "The global id of the edge's node; null where that is gone, and its name does not tell it."
        type_ = annotation(strawberry.ID, NULLABLE)
        return resolver_field("nodeId", type_, resolve, self._model.possible, description=description)


def followable(model: Model) -> Iterator[Relationship]:
    """List the relationships whose edges can be followed: those of nodes, and of one hop."""
    for pattern in model.relationships.values():
        if pattern.many and not pattern.path and model.items[pattern.source].is_node:
            yield pattern


def read_node(model: Model, text: str, types: tuple[str, ...]) -> Entity:
    """Read the global id of a node that must be of one of these types. Raises IdError."""
    found = read_id(model, text)
    if found.type.name not in types or found.is_version:
        raise IdError(f"expected the `id` of a {' or '.join(types)}, got that of {found!r}")
    return found


def _node_id(told: Told) -> str:
    return write_id(told.event.latest)


def _cursor_field() -> StrawberryField:
    return value_field("cursor", annotation(str), lambda told: told.cursor, "Subscribe `after` it to go on behind it.")


async def _load_edge(operation: Operation, interest: Interest, edge: Edge, selection: Selection) -> None:
    assert isinstance(interest, EdgeInterest), "an edge is told of edges alone"
    own_names = selection.names() - {"cursor", "node"}
    asked = Asked(
        needs=needs_of(selection.child("node")),
        edge_needs=lambda _: own_names,
        wants_nodes="node" in selection.names(),
    )
    # Of its own for each event: what is loaded of it must not outlive that.
    source = Entity(operation.model, interest.source.type, named=interest.source.named)
    await load_edges(operation, interest.relationship, source, [edge], asked)
