"""The only place of I/O: a request goes out, its answer comes back parsed, counted and retried."""

from __future__ import annotations

import asyncio
import base64
import os
import random
import threading
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import boto3
import botocore.exceptions
import orjson
from botocore import xform_name
from botocore.config import Config

from graph.codec import parse_body
from graph.errors import (
    AccessRefused,
    DeadlineExceeded,
    GraphError,
    RequestRefused,
    StoreError,
    TableBusy,
    TableMissing,
    Throttled,
    TransactionCancelled,
    Unavailable,
)
from graph.requests import Request, TableRequest

Response = dict[str, Any]
Transport = Callable[[str, dict[str, Any]], Awaitable[Response]]
"""The seam: an operation's name and its parameters in DynamoDB's JSON → the response in DynamoDB's JSON."""

AWS_ERRORS: dict[str, type[StoreError]] = {
    "ProvisionedThroughputExceededException": Throttled,
    "ThrottlingException": Throttled,
    "ThrottledException": Throttled,
    "RequestLimitExceeded": Throttled,
    "LimitExceededException": Throttled,
    "InternalServerError": Unavailable,
    "InternalServerException": Unavailable,
    "ServiceUnavailable": Unavailable,
    "ServiceUnavailableException": Unavailable,
    "InternalFailure": Unavailable,
    "ReplicatedWriteConflictException": Unavailable,
    "TransactionInProgressException": Unavailable,
    "ResourceNotFoundException": TableMissing,
    "TableNotFoundException": TableMissing,
    "IndexNotFoundException": TableMissing,
    "AccessDeniedException": AccessRefused,
    "UnrecognizedClientException": AccessRefused,
    "InvalidSignatureException": AccessRefused,
    "MissingAuthenticationTokenException": AccessRefused,
    "IncompleteSignatureException": AccessRefused,
    "ExpiredTokenException": AccessRefused,
    "InvalidClientTokenId": AccessRefused,
    "ValidationException": RequestRefused,
    "SerializationException": RequestRefused,
    "ItemCollectionSizeLimitExceededException": RequestRefused,
    "ResourceInUseException": TableBusy,
    "ConditionalCheckFailedException": RequestRefused,
    "TransactionConflictException": Throttled,
    "TransactionCanceledException": TransactionCancelled,
    "IdempotentParameterMismatchException": RequestRefused,
}
"""Every error code of the operations that we send; what is not here becomes RequestRefused and keeps its code."""

RETRYABLE = (Throttled, Unavailable)
BASE_DELAY_SECS = 0.025
MAX_DELAY_SECS = 2.0
MAX_TRIES = 10


@dataclass(slots=True)
class Meter:
    """What one operation spent: its requests in order, what DynamoDB reported of them, and its deadline."""

    report_capacity: bool = False
    deadline: float | None = None
    """On the event loop's clock, in seconds."""
    requests: list[Request] = field(default_factory=list)
    capacity_units: float = 0.0
    items_read: int = 0
    retries: int = 0
    blobs_read: int = 0
    blobs_written: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    """Items that fit no type, by the place where they were met."""

    def cost(self) -> dict[str, Any]:
        """Sum up for `extensions.cost`."""
        kinds = Counter(request.operation for request in self.requests)
        cost: dict[str, Any] = {
            "requests": {"total": len(self.requests), **dict(sorted(kinds.items()))},
            "itemsRead": self.items_read,
            "capacityUnits": round(self.capacity_units, 3),
            "indexes": sorted({request.index for request in self.requests if request.index}),
        }
        if self.blobs_read or self.blobs_written:
            cost["blobs"] = {"read": self.blobs_read, "written": self.blobs_written}
        if self.retries:
            cost["retries"] = self.retries
        if self.skipped:
            cost["skippedItems"] = dict(sorted(self.skipped.items()))
        return cost


class Client:
    """Sends requests with a bounded number in flight, full-jitter retries and the operation's deadline.

    A client belongs to one event loop, as its slots do.
    """

    def __init__(self, transport: Transport, max_in_flight: int = 16) -> None:
        self._transport = transport
        self._slots = asyncio.Semaphore(max_in_flight)

    async def send(self, request: Request, meter: Meter) -> Response:
        """Send a request until it is answered.

        Raises: StoreError: Throttled or Unavailable after the last try, the others at once.
        """
        parameters = request.parameters()
        if meter.report_capacity and not isinstance(request, TableRequest):
            parameters["ReturnConsumedCapacity"] = "TOTAL"
        for attempt in range(1, MAX_TRIES + 1):
            try:
                response = await self._send_once(request, parameters, meter)
            except RETRYABLE as error:
                if attempt == MAX_TRIES:
                    raise
                await back_off(attempt, meter, error)
            else:
                _count(response, meter)
                return response
        raise AssertionError("the loop returns or raises")

    async def _send_once(self, request: Request, parameters: dict[str, Any], meter: Meter) -> Response:
        _refuse_late(meter)
        try:
            async with asyncio.timeout_at(meter.deadline):
                await self._slots.acquire()
                meter.requests.append(request)
                # A task of its own: the slot is free when the transport is done, and not when the caller has gone.
                call = asyncio.ensure_future(self._transport(request.operation, parameters))
                call.add_done_callback(self._free_slot)
                try:
                    await asyncio.wait([call])
                finally:
                    call.cancel()
                return call.result()
        except TimeoutError:
            raise _out_of_time() from None

    def _free_slot(self, call: asyncio.Future[Response]) -> None:
        self._slots.release()
        forget_failure(call)


