"""What is known of an existing table: its keys and indexes as DynamoDB describes them, and some of its items."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph.model import Index, Projection
from graph.ours import is_ours_in
from graph.requests import Item
from graph.tables import described_keys

OVERLOADED = re.compile(r"(?:^|[^a-z])[gl]si|[pshr]k\d*$|^data\d*$|index|^(?:pk|sk|shard)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sample:
    """A table, and items of it."""

    name: str
    primary: Index
    indexes: tuple[Index, ...] = ()
    key_types: Mapping[str, str] = field(default_factory=dict)
    """S, N or B, by key attribute."""
    items: tuple[Item, ...] = ()
    is_whole: bool = False
    """These are all items that the table has."""
    expiry: str | None = None
    """The attribute that DynamoDB's TTL looks at."""
    declared: Mapping[str, str] = field(default_factory=dict)
    """Attributes that a model file declares, by name, with their type: S, N, M …"""

    facets: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    """What a model file calls items, by the texts of their keys."""

    @property
    def overloaded(self) -> frozenset[str]:
        """Name the keys of indexes whose names say that items of every kind write what they like there."""
        names = {name for index in self.indexes for name in index.key_attributes} - set(self.keys)
        return frozenset(name for name in names if OVERLOADED.search(name))

    @property
    def keys(self) -> tuple[str, ...]:
        """List the attributes of the primary key."""
        return self.primary.key_attributes


def described(table: Mapping[str, Any], expiry: str | None = None) -> Sample:
    """Read what DescribeTable says of a table; it has no items yet."""
    name = table["TableName"]
    indexes = []
    for kind, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
        for one in table.get(kind) or ():
            own = described_keys(one)
            indexes.append(index_of(name, one["IndexName"], own["HASH"], own["RANGE"], one["Projection"], local=local))
    keys = described_keys(table)
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    return Sample(name, Index(name, None, keys["HASH"], keys["RANGE"]), tuple(indexes), types, expiry=expiry)


def index_of(
    table: str,
    name: str,
    partition: tuple[str, ...],
    sort: tuple[str, ...],
    projection: Mapping[str, Any],
    *,
    local: bool,
) -> Index:
    """Read an index from what DynamoDB says of its projection."""
    kind = projection.get("ProjectionType", "ALL")
    shown = frozenset(projection.get("NonKeyAttributes", ())) if kind == "INCLUDE" else Projection(kind)
    return Index(table, name, partition, sort, shown or Projection.KEYS_ONLY, local)


def others(sample: Sample, items: list[Item]) -> tuple[Item, ...]:
    """Leave out of items what this program itself keeps in the table."""
    return tuple(item for item in items if not is_ours_in(item, sample.keys))
