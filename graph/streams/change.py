"""Changes: what the stream tells of one write, as items and as values of their types."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from graph.entity import Entity, read_entity
from graph.model import Model, Table
from graph.ours import is_ours
from graph.requests import Item, ItemKey, key_value

EXPIRY = "dynamodb.amazonaws.com"
"""Who deletes what has expired. Source: DynamoDB Streams and Time to Live."""


class ChangeKind(Enum):
    """What became of an item."""

    CREATED = "CREATED"
    CHANGED = "CHANGED"
    REMOVED = "REMOVED"


class Place(NamedTuple):
    """Where in the stream a change stands: later changes of a shard have greater sequence numbers.

    A shard's name is its own among the streams of all tables.
    """

    shard: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Change:
    """One write of one item: as it was before, None for one that was not there, and as it is after it."""

    key: ItemKey
    before: Item | None
    after: Item | None
    place: Place
    at: float = 0.0
    """When it was written, in seconds since 1970; DynamoDB tells it to the second."""
    is_expiry: bool = False
    """Nobody deleted the item: its time had come."""

    @property
    def kind(self) -> ChangeKind:
        """Say what became of the item."""
        if self.before is None:
            return ChangeKind.CREATED
        return ChangeKind.REMOVED if self.after is None else ChangeKind.CHANGED

    @property
    def is_nothing(self) -> bool:
        """Say whether the item is as it was: a write that changes nothing may be told all the same."""
        return self.before == self.after


Handler = Callable[[Sequence[Change]], Awaitable[None]]
"""Takes changes, those of one item in the order of their writes, each at least once: again after it has raised."""


def read_change(model: Model, table: str, record: Mapping[str, Any], shard: str) -> Change:
    """Read a record of a table's stream, as GetRecords and AWS Lambda give it, binaries in base64.

    Raises: ValueError where the stream has no images: its view type must be NEW_AND_OLD_IMAGES.
    Source: DynamoDB Streams API, Record and StreamRecord.
    """
    told = record["dynamodb"]
    if "NewImage" not in told and "OldImage" not in told:
        raise ValueError(f"the stream of {table} tells keys alone: its view type must be NEW_AND_OLD_IMAGES")
    keys = told["Keys"]
    return Change(
        (table, tuple((name, key_value(keys[name])) for name in table_of(model, table).key_attributes)),
        told.get("OldImage"),
        told.get("NewImage"),
        Place(shard, int(told["SequenceNumber"])),
        float(told.get("ApproximateCreationDateTime", 0)),
        (record.get("userIdentity") or {}).get("principalId") == EXPIRY,
    )


def read_changes(model: Model, table: str, records: Sequence[Mapping[str, Any]], shard: str) -> list[Change]:
    """Read records as changes, without those of our own items, and of writes that have changed nothing.

    Raises: ValueError as `read_change` does.
    """
    ours = table_of(model, table)
    changes = (read_change(model, table, record, shard) for record in records)
    return [
        change
        for change in changes
        # DynamoDB itself does not tell of a write that changes nothing; other engines do.
        if not change.is_nothing and not is_ours(change.after or change.before or {}, ours)
    ]


def table_of(model: Model, name: str) -> Table:
    """Find the table of the model that a table of DynamoDB belongs to. Raises KeyError."""
    found = model.tables.get(name)
    if found is None:
        found = next(
            (table for table in model.tables.values() if table.period is not None and table.period.names_table(name)),
            None,
        )
    if found is None:
        raise KeyError(name)
    return found


def entity_of(model: Model, table: Table, item: Item | None) -> Entity | None:
    """Take an item of a table as one of its type; None for what fits none: receipts, earlier versions, strangers."""
    if item is None or is_ours(item, table):
        return None
    for type_ in model.items.values():
        for layout in type_.layouts:
            if layout.table == table.name and (found := read_entity(model, layout, item)) is not None:
                return found
    return None
