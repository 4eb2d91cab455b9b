"""The reader on streams at their worst: every change is handled, in its order, whatever becomes of its shards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.errors import PlaceLost, StreamError, Throttled
from graph.ours import STREAM
from graph.streams.change import Change, Handler
from graph.streams.lease import OWNER
from graph.streams.replay import replay
from tests.clock import now, run
from tests.fake_streams import FakeStreams, Process


class Log:
    """A handler that keeps what it is given: (item, trips) of each change."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    async def __call__(self, changes: Sequence[Change]) -> None:
        self.changes += changes

    @property
    def seen(self) -> list[tuple[str, int | None]]:
        return [told(change) for change in self.changes]


def told(change: Change) -> tuple[str, int | None]:
    code = str(change.key[1][0][1]).removeprefix("SHIP#")
    return code, None if change.after is None else int(change.after["Trips"]["N"])


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[Process]:
    """Let a process read until it is stopped, or has been killed."""
    task = asyncio.create_task(process.reader.run())
    try:
        yield process
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def reading(
    check: Callable[[FakeStreams, Process, Log], Awaitable[None]], fake: FakeStreams | None = None
) -> FakeStreams:
    """Check something while a process reads that has caught up with what there was."""
    streams, log = fake or FakeStreams(), Log()

    async def main() -> None:
        async with running(Process(streams, {"log": log})) as process:
            await process.reader.caught_up()
            await check(streams, process, log)

    run(main())
    return streams


# --- shards -------------------------------------------------------------------------------------------------------


def test_first_reader_begins_with_what_is_written_from_then_on() -> None:
    fake = FakeStreams()
    fake.write("a", 1)

    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        fake.write("a", 2)
        fake.write("b", 1)
        fake.write("a", None)
        await process.reader.caught_up()

        assert log.seen == [("a", 2), ("b", 1), ("a", None)]
        assert process.reader.lag == 0

    reading(check, fake)


def test_children_are_read_after_their_parents_and_from_their_beginning() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        for trips in range(40):
            if trips % 10 == 5:
                for shard in fake.open_shards():
                    fake.split(shard)
            for code in "abc":
                fake.write(code, trips)
        await process.reader.caught_up()

        assert len(fake.open_shards()) == 16
        for code in "abc":
            assert [trips for name, trips in log.seen if name == code] == list(range(40))

    reading(check)


def test_expired_iterator_is_replaced_where_reading_was() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        for trips in range(10):
            fake.write("a", trips)
            fake.expire()
            await asyncio.sleep(0.1)
        await process.reader.caught_up()

        assert log.seen == [("a", trips) for trips in range(10)]

    reading(check)


def test_iterator_that_expires_before_anything_was_read_loses_nothing() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        fake.expire()
        fake.write("a", 1)
        await process.reader.caught_up()

        assert log.seen == [("a", 1)]

    reading(check)


def test_what_was_trimmed_away_is_counted_and_told_and_the_rest_is_read(caplog: pytest.LogCaptureFixture) -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        (shard,) = fake.open_shards()
        fake.write("a", 1)
        await process.reader.caught_up()
        fake.write("a", 2)
        fake.trim(shard)
        fake.write("a", 3)
        await process.reader.caught_up()

        assert log.seen == [("a", 1), ("a", 3)]
        assert process.reader.figures.gaps == 1

    reading(check)

    assert "changes are lost" in caplog.text


def test_parent_that_is_trimmed_away_counts_as_read() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        (shard,) = fake.open_shards()
        fake.split(shard)
        fake.drop(shard)
        fake.write("a", 1)
        await process.reader.caught_up()

        assert log.seen == [("a", 1)]

    reading(check)


def test_throttling_only_takes_time() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        fake.throttled = 50
        fake.write("a", 1)
        await process.reader.caught_up()

        assert log.seen == [("a", 1)]
        assert not fake.throttled

    reading(check)


def test_shard_is_asked_as_often_as_dynamodb_takes_it() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        before, began = len(fake.requests), now()
        while now() < began + 20:
            fake.write("a", int(now() * 100))
            await asyncio.sleep(0.01)

        asked = [operation for operation, _ in fake.requests[before:] if operation == "GetRecords"]
        assert 95 <= len(asked) <= 101

    reading(check)


