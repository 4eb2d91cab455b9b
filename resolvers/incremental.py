"""@defer and @stream, for clients that take an answer in several payloads: by the ordinary execution."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

from graphql import ExecutionResult, GraphQLSchema, OperationType
from graphql.execution import experimental_execute_incrementally
from graphql.execution.types import (
    ExperimentalIncrementalExecutionResults,
    InitialIncrementalExecutionResult,
    SubsequentIncrementalExecutionResult,
)

from graph.loaders import Operation
from resolvers.discretion import Discretion, Teller
from resolvers.documents import Prepared
from resolvers.operation import Request, Response
from resolvers.responses import add_extensions, format_error, respond, tell_failures, tell_skipped
from resolvers.stale import Stale


async def execute(
    schema: GraphQLSchema,
    prepared: Prepared,
    request: Request,
    operation: Operation,
    stale: Stale | None,
    discretion: Discretion | None,
    *,
    hide_suggestions: bool,
) -> Response:
    """Execute an operation as far as its first payload; the operation is closed behind its last one.

    Source: graphql-core, experimental_execute_incrementally.
    """
    is_begun = False
    try:
        result = experimental_execute_incrementally(
            schema,
            prepared.document,
            context_value=operation,
            variable_values=dict(request.variables or {}),
            operation_name=request.operation_name,
            # Else the items of a stream would be read one after the other, each by requests of its own. What a
            # mutation defers waits until all of its fields have written.
            enable_early_execution=prepared.definition.operation is OperationType.QUERY,
            hide_suggestions=hide_suggestions,
        )
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, ExperimentalIncrementalExecutionResults):
            is_begun = True
            teller = Teller(discretion)
            rest = Rest(result.subsequent_results, operation, stale, teller, cost=request.cost)
            return Response(_initial(result.initial_result, operation, teller), "executed", rest)
        assert isinstance(result, ExecutionResult)
        return respond(result, operation, stale, discretion, cost=request.cost)
    finally:
        if not is_begun:
            await operation.close()


class Rest:
    """The payloads behind the first one.

    No generator, for that would not close the operation when it is closed before it begins: a client may go so early.
    """

    def __init__(
        self,
        payloads: AsyncGenerator[SubsequentIncrementalExecutionResult, None],
        operation: Operation,
        stale: Stale | None,
        teller: Teller,
        *,
        cost: bool,
    ) -> None:
        self._payloads = payloads
        self._operation = operation
        self._stale = stale
        self._teller = teller
        self._cost = cost
        self._is_begun = False

    def __aiter__(self) -> Rest:
        return self

    async def __anext__(self) -> dict[str, Any]:
        self._is_begun = True
        try:
            payload = await anext(self._payloads)
        except BaseException:
            await self.aclose()
            raise
        body = _subsequent(payload, self._operation, self._teller)
        if not payload.has_next:
            tell_skipped(self._operation)
            add_extensions(body, self._operation, self._stale, cost=self._cost)
        return body

    async def aclose(self) -> None:
        """End what is still being executed, and close the operation."""
        try:
            if not self._is_begun:
                # Closed before it begins, a generator ends nothing.
                with suppress(TimeoutError, StopAsyncIteration):
                    async with asyncio.timeout(0):
                        await anext(self._payloads)
            await self._payloads.aclose()
        finally:
            await self._operation.close()


def _initial(result: InitialIncrementalExecutionResult, operation: Operation, teller: Teller) -> dict[str, Any]:
    body: dict[str, Any] = {**result.formatted}
    if result.errors:
        body["errors"] = [format_error(error, teller, refused=False) for error in result.errors]
        tell_failures(body["errors"], operation)
    return body


def _subsequent(payload: SubsequentIncrementalExecutionResult, operation: Operation, teller: Teller) -> dict[str, Any]:
    body: dict[str, Any] = {**payload.formatted}
    for name, parts in (("incremental", payload.incremental), ("completed", payload.completed)):
        for part, written in zip(parts or (), body.get(name, ()), strict=True):
            if part.errors:
                written["errors"] = [format_error(error, teller, refused=False) for error in part.errors]
                tell_failures(written["errors"], operation)
    return body
