"""Index keys of several attributes: what is asked of DynamoDB, and that lists are whole, in order, page by page."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from graph.client import Transport
from graph.cursor import Issuer, read_cursor, write_cursor
from graph.patterns import access_patterns
from graph.requests import GetItem, Query
from graph.tables import create_table, differences
from resolvers.sdl import compile_model
from tests.conftest import Serve
from tests.memory import key_condition
from tests.test_explain import run
from tests.test_sources import Asked
from tests.test_sources import serve as serve_from_memory

SHOP = """
extend schema
  @table(name: "shop", partitionKey: "PK", sortKey: "SK")
  @index(name: "byTenant", partitionKey: ["tenant", "region"], sortKey: ["status", "date", "total"])
  @index(name: "byBuyer", partitionKey: ["buyer", "half"], sortKey: ["status", "since"])
  @index(name: "byDay", partitionKey: ["spread", "date"], sortKey: ["total", "number"], projection: "KEYS_ONLY")
  @index(name: "byName", partitionKey: ["tenantName", "calledBy"], sortKey: "number")
enum Status { OPEN PAID SENT }
enum Half { A B }
type Tenant @node(key: "TENANT#{name}") {
  name: ID!  orders: [Order!]! @relationship
}
type Buyer @node(partition: "BUYER#{number}", sort: "buyer", ref: "BUYER#{number}") {
  number: ID!  orders: [Order!]! @relationship  note: String
}
type Alias @node(partition: "ALIAS#{number}", sort: "alias", ref: "{tenant}#{called}")
  @indexed(by: "byName", partition: ["{tenant}", "{called}"]) {
  number: ID!  tenant: String!  called: String!  note: String
}
type Order @node(partition: "ORDER#{number}", sort: "order")
  @indexed(by: "byBuyer", partition: ["{buyer}", "{half}"], sort: ["{status}", "AT-{date}"])
  @indexed(by: "byDay", partition: ["{shard(2)}", "{date}"], sort: ["{total}", "NUMBER-{number}"]) {
  number: ID! @attribute(name: "no")
  tenant: Tenant
  region: String
  status: Status
  date: Date
  total: Int
  buyer: Buyer
  half: Half
  via: Alias
  note: String
}
input Days { from: Date  to: Date }
input Totals { from: Int  to: Int }
type Query {
  orders(tenant: ID!, region: String!, status: Status, date: Days, total: Totals): [Order!]! @find
  ofRegions(tenant: ID!, region: [String!]!, status: [Status!], date: Date, total: [Int!]): [Order!]! @find
  ofDay(date: Date!, total: Totals): [Order!]! @find
}
"""
Wire = dict[str, Any]


def order(number: int, **given: Any) -> Wire:
    """Write an order; what is given as None is left out, and with it the item is out of the indexes."""
    values: dict[str, Any] = {
        "tenant": "TENANT#t",
        "region": "EU",
        "status": "OPEN",
        "date": "2022-07-01",
        "total": 10,
        "buyer": "BUYER#1",
        "half": "A",
        "spread": str(number % 2),
        "number": f"NUMBER-{number}",
    } | given
    values["since"] = None if values["date"] is None else f"AT-{values['date']}"
    item: Wire = {"PK": {"S": f"ORDER#{number}"}, "SK": {"S": "order"}}
    for name, value in values.items():
        if value is not None:
            item[name] = {"N": str(value)} if isinstance(value, int) else {"S": value}
    return item


def node(key: str, sort: str | None = None) -> Wire:
    """Write a node of its own."""
    return {"PK": {"S": key}, "SK": {"S": sort or key}}


ORDERS = [
    node("TENANT#t"),
    node("BUYER#1", "buyer"),
    order(1, status="PAID", date="2022-07-03", total=9),
    order(2, status="OPEN", date="2022-07-02", total=100),
    order(3, status="OPEN", date="2022-07-02", total=9),
    order(4, status="OPEN", date="2022-07-01", total=50, half="B"),
    order(5, status="SENT", date="2022-07-01", total=-5, region="US"),
    order(6, region="US", date="2022-07-02"),
    order(7, region=None),
    order(8, date=None),
    order(9, total=None),
    order(10, tenant="TENANT#u"),
]


@pytest.fixture
def shop() -> Asked:
    """Orders of two tenants, some of them outside of the index."""
    return serve_from_memory(SHOP, ORDERS)


def conditions(asked: Asked) -> list[str]:
    """Write down the key conditions of the Queries sent."""
    return [key_condition(request) for request in asked.memory.requests if isinstance(request, Query)]


async def numbers(asked: Asked, field: str, **variables: Any) -> list[str]:
    """List the numbers of the orders that a field finds; `…` stands for what is selected of them."""
    data = await asked("{ " + field.replace("…", "{ nodes { number } }") + " }", **variables)
    while "nodes" not in data:
        ((_, data),) = data.items()
    return [node["number"] for node in data["nodes"]]


T_EU = "byTenant: tenant = TENANT#t AND region = EU"


@pytest.mark.parametrize(
    ("field", "expected", "found"),
    [
        pytest.param('orders(tenant: "t", region: "EU") …', [T_EU], "4 3 2 1", id="a-partition-alone"),
        pytest.param(
            'orders(tenant: "t", region: "EU", status: OPEN) …', [f"{T_EU} AND status = OPEN"], "4 3 2", id="a-value"
        ),
        pytest.param(
            'orders(tenant: "t", region: "EU", status: OPEN, date: { from: "2022-07-02" }) …',
            [f"{T_EU} AND status = OPEN AND date >= 2022-07-02"],
            "3 2",
            id="a-range-behind-a-value",
        ),
        pytest.param(
            'orders(tenant: "t", region: "EU", status: OPEN, date: { from: "2022-07-01", to: "2022-07-01" }) …',
            [f"{T_EU} AND status = OPEN AND date = 2022-07-01"],
            "4",
            id="a-range-of-one-day",
        ),
        pytest.param(
            'orders(tenant: "t", region: "EU", status: OPEN, total: { from: 50 }) …',
            [f"{T_EU} AND status = OPEN"],
            "4 2",
            id="nothing-behind-a-gap",
        ),
        pytest.param(
            'orders(tenant: "t", region: "EU", date: { from: "2022-07-02" }) …',
            [f"{T_EU} AND status = {status} AND date >= 2022-07-02" for status in ("OPEN", "PAID", "SENT")],
            "3 2 1",
            id="an-enum-is-fanned-out-over-where-what-follows-is-bound",
        ),
        pytest.param(
            'orders(tenant: "t", region: "EU", where: { status: { in: [PAID, OPEN] }, date: { eq: "2022-07-02" }, '
            "total: { lt: 100 } }) …",
            [f"{T_EU} AND status = {status} AND date = 2022-07-02 AND total <= 99" for status in ("OPEN", "PAID")],
            "3",
            id="all-three-attributes",
        ),
        pytest.param(
            'ofRegions(tenant: "t", region: ["US", "EU"], status: OPEN, date: "2022-07-02", total: [100, 10]) …',
            [
                f"byTenant: tenant = TENANT#t AND region = {region} AND status = OPEN AND date = 2022-07-02 "
                f"AND total = {total}"
                for region in ("US", "EU")
                for total in (10, 100)
            ],
            "6 2",
            id="lists-on-both-sides",
        ),
        pytest.param(
            'ofRegions(tenant: "t", region: ["EU", "US"], status: [SENT, OPEN]) …',
            [
                f"byTenant: tenant = TENANT#t AND region = {region} AND status = {status}"
                for region in ("EU", "US")
                for status in ("OPEN", "SENT")
            ],
            "5 4 3 6 2",
            id="merged-by-what-is-behind-the-values",
        ),
        pytest.param(
            'ofDay(date: "2022-07-02", total: { from: 9, to: 10 }) …',
            [f"byDay: spread = {shard} AND date = 2022-07-02 AND total BETWEEN 9 AND 10" for shard in (0, 1)],
            "3 6",
            id="shards-beside-a-value",
        ),
        pytest.param(
            'buyer(number: "1") { orders(where: { status: { eq: PAID }, date: { gt: "2022-07-01" } }) … }',
            [
                f"byBuyer: buyer = BUYER#1 AND half = {half} AND status = PAID "
                "AND since BETWEEN AT-2022-07-01␀ AND AT-…"
                for half in "AB"
            ],
            "1",
            id="a-reference-beside-an-enum",
        ),
        pytest.param(
            'buyer(number: "1") { orders(where: { half: { eq: B } }) … }',
            ["byBuyer: buyer = BUYER#1 AND half = B"],
            "4",
            id="a-reference-beside-a-value",
        ),
        pytest.param(
            'tenant(name: "t") { orders(where: { region: { eq: "EU" }, status: { eq: PAID } }) … }',
            [f"{T_EU} AND status = PAID"],
            "1",
            id="a-reference-beside-what-the-filter-binds",
        ),
        pytest.param(
            'tenant(name: "t") { orders(where: { region: { in: ["EU", "US"] }, status: { eq: SENT } }) … }',
            [f"byTenant: tenant = TENANT#t AND region = {region} AND status = SENT" for region in ("EU", "US")],
            "5",
            id="a-reference-beside-what-the-filter-lists",
        ),
    ],
)
async def test_an_equality_for_every_partition_attribute_and_sort_attributes_from_left_to_right(
    shop: Asked, field: str, expected: list[str], found: str
) -> None:
    assert await numbers(shop, field) == found.split()
    assert conditions(shop) == expected


# --- what else an index of several attributes serves --------------------------------------------------------------


async def test_a_partition_attribute_that_nothing_binds_is_an_error_that_says_what_to_give(
    shop: Asked,
) -> None:
    error = await shop.served.error('{ tenant(name: "t") { orders { nodes { number } } } }')

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert error["message"] == (
        "`Tenant.orders` is read from the index `byTenant`, whose partition key holds `region` too: expected a `where` "
        "that says which, by `eq` or `in`"
    )


async def test_what_a_key_holds_behind_a_gap_is_never_in_the_filter_sent(shop: Asked) -> None:
    field = 'orders(tenant: "t", region: "EU", where: { total: { ge: 50 }, note: { exists: false } }) …'

    assert await numbers(shop, field) == ["4", "2"]
    (request,) = shop.memory.requests
    assert isinstance(request, Query)
    assert "total" not in repr(request.filter)
    assert "note" in repr(request.filter)


async def test_items_that_lack_any_attribute_of_the_key_are_not_in_the_index(shop: Asked) -> None:
    data = await shop('{ orders(tenant: "t", region: "EU") { totalCount } order(number: "8") { number date region } }')

    assert data == {"orders": {"totalCount": 4}, "order": {"number": "8", "date": None, "region": "EU"}}


async def test_what_the_keys_of_an_index_do_not_hold_is_fetched_by_key_and_only_then(shop: Asked) -> None:
    await shop('{ ofDay(date: "2022-07-02") { nodes { number total date } } }')
    assert shop.requests == ["Query byDay 51"] * 2

    await shop('{ ofDay(date: "2022-07-02") { nodes { status } } }')
    assert shop.requests == ["Query byDay 51"] * 2 + ["BatchGetItem 3"]


async def test_a_node_is_found_by_an_index_that_its_name_binds() -> None:
    alias = node("ALIAS#7", "alias") | {
        name: {"S": value}
        for name, value in {"tenant": "t", "called": "b", "tenantName": "t", "calledBy": "b", "note": "!"}.items()
    }
    asked = serve_from_memory(SHOP, [order(1, via="t#b"), alias | {"number": {"S": "7"}}])

    data = await asked('{ order(number: "1") { via { number note } } }')

    assert data == {"order": {"via": {"number": "7", "note": "!"}}}
    assert conditions(asked) == ["byName: tenantName = t AND calledBy = b"]


@pytest.mark.parametrize("size", [1, 2, 3, 10])
@pytest.mark.parametrize("page_items", [1, 2, 100])
@pytest.mark.parametrize(
    "field",
    [
        'orders(tenant: "t", region: "EU", PAGE) …',
        'ofRegions(tenant: "t", region: ["EU", "US"], PAGE) …',
        'ofRegions(tenant: "t", region: ["EU", "US"], status: [OPEN, SENT], PAGE) …',
        'ofDay(date: "2022-07-02", PAGE) …',
        'buyer(number: "1") { orders(PAGE) … }',
        'tenant(name: "t") { orders(where: { region: { in: ["EU", "US"] } }, PAGE) … }',
    ],
)
async def test_pages_of_any_size_are_the_whole_list_in_both_directions(field: str, page_items: int, size: int) -> None:
    asked = serve_from_memory(SHOP, ORDERS, page_items=page_items)
    whole = await numbers(asked, field.replace("PAGE", "first: 100"))

    forward = [edge async for edge in pages(asked, field, size, backward=False)]
    backward = [edge async for edge in pages(asked, field, size, backward=True)]

    assert len(whole) > 2
    assert forward == whole
    assert backward == whole[::-1]


async def pages(asked: Asked, field: str, size: int, *, backward: bool) -> AsyncIterator[str]:
    """Walk a list page by page and give the numbers in the order of walking."""
    selected = "{ nodes { number } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }"
    cursor: str | None = None
    while True:
        paging = f"last: {size}" if backward else f"first: {size}"
        if cursor is not None:
            paging += f', {"before" if backward else "after"}: "{cursor}"'
        data = await asked("{ " + field.replace("PAGE", paging).replace("…", selected) + " }")
        while "nodes" not in data:
            ((_, data),) = data.items()
        found = [node["number"] for node in data["nodes"]]
        for number in found[::-1] if backward else found:
            yield number
        info = data["pageInfo"]
        cursor = info["startCursor" if backward else "endCursor"]
        if not info["hasPreviousPage" if backward else "hasNextPage"]:
            return


async def test_a_page_goes_on_by_a_start_key_of_all_attributes_and_merges_by_what_a_condition_can_say(
    shop: Asked,
) -> None:
    data = await shop('{ orders(tenant: "t", region: "EU", first: 2) { pageInfo { endCursor } } }')
    cursor = data["orders"]["pageInfo"]["endCursor"]

    await shop(f'{{ orders(tenant: "t", region: "EU", first: 2, after: "{cursor}") {{ nodes {{ number }} }} }}')

    (request,) = shop.memory.requests
    assert request.parameters()["ExclusiveStartKey"] == {
        "tenant": {"S": "TENANT#t"},
        "region": {"S": "EU"},
        "status": {"S": "OPEN"},
        "date": {"S": "2022-07-02"},
        "total": {"N": "9"},
        "PK": {"S": "ORDER#3"},
        "SK": {"S": "order"},
    }

    field = 'ofRegions(tenant: "t", region: ["EU", "US"], first: 2'
    data = await shop(f"{{ {field}) {{ pageInfo {{ endCursor }} nodes {{ number }} }} }}")
    cursor = data["ofRegions"]["pageInfo"]["endCursor"]
    await shop(f'{{ {field}, after: "{cursor}") {{ nodes {{ number }} }} }}')

    # The list stands at (OPEN, 2022-07-02, 9): what is behind it in the other region takes a condition for each value.
    assert sorted(conditions(shop)) == [
        T_EU,
        *(
            f"byTenant: tenant = TENANT#t AND region = US AND {rest}"
            for rest in (
                "status = OPEN AND date = 2022-07-02 AND total >= 9",
                "status = OPEN AND date >= 2022-07-02␀",
                "status >= OPEN␀",
            )
        ),
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda position: position[:-1], id="too-short"),
        pytest.param(lambda position: ("PAID", *position[1:]), id="outside-of-the-range"),
        pytest.param(lambda position: (*position[:2], "9", *position[3:]), id="text-for-a-number"),
    ],
)
async def test_a_cursor_that_is_no_place_in_the_index_is_refused(shop: Asked, change: Any) -> None:
    field = 'orders(tenant: "t", region: "EU", status: OPEN'
    data = await shop(f"{{ {field}, first: 1) {{ pageInfo {{ endCursor }} }} }}")
    cursor = data["orders"]["pageInfo"]["endCursor"]
    _, name, _ = orjson.loads(base64.urlsafe_b64decode(cursor + "=="))
    connection = Issuer(name)

    forged = write_cursor(change(read_cursor(cursor, connection, "after")), connection)

    assert await shop.error(f'{{ {field}, after: "{forged}") {{ totalCount }} }}') == "BAD_CURSOR"


TAGS = """
extend schema
  @table(name: "tags", partitionKey: "PK", sortKey: "SK")
  @index(name: "tagged", partitionKey: ["tag", "kind"], sortKey: ["rank", "number"])