def test_another_stream_in_the_place_of_the_first_is_read_from_its_beginning() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        fake.write("a", 1)
        await process.reader.caught_up()
        (shard,) = fake.open_shards()
        fake.roll(shard)
        fake.drop(shard)
        fake.shards = {f"{name}-of-2": one for name, one in fake.shards.items()}
        for name, one in fake.shards.items():
            one.id, one.parent = name, None
        fake.arn = "arn:stream/2"
        fake.write("a", 2)
        await asyncio.sleep(30)

        assert log.seen == [("a", 1), ("a", 2)]

    reading(check)


@pytest.mark.parametrize(
    ("view", "cure"), [(None, "`tablegraph apply` turns it on"), ("KEYS_ONLY", "expected NEW_AND_OLD_IMAGES")]
)
def test_table_without_the_stream_that_is_needed_is_told_once_and_followed_when_it_has_one(
    view: str | None, cure: str, caplog: pytest.LogCaptureFixture
) -> None:
    fake, log = FakeStreams(), Log()
    fake.view = view

    async def main() -> None:
        process = Process(fake, {"log": log})
        with pytest.raises(StreamError, match=cure):
            await process.source.streams()
        async with running(process):
            await asyncio.sleep(60)
            assert process.reader.problem is not None
            assert cure in process.reader.problem
            fake.view = "NEW_AND_OLD_IMAGES"
            await process.reader.caught_up()
            fake.write("a", 1)
            await process.reader.caught_up()
            assert process.reader.problem is None

    run(main())

    assert log.seen == [("a", 1)]
    assert caplog.text.count(cure) == 1


# --- handlers -----------------------------------------------------------------------------------------------------


def test_handler_that_fails_gets_the_same_changes_again_and_the_others_do_not() -> None:
    fake, log, tries = FakeStreams(), Log(), []

    async def failing(changes: Sequence[Change]) -> None:
        tries.append([told(change) for change in changes])
        if len(tries) < 4:
            raise Throttled("not now")

    async def main() -> None:
        async with running(Process(fake, {"failing": failing, "log": log})) as process:
            await process.reader.caught_up()
            fake.write("a", 1)
            fake.write("a", 2)
            await process.reader.caught_up()
            assert (process.reader.figures.failures, process.reader.figures.changes) == (3, 2)

    run(main())

    assert tries == [[("a", 1), ("a", 2)]] * 4
    assert log.seen == [("a", 1), ("a", 2)]


def test_change_that_no_try_helps_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    fake, log = FakeStreams(), Log()

    async def poisoned(changes: Sequence[Change]) -> None:
        if ("a", 2) in map(told, changes):
            raise ValueError("poison")
        await log(changes)

    async def main() -> None:
        async with running(Process(fake, {"poisoned": poisoned})) as process:
            await process.reader.caught_up()
            for trips in range(8):
                fake.write("a", trips)
            await process.reader.caught_up()
            assert process.reader.figures.abandoned == 1

    run(main())

    assert log.seen == [("a", trips) for trips in range(8) if trips != 2]
    assert "poisoned cannot handle the change of ('fleet', (('PK', 'SHIP#a')" in caplog.text


def test_slow_handler_does_not_keep_the_others_waiting_and_nothing_of_its_own_is_forgotten() -> None:
    fake, log, slow = FakeStreams(), Log(), Log()
    gate = asyncio.Event()

    async def waiting(changes: Sequence[Change]) -> None:
        await gate.wait()
        await slow(changes)

    async def main() -> None:
        process = Process(fake, {"slow": waiting, "log": log})
        async with running(process):
            await process.reader.caught_up()
            last = [fake.write("a", trips) for trips in range(12)][-1]
            await asyncio.sleep(5)
            assert len(log.seen) == 12
            (position,) = process.reader.places("log").values()
            assert position >= last
            (position,) = process.reader.places().values()
            assert position < last
            process.kill()
        gate.set()
        async with running(Process(fake, {"slow": waiting, "log": log})) as second:
            await second.reader.caught_up()

    run(main())

    assert slow.seen == [("a", trips) for trips in range(12)]


# --- the lease ----------------------------------------------------------------------------------------------------


def test_one_reads_and_another_takes_over_within_five_seconds_of_its_death() -> None:
    fake, first, second = FakeStreams(), Log(), Log()

    async def main() -> float:
        one, other = Process(fake, {"log": first}), Process(fake, {"log": second})
        async with running(one):
            await one.reader.caught_up()
            async with running(other):
                fake.write("a", 1)
                await asyncio.sleep(20)
                assert (one.reader.is_reading, other.reader.is_reading) == (True, False)
                assert second.seen == []
                one.kill()
                killed = now()
                fake.write("a", 2)
                await other.reader.caught_up()
                return now() - killed

    took = run(main())

    assert took < 5.5
    assert first.seen == [("a", 1)]
    assert second.seen == [("a", 2)]


