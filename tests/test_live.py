"""Live queries on the engine: answered again when what they have read has changed, and not executed otherwise."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from graph.requests import UpdateTable
from graph.streams.hub import Hub
from resolvers.operation import Request, Response
from resolvers.schema import Api
from tests import test_clients
from tests.conftest import BANANAS, Serve, Served
from tests.counting import Running, running
from tests.following import STREAM, Followed, follow, soon
from tests.library import library
from tests.test_following import following
from tests.watching import WITHIN_SECS, Watched

LOADED = "2022-07-19T17:59:58Z"


def link(container: str, pallet: str, by: str = "me", *, is_new: bool = False) -> str:
    """Load a pallet into a container, which makes one item; or two, where the pallet is made with it."""
    end = f'create: {{ number: "{pallet}" origin: "BR" }}' if is_new else f'number: "{pallet}"'
    return f"""mutation {{ createPalletLoading(input: {{ container: {{ number: "{container}" }},
      pallet: {{ {end} }}, linkedDatetime: "{LOADED}", linkedBy: "{by}" }}) {{ __typename }} }}"""


def relink(pallet: str, by: str) -> str:
    """Say who has loaded a pallet into container 1."""
    key = f'{{ container: {{ number: "1" }}, pallet: {{ number: "{pallet}" }} }}'
    return f'mutation {{ updatePalletLoading(key: {key}, set: {{ linkedBy: "{by}" }}) {{ __typename }} }}'


def unlink(pallet: str) -> str:
    """Take a pallet out of container 1."""
    key = f'{{ container: {{ number: "1" }}, pallet: {{ number: "{pallet}" }} }}'
    return f"mutation {{ deletePalletLoading(key: {key}) {{ __typename }} }}"


def box(pallet: str, number: str, weight: float = 1.0) -> str:
    """Put a new box on a pallet."""
    return f"""mutation {{ createBoxLoading(input: {{ pallet: {{ number: "{pallet}" }}, linkedDatetime: "{LOADED}",
      box: {{ create: {{ number: "{number}" weightInKg: {weight} }} }} }}) {{ __typename }} }}"""


def operator(container: str, name: str) -> str:
    """Give a container another operator."""
    return f"""mutation {{ updateContainer(key: {{ number: "{container}" }}, set: {{ operator: "{name}" }}) {{
      __typename }} }}"""


def container(number: str) -> str:
    """Make a container."""
    return f'mutation {{ createContainer(input: {{ number: "{number}" operator: "new" }}) {{ __typename }} }}'


def origin(pallet: str) -> str:
    """Change a pallet."""
    return f'mutation {{ updatePallet(key: {{ number: "{pallet}" }}, set: {{ origin: "NL" }}) {{ __typename }} }}'


@pytest.fixture(autouse=True)
def unsettled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read once more within a test: what is executed is executed because of a change."""
    monkeypatch.setattr("resolvers.live.SETTLE_SECS", 3600.0)


@pytest.fixture
async def fleet(serve: Serve) -> Served:
    """Container 1 with the pallets 2, 4, 6 and 8, container 2 with pallet 3; pallets 0, 1, 5, 9 are on none."""
    served = await serve(BANANAS.read_text())
    for number in ("1", "2"):
        await served.data(container(number))
    for number in ("2", "4", "6", "8"):
        await served.data(link("1", number, is_new=True))
    await served.data(link("2", "3", is_new=True))
    for number in ("0", "1", "5", "9"):
        await served.data(f'mutation {{ createPallet(input: {{ number: "{number}" }}) {{ __typename }} }}')
    await served.data(box("2", "b1"))
    return served


async def watch(
    engine: str, served: Served, query: str, variables: dict[str, Any] | None = None
) -> tuple[Watched, Followed]:
    """Begin a live query, with all that was written before behind it."""
    followed = await follow(served, engine)
    await followed.reader.hand_to(followed.hub)
    return await Watched(served, query, variables).begin(followed.hub), followed


def page(arguments: str, selection: str = "edges { linkedBy node { number } }") -> str:
    """Ask for pallets of container 1."""
    return f'query @live {{ container(number: "1") {{ pallets({arguments}) {{ {selection} }} }} }}'


ITEM = 'query @live { container(number: "1") { operator } }'
ALONE = 'query @live { pallet(number: "9") { number } }'
MISSING = 'query @live { container(number: "7") { operator } }'
COUNT = 'query @live { container(number: "1") { pallets { totalCount } } }'
MINE = page('first: 2, where: { linkedBy: { eq: "me" } }')
BACK = 'query @live { pallet(number: "4") { container { operator } } }'
UNLOADED = 'query @live { pallet(number: "5") { container { operator } } }'
PATH = 'query @live { container(number: "1") { boxes(first: 5) { nodes { number weightInKg } } } }'
SCAN = "query @live { containers(first: 5) { nodes { operator } } }"
AGGREGATE = 'query @live { container(number: "1") { pallets(first: 9) { nodes { boxes { totalCount } } } } }'


