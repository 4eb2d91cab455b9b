"""A client that keeps so many requests under way: raw sockets, so that it costs little beside the servers."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import cast

import httptools
import orjson

from benchmarks.front import HOST

TIMEOUT_SECS = 120.0


def request_of(document: str, operation: str) -> bytes:
    """Write a GraphQL request as it goes over a connection."""
    body = orjson.dumps({"query": document, "operationName": operation})
    return (
        f"POST /graphql HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\naccept: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body


@dataclass(slots=True)
class Burst:
    """What came of a burst of requests."""

    secs: float = 0.0
    latencies_secs: list[float] = field(default_factory=list)
    body: bytes = b""


class Lane(asyncio.Protocol):
    """One connection: sends the next request when the last one is answered, until time is up."""

    def __init__(self, request: bytes, deadline: float, burst: Burst) -> None:
        self._request, self._deadline, self._burst = request, deadline, burst
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def start(self) -> None:
        """Send the next request."""
        self._parts = []
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(exc or ConnectionError("the server closed the connection"))

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        now = time.perf_counter()
        burst, status, body = self._burst, self._parser.get_status_code(), b"".join(self._parts)
        burst.latencies_secs.append(now - self._sent)
        burst.body = burst.body or body
        # An error under load would be quick: a server has to give the same answer each time.
        if status != 200 or body != burst.body:
            self.done.set_exception(RuntimeError(f"another answer under load: {status}: {body[:500]!r}"))
        elif now >= self._deadline:
            self.done.set_result(None)
        else:
            self.start()


async def fire(port: int, request: bytes, lanes: int, secs: float) -> Burst:
    """Send a request again and again on so many connections, for so long, and at least once on each.

    Raises: RuntimeError for an answer that is not 200 or not the same, ConnectionError, TimeoutError.
    """
    burst = Burst()
    loop = asyncio.get_running_loop()
    deadline = time.perf_counter() + secs
    opened = [await loop.create_connection(lambda: Lane(request, deadline, burst), HOST, port) for _ in range(lanes)]
    started = time.perf_counter()
    try:
        for _, lane in opened:
            lane.start()
        async with asyncio.timeout(secs + TIMEOUT_SECS):
            await asyncio.gather(*(lane.done for _, lane in opened))
    finally:
        for transport, _ in opened:
            transport.close()
    burst.secs = time.perf_counter() - started
    return burst
