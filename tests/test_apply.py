"""Apply: tables are made and changed to what the model says, step by step, whoever interrupts it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from graph.apply.backfill import Filled
from graph.apply.plan import Drift, Kind, Step, plan, refusals
from graph.apply.run import MOST_TRIES, Done, apply, observe, pauses
from graph.apply.state import State, Target
from graph.errors import RequestRefused, StoreError, TableBusy
from graph.loaders import Graph
from graph.maintenance.walk import Tally
from graph.requests import DescribeTable, DescribeTimeToLive, Scan, UpdateTable
from server.cli import main
from server.demo import turn_on_stream
from tests.clock import run
from tests.conftest import Serve
from tests.shop import FILL, SHOP, brief
from tests.slow_tables import ALL, FLEET, ON, Killed, SlowTable, definition, target_of
from tests.written import stored


@pytest.fixture(scope="module")
def fleet() -> Target:
    return target_of(FLEET)


# --- carried out, slowly ------------------------------------------------------------------------------------------


class Told:
    """Hears how far it is."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.waits: list[str] = []

    def taking(self, step: Step) -> None:
        self.steps.append(step.kind.value)

    def waiting(self, step: Step, why: str, secs: float) -> None:
        self.waits.append(why)

    def moved(self, step: Step, tally: Tally) -> None:
        pass

    def ended(self, step: Step, result: Filled | None) -> None:
        pass


def applied(table: SlowTable, target: Target, *, drop: bool = False, told: Told | None = None) -> Done:
    """Apply a model to a slow table, on a clock on which waiting takes no time."""

    async def main() -> Done:
        return await apply(Graph(target.model, table), target, told or Told(), drop=drop, segments=1)

    return run(main())


def changes(table: SlowTable) -> list[str]:
    """The changes of indexes that were sent, in order."""
    return [
        f"{verb} {change['IndexName']}"
        for request in table.requests
        if isinstance(request, UpdateTable)
        for one in request.parameters()["GlobalSecondaryIndexUpdates"]
        for verb, change in one.items()
    ]


def state_of(table: SlowTable, target: Target) -> State:
    async def main() -> State:
        return await observe(Graph(target.model, table), target)

    return run(main())


@pytest.mark.parametrize("lag", [0, 1, 3])
def test_indexes_are_made_one_at_a_time_and_each_is_waited_for(fleet: Target, lag: int) -> None:
    table, told = SlowTable(definition(fleet), lag), Told()

    done = applied(table, fleet, told=told)

    assert [step.kind.value for step in done.steps] == ["CREATE INDEX"] * 3 + ["BACKFILL", "TTL"]
    assert told.steps == ["CREATE INDEX"] * 3 + ["BACKFILL", "TTL"]
    assert list(dict.fromkeys(changes(table))) == ["Create reverse", "Create by-owner", "Create names"]
    assert any("the index names is CREATING, backfilling" in wait for wait in told.waits)
    # Without delay in what is described nothing is ever asked for too early.
    assert bool(table.refused) is bool(lag)
    assert plan(fleet, state_of(table, fleet)) == ()
    assert table.mark is None


def test_nothing_to_do_is_done_at_once(fleet: Target) -> None:
    table = SlowTable(definition(fleet, *ALL))
    table.time_to_live = dict(ON)

    assert applied(table, fleet).steps == []
    assert [request.operation for request in table.requests] == ["DescribeTable", "DescribeTimeToLive", "GetItem"]


def test_killed_anywhere_the_next_run_ends_it(fleet: Target) -> None:
    whole = SlowTable(definition(fleet, "reverse"))
    applied(whole, fleet)

    for kill_at in range(len(whole.requests)):
        table = SlowTable(definition(fleet, "reverse"))
        table.kill_at = kill_at
        with pytest.raises(Killed):
            applied(table, fleet)
        applied(table, fleet)

        assert plan(fleet, state_of(table, fleet)) == ()
        assert table.mark is None
        # Items are filled in when both indexes are there.
        made = max(number for number, one in enumerate(table.requests) if isinstance(one, UpdateTable))
        assert any(isinstance(request, Scan) for request in table.requests[made:])


def test_a_missing_table_is_made_and_waited_for(fleet: Target) -> None:
    table = SlowTable(lag=2)

    done = applied(table, fleet)

    assert [step.kind for step in done.steps] == [Kind.CREATE_TABLE, Kind.TTL]
    assert plan(fleet, state_of(table, fleet)) == ()
    assert table.mark is None


