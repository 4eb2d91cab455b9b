"""The GraphQL endpoint: reads an HTTP request from the network, has the API execute it and sends the answer.

Every request comes this way: what is done for each of them is counted in microseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any, Protocol, TypeVar, cast

from starlette.types import Receive, Scope, Send

from graph.errors import GraphError
from graph.identity import ANONYMOUS, Identity
from graph.tasks import together
from resolvers.operation import Events, Request, Response
from server import multipart, sse, view
from server.admission import Admission
from server.caching import cached
from server.compression import LEAST_BYTES, accepts_gzip, compressed
from server.gate import Gate
from server.identity.authenticator import Authenticator
from server.identity.expiry import until_expiry
from server.identity.refusals import Unauthenticated
from server.logs import Exchange
from server.negotiation import HTML, JSON, wanted
from server.settings import Settings
from server.view import IDEMPOTENCY_HEADER, Answer, Head, Refusal
from server.watch import ClientGone, ShuttingDown, Streams, Watch

T = TypeVar("T")

KEEP_ALIVE_SECS = 15.0
"""How often a stream of events is heard from at least."""


class Api(Protocol):
    """What the server needs of the GraphQL API."""

    async def execute(self, request: Request) -> Response:
        """Run one operation."""

    async def open(self, request: Request) -> Response | Events:
        """Run one operation; one that goes on gives its events."""

    def goes_on(self, request: Request) -> bool:
        """Say whether `open` would give events: what waits for changes takes no turn from what is executed."""

    async def ready(self) -> None:
        """Read from the table. Raises GraphError when it cannot be read."""


class GraphQLEndpoint:
    """Answers the requests to one API; a browser may get `page` instead."""

    def __init__(
        self,
        api: Api,
        settings: Settings,
        page: Answer | None,
        streams: Streams,
        authenticator: Authenticator,
        gate: Gate,
        admission: Admission,
    ) -> None:
        self._api = api
        self._authenticator = authenticator
        self._gate = gate
        self._admission = admission
        self._streams = streams
        self._page = page
        self._watch = Watch()
        self._max_body_bytes = settings.max_body_bytes
        self._cost = settings.cost
        # Who may see the pages may see what they ask for.
        self._traces = settings.graphiql and settings.cost != "never"
        self._compress = settings.compress
        self._max_batch = settings.max_batch

    async def __call__(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; ASGI, but for the exchange that tells the log of it."""
        head = Head(scope["method"], exchange.headers, scope["query_string"])
        try:
            answer = self._gate.preflight(head) or await self._answer(head, exchange, scope, receive, send)
        except Refusal as refusal:
            exchange.codes.append(refusal.code)
            answer = refusal.answer(view.json_type(head))
            # The log is told of an overload as a whole.
            exchange.is_logged = refusal.code != "OVERLOADED"
        except ClientGone:
            return
        if answer is not None:
            await deliver(answer, exchange, send)

    async def _answer(
        self, head: Head, exchange: Exchange, scope: Scope, receive: Receive, send: Send
    ) -> Answer | None:
        """Answer one HTTP request; None when the answer has been sent, in parts.

        Raises: Refusal when it is not a GraphQL request, ClientGone.
        """
        view.check_head(head, self._max_body_bytes)
        form = wanted(head.headers.get(b"accept", b""), self._page is not None and head.method == "GET")
        if form.media_type == HTML and self._page is not None:
            return self._page
        if head.method == "GET":
            self._gate.origins.check_get(head)
        if form.media_type is None and not form.incremental and not form.events:
            raise view.not_acceptable(head.text(b"accept"))
        # Before the body is read, and again when it has been: that may take long, and takes no turn.
        if self._admission.is_full:
            self._admission.check()
        identity = await self._authenticator.identify(exchange.headers, scope)
        exchange.subject = identity.subject
        body = await _read_body(receive, self._max_body_bytes) if head.method == "POST" else b""
        if view.is_batch(body):
            return await self._compressed(await self._batch(head, body, identity, exchange, scope, receive), head)
        request = view.read_request(head, body, self._cost, incremental=form.incremental, traces=self._traces)
        if identity is not ANONYMOUS:
            request = request._replace(identity=identity)
        exchange.operation = request.operation_name
        exchange.answer_headers += self._gate.count(request.identity, exchange, scope)
        run = self._api.open(request) if form.events else self._api.execute(request)
        if not (form.events and self._api.goes_on(request)):
            run = self._in_turn(run)
        response = await self._watch.unless_client_goes(run, receive)
        if not isinstance(response, Response):
            await self._watch.unless_client_goes(self._send_events(response, identity, exchange, send), receive)
            return None
        exchange.note(response.body)
        if form.prefers_events and response.outcome != "mutation_over_get":
            return sse.one_event(response.body)
        if response.rest is not None or (form.media_type is None and form.incremental):
            await self._watch.unless_client_goes(_send_parts(response, exchange, send), receive)
            return None
        answer = view.write_response(response, form.media_type or JSON)
        if head.method == "GET":
            # What the operation cost is told to those alone who ask for it by a header.
            is_plain = not request.trace and (not request.cost or self._cost == "always")
            answer = cached(answer, response, request, head, is_plain=is_plain)
        return await self._compressed(answer, head)

    async def _in_turn(self, run: Coroutine[Any, Any, T]) -> T:
        """Execute when it is its turn. Raises: Refusal when there is none to be had."""
        if not self._admission.take():
            try:
                await self._admission.turn()
            except BaseException:
                run.close()
                raise
        try:
            return await run
        finally:
            self._admission.leave()

    async def _batch(
        self, head: Head, body: bytes, identity: Identity, exchange: Exchange, scope: Scope, receive: Receive
    ) -> Answer:
        """Answer an array of operations with an array: each is executed, counted and refused by itself.

        Raises: Refusal for the array as a whole, ClientGone.
        """
        requests = view.read_batch(head, body, self._cost, self._max_batch)
        if IDEMPOTENCY_HEADER in head.headers:
            raise view.ambiguous_key()

        headers = exchange.answer_headers

        async def answer(request: Request | Refusal) -> dict[str, Any]:
            if isinstance(request, Refusal):
                return request.body()
            request = request._replace(identity=identity)
            try:
                exchange.answer_headers = (*headers, *self._gate.count(identity, exchange, scope))
                return (await self._in_turn(self._api.execute(request))).body
            except Refusal as refusal:
                return refusal.body()

        exchange.operation = ",".join(
            [request.operation_name or "" for request in requests if isinstance(request, Request)]
        )
        work = together([answer(request) for request in requests])
        return view.write_batch(await self._watch.unless_client_goes(work, receive))

    async def _compressed(self, answer: Answer, head: Head) -> Answer:
        is_large = len(answer.body) > LEAST_BYTES and self._compress
        if is_large and accepts_gzip(head.headers.get(b"accept-encoding", b"")):
            return await compressed(answer)
        return answer

    async def _send_events(self, events: Events, identity: Identity, exchange: Exchange, send: Send) -> None:
        """Send each event as it comes; whatever happens the operation is ended."""
        last = sse.COMPLETE
        try:
            async with until_expiry(identity):
                await self._streams.until_shutdown(_follow(events, exchange, send))
        except GraphError as error:
            last = sse.last_event(self._gate.error_body(error))
        except Unauthenticated as expired:
            if exchange.status is None:
                raise
            last = sse.last_event(expired.body())
        except ShuttingDown:
            if exchange.status is None:
                raise view.shutting_down() from None
            # Without a word of completion, for then clients connect again.
            last = b""
        exchange.last_words = None
        await send({"type": "http.response.body", "body": last})


