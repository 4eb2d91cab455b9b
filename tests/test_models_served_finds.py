"""Small models over the real engine: the fields of Query, projections and local indexes, and what they cost."""

from __future__ import annotations

import zlib
from typing import Any

import pytest

from graph.requests import Item
from tests.conftest import Serve, Served


def item(**attributes: str | int) -> Item:
    """Write an item of text and numbers."""
    return {name: {"N": str(value)} if isinstance(value, int) else {"S": value} for name, value in attributes.items()}


# --- arguments ----------------------------------------------------------------------------------------------------

ORDERS = """extend schema
  @table(name: "orders", partitionKey: "pk")
  @index(name: "byStatus", partitionKey: "status", sortKey: "placed")
  @index(name: "byCustomer", partitionKey: "customerId", sortKey: "placed")
  @index(name: "all", partitionKey: "all", sortKey: "placed")
type Customer @node(partition: "CUSTOMER#{name}", ref: "{name}") { name: ID!  city: String }
type Order @node(partition: "ORDER#{number}") @indexed(by: "all", partition: "ORDERS") {
  number: ID!  status: Status  placed: Date  total: Int  note: String
  customer: Customer @attribute(name: "customerId")
}
enum Status { OPEN SENT PAID }
"Both bounds are included."
input Days { "The first day." from: Date  to: Date }
type Query {
  ofStatus(status: Status!, placed: Days): [Order!]! @find
  ofAny(status: [Status!]!): [Order!]! @find
  ofWhatever(status: Status, placed: Days): [Order!]! @find(sort: DESC)
  ofCustomer(customer: ID!): [Order!]! @find
  latest(customer: ID!): Order @find(sort: DESC)
  since(placed: Days!): [Order!]! @find
  expensive(total: Int): [Order!]! @find(scan: true)
}"""
PLACED = [("1", "OPEN", 1, "ann"), ("2", "SENT", 2, "bob"), ("3", "OPEN", 3, "ann"), ("4", "PAID", 4, "ann")]


@pytest.fixture
async def orders(serve: Serve) -> Served:
    """Four orders, a day apart."""
    placed = [
        item(pk=f"ORDER#{n}", status=status, placed=f"2022-07-0{day}", customerId=who, all="ORDERS", total=day * 10)
        for n, status, day, who in PLACED
    ]
    return await serve(ORDERS, [*placed, item(pk="CUSTOMER#ann", city="Oslo"), item(pk="ORDER#5", note="a draft")])


async def numbers(served: Served, field: str) -> list[str]:
    """List the numbers of the orders that a field finds."""
    data = await served.data(f"{{ found: {field} {{ nodes {{ number }} }} }}")
    return [node["number"] for node in data["found"]["nodes"]]


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("ofStatus(status: OPEN)", ["1", "3"]),
        ('ofStatus(status: OPEN, placed: { from: "2022-07-02" })', ["3"]),
        ('ofStatus(status: OPEN, placed: { from: "2022-07-01", to: "2022-07-01" })', ["1"]),
        ("ofStatus(status: OPEN, order: DESC)", ["3", "1"]),
        ("ofStatus(status: OPEN, where: { total: { gt: 10 } })", ["3"]),
        ("ofAny(status: [OPEN, PAID])", ["1", "3", "4"]),
        ("ofAny(status: [OPEN, OPEN])", ["1", "3"]),
        ("ofWhatever", ["4", "3", "2", "1"]),
        ('ofWhatever(placed: { to: "2022-07-02" })', ["2", "1"]),
        ("ofWhatever(status: SENT, order: ASC)", ["2"]),
        ('ofCustomer(customer: "ann")', ["1", "3", "4"]),
        ('ofCustomer(customer: "nobody")', []),
        ('since(placed: { from: "2022-07-03" })', ["3", "4"]),
    ],
)
async def test_arguments_find_by_values_lists_ranges_and_references(
    orders: Served, field: str, found: list[str]
) -> None:
    assert await numbers(orders, field) == found
    assert "Scan" not in orders.operations


async def test_a_find_of_one_gives_the_first_in_its_order(orders: Served) -> None:
    data = await orders.data('{ latest(customer: "ann") { number } none: latest(customer: "nobody") { number } }')

    assert data == {"latest": {"number": "4"}, "none": None}


async def test_a_scan_finds_by_arguments_too(orders: Served) -> None:
    assert await numbers(orders, "expensive(total: 30)") == ["3"]
    assert set(await numbers(orders, "expensive")) == {"1", "2", "3", "4", "5"}


