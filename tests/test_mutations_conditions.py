"""Writes on conditions: `where`, versions, and what goes first when several things are wrong."""

from __future__ import annotations

import pytest

from tests.conftest import Serve, Served
from tests.written import BOXES, code, create, s, stored, update


@pytest.fixture
async def boxes(serve: Serve) -> Served:
    return await serve(BOXES)


async def test_where_lets_a_write_pass_or_refuses_it(boxes: Served) -> None:
    await create(boxes, 'number: "1", amount: 1, label: "x", weight: 2, state: OPEN')

    await update(boxes, "set: { amount: 2 }, where: { amount: { eq: 1 } }")
    before = await stored(boxes)

    for where in ("amount: { eq: 1 }", "weight: { gt: 5 }", 'names: { contains: "a" }', 'label: { beginsWith: "y" }'):
        error = await boxes.error(
            f'mutation {{ updateBox(key: {{ number: "1" }}, set: {{ amount: 9 }}, where: {{ {where} }}) '
            "{ box { number } } }"
        )
        assert code(error) == ("CONDITION_FAILED", "where")
    assert await stored(boxes) == before


async def test_what_dynamodb_cannot_decide_of_where_rests_on_what_was_read(boxes: Served) -> None:
    await create(boxes, 'number: "1", weight: 2, state: OPEN, label: "x"')

    await update(boxes, "set: { amount: 9 }, where: { weight: { ge: 2 } }")

    ((_, read), (_, written)) = boxes.sent
    assert read["ConsistentRead"] is True
    condition = written["TransactItems"][0]["Update"]
    assert "weight" in condition["ExpressionAttributeNames"].values()


async def test_a_missing_item_goes_before_a_condition_that_fails(boxes: Served) -> None:
    error = await boxes.error(
        'mutation { updateBox(key: { number: "1" }, set: { amount: 9 }, where: { amount: { eq: 1 } }) { __typename } }'
    )

    assert error["extensions"]["code"] == "NOT_FOUND"


VERSIONED = """extend schema @table(name: "notes", partitionKey: "pk")
type Note @node(partition: "NOTE#{number}") { number: ID!  text: String  upper: String  version: Int! @version }"""


async def test_a_version_counts_the_writes_and_guards_them(serve: Serve) -> None:
    served = await serve(VERSIONED)
    query = """mutation ($if: Int) {
      updateNote(key: { number: "1" }, set: { text: "x" }, ifVersion: $if) { note { version } } }"""
    created = await served.data('mutation { createNote(input: { number: "1" }) { note { version } } }')

    assert created["createNote"]["note"]["version"] == 1
    assert (await served.data(query))["updateNote"]["note"]["version"] == 2
    assert (await served.data(query, {"if": 2}))["updateNote"]["note"]["version"] == 3
    error = await served.error(query, {"if": 2})
    assert code(error) == ("VERSION_CONFLICT", "ifVersion")
    upserted = await served.data('mutation { upsertNote(input: { number: "1" }) { note { version } } }')
    assert upserted["upsertNote"]["note"]["version"] == 4
    delete = 'mutation ($if: Int) { deleteNote(key: { number: "1" }, ifVersion: $if) { note { version } } }'
    assert code(await served.error(delete, {"if": 3})) == ("VERSION_CONFLICT", "ifVersion")
    assert (await served.data(delete, {"if": 4}))["deleteNote"]["note"]["version"] == 4
    assert await stored(served) == {}


async def test_an_item_without_a_version_begins_to_count(serve: Serve) -> None:
    served = await serve(VERSIONED, [{"pk": s("NOTE#1"), "text": s("a")}])

    for version in (1, 2):
        data = await served.data(
            'mutation { updateNote(key: { number: "1" }, set: { text: "x" }) { note { version } } }'
        )
        assert data["updateNote"]["note"]["version"] == version
