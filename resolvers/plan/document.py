"""The operation of a document: what decides how it is compiled, and its fields, collected as the specification says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import (
    DirectiveNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    GraphQLObjectType,
    GraphQLSchema,
    Node,
    OperationDefinitionNode,
    OperationType,
    VariableNode,
    Visitor,
    visit,
)
from graphql.execution.collect_fields import FieldDetails, FragmentDetails, collect_fields, collect_subfields
from graphql.execution.values import VariableValues

from resolvers.plan.failures import Place

Details = list[FieldDetails]
Fields = Mapping[str, Details]
"""The fields of a selection by their names in the response, each with all its occurrences."""

DECIDING = ("skip", "include")
INCREMENTAL = ("defer", "stream")
LIVE = "live"
"""The directive that says how often a query is executed, and nothing of what is selected."""


class _Survey(Visitor):
    """Finds the variables that decide what is selected, and what only the ordinary execution knows."""

    def __init__(self) -> None:
        super().__init__()
        self.deciding: dict[str, None] = {}
        self.is_plain = True

    def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
        name = node.name.value
        if name == LIVE:
            return
        if name not in DECIDING:
            self.is_plain = False
        for argument in node.arguments or ():
            if isinstance(argument.value, VariableNode):
                self.deciding[argument.value.name.value] = None

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        if node.name.value in ("__schema", "__type"):
            self.is_plain = False


@dataclass(frozen=True)
class Surveyed:
    """One operation of a document, looked through once."""

    document: DocumentNode
    definition: OperationDefinitionNode
    deciding: tuple[str, ...]
    """The variables that @skip and @include ask: for each of their values it is another plan."""
    is_plain: bool
    """Whether plans serve it: queries without introspection, and no directive but @skip, @include and @live."""
    is_incremental: bool
    """Whether it says @defer or @stream somewhere."""


def survey(document: DocumentNode, definition: OperationDefinitionNode) -> Surveyed:
    """Look through an operation once."""
    fragments = [node for node in document.definitions if isinstance(node, FragmentDefinitionNode)]
    found = _Survey()
    nodes: list[Node] = [definition, *fragments]
    for node in nodes:
        visit(node, found)
    is_query = definition.operation is OperationType.QUERY
    return Surveyed(document, definition, tuple(found.deciding), is_query and found.is_plain, _is_incremental(nodes))


def _is_incremental(nodes: list[Node]) -> bool:
    found = False

    class Search(Visitor):
        def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
            nonlocal found
            found = found or node.name.value in INCREMENTAL

    for node in nodes:
        visit(node, Search())
    return found


class Collector:
    """Collects the fields of selections for concrete types, with the variables that decide about them."""

    def __init__(self, schema: GraphQLSchema, operation: Surveyed, variables: VariableValues) -> None:
        self.schema = schema
        self.definition = operation.definition
        self.fragments = {
            node.name.value: node for node in operation.document.definitions if isinstance(node, FragmentDefinitionNode)
        }
        self._details = {name: FragmentDetails(node) for name, node in self.fragments.items()}
        self._variables = variables

    def root(self) -> Fields:
        """Collect the fields of the operation itself."""
        type_ = self.schema.get_root_type(self.definition.operation)
        assert type_ is not None
        found = collect_fields(self.schema, self._details, self._variables, type_, self.definition)
        return found.grouped_field_set

    def below(self, type_: GraphQLObjectType, details: Details) -> Fields:
        """Collect what is selected of objects of a type below a field."""
        found = collect_subfields(self.schema, self._details, self._variables, self.definition, type_, details)
        return found.grouped_field_set

    def locate(self, place: Place) -> tuple[list[FieldNode], tuple[int, ...]]:
        """Find the nodes of the field at a place, and the order of the place among all in the document."""
        fields, details = self.root(), list(_none())
        order: list[int] = []
        for step in place:
            if isinstance(step, int):
                order.append(step)
                continue
            type_name, name = step
            if details:
                type_ = self.schema.type_map[type_name]
                assert isinstance(type_, GraphQLObjectType)
                fields = self.below(type_, details)
            details = fields[name]
            order.append(list(fields).index(name))
        return [one.node for one in details], tuple(order)


def _none() -> Iterator[FieldDetails]:
    yield from ()
