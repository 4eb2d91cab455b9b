"""Every error that a caller may meet, each with the stable code that it carries to the client.

GraphError
├── ModelError          schema.graphql cannot work; holds every problem found
├── InputError          the caller's value is at fault
│   ├── KeyValueError   a value cannot be part of a key
│   ├── CursorError     a cursor is damaged, or of another connection
│   ├── IdError         a global id is damaged, or of another model
│   └── PageError       first, last, after and before do not fit together
├── InferError          no schema can be made of a table
├── Forbidden           the caller may not do this
├── WriteError          a write is refused, and nothing of it is done
│   ├── AlreadyExists   the item to be created is there
│   ├── NotFound        the item to be changed, or one that it names, is not there
│   ├── VersionConflict  the item has another version than `ifVersion`
│   ├── ConditionFailed  the item does not pass `where`
│   ├── HasEdges        the node to be deleted is still linked
│   ├── Required        a node would be left without a relationship that it needs
│   ├── TooLarge        the write does not fit into one transaction, or an item into DynamoDB
│   ├── WriteConflict   others write the same items, also after retries
│   ├── KeyReused       the idempotency key belongs to another write
│   └── RolledBack      another write of the same transaction is refused
├── StreamError         changes cannot be followed
│   ├── SubscriberTooSlow  changes come faster than a subscriber takes them
│   └── PlaceLost       the stream no longer holds what came after a cursor
├── SearchUnavailable   the search index cannot be asked
│   └── SearchBusy      it does not answer now
├── BudgetExceeded      an answer would read more items than the read budget allows
├── ItemError           a stored attribute is not of the type that the model declares
│   ├── BlobMissing     the object that an item points to is not there
│   └── BlobDamaged     the object that an item points to is not what was written
└── StoreError          DynamoDB did not do what was asked
    ├── BlobUnavailable  the bucket of large values cannot be used
    ├── Throttled       capacity is used up, also after retries
    ├── Unavailable     no answer, or a fault on DynamoDB's side, also after retries
    │   └── CircuitOpen  there was none of late, and it is not asked for a while
    ├── DeadlineExceeded  the operation's time is used up
    ├── CostExceeded    the operation has read as much as it may cost
    ├── TableMissing    the table or index does not exist
    ├── TableBusy       the table is being made or changed
    ├── AccessRefused   credentials are missing, wrong, or not allowed to do this
    │   └── KeysRefused  they are no longer known, or not yet
    ├── RequestRefused  DynamoDB refuses the request as it stands
    ├── IteratorExpired  a place in a stream was not asked for in time
    ├── RecordsTrimmed  what is asked for of a stream is older than it keeps
    └── TransactionCancelled  conditions of a transaction do not hold
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class GraphError(Exception):
    """The root of the tree; `code` is stable and part of the API."""

    code = "INTERNAL"
    in_public: str | None = None
    """What clients are told in production in place of the message; None where that is meant for them.

    A message may quote names of the store, or what DynamoDB has said: the developer wants them, and others may not.
    """

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client: graphql-core copies this into the GraphQL error."""
        return {"code": self.code}


def _limited(code: str, limit: str, value: float, most: float) -> dict[str, object]:
    return {"code": code, "limit": limit, "value": value, "most": most}


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in schema.graphql, and where it stands."""

    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


class ModelError(GraphError):
    """The model file cannot work; all its mistakes are reported at once."""

    code = "MODEL_INVALID"
    in_public = "The model cannot work."

    def __init__(self, problems: list[Problem], source: str = "schema.graphql") -> None:
        self.problems = tuple(sorted(set(problems)))
        count = len(self.problems)
        heading = f"{source} has {count} mistake{'s' if count > 1 else ''}:"
        super().__init__("\n".join([heading, *(f"  {source}:{problem}" for problem in self.problems)]))


class InferError(GraphError):
    """No schema can be made of a table, or of a model file."""

    code = "CANNOT_INFER"


class InputError(GraphError):
    """A value that the caller gave cannot be used."""

    code = "BAD_INPUT"


class KeyValueError(InputError):
    """A value cannot be part of a key: empty, too long, or it would read back differently."""

    code = "BAD_KEY_VALUE"


class CursorError(InputError):
    """A cursor is damaged, of another version, or was issued for another connection."""

    code = "BAD_CURSOR"


class IdError(InputError):
    """A global id is damaged or names a type that the model does not have."""

    code = "BAD_ID"


class PageError(InputError):
    """The paging arguments contradict each other or ask for too much."""

    code = "BAD_PAGE"

    def __init__(self, message: str, size: int | None = None, most: int | None = None) -> None:
        super().__init__(message)
        self.size = size
        """Too large a page, where that is at fault."""
        self.most = most

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client, and the limit where it is exceeded."""
        if self.size is None or self.most is None:
            return {"code": self.code}
        return _limited(self.code, "pageSize", self.size, self.most)


