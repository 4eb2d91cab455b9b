"""The sweep: objects that no item points to any more, or never did, and receipts that have run out are deleted."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from decimal import Decimal
from typing import Any

from graph.blobs import BlobStore, StoredObject
from graph.errors import BlobUnavailable, TransactionCancelled
from graph.expressions import Compare
from graph.loaders import Graph, Operation
from graph.maintenance.walk import Walk
from graph.model import Model, Table
from graph.ours import EXPIRES, is_ours
from graph.packing import pointed
from graph.requests import Action, Item, ItemKey, TransactWriteItems, key_value
from graph.tasks import together

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
    found: list[StoredObject] = []
    for bucket, type_name in buckets_of(graph.model):
        listed = _store(graph).list(bucket, f"{type_name}/")
        found += [entry async for entry in listed if entry.modified < before]
    for _ in range(WALKS):
        if found:
            known = await _pointed(graph)
            found = [entry for entry in found if entry.key not in known]
    return found


async def delete(graph: Graph, found: list[StoredObject]) -> None:
    """Delete objects. Raises BlobUnavailable."""
    for start in range(0, len(found), DELETED_TOGETHER):
        some = found[start : start + DELETED_TOGETHER]
        await together([_store(graph).delete(entry.bucket, entry.key) for entry in some])


async def spent_receipts(graph: Graph) -> list[tuple[ItemKey, str]]:
    """Find the receipts that have run out, where the table has no TTL by which they would go: key and time of each.

    Cost: Scans of every table.
    """
    found: list[tuple[ItemKey, str]] = []

    async def visit(operation: Operation, table: Table, name: str, items: list[Item]) -> None:
        for item in items:
            expires = item.get(EXPIRES, {}).get("N")
            if expires is not None and is_ours(item, table) and Decimal(expires) <= operation.now:
                key = tuple((attribute, key_value(item[attribute])) for attribute in table.key_attributes)
                found.append(((name, key), expires))

    await Walk(graph, SEGMENTS).through(visit)
    return found


async def drop_receipts(graph: Graph, found: list[tuple[ItemKey, str]]) -> None:
    """Delete receipts, but for those that were written anew meanwhile. Raises StoreError."""
    for (table, key), expires in found:
        still = Compare(EXPIRES, "=", ("N", expires))
        action = Action(table, key, delete=True, condition=still)
        with suppress(TransactionCancelled):
            await graph.send(TransactWriteItems((action,), str(uuid.uuid4())))


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
