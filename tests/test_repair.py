"""Repair: what verify finds is mended as the mutations would have written it, and nothing else is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.codec import parse_json
from graph.maintenance.findings import NEVER_MENDED, Code
from graph.maintenance.repair import Outcome, Wish, repair
from graph.maintenance.walk import Walk
from graph.requests import Item
from tests.conftest import BANANAS, ROOT, Serve, Served, example_items
from tests.shop import brief, changed, found, repaired, shop, write
from tests.written import Stored, item, n, s, stored

Faults = Mapping[tuple[str, str], Item | None]
"""Items as they are to be, by their keys; None for one that is to be gone."""


@pytest.fixture
async def filled(serve: Serve) -> Served:
    return await shop(serve)


async def corrupt(served: Served, clean: Stored, faults: Faults) -> None:
    """Write faults over a clean table."""
    await write(
        served,
        *(one for one in faults.values() if one is not None),
        gone=[clean[key] for key, one in faults.items() if one is None],
    )


async def test_a_clean_table_is_left_alone(filled: Served) -> None:
    filled.sent.clear()

    assert await repaired(filled) == {}
    assert "TransactWriteItems" not in filled.operations


# --- each code ----------------------------------------------------------------------------------------------------

CHANGES: dict[str, tuple[tuple[str, str], dict[str, Any], tuple[str, ...]]] = {
    "an-index-key-of-another-value": (("SHOP#1", "shop"), {"data": s("Ulm#Butter")}, ()),
    "an-index-key-that-is-missing": (("SHOP#1", "shop"), {}, ("data",)),
    "an-index-key-of-another-node": (("SHOP#1", "NOTE#1"), {"data": s("Bonn#1")}, ()),
    "the-types-name": (("SHOP#1", "shop"), {"kind": s("Job")}, ()),
    "the-missing-types-name": (("SHOP#1", "PERSON#1"), {}, ("kind",)),
    "a-copy": (("SHOP#1", "PERSON#1"), {"name": s("Anna")}, ()),
    "a-copied-set": (("SHOP#1", "PERSON#1"), {"skills": {"SS": ["till"]}}, ()),
    "a-copy-of-what-is-not-there": (("PERSON#1", "SHOP#1"), {"founded": s("2000-01-01")}, ()),
    "a-mirror-of-another-value": (("PERSON#1", "SHOP#1"), {"hours": n(11)}, ()),
    "a-mirror-that-has-too-much": (("PERSON#1", "SHOP#1"), {"since": s("2020-01-01")}, ()),
    "a-mirror-that-has-too-little": (("PERSON#1", "SHOP#1"), {}, ("hours",)),
    "a-mirrors-index-key": (("PERSON#1", "SHOP#1"), {"data": s("bob")}, ()),
    "a-counter": (("SHOP#1", "shop"), {"staff": n(3)}, ()),
    "a-missing-counter": (("SHOP#1", "shop"), {}, ("staff",)),
    "a-sum": (("SHOP#1", "shop"), {"hours": n(1)}, ()),
    "an-old-lock": (("SHOP#1", "shop"), {"tablegraph-lock": s("1600000000.000 abc")}, ()),
    "all-of-a-shop": (
        ("SHOP#1", "shop"),
        {"data": s("x"), "kind": s("Note"), "staff": n(8), "hours": n(9), "tablegraph-lock": s("?")},
        (),
    ),
}


@pytest.mark.parametrize("fault", CHANGES)
async def test_a_changed_item_is_mended(filled: Served, fault: str) -> None:
    (pk, sk), put, gone = CHANGES[fault]
    clean = await changed(filled, pk, sk, put, *gone)

    outcomes = await repaired(filled)

    assert set(outcomes.values()) <= {Outcome.MENDED}
    assert await stored(filled) == clean
    assert await brief(filled) == []
    assert await repaired(filled) == {}


async def test_a_shard_out_of_range_is_drawn_anew(filled: Served) -> None:
    await changed(filled, "SHOP#1", "shop", {"shard": s("4")})

    assert list(await repaired(filled)) == ["STALE_KEY SHOP#1/shop shard"]
    assert (await stored(filled))["SHOP#1", "shop"]["shard"]["S"] in "0123"


async def test_attributes_against_the_key_follow_it(filled: Served) -> None:
    await changed(filled, "SHOP#1", "NOTE#1", {"number": s("9"), "shop": s("SHOP#2")})

    await repaired(filled)

    note = (await stored(filled))["SHOP#1", "NOTE#1"]
    assert (note["number"], note["shop"]) == (s("1"), s("SHOP#1"))


async def test_a_missing_mirror_is_put(filled: Served) -> None:
    clean = await stored(filled)
    await write(filled, gone=[clean["PERSON#1", "SHOP#1"]])

    assert await repaired(filled) == {"MIRROR_MISSING SHOP#1/PERSON#1": Outcome.MENDED}

    assert _unsharded(await stored(filled)) == _unsharded(clean)


def _unsharded(items: Stored) -> Stored:
    """Leave out the random shards: a mirror that is put anew draws another one."""
    return {key: {name: value for name, value in one.items() if name != "shard"} for key, one in items.items()}


async def test_an_orphan_mirror_goes_and_is_counted_no_more(filled: Served) -> None:
    clean = await stored(filled)
    await write(filled, gone=[clean["SHOP#1", "PERSON#1"]])

    outcomes = await repaired(filled)

    assert set(outcomes.values()) == {Outcome.MENDED}
    now = await stored(filled)
    assert ("PERSON#1", "SHOP#1") not in now
    assert (now["SHOP#1", "shop"]["staff"], now["SHOP#1", "shop"]["hours"]) == (n(1), n(20))
    assert await brief(filled) == []


async def test_dangling_edges_are_left_unless_they_are_to_go(filled: Served) -> None:
    clean = await stored(filled)
    await write(filled, gone=[clean["PERSON#2", "person"]])

    assert set((await repaired(filled)).values()) == {Outcome.LEFT}
    assert len(await stored(filled)) == len(clean) - 1

    outcomes = await repaired(filled, delete_dangling=True)

    assert outcomes == {
        "DANGLING SHOP#1/PERSON#2 person": Outcome.MENDED,
        "DANGLING SHOP#2/PERSON#2 person": Outcome.MENDED,
        # A note is a node: it stays, whoever it is about.
        "DANGLING SHOP#1/NOTE#1 about": Outcome.LEFT,
    }
    now = await stored(filled)
    assert len(now) == len(clean) - 5
    assert (now["SHOP#1", "shop"]["staff"], now["SHOP#1", "shop"]["hours"]) == (n(1), n(10))
    assert now["SHOP#2", "shop"]["staff"] == n(0)


async def test_an_edge_goes_with_its_counts_in_one_transaction(filled: Served) -> None:
    clean = await stored(filled)
    await write(filled, gone=[clean["PERSON#2", "person"]])

    outcomes = await repaired(filled, delete_dangling=True, codes=frozenset({Code.DANGLING}))

    assert "WRONG_COUNT SHOP#1/shop staff" not in outcomes
    assert (await stored(filled))["SHOP#1", "shop"]["staff"] == n(1)


async def test_an_edge_to_a_node_that_cannot_be_read_stays(filled: Served) -> None:
    """What lies in the place of the node is not nothing, though nobody knows what it is."""
    clean = await changed(filled, "PERSON#2", "person", {"kind": s("Robot")})

    outcomes = await repaired(filled, delete_dangling=True)

    assert outcomes == {"NO_TYPE PERSON#2/person": Outcome.LEFT}
    assert len(await stored(filled)) == len(clean)


async def test_an_item_whose_key_holds_what_has_changed_elsewhere_is_moved(serve: Serve) -> None:
    model = """extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")
    type Task @node(partition: "TASK#{number}", sort: "task") { number: ID!  state: String! }
    type Step @node(partition: "{task}", sort: "{task.state}#{number}") { task: Task!  number: ID!  text: String }"""
    served = await serve(model)
    await write(served, item("TASK#1", "task", state="done"), item("TASK#1", "open#1", text="first", other="kept"))

    assert await brief(served) != []
    assert set((await repaired(served)).values()) == {Outcome.MENDED}

    assert set(await stored(served)) == {("TASK#1", "task"), ("TASK#1", "done#1")}
    assert (await stored(served))["TASK#1", "done#1"]["other"] == s("kept")
    assert await brief(served) == []


# --- what is left -------------------------------------------------------------------------------------------------


async def test_what_only_a_person_can_decide_is_reported_and_left(serve: Serve) -> None:
    model = BANANAS.read_text().replace("container: Container @relationship", "container: Container! @relationship")
    served = await serve(model, example_items("bananas", whole=False))
    wrong = [
        {"objectId": s("PALLET_X"), "relatedObjectId": s("PALLET_X"), "Origin": n(5)},
        {"objectId": s("x"), "relatedObjectId": s("y")},
        {"objectId": s("PALLET_B021002"), "relatedObjectId": s("BOX_A03828")},
    ]
    await write(served, *wrong)
    before = await stored(served)

    outcomes = await repaired(served, delete_dangling=True)

    assert outcomes == {
        "BAD_VALUE PALLET_X/PALLET_X origin": Outcome.LEFT,
        "NO_TYPE x/y": Outcome.LEFT,
        "MISSING_VALUE PALLET_B021002/BOX_A03828 linkedDatetime": Outcome.LEFT,
        "REQUIRED PALLET_X/PALLET_X container": Outcome.LEFT,
    }
    assert await stored(served) == before


async def test_a_dry_run_tells_what_would_be_mended(filled: Served) -> None:
    await changed(filled, "SHOP#1", "shop", {"data": s("x"), "staff": n(9)})
    before = await stored(filled)
    filled.sent.clear()

    outcomes = await repaired(filled, dry_run=True)

    assert outcomes == {
        "STALE_KEY SHOP#1/shop data": Outcome.WOULD_MEND,
        "WRONG_COUNT SHOP#1/shop staff": Outcome.WOULD_MEND,
    }
    assert "TransactWriteItems" not in filled.operations
    assert await stored(filled) == before


async def test_only_the_codes_asked_for_are_mended(filled: Served) -> None:
    await changed(filled, "SHOP#1", "shop", {"data": s("x"), "staff": n(9)})

    outcomes = await repaired(filled, codes=frozenset({Code.WRONG_COUNT}))

    assert outcomes == {
        "STALE_KEY SHOP#1/shop data": Outcome.LEFT,
        "WRONG_COUNT SHOP#1/shop staff": Outcome.MENDED,
    }


# --- in a table that is in use ------------------------------------------------------------------------------------


async def test_a_write_between_reading_and_mending_is_not_undone(
    filled: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read is asked for again by the transaction: then the item is judged anew."""
    await changed(filled, "SHOP#1", "shop", {"data": s("x")})
    graph_send = filled.graph._client.send
    meddled = 0

    async def send(request: Any, meter: Any, parse: Any = parse_json) -> Any:
        nonlocal meddled
        if request.operation == "TransactWriteItems" and not meddled:
            meddled += 1
            await changed(filled, "SHOP#1", "shop", {"name": s("Buns")})
        return await graph_send(request, meter, parse)

    monkeypatch.setattr(filled.graph._client, "send", send)
    outcomes = await repaired(filled)

    mended = (await stored(filled))["SHOP#1", "shop"]
    assert meddled == 1
    assert (mended["name"], mended["data"]) == (s("Buns"), s("Ulm#Buns"))
    assert outcomes["STALE_KEY SHOP#1/shop data"] is Outcome.MENDED


