"""Fan-outs: many ranges read side by side are one list with one cursor, over shards, an enum's values or several tags.

The lists are those of the examples' larger sets; what they must hold is counted from the items themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from graph.loaders import Limits
from graph.requests import Item
from tests.conftest import ROOT, Serve, Served, example_items, make_table

ORDER_ENTRY = (ROOT / "examples/order-entry/schema.graphql").read_text()
B2B = (ROOT / "examples/b2b/schema.graphql").read_text()
HURRIED = Limits(linger_secs=0)


@pytest.fixture(scope="module")
def orders_table(engine: str) -> str:
    return make_table(engine, "order-entry-read-only", ORDER_ENTRY, example_items("order-entry"))


@pytest.fixture(scope="module")
def network_table(engine: str) -> str:
    return make_table(engine, "b2b-read-only", B2B, example_items("b2b"))


@pytest.fixture
async def orders(serve: Serve, orders_table: str) -> Served:
    return await serve(ORDER_ENTRY, table=orders_table, limits=HURRIED)


@pytest.fixture
async def network(serve: Serve, network_table: str) -> Served:
    return await serve(B2B, table=network_table, limits=HURRIED)


# --- walking a connection -----------------------------------------------------------------------------------------


async def edges_of(served: Served, field: str, below: str, **arguments: Any) -> tuple[list[Any], Any]:
    """Read a page of a field, `{}` in which stands for the paging arguments: its edges and its pageInfo."""
    given = ", ".join(
        f'{name}: "{value}"' if isinstance(value, str) else f"{name}: {value}" for name, value in arguments.items()
    )
    page = f"edges {{ cursor node {{ {below} }} }} pageInfo {{ hasNextPage hasPreviousPage startCursor endCursor }}"
    connection: Any = await served.data("{ " + field.replace("{}", given).replace("…", page) + " }")
    while "edges" not in connection:
        (connection,) = connection.values()
    return connection["edges"], connection["pageInfo"]


async def walk(served: Served, field: str, below: str, size: int, *, backward: bool) -> list[Any]:
    """Read a connection page by page and give its nodes in the connection's order."""
    nodes: list[Any] = []
    place: dict[str, str] = {}
    while True:
        edges, info = await edges_of(served, field, below, **{"last" if backward else "first": size}, **place)
        page = [edge["node"] for edge in edges]
        assert len(page) <= size
        nodes = page + nodes if backward else nodes + page
        if not info["hasPreviousPage" if backward else "hasNextPage"]:
            return nodes
        assert len(page) == size
        place = {"before": info["startCursor"]} if backward else {"after": info["endCursor"]}


OPEN = 'orders(status: OPEN, date: { from: "2018-03-01", to: "2018-10-31" }, {}) { … }'
OF_REP = 'employee(number: "103") { orders(where: { order: { date: { gt: "2018-02-01" } } }, {}) { … } }'
ANY = 'tagged(tag: ["music", "book", "art"], {}) { … }'
ALL = 'tagged(tag: ["music", "book", "art"], match: ALL, {}) { … }'
BOTH = 'tagged(tag: ["music", "book"], match: ALL, {}) { … }'
SUBJECT = (
    "__typename ... on Business { number } ... on Customer { number } ... on Order { number } ... on Store { number }"
)


def open_orders(items: list[Item]) -> list[tuple[str, str]]:
    """List the open orders of the period by date and number, as their items say."""
    found = []
    for item in items:
        status, _, day = item.get("Data", {}).get("S", "").partition("-")
        if item.get("Type") == {"S": "Order"} and status == "OPEN" and "2018-03-01" <= day <= "2018-10-31":
            found.append((day, item["PK"]["S"].removeprefix("OE-ORDER")))
    return sorted(found)


def orders_of_rep(items: list[Item]) -> list[tuple[str, str]]:
    """List a rep's orders since a day, of every status."""
    found = []
    for item in items:
        if item.get("SK") == {"S": "EMPLOYEE-103"} and item["Type"] == {"S": "RepOrder"}:
            day = item["Data"]["S"].partition("-")[2]
            if day > "2018-02-01":
                found.append((day, item["PK"]["S"].removeprefix("OE-ORDER")))
    return sorted(found)


def under(items: list[Item], *tags: str) -> list[set[str]]:
    """Give the subjects under each tag, like `store#s1`."""
    return [{item["type"]["S"] for item in items if item["id"]["S"] == f"tag#{tag}"} for tag in tags]


