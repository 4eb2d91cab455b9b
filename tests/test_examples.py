"""The examples: the demo's data is the seed's and the fleet's, and every example query is one of its model's API."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, OperationType, build_schema, parse, validate

from graph.loaders import Limits
from graph.maintenance.walk import Walk
from graph.patterns import search_name
from graph.requests import Item
from graph.search.rebuild import rebuild
from graph.search.sqlite import SqliteIndex
from resolvers.examples import example_queries
from resolvers.schema import print_sdl
from resolvers.sdl import compile_model
from server.demo import read_items
from tests.conftest import ROOT, Serve, banana_items, example_items
from tests.following import follow

EXAMPLES = {name: ROOT / "examples" / name for name in ("bananas", "order-entry", "b2b", "step5")}


# --- the seed -----------------------------------------------------------------------------------------------------


def _link(at: str, by: str, location: str) -> dict[str, Any]:
    return {"LinkedDatetime": {"S": at}, "LinkedBy": {"S": by}, "LinkedAtLocation": {"S": location}}


SEED: dict[tuple[str, str], dict[str, Any]] = {
    ("CONTAINER_009998", "CONTAINER_009998"): {"Operator": {"S": "TheBoatingCompany"}},
    ("CONTAINER_009998", "PALLET_B021002"): _link("2022-07-19T17:59:58Z", "MyLoadingCompany", "JPA.Docks"),
    ("CONTAINER_009998", "PALLET_B021003"): _link("2022-07-19T18:01:58Z", "MyLoadingCompany", "JPA.Docks"),
    ("PALLET_B021002", "PALLET_B021002"): {"Origin": {"S": "BR"}, "Destination": {"S": "DE"}},
    # The document only links it, with no attributes of its own; issue 2 counts it among the nodes.
    ("PALLET_B021003", "PALLET_B021003"): {},
    ("PALLET_B021002", "BOX_A03828"): _link("2022-07-19T10:13:12Z", "MyWarehouseCompany", "TheWarehouseBuilding"),
    ("PALLET_B021002", "BOX_A03829"): _link("2022-07-19T10:13:34Z", "MyWarehouseCompany", "TheWarehouseBuilding"),
    ("BOX_A03828", "BOX_A03828"): {"WeightInKg": {"N": "20.56"}, "IsDangerous": {"BOOL": False}},
    ("BOX_A03829", "BOX_A03829"): {"WeightInKg": {"N": "21.20"}, "IsDangerous": {"BOOL": False}},
}


def test_seed_is_exactly_the_rows_of_its_document() -> None:
    items = list(read_items(EXAMPLES["bananas"] / "seed.jsonl"))

    assert len(items) == len(SEED)
    assert dict(map(_split, items)) == SEED


def _split(item: Item) -> tuple[tuple[str, str], Mapping[str, Any]]:
    keys = (item["objectId"]["S"], item["relatedObjectId"]["S"])
    return keys, {name: value for name, value in item.items() if name not in ("objectId", "relatedObjectId")}


# --- the fleet ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fleet() -> list[Item]:
    return list(read_items(EXAMPLES["bananas"] / "fleet.py"))


def test_fleet_is_the_same_on_every_machine(fleet: list[Item]) -> None:
    """Golden files, README and people's bookmarks hold its values: a new fleet is a change to be told."""
    digest = hashlib.sha256("\n".join(map(json.dumps, fleet)).encode()).hexdigest()

    assert digest == "4be712c329670d4d97b79601ee4d400bffabdd47ebdf2826193328ce5bd2dd85"


def test_fleet_is_50_containers_of_20_pallets_of_15_boxes(fleet: list[Item]) -> None:
    keys = [keys for keys, _ in map(_split, fleet)]
    nodes = {one for one, other in keys if one == other}
    links = [(one, other) for one, other in keys if one != other]

    assert len(set(keys)) == len(keys)
    assert Counter(map(_kind, nodes)) == {"CONTAINER": 50, "PALLET": 50 * 20, "BOX": 50 * 20 * 15}
    assert {end for link in links for end in link} == nodes
    assert Counter(Counter(one for one, other in links if _kind(other) == "PALLET").values()) == {20: 50}
    assert Counter(Counter(one for one, other in links if _kind(other) == "BOX").values()) == {15: 50 * 20}
    assert set(Counter(other for _, other in links).values()) == {1}


def _kind(key: str) -> str:
    return key.partition("_")[0]


