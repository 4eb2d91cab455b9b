"""Idempotency keys: a mutation that is sent again is not carried out again, and is answered alike."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from resolvers.operation import Request
from tests.conftest import ROOT, Serve, Served

BANANAS = (ROOT / "schema.graphql").read_text()
CREATE = 'mutation { createBox(idempotencyKey: "k", input: { number: "1", weightInKg: %s }) { box { id weightInKg } } }'
ADD = """mutation { updateBox(idempotencyKey: "k", key: { number: "1" }, increment: { weightInKg: 1 }) {
  box { weightInKg } } }"""
WEIGHT = '{ box(number: "1") { weightInKg } }'


@pytest.fixture
async def boxes(serve: Serve) -> Served:
    return await serve(BANANAS)


async def test_a_repeated_create_is_answered_alike(boxes: Served) -> None:
    one = await boxes.data(CREATE % 2)
    two = await boxes.data(CREATE % 2)

    assert one == two
    assert boxes.operations == ["GetItem"]


async def test_a_repeated_increment_adds_once(boxes: Served) -> None:
    await boxes.data('mutation { createBox(input: { number: "1", weightInKg: 2 }) { box { id } } }')

    one = await boxes.data(ADD)
    two = await boxes.data(ADD)

    assert one == two == {"updateBox": {"box": {"weightInKg": 3}}}
    assert (await boxes.data(WEIGHT))["box"]["weightInKg"] == 3


async def test_a_repeated_delete_gives_the_item_as_it_was(boxes: Served) -> None:
    await boxes.data(CREATE % 2)
    delete = 'mutation { deleteBox(idempotencyKey: "d", key: { number: "1" }) { deletedId box { weightInKg } } }'

    assert await boxes.data(delete) == await boxes.data(delete)


async def test_writes_at_the_same_time_with_one_key_happen_once(boxes: Served) -> None:
    await boxes.data('mutation { createBox(input: { number: "1", weightInKg: 2 }) { box { id } } }')

    answers = await asyncio.gather(*(boxes.api.execute(Request(ADD)) for _ in range(8)))

    assert {str(answer.body) for answer in answers} == {str({"data": {"updateBox": {"box": {"weightInKg": 3.0}}}})}
    assert (await boxes.data(WEIGHT))["box"]["weightInKg"] == 3


async def test_a_refused_write_leaves_its_key_unused(boxes: Served) -> None:
    refused = await boxes.error(ADD)
    await boxes.data('mutation { createBox(input: { number: "1", weightInKg: 2 }) { box { id } } }')

    assert refused["extensions"]["code"] == "NOT_FOUND"
    assert await boxes.data(ADD) == {"updateBox": {"box": {"weightInKg": 3}}}


async def test_a_key_of_another_write_is_refused(boxes: Served) -> None:
    await boxes.data(CREATE % 2)

    error = await boxes.error(CREATE % 3)

    assert error["extensions"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert (await boxes.data(WEIGHT))["box"]["weightInKg"] == 2


async def test_the_key_of_an_operation_is_one_for_each_of_its_fields(boxes: Served) -> None:
    query = """mutation { a: createBox(input: { number: "1" }) { box { number } }
      b: createBox(input: { number: "2" }) { box { number } } }"""

    one = await boxes.api.execute(Request(query, idempotency_key="whole"))
    two = await boxes.api.execute(Request(query, idempotency_key="whole"))
    three = await boxes.api.execute(Request(query, idempotency_key="other"))

    assert one.body == two.body == {"data": {"a": {"box": {"number": "1"}}, "b": {"box": {"number": "2"}}}}
    assert [error["extensions"]["code"] for error in three.body["errors"]] == ["ALREADY_EXISTS"] * 2


async def test_a_transaction_is_repeated_as_a_whole(boxes: Served) -> None:
    query = """mutation @transaction { a: createBox(input: { number: "1" }) { box { number } }
      b: createBox(input: { number: "2" }) { box { number } } }"""

    one = await boxes.api.execute(Request(query, idempotency_key="whole"))
    two = await boxes.api.execute(Request(query, idempotency_key="whole"))

    assert one.body == two.body


async def test_a_receipt_is_no_item_of_any_type(boxes: Served) -> None:
    await boxes.data('mutation { createContainer(idempotencyKey: "c", input: { number: "1" }) { container { id } } }')

    body: Any = await boxes("{ containers { totalCount nodes { number } } }", cost=True)

    assert body["data"]["containers"] == {"totalCount": 1, "nodes": [{"number": "1"}]}
    assert "skippedItems" not in body["extensions"]["cost"]


FREE = """
extend schema @table(name: "things", partitionKey: "pk")
type Thing @node(partition: "{name}") { name: ID! }
type Query { things: [Thing!]! @find(scan: true) }
"""


async def test_a_receipt_is_not_taken_for_an_item_whose_key_may_be_any_text(serve: Serve) -> None:
    served = await serve(FREE)
    await served.data('mutation { createThing(idempotencyKey: "c", input: { name: "x" }) { thing { id } } }')

    data = await served.data("{ things { totalCount nodes { name } } }")

    assert data["things"] == {"totalCount": 1, "nodes": [{"name": "x"}]}


NUMBERS = """
extend schema @table(name: "numbers", partitionKey: "pk", sortKey: "sk")
type Reading @node(partition: "{sensor}", sort: "{number}") { sensor: Int!  number: Int!  value: Float }
"""


async def test_a_receipt_finds_a_place_among_number_keys(serve: Serve) -> None:
    served = await serve(NUMBERS)
    create = 'mutation { createReading(idempotencyKey: "c", input: { sensor: 1, number: 2 }) { reading { number } } }'

    assert await served.data(create) == await served.data(create)
