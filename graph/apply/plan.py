"""The plan: from what the model says and what is there, the steps that are left, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from graph.apply.state import SETTLED, Described, State, Target
from graph.model import CopyMode, Index, Projection
from graph.requests import CreateTable, UpdateTable, UpdateTimeToLive
from graph.tables import (
    STREAM,
    described_keys,
    has_stream,
    index_definition,
    key_names,
    key_type,
    keys_of,
    lasting_table,
    not_projected,
    shown_keys,
    shown_stream,
)

ENABLED = ("ENABLED", "ENABLING")


class Kind(Enum):
    """What a step does, in the words of the plan."""

    WAIT = "WAIT"
    CREATE_TABLE = "CREATE TABLE"
    CREATE_INDEX = "CREATE INDEX"
    BACKFILL = "BACKFILL"
    TTL = "TTL"
    STREAM = "STREAM"
    SWITCH = "SWITCH"
    DROP_INDEX = "DROP INDEX"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it does to what, why, and the request that does it, if it is one request."""

    kind: Kind
    table: str
    subject: str
    reason: str
    request: CreateTable | UpdateTable | UpdateTimeToLive | None = None
    index: str | None = None

    def line(self) -> str:
        """Write the step on one line of the plan."""
        return f"{' '.join(filter(None, (self.kind.value, self.subject)))}: {self.reason}"


