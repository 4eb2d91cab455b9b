"""What a request costs a server, in rounds that the servers take in turns."""

from __future__ import annotations

import base64
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from benchmarks.client import Burst, fire
from benchmarks.servers import Running

CONTROL = b"POST / HTTP/1.1\r\nhost: front\r\ncontent-length: %d\r\n\r\n%s"
WARM_UP_SECS = 1.0
WARM_UP_MOST = 8
"""How many times a server is warmed up, while it still becomes quicker by a twentieth."""

# Long beside any server's own work, so that time tells how many requests waited for each other.
SLOW_MS = 200.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long the servers are measured."""

    rounds: int
    secs: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What a request costs, and how many are answered: medians of the rounds."""

    cpu_ms: float
    per_sec: float
    p50_ms: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a request costs the table."""

    requests: int
    units: float


async def measure(running: Mapping[str, Running], request: bytes, lanes: int, pace: Pace) -> dict[str, Measured]:
    """Let the servers answer in turns, with so many requests under way at a time."""
    found: dict[str, list[Measured]] = {name: [] for name in running}
    for _ in range(pace.rounds):
        for name, one in running.items():
            found[name].append(await _round(one, request, lanes, pace.secs))
    return {name: _medians(rounds) for name, rounds in found.items()}


async def warm_up(running: Mapping[str, Running], request: bytes, lanes: int) -> None:
    """Let each server answer until it becomes no quicker: what it compiles is compiled by then."""
    for one in running.values():
        best = math.inf
        for _ in range(WARM_UP_MOST):
            spent = (await _round(one, request, lanes, WARM_UP_SECS)).cpu_ms
            if spent > best * 0.95:
                break
            best = spent


async def _round(running: Running, request: bytes, lanes: int, secs: float) -> Measured:
    before = running.cpu_secs()
    burst = await fire(running.port, request, lanes, secs)
    spent = running.cpu_secs() - before
    count = len(burst.latencies_secs)
    return Measured(spent * 1000 / count, count / burst.secs, statistics.median(burst.latencies_secs) * 1000)


def _medians(rounds: list[Measured]) -> Measured:
    return Measured(
        statistics.median(one.cpu_ms for one in rounds),
        statistics.median(one.per_sec for one in rounds),
        statistics.median(one.p50_ms for one in rounds),
    )


async def once(running: Running, request: bytes) -> Burst:
    """Send one request, and give its time and its answer."""
    return await fire(running.port, request, 1, 0.0)


async def control(front: int, **settings: float) -> Any:
    """Set the front's latency, if told to, and give what it has counted."""
    body = orjson.dumps(settings)
    return orjson.loads((await fire(front, CONTROL % (len(body), body), 1, 0.0)).body)


async def cost(front: int, running: Running, request: bytes) -> tuple[Cost, bytes]:
    """Give what one request costs the table, and its answer."""
    before = await control(front)
    burst = await once(running, request)
    after = await control(front)
    return Cost(after["requests"] - before["requests"], after["units"] - before["units"]), burst.body


async def chain(front: int, running: Running, request: bytes, latency_ms: float) -> int:
    """Count the requests to the table that wait for one another, one after the other."""
    await control(front, latency_ms=SLOW_MS)
    try:
        burst = await once(running, request)
    finally:
        await control(front, latency_ms=latency_ms)
    return int(burst.latencies_secs[0] * 1000 / SLOW_MS)


def comparable(body: bytes) -> Any:
    """Read an answer's JSON, with each cursor replaced by the place that it holds: cursors are opaque by contract."""
    return _placed(orjson.loads(body)["data"])


def _placed(value: Any) -> Any:
    if isinstance(value, list):
        return [_placed(entry) for entry in value]
    if isinstance(value, dict):
        return {
            name: _place(entry) if name in ("cursor", "endCursor") else _placed(entry) for name, entry in value.items()
        }
    return value


def _place(cursor: str | None) -> Any:
    return cursor and orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))[-1]
