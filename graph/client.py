"""The only place of I/O: a request goes out by a transport, its answer comes back counted and retried."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graph.codec import Parse, parse_json
from graph.errors import DeadlineExceeded, GraphError, Throttled, Unavailable
from graph.requests import Request, TableRequest, TransactWriteItems
from graph.slots import Slots

if TYPE_CHECKING:
    from graph.observation import Observation

Response = dict[str, Any]
Transport = Callable[[str, dict[str, Any]], Awaitable[Response]]
"""The seam: an operation's name and its parameters in DynamoDB's JSON → the response in DynamoDB's JSON."""


@runtime_checkable
class Carrier(Protocol):
    """A transport that can take requests as they are, and is done as soon as it is cancelled or their time is over."""

    @property
    def carried(self) -> frozenset[str]:
        """Name the operations that it can take so; all others by their parameters, like any transport."""

    def __call__(self, operation: str, parameters: dict[str, Any]) -> Awaitable[Response]: ...

    async def carry(self, request: Request, deadline: float | None, parse: Parse, *, report_capacity: bool) -> Response:
        """Send one request, and parse its answer as wanted. Raises StoreError: Unavailable at the deadline."""


RETRYABLE = (Throttled, Unavailable)
BASE_DELAY_SECS = 0.025
MAX_DELAY_SECS = 2.0
MAX_TRIES = 16
"""When a third of all requests fail, one in fifty million fails so often in a row."""
DELAY_SHARE = 4
ATTEMPT_SHARE = 3
"""No delay takes more than such a part of the time left, and no attempt: what hangs is asked again while it helps."""
LEAST_ATTEMPT_SECS, MOST_ATTEMPT_SECS = 0.25, 5.0
FIRST_READ_SECS = 0.5
"""What the first attempt of a read may take, where giving it up stops it; each other one may take twice as long."""
LEAST_TIME_SECS = 0.001
"""With less time left nothing is begun: timers are no more exact."""


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
    searches: int = 0
    """Requests to the search index."""
    skipped: dict[str, int] = field(default_factory=dict)
    """Items that fit no type, by the place where they were met."""
    observation: Observation | None = None
    """Who observes the operation."""

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
        if self.searches:
            cost["searches"] = self.searches
        if self.retries:
            cost["retries"] = self.retries
        if self.skipped:
            cost["skippedItems"] = dict(sorted(self.skipped.items()))
        return cost


