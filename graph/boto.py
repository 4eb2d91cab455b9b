"""The way through boto3, in threads: botocore signs and connects, the answer's body is parsed by us."""

from __future__ import annotations

import asyncio
import base64
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Literal

import boto3
import botocore.exceptions
import botocore.session
import orjson
from botocore import xform_name
from botocore.config import Config

from graph.answers import no_credentials, refuse_truncated, store_error, unreachable
from graph.client import Response
from graph.codec import parse_body
from graph.errors import AccessRefused, StoreError

CONNECT_TIMEOUT_SECS = 3
READ_TIMEOUT_SECS = 20

NO_CREDENTIALS = (
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.PartialCredentialsError,
    botocore.exceptions.CredentialRetrievalError,
    botocore.exceptions.TokenRetrievalError,
    botocore.exceptions.ProfileNotFound,
    botocore.exceptions.SSOError,
    botocore.exceptions.LoginError,
)


SERVICE_IDS = {"dynamodb": "dynamodb", "dynamodbstreams": "dynamodb-streams"}
"""What botocore calls the services among its events."""
Service = Literal["dynamodb", "dynamodbstreams"]


class BotoTransport:
    """Sends through boto3 in threads; botocore signs and connects, the answer's body is parsed by us."""

    def __init__(
        self,
        endpoint_url: str | None = None,
        region: str | None = None,
        threads: int = 16,
        *,
        credentials: tuple[str, str] | None = None,
        service: Service = "dynamodb",
    ) -> None:
        """Make the client; without `credentials` (access key, secret) boto3 looks for them where it always does."""
        # Retries are ours: boto3's own modes answer a truncated body with success when their tries are used up,
        # and do not know the operation's deadline.
        config = Config(
            max_pool_connections=threads,
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=CONNECT_TIMEOUT_SECS,
            read_timeout=READ_TIMEOUT_SECS,
            parameter_validation=False,
        )
        try:
            access_key, secret = credentials or (None, None)
            self.session = botocore.session.get_session()
            self.client = boto3.session.Session(access_key, secret, botocore_session=self.session).client(
                service,
                endpoint_url=endpoint_url,
                # boto3 alone among the SDKs reads AWS_DEFAULT_REGION only.
                region_name=region or os.environ.get("AWS_REGION"),
                config=config,
            )
        except botocore.exceptions.NoRegionError:
            raise AccessRefused("no AWS region is set: set AWS_REGION, or a region in the profile") from None
        except NO_CREDENTIALS as error:
            raise no_credentials(error) from error
        self.client.meta.events.register(f"before-parse.{SERVICE_IDS[service]}.*", _take_body)
        self.client.meta.events.register("before-call.dynamodb.BatchWriteItem", self._give_body)
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
            response: Response = getattr(self.client, xform_name(operation))(**self._given(operation, parameters))
        except botocore.exceptions.ClientError as error:
            raise _answered(error, parameters) from error
        except NO_CREDENTIALS as error:
            raise no_credentials(error) from error
        except (botocore.exceptions.BotoCoreError, ValueError) as error:
            raise unreachable(error) from error
        body: Response = response["Body"]
        refuse_truncated(operation, body)
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
        self.client.close()


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


def _take_body(response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any) -> None:
    """Parse a successful body ourselves and leave botocore an empty one: its own parser costs more than the engine."""
    if response_dict["status_code"] < 300:
        crc32 = response_dict["headers"].get("x-amz-crc32")
        customized_response_dict["Body"] = parse_body(response_dict["body"], crc32)
        response_dict["body"] = b"{}"


def _answered(error: botocore.exceptions.ClientError, parameters: dict[str, Any]) -> StoreError:
    response: Any = error.response
    about = response.get("Error", {})
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    reasons = _with_text(response.get("CancellationReasons") or [])
    return store_error(about.get("Code", "Unknown"), about.get("Message", ""), status, reasons, parameters)
