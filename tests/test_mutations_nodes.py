"""Mutations of one node: what lies in the table afterwards, what is answered, and what is refused."""

from __future__ import annotations

import time
import uuid
from datetime import datetime
from typing import Any

import pytest

from tests.conftest import BANANAS, Serve, Served
from tests.written import BOXES, actions, code, create, item, n, s, stored, update


@pytest.fixture
async def bananas(serve: Serve) -> Served:
    return await serve(BANANAS.read_text())


@pytest.fixture
async def boxes(serve: Serve) -> Served:
    return await serve(BOXES)


# --- create -------------------------------------------------------------------------------------------------------


async def test_a_node_is_created_by_one_transaction_of_one_item(bananas: Served) -> None:
    data = await bananas.data(
        'mutation { createContainer(input: { number: "1", operator: "Ann" }) { container { id number operator } } }'
    )

    assert data["createContainer"]["container"]["operator"] == "Ann"
    assert bananas.operations == ["TransactWriteItems"]
    assert actions(bananas) == ["Put"]
    assert await stored(bananas) == {
        ("CONTAINER_1", "CONTAINER_1"): {
            "objectId": s("CONTAINER_1"),
            "relatedObjectId": s("CONTAINER_1"),
            "Operator": s("Ann"),
        }
    }


async def test_a_node_is_created_with_all_kinds_of_values(boxes: Served) -> None:
    await create(
        boxes,
        """number: "1", state: OPEN, weight: 7, label: "Aß", amount: 1.5, names: ["a", "a"], colours: ["red", "blue"],
        numbers: [2, 10], size: { width: 3, unit: "cm" }, anything: "{}", raw: "aGk=", when: "2022-07-19T19:59:58+02:00"
        """,
    )

    assert await stored(boxes) == {
        ("BOX#1", "box"): item(
            "BOX#1",
            "box",
            type="Box",
            state="OPEN",
            data="000007#aß",
            weight=7,
            label="Aß",
            amount=1.5,
            names={"L": [s("a"), s("a")]},
            colours={"SS": ["blue", "red"]},
            numbers={"NS": ["10", "2"]},
            size={"M": {"width": n(3), "unit": s("cm")}},
            anything=s("{}"),
            raw={"B": "aGk="},
            when="2022-07-19T17:59:58Z",
        )
    }


async def test_null_and_absent_fields_and_empty_sets_have_no_attribute(boxes: Served) -> None:
    await create(boxes, 'number: "1", state: OPEN, weight: null, names: [], colours: []')

    assert await stored(boxes) == {("BOX#1", "box"): item("BOX#1", "box", type="Box", state="OPEN", names={"L": []})}


async def test_a_node_that_is_there_is_not_created_again(bananas: Served) -> None:
    query = 'mutation ($by: String) { createContainer(input: { number: "1", operator: $by }) { container { number } } }'
    await bananas.data(query, {"by": "Ann"})
    before = await stored(bananas)

    error = await bananas.error(query, {"by": "Bob"})

    assert code(error) == ("ALREADY_EXISTS", "input")
    assert "CONTAINER_1" in error["message"]
    assert await stored(bananas) == before


@pytest.mark.parametrize("number", ["", "x" * 3000], ids=["empty", "too long"])
async def test_a_value_that_cannot_be_a_key_is_refused(bananas: Served, number: str) -> None:
    query = "mutation ($number: ID!) { createContainer(input: { number: $number }) { container { number } } }"
    error = await bananas.error(query, {"number": number})

    assert error["extensions"]["code"] == "BAD_KEY_VALUE"
    assert bananas.sent == []


async def test_defaults_fill_in_what_a_write_does_not_say(serve: Serve) -> None:
    served = await serve(
        """extend schema @table(name: "notes", partitionKey: "pk")
        type Note @node(partition: "NOTE#{number}") {
          number: ID! @default(uuid: true)
          made: DateTime! @default(now: CREATE)
          day: Date @default(now: CREATE)
          changed: Int @default(now: WRITE)
          text: String
        }"""
    )
    since = int(time.time())

    data = await served.data("mutation { createNote(input: {}) { note { number made day changed } } }")
    note = data["createNote"]["note"]

    assert str(uuid.UUID(note["number"])) == note["number"]
    assert since <= datetime.fromisoformat(note["made"]).timestamp() <= time.time()
    assert note["made"].startswith(note["day"])
    assert since <= note["changed"] <= time.time()


async def test_a_default_gives_way_to_a_value_and_is_made_anew_by_each_write(serve: Serve) -> None:
    served = await serve(
        """extend schema @table(name: "notes", partitionKey: "pk")
        type Note @node(partition: "NOTE#{number}") {
          number: ID! @default(uuid: true)  made: DateTime! @default(now: CREATE)  changed: Int @default(now: WRITE)
          text: String
        }""",
    )
    made = "2001-01-01T00:00:00Z"
    await served.data(
        'mutation ($made: DateTime) { createNote(input: { number: "1", made: $made, changed: 7 }) { note { made } } }',
        {"made": made},
    )

    assert (await stored(served))["NOTE#1",]["changed"] == n(7)
    query = 'mutation { updateNote(key: { number: "1" }, set: { text: "x" }) { note { made changed } } }'
    note = (await served.data(query))["updateNote"]["note"]
    assert note["made"] == made
    assert note["changed"] > 10**9


