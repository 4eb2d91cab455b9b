"""Verify: every fault of every kind is found where it is, and nothing is found where there is none."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph.maintenance.findings import same
from graph.maintenance.repair import Outcome
from graph.requests import Item, PutItems
from server.cli import main
from tests.conftest import BANANAS, ROOT, Serve, Served, example_items, make_table
from tests.shop import SHOP, brief, changed, found, repaired, shop, write
from tests.written import item, n, s, stored

EXAMPLES = ("bananas", "b2b", "order-entry", "step5")


@pytest.fixture
async def filled(serve: Serve) -> Served:
    return await shop(serve)


# --- what is right ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [pytest.param(False, id="seed"), pytest.param(True, id="larger")])
@pytest.mark.parametrize("example", EXAMPLES)
async def test_the_examples_are_clean(serve: Serve, example: str, whole: bool) -> None:
    model = (ROOT / "examples" / example / "schema.graphql").read_text()
    # A part of the fleet is like all of it.
    items = [one for number, one in enumerate(example_items(example, whole=whole)) if number < 4000]
    if example == "bananas":
        items = _closed(items)
    served = await serve(model, items)

    assert await brief(served) == []


def _closed(items: list[Item]) -> list[Item]:
    """Leave out the edges whose nodes were cut off."""
    nodes = {one["objectId"]["S"] for one in items if one["objectId"] == one["relatedObjectId"]}
    return [one for one in items if {one["objectId"]["S"], one["relatedObjectId"]["S"]} <= nodes]


async def test_what_the_mutations_wrote_is_clean(filled: Served) -> None:
    assert await brief(filled) == []


@pytest.mark.parametrize("segments", [1, 3, 16])
async def test_every_item_is_met_once_whatever_the_segments(filled: Served, segments: int) -> None:
    lost = item("x", "y")
    await write(filled, lost, item("SHOP#1", "NOTE#2", kind="Note", data="Ulm#2"))

    assert [one.code.name for one in await found(filled, segments)] == ["MISSING_VALUE", "NO_TYPE"]


async def test_what_is_ours_or_expired_is_no_finding(serve: Serve) -> None:
    model = """extend schema @table(name: "notes", partitionKey: "pk", sortKey: "sk")
    type Note @node(partition: "NOTE#{number}", sort: "note") { number: ID!  text: String!  until: Int @ttl }"""
    served = await serve(model)
    await write(
        served,
        item("tablegraph-receipt#abc", "tablegraph-receipt#abc"),
        item("NOTE#1", "note", until=int(time.time()) - 5),
        item("NOTE#2", "note", until=int(time.time()) + 500),
    )

    assert await brief(served) == ["MISSING_VALUE NOTE#2/note text: a value, nothing"]


async def test_earlier_versions_are_no_finding(serve: Serve) -> None:
    model = """extend schema @table(name: "notes", partitionKey: "pk", sortKey: "sk")
    type Note @node(partition: "NOTE#{number}", sort: "v0") @history {
      number: ID!  text: String!  version: Int! @version }"""
    served = await serve(model)
    await served.data('mutation { createNote(input: { number: "1", text: "a" }) { note { text } } }')
    await served.data('mutation { updateNote(key: { number: "1" }, set: { text: "b" }) { note { text } } }')

    assert len(await stored(served)) == 3
    assert await brief(served) == []


# --- tables of others ---------------------------------------------------------------------------------------------


async def test_a_copy_that_lacks_attributes_is_not_wrong(filled: Served) -> None:
    await changed(filled, "SHOP#1", "PERSON#1", {}, "name", "skills")

    assert await brief(filled) == []


async def test_a_field_that_only_an_index_key_holds_needs_no_attribute(serve: Serve) -> None:
    model = """extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")
    @index(name: "by-day", partitionKey: "sk", sortKey: "data")
    type Thing @node(partition: "THING#{number}", sort: "thing") @indexed(by: "by-day", sort: "{day}#{maker}") {
      number: ID!  day: Date!  maker: Maker! @attribute(name: "made_by") }
    type Maker @node(partition: "MAKER#{number}", sort: "maker") { number: ID! }"""
    served = await serve(model)
    await write(served, item("THING#1", "thing", data="2020-01-02#MAKER#7"), item("MAKER#7", "maker"))

    assert await brief(served) == []


async def test_numbers_and_sets_are_compared_by_what_they_hold() -> None:
    assert same({"N": "1.50"}, {"N": "1.5"})
    assert same({"SS": ["a", "b"]}, {"SS": ["b", "a"]})
    assert same(
        {"L": [{"N": "1"}, {"M": {"a": {"NS": ["1", "2.0"]}}}]}, {"L": [{"N": "1.0"}, {"M": {"a": {"NS": ["2", "1"]}}}]}
    )
    assert same(None, {"NULL": True})
    assert not same({"S": "1"}, {"N": "1"})
    assert not same({"M": {"a": {"S": "1"}}}, {"M": {}})
    assert not same({"L": [{"S": "1"}]}, {"L": []})


# --- the faults ---------------------------------------------------------------------------------------------------

PUT: dict[str, tuple[tuple[str, str], dict[str, Any], list[str]]] = {
    "a-wrong-type": (
        ("SHOP#1", "shop"),
        {"founded": n(7)},
        ["BAD_VALUE SHOP#1/shop founded: "],
    ),
    "an-index-key-of-another-value": (
        ("SHOP#1", "shop"),
        {"data": s("Ulm#Butter")},
        ['STALE_KEY SHOP#1/shop data: "Ulm#Bread", "Ulm#Butter"'],
    ),
    "an-index-key-of-another-node": (
        ("SHOP#1", "NOTE#1"),
        {"data": s("Bonn#1")},
        ['STALE_KEY SHOP#1/NOTE#1 data: "Ulm#1", "Bonn#1"'],
    ),
    "a-shard-out-of-range": (("SHOP#1", "shop"), {"shard": s("4")}, ["STALE_KEY SHOP#1/shop shard: "]),
    "a-shard-written-otherwise": (("SHOP#1", "shop"), {"shard": s("01")}, ["STALE_KEY SHOP#1/shop shard: "]),
    "another-shard": (("SHOP#1", "shop"), {"shard": s("3")}, []),
    "an-attribute-against-the-key": (
        ("SHOP#1", "shop"),
        {"number": s("9")},
        ['STALE_KEY SHOP#1/shop number: "1", "9"'],
    ),
    "an-attribute-that-says-what-the-key-says": (("SHOP#1", "shop"), {"number": s("1")}, []),
    "a-reference-against-the-key": (
        ("SHOP#1", "NOTE#1"),
        {"shop": s("SHOP#2")},
        ['STALE_KEY SHOP#1/NOTE#1 shop: "SHOP#1", "SHOP#2"'],
    ),
    "another-types-name": (("SHOP#1", "shop"), {"kind": s("Job")}, ['STALE_KEY SHOP#1/shop kind: "Shop", "Job"']),
    "the-name-of-no-type": (
        ("SHOP#2", "PERSON#2"),
        {"kind": s("Invoice")},
        ["NO_TYPE SHOP#2/PERSON#2: ", "WRONG_COUNT SHOP#2/shop staff: 0, 1"],
    ),
    "a-reference-to-nobody": (
        ("SHOP#1", "NOTE#1"),
        {"about": s("PERSON#7")},
        ["DANGLING SHOP#1/NOTE#1 about: a Person, none of number 7"],
    ),
    "a-reference-that-is-none": (("SHOP#1", "NOTE#1"), {"about": s("seven")}, ["BAD_VALUE SHOP#1/NOTE#1 about: "]),
    "a-copy-of-another-value": (
        ("SHOP#1", "PERSON#1"),
        {"name": s("Anna")},
        ['WRONG_COPY SHOP#1/PERSON#1 person.name: "Ann", "Anna"'],
    ),
    "a-copied-set": (
        ("SHOP#1", "PERSON#1"),
        {"skills": {"SS": ["till"]}},
        ["WRONG_COPY SHOP#1/PERSON#1 person.skills: "],
    ),
    "a-copy-of-what-is-not-there": (
        ("PERSON#1", "SHOP#1"),
        {"founded": s("2000-01-01")},
        ['WRONG_COPY PERSON#1/SHOP#1 shop.founded: nothing, "2000-01-01"'],
    ),
    "a-mirror-of-another-value": (
        ("PERSON#1", "SHOP#1"),
        {"hours": n(11)},
        ["WRONG_MIRROR PERSON#1/SHOP#1 hours: 10, 11"],
    ),
    "a-mirror-with-what-the-first-item-lacks": (
        ("PERSON#1", "SHOP#1"),
        {"since": s("2020-01-01")},
        ['WRONG_MIRROR PERSON#1/SHOP#1 since: nothing, "2020-01-01"'],
    ),
    "a-mirrors-index-key": (
        ("PERSON#1", "SHOP#1"),
        {"data": s("bob")},
        ['STALE_KEY PERSON#1/SHOP#1 data: "ann", "bob"'],
    ),
    "a-counter": (("SHOP#1", "shop"), {"staff": n(3)}, ["WRONG_COUNT SHOP#1/shop staff: 2, 3"]),
    "a-sum": (("SHOP#1", "shop"), {"hours": n(1)}, ["WRONG_COUNT SHOP#1/shop hours: 30, 1"]),
    "an-old-lock": (
        ("SHOP#1", "shop"),
        {"tablegraph-lock": s("1600000000.000 abc")},
        ["STALE_LOCK SHOP#1/shop tablegraph-lock: no lock, or one of the last "],
    ),
    "a-lock-of-nobody": (("SHOP#1", "shop"), {"tablegraph-lock": s("?")}, ["STALE_LOCK SHOP#1/shop tablegraph-lock: "]),
}


@pytest.mark.parametrize("fault", PUT)
async def test_a_changed_attribute_is_found(filled: Served, fault: str) -> None:
    (pk, sk), put, expected = PUT[fault]
    await changed(filled, pk, sk, put)

    told = await brief(filled)

    assert len(told) == len(expected), told
    assert all(one.startswith(start) for one, start in zip(told, expected, strict=True)), told


@pytest.mark.parametrize(
    ("key", "name", "expected"),
    [
        (("SHOP#1", "shop"), "data", ['STALE_KEY SHOP#1/shop data: "Ulm#Bread", nothing']),
        (("SHOP#1", "shop"), "kind", ['STALE_KEY SHOP#1/shop kind: "Shop", nothing']),
        (("SHOP#1", "NOTE#1"), "text", ["MISSING_VALUE SHOP#1/NOTE#1 text: a value, nothing"]),
        (("SHOP#1", "shop"), "staff", ["WRONG_COUNT SHOP#1/shop staff: 2, nothing"]),
        (("SHOP#2", "shop"), "hours", []),
        (("SHOP#1", "PERSON#1"), "name", []),
        (("PERSON#1", "SHOP#1"), "hours", ["WRONG_MIRROR PERSON#1/SHOP#1 hours: 10, nothing"]),
    ],
)
async def test_a_missing_attribute_is_found(
    filled: Served, key: tuple[str, str], name: str, expected: list[str]
) -> None:
    await changed(filled, *key, {}, name)

    assert await brief(filled) == expected


async def test_a_missing_mirror_is_found_at_the_first_item(filled: Served) -> None:
    await write(filled, gone=[(await stored(filled))["PERSON#1", "SHOP#1"]])

    assert await brief(filled) == ["MIRROR_MISSING SHOP#1/PERSON#1: a mirror at PERSON#1 / SHOP#1, none"]


async def test_a_mirror_without_its_first_item_is_an_orphan(filled: Served) -> None:
    await write(filled, gone=[(await stored(filled))["SHOP#1", "PERSON#1"]])

    told = await brief(filled)

    assert told[0] == "ORPHAN_MIRROR PERSON#1/SHOP#1: the edge's first item at SHOP#1 / PERSON#1, none"
    assert [one.split(":")[0] for one in told[1:]] == ["WRONG_COUNT SHOP#1/shop hours", "WRONG_COUNT SHOP#1/shop staff"]


async def test_every_item_that_names_a_lost_node_dangles_once(filled: Served) -> None:
    await write(filled, gone=[(await stored(filled))["PERSON#2", "person"]])

    assert [(one.code.name, one.key[1][0][1], one.key[1][1][1], one.field) for one in await found(filled)] == [
        ("DANGLING", "SHOP#1", "NOTE#1", "about"),
        ("DANGLING", "SHOP#1", "PERSON#2", "person"),
        ("DANGLING", "SHOP#2", "PERSON#2", "person"),
    ]


async def test_a_node_that_is_named_by_less_than_its_key_is_searched_for(serve: Serve) -> None:
    served = await serve(
        (ROOT / "examples/order-entry/schema.graphql").read_text(), example_items("order-entry", whole=False)
    )
    (order,) = [
        one for one in (await stored(served)).values() if one["Type"] == s("Order") and one["PK"] == s("OE-ORDER1")
    ] or [next(one for one in (await stored(served)).values() if one["Type"] == s("Order"))]
    await write(served, {**order, "status": s("CLOSED"), "Data": s(f"CLOSED-{order['Data']['S'].split('-', 1)[1]}")})

    findings = await found(served)

    # The order's items hold its status in their keys: they are stale, and do not dangle.
    assert {one.code.name for one in findings} <= {"STALE_KEY", "WRONG_COPY"}
    assert {one.type for one in findings} >= {"OrderItem"}


async def test_a_required_relationship_with_nothing_behind_it_is_found(serve: Serve) -> None:
    model = BANANAS.read_text().replace("container: Container @relationship", "container: Container! @relationship")
    items = list(example_items("bananas", whole=False))
    served = await serve(model, [*items, {"objectId": s("PALLET_X"), "relatedObjectId": s("PALLET_X")}])

    assert await brief(served) == ["REQUIRED PALLET_X/PALLET_X container: a Container, nothing"]


async def test_an_item_in_the_table_of_another_month_is_found(serve: Serve) -> None:
    model = """extend schema
    @table(name: "things", partitionKey: "pk", sortKey: "sk")
    @table(name: "log_{time:yyyyMM}", partitionKey: "pk", sortKey: "sk")
    type Thing @node(partition: "THING#{number}", sort: "thing", table: "things") { number: ID! }
    type Entry @node(partition: "ENTRY#{number}", sort: "{time}", table: "log_{time:yyyyMM}") {
      number: ID!
      time: DateTime!
    }"""
    june, july = item("ENTRY#1", "2022-06-01T00:00:00Z"), item("ENTRY#2", "2022-07-01T00:00:00Z")
    served = await serve(model, [june, july])
    (pattern,) = [name for name in served.graph.model.tables if "{" in name]
    await served.graph.send(PutItems(pattern.replace("{time:yyyyMM}", "202206"), (july,)))

    told = await brief(served)
    outcomes = await repaired(served)

    assert [one.split(":")[0] for one in told] == ["STALE_KEY ENTRY#2/2022-07-01T00"]
    assert list(outcomes.values()) == [Outcome.LEFT]  # the place that it would move to is taken


async def test_nothing_is_written_and_the_cost_is_told(filled: Served) -> None:
    await changed(filled, "SHOP#1", "shop", {"staff": n(9)})
    filled.sent.clear()

    await found(filled)

    assert {operation for operation, _ in filled.sent} == {"Scan", "BatchGetItem", "GetItem", "Query"}


# --- the command --------------------------------------------------------------------------------------------------


ITEMS = [
    item("PERSON#1", "person", kind="Person", name="Ann", data="ann"),
    item("SHOP#1", "shop", kind="Shop", name="Bread", city="Ulm", shard="3", data="Ulm#Bread", staff=1, hours=5),
    item("SHOP#1", "PERSON#1", kind="Job", name="Ann", shard="0", data="ann", hours=5),
    item("PERSON#1", "SHOP#1", kind="Job", name="Bread", city="Ulm", shard="1", data="ann", hours=5),
]
WRONG = [
    item("SHOP#2", "shop", kind="Shop", name="Cakes", city="Bonn", shard="9", data="Bonn#Cakes", staff=3),
    item("SHOP#2", "PERSON#9", kind="Job", shard="0"),
    item("lost\n", "found", kind="Thing"),
]


Command = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def command(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Run a command on a new table of these items, or on the same again: its exit code, lines and complaints."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    path = tmp_path / "schema.graphql"
    path.write_text(SHOP)
    table = f"shop-{uuid.uuid4()}"

    def run(*arguments: str, items: list[Item] | None = None) -> tuple[int, list[str], str]:
        if items is not None:
            make_table(engine, table, SHOP, items)
        capsys.readouterr()
        where = ("--schema", str(path), "--table", table, "--endpoint-url", engine)
        code = main([arguments[0], *where, *arguments[1:]])
        captured = capsys.readouterr()
        return code, captured.out.splitlines(), captured.err

    return run


def test_verify_of_a_clean_table_is_silent_and_ends_with_0(command: Command) -> None:
    code, out, err = command("verify", "--segments", "2", items=ITEMS)

    assert (code, out) == (0, [])
    assert err.splitlines()[0] == "verify: nothing is wrong"
    assert re.search(r"^4 items in \d+\.\d s, [\d,]+ items/s$", err, re.MULTILINE)
    assert re.search(r"^cost: \d+ requests, \d+\.\d read units$", err, re.MULTILINE)


def test_verify_writes_one_line_for_each_finding_and_ends_with_1(command: Command) -> None:
    code, out, err = command("verify", items=[*ITEMS, *WRONG])

    assert code == 1
    assert [" ".join(line.split(" ")[:1]) for line in sorted(out)] == [
        "DANGLING",
        "MIRROR_MISSING",
        "NO_TYPE",
        "STALE_KEY",
        "WRONG_COUNT",
    ]
    assert "1 DANGLING, 1 MIRROR_MISSING, 1 NO_TYPE, 1 STALE_KEY, 1 WRONG_COUNT" in err
    (count,) = [line for line in out if line.startswith("WRONG_COUNT")]
    assert count.endswith("SHOP#2 / shop Shop.staff: expected 1, found 3")


def test_verify_writes_json_lines(command: Command) -> None:
    _, out, _ = command("verify", "--json", items=[*ITEMS, *WRONG])

    told = {entry.pop("code"): entry for entry in map(json.loads, out)}
    assert told["WRONG_COUNT"].pop("table").startswith("shop-")
    assert told["WRONG_COUNT"] == {
        "key": {"pk": {"S": "SHOP#2"}, "sk": {"S": "shop"}},
        "type": "Shop",
        "field": "staff",
        "expected": "1",
        "found": "3",
    }
    assert (told["NO_TYPE"]["type"], told["NO_TYPE"]["field"]) == (None, None)


def test_repair_mends_what_verify_finds(command: Command) -> None:
    code, out, err = command("repair", "--dry-run", items=[*ITEMS, *WRONG])
    assert (code, len(out)) == (1, 5)
    assert "1 STALE_KEY would mend" in err
    assert "write units" not in err

    code, out, err = command("repair", "--only", "STALE_KEY,WRONG_COUNT")
    assert code == 1
    assert sorted(line.split(":")[0] for line in out) == ["left", "left", "left", "mended", "mended"]
    assert re.search(r"read units and \d+\.\d write units$", err, re.MULTILINE)

    code, out, _ = command("repair", "--delete-dangling", "--json")
    outcomes = {entry["code"]: entry["outcome"] for entry in map(json.loads, out)}
    assert outcomes == {"MIRROR_MISSING": "left", "DANGLING": "mended", "NO_TYPE": "left"}

    code, out, _ = command("verify")
    assert (code, [line.split(" ")[0] for line in out]) == (1, ["NO_TYPE"])


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["verify", "--segments", "0"], id="no-segments"),
        pytest.param(["verify", "--segments", "many"], id="segments-of-letters"),
        pytest.param(["repair", "--only", "STALE_KEY,NONSENSE"], id="an-unknown-code"),
        pytest.param(["verify", "--dry-run"], id="verify-never-writes"),
    ],
)
def test_misuse_ends_with_2(command: Command, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(*arguments)

    assert ended.value.code == 2


def test_a_table_that_does_not_exist_is_said_and_ends_with_1(command: Command) -> None:
    code, out, err = command("verify")

    assert (code, out) == (1, [])
    assert "--table" in err
