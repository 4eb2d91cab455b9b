"""What one large page costs: CPU, memory over the base, and how long nobody else had a turn of the event loop."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import orjson
import uvloop

from benchmarks.front import HOST
from benchmarks.peers import plain
from benchmarks.peers.thin import Table
from benchmarks.queries import PALLET_FIELDS, TABLE
from benchmarks.servers import PYTHON, REGION, ROOT, fronted
from benchmarks.table import SCHEMA, make_table
from graph.client import Client
from graph.loaders import Graph
from graph.wire.transport import WireTransport
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.app import build_app
from server.engine import Engine
from server.process import settle_garbage_collection
from server.settings import load_settings

PALLETS, BOXES = 1200, 60
FULL = 20
"""So many of the pallets are full of boxes."""
TICK_SECS = 0.001
REPEATS = 12


async def _in_data(answer: Awaitable[Any]) -> Any:
    return {"container": await answer}


# The first query of each kind that a process answers, so that the large one compiles nothing.
BOX_FIELDS = "edges { linkedBy node { number weightInKg isDangerous } }"
CONTAINER = 'container(number: "000001")'
PAGES = {
    "1,000 edges": (
        f"query wide {{ c000001: {CONTAINER} {{ pallets(first: %d) {{ {PALLET_FIELDS} }} }} }} }} }}",
        1000,
        lambda table, size: plain.pallets_of_containers(table, ["000001"], size),
    ),
    "20 x 50": (
        f"query deep {{ container: {CONTAINER} {{ number pallets(first: 20) {{ {PALLET_FIELDS} "
        f"boxes(first: %d) {{ {BOX_FIELDS} }} }} }} }} }} }}",
        50,
        lambda table, size: _in_data(plain.full_container(table, "000001", 20, size)),
    ),
}
STREAMED = "1,000 streamed"
"""The first page again, its edges by @stream; by hand there is none."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a page takes: medians of requests, but for the memory of the first one."""

    answer_kb: float
    cpu_ms: float
    took_ms: float
    first_ms: float
    blocked_ms: float
    memory_mb: float


HEADS = ("answer kB", "CPU ms", "ms", "first ms", "blocked ms", "memory MB")


def items() -> Iterator[dict[str, dict[str, Any]]]:
    """Yield a container with many pallets, the first of them with many boxes."""
    link = {
        "LinkedBy": {"S": "Turbo Carga"},
        "LinkedDatetime": {"S": "2022-08-01T06:00:00Z"},
        "LinkedAtLocation": {"S": "Turbo.Docks"},
    }
    yield _item("CONTAINER_000001", "CONTAINER_000001", Operator={"S": "Blue Anchor Lines"})
    for pallet in range(PALLETS):
        pallet_key = f"PALLET_C001{pallet:04}"
        yield _item(pallet_key, pallet_key, Origin={"S": "CO"}, Destination={"S": "NL"})
        yield _item("CONTAINER_000001", pallet_key, **link)
        for box in range(BOXES if pallet < FULL else 0):
            box_key = f"BOX_C001{pallet:04}{box:02}"
            yield _item(box_key, box_key, WeightInKg={"N": f"19.{box:02}"}, IsDangerous={"BOOL": box % 50 == 0})
            yield _item(pallet_key, box_key, **link)


def _item(partition: str, sort: str, **attributes: Any) -> dict[str, dict[str, Any]]:
    return {"objectId": {"S": partition}, "relatedObjectId": {"S": sort}, **attributes}


# --- in a process of its own --------------------------------------------------------------------------------------


class Ticker:
    """Wants a turn of the event loop each millisecond, and notes the longest CPU time between two of them.

    CPU time of the loop's thread: what others take of a noisy machine is not counted.
    """

    def __init__(self) -> None:
        self.longest_secs = 0.0
        self._loop = asyncio.get_running_loop()
        self._last = time.thread_time()
        self._tick()

    def _tick(self) -> None:
        now = time.thread_time()
        self.longest_secs = max(self.longest_secs, now - self._last)
        self._last = now
        self._timer = self._loop.call_later(TICK_SECS, self._tick)

    def stop(self) -> float:
        """Stop, and give the longest time in seconds."""
        self._timer.cancel()
        self._tick()
        self._timer.cancel()
        return self.longest_secs


class Visit:
    """One HTTP request to an ASGI application, without a server between: what is sent, and when it began to be."""

    def __init__(self, document: str, *, is_streamed: bool) -> None:
        self._body = orjson.dumps({"query": document})
        accept = b"multipart/mixed" if is_streamed else b"application/json"
        headers = [(b"host", HOST.encode()), (b"content-type", b"application/json"), (b"accept", accept)]
        self._scope = {
            "type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": headers,
            "client": (HOST, 1), "http_version": "1.1", "scheme": "http",
        }  # fmt: skip
        self.answer_bytes = 0
        self.first_secs = 0.0
        self.body = b""

    async def run(self, app: Callable[..., Awaitable[None]]) -> None:
        """Ask, and take the whole answer."""
        self._began = time.perf_counter()
        await app(self._scope, self._receive, self._send)

    async def _receive(self) -> Any:
        if self._body:
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": False}
        return await asyncio.get_running_loop().create_future()

    async def _send(self, message: Any) -> None:
        if body := message.get("body"):
            self.first_secs = self.first_secs or time.perf_counter() - self._began
            self.answer_bytes += len(body)
            self.body = body


