"""The thin way for reads and transactions; everything else goes through boto3."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import botocore.session
import orjson

from graph.answers import refuse_truncated, store_error, unreachable
from graph.bodies import body_of
from graph.boto import BotoTransport, Service
from graph.client import BYTES, Response
from graph.codec import Parse, parse_body, parse_json
from graph.errors import KeysRefused, RequestRefused, StoreError
from graph.requests import Request
from graph.wire.connection import Answer
from graph.wire.credentials import Credentials
from graph.wire.endpoint import Endpoint, endpoint_of
from graph.wire.pool import Pool

# Each may be sent a second time where its connection had died: a read changes nothing, a transaction has its token.
OPERATIONS: dict[Service, frozenset[str]] = {
    "dynamodb": frozenset({"GetItem", "BatchGetItem", "Query", "Scan", "TransactWriteItems"}),
    "dynamodbstreams": frozenset({"DescribeStream", "GetShardIterator", "GetRecords"}),
}

CONNECTIONS = 128
"""Enough to use up a processor at 5 ms a request; `benchmarks/README.md`, "Ways to DynamoDB"."""

TEXT_OF_A_PAGE = 200
"""How much is told of an error that is not DynamoDB's: the page of a proxy."""


class WireTransport:
    """Sends over connections of its own, which each event loop has for itself, and signs by itself."""

    def __init__(
        self,
        endpoint_url: str | None = None,
        region: str | None = None,
        connections: int = CONNECTIONS,
        *,
        credentials: tuple[str, str] | None = None,
        service: Service = "dynamodb",
    ) -> None:
        """Take endpoint, region and credentials from boto3; its client serves the operations that are rare."""
        self._boto = BotoTransport(endpoint_url, region, connections, credentials=credentials, service=service)
        self._endpoint = endpoint_of(self._boto)
        # Another session has nothing in its memory that has been refused.
        find = None if credentials else lambda: botocore.session.get_session().get_credentials()
        self._credentials = Credentials(self._boto.session.get_credentials(), find)
        self._connections = connections
        self._pools: dict[asyncio.AbstractEventLoop, Pool] = {}
        self.carried = frozenset() if self._endpoint is None else OPERATIONS[service]

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        """Send one request, given by its parameters. Raises StoreError."""
        if operation not in self.carried:
            return await self._boto(operation, parameters)
        try:
            body = orjson.dumps(parameters)
        except orjson.JSONEncodeError as error:
            raise _unwritable(operation, error) from error
        answer = await self._exchange(operation, body)
        try:
            return read_answer(operation, answer, lambda: parameters)
        except KeysRefused:
            await self._credentials.renew()
            return read_answer(operation, await self._exchange(operation, body), lambda: parameters)

    async def carry(self, request: Request, deadline: float | None, parse: Parse, *, report_capacity: bool) -> Response:
        """Send one request, and parse its answer as wanted. Raises StoreError: Unavailable at the deadline."""
        operation = request.operation
        try:
            body = body_of(request)
        except orjson.JSONEncodeError as error:
            raise _unwritable(operation, error) from error
        if report_capacity:
            body = body[:-1] + b',"ReturnConsumedCapacity":"TOTAL"}'
        answer = await self._exchange(operation, body, deadline)
        try:
            response = read_answer(operation, answer, request.parameters, parse)
        except KeysRefused:
            async with asyncio.timeout_at(deadline):
                await self._credentials.renew()
            answer = await self._exchange(operation, body, deadline)
            response = read_answer(operation, answer, request.parameters, parse)
        response[BYTES] = len(answer.body)
        return response

    async def _exchange(self, operation: str, body: bytes, deadline: float | None = None) -> Answer:
        endpoint = self._endpoint
        assert endpoint is not None, "what is carried has somewhere to go"
        try:
            keys = self._credentials.ready()
            if keys is None:
                async with asyncio.timeout_at(deadline):
                    keys = await self._credentials.keys()
            pool = self._pools.get(asyncio.get_running_loop()) or await self._open_pool(endpoint)
            return await pool.exchange(endpoint.request(operation, body, keys), deadline)
        except OSError as error:
            raise unreachable(f"{endpoint.url}: {error}") from error

    async def _open_pool(self, endpoint: Endpoint) -> Pool:
        loop = asyncio.get_running_loop()
        self._pools = {loop: pool for loop, pool in self._pools.items() if not loop.is_closed()}
        pool = self._pools[loop] = Pool(endpoint.address, self._connections)
        await pool.open()
        return pool

    def close(self) -> None:
        """Close the connections and free boto3's threads."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close)
        self._boto.close()


def _unwritable(operation: str, error: Exception) -> RequestRefused:
    return RequestRefused(f"{operation} holds what JSON cannot carry: {error}")


def read_answer(
    operation: str, answer: Answer, parameters: Callable[[], dict[str, Any]], parse: Parse = parse_json
) -> Response:
    """Give the response that an answer holds.

    Raises: StoreError: Unavailable for an answer that is damaged, and the error that it tells of.
    """
    if answer.status >= 300:
        raise _error(answer, parameters())
    try:
        response = parse_body(answer.body, answer.crc32, parse)
    except ValueError as error:
        raise unreachable(error) from error
    refuse_truncated(operation, response)
    return response


def _error(answer: Answer, parameters: dict[str, Any]) -> StoreError:
    try:
        content = parse_body(answer.body, answer.crc32)
    except ValueError as error:
        if answer.crc32 is not None:
            return unreachable(error)
        content = {"message": answer.body[:TEXT_OF_A_PAGE].decode(errors="replace")}
    # com.amazonaws.dynamodb.v20120810#ValidationException:http://…
    code = str(content.get("__type") or answer.status).split(":")[0].rsplit("#")[-1]
    text = content.get("message") or content.get("Message") or ""
    return store_error(code, text, answer.status, content.get("CancellationReasons") or [], parameters)
