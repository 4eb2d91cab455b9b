"""The tenant of the caller where it is not said: in lookups, finds and cursors, by both executors."""

from __future__ import annotations

import pytest

from graph.identity import Identity
from resolvers.schema import Api, print_sdl
from resolvers.sdl import compile_model
from tests.conftest import Serve, Served
from tests.works import ANN, STAFF, ask, codes, member

CELLS = """extend schema
  @table(name: "cells", partitionKey: "pk", sortKey: "sk")
  @index(name: "by-colour", partitionKey: "colours", sortKey: "sk")
type Hive @node(partition: "HIVE#{org}#{number}", sort: "hive")
  @auth(tenant: { field: "org", claim: "org" }) @auth(roles: ["staff"]) {
  org: Int!
  number: ID!
  cells: [Cell!]! @relationship
}
type Cell @node(partition: "{hive}", sort: "CELL#{number}") @indexed(by: "by-colour", partition: "{hive.org}#{colour}")
  @auth(tenant: { field: "hive.org", claim: "org" }) @auth(roles: ["staff"]) {
  hive: Hive!
  number: ID!
  colour: String
}
type Query {
  cells(colour: String!): [Cell!]! @find
  cell1(colour: String!): Cell @find
}
"""
SEVEN, EIGHT, BOTH_OF_THEM = (Identity("u", frozenset(), {"org": org}) for org in (7, "8", [7, 8]))


@pytest.fixture(params=["plan", "reference"])
async def cells(serve: Serve, request: pytest.FixtureRequest) -> Served:
    """Hives of two organisations, whose numbers are the same."""
    served = await serve(CELLS)
    served.api = Api(served.graph, executor=request.param)
    for who in (SEVEN, EIGHT):
        cells_ = ", ".join(f'{{ number: "{number}", colour: "red" }}' for number in range(3))
        mutation = f'mutation {{ createHive(input: {{ number: "1", cells: [{cells_}] }}) {{ hive {{ org }} }} }}'
        body = await ask(served, who, mutation)
        assert "errors" not in body, body
    return served


async def test_lookup_takes_the_tenant_of_whoever_asks(cells: Served) -> None:
    query = '{ hive(number: "1") { org number cells(first: 1) { nodes { number } } } }'

    # The very same document, which is compiled once.
    answers = [await ask(cells, who, query) for who in (SEVEN, EIGHT, SEVEN)]

    assert [body["data"]["hive"]["org"] for body in answers] == [7, 8, 7]


async def test_lookup_that_leaves_the_tenant_open_is_refused_by_itself(cells: Served) -> None:
    for who in (BOTH_OF_THEM, STAFF):
        body = await ask(cells, who, '{ one: hive(number: "1") { org } other: hive(org: 8, number: "1") { org } }')

        assert codes(body) == ["BAD_INPUT"]
        assert body["errors"][0]["path"] == ["one"]
        assert "`org`" in body["errors"][0]["message"]
        assert body["data"] == {"one": None, "other": {"org": 8}}


async def test_find_reads_within_the_tenant_of_whoever_asks(cells: Served) -> None:
    query = (
        '{ cells(colour: "red") { totalCount nodes { number hive { org } } } cell1(colour: "red") { hive { org } } }'
    )

    answers = [(await ask(cells, who, query))["data"] for who in (SEVEN, EIGHT)]

    for org, data in zip((7, 8), answers, strict=True):
        assert data["cells"] == {
            "totalCount": 3,
            "nodes": [{"number": str(number), "hive": {"org": org}} for number in range(3)],
        }
        assert data["cell1"] == {"hive": {"org": org}}


async def test_find_that_leaves_the_tenant_open_is_refused(cells: Served) -> None:
    for who in (BOTH_OF_THEM, STAFF):
        body = await ask(cells, who, '{ cells(colour: "red") { nodes { number } } }')

        assert codes(body) == ["BAD_INPUT"]
        assert "`hive.org`" in body["errors"][0]["message"]
    assert cells.sent == []


async def test_cursor_of_one_tenant_is_refused_in_another(cells: Served) -> None:
    query = 'query ($after: String) { cells(colour: "red", first: 1, after: $after) { pageInfo { endCursor } } }'
    cursor = (await ask(cells, SEVEN, query))["data"]["cells"]["pageInfo"]["endCursor"]

    assert codes(await ask(cells, SEVEN, query, {"after": cursor})) == []
    assert codes(await ask(cells, EIGHT, query, {"after": cursor})) == ["BAD_CURSOR"]


