"""Tables themselves: the request that makes one from the model, and how an existing one differs from the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from graph.model import CopyMode, Index, Model, Projection, Table
from graph.requests import CreateTable

STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
"""The stream that `graph/streams` reads. `create_table` leaves it out: a local engine loads many items without."""


def create_table(model: Model, table: Table, name: str | None = None) -> CreateTable:
    """Build the request that makes a table of the model with its indexes; `name` is one of a time series' tables.

    It has a stream where copies follow by it.
    """
    names = key_names(table)
    definition: dict[str, Any] = {
        "TableName": name or table.name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": key_type(model, table, name)} for name in names
        ],
        "KeySchema": _key_schema(table.primary),
    }
    for kind, local in (("GlobalSecondaryIndexes", False), ("LocalSecondaryIndexes", True)):
        if indexes := [index for index in table.indexes if index.local is local]:
            definition[kind] = [index_definition(table, index) for index in indexes]
    if table.copies is CopyMode.STREAM:
        definition["StreamSpecification"] = STREAM
    return CreateTable(name or table.name, definition)


def lasting_table(model: Model, table: Table, name: str | None = None) -> CreateTable:
    """Build the request that makes a table for data of worth: also with a stream, and protected from being deleted."""
    made = create_table(model, table, name)
    lasting = {"StreamSpecification": STREAM, "DeletionProtectionEnabled": True}
    return CreateTable(made.table, {**made.definition, **lasting})


def index_definition(table: Table, index: Index) -> dict[str, Any]:
    """Write an index as CreateTable and UpdateTable take it."""
    return {"IndexName": index.name, "KeySchema": _key_schema(index), "Projection": _projection(table, index)}


def _key_schema(index: Index) -> list[dict[str, str]]:
    partition = [{"AttributeName": name, "KeyType": "HASH"} for name in index.partition_keys]
    return [*partition, *({"AttributeName": name, "KeyType": "RANGE"} for name in index.sort_keys)]


def _projection(table: Table, index: Index) -> dict[str, Any]:
    if isinstance(index.projection, Projection):
        return {"ProjectionType": index.projection.value}
    if wanted := _non_key(table, index, index.projection):
        return {"ProjectionType": "INCLUDE", "NonKeyAttributes": wanted}
    return {"ProjectionType": "KEYS_ONLY"}


def _non_key(table: Table, index: Index, names: Iterable[str]) -> list[str]:
    """Give the attributes that an index does not hold anyway, in an order that is always the same."""
    return sorted({*names} - {*index.key_attributes, *table.key_attributes})


def key_type(model: Model, table: Table, name: str) -> str:
    """Give the type of a key attribute, S or N."""
    for item_type in model.items.values():
        for layout in item_type.layouts:
            if layout.table == table.name and name in layout.templates:
                return "N" if layout.templates[name].is_number else "S"
    return "S"


def differences(model: Model, table: Table, description: Mapping[str, Any]) -> Iterator[str]:
    """List how a table, as DescribeTable describes it, differs from what the model needs of it."""
    described = description["Table"]
    if (keys := described_keys(described)) != (wanted_keys := keys_of(table.primary)):
        yield (
            f"the key of the table `{table.name}` is {shown_keys(keys)}, and the model says {shown_keys(wanted_keys)}: "
            "mend @table(partitionKey: …, sortKey: …)"
        )
    for attribute in described["AttributeDefinitions"]:
        name, is_type = attribute["AttributeName"], attribute["AttributeType"]
        wanted = key_type(model, table, name)
        if name in key_names(table) and is_type != wanted:
            yield (
                f"the key attribute `{name}` of the table `{table.name}` is of type {is_type}, and the model makes "
                f"it of type {wanted}: a template that is one numeric field alone makes N, any other S. Mend it"
            )
    if table.copies is CopyMode.STREAM and not has_stream(described):
        yield (
            f"the table `{table.name}` has {shown_stream(described)}, and by @table(copies: STREAM) its copies follow "
            "one of new and old images: turn one on (`tablegraph table apply` does), or leave `copies` out"
        )
    existing = {
        index["IndexName"]: index
        for kind in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes")
        for index in described.get(kind) or ()
    }
    for index in table.indexes:
        name = index.name or ""
        if name not in existing:
            known = ", ".join(f"`{other}`" for other in existing) or "none"
            yield (
                f"the table `{table.name}` has no index `{name}`: it has {known}. Add it (`tablegraph table apply` "
                "does), or mend @index"
            )
        elif (keys := described_keys(existing[name])) != (wanted_keys := keys_of(index)):
            yield (
                f"the key of the index `{name}` is {shown_keys(keys)}, and the model says {shown_keys(wanted_keys)}: "
                "mend @index(partitionKey: …, sortKey: …)"
            )
        elif lacking := not_projected(table, index, existing[name]["Projection"]):
            yield (
                f"the index `{name}` does not hold {lacking}, as the model says, and what it lacks would read as null: "
                "mend @index(projection: …)"
            )


def has_stream(described: Mapping[str, Any]) -> bool:
    """Say whether a table has a stream that tells what items were and what they are."""
    return bool((described.get("StreamSpecification") or {}).items() >= STREAM.items())


def shown_stream(described: Mapping[str, Any]) -> str:
    """Say which stream a table has."""
    found = described.get("StreamSpecification") or {}
    return f"a stream of {found['StreamViewType']}" if found.get("StreamEnabled") else "no stream"


def not_projected(table: Table, index: Index, described: Mapping[str, Any]) -> str:
    """Name the attributes that an index lacks of what the model expects to find in it."""
    if described["ProjectionType"] == "ALL" or index.projection is Projection.KEYS_ONLY:
        return ""
    if isinstance(index.projection, Projection):
        return "all attributes"
    return ", ".join(_non_key(table, index, index.projection - {*described.get("NonKeyAttributes", ())}))


def key_names(table: Table) -> list[str]:
    """List the key attributes of a table and of its indexes, each once."""
    return list(dict.fromkeys(name for way in table.ways for name in way.key_attributes))


def described_keys(described: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Give the attributes of a partition key and of a sort key, in the order of each."""
    return {
        kind: tuple(key["AttributeName"] for key in described["KeySchema"] if key["KeyType"] == kind)
        for kind in ("HASH", "RANGE")
    }


def keys_of(index: Index) -> dict[str, tuple[str, ...]]:
    """Give the attributes of a partition key and of a sort key, as the model has them."""
    return {"HASH": index.partition_keys, "RANGE": index.sort_keys}


def shown_keys(keys: Mapping[str, tuple[str, ...]]) -> str:
    """Write a key for a message."""
    return " and ".join(", ".join(names) for names in keys.values() if names)