class Forbidden(GraphError):
    """The caller may not do this: what they may is for the rules of the model, and their credentials, to say."""

    code = "FORBIDDEN"


InputPath = tuple[str | int, ...]
"""Where in a mutation's arguments a value stands: ("input", "pallets", 2)."""


class WriteError(GraphError):
    """A write is refused, and nothing of it is done; `at` is what in the mutation's arguments is at fault."""

    code = "WRITE_REFUSED"

    def __init__(self, message: str, at: InputPath = ()) -> None:
        super().__init__(message)
        self.at = at

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client, and the argument that is at fault."""
        argument: dict[str, object] = {"argument": ".".join(map(str, self.at))} if self.at else {}
        return {"code": self.code} | argument


class AlreadyExists(WriteError):
    """The item to be created is there already."""

    code = "ALREADY_EXISTS"


class NotFound(WriteError):
    """The item to be changed, or one that the write names, is not there."""

    code = "NOT_FOUND"


class VersionConflict(WriteError):
    """The item has another version than the caller expects."""

    code = "VERSION_CONFLICT"


class ConditionFailed(WriteError):
    """The item does not pass the condition of the write."""

    code = "CONDITION_FAILED"


class HasEdges(WriteError):
    """The node to be deleted is still linked to others."""

    code = "HAS_EDGES"


class Required(WriteError):
    """A node would be left without a relationship that the model requires."""

    code = "REQUIRED"


class TooLarge(WriteError):
    """The write does not fit into one transaction, or an item is larger than DynamoDB takes."""

    code = "TOO_LARGE"


class WriteConflict(WriteError):
    """Others write the same items all the time."""

    code = "WRITE_CONFLICT"


class KeyReused(WriteError):
    """The idempotency key was given with another write before."""

    code = "IDEMPOTENCY_KEY_REUSED"


class RolledBack(WriteError):
    """Another write of the same transaction is refused, and with it this one."""

    code = "ROLLED_BACK"


class BudgetExceeded(GraphError):
    """An answer that must be complete would read more items than the read budget allows."""

    code = "READ_BUDGET"

    def __init__(self, message: str, most: int = 0) -> None:
        super().__init__(message)
        self.most = most

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client, and the limit."""
        return _limited(self.code, "readBudget", self.most + 1, self.most)


class StreamError(GraphError):
    """Changes cannot be followed."""

    code = "STREAM_UNAVAILABLE"
    in_public = "Changes cannot be followed now."


class SubscriberTooSlow(StreamError):
    """Changes come faster than a subscriber takes them."""

    code = "SUBSCRIBER_TOO_SLOW"
    in_public = "Changes came faster than they were taken: subscribe again, after the last cursor that came."


class PlaceLost(StreamError):
    """The stream no longer holds what came after a cursor: it keeps 24 hours."""

    code = "CURSOR_EXPIRED"
    in_public = "What came after this cursor is no longer kept: subscribe without one, and read what there is."


class SearchUnavailable(GraphError):
    """The search index is not built, was built for another model, or is damaged."""

    code = "SEARCH_UNAVAILABLE"
    in_public = "The search cannot be asked."