def test_what_credentials_say_is_optional_in_inputs() -> None:
    sdl = print_sdl(compile_model(CELLS))

    assert "input CreateHiveInput {\n  org: Int\n  number: ID!" in sdl
    assert "input CreateCellInput {\n  hive: HiveReference!\n  number: ID!" in sdl
    assert "hive(number: ID!, org: Int)" in sdl or "hive(org: Int, number: ID!)" in sdl


OWNED = """extend schema @table(name: "owned", partitionKey: "pk", sortKey: "sk")
type User @node(key: "USER#{org}#{name}", ref: "USER#{org}#{name}") { org: ID!  name: ID! }
type Post @node(partition: "POST#{number}", sort: "post")
  @auth(owner: { field: "author.name" }) {
  number: ID!
  author: User!
}
type Page @node(partition: "PAGE#{number}", sort: "page") @auth(owner: { field: "by.name" }) @auth(roles: ["staff"]) {
  number: ID!
  by: Person!
}
type Person @node(key: "PERSON#{name}", ref: "PERSON#{name}") { name: ID! }
type Talk @node(partition: "TALK#{number}", sort: "talk") @auth(owner: { field: "speakers" }) {
  number: ID!
  speakers: [ID!]
}
"""


async def test_owner_that_is_a_node_is_filled_in_where_the_claim_names_it_whole(serve: Serve) -> None:
    served = await serve(OWNED)
    sdl = print_sdl(served.graph.model)
    assert "input CreatePostInput {\n  number: ID!\n  author: UserReference!" in sdl
    assert "input CreatePageInput {\n  number: ID!\n  by: PersonReference\n" in sdl
    await served.data('mutation { createPerson(input: { name: "ann" }) { __typename } }')

    create = 'mutation { createPage(input: { number: "1" }) { page { by { name } } } }'
    body = await ask(served, member("a", "ann"), create)
    assert body == {"data": {"createPage": {"page": {"by": {"name": "ann"}}}}}

    assert codes(await ask(served, member("a", "bob"), create.replace('"1"', '"2"'))) == ["NOT_FOUND"]
    assert codes(await ask(served, STAFF, create.replace('"1"', '"2"'))) == ["BAD_INPUT"]
    assert codes(await ask(served, STAFF, create.replace('"1"', '"2", by: null'))) == ["BAD_INPUT"]
    assert codes(await ask(served, member("a", "ann"), create.replace('"1"', '"2", by: null'))) == ["FORBIDDEN"]


async def test_one_of_several_owners_is_filled_in_as_a_list(serve: Serve) -> None:
    served = await serve(OWNED)
    create = "mutation { createTalk(input: { number: NUMBER, speakers: THEM }) { talk { speakers } } }"

    alone = await ask(served, ANN, 'mutation { createTalk(input: { number: "1" }) { talk { speakers } } }')
    both = await ask(served, ANN, create.replace("NUMBER", '"2"').replace("THEM", '["bob", "ann"]'))
    other = await ask(served, ANN, create.replace("NUMBER", '"3"').replace("THEM", '["bob"]'))

    assert alone["data"]["createTalk"]["talk"] == {"speakers": ["ann"]}
    assert both["data"]["createTalk"]["talk"] == {"speakers": ["bob", "ann"]}
    assert codes(other) == ["FORBIDDEN"]


ELSEWHERE = """extend schema
  @table(name: "elsewhere", partitionKey: "pk", sortKey: "sk")
  @index(name: "by-site", partitionKey: "sites", sortKey: "sk")
type Site @node(key: "SITE#{org}#{number}") @auth(tenant: { field: "org", claim: "org" }) @auth(roles: ["staff"]) {
  org: ID!
  number: ID!
  name: String
}
type Gate @node(partition: "GATE#{org}#{number}", sort: "gate")
  @indexed(by: "by-site", partition: "{site.org}#{site.number}")
  @auth(tenant: { field: "org", claim: "org" }) @auth(roles: ["staff"]) {
  org: ID!
  number: ID!
  site: Site!
}
"""


async def test_tenant_of_what_an_index_names_is_no_part_of_the_name(serve: Serve) -> None:
    served = await serve(ELSEWHERE)
    created = await ask(
        served, ANN, 'mutation { createGate(input: { number: "1", site: { create: { number: "2" } } }) { __typename } }'
    )
    assert "errors" not in created, created

    for who, query in (
        (ANN, '{ gate(number: "1") { site { number } } }'),
        (STAFF, '{ gate(org: "a", number: "1") { site { number } } }'),
    ):
        assert (await ask(served, who, query))["data"] == {"gate": {"site": {"number": "2"}}}
