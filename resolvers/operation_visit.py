"""A visit of one operation of a document: of its fields, and of those of the fragments that it spreads, each once."""

from __future__ import annotations

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLSchema,
    Node,
    OperationDefinitionNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    visit,
)


class OperationVisitor(Visitor):
    """Visits an operation; `info` says where it is."""

    def __init__(self, schema: GraphQLSchema) -> None:
        super().__init__()
        self.info = TypeInfo(schema)
        self._spread: list[str] = []

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: object) -> None:
        """Note a fragment that is spread."""
        self._spread.append(node.name.value)

    def visit(self, document: DocumentNode, definition: OperationDefinitionNode) -> None:
        """Visit an operation of a document, and each fragment that it leads to."""
        fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
        parts: list[Node] = [definition]
        for part in parts:
            visit(part, TypeInfoVisitor(self.info, self))
            parts += [fragments.pop(name) for name in self._spread if name in fragments]
