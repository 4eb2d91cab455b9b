"""The names of nodes whose keys hold more than their name: one name, one node."""

from __future__ import annotations

import pytest

from tests.conftest import Serve
from tests.library import library
from tests.written import code, stored

CREATE = 'createShelf(input: { name: "n", room: "r" }) { __typename }'
CREATE_ELSEWHERE = 'createShelf(input: { name: "n", room: "s" }) { __typename }'
UPSERT_ELSEWHERE = 'upsertShelf(input: { name: "n", room: "s" }) { __typename }'
RENAME = 'updateShelf(key: { name: "a" }, set: { name: "n", room: "q" }) { __typename }'
RENAME_OTHER = 'updateShelf(key: { name: "b" }, set: { name: "n", room: "t" }) { __typename }'


@pytest.mark.parametrize("second", [CREATE_ELSEWHERE, RENAME])
async def test_a_name_that_is_taken_is_refused_whatever_else_the_key_holds(serve: Serve, second: str) -> None:
    served = await library(serve)
    await served.data(f"mutation {{ {CREATE} }}")
    before = await stored(served)

    error = await served.error(f"mutation {{ {second} }}")

    assert code(error)[0] == "ALREADY_EXISTS"
    assert await stored(served) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CREATE, CREATE_ELSEWHERE),
        (CREATE, UPSERT_ELSEWHERE),
        (CREATE, RENAME),
        (RENAME, CREATE),
        (RENAME, UPSERT_ELSEWHERE),
        (RENAME, RENAME_OTHER),
    ],
)
async def test_one_transaction_gives_a_name_once(serve: Serve, one: str, other: str) -> None:
    served = await library(serve)
    before = await stored(served)

    body = await served(f"mutation @transaction {{ one: {one} other: {other} }}")

    assert {code(error)[0] for error in body["errors"]} <= {"ROLLED_BACK", "ALREADY_EXISTS", "WRITE_REFUSED"}
    assert await stored(served) == before


async def test_a_node_moves_without_losing_its_name(serve: Serve) -> None:
    served = await library(serve)

    await served.data('mutation { updateShelf(key: { name: "a" }, set: { room: "s" }) { __typename } }')

    assert ("SHELF#a", "IN#s") in await stored(served)
    assert ("SHELF#a", "IN#r") not in await stored(served)


CHILDREN = """extend schema @table(name: "ships", partitionKey: "pk", sortKey: "sk")
type Ship @node(key: "SHIP#{number}") { number: ID!  logs: [Log!]! @relationship  count: Int @count(of: "logs") }
type Log @node(partition: "{ship}", sort: "LOG#{seq:03}") { seq: Int!  ship: Ship!  note: String }
"""


async def test_children_of_one_node_are_told_apart_by_their_keys(serve: Serve) -> None:
    served = await serve(CHILDREN)
    await served.data('mutation { createShip(input: { number: "1", logs: [{ seq: 1 }, { seq: 2 }] }) { __typename } }')
    ship = 'ship: { number: "1" }'

    await served.data(f"mutation {{ createLog(input: {{ {ship}, seq: 3 }}) {{ __typename }} }}")
    await served.data(f"mutation {{ upsertLog(input: {{ {ship}, seq: 4 }}) {{ __typename }} }}")
    await served.data(f'mutation {{ upsertLog(input: {{ {ship}, seq: 1, note: "x" }}) {{ __typename }} }}')
    await served.data(f"mutation {{ updateLog(key: {{ {ship}, seq: 2 }}, set: {{ seq: 5 }}) {{ __typename }} }}")
    error = await served.error(f"mutation {{ createLog(input: {{ {ship}, seq: 3 }}) {{ __typename }} }}")

    assert code(error) == ("ALREADY_EXISTS", "input")
    assert [key[1] for key in sorted(await stored(served))] == ["LOG#001", "LOG#003", "LOG#004", "LOG#005", "SHIP#1"]
    data = await served.data('{ ship(number: "1") { count logs { nodes { seq note } } } }')
    assert data["ship"] == {
        "count": 4,
        "logs": {"nodes": [{"seq": seq, "note": "x" if seq == 1 else None} for seq in (1, 3, 4, 5)]},
    }
