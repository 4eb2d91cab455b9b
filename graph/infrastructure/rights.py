"""What a server of a model must be allowed to do, and nothing beyond."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from graph.model import CopyMode, Model, Table
from graph.ours import place
from graph.scalars import number_text
from graph.sweep import buckets_of

READING = ("DescribeTable", "GetItem", "BatchGetItem")
WRITING = ("PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem")
"""What TransactWriteItems is made of. Source: DynamoDB Developer Guide, "Using IAM with transactions"."""
FOLLOWING = ("DescribeStream", "GetShardIterator", "GetRecords")


class Kind(Enum):
    """What a right is on."""

    TABLE = "dynamodb"
    BUCKET = "s3"


@dataclass(frozen=True, slots=True)
class Place:
    """What a right is on: a table or a bucket, or what is `inside` it, like "/index/*".

    The name of a time series has a star where the period stands.
    """

    kind: Kind
    name: str
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Right:
    """Some actions on some places; with `keys` on the items alone whose partition key is one of these."""

    name: str
    actions: tuple[str, ...]
    places: tuple[Place, ...]
    keys: tuple[str, ...] = ()


def rights_of(model: Model, *, mutations: bool = True, stream: bool = True) -> list[Right]:
    """List the rights of a server that takes mutations, or none, and reads the tables' streams, or does not."""
    return [
        right
        for right in (*_reading(model), *_writing(model, mutations, stream), *_objects(model, mutations))
        if right.places
    ]


def pattern(table: Table) -> str:
    """Give the name of a table, with a star in place of the period."""
    return table.name if table.period is None else f"{table.period.before}*{table.period.after}"


def _places(tables: list[Table], inside: str = "") -> tuple[Place, ...]:
    return tuple(Place(Kind.TABLE, pattern(table), inside) for table in tables)


def _reading(model: Model) -> Iterator[Right]:
    tables = list(model.tables.values())
    indexed = [table for table in tables if table.indexes]
    scanning = [name for find in model.finds.values() if find.scan for name in find.item_types]
    scanned = {layout.table for name in scanning for layout in model.items[name].layouts}
    yield _right("ReadItems", READING, _places(tables))
    yield _right("Query", ("Query",), (*_places(tables), *_places(indexed, "/index/*")))
    yield _right("Scan", ("Scan",), _places([table for table in tables if table.name in scanned]))


def _writing(model: Model, mutations: bool, stream: bool) -> Iterator[Right]:
    tables = list(model.tables.values())
    # What is made of others follows by the stream, whoever wrote these.
    following = [table for table in tables if stream and table.copies is CopyMode.STREAM]
    yield _right("WriteItems", WRITING, _places(tables if mutations else following))
    followed = [table for table in tables if table.period is None]
    if stream and followed:
        yield _right("FollowStreams", FOLLOWING, _places(followed, "/stream/*"))
        if not mutations and followed[0] not in following:
            _, key = place(model, followed[0], "stream")
            value = key[0][1]
            keys = (value if isinstance(value, str) else number_text(value),)
            yield _right("HoldLease", ("PutItem",), _places(followed[:1]), keys)


def _objects(model: Model, mutations: bool) -> Iterator[Right]:
    buckets = sorted({bucket for bucket, _ in buckets_of(model)})
    objects = ("GetObject", "PutObject") if mutations else ("GetObject",)
    inside = tuple(Place(Kind.BUCKET, bucket, "/*") for bucket in buckets)
    yield Right("ReadAndWriteObjects" if mutations else "ReadObjects", tuple(f"s3:{name}" for name in objects), inside)
    # Without it S3 answers that an object which is gone may not be read.
    yield Right("TellMissingObjects", ("s3:ListBucket",), tuple(Place(Kind.BUCKET, bucket) for bucket in buckets))


def _right(name: str, actions: tuple[str, ...], places: tuple[Place, ...], keys: tuple[str, ...] = ()) -> Right:
    return Right(name, tuple(f"dynamodb:{action}" for action in actions), places, keys)
