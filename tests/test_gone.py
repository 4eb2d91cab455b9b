"""A client that goes away stops its work: what it asked for sends no further request to DynamoDB."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from graph.client import Client
from graph.loaders import Graph
from graph.wire.connection import Answer
from resolvers.operation import Request
from resolvers.schema import Api, Executor
from resolvers.sdl import compile_model
from tests.abuse.wire import Target, connected, http
from tests.conftest import BANANAS, PATIENT, way_to
from tests.counting import Running, running
from tests.faults import NONE, Caller, FaultProxy
from tests.faults import Request as Sent
from tests.test_overload import until
from tests.test_websocket import acknowledged, subscribe

QUERY = """{ container(number: "000001") { pallets(first: 3) { edges { node {
  boxes(first: 2) { edges { node { weightInKg } } } } } } } }"""
DEEPER = """{ container(number: "000001") { pallets(first: 3) { edges { node {
  ... @defer { boxes(first: 2) { edges { node { weightInKg } } } } } } } } }"""
WHOLE, BOXES = 5, 3
"""Requests that the query sends: for the pallets, then at once for the boxes of each, then for their weights."""
PARTS = "Accept: multipart/mixed, application/json"


class Held(FaultProxy):
    """Answers so many requests at once, and the others when it may."""

    def __init__(self, engine: str) -> None:
        super().__init__(engine, NONE)
        self.first = 0
        self.may = asyncio.Event()
        self.answered = 0

    @property
    def held(self) -> int:
        return self.tally["requests"] - self.answered

    async def _forward(self, request: Sent) -> Answer:
        is_first = self.tally["requests"] <= self.first
        answer = await super()._forward(request)
        if not is_first:
            await self.may.wait()
        return answer

    async def _pass(self, caller: Caller, request: Sent) -> None:
        await super()._pass(caller, request)
        self.answered += 1


@pytest.fixture
async def proxy(engine: str, banana_table: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Held]:
    # What hangs is not sent again, as if it had failed.
    monkeypatch.setattr("graph.client.FIRST_READ_SECS", 60)
    async with Held(engine) as proxy:
        yield proxy


@asynccontextmanager
async def served(proxy: Held, table: str, executor: Executor) -> AsyncIterator[tuple[Running, Api]]:
    transport = way_to(proxy.url)
    graph = Graph(compile_model(BANANAS.read_text(), table=table), Client(transport), PATIENT)
    api = Api(graph, executor=executor)
    async with running(api) as server:
        yield server, api
    transport.close()


Stay = Callable[[], Awaitable[None]]


async def _over_http(server: Running, stay: Stay, request: bytes) -> None:
    async with connected(Target(server.port, "")) as (_, writer):
        writer.write(request)
        await stay()


async def by_post(server: Running, stay: Stay) -> None:
    await _over_http(server, stay, http(json.dumps({"query": QUERY})))


async def by_array(server: Running, stay: Stay) -> None:
    await _over_http(server, stay, http(json.dumps([{"query": QUERY}, {"query": QUERY}])))


async def by_events(server: Running, stay: Stay) -> None:
    await _over_http(server, stay, http(json.dumps({"query": QUERY}), "Accept: text/event-stream"))


async def in_parts(server: Running, stay: Stay) -> None:
    await _over_http(server, stay, http(json.dumps({"query": DEEPER}), PARTS))


async def by_socket(server: Running, stay: Stay) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("1", QUERY))
        await stay()
        client.connection.transport.abort()


async def by_complete(server: Running, stay: Stay) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("1", QUERY))
        await stay()
        await client.say({"type": "complete", "id": "1"})
        # What was said before is read before.
        await client.say({"type": "ping"})
        assert await client.hear() == {"type": "pong"}


@pytest.mark.parametrize("executor", ["plan", "reference"])
@pytest.mark.parametrize("leave", [by_post, by_array, by_events, in_parts, by_socket, by_complete])
async def test_who_goes_while_dynamodb_is_asked_has_nothing_more_asked(
    proxy: Held, banana_table: str, leave: Callable[[Running, Stay], Awaitable[None]], executor: Executor
) -> None:
    async with served(proxy, banana_table, executor) as (server, api):
        admission = server.server.app.admission
        operations = 2 if leave is by_array else 1

        async def stay() -> None:
            await until(lambda: proxy.held == operations)
            assert admission.running == operations

        await leave(server, stay)
        await until(lambda: admission.running == 0)

        proxy.may.set()
        await until(lambda: not proxy.held)
        assert proxy.tally["requests"] == operations
        # Whatever were still to come would come before all of this, which takes two steps to the table.
        for _ in range(3):
            assert "errors" not in (await api.execute(Request(QUERY))).body
        assert proxy.tally["requests"] == operations + 3 * WHOLE


@pytest.mark.parametrize("executor", ["plan", "reference"])
async def test_who_goes_after_a_first_part_has_nothing_more_asked(
    proxy: Held, banana_table: str, executor: Executor
) -> None:
    proxy.first = 1
    async with served(proxy, banana_table, executor) as (server, api):
        async with connected(Target(server.port, "")) as (reader, writer):
            writer.write(http(json.dumps({"query": DEEPER}), PARTS))
            await reader.readuntil(b'"hasNext":true')
            await until(lambda: proxy.held == BOXES)
        await until(lambda: not server.server.server_state.tasks)

        proxy.may.set()
        await until(lambda: not proxy.held)
        for _ in range(3):
            assert "errors" not in (await api.execute(Request(QUERY))).body
        assert proxy.tally["requests"] == 1 + BOXES + 3 * WHOLE
