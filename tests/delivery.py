"""Delivery under fire: subscribers of several servers, a writer, and the server that reads the stream killed meanwhile.

    python -m tests.delivery --seconds 60 --rate 200

Every subscriber holds a WebSocket to one of the servers, and comes back to another one with its last cursor when that
dies. What was acknowledged must reach each of them once, the writes of an item in their order.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from graph.boto import BotoTransport
from graph.client import Client
from graph.loaders import Graph
from graph.requests import PutItems
from graph.tables import create_table
from resolvers.sdl import compile_model
from server.demo import turn_on_stream
from server.engine import Engine
from tests.conftest import BANANAS
from tests.run_ui import free_port
from tests.storm import CREDENTIALS, TABLEGRAPH
from tests.valkey_server import Server

SERVERS = 3
ITEMS = 40
WRITERS = 20
"""Each writes items of its own, one after the other."""
SUBSCRIPTION = (
    "subscription($after: String) { containerChanged(after: $after) { kind cursor node { number operator } } }"
)
WRITE = """mutation($number: ID!, $operator: String!) {
  updateContainer(key: { number: $number }, set: { operator: $operator }) { container { number } } }"""
PASSING = {"STREAM_UNAVAILABLE", "STORE_UNAVAILABLE", "SHUTTING_DOWN"}
PATIENCE_SECS = 60.0


@dataclass
class Process:
    """A server that is started again after it was killed."""

    command: list[str | Path]
    port: int = field(default_factory=free_port)
    running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        command = [*self.command, "--port", str(self.port)]
        self.running = subprocess.Popen(command, env={**os.environ, **CREDENTIALS}, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        """Kill it with -9."""
        if self.running is not None:
            self.running.kill()
            self.running.wait()

    @property
    def place(self) -> str:
        """Give its host and port."""
        return f"127.0.0.1:{self.port}"

    async def figures(self, http: httpx.AsyncClient) -> dict[str, Any]:
        """Tell how far it has read; nothing where it does not answer."""
        with suppress(httpx.HTTPError):
            found: dict[str, Any] = (await http.get(f"http://{self.place}/streamz", timeout=2)).json()
            return found
        return {}


@dataclass
class Run:
    """What was written, and what came."""

    acknowledged: dict[int, float] = field(default_factory=dict)
    item_of: dict[int, int] = field(default_factory=dict)
    received: dict[int, list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))
    tally: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    is_over: bool = False
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def delays_ms(self) -> list[float]:
        """List the time from each acknowledgement to each event that tells of the write, in order of size."""
        return sorted(
            (at - self.acknowledged[number]) * 1000
            for events in self.received.values()
            for number, at in events
            if number in self.acknowledged
        )

    def compare(self) -> None:
        """Look for what is lost, doubled, or in the wrong order."""
        for subscriber, events in self.received.items():
            counts = Counter(number for number, _ in events)
            lost = [number for number in self.acknowledged if number not in counts]
            doubled = [number for number, count in counts.items() if count > 1]
            if lost or doubled:
                self.problems.append(f"subscriber {subscriber}: {len(lost)} lost, {len(doubled)} doubled")
            last: dict[int, int] = {}
            for number, _ in events:
                item = self.item_of[number]
                if number < last.get(item, -1):
                    self.problems.append(f"subscriber {subscriber}: {number} after {last[item]}")
                last[item] = number


async def subscribe(run: Run, subscriber: int, processes: list[Process], ready: asyncio.Event) -> None:
    """Follow all containers until cancelled, from one server or the next."""
    cursor: str | None = None
    for process in itertools.cycle(processes[subscriber % SERVERS :] + processes[: subscriber % SERVERS]):
        try:
            async with connect(f"ws://{process.place}/graphql", subprotocols=["graphql-transport-ws"]) as socket:  # type: ignore[list-item]
                await socket.send('{"type":"connection_init"}')
                await socket.recv()
                payload = {"query": SUBSCRIPTION, "variables": {"after": cursor}}
                await socket.send(orjson.dumps({"id": "1", "type": "subscribe", "payload": payload}).decode())
                ready.set()
                async for text in socket:
                    message = orjson.loads(text)
                    if message["type"] == "ping":
                        await socket.send('{"type":"pong"}')
                        continue
                    if message["type"] != "next":
                        run.tally[f"{message['type']} {_codes(message)}"] += 1
                        break
                    event = message["payload"]["data"]["containerChanged"]
                    cursor = event["cursor"]
                    run.received[subscriber].append((int(event["node"]["operator"]), time.monotonic()))
                    run.moved.set()
        except (OSError, WebSocketException):
            run.tally["sockets lost"] += 1
        await asyncio.sleep(0.05)


def _codes(message: dict[str, Any]) -> str:
    errors = message.get("payload") if message["type"] == "error" else ()
    return " ".join(error["extensions"]["code"] for error in errors or ())


async def write(run: Run, writer: int, processes: list[Process], numbers: Iterator[int], pause_secs: float) -> None:
    """Write items of its own, each until it is acknowledged; sent again, it changes nothing more, and is no event."""
    due = time.monotonic()
    async with httpx.AsyncClient(timeout=5) as http:
        for item in itertools.cycle(range(writer, ITEMS, WRITERS)):
            if run.is_over:
                return
            number = next(numbers)
            run.item_of[number] = item
            variables = {"number": str(item), "operator": str(number)}
            for process in itertools.cycle(processes[number % SERVERS :] + processes[: number % SERVERS]):
                try:
                    body = {"query": WRITE, "variables": variables}
                    answer = await http.post(f"http://{process.place}/graphql", json=body)
                    errors = answer.json().get("errors")
                except (httpx.HTTPError, ValueError):
                    run.tally["writes sent again"] += 1
                    continue
                if not errors:
                    break
                run.tally[errors[0]["extensions"]["code"]] += 1
            run.acknowledged[number] = time.monotonic()
            # Who was held up makes up for it.
            due += pause_secs
            await asyncio.sleep(max(0.0, due - time.monotonic()))


async def reading(processes: list[Process]) -> Process:
    """Wait until one of the servers reads the stream."""
    async with httpx.AsyncClient() as http:
        while True:
            for process in processes:
                if (await process.figures(http)).get("reading"):
                    return process
            await asyncio.sleep(0.05)


async def kill_readers(run: Run, processes: list[Process], seconds: float, kills: int) -> None:
    """Kill whoever reads the stream so many times, evenly over the run."""
    begin = time.monotonic()
    for number in range(kills):
        await asyncio.sleep(max(0.0, begin + seconds * (number + 1) / (kills + 1) - time.monotonic()))
        victim = await reading(processes)
        victim.kill()
        run.tally["readers killed"] += 1
        victim.start()
    await asyncio.sleep(max(0.0, begin + seconds - time.monotonic()))


async def deliver(seconds: float, rate: float, subscribers: int, kills: int) -> Run:
    """Let servers deliver for that long, and give what came."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Server(Path(folder))
        broker.start()
        try:
            async with Engine() as engine:
                await _make(engine.endpoint_url)
                command: list[str | Path] = [TABLEGRAPH, "serve", "--schema", BANANAS, "--log-level", "warning"]
                command += ["--endpoint-url", engine.endpoint_url, "--broker", broker.url, "--stream-poll-ms", "50"]
                processes = [Process(command) for _ in range(SERVERS)]
                try:
                    return await _deliver(processes, seconds, rate, subscribers, kills)
                finally:
                    for process in processes:
                        process.kill()
        finally:
            broker.kill()


