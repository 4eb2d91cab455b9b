"""What the file declares, before anything is resolved: types, fields and directive arguments, beside their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from graphql import (
    DirectiveNode,
    DocumentNode,
    EnumTypeDefinitionNode,
    FieldDefinitionNode,
    GraphQLDeprecatedDirective,
    GraphQLError,
    InputObjectTypeDefinitionNode,
    InterfaceTypeDefinitionNode,
    ListTypeNode,
    NamedTypeNode,
    Node,
    NonNullTypeNode,
    ObjectTypeDefinitionNode,
    SchemaDefinitionNode,
    SchemaExtensionNode,
    StringValueNode,
    TypeNode,
    UnionTypeDefinitionNode,
    get_directive_values,
)
from graphql.execution.values import get_argument_values

from graph.model import EnumType, EnumValue, TypeRef, UnionType
from resolvers.sdl.report import Report
from resolvers.sdl.words import words_schema

_words = cache(words_schema)


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive's use: its arguments with their defaults, and where each stands."""

    node: DirectiveNode
    arguments: dict[str, Any]

    def get(self, name: str) -> Any:
        return self.arguments.get(name)

    def at(self, name: str) -> Node:
        """Give the node of an argument's value, or of the directive when the argument is left out."""
        return next(
            (argument.value for argument in self.node.arguments or () if argument.name.value == name), self.node
        )


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field as written."""

    node: FieldDefinitionNode
    type: TypeRef
    directives: dict[str, Directive]

    @property
    def name(self) -> str:
        return self.node.name.value

    @property
    def description(self) -> str | None:
        return _text(self.node.description)


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """An object or interface type as written."""

    node: ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode
    fields: dict[str, DeclaredField]
    directives: list[tuple[str, Directive]]

    @property
    def name(self) -> str:
        return self.node.name.value

    @property
    def description(self) -> str | None:
        return _text(self.node.description)

    @property
    def interfaces(self) -> tuple[str, ...]:
        return tuple(interface.name.value for interface in self.node.interfaces or ())

    def uses(self, *names: str) -> list[Directive]:
        """List the uses of some directives, in order."""
        return [directive for name, directive in self.directives if name in names]

    @property
    def is_node(self) -> bool:
        return bool(self.uses("node"))

    @property
    def is_edge(self) -> bool:
        return bool(self.uses("edge"))


@dataclass(slots=True)
class Declarations:
    """Everything that the file declares, by name."""

    schema: list[tuple[str, Directive]] = field(default_factory=list)
    items: dict[str, DeclaredType] = field(default_factory=dict)
    objects: dict[str, DeclaredType] = field(default_factory=dict)
    interfaces: dict[str, DeclaredType] = field(default_factory=dict)
    query: DeclaredType | None = None
    enums: dict[str, EnumType] = field(default_factory=dict)
    unions: dict[str, UnionType] = field(default_factory=dict)
    union_nodes: dict[str, UnionTypeDefinitionNode] = field(default_factory=dict)
    inputs: dict[str, InputObjectTypeDefinitionNode] = field(default_factory=dict)

    def possible(self, name: str) -> tuple[str, ...]:
        """List the item types that a type's name may stand for, in the order of the file."""
        if name in self.items:
            return (name,)
        if name in self.unions:
            return tuple(member for member in self.unions[name].members if member in self.items)
        return tuple(item.name for item in self.items.values() if name in item.interfaces)


def declare(document: DocumentNode, report: Report) -> Declarations:
    """Collect the declarations of a document that is valid SDL."""
    found = Declarations()
    for node in document.definitions:
        match node:
            case SchemaDefinitionNode() | SchemaExtensionNode():
                found.schema += _directives(node.directives, report)
            case ObjectTypeDefinitionNode() | InterfaceTypeDefinitionNode():
                _declare_type(found, node, report)
            case EnumTypeDefinitionNode():
                found.enums[node.name.value] = _enum(node)
            case UnionTypeDefinitionNode():
                members = tuple(member.name.value for member in node.types or ())
                found.unions[node.name.value] = UnionType(node.name.value, members, _text(node.description))
                found.union_nodes[node.name.value] = node
            case InputObjectTypeDefinitionNode():
                found.inputs[node.name.value] = node
            case _:
                report.add(
                    node,
                    "only types, interfaces, unions, enums, inputs and `extend schema` are expected in the model: "
                    "write "
                    "every type in one piece, and use the scalars that exist",
                )
    return found


def _declare_type(
    found: Declarations, node: ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode, report: Report
) -> None:
    fields = {
        entry.name.value: DeclaredField(entry, type_ref(entry.type), dict(_directives(entry.directives, report)))
        for entry in node.fields or ()
    }
    declared = DeclaredType(node, fields, list(_directives(node.directives, report)))
    if isinstance(node, InterfaceTypeDefinitionNode):
        found.interfaces[declared.name] = declared
    elif declared.name == "Query":
        found.query = declared
    elif declared.is_node or declared.is_edge:
        found.items[declared.name] = declared
    else:
        found.objects[declared.name] = declared


def _directives(nodes: Any, report: Report) -> Iterator[tuple[str, Directive]]:
    for node in nodes or ():
        definition = _words().get_directive(node.name.value)
        if definition is None:
            continue
        try:
            values = get_argument_values(definition, node)
        except GraphQLError as error:
            report.add_error(error)
            continue
        yield node.name.value, Directive(node, dict(values))


def type_ref(node: TypeNode) -> TypeRef:
    """Take a type as written."""
    if isinstance(node, NonNullTypeNode):
        inner = type_ref(node.type)
        return TypeRef(True, inner.name, inner.of)
    if isinstance(node, ListTypeNode):
        return TypeRef(False, of=type_ref(node.type))
    assert isinstance(node, NamedTypeNode)
    return TypeRef(False, node.name.value)


def _enum(node: EnumTypeDefinitionNode) -> EnumType:
    values = tuple(
        EnumValue(value.name.value, _text(value.description), deprecation(value)) for value in node.values or ()
    )
    return EnumType(node.name.value, values, _text(node.description))


def deprecation(node: Any) -> str | None:
    """Give the reason of `@deprecated`, if the node has it."""
    values = get_directive_values(GraphQLDeprecatedDirective, node)
    return None if values is None else str(values["reason"])


def _text(description: StringValueNode | None) -> str | None:
    return None if description is None else description.value