async def test_counters_are_right_after_repairing_under_writes(filled: Served) -> None:
    await changed(filled, "SHOP#1", "shop", {"staff": n(40), "hours": n(1)})

    async def hire(number: int) -> None:
        await filled.data(
            f'mutation {{ createPerson(input: {{ number: "p{number}", name: "P" }}) {{ person {{ number }} }} }}'
        )
        await filled.data(
            f'mutation {{ createJob(input: {{ shop: {{ number: "1" }}, person: {{ number: "p{number}" }}, hours: 1 }}) '
            "{ job { hours } } }"
        )

    await asyncio.gather(repair(Walk(filled.graph, 2), Wish(), lambda *_: None), *map(hire, range(6)))

    assert await brief(filled) == []
    assert (await stored(filled))["SHOP#1", "shop"]["staff"] == n(8)


async def test_the_keys_of_an_example_follow_what_foreign_code_changed(serve: Serve) -> None:
    model = (ROOT / "examples/order-entry/schema.graphql").read_text()
    served = await serve(model, example_items("order-entry", whole=False))
    orders = [one for one in (await stored(served)).values() if one["Type"] == s("Order")]
    await write(served, *({**one, "status": s("CLOSED")} for one in orders))

    outcomes = await repaired(served)

    assert set(outcomes.values()) == {Outcome.MENDED}
    assert await brief(served) == []
    told = {one["Data"]["S"].split("-")[0] for one in (await stored(served)).values() if one["Type"] == s("OrderItem")}
    assert told == {"CLOSED"}