@pytest.mark.parametrize(
    ("query", "write"),
    [
        pytest.param(ITEM, operator("1", "other"), id="item-changed"),
        pytest.param(ALONE, 'mutation { deletePallet(key: { number: "9" }) { __typename } }', id="item-removed"),
        pytest.param(MISSING, container("7"), id="missing-item-created"),
        pytest.param(page("first: 2"), link("1", "1"), id="created-before-the-page"),
        pytest.param(page("first: 3"), link("1", "5"), id="created-within-the-page"),
        pytest.param(page("first: 2"), relink("4", "Bob"), id="edge-changed"),
        pytest.param(page("first: 2", "nodes { origin }"), origin("4"), id="node-changed"),
        pytest.param(page("first: 2"), unlink("2"), id="removed-so-that-the-next-moves-in"),
        pytest.param(page("first: 3", "pageInfo { hasNextPage }"), unlink("8"), id="removed-behind-what-is-shown"),
        pytest.param(page("last: 2"), link("1", "9"), id="created-behind-the-last-page"),
        pytest.param(page("last: 2"), unlink("8"), id="removed-from-the-last-page"),
        pytest.param(page("first: 9"), link("1", "9"), id="created-behind-a-page-with-room"),
        pytest.param(COUNT, link("1", "9"), id="counted"),
        pytest.param(COUNT, unlink("4"), id="no-longer-counted"),
        pytest.param(MINE, relink("2", "Bob"), id="leaves-the-filter"),
        pytest.param(MINE, link("1", "1"), id="created-within-the-filter"),
        pytest.param(BACK, operator("1", "other"), id="node-behind-the-reverse-index"),
        pytest.param(UNLOADED, link("1", "5"), id="created-in-the-reverse-index"),
        pytest.param(PATH, box("4", "b2"), id="created-at-the-end-of-a-path"),
        pytest.param(PATH, unlink("2"), id="step-of-a-path-removed"),
        pytest.param(PATH, box("2", "b0"), id="created-before-the-end-of-a-path"),
        pytest.param(SCAN, container("7"), id="scan"),
        pytest.param(AGGREGATE, box("8", "b2"), id="counts-of-a-page"),
    ],
)
async def test_what_concerns_a_query_is_answered(engine: str, fleet: Served, query: str, write: str) -> None:
    watched, followed = await watch(engine, fleet, query)
    before = watched.answers[-1]

    await followed.write(write)

    assert await watched.next() == await watched.fresh()
    assert "errors" not in watched.answers[-1]
    assert watched.answers[-1] != before
    await watched.events.aclose()


@pytest.mark.parametrize(
    ("query", "write", "then"),
    [
        pytest.param(ITEM, operator("2", "other"), operator("1", "z"), id="other-item"),
        pytest.param(MISSING, container("8"), container("7"), id="other-item-created"),
        pytest.param(page("first: 1"), link("1", "9"), unlink("2"), id="created-behind-the-page"),
        pytest.param(page("first: 1"), unlink("8"), unlink("2"), id="removed-behind-the-page"),
        pytest.param(page("first: 1"), relink("8", "Bob"), unlink("2"), id="changed-behind-the-page"),
        pytest.param(page("last: 1"), link("1", "0"), unlink("8"), id="created-before-the-last-page"),
        pytest.param(page("first: 2"), link("2", "1"), unlink("2"), id="created-in-another-partition"),
        pytest.param(page("first: 2"), origin("2"), unlink("2"), id="node-of-which-only-the-key-is-read"),
        pytest.param(COUNT, box("2", "b2"), unlink("2"), id="not-counted"),
        pytest.param(MINE, link("1", "1", by="Bob"), unlink("2"), id="created-outside-of-the-filter"),
        pytest.param(BACK, link("1", "5"), operator("1", "z"), id="other-edge-in-the-reverse-index"),
        pytest.param(PATH, box("3", "b9"), box("2", "b0"), id="other-path"),
        pytest.param(SCAN, box("2", "b2"), container("7"), id="scan-filters"),
    ],
)
async def test_what_concerns_none_costs_nothing(engine: str, fleet: Served, query: str, write: str, then: str) -> None:
    """What follows concerns the query: had the first write done so as well, there would be one execution more."""
    watched, followed = await watch(engine, fleet, query)

    waiting = asyncio.ensure_future(watched.next())
    await followed.write(write)
    assert not waiting.done()
    await followed.write(then)

    assert await waiting == await watched.fresh()
    assert watched.executions == 2
    await watched.events.aclose()


