"""`extensions.stale`: answers in which copies may be behind tell by how much at most, wherever the streams are read."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, build_schema, parse

from graph.streams.copies import Copies
from resolvers.operation import Request
from resolvers.schema import Api, Executor
from resolvers.stale import CopiesShown
from server.settings import Settings
from tests import test_copies_fresh
from tests.conftest import Serve, Served
from tests.following import follow, soon
from tests.streams import catch_up, stream_of
from tests.test_copies_fresh import B2B, FILL, LODGING
from tests.test_following import SOON, all_of, following, reads, server, until

# Servers tell of an index that is missing by a line that is no log.
FOLLOWED = test_copies_fresh.FOLLOWED.replace("@search ", "")
RENAME = """mutation ($name: String!) {
  updateStore(key: { number: "3" }, set: { storeName: $name }) { __typename }
}"""
STORES = '{ customer(number: "2") { stores { nodes { storeName } } } }'


@pytest.fixture(params=["plan", "reference"])
def executor(request: pytest.FixtureRequest) -> Executor:
    chosen: Executor = request.param
    return chosen


def seconds_ago(secs: float) -> Any:
    return lambda: time.monotonic() - secs


async def shops(serve: Serve, sdl: str = FOLLOWED, executor: Executor = "plan") -> Served:
    """Serve shops whose copies are right up to 7 s ago."""
    served = await serve(sdl)
    served.api = Api(served.graph, executor=executor, watermark=seconds_ago(7))
    return served


# --- which answers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        STORES,
        '{ customer(number: "2") { stores(fresh: false) { nodes { storeName } } } }',
        'query ($it: Boolean = true) { customer(number: "2") { stores(fresh: $it) { nodes { storeName } } } }',
        '{ tagged(tag: ["music"]) { nodes { ... on Store { storeName } } } }',
        '{ customer(number: "2") { ...C } } fragment C on Customer { stores { ...S } } '
        "fragment S on CustomerStoresConnection { nodes { storeName } }",
        # Its one list is fresh, the other one is not.
        '{ customer(number: "2") { stores(fresh: true) { nodes { customers { nodes { id } } } } } }',
        """mutation { updateStore(key: { number: "3" }, set: { storeName: "N" }) {
          store { customers { nodes { id } } } } }""",
    ],
)
async def test_what_may_show_copies_tells_how_old_they_are_at_most(
    serve: Serve, executor: Executor, query: str
) -> None:
    served = await shops(serve, executor=executor)
    await served.data(FILL)

    body = await served(query)

    assert body.keys() == {"data", "extensions"}
    assert body["extensions"].keys() == {"stale"}
    assert 7 <= body["extensions"]["stale"]["atMostSecs"] < 60


@pytest.mark.parametrize(
    "query",
    [
        '{ customer(number: "2") { firstName business { businessName } } }',
        '{ customer(number: "2") { stores(fresh: true) { nodes { storeName } } } }',
        '{ tagged(tag: ["music"], fresh: true) { nodes { ... on Store { storeName } } } }',
        "{ __schema { queryType { name } } }",
        'mutation { updateStore(key: { number: "3" }, set: { storeName: "N" }) { store { storeName } } }',
    ],
)
async def test_what_shows_none_tells_nothing(serve: Serve, executor: Executor, query: str) -> None:
    served = await shops(serve, executor=executor)
    await served.data(FILL)

    assert (await served(query)).keys() == {"data"}


async def test_copies_that_every_mutation_keeps_are_never_stale(serve: Serve, executor: Executor) -> None:
    served = await shops(serve, B2B, executor)
    await served.data(FILL)

    assert (await served(STORES)).keys() == {"data"}


async def test_operations_of_one_document_are_judged_each_by_itself(serve: Serve) -> None:
    served = await shops(serve)
    document = """query Old { customer(number: "2") { ...Stores } }
    query New { customer(number: "2") { stores(fresh: true) { nodes { storeName } } } }
    fragment Stores on Customer { stores { nodes { storeName } } }"""

    old, new = [(await served.api.execute(Request(document, None, name))).body for name in ("Old", "New")]

    assert "stale" in old["extensions"]
    assert new.keys() == {"data"}


async def test_reference_is_read_from_the_node_itself(engine: str, serve: Serve, executor: Executor) -> None:
    served = await shops(serve, LODGING.replace("room: Room @rel", "stays: [Stay!]! @relationship  room: Room @rel"))
    served.api = Api(served.graph, executor=executor, watermark=seconds_ago(7))
    await served.data(
        """mutation { createRoom(input: { number: "1", colour: "red", guests: [
          { guest: { create: { number: "7" } } } ] }) { __typename } }"""
    )
    await catch_up(stream_of(engine, served), Copies(served.graph).follow)
    await served.data('mutation { updateRoom(key: { number: "1" }, set: { colour: "blue" }) { __typename } }')

    body = await served('{ guest(number: "7") { stays { nodes { room { colour } } } } }')

    assert body == {"data": {"guest": {"stays": {"nodes": [{"room": {"colour": "blue"}}]}}}}


def test_field_of_an_interface_may_show_what_those_show_that_have_it() -> None:
    schema = build_schema(
        """type Query { lodger: Lodger, visitor: Visitor }
        interface Lodger { room: Room }
        interface Visitor { room: Room }
        type Room { colour: String }
        type Guest implements Lodger { room(fresh: Boolean): Room }
        type Friend implements Visitor { room: Room }"""
    )

    def shows(query: str) -> bool:
        document = parse(query)
        (definition,) = document.definitions
        assert isinstance(definition, OperationDefinitionNode)
        return CopiesShown(schema).by(document, definition)

    assert shows("{ lodger { room { colour } } }")
    assert shows("{ lodger { ... on Guest { room { colour } } } }")
    assert not shows("{ lodger { ... on Guest { room(fresh: true) { colour } } } }")
    assert not shows("{ visitor { room { colour } } }")


async def test_cost_stands_beside_it(serve: Serve) -> None:
    served = await shops(serve)

    body = await served(STORES, cost=True)

    assert body["extensions"].keys() == {"cost", "stale"}


async def test_operation_that_is_refused_tells_nothing(serve: Serve) -> None:
    served = await shops(serve)

    body = await served("query ($n: ID!) { customer(number: $n) { stores { nodes { storeName } } } }")

    assert body.keys() == {"errors"}


async def test_last_payload_of_several_tells_it(serve: Serve) -> None:
    served = await shops(serve)
    await served.data(FILL)
    query = '{ customer(number: "2") { firstName ... @defer { stores { nodes { storeName } } } } }'

    response = await served.api.execute(Request(query, incremental=True))
    assert response.rest is not None
    payloads = [response.body, *[payload async for payload in response.rest]]

    assert [("stale" in payload.get("extensions", {})) for payload in payloads] == [False] * (len(payloads) - 1) + [
        True
    ]


async def test_answers_of_what_goes_on_tell_it_too(engine: str, serve: Serve) -> None:
    served = await shops(serve)
    await served.data(FILL)
    followed = await follow(served, engine)
    followed.api = Api(served.graph, hub=followed.hub, watermark=seconds_ago(7))
    live = await followed.open(STORES.replace("{", "query @live {", 1))
    told = await followed.open("subscription { storeChanged { node { storeName customers { nodes { firstName } } } } }")
    other = await followed.open("subscription { storeChanged { node { storeName } } }")

    await followed.write(RENAME, {"name": "New"})

    assert [("stale" in (await soon(one)).get("extensions", {})) for one in (live, told, other)] == [True, True, False]
    for one in (live, told, other):
        await one.aclose()


# --- how old ------------------------------------------------------------------------------------------------------


async def names_and_age(api: Api) -> tuple[list[str], float | None]:
    body = (await api.execute(Request(STORES))).body
    assert "errors" not in body, body
    nodes = body["data"]["customer"]["stores"]["nodes"]
    return [one["storeName"] for one in nodes], body["extensions"]["stale"]["atMostSecs"]


async def shown_behind(api: Api, served: Served, name: str) -> None:
    """Rename a store, and ask until its new name is shown: no answer before may say that it is younger than that."""
    await served.data(
        f'mutation {{ updateStore(key: {{ number: "3" }}, set: {{ storeName: "{name}" }}) {{ __typename }} }}'
    )
    written = time.monotonic()
    while True:
        asked = time.monotonic()
        names, age = await names_and_age(api)
        assert age is not None
        if names == [name]:
            return
        assert age >= asked - written


async def test_it_is_not_known_where_nobody_tells(serve: Serve, executor: Executor) -> None:
    served = await serve(FOLLOWED)
    served.api = Api(served.graph, executor=executor)

    assert (await served(STORES))["extensions"] == {"stale": {"atMostSecs": None}}


async def test_it_is_not_known_where_nobody_reads(engine: str, serve: Serve) -> None:
    served = await serve(FOLLOWED)
    await served.data(FILL)
    async with following(engine, served, Settings(stream="off")) as (made, _):
        await asyncio.sleep(1.5)
        assert await names_and_age(Api(served.graph, watermark=made.watermark)) == (["Old"], None)


async def test_process_that_reads_knows_it(engine: str, serve: Serve, executor: Executor) -> None:
    served = await serve(FOLLOWED)
    async with following(engine, served, SOON) as (made, _):
        await reads(made)
        await served.data(FILL)
        await reads(made)
        await until(lambda: made.watermark() is not None)
        api = Api(served.graph, executor=executor, watermark=made.watermark)
        for number in range(5):
            await shown_behind(api, served, f"name {number}")


@pytest.mark.parametrize("stream", ["off", "auto"])
async def test_other_processes_know_it_from_the_one_that_reads(
    engine: str, serve: Serve, tmp_path: Path, stream: Any
) -> None:
    served = await serve(FOLLOWED)
    await served.data(FILL)
    schema = tmp_path / "schema.graphql"
    schema.write_text(FOLLOWED)
    async with server(engine, served.table, schema) as reader:
        await all_of(reader.url, {True})
        async with following(engine, served, Settings(stream=stream, stream_poll_ms=20)) as (made, _):
            api = Api(served.graph, watermark=made.watermark)
            assert (await names_and_age(api))[1] is None
            await until(lambda: made.watermark() is not None)
            for number in range(3):
                await shown_behind(api, served, f"name {number}")


async def test_it_grows_when_the_reader_has_died(engine: str, serve: Serve, tmp_path: Path) -> None:
    served = await serve(FOLLOWED)
    schema = tmp_path / "schema.graphql"
    schema.write_text(FOLLOWED)
    async with following(engine, served, Settings(stream="off")) as (made, _):
        api = Api(served.graph, watermark=made.watermark)
        async with server(engine, served.table, schema) as reader:
            await all_of(reader.url, {True})
            await served.data(FILL)
            await until(lambda: made.watermark() is not None)
            await shown_behind(api, served, "followed")
            reader.running.kill()
            await reader.running.wait()
        await served.data(RENAME, {"name": "New"})
        written = time.monotonic()
        await asyncio.sleep(2)
        behind_secs = time.monotonic() - written
        names, age = await names_and_age(api)

    assert names == ["followed"]
    assert age is not None
    assert age >= behind_secs
