"""What the layer above hands to the API for one operation, and what it gets back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from graph.identity import ANONYMOUS, Identity

Outcome = Literal["executed", "refused", "mutation_over_get"]
"""How far an operation came. `refused`: parsing, validation, the choice of the operation or its variables failed."""


class Request(NamedTuple):
    """One GraphQL request, whatever transport it came by."""

    query: str
    """The document; empty where the client names it."""
    variables: Mapping[str, Any] | None = None
    operation_name: str | None = None
    mutations_allowed: bool = True
    """False when the transport promises safety (HTTP GET): a mutation is then refused before anything runs."""
    cost: bool = False
    """True when `extensions.cost` is to say what the operation asked of DynamoDB."""
    idempotency_key: str | None = None
    """The client's key for this one operation: sent again, its mutations are not carried out again."""
    incremental: bool = False
    """True when the client takes an answer in several payloads, as `@defer` and `@stream` make them."""
    identity: Identity = ANONYMOUS
    """Who asks."""
    document_id: str | None = None
    """The client's name for the document: the SHA-256 of its text in hexadecimal digits, or an id of a trusted one."""
    trace: bool = False
    """True when `extensions.cost` is to list every request by itself."""


class CachePolicy(NamedTuple):
    """How long an answer may be kept, and by whom."""

    max_age_secs: int
    is_private: bool
    """Whether the client alone may keep it, and no cache that others share."""


class Response(NamedTuple):
    """The GraphQL response as JSON values; it has no `data` entry when nothing was executed."""

    body: dict[str, Any]
    outcome: Outcome
    rest: AsyncIterator[dict[str, Any]] | None = None
    """The payloads that follow `body`, for a request that is `incremental`; the last one has `hasNext: false`."""
    cache: CachePolicy | None = None
    """None: it may not be kept at all."""


class Events(Protocol):
    """The answers of an operation that goes on, a subscription or a live query: GraphQL responses, to be closed.

    Who waits for one is not to be cancelled unless it is closed then.

    Raises: StreamError where it cannot go on: a client may subscribe again, after the last cursor that came.
    """

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Give each response when there is one."""

    async def aclose(self) -> None:
        """End the operation, and all that is under way for it."""