async def _read_body(receive: Receive, limit_bytes: int) -> bytes:
    """Collect the body. Raises: Refusal as soon as it passes the limit, ClientGone."""
    chunks: list[bytes] = []
    size_bytes = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunks.append(message.get("body", b""))
        size_bytes += len(chunks[-1])
        if size_bytes > limit_bytes:
            raise view.body_too_large(limit_bytes, size_bytes)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def deliver(answer: Answer, exchange: Exchange, send: Send) -> None:
    """Send a whole answer."""
    exchange.status = answer.status
    headers = [*answer.headers, *exchange.answer_headers]
    # None has a body; with 304 it would have to be that of the body which is not sent. Source: RFC 9110, 8.6.
    if answer.status not in (204, 304):
        headers.append((b"content-length", b"%d" % len(answer.body)))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def _send_bytes(chunk: bytes, send: Send) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def break_off(refusal: Refusal, exchange: Exchange, send: Send) -> None:
    """End an answer of which more was to come."""
    if exchange.last_words is not None:
        last, exchange.last_words = exchange.last_words(refusal.body()), None
        await send({"type": "http.response.body", "body": last})


# Events


async def _follow(events: Events, exchange: Exchange, send: Send) -> None:
    async with aclosing(events):
        headers = [*sse.HEADERS, *exchange.answer_headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        exchange.status, exchange.last_words = 200, sse.last_event
        exchange.goes_on()
        # So that proxies pass the headers on, and the client knows that the stream is open.
        await _send_bytes(sse.COMMENT, send)
        async with _kept_alive(send):
            async for body in events:
                await _send_bytes(sse.event(body), send)
                exchange.events = (exchange.events or 0) + 1
                exchange.note(body)
                # Neither end of this need wait, and others are to have their turn.
                await asyncio.sleep(0)


@asynccontextmanager
async def _kept_alive(send: Send) -> AsyncIterator[None]:
    """Have the client, and all proxies on the way to it, hear from the stream whatever happens."""

    async def comment() -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_SECS)
            await _send_bytes(sse.COMMENT, send)

    commenting = asyncio.create_task(comment())
    try:
        yield
    finally:
        commenting.cancel()


# Incremental delivery


async def _send_parts(response: Response, exchange: Exchange, send: Send) -> None:
    """Send each payload as it comes; whatever happens the rest of them is closed."""
    exchange.status, exchange.last_words = 200, multipart.last_part
    async with AsyncExitStack() as stack:
        if response.rest is not None:
            await stack.enter_async_context(aclosing(cast("Any", response.rest)))
        headers = [*multipart.HEADERS, *exchange.answer_headers]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        first = {**response.body, "hasNext": response.rest is not None}
        await _send_bytes(multipart.BEGINNING + multipart.part(first), send)
        if response.rest is not None:
            async for payload in response.rest:
                await _send_bytes(multipart.part(payload), send)
                exchange.note(payload)
    exchange.last_words = None
    await send({"type": "http.response.body", "body": multipart.END})
