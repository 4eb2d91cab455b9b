"""Any mutations on any model of copies by stream: when all has followed, the whole table is what an oracle says.

TABLEGRAPH_EXAMPLES multiplies the number of models.
"""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graph.client import Transport
from tests.conftest import Serve
from tests.harbour import World, differences, worlds
from tests.shop import brief
from tests.streams import Chaos, catch_up, stream_of
from tests.test_mutations_models import Step
from tests.written import codes, stored

EXAMPLES = 40 * int(os.environ.get("TABLEGRAPH_EXAMPLES", "1"))
STEPS = 24


@given(world=worlds(), data=st.data(), seed=st.integers(0, 2**32))
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
)
async def test_all_follows_however_the_changes_come(
    engine: str, transport: Transport, serve: Serve, world: World, data: st.DataObject, seed: int
) -> None:
    sdl = world.sdl.replace('sortKey: "sk"', 'sortKey: "sk", copies: STREAM', 1)
    served = await serve(sdl)
    stream = stream_of(engine, served)
    chaos = Chaos(served.graph, transport, random.Random(seed))

    for _ in range(STEPS):
        step = Step(world, data)
        body = await served(step.query, step.variables)
        said = f"{step.query} {step.variables} {body} {sdl}"
        if step.codes:
            assert {one[0] for one in codes(body).values()} & step.codes, said
        else:
            assert "errors" not in body, said
        if data.draw(st.integers(0, 2)) == 0:
            # Some follow early, others when more has been written.
            await chaos.follow(stream.read())

    await catch_up(stream, chaos.follow)

    wrong = differences(world, list((await stored(served)).values()))
    assert wrong == [], f"{wrong} {sdl}"
    assert await brief(served) == [], sdl
