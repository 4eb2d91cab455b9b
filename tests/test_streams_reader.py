"""The reader on streams at their worst: every change is handled, in its order, whatever becomes of its shards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import pytest

from graph.errors import StreamError, Throttled
from graph.streams.change import Change
from tests.clock import now, run
from tests.fake_streams import FakeStreams, Log, Process, reading, running, told

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


def test_listener_hears_where_shards_begin_and_which_are_over_once_their_children_have_begun() -> None:
    fake = FakeStreams()
    heard: list[tuple[object, ...]] = []

    class Ears:
        def begin(self, places: Mapping[str, int]) -> None:
            heard.extend(("begin", int(name[-2:]), place > 0) for name, place in places.items())

        def end(self, shards: Iterable[str]) -> None:
            heard.extend(("end", int(name[-2:])) for name in shards)

    async def main() -> None:
        for _ in range(2):
            async with running(Process(fake, {"log": Log()}, Ears())) as process:
                await process.reader.caught_up()
                fake.write("a", 1)
                await process.reader.caught_up()
                fake.split(fake.open_shards()[0])
                await process.reader.caught_up()

    run(main())

    first, second = heard[: heard.index(("end", 0)) + 1], heard[heard.index(("end", 0)) + 1 :]
    assert first == [("begin", 0, False), ("begin", 1, False), ("begin", 2, False), ("end", 0)]
    # The second reader goes on with the children, of which one splits again.
    assert [one[:2] for one in second] == [("begin", 1), ("begin", 2), ("begin", 3), ("begin", 4), ("end", 1)]


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
    ("view", "cure"), [(None, "`tablegraph table apply` turns it on"), ("KEYS_ONLY", "expected NEW_AND_OLD_IMAGES")]
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


def test_handler_whose_own_work_is_cancelled_has_failed_and_goes_on() -> None:
    fake, log, tries = FakeStreams(), Log(), []

    async def cancelling(changes: Sequence[Change]) -> None:
        tries.append(len(changes))
        if len(tries) == 1:
            raise asyncio.CancelledError
        await log(changes)

    async def main() -> None:
        async with running(Process(fake, {"cancelling": cancelling})) as process:
            await process.reader.caught_up()
            fake.write("a", 1)
            await process.reader.caught_up()

    run(main())

    assert (tries, log.seen) == ([1, 1], [("a", 1)])


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
