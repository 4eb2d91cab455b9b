"""Many live queries in one process: what each holds in memory, and what a change costs them all."""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import time
import tracemalloc
from functools import partial

import uvloop

from benchmarks.queries import QUERIES, TABLE
from benchmarks.servers import REGION
from benchmarks.table import SCHEMA, make_fleet
from graph.client import Client
from graph.loaders import Graph
from graph.requests import Item, KeyAttributes
from graph.streams.change import Change, Place
from graph.streams.hub import Hub
from graph.streams.readset import ReadSet
from graph.wire.transport import WireTransport
from resolvers import live
from resolvers.live import LiveQueries
from resolvers.operation import Events, Request, Response
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.engine import Engine

CONTAINERS = 50
PAGE = QUERIES["Q4"].replace("query q4 {", "query ($number: ID!) @live {").replace('"000001"', "$number")
"""The first ten of a container's 20 pallets, by edge, with their nodes."""

_sequence = itertools.count(1)


def written(partition: str, sort: str) -> Change:
    """Tell of a write to an item."""
    key: KeyAttributes = ("objectId", partition), ("relatedObjectId", sort)
    before: Item = {name: {"S": str(text)} for name, text in key}
    return Change((TABLE, key), before, {**before, "LinkedBy": {"S": "me"}}, Place("shard", next(_sequence)))


CHANGES = {
    "unread": ("BOX_none", "BOX_none"),
    "unconcerned": ("CONTAINER_000001", "PALLET_Z"),
}
"""What nobody has read, and what lies in a partition that one in 50 has read, behind the page."""


class Bench:
    """So many live queries over the demo's fleet."""

    def __init__(self, endpoint: str) -> None:
        self._transport = WireTransport(endpoint, REGION, 128, credentials=("local", "local"))
        self._model = compile_model(SCHEMA.read_text())
        self._api = Api(Graph(self._model, Client(self._transport, 128)))
        self.hub = Hub(self._model)
        self._queries = LiveQueries(self.hub)
        self._open: list[Events] = []
        self._listening: list[asyncio.Task[None]] = []
        self._executions = 0
        self._executed = asyncio.Event()

    async def open(self, count: int) -> None:
        """Open so many, each container's page by as many."""
        for number in range(count):
            request = Request(PAGE, {"number": f"{number % CONTAINERS + 1:06}"})
            events = await self._queries.open(partial(self._execute, request), 0.0)
            assert not isinstance(events, Response)
            self._open.append(events)
            self._listening.append(asyncio.ensure_future(_listen(events)))
        await _turns()

    async def _execute(self, request: Request, reads: ReadSet) -> Response:
        response = await self._api.execute(request, reads)
        self._executions += 1
        self._executed.set()
        return response

    async def close(self) -> None:
        """End them all."""
        for events in self._open:
            await events.aclose()
        await asyncio.gather(*self._listening)
        self._transport.close()

    async def change_us(self, key: tuple[str, str], times: int) -> float:
        """Give the CPU microseconds that a change costs, judged by all whom it reaches."""
        begin = time.process_time()
        for _ in range(times):
            await self.hub.publish([written(*key)])
            await _turns()
        return (time.process_time() - begin) / times * 1e6

    async def execution_ms(self, times: int) -> float:
        """Give the CPU milliseconds of an execution because of a change that concerns 1 in 50."""
        begin, before = time.process_time(), self._executions
        for _ in range(times):
            done = self._executions + len(self._open) // CONTAINERS
            await self.hub.publish([written("CONTAINER_000001", "PALLET_0")])
            while self._executions < done:
                self._executed.clear()
                await self._executed.wait()
        return (time.process_time() - begin) / (self._executions - before) * 1000


async def _listen(events: Events) -> None:
    async for body in events:
        del body


async def _turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def main(counts: list[int], times: int) -> None:
    """Open more and more of them, and print what they cost."""
    # The demo's indexes are there at once.
    live.SETTLE_SECS = 1e9
    async with Engine() as engine:
        await make_fleet(engine.endpoint_url)
        print("live queries   held kB    unread µs  unconcerned µs  execution ms")
        for count in counts:
            await measure(engine.endpoint_url, count, times)


async def measure(endpoint: str, count: int, times: int) -> None:
    """Measure so many."""
    bench = Bench(endpoint)
    await bench.open(CONTAINERS)
    gc.collect()
    tracemalloc.start()
    await bench.open(count - CONTAINERS)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    gc.collect()
    costs: list[float] = []
    for key in CHANGES.values():
        await bench.change_us(key, 10)
        costs.append(await bench.change_us(key, times))
    unread, unconcerned = costs
    kilobytes = held / max(count - CONTAINERS, 1) / 1000
    execution = await bench.execution_ms(20)
    print(f"{count:>12,}{kilobytes:>10.1f}{unread:>13.0f}{unconcerned:>16.0f}{execution:>14.2f}", flush=True)
    await bench.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.live", description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[100, 1000, 5000])
    parser.add_argument("--times", type=int, default=1000)
    OPTIONS = parser.parse_args()
    uvloop.run(main(OPTIONS.counts, OPTIONS.times))
