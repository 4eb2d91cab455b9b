"""The stream of a table as the engine has it, read the simplest way, for tests of what follows by it."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from graph.boto import BotoTransport
from graph.client import Client, Transport
from graph.errors import AccessRefused
from graph.loaders import Graph
from graph.model import Model
from graph.requests import ItemKey
from graph.streams.change import Change, Handler, read_change
from graph.streams.copies import Copies
from resolvers.sdl import compile_model
from tests.conftest import Served


class Stream:
    """What was written to the tables of a model since the last look, in the order of the shard."""

    def __init__(self, engine: str, model: Model, done: dict[tuple[str, str], int] | None = None) -> None:
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
        self._done = dict(done or {})
        self._read = dict(self._done)
        self._iterators: dict[tuple[str, str], str] = {}

    def read(self) -> list[Change]:
        """Give the changes that are new."""
        return [change for table in self._model.tables for change in self._of_table(table)]

    def acknowledge(self) -> None:
        """Remember that all that was given is done with."""
        self._done = dict(self._read)

    def places(self) -> str:
        """Write down what was acknowledged."""
        return json.dumps([[*shard, sequence] for shard, sequence in self._done.items()])

    def _of_table(self, table: str) -> list[Change]:
        changes: list[Change] = []
        for stream in self._client.list_streams(TableName=table)["Streams"]:
            arn = stream["StreamArn"]
            for shard in self._client.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
                changes += self._of_shard(table, arn, shard["ShardId"])
        return changes

    def _of_shard(self, table: str, arn: str, shard: str) -> list[Change]:
        iterator = self._iterators.get((arn, shard)) or self._begin(arn, shard)
        changes: list[Change] = []
        while True:
            answer = self._client.get_records(ShardIterator=iterator)
            changes += [read_change(self._model, table, _as_wire(one), f"{arn}/{shard}") for one in answer["Records"]]
            following = answer.get("NextShardIterator")
            if following is None or not answer["Records"]:
                self._iterators[arn, shard] = following or iterator
                if changes:
                    self._read[arn, shard] = changes[-1].place.sequence
                return changes
            iterator = following

    def _begin(self, arn: str, shard: str) -> str:
        place: dict[str, str] = {"ShardIteratorType": "TRIM_HORIZON"}
        if (read := self._read.get((arn, shard))) is not None:
            place = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": f"{read:021}"}
        return str(self._client.get_shard_iterator(StreamArn=arn, ShardId=shard, **place)["ShardIterator"])


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
    return Stream(engine, served.graph.model)


async def catch_up(stream: Stream, handler: Handler) -> int:
    """Hand out changes, and those that this causes, until there are no more; give their number."""
    count = 0
    while changes := await asyncio.to_thread(stream.read):
        count += len(changes)
        await handler(changes)
    return count


class Chaos:
    """Hands out changes as badly as may be: of different items in any order, some again, and killed in the middle."""

    def __init__(self, graph: Graph, transport: Transport, dice: random.Random) -> None:
        self._graph = graph
        self._transport = transport
        self._dice = dice
        self._old: list[list[Change]] = []
        self.killed = 0

    async def follow(self, changes: Sequence[Change]) -> None:
        """Follow changes, in the end all of them; a Handler."""
        left = self.shuffled(changes)
        while left:
            count = self._dice.randint(1, len(left))
            some, left = left[:count], left[count:]
            while self._dice.random() < 0.5:
                await self._be_killed(some)
            await Copies(self._graph).follow(some)
            self._old.append(some)
            if self._dice.random() < 0.4:
                await Copies(self._graph).follow(self._dice.choice(self._old))

    def shuffled(self, changes: Sequence[Change]) -> list[Change]:
        """Put changes into another order, those of each item in their own."""
        by_item: dict[ItemKey, list[Change]] = {}
        for change in changes:
            by_item.setdefault(change.key, []).append(change)
        turns = [change.key for change in changes]
        self._dice.shuffle(turns)
        return [by_item[key].pop(0) for key in turns]

    async def _be_killed(self, changes: Sequence[Change]) -> None:
        """Follow changes until a random request, which is not sent any more, and those behind it neither."""
        left = self._dice.randint(0, 5)

        async def send(operation: str, parameters: dict[str, Any]) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise AccessRefused("killed")
            return await self._transport(operation, parameters)

        try:
            await Copies(Graph(self._graph.model, Client(send)), page_items=2).follow(changes)
        except AccessRefused:
            self.killed += 1


def read_places(text: str) -> dict[tuple[str, str], int]:
    """Read what was acknowledged."""
    return {(arn, shard): sequence for arn, shard, sequence in json.loads(text)}


async def follow(engine: str, schema: Path, table: str, done: str) -> None:
    """Follow the stream of a table behind some place until there is nothing more, and slowly: to be killed."""
    model = compile_model(schema.read_text(), table=table)
    transport = BotoTransport(engine, "eu-central-1", credentials=("local", "local"))
    copies = Copies(Graph(model, Client(transport)), at_once=1, page_items=20)
    await catch_up(Stream(engine, model, read_places(done)), copies.follow)
    transport.close()


if __name__ == "__main__":
    asyncio.run(follow(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:5]))
