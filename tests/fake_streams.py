"""DynamoDB Streams as they are at their worst: shards split and end, iterators expire, records are trimmed away.

One table in memory, whose every write is told by the shard that has its partition at that time. As strict as DynamoDB:
a shard has no records after its end, its children begin behind them, and sequence numbers grow within a shard.
"""

from __future__ import annotations

import asyncio
import itertools
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from graph.client import Client, Meter, Response
from graph.codec import Parse, parse_json
from graph.errors import IteratorExpired, RecordsTrimmed, TableMissing, Throttled, TransactionCancelled, Unavailable
from graph.expressions import holds
from graph.loaders import Graph
from graph.requests import DescribeTable, GetItem, Item, Request, TransactWriteItems, key_of
from graph.streams.change import Change, Handler
from graph.streams.lease import Lease
from graph.streams.reader import Listener, Reader
from graph.streams.source import Source
from resolvers.sdl import compile_model
from tests.clock import run

MODEL = compile_model(
    """
    extend schema @table(name: "fleet", partitionKey: "PK", sortKey: "SK")
    type Ship @node(key: "SHIP#{code}") { code: ID!  trips: Int }
    """
)
RECORDS_OF_A_PAGE = 3
FIRST = 100_000_000_000_000_000_000
"""Sequence numbers are long: no machine word holds one."""


@dataclass
class FakeShard:
    """One shard: the records that it was given, how many of these are trimmed away, and which partitions it has."""

    id: str
    parent: str | None
    low: int
    high: int
    records: list[dict[str, Any]] = field(default_factory=list)
    trimmed: int = 0
    is_closed: bool = False


