"""The relationships that are read along with their nodes."""

from __future__ import annotations

from graphql import ValueNode, VariableNode, value_from_ast_untyped

from graph.collection import Companion
from graph.model import Relationship
from resolvers.node import page_companion
from resolvers.plan.run import Run


class Companions:
    """The relationships whose first page is asked for with an item, as many edges as a run says."""

    def __init__(self, asked: list[tuple[Relationship, ValueNode | None]]) -> None:
        """Take the relationships, each with its `first` where it is to-many."""
        self._asked = asked
        self._constant: list[Companion] | None = None
        self._is_constant = not any(isinstance(first, VariableNode) for _, first in asked)

    def of(self, run: Run) -> list[Companion]:
        """List the companions."""
        if self._constant is not None:
            return self._constant
        found: list[Companion] = []
        for relationship, first in self._asked:
            if not relationship.many:
                found.append(Companion(relationship, 1))
                continue
            value = None if first is None else value_from_ast_untyped(first, run.variables.coerced)
            companion = page_companion(run.operation, relationship, value if isinstance(value, int) else None)
            found += [] if companion is None else [companion]
        if self._is_constant:
            self._constant = found
        return found
