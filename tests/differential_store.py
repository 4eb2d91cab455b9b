"""The tables of a case: in memory, counted and slow as told, with failures that only what is asked for decides."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil
from random import Random
from typing import Any

import orjson

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.errors import AccessRefused, RequestRefused, StoreError, TableMissing, Throttled, Unavailable
from graph.expressions import holds
from graph.loaders import Sender
from graph.model import Index, Model, Projection, Table
from graph.requests import BatchGetItem, GetItem, Item, ItemKey, Query, Request, Scan, key_attribute, key_value
from graph.sizes import item_bytes
from tests.differential_data import Tables
from tests.memory import Memory, refuse_sort


class Shelves(Memory):
    """Tables in memory that are not written to: partitions are found at once, and capacity is reported.

    A time series has a table for each period, and a period in which nothing happened has none.
    """

    def __init__(self, model: Model, tables: Tables, page_items: int = 10**6) -> None:
        super().__init__(model, page_items)
        self._tables: dict[str, Table] = {}
        for name in {*tables, *(name for name, table in model.tables.items() if table.period is None)}:
            self._tables[name] = next(
                table
                for table in model.tables.values()
                if table.name == name or (table.period is not None and table.period.names_table(name))
            )
        for name, items in tables.items():
            for item in items:
                self.items[self._place_of(name, item)] = item
        self._partitions: dict[Any, list[Item]] = {}
        self._sizes: dict[int, int] = {}

    def _place_of(self, name: str, item: Item) -> ItemKey:
        return name, tuple((one, key_value(item[one])) for one in self._tables[name].key_attributes)

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a read."""
        meter.requests.append(request)
        await asyncio.sleep(0)
        assert isinstance(request, (GetItem, BatchGetItem, Query, Scan)), "only reads are compared"
        if request.table not in self._tables:
            raise TableMissing(f"there is no table {request.table!r}")
        response = self._answer(request)
        self._count(request, response, meter)
        return parse(orjson.dumps(response))

    def _answer(self, request: GetItem | BatchGetItem | Query | Scan) -> Response:
        match request:
            case GetItem(table, key):
                found = self.items.get((table, key))
                return {} if found is None else {"Item": found}
            case BatchGetItem(table, keys):
                assert 1 <= len(keys) <= 100
                assert len(set(keys)) == len(keys), "a BatchGetItem may not ask for a key twice"
                items = [self.items[table, key] for key in keys if (table, key) in self.items]
                return {"Responses": {table: items}, "UnprocessedKeys": {}}
            case Query():
                return self._range(request)
            case Scan():
                return self._segment(request)

    def _count(self, request: Request, response: Response, meter: Meter) -> None:
        """Count what was read as DynamoDB does: rounded up for each item, or for all that a Query evaluates."""
        half = 1.0 if getattr(request, "consistent", False) else 0.5
        if "ScannedCount" in response:
            meter.items_read += response["ScannedCount"]
            meter.capacity_units += half * max(1, ceil(response.pop("bytes") / 4096))
        elif isinstance(request, BatchGetItem):
            found = response["Responses"][request.table]
            meter.items_read += len(found)
            missing = len(request.keys) - len(found)
            meter.capacity_units += half * (missing + sum(ceil(self._bytes(item) / 4096) for item in found))
        else:
            meter.items_read += "Item" in response
            meter.capacity_units += half * (ceil(self._bytes(response["Item"]) / 4096) if "Item" in response else 1)

    def _bytes(self, item: Item) -> int:
        if id(item) not in self._sizes:
            self._sizes[id(item)] = item_bytes(item)
        return self._sizes[id(item)]

    # --- Query and Scan ---

    def _range(self, request: Query) -> Response:
        table = self._tables[request.table]
        index = next(way for way in table.ways if way.name == request.index)
        partition = dict(request.partition)
        assert partition.keys() == {*index.partition_keys}, "a Query says what every partition attribute equals"
        assert "" not in partition.values()
        assert not (request.consistent and index.name and not index.local), "a global index is never consistent"
        refuse_sort(request.sort, index.sort_keys)
        items = self._partition(index, request)
        items = items if request.sort is None else [item for item in items if holds(request.sort, item)]
        items = items[::-1] if request.descending else items
        if request.start is not None:
            start, place = self._start(index, request), self._order(index, request.table)
            items = [item for item in items if (place(item) < start if request.descending else place(item) > start)]
        names = dict.fromkeys((*table.key_attributes, *index.key_attributes))
        return self._cut(request, items, index, list(names))

    def _partition(self, index: Index, request: Query) -> list[Item]:
        key = request.table, request.index, request.partition
        found = self._partitions.get(key)
        if found is None:
            found = [
                item
                for (table, _), item in self.items.items()
                if table == request.table
                and all(name in item for name in index.key_attributes)
                and all(key_value(item[name]) == value for name, value in request.partition)
            ]
            found.sort(key=self._order(index, request.table))
            self._partitions[key] = found
        return found

    def _order(self, index: Index, name: str) -> Callable[[Item], Any]:
        def place(item: Item) -> Any:
            sort = tuple(key_value(item[one]) for one in index.sort_keys)
            return sort, 0 if index.name is None else zlib.crc32(repr(self._place_of(name, item)).encode())

        return place

    def _place(self, index: Index) -> Callable[[Item], Any]:
        return self._order(index, next(name for name, table in self._tables.items() if table.name == index.table))

    def _cut(self, request: Query | Scan, items: list[Item], index: Index, key: list[str]) -> Response:
        read = items[: min(request.limit or self.page_items, self.page_items)]
        response = self._page(request, items, index, key)
        if index.projection is Projection.ALL or not response.get("Items"):
            size = sum(map(self._bytes, read))
        else:
            size = sum(map(item_bytes, response["Items"]))
        return response | {"bytes": size}

    def _segment(self, request: Scan) -> Response:
        def hashed(key: Any) -> int:
            return zlib.crc32(repr(key).encode())

        keys = sorted((key for table, key in self.items if table == request.table), key=hashed)
        keys = [key for key in keys if hashed(key[0]) % request.segments == request.segment]
        if request.start is not None:
            start = hashed(request.start)
            keys = [key for key in keys if hashed(key) > start]
        table = self._tables[request.table]
        return self._cut(
            request, [self.items[request.table, key] for key in keys], table.primary, [*table.key_attributes]
        )


