"""Loaders when things go wrong: who is cancelled, who fails, and that nothing outlives its operation."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from graph.client import Meter, Response, Transport
from graph.errors import RequestRefused
from graph.loaders import Graph, Limits, Operation
from graph.requests import DescribeTable, GetItem, Item, ItemKey, Request
from tests.clock import now, run, turns
from tests.conftest import Serve
from tests.store import MODEL, Store, fruit, item, query, ship

A, B, C = fruit("a"), fruit("b"), fruit("c")
SLOW_SECS = 1.0


def slow(*known: ItemKey) -> Store:
    return Store(known, delay=lambda request: SLOW_SECS)


# --- a waiter that is cancelled -----------------------------------------------------------------------------------

Ask = Callable[[Operation], Coroutine[Any, Any, Any]]
ASKS: list[Any] = [
    pytest.param(lambda operation: operation.items([A]), "GetItem", id="item"),
    pytest.param(lambda operation: operation.items([A, B]), ("fruit", 2), id="items"),
    pytest.param(lambda operation: operation.page(query("a")), "Query", id="page"),
]


@pytest.mark.parametrize(("ask", "shape"), ASKS)
@pytest.mark.parametrize("is_under_way", [False, True], ids=["queued", "under-way"])
def test_cancelled_waiter_does_not_take_the_others_with_it(ask: Ask, shape: object, is_under_way: bool) -> None:
    async def main() -> None:
        store = slow(A, B)
        operation = store.operation()
        first, second, third = (asyncio.ensure_future(ask(operation)) for _ in range(3))
        await turns(20 if is_under_way else 1)

        first.cancel()
        await turns()

        assert first.cancelled()
        assert not third.done()
        assert await second == await third
        assert store.shapes == [shape]

    run(main())


@pytest.mark.parametrize(("ask", "shape"), ASKS)
def test_answer_that_nobody_waits_for_any_more_serves_who_asks_later(ask: Ask, shape: object) -> None:
    async def main() -> None:
        store = slow(A, B)
        operation = store.operation()
        waiter = asyncio.ensure_future(ask(operation))
        await turns()
        waiter.cancel()
        await turns()

        await ask(operation)
        await ask(operation)

        assert store.shapes == [shape]
        assert now() == SLOW_SECS

    run(main())


# --- a batch that fails -------------------------------------------------------------------------------------------


def refusing(*refused: ItemKey, times: int = 1) -> Callable[[Request, Response], Response]:
    """Refuse a batch that holds any of these keys, so many times."""
    left = [times]

    def answer(request: Request, response: Response) -> Response:
        keys = (request.key,) if isinstance(request, GetItem) else getattr(request, "keys", ())
        if left[0] and any((getattr(request, "table", None), key) in refused for key in keys):
            left[0] -= 1
            raise RequestRefused(f"no {request.operation}")
        return response

    return answer


def test_failed_batch_fails_those_who_wait_for_it_and_nobody_else() -> None:
    async def main() -> None:
        store = Store([A, B, C, ship("a")], answer=refusing(A))
        operation = store.operation()

        waiting = [operation.items([A]), operation.items([B, ship("a")]), operation.items([ship("a")])]
        found = await asyncio.gather(*waiting, return_exceptions=True)

        assert [str(error) for error in found[:2]] == ["no BatchGetItem"] * 2
        assert found[2] == [item(ship("a"))]
        assert await operation.items([C]) == [item(C)]
        assert store.shapes == [("fruit", 2), "GetItem", "GetItem"]

    run(main())


def test_failed_batch_is_not_remembered() -> None:
    async def main() -> None:
        store = Store([A, B], answer=refusing(A))
        operation = store.operation()
        with pytest.raises(RequestRefused):
            await operation.items([A, B])

        assert await operation.items([A, B]) == [item(A), item(B)]

        assert store.shapes == [("fruit", 2), ("fruit", 2)]

    run(main())


def test_answer_that_is_no_answer_fails_the_batch() -> None:
    async def main() -> None:
        operation = Store([A], answer=lambda request, response: {"Responses": None}).operation()

        with pytest.raises(AttributeError):
            await operation.items([A, B])

    run(main())


# --- the end of an operation --------------------------------------------------------------------------------------


def log_of(main: Coroutine[Any, Any, None]) -> list[dict[str, Any]]:
    """Run to the end and give what the event loop had to say."""
    news: list[dict[str, Any]] = []

    async def listening() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: news.append(context))
        await main
        await turns()

    run(listening())
    gc.collect()
    return news


@pytest.mark.parametrize("failure", [{}, {"answer": refusing(A, times=9)}], ids=["answered", "refused"])
def test_failure_that_nobody_waits_for_is_no_news(failure: dict[str, Any]) -> None:
    async def main() -> None:
        operation = Store([A], delay=lambda request: SLOW_SECS, **failure).operation()
        waiters = [asyncio.ensure_future(ask(operation)) for ask in (param.values[0] for param in ASKS)]
        await turns()
        for waiter in waiters:
            waiter.cancel()
        await asyncio.sleep(3 * SLOW_SECS)
        await operation.close()

    assert log_of(main()) == []


async def never_ends(operation: Operation) -> None:
    with operation.reading():
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("begin", "shapes"),
    [
        pytest.param([lambda o: o.items([A])], ["GetItem"], id="item-under-way"),
        pytest.param([lambda o: o.items([A, B, ship("a")])], [("fruit", 2), "GetItem"], id="batches-under-way"),
        pytest.param([lambda o: o.page(query("a"))], ["Query"], id="page-under-way"),
        pytest.param([never_ends, lambda o: o.items([A])], [], id="key-that-lingers"),
        pytest.param([lambda o: o.items([A]), lambda o: o.items([B])], [("fruit", 2)], id="two-waiters"),
    ],
)
@pytest.mark.parametrize("count", [1, 3, 20])
def test_closed_operation_leaves_neither_task_nor_request_nor_news(
    begin: list[Ask], shapes: list[object], count: int
) -> None:
    async def main() -> None:
        store = slow(A, B)
        operation = store.operation()
        waiters = [asyncio.ensure_future(ask(operation)) for ask in begin]
        await turns(count)

        await operation.close()
        assert asyncio.all_tasks() - {asyncio.current_task(), *waiters} == set()
        sent = list(store.sent)
        # Who still waits is let go, but for the reader, who waits for something else.
        waiters[0].cancel()
        await asyncio.sleep(9)

        assert all(waiter.cancelled() for waiter in waiters)
        assert store.sent == sent
        assert store.shapes in ([], shapes)

    assert log_of(main()) == []


def test_closing_does_not_wait_for_the_answers() -> None:
    async def main() -> None:
        operation = slow(A).operation()
        waiter = asyncio.ensure_future(operation.items([A]))
        await turns()

        await operation.close()
        await operation.close()

        assert now() == 0.0
        assert waiter.cancelled() or not waiter.done()

    run(main())


def test_closing_an_operation_that_is_done_leaves_nothing_to_the_garbage_collector() -> None:
    async def main() -> None:
        gc.disable()
        try:
            operation = Store([A]).operation()
            await operation.items([A])
            await operation.page(query("a"))
            gone = weakref.ref(operation)

            await operation.close()
            await operation.close()
            del operation

            assert gone() is None
        finally:
            gc.enable()

    run(main())


# --- through GraphQL ----------------------------------------------------------------------------------------------

SDL = """
extend schema
  @table(name: "cancelled", partitionKey: "PK", sortKey: "SK")
  @index(name: "back", partitionKey: "SK", sortKey: "PK")