# --- shards and enums ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("size", [5, 40])
@pytest.mark.parametrize(
    ("field", "expected"), [(OPEN, open_orders), (OF_REP, orders_of_rep)], ids=["shards", "statuses"]
)
async def test_pages_of_a_fan_out_are_the_whole_list(
    field: str, expected: Callable[[list[Item]], list[tuple[str, str]]], size: int, backward: bool, orders: Served
) -> None:
    wanted = expected(list(example_items("order-entry")))

    nodes = await walk(orders, field, "number date", size, backward=backward)

    assert len(wanted) > 40
    assert [node["date"] for node in nodes] == [day for day, _ in wanted]
    assert sorted(node["number"] for node in nodes) == sorted(number for _, number in wanted)


@pytest.mark.parametrize("field", [OPEN, OF_REP], ids=["shards", "statuses"])
async def test_a_fan_out_goes_on_from_any_edge_in_both_directions(field: str, orders: Served) -> None:
    edges, _ = await edges_of(orders, field, "number", first=1000)
    numbers = [edge["node"]["number"] for edge in edges]

    for place in range(0, len(edges), 15):
        cursor = edges[place]["cursor"]
        behind, _ = await edges_of(orders, field, "number", first=3, after=cursor)
        before, _ = await edges_of(orders, field, "number", last=3, before=cursor)

        assert [edge["node"]["number"] for edge in behind] == numbers[place + 1 : place + 4]
        assert [edge["node"]["number"] for edge in before] == numbers[max(place - 3, 0) : place]


async def test_a_fan_out_is_counted_by_a_count_for_each_range(orders: Served) -> None:
    data = await orders.data("{ " + OPEN.replace(", {}", "").replace("…", "totalCount") + " }")

    assert data["orders"]["totalCount"] == len(open_orders(list(example_items("order-entry"))))
    assert [(operation, sent["Select"]) for operation, sent in orders.sent] == [("Query", "COUNT")] * 15


async def test_a_fan_out_in_descending_order_is_the_list_reversed(orders: Served) -> None:
    up = await walk(orders, OPEN, "number", 11, backward=False)

    down = await walk(orders, OPEN.replace("{}", "order: DESC, {}"), "number", 11, backward=False)

    assert down == up[::-1]


async def test_ranges_of_one_status_do_not_meet_another(orders: Served) -> None:
    """`> "OPEN-2018-12-30"` alone would also meet every SHIPPED order."""
    data = await orders.data('{ orders(status: OPEN, date: { from: "2018-12-30" }) { nodes { status date } } }')

    assert {node["status"] for node in data["orders"]["nodes"]} <= {"OPEN"}
    assert all(node["date"] >= "2018-12-30" for node in data["orders"]["nodes"])
    highest = {sent["ExpressionAttributeValues"][":v2"]["S"] for _, sent in orders.sent}
    assert highest == {"OPEN-\U0010ffff"}


async def test_an_empty_fan_out_costs_a_request_for_each_shard(orders: Served) -> None:
    body = await orders('{ orders(status: OPEN, date: { from: "2030-01-01" }) { nodes { number } } }', cost=True)

    assert body["data"]["orders"]["nodes"] == []
    cost = body["extensions"]["cost"]
    assert cost["requests"] == {"total": 15, "Query": 15}
    assert cost["capacityUnits"] >= 7.5


async def test_a_fan_out_stops_at_the_read_budget_with_a_cursor_that_goes_on(
    serve: Serve, orders_table: str, orders: Served
) -> None:
    wanted = await walk(
        orders, OPEN.replace("{}", 'where: { customer: { number: { eq: "117" } } }, {}'), "number", 50, backward=False
    )
    frugal = await serve(ORDER_ENTRY, table=orders_table, limits=Limits(linger_secs=0, read_budget=30))
    field = OPEN.replace("{}", 'where: { customer: { number: { eq: "117" } } }, {}')

    nodes: list[Any] = []
    place: dict[str, str] = {}
    pages = 0
    while pages < 50:
        edges, info = await edges_of(frugal, field, "number", first=50, **place)
        nodes += [edge["node"] for edge in edges]
        pages += 1
        if not info["hasNextPage"]:
            break
        place = {"after": info["endCursor"]}

    assert wanted
    assert nodes == wanted
    assert pages > 1


HASHED = """
extend schema
  @table(name: "visits", partitionKey: "pk", sortKey: "sk")
  @index(name: "by-day", partitionKey: "shard", sortKey: "day")
type Visit @node(partition: "VISIT-{number}", sort: "visit")
  @indexed(by: "by-day", partition: "{shard(5, customer)}", sort: "{date}") {
  number: ID!
  customer: ID!
  date: Date!
}
type Query { visits(customer: ID, date: [Date!]): [Visit!]! @find }
"""


