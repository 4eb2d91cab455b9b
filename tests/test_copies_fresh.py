"""`fresh: true`: nodes as they are, where copies of them are still behind, by both executors and at what cost."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graph.streams.copies import Copies
from resolvers.schema import Api, Executor, print_sdl
from resolvers.sdl import compile_model
from tests.conftest import ROOT, Serve, Served
from tests.streams import catch_up, stream_of

B2B = (ROOT / "examples/b2b/schema.graphql").read_text()
FOLLOWED = B2B.replace('sortKey: "type")', 'sortKey: "type", copies: STREAM)', 1)

FILL = """mutation {
  b: createBusiness(input: { number: "1", businessName: "B" }) { __typename }
  c: createCustomer(input: { number: "2", firstName: "Joe", lastName: "Zhao", business: { number: "1" } }) {
    __typename
  }
  s: createStore(input: { number: "3", storeName: "Old", business: { number: "1" } }) { __typename }
  m: createManagement(input: { customer: { number: "2" }, store: { number: "3" } }) { __typename }
  t: createTagging(input: { tag: { name: "music" }, subject: { store: { number: "3" } } }) { __typename }
}"""
RENAME = 'mutation { updateStore(key: { number: "3" }, set: { storeName: "New" }) { store { id } } }'

LODGING = """extend schema
  @table(name: "lodging", partitionKey: "pk", sortKey: "sk", copies: STREAM)
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type Room @node(key: "ROOM#{number}") { number: ID!  colour: String  guests: [Guest!]! @relationship }
type Guest @node(key: "GUEST#{number}") { number: ID!  name: String  room: Room @relationship }
type Stay
  @edge(partition: "{guest}", sort: "{room}", copy: "room")
  @edge(partition: "{room}", sort: "{guest}", copy: "guest") { room: Room!  guest: Guest! }
"""


@pytest.fixture(params=["plan", "reference"])
def executor(request: pytest.FixtureRequest) -> Executor:
    chosen: Executor = request.param
    return chosen


async def behind(engine: str, serve: Serve, executor: Executor) -> tuple[Served, str]:
    """Serve shops of which one has a name that its copies do not have yet; give its global id too."""
    served = await serve(FOLLOWED)
    served.api = Api(served.graph, executor=executor)
    await served.data(FILL)
    await catch_up(stream_of(engine, served), Copies(served.graph).follow)
    renamed = await served.data(RENAME)
    return served, renamed["updateStore"]["store"]["id"]


async def test_a_list_shows_copies_unless_it_is_to_be_fresh(engine: str, serve: Serve, executor: Executor) -> None:
    served, _ = await behind(engine, serve, executor)

    async def names(given: str, variables: dict[str, Any] | None = None) -> list[str]:
        head = "query ($fresh: Boolean)" if variables else ""
        query = f'{head} {{ customer(number: "2") {{ stores{given} {{ nodes {{ storeName number }} }} }} }}'
        data = await served.data(query, variables)
        return [one["storeName"] for one in data["customer"]["stores"]["nodes"]]

    assert await names("") == await names("(fresh: false)") == await names("(fresh: null)") == ["Old"]
    assert await names("(fresh: true)") == ["New"]
    assert await names("(fresh: $fresh)", {"fresh": True}) == ["New"]
    assert await names("(fresh: $fresh)", {"fresh": False}) == ["Old"]


async def test_what_names_a_node_needs_no_further_read(engine: str, serve: Serve, executor: Executor) -> None:
    served, _ = await behind(engine, serve, executor)

    await served.data('{ customer(number: "2") { stores(fresh: true) { nodes { number } } } }')
    plain = served.operations

    await served.data('{ customer(number: "2") { stores { nodes { number } } } }')
    assert plain == served.operations


async def test_an_access_pattern_shows_copies_unless_it_is_to_be_fresh(
    engine: str, serve: Serve, executor: Executor
) -> None:
    served, _ = await behind(engine, serve, executor)

    async def names(given: str) -> list[str]:
        data = await served.data(f'{{ tagged(tag: ["music"]{given}) {{ nodes {{ ... on Store {{ storeName }} }} }} }}')
        return [one["storeName"] for one in data["tagged"]["nodes"]]

    assert (await names(""), await names(", fresh: true")) == (["Old"], ["New"])


async def test_a_copy_that_is_behind_does_not_say_where_its_node_lies(
    engine: str, serve: Serve, executor: Executor
) -> None:
    served, store = await behind(engine, serve, executor)

    data = await served.data('{ customer(number: "2") { stores { nodes { id storeName business { number } } } } }')

    # The copied name was once part of its key.
    (node,) = data["customer"]["stores"]["nodes"]
    assert node == {"id": store, "storeName": "New", "business": {"number": "1"}}


async def test_one_node_may_be_fresh_also_where_the_way_has_shown_a_copy(
    engine: str, serve: Serve, executor: Executor
) -> None:
    served = await serve(LODGING)
    served.api = Api(served.graph, executor=executor)
    await served.data(
        """mutation { createRoom(input: { number: "1", colour: "red", guests: [
          { guest: { create: { number: "7", name: "Ann" } } } ] }) { __typename } }"""
    )
    await catch_up(stream_of(engine, served), Copies(served.graph).follow)
    await served.data('mutation { updateRoom(key: { number: "1" }, set: { colour: "blue" }) { __typename } }')

    one = await served.data(
        """query ($fresh: Boolean = true) {
          guest(number: "7") {
            old: room { colour } new: room(fresh: true) { colour } by: room(fresh: $fresh) { colour }
          }
        }"""
    )
    assert one["guest"] == {"old": {"colour": "red"}, "new": {"colour": "blue"}, "by": {"colour": "blue"}}
    way = await served.data(
        """{ guest(number: "7") { room { guests { nodes { name old: room { colour } new: room(fresh: true) { colour } }
          } } } }"""
    )
    (guest,) = way["guest"]["room"]["guests"]["nodes"]
    assert guest["new"] == {"colour": "blue"}


@pytest.mark.parametrize(
    ("sdl", "offered"),
    [
        (B2B, set()),
        (FOLLOWED, {"stores", "customers", "subjects", "orders", "tagged"}),
    ],
    ids=["in the transaction", "by the stream"],
)
def test_it_is_offered_where_nodes_may_come_from_copies_that_are_behind(sdl: str, offered: set[str]) -> None:
    found = re.findall(r"^  (\w+)\([^)]*fresh: Boolean", print_sdl(compile_model(sdl)), re.MULTILINE | re.DOTALL)

    assert set(found) == offered
