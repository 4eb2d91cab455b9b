"""A memoizing front for the engine: what was answered once is answered from memory, so that a server's own cost shows.

It answers DynamoDB's API for reads only, counts requests and their capacity units, and can add a latency to each.
"""

from __future__ import annotations

import argparse
import asyncio
import urllib.error
import urllib.request
import zlib
from dataclasses import dataclass
from typing import cast

import httptools
import orjson
import uvloop

HOST = "127.0.0.1"
Key = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Remembered:
    """A whole answer as it goes over the connection, and the capacity units of its request."""

    data: bytes
    units: float


class Front:
    """What is remembered and counted, by all connections together."""

    def __init__(self, engine: str, latency_secs: float) -> None:
        self._engine = engine
        self.latency_secs = latency_secs
        self.requests = 0
        self.units = 0.0
        self.answers: dict[Key, Remembered] = {}

    def control(self, body: bytes) -> bytes:
        """Set the latency, if the body has one, and tell what was counted."""
        settings = orjson.loads(body)
        self.latency_secs = settings.get("latency_ms", self.latency_secs * 1000) / 1000
        return orjson.dumps({"requests": self.requests, "units": self.units})

    def fetch(self, key: Key) -> Remembered:
        """Ask the engine, which is slow and rare: once as the server asked, and once for the capacity units."""
        status, body = self._send(key)
        if status != 200:
            return Remembered(_written(status, body), 0.0)
        target, asked = key
        counted = orjson.dumps({**orjson.loads(asked), "ReturnConsumedCapacity": "TOTAL"})
        answer = orjson.loads(self._send((target, counted))[1])
        consumed = answer.get("ConsumedCapacity") or []
        tables = consumed if isinstance(consumed, list) else [consumed]
        self.answers[key] = found = Remembered(_written(status, body), sum(one["CapacityUnits"] for one in tables))
        return found

    def _send(self, key: Key) -> tuple[int, bytes]:
        target, body = key
        headers = {
            "content-type": "application/x-amz-json-1.0",
            "x-amz-target": target.decode(),
            "x-amz-date": "20220101T000000Z",
            # The engine wants one and does not check it.
            "authorization": "AWS4-HMAC-SHA256 Credential=local/20220101/eu-central-1/dynamodb/aws4_request, "
            "SignedHeaders=host, Signature=0",
        }
        request = urllib.request.Request(self._engine, body, headers)
        try:
            with urllib.request.urlopen(request) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


class Connection(asyncio.Protocol):
    """One connection of a server; httptools calls its `on_…` methods, and asyncio the others."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._target = b""
        self._parts: list[bytes] = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-amz-target":
            self._target = value

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        front = self._front
        body = b"".join(self._parts)
        if not self._target:
            self._transport.write(_written(200, front.control(body)))
            return
        key = (self._target, body)
        found = front.answers.get(key)
        if found is None:
            task = self._loop.create_task(self._ask(key))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._answer(found)

    async def _ask(self, key: Key) -> None:
        self._answer(await asyncio.to_thread(self._front.fetch, key))

    def _answer(self, found: Remembered) -> None:
        front = self._front
        front.requests += 1
        front.units += found.units
        if front.latency_secs:
            self._loop.call_later(front.latency_secs, self._say, found.data)
        else:
            self._say(found.data)

    def _say(self, data: bytes) -> None:
        # Whoever asked may have gone while the answer waited.
        if not self._transport.is_closing():
            self._transport.write(data)


def _written(status: int, body: bytes) -> bytes:
    return (
        f"HTTP/1.1 {status} OK\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-crc32: {zlib.crc32(body)}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    ).encode() + body


async def main() -> None:
    """Listen until the process is ended."""
    front = Front(OPTIONS.engine, OPTIONS.latency / 1000)
    server = await asyncio.get_running_loop().create_server(lambda: Connection(front), HOST, OPTIONS.port)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, metavar="URL")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--latency", type=float, default=0.0, metavar="MS")
    OPTIONS = parser.parse_args()
    uvloop.run(main())
