"""What is refused at the door is one whole request to whoever reads it, and what follows is read as ever."""

from __future__ import annotations

import asyncio

import httptools
import pytest

from server.admission import LEAST_WAITING
from server.protocol import is_whole
from tests.abuse.wire import Target, connected, http, read_answer, summary
from tests.counting import CountingApi, running
from tests.test_overload import until

POST = b"POST /graphql HTTP/1.1\r\n"
REFUSED = "503 OVERLOADED operations"

WHOLE = [
    POST + b"Content-Length: 2\r\n\r\n{}",
    POST + b"content-length:2\r\nHost: x\r\n\r\n{}",
    POST + b"CONTENT-LENGTH: \t02 \t\r\n\r\n{}",
    POST + b"Host: x\r\nContent-Length: 0\r\nX-Content-Length: 7\r\n\r\n",
    POST + b"Host: x\r\nConnection: Keep-Alive\r\nEmpty:\r\nContent-Length: 2\r\nX: \xe4:\t\r\n\r\n{}",
    b"POST /graphql?a=b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /graphql?query={x} HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /graphql HTTP/1.1\r\n\r\n",
]
PARSED = [
    # Not all of it, or more than one.
    b"",
    POST,
    POST + b"Content-Le",
    POST + b"Content-Length: 2\r\n",
    POST + b"Content-Length: 3\r\n\r\n{}",
    POST + b"Content-Length: 1\r\n\r\n{}",
    POST + b"Content-Length: 2\r\n\r\n{}\r\n",
    POST + b"Content-Length: 2\r\n\r\n{}" + POST + b"Content-Length: 2\r\n\r\n{}",
    b"GET /graphql HTTP/1.1\r\n\r\nGET /graphql HTTP/1.1\r\n\r\n",
    b"\r\n" + POST + b"Content-Length: 2\r\n\r\n{}",
    # Two lengths, or none that is plain.
    POST + b"\r\n",
    POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nHost: x\r\ncontent-LENGTH: 0\r\n\r\n{}",
    POST + b"Content-Length: 0\r\nContent-Length: +2\r\n\r\n",
    POST + b"Content-Length: 2, 2\r\n\r\n{}",
    POST + b"Content-Length: +2\r\n\r\n{}",
    POST + b"Content-Length: 0x2\r\n\r\n{}",
    POST + b"Content-Length: 2 2\r\n\r\n{}",
    POST + b"Content-Length:\r\n\r\n",
    POST + b"Content-Length: 0000000002\r\n\r\n{}",
    POST + b"Content-Length: \xb2\r\n\r\n{}",
    b"GET /graphql HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /graphql HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    # A coding, however it is written.
    POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    POST + b"Content-Length: 5\r\ntRANSFER-eNCODING: identity\r\n\r\n0\r\n\r\n",
    POST + b"Content-Length: 5\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    POST + b"Content-Length: 2\r\nTransfer-Encoding : chunked\r\n\r\n{}",
    POST + b"Content-Length: 2\r\nTransfer-Encoding\t: chunked\r\n\r\n{}",
    # Before the colon, folded, and lines that end otherwise.
    POST + b"Content-Length : 2\r\n\r\n{}",
    POST + b"Content-Length\t: 2\r\n\r\n{}",
    POST + b" Content-Length: 2\r\n\r\n{}",
    POST + b"Content-Length:\r\n 2\r\n\r\n{}",
    POST + b"Content-Length: 2\r\n 0\r\n\r\n{}",
    POST + b"X: a\r\n\tb\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"X: a\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"X: a\nContent-Length: 0\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"X: a\rContent-Length: 0\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"X: a\n\nGET / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql HTTP/1.1\nContent-Length: 2\r\n\r\n{}",
    POST + b"Content-Length: 2\r\n\n{}",
    POST + b"Content-Length: 2\n\r\n{}",
    POST + b"X: \0\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"X: \x01\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"X\0: a\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"no colon\r\nContent-Length: 2\r\n\r\n{}",
    POST + b": nothing\r\nContent-Length: 2\r\n\r\n{}",
    # Who wants the connection closed, or made another one.
    POST + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}",
    POST + b"Connection: keep-alive, Upgrade\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
    # Another method, place or protocol.
    b"post /graphql HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"Get /graphql HTTP/1.1\r\n\r\n",
    b"HEAD /graphql HTTP/1.1\r\n\r\n",
    b"OPTIONS /graphql HTTP/1.1\r\n\r\n",
    b"POST  /graphql HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST\t/graphql HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql  HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql?a b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql HTTP/1.1 \r\nContent-Length: 2\r\n\r\n{}",
    b"POST /graphql HTTP/2.0\r\nContent-Length: 2\r\n\r\n{}",
    b"GET /graphql-ide/a.js HTTP/1.1\r\n\r\n",
    b"GET /readyz HTTP/1.1\r\n\r\n",
    b"GET http://x/graphql HTTP/1.1\r\n\r\n",
]