class Client:
    """Sends requests with a bounded number in flight, full-jitter retries and the operation's deadline.

    A client belongs to one event loop, as its slots do.
    """

    def __init__(self, transport: Transport | Carrier, max_in_flight: int = 16) -> None:
        self._transport = transport
        self._carrier = transport if isinstance(transport, Carrier) else None
        self._carried = self._carrier.carried if self._carrier is not None else frozenset()
        self._slots = Slots(max_in_flight)

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request until it is answered; a transport that can parses the answer as wanted.

        Raises: StoreError: Throttled or Unavailable after the last try, the others at once.
        """
        attempt = 1
        while True:
            _refuse_late(meter)
            if not self._slots.take():
                await self._turn(meter)
            meter.requests.append(request)
            try:
                response = await self._attempt(request, meter, parse, attempt)
            except RETRYABLE as error:
                if attempt == MAX_TRIES:
                    _refuse_late(meter, error)
                    raise
                await back_off(attempt, meter, error)
                attempt += 1
            else:
                _count(response, meter)
                return response

    def _attempt(self, request: Request, meter: Meter, parse: Parse, attempt: int) -> Coroutine[Any, Any, Response]:
        """Send a request once, in the slot that is taken; `attempt` counts from 1."""
        if request.operation in self._carried and self._carrier is not None:
            return self._carry(self._carrier, request, meter, parse, attempt)
        return self._call(request, meter)

    async def _carry(self, carrier: Carrier, request: Request, meter: Meter, parse: Parse, attempt: int) -> Response:
        limit = _attempt_limit(meter)
        if limit is not None and not isinstance(request, TransactWriteItems):
            limit = min(limit, asyncio.get_running_loop().time() + FIRST_READ_SECS * 2 ** (attempt - 1))
        try:
            return await carrier.carry(request, limit, parse, report_capacity=meter.report_capacity)
        finally:
            self._slots.free()

    async def _turn(self, meter: Meter) -> None:
        """Wait for a slot; operations take turns, however many requests each of them has waiting."""
        try:
            await self._slots.turn(id(meter), meter.deadline)
        except TimeoutError:
            raise _out_of_time() from None

    async def _call(self, request: Request, meter: Meter) -> Response:
        """Send by a transport that may go on after its caller: the slot is free when it is done."""
        call = asyncio.ensure_future(self._by_parameters(request, meter))
        call.add_done_callback(self._free_slot)
        try:
            async with asyncio.timeout_at(_attempt_limit(meter)):
                await asyncio.wait([call])
            return call.result()
        except TimeoutError:
            raise Unavailable("DynamoDB has not answered in the time that one attempt may take") from None
        finally:
            call.cancel()

    async def _by_parameters(self, request: Request, meter: Meter) -> Response:
        parameters = request.parameters()
        if meter.report_capacity and not isinstance(request, TableRequest):
            parameters["ReturnConsumedCapacity"] = "TOTAL"
        return await self._transport(request.operation, parameters)

    def _free_slot(self, call: asyncio.Future[Response]) -> None:
        self._slots.free()
        forget_failure(call)


def forget_failure(future: asyncio.Future[Any]) -> None:
    """Mark a failure as seen: that nobody waits for it any more is no news for the event loop's log."""
    if not future.cancelled():
        future.exception()


async def back_off(attempt: int, meter: Meter, error: GraphError | None = None) -> None:
    """Wait a random time up to an exponentially growing bound, the same for retries and unprocessed keys.

    The time left bounds it as well, so that the tries that there are fit into it.

    Raises: DeadlineExceeded when the operation has no time left to try again.
    """
    _refuse_late(meter, error)
    bound = min(MAX_DELAY_SECS, BASE_DELAY_SECS * 2**attempt)
    if meter.deadline is not None:
        bound = min(bound, (meter.deadline - asyncio.get_running_loop().time()) / DELAY_SHARE)
    delay = random.uniform(0, bound)
    meter.retries += 1
    await asyncio.sleep(delay)


def _attempt_limit(meter: Meter) -> float | None:
    """Give the time until which one attempt may take; without a deadline the transport alone ends it."""
    if meter.deadline is None:
        return None
    now = asyncio.get_running_loop().time()
    share = min(MOST_ATTEMPT_SECS, (meter.deadline - now) / ATTEMPT_SHARE)
    return min(meter.deadline, now + max(LEAST_ATTEMPT_SECS, share))


def _refuse_late(meter: Meter, error: GraphError | None = None) -> None:
    if meter.deadline is not None and asyncio.get_running_loop().time() + LEAST_TIME_SECS > meter.deadline:
        raise _out_of_time() from error


def _out_of_time() -> DeadlineExceeded:
    return DeadlineExceeded(
        "the operation's time is used up before DynamoDB has answered: ask for fewer items, or raise the time limit"
    )


def _count(response: Response, meter: Meter) -> None:
    meter.capacity_units += capacity_units_in(response)
    meter.items_read += items_in(response)


def capacity_units_in(response: Response) -> float:
    """Sum up the capacity units that DynamoDB reports, where it was asked to."""
    consumed = response.get("ConsumedCapacity") or []
    entries = consumed if isinstance(consumed, list) else [consumed]
    return float(sum([entry.get("CapacityUnits", 0.0) for entry in entries]))


def items_in(response: Response) -> int:
    """Count the items that were read for an answer: under a filter there are more than it holds."""
    if "ScannedCount" in response:
        return int(response["ScannedCount"])
    if "Responses" in response:
        return sum(map(len, response["Responses"].values()))
    return int("Item" in response)