# --- anything at all ----------------------------------------------------------------------------------------------

JOBS = [("SHOP#1", "PERSON#1"), ("SHOP#1", "PERSON#2"), ("SHOP#2", "PERSON#2")]
MIRRORS = [(person, shop_) for shop_, person in JOBS]
SHOPS = [("SHOP#1", "shop"), ("SHOP#2", "shop")]
PEOPLE = [("PERSON#1", "person"), ("PERSON#2", "person")]
NOTES = [("SHOP#1", "NOTE#1")]
WORDS = st.sampled_from([s("x"), s("Ulm"), s("ann"), s("Zoë#1"), s("SHOP#2")])
NUMBERS = st.integers(-3, 50).map(n)


def _fault(keys: list[tuple[str, str]], name: str, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.tuples(st.sampled_from(keys), st.just(name), values)


FAULTS = st.lists(
    st.one_of(
        _fault([*SHOPS, *PEOPLE, *NOTES, *JOBS, *MIRRORS], "data", WORDS | st.none()),
        _fault([*SHOPS, *PEOPLE, *JOBS, *MIRRORS], "kind", st.none() | st.sampled_from([s("Job"), s("Shop"), n(1)])),
        _fault(SHOPS, "staff", NUMBERS),
        _fault(SHOPS, "hours", NUMBERS),
        _fault([*JOBS, *MIRRORS], "name", WORDS),
        _fault(MIRRORS, "city", WORDS),
        _fault(JOBS, "skills", st.just({"SS": ["none"]})),
        _fault(MIRRORS, "hours", NUMBERS | st.none()),
        _fault(MIRRORS, "since", st.sampled_from([s("2020-02-02"), s("never")])),
        _fault([*SHOPS, *PEOPLE], "tablegraph-lock", st.sampled_from([s("1600000000.0 x"), s("mine")])),
        _fault(MIRRORS, "", st.none()),
    ),
    min_size=1,
    max_size=6,
)


@given(faults=FAULTS)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_any_damage_is_found_and_mended(filled: Served, faults: list[tuple[tuple[str, str], str, Any]]) -> None:
    clean = await stored(filled)
    damaged: dict[tuple[str, str], dict[str, Any] | None] = {}
    for key, name, value in faults:
        known = damaged.get(key, dict(clean[key]))
        if name == "" or known is None:
            damaged[key] = None
            continue
        damaged[key] = {**known, name: value} if value is not None else {n_: v for n_, v in known.items() if n_ != name}
    try:
        await corrupt(filled, clean, damaged)
        await _assert_found_and_mended(filled, clean, damaged)
    finally:
        # The next example begins with the same table.
        await write(filled, *clean.values())


async def _assert_found_and_mended(served: Served, clean: Stored, damaged: Faults) -> None:
    told = {(one.key[1][0][1], one.key[1][1][1]) for one in await found(served)}
    for key, one in damaged.items():
        # A mirror that is gone is told where its edge's first item lies.
        where = (key[1], key[0]) if one is None else key
        assert where in told or one == clean[key], (key, one)

    outcomes = await repaired(served)

    assert set(outcomes.values()) <= {Outcome.MENDED}
    assert _unsharded(await stored(served)) == _unsharded(clean)
    assert await brief(served) == []


def test_every_code_is_either_mended_or_never() -> None:
    assert set(Code) - NEVER_MENDED == Wish().codes
