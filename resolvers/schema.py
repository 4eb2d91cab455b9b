"""Model + Graph → the API: one Strawberry schema, and the execution of operations over it."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from functools import partial
from typing import Any, Literal

import strawberry
from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    NoSchemaIntrospectionCustomRule,
    OperationDefinitionNode,
    OperationType,
    specified_rules,
)
from graphql.execution import experimental_execute_incrementally
from graphql.execution.executor import Executor as GraphQLExecutor
from graphql.execution.values import VariableValues, get_variable_values
from strawberry.printer import print_schema
from strawberry.schema.config import StrawberryConfig

from graph.client import Meter
from graph.errors import AccessRefused
from graph.loaders import Graph, Operation
from graph.model import Model
from graph.observation import observer
from graph.requests import DescribeTable, Scan
from graph.streams.hub import Hub
from graph.streams.readset import ReadSet
from graph.trace import Trace
from resolvers import incremental
from resolvers.discretion import Discretion
from resolvers.documents import Documents, Prepared
from resolvers.events import Root, follow
from resolvers.federation import Federation, NoServiceRule, Subgraph
from resolvers.limits import DocumentLimits
from resolvers.live import LiveInOnePiece, LiveQueries, is_live, live_directive, throttle_of
from resolvers.operation import Events, Request, Response
from resolvers.persisted import PersistedDocuments, Persistence
from resolvers.responses import refuse, respond
from resolvers.scalars import SCALAR_MAP
from resolvers.stale import Stale, Watermark
from resolvers.subscription import Told
from resolvers.transaction import TransactionExecutor, is_transaction, transaction_directive
from resolvers.types import TypeBuilder
from resolvers.views import View, Views

Executor = Literal["plan", "reference"]
"""How queries are executed: by compiled plans, or by Strawberry, which the plans are held against."""

LIMITS = DocumentLimits()
PERSISTENCE = Persistence()
NO_VARIABLES = VariableValues({}, {})
READY_SECS = 3.0
"""How long the tables have to answer whether they are there."""


def build_schema(model: Model, *, mutations: bool = True, federation: Federation = "off") -> strawberry.Schema:
    """Build the Strawberry schema of a model, or that of a federation's subgraph; without mutations it only reads."""
    types = TypeBuilder(model)
    subgraph = None if federation == "off" else Subgraph(model, types.of)
    config = StrawberryConfig(
        auto_camel_case=False, scalar_map=SCALAR_MAP, enable_experimental_incremental_execution=True
    )
    make = strawberry.Schema if subgraph is None else subgraph.schema
    return make(
        types.query() if subgraph is None else types.query(subgraph.fields(), has_node=federation == "on"),
        types.mutation() if mutations else None,
        types.subscription(),
        types=types.all_types(),
        directives=[live_directive, *([transaction_directive] if mutations else [])],
        config=config,
    )


def goes_on(definition: OperationDefinitionNode) -> bool:
    """Say whether an operation may have more than one answer, each when it is due."""
    return definition.operation is OperationType.SUBSCRIPTION or is_live(definition)