def forget_failure(future: asyncio.Future[Any]) -> None:
    """Mark a failure as seen: that nobody waits for it any more is no news for the event loop's log."""
    if not future.cancelled():
        future.exception()


async def back_off(attempt: int, meter: Meter, error: GraphError | None = None) -> None:
    """Wait a random time up to an exponentially growing bound, the same for retries and unprocessed keys.

    Raises: DeadlineExceeded when the operation has no time left to try again.
    """
    delay = random.uniform(0, min(MAX_DELAY_SECS, BASE_DELAY_SECS * 2**attempt))
    _refuse_late(meter, delay, error)
    meter.retries += 1
    await asyncio.sleep(delay)


def _refuse_late(meter: Meter, delay_secs: float = 0, error: GraphError | None = None) -> None:
    if meter.deadline is not None and asyncio.get_running_loop().time() + delay_secs > meter.deadline:
        raise _out_of_time() from error


def _out_of_time() -> DeadlineExceeded:
    return DeadlineExceeded(
        "the operation's time is used up before DynamoDB has answered: ask for fewer items, or raise the time limit"
    )


def _count(response: Response, meter: Meter) -> None:
    consumed = response.get("ConsumedCapacity") or []
    for entry in consumed if isinstance(consumed, list) else [consumed]:
        meter.capacity_units += entry.get("CapacityUnits", 0.0)
    if "ScannedCount" in response:
        meter.items_read += response["ScannedCount"]
    elif "Responses" in response:
        meter.items_read += sum(map(len, response["Responses"].values()))
    else:
        meter.items_read += "Item" in response


# --- boto3 --------------------------------------------------------------------------------------------------------


