"""The API as a subgraph of Apollo Federation 2: its keys, its entities and what they cost, in both executors."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff
from typing import Any

import orjson
import pytest
from graphql import build_schema

from graph.identity import Identity
from resolvers.operation import Request
from resolvers.schema import Api, Executor, print_sdl
from resolvers.sdl import compile_model
from server.api import api_of
from server.cli import main
from server.settings import Settings
from tests.conftest import BANANAS, ROOT, Serve, Served, example_items
from tests.test_auth import ADMIN, ANN, BOB, EVE, NOBODY, SHOP, items

ENTITIES = """query ($representations: [_Any!]!) {
  _entities(representations: $representations) {
    __typename
    ... on Container { number operator }
    ... on Pallet { number origin container { number } }
    ... on Box { number }
  }
}"""


@pytest.fixture(params=["plan", "reference"])
def executor(request: pytest.FixtureRequest) -> Executor:
    """Each of the two ways to execute a query."""
    found: Executor = request.param
    return found


@pytest.fixture
async def subgraph(bananas: Served, executor: Executor) -> Served:
    """The banana graph as a subgraph."""
    bananas.api = Api(bananas.graph, executor=executor, federation="on")
    return bananas


def named(type_name: str, *numbers: str) -> list[dict[str, Any]]:
    return [{"__typename": type_name, "number": number} for number in numbers]


# the schema


def added(sdl: str, **options: Any) -> list[str]:
    """The lines that federation adds to a schema, but for descriptions and those that close something."""
    model = compile_model(sdl)
    plain = print_sdl(model).splitlines()
    lines = [line.strip() for line in print_sdl(model, federation="on").splitlines() if line not in plain]
    return [line for line in lines if line and not line.startswith('"""')]


def test_the_schema_has_keys_of_the_model() -> None:
    assert added(BANANAS.read_text()) == [
        'schema @link(url: "https://specs.apollo.dev/federation/v2.0", import: ["@key", "@shareable"]) {',
        "query: Query",
        "mutation: Mutation",
        "subscription: Subscription",
        'type Box implements Node @key(fields: "id") @key(fields: "number") {',
        'type Container implements Node @key(fields: "id") @key(fields: "number") {',
        "type PageInfo @shareable {",
        'type Pallet implements Node @key(fields: "id") @key(fields: "number") {',
        "_service: _Service!",
        "The entities that a gateway names, in its order, with null for those that do not exist.",
        "_entities(representations: [_Any!]!): [_Entity]!",
        "scalar _Any",
        "union _Entity = Container | Pallet | Box",
        "type _Service {",
        "sdl: String!",
    ]


KEYS = """extend schema @table(name: "keys", partitionKey: "pk", sortKey: "sk")
type Shop @node(key: "SHOP#{city}#{number}") { city: String!  number: ID! }
interface Author { number: ID! }
type Guest implements Author @node(key: "GUEST#{number}") { number: ID! }
type Shelf @node(partition: "{shop}", sort: "SHELF#{position}") { shop: Shop!  position: Int!  label: String }
type Book @node(partition: "{shelf.shop}", sort: "BOOK#{shelf.position}#{isbn}") { shelf: Shelf!  isbn: ID! }
type Note @node(partition: "{author}", sort: "NOTE#{number}") { author: Author!  number: ID! }
type Tag @node(key: "TAG#{name}", virtual: true) { name: ID! }
"""


def test_a_key_may_have_several_fields_and_lie_behind_other_nodes() -> None:
    keys = {line.split(" ")[1]: line for line in added(KEYS) if "@key(" in line and line.startswith("type")}

    assert {name: line.partition(' @key(fields: "id")')[2].strip(" {") for name, line in keys.items()} == {
        "Shop": '@key(fields: "city number")',
        "Guest": '@key(fields: "number")',
        "Shelf": '@key(fields: "shop { city number } position")',
        "Book": '@key(fields: "shelf { shop { city number } position } isbn")',
        # A key may not lead through an interface.
        "Note": "",
        "Tag": '@key(fields: "name")',
    }


def test_the_tenant_is_part_of_a_key() -> None:
    assert 'type Order implements Node @key(fields: "id") @key(fields: "org number") {' in added(SHOP)


