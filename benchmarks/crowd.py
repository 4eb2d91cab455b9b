"""Many large operations at once, and one small one beside them: how long each waits, and how many requests are out."""

from __future__ import annotations

import argparse
import asyncio
import statistics
from contextlib import AsyncExitStack
from dataclasses import replace

import uvloop

from benchmarks.client import fire, request_of
from benchmarks.front import HOST, Connection, Front, Remembered
from benchmarks.queries import QUERIES
from benchmarks.servers import OURS, SERVERS, Running, Server, free_port, serving
from benchmarks.table import make_fleet
from server.engine import Engine

LANES = 99
SLOTS = (16, 128)
HEADS = ("Q1 p50", "Q1 p95", "Q2 p50", "Q2 per sec", "most out", "Q1 alone")


class Counting(Front):
    """A front that knows how many requests wait for their answer."""

    under_way = most = 0

    def begin(self) -> None:
        """Count one more."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)

    def end(self) -> None:
        """Count one less."""
        self.under_way -= 1


class Counted(Connection):
    """One of its connections."""

    def __init__(self, front: Counting) -> None:
        super().__init__(front)
        self._counting = front

    def _answer(self, found: Remembered) -> None:
        self._counting.begin()
        self._loop.call_later(self._counting.latency_secs, self._counting.end)
        super()._answer(found)


def servers() -> list[Server]:
    """List ours with few slots and with many, and the one by hand."""
    ours = SERVERS[OURS]
    few_and_many = [
        replace(ours, title=f"tablegraph, {slots} slots", command=(*ours.command, "--max-in-flight", str(slots)))
        for slots in SLOTS
    ]
    return [*few_and_many, SERVERS["python"]]


async def measure(running: Running, front: Counting, secs: float) -> tuple[float, ...]:
    """Let a small operation be asked again and again, alone and then beside the large ones."""
    small, large = (request_of(QUERIES[name], name.lower()) for name in ("Q1", "Q2"))
    await fire(running.port, large, 4, 1.0)
    alone = await fire(running.port, small, 1, secs / 4)
    front.most = 0
    crowd = asyncio.ensure_future(fire(running.port, large, LANES, secs))
    # Not before all of them are under way, and not after.
    await asyncio.sleep(secs / 8)
    beside = await fire(running.port, small, 1, secs * 3 / 4)
    many = await crowd
    waits = sorted(beside.latencies_secs)
    return (
        statistics.median(waits) * 1000,
        waits[int(len(waits) * 0.95)] * 1000,
        statistics.median(many.latencies_secs) * 1000,
        len(many.latencies_secs) / many.secs,
        front.most,
        statistics.median(alone.latencies_secs) * 1000,
    )


async def main(rounds: int, secs: float, latency_ms: float) -> None:
    """Start the servers, measure in turns, and print the medians."""
    found: dict[str, list[tuple[float, ...]]] = {}
    async with Engine() as engine, AsyncExitStack() as stack:
        await make_fleet(engine.endpoint_url)
        running = []
        for server in servers():
            front, port = Counting(engine.endpoint_url, latency_ms / 1000), free_port()
            listener = await asyncio.get_running_loop().create_server(lambda front=front: Counted(front), HOST, port)
            stack.callback(listener.close)
            one = await stack.enter_async_context(serving(server, f"http://{HOST}:{port}"))
            running.append((server.title, one, front))
        for _ in range(rounds):
            for title, one, front in running:
                found.setdefault(title, []).append(await measure(one, front, secs))
    print(f"{LANES} times Q2 at once, {latency_ms:g} ms a request, and Q1 again and again (times in ms)")
    print(" " * 24 + "".join(f"{head:>12}" for head in HEADS))
    for title, ones in found.items():
        medians = [statistics.median(column) for column in zip(*ones, strict=True)]
        print(f"{title:24}" + "".join(f"{value:>12.1f}" for value in medians))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.crowd", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each server's part of a round")
    parser.add_argument("--latency", type=float, default=5.0, metavar="MS", help="what each request to the table waits")
    OPTIONS = parser.parse_args()
    uvloop.run(main(OPTIONS.rounds, OPTIONS.seconds, OPTIONS.latency))
