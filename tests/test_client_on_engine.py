"""The client on the real engine: what we send is answered, and what cannot be is refused by the right class."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from graph.client import Client, Meter, Transport
from graph.errors import RequestRefused, StoreError, TableMissing, TransactionCancelled
from graph.expressions import Exists, Not
from graph.requests import (
    Action,
    BatchGetItem,
    CreateTable,
    DescribeTable,
    GetItem,
    Item,
    PutItems,
    Query,
    TransactWriteItems,
)
from server.transports import Way
from tests.conftest import way_to

KEY = (("id", "banana"),)
NEW = Not(Exists("id"))
ITEM = {"id": {"S": "banana"}, "name": {"S": "Banane \U0001f34c"}}


@pytest.fixture(params=["wire", "boto3"])
def transport(engine: str, request: pytest.FixtureRequest) -> Iterator[Way]:
    with closing(way_to(engine, request.param)) as transport:
        yield transport


async def make_table(client: Client, name: str) -> None:
    definition = {
        "TableName": name,
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    try:
        await client.send(DescribeTable(name), Meter())
    except TableMissing:
        await client.send(CreateTable(name, definition), Meter())


async def test_engine_answers_what_we_send(transport: Transport) -> None:
    client, meter = Client(transport), Meter(report_capacity=True)
    await make_table(client, "test-answers")

    await client.send(PutItems("test-answers", (ITEM,)), meter)

    described = await client.send(DescribeTable("test-answers"), meter)
    assert described["Table"]["TableStatus"] == "ACTIVE"
    assert (await client.send(GetItem("test-answers", KEY), meter))["Item"] == ITEM
    assert "Item" not in await client.send(GetItem("test-answers", (("id", "none"),)), meter)
    batch = await client.send(BatchGetItem("test-answers", (KEY, (("id", "none"),))), meter)
    assert batch["Responses"] == {"test-answers": [ITEM]}
    page = await client.send(Query("test-answers", None, (("id", "banana"),)), meter)
    assert (page["Items"], page["Count"]) == ([ITEM], 1)
    count = await client.send(Query("test-answers", None, (("id", "banana"),), count=True), meter)
    assert (count["Count"], "Items" in count) == (1, False)
    assert meter.items_read == 4
    assert meter.capacity_units > 2


async def test_binaries_come_back_as_they_were_written(transport: Transport) -> None:
    client = Client(transport)
    await make_table(client, "test-binaries")
    inner: Item = {"B": {"S": "no binary"}, "BS": {"L": [{"B": "AA=="}, {"B": ""}]}}
    item: Item = {**ITEM, "B": {"B": "aGk="}, "BS": {"BS": ["aGk=", "/+8="]}, "inner": {"M": inner}}

    await client.send(PutItems("test-binaries", (item,)), Meter())

    assert (await client.send(GetItem("test-binaries", KEY), Meter()))["Item"] == item
    with pytest.raises(TransactionCancelled) as refused:
        await client.send(TransactWriteItems((Action("test-binaries", KEY, item, condition=NEW),), "token"), Meter())
    assert refused.value.items == {0: item}


@pytest.mark.parametrize(
    ("request_", "kind"),
    [
        pytest.param(GetItem("no-such-table", KEY), TableMissing, id="no-table"),
        pytest.param(Query("test-refused", "no-such-index", (("id", "x"),)), StoreError, id="no-index"),
        pytest.param(GetItem("test-refused", (("another", "x"),)), RequestRefused, id="another-key"),
        pytest.param(GetItem("test-refused", (("id", ""),)), RequestRefused, id="empty-key"),
    ],
)
async def test_engine_refuses_what_cannot_be(
    transport: Transport, request_: GetItem | Query, kind: type[StoreError]
) -> None:
    client, meter = Client(transport), Meter()
    await make_table(client, "test-refused")

    with pytest.raises(kind):
        await client.send(request_, meter)

    assert meter.requests == [request_]
