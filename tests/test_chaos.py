"""A bad day of DynamoDB, in short: what is read is right, in time, and what is written is written once."""

from __future__ import annotations

import pytest

from tests.chaos import is_part, read
from tests.faults import Faults
from tests.storm import blow


@pytest.mark.parametrize(("example", "transport"), [("bananas", "wire"), ("b2b", "boto3")])
async def test_reads_are_right_and_in_time(example: str, transport: str) -> None:
    chaos, faults = await read(example, seconds=5, clients=8, seed=1, faults=Faults(), transport=transport)

    assert chaos.problems == []
    assert chaos.tally["right"] > 20
    assert all(faults[kind] for kind in ("throttled", "failed", "unprocessed", "slow", "reset"))


async def test_writes_are_neither_lost_nor_done_twice() -> None:
    storm = await blow(seconds=5, clients=8, kills=0, seed=1, faults=Faults())

    assert storm.problems == []
    assert storm.tally["INTERNAL"] == 0


def test_a_part_filled_page_has_the_beginning_of_the_whole_one_and_goes_on() -> None:
    def answer(nodes: list[int], *, goes_on: bool, name: str = "a") -> object:
        return {"x": {"name": name, "boxes": {"pageInfo": {"hasNextPage": goes_on, "endCursor": "c"}, "nodes": nodes}}}

    whole = answer([1, 2, 3], goes_on=False)

    assert is_part(whole, answer([1, 2], goes_on=True))
    assert is_part(whole, answer([], goes_on=True))
    assert not is_part(whole, answer([1, 2], goes_on=False))
    assert not is_part(whole, answer([1, 3], goes_on=True))
    assert not is_part(whole, answer([1, 2], goes_on=True, name="b"))
