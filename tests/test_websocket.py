"""GraphQL over WebSocket, sentence by sentence of the protocol, and what sockets of ill will meet.

Source: https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx
import pytest
from starlette.types import Message
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Subprotocol

from server import websocket
from server.app import build_app
from server.settings import Settings
from server.upgrade import WebSocketProtocol
from tests.counting import REFUSED, TOO_SLOW, CountingApi, Running, running
from tests.test_app import process

TRANSPORT_WS = Subprotocol("graphql-transport-ws")
INIT = {"type": "connection_init"}


class Client:
    """A WebSocket client that says what it is told to."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def say(self, *messages: Any) -> None:
        for message in messages:
            await self.connection.send(message if isinstance(message, str | bytes) else json.dumps(message))

    async def hear(self) -> Any:
        text = await self.connection.recv()
        assert isinstance(text, str), "messages are text frames"
        return json.loads(text)

    async def closed(self) -> tuple[int, str]:
        """Wait for the server to close the socket, and give code and reason."""
        with suppress(ConnectionClosed):
            async for _ in self.connection:
                continue
        return self.connection.close_code or 0, self.connection.close_reason or ""


@asynccontextmanager
async def opened(
    server: Running, headers: Mapping[str, str] | None = None, subprotocols: Sequence[Subprotocol] = (TRANSPORT_WS,)
) -> AsyncIterator[Client]:
    """Open a socket, before anything is said on it."""
    offered = subprotocols or None
    async with connect(server.socket_url, subprotocols=offered, additional_headers=headers) as connection:
        yield Client(connection)


@asynccontextmanager
async def acknowledged(server: Running, headers: Mapping[str, str] | None = None) -> AsyncIterator[Client]:
    """Open a socket and introduce oneself."""
    async with opened(server, headers) as client:
        await client.say(INIT)
        assert await client.hear() == {"type": "connection_ack"}
        yield client


def subscribe(name: str, query: str, **variables: Any) -> dict[str, Any]:
    return {"id": name, "type": "subscribe", "payload": {"query": query, "variables": variables}}


def following(name: str, value: Any) -> dict[str, Any]:
    return {"id": name, "type": "next", "payload": value}


@pytest.fixture
async def api() -> CountingApi:
    return CountingApi()


@pytest.fixture
async def server(api: CountingApi) -> AsyncIterator[Running]:
    async with running(api, max_body_bytes=1000, max_socket_operations=3) as started:
        yield started


# What goes on over a socket


async def test_a_subscription_sends_its_events_and_completes(server: Running) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("a", "subscription { count }", to=2))

        assert [await client.hear() for _ in range(3)] == [
            following("a", {"data": {"count": 0}}),
            following("a", {"data": {"count": 1}}),
            {"id": "a", "type": "complete"},
        ]


@pytest.mark.parametrize("query", ["{ hello }", "mutation { hello }"])
async def test_queries_and_mutations_go_over_a_socket_too(server: Running, query: str) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("a", query))

        assert await client.hear() == following("a", {"data": {"hello": "world"}})
        assert await client.hear() == {"id": "a", "type": "complete"}


async def test_what_an_operation_asks_for_reaches_the_api(server: Running, api: CountingApi) -> None:
    payload = {"query": "query Q { hello }", "variables": {"n": 2**70}, "operationName": "Q", "extensions": {"x": 1}}
    headers = {"Tablegraph-Cost": "1"}

    async with acknowledged(server, headers) as client:
        await client.say({"id": "a", "type": "subscribe", "payload": payload})
        await client.hear()

    (request,) = api.requests
    assert (request.query, request.variables, request.operation_name) == ("query Q { hello }", {"n": 2**70}, "Q")
    assert (request.mutations_allowed, request.cost, request.incremental) == (True, True, False)


async def test_operations_of_a_socket_go_on_side_by_side(server: Running) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("a", "subscription { never }", to=1))
        assert await client.hear() == following("a", {"data": {"never": 0}})

        await client.say(subscribe("b", "{ hello }"))
        assert await client.hear() == following("b", {"data": {"hello": "world"}})


@pytest.mark.parametrize(
    ("query", "before", "error"),
    [
        pytest.param("nonsense", 0, REFUSED, id="refused"),
        pytest.param("subscription { fails }", 3, TOO_SLOW, id="fails-under-way"),
    ],
)
async def test_an_error_ends_its_operation_alone(server: Running, query: str, before: int, error: Any) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("a", query))
        for _ in range(before):
            await client.hear()

        assert await client.hear() == {"id": "a", "type": "error", "payload": [error]}
        await client.say(subscribe("a", "{ hello }"))
        assert await client.hear() == following("a", {"data": {"hello": "world"}})


