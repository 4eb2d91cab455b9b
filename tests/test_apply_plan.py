"""The plan of apply: what is left to be done to a table, and what cannot be done to it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from graph.apply.plan import Kind, plan, refusals
from graph.apply.state import State, Target, targets
from graph.errors import InputError
from graph.requests import CreateTable, UpdateTable
from graph.tables import create_table
from resolvers.sdl import compile_model
from tests.conftest import ROOT
from tests.slow_tables import ALL, FLEET, ON, described, target_of


@pytest.fixture(scope="module")
def fleet() -> Target:
    return target_of(FLEET)


def lines(target: Target, state: State, *, drop: bool = False) -> list[str]:
    """The plan without its reasons."""
    return [step.line().split(": ")[0] for step in plan(target, state, drop=drop)]


# --- the plan -----------------------------------------------------------------------------------------------------


def test_a_table_that_is_missing_is_made_with_its_stream_and_its_ttl(fleet: Target) -> None:
    create, ttl = plan(fleet, State())

    assert isinstance(create.request, CreateTable)
    made = create.request.parameters()
    assert made.pop("StreamSpecification") == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert made.pop("DeletionProtectionEnabled") is True
    assert made == create_table(fleet.model, fleet.table).parameters()
    assert made["BillingMode"] == "PAY_PER_REQUEST"
    assert ttl.line() == "TTL gone: the model has @ttl, and DynamoDB deletes nothing yet"
    assert ttl.request is not None
    assert ttl.request.parameters() == {
        "TableName": "fleet",
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "gone"},
    }


def test_a_table_as_the_model_says_has_no_steps(fleet: Target) -> None:
    assert plan(fleet, State(described(fleet, *ALL), ON), drop=True) == ()
    assert list(refusals(fleet, State(described(fleet, *ALL), ON))) == []


def test_each_index_has_an_update_of_its_own_and_the_backfill_follows_them(fleet: Target) -> None:
    steps = plan(fleet, State(described(fleet), ON))

    assert [step.line() for step in steps] == [
        "CREATE INDEX reverse (SK and PK; ALL): the model names it, and the table has none",
        "CREATE INDEX by-owner (Owner and Number; ALL): the model names it, and the table has none",
        "CREATE INDEX names (Name; Size): the model names it, and the table has none",
        "BACKFILL Owner, Number, Name: items that are there lack what the templates make; "
        "scans the table, some 7 items",
    ]
    assert steps[1].request == UpdateTable(
        "fleet",
        {
            "AttributeDefinitions": [
                {"AttributeName": "Owner", "AttributeType": "S"},
                {"AttributeName": "Number", "AttributeType": "N"},
            ],
            "GlobalSecondaryIndexUpdates": [
                {
                    "Create": {
                        "IndexName": "by-owner",
                        "KeySchema": [
                            {"AttributeName": "Owner", "KeyType": "HASH"},
                            {"AttributeName": "Number", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                }
            ],
        },
    )


def test_a_stream_is_turned_on_and_one_that_tells_less_is_left_to_whoever_reads_it(fleet: Target) -> None:
    off = {"StreamSpecification": {"StreamEnabled": False}}
    other = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}}
    (step,) = plan(fleet, State(described(fleet, *ALL, **off), ON))

    assert step.line().startswith("STREAM: the table has none")
    assert step.request == UpdateTable(
        "fleet", {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}
    )
    assert plan(fleet, State(described(fleet, *ALL, **other), ON)) == ()


def test_an_index_over_the_primary_key_needs_no_backfill(fleet: Target) -> None:
    assert lines(fleet, State(described(fleet, "by-owner", "names"), ON)) == ["CREATE INDEX reverse (SK and PK; ALL)"]


def test_an_index_of_a_provisioned_table_gets_its_capacity(fleet: Target) -> None:
    capacity = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6, "NumberOfDecreasesToday": 0}
    state = State(described(fleet, "reverse", "names", ProvisionedThroughput=capacity), ON)

    request = plan(fleet, state)[0].request

    assert request is not None
    (change,) = request.parameters()["GlobalSecondaryIndexUpdates"]
    assert change["Create"]["ProvisionedThroughput"] == {"ReadCapacityUnits": 5, "WriteCapacityUnits": 6}


def test_a_backfill_that_was_not_finished_is_due(fleet: Target) -> None:
    (step,) = plan(fleet, State(described(fleet, *ALL), ON, due=("names", "of-another-model")))

    assert step.line() == (
        "BACKFILL Name: an earlier apply did not finish it, or --fill asks for it; scans the table, some 7 items"
    )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param({"TableStatus": "CREATING"}, "the table is CREATING", id="a-table-that-is-being-made"),
        pytest.param({"TableStatus": "UPDATING"}, "the table is UPDATING", id="a-table-that-is-being-changed"),
    ],
)
def test_what_is_under_way_is_waited_for_first(fleet: Target, change: dict[str, str], reason: str) -> None:
    first, second, *_ = plan(fleet, State({**described(fleet, "reverse", "names"), **change}, ON))

    assert (first.kind, first.reason.split(",")[0]) == (Kind.WAIT, reason)
    assert second.kind is Kind.CREATE_INDEX


@pytest.mark.parametrize(
    ("status", "is_filling", "expected"),
    [
        pytest.param("CREATING", False, ["WAIT"], id="allocating"),
        pytest.param("CREATING", True, ["WAIT"], id="backfilling"),
        pytest.param("UPDATING", True, ["WAIT"], id="its-capacity-raised-meanwhile"),
        pytest.param("ACTIVE", True, ["WAIT"], id="not-yet-filled"),
        pytest.param("DELETING", False, ["WAIT", "CREATE INDEX names (Name; Size)", "BACKFILL Name"], id="deleting"),
    ],
)
def test_an_index_is_there_when_it_is_active_and_filled(
    fleet: Target, status: str, is_filling: bool, expected: list[str]
) -> None:
    table = described(fleet, *ALL)
    table["GlobalSecondaryIndexes"][2] |= {"IndexStatus": status, "Backfilling": is_filling}

    assert lines(fleet, State(table, ON)) == expected


def test_an_index_that_the_model_does_not_name_goes_only_when_told(fleet: Target) -> None:
    table = described(fleet, *ALL)
    table["GlobalSecondaryIndexes"].append({**table["GlobalSecondaryIndexes"][0], "IndexName": "old"})

    assert plan(fleet, State(table, ON)) == ()
    (step,) = plan(fleet, State(table, ON), drop=True)
    assert step.line() == "DROP INDEX old: the model does not name it"
    assert step.request == UpdateTable("fleet", {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "old"}}]})


@pytest.mark.parametrize(
    ("ttl", "expected"),
    [
        pytest.param({"TimeToLiveStatus": "DISABLED"}, ["TTL gone"], id="disabled"),
        pytest.param({"TimeToLiveStatus": "DISABLING", "AttributeName": "gone"}, ["TTL gone"], id="disabling"),
        pytest.param({"TimeToLiveStatus": "ENABLING", "AttributeName": "gone"}, [], id="enabling"),
        pytest.param(ON, [], id="enabled"),
    ],
)
def test_ttl_is_turned_on_where_it_is_off(fleet: Target, ttl: dict[str, str], expected: list[str]) -> None:
    assert lines(fleet, State(described(fleet, *ALL), ttl)) == expected


def test_the_table_of_a_period_is_made_by_its_name() -> None:
    model = compile_model((ROOT / "examples/step5/schema.graphql").read_text())

    assert [one.name for one in targets(model, "202601")][-1] == "readings_202601"
    assert all(one.table.period is None for one in targets(model, None))
    for wrong in ("2026-01", "20261", "202613", "2026"):
        with pytest.raises(InputError, match=f"^--period: expected yyyyMM, as the table's name says, got '{wrong}'"):
            targets(model, wrong)
    with pytest.raises(InputError, match="a time series in the model"):
        targets(compile_model(FLEET), "202601")


# --- what cannot be changed ---------------------------------------------------------------------------------------


def other_key(table: dict[str, Any]) -> None:
    table["KeySchema"] = [{"AttributeName": "id", "KeyType": "HASH"}]


def other_type(table: dict[str, Any]) -> None:
    table["AttributeDefinitions"].append({"AttributeName": "Owner", "AttributeType": "B"})


def other_index_key(table: dict[str, Any]) -> None:
    table["GlobalSecondaryIndexes"][2]["KeySchema"] = [{"AttributeName": "Title", "KeyType": "HASH"}]


def other_projection(table: dict[str, Any]) -> None:
    table["GlobalSecondaryIndexes"][1]["Projection"] = {"ProjectionType": "KEYS_ONLY"}


def a_local_one(table: dict[str, Any]) -> None:
    table["LocalSecondaryIndexes"] = [table["GlobalSecondaryIndexes"].pop(0)]


def archived(table: dict[str, Any]) -> None:
    table["TableStatus"] = "ARCHIVED"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(other_key, r"the key of the table `fleet` is id, .* says PK and SK: the key of a table is fixed\."
                     r" .*`tablegraph export` from `fleet`", id="another-key"),
        pytest.param(other_type, r"`Owner` of the table `fleet` is of type B, .* of type S: .* fixed\. Mend "
                     "the template", id="another-type"),
        pytest.param(other_index_key, r"(?s)`names` of `fleet` has the key Title, .* says Name: the key of an index is "
                     r"fixed\. .* 1\. .*`names-2`.* 2\. .*--yes.* 3\. switch.* 4\. `tablegraph table apply --drop "
                     "--yes` drops", id="another-key-of-an-index"),
        pytest.param(other_projection, r"(?s)`by-owner` of `fleet` does not hold all attributes, .*`by-owner-2`",
                     id="an-index-that-holds-less"),
        pytest.param(a_local_one, "`reverse` of `fleet` is a local one, and the model says a global one",
                     id="a-local-one"),
        pytest.param(archived, "the table `fleet` is ARCHIVED: run this again when it is ACTIVE", id="archived"),
    ],
)  # fmt: skip
def test_what_cannot_be_changed_is_told_with_its_cure(fleet: Target, change: Any, expected: str) -> None:
    table = described(fleet, *ALL)
    change(table)

    (found,) = refusals(fleet, State(table, ON))

    assert re.search(expected, found.text), found


def test_a_local_index_is_made_with_its_table_or_never() -> None:
    index, use = 'partitionKey: "PK", sortKey: "Name", local: true, proj', '"names", sort: "{name'
    sdl = FLEET.replace('partitionKey: "Name", proj', index).replace('"names", partition: "{name', use)
    target = target_of(sdl)
    table = described(target, *ALL)
    del table["LocalSecondaryIndexes"]

    (found,) = refusals(target, State(table, ON))

    assert (
        "has no local index `names`, and one is made only together with its table. Make it a global one" in found.text
    )


def test_another_ttl_attribute_is_not_taken_over(fleet: Target) -> None:
    (found,) = refusals(fleet, State(described(fleet, *ALL), {"TimeToLiveStatus": "ENABLED", "AttributeName": "old"}))

    assert "expire by the attribute `old`, and the model says `gone`" in found.text
    assert 'Mend @attribute(name: "old")' in found.text


# --- copies by stream ---------------------------------------------------------------------------------------------


def test_copies_do_not_follow_by_a_stream_that_tells_less() -> None:
    target = target_of(FLEET.replace('sortKey: "SK")', 'sortKey: "SK", copies: STREAM)', 1))
    table = described(target, *ALL)

    other = State({**table, "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}, ON)

    (refused,) = refusals(target, other)
    assert refused.text.startswith("the table `fleet` has a stream of NEW_IMAGE, and by @table(copies: STREAM)")
    assert list(refusals(target, State({**table, "StreamSpecification": {"StreamEnabled": False}}, ON))) == []
