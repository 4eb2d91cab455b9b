"""Loaders: what travels together, what is shared and in which rhythm it leaves, by the requests and their times."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.client import MAX_TRIES, Response
from graph.errors import RequestRefused, Throttled
from graph.requests import BatchGetItem, GetItem, ItemKey, Request, key_attribute
from tests.clock import now, run, turns
from tests.store import LINGER_SECS, Store, fruit, item, query, ship

FRUITS = [fruit(number) for number in range(250)]


# --- items --------------------------------------------------------------------------------------------------------


def test_one_key_is_a_get_item() -> None:
    async def main() -> None:
        store = Store([fruit("a")])

        assert await store.operation().items([fruit("a")]) == [item(fruit("a"))]

        assert store.sent == [GetItem(*fruit("a"))]

    run(main())


def test_keys_of_one_table_are_a_batch_in_the_order_asked_for() -> None:
    async def main() -> None:
        store = Store([fruit("a"), fruit("b"), fruit("c")])

        found = await store.operation().items([fruit("c"), fruit("a"), fruit("b")])

        assert found == [item(fruit("c")), item(fruit("a")), item(fruit("b"))]
        assert store.sent == [BatchGetItem("fruit", (fruit("c")[1], fruit("a")[1], fruit("b")[1]))]

    run(main())


@pytest.mark.parametrize("others", [[], [fruit("b")]], ids=["get-item", "batch"])
def test_missing_item_is_none_in_its_place(others: list[ItemKey]) -> None:
    async def main() -> None:
        store = Store(others)

        assert await store.operation().items([fruit("none"), *others]) == [None, *map(item, others)]

    run(main())


def test_key_is_sent_once_however_often_it_is_asked_for() -> None:
    async def main() -> None:
        store = Store([fruit("a"), fruit("b")])
        operation = store.operation()

        twice = await operation.items([fruit("a"), fruit("b"), fruit("a")])
        again = await operation.items([fruit("b")])

        assert twice == [item(fruit("a")), item(fruit("b")), item(fruit("a"))]
        assert again == [item(fruit("b"))]
        assert store.shapes == [("fruit", 2)]

    run(main())


def test_equal_numbers_are_one_key() -> None:
    async def main() -> None:
        one, same = ("fruit", (("id", Decimal("1.0")),)), ("fruit", (("id", Decimal(1)),))
        store = Store([one])

        assert await store.operation().items([one, same, fruit("a")]) == [item(one), item(one), None]

        assert store.shapes == [("fruit", 2)]
        assert key_attribute(one[1][0][1]) == {"N": "1"}

    run(main())


@settings(deadline=None)
@given(st.lists(st.integers(0, 30), max_size=40), st.sets(st.integers(0, 30)))
def test_any_keys_are_answered_in_order_and_asked_for_once(numbers: list[int], known: set[int]) -> None:
    async def main() -> None:
        store = Store(map(fruit, known))
        keys = [fruit(number) for number in numbers]

        found = await store.operation().items(keys)

        assert found == [item(key) if number in known else None for number, key in zip(numbers, keys, strict=True)]
        assert len(store.sent) == bool(numbers)

    run(main())


def test_no_batch_has_more_than_100_keys() -> None:
    async def main() -> None:
        store = Store(FRUITS)

        assert await store.operation().items(FRUITS) == list(map(item, FRUITS))

        assert store.shapes == [("fruit", 100), ("fruit", 100), ("fruit", 50)]

    run(main())


def test_every_table_has_its_own_batch() -> None:
    async def main() -> None:
        keys = [fruit("a"), ship("a"), fruit("b"), ship("b"), fruit("a")]
        store = Store(keys)

        assert await store.operation().items(keys) == list(map(item, keys))

        assert store.shapes == [("fruit", 2), ("ships", 2)]

    run(main())


def test_what_was_brought_already_is_not_asked_for() -> None:
    async def main() -> None:
        store = Store()
        operation = store.operation()

        operation.prime_item(fruit("a"), {"id": {"S": "a"}, "more": {"BOOL": True}})
        operation.prime_item(fruit("none"), None)

        assert await operation.items([fruit("a"), fruit("none")]) == [{"id": {"S": "a"}, "more": {"BOOL": True}}, None]
        assert store.sent == []

    run(main())


def test_operations_share_nothing() -> None:
    async def main() -> None:
        store = Store([fruit("a")])

        await store.operation().items([fruit("a")])
        await store.operation().items([fruit("a")])

        assert store.shapes == ["GetItem", "GetItem"]

    run(main())


# --- unprocessed keys ---------------------------------------------------------------------------------------------


def processing(*counts: int) -> Callable[[Request, Response], Response]:
    """Answer no more than so many keys of each batch in turn; the last count stays."""
    left = list(counts)

    def answer(request: Request, response: Response) -> Response:
        if isinstance(request, GetItem):
            return response
        assert isinstance(request, BatchGetItem)
        count = left.pop(0) if len(left) > 1 else left[0]
        done, undone = request.keys[:count], request.keys[count:]
        items = [
            entry for entry in response["Responses"]["fruit"] if any(entry == item(("fruit", key)) for key in done)
        ]
        unprocessed = {"fruit": {"Keys": [item(("fruit", key)) for key in undone]}} if undone else {}
        return {"Responses": {"fruit": items}, "UnprocessedKeys": unprocessed}

    return answer


def test_unprocessed_keys_are_asked_for_again() -> None:
    async def main() -> None:
        store = Store(FRUITS, answer=processing(4, 0, 3, 100))
        operation = store.operation()

        assert await operation.items(FRUITS[:10]) == list(map(item, FRUITS[:10]))

        # Less at once when nothing of it was answered.
        assert store.shapes == [("fruit", 10), ("fruit", 6), ("fruit", 3), ("fruit", 3)]
        assert operation.meter.retries == 2
        # Each time after a random delay, which grows only while nothing is processed.
        assert store.times[0] < store.times[1] <= 0.05

    run(main())


def test_keys_that_are_never_processed_are_given_up_as_throttled() -> None:
    async def main() -> None:
        store = Store(FRUITS, answer=processing(1, 0))

        with pytest.raises(Throttled, match=r"^DynamoDB left 1 keys of 'fruit' unprocessed 16 times in a row$"):
            await store.operation().items(FRUITS[:3])

        assert len(store.sent) == MAX_TRIES

    run(main())


def test_unprocessed_keys_are_asked_for_as_often_before_the_deadline() -> None:
    async def main() -> None:
        store = Store(FRUITS, answer=processing(0))

        with pytest.raises(Throttled):
            await store.operation(timeout_secs=0.1).items(FRUITS[:3])

        assert len(store.sent) == MAX_TRIES
        assert now() <= 0.1

    run(main())


# --- pages --------------------------------------------------------------------------------------------------------


def test_equal_queries_share_one_request() -> None:
    async def main() -> None:
        store = Store(delay=lambda request: 1.0)
        operation = store.operation()

        pages = await asyncio.gather(*(operation.page(query(name)) for name in "abab"))
        later = await operation.page(query("a"))

        assert store.sent == [query("a"), query("b")]
        assert later is pages[0] is pages[2]

    run(main())


def test_failed_page_fails_those_who_wait_and_is_asked_for_again_later() -> None:
    async def main() -> None:
        outcomes: list[Exception | None] = [RequestRefused("no"), None]

        def answer(request: Request, response: Response) -> Response:
            if error := outcomes.pop(0):
                raise error
            return response

        store = Store(answer=answer)
        operation = store.operation()

        failed = await asyncio.gather(operation.page(query("a")), operation.page(query("a")), return_exceptions=True)

        assert [type(error) for error in failed] == [RequestRefused, RequestRefused]
        assert (await operation.page(query("a")))["Count"] == 0
        assert store.sent == [query("a"), query("a")]

    run(main())


# --- the rhythm ---------------------------------------------------------------------------------------------------


def test_keys_leave_at_once_while_nothing_is_outstanding() -> None:
    async def main() -> None:
        store = Store(FRUITS)

        async def resolver(number: int) -> None:
            await turns(number % 3)
            await operation.items([FRUITS[number]])

        operation = store.operation()
        await asyncio.gather(*map(resolver, range(5)))

        assert store.shapes == [("fruit", 5)]
        assert store.times == [0.0]

    run(main())


async def read(operation: Any, secs: float, *keys: ItemKey) -> None:
    """Read for some time, ask for what follows from it, and only then wait."""
    with operation.reading():
        await asyncio.sleep(secs)
        operation.request_items(keys)
    await operation.items(keys)


def test_keys_wait_for_what_is_outstanding_and_leave_when_it_is_answered() -> None:
    async def main() -> None:
        store = Store(FRUITS)
        operation = store.operation()

        await asyncio.gather(
            read(operation, 0.005, FRUITS[0]), read(operation, 0.009, FRUITS[1]), read(operation, 0.012, FRUITS[2])
        )

        assert store.shapes == [("fruit", 3)]
        assert store.times == [0.012]

    run(main())


def test_keys_leave_after_the_linger_however_long_something_is_outstanding() -> None:
    async def main() -> None:
        store = Store(FRUITS)
        operation = store.operation()

        await asyncio.gather(
            read(operation, 9.0, FRUITS[0]), read(operation, 1.0, FRUITS[1]), read(operation, 1.01, FRUITS[2])
        )

        assert store.shapes == [("fruit", 2), "GetItem"]
        assert store.times == [1.0 + LINGER_SECS, 9.0]

    run(main())


def test_full_batch_leaves_at_once_whatever_is_outstanding() -> None:
    async def main() -> None:
        store = Store(FRUITS)
        operation = store.operation()

        await asyncio.gather(read(operation, 9.0), read(operation, 1.0, *FRUITS[:130]))

        assert store.shapes == [("fruit", 100), ("fruit", 30)]
        assert store.times == [1.0, 1.0 + LINGER_SECS]

    run(main())


def test_keys_wait_for_a_batch_that_is_under_way() -> None:
    async def main() -> None:
        store = Store(FRUITS, delay=lambda request: 0.01)
        operation = store.operation()
        first = asyncio.ensure_future(operation.items(FRUITS[:2]))
        await turns()

        await asyncio.gather(operation.items(FRUITS[2:3]), operation.items(FRUITS[3:4]), first)

        assert store.shapes == [("fruit", 2), ("fruit", 2)]
        assert store.times == [0.0, 0.01]

    run(main())


def test_reading_that_begins_meanwhile_delays_the_keys_by_the_linger_at_most() -> None:
    async def main() -> None:
        store = Store(FRUITS)
        operation = store.operation()

        await asyncio.gather(operation.items(FRUITS[:1]), read(operation, 9.0))

        assert store.times == [LINGER_SECS]

    run(main())


def test_reader_that_waits_for_items_itself_is_not_waited_for() -> None:
    async def main() -> None:
        store = Store(FRUITS, delay=lambda request: 0.01)
        operation = store.operation()

        async def reader(number: int) -> None:
            with operation.reading():
                await operation.page(query("a"))
                await operation.items([FRUITS[number]])
                operation.request_items([FRUITS[number + 10]])
            await operation.items([FRUITS[number + 10]])

        await asyncio.gather(*map(reader, range(3)))

        assert store.shapes == ["Query", ("fruit", 3), ("fruit", 3)]
        assert store.times == pytest.approx([0.0, 0.01, 0.02])

    run(main())


@pytest.mark.parametrize("error", [RuntimeError, asyncio.CancelledError])
def test_reading_that_fails_is_outstanding_no_longer(error: type[BaseException]) -> None:
    async def main() -> None:
        store = Store(FRUITS)
        operation = store.operation()

        async def fail() -> None:
            with operation.reading():
                await asyncio.sleep(0.005)
                raise error

        await asyncio.gather(read(operation, 0.001, FRUITS[0]), fail(), return_exceptions=True)

        assert store.times == [0.005]

    run(main())