async def test_a_gateway_gets_the_schema_that_the_command_line_prints(
    subgraph: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    served = await subgraph.data('{ _service { __typename sdl } container(number: "009998") { number } }')

    assert main(["schema", "--federation", "--schema", str(BANANAS)]) == 0
    assert served == {
        "_service": {"__typename": "_Service", "sdl": capsys.readouterr().out},
        "container": {"number": "009998"},
    }


@pytest.mark.parametrize("given", [["--federation", "without-node"], ["--federation=without-node"]])
def test_one_of_several_subgraphs_keeps_node_and_nodes(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--schema", str(BANANAS), *given]) == 0

    with_all = print_sdl(compile_model(BANANAS.read_text()), federation="on").splitlines()
    changes = list(unified_diff(with_all, capsys.readouterr().out.splitlines(), n=0))
    assert [line for line in changes if line.startswith(("-  n", "+ "))] == [
        "-  node(id: ID!): Node",
        "-  nodes(ids: [ID!]!): [Node]!",
    ]


async def test_without_the_setting_there_is_nothing_of_it(bananas: Served) -> None:
    sdl = api_of(bananas.graph, Settings()).sdl()

    assert sdl == print_sdl(bananas.api.model)
    schema = build_schema(sdl)
    assert not [name for name in schema.type_map if name.startswith("_") and not name.startswith("__")]
    assert "@key" not in sdl
    assert "@link" not in sdl
    error = await bananas.error("{ _service { sdl } }")
    assert error["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"


async def test_where_introspection_is_off_the_schema_is_not_told_this_way_either(subgraph: Served) -> None:
    subgraph.api = api_of(subgraph.graph, Settings(federation="on", introspection=False))

    for query in (
        "{ _service { sdl } }",
        "{ mine: _service { __typename } }",
        "{ ...F } fragment F on Query { _service { sdl } }",
    ):
        error = await subgraph.error(query)
        assert error["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
        assert "tablegraph schema --federation" in error["message"]
    found = await subgraph.data(ENTITIES, {"representations": named("Box", "nobody")})
    assert found == {"_entities": [None]}


# entities


async def test_entities_are_read_in_one_batch_in_their_order(subgraph: Served) -> None:
    id_ = (await subgraph.data('{ container(number: "009998") { id } }'))["container"]["id"]
    representations = [
        {"__typename": "Pallet", "number": "B021002"},
        {"__typename": "Container", "id": id_},
        {"__typename": "Box", "number": "nobody"},
        {"__typename": "Container", "number": "009998", "insurance": {"premium": 7}},
        {"__typename": "Pallet", "number": "B021002"},
    ]

    query = ENTITIES.replace("container { number }", "")
    found = await subgraph.data(query, {"representations": representations})

    container = {"__typename": "Container", "number": "009998", "operator": "TheBoatingCompany"}
    pallet = {"__typename": "Pallet", "number": "B021002", "origin": "BR"}
    assert found == {"_entities": [pallet, container, None, container, pallet]}
    ((operation, sent),) = subgraph.sent
    assert operation == "BatchGetItem"
    (keys,) = (one["Keys"] for one in sent["RequestItems"].values())
    assert sorted(key["objectId"]["S"] for key in keys) == ["BOX_nobody", "CONTAINER_009998", "PALLET_B021002"]


async def test_a_hundred_entities_take_one_batch_and_one_more_takes_two(subgraph: Served) -> None:
    boxes = "boxes(first: 50) { nodes { number } }"
    pallets = await subgraph.data(
        f"{{ containers(first: 3) {{ nodes {{ pallets(first: 50) {{ nodes {{ {boxes} }} }} }} }} }}"
    )
    numbers = [
        box["number"]
        for container in pallets["containers"]["nodes"]
        for pallet in container["pallets"]["nodes"]
        for box in pallet["boxes"]["nodes"]
    ]
    assert len(numbers) > 201

    for count, batches in ((100, 1), (101, 2), (201, 3)):
        representations = named("Box", *numbers[:count])
        found = await subgraph.data(ENTITIES, {"representations": representations})
        assert [box["number"] for box in found["_entities"]] == numbers[:count]
        # The last one of 101 may travel alone, and then it is a GetItem's.
        assert len(subgraph.sent) == batches


async def test_what_else_is_asked_for_travels_with_the_entities(subgraph: Served) -> None:
    query = """query ($representations: [_Any!]!) {
      box: _entities(representations: $representations) { ... on Box { number } }
      again: _entities(representations: [{ __typename: "Pallet", number: "B021002" }]) {
        ... on Node { id }
        ... on Pallet { origin }
      }
      container(number: "009998") { number }
      __typename
    }"""
    id_ = (await subgraph.data('{ pallet(number: "B021002") { id } }'))["pallet"]["id"]

    found = await subgraph.data(query, {"representations": named("Box", "nobody")})

    assert found == {
        "box": [None],
        "again": [{"id": id_, "origin": "BR"}],
        "container": {"number": "009998"},
        "__typename": "Query",
    }
    assert subgraph.operations == ["BatchGetItem"]


async def test_relationships_of_all_entities_are_read_side_by_side(subgraph: Served) -> None:
    query = """query ($representations: [_Any!]!) {
      _entities(representations: $representations) { ... on Pallet { container { operator } } }
    }"""

    found = await subgraph.data(query, {"representations": named("Pallet", "B021002", "B021002")})

    assert found == {"_entities": [{"container": {"operator": "TheBoatingCompany"}}] * 2}
    assert subgraph.operations == ["GetItem", "GetItem", "Query"]


NESTED = orjson.loads("[" * 1000 + "]" * 1000)
BAD: Mapping[str, tuple[Any, str, str]] = {
    "no object": (7, "BAD_REPRESENTATION", "expected an object"),
    "no type": ({"number": "009998"}, "BAD_REPRESENTATION", "expected the __typename of a type with @key"),
    "another type": ({"__typename": "PalletLoading"}, "BAD_REPRESENTATION", "'PalletLoading'"),
    "no text for a type": ({"__typename": ["Pallet"]}, "BAD_REPRESENTATION", "expected the __typename"),
    "no key": ({"__typename": "Pallet"}, "BAD_REPRESENTATION", "got no Pallet.number"),
    "null for a key": ({"__typename": "Pallet", "number": None}, "BAD_REPRESENTATION", "got no Pallet.number"),
    "a wrong value": ({"__typename": "Pallet", "number": 1.5}, "BAD_REPRESENTATION", "Pallet.number expects a string"),
    "an empty value": ({"__typename": "Pallet", "number": ""}, "BAD_KEY_VALUE", "number"),
    "a damaged id": ({"__typename": "Pallet", "id": "xyz"}, "BAD_ID", "'xyz'"),
    "no text for an id": (
        {"__typename": "Pallet", "id": {"of": 1}},
        "BAD_REPRESENTATION",
        "Pallet.id expects a string",
    ),
    "what is nested too deep to be quoted": (NESTED, "BAD_REPRESENTATION", "expected an object"),
}


@pytest.mark.parametrize("bad", BAD)
async def test_a_bad_representation_fails_alone(bad: str, subgraph: Served) -> None:
    representation, code, message = BAD[bad]
    representations = [*named("Container", "009998"), representation, *named("Container", "009998")]

    body = await subgraph(ENTITIES, {"representations": representations})

    first, failed, last = body["data"]["_entities"]
    assert first == last == {"__typename": "Container", "number": "009998", "operator": "TheBoatingCompany"}
    assert failed is None
    (error,) = body["errors"]
    assert error["path"] == ["_entities", 1]
    assert error["extensions"]["code"] == code
    assert message in error["message"]
    assert len(subgraph.sent) == 1


async def test_what_entities_will_cost_is_estimated_by_their_number(subgraph: Served) -> None:
    query = (
        "query ($of: [_Any!]!) { _service { __typename } _entities(representations: $of) { ... on Box { number } } }"
    )

    body = await subgraph(query, {"of": named("Box", "1", "2", "3")}, cost=True)

    assert body["data"]["_entities"] == [None, None, None]
    cost = body["extensions"]["cost"]
    assert cost["estimated"] == 3 * 0.5
    assert subgraph.operations == ["BatchGetItem"]


async def test_an_id_is_of_the_type_that_is_said(subgraph: Served) -> None:
    id_ = (await subgraph.data('{ container(number: "009998") { id } }'))["container"]["id"]

    error = await subgraph.error(ENTITIES, {"representations": [{"__typename": "Pallet", "id": id_}]})

    assert error["extensions"]["code"] == "BAD_REPRESENTATION"
    assert error["message"] == "expected the id of a Pallet, got that of a Container"
    assert subgraph.sent == []


async def test_no_representations_are_no_entities(subgraph: Served) -> None:
    assert await subgraph.data(ENTITIES, {"representations": []}) == {"_entities": []}
    assert subgraph.sent == []


# keys of other kinds


async def test_an_entity_is_found_by_fields_behind_another_node(serve: Serve, executor: Executor) -> None:
    served = await serve((ROOT / "examples/order-entry/schema.graphql").read_text(), example_items("order-entry"))
    served.api = Api(served.graph, executor=executor, federation="on")
    jobs = await served.data('{ employee(number: "1") { name jobs { nodes { startDate title } } } }')
    job = jobs["employee"]["jobs"]["nodes"][0]
    query = """query ($representations: [_Any!]!) {
      _entities(representations: $representations) {
        ... on JobHistory { title employee { number } }
        ... on Employee { name }
      }
    }"""
    representations = [
        {
            "__typename": "JobHistory",
            "employee": {"__typename": "Employee", "number": 1},
            "startDate": job["startDate"],
        },
        {"__typename": "JobHistory", "employee": {"number": "1"}, "startDate": "1999-99-01"},
        {"__typename": "JobHistory", "employee": "1", "startDate": job["startDate"]},
        {"__typename": "Employee", "number": "1"},
        {"__typename": "Employee", "number": "nobody"},
    ]

    body = await served(query, {"representations": representations})

    found, wrong, unnamed, employee, nobody = body["data"]["_entities"]
    assert found == {"title": job["title"], "employee": {"number": "1"}}
    assert (wrong, unnamed, nobody) == (None, None, None)
    assert employee == {"name": jobs["employee"]["name"]}
    assert [(error["path"], error["extensions"]["code"]) for error in body["errors"]] == [
        (["_entities", 1], "BAD_REPRESENTATION"),
        (["_entities", 2], "BAD_REPRESENTATION"),
    ]
    # The number of an employee is not their whole key: their name is in it, too.
    assert served.operations == ["GetItem", "Query", "Query"]


async def test_a_virtual_node_is_there_as_soon_as_it_is_named(serve: Serve, executor: Executor) -> None:
    served = await serve((ROOT / "examples/b2b/schema.graphql").read_text(), example_items("b2b"))
    served.api = Api(served.graph, executor=executor, federation="on")

    body = await served(
        """{
          _entities(representations: [{ __typename: "Tag", name: "organic" }, { __typename: "Tag", name: "" }]) {
            ... on Tag { name }
          }
        }"""
    )

    assert body["data"] == {"_entities": [{"name": "organic"}, None]}
    assert [error["extensions"]["code"] for error in body["errors"]] == ["BAD_KEY_VALUE"]
    assert served.sent == []


# who may read what


async def ask(shop: Served, who: Identity, selected: str, *representations: Mapping[str, Any], **options: Any) -> Any:
    """What a caller gets of entities."""
    api = Api(shop.graph, federation="on", **options)
    query = f"query ($of: [_Any!]!) {{ _entities(representations: $of) {{ {selected} }} }}"
    return (await api.execute(Request(query, {"of": representations}, identity=who))).body


ORDERS = [{"__typename": "Order", "org": org, "number": "1"} for org in ("a", "b")]
SECRET = {"__typename": "Secret", "number": "1"}


async def test_entities_are_kept_from_whom_node_is(serve: Serve, executor: Executor) -> None:
    shop = await serve(SHOP, items())

    async def told(who: Identity, *representations: Mapping[str, Any]) -> Any:
        selected = "__typename" if who is ADMIN else "__typename ... on Order { org }"
        return await ask(shop, who, selected, *representations, executor=executor)

    assert await told(ANN, *ORDERS, SECRET) == {
        "data": {"_entities": [{"__typename": "Order", "org": "a"}, None, None]}
    }
    assert await told(EVE, *ORDERS, SECRET) == {
        "data": {"_entities": [None, {"__typename": "Order", "org": "b"}, None]}
    }
    assert await told(ADMIN, SECRET) == {"data": {"_entities": [{"__typename": "Secret"}]}}
    # Which key one may not read has is not told either.
    assert await told(ANN, {"__typename": "Secret"}) == {"data": {"_entities": [None]}}
    # Nobody without credentials may read an order at all, so that the document says something forbidden.
    (error,) = (await told(NOBODY, *ORDERS))["errors"]
    assert error["extensions"]["code"] == "UNAUTHENTICATED"


async def test_fields_of_entities_are_kept_back_as_anywhere(serve: Serve, executor: Executor) -> None:
    shop = await serve(SHOP, items())
    page = {"__typename": "Page", "number": "1"}

    assert await ask(shop, BOB, "... on Page { title draft }", page, executor=executor) == {
        "data": {"_entities": [{"title": "Welcome", "draft": None}]}
    }
    (error,) = (await ask(shop, ANN, "... on Customer { rating }", *ORDERS, executor=executor))["errors"]
    assert (error["extensions"]["code"], "Customer.rating" in error["message"]) == ("FORBIDDEN", True)


async def test_who_does_not_see_the_whole_schema_is_not_told_it_by_the_service(serve: Serve) -> None:
    shop = await serve(SHOP, items())
    api = Api(shop.graph, federation="on", hide_forbidden=True)

    async def told(who: Identity, query: str) -> Any:
        return (await api.execute(Request(query, identity=who))).body

    refused = await told(ANN, "{ _service { sdl } }")
    assert refused["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    assert "Secret" not in str(await told(ANN, '{ __type(name: "_Entity") { possibleTypes { name } } }'))
    assert await ask(shop, ANN, "... on Order { org }", ORDERS[0], hide_forbidden=True) == {
        "data": {"_entities": [{"org": "a"}]}
    }