async def test_node_by_its_global_id(engine: str, fleet: Served) -> None:
    found = await fleet.data('{ container(number: "1") { id } }')
    query = "query ($id: ID!) @live { node(id: $id) { ... on Container { operator } } }"
    watched, followed = await watch(engine, fleet, query, {"id": found["container"]["id"]})

    await followed.write(operator("1", "other"))

    assert await watched.next() == {"data": {"node": {"operator": "other"}}}


async def test_page_behind_a_cursor(engine: str, fleet: Served) -> None:
    found = await fleet.data('{ container(number: "1") { pallets(first: 2) { pageInfo { endCursor } } } }')
    after = found["container"]["pallets"]["pageInfo"]["endCursor"]
    query = page("first: 1, after: $after", "nodes { number }").replace("query", "query ($after: String)")
    watched, followed = await watch(engine, fleet, query, {"after": after})

    waiting = asyncio.ensure_future(watched.next())
    await followed.write(unlink("2"))
    await followed.write(link("1", "5"))

    assert await waiting == {"data": {"container": {"pallets": {"nodes": [{"number": "5"}]}}}}
    assert watched.executions == 2


async def test_copies(engine: str, serve: Serve) -> None:
    """A field that is read from a copy changes with the copy."""
    served = await library(serve)
    query = 'query @live { shelf(name: "a") { room books { nodes { title read } } grams } }'
    watched, followed = await watch(engine, served, query)

    await followed.write('mutation { updateBook(key: { title: "x" }, set: { read: 7 }) { __typename } }')

    assert await watched.next() == await watched.fresh()
    assert watched.answers[-1]["data"]["shelf"]["books"]["nodes"][0] == {"title": "x", "read": 7}


async def test_what_comes_to_the_same_is_not_given_again(engine: str, fleet: Served) -> None:
    """The item has changed, and nothing of it that the query shows."""
    watched, followed = await watch(engine, fleet, page("first: 2", "nodes { number }"))

    waiting = asyncio.ensure_future(watched.next())
    await followed.write(relink("2", "Bob"))
    await watched.executed(2)
    await followed.write(unlink("2"))

    assert [one["number"] for one in (await waiting)["data"]["container"]["pallets"]["nodes"]] == ["4", "6"]
    assert len(watched.answers) == 2


async def test_reads_are_consistent_where_they_can_be(engine: str, fleet: Served) -> None:
    hub = Hub(fleet.api.model)
    query = 'query @live { container(number: "1") { pallets(first: 2) { nodes { origin container { operator } } } } }'

    fleet.sent.clear()
    watched = await Watched(fleet, query).begin(hub)

    reads = [parameters for operation, parameters in fleet.sent if operation in ("GetItem", "Query")]
    reads += [
        one for operation, sent in fleet.sent if operation == "BatchGetItem" for one in sent["RequestItems"].values()
    ]
    assert reads
    assert all(one.get("ConsistentRead", False) is ("IndexName" not in one) for one in reads)
    await watched.events.aclose()


async def test_a_live_query_runs_as_a_plan(fleet: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resolvers.schema.experimental_execute_incrementally", None)

    assert await fleet.data(ITEM) == {"container": {"operator": "new"}}
    assert await fleet.data("query ($t: Int!) @live(throttle: $t) { __typename }", {"t": 5}) == {"__typename": "Query"}


async def test_asked_once_it_is_an_ordinary_query(fleet: Served) -> None:
    assert await fleet(ITEM) == await fleet(ITEM.replace("@live", ""))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param(
            'mutation @live { deleteContainer(key: { number: "1" }) { __typename } }',
            "Directive '@live' may not be used on mutation.",
            id="mutation",
        ),
        pytest.param(
            'query @live { container(number: "1") { ... @defer { operator } } }',
            "@defer cannot be part of a @live query, whose answer is given again as a whole: leave out @defer, or "
            "@live",
            id="defer",
        ),
        pytest.param(
            "query @live { ...All } fragment All on Query { containers { nodes @stream { operator } } }",
            "@stream cannot be part of a @live query, whose answer is given again as a whole: leave out @stream, or "
            "@live",
            id="stream-in-a-fragment",
        ),
        pytest.param(
            'query @live(throttle: "1s") { __typename }',
            'Int cannot represent non-integer value: "1s"',
            id="throttle-is-no-number",
        ),
    ],
)
async def test_what_cannot_be_live_is_refused(fleet: Served, document: str, message: str) -> None:
    error = await fleet.error(document)

    assert (error["extensions"]["code"], error["message"]) == ("GRAPHQL_VALIDATION_FAILED", message)


# --- as the API opens it ------------------------------------------------------------------------------------------