class SearchBusy(SearchUnavailable):
    """The search index does not answer now, or takes nothing: it is away, overloaded, or its disk is full."""

    code = "SEARCH_BUSY"
    in_public = "The search does not answer now: ask again later."


class ItemError(GraphError):
    """A stored attribute is not of the type that the model declares for its field."""

    code = "BAD_ITEM_VALUE"
    in_public = "A stored value is not what its field is declared to be."


class BlobMissing(ItemError):
    """The object that holds a field's value is gone."""

    code = "BLOB_MISSING"
    in_public = "A large value is not where it was stored."


class BlobDamaged(ItemError):
    """The object that holds a field's value is not the one that was written."""

    code = "BLOB_DAMAGED"
    in_public = "A large value is not what was stored."


class StoreError(GraphError):
    """DynamoDB did not do what was asked."""

    code = "STORE_ERROR"
    in_public = "The data could not be read or written."


class BlobUnavailable(StoreError):
    """The bucket that holds large values, or the folder in its place, cannot be read or written."""

    code = "BLOB_UNAVAILABLE"
    in_public = "Large values cannot be read or written now."


class Throttled(StoreError):
    """The table's capacity is used up, also after retries."""

    code = "THROTTLED"
    in_public = "The data's capacity is used up: ask again later."


class Unavailable(StoreError):
    """DynamoDB gave no answer, or a fault of its own, also after retries."""

    code = "STORE_UNAVAILABLE"
    in_public = "The data cannot be reached now: ask again later."


class CircuitOpen(Unavailable):
    """DynamoDB has not answered of late, and is not asked for a while; `retry_after` says for how many seconds."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client, and in how many seconds it may ask again."""
        return {"code": self.code, "retryAfter": round(self.retry_after, 1)}


class DeadlineExceeded(StoreError):
    """The operation's time is used up before its reads are: `most` seconds."""

    code = "DEADLINE_EXCEEDED"
    in_public = "The operation took longer than it may: ask for less at once."

    def __init__(self, message: str, most: float | None = None) -> None:
        super().__init__(message)
        self.most = most

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client, and the limit in seconds."""
        return {"code": self.code} if self.most is None else _limited(self.code, "time", self.most, self.most)


class CostExceeded(StoreError):
    """The operation has read as much as it may cost, in read units; what it has read stays in the answer."""

    code = "LIMIT_EXCEEDED"

    def __init__(self, message: str, spent: float = 0.0, most: float = 0.0) -> None:
        super().__init__(message)
        self.spent = spent
        self.most = most

    @property
    def extensions(self) -> dict[str, object]:
        """Carry the code to the client, the limit, and what has been spent."""
        return _limited(self.code, "cost", self.spent, self.most)


class TableMissing(StoreError):
    """The table or one of its indexes does not exist."""

    code = "TABLE_MISSING"


class TableBusy(StoreError):
    """The table, or one of its indexes, is there already or is being changed: this cannot be done to it now."""

    code = "TABLE_BUSY"
    in_public = "The data is being rearranged: ask again later."


class AccessRefused(StoreError):
    """Credentials are missing, wrong, or do not allow the request."""

    code = "ACCESS_REFUSED"


class KeysRefused(AccessRefused):
    """Credentials are no longer known, or not yet; others may have taken their place."""


class RequestRefused(StoreError):
    """DynamoDB refuses the request as it stands: repeating it cannot help."""

    code = "REQUEST_REFUSED"


class IteratorExpired(StoreError):
    """A shard's iterator was not used within its quarter of an hour: another one is to be had."""

    code = "ITERATOR_EXPIRED"


class RecordsTrimmed(StoreError):
    """The stream no longer holds what is asked for: it keeps 24 hours."""

    code = "RECORDS_TRIMMED"
    in_public = "What is asked for is no longer kept."


class TransactionCancelled(StoreError):
    """Conditions of a transaction do not hold; `items` has for each action that failed what lies there, by number."""

    code = "TRANSACTION_CANCELLED"

    def __init__(self, message: str, items: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.items = items or {}
