"""Golden files of subscriptions: what a subscriber to the seed's bananas is told of some writes, by which requests.

`tests/golden-events/*.graphql` are subscriptions, each with a `.json` beside it, and begin with the mutations that are
sent one after the other while it is open:

    # write: mutation { deleteContainer(key: {number: "009998"}) { deletedId } }

Each event is executed when all has been written. Places in the stream are of each run, so no file asks for the
`cursor` of a change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import BANANAS, ROOT, Serve, banana_items
from tests.following import follow
from tests.test_golden import agree, as_designed, pretty, refuse_orphans

GOLDEN = ROOT / "tests/golden-events"
SUBSCRIPTIONS = sorted(GOLDEN.glob("*.graphql"))
WRITE = "# write: "


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether to rewrite the golden files instead of comparing."""
    return bool(request.config.getoption("--update-golden"))


@pytest.mark.parametrize("path", SUBSCRIPTIONS, ids=lambda path: path.stem)
async def test_events_and_requests_are_as_golden(path: Path, serve: Serve, engine: str, update: bool) -> None:
    bananas = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)
    events = await bananas.open(path.read_text())
    for line in path.read_text().splitlines():
        if line.startswith(WRITE):
            await bananas.write(line.removeprefix(WRITE))
    bananas.hub.close()

    golden = []
    async for body in events:
        sent = [
            {name: as_designed(parameters, bananas.served.table, "banana-delivery")}
            for name, parameters in bananas.served.sent
        ]
        golden.append({"response": body, "requests": sent})
        bananas.served.sent.clear()

    assert golden, "the writes tell something"
    agree(path.with_suffix(".json"), pretty(golden) + "\n", update=update)


def test_every_golden_event_has_its_subscription(update: bool) -> None:
    refuse_orphans(GOLDEN, ".json", {path.stem for path in SUBSCRIPTIONS}, update=update)

    assert SUBSCRIPTIONS
