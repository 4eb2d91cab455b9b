"""A short storm: server and engine are killed while clients write, and nothing is lost or half-written."""

from __future__ import annotations

import pytest

from tests.storm import blow


@pytest.mark.parametrize("copies", ["TRANSACTION", "STREAM"])
async def test_what_was_acknowledged_is_there_and_nothing_is_half_there(copies: str) -> None:
    storm = await blow(seconds=8, clients=8, kills=2, seed=1, copies=copies)

    assert storm.problems == []
    assert storm.tally["server killed"] == storm.tally["engine killed"] == 2
    assert sum(storm.tally[kind] for kind in ("create", "link", "move", "carry", "update", "delete")) > 20