@pytest.mark.parametrize("query", ["{ breaks }", "subscription { breaks }"])
async def test_of_a_fault_the_client_learns_only_its_number(
    server: Running, caplog: pytest.LogCaptureFixture, query: str
) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("a", query, to=0))
        message = await client.hear()

    (error,) = message["payload"]
    assert (message["type"], error["extensions"]) == ("error", {"code": "INTERNAL"})
    assert error["message"].startswith("Unexpected error; id ")
    assert "nobody's business" in caplog.text


async def test_a_client_may_end_an_operation_and_use_its_id_again(server: Running, api: CountingApi) -> None:
    async with acknowledged(server) as client:
        await client.say(subscribe("a", "subscription { never }", to=1))
        await client.hear()
        await client.say({"id": "a", "type": "complete"}, subscribe("a", "{ hello }"))

        assert await client.hear() == following("a", {"data": {"hello": "world"}})
        await api.until(under_way=0)


async def test_to_end_what_has_ended_is_no_mistake(server: Running) -> None:
    async with acknowledged(server) as client:
        await client.say({"id": "unknown", "type": "complete"}, {"type": "ping"})

        assert await client.hear() == {"type": "pong"}


async def test_pings_are_answered_before_the_acknowledgement_too(server: Running) -> None:
    async with opened(server) as client:
        await client.say({"type": "ping", "payload": {"time": 1}}, {"type": "pong"}, INIT)

        assert await client.hear() == {"type": "pong", "payload": {"time": 1}}
        assert await client.hear() == {"type": "connection_ack"}


# Sockets of ill will

NEVER = subscribe("a", "subscription { never }", to=0)


@pytest.mark.parametrize(
    ("said", "code", "reason"),
    [
        pytest.param(["{"], 4400, "Expected a message in JSON", id="no-json"),
        pytest.param(["[" * 900], 4400, "Expected a message in JSON", id="deep-json"),
        pytest.param(["[]"], 4400, "Expected a JSON object with a type, got an array", id="no-object"),
        pytest.param([b"{}"], 4400, "Expected a text frame, got a binary one", id="binary"),
        pytest.param([{}], 4400, "got None", id="no-type"),
        pytest.param([{"type": "connection_terminate"}], 4400, "got 'connection_terminate'", id="unknown-type"),
        pytest.param([{"type": ["ping"]}], 4400, "got ['ping']", id="strange-type"),
        pytest.param([{"type": "next", "id": "a"}], 4400, "got 'next'", id="type-of-the-server"),
        pytest.param([{"type": "x" * 900}], 4400, "got 'xxx", id="long-type"),
        pytest.param([INIT | {"payload": 1}], 4400, "Expected the payload to be an object, got a number", id="init"),
        pytest.param([{"type": "ping", "payload": []}], 4400, "object, got an array", id="ping"),
        pytest.param([{"type": "pong", "payload": ""}], 4400, "object, got a string", id="pong"),
        pytest.param([NEVER], 4401, "Unauthorized", id="subscribe-before-init"),
        pytest.param([INIT, INIT], 4429, "Too many initialisation requests", id="two-inits"),
        pytest.param([INIT, NEVER, NEVER], 4409, "Subscriber for a already exists", id="id-twice"),
        pytest.param([INIT, NEVER | {"id": 1}], 4400, "Expected the id of the operation", id="number-as-id"),
        pytest.param([INIT, NEVER | {"id": ""}], 4400, "Expected the id of the operation", id="empty-id"),
        pytest.param([INIT, {"type": "complete"}], 4400, "Expected the id of the operation", id="complete-without-id"),
        pytest.param([INIT, NEVER | {"payload": None}], 4400, "object, got null", id="no-payload"),
        pytest.param([INIT, NEVER | {"payload": {}}], 4400, "Expected the parameter query", id="no-query"),
        pytest.param(
            [INIT, NEVER | {"payload": {"query": "{ hello }", "variables": []}}],
            4400,
            "Expected the parameter variables to be an object or absent, got an array.",
            id="variables",
        ),
        pytest.param(["x" * 1001], 1009, "", id="too-large"),
    ],
)
async def test_a_bad_message_closes_the_socket(
    server: Running, api: CountingApi, said: list[Any], code: int, reason: str
) -> None:
    async with opened(server) as client:
        await client.say(*said)
        closed = await client.closed()

    assert closed[0] == code
    assert reason in closed[1]
    assert len(closed[1].encode()) <= 123
    await api.until(under_way=0)


