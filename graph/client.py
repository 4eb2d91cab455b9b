"""The only place of I/O: a request goes out by a transport, its answer comes back counted, or is asked for again."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from graph.circuit import Circuit
from graph.codec import Parse, parse_json
from graph.errors import CostExceeded, DeadlineExceeded, GraphError, StoreError, Throttled, Unavailable
from graph.requests import BatchGetItem, GetItem, PutItems, Query, Request, Scan, TableRequest, TransactWriteItems
from graph.sizes import READ_UNIT_BYTES, TYPICAL_ITEM_BYTES
from graph.slots import Slots

if TYPE_CHECKING:
    from graph.observation import Observation
    from graph.trace import Trace

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
BYTES = "Bytes"
"""What a transport that counts adds to an answer: how large it was."""


@dataclass(slots=True)
class Meter:
    """What one operation spent: its requests in order, what DynamoDB reported of them, and its deadline."""

    report_capacity: bool = False
    deadline: float | None = None
    """On the event loop's clock, in seconds."""
    timeout_secs: float | None = None
    """How long the operation has from its beginning to its deadline."""
    max_units: float = inf
    """In read units: who has read more reads no further."""
    read_units: float = 0.0
    """What the answers show to have been read; DynamoDB's own count costs a tenth of a small request to ask for."""
    estimated: float | None = None
    """The read units that were estimated before."""
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
    trace: Trace | None = None
    """Notes each request by itself, where that was asked for."""

    def cost(self) -> dict[str, Any]:
        """Sum up for `extensions.cost`."""
        kinds = Counter(request.operation for request in self.requests)
        cost: dict[str, Any] = {
            "requests": {"total": len(self.requests), **dict(sorted(kinds.items()))},
            "itemsRead": self.items_read,
            "capacityUnits": round(self.capacity_units, 3),
            "indexes": sorted({request.index for request in self.requests if request.index}),
        }
        if self.estimated is not None:
            cost["estimated"] = self.estimated
        if self.blobs_read or self.blobs_written:
            cost["blobs"] = {"read": self.blobs_read, "written": self.blobs_written}
        if self.searches:
            cost["searches"] = self.searches
        if self.retries:
            cost["retries"] = self.retries
        if self.skipped:
            cost["skippedItems"] = dict(sorted(self.skipped.items()))
        if self.trace is not None:
            cost["trace"] = self.trace.told()
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
        self._circuits: dict[str, Circuit] = {}

    def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Coroutine[Any, Any, Response]:
        """Send a request until it is answered; a transport that can parses the answer as wanted.

        Raises: StoreError: Throttled or Unavailable after the last try, the others at once; Unavailable at once while
                the table's circuit is open.
        """
        answer = self._send(request, meter, parse)
        return answer if meter.trace is None else meter.trace.time(request, answer)

    async def _send(self, request: Request, meter: Meter, parse: Parse) -> Response:
        # Who has no deadline waits for as long as it takes: nobody waits for him.
        circuit = None if meter.deadline is None else self._circuit(request)
        attempt = 1
        while True:
            _refuse_late(meter)
            if meter.read_units > meter.max_units and type(request) in READS:
                raise _too_costly(meter)
            if not self._slots.take():
                await self._turn(meter)
            if circuit is not None and not circuit.is_calm:
                try:
                    circuit.enter()
                except Unavailable:
                    self._slots.free()
                    raise
            meter.requests.append(request)
            try:
                response = await self._attempt(request, meter, parse, attempt)
            except StoreError as error:
                await self._failed(error, attempt, meter, circuit)
                attempt += 1
            else:
                if circuit is not None and not circuit.is_calm:
                    circuit.answered()
                _count(request, response, meter)
                return response

    @staticmethod
    async def _failed(error: StoreError, attempt: int, meter: Meter, circuit: Circuit | None) -> None:
        """Wait until it is time for another attempt. Raises the error where there is to be none."""
        if isinstance(error, DeadlineExceeded):
            raise error
        if isinstance(error, Unavailable):
            # What fails or is slow but once says nothing yet, unless it was sent to see whether the table answers.
            may_try_again = circuit is None or (attempt == 1 and not circuit.is_open) or circuit.failed()
        else:
            may_try_again = isinstance(error, Throttled)
            if circuit is not None and not circuit.is_calm:
                circuit.answered()
        if may_try_again and attempt < MAX_TRIES:
            await back_off(attempt, meter, error)
            return
        if isinstance(error, RETRYABLE):
            _refuse_late(meter, error)
        raise error

    def _circuit(self, request: Request) -> Circuit | None:
        """Give the circuit of the table that a request is about; what asks about tables themselves has none."""
        table: str
        if type(request) in WITH_ITEMS:
            table = request.table  # type: ignore[union-attr]
        elif isinstance(request, TransactWriteItems) and request.actions:
            table = request.actions[0].table
        else:
            return None
        found = self._circuits.get(table)
        if found is None:
            found = self._circuits[table] = Circuit(table)
        return found

    @property
    def tables_down(self) -> list[str]:
        """Name the tables that are taken not to answer."""
        return [circuit.table for circuit in self._circuits.values() if circuit.is_open]

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
            raise _out_of_time(meter) from None

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
        raise _out_of_time(meter) from error


def _out_of_time(meter: Meter) -> DeadlineExceeded:
    return DeadlineExceeded(
        "the operation's time is used up before DynamoDB has answered: ask for fewer items, or raise the time limit",
        meter.timeout_secs,
    )


def _too_costly(meter: Meter) -> CostExceeded:
    return CostExceeded(
        f"the operation has read {meter.read_units:,.10g} read units, by {len(meter.requests):,} requests, and "
        f"{meter.max_units:,.10g} is what it may cost: what it has read is in the answer. Ask for less at once",
        meter.read_units,
        meter.max_units,
    )


READS = frozenset((GetItem, BatchGetItem, Query, Scan))
WITH_ITEMS = READS | {PutItems}


def _count(request: Request, response: Response, meter: Meter) -> None:
    if "ConsumedCapacity" in response:
        meter.capacity_units += capacity_units_in(response)
    meter.items_read += items_in(response)
    size_bytes: float = response.pop(BYTES, 0)
    least = 1
    if "ScannedCount" in response:
        read = response["ScannedCount"]
        if "Items" not in response:
            size_bytes = read * TYPICAL_ITEM_BYTES
        elif read > (given := response.get("Count", 0)):
            # Those that a filter dropped are taken to be as large as the others.
            size_bytes = read * (size_bytes / given if given else TYPICAL_ITEM_BYTES)
    elif "Responses" in response:
        least = len(request.keys) if isinstance(request, BatchGetItem) else 1
    units = size_bytes // READ_UNIT_BYTES
    # Half a unit each, and a whole one where it is read consistently.
    meter.read_units += max(units, least) * (1.0 if getattr(request, "consistent", False) else 0.5)


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
