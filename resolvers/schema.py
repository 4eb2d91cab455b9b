"""Model + Graph → the API: one Strawberry schema, and the execution of operations over it."""

from __future__ import annotations

import inspect
import logging
import uuid
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Literal

import strawberry
from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    execute,
    parse,
    specified_rules,
    validate,
)
from graphql.execution.values import get_variable_values
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig

from graph.errors import GraphError, ItemError
from graph.loaders import Graph, Operation
from graph.model import Model
from graph.requests import DescribeTable
from resolvers.operation import Request, Response
from resolvers.plan.document import Operation as Surveyed
from resolvers.plan.document import survey
from resolvers.plan.plan import Plan
from resolvers.scalars import SCALAR_MAP
from resolvers.transaction import TransactionExecutor, is_transaction, transaction_directive
from resolvers.types import TypeBuilder

Executor = Literal["plan", "reference"]
"""How queries are executed: by compiled plans, or by Strawberry, which the plans are held against."""

DOCUMENTS_CACHED = 1000
NULL_REFUSED = "Cannot return null for non-nullable field "
"""How graphql-core's TypeError begins where a value is missing that the model declares with `!`."""

ERROR_CODES: Mapping[str, str] = {
    "GRAPHQL_PARSE_FAILED": "The document is not GraphQL.",
    "GRAPHQL_VALIDATION_FAILED": "The document does not fit the schema.",
    "OPERATION_NAME_REQUIRED": "The document holds several operations, and `operationName` chooses none.",
    "OPERATION_NOT_FOUND": "The document holds no operation of this name.",
    "BAD_USER_INPUT": "A variable or an argument does not fit its type.",
    "BAD_VALUE": "A field's value does not fit its type in GraphQL: null where it is required, or out of range.",
    "INTERNAL": "A fault of the server's own; the message has the id under which it is logged.",
}
"""The codes of errors that arise here, and not in the graph."""

log = logging.getLogger(__name__)


def build_schema(model: Model, *, mutations: bool = True) -> strawberry.Schema:
    """Build the Strawberry schema of a model; without mutations it only reads."""
    types = TypeBuilder(model)
    config = StrawberryConfig(auto_camel_case=False, scalar_map=SCALAR_MAP)
    return strawberry.Schema(
        types.query(),
        types.mutation() if mutations else None,
        types=types.all_types(),
        directives=[transaction_directive] if mutations else [],
        config=config,
    )


def print_sdl(model: Model) -> str:
    """Print the public schema: what clients see, without any mapping directive."""
    return print_schema(build_schema(model)) + "\n"


class Api:
    """The GraphQL API over one graph."""

    def __init__(
        self,
        graph: Graph,
        *,
        timeout_secs: float | None = 30.0,
        introspection: bool = True,
        mutations: bool = True,
        executor: Executor = "plan",
    ) -> None:
        self._graph = graph
        self._has_plans = executor == "plan"
        self._timeout_secs = timeout_secs
        self._strawberry = build_schema(graph.model, mutations=mutations)
        self._schema: GraphQLSchema = self._strawberry._schema
        # Made once: rules made for each request would also keep graphql-core from caching anything by them.
        self._rules = specified_rules if introspection else (*specified_rules, NoSchemaIntrospectionCustomRule)
        self._documents: OrderedDict[str, DocumentNode | list[GraphQLError]] = OrderedDict()
        self._plans: OrderedDict[tuple[Any, ...], Plan] = OrderedDict()
        self._surveys: dict[int, Surveyed] = {}

    @property
    def model(self) -> Model:
        """Give the model that the API is made from."""
        return self._graph.model

    def sdl(self) -> str:
        """Print the public schema."""
        return print_schema(self._strawberry) + "\n"

    async def ready(self) -> None:
        """Check that every table answers. Raises StoreError."""
        for table in self.model.tables.values():
            # Which of a time series' tables there are, only the queries will tell.
            if table.period is None:
                await self._graph.send(DescribeTable(table.name))

    async def execute(self, request: Request) -> Response:
        """Execute one operation with fresh loaders; whatever goes wrong is in the response.

        Cost: parsing and validation once for each document, as long as it is among the last thousand.
        """
        document = self._document(request.query)
        if isinstance(document, list):
            return _refuse(document)
        definition = _choose(document, request.operation_name)
        if isinstance(definition, GraphQLError):
            return _refuse([definition])
        if definition.operation is not OperationType.QUERY and not request.mutations_allowed:
            error = GraphQLError(
                f"a {definition.operation.value} was sent by GET, which only reads: send it by POST",
                definition,
                extensions={"code": "METHOD_NOT_ALLOWED"},
            )
            return Response({"errors": [error.formatted]}, "mutation_over_get")
        operation = self._graph.operation(
            timeout_secs=self._timeout_secs,
            report_capacity=request.cost,
            consistent=definition.operation is OperationType.MUTATION,
        )
        operation.idempotency_key = request.idempotency_key
        try:
            result = await self._run(document, definition, request, operation)
        finally:
            await operation.close()
        return _respond(result, operation, cost=request.cost)

    async def _run(
        self,
        document: DocumentNode,
        definition: OperationDefinitionNode,
        request: Request,
        operation: Operation,
    ) -> ExecutionResult:
        if self._has_plans and (surveyed := self._survey(document, definition)).is_plain:
            return await self._run_plan(surveyed, request, operation)
        result = execute(
            self._schema,
            document,
            context_value=operation,
            variable_values=dict(request.variables or {}),
            operation_name=request.operation_name,
            executor_class=TransactionExecutor if is_transaction(definition) else None,
        )
        return await result if inspect.isawaitable(result) else result

    def _survey(self, document: DocumentNode, definition: OperationDefinitionNode) -> Surveyed:
        known = self._surveys.get(id(definition))
        if known is None:
            known = self._surveys[id(definition)] = survey(document, definition)
        return known

    async def _run_plan(self, surveyed: Surveyed, request: Request, operation: Operation) -> ExecutionResult:
        variables = get_variable_values(
            self._schema, surveyed.definition.variable_definitions or (), dict(request.variables or {})
        )
        if isinstance(variables, list):
            return ExecutionResult(None, variables)
        key = id(surveyed), *(variables.coerced.get(name) for name in surveyed.deciding)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = Plan(self._schema, self.model, surveyed, variables)
        return await plan.execute(operation, variables)

    def _document(self, query: str) -> DocumentNode | list[GraphQLError]:
        """Parse and validate a document, or remember how that went last time."""
        found = self._documents.get(query)
        if found is None:
            found = self._parse(query)
            self._documents[query] = found
            if len(self._documents) > DOCUMENTS_CACHED:
                self._documents.popitem(last=False)
        else:
            self._documents.move_to_end(query)
        return found

    def _parse(self, query: str) -> DocumentNode | list[GraphQLError]:
        try:
            document = parse(query)
        except GraphQLError as syntax:
            syntax.extensions = {"code": "GRAPHQL_PARSE_FAILED"}
            return [syntax]
        errors = validate(self._schema, document, self._rules)
        for error in errors:
            error.extensions = {"code": "GRAPHQL_VALIDATION_FAILED"} | (error.extensions or {})
        return errors or document