async def test_fragments_of_a_message_count_together(server: Running) -> None:
    async with opened(server) as client:
        await client.connection.send(["x" * 600, "x" * 600])

        assert (await client.closed())[0] == 1009


async def test_who_does_not_introduce_himself_is_sent_away(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "INIT_SECS", 0.01)

    async with opened(server) as client:
        assert await client.closed() == (4408, "Connection initialisation timeout")


async def test_pings_do_not_put_the_introduction_off(server: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "INIT_SECS", 0.05)

    async def pinging(client: Client) -> None:
        while True:
            await client.say({"type": "ping"})
            await client.hear()

    async with opened(server) as client:
        with suppress(ConnectionClosed):
            await pinging(client)
        assert (await client.closed())[0] == 4408


@pytest.mark.parametrize("offered", [[], ["graphql-ws"], ["mqtt", "graphql-transport-ws2"]])
async def test_another_subprotocol_is_not_spoken(server: Running, offered: list[Subprotocol]) -> None:
    async with opened(server, subprotocols=offered) as client:
        assert client.connection.subprotocol is None
        assert await client.closed() == (4406, "Expected the subprotocol graphql-transport-ws")


async def test_the_legacy_subprotocol_is_passed_over(server: Running) -> None:
    async with opened(server, subprotocols=[Subprotocol("graphql-ws"), TRANSPORT_WS]) as client:
        assert client.connection.subprotocol == TRANSPORT_WS


async def test_operations_beyond_the_limit_are_refused_and_the_others_go_on(server: Running) -> None:
    async with acknowledged(server) as client:
        for name in "abcd":
            await client.say(NEVER | {"id": name})
        refusal = await client.hear()
        await client.say({"id": "a", "type": "complete"}, subscribe("d", "{ hello }"))

        assert (refusal["id"], refusal["type"]) == ("d", "error")
        assert refusal["payload"][0]["extensions"] == {
            "code": "TOO_MANY_OPERATIONS",
            "limit": "socketOperations",
            "value": 4,
            "most": 3,
        }
        assert await client.hear() == following("d", {"data": {"hello": "world"}})


async def test_no_other_path_opens_a_socket(server: Running) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{server.port}/healthz", subprotocols=[TRANSPORT_WS])

    assert refused.value.response.status_code == 403


async def test_a_page_of_another_site_opens_no_socket(server: Running, api: CountingApi) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await connect(server.socket_url, subprotocols=[TRANSPORT_WS], origin="https://evil.example")  # type: ignore[arg-type]

    body = json.loads(refused.value.response.body)
    assert refused.value.response.status_code == 403
    assert body["errors"][0]["extensions"] == {"code": "ORIGIN_NOT_ALLOWED"}


# The end of a socket


async def test_what_a_client_leaves_behind_is_cancelled(server: Running, api: CountingApi) -> None:
    async with acknowledged(server) as client:
        await client.say(NEVER, NEVER | {"id": "b"}, subscribe("c", "{ slow }"))
        await api.until(under_way=3)

    await api.until(under_way=0)


async def test_a_connection_that_breaks_cancels_everything(server: Running, api: CountingApi) -> None:
    async with acknowledged(server) as client:
        await client.say(NEVER, subscribe("c", "{ slow }"))
        await api.until(under_way=2)
        client.connection.transport.abort()
        await api.until(under_way=0)


async def test_who_answers_no_pings_is_gone_whatever_is_under_way(
    server: Running, api: CountingApi, caplog: pytest.LogCaptureFixture
) -> None:
    async with acknowledged(server) as client:
        await client.say(NEVER, subscribe("b", "{ slow }"))
        await api.until(under_way=2)
        (protocol,) = server.server.server_state.connections
        assert isinstance(protocol, WebSocketProtocol)
        # The answer finds the socket closed.
        api.released.set()
        protocol.keepalive_timeout()
        await api.until(under_way=0)

        assert (await client.closed())[0] == 1011
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_shutdown_ends_subscriptions_at_once_and_lets_other_operations_finish(
    server: Running, api: CountingApi
) -> None:
    async with acknowledged(server) as client:
        await client.say(NEVER, subscribe("b", "{ slow }"))
        await api.until(under_way=2)
        stopping = asyncio.create_task(server.stop())
        await api.until(under_way=1)
        api.released.set()

        assert await client.hear() == following("b", {"data": {"slow": "done"}})
        assert await client.hear() == {"id": "b", "type": "complete"}
        assert await client.closed() == (1012, "The server shuts down")
        await stopping


