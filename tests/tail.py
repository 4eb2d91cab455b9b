"""The end of a table's stream on the engine: what was written since is handed to a hub when a test says so."""

from __future__ import annotations

import asyncio
from typing import Any

import boto3
from botocore.config import Config

from graph.requests import UpdateTable
from graph.streams.change import read_change
from graph.streams.hub import Hub
from tests.conftest import Served


class Tail:
    """Follows the streams of a model's tables from now on."""

    def __init__(self, engine: str, served: Served, hub: Hub) -> None:
        self._client: Any = boto3.client(
            "dynamodbstreams",
            endpoint_url=engine,
            region_name="eu-central-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            # The ids of the engine's shards are too short for boto3.
            config=Config(parameter_validation=False),
        )
        self._served = served
        self._hub = hub
        self._iterators: dict[tuple[str, str], str] = {}
        """By table and shard."""

    async def begin(self) -> Tail:
        """Have the tables tell their changes."""
        for table in self._served.api.model.tables:
            stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
            request = UpdateTable(table, {"StreamSpecification": stream})
            arn = (await self._served.graph.send(request))["TableDescription"]["LatestStreamArn"]
            described = await self._ask("describe_stream", {"StreamArn": arn})
            for shard in described["StreamDescription"]["Shards"]:
                wanted = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
                found = await self._ask("get_shard_iterator", wanted)
                self._iterators[table, shard["ShardId"]] = found["ShardIterator"]
        self._served.sent.clear()
        return self

    async def hand_on(self) -> None:
        """Hand on all that was written until now."""
        for (table, shard), iterator in self._iterators.items():
            while True:
                found = await self._ask("get_records", {"ShardIterator": iterator})
                iterator = self._iterators[table, shard] = found["NextShardIterator"]
                if not found["Records"]:
                    break
                for record in found["Records"]:
                    # boto3 has made a datetime of what are seconds.
                    del record["dynamodb"]["ApproximateCreationDateTime"]
                model = self._served.api.model
                await self._hub.publish([read_change(model, table, record, shard) for record in found["Records"]])

    async def _ask(self, operation: str, parameters: dict[str, Any]) -> Any:
        return await asyncio.to_thread(getattr(self._client, operation), **parameters)