@pytest.mark.parametrize("lag", [0, 2])
def test_stream_is_turned_on_and_waited_for(fleet: Target, lag: int) -> None:
    made = definition(fleet, "reverse", "names")
    del made["StreamSpecification"]
    table = SlowTable(made, lag)
    table.time_to_live = dict(ON)

    done = applied(table, fleet)

    assert [step.kind for step in done.steps] == [Kind.CREATE_INDEX, Kind.BACKFILL, Kind.STREAM]
    assert plan(fleet, state_of(table, fleet)) == ()


def test_what_others_have_begun_is_waited_for(fleet: Target) -> None:
    table, told = SlowTable(definition(fleet, *ALL)), Told()
    assert table.table is not None
    del table.table["GlobalSecondaryIndexes"][1]
    (create, *_) = plan(fleet, State(table.table))
    assert create.request is not None
    table._answer(create.request)

    done = applied(table, fleet, told=told)

    assert [step.kind for step in done.steps] == [Kind.TTL]
    assert table.refused == []
    assert told.waits[0].startswith("the table is UPDATING and the index by-owner is CREATING")


def test_an_old_index_goes_only_when_the_servers_have_been_switched(fleet: Target) -> None:
    made = definition(fleet, "reverse", "by-owner")
    made["GlobalSecondaryIndexes"].append({**made["GlobalSecondaryIndexes"][0], "IndexName": "old"})
    table = SlowTable(made)

    first = applied(table, fleet, drop=True)
    second = applied(table, fleet, drop=True)

    assert [step.kind for step in first.steps] == [Kind.CREATE_INDEX, Kind.BACKFILL, Kind.TTL]
    assert [step.kind for step in first.rest] == [Kind.SWITCH, Kind.DROP_INDEX]
    assert ([step.kind for step in second.steps], second.rest) == ([Kind.DROP_INDEX], ())
    assert changes(table) == ["Create names", "Delete old"]
    assert table.refused == []


def test_a_ttl_that_is_being_turned_off_is_waited_for(fleet: Target) -> None:
    table = SlowTable(definition(fleet, *ALL))
    table.time_to_live = {"TimeToLiveStatus": "DISABLING", "AttributeName": "gone"}

    class Patient(Told):
        def waiting(self, step: Step, why: str, secs: float) -> None:
            super().waiting(step, why, secs)
            if secs > 1800:
                table.time_to_live = {"TimeToLiveStatus": "DISABLED"}

    assert [step.kind for step in applied(table, fleet, told=Patient()).steps] == [Kind.TTL]
    assert table.refused == []


@pytest.mark.parametrize("error", [RequestRefused, StoreError])
def test_what_dynamodb_does_not_take_is_told_in_the_end(fleet: Target, error: type[StoreError]) -> None:
    class Stubborn(SlowTable):
        def _update(self, updates: list[dict[str, Any]]) -> None:
            if error is RequestRefused:
                raise RequestRefused("ValidationException: no")

    table = Stubborn(definition(fleet, "reverse", "names"))

    with pytest.raises(error, match=r"ValidationException: no|never shows it"):
        applied(table, fleet)

    assert len(changes(table)) == 6


def test_a_busy_account_is_waited_for(fleet: Target) -> None:
    class Busy(SlowTable):
        busy = 20

        def _update(self, updates: list[dict[str, Any]]) -> None:
            self.busy -= 1
            if self.busy >= 0:
                raise TableBusy("ResourceInUseException")
            super()._update(updates)

    table = Busy(definition(fleet, "reverse", "names"))

    assert [step.kind for step in applied(table, fleet).steps] == [Kind.CREATE_INDEX, Kind.BACKFILL, Kind.TTL]
    assert changes(table) == ["Create by-owner"] * 21


def test_why_a_step_has_to_wait_is_told(fleet: Target) -> None:
    class Full(SlowTable):
        def _update(self, updates: list[dict[str, Any]]) -> None:
            raise TableBusy("ResourceInUseException: another table")

    told = Told()

    with pytest.raises(TableBusy):
        applied(Full(definition(fleet, "reverse", "names")), fleet, told=told)

    assert told.waits == ["ResourceInUseException: another table"] * (MOST_TRIES[TableBusy] - 1)


