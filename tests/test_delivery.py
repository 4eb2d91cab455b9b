"""Several servers deliver what is written while the one that reads the stream is killed: nothing is lost or doubled."""

from __future__ import annotations

import pytest

from tests.delivery import deliver
from tests.valkey_server import SERVER


@pytest.mark.skipif(SERVER is None, reason="neither valkey-server nor redis-server is on PATH")
async def test_every_subscriber_gets_every_write_once_though_the_reader_is_killed() -> None:
    run = await deliver(seconds=6, rate=50, subscribers=4, kills=1)

    assert run.problems == []
    assert run.tally["readers killed"] == 1
    assert len(run.acknowledged) > 20
