"""The relationships that are read along with their nodes."""

from __future__ import annotations

from graphql import ValueNode, VariableNode, value_from_ast_untyped
from graphql.execution.values import VariableValues

from graph.collection import Companion
from graph.loaders import Limits
from graph.model import Relationship
from resolvers.node import page_companion


class Companions:
    """The relationships whose first page is asked for with an item, as many edges as variables say."""

    def __init__(self, asked: list[tuple[Relationship, ValueNode | None]]) -> None:
        """Take the relationships, each with its `first` where it is to-many."""
        self._asked = asked
        self._constant: list[Companion] | None = None
        self._is_constant = not any(isinstance(first, VariableNode) for _, first in asked)

    def of(self, limits: Limits, variables: VariableValues) -> list[Companion]:
        """List the companions for these variables."""
        if self._constant is not None:
            return self._constant
        found: list[Companion] = []
        for relationship, first in self._asked:
            if not relationship.many:
                found.append(Companion(relationship, 1))
                continue
            value = None if first is None else value_from_ast_untyped(first, variables.coerced)
            companion = page_companion(limits, relationship, value if isinstance(value, int) else None)
            found += [] if companion is None else [companion]
        if self._is_constant:
            self._constant = found
        return found