Fault = Callable[[Request], StoreError | None]


@dataclass
class Watched:
    """A way to the tables that notes what is asked, answers late, and fails where it is told to."""

    inner: Sender
    fault: Fault | None = None
    is_slow: bool = False
    salt: int = 0
    """Above 0 every answer is late, each in another way for another number."""
    leaves_keys: bool = False
    """Whether a BatchGetItem is answered in part, as one of more than 16 MB is."""
    requests: list[Request] = field(default_factory=list)
    doomed: dict[ItemKey, StoreError] = field(default_factory=dict)
    """Keys for which a request fails whatever else it asks for."""
    failed: dict[ItemKey, StoreError] = field(default_factory=dict)
    """Keys that a request which failed asked for."""

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request on, or fail."""
        self.requests.append(request)
        if self.is_slow or self.salt:
            await asyncio.sleep(zlib.crc32(f"{self.salt or ''}{request!r}".encode()) % 7 / 1000)
        error = self._error(request)
        if error is not None:
            meter.requests.append(request)
            await asyncio.sleep(0)
            raise error
        if self.leaves_keys and isinstance(request, BatchGetItem):
            return await self._send_part(request, meter, parse)
        return await self.inner.send(request, meter, parse)

    def _error(self, request: Request) -> StoreError | None:
        error = None if self.fault is None else self.fault(request)
        keys = _keys(request)
        if error is None:
            error = next((self.doomed[key] for key in keys if key in self.doomed), None)
        if error is not None:
            self.failed.update(dict.fromkeys(keys, error))
        return error

    async def _send_part(self, request: BatchGetItem, meter: Meter, parse: Parse) -> Response:
        """Leave some of the keys unprocessed, unless they are all that is asked for."""
        left = [key for key in request.keys if zlib.crc32(repr(key).encode()) % 4 == 0]
        if len(left) == len(request.keys):
            left = []
        asked = tuple(key for key in request.keys if key not in left)
        response = await self.inner.send(replace(request, keys=asked), meter, parse)
        keys = [{name: key_attribute(value) for name, value in key} for key in left]
        return response | {"UnprocessedKeys": {request.table: {"Keys": keys}} if keys else {}}


def _keys(request: Request) -> list[ItemKey]:
    match request:
        case GetItem():
            return [(request.table, request.key)]
        case BatchGetItem():
            return [(request.table, key) for key in request.keys]
    return []


ERRORS: tuple[type[StoreError], ...] = (Throttled, Unavailable, RequestRefused, AccessRefused)


def random_fault(model: Model, dice: Random) -> tuple[str, Fault]:
    """Draw which requests fail: by their kind, their index or what they ask for, never by when they are sent."""
    error = dice.choice(ERRORS)
    salt = dice.randrange(10**6)
    table = dice.choice(sorted(model.tables))
    index = dice.choice([way.name for way in model.tables[table].ways])

    def chosen(content: object, one_in: int) -> bool:
        return zlib.crc32(f"{salt} {content!r}".encode()) % one_in == 0

    rules: dict[str, Callable[[Request], bool]] = {
        "items": lambda one: isinstance(one, (GetItem, BatchGetItem)),
        "some items": lambda one: any(chosen(key, 5) for _, key in _keys(one)),
        "an index": lambda one: isinstance(one, Query) and one.index == index,
        "some partitions": lambda one: isinstance(one, Query) and chosen((one.index, one.partition), 3),
        "second pages": lambda one: isinstance(one, (Query, Scan)) and one.start is not None,
        "counts": lambda one: isinstance(one, (Query, Scan)) and one.count,
        "scans": lambda one: isinstance(one, Scan),
    }
    name = dice.choice(sorted(rules))

    def fault(request: Request) -> StoreError | None:
        return error(f"the test has {name} fail") if rules[name](request) else None

    return name, fault
