"""`@transaction` on a mutation: its fields are written together, and not one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import strawberry
from graphql import GraphQLObjectType
from graphql.execution.executor import Executor
from graphql.language import DirectiveLocation, OperationDefinitionNode
from graphql.pyutils import Path

from graph.loaders import Operation
from graph.writes.commit import Group

NAME = "transaction"


@strawberry.directive(
    locations=[DirectiveLocation.MUTATION],
    name=NAME,
    description="Write everything that this operation changes in one transaction: all of it, or nothing.",
)
def transaction_directive() -> None:
    """Stand for the directive: what it means is decided by how the fields are executed."""


def is_transaction(definition: OperationDefinitionNode) -> bool:
    """Say whether an operation is to be one transaction."""
    return any(directive.name.value == NAME for directive in definition.directives or ())


class TransactionExecutor(Executor[None]):
    """Executes the fields of a mutation side by side: each waits for the transaction that they all become.

    It takes @defer and @stream as if they were not there.
    """

    def execute_fields_serially(
        self,
        parent_type: GraphQLObjectType,
        source_value: Any,
        path: Path | None,
        grouped_field_set: Any,
        position_context: Any,
    ) -> Awaitable[dict[str, Any]]:
        """Start every field, then let them be written."""
        found: dict[str, Any] = {}
        for name, details in grouped_field_set.items():
            field_path = Path(path, name, parent_type.name)
            found[name] = self.execute_field(parent_type, source_value, details, field_path, position_context)
        waiting = [name for name, value in found.items() if self.is_awaitable(value)]
        operation: Operation = self.context_value
        operation.group = Group(operation, waiting)
        # One whose arguments do not fit has failed already, and is null.
        if any(value is None for value in found.values()):
            operation.group.fail()
        return self._together(found, waiting)

    async def _together(self, found: dict[str, Any], waiting: list[str]) -> dict[str, Any]:
        values = await asyncio.gather(*(found[name] for name in waiting))
        return found | dict(zip(waiting, values, strict=True))