# --- update -------------------------------------------------------------------------------------------------------


async def test_an_update_of_a_plain_field_reads_nothing(boxes: Served) -> None:
    await create(boxes, 'number: "1", amount: 1, names: ["a"]')

    assert await update(boxes, "set: { amount: 2 }", "amount") == {"amount": 2.0}

    # The payload asks for nothing that the write does not know.
    assert boxes.operations == ["TransactWriteItems"]
    assert actions(boxes) == ["Update"]


async def test_a_payload_reads_what_a_plain_update_does_not_know(boxes: Served) -> None:
    await create(boxes, 'number: "1", amount: 1, names: ["a"]')

    assert await update(boxes, "set: { amount: 2 }", "amount names") == {"amount": 2.0, "names": ["a"]}
    assert boxes.operations == ["GetItem", "TransactWriteItems"]


async def test_null_takes_a_value_away_and_absent_leaves_it(boxes: Served) -> None:
    await create(boxes, 'number: "1", amount: 1, names: ["a"], colours: ["red"], label: "x"')

    await update(boxes, "set: { amount: null, colours: [] }")

    assert (await stored(boxes))["BOX#1", "box"] == item("BOX#1", "box", type="Box", names={"L": [s("a")]}, label="x")


async def test_null_for_a_required_field_is_refused(serve: Serve) -> None:
    served = await serve(
        """extend schema @table(name: "notes", partitionKey: "pk")
        type Note @node(partition: "NOTE#{number}") { number: ID!  text: String! }""",
        [{"pk": s("NOTE#1"), "text": s("a")}],
    )
    error = await served.error('mutation { updateNote(key: { number: "1" }, set: { text: null }) { note { text } } }')

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert "`set.text` is null" in error["message"]
    assert served.sent == []


async def test_the_keys_of_an_index_follow_their_fields(boxes: Served) -> None:
    await create(boxes, 'number: "1", state: OPEN, weight: 7, label: "A"')

    await update(boxes, 'set: { label: "B" }')
    assert (await stored(boxes))["BOX#1", "box"]["data"] == s("000007#b")

    await update(boxes, "increment: { weight: 5 }")
    assert (await stored(boxes))["BOX#1", "box"]["data"] == s("000012#b")

    await update(boxes, "set: { weight: null }")
    assert "data" not in (await stored(boxes))["BOX#1", "box"]
    data = await boxes.data("{ ofState(state: OPEN) { nodes { number } } }")
    assert data == {"ofState": {"nodes": []}}

    await update(boxes, "set: { weight: 1, state: SENT }")
    assert (await stored(boxes))["BOX#1", "box"]["data"] == s("000001#b")
    data = await boxes.data("{ ofState(state: SENT, weight: { to: 2 }) { nodes { number label } } }")
    assert data == {"ofState": {"nodes": [{"number": "1", "label": "B"}]}}


async def test_an_update_of_what_is_not_there_is_refused(boxes: Served) -> None:
    for change in ("set: { amount: 1 }", 'set: { label: "x" }', "increment: { amount: 1 }"):
        error = await boxes.error(f'mutation {{ updateBox(key: {{ number: "1" }}, {change}) {{ box {{ number }} }} }}')

        assert error["extensions"]["code"] == "NOT_FOUND"
    assert await stored(boxes) == {}


async def test_an_update_that_asks_for_nothing_only_looks_whether_the_item_is_there(boxes: Served) -> None:
    await create(boxes, 'number: "1", amount: 1')
    before = await stored(boxes)

    assert await update(boxes, "set: {}", "amount") == {"amount": 1.0}
    assert await stored(boxes) == before
    error = await boxes.error('mutation { updateBox(key: { number: "2" }, set: {}) { box { number } } }')
    assert error["extensions"]["code"] == "NOT_FOUND"


# --- increment, append, remove ------------------------------------------------------------------------------------


async def test_numbers_are_added_to_whatever_they_are(boxes: Served) -> None:
    await create(boxes, 'number: "1"')

    await update(boxes, "increment: { amount: 1.5 }")
    await update(boxes, "increment: { amount: -4 }")

    assert (await stored(boxes))["BOX#1", "box"]["amount"] == n(-2.5)
    assert await update(boxes, "increment: { amount: 1 }", "amount") == {"amount": -1.5}


async def test_lists_are_appended_to_and_entries_taken_out(boxes: Served) -> None:
    await create(boxes, 'number: "1"')

    assert await update(boxes, 'append: { names: ["a", "b"] }', "names") == {"names": ["a", "b"]}
    assert await update(boxes, 'append: { names: ["a"] }', "names") == {"names": ["a", "b", "a"]}
    assert await update(boxes, 'remove: { names: ["a", "x"] }', "names") == {"names": ["b"]}
    assert await update(boxes, 'remove: { names: ["b"] }', "names") == {"names": []}