async def test_a_hashed_shard_is_the_only_one_read(serve: Serve) -> None:
    visit = {
        "pk": {"S": "VISIT-1"}, "sk": {"S": "visit"}, "customer": {"S": "c1"}, "shard": {"S": "2"},
        "day": {"S": "2024-01-01"},
    }  # fmt: skip
    # CRC-32 of "c1" is 1,591,159,457: shard 2 of 5.
    served = await serve(HASHED, [visit])

    one = await served.data('{ visits(customer: "c1") { nodes { number } } }')
    requests_for_one = len(served.sent)
    every = await served.data("{ visits { nodes { number } } }")

    assert one == every == {"visits": {"nodes": [{"number": "1"}]}}
    assert (requests_for_one, len(served.sent)) == (1, 5)


async def test_items_without_the_index_key_are_not_in_a_sparse_index(serve: Serve) -> None:
    visit = {"pk": {"S": "VISIT-1"}, "sk": {"S": "visit"}, "customer": {"S": "c1"}}
    served = await serve(HASHED, [visit])

    data = await served.data('{ visits { totalCount nodes { number } } visit(number: "1") { customer } }')

    assert data == {"visits": {"totalCount": 0, "nodes": []}, "visit": {"customer": "c1"}}


# --- several tags -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("size", [2, 9, 100])
@pytest.mark.parametrize(
    ("field", "tags", "in_all"),
    [
        pytest.param(ANY, ("music", "book", "art"), False, id="any-of-three"),
        pytest.param(BOTH, ("music", "book"), True, id="all-of-two"),
        pytest.param(ALL, ("music", "book", "art"), True, id="all-of-three"),
    ],
)
async def test_pages_of_several_tags_are_the_whole_list(
    field: str, tags: tuple[str, ...], in_all: bool, size: int, backward: bool, network: Served
) -> None:
    subjects = under(list(example_items("b2b")), *tags)
    wanted = sorted(set.intersection(*subjects) if in_all else set.union(*subjects))

    nodes = await walk(network, field, SUBJECT, size, backward=backward)

    assert len(wanted) > 0
    assert [f"{node['__typename'].lower()}#{node['number']}" for node in nodes] == wanted


@pytest.mark.parametrize("field", [ANY, BOTH], ids=["any", "all"])
async def test_several_tags_go_on_from_any_edge_in_both_directions(field: str, network: Served) -> None:
    edges, _ = await edges_of(network, field, SUBJECT, first=1000)
    nodes = [edge["node"] for edge in edges]

    for place in range(0, len(edges), 10):
        cursor = edges[place]["cursor"]
        behind, _ = await edges_of(network, field, SUBJECT, first=3, after=cursor)
        before, _ = await edges_of(network, field, SUBJECT, last=3, before=cursor)

        assert [edge["node"] for edge in behind] == nodes[place + 1 : place + 4]
        assert [edge["node"] for edge in before] == nodes[max(place - 3, 0) : place]


@pytest.mark.parametrize(("match", "gather"), [("ANY", set.union), ("ALL", set.intersection)])
async def test_several_tags_are_counted_once_for_each_subject(
    match: str, gather: Callable[..., set[str]], network: Served
) -> None:
    wanted = gather(*under(list(example_items("b2b")), "music", "book"))

    data = await network.data(f'{{ tagged(tag: ["music", "book"], match: {match}) {{ totalCount }} }}')

    assert data["tagged"]["totalCount"] == len(wanted)


async def test_one_tag_named_twice_is_one(network: Served) -> None:
    once = await network.data('{ tagged(tag: ["music"], match: ALL) { totalCount } }')

    twice = await network.data('{ tagged(tag: ["music", "music"], match: ALL) { totalCount } }')

    assert once == twice
    assert once["tagged"]["totalCount"] == len(under(list(example_items("b2b")), "music")[0])


@pytest.mark.parametrize("match", ["ANY", "ALL"])
async def test_no_tag_is_nothing_and_costs_nothing(match: str, network: Served) -> None:
    data = await network.data(f"{{ tagged(tag: [], match: {match}) {{ totalCount nodes {{ __typename }} }} }}")

    assert data["tagged"] == {"totalCount": 0, "nodes": []}
    assert network.sent == []


async def test_a_cursor_of_any_is_refused_by_all(network: Served) -> None:
    edges, _ = await edges_of(network, 'tagged(tag: ["music", "book"], {}) { … }', SUBJECT, first=1)

    query = (
        'query ($after: String) { tagged(tag: ["music", "book"], match: ALL, after: $after) { nodes { __typename } } }'
    )
    error = await network.error(query, {"after": edges[0]["cursor"]})

    assert error["extensions"]["code"] == "BAD_CURSOR"
