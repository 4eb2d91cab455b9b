"""Writes at the limits: too many items, too large ones, items that have expired, and who may be deleted along."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from graph.loaders import Limits
from tests.conftest import BANANAS, ROOT, Serve, Served
from tests.written import code, item, n, s, stored

STEP5 = (ROOT / "examples/step5/schema.graphql").read_text()
LINKED = {"linkedDatetime": "2022-07-19T17:59:58Z"}


# --- size ---------------------------------------------------------------------------------------------------------


def tree(boxes: int) -> dict[str, Any]:
    return {"number": "1", "boxes": [{**LINKED, "box": {"create": {"number": str(one)}}} for one in range(boxes)]}


CREATE_PALLET = "mutation ($input: CreatePalletInput!) { createPallet(input: $input) { pallet { number } } }"


async def test_a_hundred_items_fit_into_a_transaction_and_no_more(serve: Serve) -> None:
    served = await serve(BANANAS.read_text())

    # 50 boxes with their edges, and the pallet.
    error = await served.error(CREATE_PALLET, {"input": tree(50)})
    assert error["extensions"]["code"] == "TOO_LARGE"
    assert "101 items" in error["message"]
    assert await stored(served) == {}

    await served.data(CREATE_PALLET, {"input": tree(49)})
    assert len(await stored(served)) == 99


NOTES = """extend schema @table(name: "notes", partitionKey: "pk")
type Note @node(partition: "NOTE#{number}") { number: ID!  text: String  more: [String!] }"""


async def test_an_item_has_at_most_400_kilobytes(serve: Serve) -> None:
    served = await serve(NOTES)
    create = 'mutation ($text: String) { createNote(input: { number: "1", text: $text }) { note { number } } }'
    names = len("pk") + len("NOTE#1") + len("text")

    error = await served.error(create, {"text": "x" * (400 * 1024 - names + 1)})
    assert error["extensions"]["code"] == "TOO_LARGE"
    assert served.sent == []

    await served.data(create, {"text": "x" * (400 * 1024 - names)})
    update = (
        'mutation ($more: [String!]) { updateNote(key: { number: "1" }, append: { more: $more }) { note { number } } }'
    )
    error = await served.error(update, {"more": ["x"]})
    # What the item has already only DynamoDB knows: it refuses the update, and the item stays.
    assert error["extensions"]["code"] in ("TOO_LARGE", "REQUEST_REFUSED")
    assert "more" not in (await stored(served))["NOTE#1",]


async def test_a_transaction_has_at_most_four_megabytes(serve: Serve) -> None:
    served = await serve(NOTES)
    fields = " ".join(
        f'n{number}: createNote(input: {{ number: "{number}", text: $text }}) {{ __typename }}' for number in range(11)
    )

    body = await served(f"mutation ($text: String) @transaction {{ {fields} }}", {"text": "x" * 390 * 1024})

    assert {error["extensions"]["code"] for error in body["errors"]} == {"TOO_LARGE"}
    assert served.sent == []


async def test_what_hangs_on_a_node_goes_with_it_however_many_there_are(serve: Serve) -> None:
    many = 230
    served = await serve(
        BANANAS.read_text(),
        [
            {"objectId": s("PALLET_1"), "relatedObjectId": s("PALLET_1")},
            *({"objectId": s("PALLET_1"), "relatedObjectId": s(f"BOX_{number}")} for number in range(many)),
            *({"objectId": s(f"BOX_{number}"), "relatedObjectId": s(f"BOX_{number}")} for number in range(many)),
        ],
    )

    error = await served.error(
        'mutation { updatePallet(key: { number: "1" }, set: { number: "2" }) { pallet { number } } }'
    )
    assert error["extensions"]["code"] == "TOO_LARGE"
    assert len(await stored(served)) == 2 * many + 1
    assert (await stored(served))["PALLET_1", "PALLET_1"].keys() == {"objectId", "relatedObjectId"}

    await served.data('mutation { deletePallet(key: { number: "1" }, cascade: true) { pallet { number } } }')
    assert {key[0] == key[1] for key in await stored(served)} == {True}
    assert len(await stored(served)) == many


async def test_a_cascade_has_a_limit_and_goes_on_when_it_is_sent_again(serve: Serve) -> None:
    served = await serve(
        BANANAS.read_text(),
        [
            {"objectId": s("PALLET_1"), "relatedObjectId": s("PALLET_1")},
            *({"objectId": s("PALLET_1"), "relatedObjectId": s(f"BOX_{number}")} for number in range(25)),
        ],
        limits=Limits(max_cascade=10),
    )
    query = 'mutation { deletePallet(key: { number: "1" }, cascade: true) { pallet { number } } }'

    assert (await served.error(query))["extensions"]["code"] == "TOO_LARGE"
    assert len(await stored(served)) == 16
    assert "tablegraph-lock" not in (await stored(served))["PALLET_1", "PALLET_1"]
    assert (await served.error(query))["extensions"]["code"] == "TOO_LARGE"
    await served.data(query)
    assert await stored(served) == {}


# --- expiry -------------------------------------------------------------------------------------------------------

SESSIONS = """extend schema
  @table(name: "sessions", partitionKey: "pk", sortKey: "sk")
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type User @node(key: "USER#{name}") { name: ID!  sessions: [Session!]! @relationship }
type Session @node(key: "SESSION#{token}") {
  token: ID!  note: String  expires: Int @ttl  users: [User!]! @relationship
}
type Login @edge(partition: "{user}", sort: "{session}") { user: User!  session: Session! }
"""


@pytest.fixture
async def sessions(serve: Serve) -> Served:
    """A user, a session that has expired, and one that has not."""
    now = int(time.time())
    return await serve(
        SESSIONS,
        [
            item("USER#ann", "USER#ann"),
            item("SESSION#old", "SESSION#old", expires=now - 60, note="x"),
            item("SESSION#new", "SESSION#new", expires=now + 3600),
        ],
    )


async def test_an_expired_item_is_not_there(sessions: Served) -> None:
    before = await stored(sessions)

    for field in (
        'updateSession(key: { token: "old" }, set: { note: "y" }) { __typename }',
        'deleteSession(key: { token: "old" }) { __typename }',
        'createLogin(input: { user: { name: "ann" }, session: { token: "old" } }) { __typename }',
    ):
        assert code(await sessions.error(f"mutation {{ {field} }}"))[0] == "NOT_FOUND", field
        assert await stored(sessions) == before

    await sessions.data('mutation { updateSession(key: { token: "new" }, set: { note: "y" }) { __typename } }')
    await sessions.data(
        'mutation { createLogin(input: { user: { name: "ann" }, session: { token: "new" } }) { __typename } }'
    )


@pytest.mark.parametrize("verb", ["create", "upsert"])
async def test_a_new_item_takes_the_place_of_an_expired_one(sessions: Served, verb: str) -> None:
    await sessions.data(f'mutation {{ {verb}Session(input: {{ token: "old" }}) {{ session {{ note }} }} }}')

    assert (await stored(sessions))["SESSION#old", "SESSION#old"] == item("SESSION#old", "SESSION#old")
    data = await sessions.data('{ session(token: "old") { note expires } }')
    assert data == {"session": {"note": None, "expires": None}}


async def test_an_item_is_renamed_to_the_key_of_an_expired_one(sessions: Served) -> None:
    await sessions.data('mutation { updateSession(key: { token: "new" }, set: { token: "old" }) { __typename } }')

    found = await stored(sessions)
    assert "note" not in found["SESSION#old", "SESSION#old"]
    assert ("SESSION#new", "SESSION#new") not in found


async def test_expired_edges_do_not_keep_a_node(serve: Serve) -> None:
    served = await serve(
        """extend schema
          @table(name: "sessions", partitionKey: "pk", sortKey: "sk")
          @index(name: "turned", partitionKey: "sk", sortKey: "pk")
        type User @node(key: "USER#{name}") { name: ID!  seats: [Seat!]! @relationship }
        type Seat @node(key: "SEAT#{number}") { number: ID! }
        type Booking @edge(partition: "{user}", sort: "{seat}") { user: User!  seat: Seat!  until: Int @ttl }""",
        [
            item("USER#ann", "USER#ann"),
            item("SEAT#1", "SEAT#1"),
            item("USER#ann", "SEAT#1", until=int(time.time()) - 60),
        ],
    )

    await served.data('mutation { deleteUser(key: { name: "ann" }) { __typename } }')
    assert ("USER#ann", "USER#ann") not in await stored(served)


# --- several tables -----------------------------------------------------------------------------------------------


async def test_items_of_several_tables_are_written_together(serve: Serve) -> None:
    served = await serve(STEP5)
    sensors, alerts = list(served.graph.model.tables)[1], list(served.graph.model.tables)[3]
    until = datetime.fromtimestamp(int(time.time()) + 3600, UTC).isoformat().replace("+00:00", "Z")

    await served.data(
        """mutation ($until: DateTime!) { createSensor(input: { serial: "1", kind: "t",
          place: { create: { country: "US", state: "CA", city: "LA", name: "x", chain: "c" } },
          alerts: [{ raised: "2022-07-19T17:59:58Z", text: "hot", expires: $until }]
          }) { sensor { place { name } } } }""",
        {"until": until},
    )

    assert set(await stored(served)) == {("US", "CA#LA#x")}
    assert (await stored(served, sensors))["1",]["place"] == s("US#CA#LA#x")
    assert set(await stored(served, alerts)) == {("1", "2022-07-19T17:59:58Z")}
    assert (await stored(served, alerts))["1", "2022-07-19T17:59:58Z"]["expires"] in (
        n(int(time.time()) + 3600),
        s(until),
    )

    data = await served.data(
        """mutation { updatePlace(key: { country: "US", state: "CA", city: "LA", name: "x" }, set: { city: "SF" }) {
        place { city sensors { nodes { serial } } } } }"""
    )
    assert data["updatePlace"]["place"] == {"city": "SF", "sensors": {"nodes": [{"serial": "1"}]}}
    assert (await stored(served, sensors))["1",]["place"] == s("US#CA#SF#x")
