"""tablegraph beside other servers on the same table, in alternating rounds of one run: CPU, requests a second, cost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import uvloop

from benchmarks import curves, million
from benchmarks.client import request_of
from benchmarks.front import HOST
from benchmarks.measure import Cost, Measured, Pace, chain, comparable, cost, measure, once, warm_up
from benchmarks.plot import draw
from benchmarks.queries import QUERIES
from benchmarks.report import show, show_chain
from benchmarks.servers import OURS, SERVERS, Running, fronted, serving
from benchmarks.table import make_fleet
from server.engine import Engine

PLOTTED = 8
"""How many requests are under way at once in the figures that are drawn."""


@dataclass(frozen=True, slots=True)
class Stage:
    """The servers under comparison, and the port of the front, if there is one."""

    running: dict[str, Running]
    front: int | None


@asynccontextmanager
async def staged(engine: str, options: argparse.Namespace) -> AsyncIterator[Stage]:
    """Start the servers on an engine."""
    async with AsyncExitStack() as stack:
        port = None
        endpoint = engine
        if not options.direct:
            port = await stack.enter_async_context(fronted(engine, options.latency))
            endpoint = f"http://{HOST}:{port}"
        running = {name: await stack.enter_async_context(serving(SERVERS[name], endpoint)) for name in options.servers}
        yield Stage(running, port)


async def agreed(stage: Stage, query: str, request: bytes) -> dict[str, Cost]:
    """Give what a query costs the table through each server, once all of them give the same answer.

    Raises: SystemExit if one of them does not.
    """
    costs: dict[str, Cost] = {}
    expected = None
    for name, one in stage.running.items():
        if stage.front is None:
            body = (await once(one, request)).body
        else:
            costs[name], body = await cost(stage.front, one, request)
        answer = comparable(body)
        expected = answer if expected is None else expected
        if answer != expected or not answer:
            raise SystemExit(f"{query}: {name} answers otherwise than {next(iter(stage.running))}: {body[:500]!r}")
    return costs


async def compare(stage: Stage, options: argparse.Namespace) -> dict[str, dict[str, Measured]]:
    """Run the queries and print what they cost; give the figures to draw."""
    drawn = {}
    for query in options.queries:
        request = request_of(QUERIES[query], query.lower())
        costs = await agreed(stage, query, request)
        await warm_up(stage.running, request, PLOTTED)
        for lanes in options.concurrency:
            found = await measure(stage.running, request, lanes, Pace(options.rounds, options.seconds))
            show(query, lanes, found, costs)
            if lanes == PLOTTED or len(options.concurrency) == 1:
                drawn[query] = found
        if stage.front is not None and options.latency:
            pace = Pace(options.rounds, options.seconds)
            alone = await measure(stage.running, request, 1, pace)
            chains = {
                name: (await chain(stage.front, one, request, options.latency), alone[name])
                for name, one in stage.running.items()
            }
            show_chain(query, options.latency, chains)
    return drawn


def show_memory(running: Mapping[str, Running]) -> None:
    """Print what each server holds at the end."""
    print("\nmemory, MB: " + ", ".join(f"{one.server.title} {one.memory_mb():.0f}" for one in running.values()))


def save(drawn: dict[str, dict[str, Measured]], path: Path) -> None:
    """Write the figures as JSON, and beside them the drawing."""
    content = {query: {name: asdict(one) for name, one in found.items()} for query, found in drawn.items()}
    path.with_suffix(".json").write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    path.write_text(draw({query: {name: one.cpu_ms for name, one in found.items()} for query, found in drawn.items()}))


async def main() -> None:
    """Load the fleet, start the servers, run the rounds."""
    options = parsed(sys.argv[1:])
    if options.million:
        await million.run(options.servers, options.queries, Pace(options.rounds, options.seconds))
        return
    async with Engine() as engine:
        await make_fleet(engine.endpoint_url)
        async with staged(engine.endpoint_url, options) as stage:
            if options.curves:
                await curves.run(stage.running, Pace(options.rounds, options.seconds))
                return
            drawn = await compare(stage, options)
            show_memory(stage.running)
    if options.plot:
        save(drawn, options.plot)


def parsed(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    servers = "all unless told; ratios are to the first one. With --million only our own unless told"
    parser.add_argument("--servers", nargs="+", choices=SERVERS, help=servers)
    parser.add_argument("--queries", nargs="+", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--concurrency", nargs="+", type=int, default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of each server's part of a round")
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--direct", action="store_true", help="the engine itself, without the front before it")
    ways.add_argument("--latency", type=float, default=0.0, metavar="MS", help="what each request to the table waits")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--million", action="store_true", help="the same queries on a table of one million nodes")
    modes.add_argument("--curves", action="store_true", help="cost by depth, width and page size")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw the CPU of each server, and keep the figures"
    )
    options = parser.parse_args(arguments)
    options.servers = options.servers or ([OURS] if options.million else list(SERVERS))
    if options.curves:
        options.servers = [name for name in options.servers if SERVERS[name].is_graphql]
    return options


if __name__ == "__main__":
    uvloop.run(main())
