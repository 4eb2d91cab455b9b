"""One of many processes reads, another goes on where it was killed, and subscribers where they were."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from graph.errors import PlaceLost
from graph.loaders import Graph
from graph.ours import STREAM
from graph.streams.lease import OWNER, Lease, LeaseLost
from graph.streams.replay import replay
from graph.streams.shards import Progress
from tests.clock import now, run
from tests.fake_streams import FIRST, MODEL, FakeStreams, Log, Process, reading, running, told

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


def test_whoever_has_lost_the_lease_writes_nothing_any_more() -> None:
    fake = FakeStreams()

    async def main() -> None:
        one, other = (Lease(Graph(MODEL, fake)) for _ in range(2))
        await one.take()
        await other.take()
        await other.renew({"fleet": Progress("arn", {"shard": FIRST})})
        (theirs,) = fake.items.values()

        with pytest.raises(LeaseLost):
            await one.renew({})
        await one.give_up({})
        assert list(fake.items.values()) == [theirs]

        # Nor may what is left under way of an earlier hold be taken for that of a later one.
        await other.give_up({"fleet": Progress("arn", {"shard": FIRST})})
        assert await one.take() == {"fleet": Progress("arn", {"shard": FIRST})}
        (mine,) = fake.items.values()
        assert mine[OWNER] != theirs[OWNER]

    run(main())


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
