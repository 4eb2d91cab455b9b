"""What the file declares, before anything is resolved: types, fields and directive arguments, beside their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphql import DEFAULT_DEPRECATION_REASON as DEFAULT_REASON
from graphql import (
    DefinitionNode,
    DirectiveNode,
    DocumentNode,
    EnumTypeDefinitionNode,
    EnumValueDefinitionNode,
    FieldDefinitionNode,
    GraphQLDirective,
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLInputType,
    InputObjectTypeDefinitionNode,
    InputValueDefinitionNode,
    InterfaceTypeDefinitionNode,
    ListTypeNode,
    ListValueNode,
    NamedTypeNode,
    Node,
    NonNullTypeNode,
    ObjectTypeDefinitionNode,
    SchemaDefinitionNode,
    SchemaExtensionNode,
    StringValueNode,
    TypeNode,
    Undefined,
    UnionTypeDefinitionNode,
    ValueNode,
    get_named_type,
    is_required_argument,
    print_ast,
)
from graphql.execution.values import get_argument_values
from graphql.utilities import coerce_input_literal

from graph.model import EnumType, EnumValue, TypeRef, UnionType
from resolvers.sdl.report import Report
from resolvers.sdl.words import SCALAR_NAMES, words_schema


@dataclass(frozen=True, slots=True)
class Directive:
    """A directive's use: its arguments with their defaults, and where each stands."""

    node: DirectiveNode
    arguments: dict[str, Any]

    def get(self, name: str) -> Any:
        return self.arguments.get(name)

    def at(self, name: str, place: int | None = None) -> Node:
        """Give the node of an argument's value, or of the directive when the argument is left out.

        With a place it is that of one value in a list, also where the list is written as one value.
        """
        value = next((argument.value for argument in self.node.arguments or () if argument.name.value == name), None)
        if isinstance(value, ListValueNode) and place is not None:
            return value.values[place]
        return value or self.node


@dataclass(frozen=True, slots=True)
class DeclaredField:
    """A field as written."""

    node: FieldDefinitionNode
    type: TypeRef
    directives: dict[str, Directive]
    auth: tuple[Directive, ...] = ()
    """The one directive that a field may have several times."""

    @property
    def name(self) -> str:
        return self.node.name.value

    @property
    def description(self) -> str | None:
        return text_of(self.node.description)

    @property
    def is_relationship(self) -> bool:
        return "relationship" in self.directives


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
        return text_of(self.node.description)

    @property
    def interfaces(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(interface.name.value for interface in self.node.interfaces or ()))

    def uses(self, *names: str) -> list[Directive]:
        """List the uses of some directives, in order."""
        return [directive for name, directive in self.directives if name in names]

    @property
    def keys(self) -> list[Directive]:
        """List the directives that make it a type with items, in order."""
        return self.uses("node", "edge")

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
    schema_nodes: list[SchemaDefinitionNode | SchemaExtensionNode] = field(default_factory=list)
    items: dict[str, DeclaredType] = field(default_factory=dict)
    objects: dict[str, DeclaredType] = field(default_factory=dict)
    interfaces: dict[str, DeclaredType] = field(default_factory=dict)
    query: DeclaredType | None = None
    enums: dict[str, EnumType] = field(default_factory=dict)
    unions: dict[str, UnionType] = field(default_factory=dict)
    inputs: dict[str, InputObjectTypeDefinitionNode] = field(default_factory=dict)
    nodes: dict[str, DefinitionNode] = field(default_factory=dict)
    """Where each type is declared, whatever it is."""

    @property
    def types(self) -> dict[str, DeclaredType]:
        """Give every type that has fields, but for Query."""
        return {**self.items, **self.objects, **self.interfaces}

    def possible(self, name: str) -> tuple[str, ...]:
        """List the item types that a type's name may stand for, in the order of the file."""
        if name in self.items:
            return (name,)
        if name in self.unions:
            return tuple(member for member in self.unions[name].members if member in self.items)
        return tuple(item.name for item in self.items.values() if name in item.interfaces)

    def is_leaf(self, name: str) -> bool:
        """Say whether a type is a scalar or an enum."""
        return name in SCALAR_NAMES or name in self.enums

    def directives(self, name: str) -> tuple[Node, ...]:
        """List the directives of a declared type: with a mistake in them nobody knows what it is."""
        return tuple(getattr(self.nodes.get(name), "directives", None) or ())

    def makings(self, type_: DeclaredType) -> list[Node]:
        """List what decides which items a type has and what they link: directives, and fields that name nodes."""
        fields = [
            field.node
            for field in type_.fields.values()
            if not field.is_relationship and not self.is_leaf(field.type.named)
        ]
        return [*(type_.node.directives or ()), *fields]


