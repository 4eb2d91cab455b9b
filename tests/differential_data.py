"""Random data of any model: whole records that refer to one another, the items that they make, and what spoils them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any

from graph.bulk.records import Moment, RecordReader
from graph.bulk.shapes import TYPENAME, named_paths, value_fields
from graph.errors import GraphError
from graph.keys import Path
from graph.model import Field, FieldKind, ItemType, Model, TypeRef
from graph.packing import Pointer
from graph.requests import Item
from graph.scalars import Scalar

Record = dict[str, Any]
Tables = dict[str, list[Item]]
"""Items by the name of their table."""

MOMENT = Moment(datetime(2024, 1, 1, tzinfo=UTC), "differential")
POOLS: Mapping[str, tuple[Any, ...]] = {
    "ID": ("1", "2", "3", "10", "a", "A", "é", "1.5", "x y"),
    "String": ("a", "b", "ab", "Ab", "é", "001", "10", "x y", "OPEN", "n" * 70, ""),
    "Int": (0, 1, 2, 3, 7, 10, 30, -1, 2**31 - 1),
    "BigInt": ("0", "1", "12345678901234567890", "-5"),
    "Float": (0, 1, 1.5, -2.25, 1e20, 3),
    "Decimal": ("0", "1.50", "2", "-0.001", "12345678901234567890.5"),
    "Boolean": (True, False),
    "Date": ("2022-07-19", "2022-07-20", "2023-01-01", "1999-12-31"),
    "DateTime": ("2022-07-19T17:59:58Z", "2022-07-19T17:59:58.250000Z", "2023-01-01T00:00:00Z", "2022-08-01T00:00:00Z"),
    "JSON": (None, 1, "a", [1, "b", None], {"a": {"b": [1.5]}}, {"c": True}, {}, []),
    "Base64": ("", "YWJj", base64.b64encode(bytes(range(120))).decode()),
}
PLAIN: Mapping[str, tuple[Any, ...]] = {"ID": ("1", "2", "3"), "String": ("a", "b", "c"), "Int": (1, 2, 3)}
"""Values that fit into any key."""

GONE, LATER = 1_000_000_000, 2_100_000_000
DATE_GONE, DATE_LATER = "2001-09-09T01:46:40Z", "2100-01-01T00:00:00Z"
MOST_DEPTH = 3


def at(record: Record, path: Path) -> Any:
    """Give the value at the end of a path through the records that a record holds."""
    value: Any = record
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@dataclass
class Objects:
    """The objects of all buckets, in memory."""

    contents: dict[tuple[str, str], bytes] = field(default_factory=dict)

    async def put(self, bucket: str, key: str, content: bytes) -> None:
        self.contents[bucket, key] = content

    async def get(self, bucket: str, key: str, most_bytes: int) -> bytes | None:
        found = self.contents.get((bucket, key))
        return None if found is None else found[: most_bytes + 1]

    def list(self, bucket: str, prefix: str) -> Any:
        raise NotImplementedError

    async def delete(self, bucket: str, key: str) -> None:
        raise NotImplementedError


@dataclass
class Data:
    """What lies in the tables of a model, and the records that it was made of, by type."""

    records: dict[str, list[Record]]
    tables: Tables
    objects: Objects


class Filler:
    """Makes records and items of a model."""

    def __init__(self, model: Model, dice: Random) -> None:
        self._model = model
        self._dice = dice
        self._reader = RecordReader(model, MOMENT)
        self._pools: dict[str, list[Record]] = {}
        self._single = {
            (name, one.start) for one in model.relationships.values() if not one.many for name in one.item_types
        }
        """The references that lead back by a relationship to one. Where several items name the same node there, which
        of them the reference shows depends on which one it met last: so no two do."""
        self._taken: set[tuple[object, ...]] = set()
        self.data = Data({}, {}, Objects())

    def fill(self, most: int) -> Data:
        """Make up to so many records of each type."""
        for name, type_ in self._model.items.items():
            self._pool(type_, most if type_.is_node else 3 * most)
            self.data.records[name] = self._pools[name]
        return self.data

    def _pool(self, type_: ItemType, most: int) -> list[Record]:
        if type_.name not in self._pools:
            found = self._pools[type_.name] = []
            seen: set[str] = set()
            for _ in range(self._dice.randrange(most // 2, most + 1)):
                record = self._stored(type_)
                if record is not None and repr(record) not in seen:
                    seen.add(repr(record))
                    found.append(record)
        return self._pools[type_.name]

    def _stored(self, type_: ItemType) -> Record | None:
        """Make a record, and put its items; None where no values were found that fit its keys."""
        for attempt in range(4):
            record = self.record(type_, is_plain=attempt > 1)
            names = set(self._names(type_, record))
            if names & self._taken:
                continue
            if type_.virtual:
                return record
            try:
                placed = self._reader.items(record, self._dice.randrange(10**6))
            except GraphError:
                continue
            self._taken |= names
            for one in placed:
                self.data.tables.setdefault(one.table, []).append(self._with_objects(type_, one.item))
            return record
        return None

    def _names(self, type_: ItemType, record: Record) -> Iterator[tuple[object, ...]]:
        """Name the nodes that only one item of a type may name."""
        for name, entry in record.items():
            if (type_.name, name) in self._single and isinstance(entry, dict):
                target = self._model.items[entry[TYPENAME]]
                yield type_.name, name, target.name, *(repr(at(entry, path)) for path in named_paths(target))

    def record(self, type_: ItemType, depth: int = 0, *, is_plain: bool = False) -> Record:
        """Make a record that is not stored."""
        record: Record = {TYPENAME: type_.name}
        for entry in value_fields(type_):
            value = self._value(type_, entry, depth, is_plain=is_plain)
            if value is not None or self._dice.random() < 0.7:
                record[entry.name] = value
        return record

    def _value(self, type_: ItemType, entry: Field, depth: int, *, is_plain: bool) -> Any:
        dice = self._dice
        if not entry.type.required and dice.random() < 0.2:
            return None
        if entry.kind is FieldKind.REFERENCE:
            return self._node(entry, depth)
        if type_.expiry == entry.attribute:
            is_gone = dice.random() < 0.15
            if entry.type.named == "DateTime":
                return DATE_GONE if is_gone else DATE_LATER
            return GONE if is_gone else LATER
        if type_.version == entry.name:
            # The history of an item is as long as its version says.
            value: int = dice.randrange(7)
            return str(value) if entry.type.named == "BigInt" else value
        return self._of(entry.type, entry.scalar, is_plain=is_plain)

    def _of(self, ref: TypeRef, scalar: Scalar | None, *, is_plain: bool) -> Any:
        if ref.of is not None:
            return [self._entry(ref.of, scalar, is_plain=is_plain) for _ in range(self._dice.randrange(4))]
        if scalar is not None:
            pool = (PLAIN if is_plain else POOLS).get(scalar.name) or POOLS.get(scalar.name) or scalar.values
            return self._dice.choice(pool)
        fields = self._model.objects[ref.name].fields.values()
        return {entry.name: self._entry(entry.type, entry.scalar, is_plain=is_plain) for entry in fields}

    def _entry(self, ref: TypeRef, scalar: Scalar | None, *, is_plain: bool) -> Any:
        if not ref.required and self._dice.random() < 0.2:
            return None
        return self._of(ref, scalar, is_plain=is_plain)

    def _node(self, entry: Field, depth: int) -> Record | None:
        name = self._dice.choice(sorted(entry.refs))
        target = self._model.items[name]
        pool = self._pool(target, 6) if depth < MOST_DEPTH else self._pools.get(name, [])
        if pool and self._dice.random() < 0.93:
            return self._dice.choice(pool)
        if depth > MOST_DEPTH:
            return None
        # A node that is not there: what names it dangles.
        return self.record(target, depth + 1, is_plain=True)

    def _with_objects(self, type_: ItemType, item: Item) -> Item:
        """Move some of the values that may lie in a bucket there; some of the objects are gone or damaged."""
        made = dict(item)
        for entry in type_.fields.values():
            blob = entry.blob
            if blob is None or blob.bucket is None or entry.attribute not in item or self._dice.random() < 0.4:
                continue
            try:
                content = blob.pack(blob.read(item[entry.attribute]))[1]
            except ValueError:
                continue
            number = len(self.data.objects.contents)
            key = f"{type_.name}/{number:016x}/{entry.name}/{number:08x}-0000-4000-8000-000000000000"
            pointer = Pointer(key, len(content), hashlib.sha256(content).hexdigest())
            made[entry.attribute] = pointer.attribute()
            kind = self._dice.random()
            if kind < 0.85:
                damaged = content if kind < 0.75 else content + b"x"
                self.data.objects.contents[blob.bucket, pointer.key] = damaged
            else:
                self.data.objects.contents["nowhere", pointer.key] = b""
        return made
