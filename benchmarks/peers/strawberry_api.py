"""The API as everyone writes it: Strawberry's types and resolvers, aiodataloader, boto3 in threads."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import boto3
import orjson
import strawberry
import uvicorn
from aiodataloader import DataLoader
from botocore.config import Config
from strawberry.asgi import GraphQL

TABLE, INDEX = os.environ["TABLE"], "reverse-lookup-index"
THREADS = 32
KEYS_IN_A_BATCH = 100
PAGE_SIZE = 50

Item = dict[str, dict[str, Any]]
Info = strawberry.Info[dict[str, Any], None]

# Endpoint, region and keys come from the environment, as boto3 reads them.
dynamodb = boto3.client("dynamodb", config=Config(max_pool_connections=THREADS))
threads = ThreadPoolExecutor(THREADS)


async def _call(method: Callable[..., Any], **parameters: Any) -> Any:
    return await asyncio.get_running_loop().run_in_executor(threads, lambda: method(**parameters))


async def _batch(keys: list[str]) -> list[Item]:
    items: list[Item] = []
    wanted: Any = {TABLE: {"Keys": [{"objectId": {"S": key}, "relatedObjectId": {"S": key}} for key in keys]}}
    while wanted:
        answer = await _call(dynamodb.batch_get_item, RequestItems=wanted)
        items += answer["Responses"].get(TABLE, [])
        wanted = answer["UnprocessedKeys"]
    return items


async def _nodes(keys: list[str]) -> list[Item | None]:
    starts = range(0, len(keys), KEYS_IN_A_BATCH)
    batches = await asyncio.gather(*(_batch(keys[start : start + KEYS_IN_A_BATCH]) for start in starts))
    found = {item["objectId"]["S"]: item for batch in batches for item in batch}
    return [found.get(key) for key in keys]


async def _edges(key: str, prefix: str, first: int, after: str | None) -> list[Item]:
    start = {"ExclusiveStartKey": {"objectId": {"S": key}, "relatedObjectId": {"S": after}}} if after else {}
    answer = await _call(
        dynamodb.query,
        TableName=TABLE,
        KeyConditionExpression="objectId = :p AND begins_with(relatedObjectId, :s)",
        ExpressionAttributeValues={":p": {"S": key}, ":s": {"S": prefix}},
        Limit=first + 1,
        **start,
    )
    return cast(list[Item], answer["Items"])


async def _parent(key: str, prefix: str) -> str | None:
    answer = await _call(
        dynamodb.query,
        TableName=TABLE,
        IndexName=INDEX,
        KeyConditionExpression="relatedObjectId = :p AND begins_with(objectId, :s)",
        ExpressionAttributeValues={":p": {"S": key}, ":s": {"S": prefix}},
        Limit=1,
    )
    return answer["Items"][0]["objectId"]["S"] if answer["Items"] else None


async def _pages(keys: list[tuple[str, str, int, str | None]]) -> list[list[Item]]:
    return await asyncio.gather(*(_edges(*key) for key in keys))


async def _parents(keys: list[tuple[str, str]]) -> list[str | None]:
    return await asyncio.gather(*(_parent(*key) for key in keys))


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def _packed(*content: Any) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")


def _position(cursor: str | None) -> str | None:
    return orjson.loads(base64.urlsafe_b64decode(cursor + "=="))[2][0] if cursor else None


async def _node(info: Info, key: str, shape: Callable[[Item], Any]) -> Any:
    item = await info.context["nodes"].load(key)
    return shape(item) if item else None


async def _above(info: Info, key: str, prefix: str, shape: Callable[[Item], Any]) -> Any:
    found = await info.context["parents"].load((key, prefix))
    return await _node(info, found, shape) if found else None


@strawberry.type
class PageInfo:
    """Where a page ends."""

    has_next_page: bool
    end_cursor: str | None


@strawberry.type
class Container:
    """A shipping container."""

    key: strawberry.Private[str]
    number: strawberry.ID
    operator: str | None

    @classmethod
    def of(cls, item: Item) -> Container:
        """Read it from an item."""
        key = item["objectId"]["S"]
        number = strawberry.ID(key.removeprefix("CONTAINER_"))
        return cls(key=key, number=number, operator=_text(item, "Operator"))

    @strawberry.field
    def id(self) -> strawberry.ID:
        """Name it among all objects."""
        return strawberry.ID(_packed("Container", self.key))

    @strawberry.field
    async def pallets(self, info: Info, first: int = PAGE_SIZE, after: str | None = None) -> ContainerPalletsConnection:
        """Read a page of its pallets."""
        items = await info.context["pages"].load((self.key, "PALLET_", first, _position(after)))
        edges = [ContainerPalletsEdge.of(item) for item in items[:first]]
        return ContainerPalletsConnection(edges=edges, page_info=_page_info(edges, len(items) > first))


@strawberry.type
class Pallet:
    """A pallet in a container."""

    key: strawberry.Private[str]
    number: strawberry.ID
    origin: str | None
    destination: str | None

    @classmethod
    def of(cls, item: Item) -> Pallet:
        """Read it from an item."""
        key = item["objectId"]["S"]
        number = strawberry.ID(key.removeprefix("PALLET_"))
        return cls(key=key, number=number, origin=_text(item, "Origin"), destination=_text(item, "Destination"))

    @strawberry.field
    def id(self) -> strawberry.ID:
        """Name it among all objects."""
        return strawberry.ID(_packed("Pallet", self.key))

    @strawberry.field
    async def container(self, info: Info) -> Container | None:
        """Read the container that it is in."""
        return cast("Container | None", await _above(info, self.key, "CONTAINER_", Container.of))

    @strawberry.field
    async def boxes(self, info: Info, first: int = PAGE_SIZE, after: str | None = None) -> PalletBoxesConnection:
        """Read a page of its boxes."""
        items = await info.context["pages"].load((self.key, "BOX_", first, _position(after)))
        edges = [PalletBoxesEdge.of(item) for item in items[:first]]
        return PalletBoxesConnection(edges=edges, page_info=_page_info(edges, len(items) > first))


@strawberry.type
class Box:
    """A box on a pallet."""

    key: strawberry.Private[str]
    number: strawberry.ID
    weight_in_kg: float | None
    is_dangerous: bool | None

    @classmethod
    def of(cls, item: Item) -> Box:
        """Read it from an item."""
        key = item["objectId"]["S"]
        weight = float(item["WeightInKg"]["N"]) if "WeightInKg" in item else None
        is_dangerous = item["IsDangerous"]["BOOL"] if "IsDangerous" in item else None
        number = strawberry.ID(key.removeprefix("BOX_"))
        return cls(key=key, number=number, weight_in_kg=weight, is_dangerous=is_dangerous)

    @strawberry.field
    def id(self) -> strawberry.ID:
        """Name it among all objects."""
        return strawberry.ID(_packed("Box", self.key))

    @strawberry.field
    async def pallet(self, info: Info) -> Pallet | None:
        """Read the pallet that it is on."""
        return cast("Pallet | None", await _above(info, self.key, "PALLET_", Pallet.of))


@strawberry.type
class ContainerPalletsEdge:
    """A pallet in a container: by whom and when it was loaded."""

    key: strawberry.Private[str]
    cursor: str
    linked_datetime: str | None
    linked_by: str | None
    linked_at_location: str | None

    @classmethod
    def of(cls, item: Item) -> ContainerPalletsEdge:
        """Read it from an item."""
        return cls(**_edge(item))

    @strawberry.field
    async def node(self, info: Info) -> Pallet | None:
        """Read the pallet."""
        return cast("Pallet | None", await _node(info, self.key, Pallet.of))


@strawberry.type
class PalletBoxesEdge:
    """A box on a pallet: by whom and when it was loaded."""

    key: strawberry.Private[str]
    cursor: str
    linked_datetime: str | None
    linked_by: str | None
    linked_at_location: str | None

    @classmethod
    def of(cls, item: Item) -> PalletBoxesEdge:
        """Read it from an item."""
        return cls(**_edge(item))

    @strawberry.field
    async def node(self, info: Info) -> Box | None:
        """Read the box."""
        return cast("Box | None", await _node(info, self.key, Box.of))


@strawberry.type
class ContainerPalletsConnection:
    """A page of a container's pallets."""

    edges: list[ContainerPalletsEdge]
    page_info: PageInfo


