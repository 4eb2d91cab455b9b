"""The pages for people, as the server gives them out: to whom, with what; and what they are told of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from graph.client import Client, Meter
from graph.errors import RequestRefused, StoreError
from graph.outline import outline
from graph.requests import GetItem
from graph.trace import Trace
from resolvers.operation import Request, Response
from resolvers.sdl import compile_model
from server.app import build_app
from server.identity.api_keys import hash_of, make_key
from server.settings import Settings
from tests.conftest import BANANAS, ROOT, Served
from tests.test_app import BROWSER, HELLO, ScriptedApi, client_of
from tests.test_layouts import large_model

EXAMPLES = [ROOT / f"examples/{name}/schema.graphql" for name in ("order-entry", "b2b", "step5")]
OUTLINE = outline(compile_model(BANANAS.read_text()))


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    """Three built pages, each of which says which it is."""
    for name in ("index", "graph", "schema"):
        (tmp_path / f"{name}.html").write_text(f"{name} __TABLEGRAPH_CONFIG__")
    return tmp_path


async def get(path: str, settings: Settings, dist: Path, **headers: str) -> httpx.Response:
    async with client_of(build_app(ScriptedApi(), settings, outline=OUTLINE, ide_dist=dist)) as client:
        return await client.get(path, headers=BROWSER | headers)


@pytest.mark.parametrize(("path", "name"), [("/graphql", "index"), ("/graph", "graph"), ("/schema", "schema")])
async def test_each_page_has_its_configuration_and_may_run_scripts_of_ours_alone(
    path: str, name: str, dist: Path
) -> None:
    page = await get(path, Settings(title="Fleet"), dist)

    assert page.status_code == 200
    assert page.text.startswith(f'{name} {{"endpoint":"/graphql","title":"Fleet"')
    assert '"outline":"/schema.json"' in page.text
    assert "script-src 'self';" in page.headers["content-security-policy"]


async def test_the_model_is_told_as_json(dist: Path) -> None:
    told = await get("/schema.json", Settings(), dist)

    assert told.headers["content-type"] == "application/json"
    assert [type_["name"] for type_ in told.json()["types"]] == [
        "Container",
        "Pallet",
        "Box",
        "PalletLoading",
        "BoxLoading",
    ]


@pytest.mark.parametrize(
    ("settings", "absent"),
    [
        (Settings(graphiql=False), ["/graph", "/schema", "/schema.json"]),
        (Settings(introspection=False), ["/schema", "/schema.json"]),
        (Settings(hide_forbidden=True), ["/schema", "/schema.json"]),
    ],
)
async def test_what_is_not_everybodys_to_see_is_not_there(settings: Settings, absent: list[str], dist: Path) -> None:
    assert [(await get(path, settings, dist)).status_code for path in absent] == [404] * len(absent)


async def test_the_model_is_told_to_whom_the_api_answers(dist: Path, tmp_path: Path) -> None:
    key, keys = make_key(), tmp_path / "keys.toml"
    keys.write_text(f'[[keys]]\nname = "guest"\nsha256 = "{hash_of(key)}"\n')
    settings = Settings(api_keys=keys)

    refused = await get("/schema.json", settings, dist)
    told = await get("/schema.json", settings, dist, authorization=f"Bearer {key}")

    assert (refused.status_code, refused.json()["errors"][0]["extensions"]["code"]) == (401, "UNAUTHENTICATED")
    assert told.status_code == 200


# The outline


@pytest.mark.parametrize("schema", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_direction_is_served_by_an_index_or_a_key_that_is_there(schema: Path) -> None:
    told = outline(compile_model(schema.read_text()))

    indexes = {index["name"] for table in told["tables"] for index in table["indexes"]} | {"key"}
    types = {type_["name"]: {field["name"] for field in type_["fields"]} for type_ in told["types"]}
    assert told["links"]
    for link in told["links"]:
        assert set(link["index"].split(", ")) <= indexes, link
        assert link["field"] in types[link["from"]]
        assert link["to"] in types
    assert {name for pattern in told["patterns"] for name in pattern["types"]} <= set(types)


def test_both_directions_of_a_relationship_are_one_thing() -> None:
    told = outline(compile_model(large_model(25, 60)))

    ids = [link["id"] for link in told["links"]]
    assert len(ids) == 60
    assert sorted(ids.count(one) for one in set(ids)) == [2] * 30


# The requests of a run


async def test_each_request_is_told_and_they_add_up_to_the_sums(bananas: Served) -> None:
    query = '{ container(number: "009998") { operator pallets { nodes { number origin } } } }'

    response = await bananas.api.execute(Request(query, cost=True, trace=True))

    cost = response.body["extensions"]["cost"]
    trace: list[dict[str, Any]] = cost["trace"]
    assert len(trace) == cost["requests"]["total"] > 1
    assert sum(call["units"] for call in trace) == cost["capacityUnits"]
    assert sum(call["items"] for call in trace) == cost["itemsRead"]
    assert {call["table"] for call in trace} == {bananas.table}
    assert all(call["start"] >= 0 and call["ms"] > 0 for call in trace)


async def test_without_being_asked_no_request_is_told(bananas: Served) -> None:
    response = await bananas.api.execute(Request('{ box(number: "A03828") { weightInKg } }', cost=True))

    assert "trace" not in response.body["extensions"]["cost"]


async def test_a_request_that_fails_is_told_with_its_code() -> None:
    async def fail(_: str, __: dict[str, Any]) -> dict[str, Any]:
        raise RequestRefused("it is")

    meter = Meter(trace=Trace())
    with pytest.raises(StoreError):
        await Client(fail).send(GetItem("boxes", (("id", "1"),)), meter)

    assert meter.trace is not None
    assert [(call["operation"], call["error"]) for call in meter.trace.told()] == [("GetItem", RequestRefused.code)]


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (Settings(), (True, True)),
        (Settings(graphiql=False), (True, False)),
        (Settings(cost="never"), (False, False)),
        (Settings(cost="always", graphiql=False), (True, False)),
    ],
)
async def test_each_request_is_asked_for_by_the_header_where_the_pages_are_on(
    settings: Settings, asked: tuple[bool, bool]
) -> None:
    requests: list[Request] = []

    async def execute(request: Request) -> Response:
        requests.append(request)
        return Response({"data": None}, "executed")

    async with client_of(build_app(ScriptedApi(execute), settings)) as client:
        await client.post("/graphql", json=HELLO, headers={"Tablegraph-Cost": "requests"})

    assert [(request.cost, request.trace) for request in requests] == [asked]
