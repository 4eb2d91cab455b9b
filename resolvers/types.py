"""Model → Strawberry types, in two phases: an empty class for every type, then the fields, whose types are those classes."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

import strawberry
from graphql import GraphQLResolveInfo
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.enum import EnumValueDefinition
from strawberry.types.field import StrawberryField
from strawberry.types.union import StrawberryUnion

from graph.entity import UNKNOWN, Entity
from graph.model import EnumType, Field, FieldKind, Find, ItemType, Model, ObjectType, Relationship, TypeRef
from resolvers import connection, node
from resolvers import filters as filter_inputs
from resolvers.fields import annotation, argument, input_field, resolver_field, value_field
from resolvers.node import needs_of
from resolvers.scalars import SCALAR_TYPES
from resolvers.sdl.checks import lookup_name
from resolvers.selection import Selection

PAGING_TEXTS = {
    "first": "How many edges from the beginning, or behind `after`.",
    "after": "The cursor to go on behind.",
    "last": "How many edges from the end, or before `before`.",
    "before": "The cursor to end before.",
}


class TypeBuilder:
    """Makes every type of the API of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._classes: dict[str, Any] = dict(SCALAR_TYPES)
        self._wheres: dict[str, Any] = {}
        self._filters: dict[str, Any] = {}
        self._order = strawberry.enum(
            Enum("SortOrder", {"ASC": "ASC", "DESC": "DESC"}), description="The direction of a connection's order."
        )
        self._page_info = self._object(
            "PageInfo",
            [
                value_field("hasNextPage", annotation(bool), lambda info: info["hasNextPage"]),
                value_field("hasPreviousPage", annotation(bool), lambda info: info["hasPreviousPage"]),
                value_field("startCursor", annotation(str, required=False), lambda info: info["startCursor"]),
                value_field("endCursor", annotation(str, required=False), lambda info: info["endCursor"]),
            ],
            "What lies around a page (Relay Cursor Connections).",
        )
        self._node = self._interface("Node", "Anything with a global id.")
        _definition(self._node).fields = [value_field("id", annotation(strawberry.ID), node.write_id, "The global id.")]
        self._declare()
        self._define()

    # --- phase one: empty classes ---

    def _declare(self) -> None:
        model = self._model
        for enum in model.enums.values():
            self._classes[enum.name] = _enum(enum)
        for object_ in model.objects.values():
            if object_.is_interface:
                self._classes[object_.name] = self._interface(object_.name, object_.description)
        for object_ in model.objects.values():
            if not object_.is_interface:
                self._classes[object_.name] = self._object(object_.name, [], object_.description)
        for item in model.items.values():
            cls = self._object(item.name, [], item.description)
            _definition(cls).is_type_of = _is_type(item.name)
            self._classes[item.name] = cls
        for union in model.unions.values():
            members = tuple(annotation(self._classes[name]) for name in union.members)
            self._classes[union.name] = StrawberryUnion(union.name, members, union.description)
        for input_ in model.inputs.values():
            fields = [input_field(name, annotation(self._classes[ref.named], ref)) for name, ref in input_.fields.items()]
            self._classes[input_.name] = _input(input_.name, fields, input_.description)

    def _object(self, name: str, fields: list[StrawberryField], description: str | None) -> Any:
        cls = strawberry.type(types.new_class(name), name=name, description=description)
        _definition(cls).fields = fields
        return cls

    def _interface(self, name: str, description: str | None) -> Any:
        cls = strawberry.interface(types.new_class(name), name=name, description=description)
        _definition(cls).resolve_type = lambda source, info, type_: source.type.name
        return cls

    # --- phase two: fields ---

    def _define(self) -> None:
        for object_ in self._model.objects.values():
            definition = _definition(self._classes[object_.name])
            definition.fields = [self._object_field(field, object_) for field in object_.fields.values()]
            definition.interfaces = [_definition(self._classes[name]) for name in object_.interfaces]
        for item in self._model.items.values():
            definition = _definition(self._classes[item.name])
            own = _definition(self._node).fields if item.is_node else []
            definition.fields = [*own, *(self._item_field(item, field) for field in item.fields.values())]
            base = [_definition(self._node)] if item.is_node else []
            definition.interfaces = base + [_definition(self._classes[name]) for name in item.interfaces]

    def _object_field(self, field: Field, object_: ObjectType) -> StrawberryField:
        if object_.is_interface:
            # Never resolved: graphql-core asks the object type that implements the interface.
            return value_field(
                field.name, self._annotation(field), lambda source: None, field.description, field.deprecation_reason
            )
        return value_field(
            field.name,
            self._annotation(field),
            lambda source: source.get(field.name),
            field.description,
            field.deprecation_reason,
        )

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
        def read(source: Any) -> Any:
            value = entity_of(source).value(field)
            assert value is not UNKNOWN, f"{field.name} was not asked for by the look-ahead"
            return value

        return value_field(field.name, self._annotation(field), read, field.description, field.deprecation_reason)

    def _reference(self, field: Field, entity_of: Callable[[Any], Entity]) -> StrawberryField:
        from graph import reads

        async def resolve(source: Any, info: GraphQLResolveInfo, _: Mapping[str, Any]) -> Entity | None:
            return await reads.reference(info.context, entity_of(source), field.name, needs_of(self._selection(info)))

        return resolver_field(
            field.name,
            self._annotation(field),
            resolve,
            description=field.description,
            deprecation_reason=field.deprecation_reason,
        )

    def _to_one(self, field: Field, pattern: Relationship) -> StrawberryField:
        from graph import reads

        async def resolve(source: Entity, info: GraphQLResolveInfo, _: Mapping[str, Any]) -> Entity | None:
            return await reads.one(info.context, pattern, source, needs_of(self._selection(info)))

        return resolver_field(
            field.name,
            self._annotation(field),
            resolve,
            description=field.description,
            deprecation_reason=field.deprecation_reason,
        )

    def _to_many(self, item: ItemType, field: Field, pattern: Relationship) -> StrawberryField:
        async def resolve(source: Entity, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
            return await connection.relationship(info.context, pattern, source, arguments, self._selection(info))

        last = pattern.path[-1] if pattern.path else pattern
        return resolver_field(
            field.name,
            annotation(self._connection(item.name, field.name, field.type, last)),
            resolve,
            self._connection_arguments(pattern.item_types),
            field.description,
            field.deprecation_reason,
        )

    def _selection(self, info: GraphQLResolveInfo) -> Selection:
        return Selection.of(info, self._model.possible)

    # --- connections ---

    def _connection(self, source: str, field: str, ref: TypeRef, pattern: Relationship | Find) -> Any:
        name = f"{source}{field[:1].upper()}{field[1:]}"
        target = self._classes[ref.named]
        edge = self._object(
            f"{name}Edge",
            [
                value_field("cursor", annotation(str), lambda edge: edge.cursor, "The edge's place in the connection."),
                value_field(
                    "node",
                    annotation(target, required=False),
                    lambda edge: edge.node,
                    "What the edge leads to; null when that does not exist (any more).",
                ),
                *self._edge_fields(pattern),
            ],
            None,
        )
        return self._object(
            f"{name}Connection",
            [
                value_field("edges", annotation(edge, TypeRef(True, of=TypeRef(True))), lambda found: found.edges),
                value_field(
                    "nodes",
                    annotation(target, TypeRef(True, of=TypeRef(False))),
                    connection.edge_nodes,
                    "The nodes of the edges.",
                ),
                value_field("pageInfo", annotation(self._page_info), connection.page_info),
                value_field(
                    "totalCount",
                    annotation(int, required=False),
                    connection.total_count,
                    "How many edges there are on all pages together.",
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

    def _connection_arguments(self, item_types: tuple[str, ...], *, is_scan: bool = False) -> list[StrawberryArgument]:
        # A Scan has no order that could be turned round.
        names = ("first", "after") if is_scan else ("first", "after", "last", "before")
        arguments = [
            argument(name, annotation(int if name in ("first", "last") else str, required=False), PAGING_TEXTS[name])
            for name in names
        ]
        if len(item_types) == 1:
            where = annotation(self._where(item_types[0]), required=False)
            arguments.append(argument("where", where, "Only what this filter accepts."))
        if not is_scan:
            arguments.append(argument("order", annotation(self._order, required=False), "The direction of the sort key."))
        return arguments

    # --- filter inputs ---

    def _where(self, type_name: str) -> Any:
        if type_name in self._wheres:
            return self._wheres[type_name]
        cls = self._wheres[type_name] = _input(filter_inputs.where_name(type_name), [], f"Filters {type_name}.")
        fields = [
            input_field(field.name, annotation(self._filter(field), required=False), field.description)
            for field in (self._model.items.get(type_name) or self._model.objects[type_name]).fields.values()
            if filter_inputs.is_filterable(self._model, field)
        ]
        many = TypeRef(False, of=TypeRef(True))
        _definition(cls).fields = [
            *fields,
            input_field("and", annotation(cls, many), "All of these hold."),
            input_field("or", annotation(cls, many), "At least one of these holds."),
            input_field("not", annotation(cls, required=False), "This does not hold."),
        ]
        return cls

    def _filter(self, field: Field) -> Any:
        if field.scalar is None:
            return self._where(field.type.named)
        scalar, is_list = field.scalar, field.type.of is not None
        name = filter_inputs.filter_name(scalar, is_list=is_list)
        if name not in self._filters:
            type_ = self._classes[scalar.name]
            refs = {"in": TypeRef(False, of=TypeRef(False)), "between": TypeRef(False, of=TypeRef(True))}
            fields = [
                input_field(
                    operator,
                    annotation(bool if operator == "exists" else type_, refs.get(operator, TypeRef(False))),
                    filter_inputs.OPERATOR_TEXTS[operator],
                )
                for operator in filter_inputs.operators(scalar, is_list=is_list)
            ]
            self._filters[name] = _input(name, fields, f"Filters {'lists of ' if is_list else ''}{scalar.name}.")
        return self._filters[name]

    # --- the root ---

    def query(self) -> Any:
        """Make the Query type: lookups by id and by key, and the model's own access patterns."""
        fields = [self._node_field(), self._nodes_field()]
        fields += [self._lookup(item) for item in self._model.items.values()]
        fields += [self._find(find) for find in self._model.finds.values()]
        return self._object("Query", fields, "What can be read.")

    def all_types(self) -> list[Any]:
        """List the types that the root may not reach by itself."""
        return [self._classes[name] for name in (*self._model.items, *self._model.objects)]

    def _node_field(self) -> StrawberryField:
        async def resolve(_: Any, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
            return (await node.nodes(info.context, [arguments["id"]]))[0]

        return resolver_field(
            "node",
            annotation(self._node, required=False),
            resolve,
            [argument("id", annotation(strawberry.ID))],
            "The node of a global id, or null.",
        )

    def _nodes_field(self) -> StrawberryField:
        async def resolve(_: Any, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
            return await node.nodes(info.context, arguments["ids"])

        return resolver_field(
            "nodes",
            annotation(self._node, TypeRef(True, of=TypeRef(False))),
            resolve,
            [argument("ids", annotation(strawberry.ID, TypeRef(True, of=TypeRef(True))))],
            "The nodes of global ids, in their order, with null for those that do not exist.",
        )

    def _lookup(self, item: ItemType) -> StrawberryField:
        known = node.lookup_arguments(self._model, item)

        async def resolve(_: Any, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
            return await node.lookup(info.context, item, known, arguments)

        arguments = []
        for name, (path, required) in known.items():
            type_ = self._classes[scalar_at(self._model, item, path)]
            arguments.append(argument(name, annotation(type_, required=required)))
        return resolver_field(
            lookup_name(item.name),
            annotation(self._classes[item.name], required=False),
            resolve,
            arguments,
            f"The {item.name} of this key, or null.",
        )

    def _find(self, find: Find) -> StrawberryField:
        async def resolve_many(_: Any, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
            return await connection.find(info.context, find, arguments, self._selection(info))

        async def resolve_one(_: Any, info: GraphQLResolveInfo, arguments: Mapping[str, Any]) -> Any:
            return await connection.find_one(info.context, find, arguments, self._selection(info))

        arguments = [
            argument(entry.name, annotation(self._classes[entry.type.named], entry.type)) for entry in find.arguments
        ]
        if not find.many:
            type_ = annotation(self._classes[find.type.named], TypeRef(False))
            return resolver_field(find.name, type_, resolve_one, arguments, find.description, find.deprecation_reason)
        return resolver_field(
            find.name,
            annotation(self._connection("Query", find.name, find.type, find)),
            resolve_many,
            arguments + self._connection_arguments(find.item_types, is_scan=find.scan),
            find.description,
            find.deprecation_reason,
        )


def scalar_at(model: Model, item: ItemType, path: tuple[str, ...]) -> str:
    """Name the scalar at the end of a path of references."""
    field = item.fields[path[0]]
    if len(path) == 1:
        return field.type.named
    return scalar_at(model, model.items[next(iter(field.refs))], path[1:])


def _definition(cls: Any) -> StrawberryObjectDefinition:
    definition: StrawberryObjectDefinition = cls.__strawberry_definition__
    return definition


def _is_type(name: str) -> Callable[[Any, GraphQLResolveInfo], bool]:
    return lambda source, _: isinstance(source, Entity) and source.type.name == name


def _input(name: str, fields: list[StrawberryField], description: str | None) -> Any:
    cls = strawberry.input(types.new_class(name), name=name, description=description)
    definition = _definition(cls)
    definition.fields = fields
    # Inputs stay the mappings that graphql-core made of them: what was left out is not in them.
    definition.from_input = lambda _, value, context: value
    return cls


def _enum(enum: EnumType) -> Any:
    values: dict[str, Any] = {
        value.name: EnumValueDefinition(
            value.name, description=value.description, deprecation_reason=value.deprecation_reason
        )
        for value in enum.values
    }
    return strawberry.enum(Enum(enum.name, values), name=enum.name, description=enum.description)
