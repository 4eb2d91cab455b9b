"""GraphQL over WebSocket: the subprotocol graphql-transport-ws, with any number of operations on one socket.

Strawberry has a handler for it, which executes documents by itself: past our plans, loaders and error codes, with one
context for all operations of a socket, which a syntax error in one of them closes. So this is ours.

Source: https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import aclosing, suppress
from typing import Any, Final

import orjson
from starlette.types import Message, Receive, Scope, Send

from graph.errors import GraphError
from graph.identity import ANONYMOUS, Identity
from resolvers.operation import Events, Request, Response
from server import view
from server.admission import Admission
from server.endpoint import Api
from server.gate import Gate
from server.identity.authenticator import Authenticator
from server.identity.expiry import until_expiry
from server.identity.refusals import Unauthenticated
from server.logs import Exchange, enter
from server.settings import Settings
from server.view import Refusal
from server.watch import ShuttingDown, Streams

logger = logging.getLogger(__name__)

SUBPROTOCOL: Final = "graphql-transport-ws"
INIT_SECS = 10.0
"""How long a client may take to say connection_init."""
CLOSE_SECS = 2.0
"""How long a socket's end may wait for a client that reads nothing."""

INTERNAL_ERROR: Final = 1011
SERVICE_RESTART: Final = 1012
TRY_AGAIN_LATER: Final = 1013
FORBIDDEN: Final = 4403
"""After these codes clients connect again; after the last with new credentials, which after 4401 they do not."""