def _choose(document: DocumentNode, name: str | None) -> OperationDefinitionNode | GraphQLError:
    """Choose the operation to execute. Source: GraphQL specification, GetOperation."""
    operations = [node for node in document.definitions if isinstance(node, OperationDefinitionNode)]
    names = [node.name.value for node in operations if node.name]
    known = f"expected one of {', '.join(names)}" if names else "the document names none"
    if name is None:
        if len(operations) == 1:
            return operations[0]
        problem = f"the document holds {len(operations)} operations and `operationName` is missing: {known}"
        return GraphQLError(problem, extensions={"code": "OPERATION_NAME_REQUIRED"})
    for node in operations:
        if node.name and node.name.value == name:
            return node
    problem = f"the document holds no operation named {name!r}: {known}"
    return GraphQLError(problem, extensions={"code": "OPERATION_NOT_FOUND"})


def _refuse(errors: list[GraphQLError]) -> Response:
    return Response({"errors": [error.formatted for error in errors]}, "refused")


def _respond(result: ExecutionResult, operation: Operation, *, cost: bool) -> Response:
    # Errors without a path are of the request: graphql-core found a variable at fault, and executed nothing.
    refused = result.data is None and all(error.path is None for error in result.errors or [])
    body: dict[str, Any] = {} if refused else {"data": result.data}
    if result.errors:
        body["errors"] = [_format(error, refused=refused) for error in result.errors]
    if cost:
        body["extensions"] = {"cost": operation.meter.cost()}
    if operation.meter.skipped:
        log.warning("items that fit no type were skipped: %s", dict(operation.meter.skipped))
    return Response(body, "refused" if refused else "executed")


def _format(error: GraphQLError, *, refused: bool) -> Mapping[str, Any]:
    """Format an error for the client; one that is not ours is logged whole and shown as a number."""
    original = error.original_error
    if isinstance(original, TypeError) and str(original).startswith(NULL_REFUSED):
        field = str(original).removeprefix(NULL_REFUSED).rstrip(".")
        original = ItemError(
            f"{field} is declared with `!`, and the table has nothing for it here: mend the item, or declare the "
            "field nullable"
        )
        error = GraphQLError(str(original), error.nodes, path=error.path, original_error=original)
    if original is None or isinstance(original, (GraphError, GraphQLError)):
        code = "BAD_USER_INPUT" if refused or error.path is None else "BAD_VALUE"
        error.extensions = {"code": code} | (error.extensions or {})
        return error.formatted
    number = uuid.uuid4().hex[:12]
    log.error("unexpected error %s at %s", number, error.path, exc_info=original)
    masked = GraphQLError(
        f"unexpected error; its id in the log is {number}",
        error.nodes,
        path=error.path,
        extensions={"code": "INTERNAL"},
    )
    return masked.formatted