async def test_an_item_outside_of_the_index_is_not_in_it(orders: Served) -> None:
    data = await orders.data('{ order(number: "5") { note status } ofWhatever { totalCount } }')

    assert data == {"order": {"note": "a draft", "status": None}, "ofWhatever": {"totalCount": 4}}


async def test_a_range_input_is_in_the_api_as_it_was_written(orders: Served) -> None:
    data = await orders.data('{ __type(name: "Days") { description inputFields { name type { name } } } }')

    fields = [{"name": name, "type": {"name": "Date"}} for name in ("from", "to")]
    assert data["__type"] == {"description": "Both bounds are included.", "inputFields": fields}


# --- projections --------------------------------------------------------------------------------------------------

PROJECTED = """extend schema
  @table(name: "files", partitionKey: "pk", sortKey: "sk")
  @index(name: "by-kind", partitionKey: "kind", sortKey: "size", projection: %s)
type Folder @node(partition: "FOLDER#{name}", sort: "folder") { name: ID!  files: [File!]! @relationship }
type File @node(partition: "{folder}", sort: "FILE#{path}") {
  folder: Folder!  path: String!  kind: String  size: Int  owner: String  note: String
}
type Query { ofKind(kind: String!): [File!]! @find }"""
INCLUDED = '["owner"]'
KEYS_ONLY = '"KEYS_ONLY"'


def files() -> list[Item]:
    """Three files of one kind in a folder."""
    return [
        item(pk="FOLDER#f", sk=f"FILE#{n}", kind="text", size=n, owner=f"owner {n}", note=f"note {n}")
        for n in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    ("projection", "fields", "operations"),
    [
        (KEYS_ONLY, "path size kind folder { name }", ["Query"]),
        (KEYS_ONLY, "path owner", ["BatchGetItem", "Query"]),
        (INCLUDED, "path owner", ["Query"]),
        (INCLUDED, "owner note", ["BatchGetItem", "Query"]),
        ('"ALL"', "owner note", ["Query"]),
    ],
)
async def test_what_an_index_does_not_hold_is_fetched_by_key_and_only_then(
    serve: Serve, projection: str, fields: str, operations: list[str]
) -> None:
    served = await serve(PROJECTED % projection, files())

    data = await served.data(f'{{ ofKind(kind: "text") {{ nodes {{ {fields} }} }} }}')

    whole: dict[str, list[Any]] = {
        "path": ["1", "2", "3"],
        "size": [1, 2, 3],
        "kind": ["text"] * 3,
        "folder": [{"name": "f"}] * 3,
        "owner": ["owner 1", "owner 2", "owner 3"],
        "note": ["note 1", "note 2", "note 3"],
    }
    asked = [name for name in whole if name in fields.split()]
    assert data["ofKind"]["nodes"] == [{name: whole[name][n] for name in asked} for n in range(3)]
    assert served.operations == operations


async def test_a_filter_on_what_an_index_does_not_hold_is_decided_on_the_items(serve: Serve) -> None:
    served = await serve(PROJECTED % KEYS_ONLY, files())

    data = await served.data(
        """{ ofKind(kind: "text", first: 1, where: { note: { eq: "note 2" } }) {
        nodes { path } totalCount pageInfo { hasNextPage } } }"""
    )

    assert data["ofKind"] == {"nodes": [{"path": "2"}], "totalCount": 1, "pageInfo": {"hasNextPage": False}}


