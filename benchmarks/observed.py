"""What it costs to be observed: CPU of a request with each part of telemetry, beside none of it."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import get_context

import uvloop

from benchmarks.client import fire, request_of
from benchmarks.front import HOST
from benchmarks.queries import QUERIES
from benchmarks.servers import OURS, SERVERS, Server, free_port, fronted, serving
from benchmarks.table import make_fleet
from server.engine import Engine

LANES = 8
ROUNDS = 15
SECS = 0.5


class Sink(BaseHTTPRequestHandler):
    """Takes spans, and does nothing with them."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Take an export."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def sink(port: int) -> None:
    """Take spans until the process is ended."""
    ThreadingHTTPServer((HOST, port), Sink).serve_forever()


@contextmanager
def sinking() -> Iterator[str]:
    """Take spans in a process of its own; gives its URL."""
    port = free_port()
    process = get_context("spawn").Process(target=sink, args=(port,), daemon=True)
    process.start()
    try:
        yield f"http://{HOST}:{port}"
    finally:
        process.terminate()


def observed(url: str) -> Iterator[Server]:
    """Name the ways of being observed."""
    command, to = SERVERS[OURS].command, f"OTEL_EXPORTER_OTLP_ENDPOINT={url}"
    ways: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
        "nothing": ((), ()),
        "`--slow-ms`": ((), ("--slow-ms", "60000")),
        "`--metrics-port`": ((), ("--metrics-port", "0")),
        "`--traces on`, none sampled": ((to, "OTEL_TRACES_SAMPLER=always_off"), ("--traces", "on")),
        "`--traces on`, one of ten": (
            (to, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1"),
            ("--traces", "on"),
        ),
        "`--traces on`, all": ((to,), ("--traces", "on")),
    }
    for title, (environment, flags) in ways.items():
        yield Server(title, title, ("env", *environment, *command, *flags))


async def compare(queries: list[str]) -> None:
    """Print the table."""
    with sinking() as url:
        async with AsyncExitStack() as stack:
            engine = await stack.enter_async_context(Engine())
            await make_fleet(engine.endpoint_url)
            port = await stack.enter_async_context(fronted(engine.endpoint_url, 0))
            endpoint = f"http://{HOST}:{port}"
            running = [await stack.enter_async_context(serving(server, endpoint)) for server in observed(url)]
            costs: dict[tuple[str, str], list[float]] = {}
            for query in queries:
                request = request_of(QUERIES[query], query.lower())
                for each in running:
                    await fire(each.port, request, LANES, 1.0)
                for _ in range(ROUNDS):
                    for each in running:
                        before = each.cpu_secs()
                        burst = await fire(each.port, request, LANES, SECS)
                        cost = (each.cpu_secs() - before) * 1000 / len(burst.latencies_secs)
                        costs.setdefault((each.server.title, query), []).append(cost)
    print(f"| CPU ms of a request | {' | '.join(queries)} |")
    print("|---" * (len(queries) + 1) + "|")
    for each in running:
        figures = " | ".join(f"{statistics.median(costs[each.server.title, query]):.3f}" for query in queries)
        print(f"| {each.server.title} | {figures} |")


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", nargs="+", default=["Q1", "Q2"], choices=list(QUERIES))
    uvloop.run(compare(parser.parse_args().queries))


if __name__ == "__main__":
    main()
