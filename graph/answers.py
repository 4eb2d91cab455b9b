"""What DynamoDB's answers mean, whichever way they came: an error's class, and what is not taken for an answer."""

from __future__ import annotations

from typing import Any

from graph.client import Response
from graph.errors import (
    AccessRefused,
    IteratorExpired,
    KeysRefused,
    RecordsTrimmed,
    RequestRefused,
    StoreError,
    TableBusy,
    TableMissing,
    Throttled,
    TransactionCancelled,
    Unavailable,
)

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
    "UnrecognizedClientException": KeysRefused,
    "InvalidSignatureException": AccessRefused,
    "MissingAuthenticationTokenException": AccessRefused,
    "IncompleteSignatureException": AccessRefused,
    "ExpiredTokenException": KeysRefused,
    "InvalidClientTokenId": KeysRefused,
    "ValidationException": RequestRefused,
    "SerializationException": RequestRefused,
    "ItemCollectionSizeLimitExceededException": RequestRefused,
    "ResourceInUseException": TableBusy,
    "ConditionalCheckFailedException": RequestRefused,
    "TransactionConflictException": Throttled,
    "TransactionCanceledException": TransactionCancelled,
    "IdempotentParameterMismatchException": RequestRefused,
    "ExpiredIteratorException": IteratorExpired,
    "TrimmedDataAccessException": RecordsTrimmed,
}
"""Every error code of the operations that we send; what is not here becomes RequestRefused and keeps its code."""

_PASSING = ("TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded")
"""Reasons for which a cancelled transaction is sent again, with the same token."""

_ALWAYS_THERE = {
    "Query": "Count",
    "Scan": "Count",
    "BatchGetItem": "Responses",
    "DescribeTable": "Table",
    "DescribeStream": "StreamDescription",
    "GetShardIterator": "ShardIterator",
    "GetRecords": "Records",
}


def refuse_truncated(operation: str, body: Response) -> None:
    """Refuse an answer without the part that it always has. Raises Unavailable."""
    name = _ALWAYS_THERE.get(operation)
    if name is not None and name not in body:
        raise Unavailable(f"the answer to {operation} has no {name}: what is missing is not taken for empty")


def unreachable(reason: object) -> Unavailable:
    """Say that no answer came, or one that cannot be read."""
    return Unavailable(f"DynamoDB cannot be reached or its answer is damaged: {reason}")


def no_credentials(reason: object) -> AccessRefused:
    """Say that there is nothing to sign with."""
    return AccessRefused(
        f"no AWS credentials can be had ({reason}): set AWS_PROFILE or AWS_ACCESS_KEY_ID, or give the process a role"
    )


def store_error(code: str, text: str, status: int, reasons: list[Response], parameters: dict[str, Any]) -> StoreError:
    """Give an answered error its class; `reasons` are those of a cancelled transaction, items in DynamoDB's JSON."""
    kind = AWS_ERRORS.get(code, Unavailable if status >= 500 else Throttled if status == 429 else RequestRefused)
    if code == "TransactionCanceledException":
        return _cancelled(reasons, text)
    if kind is TableMissing:
        where = parameters.get("TableName") or ", ".join(parameters.get("RequestItems", {}))
        return TableMissing(f"the table {where!r}, or an index of it that the model names, does not exist ({code})")
    return kind(f"DynamoDB answered {code}: {text}" if text else f"DynamoDB answered {code}")


def _cancelled(reasons: list[Response], text: str) -> StoreError:
    """Say why a transaction was cancelled: its conditions, or something that passes and is worth another try."""
    codes = [reason.get("Code", "None") for reason in reasons]
    if "ConditionalCheckFailed" in codes:
        failed = [number for number, code in enumerate(codes) if code == "ConditionalCheckFailed"]
        items = {number: reasons[number].get("Item") or {} for number in failed}
        return TransactionCancelled(f"DynamoDB cancelled the transaction: {len(items)} conditions do not hold", items)
    if others := sorted(set(codes) - {"None", *_PASSING}):
        texts = [reason.get("Message") or "" for reason in reasons if reason.get("Code") in others]
        return RequestRefused(f"DynamoDB cancelled the transaction ({', '.join(others)}): {' '.join(texts)}")
    return Throttled(f"DynamoDB cancelled the transaction ({', '.join(sorted(set(codes))) or text})")
