"""The requests that DynamoDB Streams answers, as frozen values like those of the tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

IteratorType = Literal["AFTER_SEQUENCE_NUMBER", "TRIM_HORIZON", "LATEST"]


@dataclass(frozen=True, slots=True)
class DescribeStream:
    """Up to 100 shards of a stream, behind one of them. Source: DynamoDB Streams API, DescribeStream."""

    stream: str
    after: str | None = None
    operation = "DescribeStream"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        after = {} if self.after is None else {"ExclusiveStartShardId": self.after}
        return {"StreamArn": self.stream, **after}


@dataclass(frozen=True, slots=True)
class GetShardIterator:
    """Where reading of a shard begins. Source: DynamoDB Streams API, GetShardIterator."""

    stream: str
    shard: str
    type: IteratorType
    sequence: int | None = None
    operation = "GetShardIterator"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        sequence = {} if self.sequence is None else {"SequenceNumber": str(self.sequence)}
        return {"StreamArn": self.stream, "ShardId": self.shard, "ShardIteratorType": self.type, **sequence}


@dataclass(frozen=True, slots=True)
class GetRecords:
    """Up to 1,000 records of a shard, or 1 MB. Source: DynamoDB Streams API, GetRecords."""

    iterator: str
    operation = "GetRecords"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"ShardIterator": self.iterator}


StreamRequest = DescribeStream | GetShardIterator | GetRecords
"""Requests to a service of its own, beside the tables': it has an endpoint of its own."""
