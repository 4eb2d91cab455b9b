"""The subgraph under a real gateway: composed by Apollo's own composition, asked through @apollo/gateway, from npm."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from strawberry.asgi import GraphQL

from resolvers.schema import Executor, print_sdl
from resolvers.sdl import compile_model
from server.api import api_of
from server.settings import Settings
from tests.conftest import Serve, Served, example_items
from tests.counting import running
from tests.other_subgraphs import CAREERS, COLOURS, CUSTOMS
from tests.test_clients import CLIENTS, ENVIRONMENT
from tests.test_golden import EXAMPLES
from tests.test_readme import blocks

pytestmark = pytest.mark.skipif(
    not (CLIENTS / "node_modules").is_dir(), reason="the gateway from npm is not there: make test brings it"
)

# Composes `{ name: SDL }`, and tells the codes of errors and hints.
COMPOSE = """
import { composeServices } from '@apollo/composition';
import { parse } from 'graphql';
const subgraphs = Object.entries(SUBGRAPHS);
const services = subgraphs.map(([name, sdl]) => ({ name, url: `http://${name}`, typeDefs: parse(sdl) }));
const { errors = [], hints = [] } = composeServices(services);
console.log(JSON.stringify(errors.map((error) => [error.extensions.code, error.message.split(' is resolved')[0]])));
console.log(JSON.stringify(hints.map((hint) => hint.definition.code)));
"""

# Asks the README's gateway one operation after the other.
ASK = """
await server.start();
for (const operation of OPERATIONS) {
  const { body } = await server.executeOperation(operation);
  console.log(JSON.stringify(body.singleResult));
}
await server.stop();
"""


async def told(program: str) -> list[Any]:
    """What a program of JavaScript writes, line by line."""
    process = await asyncio.create_subprocess_exec(
        *["node", "--no-warnings", "--input-type=module"],
        cwd=CLIENTS,
        env=ENVIRONMENT | {"NODE_ENV": "test"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        lines, _ = await process.communicate(program.encode())
    assert process.returncode == 0
    return [json.loads(line) for line in lines.splitlines()]


async def composed(**subgraphs: str) -> tuple[list[Any], list[Any]]:
    """The errors and the hints of a composition."""
    errors, hints = await told(f"const SUBGRAPHS = {json.dumps(subgraphs)};{COMPOSE}")
    return errors, hints


def sdl_of(name: str, federation: Any = "on") -> str:
    return print_sdl(compile_model(EXAMPLES[name].read_text()), federation=federation)


# composition


@pytest.mark.parametrize("name", EXAMPLES)
async def test_every_example_composes(name: str) -> None:
    assert await composed(subgraph=sdl_of(name)) == ([], [])


async def test_several_subgraphs_compose_where_one_has_node() -> None:
    both = {"bananas": sdl_of("bananas"), "sensors": sdl_of("step5")}
    errors, _ = await composed(**both)
    assert errors == [
        ["INVALID_FIELD_SHARING", 'Non-shareable field "Query.node"'],
        ["INVALID_FIELD_SHARING", 'Non-shareable field "Query.nodes"'],
    ]

    errors, hints = await composed(**both | {"sensors": sdl_of("step5", "without-node")})

    assert errors == []
    # Of filters, which both have, the gateway takes what both know.
    assert set(hints) <= {"INCONSISTENT_INPUT_OBJECT_FIELD", "INCONSISTENT_DESCRIPTION"}


# a gateway


class Supergraph:
    """Our subgraph and another one, each with a server of its own."""

    def __init__(self, served: Served, urls: dict[str, str]) -> None:
        self._served = served
        self._urls = urls

    async def __call__(self, *queries: str, **variables: Any) -> list[Any]:
        """Have a new gateway compose the two and answer operations; `served.sent` has what DynamoDB was asked."""
        self._served.sent.clear()
        (program,) = (block for block in blocks("js") if "@apollo/gateway" in block)
        for written, url in self._urls.items():
            assert written in program
            program = program.replace(written, url)
        operations = json.dumps([{"query": query, "variables": variables} for query in queries])
        return await told(f"{program}const OPERATIONS = {operations};{ASK}")


@asynccontextmanager
async def serving(schema: Any) -> AsyncIterator[str]:
    """Serve a subgraph of Strawberry's."""
    app = Starlette()
    app.mount("/graphql", GraphQL[Any, Any](schema))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/graphql/"
        finally:
            server.should_exit = True
            await task


@pytest.fixture(params=["plan", "reference"])
def executor(request: pytest.FixtureRequest) -> Executor:
    found: Executor = request.param
    return found