def ours(endpoint: str) -> Callable[..., Awaitable[None]]:
    """Make our application, as the command `serve` does."""
    settings = load_settings({}, {"endpoint_url": endpoint, "schema": str(SCHEMA), "log_level": "warning"})
    transport = WireTransport(endpoint, REGION, settings.max_in_flight, credentials=("local", "local"))
    model = compile_model(SCHEMA.read_text())
    app = build_app(Api(Graph(model, Client(transport, settings.max_in_flight))), settings)
    settle_garbage_collection()
    return app


def by_hand(endpoint: str, page: str, size: int) -> Callable[..., Awaitable[None]]:
    """Make the application by hand, which knows the only query that it is asked."""
    table = Table(endpoint, REGION, "local", "local", TABLE)
    answer = PAGES[page][2]
    gc.freeze()

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        data = orjson.dumps({"data": await answer(table, size)})
        await send({"type": "http.response.body", "body": data})

    return app


async def probe(server: str, page: str, endpoint: str) -> None:
    """Ask a server for a page again and again, and print what was found."""
    document, size, _ = PAGES["1,000 edges" if page == STREAMED else page]
    if page == STREAMED:
        document = document.replace("{ edges", "{ edges @stream(initialCount: 10)", 1)
    kind = page == STREAMED
    # Everything is made and connected by then but for what so many edges need.
    apps = [ours(endpoint)] * 2 if server == "tablegraph" else [by_hand(endpoint, page, each) for each in (5, size)]
    for _ in range(3):
        await Visit(document % 5, is_streamed=kind).run(apps[0])
    await asyncio.sleep(0.1)
    base_mb = memory_mb("VmRSS")
    forget_peak()
    visit = Visit(document % size, is_streamed=kind)
    await visit.run(apps[1])
    memory = memory_mb("VmHWM") - base_mb
    samples = [await _sample(document % size, apps[1], is_streamed=kind) for _ in range(REPEATS)]
    cpu, took, first, blocked = (statistics.median(column) * 1000 for column in zip(*samples, strict=True))
    found = Found(visit.answer_bytes / 1000, cpu, took, first, blocked, memory)
    sys.stdout.buffer.write(orjson.dumps([asdict(found), None if kind else orjson.loads(visit.body)["data"]]))


async def _sample(document: str, app: Callable[..., Awaitable[None]], *, is_streamed: bool) -> tuple[float, ...]:
    visit = Visit(document, is_streamed=is_streamed)
    ticker = Ticker()
    await asyncio.sleep(5 * TICK_SECS)
    cpu, began = time.process_time(), time.perf_counter()
    await visit.run(app)
    cpu, took = time.process_time() - cpu, time.perf_counter() - began
    return cpu, took, visit.first_secs, ticker.stop()


def forget_peak() -> None:
    """Let VmHWM begin anew. Source: Linux, proc(5), clear_refs."""
    Path("/proc/self/clear_refs").write_text("5")


def memory_mb(name: str) -> float:
    """Give a size of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name}:"))) / 1000


# --- the comparison -----------------------------------------------------------------------------------------------


async def asked(server: str, page: str, endpoint: str) -> tuple[Found, Any]:
    """Have a new process probe a server; gives the page's data besides."""
    process = await asyncio.create_subprocess_exec(
        PYTHON, "-m", "benchmarks.pages", "--probe", server, page, endpoint, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise SystemExit(f"{server}, {page}: ended with code {process.returncode}")
    found, data = orjson.loads(output)
    return Found(**found), data


async def main(rounds: int) -> None:
    """Make the table, probe in turns, and print the medians."""
    cases = [(page, server) for page in PAGES for server in ("tablegraph", "by hand")] + [(STREAMED, "tablegraph")]
    found: dict[tuple[str, str], list[Found]] = {case: [] for case in cases}
    async with Engine() as engine:
        await make_table(engine.endpoint_url, items())
        async with fronted(engine.endpoint_url, 0.0) as port:
            for _ in range(rounds):
                answers: dict[str, Any] = {}
                for page, server in cases:
                    one, data = await asked(server, page, f"http://{HOST}:{port}")
                    found[page, server].append(one)
                    if answers.setdefault(page, data) != data:
                        raise SystemExit(f"{page}: {server} answers otherwise")
    print(f"{'page':16}{'server':12}" + "".join(f"{head:>12}" for head in HEADS))
    for (page, server), ones in found.items():
        medians = (statistics.median(getattr(one, field.name) for one in ones) for field in fields(Found))
        print(f"{page:16}{server:12}" + "".join(f"{value:>12.2f}" for value in medians))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.pages", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="processes for each page and server, in turns")
    parser.add_argument("--probe", nargs=3, metavar=("SERVER", "PAGE", "ENDPOINT"), help=argparse.SUPPRESS)
    OPTIONS = parser.parse_args()
    os.environ.setdefault("AWS_REGION", REGION)
    uvloop.run(probe(*OPTIONS.probe) if OPTIONS.probe else main(OPTIONS.rounds))
