"""Slots: how many, in which order those who wait get one, and that none is ever lost."""

from __future__ import annotations

import asyncio
import random

import pytest

from graph.slots import Slots
from tests.clock import now, run, turns


class Queue:
    """Those who ask for a slot of one group or another, in the order in which they got it."""

    def __init__(self, slots: Slots) -> None:
        self.served: list[str] = []
        self.asked: list[asyncio.Task[None]] = []
        self._slots = slots

    def ask(self, *names: str) -> None:
        """Ask for slots; the first letter of a name is the group."""
        self.asked += [asyncio.ensure_future(self._wait(name)) for name in names]

    async def _wait(self, name: str) -> None:
        if not self._slots.take():
            await self._slots.turn(name[0])
        self.served.append(name)

    async def free(self, count: int = 1) -> str:
        """Give back so many slots, and say who was served."""
        before = len(self.served)
        for _ in range(count):
            self._slots.free()
        await turns()
        return " ".join(self.served[before:])


def test_free_slots_are_taken_without_waiting() -> None:
    slots = Slots(2)

    assert [slots.take() for _ in range(4)] == [True, True, False, False]
    slots.free()
    assert [slots.take() for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("asked", "served"),
    [
        pytest.param("a1 a2 a3 a4", "a1 a2 a3 a4", id="one-group-in-order"),
        pytest.param("a1 a2 a3 a4 b1", "a1 b1 a2 a3 a4", id="one-beside-many"),
        pytest.param("a1 a2 a3 b1 b2 c1", "a1 b1 c1 a2 b2 a3", id="round-by-round"),
        pytest.param("a1 b1 b2 b3 a2 c1", "a1 b1 c1 a2 b2 b3", id="later-requests-of-a-group-are-behind-its-first"),
    ],
)
def test_groups_take_turns(asked: str, served: str) -> None:
    async def main() -> None:
        slots = Slots(1)
        slots.take()
        queue = Queue(slots)
        queue.ask(*asked.split())
        await turns()

        assert [await queue.free() for _ in served.split()] == served.split()

    run(main())


def test_group_with_one_request_waits_for_one_round_of_the_groups_and_not_for_a_thousand_requests() -> None:
    async def main() -> None:
        slots = Slots(1)
        slots.take()
        queue = Queue(slots)
        for number in range(1000):
            queue.ask(f"a{number}", f"b{number}")
        await turns()
        for _ in range(10):
            await queue.free()

        queue.ask("c")
        await turns()

        assert [await queue.free() for _ in range(3)] == ["a5", "b5", "c"]

    run(main())


def test_who_has_gone_is_passed_over() -> None:
    async def main() -> None:
        slots = Slots(1)
        slots.take()
        queue = Queue(slots)
        queue.ask("a1", "b1", "b2")
        await turns()

        for asked in queue.asked[:2]:
            asked.cancel()

        assert await queue.free() == "b2"

    run(main())


def test_slot_of_who_was_given_it_and_has_gone_is_the_next_ones() -> None:
    async def main() -> None:
        slots = Slots(1)
        slots.take()
        queue = Queue(slots)
        queue.ask("a1", "a2")
        first, second = queue.asked
        await turns()

        slots.free()
        first.cancel()
        await turns()

        assert first.cancelled()
        assert queue.served == ["a2"]
        assert second.done()

    run(main())


def test_nobody_waits_beyond_his_deadline() -> None:
    async def main() -> None:
        slots = Slots(1)
        slots.take()
        waiting = [asyncio.ensure_future(slots.turn("a", deadline)) for deadline in (None, 3.0, 5.0)]

        with pytest.raises(TimeoutError):
            await waiting[1]
        assert now() == 3.0
        slots.free()
        await waiting[0]
        slots.free()
        await waiting[2]

        assert now() == 3.0
        assert not slots.take()

    run(main())


def test_who_goes_at_his_deadline_gives_no_slot_back_that_he_never_had() -> None:
    async def main() -> None:
        slots = Slots(1)
        slots.take()
        waiting = asyncio.ensure_future(slots.turn("a", 3.0))
        await turns()
        asyncio.get_running_loop().call_at(3.0, waiting.cancel)

        await asyncio.wait([waiting])

        assert waiting.cancelled()
        assert not slots.take()

    run(main())


@pytest.mark.parametrize("seed", range(20))
def test_no_slot_is_lost_or_made(seed: int) -> None:
    """Whoever asks, works, fails or goes when."""
    under_way = most = 0
    slots = Slots(3)
    chance = random.Random(seed)

    async def work(group: int) -> None:
        nonlocal under_way, most
        if not slots.take():
            await slots.turn(group, chance.choice([None, now() + 0.001]))
        under_way += 1
        most = max(most, under_way)
        try:
            await asyncio.sleep(chance.choice([0, 0.0005]))
        finally:
            under_way -= 1
            slots.free()

    async def main() -> None:
        asked = []
        for _ in range(200):
            asked.append(asyncio.ensure_future(work(chance.randrange(4))))
            await turns(chance.randrange(3))
            if chance.random() < 0.5:
                chance.choice(asked).cancel()
        await asyncio.wait(asked)

        assert most == 3
        assert [slots.take() for _ in range(4)] == [True, True, True, False]

    run(main())