class Drift(Enum):
    """In what a table differs from the model so that no step can change it."""

    STATUS = "it is no longer there, or cannot be changed now"
    KEY = "the key of the table"
    KEY_TYPE = "the type of a key attribute"
    LOCAL_INDEX = "a local index is missing"
    INDEX = "the key of an index, or whether it is a local one"
    PROJECTION = "what an index holds"
    STREAM_VIEW = "what the stream tells"
    TTL_ATTRIBUTE = "by what attribute items expire"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that DynamoDB lets nobody change, and in `text` what to do instead."""

    drift: Drift
    subject: str
    text: str


def plan(target: Target, state: State, *, drop: bool = False) -> tuple[Step, ...]:
    """List the steps that make a table what the model says, each of which DynamoDB takes once those before it are done.

    Everything follows from what is there: carried out in part, the plan made anew is the rest of it.
    """
    if state.table is None:
        return (_create_table(target), *_expire(target, state))
    creating = list(_create_indexes(target, state))
    filling = list(_backfill(target, state, creating))
    is_new = bool(creating or filling) or any(
        state.indexes[name].get("IndexStatus") == "CREATING" for name in target.index_names
    )
    return (
        *_wait(target, state),
        *creating,
        *filling,
        *_expire(target, state),
        *_stream(target, state),
        *(_drop(target, state, is_new=is_new) if drop else ()),
    )


def unnamed(target: Target, state: State) -> list[str]:
    """List the global indexes that the model does not name."""
    named = {index.name for index in target.table.indexes}
    return [name for name in state.indexes if name not in named | state.local_indexes]


def filled(target: Target, names: Iterable[str]) -> list[str]:
    """List the attributes of these indexes that items may lack: those that are in no primary key."""
    wanted = [index for index in target.table.indexes if index.name in {*names}]
    attributes = dict.fromkeys(name for index in wanted for name in index.key_attributes)
    return [name for name in attributes if name not in target.table.key_attributes]


# --- steps --------------------------------------------------------------------------------------------------------


def _wait(target: Target, state: State) -> Iterator[Step]:
    if busy := list(state.under_way()):
        yield Step(Kind.WAIT, target.name, "", f"{' and '.join(busy)}, and DynamoDB takes one change at a time")


def _create_table(target: Target) -> Step:
    indexes = [index.name or "" for index in target.table.indexes]
    held = f" with {', '.join(indexes)}" if indexes else ""
    subject = f"{target.name} ({shown_keys(keys_of(target.table.primary))}){held}"
    return Step(
        Kind.CREATE_TABLE,
        target.name,
        subject,
        "there is none; billed by request, stream of new and old images, protected from being deleted",
        lasting_table(target.model, target.table, target.name),
    )


def _create_indexes(target: Target, state: State) -> Iterator[Step]:
    for index in target.table.indexes:
        if index.name not in state.indexes:
            subject = f"{index.name} ({shown_keys(keys_of(index))}; {_held(index)})"
            request = UpdateTable(target.name, _creation(target, state, index))
            yield Step(
                Kind.CREATE_INDEX,
                target.name,
                subject,
                "the model names it, and the table has none",
                request,
                index.name,
            )


def _held(index: Index) -> str:
    if isinstance(index.projection, Projection):
        return index.projection.value
    return ", ".join(sorted(index.projection))


def _creation(target: Target, state: State, index: Index) -> dict[str, Any]:
    """Write what UpdateTable is told of a new index: its key attributes alone need a type."""
    types = [
        {"AttributeName": name, "AttributeType": key_type(target.model, target.table, name)}
        for name in index.key_attributes
    ]
    create = index_definition(target.table, index) | _throughput(state)
    return {"AttributeDefinitions": types, "GlobalSecondaryIndexUpdates": [{"Create": create}]}


def _throughput(state: State) -> dict[str, Any]:
    """Give a new index the capacity of its table, where capacity is provisioned: there DynamoDB demands one."""
    described = (state.table or {}).get("ProvisionedThroughput") or {}
    wanted = {name: described.get(name, 0) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}
    return {"ProvisionedThroughput": wanted} if all(wanted.values()) else {}


def _backfill(target: Target, state: State, creating: Iterable[Step]) -> Iterator[Step]:
    fresh = [step.index for step in creating if step.index is not None]
    names = [*fresh, *(name for name in state.due if name not in fresh)]
    if attributes := filled(target, names):
        count = (state.table or {}).get("ItemCount", 0)
        unfinished = "an earlier apply did not finish it, or --fill asks for it"
        why = "items that are there lack what the templates make" if fresh else unfinished
        yield Step(Kind.BACKFILL, target.name, ", ".join(attributes), f"{why}; scans the table, some {count:,} items")


def _expire(target: Target, state: State) -> Iterator[Step]:
    if target.expiry is not None and state.time_to_live.get("TimeToLiveStatus") not in ENABLED:
        reason = "the model has @ttl, and DynamoDB deletes nothing yet"
        yield Step(Kind.TTL, target.name, target.expiry, reason, UpdateTimeToLive(target.name, target.expiry))


def _stream(target: Target, state: State) -> Iterator[Step]:
    specification = (state.table or {}).get("StreamSpecification") or {}
    # One that tells less is somebody else's, and is left alone.
    if not specification.get("StreamEnabled"):
        request = UpdateTable(target.name, {"StreamSpecification": STREAM})
        reason = "the table has none, and what follows its changes reads it; of new and old images"
        yield Step(Kind.STREAM, target.name, "", reason, request)


def _drop(target: Target, state: State, *, is_new: bool) -> Iterator[Step]:
    names = unnamed(target, state)
    if names and is_new:
        yield Step(
            Kind.SWITCH,
            target.name,
            "",
            "by hand: have every server run this model, and then run the same command again for what follows",
        )
    for name in names:
        request = UpdateTable(target.name, {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}]})
        yield Step(Kind.DROP_INDEX, target.name, name, "the model does not name it", request, name)


# --- what no step can change --------------------------------------------------------------------------------------


def refusals(target: Target, state: State) -> Iterator[Refusal]:
    """Say what DynamoDB lets nobody change in the table, and what to do instead."""
    if state.table is None:
        return
    if state.table["TableStatus"] not in SETTLED:
        status = state.table["TableStatus"]
        yield Refusal(
            Drift.STATUS,
            target.name,
            f"the table `{target.name}` is {status}: run this again when it is ACTIVE, or is gone",
        )
        return
    yield from _refused_keys(target, state.table)
    yield from _refused_stream(target, state.table)
    for index in target.table.indexes:
        found = state.indexes.get(index.name or "")
        if found is not None:
            yield from _refused_index(target, state, index, found)
        elif index.local:
            yield Refusal(
                Drift.LOCAL_INDEX,
                index.name or "",
                f"the table `{target.name}` has no local index `{index.name}`, and one is made only together with its "
                f"table. Make it a global one, @index without local: true, or {_another_table(target)}",
            )
    yield from _refused_expiry(target, state)


def _refused_keys(target: Target, described: Described) -> Iterator[Refusal]:
    keys, wanted = described_keys(described), keys_of(target.table.primary)
    if keys != wanted:
        yield Refusal(
            Drift.KEY,
            target.name,
            f"the key of the table `{target.name}` is {shown_keys(keys)}, and the model says {shown_keys(wanted)}: the "
            f"key of a table is fixed. Mend @table(partitionKey: …, sortKey: …), or {_another_table(target)}",
        )
    for attribute in described["AttributeDefinitions"]:
        name, is_type = attribute["AttributeName"], attribute["AttributeType"]
        made = key_type(target.model, target.table, name)
        if name in key_names(target.table) and is_type != made:
            yield Refusal(
                Drift.KEY_TYPE,
                name,
                f"the key attribute `{name}` of the table `{target.name}` is of type {is_type}, and the model makes it "
                f"of type {made}: the type of a key attribute is fixed. Mend the template (one numeric field alone "
                "makes N, any other S), or put the key into an attribute of another name",
            )


def _refused_stream(target: Target, described: Described) -> Iterator[Refusal]:
    is_on = (described.get("StreamSpecification") or {}).get("StreamEnabled", False)
    if target.table.copies is CopyMode.STREAM and is_on and not has_stream(described):
        yield Refusal(
            Drift.STREAM_VIEW,
            target.name,
            f"the table `{target.name}` has {shown_stream(described)}, and by @table(copies: STREAM) its copies follow "
            "one of new and old images: what a stream tells is fixed. Turn it off with UpdateTable once nobody reads "
            "it, and run this again, which turns the other one on",
        )


def _another_table(target: Target) -> str:
    return (
        f"move to a new table: `tablegraph export` from `{target.name}`, a new name in @table(name: …), `tablegraph "
        "apply`, and `tablegraph load`"
    )


def _refused_index(target: Target, state: State, index: Index, found: Described) -> Iterator[Refusal]:
    keys, wanted = described_keys(found), keys_of(index)
    if (index.name in state.local_indexes) is not index.local:
        kinds = ("a global", "a local")
        is_, says = kinds[not index.local], kinds[index.local]
        yield Refusal(
            Drift.INDEX,
            index.name or "",
            f"the index `{index.name}` of `{target.name}` is {is_} one, and the model says {says} one: mend local: …",
        )
    elif keys != wanted:
        what = f"has the key {shown_keys(keys)}, and the model says {shown_keys(wanted)}: the key of an index is fixed"
        yield Refusal(
            Drift.INDEX,
            index.name or "",
            f"the index `{index.name}` of `{target.name}` {what}. {_replacement(target, index)}",
        )
    elif lacking := not_projected(target.table, index, found["Projection"]):
        what = f"does not hold {lacking}, as the model says: what an index holds is fixed"
        yield Refusal(
            Drift.PROJECTION,
            index.name or "",
            f"the index `{index.name}` of `{target.name}` {what}. {_replacement(target, index)}",
        )


def _replacement(target: Target, index: Index) -> str:
    """Tell how an index is replaced, while what runs goes on to use the old one."""
    if index.local:
        return f"Mend @index, or {_another_table(target)}"
    new = f"{index.name}-2"
    return "\n".join(
        (
            "Replace it by another one:",
            f"  1. name the index `{new}` in the model: @index(name: …), @indexed(by: …)",
            f"  2. `tablegraph table apply --yes` creates `{new}` and backfills it; servers of the former model go on "
            f"to use `{index.name}`",
            "  3. switch: have every server run the model that has it",
            f"  4. `tablegraph table apply --drop --yes` drops `{index.name}`",
        )
    )


def _refused_expiry(target: Target, state: State) -> Iterator[Refusal]:
    found, wanted = state.time_to_live.get("AttributeName"), target.expiry
    if wanted is not None and found not in (None, wanted) and state.time_to_live["TimeToLiveStatus"] in ENABLED:
        yield Refusal(
            Drift.TTL_ATTRIBUTE,
            wanted,
            f"the items of `{target.name}` expire by the attribute `{found}`, and the model says `{wanted}`: DynamoDB "
            f'has one for a table. Mend @attribute(name: "{found}") at the field with @ttl, or turn the TTL off with '
            "UpdateTimeToLive, and run this again an hour later",
        )