def test_pauses_grow_to_ten_seconds() -> None:
    found = pauses()
    first = [next(found) for _ in range(20)]

    assert first == sorted(first)
    assert (first[0], first[-1]) == (0.2, 10.0)


# --- on the engine ------------------------------------------------------------------------------------------------


async def test_an_index_that_comes_later_is_filled_as_mutations_would_have(serve: Serve) -> None:
    served = await serve(SHOP)
    await served.data(FILL)
    clean = await stored(served)
    target, told = Target(served.graph.model, served.graph.model.tables[served.table], served.table), Told()
    for name in ("by-data", "by-owner", "by-shard"):
        await served.graph.send(
            UpdateTable(served.table, {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]})
        )
    bare = [{name: value for name, value in one.items() if name not in ("data", "shard")} for one in clean.values()]
    await served.put(bare)
    assert len(await stored(served)) == len(clean)
    await turn_on_stream(served.graph, served.table)

    done = await apply(served.graph, target, told)

    assert told.steps == ["CREATE INDEX"] * 3 + ["BACKFILL"]
    assert (done.filled.mended > 0, done.filled.left) == (True, 0)
    assert await brief(served) == []
    assert _unsharded(await stored(served)) == _unsharded(clean)
    assert (await apply(served.graph, target, told)).steps == []


def _unsharded(items: Any) -> Any:
    return {key: {name: value for name, value in one.items() if name != "shard"} for key, one in items.items()}


async def test_table_without_a_stream_gets_one(serve: Serve) -> None:
    served = await serve(SHOP)
    target, told = Target(served.graph.model, served.graph.model.tables[served.table], served.table), Told()
    await apply(served.graph, target, told)

    assert told.steps == ["STREAM"]
    described = (await served.graph.send(DescribeTable(served.table)))["Table"]
    assert described["StreamSpecification"] == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert (await apply(served.graph, target, told)).steps == []


