"""From the result of an execution to the response: every error with its code, what is not ours masked."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from graphql import ExecutionResult, GraphQLError

from graph.errors import GraphError, ItemError
from graph.loaders import Operation
from resolvers.discretion import Discretion, Teller
from resolvers.operation import CachePolicy, Response
from resolvers.stale import Stale

NULL_REFUSED = "Cannot return null for non-nullable field "
"""How graphql-core's TypeError begins where a value is missing that the model declares with `!`."""
COUNT_REFUSED = "initialCount must be"
"""How graphql-core's ValueError begins, which it raises while it executes."""

ERROR_CODES: Mapping[str, str] = {
    "GRAPHQL_PARSE_FAILED": "The document is not GraphQL.",
    "GRAPHQL_VALIDATION_FAILED": "The document does not fit the schema.",
    "LIMIT_EXCEEDED": "More was asked for than is served: `limit` says of what, `value` how much, `most` the limit.",
    "OPERATION_NAME_REQUIRED": "The document holds several operations, and `operationName` chooses none.",
    "SUBSCRIPTION_TRANSPORT": "A subscription was sent by a transport that brings one answer alone.",
    "OPERATION_NOT_FOUND": "The document holds no operation of this name.",
    "PERSISTED_QUERY_NOT_FOUND": "The document that a client names is not known here (any more): it is to be sent.",
    "PERSISTED_QUERY_NOT_SUPPORTED": "Documents are not kept under their hashes here: they are to be sent.",
    "DOCUMENT_ID_MISMATCH": "The document that was sent is not the one that its id names.",
    "DOCUMENT_NOT_TRUSTED": "Trusted documents alone are taken, and this is none.",
    "BAD_USER_INPUT": "A variable or an argument does not fit its type.",
    "BAD_REPRESENTATION": "A gateway's representation of an entity has no type or key that this subgraph knows.",
    "BAD_VALUE": "A field's value does not fit its type in GraphQL: null where it is required, or out of range.",
    "INTERNAL": "A fault of the server's own; the message has the id under which it is logged.",
}
"""The codes of errors that arise here, and not in the graph."""

log = logging.getLogger(__name__)


def refuse(errors: list[GraphQLError], discretion: Discretion | None) -> Response:
    """Answer for what could not be executed."""
    teller = Teller(discretion)
    return Response({"errors": [format_error(error, teller, refused=True) for error in errors]}, "refused")


def respond(
    result: ExecutionResult,
    operation: Operation,
    stale: Stale | None,
    discretion: Discretion | None,
    *,
    cost: bool,
    cache: CachePolicy | None = None,
) -> Response:
    """Make the response of an execution; with an error in it it is not to be kept."""
    # Errors without a path are of the request: graphql-core found a variable at fault, and executed nothing.
    refused = result.data is None and all(error.path is None for error in result.errors or [])
    body: dict[str, Any] = {} if refused else {"data": result.data}
    if result.errors:
        teller = Teller(discretion)
        body["errors"] = [format_error(error, teller, refused=refused) for error in result.errors]
        tell_failures(body["errors"], operation)
    add_extensions(body, operation, None if refused else stale, cost=cost)
    tell_skipped(operation)
    return Response(body, "refused" if refused else "executed", cache=None if result.errors else cache)


def add_extensions(body: dict[str, Any], operation: Operation, stale: Stale | None, *, cost: bool) -> None:
    """Add to a response what it tells besides: what it cost, and how old the copies in it may be."""
    if cost:
        body["extensions"] = {"cost": operation.meter.cost()}
    if stale is not None:
        body.setdefault("extensions", {})["stale"] = stale.told()


def tell_failures(errors: Iterable[Mapping[str, Any]], operation: Operation) -> None:
    """Tell who observes the operation of what went wrong."""
    if (observation := operation.meter.observation) is not None:
        observation.failed(operation.meter, codes_of(errors))


def codes_of(errors: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the codes of formatted errors, each once."""
    return list(dict.fromkeys(error["extensions"]["code"] for error in errors))


def tell_skipped(operation: Operation) -> None:
    """Log which items of an operation fit no type, if there are any."""
    if operation.meter.skipped:
        log.warning("items that fit no type were skipped: %s", dict(operation.meter.skipped))


def format_error(error: GraphQLError, teller: Teller, *, refused: bool) -> Mapping[str, Any]:
    """Format an error for the client, with its code; what it is not to know it finds an id for."""
    original = error.original_error
    if isinstance(original, TypeError) and str(original).startswith(NULL_REFUSED):
        field = str(original).removeprefix(NULL_REFUSED).rstrip(".")
        original = ItemError(
            f"{field} is declared with `!`, and the table has nothing for it here: mend the item, or declare the "
            "field nullable"
        )
        error = GraphQLError(str(original), error.nodes, path=error.path, original_error=original)
    if isinstance(original, ValueError) and str(original).startswith(COUNT_REFUSED):
        told = "expected initialCount of @stream to be 0 or more, got less: leave it out, or send another"
        error = GraphQLError(told, error.nodes, path=error.path, extensions={"code": "BAD_USER_INPUT"})
        original = None
    message = None if isinstance(original, GraphQLError | None) else teller.withheld(original, error.path)
    if message is None:
        code = "BAD_USER_INPUT" if refused or error.path is None else "BAD_VALUE"
        error.extensions = {"code": code} | (error.extensions or {})
        return error.formatted
    extensions = original.extensions if isinstance(original, GraphError) else {"code": "INTERNAL"}
    return GraphQLError(message, error.nodes, path=error.path, extensions=extensions).formatted
