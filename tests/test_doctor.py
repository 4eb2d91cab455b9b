"""The doctor on the engine: each thing that it is to find is made, and found; and nothing where nothing is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graph.apply.backfill import begin
from graph.apply.state import Target
from graph.doctor.examine import Examination
from graph.doctor.findings import Code, Finding, Severity, ranked
from graph.doctor.indexes import Usage, uses_of
from graph.loaders import Graph
from graph.maintenance.walk import Walk
from graph.requests import UpdateTable, UpdateTimeToLive
from resolvers.sdl import compile_model
from server.cli import main
from server.demo import turn_on_stream
from server.usage import usage_of
from tests.big_table import BigTable, described, target_of
from tests.clock import run
from tests.conftest import ROOT, Serve, Served, example_items
from tests.shop import SHOP, shop, write
from tests.slow_tables import FLEET
from tests.test_doctor_sample import LOCAL
from tests.test_readme import EXAMPLES
from tests.written import item

PROTECTED = {"DeletionProtectionEnabled": True}


async def settled(served: Served) -> Served:
    """Make the tables of a test what `table apply` makes them."""
    for table in served.graph.model.tables.values():
        for name in await Walk(served.graph, 1).tables(table):
            await turn_on_stream(served.graph, name)
            await served.graph.send(UpdateTable(name, PROTECTED))
            if expiry := Target(served.graph.model, table, name).expiry:
                await served.graph.send(UpdateTimeToLive(name, expiry))
    return served


async def examined(served: Served, units: float = 1000, usage: Usage | None = None) -> Examination:
    examination = Examination(served.graph, units=units, usage=usage)
    await examination.look()
    await examination.read()
    return examination


async def findings(served: Served, usage: Usage | None = None) -> list[Finding]:
    return (await examined(served, usage=usage)).findings()


def brief(found: list[Finding]) -> list[tuple[str, str]]:
    return [(one.code.name, one.subject) for one in found]


# --- nothing is wrong ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES)
async def test_the_examples_are_healthy(serve: Serve, example: str) -> None:
    model = (ROOT / "examples" / example / "schema.graphql").read_text()
    served = await settled(await serve(model, example_items(example, whole=False)))

    examination = await examined(served)

    assert brief(examination.findings()) == []
    assert sum(one.judged for one in examination.examined) > 0


# --- drift --------------------------------------------------------------------------------------------------------


async def test_what_apply_would_do_is_told(serve: Serve) -> None:
    served = await serve(FLEET.replace('"SK")', '"SK", copies: STREAM)', 1))
    drop = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "names"}}]}
    await served.graph.send(UpdateTable(served.table, drop))
    await served.graph.send(UpdateTable(served.table, {"StreamSpecification": {"StreamEnabled": False}}))

    found = await findings(served)

    assert brief(found) == [
        ("INDEX_MISSING", "names"),
        ("STREAM_OFF", ""),
        ("TTL_OFF", "gone"),
        ("INDEX_UNUSED", "by-owner"),
        ("INDEX_UNUSED", "reverse"),
        ("UNPROTECTED", ""),
    ]
    assert [one.severity for one in found[:2]] == [Severity.SERIOUS, Severity.SERIOUS]


async def test_a_table_that_is_missing_is_told_and_nothing_is_read(serve: Serve) -> None:
    served = await serve(FLEET, table="never-made-by-anyone")

    examination = await examined(served)

    (missing,) = examination.findings()
    assert (missing.code, missing.severity) == (Code.TABLE_MISSING, Severity.SERIOUS)
    assert "--table" in missing.cure
    assert examination.walk.tally.read_units == 0


async def test_a_table_of_another_key_is_told_and_not_read(serve: Serve) -> None:
    keyed = FLEET.replace('partitionKey: "PK"', 'partitionKey: "id"').replace('sortKey: "PK"', 'sortKey: "id"')
    served = await serve(FLEET, table=(await serve(keyed)).table)

    examination = await examined(served)

    found = examination.findings()
    assert {one.code for one in found if one.severity is Severity.SERIOUS} == {Code.KEY_DRIFT, Code.INDEX_DRIFT}
    assert examination.walk.tally.read_units == 0


async def test_an_index_that_holds_less_than_the_model_says_is_told(serve: Serve) -> None:
    other = await settled(await serve(FLEET.replace('"Name", projection: ["Size"]', '"Name", projection: "KEYS_ONLY"')))
    served = await serve(FLEET, table=other.table)

    assert ("PROJECTION_LACKS", "names") in brief(await findings(served))


async def test_a_backfill_that_was_not_finished_is_told(serve: Serve) -> None:
    served = await settled(await shop(serve))
    target = Target(served.graph.model, served.graph.model.tables[served.table], served.table)
    await begin(served.graph, target, ("by-data",))

    (due, _) = await findings(served)

    assert (due.code, due.severity) == (Code.BACKFILL_DUE, Severity.SERIOUS)
    assert "`data`" in due.found or "data may be missing" in due.found


# --- indexes ------------------------------------------------------------------------------------------------------


async def test_an_index_that_no_query_of_the_model_reads_is_told(serve: Serve) -> None:
    served = await settled(await shop(serve))

    assert brief(await findings(served)) == [("INDEX_UNUSED", "by-shard")]


async def test_an_index_that_the_model_does_not_name_is_told(serve: Serve) -> None:
    served = await settled(await shop(serve))
    narrow = SHOP.replace('  @index(name: "by-shard", partitionKey: "shard", sortKey: "data")\n', "")
    narrow = narrow.replace('@indexed(by: "by-shard", partition: "{shard(4)}", sort: "{city}#{name}")', "")
    narrow = narrow.replace('@indexed(by: "by-shard", partition: "{shard(4)}", sort: "{person.name:lower}")', "")
    served = await serve(narrow, table=served.table)

    found = await findings(served)

    assert ("INDEX_UNKNOWN", "by-shard") in brief(found)
    assert "tablegraph table apply --drop --yes" in found[0].cure


@pytest.mark.parametrize(
    ("example", "unused"),
    [("order-entry", set()), ("bananas", set()), ("b2b", set()), ("step5", set())],
)
def test_every_index_of_the_examples_is_used(example: str, unused: set[str]) -> None:
    model = compile_model((ROOT / "examples" / example / "schema.graphql").read_text())
    uses = uses_of(model)
    indexes = {(table.name, index.name) for table in model.tables.values() for index in table.indexes}

    assert {name for table, name in indexes if (table, name) not in uses} == unused


def test_an_index_that_another_way_is_always_taken_before_is_not_used() -> None:
    model = compile_model("""extend schema
      @table(name: "links", partitionKey: "PK", sortKey: "SK")
      @index(name: "again", partitionKey: "PK2", sortKey: "SK2")
    type Person @node(key: "P#{number}") { number: ID! friends: [Place!]! @relationship }
    type Place @node(key: "L#{number}") { number: ID! }
    type Visit @edge(partition: "{person}", sort: "{place}")
      @indexed(by: "again", partition: "{person}", sort: "{place}") { person: Person! place: Place! }
    """)

    assert ("links", "again") not in uses_of(model)


async def test_an_index_that_no_logged_operation_read_is_told(serve: Serve, tmp_path: Path) -> None:
    served = await settled(await shop(serve))
    log = tmp_path / "server.log"
    lines = []
    for number in range(1200):
        if number < 3:
            body = await served('{ person(number: "1") { owns { nodes { name } } } }', cost=True)
        read = body["extensions"]["cost"]["indexes"]
        told = {"time": f"2026-01-{number % 28 + 1:02}", "message": "POST", "requests": 2, "indexes": read}
        lines.append(json.dumps(told))
    log.write_text("\n".join(["not JSON", "{}", '{"half', *lines]))

    usage = usage_of([log])
    assert (usage.operations, usage.first, usage.last) == (1200, "2026-01-01", "2026-01-28")
    assert set(usage.indexes) == {"by-owner"}
    (never,) = [one for one in await findings(served, usage) if one.code is Code.INDEX_NEVER_READ]
    assert (never.subject, never.severity) == ("by-data", Severity.WARNING)
    assert "1,200 operations from 2026-01-01 to 2026-01-28" in never.found

    log.write_text("\n".join(lines[:20]))
    assert ("NOT_EXAMINED", "by-data") in brief(await findings(served, usage_of([log])))


def test_metrics_tell_which_indexes_were_read(tmp_path: Path) -> None:
    metrics = tmp_path / "metrics"
    metrics.write_text(
        "# TYPE tablegraph_dynamodb_requests_total counter\n"
        'tablegraph_dynamodb_requests_total{operation="Query",table="shop",index="by-owner",outcome="ok"} 41.0\n'
        'tablegraph_dynamodb_requests_total{operation="Query",table="shop",index="",outcome="ok"} 7.0\n'
        'tablegraph_dynamodb_requests_created{operation="Query",table="shop",index="by-data",outcome="ok"} 1.7e9\n'
    )
    usage = usage_of([metrics])
    assert (usage.indexes, usage.operations, usage.is_partial) == ({"by-owner": 41}, 48, False)

    metrics.write_text('tablegraph_dynamodb_requests_total{operation="Query",table="other",index=""} 7\n')
    assert usage_of([metrics]).is_partial


async def test_what_follows_a_stream_is_in_no_log(serve: Serve) -> None:
    model = (ROOT / "examples/b2b/schema.graphql").read_text()
    served = await settled(await serve(model.replace('"type")', '"type", copies: STREAM)', 1)))

    never = [one.subject for one in await findings(served, Usage(operations=5000)) if one.code is Code.INDEX_NEVER_READ]

    assert never == []


# --- items --------------------------------------------------------------------------------------------------------


async def test_items_that_are_wrong_are_told_by_what_is_wrong(serve: Serve) -> None:
    served = await settled(await shop(serve))
    await write(
        served,
        item("PERSON#8", "person", kind="Person", number="8", name="Eve", data="adam"),
        item("PERSON#9", "person", kind="Person", number="9", name="Zoe", data="ann"),
        item("SHOP#404", "PERSON#8", kind="Job"),
    )

    found = {one.subject: one for one in await findings(served) if one.code is Code.ITEMS_WRONG}

    assert found["STALE_KEY"].numbers["items"] >= 2
    assert "DANGLING" in found
    assert "`tablegraph repair --only STALE_KEY`" in found["STALE_KEY"].cure
    assert all(one.severity is Severity.SERIOUS for one in found.values())


async def test_items_of_no_type_are_told_by_the_shape_of_their_keys(serve: Serve) -> None:
    served = await settled(await shop(serve))
    await write(served, *(item(f"LEGACY#{number}", f"v{number}") for number in range(12)), item("x", "y"))

    (strangers,) = [one for one in await findings(served) if one.code is Code.ITEMS_OF_NO_TYPE]

    assert strangers.numbers["items"] == 13
    assert strangers.numbers["shapes"] == {"LEGACY#… / v…": 12, "x / y": 1}
    assert strangers.severity is Severity.WARNING


async def test_items_near_400_kb_and_attributes_that_nobody_reads_are_told(serve: Serve) -> None:
    served = await settled(await shop(serve))
    large = [
        item("PERSON#7", "person", kind="Person", number="7", name="Kim", data="kim", junk="x" * 395 * 1024),
        item("PERSON#6", "person", kind="Person", number="6", name="Kai", data="kai", junk="x" * 320 * 1024),
    ]
    await write(served, *large)

    found = {one.code: one for one in await findings(served)}

    assert found[Code.ITEM_TOO_LARGE].severity is Severity.SERIOUS
    assert found[Code.ITEM_TOO_LARGE].numbers["largestBytes"] > 395 * 1024
    assert found[Code.ITEM_LARGE].numbers["items"] == 1
    unread = found[Code.ATTRIBUTES_UNREAD]
    assert "Person.junk" in unread.found
    assert unread.numbers["share"] > 0.9


# --- recorded descriptions: sizes, backups and replicas, which the engine does not have ----------------------------


def told(sdl: str, usage: Usage | None = None, *, refused: frozenset[str] = frozenset(), **also: Any) -> list[Finding]:
    """Examine a table as it was described, without items."""
    target = target_of(sdl)
    table = BigTable(target, [], described(target, **also))
    table.refused = refused

    async def examine() -> list[Finding]:
        examination = Examination(Graph(target.model, table), units=0, usage=usage)
        await examination.look()
        if "DescribeContinuousBackups" not in refused:
            table.backups = "DISABLED"
            again = Examination(Graph(target.model, table), units=0, usage=usage)
            await again.look()
            assert brief(again.findings()) != brief(examination.findings())
            return again.findings()
        return examination.findings()

    return run(examine())


def test_what_an_unused_index_costs_is_told_at_list_price() -> None:
    indexes = [
        {**one, "IndexStatus": "ACTIVE", "IndexSizeBytes": 12_300_000_000, "ItemCount": 4_000_000}
        for one in described(target_of(SHOP))["GlobalSecondaryIndexes"]
    ]

    (unused,) = [one for one in told(SHOP, GlobalSecondaryIndexes=indexes) if one.code is Code.INDEX_UNUSED]

    assert unused.numbers == {"bytes": 12_300_000_000, "items": 4_000_000, "monthlyUsd": 3.075}
    assert "4,000,000 items in 12.3 GB, $3.08 a month for storage (at list price" in unused.found.replace(
        "3.07", "3.08"
    )


def test_backups_protection_and_replicas_are_hints() -> None:
    found = told(SHOP, DeletionProtectionEnabled=False, Replicas=[{"RegionName": "eu-west-1"}])

    hints = [one for one in found if one.severity is Severity.HINT]
    assert [one.code for one in hints] == [Code.BACKUPS_OFF, Code.UNPROTECTED, Code.REPLICATED]
    assert "--point-in-time-recovery-specification" in hints[0].cure
    assert hints[2].numbers == {"regions": ["eu-west-1"]}


def test_a_stream_that_tells_less_is_told() -> None:
    less = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}

    assert ("STREAM_OFF", "") in brief(told(SHOP, StreamSpecification=less))
    followed = SHOP.replace('type: "kind"', 'type: "kind", copies: STREAM')
    assert ("STREAM_DRIFT", "shop") in brief(told(followed, StreamSpecification=less))


def other_key(table: BigTable) -> None:
    table.table["GlobalSecondaryIndexes"][0]["KeySchema"] = [{"AttributeName": "Name", "KeyType": "HASH"}]


def other_type(table: BigTable) -> None:
    definitions = table.table["AttributeDefinitions"]
    table.table["AttributeDefinitions"] = [{**one, "AttributeType": "N"} for one in definitions]


def being_made(table: BigTable) -> None:
    table.table["GlobalSecondaryIndexes"][0] |= {"IndexStatus": "CREATING", "Backfilling": True}


def other_ttl(table: BigTable) -> None:
    table.time_to_live = {"TimeToLiveStatus": "ENABLED", "AttributeName": "old"}


def local_gone(table: BigTable) -> None:
    del table.table["LocalSecondaryIndexes"]


@pytest.mark.parametrize(
    ("sdl", "change", "expected"),
    [
        pytest.param(FLEET, other_key, ("INDEX_DRIFT", "reverse"), id="another-key-of-an-index"),
        pytest.param(FLEET, other_type, ("KEY_DRIFT", "PK"), id="another-type"),
        pytest.param(FLEET, being_made, ("BEING_CHANGED", ""), id="being-made"),
        pytest.param(FLEET, other_ttl, ("TTL_DRIFT", "gone"), id="another-ttl"),
        pytest.param(LOCAL, local_gone, ("INDEX_MISSING", "near-by"), id="a-local-index-is-missing"),
    ],
)
def test_what_cannot_be_changed_is_told_with_its_cure(sdl: str, change: Any, expected: tuple[str, str]) -> None:
    target = target_of(sdl)
    table = BigTable(target, [], described(target))
    change(table)

    async def examine() -> list[Finding]:
        examination = Examination(Graph(target.model, table), units=0)
        await examination.look()
        return examination.findings()

    found = run(examine())

    assert expected in brief(found)
    assert all(one.found and one.cure for one in found)
    assert "TTL_OFF" not in [code for code, _ in brief(found)]


def test_who_may_not_look_is_told_of_what() -> None:
    refused = frozenset(("DescribeContinuousBackups", "DescribeTimeToLive"))

    found = told(FLEET, refused=refused)

    assert {one.subject for one in found if one.code is Code.NOT_EXAMINED} == refused
    assert all("allow dynamodb:" in one.cure for one in found if one.code is Code.NOT_EXAMINED)
    assert all(one.code is not Code.TTL_OFF for one in found)


def test_the_worst_come_first_and_of_a_kind_the_heaviest() -> None:
    def made(code: Code, weight: float = 0.0) -> Finding:
        return Finding(code, "t", f"{weight}", "", "", weight=weight)

    mixed = [made(Code.UNPROTECTED), made(Code.INDEX_UNUSED, 1), made(Code.INDEX_UNUSED, 2), made(Code.KEY_DRIFT)]

    assert [one.subject for one in ranked(mixed)] == ["0.0", "2", "1", "0.0"]
    assert len({one.why for one in Code}) == len(Code)


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def doctor(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `tablegraph doctor` on a table made by `table apply`, and gives the exit code."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    schema = tmp_path / "model.graphql"

    def run_command(sdl: str, *options: str, command: tuple[str, ...] = ("doctor",)) -> int:
        schema.write_text(sdl)
        return main([*command, "--schema", str(schema), "--endpoint-url", engine, *options])

    return run_command


def test_the_command_tells_people_and_programs(doctor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sdl = SHOP.replace('"shop"', '"doctor-shop"', 1)

    assert doctor(sdl) == 1
    missing = capsys.readouterr().out
    assert missing.startswith("SERIOUS TABLE_MISSING doctor-shop: ")
    doctor(sdl, "--yes", command=("table", "apply"))
    capsys.readouterr()
    assert [doctor(sdl), doctor(sdl, "--json", "--sample", "500", "--seed", "7")] == [0, 0]

    out, err = capsys.readouterr()
    text, _, document = out.partition("{")
    assert text.startswith(
        "WARNING INDEX_UNUSED doctor-shop: by-shard\n  found: no relationship, find, lookup or write"
    )
    assert err.startswith("doctor: reads some 1,000 read units at most, 8.2 MB ($0.000125 at list price")
    assert "--seed 7 draws the same sample" in err
    parsed = json.loads("{" + document)
    assert [(one["code"], one["severity"], one["subject"]) for one in parsed["findings"]] == [
        ("INDEX_UNUSED", "WARNING", "by-shard")
    ]
    assert parsed["spent"]["readUnits"] <= 500
    assert (parsed["spent"]["of"], parsed["spent"]["seed"]) == (500, 7)
    assert parsed["tables"][0]["sample"]["isWhole"] is True


def test_without_a_sample_nothing_is_read(doctor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sdl = SHOP.replace('"shop"', '"doctor-unread"', 1)
    doctor(sdl, "--yes", command=("table", "apply"))

    doctor(sdl, "--json", "--sample", "0")

    parsed = json.loads(capsys.readouterr().out.partition("{")[2].join(("{", "")))
    assert (parsed["spent"]["readUnits"], parsed["tables"][0]["sample"]) == (0, None)


def test_what_cannot_be_used_is_refused(doctor: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        doctor(SHOP, "--sample", "many")
    assert doctor(SHOP, "--log", "/nowhere/server.log") == 2
    assert "expected a number of read units from 0 to" in capsys.readouterr().err
