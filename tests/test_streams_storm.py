"""Everything at once: whatever happens to shards, iterators, handlers and readers, no change is missed or overtaken."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from graph.errors import Throttled
from graph.streams.change import Change, Handler
from tests.clock import run
from tests.fake_streams import FakeStreams, Log, Process

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("write"), st.sampled_from("abcdefgh")),
        st.tuples(st.just("wait"), st.sampled_from([0.01, 0.3, 1.1])),
        st.tuples(st.just("split"), st.integers(0, 7)),
        st.tuples(st.just("roll"), st.integers(0, 7)),
        st.tuples(st.just("kill"), st.none()),
        st.tuples(st.just("stop"), st.none()),
        st.tuples(st.just("expire"), st.none()),
        st.tuples(st.just("throttle"), st.integers(1, 5)),
        st.tuples(st.just("fail"), st.integers(1, 3)),
    ),
    max_size=60,
)


class Storm:
    """Does the steps, and keeps what each reader's handler was given."""

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps
        self.fake = FakeStreams()
        self.written: list[tuple[str, int]] = []
        self.lives: list[Log] = []
        self.failures = 0

    async def main(self) -> None:
        self.begin()
        await self.process.reader.caught_up()
        for step, what in self.steps:
            await self.do(step, what)
        await self.process.reader.caught_up()
        await self.end()

    def begin(self) -> None:
        log = Log()
        self.lives.append(log)
        self.process = Process(self.fake, {"log": self.handler(log)})
        self.task = asyncio.create_task(self.process.reader.run())

    def handler(self, log: Log) -> Handler:
        async def handle(changes: Sequence[Change]) -> None:
            if self.failures:
                self.failures -= 1
                raise Throttled("not now")
            await asyncio.sleep(0.05)
            await log(changes)

        return handle

    async def end(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    async def do(self, step: str, what: Any) -> None:
        open_shards = self.fake.open_shards()
        if step == "write":
            self.written.append((what, len(self.written)))
            self.fake.write(*self.written[-1])
        elif step == "wait":
            await asyncio.sleep(what)
        elif step in ("split", "roll"):
            getattr(self.fake, step)(open_shards[what % len(open_shards)])
        elif step in ("kill", "stop"):
            if step == "kill":
                self.process.kill()
            await self.end()
            self.begin()
        elif step == "expire":
            self.fake.expire()
        elif step == "throttle":
            self.fake.throttled += what
        else:
            self.failures += what


@given(STEPS)
def test_every_change_is_handled_and_each_items_in_order_between_restarts(steps: list[tuple[str, Any]]) -> None:
    storm = Storm(steps)
    run(storm.main())

    seen = [change for log in storm.lives for change in log.seen]
    assert set(seen) == set(storm.written)
    for log in storm.lives:
        for code in "abcdefgh":
            trips = [one for name, one in log.seen if name == code and one is not None]
            assert trips == sorted(trips)