class BotoTransport:
    """Sends through boto3 in threads; botocore signs and connects, the answer's body is parsed by us."""

    def __init__(
        self,
        endpoint_url: str | None = None,
        region: str | None = None,
        threads: int = 16,
        *,
        credentials: tuple[str, str] | None = None,
    ) -> None:
        """Make the client; without `credentials` (access key, secret) boto3 looks for them where it always does."""
        # Retries are ours: boto3's own modes answer a truncated body with success when their tries are used up,
        # and do not know the operation's deadline.
        config = Config(
            max_pool_connections=threads,
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=3,
            read_timeout=20,
            parameter_validation=False,
        )
        try:
            access_key, secret = credentials or (None, None)
            self._client = boto3.session.Session().client(
                "dynamodb",
                endpoint_url=endpoint_url,
                # boto3 alone among the SDKs reads AWS_DEFAULT_REGION only.
                region_name=region or os.environ.get("AWS_REGION"),
                config=config,
                aws_access_key_id=access_key,
                aws_secret_access_key=secret,
            )
        except botocore.exceptions.NoRegionError:
            raise AccessRefused("no AWS region is set: set AWS_REGION, or a region in the profile") from None
        except _NO_CREDENTIALS as error:
            raise _no_credentials(error) from error
        self._client.meta.events.register("before-parse.dynamodb.*", _take_body)
        self._client.meta.events.register("before-call.dynamodb.BatchWriteItem", self._give_body)
        self._bodies = threading.local()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="dynamodb")

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        """Send one request in a thread. Raises StoreError."""
        answer: Future[Response] = self._threads.submit(self._call, operation, parameters)
        try:
            return await asyncio.wrap_future(answer)
        except asyncio.CancelledError:
            # A thread cannot be stopped: the call is over, and its slot free, when the thread is.
            if not answer.cancelled():
                with suppress(StoreError):
                    await asyncio.wrap_future(answer)
            raise

    def _call(self, operation: str, parameters: dict[str, Any]) -> Response:
        try:
            response: Response = getattr(self._client, xform_name(operation))(**self._given(operation, parameters))
        except botocore.exceptions.ClientError as error:
            raise _store_error(error, parameters) from error
        except _NO_CREDENTIALS as error:
            raise _no_credentials(error) from error
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise Unavailable(f"DynamoDB cannot be reached or its answer is damaged: {error}") from error
        body: Response = response["Body"]
        _refuse_truncated(operation, body)
        return body

    def _given(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        """Give what botocore is told of a request: of many items only their tables, for their body is made by us."""
        if operation == "BatchWriteItem":
            self._bodies.next = orjson.dumps(parameters)
            return {"RequestItems": {table: [] for table in parameters["RequestItems"]}}
        return _with_bytes(parameters) if operation == "TransactWriteItems" else parameters

    def _give_body(self, params: dict[str, Any], **_: Any) -> None:
        """Put the body into a request that is about to be signed: what DynamoDB is sent is what we hold already."""
        params["body"] = self._bodies.next

    def close(self) -> None:
        """Let running requests end and free the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()


def _with_bytes(value: Any, name: str = "") -> Any:
    """Turn the binaries of parameters from base64 text into bytes: botocore encodes what it is given."""
    # What lies behind an attribute that is called B itself is a map, and never text.
    if name == "B" and isinstance(value, str):
        return base64.b64decode(value)
    if name == "BS" and isinstance(value, list):
        return [base64.b64decode(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _with_bytes(entry, name) for name, entry in value.items()}
    return [_with_bytes(entry) for entry in value] if isinstance(value, list) else value


def _with_text(value: Any) -> Any:
    """Turn the binaries of an error's items back into base64 text: botocore parses what fails."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: _with_text(entry) for name, entry in value.items()}
    return [_with_text(entry) for entry in value] if isinstance(value, list) else value


_NO_CREDENTIALS = (
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.PartialCredentialsError,
    botocore.exceptions.CredentialRetrievalError,
    botocore.exceptions.TokenRetrievalError,
    botocore.exceptions.ProfileNotFound,
    botocore.exceptions.SSOError,
    botocore.exceptions.LoginError,
)


def _no_credentials(error: Exception) -> AccessRefused:
    return AccessRefused(
        f"no AWS credentials can be had ({error}): set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give the process a role"
    )


def _take_body(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Parse a successful body ourselves and leave botocore an empty one: its own parser costs more than the engine."""
    if response_dict["status_code"] < 300:
        crc32 = response_dict["headers"].get("x-amz-crc32")
        customized_response_dict["Body"] = parse_body(response_dict["body"], crc32)
        response_dict["body"] = b"{}"


_ALWAYS_THERE = {"Query": "Count", "Scan": "Count", "BatchGetItem": "Responses", "DescribeTable": "Table"}


def _refuse_truncated(operation: str, body: Response) -> None:
    name = _ALWAYS_THERE.get(operation)
    if name is not None and name not in body:
        raise Unavailable(f"the answer to {operation} has no {name}: what is missing is not taken for empty")


def _store_error(error: botocore.exceptions.ClientError, parameters: dict[str, Any]) -> StoreError:
    code = error.response.get("Error", {}).get("Code", "Unknown")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    kind = AWS_ERRORS.get(code, Unavailable if status >= 500 else Throttled if status == 429 else RequestRefused)
    text = error.response.get("Error", {}).get("Message", "")
    if code == "TransactionCanceledException":
        return _cancelled(error.response, text)
    if kind is TableMissing:
        where = parameters.get("TableName") or ", ".join(parameters.get("RequestItems", {}))
        return TableMissing(f"the table {where!r}, or an index of it that the model names, does not exist ({code})")
    return kind(f"DynamoDB answered {code}: {text}" if text else f"DynamoDB answered {code}")


def _cancelled(response: Any, text: str) -> StoreError:
    """Say why a transaction was cancelled: its conditions, or something that passes and is worth another try."""
    reasons = response.get("CancellationReasons") or []
    codes = [reason.get("Code", "None") for reason in reasons]
    if "ConditionalCheckFailed" in codes:
        failed = [number for number, code in enumerate(codes) if code == "ConditionalCheckFailed"]
        items = {number: _with_text(reasons[number].get("Item") or {}) for number in failed}
        return TransactionCancelled(f"DynamoDB cancelled the transaction: {len(items)} conditions do not hold", items)
    if others := sorted(set(codes) - {"None", *_PASSING}):
        texts = [reason.get("Message", "") for reason in reasons if reason.get("Code") in others]
        return RequestRefused(f"DynamoDB cancelled the transaction ({', '.join(others)}): {' '.join(texts)}")
    return Throttled(f"DynamoDB cancelled the transaction ({', '.join(sorted(set(codes))) or text})")


_PASSING = ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded")
"""Reasons for which a cancelled transaction is sent again, with the same token."""
