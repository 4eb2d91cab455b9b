"""The API beside the same reads by hand: CPU for each query, in alternating rounds of one run."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from graph.boto import BotoTransport
from graph.client import Client
from graph.loaders import Graph
from graph.requests import PutItems
from graph.tables import create_table
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.demo import read_items
from server.engine import Engine

ROOT = Path(__file__).parent.parent
TABLE, INDEX = "banana-delivery", "reverse-lookup-index"
ROUNDS = 15

BOXES = [f"C001{pallet:03}{box:02}" for pallet in range(1, 6) for box in range(1, 11)]
CONTAINERS = [f"{number:06}" for number in range(1, 11)]
PALLET_FIELDS = "edges { linkedBy linkedDatetime node { number origin destination"

QUERIES = {
    "Q1": '{ container(number: "000001") { id number operator } }',
    "Q2": f'{{ container(number: "000001") {{ number pallets(first: 20) {{ {PALLET_FIELDS} boxes(first: 15) {{ edges '
    "{ linkedBy node { number weightInKg isDangerous } } } } } } } }",
    "Q3": "{ "
    + " ".join(
        f'b{box}: box(number: "{box}") {{ number pallet {{ number container {{ operator }} }} }}' for box in BOXES
    )
    + " }",
    "Q4": f'{{ container(number: "000001") {{ pallets(first: 10) {{ {PALLET_FIELDS} }} cursor }} '
    "pageInfo { hasNextPage endCursor } } } }",
    "Q5": "{ "
    + " ".join(
        f'c{n}: container(number: "{n}") {{ pallets(first: 20) {{ {PALLET_FIELDS} }} }} }} }}' for n in CONTAINERS
    )
    + " }",
}


class ByHand:
    """The same reads as somebody who knows the table writes them: boto3 in threads, batched, nothing else."""

    def __init__(self, endpoint: str) -> None:
        config = Config(max_pool_connections=16, retries={"total_max_attempts": 1})
        self._client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name="eu-central-1",
            config=config,
            aws_access_key_id="local",
            aws_secret_access_key="local",
        )
        self._threads = ThreadPoolExecutor(16)

    async def _call(self, method: str, **parameters: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: getattr(self._client, method)(**parameters))

    async def node(self, key: str) -> Any:
        return await self._call("get_item", TableName=TABLE, Key=_key(key))

    async def nodes(self, keys: list[str]) -> list[Any]:
        unique = list(dict.fromkeys(keys))
        batches = [unique[start : start + 100] for start in range(0, len(unique), 100)]
        answers = await asyncio.gather(
            *(
                self._call("batch_get_item", RequestItems={TABLE: {"Keys": [_key(key) for key in batch]}})
                for batch in batches
            )
        )
        return [item for answer in answers for item in answer["Responses"][TABLE]]

    async def edges(self, key: str, prefix: str, limit: int, *, reverse: bool = False) -> list[Any]:
        names = {"#p": "relatedObjectId" if reverse else "objectId", "#s": "objectId" if reverse else "relatedObjectId"}
        index = {"IndexName": INDEX} if reverse else {}
        answer = await self._call(
            "query",
            TableName=TABLE,
            KeyConditionExpression="#p = :p AND begins_with(#s, :s)",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":p": {"S": key}, ":s": {"S": prefix}},
            Limit=limit,
            **index,
        )
        return [item[names["#s"]]["S"] for item in answer["Items"]]

    async def q1(self) -> None:
        await self.node("CONTAINER_000001")

    async def q2(self) -> None:
        await self.node("CONTAINER_000001")
        pallets = await self.edges("CONTAINER_000001", "PALLET_", 21)
        await self.nodes(pallets)
        boxes = await asyncio.gather(*(self.edges(pallet, "BOX_", 16) for pallet in pallets))
        await self.nodes(list(itertools.chain.from_iterable(boxes)))

    async def q3(self) -> None:
        boxes = [f"BOX_{box}" for box in BOXES]
        await self.nodes(boxes)
        pallets = await asyncio.gather(*(self.edges(box, "PALLET_", 1, reverse=True) for box in boxes))
        unique = list(dict.fromkeys(itertools.chain.from_iterable(pallets)))
        containers = await asyncio.gather(*(self.edges(pallet, "CONTAINER_", 1, reverse=True) for pallet in unique))
        await self.nodes(list(itertools.chain.from_iterable(containers)))

    async def q4(self) -> None:
        await self.node("CONTAINER_000001")
        await self.nodes(await self.edges("CONTAINER_000001", "PALLET_", 11))

    async def q5(self) -> None:
        keys = [f"CONTAINER_{number}" for number in CONTAINERS]
        await self.nodes(keys)
        pallets = await asyncio.gather(*(self.edges(key, "PALLET_", 21) for key in keys))
        await self.nodes(list(itertools.chain.from_iterable(pallets)))


def _key(key: str) -> dict[str, Any]:
    return {"objectId": {"S": key}, "relatedObjectId": {"S": key}}


async def _cpu_ms(work: Callable[[], Awaitable[object]], times: int) -> float:
    started = time.process_time()
    for _ in range(times):
        await work()
    return (time.process_time() - started) * 1000 / times


async def main() -> None:
    """Load the fleet, run the rounds, print the table."""
    async with Engine() as engine:
        transport = BotoTransport(engine.endpoint_url, "eu-central-1", credentials=("local", "local"))
        model = compile_model((ROOT / "schema.graphql").read_text())
        graph = Graph(model, Client(transport))
        await graph.send(create_table(model, model.tables[TABLE]))
        items = read_items(ROOT / "examples/bananas/fleet.py")
        while batch := tuple(itertools.islice(items, 25)):
            await graph.send(PutItems(TABLE, batch))
        api, by_hand = Api(graph), ByHand(engine.endpoint_url)
        print(f"{'':4}{'requests':>10}{'API ms':>10}{'by hand ms':>12}{'ratio':>8}   (CPU, medians of {ROUNDS} rounds)")
        for name, query in QUERIES.items():
            response = await api.execute(Request(query, cost=True))
            assert "errors" not in response.body, response.body["errors"]
            requests = response.body["extensions"]["cost"]["requests"]["total"]
            times = 20 if name in ("Q1", "Q4") else 2
            ours, theirs = [], []
            for _ in range(ROUNDS):
                ours.append(await _cpu_ms(lambda query=query: api.execute(Request(query)), times))  # type: ignore[misc]
                theirs.append(await _cpu_ms(getattr(by_hand, name.lower()), times))
            api_ms, hand_ms = statistics.median(ours), statistics.median(theirs)
            print(f"{name:4}{requests:>10}{api_ms:>10.2f}{hand_ms:>12.2f}{api_ms / hand_ms:>8.2f}")
        transport.close()


if __name__ == "__main__":
    asyncio.run(main())