def test_fleet_says_everything_that_the_model_asks(fleet: list[Item]) -> None:
    attributes: dict[str, set[frozenset[str]]] = {}
    for (one, other), values in map(_split, fleet):
        attributes.setdefault(_kind(one) if one == other else "link", set()).add(frozenset(values))

    assert attributes == {
        "CONTAINER": {frozenset({"Operator"})},
        "PALLET": {frozenset({"Origin", "Destination"})},
        "BOX": {frozenset({"WeightInKg", "IsDangerous"})},
        "link": {frozenset({"LinkedDatetime", "LinkedBy", "LinkedAtLocation"})},
    }


def test_fleet_weighs_what_a_box_of_bananas_weighs(fleet: list[Item]) -> None:
    weights = [float(item["WeightInKg"]["N"]) for item in fleet if "WeightInKg" in item]

    assert 16 < min(weights) < max(weights) < 23


def test_pallets_are_packed_before_they_are_loaded(fleet: list[Item]) -> None:
    loaded: dict[str, str] = {}
    packed: dict[str, list[str]] = {}
    for (one, other), values in map(_split, fleet):
        if _kind(one) == "CONTAINER" != _kind(other):
            loaded[other] = values["LinkedDatetime"]["S"]
        elif _kind(one) == "PALLET" != _kind(other):
            packed.setdefault(one, []).append(values["LinkedDatetime"]["S"])

    assert len(loaded) == 1000
    assert [pallet for pallet, moment in loaded.items() if max(packed[pallet]) >= moment] == []


# --- the queries --------------------------------------------------------------------------------------------------


def _data(example: str) -> Iterator[Item]:
    return banana_items() if example == "bananas" else example_items(example)


@pytest.mark.parametrize("example", EXAMPLES)
async def test_every_query_of_an_example_shows_something(example: str, serve: Serve, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    # Patience is for golden numbers of requests: here it would only be waited for.
    sdl = (EXAMPLES[example] / "schema.graphql").read_text()
    served = await serve(sdl, _data(example), limits=Limits(), search=index)
    await rebuild(Walk(served.graph, 1))

    queries = {path.stem: path.read_text() for path in (EXAMPLES[example] / "queries").glob("*.graphql")}
    bodies = {name: await served(query) for name, query in queries.items() if not is_subscription(query)}

    assert len(bodies) >= 4
    assert {name: body["errors"] for name, body in bodies.items() if "errors" in body} == {}
    assert [name for name, body in bodies.items() if not any(map(_shows, body["data"].values()))] == []


async def test_subscription_of_the_bananas_tells_what_their_mutation_loads(serve: Serve, engine: str) -> None:
    folder = EXAMPLES["bananas"] / "queries"
    served = await serve((EXAMPLES["bananas"] / "schema.graphql").read_text(), _data("bananas"))
    followed = await follow(served, engine)
    (query,) = [text for path in folder.glob("*.graphql") if is_subscription(text := path.read_text())]
    events = await followed.open(query)

    await followed.write((folder / "5-load-a-pallet.graphql").read_text())

    ((event,),) = await followed.told(events)
    assert event["kind"] == "CREATED"
    assert event["edge"]["node"]["boxes"]["nodes"] == [{"number": "A03900"}, {"number": "A03901"}]


def is_subscription(query: str) -> bool:
    """Whether a document is one that goes on."""
    (operation,) = parse(query).definitions
    assert isinstance(operation, OperationDefinitionNode)
    return operation.operation is OperationType.SUBSCRIPTION


def _shows(value: Any) -> bool:
    """Whether there is anything to see in the answer to a field."""
    if isinstance(value, (dict, list)):
        return any(map(_shows, value.values() if isinstance(value, dict) else value))
    return value not in (None, False)


@pytest.mark.parametrize("example", EXAMPLES)
def test_queries_written_for_a_model_are_valid_and_name_their_variables(example: str) -> None:
    model = compile_model((EXAMPLES[example] / "schema.graphql").read_text())
    schema = build_schema(print_sdl(model))

    examples = list(example_queries(model))

    searches = [search_name(item.name) for item in model.nodes if item.searched]
    assert [one["title"] for one in examples] == [*model.finds, *searches, *(item.name for item in model.nodes)]
    for one in examples:
        document = parse(one["query"])
        (operation,) = document.definitions
        assert isinstance(operation, OperationDefinitionNode)
        declared = {definition.variable.name.value for definition in operation.variable_definitions or ()}
        assert validate(schema, document) == [], one["query"]
        assert set(json.loads(one.get("variables", "{}"))) == declared