async def test_an_edge_of_a_partial_index_has_its_own_fields_too(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "pk", sortKey: "sk")
      @index(name: "inverse", partitionKey: "sk", sortKey: "pk", projection: "KEYS_ONLY")
    type User @node(key: "USER#{name}") { name: ID!  groups: [Group!]! @relationship }
    type Group @node(key: "GROUP#{name}") { name: ID!  members: [User!]! @relationship }
    type Membership @edge(partition: "{group}", sort: "{user}") { group: Group!  user: User!  role: String }"""
    served = await serve(
        sdl,
        [item(pk="GROUP#g", sk="GROUP#g"), item(pk="USER#u", sk="USER#u"), item(pk="GROUP#g", sk="USER#u", role="r")],
    )

    data = await served.data(
        """{ user(name: "u") { groups { edges { role node { name } } } }
        group(name: "g") { members { edges { role } } } }"""
    )

    assert data["user"]["groups"]["edges"] == [{"role": "r", "node": {"name": "g"}}]
    assert data["group"]["members"]["edges"] == [{"role": "r"}]


async def test_a_hashed_shard_is_one_query_for_its_field_and_all_shards_without(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "pk")
      @index(name: "all", partitionKey: "shard", sortKey: "rank")
    type Box @node(partition: "BOX#{number}")
      @indexed(by: "all", partition: "{shard(3, owner)}", sort: "{owner}#{made}") {
      number: ID!  owner: String  made: Date
    }
    type Query { boxes: [Box!]! @find  ofOwner(owner: String!): [Box!]! @find }"""
    owners = {"1": "ann", "2": "bob", "3": "ann", "4": "cid"}
    served = await serve(
        sdl,
        [
            item(pk=f"BOX#{n}", shard=str(zlib.crc32(owner.encode()) % 3), rank=f"{owner}#2022-07-0{n}")
            for n, owner in owners.items()
        ],
    )

    of_one = await served.data('{ ofOwner(owner: "ann") { nodes { number made } } }')
    of_one_took = served.operations
    of_all = await served.data("{ boxes { nodes { number } } }")

    boxes = [{"number": "1", "made": "2022-07-01"}, {"number": "3", "made": "2022-07-03"}]
    assert of_one == {"ofOwner": {"nodes": boxes}}
    assert of_one_took == ["Query"]
    assert [node["number"] for node in of_all["boxes"]["nodes"]] == ["1", "3", "2", "4"]
    assert served.operations == ["Query"] * 3


async def test_types_may_lie_in_several_tables(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "people", partitionKey: "pk", sortKey: "sk")
      @table(name: "things", partitionKey: "id", attributeCase: SNAKE)
      @index(name: "byOwner", partitionKey: "ownerId", table: "things")
    type User @node(partition: "USER#{name}", sort: "user") { name: ID!  boxes: [Box!]! @relationship }
    type Box @node(partition: "{number}", table: "things") {
      number: Int! @attribute(name: "id")  owner: User @attribute(name: "ownerId")  madeAt: Date
    }"""
    served = await serve(
        sdl, [item(pk="USER#ann", sk="user"), item(id=1, ownerId="USER#ann", made_at="2022-07-19"), item(id=2)]
    )

    data = await served.data(
        """{ user(name: "ann") { boxes { nodes { number madeAt owner { name } } } }
        box(number: 2) { number owner { name } } }"""
    )

    assert data["user"]["boxes"]["nodes"] == [{"number": 1, "madeAt": "2022-07-19", "owner": {"name": "ann"}}]
    assert data["box"] == {"number": 2, "owner": None}


async def test_items_may_share_a_partition_that_never_changes(serve: Serve) -> None:
    sdl = """extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")
    type Setting @node(partition: "SETTINGS", sort: "{name}") { name: ID!  value: String }
    type Version @node(key: "VERSION") { value: String }
    type Query { settings: [Setting!]! @find }"""
    settings = [item(pk="SETTINGS", sk=name, value=f"{name}!") for name in ("b", "a")]
    served = await serve(sdl, [*settings, item(pk="VERSION", sk="VERSION", value="7")])

    data = await served.data(
        '{ settings { nodes { name value } totalCount } setting(name: "b") { value } version { value } }'
    )

    nodes = [{"name": "a", "value": "a!"}, {"name": "b", "value": "b!"}]
    assert data == {
        "settings": {"nodes": nodes, "totalCount": 2},
        "setting": {"value": "b!"},
        "version": {"value": "7"},
    }


async def test_a_local_index_is_another_order_of_the_same_partition(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "pk", sortKey: "sk")
      @index(name: "by-size", partitionKey: "pk", sortKey: "size", local: true)
    type Folder @node(partition: "FOLDER#{name}", sort: "folder") { name: ID!  files: [File!]! @relationship }
    type File @node(partition: "{folder}", sort: "FILE#{path}") { folder: Folder!  path: String!  size: Int }
    input Sizes { from: Int  to: Int }
    type Query { bySize(folder: ID!, size: Sizes!): [File!]! @find(consistent: true) }"""
    sizes = {"a": 3, "b": 1, "c": 2}
    served = await serve(sdl, [item(pk="FOLDER#f", sk=f"FILE#{path}", size=size) for path, size in sizes.items()])

    data = await served.data('{ bySize(folder: "f", size: { from: 2 }) { nodes { path size } } }')

    assert data["bySize"]["nodes"] == [{"path": "c", "size": 2}, {"path": "a", "size": 3}]
    ((_, request),) = served.sent
    assert (request["IndexName"], request["ConsistentRead"]) == ("by-size", True)