async def _make(endpoint_url: str) -> None:
    model = compile_model(BANANAS.read_text())
    transport = BotoTransport(endpoint_url, "eu-central-1", credentials=("local", "local"))
    graph = Graph(model, Client(transport))
    (table,) = model.tables.values()
    await graph.send(create_table(model, table))
    keys = [f"CONTAINER_{number}" for number in range(ITEMS)]
    items = [{"objectId": {"S": key}, "relatedObjectId": {"S": key}, "Operator": {"S": "-1"}} for key in keys]
    for begin in range(0, ITEMS, 25):
        await graph.send(PutItems(table.name, tuple(items[begin : begin + 25])))
    await turn_on_stream(graph, table.name)
    transport.close()


async def _deliver(processes: list[Process], seconds: float, rate: float, subscribers: int, kills: int) -> Run:
    run, numbers = Run(), itertools.count()
    for process in processes:
        process.start()
    await reading(processes)
    ready = [asyncio.Event() for _ in range(subscribers)]
    following = [asyncio.create_task(subscribe(run, number, processes, ready[number])) for number in range(subscribers)]
    try:
        await asyncio.gather(*(one.wait() for one in ready))
        # A subscription without a cursor begins with what comes after it.
        await asyncio.sleep(1)
        pause_secs = WRITERS / rate
        writing = [asyncio.create_task(write(run, writer, processes, numbers, pause_secs)) for writer in range(WRITERS)]
        await kill_readers(run, processes, seconds, kills)
        run.is_over = True
        await asyncio.gather(*writing)
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECS):
                while any(len(run.received[one]) < len(run.acknowledged) for one in range(subscribers)):
                    run.moved.clear()
                    await run.moved.wait()
        # What comes twice may come last.
        await asyncio.sleep(1)
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
    run.compare()
    return run


def main() -> int:
    """Deliver as the command line says, print what happened, and fail when anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rate", type=float, default=200, help="writes a second")
    parser.add_argument("--subscribers", type=int, default=6)
    parser.add_argument("--kills", type=int, default=2, help="of the server that reads the stream")
    options = parser.parse_args()
    run = asyncio.run(deliver(options.seconds, options.rate, options.subscribers, options.kills))
    delays = run.delays_ms()
    lines = [
        f"{len(run.acknowledged)} writes, {len(run.acknowledged) / options.seconds:.0f} a second",
        f"{len(delays)} events to {options.subscribers} subscribers",
    ]
    if delays:
        parts = [("p50", statistics.median(delays)), ("p95", delays[len(delays) * 95 // 100]), ("most", delays[-1])]
        told = ", ".join(f"{name} {value:.0f}" for name, value in parts)
        lines.append(f"ms from acknowledged to received: {told}")
    lines += [f"{count:6} {name}" for name, count in sorted(run.tally.items())]
    sys.stdout.write("\n".join([*lines, *run.problems[:20], f"{len(run.problems)} problems", ""]))
    return 1 if run.problems else 0


if __name__ == "__main__":
    sys.exit(main())
