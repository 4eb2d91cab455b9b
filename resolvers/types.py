"""Model → Strawberry types, in two phases: an empty class for every type, then the fields over those classes."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import strawberry
from graphql import GraphQLResolveInfo
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField
from strawberry.types.union import StrawberryUnion

from graph import history, lookups, reads
from graph.entity import UNKNOWN, Entity
from graph.loaders import Operation
from graph.model import Field, FieldKind, Find, ItemType, Model, ObjectType, Relationship, TypeRef
from graph.patterns import has_lookup, lookup_arguments, lookup_name, search_name
from resolvers import connection, meanings, node, search
from resolvers.fields import Resolve, annotation, argument, entry_field, input_field, resolver_field, value_field
from resolvers.inputs import InputBuilder, definition, new_input
from resolvers.meanings import Attribute, GlobalId, Lookup, Meaning, Part, Reference, ToMany, ToOne
from resolvers.mutation import MutationBuilder
from resolvers.node import needs_of
from resolvers.scalars import SCALAR_TYPES, enum_class
from resolvers.selection import Selection
from resolvers.subscription import SubscriptionBuilder


class TypeBuilder:
    """Makes every type of the API of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._classes: dict[str, Any] = dict(SCALAR_TYPES)
        self._inputs = InputBuilder(model, self._classes)
        self._edges: dict[tuple[str, str], Any] = {}
        """The edge type of each connection, by the type and the field that have it."""
        self._page_info = self._object(
            "PageInfo",
            [
                entry_field("hasNextPage", annotation(bool)),
                entry_field("hasPreviousPage", annotation(bool)),
                entry_field("startCursor", annotation(str, required=False)),
                entry_field("endCursor", annotation(str, required=False)),
            ],
            "What lies around a page (Relay Cursor Connections).",
        )
        self._node = self._interface("Node", "Anything with a global id.")
        definition(self._node).fields = [
            value_field("id", annotation(strawberry.ID), node.write_id, "The global id.", meaning=GlobalId())
        ]
        self._declare()
        self._define()

    # --- phase one: empty classes ---

    def _declare(self) -> None:
        model = self._model
        for enum in model.enums.values():
            self._classes[enum.name] = enum_class(enum)
        for object_ in model.objects.values():
            if object_.is_interface:
                self._classes[object_.name] = self._interface(object_.name, object_.description)
        for object_ in model.objects.values():
            if not object_.is_interface:
                self._classes[object_.name] = self._object(object_.name, [], object_.description)
        for item in model.items.values():
            cls = self._object(item.name, [], item.description)
            definition(cls).is_type_of = _is_type(item.name)
            self._classes[item.name] = cls
        for union in model.unions.values():
            members = tuple(annotation(self._classes[name]) for name in union.members)
            self._classes[union.name] = StrawberryUnion(union.name, members, union.description)
        for input_ in model.inputs.values():
            fields = [
                input_field(name, annotation(self._classes[ref.named], ref), input_.field_descriptions.get(name))
                for name, ref in input_.fields.items()
            ]
            self._classes[input_.name] = new_input(input_.name, fields, input_.description)

    def _object(self, name: str, fields: list[StrawberryField], description: str | None) -> Any:
        cls = strawberry.type(types.new_class(name), name=name, description=description)
        definition(cls).fields = fields
        return cls

    def _interface(self, name: str, description: str | None) -> Any:
        cls = strawberry.interface(types.new_class(name), name=name, description=description)
        definition(cls).resolve_type = lambda source, info, type_: source.type.name
        return cls

    # --- phase two: fields ---

    def _define(self) -> None:
        for object_ in self._model.objects.values():
            made = definition(self._classes[object_.name])
            made.fields = [self._object_field(field, object_) for field in object_.fields.values()]
            made.interfaces = [definition(self._classes[name]) for name in object_.interfaces]
        for item in self._model.items.values():
            made = definition(self._classes[item.name])
            own = definition(self._node).fields if item.is_node else []
            history = self._history_fields(item) if item.history is not None else []
            made.fields = [*own, *(self._item_field(item, field) for field in item.fields.values()), *history]
            base = [definition(self._node)] if item.is_node else []
            made.interfaces = base + [definition(self._classes[name]) for name in item.interfaces]

    def _object_field(self, field: Field, object_: ObjectType) -> StrawberryField:
        if object_.is_interface:
            # Never resolved: graphql-core asks the object type that implements the interface.
            return value_field(
                field.name, self._annotation(field), lambda source: None, field.description, field.deprecation_reason
            )
        return entry_field(field.name, self._annotation(field), field.description, field.deprecation_reason)

    def _item_field(self, item: ItemType, field: Field) -> StrawberryField:
        if field.kind is FieldKind.ATTRIBUTE:
            return self._attribute(field, lambda source: source)
        if field.kind is FieldKind.REFERENCE:
            return self._reference(field, lambda source: source)
        pattern = self._model.relationships[item.name, field.name]
        return self._to_many(item, field, pattern) if pattern.many else self._to_one(field, pattern)

    def _annotation(self, field: Field) -> Any:
        return annotation(self._classes[field.type.named], field.type)

    def _attribute(self, field: Field, entity_of: Callable[[Any], Entity]) -> StrawberryField:
        if field.blob is not None and field.blob.bucket is not None:
            return self._pointed(field, entity_of)

        def read(source: Any) -> Any:
            value = entity_of(source).value(field)
            assert value is not UNKNOWN, f"{field.name} was not asked for by the look-ahead"
            return value

        return value_field(
            field.name, self._annotation(field), read, field.description, field.deprecation_reason, Attribute(field)
        )

    def _pointed(self, field: Field, entity_of: Callable[[Any], Entity]) -> StrawberryField:
        async def resolve(source: Any, operation: Operation, _: Mapping[str, Any], selection: Selection) -> Any:
            with operation.aside():
                return await operation.pointers.value(entity_of(source), field)

        return self._resolved(field, resolve, None)

    def _resolved(
        self,
        field: Field,
        resolve: Resolve,
        meaning: Meaning | None,
        arguments: list[StrawberryArgument] | None = None,
    ) -> StrawberryField:
        return resolver_field(
            field.name,
            self._annotation(field),
            resolve,
            self._model.possible,
            arguments,
            field.description,
            field.deprecation_reason,
            meaning,
        )

    def _reference(self, field: Field, entity_of: Callable[[Any], Entity]) -> StrawberryField:
        async def resolve(
            source: Any, operation: Operation, _: Mapping[str, Any], selection: Selection
        ) -> Entity | None:
            return await lookups.reference(operation, entity_of(source), field.name, needs_of(selection))

        return self._resolved(field, resolve, Reference(field))

    def _to_one(self, field: Field, pattern: Relationship) -> StrawberryField:
        async def resolve(
            source: Entity, operation: Operation, arguments: Mapping[str, Any], selection: Selection
        ) -> Entity | None:
            fresh = connection.is_fresh(arguments)
            return await reads.one(operation, pattern, source, needs_of(selection), fresh=fresh)

        return self._resolved(field, resolve, ToOne(pattern), self._inputs.fresh_arguments(pattern))

    def _to_many(self, item: ItemType, field: Field, pattern: Relationship) -> StrawberryField:
        async def resolve(
            source: Entity, operation: Operation, arguments: Mapping[str, Any], selection: Selection
        ) -> Any:
            return await connection.relationship(operation, pattern, source, arguments, selection)

        last = pattern.path[-1] if pattern.path else pattern
        return resolver_field(
            field.name,
            annotation(self._connection(item.name, field.name, field.type.named, self._edge_fields(last))),
            resolve,
            self._model.possible,
            [*self._inputs.connection_arguments(pattern.item_types), *self._inputs.fresh_arguments(pattern)],
            field.description,
            field.deprecation_reason,
            ToMany(pattern),
        )

    def _history_fields(self, item: ItemType) -> list[StrawberryField]:
        async def versions(source: Entity, operation: Operation, given: Mapping[str, Any], selection: Selection) -> Any:
            return await connection.versions(operation, source, given, selection)

        async def at(source: Entity, operation: Operation, given: Mapping[str, Any], _: Selection) -> Any:
            return await history.version_at(operation, source, given["version"])

        made = self._connection(item.name, "versions", item.name, [])
        version = argument("version", annotation(int))
        return [
            resolver_field(
                "versions",
                annotation(made),
                versions,
                self._model.possible,
                self._inputs.connection_arguments(()),
                "What it was after each write, the first one first.",
            ),
            resolver_field(
                "at",
                annotation(self._classes[item.name], required=False),
                at,
                self._model.possible,
                [version],
                "What it was at a version, or null.",
            ),
        ]

    # --- connections ---

    def _connection(self, source: str, field: str, target_name: str, edge_fields: list[StrawberryField]) -> Any:
        name = f"{source}{field[:1].upper()}{field[1:]}"
        target = self._classes[target_name]
        edge = self._edges[source, field] = self._object(
            f"{name}Edge",
            [
                value_field(
                    "cursor",
                    annotation(str),
                    lambda edge: edge.cursor,
                    "The edge's place in the connection.",
                    meaning=Part("cursor"),
                ),
                value_field(
                    "node",
                    annotation(target, required=False),
                    lambda edge: edge.node,
                    "What the edge leads to; null when that does not exist (any more).",
                    meaning=Part("node"),
                ),
                *edge_fields,
            ],
            None,
        )
        return self._object(
            f"{name}Connection",
            [
                value_field(
                    "edges",
                    annotation(edge, TypeRef(True, of=TypeRef(True))),
                    lambda found: found.edges,
                    meaning=Part("edges"),
                ),
                value_field(
                    "nodes",
                    annotation(target, TypeRef(True, of=TypeRef(False))),
                    connection.edge_nodes,
                    "The nodes of the edges.",
                    meaning=Part("nodes"),
                ),
                value_field("pageInfo", annotation(self._page_info), connection.page_info, meaning=Part("pageInfo")),
                value_field(
                    "totalCount",
                    annotation(int, required=False),
                    connection.total_count,
                    "How many edges there are on all pages together.",
                    meaning=Part("totalCount"),
                ),
            ],
            None,
        )

    def _edge_fields(self, pattern: Relationship | Find) -> list[StrawberryField]:
        """Make the fields of the edge type, but for its two ends, into fields of Relay's edge."""
        if pattern.end is None:
            return []
        ends = {pattern.end, pattern.start} if isinstance(pattern, Relationship) else {pattern.end}
        fields = [field for field in self._model.items[pattern.item_types[0]].fields.values() if field.name not in ends]
        return [
            self._attribute(field, lambda edge: edge.item)
            if field.kind is FieldKind.ATTRIBUTE
            else self._reference(field, lambda edge: edge.item)
            for field in fields
            if field.kind is not FieldKind.RELATIONSHIP
        ]

    # --- the root ---

    def of(self, name: str) -> Any:
        """Give the class of a type of the model, or of PageInfo."""
        return self._page_info if name == "PageInfo" else self._classes[name]

    def query(self, more: Sequence[StrawberryField] = (), *, has_node: bool = True) -> Any:
        """Make the Query type: lookups by id and by key, the model's own access patterns, and more fields."""
        fields = [self._node_field(), self._nodes_field()] if has_node else []
        fields += [self._lookup(item) for item in self._model.items.values() if has_lookup(self._model, item)]
        fields += [self._search(item) for item in self._model.items.values() if item.searched]
        fields += [self._find(find) for find in self._model.finds.values()]
        return self._object("Query", [*fields, *more], "What can be read.")

    def mutation(self) -> Any:
        """Make the Mutation type: what can be written of every type with items."""
        builder = MutationBuilder(self._model, self._classes, self._inputs, self._object)
        return self._object("Mutation", builder.fields(), "What can be written.")

    def subscription(self) -> Any:
        """Make the Subscription type: what can be followed; None where that is nothing."""
        builder = SubscriptionBuilder(self._model, self._classes, self._inputs, self._object, self._edges)
        fields = builder.fields()
        return self._object("Subscription", fields, "What can be followed.") if fields else None

    def all_types(self) -> list[Any]:
        """List the types that the root may not reach by itself."""
        return [self._classes[name] for name in (*self._model.items, *self._model.objects)]

    def _node_field(self) -> StrawberryField:
        async def resolve(_: Any, operation: Operation, arguments: Mapping[str, Any], selection: Selection) -> Any:
            return (await node.nodes(operation, [arguments["id"]]))[0]

        return resolver_field(
            "node",
            annotation(self._node, required=False),
            resolve,
            self._model.possible,
            [argument("id", annotation(strawberry.ID))],
            "The node of a global id, or null.",
        )

    def _nodes_field(self) -> StrawberryField:
        async def resolve(_: Any, operation: Operation, arguments: Mapping[str, Any], selection: Selection) -> Any:
            return await node.nodes(operation, arguments["ids"])

        return resolver_field(
            "nodes",
            annotation(self._node, TypeRef(True, of=TypeRef(False))),
            resolve,
            self._model.possible,
            [argument("ids", annotation(strawberry.ID, TypeRef(True, of=TypeRef(True))))],
            "The nodes of global ids, in their order, with null for those that do not exist.",
        )

    def _lookup(self, item: ItemType) -> StrawberryField:
        known = lookup_arguments(self._model, item)

        async def resolve(_: Any, operation: Operation, arguments: Mapping[str, Any], selection: Selection) -> Any:
            return await node.lookup(operation, item, known, arguments, selection)

        arguments = []
        for name, (path, required) in known.items():
            type_ = self._classes[scalar_at(self._model, item, path)]
            arguments.append(argument(name, annotation(type_, required=required)))
        return resolver_field(
            lookup_name(item.name),
            annotation(self._classes[item.name], required=False),
            resolve,
            self._model.possible,
            arguments,
            f"The {item.name} of this key, or null.",
            meaning=Lookup(item, known),
        )

    def _search(self, item: ItemType) -> StrawberryField:
        found = self._connection("Query", search_name(item.name), item.name, [search.score_field()])
        arguments = self._inputs.connection_arguments((item.name,), is_forward=True)
        return search.search_field(item, annotation(found), arguments, self._model.possible)

    def _find(self, find: Find) -> StrawberryField:
        async def resolve_many(_: Any, operation: Operation, arguments: Mapping[str, Any], selection: Selection) -> Any:
            return await connection.find(operation, find, arguments, selection)

        async def resolve_one(_: Any, operation: Operation, arguments: Mapping[str, Any], selection: Selection) -> Any:
            return await connection.find_one(operation, find, arguments, selection)

        arguments = [
            argument(
                entry.name,
                annotation(self._classes[entry.type.named], entry.type),
                entry.description,
                entry.deprecation_reason,
            )
            for entry in find.arguments
        ]
        if find.is_distinct:
            arguments.append(self._inputs.match_argument())
        arguments += self._inputs.fresh_arguments(find)
        if not find.many:
            type_ = annotation(self._classes[find.type.named], TypeRef(False))
            return resolver_field(
                find.name,
                type_,
                resolve_one,
                self._model.possible,
                arguments,
                find.description,
                find.deprecation_reason,
            )
        arguments += self._inputs.connection_arguments(find.item_types, is_forward=find.scan)
        return resolver_field(
            find.name,
            annotation(self._connection("Query", find.name, find.type.named, self._edge_fields(find))),
            resolve_many,
            self._model.possible,
            arguments,
            find.description,
            find.deprecation_reason,
            meanings.Find(find),
        )


def scalar_at(model: Model, item: ItemType, path: tuple[str, ...]) -> str:
    """Name the scalar at the end of a path of references."""
    field = item.fields[path[0]]
    if len(path) == 1:
        return field.type.named
    return scalar_at(model, model.items[next(iter(field.refs))], path[1:])


def _is_type(name: str) -> Callable[[Any, GraphQLResolveInfo[Any]], bool]:
    return lambda source, _: isinstance(source, Entity) and source.type.name == name