type Tag @node(key: "TAG#{name}", virtual: true) { name: ID! }
type Place @node(partition: "PLACE#{rank}-{number}", sort: "place", ref: "{rank}-{number}") { rank: Int!  number: ID! }
type Tagging @edge(partition: "TAGGING#{number}", sort: "tagging")
  @indexed(by: "tagged", partition: ["{tag}", "{kind}"], sort: ["{place.rank}", "{place.number}"]) {
  number: ID! @attribute(name: "no")  tag: Tag!  kind: String  place: Place!
}
type Query { tagged(tag: [ID!]!, kind: String!): [Place!]! @find }
"""


@pytest.mark.parametrize("page_items", [1, 2, 100])
@pytest.mark.parametrize(
    ("match", "expected"),
    [("ANY", [(-3, "b"), (2, "a"), (2, "b"), (2, "c"), (10, "a")]), ("ALL", [(-3, "b"), (2, "a"), (2, "c")])],
)
async def test_nodes_under_several_tags_are_met_once_by_a_sort_key_of_several_attributes(
    match: str, expected: list[tuple[int, str]], page_items: int
) -> None:
    under = {"s": [(2, "a"), (2, "c"), (-3, "b"), (10, "a")], "t": [(2, "a"), (2, "b"), (2, "c"), (-3, "b")]}
    wires = [
        {
            **node(f"TAGGING#{tag}{rank}{number}", "tagging"),
            "tag": {"S": f"TAG#{tag}"},
            "kind": {"S": "k"},
            "rank": {"N": str(rank)},
            "number": {"S": number},
            "place": {"S": f"{rank}-{number}"},
        }
        for tag, places in under.items()
        for rank, number in places
    ]
    asked = serve_from_memory(TAGS, wires, page_items=page_items)
    field = f'tagged(tag: ["s", "t"], kind: "k", match: {match}, PAGING) SELECTION'

    for size in (1, 2, 10):
        for backward in (False, True):
            found: list[tuple[int, str]] = []
            cursor, more = "", True
            while more:
                end = f', {"before" if backward else "after"}: "{cursor}"' if cursor else ""
                paging = f"{'last' if backward else 'first'}: {size}{end}"
                selection = "{ nodes { rank number } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } }"
                data = await asked("{ " + field.replace("PAGING", paging).replace("SELECTION", selection) + " }")
                info, nodes = data["tagged"]["pageInfo"], data["tagged"]["nodes"]
                places = [(place["rank"], place["number"]) for place in nodes]
                found = [*places, *found] if backward else [*found, *places]
                cursor = info["startCursor" if backward else "endCursor"]
                more = info["hasPreviousPage" if backward else "hasNextPage"]
            assert found == expected


# --- tables, and what is told of them -----------------------------------------------------------------------------


def test_create_table_lists_the_attributes_of_a_key_in_their_order_and_a_number_is_a_number() -> None:
    model = compile_model(SHOP)

    made = create_table(model, model.tables["shop"]).parameters()

    indexes = {index["IndexName"]: index["KeySchema"] for index in made["GlobalSecondaryIndexes"]}
    assert [(key["AttributeName"], key["KeyType"]) for key in indexes["byTenant"]] == [
        ("tenant", "HASH"),
        ("region", "HASH"),
        ("status", "RANGE"),
        ("date", "RANGE"),
        ("total", "RANGE"),
    ]
    types = {one["AttributeName"]: one["AttributeType"] for one in made["AttributeDefinitions"]}
    assert {name for name, type_ in types.items() if type_ == "N"} == {"total"}
    assert {"tenant", "region", "status", "date", "buyer", "half", "since", "spread", "number"} <= types.keys()


async def test_a_table_that_we_made_does_not_differ_and_another_key_does(transport: Transport) -> None:
    model = compile_model(SHOP, table="test-several-attributes")
    table = model.tables["test-several-attributes"]
    request = create_table(model, table)
    await transport(request.operation, request.parameters())

    described = await transport("DescribeTable", {"TableName": table.name})
    assert list(differences(model, table, described)) == []

    (schema,) = (
        index["KeySchema"] for index in described["Table"]["GlobalSecondaryIndexes"] if index["IndexName"] == "byTenant"
    )
    for key in schema:
        key["KeyType"] = "HASH" if key["AttributeName"] in ("tenant", "region", "status") else "RANGE"
    assert list(differences(model, table, described)) == [
        "the key of the index `byTenant` is tenant, region, status and date, total, and the model says tenant, region "
        "and status, date, total: mend @index(partitionKey: …, sortKey: …)"
    ]


async def test_an_engine_without_such_keys_is_an_error_that_says_what_to_do(serve: Serve) -> None:
    served = await serve(SHOP, ORDERS)

    error = await served.error('{ orders(tenant: "t", region: "EU") { nodes { number } } }')

    assert error["extensions"]["code"] == "REQUEST_REFUSED"
    assert error["message"].startswith(
        "the Query of the index `byTenant` was refused: expected an engine that serves keys of several attributes, as "
        "DynamoDB does since November 2025, and it says: DynamoDB answered ValidationException"
    )
    assert error["message"].endswith('put the values together in its template: @indexed(partition: "{a}#{b}")')


async def test_a_write_fills_every_attribute_of_a_key_and_takes_out_those_whose_field_has_gone(serve: Serve) -> None:
    served = await serve(SHOP, [node("TENANT#t"), node("BUYER#1", "buyer")])

    async def stored() -> dict[str, Any]:
        answer = await served.graph.send(GetItem(served.table, (("PK", "ORDER#1"), ("SK", "order"))))
        return {name: value for name, value in answer["Item"].items() if name != "spread"}

    await served.data(
        """mutation { createOrder(input: { number: "1", tenant: { name: "t" }, region: "EU", status: OPEN, total: 9,
        date: "2022-07-01", buyer: { number: "1" }, half: A }) { __typename } }"""
    )
    wanted = order(1)
    assert await stored() == {name: wanted[name] for name in wanted if name != "spread"} | {"total": {"N": "9"}}

    await served.data("""mutation { updateOrder(key: { number: "1" }, set: { date: null, half: B }) { __typename } }""")
    assert (await stored()).keys() & {"date", "since", "half", "region"} == {"half", "region"}
    assert (await stored())["half"] == {"S": "B"}


def test_access_patterns_show_every_attribute_of_the_key() -> None:
    shown = {
        pattern.field: (pattern.requests, pattern.index, pattern.key_condition)
        for pattern in access_patterns(compile_model(SHOP))
    }

    by_tenant = "tenant = TENANT#{tenant.name} and region = {region}"
    assert shown["Query.orders(tenant, region, status, date, total)"] == (
        "1 Query",
        "byTenant",
        f"{by_tenant} and status = {{status}} and date between {{date}} and {{date}}",
    )
    assert shown["Query.ofDay(date, total)"] == (
        "2 Queries side by side",
        "byDay",
        "spread = {0…1} and date = {date} and total between {total} and {total}",
    )
    assert shown["Buyer.orders"] == ("2 Queries side by side", "byBuyer", "buyer = BUYER#{number} and half = {half}")
    assert shown["Tenant.orders(where: region)"] == (
        "1 Query",
        "byTenant",
        "tenant = TENANT#{name} and region = {region}",
    )


def test_explain_shows_every_attribute_of_the_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "shop.graphql"
    schema.write_text(SHOP)
    query = """{ orders(tenant: "t", region: "EU", status: OPEN, date: { from: "2022-07-01" }) { nodes { number date } }
    tenant(name: "t") { orders(where: { region: { eq: "EU" } }) { nodes { number } } } }"""

    code, out, _ = run(capsys, "explain", "--schema", str(schema), query)

    assert code == 0
    assert "1 x Query on byTenant: tenant = … and region = … and status = OPEN and date >= 2022-07-01, limit 51" in out
    assert "1 x Query on byTenant: tenant = … and region = …, limit 51" in out
