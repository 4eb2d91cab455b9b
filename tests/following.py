"""A reader of the engine's streams for tests: it reads when a test says so, forgets how far it was, and reads again."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from graph.requests import UpdateTable
from graph.streams.change import Change, read_change
from graph.streams.hub import Hub
from graph.streams.places import BEGINNING, Places
from resolvers.operation import Events, Request, Response
from resolvers.schema import Api
from tests.conftest import Served

HEADERS = {
    "content-type": "application/x-amz-json-1.0",
    # The engine wants a signature, and does not look at it.
    "authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=none",
    "x-amz-date": "20260101T000000Z",
}
STREAM = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}}


class Reader:
    """Follows the streams of a model's tables from now on, and hands what it reads to hubs."""

    def __init__(self, engine: str, served: Served) -> None:
        self._engine = engine
        self._served = served
        self._shards: dict[str, tuple[str, str]] = {}
        """The table and the stream of each shard."""
        self._iterators: dict[str, str] = {}

    async def begin(self) -> Reader:
        """Have the tables tell their changes."""
        for table in self._served.api.model.tables:
            stream = (await self._served.graph.send(UpdateTable(table, STREAM)))["TableDescription"]["LatestStreamArn"]
            described = await self._ask("DescribeStream", {"StreamArn": stream})
            for shard in described["StreamDescription"]["Shards"]:
                self._shards[shard["ShardId"]] = table, stream
        await self.again()
        self._served.sent.clear()
        return self

    @property
    def places(self) -> Places:
        """Say where it began."""
        return dict.fromkeys(self._shards, BEGINNING)

    async def again(self) -> None:
        """Begin again, as a reader does that was killed before it wrote down how far it was."""
        self._iterators = {shard: await self._beginning(shard) for shard in self._shards}

    async def hand_to(self, hub: Hub) -> list[Change]:
        """Hand on, and give, all that was written until now."""
        handed: list[Change] = []
        for shard, iterator in self._iterators.items():
            changes, self._iterators[shard] = await self._read(shard, iterator)
            await hub.publish(changes)
            handed += changes
        return handed

    async def replay(self, places: Places) -> AsyncIterator[Change]:
        """Read what the streams hold behind places."""
        for shard in self._shards:
            changes, _ = await self._read(shard, await self._beginning(shard))
            for change in changes:
                if change.place.sequence > places.get(shard, BEGINNING):
                    yield change

    async def _beginning(self, shard: str) -> str:
        wanted = {"StreamArn": self._shards[shard][1], "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON"}
        iterator: str = (await self._ask("GetShardIterator", wanted))["ShardIterator"]
        return iterator

    async def _read(self, shard: str, iterator: str) -> tuple[list[Change], str]:
        model, table = self._served.api.model, self._shards[shard][0]
        changes: list[Change] = []
        while True:
            found = await self._ask("GetRecords", {"ShardIterator": iterator})
            iterator = found["NextShardIterator"]
            if not found["Records"]:
                return changes, iterator
            changes += [read_change(model, table, record, shard) for record in found["Records"]]

    async def _ask(self, operation: str, parameters: dict[str, Any]) -> Any:
        headers = HEADERS | {"x-amz-target": f"DynamoDBStreams_20120810.{operation}"}
        async with httpx.AsyncClient() as client:
            answer = await client.post(self._engine, headers=headers, json=parameters)
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass
class Followed:
    """A model served with its changes followed: they come when a test says so."""

    served: Served
    reader: Reader
    hub: Hub
    api: Api

    async def open(self, query: str, variables: Mapping[str, Any] | None = None, *, cost: bool = False) -> Events:
        """Begin a subscription that must not be refused."""
        opened = await self.api.open(Request(query, variables, cost=cost))
        assert not isinstance(opened, Response), opened.body
        return opened

    async def refusal(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Begin a subscription that must be refused, and give its one error."""
        opened = await self.api.open(Request(query, variables))
        assert isinstance(opened, Response)
        assert opened.outcome == "refused"
        assert opened.body.keys() == {"errors"}
        (error,) = opened.body["errors"]
        return error

    async def write(self, mutation: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Write what must not be refused, and have all changes until now handed on."""
        data = await self.served.data(mutation, variables)
        await self.reader.hand_to(self.hub)
        self.served.sent.clear()
        return data

    async def bodies(self, *subscriptions: Events) -> list[list[Any]]:
        """End everything, and give the responses that each subscription has got."""
        self.hub.close()
        return [[body async for body in events] for events in subscriptions]

    async def told(self, *subscriptions: Events) -> list[list[Any]]:
        """End everything, and give what each subscription was told, which must not be errors."""
        found = await self.bodies(*subscriptions)
        assert [body["errors"] for bodies in found for body in bodies if "errors" in body] == []
        return [[next(iter(body["data"].values())) for body in bodies] for bodies in found]


async def follow(served: Served, engine: str, *, replays: bool = True, most_waiting: int = 1_000) -> Followed:
    """Follow the changes of a model that is served."""
    reader = await Reader(engine, served).begin()
    hub = Hub(served.api.model, most_waiting, replay=reader.replay if replays else None)
    hub.begin(reader.places)
    # What the test began with.
    await reader.hand_to(hub)
    return Followed(served, reader, hub, Api(served.graph, hub=hub))


async def soon(events: Events) -> Any:
    """Give the next response, which must be there or on its way."""
    async with asyncio.timeout(30):
        return await anext(aiter(events))


def global_id(*parts: str) -> str:
    """Write the global id of a type and a key."""
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")