async def test_a_backfill_changes_the_attributes_of_its_indexes_alone(serve: Serve) -> None:
    served = await serve(SHOP)
    await served.data(FILL)
    clean = await stored(served)
    target = Target(served.graph.model, served.graph.model.tables[served.table], served.table)
    await served.graph.send(
        UpdateTable(served.table, {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-owner"}}]})
    )
    wrong = {**clean["SHOP#1", "shop"], "data": {"S": "x"}, "kind": {"S": "Job"}, "staff": {"N": "9"}}
    await served.put([wrong])
    before = await stored(served)

    await apply(served.graph, target, Told())

    assert await stored(served) == before


async def test_a_table_whose_keys_are_numbers_is_backfilled_as_well(serve: Serve) -> None:
    sdl = """extend schema @table(name: "numbers", partitionKey: "id")
      @index(name: "by-name", partitionKey: "name-key")
    type Part @node(partition: "{number}") @indexed(by: "by-name", partition: "{name:lower}") {
      number: Int!
      name: String!
    }"""
    served = await serve(sdl)
    target = Target(served.graph.model, served.graph.model.tables[served.table], served.table)
    drop = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-name"}}]}
    await served.graph.send(UpdateTable(served.table, drop))
    await served.put([{"id": {"N": "1"}, "name": {"S": "Bolt"}}])

    done = await apply(served.graph, target, Told())

    assert (done.filled.mended, done.filled.left) == (1, 0)
    assert await stored(served) == {("1",): {"id": {"N": "1"}, "name": {"S": "Bolt"}, "name-key": {"S": "bolt"}}}


async def test_ttl_is_turned_on_for_a_table_that_is_there(serve: Serve) -> None:
    served = await serve(FLEET)
    target = Target(served.graph.model, served.graph.model.tables[served.table], served.table)
    await turn_on_stream(served.graph, served.table)

    done = await apply(served.graph, target, Told())

    assert [step.kind for step in done.steps] == [Kind.TTL]
    told = (await served.graph.send(DescribeTimeToLive(served.table)))["TimeToLiveDescription"]
    assert told == {"TimeToLiveStatus": "ENABLED", "AttributeName": "gone"}


async def test_an_index_that_others_have_made_is_filled_when_asked_for(serve: Serve) -> None:
    served = await serve(SHOP)
    await served.data(FILL)
    clean = await stored(served)
    target = Target(served.graph.model, served.graph.model.tables[served.table], served.table)
    await turn_on_stream(served.graph, served.table)
    await served.put([{name: value for name, value in one.items() if name != "data"} for one in clean.values()])

    # It is there, so that nothing is due by itself.
    assert (await apply(served.graph, target, Told())).steps == []
    done = await apply(served.graph, target, Told(), fill=("by-data",))

    assert [step.kind for step in done.steps] == [Kind.BACKFILL]
    assert await brief(served) == []
    assert await stored(served) == clean
    assert (await apply(served.graph, target, Told())).steps == []


async def test_a_table_of_another_key_is_refused_and_not_read(serve: Serve) -> None:
    keyed = SHOP.replace('partitionKey: "pk", sortKey: "sk"', 'partitionKey: "id", sortKey: "pk"')
    served = await serve(SHOP, table=(await serve(keyed)).table)
    target = Target(served.graph.model, served.graph.model.tables[served.table], served.table)

    (key, *_) = refusals(target, await observe(served.graph, target))

    assert key.drift is Drift.KEY


# --- the command --------------------------------------------------------------------------------------------------


@pytest.fixture
def command(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs `tablegraph table apply` over a model of the test's own tables, and gives the exit code."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    schema = tmp_path / "model.graphql"

    def run_command(sdl: str, *options: str, what: str = "apply") -> int:
        schema.write_text(sdl)
        return main(["table", what, "--schema", str(schema), "--endpoint-url", engine, *options])

    return run_command


def test_without_yes_the_plan_is_only_shown(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sdl = FLEET.replace('"fleet"', '"apply-command"')

    assert [command(sdl), command(sdl, "--yes"), command(sdl)] == [0, 0, 0]

    out = capsys.readouterr().out
    assert out.count("1. CREATE TABLE apply-command (PK and SK) with reverse, by-owner, names: there is none") == 2
    assert out.count("Nothing has been done. To carry it out: tablegraph table apply --yes") == 1
    assert out.endswith("apply-command: nothing to do, it is as the model says\n")


def test_plan_shows_and_apply_fills_what_is_asked_for(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sdl = FLEET.replace('"fleet"', '"apply-filled"')
    command(sdl, "--yes")
    capsys.readouterr()

    assert [command(sdl, "--fill", "names", what="plan"), command(sdl, "--fill", "names", "--yes")] == [0, 0]
    assert command(sdl, "--fill", "reverse") == 2

    out, err = capsys.readouterr()
    assert out.count("1. BACKFILL Name: an earlier apply did not finish it, or --fill asks for it") == 2
    assert err.count("BACKFILL Name is done: 0 attributes written") == 1
    assert "expected an index of the model whose key is not all of the table's, got 'reverse'" in err
    with pytest.raises(SystemExit):
        command(sdl, "--yes", what="plan")


def test_what_cannot_be_changed_ends_with_1_before_anything_is_done(
    command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sdl = FLEET.replace('"fleet"', '"apply-refused"').replace('  @index(name: "reverse"', '  # @index(name: "reverse"')
    command(sdl, "--yes")

    other = sdl.replace("# @index", "@index").replace('"names", partitionKey: "Name"', '"names", partitionKey: "SK"')
    code = command(other.replace('  @indexed(by: "names", partition: "{name:lower}")', ""), "--yes")

    assert code == 1
    assert "this cannot be changed, and nothing has been done:\n  the index `names`" in capsys.readouterr().err
    assert command(sdl, "--drop") == 0
    assert "nothing to do" in capsys.readouterr().out


def test_a_period_makes_the_table_of_a_time_series(command: Any, capsys: pytest.CaptureFixture[str]) -> None:
    sdl = """extend schema @table(name: "apply-{day:yyyyMM}-log", partitionKey: "PK")
type Line @node(partition: "{day}") { day: Date! }"""

    assert [command(sdl, "--yes"), command(sdl, "--yes", "--period", "202601")] == [0, 0]
    assert command(sdl, "--period", "2026") == 2

    out, err = capsys.readouterr()
    assert out.startswith("apply-{day:yyyyMM}-log: left alone, a time series; --period yyyyMM makes the table of one\n")
    assert "apply-202601-log: CREATE TABLE apply-202601-log (PK) is done" in err
    assert "--period: expected yyyyMM" in err
