"""The arguments of a field: once for a plan where they are constants, once for a run where they hold variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphql import FieldNode, GraphQLField, Visitor, visit
from graphql.execution.values import VariableValues, get_argument_values

from resolvers.plan.run import Run


class _Variables(Visitor):
    def __init__(self) -> None:
        super().__init__()
        self.found = False

    def enter_variable(self, *_: Any) -> None:
        self.found = True


class Arguments:
    """The coerced arguments of one field."""

    def __init__(self, field: GraphQLField, node: FieldNode) -> None:
        self._field = field
        self._node = node
        search = _Variables()
        for argument in node.arguments or ():
            visit(argument, search)
        self._constant: Mapping[str, Any] | Exception | None = None
        if not search.found:
            try:
                self._constant = self._coerced(VariableValues({}, {}))
            except Exception as error:
                self._constant = error

    @property
    def constant(self) -> Mapping[str, Any] | None:
        """Give the arguments where no variable is among them."""
        return None if isinstance(self._constant, Exception) else self._constant

    def of(self, run: Run) -> Mapping[str, Any]:
        """Give the arguments of a run. Raises GraphQLError when a variable does not fit."""
        if isinstance(self._constant, Exception):
            raise self._constant
        if self._constant is not None:
            return self._constant
        known = run.prepared.get(id(self))
        if known is None:
            known = run.prepared[id(self)] = self._coerced(run.variables)
        given: Mapping[str, Any] = known
        return given

    def _coerced(self, variables: VariableValues) -> Mapping[str, Any]:
        if not self._field.args:
            return {}
        return get_argument_values(self._field, self._node, variables)
