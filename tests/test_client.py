"""The client: retries, deadline, slots and counters, over a transport that is a plain function."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise
from typing import Any

import pytest

from graph.client import BASE_DELAY_SECS, MAX_DELAY_SECS, MAX_TRIES, Client, Meter, Response, Transport
from graph.errors import (
    AccessRefused,
    DeadlineExceeded,
    RequestRefused,
    StoreError,
    TableMissing,
    Throttled,
    Unavailable,
)
from graph.requests import BatchGetItem, CreateTable, DescribeTable, GetItem, PutItems, Query, Request, Scan
from tests.clock import now, run, turns

GET = GetItem("fruit", (("id", "banana"),))
QUERY = Query("fruit", "by-colour", (("colour", "yellow"),))


def answering(*answers: Response | Exception) -> tuple[Transport, list[float]]:
    """Make a transport that gives these answers in turn, the last one for good; and the times at which it was asked."""
    left, asked = list(answers), list[float]()

    async def transport(operation: str, parameters: dict[str, Any]) -> Response:
        asked.append(now())
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return transport, asked


class Slow:
    """A transport whose calls end when they are told to."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[Response]] = []
        self.under_way = self.most = 0

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        call: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.calls.append(call)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await call
        finally:
            self.under_way -= 1


# --- retries ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Throttled, Unavailable])
@pytest.mark.parametrize("failures", [1, MAX_TRIES - 1])
def test_passing_failures_are_retried(error: type[StoreError], failures: int) -> None:
    async def main() -> None:
        transport, asked = answering(*[error("later")] * failures, {"Item": {}})
        meter = Meter()

        assert await Client(transport).send(GET, meter) == {"Item": {}}

        assert len(asked) == failures + 1
        assert meter.requests == [GET] * (failures + 1)
        assert meter.retries == failures

    run(main())


@pytest.mark.parametrize("error", [Throttled, Unavailable])
def test_the_last_failure_is_raised_when_all_tries_are_used_up(error: type[StoreError]) -> None:
    async def main() -> None:
        transport, asked = answering(error("still"))

        with pytest.raises(error, match=r"^still$"):
            await Client(transport).send(GET, Meter())

        assert len(asked) == MAX_TRIES

    run(main())


@pytest.mark.parametrize(
    "error", [TableMissing, AccessRefused, RequestRefused, DeadlineExceeded, StoreError, KeyError, ValueError]
)
def test_refusals_are_not_retried(error: type[Exception]) -> None:
    async def main() -> None:
        transport, asked = answering(error("no"), {})
        meter = Meter()

        with pytest.raises(error, match="no"):
            await Client(transport).send(GET, meter)

        assert len(asked) == 1
        assert meter.retries == 0

    run(main())


def test_delays_are_random_below_a_bound_that_doubles() -> None:
    async def delays() -> list[float]:
        transport, asked = answering(Throttled("still"))
        with pytest.raises(Throttled):
            await Client(transport).send(GET, Meter())
        return [later - earlier for earlier, later in pairwise(asked)]

    found = [run(delays()) for _ in range(100)]

    bounds = [min(MAX_DELAY_SECS, BASE_DELAY_SECS * 2**attempt) for attempt in range(1, MAX_TRIES)]
    assert bounds[-1] == MAX_DELAY_SECS
    for bound, each in zip(bounds, zip(*found, strict=True), strict=True):
        assert 0 <= min(each) < 0.2 * bound
        assert 0.8 * bound < max(each) <= bound * 1.000001


# --- deadline -----------------------------------------------------------------------------------------------------


def test_operation_ends_at_its_deadline() -> None:
    async def main() -> None:
        with pytest.raises(DeadlineExceeded, match=r"^the operation's time is used up before DynamoDB has answered"):
            await Client(Slow()).send(GET, Meter(deadline=3.0))

        assert now() == 3.0

    run(main())


def test_operation_ends_at_its_deadline_while_it_waits_for_a_slot() -> None:
    async def main() -> None:
        slow = Slow()
        client = Client(slow, max_in_flight=1)
        first = asyncio.ensure_future(client.send(GET, Meter()))
        await turns()
        meter = Meter(deadline=3.0)

        with pytest.raises(DeadlineExceeded):
            await client.send(QUERY, meter)

        assert now() == 3.0
        assert meter.requests == []
        slow.calls[0].set_result({})
        assert await first == {}

    run(main())