async def test_the_api_opens_live_queries(engine: str, fleet: Served) -> None:
    followed = await follow(fleet, engine)
    await followed.reader.hand_to(followed.hub)
    query = "query ($throttle: Int!) " + ITEM.replace("query @live", "@live(throttle: $throttle)")

    events = await followed.open(query, {"throttle": 1}, cost=True)
    first = await soon(events)
    await followed.write(operator("1", "other"))
    second = await soon(events)
    await events.aclose()

    assert [answer["data"]["container"]["operator"] for answer in (first, second)] == ["new", "other"]
    assert second["extensions"]["cost"]["requests"] == {"total": 1, "GetItem": 1}


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        ("query ($live: Boolean!) " + ITEM.replace("query @live", "@live(if: $live)"), {"live": False}),
        (ITEM.replace("@live", ""), None),
    ],
)
async def test_what_is_not_live_is_answered(
    engine: str, fleet: Served, query: str, variables: dict[str, Any] | None
) -> None:
    followed = await follow(fleet, engine)

    response = await followed.api.open(Request(query, variables))

    assert isinstance(response, Response)
    assert response.body == {"data": {"container": {"operator": "new"}}}


@pytest.mark.parametrize(
    ("query", "variables", "message"),
    [
        (
            "query @live(throttle: -1) { __typename }",
            None,
            "@live(throttle: -1) is out of range: expected 0 to 60000 milliseconds",
        ),
        (
            "query ($t: Int!) @live(throttle: $t) { __typename }",
            {"t": 60_001},
            "@live(throttle: 60001) is out of range: expected 0 to 60000 milliseconds",
        ),
        (
            "query ($t: Int!) @live(throttle: $t) { __typename }",
            {"t": "soon"},
            "Variable '$t' has invalid value: Int cannot represent non-integer value: 'soon'",
        ),
    ],
)
async def test_a_throttle_that_cannot_be_is_refused(
    engine: str, fleet: Served, query: str, variables: dict[str, Any] | None, message: str
) -> None:
    error = await (await follow(fleet, engine)).refusal(query, variables)

    assert (error["message"], error["extensions"]["code"]) == (message, "BAD_USER_INPUT")


async def test_without_a_stream_it_is_refused(fleet: Served) -> None:
    fleet.sent.clear()

    response = await fleet.api.open(Request(ITEM))

    assert isinstance(response, Response)
    assert response.body["errors"][0]["extensions"]["code"] == "STREAM_UNAVAILABLE"
    assert not fleet.sent


# --- as the server serves it --------------------------------------------------------------------------------------


@pytest.fixture
async def server(engine: str, fleet: Served) -> AsyncIterator[Running]:
    """A server that reads the stream by itself, once somebody needs it."""
    for table in fleet.api.model.tables:
        await fleet.graph.send(UpdateTable(table, STREAM))
    async with following(engine, fleet) as (_, hub), running(Api(fleet.graph, hub=hub)) as started:
        yield started


async def test_live_over_server_sent_events(fleet: Served, server: Running) -> None:
    headers = {"accept": "text/event-stream"}
    async with (
        httpx.AsyncClient(headers=headers, timeout=WITHIN_SECS) as client,
        client.stream("POST", server.url, json={"query": ITEM}) as answer,
    ):
        bodies = (json.loads(line[6:]) async for line in answer.aiter_lines() if line.startswith("data: "))
        first = await anext(bodies)
        await fleet.data(operator("1", "other"))
        second = await anext(bodies)

    assert [body["data"]["container"]["operator"] for body in (first, second)] == ["new", "other"]


async def test_live_over_a_websocket(fleet: Served, server: Running) -> None:
    async with connect(server.socket_url, subprotocols=[Subprotocol("graphql-transport-ws")]) as socket:
        await socket.send(json.dumps({"type": "connection_init"}))
        await socket.recv()
        await socket.send(json.dumps({"type": "subscribe", "id": "1", "payload": {"query": ITEM}}))
        first = json.loads(await socket.recv())
        await fleet.data(operator("1", "other"))
        second = json.loads(await socket.recv())
        await socket.send(json.dumps({"type": "complete", "id": "1"}))

    assert [message["payload"]["data"]["container"]["operator"] for message in (first, second)] == ["new", "other"]


@test_clients.pytestmark
@pytest.mark.parametrize("kind", test_clients.NODE)
async def test_live_by_the_clients_of_npm(kind: str, fleet: Served, server: Running) -> None:
    async with test_clients.following(kind, server, ITEM) as client:
        first = await client.told(1)
        await fleet.data(operator("1", "other"))
        second = await client.told(1)
        client.stop()
        rest = await client.all_told()

    assert [body["data"]["container"]["operator"] for _, body in (*first, *second)] == ["new", "other"]
    assert rest == [["complete", None]]


async def test_live_by_plain_post_is_answered_once(server: Running) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.post(server.url, json={"query": ITEM}, headers={"accept": "application/json"})

    assert answer.json() == {"data": {"container": {"operator": "new"}}}
