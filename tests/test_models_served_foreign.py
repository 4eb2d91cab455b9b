"""A table that others filled, by plain boto3 code that knows nothing of us: what is odd in it harms nothing else."""

from __future__ import annotations

import logging
from decimal import Decimal
from typing import Any

import boto3
import pytest

from tests.conftest import Serve, Served

MODEL = """extend schema
  @table(name: "shop", partitionKey: "PK", sortKey: "SK")
  @index(name: "GSI1", partitionKey: "GSI1PK", sortKey: "GSI1SK")
type Customer @node(partition: "CUSTOMER#{mail}", sort: "PROFILE") {
  mail: ID!  name: String  orders: [Order!]! @relationship
}
type Order @node(partition: "CUSTOMER#{customer.mail}", sort: "ORDER#{number:06}")
  @indexed(by: "GSI1", partition: "STATUS#{status}", sort: "{placed}") {
  customer: Customer!  number: Int!  status: Status  placed: DateTime  total: Decimal  lines: [Line!]
}
type Line { sku: String  count: Int }
enum Status { OPEN SENT }
type Query { ofStatus(status: Status!): [Order!]! @find  customers: [Customer!]! @find(scan: true) }"""


def shop() -> list[dict[str, Any]]:
    """What an order system has written over the years, with no thought of GraphQL."""
    return [
        {"PK": "CUSTOMER#ann@example.org", "SK": "PROFILE", "name": "Ann", "_version": 3, "flags": {"beta"}},
        {
            "PK": "CUSTOMER#ann@example.org",
            "SK": "ORDER#000001",
            "GSI1PK": "STATUS#OPEN",
            "GSI1SK": "2022-07-19T17:59:58Z",
            "total": Decimal("19.90"),
            "lines": [{"sku": "banana", "count": 3, "colour": "yellow"}, {"sku": "apple"}],
            "internal": {"a": [1, b"bytes", None, True]},
        },
        {"PK": "CUSTOMER#ann@example.org", "SK": "ORDER#000002", "GSI1PK": "STATUS#SENT", "total": "free"},
        {"PK": "CUSTOMER#ann@example.org", "SK": "ORDER#3", "total": Decimal(1)},
        {"PK": "CUSTOMER#ann@example.org", "SK": "ORDER#", "total": Decimal(1)},
        {"PK": "CUSTOMER#ann@example.org", "SK": "NOTE#1", "text": "is in a hurry"},
        {"PK": "CONFIG", "SK": "v1", "on": True},
    ]


@pytest.fixture
async def served(serve: Serve, engine: str) -> Served:
    """The shop's table, filled by boto3's resource."""
    served = await serve(MODEL)
    session = boto3.Session("local", "local", region_name="eu-central-1")
    table = session.resource("dynamodb", endpoint_url=engine).Table(served.table)
    with table.batch_writer() as batch:
        for item in shop():
            batch.put_item(Item=item)
    table.meta.client.close()
    return served


async def test_fields_come_from_attributes_and_keys_and_the_rest_is_left_alone(served: Served) -> None:
    data = await served.data(
        """{ customer(mail: "ann@example.org") { mail name orders(first: 1) { nodes {
        number status placed total lines { sku count } customer { name } } } } }"""
    )

    assert data["customer"]["name"] == "Ann"
    assert data["customer"]["orders"]["nodes"] == [
        {
            "number": 1,
            "status": "OPEN",
            "placed": "2022-07-19T17:59:58Z",
            "total": "19.9",
            "lines": [{"sku": "banana", "count": 3}, {"sku": "apple", "count": None}],
            "customer": {"name": "Ann"},
        }
    ]


async def test_a_wrong_type_is_an_error_in_its_place(served: Served) -> None:
    body = await served('{ customer(mail: "ann@example.org") { orders { nodes { number total status } } } }')

    assert body["data"]["customer"]["orders"]["nodes"] == [
        {"number": 1, "total": "19.9", "status": "OPEN"},
        {"number": 2, "total": None, "status": "SENT"},
    ]
    (error,) = body["errors"]
    assert error["path"] == ["customer", "orders", "nodes", 1, "total"]
    assert error["extensions"]["code"] == "BAD_ITEM_VALUE"
    assert error["message"] == (
        "Order.total is declared Decimal and is read from the attribute 'total': expected type N, got type S. Mend the "
        "item, or declare the field's type as it is stored"
    )


async def test_items_that_fit_no_type_are_skipped_counted_and_logged(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        body = await served(
            '{ customer(mail: "ann@example.org") { name orders { nodes { number } pageInfo { hasNextPage } } } }',
            cost=True,
        )

    orders = body["data"]["customer"]["orders"]
    assert orders == {"nodes": [{"number": 1}, {"number": 2}], "pageInfo": {"hasNextPage": False}}
    # ORDER#3 is not how a number of six digits is written, and ORDER# names none.
    assert sum(body["extensions"]["cost"]["skippedItems"].values()) == 2
    assert "items that fit no type were skipped" in caplog.text


async def test_pages_are_full_beside_items_that_fit_no_type(served: Served) -> None:
    first = await served.data(
        '{ customer(mail: "ann@example.org") { orders(first: 2) { nodes { number } pageInfo { hasNextPage } } } }'
    )
    last = await served.data(
        '{ customer(mail: "ann@example.org") { orders(last: 1) { nodes { number } pageInfo { hasPreviousPage } } } }'
    )

    assert first["customer"]["orders"] == {"nodes": [{"number": 1}, {"number": 2}], "pageInfo": {"hasNextPage": False}}
    assert last["customer"]["orders"] == {"nodes": [{"number": 2}], "pageInfo": {"hasPreviousPage": True}}


async def test_a_find_reads_only_what_the_index_has(served: Served) -> None:
    data = await served.data(
        "{ open: ofStatus(status: OPEN) { nodes { number } } sent: ofStatus(status: SENT) { totalCount } }"
    )

    # Order 2 has no sort key of the index, so it is not in it.
    assert data == {"open": {"nodes": [{"number": 1}]}, "sent": {"totalCount": 0}}


async def test_a_scan_finds_the_items_of_its_type_among_all_others(served: Served) -> None:
    data = await served.data("{ customers { nodes { mail name } } }")

    assert data == {"customers": {"nodes": [{"mail": "ann@example.org", "name": "Ann"}]}}


async def test_a_node_that_no_item_holds_is_null(served: Served) -> None:
    assert await served.data(
        '{ customer(mail: "nobody") { name } order(customer: "ann@example.org", number: 9) { total } }'
    ) == {
        "customer": None,
        "order": None,
    }
