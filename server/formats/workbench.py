"""NoSQL Workbench's model files: tables, their indexes, and the sample data of tables or of their facets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from graph.errors import InputError
from graph.infer.groups import text_of
from graph.infer.sample import Sample, index_of
from graph.model import Index
from graph.requests import Item


def read_workbench(path: Path) -> list[Sample]:
    """Read the tables of a model file. Raises: InputError where it is none, FileNotFoundError."""
    try:
        content = orjson.loads(path.read_bytes())
        tables = content["DataModel"]
        samples = [_table(table) for table in tables]
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"{path} is no model of NoSQL Workbench: expected an object with DataModel, a list of tables that have "
            f"TableName and KeyAttributes; {what}. Export the model as NoSQL Workbench JSON"
        ) from None
    if not samples:
        raise InputError(f"{path} has no tables: expected some in DataModel. Add one, and export the model again")
    return samples


def _table(table: Mapping[str, Any]) -> Sample:
    name = table["TableName"]
    types: dict[str, str] = {}
    partition, sort = _keys(table, types)
    primary = Index(name, None, partition, sort)
    indexes = []
    for kind, local in (("LocalSecondaryIndexes", True), ("GlobalSecondaryIndexes", False)):
        for one in table.get(kind) or ():
            keys = _keys(one, types)
            indexes.append(index_of(name, one["IndexName"], *keys, one.get("Projection") or {}, local=local))
    declared = {one["AttributeName"]: one["AttributeType"] for one in table.get("NonKeyAttributes") or ()}
    data = {_place(item, primary): item for _, item in _items(table, primary)}
    facets = {_place(item, primary): facet for facet, item in _items(table, primary) if facet}
    items = tuple(data.values())
    return Sample(name, primary, tuple(indexes), types, items, True, declared=declared, facets=facets)


def _keys(owner: Mapping[str, Any], types: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name in ("PartitionKey", "SortKey"):
        key = owner["KeyAttributes"][name] if name == "PartitionKey" else owner["KeyAttributes"].get(name)
        if key:
            types[key["AttributeName"]] = key["AttributeType"]
        found.append((key["AttributeName"],) if key else ())
    return found[0], found[1]


def _items(table: Mapping[str, Any], primary: Index) -> Iterator[tuple[str, Item]]:
    """List the items with their facets: older files keep them with the facets, newer ones with the table."""
    sources = [("", table.get("TableData"))]
    sources += [(facet["FacetName"], facet.get("TableData")) for facet in table.get("TableFacets") or ()]
    for facet, items in sources:
        for item in items or ():
            if all(name in item for name in primary.key_attributes):
                yield facet, item


def _place(item: Item, primary: Index) -> tuple[str, ...]:
    return tuple(text_of(item, name) for name in primary.key_attributes)