def test_lease_is_given_up_when_a_reader_stops() -> None:
    fake, log = FakeStreams(), Log()

    async def main() -> None:
        for trips in range(3):
            began = now()
            async with running(Process(fake, {"log": log})) as process:
                await process.reader.caught_up()
                assert now() - began < 1
                fake.write("a", trips)
                await process.reader.caught_up()

    run(main())

    assert log.seen == [("a", trips) for trips in range(3)]


def test_reader_that_forgets_leaves_nothing_to_go_on_from() -> None:
    fake, log = FakeStreams(), Log()

    async def main() -> None:
        task = asyncio.create_task(Process(fake, {"log": log}).reader.run(forgets=lambda: True))
        await asyncio.sleep(5)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        fake.write("a", 1)
        async with running(Process(fake, {"log": log})) as process:
            await process.reader.caught_up()
            fake.write("a", 2)
            await process.reader.caught_up()

    run(main())

    assert log.seen == [("a", 2)]


def test_reader_that_was_asleep_writes_no_checkpoint_once_another_reads() -> None:
    fake, log = FakeStreams(), Log()

    async def main() -> None:
        asleep, other = Process(fake, {"log": Log()}), Process(fake, {"log": log})
        async with running(asleep):
            await asleep.reader.caught_up()
            # Its requests hang, and with them the renewal of its lease.
            asleep.gate.clear()
            async with running(other):
                await other.reader.caught_up()
                fake.write("a", 1)
                await other.reader.caught_up()
                (written,) = [item for item in fake.items.values() if STREAM in item]
                asleep.gate.set()
                await asyncio.sleep(0.5)
                (now_written,) = [item for item in fake.items.values() if STREAM in item]
                assert now_written[OWNER] == written[OWNER]
                assert (asleep.reader.is_reading, other.reader.is_reading) == (False, True)

    run(main())

    assert log.seen == [("a", 1)]


def test_reader_that_reaches_nobody_stops_by_itself() -> None:
    fake = FakeStreams()

    async def main() -> None:
        async with running(Process(fake, {"log": Log()})) as process:
            await process.reader.caught_up()
            process.kill()
            await asyncio.sleep(6)
            assert not process.reader.is_reading

    run(main())


# --- replays ------------------------------------------------------------------------------------------------------


async def replayed(process: Process, places: dict[str, int]) -> list[tuple[str, int | None]]:
    return [told(change) async for change in replay(process.source, places)]


def test_replay_gives_what_came_after_a_place_from_the_children_of_its_shards_too() -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        fake.write("a", 1)
        await process.reader.caught_up()
        places = dict(process.reader.places())
        for trips in range(2, 30):
            if trips % 7 == 0:
                for shard in fake.open_shards():
                    fake.split(shard)
            fake.write("a", trips)

        assert await replayed(process, places) == [("a", trips) for trips in range(2, 30)]
        await process.reader.caught_up()
        assert await replayed(process, dict(process.reader.places())) == []

    reading(check)


def test_replay_of_a_shard_of_which_nothing_had_been_read_begins_then() -> None:
    fake = FakeStreams()
    fake.write("a", 1)
    fake.open_shards()[0].records[0]["dynamodb"]["ApproximateCreationDateTime"] -= 60.0

    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        places = dict(process.reader.places())
        fake.write("a", 2)

        assert await replayed(process, places) == [("a", 2)]

    reading(check, fake)


@pytest.mark.parametrize("gone", ["records", "shard"])
def test_replay_of_what_is_trimmed_away_is_refused(gone: str) -> None:
    async def check(fake: FakeStreams, process: Process, log: Log) -> None:
        fake.write("a", 1)
        await process.reader.caught_up()
        places = dict(process.reader.places())
        fake.write("a", 2)
        (shard,) = fake.open_shards()
        fake.roll(shard)
        if gone == "shard":
            fake.drop(shard)
        else:
            fake.trim(shard)

        with pytest.raises(PlaceLost, match="no longer holds"):
            await replayed(process, places)

    reading(check)


# --- all of it at once --------------------------------------------------------------------------------------------

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
