"""The engine is down at the start or later, one of two tables is, keys are replaced: behind the proxy of faults.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from operator import gt
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from graph.client import Client
from graph.loaders import Graph
from graph.wire.transport import WireTransport
from resolvers.operation import Request
from resolvers.schema import Api, Executor
from resolvers.sdl import compile_model
from tests.chaos import answer_of, served
from tests.conftest import BANANAS, Serve, way_to
from tests.counting import running
from tests.faults import NONE, Caller, FaultProxy, refusal, tables_of
from tests.faults import Request as Sent
from tests.test_circuit import TWO
from tests.test_overload import until

CONTAINER = '{ container(number: "000001") { operator } }'
OPERATOR = {"data": {"container": {"operator": "TheBoatingCompany"}}}
BODY = b'{"query": "{ container(number: \\"000001\\") { operator } }"}'
PATIENCE_SECS = 60.0
UNANSWERED = {"STORE_UNAVAILABLE", "DEADLINE_EXCEEDED"}


@pytest.mark.parametrize("transport", ["wire", "boto3"])
async def test_a_server_begins_without_the_engine_and_needs_no_other_beginning(
    engine: str, banana_table: str, transport: str
) -> None:
    async with FaultProxy(engine, NONE) as proxy:
        await proxy.refuse()
        options = ("--table", banana_table, "--transport", transport, "--operation-timeout-secs", "1")
        async with served(BANANAS, proxy.url, *options) as pool, asyncio.timeout(PATIENCE_SECS):
            url = f"http://127.0.0.1:{pool._address.port}"
            async with httpx.AsyncClient(base_url=url, timeout=20) as http:
                for _ in range(2):
                    ready = await http.get("/readyz")
                    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
                    assert (await http.get("/healthz")).status_code == 200
                    # Enough for the circuit to open.
                    for _ in range(8):
                        body = await answer_of(pool, BODY)
                        assert body["data"] == {"container": None}
                        (error,) = body["errors"]
                        assert error["extensions"]["code"] in UNANSWERED
                        assert error["path"] == ["container"]

                    await proxy.listen()
                    # Whoever asks only this is told in the end: nobody sends a query to who is not ready.
                    while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110  # it is asked
                        await asyncio.sleep(0.05)
                    assert await answer_of(pool, BODY) == OPERATOR
                    await proxy.refuse()


# --- one of two tables

BOTH = '{ apple(number: "1") { name } pear(number: "1") { name } }'
APPLE, PEAR = {"name": "Cox"}, {"name": "Abate"}


class Counting(FaultProxy):
    """Counts requests by their table, but for descriptions of it."""

    async def _answer(self, caller: Caller, request: Sent) -> None:
        if request.operation != "DescribeTable":
            for table in tables_of(request.body):
                self.tally[table] += 1
        await super()._answer(caller, request)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The time that circuits read; nothing else waits longer than it must."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr("graph.circuit.time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr("graph.circuit.random.uniform", lambda low, high: high)
    monkeypatch.setattr("graph.client.BASE_DELAY_SECS", 0)
    return clock


@pytest.mark.parametrize("executor", ["plan", "reference"])
async def test_a_table_that_is_down_takes_no_other_with_it_and_comes_back(
    engine: str, serve: Serve, clock: SimpleNamespace, executor: Executor
) -> None:
    rows = [{"p": {"S": key}, "s": {"S": key}, "name": {"S": name}} for key, name in ROWS]
    model = (await serve(TWO, rows)).graph.model
    two = list(model.tables)[1]
    async with Counting(engine, NONE, seed=1) as proxy:
        transport = way_to(proxy.url)
        client = Client(transport)
        api = Api(Graph(model, client), executor=executor, timeout_secs=20)

        async def ask() -> Any:
            return (await api.execute(Request(BOTH))).body

        async with running(api) as server, httpx.AsyncClient() as http:
            readyz = server.url.replace("/graphql", "/readyz")
            assert await ask() == {"data": {"apple": APPLE, "pear": PEAR}}
            assert (await http.get(readyz)).status_code == 200

            proxy.faults = replace(NONE, failed=1.0, tables=frozenset({two}))
            while not client.tables_down:
                error = broken(await ask())
            assert client.tables_down == [two]
            asked = proxy.tally[two]

            error = broken(await ask())
            assert error["extensions"] == {"code": "STORE_UNAVAILABLE", "retryAfter": 0.5}
            assert (await http.get(readyz)).status_code == 503
            assert proxy.tally[two] == asked, "an open circuit is not asked"

            clock.now += 0.5
            broken(await ask())
            assert proxy.tally[two] == asked + 1, "one tries"
            assert broken(await ask())["extensions"]["retryAfter"] == 1
            assert proxy.tally[two] == asked + 1

            proxy.faults = NONE
            broken(await ask())
            clock.now += 1
            assert await ask() == {"data": {"apple": APPLE, "pear": PEAR}}
            assert client.tables_down == []
            assert (await http.get(readyz)).status_code == 200
        transport.close()


async def test_who_asks_whether_it_is_ready_tries_what_was_down(
    engine: str, serve: Serve, clock: SimpleNamespace
) -> None:
    model = (await serve(TWO)).graph.model
    two = list(model.tables)[1]
    async with Counting(engine, NONE, seed=1) as proxy:
        transport = way_to(proxy.url)
        client = Client(transport)
        api = Api(Graph(model, client), timeout_secs=20)
        async with running(api) as server, httpx.AsyncClient() as http:
            readyz = server.url.replace("/graphql", "/readyz")
            proxy.faults = replace(NONE, failed=1.0, tables=frozenset({two}))
            while not client.tables_down:
                await api.execute(Request(BOTH))
            proxy.faults = NONE
            asked = proxy.tally[two]
            assert (await http.get(readyz)).status_code == 503
            assert proxy.tally[two] == asked

            clock.now += 0.5
            assert (await http.get(readyz)).status_code == 200
            assert proxy.tally[two] == asked + 1
            assert client.tables_down == []
            assert (await http.get(readyz)).status_code == 200
            assert proxy.tally[two] == asked + 1, "what answers is not tried"
        transport.close()


ROWS = (("APPLE_1", "Cox"), ("PEAR_1", "Abate"))


def broken(body: Any) -> Any:
    """Give the one error of an answer that has the apple."""
    assert body["data"] == {"apple": APPLE, "pear": None}
    (error,) = body["errors"]
    assert error["path"] == ["pear"]
    assert error["extensions"]["code"] == "STORE_UNAVAILABLE"
    return error


# --- keys


class Guarded(FaultProxy):
    """Lets those in alone who sign with the key that is good now."""

    good = b""

    async def _answer(self, caller: Caller, request: Sent) -> None:
        if b"Credential=%b/" % self.good in request.headers:
            await super()._answer(caller, request)
        else:
            self.tally["refused"] += 1
            caller.say(refusal("ExpiredTokenException"))


@pytest.fixture
async def guarded(engine: str, banana_table: str) -> AsyncIterator[Guarded]:
    async with Guarded(engine, NONE) as proxy:
        yield proxy


async def test_no_read_fails_while_keys_are_replaced(
    guarded: Guarded, banana_table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So soon after keys were looked for they are not looked for again.
    monkeypatch.setattr("graph.wire.credentials.CHECK_SECS", 0.05)
    file = tmp_path / "credentials"
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))

    def replace_keys(name: str) -> None:
        # At once, as whoever replaces such a file does it: nobody finds half of it.
        new = file.with_suffix(".new")
        new.write_text(f"[default]\naws_access_key_id = {name}\naws_secret_access_key = secret\n")
        new.replace(file)
        guarded.good = name.encode()

    replace_keys("key0")
    transport = WireTransport(guarded.url, "eu-central-1")
    graph = Graph(compile_model(BANANAS.read_text(), table=banana_table), Client(transport))
    api = Api(graph, timeout_secs=20)
    answered = [0] * 8
    is_over = False

    async def read(number: int) -> None:
        while not is_over:
            assert (await api.execute(Request(CONTAINER))).body == OPERATOR
            answered[number] += 1

    async def replace_again_and_again() -> None:
        nonlocal is_over
        for number in range(1, 5):
            before = [count + 2 for count in answered]
            await until(lambda before=before: all(map(gt, answered, before)))  # type: ignore[misc]
            await asyncio.sleep(0.1)
            replace_keys(f"key{number}")
        is_over = True

    async with asyncio.timeout(PATIENCE_SECS), asyncio.TaskGroup() as group:
        group.create_task(replace_again_and_again())
        for number in range(len(answered)):
            group.create_task(read(number))

    assert guarded.tally["refused"] >= 4
    transport.close()