@asynccontextmanager
async def supergraph(served: Served, schema: Any, executor: Executor = "plan") -> AsyncIterator[Supergraph]:
    """Serve both subgraphs."""
    api = api_of(served.graph, Settings(federation="on", executor=executor))
    async with running(api) as server, serving(schema) as url:
        urls = {"http://localhost:8000/graphql": server.url, "http://localhost:8001/graphql": url}
        yield Supergraph(served, urls)


async def test_a_query_crosses_subgraphs_both_ways(
    bananas: Served, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = (block for block in blocks("python") if "strawberry.federation" in block)
    insurance = ModuleType("insurance")
    monkeypatch.setitem(sys.modules, "insurance", insurance)
    exec(program, vars(insurance))  # noqa: S102 - our own README
    there = '{ container(number: "009998") { operator insurance { policy container { operator } } } }'
    back = "{ policies { policy container { operator pallets { totalCount } } } }"
    (id_,) = (await bananas.data('{ container(number: "009998") { id } }'))["container"].values()
    refetched = f'{{ node(id: "{id_}") {{ id ... on Container {{ insurance {{ policy }} }} }} }}'

    async with supergraph(bananas, insurance.schema, executor) as ask:
        answers = await ask(there, back, refetched)

    operator = {"operator": "TheBoatingCompany"}
    insured = {"policy": "P-1", "container": operator}
    assert answers == [
        {"data": {"container": operator | {"insurance": insured}}},
        {"data": {"policies": [{"policy": "P-1", "container": operator | {"pallets": {"totalCount": 2}}}]}},
        {"data": {"node": {"id": id_, "insurance": {"policy": "P-1"}}}},
    ]
    # The container, and again when the other subgraph has named it; it, and its pallets counted; it, by its id.
    assert bananas.operations == ["GetItem", "GetItem", "GetItem", "GetItem", "Query"]


async def test_entities_of_a_list_travel_together(bananas: Served, executor: Executor) -> None:
    pallets = "pallets(first: 2) { nodes { id } }"
    known = await bananas.data(f"{{ containers(first: 3) {{ nodes {{ id number operator {pallets} }} }} }}")
    containers = known["containers"]["nodes"]
    ids = [one["id"] for one in containers]

    async with supergraph(bananas, CUSTOMS, executor) as ask:
        (answer,) = await ask(
            """query ($ids: [ID!]!) {
              fleet(ids: $ids) { number operator pallets(first: 2) { nodes { customs } } }
            }""",
            ids=[*ids, "nobody's", *ids],
        )

    found = [
        {
            "number": one["number"],
            "operator": one["operator"],
            "pallets": {"nodes": [{"customs": f"cleared {pallet['id']}"} for pallet in one["pallets"]["nodes"]]},
        }
        for one in containers
    ]
    assert answer["data"]["fleet"] == [*found, None, *found]
    (error,) = answer["errors"]
    assert error["extensions"]["code"] == "BAD_ID"
    # All containers at once, then the pallets of each: of those the ids are asked for alone, which their edges tell.
    assert bananas.operations == ["BatchGetItem", "Query", "Query", "Query"]


async def test_a_key_may_lie_behind_another_node(serve: Serve, executor: Executor) -> None:
    orders = await serve(EXAMPLES["order-entry"].read_text(), example_items("order-entry"))
    known = await orders.data('{ employee(number: "1") { name jobs { nodes { startDate title } } } }')
    job = known["employee"]["jobs"]["nodes"][0]

    async with supergraph(orders, CAREERS, executor) as ask:
        (answer,) = await ask(
            "query ($since: Date!) { post(of: 1, since: $since) { title employee { name } } }", since=job["startDate"]
        )

    assert answer == {"data": {"post": {"title": job["title"], "employee": {"name": known["employee"]["name"]}}}}
    # The job by its whole key; the employee by a number, which is only part of theirs.
    assert orders.operations == ["GetItem", "Query"]


async def test_a_virtual_node_is_an_entity_of_another_subgraph(serve: Serve, executor: Executor) -> None:
    business = await serve(EXAMPLES["b2b"].read_text(), example_items("b2b", whole=False))
    query = "query ($names: [ID!]!) { tags(names: $names) { name colour subjects { totalCount } } }"

    async with supergraph(business, COLOURS, executor) as ask:
        (answer,) = await ask(query, names=["music", "of nothing"])

    assert answer == {
        "data": {
            "tags": [
                {"name": "music", "colour": "green", "subjects": {"totalCount": 3}},
                {"name": "of nothing", "colour": "green", "subjects": {"totalCount": 0}},
            ]
        }
    }
    # A subject is of one of four types, which lie in ranges of their own.
    assert business.operations == ["Query"] * 8
