"""The sweep: objects that no item points to any more, or never did, are found and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from graph.blobs import BlobStore, StoredObject
from graph.errors import BlobUnavailable
from graph.loaders import Graph, Operation
from graph.maintenance.walk import Walk
from graph.model import Model, Table
from graph.packing import pointed
from graph.requests import Item
from graph.sources import together

SEGMENTS = 4
DELETED_TOGETHER = 8
WALKS = 2
"""How often the tables are walked: an item that moves meanwhile may come to lie where one walk has been already."""


def buckets_of(model: Model) -> list[tuple[str, str]]:
    """List the buckets of a model, each with the types whose objects it holds."""
    found = (
        (field.blob.bucket, type_.name)
        for type_ in model.items.values()
        for field in type_.fields.values()
        if field.blob is not None and field.blob.bucket is not None
    )
    return list(dict.fromkeys(found))


async def orphans(graph: Graph, before: datetime) -> list[StoredObject]:
    """Find the objects of a model's types, written before a time, that no item of any table points to.

    The time must lie further back than any mutation takes: an object is written before what points to it.

    Cost:   a list of each bucket; if anything in it is old enough, Scans of every table, twice.
    Raises: BlobUnavailable, StoreError.
    """
    store, found = _store(graph), list[StoredObject]()
    for bucket, type_name in buckets_of(graph.model):
        found += [entry async for entry in store.list(bucket, f"{type_name}/") if entry.modified < before]
    for _ in range(WALKS):
        if found:
            known = await _pointed(graph)
            found = [entry for entry in found if entry.key not in known]
    return found


async def delete(graph: Graph, found: list[StoredObject]) -> None:
    """Delete objects. Raises BlobUnavailable."""
    store = _store(graph)
    for start in range(0, len(found), DELETED_TOGETHER):
        some = found[start : start + DELETED_TOGETHER]
        await together([store.delete(entry.bucket, entry.key) for entry in some])


def _store(graph: Graph) -> BlobStore:
    if graph.blobs is None:
        raise BlobUnavailable("nothing keeps large values here: expected S3, or a folder named with --blobs")
    return graph.blobs


async def _pointed(graph: Graph) -> set[str]:
    """Collect the keys that anything in the tables points to, whatever its type."""
    found: set[str] = set()

    async def visit(_: Operation, __: Table, ___: str, items: list[Item]) -> None:
        for item in items:
            for attribute in item.values():
                found.update(_keys_in(attribute))

    await Walk(graph, SEGMENTS).through(visit)
    return found


def _keys_in(attribute: Any) -> Iterator[str]:
    """List the keys that an attribute points to, at any depth: what was moved elsewhere by others is spared too."""
    if (key := pointed(attribute)) is not None:
        yield key
    for entry in [*attribute.get("M", {}).values(), *attribute.get("L", ())]:
        yield from _keys_in(entry)