class FakeStreams:
    """A table, its stream, and all that may happen to it."""

    def __init__(self, shards_of_a_page: int = 2) -> None:
        self.items: dict[tuple[Any, ...], Item] = {}
        self.shards: dict[str, FakeShard] = {}
        self.view: str | None = "NEW_AND_OLD_IMAGES"
        self.arn = "arn:stream/1"
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.throttled = 0
        """So many GetRecords are refused from now on."""
        self._page = shards_of_a_page
        self._epoch = 0
        self._numbers = itertools.count(FIRST, 7)
        self._names = itertools.count()
        self._open(None, 0, 2**32)

    # --- what happens to it ---

    def write(self, code: str, trips: int | None) -> int:
        """Write an item, or with None delete it, and give the sequence number of its record."""
        key = {"PK": {"S": f"SHIP#{code}"}, "SK": {"S": f"SHIP#{code}"}}
        return self._put(key, None if trips is None else {**key, "Trips": {"N": str(trips)}})

    def open_shards(self) -> list[FakeShard]:
        """List the shards that take records."""
        return [shard for shard in self.shards.values() if not shard.is_closed]

    def split(self, shard: FakeShard) -> None:
        """End a shard; two others go on."""
        shard.is_closed = True
        middle = (shard.low + shard.high) // 2
        self._open(shard.id, shard.low, middle)
        self._open(shard.id, middle, shard.high)

    def roll(self, shard: FakeShard) -> None:
        """End a shard; another one goes on."""
        shard.is_closed = True
        self._open(shard.id, shard.low, shard.high)

    def expire(self) -> None:
        """Have all iterators expire."""
        self._epoch += 1

    def trim(self, shard: FakeShard) -> None:
        """Trim away what a shard holds."""
        shard.trimmed = len(shard.records)

    def drop(self, shard: FakeShard) -> None:
        """Trim a shard away."""
        del self.shards[shard.id]

    def _open(self, parent: str | None, low: int, high: int) -> None:
        name = f"shardId-{next(self._names):020}"
        self.shards[name] = FakeShard(name, parent, low, high)

    def _put(self, key: Mapping[str, Any], item: Item | None) -> int:
        at = tuple(sorted((name, str(value)) for name, value in key.items()))
        before = self.items.pop(at, None)
        if item is not None:
            self.items[at] = item
        spot = zlib.crc32(key["PK"]["S"].encode())
        shard = next(shard for shard in self.open_shards() if shard.low <= spot < shard.high)
        sequence = next(self._numbers)
        told = {"Keys": key, "SequenceNumber": str(sequence), "ApproximateCreationDateTime": float(int(time.time()))}
        images = {"OldImage": before, "NewImage": item}
        shard.records.append({"dynamodb": told | {name: image for name, image in images.items() if image is not None}})
        return sequence

    # --- the table ---

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a request to the table."""
        if isinstance(request, DescribeTable):
            on = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": self.view}}
            return {"Table": {"LatestStreamArn": self.arn, **on} if self.view else {}}
        if isinstance(request, GetItem):
            found = self.items.get(tuple(sorted((name, str(value)) for name, value in key_of(request.key).items())))
            return {} if found is None else {"Item": found}
        assert isinstance(request, TransactWriteItems)
        (action,) = request.actions
        key = key_of(action.key)
        there = self.items.get(tuple(sorted((name, str(value)) for name, value in key.items())), {})
        if action.condition is not None and not holds(action.condition, there):
            raise TransactionCancelled("ConditionalCheckFailed", {0: there})
        self._put(key, action.item)
        return {}

    # --- the stream ---

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        """Answer a request to the stream."""
        self.requests.append((operation, parameters))
        if operation == "DescribeStream":
            return self._describe(parameters)
        if operation == "GetShardIterator":
            return {"ShardIterator": self._iterator(**parameters)}
        assert operation == "GetRecords"
        if self.throttled:
            self.throttled -= 1
            raise Throttled("ProvisionedThroughputExceededException")
        return self._records(parameters["ShardIterator"])

    def _describe(self, parameters: dict[str, Any]) -> Response:
        if parameters["StreamArn"] != self.arn:
            raise TableMissing("ResourceNotFoundException")
        names = sorted(self.shards)
        after = parameters.get("ExclusiveStartShardId", "")
        page = [name for name in names if name > after][: self._page]
        last = {"LastEvaluatedShardId": page[-1]} if page and page[-1] != names[-1] else {}
        return {"StreamDescription": {"Shards": [self._described(self.shards[name]) for name in page], **last}}

    def _described(self, shard: FakeShard) -> dict[str, Any]:
        return {"ShardId": shard.id, **({} if shard.parent is None else {"ParentShardId": shard.parent})}

    def _shard(self, name: str) -> FakeShard:
        if name not in self.shards:
            raise TableMissing("ResourceNotFoundException")
        return self.shards[name]

    def _iterator(self, StreamArn: str, ShardId: str, ShardIteratorType: str, SequenceNumber: str | None = None) -> str:
        shard = self._shard(ShardId)
        place = {"LATEST": len(shard.records), "TRIM_HORIZON": shard.trimmed}.get(ShardIteratorType)
        if place is None:
            assert SequenceNumber is not None
            place = sum(_sequence(record) <= int(SequenceNumber) for record in shard.records)
            if place < shard.trimmed:
                raise RecordsTrimmed("TrimmedDataAccessException")
        return f"{self._epoch}/{shard.id}/{place}"

    def _records(self, iterator: str) -> Response:
        epoch, name, place = iterator.split("/")
        shard, begin = self._shard(name), int(place)
        if int(epoch) != self._epoch:
            raise IteratorExpired("ExpiredIteratorException")
        if begin < shard.trimmed:
            raise RecordsTrimmed("TrimmedDataAccessException")
        records = shard.records[begin : begin + RECORDS_OF_A_PAGE]
        end = begin + len(records)
        is_over = shard.is_closed and end == len(shard.records)
        return {"Records": records} | ({} if is_over else {"NextShardIterator": f"{epoch}/{name}/{end}"})


def _sequence(record: dict[str, Any]) -> int:
    return int(record["dynamodb"]["SequenceNumber"])


class Process:
    """A process that reads the streams, until it is killed."""

    def __init__(self, fake: FakeStreams, handlers: Mapping[str, Handler], listener: Listener | None = None) -> None:
        self._fake = fake
        self._is_dead = False
        self.gate = asyncio.Event()
        """While it is not set the process sleeps."""
        self.gate.set()
        graph = Graph(MODEL, self)
        self.source = Source(graph, Client(self))
        self.reader = Reader(self.source, Lease(graph), handlers, listener=listener)

    def kill(self) -> None:
        """End it with nothing more said: what it sends from now on reaches nobody."""
        self._is_dead = True

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request to the table."""
        await self._pass()
        return await self._fake.send(request, meter, parse)

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        """Send a request to the stream."""
        await self._pass()
        return await self._fake(operation, parameters)

    async def _pass(self) -> None:
        await self.gate.wait()
        if self._is_dead:
            raise Unavailable("killed")


class Log:
    """A handler that keeps what it is given: (item, trips) of each change."""

    def __init__(self) -> None:
        self.changes: list[Change] = []

    async def __call__(self, changes: Sequence[Change]) -> None:
        self.changes += changes

    @property
    def seen(self) -> list[tuple[str, int | None]]:
        return [told(change) for change in self.changes]


def told(change: Change) -> tuple[str, int | None]:
    code = str(change.key[1][0][1]).removeprefix("SHIP#")
    return code, None if change.after is None else int(change.after["Trips"]["N"])


@asynccontextmanager
async def running(process: Process) -> AsyncIterator[Process]:
    """Let a process read until it is stopped, or has been killed."""
    task = asyncio.create_task(process.reader.run())
    try:
        yield process
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def reading(
    check: Callable[[FakeStreams, Process, Log], Awaitable[None]], fake: FakeStreams | None = None
) -> FakeStreams:
    """Check something while a process reads that has caught up with what there was."""
    streams, log = fake or FakeStreams(), Log()

    async def main() -> None:
        async with running(Process(streams, {"log": log})) as process:
            await process.reader.caught_up()
            await check(streams, process, log)

    run(main())
    return streams
