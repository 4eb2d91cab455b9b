"""Incremental Delivery over HTTP: the payloads of one operation as parts of one answer, each sent as it comes.

Source: https://github.com/graphql/graphql-over-http/blob/main/rfcs/IncrementalDelivery.md
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.types import Message

from resolvers.operation import Events, Request, Response
from server.app import Application, build_app
from server.negotiation import wanted
from server.settings import Settings
from tests.test_app import ScriptedApi, client_of

JSON = "application/json"
BOTH = f"multipart/mixed, {JSON}"
FIRST = {"data": {"hello": "world"}, "hasNext": True}
LATER = [
    {"incremental": [{"data": {"slow": 1}, "path": []}], "hasNext": True},
    {"incremental": [{"data": {"slower": 2}, "path": []}], "hasNext": False},
]


class Deferring:
    """An API whose answer comes in several payloads, when that is accepted."""

    def __init__(self, payloads: list[Any]) -> None:
        self.payloads = payloads
        self.requests: list[Request] = []
        self.closed = asyncio.Event()
        self.released = asyncio.Event()
        self.released.set()

    async def ready(self) -> None:
        """Nothing to wait for."""

    def goes_on(self, request: Request) -> bool:
        return "subscription" in request.query

    async def open(self, request: Request) -> Response | Events:
        return await self.execute(request)

    async def execute(self, request: Request) -> Response:
        self.requests.append(request)
        if not request.incremental:
            return Response({"data": {"hello": "world"}}, "executed")
        return Response(dict(FIRST), "executed", rest=self._rest())

    async def _rest(self) -> AsyncIterator[dict[str, Any]]:
        try:
            for payload in self.payloads:
                await self.released.wait()
                if isinstance(payload, BaseException):
                    raise payload
                yield payload
        finally:
            self.closed.set()


class Connection:
    """One request over ASGI, whose client reads as it likes and may go."""

    def __init__(self, app: Application, accept: str, query: str = "{ hello }") -> None:
        body = json.dumps({"query": query}).encode()
        self.incoming = [{"type": "http.request", "body": body, "more_body": False}]
        self.sent: asyncio.Queue[Message] = asyncio.Queue()
        self.gone = asyncio.Event()
        headers = [(b"content-type", JSON.encode()), (b"accept", accept.encode())]
        scope = {"type": "http", "method": "POST", "path": "/graphql", "query_string": b"", "headers": headers}
        self.task = asyncio.create_task(app(scope, self.receive, self.sent.put))

    async def receive(self) -> Message:
        if self.incoming:
            return self.incoming.pop()
        await self.gone.wait()
        return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("accept", "incremental"),
    [
        pytest.param("multipart/mixed", True, id="alone"),
        pytest.param(f"multipart/mixed;deferSpec=20220824, {JSON}", False, id="apollo-3"),
        pytest.param(f"multipart/mixed;incrementalSpec=v0.2,{JSON};q=0.9", True, id="apollo-4"),
        pytest.param(f"{JSON}, text/event-stream, Multipart/Mixed", True, id="urql"),
        pytest.param(f"{JSON}, multipart/mixed;q=0", False, id="quality-0"),
        pytest.param("*/*", False, id="wildcard"),
        pytest.param("multipart/*", False, id="half-wildcard"),
        pytest.param(JSON, False, id="json"),
        pytest.param("", False, id="none"),
    ],
)
def test_only_who_names_multipart_takes_several_payloads(accept: str, incremental: bool) -> None:
    assert wanted(accept.encode(), False).incremental is incremental


async def test_each_payload_is_a_part() -> None:
    async with client_of(build_app(Deferring(LATER), Settings())) as client:
        answer = await client.post("/graphql", json={"query": "{ hello }"}, headers={"accept": BOTH})

    head = "\r\nContent-Type: application/json; charset=utf-8\r\n\r\n"
    preamble, *parts, end = answer.text.split("\r\n---")
    assert (answer.status_code, answer.headers["content-type"]) == (200, 'multipart/mixed; boundary="-"')
    assert (preamble, end) == ("", "--\r\n")
    assert [json.loads(part.removeprefix(head)) for part in parts] == [FIRST, *LATER]


@pytest.mark.parametrize("accept", [JSON, "*/*"])
async def test_who_does_not_accept_parts_is_not_given_any(accept: str) -> None:
    api = Deferring(LATER)

    async with client_of(build_app(api, Settings())) as client:
        answer = await client.post("/graphql", json={"query": "{ hello }"}, headers={"accept": accept})

    assert [request.incremental for request in api.requests] == [False]
    assert answer.json() == {"data": {"hello": "world"}}


async def test_an_answer_of_one_payload_is_plain_json() -> None:
    async with client_of(build_app(ScriptedApi(), Settings())) as client:
        answer = await client.post("/graphql", json={"query": "{ hello }"}, headers={"accept": BOTH})

    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert answer.json() == {"data": {"hello": "world"}}


async def test_an_answer_of_one_payload_is_one_part_for_who_accepts_only_parts() -> None:
    async with client_of(build_app(ScriptedApi(), Settings())) as client:
        answer = await client.post("/graphql", json={"query": "{ hello }"}, headers={"accept": "multipart/mixed"})

    _, part, end = answer.text.split("\r\n---")
    assert json.loads(part.split("\r\n\r\n")[1]) == {"data": {"hello": "world"}, "hasNext": False}
    assert end == "--\r\n"


async def test_a_part_and_its_boundary_are_sent_before_the_next_is_there() -> None:
    api = Deferring(LATER)
    api.released.clear()
    connection = Connection(build_app(api, Settings()), BOTH)

    async with asyncio.timeout(10):
        start, first = await connection.sent.get(), await connection.sent.get()
        waits = connection.sent.empty() and not connection.task.done()
        api.released.set()
        await connection.task

    assert start["status"] == 200
    assert first["body"].endswith(b'"hasNext":true}\r\n---')
    assert first["more_body"]
    assert waits


async def test_a_client_that_goes_closes_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "server")
    api = Deferring(LATER)
    api.released.clear()
    connection = Connection(build_app(api, Settings()), BOTH)

    async with asyncio.timeout(10):
        await connection.sent.get()
        connection.gone.set()
        await connection.task

    assert api.closed.is_set()
    assert [record.levelname for record in caplog.records] == ["INFO"]


@pytest.mark.parametrize("broken", [RuntimeError("secret of the inside"), {"incremental": object()}])
async def test_an_error_in_mid_stream_ends_the_answer(broken: Any, caplog: pytest.LogCaptureFixture) -> None:
    api = Deferring([LATER[0], broken, LATER[1]])

    async with client_of(build_app(api, Settings())) as client:
        answer = await client.post("/graphql", json={"query": "{ hello }"}, headers={"accept": BOTH})

    *_, last, end = answer.text.split("\r\n---")
    message = f"Unexpected error; id {answer.headers['x-request-id']}"
    assert json.loads(last.split("\r\n\r\n")[1]) == {
        "errors": [{"message": message, "extensions": {"code": "INTERNAL"}}],
        "hasNext": False,
    }
    assert end == "--\r\n"
    assert api.closed.is_set()
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == ["unexpected error"]


async def test_the_end_of_the_process_ends_the_answer() -> None:
    api = Deferring(LATER)
    api.released.clear()
    app = build_app(api, Settings())
    connection = Connection(app, BOTH)

    async with asyncio.timeout(10):
        await connection.sent.get()
        await connection.sent.get()
        app.state.shutting_down = True
        connection.task.cancel()
        await connection.task
    last = await connection.sent.get()

    assert b'"code":"SHUTTING_DOWN"' in last["body"]
    assert last["body"].endswith(b'"hasNext":false}\r\n-----\r\n')
    assert api.closed.is_set()
