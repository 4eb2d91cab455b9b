"""What is told of operations and of their requests to DynamoDB, to whoever observes them.

`observer` says who observes what is done for one client; an `ObservedClient` tells of all requests, whoever asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from graph.client import Client, Meter, Response, Transport, capacity_units_in, items_in
from graph.codec import Parse
from graph.errors import GraphError
from graph.requests import BatchGetItem, PutItems, Request, TransactWriteItems

CANCELLED = "CANCELLED"
"""The code of a call that nobody waited for any more."""
UNEXPECTED = "INTERNAL"


class Observation(Protocol):
    """Observes one operation from its begin to its end: a query, a mutation, or what one event asks."""

    def failed(self, meter: Meter, codes: Sequence[str]) -> None:
        """Take the codes of the errors in the answer; only where there are any."""

    def ends(self, meter: Meter) -> None:
        """Take what the operation has spent; nothing more is read for it."""


class Observer(Protocol):
    """Observes what is done for one request of a client: one operation, or one after the other as changes come."""

    def asked(self, kind: str, name: str | None, text: str) -> None:
        """Take what is asked for: the operation's kind and name, and the document that it is in."""

    def stepped(self, name: str, began_ns: int, ended_ns: int) -> None:
        """Take a step on the way to a plan, in nanoseconds since 1970: a document that is known takes none."""

    def begins(self, meter: Meter) -> Observation:
        """Begin to observe an operation."""


observer: ContextVar[Observer | None] = ContextVar("observer", default=None)
"""Who observes what is done here, and in all tasks that begin here."""


@contextmanager
def step(name: str) -> Iterator[None]:
    """Tell of a step once it is done; for what is not done for every operation."""
    began_ns = time.time_ns()
    try:
        yield
    finally:
        if (found := observer.get()) is not None:
            found.stepped(name, began_ns, time.time_ns())


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was sent to DynamoDB once: a retry is another call."""

    request: Request
    attempt: int
    began_ns: int
    """Nanoseconds since 1970."""
    secs: float
    error: str | None
    """The code of the error that it ended in."""
    response: Response | None

    @property
    def tables(self) -> tuple[str, ...]:
        """Name the tables that it is about, each once; a request about no table names none."""
        if isinstance(self.request, TransactWriteItems):
            return tuple(sorted({action.table for action in self.request.actions}))
        table = getattr(self.request, "table", None)
        return () if table is None else (table,)

    @property
    def batch(self) -> int | None:
        """Count the items that it names; None for a request that is no batch."""
        match self.request:
            case BatchGetItem(keys=batch) | PutItems(items=batch) | TransactWriteItems(actions=batch):
                return len(batch)
            case _:
                return None

    @property
    def capacity_units(self) -> float:
        """Sum up the capacity that DynamoDB reported."""
        return 0.0 if self.response is None else capacity_units_in(self.response)

    @property
    def items_read(self) -> int:
        """Count the items that were read for the answer."""
        return 0 if self.response is None else items_in(self.response)

    @property
    def unprocessed(self) -> int:
        """Count the items of a batch that DynamoDB left over."""
        response = self.response or {}
        left = response.get("UnprocessedKeys") or response.get("UnprocessedItems") or {}
        return sum(len(each["Keys"] if isinstance(each, dict) else each) for each in left.values())


Told = Callable[[Call, Meter], None]
"""Takes a call that is over, and the meter of its operation."""


class ObservedClient(Client):
    """A client that tells of each call once it is over, and counts those under way and those that wait."""

    def __init__(self, transport: Transport, max_in_flight: int = 16, *, told: Told) -> None:
        super().__init__(transport, max_in_flight)
        self._told = told
        self.in_flight = 0
        self.waiting = 0

    async def _attempt(self, request: Request, meter: Meter, parse: Parse, attempt: int) -> Response:
        began_ns, began = time.time_ns(), time.perf_counter()
        self.in_flight += 1
        error: str | None = CANCELLED
        response: Response | None = None
        try:
            response = await super()._attempt(request, meter, parse, attempt)
            error = None
        except GraphError as failure:
            error = failure.code
            raise
        except Exception:
            error = UNEXPECTED
            raise
        finally:
            self.in_flight -= 1
            self._told(Call(request, attempt, began_ns, time.perf_counter() - began, error, response), meter)
        return response

    async def _turn(self, meter: Meter) -> None:
        self.waiting += 1
        try:
            await super()._turn(meter)
        finally:
            self.waiting -= 1
