"""What an operation may ask for besides the pages that it reads: so that nothing else need be remembered."""

from __future__ import annotations

from typing import Any

from graphql import (
    FieldNode,
    GraphQLObjectType,
    GraphQLSchema,
    ObjectFieldNode,
    TypeInfo,
    TypeInfoVisitor,
    VariableDefinitionNode,
    Visitor,
    get_named_type,
    is_input_object_type,
    is_leaf_type,
    visit,
)

from graph.model import Relationship
from resolvers import meanings
from resolvers.meanings import Lookup, Reference, ToMany, ToOne, meaning_of
from resolvers.plan.document import Collector


class Sought:
    """What a document mentions: fields, and the types whose items may be asked for by their keys."""

    def __init__(self, schema: GraphQLSchema, collector: Collector) -> None:
        self._schema = schema
        self._info = TypeInfo(schema)
        names: set[str] = set()
        values: set[str] = set()
        types: set[str] = set()
        self._is_any = False
        sought = self
        has_objects = False

        class Fields(Visitor):
            def enter_field(self, node: FieldNode, *_: Any) -> None:
                if sought._info.get_parent_type() is not schema.query_type:
                    names.add(node.name.value)
                types.update(sought._types(node))

            def enter_object_field(self, node: ObjectFieldNode, *_: Any) -> None:
                values.add(node.name.value)

            def enter_variable_definition(self, node: VariableDefinitionNode, *_: Any) -> None:
                nonlocal has_objects
                has_objects = has_objects or is_input_object_type(get_named_type(sought._info.get_input_type()))

        for node in (collector.definition, *collector.fragments.values()):
            visit(node, TypeInfoVisitor(self._info, Fields()))
        self.names = frozenset(names)
        """The fields that are selected below the root."""
        self.mentioned = None if has_objects else self.names | values
        """Those, and the ones that arguments mention; None: any, as a variable may."""
        self.types = None if self._is_any else frozenset(types)
        """None: any."""

    def _types(self, node: FieldNode) -> set[str]:
        definition = self._info.get_field_def()
        if definition is None or is_leaf_type(get_named_type(definition.type)):
            return set()
        if not isinstance(self._info.get_parent_type(), GraphQLObjectType):
            # Of an interface it is not known what is read.
            self._is_any = True
            return set()
        meaning = meaning_of(definition)
        has_where = any(argument.name.value == "where" for argument in node.arguments or ())
        match meaning:
            case Lookup(item):
                return {item.name}
            case Reference(field):
                return set(field.refs)
            case ToOne(relationship):
                return _of(relationship, with_items=True)
            case ToMany(relationship):
                return _of(relationship, with_items=has_where)
            case meanings.Find(find):
                return {*find.item_types, *find.targets}
            case None:
                # By ids, or by a resolver of its own.
                self._is_any = True
        return set()


def _of(relationship: Relationship, *, with_items: bool) -> set[str]:
    found: set[str] = set()
    for hop in relationship.path or (relationship,):
        if with_items or relationship.path:
            found.update(hop.item_types)
        if hop.end is not None:
            found.update(hop.targets)
    return found