@pytest.mark.parametrize("seconds", [0.1, 1.0, 5.0])
def test_all_tries_fit_into_the_time_that_there_is(seconds: float) -> None:
    async def main() -> None:
        transport, asked = answering(Throttled("still"))

        with pytest.raises(Throttled, match=r"^still$"):
            await Client(transport).send(GET, Meter(deadline=seconds))

        assert len(asked) == MAX_TRIES
        assert now() < seconds

    run(main())


@pytest.mark.parametrize("seconds", [1.0, 3.0, 30.0])
def test_what_hangs_is_asked_again_in_time(seconds: float) -> None:
    async def main() -> None:
        asked: list[float] = []

        async def transport(operation: str, parameters: dict[str, Any]) -> Response:
            asked.append(now())
            if len(asked) < 3:
                await asyncio.get_running_loop().create_future()
            return {"Item": {}}

        assert await Client(transport).send(GET, Meter(deadline=seconds)) == {"Item": {}}

        assert len(asked) == 3
        assert now() < seconds

    run(main())


def test_nothing_is_sent_after_the_deadline() -> None:
    async def main() -> None:
        transport, asked = answering({})
        meter = Meter(deadline=1.0)
        await asyncio.sleep(2)

        with pytest.raises(DeadlineExceeded):
            await Client(transport).send(GET, meter)

        assert asked == []
        assert meter.requests == []

    run(main())


# --- slots --------------------------------------------------------------------------------------------------------


def test_no_more_requests_are_under_way_than_there_are_slots() -> None:
    async def main() -> None:
        slow = Slow()
        client = Client(slow, max_in_flight=4)
        sent = [asyncio.ensure_future(client.send(GET, Meter())) for _ in range(50)]

        for number in range(50):
            await turns()
            assert len(slow.calls) == min(50, number + 4)
            slow.calls[number].set_result({"Item": {}} if number % 2 else {})

        assert await asyncio.gather(*sent) == [{}, {"Item": {}}] * 25
        assert slow.most == 4

    run(main())


def test_operations_take_turns_however_many_requests_each_has() -> None:
    async def main() -> None:
        slow = Slow()
        client = Client(slow, max_in_flight=1)
        one, many = Meter(), Meter()
        sent = [asyncio.ensure_future(client.send(GET, many)) for _ in range(100)]
        await turns()
        sent.append(asyncio.ensure_future(client.send(QUERY, one)))
        await turns()

        for number in range(2):
            slow.calls[number].set_result({})
            await turns()

        assert one.requests == [QUERY]
        assert len(many.requests) == 2
        for task in sent:
            task.cancel()

    run(main())


def test_slot_of_a_request_that_cannot_be_written_is_free() -> None:
    async def main() -> None:
        client = Client(answering({})[0], max_in_flight=1)
        unwritable = GetItem("fruit", (("id",),))  # type: ignore[arg-type]

        for _ in range(2):
            with pytest.raises(ValueError, match="unpack"):
                await client.send(unwritable, Meter())

    run(main())


def test_slot_of_a_failed_request_is_free() -> None:
    async def main() -> None:
        transport, asked = answering(RequestRefused("no"))
        client = Client(transport, max_in_flight=1)

        for _ in range(3):
            with pytest.raises(RequestRefused):
                await client.send(GET, Meter())

        assert len(asked) == 3

    run(main())


def test_nobody_holds_a_slot_while_backing_off() -> None:
    async def main() -> None:
        transport, _ = answering(Throttled("later"), {"first": 1}, {"second": 1})
        client = Client(transport, max_in_flight=1)
        backing_off = asyncio.ensure_future(client.send(GET, Meter()))
        await turns()

        assert await client.send(GET, Meter()) == {"first": 1}
        assert now() == 0.0
        assert await backing_off == {"second": 1}

    run(main())


@pytest.mark.parametrize("cancelled", [0, 1], ids=["under-way", "waiting-for-its-slot"])
def test_cancelled_caller_leaves_its_place_to_the_next(cancelled: int) -> None:
    async def main() -> None:
        slow = Slow()
        client = Client(slow, max_in_flight=1)
        callers = [asyncio.ensure_future(client.send(GET, Meter())) for _ in range(3)]
        await turns()

        callers.pop(cancelled).cancel()
        for caller in callers:
            await turns()
            assert slow.under_way == 1
            slow.calls[-1].set_result({"Item": {}})
            assert await caller == {"Item": {}}

        assert slow.most == 1

    run(main())