class Violation(Exception):
    """The client does what the protocol forbids, and the socket is closed with this code and reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Disconnected(Exception):
    """The client has closed the socket, or the network has."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class WebSocketEndpoint:
    """Opens the sockets to one API."""

    def __init__(
        self,
        api: Api,
        settings: Settings,
        streams: Streams,
        authenticator: Authenticator,
        gate: Gate,
        admission: Admission,
    ) -> None:
        self.api = api
        self.authenticator = authenticator
        self.gate = gate
        self.admission = admission
        self.streams = streams
        self.most_operations = settings.max_socket_operations
        self.cost = settings.cost

    async def __call__(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one WebSocket until it is closed; ASGI, but for the exchange that tells the log of it."""
        await receive()
        try:
            self.gate.origins.check_socket(exchange.headers)
            identity = await self.authenticator.greet(exchange.headers, scope)
        except Refusal as refusal:
            await _deny(refusal, exchange, send)
            return
        is_ours = SUBPROTOCOL in scope["subprotocols"]
        accepted = {"subprotocol": SUBPROTOCOL if is_ours else None, "headers": list(exchange.answer_headers)}
        await send({"type": "websocket.accept", **accepted})
        if is_ours:
            await Socket(self, identity, exchange, scope, receive, send).serve()
        else:
            # Accepted first, for only a socket can be closed with a code.
            await close(4406, f"Expected the subprotocol {SUBPROTOCOL}", exchange, send)

    async def open(self, request: Request) -> Response | Events:
        """Begin an operation when it is its turn. Raises: Refusal when there is none to be had."""
        if self.api.goes_on(request):
            return await self.api.open(request)
        if not self.admission.take():
            await self.admission.turn()
        try:
            return await self.api.open(request)
        finally:
            self.admission.leave()


async def _deny(refusal: Refusal, exchange: Exchange, send: Send) -> None:
    answer = refusal.answer()
    exchange.status = answer.status
    headers = [*answer.headers, *exchange.answer_headers]
    await send({"type": "websocket.http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": answer.body})


async def close(code: int, reason: str, exchange: Exchange, send: Send) -> None:
    """Close a socket, whether its client still reads or not."""
    exchange.status = code
    # A close frame has room for 123 bytes of reason. Source: RFC 6455, 5.5.
    reason = reason.encode()[:123].decode(errors="ignore")
    # Gone already, or nobody reads.
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(CLOSE_SECS):
            await send({"type": "websocket.close", "code": code, "reason": reason})


class Socket:
    """One WebSocket and the operations on it."""

    __slots__ = (
        "_endpoint",
        "_exchange",
        "_identity",
        "_is_acknowledged",
        "_operations",
        "_receive",
        "_scope",
        "_send",
        "_tasks",
        "_wants_cost",
    )

    def __init__(
        self,
        endpoint: WebSocketEndpoint,
        identity: Identity | None,
        exchange: Exchange,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        self._endpoint = endpoint
        self._identity = identity
        """Who opened it; None when that is yet to be said."""
        self._exchange = exchange
        self._scope = scope
        self._receive = receive
        self._send = send
        self._is_acknowledged = False
        self._wants_cost = view.wants_cost(exchange.headers, endpoint.cost)
        self._operations: dict[str, asyncio.Task[None]] = {}
        """By the client's id. It is free again as soon as the operation's last message is about to be sent."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Those of all operations, to the very end of each."""

    async def serve(self) -> None:
        """Take messages until the socket is closed, by whomever; then everything on it is cancelled."""
        code, reason = SERVICE_RESTART, "The server shuts down"
        try:
            await self._endpoint.streams.until_shutdown(self._converse())
        except Violation as violation:
            code, reason = violation.code, str(violation)
        except Disconnected as gone:
            self._exchange.status = gone.code
            return
        except (ShuttingDown, Unauthenticated) as ending:
            if isinstance(ending, Unauthenticated):
                code, reason = FORBIDDEN, "Forbidden"
            # Subscriptions end by themselves now; queries and mutations are let finish.
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        await close(code, reason, self._exchange, self._send)

    # What the client says

    async def _converse(self) -> None:
        try:
            async with asyncio.timeout(INIT_SECS):
                while not self._is_acknowledged:
                    await self._take(await self._next_message())
        except TimeoutError:
            raise Violation(4408, "Connection initialisation timeout") from None
        async with until_expiry(self._identity or ANONYMOUS):
            while True:
                await self._take(await self._next_message())

    async def _next_message(self) -> dict[str, Any]:
        frame: Message = await self._receive()
        if frame["type"] == "websocket.disconnect":
            raise Disconnected(frame.get("code") or 1005)
        text = frame.get("text")
        if text is None:
            raise Violation(4400, "Expected a text frame, got a binary one")
        try:
            message = view.load_json(text, "a message")
        except Refusal:
            raise Violation(4400, "Expected a message in JSON") from None
        if not isinstance(message, dict):
            raise Violation(4400, f"Expected a JSON object with a type, got {view.kind_of(message)}")
        return message

    async def _take(self, message: dict[str, Any]) -> None:
        match message.get("type"):
            case "connection_init":
                _optional_payload(message)
                if self._is_acknowledged:
                    raise Violation(4429, "Too many initialisation requests")
                await self._introduce(message.get("payload"))
                self._is_acknowledged = True
                await self._say({"type": "connection_ack"})
            case "ping":
                await self._say({"type": "pong", **_optional_payload(message)})
            case "pong":
                _optional_payload(message)
            case "subscribe":
                await self._subscribe(message)
            case "complete":
                if task := self._operations.pop(_id(message), None):
                    task.cancel()
            case kind:
                known = "connection_init, ping, pong, subscribe or complete"
                raise Violation(4400, f"Expected a message of type {known}, got {kind!r}")

    async def _introduce(self, payload: Any) -> None:
        """Make sure of who is there. Raises: Violation."""
        try:
            identity = await self._endpoint.authenticator.introduce(payload, self._identity)
        except Unauthenticated:
            raise Violation(FORBIDDEN, "Forbidden") from None
        except Refusal as refusal:
            raise Violation(TRY_AGAIN_LATER, str(refusal)) from None
        self._identity, self._exchange.subject = identity, identity.subject

    async def _subscribe(self, message: dict[str, Any]) -> None:
        if not self._is_acknowledged:
            raise Violation(4401, "Unauthorized")
        name, payload = _id(message), message.get("payload")
        if name in self._operations:
            raise Violation(4409, f"Subscriber for {name} already exists")
        if not isinstance(payload, dict):
            raise Violation(4400, f"Expected the payload to be an object, got {view.kind_of(payload)}")
        try:
            request = view.as_request(payload, cost=self._wants_cost)
        except Refusal as refusal:
            raise Violation(4400, str(refusal)) from None
        request = request._replace(identity=self._identity or ANONYMOUS)
        if len(self._operations) >= self._endpoint.most_operations:
            errors = view.too_many_operations(self._endpoint.most_operations).body()["errors"]
            await self._say({"id": name, "type": "error", "payload": errors})
            return
        try:
            self._endpoint.gate.count(request.identity, self._exchange, self._scope)
        except Refusal as refusal:
            await self._say({"id": name, "type": "error", "payload": refusal.body()["errors"]})
            return
        task = self._operations[name] = asyncio.create_task(self._operate(name, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # What it is answered

    async def _say(self, message: Mapping[str, Any]) -> None:
        """Send a message, once there is room for it: what a client does not read holds up what follows."""
        try:
            await self._send({"type": "websocket.send", "text": orjson.dumps(message).decode()})
        except OSError:
            raise Disconnected(1006) from None

    async def _operate(self, name: str, request: Request) -> None:
        """Run one operation to its end, and write its line in the log."""
        exchange = self._exchange.on_socket()
        exchange.operation, exchange.subject = request.operation_name, request.identity.subject
        enter(exchange)
        try:
            with suppress(Disconnected, ShuttingDown, Unauthenticated):
                errors = await self._errors_of(name, request, exchange)
                exchange.note({"errors": errors})
                exchange.status = "error" if errors else "complete"
                del self._operations[name]
                last = {"type": "error", "payload": errors} if errors else {"type": "complete"}
                await self._say({"id": name, **last})
        finally:
            exchange.log(self._scope)

    async def _errors_of(self, name: str, request: Request, exchange: Exchange) -> list[Any]:
        """Send what an operation brings, and give the errors that end it."""
        try:
            answer = await self._endpoint.open(request)
            if not isinstance(answer, Response):
                async with until_expiry(request.identity):
                    await self._endpoint.streams.until_shutdown(self._follow(name, answer, exchange))
            elif answer.outcome == "executed":
                await self._next(name, answer.body, exchange)
            else:
                return list(answer.body["errors"])
        except (Disconnected, ShuttingDown, Unauthenticated):
            raise
        except Refusal as refusal:
            return list(refusal.body()["errors"])
        except GraphError as error:
            return list(self._endpoint.gate.error_body(error)["errors"])
        except Exception:
            logger.exception("unexpected error")
            return list(view.internal_error(exchange.id).body()["errors"])
        return []

    async def _follow(self, name: str, events: Events, exchange: Exchange) -> None:
        exchange.goes_on()
        async with aclosing(events):
            async for body in events:
                await self._next(name, body, exchange)
                # Neither end of this need wait, and others are to have their turn.
                await asyncio.sleep(0)

    async def _next(self, name: str, body: Mapping[str, Any], exchange: Exchange) -> None:
        await self._say({"id": name, "type": "next", "payload": body})
        exchange.events = (exchange.events or 0) + 1
        exchange.note(body)


def _id(message: Mapping[str, Any]) -> str:
    name = message.get("id")
    if not isinstance(name, str) or not name:
        raise Violation(4400, "Expected the id of the operation to be a string that is not empty")
    return name


def _optional_payload(message: Mapping[str, Any]) -> dict[str, Any]:
    """Give the payload as a message that repeats it has it. Raises: Violation when it is no object."""
    payload = message.get("payload")
    if payload is not None and not isinstance(payload, dict):
        raise Violation(4400, f"Expected the payload to be an object, got {view.kind_of(payload)}")
    return {} if payload is None else {"payload": payload}
