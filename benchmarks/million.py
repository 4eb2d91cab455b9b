"""The same queries on the demo's table and on one of a million nodes: what they cost must be the same."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import orjson

from benchmarks.client import request_of
from benchmarks.front import HOST
from benchmarks.load import ENVIRONMENT, fleet
from benchmarks.measure import Cost, Pace, comparable, cost, measure, once, warm_up
from benchmarks.queries import QUERIES
from benchmarks.servers import COMMAND, SERVERS, fronted, serving
from benchmarks.table import SCHEMA, make_fleet, make_table
from server.engine import Engine

# Half of the fleet's items are nodes, half are edges.
ITEMS = 2_000_000
LANES = 8


def load(endpoint: str, count: int) -> None:
    """Load so many items of the fleet by our own command."""
    command = [*COMMAND, "load", "-", "--schema", str(SCHEMA), "--endpoint-url", endpoint]
    with subprocess.Popen(command, stdin=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdin is not None
        for item in fleet(count):
            process.stdin.write(orjson.dumps(item) + b"\n")
        process.stdin.close()
    if process.returncode:
        raise SystemExit(f"the load ended with code {process.returncode}")


async def cost_of(engine: str, name: str, request: bytes) -> tuple[Cost, bytes]:
    """Give what a request costs the table, which the front counts."""
    async with fronted(engine, 0.0) as front, serving(SERVERS[name], f"http://{HOST}:{front}") as one:
        return await cost(front, one, request)


async def run(servers: Sequence[str], queries: Sequence[str], pace: Pace) -> None:
    """Fill both tables, and print what each query costs on either."""
    async with Engine() as small, Engine() as large:
        await make_fleet(small.endpoint_url)
        await make_table(large.endpoint_url)
        began = time.perf_counter()
        await asyncio.to_thread(load, large.endpoint_url, ITEMS)
        print(f"{ITEMS:,} items, half of them nodes, loaded in {time.perf_counter() - began:.0f} s")
        for name in servers:
            await _compare(name, queries, {"fleet": small.endpoint_url, "million": large.endpoint_url}, pace)


async def _compare(name: str, queries: Sequence[str], engines: dict[str, str], pace: Pace) -> None:
    title = SERVERS[name].title
    heads = "".join(f"{head:>10}" for head in ("requests", "units", "CPU ms", "p50 ms"))
    print(f"\n{title[:30]:32}{heads}   (the engine itself, {LANES} at once)")
    async with AsyncExitStack() as stack:
        running = {
            size: await stack.enter_async_context(serving(SERVERS[name], engine)) for size, engine in engines.items()
        }
        for query in queries:
            request = request_of(QUERIES[query], query.lower())
            answers = [comparable((await once(one, request)).body) for one in running.values()]
            if answers[0] != answers[1]:
                raise SystemExit(f"{query}: the two tables do not give the same answer")
            await warm_up(running, request, LANES)
            found = await measure(running, request, LANES, pace)
            for size, one in found.items():
                asked, _ = await cost_of(engines[size], name, request)
                print(
                    f"{query} {size:29}{asked.requests:>10}{asked.units:>10.1f}{one.cpu_ms:>10.3f}{one.p50_ms:>10.2f}",
                    flush=True,
                )
