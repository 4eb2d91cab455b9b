"""More requests than can be served: what is still answered in time, what is refused, and what memory it takes.

The most that the server answers in a closed loop is its peak. Then clients come at so many times that rate whether or
not others were answered, at random moments, and each is gone after a time: what comes later does not count.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import resource
import time
from collections import Counter, deque
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import NamedTuple, cast

import httptools
import uvloop

from benchmarks.client import fire, request_of
from benchmarks.front import HOST
from benchmarks.queries import QUERIES
from benchmarks.servers import OURS, SERVERS, Running, fronted, serving
from benchmarks.table import make_fleet
from server.engine import Engine

ADDRESSES = 100
"""Of the clients."""
LANES = (4, 16, 64)
TICK_SECS = 0.002
SAMPLE_SECS = 0.25
SETTLE_SHARE = 0.25
"""Of the time of a load, which is not measured: queues are as long then as they become."""
HEADS = (
    "offered",
    "a second",
    "goodput",
    "of peak",
    "refused",
    "gave up",
    "failed",
    "p50 ms",
    "p99 ms",
    "MB",
    "gen CPU",
)


@dataclass(slots=True)
class Load:
    """One load: what is sent, and what came of it after the queues had grown."""

    port: int
    request: bytes
    length: int
    patience_secs: float
    measured_from: float = 0.0
    connections: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    latencies_secs: list[float] = field(default_factory=list)
    idle: list[Caller] = field(default_factory=list)
    waiting: deque[tuple[float, Caller, int]] = field(default_factory=deque)
    """Those who wait, by the time at which they give up, with the number of the request of each."""

    def count(self, what: str, sent: float) -> None:
        """Count how a request ended, unless it was sent before anything is measured."""
        if sent >= self.measured_from:
            self.tally[what] += 1


class Caller(asyncio.Protocol):
    """One connection of a client."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._received = 0
        self.number = 0
        self.sent = 0.0
        """When the request under way was meant to be sent; 0 if none is."""

    def ask(self, moment: float) -> None:
        """Send the request, at once or as soon as there is a connection."""
        self.number += 1
        self.sent = moment
        self._load.waiting.append((moment + self._load.patience_secs, self, self.number))
        if self._transport is not None:
            self._transport.write(self._load.request)

    def give_up(self) -> None:
        """Go away, as clients do whose time is over."""
        self._end("gave up")
        if self._transport is not None:
            self._transport.abort()

    def _end(self, what: str) -> None:
        if self.sent:
            self._load.count(what, self.sent)
            self.sent = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self.sent:
            self._transport.write(self._load.request)
        else:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end("failed")
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._received = 0

    def on_body(self, body: bytes) -> None:
        self._received += len(body)

    def on_message_complete(self) -> None:
        status, sent = self._parser.get_status_code(), self.sent
        taken = time.perf_counter() - sent
        if status == 200 and self._received == self._load.length:
            if taken <= self._load.patience_secs and sent >= self._load.measured_from:
                self._load.latencies_secs.append(taken)
            self._end("good" if taken <= self._load.patience_secs else "gave up")
        else:
            self._end("refused" if status in (429, 503) else "failed")
        if self._transport is not None and self._parser.should_keep_alive():
            self._load.idle.append(self)


class Peak(NamedTuple):
    """The most that is answered in a second, what a second of the server's CPU is worth, and the answer's length."""

    per_sec: float
    per_cpu_sec: float
    length: int


async def offer(load: Load, per_sec: float, secs: float, dice: random.Random) -> None:
    """Send at random moments, so many a second, for so long; every request ends before this does."""
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[None]] = set()
    begin = next_ = time.perf_counter()
    load.measured_from = begin + secs * SETTLE_SHARE
    while (now := time.perf_counter()) < begin + secs or load.waiting:
        while next_ <= now and next_ < begin + secs:
            while load.idle and load.idle[-1]._transport is None:
                load.idle.pop()
            if load.idle:
                load.idle.pop().ask(next_)
            else:
                task = loop.create_task(_connect(load, next_))
                connecting.add(task)
                task.add_done_callback(connecting.discard)
            next_ += dice.expovariate(per_sec)
        while load.waiting and (load.waiting[0][0] <= now or load.waiting[0][1].number != load.waiting[0][2]):
            _, caller, number = load.waiting.popleft()
            if caller.number == number and caller.sent:
                caller.give_up()
        await asyncio.sleep(TICK_SECS)
    for caller in load.idle:
        caller.give_up()
    await asyncio.gather(*connecting)


async def _connect(load: Load, moment: float) -> None:
    caller = Caller(load)
    caller.ask(moment)
    load.connections += 1
    # One address has no more than 28,000 ports.
    source = f"127.0.0.{2 + load.connections % ADDRESSES}"
    try:
        await asyncio.get_running_loop().create_connection(lambda: caller, HOST, load.port, local_addr=(source, 0))
    except OSError:
        caller._end("failed")


