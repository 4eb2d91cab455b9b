"""What idle subscribers cost the transports, memory and CPU, and how long an event takes to reach all of them.

The API behind them does nothing but hand the same event to everybody: what remains is the server's own part.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, cast

import uvloop

from benchmarks.client import fire
from benchmarks.front import HOST
from benchmarks.servers import PYTHON, Server, serving
from resolvers.operation import Events, Request, Response
from server.app import build_app
from server.process import serve
from server.settings import Settings

SUBSCRIPTION = json.dumps({"query": "subscription { tick }"})
TICK = json.dumps({"query": "mutation { tick }"}).encode()
POST = "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
HEADS = ("subscribers", "kB each", "idle CPU %", "fan-out ms", "CPU ms of it")
SERVER = Server("ticking", "ticking", (PYTHON, "-m", "benchmarks.subscribers", "--serve", "{port}"))


class Ticking:
    """An API whose mutation sends an event to all subscribers."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[int]] = set()
        self._count = 0

    async def ready(self) -> None:
        """Nothing to wait for."""

    async def execute(self, request: Request) -> Response:
        """Send the event."""
        self._count += 1
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            each.set_result(self._count)
        return Response({"data": {"tick": len(waiting)}}, "executed")

    async def open(self, request: Request) -> Response | Events:
        """Subscribe, or send the event."""
        return self._follow() if request.query.startswith("subscription") else await self.execute(request)

    async def _follow(self) -> AsyncGenerator[dict[str, Any], None]:
        while True:
            ticked: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            self._waiting.add(ticked)
            yield {"data": {"tick": {"number": await ticked, "node": {"id": "UGFsbGV0OkIwMjEwMDI", "origin": "BR"}}}}


class Subscriber(asyncio.Protocol):
    """One client, with a connection of its own; counts the events that come."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Subscribe."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self.greeting())

    def greeting(self) -> bytes:
        """Give what is sent first."""
        head = f"{POST}accept: text/event-stream\r\ncontent-length: {len(SUBSCRIPTION)}\r\n\r\n"
        return (head + SUBSCRIPTION).encode()

    def data_received(self, data: bytes) -> None:
        """Count."""
        self._crowd.opened(data.count(b"HTTP/1.1 200"))
        self._crowd.told(data.count(b'"tick":{'))


class SocketSubscriber(Subscriber):
    """One over a WebSocket."""

    def greeting(self) -> bytes:
        """Ask for the socket, and say what is to be said on it without waiting for the answers."""
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            "GET /graphql HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            f"sec-websocket-version: 13\r\nsec-websocket-key: {key}\r\n"
            "sec-websocket-protocol: graphql-transport-ws\r\n\r\n"
        )
        return head.encode()

    def data_received(self, data: bytes) -> None:
        """Count, and answer pings."""
        if data.startswith(b"HTTP/1.1 101"):
            self._transport.write(_frame(1, b'{"type":"connection_init"}'))
            message = b'{"id":"1","type":"subscribe","payload":%b}' % SUBSCRIPTION.encode()
            self._transport.write(_frame(1, message))
        elif data.startswith(b"\x89"):
            self._transport.write(_frame(10, data[2 : 2 + data[1]]))
        self._crowd.opened(data.count(b"connection_ack"))
        self._crowd.told(data.count(b'"tick":{'))


def _frame(opcode: int, payload: bytes) -> bytes:
    """Make a frame of at most 125 bytes, masked by zeros."""
    return bytes((0x80 | opcode, 0x80 | len(payload), 0, 0, 0, 0)) + payload


class Crowd:
    """All clients."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.all_open = asyncio.Event()
        self._open = self._events = 0
        self._all_told = asyncio.Event()

    def opened(self, subscriptions: int) -> None:
        """Count subscriptions that the server has taken."""
        self._open += subscriptions
        if self._open >= self.size:
            self.all_open.set()

    def told(self, events: int) -> None:
        """Count events that one of them got."""
        self._events += events
        if self._events >= self.size:
            self._all_told.set()

    async def all_told(self) -> float:
        """Wait until each has got one, and give the time of that."""
        await self._all_told.wait()
        at = time.perf_counter()
        self._events = 0
        self._all_told.clear()
        return at


@dataclass(frozen=True, slots=True)
class Found:
    """What a crowd of subscribers costs."""

    kb_each: float
    idle_cpu_percent: float
    fan_out_ms: float
    fan_out_cpu_ms: float


async def measure(kind: type[Subscriber], size: int, idle_secs: float, rounds: int) -> Found:
    """Open so many subscriptions on a server of their own, wait, and send events to all."""
    async with serving(SERVER, "") as server:
        await fire(server.port, _post(TICK), 1, 0.5)
        before = server.memory_mb()
        crowd, loop = Crowd(size), asyncio.get_running_loop()
        for _ in range(size):
            await loop.create_connection(lambda: kind(crowd), HOST, server.port)
        await crowd.all_open.wait()
        await asyncio.sleep(1)
        kb_each = (server.memory_mb() - before) * 1000 / size
        began = server.cpu_secs()
        await asyncio.sleep(idle_secs)
        idle = (server.cpu_secs() - began) / idle_secs
        began = server.cpu_secs()
        times = []
        for _ in range(rounds):
            sent = time.perf_counter()
            await fire(server.port, _post(TICK), 1, 0)
            times.append(await crowd.all_told() - sent)
        spent = (server.cpu_secs() - began) / rounds
        return Found(kb_each, idle * 100, statistics.median(times) * 1000, spent * 1000)


def _post(body: bytes) -> bytes:
    return f"{POST}content-length: {len(body)}\r\n\r\n".encode() + body


def main() -> int:
    """Measure both transports, or serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000], help="numbers of subscribers")
    parser.add_argument("--idle", type=float, default=60, help="seconds without an event")
    parser.add_argument("--rounds", type=int, default=11, help="events sent to all")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        settings = Settings(port=options.serve, log_level="warning")
        return serve(build_app(Ticking(), settings), settings)
    print("| | " + " | ".join(HEADS) + " |\n" + "|---" * (len(HEADS) + 1) + "|")
    for size in options.sizes:
        for name, kind in (("WebSocket", SocketSubscriber), ("SSE", Subscriber)):
            found = uvloop.run(measure(kind, size, options.idle, options.rounds))
            row = [f"{found.kb_each:.1f}", f"{found.idle_cpu_percent:.1f}"]
            row += [f"{found.fan_out_ms:.0f}", f"{found.fan_out_cpu_ms:.0f}"]
            print(f"| {name} | {size} | " + " | ".join(row) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