class Strict:
    """Counts what the server's own parser finds."""

    def __init__(self, data: bytes) -> None:
        self.found = 0
        httptools.HttpRequestParser(self).feed_data(data)

    def on_message_complete(self) -> None:
        self.found += 1


@pytest.mark.parametrize("data", WHOLE)
def test_one_whole_request_may_be_refused_unparsed(data: bytes) -> None:
    assert is_whole(data)
    assert Strict(data).found == 1


@pytest.mark.parametrize("data", PARSED)
def test_all_else_is_left_to_the_parser(data: bytes) -> None:
    assert not is_whole(data)


@pytest.mark.parametrize("data", WHOLE)
def test_no_part_of_a_request_is_a_whole_one(data: bytes) -> None:
    assert not any(is_whole(data[:end]) for end in range(len(data)))


def test_a_head_of_any_length_is_looked_at_once() -> None:
    """What does not match is not tried in other ways: in time that grows with the square this would take minutes."""
    assert not is_whole(POST + b"content-length-x: 2\r\n" * 200_000)
    assert not is_whole(POST + b"x" * 4_000_000)


async def test_what_follows_a_refused_request_is_read_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over one connection: refused unparsed, other routes, in parts, several at once, and what is two to somebody."""
    monkeypatch.setattr("server.admission.MOST_SECS", 30)
    hello = http('{"query":"{ hello }"}')
    api = CountingApi()
    async with running(api, max_operations=1) as server:
        target = Target(server.port, "")
        admission = server.server.app.admission
        async with asyncio.TaskGroup() as group:
            for number in range(1 + LEAST_WAITING):
                group.create_task(_ask(target, http('{"query":"{ slow }"}')))
                await until(lambda: admission.running + admission.waiting == 1 + number)  # noqa: B023
            async with connected(target) as (reader, writer):
                for sent, expected in (
                    ([hello], [REFUSED]),
                    ([b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"], ["200 JSON"]),
                    ([hello[:30], hello[30:-5], hello[-5:]], [REFUSED]),
                    ([hello + b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"], [REFUSED, "200 JSON"]),
                    ([hello + hello[:50], hello[50:] + hello], [REFUSED] * 3),
                    ([hello], [REFUSED]),
                ):
                    for part in sent:
                        writer.write(part)
                        await writer.drain()
                        await asyncio.sleep(0.01)
                    assert [summary(*await read_answer(reader)) for _ in expected] == expected
                api.released.set()
            # Nothing of the body was taken for a request.
            inner = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
            async with connected(target) as (reader, writer):
                head = b"POST /graphql HTTP/1.1\r\nHost: x\nTransfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n"
                writer.write(head % len(inner) + inner)
                assert summary(*await read_answer(reader)) == "400 INVALID_HTTP"
                assert await reader.read() == b""
        assert (await _ask(target, hello)).startswith("200")


async def _ask(target: Target, request: bytes) -> str:
    async with connected(target) as (reader, writer):
        writer.write(request)
        return summary(*await read_answer(reader))