async def peak(running: Running, request: bytes, secs: float) -> Peak:
    """Find the most answers a second, with some numbers of requests under way."""
    found = []
    for lanes in LANES:
        before = running.cpu_secs()
        burst = await fire(running.port, request, lanes, secs)
        count = len(burst.latencies_secs)
        found.append(Peak(count / burst.secs, count / (running.cpu_secs() - before), len(burst.body)))
    return max(found)


async def look(running: Running, settle_secs: float, sizes: list[float], cpu_secs: list[float]) -> None:
    """Note the server's memory until cancelled, and its CPU from when it is measured."""
    begin = time.perf_counter()
    while True:
        sizes.append(running.memory_mb())
        if time.perf_counter() - begin >= settle_secs:
            cpu_secs.append(running.cpu_secs())
        await asyncio.sleep(SAMPLE_SECS)


async def measure(running: Running, load: Load, per_sec: float, secs: float) -> tuple[float, float, float]:
    """Offer a load: the most memory of the server, the CPU that it had, and the share of a CPU that we had."""
    # We may have so much to do that we never look: then all of the load is measured.
    sizes, cpu_secs = [running.memory_mb()], list[float]()
    at_first = running.cpu_secs()
    looking = asyncio.ensure_future(look(running, secs * SETTLE_SHARE, sizes, cpu_secs))
    began, spent = time.perf_counter(), time.process_time()
    await offer(load, per_sec, secs, random.Random(1))
    looking.cancel()
    own = (time.process_time() - spent) / (time.perf_counter() - began)
    return max(sizes), running.cpu_secs() - (cpu_secs or [at_first])[0], own


def pin(pid: int, core: int) -> None:
    """Keep a process, with its threads, on one core."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), {core})


async def main(options: argparse.Namespace) -> None:
    """Find the peak, offer the loads, and print a line for each."""
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    cores = sorted(os.sched_getaffinity(0))
    server = replace(SERVERS[OURS], command=(*SERVERS[OURS].command, *options.options))
    async with Engine() as engine, AsyncExitStack() as stack:
        await make_fleet(engine.endpoint_url)
        front = await stack.enter_async_context(fronted(engine.endpoint_url, options.latency))
        running = await stack.enter_async_context(serving(server, f"http://{HOST}:{front}"))
        # The server has a core for itself; the front, which answers from memory, shares the other one with us.
        pin(running.pid, cores[0])
        pin(os.getpid(), cores[-1])
        request = request_of(QUERIES[options.query], options.query.lower())
        await fire(running.port, request, 4, 3.0)
        best = await peak(running, request, options.seconds / 2)
        print(f"{options.query}, {options.latency:g} ms a request to the table; clients wait {options.patience:g} s")
        print(f"peak {best.per_sec:.0f} a second; memory before {running.memory_mb():.0f} MB")
        print("".join(f"{head:>10}" for head in HEADS))
        for factor in options.factors:
            load = Load(running.port, request, best.length, options.patience)
            memory, cpu_secs, own = await measure(running, load, best.per_sec * factor, options.seconds)
            measured = options.seconds * (1 - SETTLE_SHARE)
            tally, waits = load.tally, sorted(load.latencies_secs) or [0.0]
            total = max(1, tally.total())
            figures = (
                f"{factor:g}x",
                f"{total / measured:.0f}",
                f"{tally['good'] / measured:.0f}",
                f"{tally['good'] / measured / best.per_sec:.0%}",
                f"{tally['good'] / cpu_secs / best.per_cpu_sec:.0%}",
                *(f"{tally[what] / total:.1%}" for what in ("refused", "gave up", "failed")),
                *(f"{1000 * waits[int(len(waits) * share)]:.0f}" for share in (0.5, 0.99)),
                f"{memory:.0f}",
                f"{own:.0%}",
            )
            print("".join(f"{figure:>10}" for figure in figures), flush=True)
            await asyncio.sleep(options.rest)
        print(f"memory afterwards {running.memory_mb():.0f} MB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="benchmarks.overload", description=__doc__)
    parser.add_argument("--query", choices=sorted(QUERIES), default="Q2")
    parser.add_argument("--factors", type=float, nargs="+", default=(1, 2, 5, 10))
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each load")
    parser.add_argument("--patience", type=float, default=2.0, metavar="SECS", help="how long a client waits")
    parser.add_argument("--rest", type=float, default=2.0, metavar="SECS", help="between two loads")
    parser.add_argument("--latency", type=float, default=5.0, metavar="MS", help="what each request to the table waits")
    parser.add_argument("--options", nargs=argparse.REMAINDER, default=(), help="more of the server's own")
    uvloop.run(main(parser.parse_args()))