async def test_what_outlasts_the_grace_period_is_cut_off_with_a_code_to_connect_again(api: CountingApi) -> None:
    async with running(api, graceful_shutdown_secs=0) as server, acknowledged(server) as client:
        await client.say(subscribe("b", "{ slow }"))
        await api.until(under_way=1)
        await server.stop()

        assert (await client.closed())[0] == 1012
    assert api.under_way == 0


# Clients that do not read


class Reluctant:
    """A socket over ASGI whose client reads so many messages and no more, as `send` of a full buffer has it."""

    def __init__(self, api: CountingApi, readable: int) -> None:
        self.readable = readable
        self.sent: list[Message] = []
        self.stuck = asyncio.Event()
        self.incoming: asyncio.Queue[Message] = asyncio.Queue()
        self.incoming.put_nowait({"type": "websocket.connect"})
        scope = {"type": "websocket", "path": "/graphql", "headers": [], "subprotocols": [TRANSPORT_WS]}
        self.task = asyncio.create_task(build_app(api, Settings())(scope, self.incoming.get, self.send))

    def say(self, message: Any) -> None:
        self.incoming.put_nowait({"type": "websocket.receive", "text": json.dumps(message)})

    async def send(self, message: Message) -> None:
        if self.readable <= len(self.sent):
            self.stuck.set()
            await asyncio.Event().wait()
        self.sent.append(message)


async def test_of_a_client_that_does_not_read_no_more_events_are_taken(api: CountingApi) -> None:
    client = Reluctant(api, readable=3)
    client.say(INIT)
    client.say(subscribe("a", "subscription { count }", to=1_000_000))
    await client.stuck.wait()
    for _ in range(100):
        await asyncio.sleep(0)

    assert [message["type"] for message in client.sent] == ["websocket.accept", "websocket.send", "websocket.send"]
    assert api.given == 2

    client.incoming.put_nowait({"type": "websocket.disconnect", "code": 1006})
    await client.task
    assert api.under_way == 0


async def test_a_backlog_of_events_lets_others_have_their_turn(api: CountingApi) -> None:
    client = Reluctant(api, readable=1000)
    client.say(INIT)
    client.say(subscribe("a", "subscription { count }", to=100))
    turns = 0
    while len(client.sent) < 100:
        await asyncio.sleep(0)
        turns += 1

    assert turns > 90
    client.incoming.put_nowait({"type": "websocket.disconnect", "code": 1000})
    await client.task


async def test_the_close_of_a_socket_does_not_wait_for_ever(api: CountingApi, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_SECS", 0.01)
    client = Reluctant(api, readable=2)
    client.say(INIT)
    client.say({"type": "nonsense"})

    async with asyncio.timeout(30):
        await client.task


# The log


async def test_a_socket_and_each_of_its_operations_is_a_line(
    server: Running, caplog: pytest.LogCaptureFixture, api: CountingApi
) -> None:
    caplog.set_level(logging.INFO, "server.logs")
    headers = {"X-Request-Id": "socket-1"}

    async with acknowledged(server, headers) as client:
        await client.say(subscribe("a", "subscription { count }"), subscribe("b", "nonsense"))
        for _ in range(5):
            await client.hear()
        await client.say({"id": "c", "type": "subscribe", "payload": {**NEVER["payload"], "operationName": "Never"}})
        await api.until(under_way=1)
    await server.stop()

    lines = [vars(record)["fields"] for record in caplog.records if record.name == "server.logs"]
    assert sorted((line["status"], line.get("events"), line.get("operation")) for line in lines[:-1]) == [
        ("cancelled", 0, "Never"),
        ("complete", 3, None),
        ("error", 0, None),
    ]
    assert {line["socket"] for line in lines[:-1]} == {"socket-1"}
    assert (lines[-1]["method"], lines[-1]["path"], lines[-1]["status"]) == ("WS", "/graphql", 1000)


# The process


async def test_the_library_of_frames_is_imported_with_the_first_socket() -> None:
    async def has_websockets(client: httpx.AsyncClient, url: str) -> bool:
        answer = await client.post(url, json={"query": "{ modules }"})
        return "websockets" in answer.json()["data"]["modules"]

    async with process("tests/counting.py") as server, httpx.AsyncClient() as client:
        before = await has_websockets(client, server.url)
        async with connect(server.url.replace("http", "ws"), subprotocols=[TRANSPORT_WS]):
            after = await has_websockets(client, server.url)

    assert (before, after) == (False, True)