def test_caller_cancelled_as_soon_as_it_has_its_slot_frees_it() -> None:
    async def main() -> None:
        slow = Slow()
        client = Client(slow, max_in_flight=1)
        for number in range(10):
            caller = asyncio.ensure_future(client.send(GET, Meter()))
            await turns(number)
            caller.cancel()
            await turns()

        last = asyncio.ensure_future(client.send(GET, Meter()))
        await turns()
        slow.calls[-1].set_result({"Item": {}})

        assert await last == {"Item": {}}

    run(main())


def test_slot_stays_taken_until_a_cancelled_call_has_really_ended() -> None:
    """As a call in a thread does, which nothing can stop."""
    thread_ended = asyncio.Event()

    async def unstoppable(operation: str, parameters: dict[str, Any]) -> Response:
        try:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        finally:
            await thread_ended.wait()

    async def main() -> None:
        client = Client(unstoppable, max_in_flight=1)
        first = asyncio.ensure_future(client.send(GET, Meter()))
        await turns()
        first.cancel()
        meter = Meter()
        second = asyncio.ensure_future(client.send(QUERY, meter))
        await turns()

        assert first.cancelled()
        assert meter.requests == []
        thread_ended.set()
        await turns()
        assert meter.requests == [QUERY]
        second.cancel()

    run(main())


@pytest.mark.parametrize("late", [RequestRefused("too late"), {"Item": {}}], ids=["failure", "answer"])
def test_what_comes_after_the_caller_has_gone_is_no_news(late: Response | Exception) -> None:
    news: list[dict[str, Any]] = []

    async def stubborn(operation: str, parameters: dict[str, Any]) -> Response:
        try:
            return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            if isinstance(late, Exception):
                raise late from None
            return late

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: news.append(context))
        caller = asyncio.ensure_future(Client(stubborn).send(GET, Meter()))
        await turns()
        caller.cancel()
        await turns()
        assert caller.cancelled()

    run(main())
    gc.collect()

    assert news == []


# --- what was spent -----------------------------------------------------------------------------------------------


def spend(*sent: tuple[Request, Response], report: bool = True) -> Meter:
    async def main() -> Meter:
        meter = Meter(report_capacity=report)
        for request, response in sent:
            await Client(answering(response)[0]).send(request, meter)
        return meter

    return run(main())


BATCH = BatchGetItem("fruit", (GET.key,))
SCAN = Scan("fruit", 0, 1)


def test_requests_capacity_items_and_indexes_are_summed_up() -> None:
    meter = spend(
        (GET, {"Item": {}, "ConsumedCapacity": {"CapacityUnits": 0.5}}),
        (GET, {"ConsumedCapacity": {"CapacityUnits": 0.5}}),
        (BATCH, {"Responses": {"fruit": [{}, {}], "nuts": [{}]}, "ConsumedCapacity": [{"CapacityUnits": 1.0}, {}]}),
        (QUERY, {"Items": [{}], "Count": 1, "ScannedCount": 7, "ConsumedCapacity": {"CapacityUnits": 0.1}}),
        (SCAN, {"Count": 3, "ScannedCount": 4}),
        (PutItems("fruit", ()), {}),
    )
    meter.retries = 2
    meter.skipped["Query.fruits"] = 3

    assert meter.cost() == {
        "requests": {"total": 6, "BatchGetItem": 1, "BatchWriteItem": 1, "GetItem": 2, "Query": 1, "Scan": 1},
        "itemsRead": 1 + 0 + 3 + 7 + 4,
        "capacityUnits": 2.1,
        "indexes": ["by-colour"],
        "retries": 2,
        "skippedItems": {"Query.fruits": 3},
    }


def test_nothing_spent_costs_nothing() -> None:
    assert Meter().cost() == {"requests": {"total": 0}, "itemsRead": 0, "capacityUnits": 0.0, "indexes": []}


@pytest.mark.parametrize(
    ("request_", "report", "is_asked"),
    [
        pytest.param(GET, True, True, id="asked"),
        pytest.param(QUERY, False, False, id="not-asked"),
        pytest.param(DescribeTable("fruit"), True, False, id="describe-table-has-none"),
        pytest.param(CreateTable("fruit", {}), True, False, id="create-table-has-none"),
    ],
)
def test_capacity_is_reported_only_where_asked(request_: Request, report: bool, is_asked: bool) -> None:
    seen: list[dict[str, Any]] = []

    async def transport(operation: str, parameters: dict[str, Any]) -> Response:
        seen.append(parameters)
        return {}

    run(Client(transport).send(request_, Meter(report_capacity=report)))

    assert seen == [request_.parameters() | ({"ReturnConsumedCapacity": "TOTAL"} if is_asked else {})]
