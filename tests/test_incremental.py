"""@defer and @stream from end to end: what is put off comes in parts of its own, and the parts are the whole answer."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from graph.client import Response as WireResponse
from graph.client import Transport
from resolvers.operation import Request
from server.app import build_app
from server.settings import Settings
from tests.conftest import BANANAS, Serve, Served, example_items
from tests.test_app import client_of
from tests.test_incremental_delivery import BOTH, JSON, Connection

DEFERRED = """query ($later: Boolean = true) { container(number: "000001") {
  operator
  ... @defer(label: "later", if: $later) { number pallets(first: 3) { totalCount nodes { number origin } } } } }"""
NESTED = """{ container(number: "000001") { pallets(first: 3) { nodes { number ...More @defer } } } }
fragment More on Pallet { origin boxes(first: 2) { nodes { number ... @defer { weightInKg } } } }"""
STREAMED = """query ($later: Boolean = true) { container(number: "000001") { pallets(first: 6) {
  nodes @stream(initialCount: 2, if: $later) { number origin boxes(first: 1) { nodes { weightInKg } } } } } }"""
MANY_EDGES = """{ container(number: "000001") { pallets(first: 4) {
  edges @stream(label: "edges") { cursor linkedBy node { number ... @defer { destination } } } } } }"""
QUERIES = {"deferred": DEFERRED, "nested": NESTED, "streamed": STREAMED, "edges": MANY_EDGES}


@dataclass
class Gate:
    """The way to the engine, on which requests of some operations wait, or fail."""

    transport: Transport
    held: set[str] = field(default_factory=set)
    failing: dict[str, Exception] = field(default_factory=dict)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: int = 0

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> WireResponse:
        if operation in self.failing:
            raise self.failing[operation]
        if operation in self.held:
            self.waiting.set()
            try:
                await self.opened.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return await self.transport(operation, parameters)


@pytest.fixture
def transport(transport: Transport) -> Gate:
    """What `serve` sends through in this module."""
    return Gate(transport)


async def ask(
    served: Served, query: str, accept: str = BOTH, variables: Mapping[str, Any] | None = None, **headers: str
) -> httpx.Response:
    """Send an operation through the whole server."""
    served.sent.clear()
    async with client_of(build_app(served.api, Settings())) as client:
        body = {"query": query, "variables": variables}
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.post("/graphql", json=body, headers={"accept": accept, **named})


def payloads(text: str) -> list[dict[str, Any]]:
    """Take an answer apart."""
    preamble, *parts, end = text.split("\r\n---")
    assert (preamble, end) == ("", "--\r\n")
    return [json.loads(part.split("\r\n\r\n", 1)[1]) for part in parts]


def together(parts: Iterable[dict[str, Any]]) -> Any:
    """Put the data of an answer together as a client does that follows `pending`, `incremental` and `completed`."""
    data: Any = None
    pending: dict[str, list[Any]] = {}
    has_next = True
    for part in parts:
        assert has_next, "nothing follows the last payload"
        has_next = part["hasNext"]
        data = part.get("data", data)
        pending |= {one["id"]: one["path"] for one in part.get("pending", ())}
        for one in part.get("incremental", ()):
            place = data
            for step in (*pending[one["id"]], *one.get("subPath", ())):
                place = place[step]
            if "items" in one:
                place.extend(one["items"])
            else:
                assert not place.keys() & one["data"].keys(), "no field comes twice"
                place.update(one["data"])
        for one in part.get("completed", ()):
            del pending[one["id"]]
    assert (has_next, pending) == (False, {})
    return data


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
async def test_the_parts_are_the_answer_that_there_is_without_them(bananas: Served, query: str) -> None:
    parts = payloads((await ask(bananas, query)).text)
    sent = bananas.operations
    whole = (await ask(bananas, query, JSON)).json()

    assert len(parts) >= 2
    assert together(parts) == whole["data"]
    assert sent == bananas.operations, "the parts cost no more requests"


async def test_a_deferred_fragment_comes_with_its_path_and_label(bananas: Served) -> None:
    first, *rest = payloads((await ask(bananas, DEFERRED)).text)

    assert first == {
        "data": {"container": {"operator": "TheBoatingCompany"}},
        "pending": [{"id": "0", "path": ["container"], "label": "later"}],
        "hasNext": True,
    }
    assert [list(one["data"]) for part in rest for one in part["incremental"]] == [["number", "pallets"]]
    assert rest[-1]["completed"] == [{"id": "0"}]


async def test_a_streamed_list_begins_with_as_many_items_as_are_asked_for(bananas: Served) -> None:
    first, *rest = payloads((await ask(bananas, STREAMED)).text)

    nodes = first["data"]["container"]["pallets"]["nodes"]
    later = [item["number"] for part in rest for one in part.get("incremental", ()) for item in one["items"]]
    assert first["pending"] == [{"id": "0", "path": ["container", "pallets", "nodes"]}]
    assert [node["number"] for node in nodes] == ["C001001", "C001002"]
    assert later == ["C001003", "C001004", "C001005", "C001006"]


async def test_the_first_part_does_not_wait_for_what_is_put_off(bananas: Served, transport: Gate) -> None:
    transport.held = {"BatchGetItem"}
    connection = Connection(build_app(bananas.api, Settings()), BOTH, DEFERRED)

    async with asyncio.timeout(10):
        _, first = await connection.sent.get(), await connection.sent.get()
        await transport.waiting.wait()
        is_alone = connection.sent.empty()
        transport.opened.set()
        await connection.task

    assert b'"operator":"TheBoatingCompany"' in first["body"]
    assert is_alone


@pytest.mark.parametrize("query", [DEFERRED, STREAMED])
@pytest.mark.parametrize("accept", [BOTH, JSON])
async def test_nothing_is_put_off_where_a_variable_says_so(bananas: Served, query: str, accept: str) -> None:
    answer = await ask(bananas, query, accept, {"later": False})

    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.json() == (await ask(bananas, query, JSON)).json()


async def test_cost_is_in_the_last_payload_and_in_the_log(bananas: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "server")

    parts = payloads((await ask(bananas, STREAMED, tablegraph_cost="1")).text)

    whole = (await ask(bananas, STREAMED, JSON, tablegraph_cost="1")).json()
    assert ["extensions" in part for part in parts] == [*[False] * (len(parts) - 1), True]
    assert parts[-1]["extensions"]["cost"] == whole["extensions"]["cost"]
    cost = whole["extensions"]["cost"]
    logged = [record.__dict__["fields"] for record in caplog.records if record.name == "server.logs"]
    for line in logged:
        assert (line["requests"], line["items_read"]) == (cost["requests"]["total"], cost["itemsRead"])
        assert line["capacity_units"] == cost["capacityUnits"]
    assert len(logged) == 2


# Errors


async def test_an_error_that_ends_a_part_has_its_code(bananas: Served) -> None:
    query = '{ container(number: "000001") { operator ... @defer { pallets(first: 5000) { nodes { number } } } } }'

    first, last = payloads((await ask(bananas, query)).text)

    (completed,) = last["completed"]
    (error,) = completed["errors"]
    assert first["data"] == {"container": {"operator": "TheBoatingCompany"}}
    assert error["path"] == ["container", "pallets"]
    assert error["extensions"] == {"code": "BAD_PAGE", "limit": "pageSize", "value": 5000, "most": 1000}


async def test_an_error_inside_a_part_makes_its_field_null(serve: Serve) -> None:
    served = await serve(
        BANANAS.read_text(),
        [{"objectId": {"S": "BOX_1"}, "relatedObjectId": {"S": "BOX_1"}, "WeightInKg": {"S": "heavy"}}],
    )
    query = '{ box(number: "1") { number ... @defer { weightInKg isDangerous } } }'

    _, last = payloads((await ask(served, query)).text)

    (part,) = last["incremental"]
    (error,) = part["errors"]
    assert part["data"] == {"weightInKg": None, "isDangerous": None}
    assert (error["path"], error["extensions"]["code"]) == (["box", "weightInKg"], "BAD_ITEM_VALUE")


async def test_an_unexpected_error_in_a_part_is_masked(
    bananas: Served, transport: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    transport.failing = {"BatchGetItem": RuntimeError("secret of the inside")}

    text = (await ask(bananas, DEFERRED)).text

    error = payloads(text)[-1]["completed"][0]["errors"][0]
    number = re.fullmatch(r"unexpected error; its id in the log is ([0-9a-f]{12})", error["message"])
    assert number is not None
    assert error["extensions"] == {"code": "INTERNAL"}
    assert "secret" not in text
    assert [record.levelname for record in caplog.records if number[1] in record.getMessage()] == ["ERROR"]


async def test_errors_before_the_first_payload_are_one_answer(bananas: Served) -> None:
    unknown = await ask(bananas, '{ container(number: "1") { ... @defer { nothing } } }')
    variable = await ask(bananas, DEFERRED, variables={"later": "perhaps"})

    assert unknown.json()["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert variable.json()["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


async def test_items_that_fit_no_type_are_logged(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    keys = (("PALLET_1", "PALLET_1"), ("PALLET_1", "BOX_"))
    served = await serve(
        BANANAS.read_text(), [{"objectId": {"S": one}, "relatedObjectId": {"S": other}} for one, other in keys]
    )

    await ask(served, '{ pallet(number: "1") { number ... @defer { boxes { nodes { number } } } } }')

    assert [record.getMessage() for record in caplog.records if "fit no type" in record.getMessage()] == [
        "items that fit no type were skipped: {'Pallet.boxes': 1}"
    ]


# Mutations


async def test_what_a_mutation_puts_off_is_read_when_all_is_written(serve: Serve) -> None:
    served = await serve(BANANAS.read_text(), example_items("bananas", whole=False))
    mutation = """mutation {
      one: updateContainer(key: { number: "009998" }, set: { operator: "first" }) {
        container { number ... @defer { operator pallets { totalCount } } } }
      two: updateContainer(key: { number: "009998" }, set: { operator: "second" }) { container { operator } } }"""

    parts = payloads((await ask(served, mutation)).text)

    assert parts[0]["data"] == {
        "one": {"container": {"number": "009998"}},
        "two": {"container": {"operator": "second"}},
    }
    assert together(parts)["one"]["container"]["pallets"] == {"totalCount": 2}


@pytest.mark.parametrize("accept", [BOTH, JSON])
async def test_a_transaction_is_one_transaction_and_one_answer(serve: Serve, accept: str) -> None:
    served = await serve(BANANAS.read_text())
    mutation = """mutation @transaction {
      a: createContainer(input: { number: "a" }) { container { number ... @defer { operator } } }
      b: createContainer(input: { number: "b" }) { container { number } } }"""

    answer = await ask(served, mutation, accept)

    assert served.operations.count("TransactWriteItems") == 1
    assert answer.json() == {
        "data": {"a": {"container": {"number": "a", "operator": None}}, "b": {"container": {"number": "b"}}}
    }


# The end


async def settled(before: set[asyncio.Task[Any]]) -> set[asyncio.Task[Any]]:
    """The tasks that have come since, once those that were cancelled have ended."""
    for _ in range(20):
        await asyncio.sleep(0)
    return asyncio.all_tasks() - before


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
async def test_nothing_is_left_behind_the_last_payload(bananas: Served, query: str) -> None:
    before = asyncio.all_tasks()

    response = await bananas.api.execute(Request(query, incremental=True))
    assert response.rest is not None
    parts = [response.body | {"hasNext": True}, *[part async for part in response.rest]]

    assert together(parts)
    assert await settled(before) == set()


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("query", [DEFERRED, NESTED, STREAMED])
async def test_nothing_is_left_of_an_answer_that_is_closed(bananas: Served, query: str, begun: bool) -> None:
    before = asyncio.all_tasks()
    response = await bananas.api.execute(Request(query, incremental=True))
    assert response.rest is not None

    if begun:
        await anext(response.rest)
    await response.rest.aclose()  # type: ignore[attr-defined]

    assert await settled(before) == set()


@pytest.mark.parametrize(
    ("query", "held"), [(DEFERRED, "BatchGetItem"), (NESTED, "BatchGetItem"), (STREAMED, "BatchGetItem")]
)
async def test_a_client_that_goes_ends_what_is_still_read(
    bananas: Served, transport: Gate, query: str, held: str
) -> None:
    before = asyncio.all_tasks()
    transport.held = {held}
    connection = Connection(build_app(bananas.api, Settings()), BOTH, query)

    async with asyncio.timeout(10):
        await transport.waiting.wait()
        connection.gone.set()
        await connection.task

    assert transport.cancelled == 1
    assert await settled(before) == set()
