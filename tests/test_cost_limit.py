"""What an operation may cost: estimated before it reads anything, and counted while it reads."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from graphql import OperationDefinitionNode, parse

from graph.imagined import ImaginedTable
from graph.loaders import Graph, Limits
from graph.model import Model
from resolvers.cost import compile_cost
from resolvers.operation import Request, Response
from resolvers.plan.document import survey
from resolvers.schema import NO_VARIABLES, Api, Executor, build_schema
from resolvers.sdl import compile_model
from server.settings import load_settings
from tests.conftest import BANANAS, PATIENT, ROOT, Serve, Served

MODEL = compile_model(BANANAS.read_text())
BOXES = """{ container(number: "000001") { pallets(first: %s) { nodes { origin
    boxes(first: %s) { nodes { weightInKg } } } } } }"""
MOST = load_settings({}).max_cost
EXAMPLES = sorted((ROOT / "examples").glob("*/queries/*.graphql"))


def api(max_cost: float = math.inf, model: Model = MODEL, executor: Executor = "plan") -> tuple[Api, ImaginedTable]:
    table = ImaginedTable(model, 3)
    return Api(Graph(model, table, Limits(max_cost=max_cost)), executor=executor), table


async def estimated(query: str, variables: dict[str, Any] | None = None, executor: Executor = "plan") -> float:
    response = await api(executor=executor)[0].execute(Request(query, variables, cost=True))
    return float(response.body["extensions"]["cost"]["estimated"])


@pytest.mark.parametrize("executor", ["plan", "reference"])
@pytest.mark.parametrize(
    ("query", "units"),
    [
        pytest.param("{ __typename }", 0, id="nothing"),
        pytest.param('{ box(number: "1") { number } }', 0.5, id="a-node"),
        pytest.param('{ node(id: "WyJCb3giLCJCT1hfMSJd") { id } }', 0.5, id="a-node-by-id"),
        pytest.param('{ nodes(ids: ["WyJCb3giLCJCT1hfMSJd", "WyJCb3giLCJCT1hfMiJd"]) { id } }', 1, id="nodes-by-ids"),
        # 101 edges of 400 bytes are ten times 4096 bytes.
        pytest.param('{ container(number: "1") { pallets(first: 100) { edges { linkedBy } } } }', 5.5, id="edges"),
        pytest.param('{ container(number: "1") { pallets(first: 100) { nodes { number } } } }', 5.5, id="named"),
        pytest.param('{ container(number: "1") { pallets(last: 100) { nodes { origin } } } }', 55.5, id="loaded"),
        pytest.param('{ container(number: "1") { pallets { nodes { origin } } } }', 28, id="default-page"),
        pytest.param('{ container(number: "1") { pallets { totalCount } } }', 5.5, id="counted"),
        # Back where it came from is nothing to be read.
        pytest.param(
            '{ container(number: "1") { pallets(first: 100) { nodes { container { operator } } } } }', 5.5, id="back"
        ),
        pytest.param('{ box(number: "1") { pallet { number } } }', 1, id="to-one"),
        pytest.param('{ box(number: "1") { pallet { origin } } }', 1.5, id="to-one-loaded"),
        pytest.param("{ containers(first: 1) { nodes { number } } }", 123.5, id="scan"),
        pytest.param(
            '{ box(number: "1") { number @skip(if: true) pallet @skip(if: true) { origin } } }', 0.5, id="skip"
        ),
        pytest.param('{ a: box(number: "1") { number } b: box(number: "2") { number } }', 1, id="aliases"),
        pytest.param(BOXES % (10, 10), 0.5 + 1 + 10 * 0.5 + 10 * (1 + 10 * 0.5), id="page-of-pages"),
    ],
)
async def test_estimate(query: str, units: float, executor: Executor) -> None:
    assert await estimated(query, executor=executor) == pytest.approx(units)


async def test_estimate_follows_the_variables() -> None:
    query = "query($n: Int, $ids: [ID!] = []) { nodes(ids: $ids) { id }" + BOXES[1:] % ("$n", "$n")

    small, large = await estimated(query, {"n": 1}), await estimated(query, {"n": 100})
    with_ids = await estimated(query, {"n": 1, "ids": ["WyJCb3giLCJCT1hfMSJd"] * 10})

    assert (small, with_ids - small) == (2.5, 5)
    assert large == 0.5 + 5 + 100 * 0.5 + 100 * (5 + 100 * 0.5)


async def test_a_mutation_reads_consistently() -> None:
    query = 'mutation { createBox(input: { number: "1" }) { box { pallet { number } } } }'

    assert await estimated(query) == 2 * (0.5 + 0.5)


@pytest.mark.parametrize("executor", ["plan", "reference"])
async def test_a_thousand_times_a_thousand_times_a_thousand_is_refused_before_anything_is_read(
    executor: Executor,
) -> None:
    limited, table = api(MOST, executor=executor)
    query = (
        "query($n: Int) { containers(first: $n) { nodes { pallets(first: $n) { nodes { boxes(first: $n) "
        "{ nodes { weightInKg } } } } } } }"
    )

    refused = await limited.execute(Request(query, {"n": 1000}))
    (error,) = refused.body["errors"]
    units = error["extensions"].pop("value")

    assert (refused.outcome, "data" in refused.body, table.sent) == ("refused", False, [])
    assert error["extensions"] == {"code": "LIMIT_EXCEEDED", "limit": "cost", "most": MOST, "field": "Pallet.boxes"}
    assert units > 500_000_000
    assert f"at most 10,000 read units, estimated {units:,.10g}" in error["message"]

    # The same document with less of it is executed.
    assert (await limited.execute(Request(query, {"n": 3}))).outcome == "executed"


async def test_ways_back_and_forth_cost_what_the_answer_grows_by() -> None:
    """What is read is shared; what is answered is not."""
    inner = "number"
    for _ in range(4):
        inner = f"container {{ pallets(first: 1000) {{ nodes {{ {inner} }} }} }}"

    refused = await api(MOST)[0].execute(Request(f'{{ pallet(number: "1") {{ {inner} }} }}'))

    assert refused.body["errors"][0]["extensions"]["limit"] == "cost"


async def test_subscriptions_are_estimated_as_well() -> None:
    pallets = "pallets(first: 1000) { nodes { boxes(first: 1000) { totalCount } } }"
    refused = await api(100)[0].open(Request(f"subscription {{ containerChanged {{ node {{ {pallets} }} }} }}"))

    assert isinstance(refused, Response)
    assert refused.body["errors"][0]["extensions"]["limit"] == "cost"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
async def test_every_query_of_the_examples_is_within_the_default(path: Path) -> None:
    model = compile_model((path.parent.parent / "schema.graphql").read_text())
    limited, _ = api(MOST, model)

    response = await limited.open(Request(path.read_text()))

    errors = response.body.get("errors", []) if isinstance(response, Response) else []
    assert [error for error in errors if error["extensions"]["code"] == "LIMIT_EXCEEDED"] == []


@pytest.mark.parametrize("levels", [1, 3])
async def test_what_several_types_have_in_common_is_compiled_once_for_each(levels: int) -> None:
    """Or it would take as many steps as there are types, to the power of the depth."""
    model = compile_model((ROOT / "examples/b2b/schema.graphql").read_text())
    inner = "... on Business { businessName } ... on Store { storeName }"
    for _ in range(levels):
        tags = f"tags(first: 2) {{ nodes {{ subjects(first: 2) {{ nodes {{ {inner} }} }} }} }}"
        inner = f"... on Business {{ {tags} }} ... on Store {{ ...T }}".replace("...T", tags)
    document = parse(f'{{ tag(name: "a") {{ subjects(first: 2) {{ nodes {{ {inner} }} }} }} }}')
    definition = document.definitions[0]
    assert isinstance(definition, OperationDefinitionNode)

    cost = compile_cost(build_schema(model)._schema, model, Limits(), survey(document, definition), NO_VARIABLES)

    # Of what may be a business or a store the dearer one counts, and not both.
    assert cost.units({}) <= 2 + 8 * 4**levels


# --- while it reads -----------------------------------------------------------------------------------------------


async def limited(serve: Serve, table: str, most: float) -> Served:
    return await serve(BANANAS.read_text(), table=table, limits=replace(PATIENT, max_cost=most))


async def test_an_operation_stops_when_it_has_read_what_it_may(serve: Serve, banana_table: str) -> None:
    """A filter that the estimate cannot see through: what was read stays, and the rest says why it is missing."""
    served = await limited(serve, banana_table, 60)
    query = """{ first: container(number: "000001") { operator }
        container(number: "000001") { number boxes(first: 5, where: { box: { isDangerous: { eq: true } } }) {
        nodes { number } } } }"""

    body = await served(query, cost=True)

    (error,) = body["errors"]
    assert body["data"]["first"] == {"operator": "TheBoatingCompany"}
    assert body["data"]["container"] is None or body["data"]["container"]["boxes"] is None
    assert error["extensions"]["code"] == "LIMIT_EXCEEDED"
    assert (error["extensions"]["limit"], error["extensions"]["most"]) == ("cost", 60)
    assert 60 < error["extensions"]["value"] < 200
    assert "has read" in error["message"]
    assert body["extensions"]["cost"]["estimated"] <= 60


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(BOXES % (20, 15), id="pages-in-pages"),
        pytest.param('{ container(number: "000001") { pallets { totalCount } } }', id="count"),
        pytest.param("{ containers(first: 10) { nodes { number } } }", id="scan"),
    ],
)
async def test_what_is_counted_is_near_to_what_dynamodb_reports(
    serve: Serve, banana_table: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await serve(BANANAS.read_text(), table=banana_table)
    meters: list[Any] = []
    begin = served.graph.operation

    def operation(**asked: Any) -> Any:
        made = begin(**asked)
        meters.append(made.meter)
        return made

    monkeypatch.setattr(served.graph, "operation", operation)

    await served(query, cost=True)

    (meter,) = meters
    assert meter.capacity_units / 2.5 <= meter.read_units <= meter.capacity_units * 2.5
