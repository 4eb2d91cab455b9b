"""What is there of a table: its description, whether it is still being changed, and which backfills are due."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from graph.errors import InputError
from graph.model import Model, Table
from graph.periods import FORMATS, Period

Described = Mapping[str, Any]
"""A table or an index as DescribeTable describes it."""

SETTLED = ("ACTIVE", "CREATING", "UPDATING")
"""The states of a table that can be changed, or will be one without anybody's doing."""


@dataclass(frozen=True, slots=True)
class Target:
    """A table that the model wants, under the name that it has; for a time series one of its tables."""

    model: Model
    table: Table
    name: str

    @property
    def index_names(self) -> tuple[str, ...]:
        """Name the indexes that the model wants."""
        return tuple(index.name for index in self.table.indexes if index.name is not None)

    @property
    def expiry(self) -> str | None:
        """Name the attribute that says when an item of the table expires."""
        types = (type_ for type_ in self.model.items.values() if type_.layouts)
        found = (type_.expiry for type_ in types if type_.layouts[0].table == self.table.name)
        return next((name for name in found if name is not None), None)


@dataclass(frozen=True, slots=True)
class State:
    """What is there: the table's description (None: there is no table), its TTL, and the backfills that are due."""

    table: Described | None = None
    time_to_live: Mapping[str, Any] = field(default_factory=dict)
    due: tuple[str, ...] = ()
    """The indexes that were created without all items having been filled in since."""

    @property
    def indexes(self) -> dict[str, Described]:
        """Give the indexes that are there, or are being made, by name."""
        return {index["IndexName"]: index for index in self._all() if index.get("IndexStatus") != "DELETING"}

    @property
    def local_indexes(self) -> frozenset[str]:
        """Name the local indexes, which are as old as the table."""
        return frozenset(index["IndexName"] for index in (self.table or {}).get("LocalSecondaryIndexes") or ())

    @property
    def is_readable(self) -> bool:
        """Say whether items can be read and written."""
        return self.table is not None and self.table["TableStatus"] in ("ACTIVE", "UPDATING")

    def under_way(self) -> Iterator[str]:
        """Say what is being done to the table and its indexes: until it has ended, DynamoDB takes no other change.

        Source: DynamoDB Developer Guide, "Managing Global Secondary Indexes", phases of index creation.
        """
        if self.table is None:
            return
        if self.table["TableStatus"] != "ACTIVE":
            yield f"the table is {self.table['TableStatus']}"
        for index in self._all():
            # An index that came with its table has no Backfilling, and a local one no state of its own.
            status, is_filling = index.get("IndexStatus", "ACTIVE"), index.get("Backfilling", False)
            if status != "ACTIVE" or is_filling:
                yield f"the index {index['IndexName']} is {status}{', backfilling' if is_filling else ''}"

    def _all(self) -> Iterator[Described]:
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
            yield from (self.table or {}).get(kind) or ()


def targets(model: Model, period: str | None) -> list[Target]:
    """List the tables of a model; of time series those of a period, like 202601, and none without one.

    Raises: InputError when no time series has tables of such a period.
    """
    found = [Target(model, table, table.name) for table in model.tables.values() if table.period is None]
    if period is None:
        return found
    series = [(table, table.period) for table in model.tables.values() if table.period is not None]
    named = [(table, name) for table, one in series if (name := _name(one, period)) is not None]
    if not named:
        if not series:
            raise InputError(f"--period: expected a time series in the model, got {period!r} and none: leave it out")
        formats = " or ".join(sorted({one.format for _, one in series}))
        raise InputError(f"--period: expected {formats}, as the table's name says, got {period!r}")
    return [*found, *(Target(model, table, name) for table, name in named)]


def _name(period: Period, text: str) -> str | None:
    try:
        day = datetime.strptime(text, FORMATS[period.format]).replace(tzinfo=UTC).date()
    except ValueError:
        return None
    # strptime also takes a month of one digit.
    name = period.name(day.isoformat())
    return name if name == f"{period.before}{text}{period.after}" else None
