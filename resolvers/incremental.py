"""@defer and @stream, for clients that take an answer in several payloads: by the ordinary execution."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

from graphql import ExecutionResult, GraphQLSchema
from graphql.execution import experimental_execute_incrementally
from graphql.execution.types import (
    ExperimentalIncrementalExecutionResults,
    InitialIncrementalExecutionResult,
    SubsequentIncrementalExecutionResult,
)

from graph.loaders import Operation
from resolvers.documents import Prepared
from resolvers.operation import Request, Response
from resolvers.responses import format_error, respond


async def execute(schema: GraphQLSchema, prepared: Prepared, request: Request, operation: Operation) -> Response:
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
        )
        if inspect.isawaitable(result):
            result = await result
        if isinstance(result, ExperimentalIncrementalExecutionResults):
            is_begun = True
            rest = _rest(result, operation, cost=request.cost)
            return Response(_initial(result.initial_result), "executed", rest)
        assert isinstance(result, ExecutionResult)
        return respond(result, operation, cost=request.cost)
    finally:
        if not is_begun:
            await operation.close()


def _initial(result: InitialIncrementalExecutionResult) -> dict[str, Any]:
    body: dict[str, Any] = {**result.formatted}
    if result.errors:
        body["errors"] = [format_error(error, refused=False) for error in result.errors]
    return body


async def _rest(
    result: ExperimentalIncrementalExecutionResults, operation: Operation, *, cost: bool
) -> AsyncIterator[dict[str, Any]]:
    try:
        async for payload in result.subsequent_results:
            body = _subsequent(payload)
            if cost and not payload.has_next:
                body["extensions"] = {"cost": operation.meter.cost()}
            yield body
    finally:
        await result.subsequent_results.aclose()
        await operation.close()


def _subsequent(payload: SubsequentIncrementalExecutionResult) -> dict[str, Any]:
    body: dict[str, Any] = {**payload.formatted}
    for name, parts in (("incremental", payload.incremental), ("completed", payload.completed)):
        for part, written in zip(parts or (), body.get(name, ()), strict=True):
            if part.errors:
                written["errors"] = [format_error(error, refused=False) for error in part.errors]
    return body
