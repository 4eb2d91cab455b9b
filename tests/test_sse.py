"""GraphQL over Server-Sent Events, each operation on a connection of its own.

Source: https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md, distinct connections mode.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.types import Message

from server import endpoint
from server.app import build_app
from server.negotiation import wanted
from server.process import UNREAD_SECS, _listen
from server.settings import Settings
from tests.counting import REFUSED, TOO_SLOW, CountingApi, Running, running

EVENTS = "text/event-stream"
JSON = "application/json"
GRAPHQL = "application/graphql-response+json"
URQL = f"{GRAPHQL}, application/graphql+json, {JSON}, {EVENTS}, multipart/mixed"
COMPLETE = "event: complete\ndata:\n\n"


def following(body: Any) -> str:
    return f"event: next\ndata: {json.dumps(body, separators=(',', ':'))}\n\n"


def counted(count: int) -> str:
    return "".join(following({"data": {"count": number}}) for number in range(count))


@pytest.fixture
async def api() -> CountingApi:
    return CountingApi()


@pytest.fixture
async def server(api: CountingApi) -> AsyncIterator[Running]:
    async with running(api) as started:
        yield started


@pytest.fixture
async def client(server: Running) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{server.port}", headers={"accept": EVENTS}, timeout=30
    ) as client:
        yield client


# In which form an answer comes


@pytest.mark.parametrize(
    ("accept", "takes", "prefers"),
    [
        pytest.param(EVENTS, True, True, id="alone"),
        pytest.param(f"{EVENTS}; charset=utf-8", True, True, id="utf-8"),
        pytest.param(f"{EVENTS}, multipart/mixed", True, True, id="urql-subscription"),
        pytest.param(URQL, True, False, id="urql-query"),
        pytest.param(f"{JSON}, {EVENTS}", True, False, id="json-before"),
        pytest.param(f"{EVENTS}, {JSON}", True, True, id="json-behind"),
        pytest.param(f"{EVENTS}, */*", True, True, id="named-before-wildcard"),
        pytest.param(f"{EVENTS};q=0.5, {JSON}", True, False, id="less-quality"),
        pytest.param(f"{JSON};q=0.5, {EVENTS}", True, True, id="more-quality"),
        pytest.param(f"{EVENTS};q=0, {JSON}", False, False, id="quality-0"),
        pytest.param(f"{EVENTS}; charset=latin1, {JSON}", False, False, id="latin1"),
        pytest.param("*/*", False, False, id="wildcard"),
        pytest.param("text/*", False, False, id="half-wildcard"),
        pytest.param("", False, False, id="none"),
    ],
)
def test_who_takes_events_and_who_wants_nothing_else(accept: str, takes: bool, prefers: bool) -> None:
    form = wanted(accept.encode(), False)

    assert (form.events, form.prefers_events) == (takes, prefers)


@pytest.mark.parametrize("accept", [EVENTS, f"{EVENTS}, {JSON}", URQL, f"{JSON}, {EVENTS}"])
async def test_a_subscription_comes_as_events_wherever_they_are_taken(client: httpx.AsyncClient, accept: str) -> None:
    answer = await client.post("/graphql", json={"query": "subscription { count }"}, headers={"accept": accept})

    assert answer.status_code == 200
    assert answer.text == f":\n\n{counted(3)}{COMPLETE}"
    assert (
        dict(answer.headers).items()
        >= {
            "content-type": "text/event-stream; charset=utf-8",
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
        }.items()
    )
    assert "x-request-id" in answer.headers


async def test_a_subscription_may_come_by_get_as_eventsource_has_it(client: httpx.AsyncClient) -> None:
    answer = await client.get("/graphql", params={"query": "subscription { count }", "variables": '{"to": 1}'})

    assert answer.text == f":\n\n{counted(1)}{COMPLETE}"


async def test_a_subscription_by_plain_json_is_refused_by_the_api(client: httpx.AsyncClient, api: CountingApi) -> None:
    answer = await client.post("/graphql", json={"query": "subscription { count }"}, headers={"accept": JSON})

    assert (answer.json(), api.under_way) == ({"errors": [REFUSED]}, 0)


async def test_a_query_is_json_where_json_is_named_first(client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": "{ hello }"}, headers={"accept": URQL})

    assert answer.headers["content-type"] == f"{GRAPHQL}; charset=utf-8"
    assert answer.json() == {"data": {"hello": "world"}}


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_query_may_come_as_an_event(client: httpx.AsyncClient, method: str) -> None:
    request = {"query": "{ hello }"}
    answer = await client.request(
        method, "/graphql", json=request if method == "POST" else None, params=request if method == "GET" else None
    )

    assert answer.text == following({"data": {"hello": "world"}}) + COMPLETE


# Errors


async def test_what_is_refused_before_execution_is_an_event(client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": "nonsense"})

    assert (answer.status_code, answer.text) == (200, following({"errors": [REFUSED]}) + COMPLETE)


async def test_what_is_no_graphql_request_has_its_status(client: httpx.AsyncClient) -> None:
    answers = [
        await client.post("/graphql", content="{", headers={"content-type": JSON}),
        await client.post("/graphql", content="{}", headers={"content-type": "text/plain"}),
        await client.get("/graphql", params={"query": "mutation { add }"}),
    ]

    assert [answer.status_code for answer in answers] == [400, 415, 405]
    assert {answer.headers["content-type"] for answer in answers} == {f"{JSON}; charset=utf-8"}


async def test_an_error_under_way_is_the_last_event(client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": "subscription { fails }", "variables": {"to": 0}})

    assert answer.text == ":\n\n" + following({"errors": [TOO_SLOW]}) + COMPLETE


async def test_of_a_fault_the_client_learns_only_its_number(
    client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await client.post("/graphql", json={"query": "subscription { breaks }", "variables": {"to": 0}})

    message = f"Unexpected error; id {answer.headers['x-request-id']}"
    error = {"message": message, "extensions": {"code": "INTERNAL"}}
    assert answer.text == ":\n\n" + following({"errors": [error]}) + COMPLETE
    assert "nobody's business" in caplog.text


# How a stream goes on, and ends


def never(to: int = 0) -> dict[str, Any]:
    return {"query": "subscription { never }", "variables": {"to": to}}


async def test_each_event_is_sent_as_it_comes(client: httpx.AsyncClient, api: CountingApi) -> None:
    async with client.stream("POST", "/graphql", json=never(to=1)) as answer:
        chunks = answer.aiter_text()
        text = ""
        while "\n\nevent" not in text or not text.endswith("\n\n"):
            text += await anext(chunks)

    assert text == ":\n\n" + following({"data": {"never": 0}})


async def test_a_client_that_goes_ends_the_operation(client: httpx.AsyncClient, api: CountingApi) -> None:
    async with client.stream("POST", "/graphql", json=never()) as answer:
        assert answer.status_code == 200
        assert api.under_way == 1

    await api.until(under_way=0)


async def test_an_idle_stream_is_heard_from(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "KEEP_ALIVE_SECS", 0.01)
    text = ""

    async with client.stream("POST", "/graphql", json=never()) as answer:
        async for chunk in answer.aiter_text():
            text += chunk
            if len(text) >= 9:
                break

    assert text.startswith(":\n\n" * 3)


async def test_a_shutdown_ends_a_stream_without_completing_it(
    client: httpx.AsyncClient, server: Running, api: CountingApi
) -> None:
    """Who hears of no completion connects again."""
    async with client.stream("POST", "/graphql", json=never()) as answer:
        await server.stop()
        text = await answer.aread()

    assert (text, api.under_way) == (b":\n\n", 0)


async def test_a_stream_is_a_line_in_the_log(client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "server.logs")

    await client.post("/graphql", json={"query": "subscription S { count }", "operationName": "S"})

    fields = vars(caplog.records[-1])["fields"]
    assert {name: fields.get(name) for name in ("method", "path", "status", "operation", "events")} == {
        "method": "POST",
        "path": "/graphql",
        "status": 200,
        "operation": "S",
        "events": 3,
    }


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")
async def test_connections_end_by_themselves_when_what_is_sent_stays_unread() -> None:
    (listener,) = _listen("127.0.0.1", 0, 1)
    with listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            unread_ms = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

    assert unread_ms == UNREAD_SECS * 1000


async def test_events_wait_for_a_client_that_does_not_read(api: CountingApi) -> None:
    body = {"query": "subscription { count }", "variables": {"to": 1_000_000}}
    incoming = [{"type": "http.request", "body": json.dumps(body).encode()}]
    sent: list[Message] = []
    stuck, gone = asyncio.Event(), asyncio.Event()

    async def receive() -> Message:
        if not incoming:
            await gone.wait()
        return incoming.pop() if incoming else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if len(sent) == 4:
            stuck.set()
            await asyncio.Event().wait()
        sent.append(message)

    headers = [(b"content-type", JSON.encode()), (b"accept", EVENTS.encode())]
    scope = {"type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": headers}
    serving = asyncio.create_task(build_app(api, Settings())(scope, receive, send))
    await stuck.wait()
    for _ in range(100):
        await asyncio.sleep(0)

    assert api.given <= len(sent)
    gone.set()
    await serving
    assert api.under_way == 0
