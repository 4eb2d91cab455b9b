"""How requests arrive: what is refused before the application hears of it, and what is left alone.

Most of it is shown by the table of abusive inputs; here is what a table does not show.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from server.app import build_app
from server.process import GracefulServer
from server.settings import load_settings
from tests.abuse.wire import Target, connected, graphql, http, read_answer, said, summary
from tests.counting import CountingApi

TIMEOUT_SECS = 0.2
SLOW = '{"query":"{ slow }"}'


@pytest.fixture
def api() -> CountingApi:
    return CountingApi()


@pytest.fixture
async def target(api: CountingApi) -> AsyncIterator[Target]:
    settings = load_settings({}, {"port": "0", "request_timeout_secs": str(TIMEOUT_SECS)})
    server = GracefulServer(build_app(api, settings), settings)
    serving = asyncio.ensure_future(server.serve())
    while not server.started:  # noqa: ASYNC110, uvicorn tells it in no other way
        await asyncio.sleep(0.005)
    yield Target(server.servers[0].sockets[0].getsockname()[1], "")
    server.should_exit = True
    api.released.set()
    await serving


async def test_an_operation_may_take_longer_than_its_request(target: Target, api: CountingApi) -> None:
    async with connected(target) as (reader, writer):
        writer.write(http(SLOW))
        await asyncio.sleep(3 * TIMEOUT_SECS)
        api.released.set()

        assert summary(*await read_answer(reader)) == "200 data"

        writer.write(graphql("{ hello }"))
        assert summary(*await read_answer(reader)) == "200 data"


async def test_a_connection_that_says_nothing_is_closed_without_an_answer(target: Target) -> None:
    async with connected(target) as (reader, _):
        assert await reader.read() == b""


async def test_what_arrives_behind_a_request_takes_none_of_its_answer(target: Target, api: CountingApi) -> None:
    async with connected(target) as (reader, writer):
        writer.write(http(SLOW) + b"GET /half")

        assert await reader.read() == b""


@pytest.mark.parametrize("next_", [b"no HTTP\r\n\r\n", http(b"", "X: " + "x" * 100_000)], ids=["junk", "head"])
async def test_what_is_refused_behind_a_request_is_not_its_answer(target: Target, next_: bytes) -> None:
    async with connected(target) as (reader, writer):
        writer.write(http(SLOW) + next_)

        assert await reader.read() == b""


async def test_the_time_begins_anew_with_each_request(target: Target) -> None:
    async with connected(target) as (reader, writer):
        for _ in range(4):
            whole = graphql("{ hello }")
            writer.write(whole[:20])
            await asyncio.sleep(TIMEOUT_SECS / 2)
            writer.write(whole[20:])
            assert summary(*await read_answer(reader)) == "200 data"


async def test_a_slow_request_on_a_connection_in_use_is_told(target: Target) -> None:
    async with connected(target) as (reader, writer):
        writer.write(graphql("{ hello }"))
        assert summary(*await read_answer(reader)) == "200 data"
        writer.write(graphql("{ hello }")[:20])

        assert summary(*await read_answer(reader)) == "408 REQUEST_TIMEOUT"
        assert await reader.read() == b""


async def test_the_largest_head_passes(target: Target) -> None:
    assert await said(target, http('{"query":"{ hello }"}', "X: " + "x" * 65_000)) == "200 data"
