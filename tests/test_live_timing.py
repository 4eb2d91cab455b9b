"""Live queries by the clock: bursts, settling, failures, and whatever is written whenever: the last answer is right."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from graphql import GraphQLError
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import RequestRefused, StreamError
from graph.loaders import Graph
from graph.requests import GetItem, Item, ItemKey
from graph.streams.hub import Hub
from graph.streams.topics import of_item
from resolvers.live import MOST_AT_ONCE, SETTLE_SECS, LiveQueries
from resolvers.operation import Response
from resolvers.schema import Api
from tests.clock import now, run, turns
from tests.conftest import Served
from tests.fleet import CONNECTIONS, MODEL, Connection, Loading, World, loadings, wheres, worlds
from tests.stage import Stage
from tests.watching import Watched

CRATE = 'query @live { crate(number: "1") { load } }'
TURNED = 'query @live { crate(number: "1") { ships { nodes { number } } } }'


def crate(number: str, load: int) -> Item:
    """Write a crate."""
    key = {"S": f"CRATE#{number}"}
    return {"PK": key, "SK": key, "load": {"N": str(load)}}


def key_of(item: Item) -> ItemKey:
    """Give the key of an item."""
    return "fleet", (("PK", item["PK"]["S"]), ("SK", item["SK"]["S"]))


GRAPH = Graph(MODEL, Stage(MODEL))
API = Api(GRAPH)


def served_by(stage: Stage) -> Served:
    """Serve a stage; the API, which takes long to make, is always the same one."""
    GRAPH._client = stage
    return Served(API, GRAPH, "fleet")


class Listener:
    """Takes the answers of a live query as they come, each with its time."""

    def __init__(self, watched: Watched, takes: float = 0.0) -> None:
        self.watched = watched
        self.times: list[float] = []
        self._takes = takes
        self._task = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        async for answer in self.watched.events:
            self.watched.answers.append(answer)
            self.times.append(now())
            await asyncio.sleep(self._takes)

    async def end(self) -> list[Any]:
        """Close the query, which ends the listening; give all answers."""
        await self.watched.events.aclose()
        await self._task
        return self.watched.answers


def loads(answers: list[Any]) -> list[int | None]:
    """List what the answers say of the crate."""
    return [answer["data"]["crate"] and answer["data"]["crate"]["load"] for answer in answers]


# --- when ---------------------------------------------------------------------------------------------------------


def test_a_burst_is_answered_once_it_is_over() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub, throttle_secs=0.1)
        listener = Listener(watched)
        begin = now()

        for load in range(5):
            stage.write([crate("1", load)])
            await asyncio.sleep(0.05)
        await asyncio.sleep(5)

        assert loads(await listener.end()) == [None, 4]
        assert watched.executions == 2
        assert listener.times == [pytest.approx(begin + 0.2 + 0.1)]

    run(main())


def test_changes_that_do_not_cease_are_answered_all_the_same() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub, throttle_secs=0.1)
        listener = Listener(watched)

        for load in range(100):
            stage.write([crate("1", load)])
            await asyncio.sleep(0.05)

        assert len(listener.times) in (4, 5)
        assert watched.executions == len(listener.times) + 1
        await listener.end()

    run(main())


def test_who_takes_answers_late_finds_the_newest() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub, throttle_secs=0.1)
        listener = Listener(watched, takes=100)

        for load in range(50):
            stage.write([crate("1", load)])
            await asyncio.sleep(1)
        await asyncio.sleep(200)

        assert loads(await listener.end()) == [None, 0, 49]
        assert watched.executions == 3

    run(main())


def test_more_changes_than_can_wait_are_one_more_execution() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        stage.hub = Hub(MODEL, most_waiting=10)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)

        stage.write([crate("1", load) for load in range(50)])
        await asyncio.sleep(5)
        stage.write([crate("1", 7)])
        await asyncio.sleep(5)

        assert loads(await listener.end()) == [None, 49, 7]
        assert watched.executions == 3

    run(main())


def test_an_index_that_is_behind_is_read_once_more() -> None:
    async def main() -> None:
        stage = Stage(MODEL, behind=SETTLE_SECS * 0.9)
        stage.write([crate("1", 0)])
        await turns()
        watched = await Watched(served_by(stage), TURNED).begin(stage.hub)
        listener = Listener(watched)
        await asyncio.sleep(10)
        assert watched.executions == 2

        stage.write([Loading("2", "1", "2022-01-01", "X", "AFLOAT", None).wire()])
        await asyncio.sleep(10)

        answers = await listener.end()
        assert [answer["data"]["crate"]["ships"]["nodes"] for answer in answers] == [[], [{"number": "2"}]]
        assert watched.executions == 4

    run(main())


def test_what_reads_the_table_alone_is_not_read_again() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)

        await asyncio.sleep(100)

        assert watched.executions == 1
        await listener.end()

    run(main())


def test_what_is_told_during_the_first_execution_is_not_missed() -> None:
    async def main() -> None:
        stage = Stage(MODEL, takes=2.0)
        watched = Watched(served_by(stage), CRATE)
        opening = asyncio.ensure_future(watched.begin(stage.hub))

        await asyncio.sleep(1.5)
        stage.write([crate("1", 1)])
        await opening
        listener = Listener(watched)
        await asyncio.sleep(10)

        assert loads(await listener.end()) == [None, 1]

    run(main())


def test_what_is_no_longer_read_is_no_longer_waited_for() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        old, new = Loading("1", "3", "", "X", "", None), Loading("1", "2", "", "X", "", None)
        stage.write([crate("2", 0), crate("3", 0), old.wire()])
        await turns()
        query = 'query @live { ship(number: "1") { crates(first: 1) { nodes { load } } } }'
        watched = await Watched(served_by(stage), query).begin(stage.hub)
        listener = Listener(watched)
        before = set(stage.hub._by_topic)

        stage.write([new.wire()])
        await asyncio.sleep(10)

        assert before - set(stage.hub._by_topic) == {of_item(key_of(crate("3", 0)))}
        assert set(stage.hub._by_topic) - before == {of_item(key_of(crate("2", 0)))}
        await listener.end()

    run(main())


# --- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_failure_is_told_and_tried_again() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        stage.write([crate("1", 1)])
        await turns()
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)

        stage.failing = len(stage.requests)
        stage.write([crate("1", 2)])
        await asyncio.sleep(5)

        _, failed, mended = await listener.end()
        assert failed["errors"][0]["extensions"]["code"] == "STORE_UNAVAILABLE"
        assert loads([mended]) == [2]
        assert listener.times[1] - listener.times[0] == pytest.approx(1.0)

    run(main())


def test_an_error_that_stays_is_told_once_and_not_tried_again() -> None:
    async def main() -> None:
        stage = Refusing(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)

        await asyncio.sleep(100)
        assert watched.executions == 1
        stage.write([crate("1", 2)])
        await asyncio.sleep(100)

        (answer,) = await listener.end()
        assert answer["errors"][0]["extensions"]["code"] == "REQUEST_REFUSED"
        assert watched.executions == 2

    run(main())


class Refusing(Stage):
    """A table that refuses to be read."""

    async def send(self, request: Any, *_: Any) -> Any:
        raise RequestRefused("not like this")


def test_a_query_that_is_refused_is_a_response() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = Watched(served_by(stage), "query ($n: ID!) @live { crate(number: $n) { load } }")

        opened = await LiveQueries(stage.hub).open(watched.execute, 0.1)

        assert isinstance(opened, Response)
        assert opened.outcome == "refused"
        assert not stage.hub._by_topic

    run(main())


# --- the end ------------------------------------------------------------------------------------------------------


def test_closing_ends_who_waits_for_a_change() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)
        await turns()

        assert loads(await listener.end()) == [None]
        assert not stage.hub._by_topic

    run(main())


def test_closing_ends_the_execution_under_way() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        stage.takes = 20.0
        listener = Listener(watched)
        begin = now()
        stage.write([crate("1", 1)])
        await asyncio.sleep(1)

        assert loads(await listener.end()) == [None]
        assert now() - begin == pytest.approx(1)
        assert not stage.hub._by_topic

    run(main())


def test_who_waits_may_be_cancelled() -> None:
    async def main() -> None:
        stage = Stage(MODEL, takes=2.0)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)

        stage.write([crate("1", 1)])
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1):
                    await anext(aiter(watched.events))

        assert loads([await watched.next()]) == [1]
        await watched.events.aclose()

        assert not stage.hub._by_topic
        with pytest.raises(StopAsyncIteration):
            await anext(aiter(watched.events))

    run(main())


def test_the_end_of_the_hub_is_its_end() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)
        await turns()

        stage.hub.close()

        async with asyncio.timeout(1):
            await listener._task

    run(main())


def test_the_end_of_the_hub_ends_it_behind_the_execution_under_way() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        stage.takes = 2.0
        listener = Listener(watched)
        stage.write([crate("1", 1)])
        await asyncio.sleep(1)

        stage.hub.close()

        async with asyncio.timeout(5):
            await listener._task
        assert loads(watched.answers) == [None, 1]

    run(main())


def test_changes_that_went_past_are_one_more_execution() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)
        listener = Listener(watched)
        await turns()

        stage.told_after = 1e9
        stage.write([crate("1", 1)])
        stage.hub.fail(StreamError("changes went past"))
        await asyncio.sleep(5)
        stage.hub.fail(StreamError("changes went past again"))
        await asyncio.sleep(5)

        assert loads(await listener.end()) == [None, 1]
        assert watched.executions == 3

    run(main())


def test_where_changes_no_longer_come_it_ends() -> None:
    async def main() -> None:
        stage = Stage(MODEL)
        watched = await Watched(served_by(stage), CRATE).begin(stage.hub)

        async def nobody_reads() -> None:
            raise StreamError("nobody reads the stream")

        stage.hub._ready = nobody_reads
        stage.hub.fail(StreamError("changes went past"))

        with pytest.raises(StreamError, match="nobody reads"):
            await anext(aiter(watched.events))
        with pytest.raises(GraphQLError, match="nobody reads"):
            await LiveQueries(stage.hub).open(watched.execute, 0.1)
        assert not stage.hub._by_topic

    run(main())


def test_what_concerns_many_is_executed_some_at_a_time() -> None:
    async def main() -> None:
        stage = Counting(MODEL, takes=0.01)
        queries = LiveQueries(stage.hub)
        served = served_by(stage)
        listeners: list[Listener] = []
        for _ in range(100):
            watched = Watched(served, CRATE)
            opened = await queries.open(watched.execute, 0.1)
            assert not isinstance(opened, Response)
            watched.events = opened
            listeners.append(Listener(watched))

        stage.write([crate("1", 1)])
        await asyncio.sleep(10)

        assert [loads(await listener.end()) for listener in listeners] == [[None, 1]] * 100
        assert stage.most == MOST_AT_ONCE

    run(main())


class Counting(Stage):
    """Counts how many are read at once."""

    here = most = 0

    async def send(self, request: Any, *rest: Any) -> Any:
        assert isinstance(request, GetItem)
        self.here += 1
        self.most = max(self.most, self.here)
        try:
            return await super().send(request, *rest)
        finally:
            self.here -= 1


# --- whatever is written ------------------------------------------------------------------------------------------

Step = tuple[float, list[Item], list[ItemKey]]
"""A pause, and what is written and deleted behind it."""

numbers = st.integers(0, 9).map(str)


@st.composite
def steps(draw: st.DrawFn, world: World) -> Step:
    """Draw a write: of links, of nodes, of what hangs on them; often of what is there already."""
    pause = draw(st.sampled_from([0.0, 0.0, 0.01, 0.05, 0.3, 3.0]))
    there = sorted(world.wires(), key=lambda one: (one["PK"]["S"], one["SK"]["S"]))
    put = st.one_of(
        loadings().map(Loading.wire),
        st.builds(crate, numbers, st.integers(0, 5)),
        st.sampled_from(["1", "2"]).map(lambda ship: {"PK": {"S": "FLEET#1"}, "SK": {"S": f"SHIP#{ship}"}}),
        numbers.map(lambda number: {"PK": {"S": f"CRATE#{number}"}, "SK": {"S": "PARCEL#7"}}),
    )
    written: list[Item] = draw(st.lists(put, max_size=3, unique_by=key_of))
    gone = draw(st.lists(st.sampled_from(there), max_size=2, unique_by=key_of)) if there else []
    keys = {key_of(one) for one in written}
    return pause, written, [key_of(one) for one in gone if key_of(one) not in keys]


@st.composite
def arguments(draw: st.DrawFn, connection: Connection) -> dict[str, Any]:
    """Draw the arguments of a page."""
    from_the_end = connection.goes_back and draw(st.booleans())
    drawn: dict[str, Any] = {"last" if from_the_end else "first": draw(st.integers(1, 6))}
    if connection.where == "LoadingWhere" and draw(st.booleans()):
        drawn["where"] = draw(wheres())
    if connection.goes_back and draw(st.booleans()):
        drawn["order"] = draw(st.sampled_from(["ASC", "DESC"]))
    return drawn


def live(connection: Connection, selection: str) -> str:
    """Write the live query of a page."""
    query = connection.query.replace(" {", " @live {", 1)
    return query.replace("{ edges {", f"{{ {selection} edges {{", 1)


async def the_last_answer_is_right(
    stage: Stage, query: str, variables: Mapping[str, Any], work: list[Step], takes: float
) -> None:
    """Write while a live query begins and goes on; once all is quiet, hold its last answer against a fresh one."""
    watched = Watched(served_by(stage), query, variables)
    opening = asyncio.ensure_future(watched.begin(stage.hub, throttle_secs=0.1))
    for pause, items, gone in work:
        await asyncio.sleep(pause)
        stage.write(items, gone)
    await opening
    listener = Listener(watched, takes)
    await asyncio.sleep(60)

    fresh = await watched.fresh()
    answers = await listener.end()
    assert answers[-1] == fresh
    assert all(one != other for one, other in pairwise(answers))


@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda one: one.name)
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_is_written_the_last_answer_is_right(connection: Connection, data: st.DataObject) -> None:
    world = data.draw(worlds(20))
    variables = data.draw(arguments(connection))
    selection = data.draw(st.sampled_from(["", "totalCount"]))
    work = data.draw(st.lists(steps(world), min_size=1, max_size=6))
    begin = data.draw(st.integers(0, 4))
    times = {name: data.draw(st.sampled_from([0.0, 0.02, 0.25, 0.9])) for name in ("takes", "told_after", "behind")}

    async def main() -> None:
        stage = Stage(MODEL, **times)
        stage.write(list(world.wires()))
        await asyncio.sleep(10)
        if begin:
            page = await connection.page(served_by(stage), **variables | {"last": None, "first": begin})
            if page.end is not None:
                variables["before" if "last" in variables else "after"] = page.end
        await the_last_answer_is_right(
            stage, live(connection, selection), variables, work, data.draw(st.sampled_from([0.0, 1.0]))
        )

    run(main())