def print_sdl(model: Model, *, mutations: bool = True, federation: Federation = "off") -> str:
    """Print the public schema: what clients see, or what a gateway composes, without any mapping directive."""
    return print_schema(build_schema(model, mutations=mutations, federation=federation)) + "\n"


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
        hub: Hub | None = None,
        watermark: Watermark | None = None,
        limits: DocumentLimits = LIMITS,
        hide_forbidden: bool = False,
        persistence: Persistence = PERSISTENCE,
        discreet: bool = False,
        federation: Federation = "off",
    ) -> None:
        """Take the graph, the hub of its changes, and what tells before when all was written that its copies show.

        `hide_forbidden`: what a caller may never ask for is for them not in the schema. A `discreet` one tells clients
        nothing of the store, as in production. `federation`: it is a subgraph, with what a gateway asks for.
        """
        self._graph = graph
        self._hub = hub
        self._watermark = watermark
        self._live = LiveQueries(hub)
        self._has_plans = executor == "plan"
        self._timeout_secs = timeout_secs
        self._strawberry = build_schema(graph.model, mutations=mutations, federation=federation)
        self._schema: GraphQLSchema = self._strawberry._schema
        # Made once: rules made for each request would also keep graphql-core from caching anything by them.
        rules = (*specified_rules, LiveInOnePiece)
        if not introspection:
            rules = (*rules, NoSchemaIntrospectionCustomRule, NoServiceRule)
        # A suggestion tells of the schema what introspection would.
        self._hides = not introspection
        self._discretion = Discretion(graph.model, self._schema) if discreet else None
        persisted = PersistedDocuments(persistence)
        self._views = Views(
            self._schema,
            graph.model,
            lambda schema: Documents(schema, graph.model, rules, limits, persisted, hide_suggestions=not introspection),
            are_hiding=hide_forbidden,
        )

    @property
    def model(self) -> Model:
        """Give the model that the API is made from."""
        return self._graph.model

    @property
    def schema(self) -> GraphQLSchema:
        """Give the whole schema."""
        return self._schema

    @property
    def documents(self) -> Documents:
        """Give the documents of those who see the whole schema."""
        return self._views.of(None).documents

    def sdl(self) -> str:
        """Print the public schema."""
        return print_schema(self._strawberry) + "\n"

    def faults(self, query: str) -> list[str]:
        """Say what is wrong with a document, and remember it as one that was asked for."""
        return [_placed(error) for error in self.documents.faults(query)]

    async def ready(self) -> None:
        """Check that every table answers, and gives items where it did not of late. Raises StoreError."""
        deadline = asyncio.get_running_loop().time() + READY_SECS
        for table in self.model.tables.values():
            # Which of a time series' tables there are, only the queries will tell.
            if table.period is None:
                await self._graph.send(DescribeTable(table.name), Meter(deadline=deadline, timeout_secs=READY_SECS))
        for name in self._graph.tables_down:
            # Who is not ready is sent nothing that would show that the table answers again: this does.
            with suppress(AccessRefused):
                first = Scan(name, 0, 1, limit=1)
                await self._graph.send(first, Meter(deadline=deadline, timeout_secs=READY_SECS))

    async def execute(self, request: Request, reads: ReadSet | None = None) -> Response:
        """Execute one operation with fresh loaders; whatever goes wrong is in the response.

        Cost: parsing and validation once for each document, as long as it is among the last thousand. `reads` is told
        what a query reads.
        """
        view, prepared = self._prepare(request)
        if isinstance(prepared, list):
            return refuse(prepared, self._discretion)
        if (observing := observer.get()) is not None:
            observing.asked(prepared.kind, prepared.name, prepared.text)
        kind = prepared.definition.operation
        if kind is OperationType.SUBSCRIPTION:
            error = GraphQLError(
                "a subscription goes on, and this transport brings one answer alone: send it over a WebSocket "
                "(graphql-transport-ws), or with `Accept: text/event-stream`",
                prepared.definition,
                extensions={"code": "SUBSCRIPTION_TRANSPORT"},
            )
            return refuse([error], self._discretion)
        if kind is not OperationType.QUERY and not request.mutations_allowed:
            error = GraphQLError(
                f"a {kind.value} was sent by GET, which only reads: send it by POST",
                prepared.definition,
                extensions={"code": "METHOD_NOT_ALLOWED"},
            )
            return Response({"errors": [error.formatted]}, "mutation_over_get")
        variables = self._variables(prepared, request)
        try:
            estimated = self._estimated(prepared, variables)
        except GraphQLError as error:
            return refuse([error], self._discretion)
        operation = self._graph.operation(
            timeout_secs=self._timeout_secs,
            report_capacity=request.cost,
            consistent=kind is OperationType.MUTATION,
            reads=reads,
            identity=request.identity,
        )
        operation.meter.estimated = estimated
        operation.idempotency_key = request.idempotency_key
        if request.trace:
            operation.meter.trace = Trace()
        stale = self._stale(prepared)
        if request.incremental and prepared.is_incremental and not is_transaction(prepared.definition):
            return await incremental.execute(
                self._schema, prepared, request, operation, stale, self._discretion, hide_suggestions=self._hides
            )
        try:
            if view.schema is not self._schema and isinstance(
                refused := self._variables(prepared, request, view.schema), list
            ):
                return refuse(refused, self._discretion)
            result = await self._run(view, prepared, request, variables, operation)
            return respond(result, operation, stale, self._discretion, cost=request.cost, cache=prepared.cache)
        finally:
            await operation.close()

    def goes_on(self, request: Request) -> bool:
        """Say whether an operation may have more than one answer. Cost: that of parsing, which is then done."""
        _, prepared = self._prepare(request)
        return not isinstance(prepared, list) and goes_on(prepared.definition)

    async def open(self, request: Request) -> Response | Events:
        """Begin an operation that may go on: subscriptions and live queries give events, all else a response."""
        _, prepared = self._prepare(request)
        if isinstance(prepared, list) or not goes_on(prepared.definition):
            return await self.execute(request)
        if (observing := observer.get()) is not None:
            observing.asked(prepared.kind, prepared.name, prepared.text)
        variables = self._variables(prepared, request)
        if isinstance(variables, list):
            return refuse(variables, self._discretion)
        if prepared.definition.operation is OperationType.QUERY:
            return await self._open_live(prepared, request, variables)
        try:
            self._estimated(prepared, variables)
            root = Root(self.model, self._schema, prepared, variables)
        except GraphQLError as error:
            return refuse([error], self._discretion)

        def begin() -> Operation:
            # Read consistently: an event must not be older than the write that it tells of.
            return self._graph.operation(
                timeout_secs=self._timeout_secs,
                report_capacity=request.cost,
                consistent=True,
                identity=request.identity,
            )

        async def execute(operation: Operation, told: Told | GraphQLError) -> dict[str, Any]:
            stale = self._stale(prepared)
            if isinstance(told, GraphQLError):
                result = ExecutionResult(None, [told])
            else:
                result = await self._executed(prepared, request, operation, told)
            return respond(result, operation, stale, self._discretion, cost=request.cost).body

        found = await follow(self._hub, root, begin, execute)
        return refuse([found], self._discretion) if isinstance(found, GraphQLError) else found

    def _prepare(self, request: Request) -> tuple[View, Prepared | list[GraphQLError]]:
        """Prepare a document as its caller may ask for it."""
        permissions = self._graph.permissions(request.identity)
        view = self._views.of(permissions)
        prepared = view.documents.prepare(request)
        if permissions is not None and not isinstance(prepared, list):
            errors = prepared.refused(permissions, self._views.permitted)
            return view, errors or prepared
        return view, prepared

    async def _open_live(self, prepared: Prepared, request: Request, variables: VariableValues) -> Response | Events:
        try:
            throttle_secs = throttle_of(self._schema, prepared.definition, variables)
            if throttle_secs is None:
                return await self.execute(request)
            return await self._live.open(partial(self.execute, request), throttle_secs)
        except GraphQLError as error:
            return refuse([error], self._discretion)

    def _estimated(self, prepared: Prepared, variables: VariableValues | list[GraphQLError]) -> float | None:
        """Estimate what an operation reads; None where its execution will refuse its variables.

        Raises: GraphQLError when that is more than it may cost.
        """
        if prepared.estimated is not None or isinstance(variables, list):
            return prepared.estimated
        limits = self._graph.limits
        cost = prepared.cost(self._schema, self.model, limits, variables)
        if cost is None:
            return None
        estimated = cost.check(variables.coerced, limits.max_cost)
        if cost.is_constant:
            prepared.estimated = estimated
        return estimated

    async def _run(
        self,
        view: View,
        prepared: Prepared,
        request: Request,
        variables: VariableValues | list[GraphQLError],
        operation: Operation,
    ) -> ExecutionResult:
        if isinstance(variables, list):
            return ExecutionResult(None, variables)
        plan = prepared.plan(self._schema, self.model, variables) if self._has_plans and prepared.is_plain else None
        if plan is not None:
            return await plan.execute(operation, variables)
        schema = view.schema if prepared.introspects else self._schema
        return await self._executed(prepared, request, operation, schema=schema)

    async def _executed(
        self,
        prepared: Prepared,
        request: Request,
        operation: Operation,
        root: object = None,
        schema: GraphQLSchema | None = None,
    ) -> ExecutionResult:
        """Execute an operation field by field."""
        result = experimental_execute_incrementally(
            schema or self._schema,
            prepared.document,
            root,
            context_value=operation,
            variable_values=dict(request.variables or {}),
            operation_name=request.operation_name,
            # Either takes @defer and @stream as if they were not there.
            executor_class=TransactionExecutor if is_transaction(prepared.definition) else GraphQLExecutor,
            hide_suggestions=self._hides,
        )
        result = await result if inspect.isawaitable(result) else result
        assert isinstance(result, ExecutionResult), "neither executor makes several payloads"
        return result

    def _stale(self, prepared: Prepared) -> Stale | None:
        return Stale(self._watermark) if prepared.shows_copies else None

    def _variables(
        self, prepared: Prepared, request: Request, schema: GraphQLSchema | None = None
    ) -> VariableValues | list[GraphQLError]:
        defined = prepared.definition.variable_definitions
        if not defined:
            return NO_VARIABLES
        values = dict(request.variables or {})
        return get_variable_values(schema or self._schema, defined, values, hide_suggestions=self._hides)


def _placed(error: GraphQLError) -> str:
    return ": ".join([*(f"{place.line}:{place.column}" for place in (error.locations or ())[:1]), error.message])
