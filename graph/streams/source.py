"""Where changes come from: the streams of a model's tables, their shards, and the records of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from graph.client import Client, Meter, Response
from graph.errors import PlaceLost, RecordsTrimmed, StreamError, TableMissing
from graph.loaders import Graph
from graph.model import Model
from graph.requests import DescribeTable, ListTables
from graph.streams.requests import DescribeStream, GetRecords, GetShardIterator, StreamRequest
from graph.streams.shards import BEGINNING, Shard

VIEW = "NEW_AND_OLD_IMAGES"
POLL_SECS = 0.2
"""The time between two GetRecords: DynamoDB takes five a second for a shard. Source: its Developer Guide, quotas."""


class Stream(NamedTuple):
    """The stream of a table; one that is turned off and on again is another one."""

    table: str
    arn: str


class Records(NamedTuple):
    """What one GetRecords brought, and the iterator to go on with: None at the end of the shard."""

    records: Sequence[Mapping[str, Any]]
    next: str | None


class Source:
    """Reads the streams of a model's tables; belongs to one event loop."""

    def __init__(self, graph: Graph, streams: Client) -> None:
        """Take the tables, and the client of DynamoDB Streams, which is a service of its own."""
        self._graph = graph
        self._client = streams

    @property
    def model(self) -> Model:
        """Give the model whose tables these are."""
        return self._graph.model

    async def streams(self) -> list[Stream]:
        """Find the streams as they are now; of time series those of the tables that there are, and have one.

        Cost:   a DescribeTable for each table, and ListTables for time series.
        Raises: StreamError for a table that has none, or one of keys alone; StoreError.
        """
        found: list[Stream] = []
        for name in await self._tables():
            described = (await self._graph.send(DescribeTable(name)))["Table"]
            specification = described.get("StreamSpecification") or {}
            arn = described.get("LatestStreamArn")
            is_on = bool(arn) and bool(specification.get("StreamEnabled"))
            if not is_on and name not in self.model.tables:
                # A period that was over before anybody followed it is written no more.
                continue
            if not is_on:
                raise StreamError(
                    f"the table {name!r} has no stream, so nobody is told of what is written to it: `tablegraph "
                    "table apply` turns it on"
                )
            if specification["StreamViewType"] != VIEW:
                raise StreamError(
                    f"the stream of the table {name!r} tells {specification['StreamViewType']} alone: expected {VIEW}. "
                    "Turn it off, once nobody else reads it; then `tablegraph table apply` turns the right one on"
                )
            found.append(Stream(name, arn))
        return found

    async def _tables(self) -> list[str]:
        tables = self.model.tables.values()
        names = [table.name for table in tables if table.period is None]
        series = [table.period for table in tables if table.period is not None]
        after: str | None = None
        while series:
            listed = await self._graph.send(ListTables(after))
            names += [name for name in listed["TableNames"] if any(one.names_table(name) for one in series)]
            after = listed.get("LastEvaluatedTableName")
            if after is None:
                break
        return list(dict.fromkeys(names))

    async def shards(self, stream: str) -> list[Shard]:
        """List the shards that a stream still has. Raises: PlaceLost where the stream is gone; StoreError."""
        found: list[Shard] = []
        after: str | None = None
        while True:
            described = (await self._send(DescribeStream(stream, after)))["StreamDescription"]
            found += [Shard(shard["ShardId"], shard.get("ParentShardId")) for shard in described["Shards"]]
            # Some engines give a whole list again, whatever it is to begin behind.
            last = described.get("LastEvaluatedShardId")
            if not last or last == after:
                return list({shard.id: shard for shard in found}.values())
            after = last

    async def iterator(self, stream: str, shard: str, position: int) -> str:
        """Begin to read a shard behind a position. Raises: PlaceLost where that is trimmed away; StoreError."""
        if position > BEGINNING:
            request = GetShardIterator(stream, shard, "AFTER_SEQUENCE_NUMBER", position)
        else:
            request = GetShardIterator(stream, shard, "TRIM_HORIZON")
        return str((await self._send(request))["ShardIterator"])

    async def latest(self, stream: str, shard: str) -> str:
        """Begin to read a shard with what comes next. Raises: PlaceLost where it is gone; StoreError."""
        return str((await self._send(GetShardIterator(stream, shard, "LATEST")))["ShardIterator"])

    async def records(self, iterator: str) -> Records:
        """Read on. Raises: IteratorExpired, PlaceLost where the place is trimmed away; StoreError."""
        answer = await self._send(GetRecords(iterator))
        return Records(answer["Records"], answer.get("NextShardIterator"))

    async def _send(self, request: StreamRequest) -> Response:
        try:
            return await self._client.send(request, Meter())
        except (RecordsTrimmed, TableMissing) as error:
            raise PlaceLost(
                f"the stream no longer holds what is asked for ({error}): it keeps 24 hours. Begin anew with what "
                "comes from now on, and read what there is"
            ) from error
