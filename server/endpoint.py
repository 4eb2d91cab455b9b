"""The GraphQL endpoint: reads an HTTP request from the network, has the API execute it and sends the answer.

Every request comes this way: what is done for each of them is counted in microseconds.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing
from typing import Any, Protocol, cast

from starlette.types import Receive, Scope, Send

from resolvers.operation import Request, Response
from server import multipart, view
from server.compression import LEAST_BYTES, accepts_gzip, compressed
from server.logs import Exchange
from server.settings import Settings
from server.view import Answer, Head, Refusal
from server.watch import ClientGone, Watch


class Api(Protocol):
    """What the server needs of the GraphQL API."""

    async def execute(self, request: Request) -> Response:
        """Run one operation."""

    async def ready(self) -> None:
        """Read from the table. Raises GraphError when it cannot be read."""


class GraphQLEndpoint:
    """Answers the requests to one API; a browser may get `page` instead."""

    def __init__(self, api: Api, settings: Settings, page: Answer | None) -> None:
        self._api = api
        self._page = page
        self._watch = Watch()
        self._max_body_bytes = settings.max_body_bytes
        self._cost = settings.cost
        self._compress = settings.compress

    async def __call__(self, exchange: Exchange, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request; ASGI, but for the exchange that tells the log of it."""
        head = Head(scope["method"], exchange.headers, scope["query_string"])
        try:
            answer = await self._answer(head, exchange, receive, send)
        except Refusal as refusal:
            answer = refusal.answer(view.json_type(head))
        except ClientGone:
            return
        if answer is not None:
            await deliver(answer, exchange, send)

    async def _answer(self, head: Head, exchange: Exchange, receive: Receive, send: Send) -> Answer | None:
        """Answer one HTTP request; None when the answer has been sent, in parts.

        Raises: Refusal when it is not a GraphQL request, ClientGone.
        """
        view.check_head(head, self._max_body_bytes)
        form = view.wanted(head.headers.get(b"accept", b""), self._page is not None and head.method == "GET")
        if form.media_type == view.HTML and self._page is not None:
            return self._page
        if form.media_type is None and not form.incremental:
            raise view.not_acceptable(head.text(b"accept"))
        body = await _read_body(receive, self._max_body_bytes) if head.method == "POST" else b""
        request = view.read_request(head, body, self._cost, incremental=form.incremental)
        exchange.operation = request.operation_name
        response = await self._watch.unless_client_goes(self._api.execute(request), receive)
        if extensions := response.body.get("extensions"):
            exchange.cost = extensions.get("cost")
        if response.rest is not None or form.media_type is None:
            await self._watch.unless_client_goes(_send_parts(response, exchange, send), receive)
            return None
        answer = view.write_response(response, form.media_type)
        is_large = len(answer.body) > LEAST_BYTES and self._compress
        if is_large and accepts_gzip(head.headers.get(b"accept-encoding", b"")):
            return await compressed(answer)
        return answer


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
            raise view.body_too_large(limit_bytes)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def deliver(answer: Answer, exchange: Exchange, send: Send) -> None:
    """Send a whole answer."""
    exchange.status = answer.status
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length, (b"x-request-id", exchange.id.encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


# Incremental delivery


async def _send_parts(response: Response, exchange: Exchange, send: Send) -> None:
    """Send each payload as it comes; whatever happens the rest of them is closed."""
    exchange.status, exchange.is_streaming = 200, True
    async with AsyncExitStack() as stack:
        if response.rest is not None:
            await stack.enter_async_context(aclosing(cast("Any", response.rest)))
        headers = [*multipart.HEADERS, (b"x-request-id", exchange.id.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        first = {**response.body, "hasNext": response.rest is not None}
        await _send_bytes(multipart.BEGINNING + multipart.part(first), send)
        if response.rest is not None:
            async for payload in response.rest:
                await _send_bytes(multipart.part(payload), send)
                if extensions := payload.get("extensions"):
                    exchange.cost = extensions.get("cost")
    await _end_parts(b"", exchange, send)


async def break_off(refusal: Refusal, exchange: Exchange, send: Send) -> None:
    """End an answer whose further payloads will not come."""
    await _end_parts(multipart.part({**refusal.body(), "hasNext": False}), exchange, send)


async def _end_parts(last: bytes, exchange: Exchange, send: Send) -> None:
    exchange.is_streaming = False
    await send({"type": "http.response.body", "body": last + multipart.END})


async def _send_bytes(chunk: bytes, send: Send) -> None:
    await send({"type": "http.response.body", "body": chunk, "more_body": True})
