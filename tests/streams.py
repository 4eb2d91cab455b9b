"""The stream of a table as the engine has it, read the simplest way, for tests of what follows by it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from typing import Any

import boto3
from botocore.config import Config

from graph.model import Model
from graph.requests import DescribeTable
from graph.streams.change import Change, Handler, read_change
from tests.conftest import Served


class Stream:
    """What was written to the tables of a model since the last look, in the order of the shard."""

    def __init__(self, engine: str, model: Model, tables: list[str]) -> None:
        # The engine's names of shards may be shorter than botocore would have them.
        self._client = boto3.client(
            "dynamodbstreams",
            endpoint_url=engine,
            region_name="eu-central-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=Config(parameter_validation=False),
        )
        self._model = model
        self._tables = tables
        self._iterators: dict[tuple[str, str], str] = {}

    def read(self) -> list[Change]:
        """Give the changes that are new."""
        return [change for table in self._tables for change in self._of_table(table)]

    def _of_table(self, table: str) -> list[Change]:
        changes: list[Change] = []
        for stream in self._client.list_streams(TableName=table)["Streams"]:
            arn = stream["StreamArn"]
            for shard in self._client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                changes += self._of_shard(table, arn, shard["ShardId"])
        return changes

    def _of_shard(self, table: str, arn: str, shard: str) -> list[Change]:
        iterator = self._iterators.get((arn, shard)) or str(
            self._client.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")[
                "ShardIterator"
            ]
        )
        changes: list[Change] = []
        while True:
            answer = self._client.get_records(ShardIterator=iterator)
            changes += [read_change(self._model, table, _as_wire(one), f"{arn}/{shard}") for one in answer["Records"]]
            following = answer.get("NextShardIterator")
            if following is None or not answer["Records"]:
                self._iterators[arn, shard] = following or iterator
                return changes
            iterator = following


def _as_wire(record: dict[str, Any]) -> dict[str, Any]:
    """Take a record as boto3 gives it, with texts in the place of bytes, and a number in that of a time."""
    told = dict(record["dynamodb"])
    for name in ("Keys", "NewImage", "OldImage"):
        if name in told:
            told[name] = _with_text(told[name])
    told["ApproximateCreationDateTime"] = told["ApproximateCreationDateTime"].timestamp()
    return {**record, "dynamodb": told}


def _with_text(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _with_text(entry) for name, entry in value.items()}
    return [_with_text(entry) for entry in value] if isinstance(value, list) else value


def stream_of(engine: str, served: Served) -> Stream:
    """Give the stream of a model that is served; what was written before the first look is new."""
    return Stream(engine, served.graph.model, list(served.graph.model.tables))


async def catch_up(stream: Stream, handler: Handler, order: Callable[[list[Change]], list[Change]] = list) -> int:
    """Hand out changes, and those that this causes, until there are no more; give their number."""
    count = 0
    while changes := await asyncio.to_thread(stream.read):
        count += len(changes)
        await handler(order(changes))
    return count