def declare(document: DocumentNode, report: Report) -> Declarations:
    """Collect the declarations of a document. Of those that share a name the first one counts."""
    found = Declarations()
    for node in document.definitions:
        match node:
            case SchemaDefinitionNode() | SchemaExtensionNode():
                found.schema += read_directives(node.directives, report)
                found.schema_nodes.append(node)
                continue
            case ObjectTypeDefinitionNode() | InterfaceTypeDefinitionNode():
                _declare_type(found, node, report)
            case EnumTypeDefinitionNode():
                found.enums.setdefault(node.name.value, _enum(node))
            case UnionTypeDefinitionNode():
                members = tuple(dict.fromkeys(member.name.value for member in node.types or ()))
                found.unions.setdefault(node.name.value, UnionType(node.name.value, members, text_of(node.description)))
            case InputObjectTypeDefinitionNode():
                found.inputs.setdefault(node.name.value, node)
            case _:
                if not report.blames(node):
                    report.add(node, _not_expected(node))
                continue
        found.nodes.setdefault(node.name.value, node)
    return found


def _not_expected(node: DefinitionNode) -> str:
    kind = node.kind
    expected = "expected types, interfaces, unions, enums, inputs and `extend schema` only"
    if kind.endswith("_extension"):
        name = node.name.value  # type: ignore[attr-defined]  # every extension has one, but for the schema's
        return f"`extend` adds to `{name}` from a second place: {expected}. Move this into the type `{name}` itself"
    if kind == "scalar_type_definition":
        name = node.name.value  # type: ignore[attr-defined]
        known = ", ".join(SCALAR_NAMES)
        return f"the scalar `{name}` is not known: {expected}. Remove it and use one of {known}"
    if kind == "directive_definition":
        name = node.name.value  # type: ignore[attr-defined]
        return f"the directive `@{name}` would have no meaning: {expected}. Remove it; the words are there already"
    return f"this is an operation, and the model only describes items: {expected}. Remove it, and send it as a request"


def _declare_type(
    found: Declarations, node: ObjectTypeDefinitionNode | InterfaceTypeDefinitionNode, report: Report
) -> None:
    fields: dict[str, DeclaredField] = {}
    for entry in node.fields or ():
        uses = list(read_directives(entry.directives, report))
        auth = tuple(use for name, use in uses if name == "auth")
        fields.setdefault(entry.name.value, DeclaredField(entry, type_ref(entry.type), dict(uses), auth))
    declared = DeclaredType(node, fields, list(read_directives(node.directives, report)))
    if isinstance(node, InterfaceTypeDefinitionNode):
        found.interfaces.setdefault(declared.name, declared)
    elif declared.name == "Query":
        found.query = found.query or declared
    elif declared.keys:
        found.items.setdefault(declared.name, declared)
    else:
        found.objects.setdefault(declared.name, declared)


def read_directives(nodes: tuple[DirectiveNode, ...] | None, report: Report) -> Iterator[tuple[str, Directive]]:
    """Read the uses of the model's directives; one that lacks an argument, or has one of a wrong type, is left out."""
    for node in nodes or ():
        definition = words_schema().get_directive(node.name.value)
        if definition is not None and (arguments := _arguments(definition, node, report)) is not None:
            yield definition.name, Directive(node, arguments)


def _arguments(definition: GraphQLDirective, node: DirectiveNode, report: Report) -> dict[str, Any] | None:
    given = {argument.name.value: argument.value for argument in node.arguments or ()}
    wrong = [
        name
        for name, argument in definition.args.items()
        if name in given and coerce_input_literal(given[name], argument.type) is Undefined
    ]
    for name in wrong:
        report.add(
            given[name],
            f"`@{definition.name}({name}:)` cannot be {print_ast(given[name])}: expected "
            f"{_expected(definition.args[name].type)}. {_cure(name, given[name], definition)}",
        )
    is_whole = not any(is_required_argument(entry) and name not in given for name, entry in definition.args.items())
    return dict(get_argument_values(definition, node)) if is_whole and not wrong else None


def _expected(type_: GraphQLInputType) -> str:
    named = get_named_type(type_)
    if isinstance(named, GraphQLInputObjectType):
        return f"{{ {', '.join(f'{name}: {entry.type}' for name, entry in named.fields.items())} }}"
    return " or ".join(named.values) if isinstance(named, GraphQLEnumType) else f"a value of type {type_}"


def _cure(name: str, value: ValueNode, definition: GraphQLDirective) -> str:
    if isinstance(value, ListValueNode) and definition.name == "table" and name in ("partitionKey", "sortKey"):
        return (
            "Only a global index may have several attributes in its key: name one attribute, and put the values "
            "together in its template"
        )
    return "Write one" if is_required_argument(definition.args[name]) else f"Write one, or leave `{name}` out"


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
        EnumValue(value.name.value, text_of(value.description), deprecation(value)) for value in node.values or ()
    )
    return EnumType(node.name.value, values, text_of(node.description))


def deprecation(node: FieldDefinitionNode | EnumValueDefinitionNode | InputValueDefinitionNode) -> str | None:
    """Give the reason of `@deprecated`, if the node has it."""
    for directive in node.directives or ():
        if directive.name.value == "deprecated":
            reasons = [argument.value for argument in directive.arguments or ()]
            return next((reason.value for reason in reasons if isinstance(reason, StringValueNode)), DEFAULT_REASON)
    return None


def text_of(description: StringValueNode | None) -> str | None:
    """Give a description's text."""
    return None if description is None else description.value
