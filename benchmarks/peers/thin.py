"""A thin client for the reads of DynamoDB: keep-alive connections, SigV4 and JSON, nothing else."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import time
from collections import deque
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urlsplit

import httptools
import orjson

SERVICE = "dynamodb"
KEYS_IN_A_BATCH = 100

Item = dict[str, dict[str, Any]]


class Connection(asyncio.Protocol):
    """One connection that carries a request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._parts: list[bytes] = []
        self._transport: asyncio.Transport | None = None

    @property
    def is_open(self) -> bool:
        """Say whether it can carry another request."""
        return self._transport is not None and not self._transport.is_closing()

    def exchange(self, request: bytes) -> asyncio.Future[bytes]:
        """Send a request; the future is its answer's body."""
        self._answer = asyncio.get_running_loop().create_future()
        self._parts = []
        cast(asyncio.Transport, self._transport).write(request)
        return self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc or ConnectionError("the connection was closed"))

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        body = b"".join(self._parts)
        if self._parser.get_status_code() == 200:
            self._answer.set_result(body)
        else:
            self._answer.set_exception(RuntimeError(body.decode()))


class Table:
    """Reads one table, over at most so many connections."""

    def __init__(self, endpoint: str, region: str, access: str, secret: str, name: str, connections: int = 64) -> None:
        parts = urlsplit(endpoint)
        self._place = (str(parts.hostname), parts.port or 80)
        self._host = parts.netloc
        self._region, self._access, self._secret = region, access, secret
        self._name = name
        self._idle: list[Connection] = []
        self._waiting: deque[asyncio.Future[Connection]] = deque()
        self._to_open = connections
        self._second = 0
        self._stamp = self._scope = ""
        self._signing_key = b""

    async def nodes(self, keys: Iterable[str]) -> dict[str, Item]:
        """Read the nodes of these keys, as many in a request as DynamoDB takes."""
        unique = list(dict.fromkeys(keys))
        starts = range(0, len(unique), KEYS_IN_A_BATCH)
        batches = await asyncio.gather(*(self._batch(unique[start : start + KEYS_IN_A_BATCH]) for start in starts))
        return {item["objectId"]["S"]: item for batch in batches for item in batch}

    async def node(self, key: str) -> Item | None:
        """Read one node."""
        answer = await self._call("GetItem", {"TableName": self._name, "Key": _key(key)})
        return cast("Item | None", answer.get("Item"))

    async def with_edges(self, key: str, prefix: str, limit: int) -> tuple[Item | None, list[Item]]:
        """Read a node and its first edges to nodes that begin so: they lie side by side."""
        query = _query("objectId = :p AND relatedObjectId BETWEEN :p AND :s", key, f"{prefix}\U0010ffff", limit + 1)
        found = (await self._call("Query", {"TableName": self._name, **query}))["Items"]
        if found and found[0]["relatedObjectId"]["S"] == key:
            return found[0], found[1:]
        return None, found[:limit]

    async def edges(self, key: str, prefix: str, limit: int) -> list[Item]:
        """Read the first edges of a node to nodes that begin so."""
        query = _query("objectId = :p AND begins_with(relatedObjectId, :s)", key, prefix, limit)
        return cast(list[Item], (await self._call("Query", {"TableName": self._name, **query}))["Items"])

    async def parent(self, key: str, prefix: str, index: str) -> str | None:
        """Read the key of the node that a node hangs on."""
        query = _query("relatedObjectId = :p AND begins_with(objectId, :s)", key, prefix, 1)
        found = (await self._call("Query", {"TableName": self._name, "IndexName": index, **query}))["Items"]
        return found[0]["objectId"]["S"] if found else None

    async def _batch(self, keys: list[str]) -> list[Item]:
        wanted = {self._name: {"Keys": [_key(key) for key in keys]}}
        found: list[Item] = []
        while wanted:
            answer = await self._call("BatchGetItem", {"RequestItems": wanted})
            found += answer["Responses"].get(self._name, ())
            wanted = answer.get("UnprocessedKeys")
        return found

    async def _call(self, operation: str, parameters: dict[str, Any]) -> Any:
        request = self._request(operation, orjson.dumps(parameters))
        connection = self._idle.pop() if self._idle else await self._connection()
        try:
            return orjson.loads(await connection.exchange(request))
        finally:
            self._give_back(connection)

    async def _connection(self) -> Connection:
        if self._to_open:
            self._to_open -= 1
            return await self._opened()
        waiter: asyncio.Future[Connection] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return await waiter

    async def _opened(self) -> Connection:
        try:
            return (await asyncio.get_running_loop().create_connection(Connection, *self._place))[1]
        except OSError:
            self._to_open += 1
            raise

    def _give_back(self, connection: Connection) -> None:
        if not connection.is_open:
            self._to_open += 1
        elif self._waiting:
            self._waiting.popleft().set_result(connection)
        else:
            self._idle.append(connection)

    def _request(self, operation: str, body: bytes) -> bytes:
        """Write a request with its signature, by AWS Signature Version 4."""
        now = int(time.time())
        if now != self._second:
            self._tick(now)
        target = f"DynamoDB_20120810.{operation}"
        canonical = (
            f"POST\n/\n\nhost:{self._host}\nx-amz-date:{self._stamp}\nx-amz-target:{target}\n\n"
            f"host;x-amz-date;x-amz-target\n{hashlib.sha256(body).hexdigest()}"
        )
        hashed = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{self._stamp}\n{self._scope}\n{hashed}"
        signature = hmac.digest(self._signing_key, text.encode(), "sha256").hex()
        return (
            f"POST / HTTP/1.1\r\nhost: {self._host}\r\nx-amz-date: {self._stamp}\r\nx-amz-target: {target}\r\n"
            f"authorization: AWS4-HMAC-SHA256 Credential={self._access}/{self._scope}, "
            f"SignedHeaders=host;x-amz-date;x-amz-target, Signature={signature}\r\n"
            f"content-type: application/x-amz-json-1.0\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode() + body

    def _tick(self, now: int) -> None:
        """Write what stays for a second: the time; and for a day: the key."""
        self._second = now
        self._stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        day = self._stamp[:8]
        scope = f"{day}/{self._region}/{SERVICE}/aws4_request"
        if scope != self._scope:
            self._scope = scope
            key = f"AWS4{self._secret}".encode()
            for part in scope.split("/"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._signing_key = key


def _key(key: str) -> Item:
    return {"objectId": {"S": key}, "relatedObjectId": {"S": key}}


def _query(condition: str, partition: str, sort: str, limit: int) -> dict[str, Any]:
    return {
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": {":p": {"S": partition}, ":s": {"S": sort}},
        "Limit": limit,
    }
