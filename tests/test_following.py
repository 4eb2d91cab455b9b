"""The server reads the streams: while somebody needs it, in one of its processes, and tells how far it is."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from graph.errors import StreamError
from graph.ours import STREAM
from graph.requests import Scan
from graph.streams.change import Change, Handler
from graph.streams.hub import Hub
from graph.streams.topics import of_table
from resolvers.operation import Request, Response
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server import following as following_
from server.app import build_app
from server.following import SUBSCRIPTIONS, Following
from server.settings import Settings
from tests.conftest import Served, way_to
from tests.following import global_id
from tests.test_app import Process, ScriptedApi, process
from tests.test_streams_engine import SDL, fleet, put, ship

__all__ = ["fleet"]

SOON = Settings(stream_poll_ms=20)


@asynccontextmanager
async def following(engine: str, served: Served, settings: Settings = SOON) -> AsyncIterator[tuple[Following, Hub]]:
    """Follow the stream of a table as the server does."""
    with closing(way_to(engine)) as way:
        opened = partial(way_to, engine, service="dynamodbstreams")
        made = Following(served.graph.model, way, opened, settings)
        async with asyncio.timeout(20), made.running():
            yield made, made.hub


async def until(is_so: Callable[[], bool]) -> None:
    while True:
        if is_so():
            return
        await asyncio.sleep(0.01)


async def reads(made: Following) -> None:
    """Wait until all that has been written is handled."""
    await until(lambda: made.figures()["reading"])
    assert made._reader is not None
    await made._reader.caught_up()


async def test_nothing_is_read_while_nobody_subscribes(engine: str, fleet: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(following_, "LINGER_SECS", 0.2)
    async with following(engine, fleet) as (made, hub):
        await asyncio.sleep(0.3)
        assert not made.figures()["reading"]

        subscription = hub.subscribe([of_table(fleet.table)])
        await reads(made)
        await put(fleet.graph, ship("a"))
        change = await anext(subscription)
        assert change.key[1][0] == ("PK", "SHIP#a")
        assert {change.place.shard: change.place.sequence}.items() <= dict(await made.places()).items()

        subscription.close()
        await until(lambda: not made.figures()["reading"])
        await put(fleet.graph, ship("b"))
        later = hub.subscribe([of_table(fleet.table)])
        await reads(made)
        await put(fleet.graph, ship("c"))
        change = await anext(later)
        # What was written while nobody was there is nobody's business.
        assert change.key[1][0] == ("PK", "SHIP#c")


async def test_lease_that_nobody_needs_is_free(engine: str, fleet: Served, monkeypatch: Any) -> None:
    monkeypatch.setattr(following_, "LINGER_SECS", 0.2)
    async with following(engine, fleet) as (made, hub), following(engine, fleet) as (other, other_hub):
        subscription = hub.subscribe([of_table(fleet.table)])
        await reads(made)
        subscription.close()
        await until(lambda: not made.figures()["reading"])
        other_hub.subscribe([of_table(fleet.table)])
        await reads(other)


async def test_whoever_wants_every_change_has_the_streams_read_at_all_times(
    engine: str, fleet: Served, monkeypatch: Any
) -> None:
    told: list[Change] = []

    async def index(changes: Sequence[Change]) -> None:
        told.extend(changes)

    def handlers(model: Any, graph: Any, settings: Any, hub: Hub) -> dict[str, Handler]:
        return {SUBSCRIPTIONS: hub.publish, "search": index}

    monkeypatch.setattr(following_, "handlers_of", handlers)
    async with following(engine, fleet) as (made, _):
        await reads(made)
        await put(fleet.graph, ship("a"))
        await reads(made)
        assert len(told) == 1
    await put(fleet.graph, ship("b"))
    async with following(engine, fleet) as (made, _):
        await reads(made)

    assert [change.key[1][0][1] for change in told] == ["SHIP#a", "SHIP#b"]


async def test_streams_are_never_read_where_they_are_off(engine: str, fleet: Served) -> None:
    async with following(engine, fleet, Settings(stream="off")) as (made, hub):
        hub.subscribe([of_table(fleet.table)])
        await asyncio.sleep(0.3)
        assert not made.figures()["reading"]


async def test_another_process_knows_how_far_the_streams_were_read_and_replays(engine: str, fleet: Served) -> None:
    on = Settings(stream="on", stream_poll_ms=20)
    async with following(engine, fleet, on) as (made, _):
        await reads(made)
        async with following(engine, fleet, Settings(stream="off")) as (other, _):
            places = await other.places()
            assert places.keys() == (await made.places()).keys()
            await put(fleet.graph, ship("a"))
            replayed = [change.key[1][0][1] async for change in other.replay(places)]

    assert replayed == ["SHIP#a"]


async def test_model_that_cannot_be_followed_is_told_once(engine: str, caplog: pytest.LogCaptureFixture) -> None:
    model = compile_model(
        """extend schema @table(name: "readings_{time:yyyyMM}", partitionKey: "sensor", sortKey: "time")
        type Reading @node(partition: "{sensor}", sort: "{time}") { sensor: ID!  time: DateTime! }"""
    )
    with closing(way_to(engine)) as way:
        made = Following(model, way, partial(way_to, engine, service="dynamodbstreams"), Settings(stream="on"))
        async with asyncio.timeout(20), made.running():
            await until(lambda: made.figures()["problem"] is not None)

    assert "needs a table that is there at all times" in made.figures()["problem"]
    assert caplog.text.count("this model has time series alone") == 1


# --- the server ---------------------------------------------------------------------------------------------------


async def test_streamz_tells_how_far_the_reader_is(engine: str, fleet: Served) -> None:
    async with following(engine, fleet, Settings(stream="on", stream_poll_ms=20)) as (made, _):
        await reads(made)
        await put(fleet.graph, ship("a"))
        await reads(made)
        body = await streamz(build_app(ScriptedApi(), SOON, following=made))

    assert body == {
        "stream": "on",
        "reading": True,
        "lagSecs": 0.0,
        "changes": 1,
        "failures": 0,
        "abandoned": 0,
        "gaps": 0,
        "problem": None,
    }
    assert (await streamz(build_app(ScriptedApi(), SOON)))["status"] == "unavailable"


async def streamz(app: Starlette) -> Any:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
        return (await client.get("/streamz")).json()


@asynccontextmanager
async def server(engine: str, table: str, schema: Path, **environ: str) -> AsyncIterator[Process]:
    """Serve a table by a process that reads its stream at all times."""
    keys = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "eu-central-1"}
    settings = {
        "SCHEMA": str(schema),
        "TABLE": table,
        "ENDPOINT_URL": engine,
        "LOG_FORMAT": "json",
        "STREAM": "on",
        "STREAM_POLL_MS": "20",
    }
    named = {f"TABLEGRAPH_{name}": value for name, value in (settings | environ).items()}
    serve = "import sys; from server.cli import main; sys.exit(main(['serve']))"
    async with process("-c", serve, **keys, **named) as started:
        yield started


async def all_of(url: str, wanted: set[bool]) -> None:
    """Wait until processes that read have answered, or that do not, or both."""
    found: set[bool] = set()
    while not found >= wanted:
        # Over a connection of its own, which any of them may take.
        async with httpx.AsyncClient() as client:
            found.add((await client.get(url.replace("/graphql", "/streamz"))).json()["reading"])
        await asyncio.sleep(0.05)


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.graphql"
    path.write_text(SDL)
    return path


async def test_one_of_several_workers_reads(engine: str, fleet: Served, schema: Path) -> None:
    async with server(engine, fleet.table, schema, WORKERS="2") as running:
        await all_of(running.url, {True, False})


async def test_server_that_ends_gives_up_the_lease(engine: str, fleet: Served, schema: Path) -> None:
    async with server(engine, fleet.table, schema) as running:
        await all_of(running.url, {True})
        assert "tablegraph-owner" in await lease_item(fleet)
        running.running.send_signal(signal.SIGTERM)
        code = await running.running.wait()

    assert code == 0
    assert "tablegraph-owner" not in await lease_item(fleet)


async def lease_item(served: Served) -> Any:
    (item,) = [one for one in (await served.graph.send(Scan(served.table, 0, 1)))["Items"] if STREAM in one]
    return item


async def test_subscription_is_told_what_is_written_from_its_beginning_on(engine: str, fleet: Served) -> None:
    async with following(engine, fleet) as (_, hub):
        api = Api(fleet.graph, hub=hub)
        events = await api.open(Request("subscription { shipChanged { kind cursor } }"))
        assert not isinstance(events, Response), events.body

        await put(fleet.graph, ship("a"))
        told = (await anext(aiter(events)))["data"]["shipChanged"]
        await events.aclose()
        await put(fleet.graph, ship("b"))

        after = {"after": told["cursor"]}
        again = await api.open(
            Request("subscription($after: String) { shipChanged(after: $after) { kind nodeId } }", after)
        )
        assert not isinstance(again, Response), again.body
        await put(fleet.graph, ship("c"))
        ids = [(await anext(aiter(again)))["data"]["shipChanged"]["nodeId"] for _ in range(2)]

    assert told["kind"] == "CREATED"
    assert ids == [global_id("Ship", "SHIP#b"), global_id("Ship", "SHIP#c")]


async def test_subscription_is_refused_where_another_process_keeps_the_streams(
    engine: str, fleet: Served, monkeypatch: Any
) -> None:
    monkeypatch.setattr(following_, "READY_SECS", 0.5)
    async with following(engine, fleet) as (made, hub), following(engine, fleet) as (_, other_hub):
        hub.subscribe([of_table(fleet.table)])
        await reads(made)

        with pytest.raises(StreamError, match="--broker"):
            await other_hub.follow([of_table(fleet.table)])


async def test_subscription_is_refused_where_streams_are_off(engine: str, fleet: Served) -> None:
    async with following(engine, fleet, Settings(stream="off")) as (_, hub):
        with pytest.raises(StreamError, match="--stream auto"):
            await hub.follow([of_table(fleet.table)])
