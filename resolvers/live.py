"""`@live` on a query: its answer is given again whenever a change would make it another one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Any

import orjson
import strawberry
from graphql import (
    ASTValidationRule,
    DirectiveNode,
    GraphQLError,
    GraphQLSchema,
    Node,
    OperationDefinitionNode,
    Visitor,
    visit,
)
from graphql.execution.values import VariableValues, get_directive_values
from graphql.language import DirectiveLocation

from graph.errors import StreamError
from graph.streams.hub import Hub, Subscription
from graph.streams.readset import ReadSet
from resolvers.operation import Events, Response
from resolvers.plan.document import INCREMENTAL, LIVE

THROTTLE_MILLISECONDS = 100
"""So long nothing may have changed before a query is executed again."""
MOST_MILLISECONDS = 60_000
MOST_THROTTLES = 10
"""So many times the throttle it waits at most, where changes do not cease."""

SETTLE_SECS = 1.0
"""When a global secondary index is read once more: by then it has caught up with its table."""
RETRY_SECS, MOST_RETRY_SECS = 1.0, 30.0
"""How soon a query is executed again of which DynamoDB left a part unanswered; each time twice as long."""

MOST_AT_ONCE = 16
"""So many live queries of a process are executed at once: what concerns a thousand does not stop all others."""

Execute = Callable[[ReadSet], Awaitable[Response]]
"""Executes the query, and tells what it reads."""


# --- the directive ------------------------------------------------------------------------------------------------


@strawberry.directive(
    locations=[DirectiveLocation.QUERY],
    name=LIVE,
    description=(
        "Give the answer again whenever it has become another one, over Server-Sent Events or a WebSocket. `throttle`, "
        "in milliseconds, is how long nothing may have changed before that."
    ),
)
def live_directive(
    is_live: Annotated[bool, strawberry.argument(name="if")] = True, throttle: int = THROTTLE_MILLISECONDS
) -> None:
    """Stand for the directive: what it means is decided by who executes the query."""


def is_live(definition: OperationDefinitionNode) -> bool:
    """Say whether an operation says @live."""
    return any(directive.name.value == LIVE for directive in definition.directives or ())


def throttle_of(schema: GraphQLSchema, definition: OperationDefinitionNode, variables: VariableValues) -> float | None:
    """Read in seconds how long nothing may have changed, None for a query that is not live.

    Raises: GraphQLError when that is out of range, or a variable does not fit.
    """
    directive = schema.get_directive(LIVE)
    assert directive is not None
    values = get_directive_values(directive, definition, variables)
    if not values or not values["if"]:
        return None
    throttle: int = values["throttle"]
    if 0 <= throttle <= MOST_MILLISECONDS:
        return throttle / 1000
    raise GraphQLError(
        f"@live(throttle: {throttle}) is out of range: expected 0 to {MOST_MILLISECONDS} milliseconds",
        definition,
        extensions={"code": "BAD_USER_INPUT"},
    )


class LiveInOnePiece(ASTValidationRule):
    """Refuses @live together with @defer and @stream: what is given again is the answer as a whole."""

    def enter_operation_definition(self, node: OperationDefinitionNode, *_: Any) -> None:
        """Look through an operation and its fragments."""
        if not is_live(node):
            return
        for part in (node, *self.context.get_recursively_referenced_fragments(node)):
            for directive in _incremental(part):
                name = directive.name.value
                self.report_error(
                    GraphQLError(
                        f"@{name} cannot be part of a @live query, whose answer is given again as a whole: leave out "
                        f"@{name}, or @live",
                        directive,
                    )
                )


def _incremental(part: Node) -> list[DirectiveNode]:
    found: list[DirectiveNode] = []

    class Search(Visitor):
        def enter_directive(self, node: DirectiveNode, *_: Any) -> None:
            if node.name.value in INCREMENTAL:
                found.append(node)

    visit(part, Search())
    return found


# --- the query that goes on ---------------------------------------------------------------------------------------


class LiveQueries:
    """The live queries of one process."""

    def __init__(self, hub: Hub | None) -> None:
        self._hub = hub
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def open(self, execute: Execute, throttle_secs: float) -> Response | Events:
        """Execute a query, and have it go on unless it is refused.

        Raises: GraphQLError where changes are not followed.
        """
        if self._hub is None:
            error = StreamError(
                "a live query waits for the tables' changes, and this server does not follow them: expected one that "
                "reads their streams. Leave out @live to ask once"
            )
            raise GraphQLError(str(error), original_error=error)
        try:
            changes = await self._hub.follow(())
        except StreamError as error:
            raise GraphQLError(str(error), original_error=error) from None
        query = LiveQuery(self._hub, changes, execute, throttle_secs, self._turns)
        try:
            response = await query.begin()
        except BaseException:
            await query.aclose()
            raise
        if response.outcome != "executed":
            await query.aclose()
            return response
        return query


class LiveQuery:
    """The answers of one query, each when there is one and another than the last.

    Nothing runs between two answers: who takes an answer late finds the newest one, and what has changed meanwhile
    costs one execution. Size: the read set, and 16 bytes of the last answer.
    """

    def __init__(
        self, hub: Hub, changes: Subscription, execute: Execute, throttle_secs: float, turns: asyncio.Semaphore
    ) -> None:
        self._hub = hub
        self._changes = changes
        self._execute = execute
        self._throttle_secs = throttle_secs
        self._turns = turns
        self._reads = ReadSet(hub.model, changes.join)
        self._executing: asyncio.Task[Response] | None = None
        self._first: dict[str, Any] | None = None
        self._given = b""
        self._again: float | None = None
        """When to execute though nothing has changed, on the event loop's clock."""
        self._has_changed = True
        """Whether there is something that no execution has seen; to whoever begins all is new."""
        self._failures = 0
        self._is_closed = False

    async def begin(self) -> Response:
        """Execute the query for the first time."""
        response = await self._read()
        self._first = response.body
        return response

    def __aiter__(self) -> LiveQuery:
        return self

    async def __anext__(self) -> dict[str, Any]:
        body, self._first = self._first, None
        while body is None or not self._is_news(body):
            # Answers are large, and the wait may be long.
            body = None
            if not self._has_changed:
                await self._wait()
            body = (await self._read()).body
        return body

    async def aclose(self) -> None:
        """End it, and the execution that is under way."""
        self._is_closed = True
        self._changes.close()
        if self._executing is not None:
            self._executing.cancel()
            await asyncio.wait([self._executing])

    def _is_news(self, body: dict[str, Any]) -> bool:
        content = orjson.dumps([body.get("data"), body.get("errors")])
        given, self._given = self._given, hashlib.blake2b(content, digest_size=16).digest()
        return given != self._given

    # --- waiting ---

    async def _wait(self) -> None:
        """Wait until something has changed, and until changes cease, or until it is time without any change."""
        try:
            async with asyncio.timeout_at(self._again):
                await self._change()
        except TimeoutError:
            return
        self._has_changed = True
        now = asyncio.get_running_loop().time
        latest = now() + MOST_THROTTLES * self._throttle_secs
        with suppress(TimeoutError):
            while True:
                async with asyncio.timeout_at(min(now() + self._throttle_secs, latest)):
                    await self._change()

    async def _change(self) -> None:
        """Wait for a change that concerns what was read.

        Raises: StopAsyncIteration when no more will come; StreamError when none can.
        """
        try:
            while not self._reads.concerns(await anext(self._changes)):
                pass
        except StreamError:
            # Too many to keep, or gone past: what they were no longer matters, for everything is read again.
            self._changes = await self._hub.follow(self._reads.topics)

    # --- reading ---

    async def _read(self) -> Response:
        """Execute the query, and wait from now on for what concerns this execution."""
        if self._is_closed:
            raise StopAsyncIteration
        reads = ReadSet(self._hub.model, self._changes.join)
        self._executing = asyncio.ensure_future(self._take_turn(reads))
        try:
            response = await self._executing
        except asyncio.CancelledError:
            if self._is_closed:
                raise StopAsyncIteration from None
            raise
        finally:
            self._executing = None
        self._reads = reads
        self._changes.retopic(reads.topics)
        self._again, self._has_changed = self._next(reads), False
        return response

    async def _take_turn(self, reads: ReadSet) -> Response:
        async with self._turns:
            return await self._execute(reads)

    def _next(self, reads: ReadSet) -> float | None:
        """Say when the query is to be executed without a change."""
        now = asyncio.get_running_loop().time()
        if reads.has_failed:
            self._failures += 1
            return now + min(RETRY_SECS * 2.0 ** (self._failures - 1), MOST_RETRY_SECS)
        self._failures = 0
        return now + SETTLE_SECS if reads.is_behind and self._has_changed else None
