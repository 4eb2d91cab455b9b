"""Overload: so many operations are executed, as many wait, all others are refused at the door; and arrays of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from server.admission import BEGINNING, LATE_SECS, LEAST, LEAST_WAITING, MOST_SECS, Admission
from server.view import Refusal
from tests.clock import run, turns
from tests.counting import CountingApi, Running, running

SLOW, HELLO = {"query": "{ slow }"}, {"query": "{ hello }"}


async def post(client: httpx.AsyncClient, server: Running, body: Any) -> httpx.Response:
    return await client.post(server.url, json=body)


async def until(is_so: Callable[[], bool]) -> None:
    """Let the server go on until something is so; whoever runs the server gives up after a time."""
    while not is_so():  # noqa: ASYNC110  # turns have no event for it
        await asyncio.sleep(0)


# --- turns --------------------------------------------------------------------------------------------------------


def test_who_waits_is_served_in_order_and_who_waits_too_long_is_refused() -> None:
    async def main() -> None:
        admission, served = Admission(1), list[str]()

        async def one(name: str) -> None:
            if not admission.take():
                await admission.turn()
            served.append(name)

        waiting = [asyncio.ensure_future(one(name)) for name in "abc"]
        await turns()
        assert (served, admission.running, admission.waiting) == (["a"], 1, 2)
        admission.leave()
        await turns()
        assert served == ["a", "b"]

        with pytest.raises(Refusal) as refused:
            await waiting[2]

        assert asyncio.get_running_loop().time() == MOST_SECS
        assert (refused.value.status, refused.value.code) == (503, "OVERLOADED")
        assert admission.refused == 1
        admission.leave()
        assert admission.running == 0

    run(main())


def test_who_goes_while_he_waits_leaves_no_turn_behind() -> None:
    async def main() -> None:
        admission = Admission(1)
        assert admission.take()
        gone, told = (asyncio.ensure_future(admission.turn()) for _ in range(2))
        await turns()
        gone.cancel()
        await turns()
        admission.leave()
        # Given the turn, and gone before he runs again.
        told.cancel()
        await turns()

        assert (admission.running, admission.waiting) == (0, 0)
        assert admission.take()

    run(main())


def test_when_the_first_waits_long_the_last_is_served_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.admission.monotonic", lambda: asyncio.get_running_loop().time())

    async def main() -> None:
        admission, served = Admission(1), list[str]()
        admission.take()

        async def one(name: str) -> None:
            await admission.turn()
            served.append(name)

        waiting = [asyncio.ensure_future(one("old"))]
        await asyncio.sleep(0.6)
        waiting += [asyncio.ensure_future(one(name)) for name in ("new", "newest")]
        await turns()
        for _ in range(3):
            admission.leave()
            await turns()

        assert served == ["newest", "new", "old"]

    run(main())


def test_a_late_loop_has_fewer_at_once_and_one_in_time_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        admission, loop = Admission(200), asyncio.get_running_loop()
        assert admission.limit == BEGINNING
        while admission.take():
            pass
        for _ in range(100):
            await asyncio.sleep(0.05)
            while admission.take():
                pass
        assert admission.limit == admission.running == 200

        admission._due = loop.time() - 4 * LATE_SECS
        admission._look(loop)
        assert round(admission.limit) == 50
        admission._due = loop.time() - 100
        admission._look(loop)
        assert admission.limit == LEAST
        assert not admission.take()
        while admission.running:
            admission.leave()

    run(main())


def test_at_the_door_those_count_who_were_not_handed_on_yet() -> None:
    async def main() -> None:
        admission = Admission(1)
        door = [admission.is_crowded for _ in range(2 + LEAST_WAITING)]
        assert door == [False] * (1 + LEAST_WAITING) + [True]

        await turns()
        assert not admission.is_crowded

    run(main())


# --- the server ---------------------------------------------------------------------------------------------------


async def test_the_server_refuses_what_it_has_no_room_for_and_goes_on() -> None:
    api = CountingApi()
    limits = httpx.Limits(max_connections=None)
    async with running(api, max_operations=1) as server, httpx.AsyncClient(limits=limits, timeout=20) as client:
        first = asyncio.ensure_future(post(client, server, SLOW))
        await api.until(under_way=1)
        admission = server.server.app.admission
        others = [asyncio.ensure_future(post(client, server, HELLO)) for _ in range(LEAST_WAITING)]
        await until(lambda: admission.waiting == LEAST_WAITING)

        refused = await post(client, server, HELLO)
        again = await post(client, server, HELLO)
        health = await client.get(server.url.replace("/graphql", "/healthz"))
        api.released.set()

        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert refused.json()["errors"][0]["extensions"] == {"code": "OVERLOADED", "limit": "operations", "most": 1}
        assert (again.status_code, health.status_code) == (503, 200)
        assert {answer.status_code for answer in await asyncio.gather(first, *others)} <= {200, 503}
        assert (await post(client, server, HELLO)).json() == {"data": {"hello": "world"}}
        assert (admission.running, admission.waiting) == (0, 0)


async def test_a_client_that_goes_while_it_waits_is_forgotten() -> None:
    api = CountingApi()
    async with running(api, max_operations=1) as server, httpx.AsyncClient(timeout=20) as client:
        first = asyncio.ensure_future(post(client, server, SLOW))
        await api.until(under_way=1)
        admission = server.server.app.admission
        gone = asyncio.ensure_future(post(client, server, HELLO))
        await until(lambda: admission.waiting == 1)
        gone.cancel()
        api.released.set()
        await first

        assert (await post(client, server, HELLO)).status_code == 200
        assert len([request for request in api.requests if "hello" in request.query]) in (1, 2)
        assert admission.running == 0


# --- arrays -------------------------------------------------------------------------------------------------------


async def test_an_array_of_operations_is_answered_by_an_array() -> None:
    async with running(CountingApi(), max_batch=4) as server, httpx.AsyncClient() as client:
        answer = await post(client, server, [HELLO, {"query": "{ unknown }"}, 7, {"query": 7}])

        assert answer.status_code == 200
        found = answer.json()
        assert found[0] == {"data": {"hello": "world"}}
        assert [each["errors"][0]["extensions"]["code"] for each in found[1:]] == [
            "GRAPHQL_PARSE_FAILED",
            "INVALID_REQUEST",
            "INVALID_REQUEST",
        ]
        assert server.server.app.admission.running == 0


@pytest.mark.parametrize(
    ("body", "extensions"),
    [
        ([], {"code": "INVALID_REQUEST"}),
        ([HELLO] * 5, {"code": "LIMIT_EXCEEDED", "limit": "batch", "value": 5, "most": 4}),
    ],
)
async def test_an_array_that_is_empty_or_too_long_is_refused(body: Any, extensions: dict[str, Any]) -> None:
    api = CountingApi()
    async with running(api, max_batch=4) as server, httpx.AsyncClient() as client:
        answer = await post(client, server, body)

    assert (answer.status_code, answer.json()["errors"][0]["extensions"]) == (400, extensions)
    assert api.requests == []


async def test_one_key_does_not_stand_for_several_operations() -> None:
    async with running(CountingApi()) as server, httpx.AsyncClient() as client:
        answer = await client.post(server.url, json=[HELLO], headers={"idempotency-key": "a"})

    assert answer.status_code == 400
    assert "Expected no Idempotency-Key" in answer.json()["errors"][0]["message"]
