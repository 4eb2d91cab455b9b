"""The watermark: whatever becomes of the streams and of who reads them, what it says is followed is followed."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

from graph.client import Response
from graph.loaders import Graph
from graph.streams.change import Change
from graph.streams.lease import Lease
from graph.streams.reader import Reader
from graph.streams.watermark import Watched
from tests.clock import now, run
from tests.fake_streams import MODEL, FakeStreams, Process, reading, running, told

SINCE_1970_SECS = 2**20
ROUNDING_SECS = 1e-6


@pytest.fixture(autouse=True)
def calendar(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the calendar leap with the event loop's clock."""
    monkeypatch.setattr(
        time, "time", lambda: SINCE_1970_SECS + now() if asyncio._get_running_loop() else SINCE_1970_SECS
    )


class Follower:
    """Handles changes after a while, and knows when all was written that it has not handled."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: dict[tuple[str, int | None], float] = {}
        self.count = 0

    def written(self, code: str, trips: int) -> None:
        self._waiting[code, trips] = now()

    async def __call__(self, changes: Sequence[Change]) -> None:
        await asyncio.sleep(self._chance.choice((0, 0, 0.1, 1.5)))
        for change in changes:
            self._waiting.pop(told(change), None)
            self.count += 1

    def check(self, *watermarks: float | None) -> None:
        oldest = min(self._waiting.values(), default=now())
        assert all(moment is None or moment <= oldest + ROUNDING_SECS for moment in watermarks)


class Unhurried(Process):
    """Hears late which shards there are."""

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        if operation == "DescribeStream":
            await asyncio.sleep(0.7)
        return await super().__call__(operation, parameters)


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_is_not_handled_was_written_before_it(seed: int) -> None:
    chance, fake = random.Random(seed), FakeStreams()
    follower = Follower(chance)

    async def main() -> None:
        one, other = (Unhurried(fake, {"log": follower}) for _ in range(2))
        watching = Process(fake, {})
        lease = Lease(Graph(MODEL, watching))
        async with running(one):
            # A write before anybody reads is nobody's.
            await one.reader.caught_up()
            async with running(other):
                task = asyncio.create_task(lease.watch())
                for trips in range(300):
                    await _something(chance, fake, follower, trips, [one, watching])
                    for _ in range(chance.randrange(4)):
                        await asyncio.sleep(chance.choice((0, 0.01, 0.15, 0.5)))
                        follower.check(one.reader.watermark, other.reader.watermark, lease.watermark)
                    if trips == 200:
                        one.kill()
                one.gate.set()
                watching.gate.set()
                await other.reader.caught_up()
                await asyncio.sleep(4)
                assert _age(other.reader) < 1
                assert lease.watermark is not None
                assert now() - lease.watermark < 5
                task.cancel()

    run(main())

    assert follower.count >= 100


async def _something(
    chance: random.Random, fake: FakeStreams, follower: Follower, trips: int, asleep: list[Process]
) -> None:
    what = chance.random()
    if what < 0.6:
        code = chance.choice("abcdef")
        fake.write(code, trips)
        follower.written(code, trips)
    elif what < 0.65 and len(fake.open_shards()) < 6:
        fake.split(chance.choice(fake.open_shards()))
    elif what < 0.7:
        fake.roll(chance.choice(fake.open_shards()))
    elif what < 0.8:
        fake.throttled = chance.randrange(6)
    elif what < 0.9:
        # Requests take as long as they like.
        process = chance.choice(asleep)
        process.gate.clear()
        asyncio.get_running_loop().call_later(chance.choice((0.1, 0.9, 2.5)), process.gate.set)


def _age(reader: Reader) -> float:
    assert reader.watermark is not None
    return now() - reader.watermark


def test_it_stands_still_while_the_streams_are_not_answered() -> None:
    async def check(fake: FakeStreams, process: Process, _: object) -> None:
        await asyncio.sleep(1)
        assert _age(process.reader) < 0.5
        fake.throttled = 10_000
        await asyncio.sleep(20)
        assert _age(process.reader) > 15

    reading(check)


def test_it_is_not_known_before_anybody_has_read() -> None:
    async def main() -> None:
        process = Process(FakeStreams(), {})
        lease = Lease(Graph(MODEL, process))
        task = asyncio.create_task(lease.watch())
        await asyncio.sleep(30)
        task.cancel()
        assert (process.reader.watermark, lease.watermark) == (None, None)

    run(main())


def test_seconds_are_counted_from_the_last_look_before_the_write_before() -> None:
    watched = Watched()
    seen = []
    for began, number, behind in [(0, 7, 0.1), (1, 7, 0.1), (2, 8, 0.1), (3, 9, 0.2), (4, 9, 0.2), (5, 10, None)]:
        watched.look(float(began), number, behind)
        seen.append(watched.watermark)

    assert seen == [None, None, None, 0.8, 0.8, 0.8]