@strawberry.type
class PalletBoxesConnection:
    """A page of a pallet's boxes."""

    edges: list[PalletBoxesEdge]
    page_info: PageInfo


def _edge(item: Item) -> dict[str, Any]:
    key = item["relatedObjectId"]["S"]
    return {
        "key": key,
        "cursor": _packed(1, "edges", [key]),
        "linked_datetime": _text(item, "LinkedDatetime"),
        "linked_by": _text(item, "LinkedBy"),
        "linked_at_location": _text(item, "LinkedAtLocation"),
    }


def _page_info(edges: list[Any], has_next_page: bool) -> PageInfo:
    return PageInfo(has_next_page=has_next_page, end_cursor=edges[-1].cursor if edges else None)


@strawberry.type
class Query:
    """Where a document begins."""

    @strawberry.field
    async def container(self, info: Info, number: strawberry.ID) -> Container | None:
        """Read a container."""
        return cast("Container | None", await _node(info, f"CONTAINER_{number}", Container.of))

    @strawberry.field
    async def pallet(self, info: Info, number: strawberry.ID) -> Pallet | None:
        """Read a pallet."""
        return cast("Pallet | None", await _node(info, f"PALLET_{number}", Pallet.of))

    @strawberry.field
    async def box(self, info: Info, number: strawberry.ID) -> Box | None:
        """Read a box."""
        return cast("Box | None", await _node(info, f"BOX_{number}", Box.of))


class App(GraphQL[dict[str, Any], None]):
    """Strawberry's own ASGI application, with loaders that live as long as one request."""

    async def get_context(self, request: Any, response: Any) -> dict[str, Any]:
        return {"nodes": DataLoader(_nodes), "pages": DataLoader(_pages), "parents": DataLoader(_parents)}


if __name__ == "__main__":
    app: Any = App(strawberry.Schema(Query), graphql_ide=None)
    uvicorn.run(app, port=int(os.environ["PORT"]), log_level="warning", access_log=False)