type Pallet @node(key: "PALLET_{number}") {
  number: ID!
  container: Container! @relationship
  boxes: [Box!]! @relationship
}
type Container @node(key: "CONTAINER_{number}") { number: ID!  pallets: [Pallet!]! @relationship }
type Box @node(key: "BOX_{number}") { number: ID!  weight: Int }
type Loading @edge(partition: "{container}", sort: "{pallet}") { container: Container!  pallet: Pallet! }
type Packing @edge(partition: "{pallet}", sort: "{box}") { pallet: Pallet!  box: Box! }
"""


def pallet_of_no_container() -> list[Item]:
    """Make a pallet with two boxes, whose `container: Container!` is missing."""
    keys = [
        ("PALLET_1", "PALLET_1"),
        ("PALLET_1", "BOX_1"),
        ("PALLET_1", "BOX_2"),
        ("BOX_1", "BOX_1"),
        ("BOX_2", "BOX_2"),
    ]
    return [{"PK": {"S": partition}, "SK": {"S": sort}, "weight": {"N": "7"}} for partition, sort in keys]


class Gates:
    """The way to the engine, on which the field that fails answers while the slow request is under way."""

    def __init__(self, transport: Transport) -> None:
        self.slow = ""
        self._transport = transport
        self._arrived, self._failed = asyncio.Event(), asyncio.Event()

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        fails = parameters.get("IndexName") == "back"
        if fails:
            await self._arrived.wait()
        elif operation == self.slow:
            self._arrived.set()
            await self._failed.wait()
            # For the failure to go all the way up, and the cancellation all the way down.
            await turns(200)
        response = await self._transport(operation, parameters)
        if fails:
            self._failed.set()
        return response


@pytest.fixture
def transport(transport: Transport) -> Gates:
    return Gates(transport)


@pytest.mark.parametrize("slow", ["Query", "BatchGetItem"])
async def test_error_in_a_non_null_field_cancels_its_siblings_and_nothing_that_others_wait_for(
    transport: Gates, serve: Serve, slow: str
) -> None:
    """graphql-core cancels the siblings of a non-null field that fails; what they awaited is not theirs alone."""
    served = await serve(SDL, pallet_of_no_container(), limits=Limits())
    transport.slow = slow

    body = await served(
        """{
          failing: pallet(number: "1") { container { number } boxes(order: DESC) { nodes { number weight } } }
          other: pallet(number: "1") { boxes(order: DESC) { nodes { number weight } } }
        }"""
    )

    assert body["data"] == {
        "failing": None,
        "other": {"boxes": {"nodes": [{"number": "2", "weight": 7}, {"number": "1", "weight": 7}]}},
    }
    assert [error["path"] for error in body["errors"]] == [["failing", "container"]]
    assert served.operations.count("BatchGetItem") == 1


# --- the graph ----------------------------------------------------------------------------------------------------


def test_operation_has_its_own_deadline_and_meter() -> None:
    async def main() -> None:
        await asyncio.sleep(5)
        graph = Graph(MODEL, Store())

        assert graph.operation().meter == Meter()
        assert graph.operation(timeout_secs=2.5, report_capacity=True).meter == Meter(True, 7.5, timeout_secs=2.5)

    run(main())


def test_graph_sends_what_belongs_to_no_operation() -> None:
    async def main() -> None:
        store = Store()

        await Graph(MODEL, store).send(DescribeTable("fruit"))

        assert store.sent == [DescribeTable("fruit")]

    run(main())
