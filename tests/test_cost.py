"""What queries cost: the figures that issue 2 promises, and `extensions.cost`."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from graph.client import Response as WireResponse
from graph.client import Transport
from tests.conftest import BANANAS, Serve, Served


@dataclass
class Overheard:
    """The way to the engine, and everything that came back."""

    transport: Transport
    answers: list[WireResponse] = field(default_factory=list)

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> WireResponse:
        answer = await self.transport(operation, parameters)
        self.answers.append(answer)
        return answer


@pytest.fixture
def transport(transport: Transport) -> Overheard:
    """What `serve` sends through in this module."""
    return Overheard(transport)


# --- the promised figures -----------------------------------------------------------------------------------------


async def test_twenty_pallets_of_fifteen_boxes_with_edge_fields_cost_24_requests(bananas: Served) -> None:
    data = await bananas.data(
        """{ container(number: "000001") { operator pallets(first: 20) { edges { linkedBy node { origin
        boxes(first: 15) { edges { linkedBy node { weightInKg } } } } } } } }"""
    )

    pallets = data["container"]["pallets"]["edges"]
    weights = [box["node"]["weightInKg"] for pallet in pallets for box in pallet["node"]["boxes"]["edges"]]
    assert (len(pallets), len(weights), None in weights) == (20, 300, False)
    assert {pallet["node"]["origin"] for pallet in pallets} == {"CR"}
    # The container with its pallets' links; each pallet with its boxes' links; 300 boxes by the hundred.
    assert Counter(bananas.operations) == {"Query": 1 + 20, "BatchGetItem": 3}


async def test_fifty_boxes_up_to_their_containers_cost_a_query_for_each_box_and_pallet(bananas: Served) -> None:
    places = itertools.product((1, 2), range(1, 6), range(1, 6))
    numbers = [f"C{container:03}{pallet:03}{box:02}" for container, pallet, box in places]
    lookups = " ".join(f'box{number}: box(number: "{number}") {{ ...Up }}' for number in numbers)

    data = await bananas.data(f"{{ {lookups} }} fragment Up on Box {{ pallet {{ origin container {{ operator }} }} }}")

    assert len(data) == 50
    assert all(box["pallet"]["container"]["operator"] for box in data.values())
    # The boxes by one batch; 50 Queries and a batch for 10 pallets; 10 Queries and a batch for 2 containers.
    assert Counter(bananas.operations) == {"Query": 50 + 10, "BatchGetItem": 1 + 1 + 1}


async def test_fifty_boxes_of_a_path_know_their_pallets_and_container_by_the_way_there(bananas: Served) -> None:
    data = await bananas.data(
        """{ container(number: "000001") { boxes(first: 50) { nodes { pallet {
        number origin container { operator } } } } } }"""
    )

    boxes = data["container"]["boxes"]["nodes"]
    assert [box["pallet"]["number"] for box in boxes] == [f"C00100{1 + place // 15}" for place in range(50)]
    assert {box["pallet"]["container"]["operator"] for box in boxes} == {"TheBoatingCompany"}
    # The container with its pallets' links, four lists of boxes, four pallets; the way up costs no Query.
    assert Counter(bananas.operations) == {"Query": 1 + 4, "BatchGetItem": 1}


async def test_the_way_back_up_costs_nothing_where_the_query_came_down_it(bananas: Served) -> None:
    data = await bananas.data(
        """{ container(number: "000001") { operator pallets(first: 4) { nodes { origin boxes(first: 15) { nodes {
        number pallet { origin container { operator } } } } } } } }"""
    )

    pallets = data["container"]["pallets"]["nodes"]
    ups = [box["pallet"] for pallet in pallets for box in pallet["boxes"]["nodes"]]
    assert ups == [{"origin": "CR", "container": {"operator": "TheBoatingCompany"}}] * 60
    # The container with its pallets' links; each pallet with its boxes' links.
    assert Counter(bananas.operations) == {"Query": 1 + 4}


async def test_nodes_that_the_queries_for_their_pages_do_not_reach_cost_one_batch_get(bananas: Served) -> None:
    data = await bananas.data(
        """{ container(number: "000001") { pallets(first: 4) { nodes { origin
        boxes(first: 5) { nodes { number } } } } } }"""
    )

    assert [pallet["origin"] for pallet in data["container"]["pallets"]["nodes"]] == ["CR"] * 4
    # A pallet's own item lies behind its 15 boxes' links.
    assert Counter(bananas.operations) == {"Query": 1 + 4, "BatchGetItem": 1}


@pytest.mark.parametrize(
    "selection",
    [
        pytest.param("edges { linkedBy linkedDatetime linkedAtLocation cursor }", id="edge-fields"),
        pytest.param("edges { node { __typename id number } }", id="what-the-key-holds"),
        pytest.param("nodes { number container { operator } }", id="the-parent-again"),
        pytest.param("pageInfo { hasNextPage endCursor }", id="page-info"),
    ],
)
async def test_what_the_links_hold_costs_no_batch_get(bananas: Served, selection: str) -> None:
    await bananas.data(f'{{ container(number: "000001") {{ operator pallets(first: 20) {{ {selection} }} }} }}')

    assert bananas.operations == ["Query"]


async def test_edge_fields_of_every_level_cost_the_queries_alone(bananas: Served) -> None:
    await bananas.data(
        """{ container(number: "000001") { pallets(first: 20) { edges { linkedBy node { boxes(first: 15) {
        edges { linkedBy } } } } } } }"""
    )

    assert Counter(bananas.operations) == {"Query": 1 + 20}


async def test_total_count_alone_costs_one_count_query(bananas: Served) -> None:
    data = await bananas.data('{ container(number: "000001") { pallets { totalCount } } }')

    assert data == {"container": {"pallets": {"totalCount": 20}}}
    assert [(operation, sent.get("Select")) for operation, sent in bananas.sent] == [
        ("GetItem", None),
        ("Query", "COUNT"),
    ]


async def test_total_count_beside_a_page_costs_one_count_query_more(bananas: Served) -> None:
    await bananas.data('{ container(number: "000001") { pallets(first: 2) { totalCount nodes { number } } } }')

    assert sorted(str(sent.get("Select")) for _, sent in bananas.sent) == ["COUNT", "None"]


# --- extensions.cost ----------------------------------------------------------------------------------------------

UP = '{ box(number: "A03828") { weightInKg pallet { container { operator } } } }'


async def test_cost_tells_requests_by_kind_items_read_and_indexes(bananas: Served) -> None:
    body = await bananas(UP, cost=True)

    cost = body["extensions"]["cost"]
    assert cost.pop("capacityUnits") > 0
    assert cost == {
        "requests": {"total": 4, "GetItem": 2, "Query": 2},
        "itemsRead": 4,
        "indexes": ["reverse-lookup-index"],
        "estimated": 2.0,
    }


async def test_cost_adds_up_the_capacity_that_dynamodb_reported(bananas: Served, transport: Overheard) -> None:
    transport.answers.clear()

    body = await bananas(
        '{ container(number: "000001") { pallets { totalCount nodes { origin container { operator } } } } }', cost=True
    )

    reported = [answer["ConsumedCapacity"] for answer in transport.answers]
    units = [part["CapacityUnits"] for part in reported if isinstance(part, dict)]
    units += [part["CapacityUnits"] for parts in reported if isinstance(parts, list) for part in parts]
    assert len(units) == body["extensions"]["cost"]["requests"]["total"] == 2
    assert body["extensions"]["cost"]["capacityUnits"] == sum(units)


async def test_cost_is_told_only_when_asked_and_capacity_reported_only_then(bananas: Served) -> None:
    silent = await bananas(UP)
    unasked = [parameters.get("ReturnConsumedCapacity") for _, parameters in bananas.sent]

    telling = await bananas(UP, cost=True)
    asked = [parameters.get("ReturnConsumedCapacity") for _, parameters in bananas.sent]

    assert "extensions" not in silent
    assert "extensions" in telling
    assert (unasked, asked) == ([None] * 4, ["TOTAL"] * 4)


async def test_cost_of_a_query_without_requests_is_nothing(bananas: Served) -> None:
    body = await bananas("{ __typename }", cost=True)

    assert body["extensions"]["cost"] == {
        "requests": {"total": 0},
        "itemsRead": 0,
        "capacityUnits": 0,
        "indexes": [],
        "estimated": 0,
    }


async def test_cost_is_told_beside_errors(bananas: Served) -> None:
    body = await bananas('{ container(number: "009998") { pallets(first: -1) { totalCount } } }', cost=True)

    assert [error["extensions"]["code"] for error in body["errors"]] == ["BAD_PAGE"]
    assert body["extensions"]["cost"]["requests"] == {"total": 1, "GetItem": 1}


async def test_cost_counts_items_that_fit_no_type_by_where_they_were_met(serve: Serve) -> None:
    pallet, nameless = {"S": "PALLET_1"}, {"S": "BOX_"}
    served = await serve(
        BANANAS.read_text(),
        [{"objectId": pallet, "relatedObjectId": pallet}, {"objectId": pallet, "relatedObjectId": nameless}],
    )

    body = await served('{ pallet(number: "1") { boxes { nodes { number } } } }', cost=True)

    assert body["data"] == {"pallet": {"boxes": {"nodes": []}}}
    assert body["extensions"]["cost"]["skippedItems"] == {"Pallet.boxes": 1}