async def test_entries_are_put_into_sets_and_taken_out(boxes: Served) -> None:
    await create(boxes, 'number: "1"')

    async def colours() -> Any:
        return (await stored(boxes))["BOX#1", "box"].get("colours")

    await update(boxes, 'append: { colours: ["red", "blue"], numbers: [1] }')
    assert await colours() == {"SS": ["blue", "red"]}
    await update(boxes, 'append: { colours: ["red"] }')
    assert await colours() == {"SS": ["blue", "red"]}
    assert await update(boxes, 'remove: { colours: ["red", "green"] }', "colours") == {"colours": ["blue"]}
    assert await update(boxes, 'remove: { colours: ["blue"] }', "colours") == {"colours": None}
    assert boxes.operations == ["GetItem", "TransactWriteItems"]
    assert await colours() is None


async def test_one_field_is_not_changed_in_two_ways(boxes: Served) -> None:
    await create(boxes, 'number: "1"')

    error = await boxes.error(
        'mutation { updateBox(key: { number: "1" }, set: { amount: 1 }, increment: { amount: 1 }) { box { number } } }'
    )

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert "`amount`" in error["message"]


# --- upsert -------------------------------------------------------------------------------------------------------


async def test_an_upsert_creates_and_then_changes_what_is_given(boxes: Served) -> None:
    query = """mutation ($input: CreateBoxInput!) {
      upsertBox(input: $input) { box { number state weight label amount names } } }"""

    one = await boxes.data(
        query, {"input": {"number": "1", "state": "OPEN", "weight": 3, "label": "L", "names": ["a"]}}
    )
    two = await boxes.data(query, {"input": {"number": "1", "weight": 4, "amount": 1, "names": None}})

    assert one["upsertBox"]["box"] == {
        "number": "1", "state": "OPEN", "weight": 3, "label": "L", "amount": None, "names": ["a"]
    }  # fmt: skip
    assert two["upsertBox"]["box"] == {
        "number": "1", "state": "OPEN", "weight": 4, "label": "L", "amount": 1.0, "names": None
    }  # fmt: skip
    assert (await stored(boxes))["BOX#1", "box"]["data"] == s("000004#l")


# --- delete -------------------------------------------------------------------------------------------------------


async def test_a_deleted_node_is_answered_as_it_was(boxes: Served) -> None:
    await create(boxes, 'number: "1", amount: 1')
    ((found,),) = [(await boxes.data('{ box(number: "1") { id } }')).values()]

    data = await boxes.data('mutation { deleteBox(key: { number: "1" }) { deletedId box { number amount } } }')

    assert data["deleteBox"] == {"deletedId": found["id"], "box": {"number": "1", "amount": 1.0}}
    assert await stored(boxes) == {}
    error = await boxes.error('mutation { deleteBox(key: { number: "1" }) { deletedId } }')
    assert code(error)[0] == "NOT_FOUND"


# --- keys ---------------------------------------------------------------------------------------------------------


async def test_a_node_is_named_by_its_global_id(boxes: Served) -> None:
    await create(boxes, 'number: "1"')
    found = (await boxes.data('{ box(number: "1") { id } }'))["box"]

    data = await boxes.data(
        "mutation ($id: ID!) { updateBox(key: { id: $id }, set: { amount: 3 }) { box { id amount } } }", found
    )

    assert data["updateBox"]["box"] == {"id": found["id"], "amount": 3.0}


async def test_a_key_names_exactly_one_node_of_the_type(bananas: Served) -> None:
    await bananas.data('mutation { createContainer(input: { number: "1" }) { container { id } } }')
    container = (await bananas.data('{ container(number: "1") { id } }'))["container"]["id"]
    query = "mutation ($key: PalletKey!) { updatePallet(key: $key, set: {}) { pallet { id } } }"

    for key, expected, said in (
        ({"id": container}, "BAD_INPUT", "expected one of a Pallet"),
        ({"id": container, "number": "1"}, "BAD_INPUT", "expected one of them"),
        ({"id": "nonsense"}, "BAD_ID", "it is not one"),
        ({}, "BAD_INPUT", "names a Pallet without `number`"),
        ({"number": None}, "BAD_INPUT", "names a Pallet without `number`"),
        ({"number": ""}, "BAD_KEY_VALUE", "may not be empty"),
    ):
        error = await bananas.error(query, {"key": key})
        assert error["extensions"]["code"] == expected
        assert said in error["message"]
        assert bananas.sent == []


async def test_an_upsert_of_what_is_there_is_a_write_like_any_other(serve: Serve) -> None:
    served = await serve(
        """extend schema @table(name: "boxes", partitionKey: "pk")
        type Box @node(partition: "BOX#{number}") { number: ID!  label: String  changed: Date @default(now: WRITE) }"""
    )
    upsert = 'mutation { upsertBox(input: { number: "1", %s }) { box { changed label } } }'
    await served.data(upsert % 'changed: "2001-01-01"')

    data = await served.data(upsert % 'label: "b"')

    assert data["upsertBox"]["box"]["label"] == "b"
    assert data["upsertBox"]["box"]["changed"] > "2001-01-01"
