"""The clients that people have: graphql-ws and graphql-sse from npm, gql from PyPI."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from gql import Client, gql
from gql.transport.exceptions import TransportConnectionFailed, TransportQueryError
from gql.transport.httpx import HTTPXAsyncTransport
from gql.transport.websockets import WebsocketsTransport

from tests.conftest import ROOT
from tests.counting import REFUSED, TOO_SLOW, CountingApi, Running, running
from tests.test_readme import blocks

CLIENTS = ROOT / "tests/clients"
NODE = ["graphql-ws", "graphql-sse"]
COUNTED = [["next", {"data": {"count": 0}}], ["next", {"data": {"count": 1}}], ["complete", None]]

# A proxy has no business between a test and its own server.
ENVIRONMENT = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}

pytestmark = pytest.mark.skipif(
    not (CLIENTS / "node_modules").is_dir(), reason="the clients from npm are not there: make test brings them"
)


class Follower:
    """A client of npm that runs one operation, in a process of its own."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def told(self, lines: int) -> list[Any]:
        """Wait for so many lines."""
        assert self.process.stdout
        return [json.loads(await self.process.stdout.readline()) for _ in range(lines)]

    async def all_told(self) -> list[Any]:
        """Wait for the end of the process, and give all that it has still told."""
        told, _ = await self.process.communicate()
        assert self.process.returncode == 0
        return [json.loads(line) for line in told.splitlines()]

    def stop(self) -> None:
        """Have the client end its operation."""
        assert self.process.stdin
        self.process.stdin.write(b"stop\n")


@asynccontextmanager
async def following(kind: str, server: Running, query: str, **variables: Any) -> AsyncIterator[Follower]:
    process = await asyncio.create_subprocess_exec(
        "node",
        "follow.mjs",
        kind,
        server.url,
        query,
        json.dumps(variables),
        cwd=CLIENTS,
        env=ENVIRONMENT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            yield Follower(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@pytest.fixture
async def api() -> CountingApi:
    return CountingApi()


@pytest.fixture
async def server(api: CountingApi) -> AsyncIterator[Running]:
    async with running(api) as started:
        yield started


# npm


@pytest.mark.parametrize("kind", NODE)
async def test_a_subscription_is_received_and_completes(kind: str, server: Running) -> None:
    async with following(kind, server, "subscription { count }", to=2) as client:
        assert await client.all_told() == COUNTED


@pytest.mark.parametrize("kind", NODE)
async def test_a_query_is_answered(kind: str, server: Running) -> None:
    async with following(kind, server, "{ hello }") as client:
        assert await client.all_told() == [["next", {"data": {"hello": "world"}}], ["complete", None]]


@pytest.mark.parametrize(
    ("query", "error"), [pytest.param("nonsense", REFUSED, id="refused"), ("subscription { fails }", TOO_SLOW)]
)
@pytest.mark.parametrize("kind", NODE)
async def test_errors_arrive(kind: str, server: Running, query: str, error: Any) -> None:
    async with following(kind, server, query, to=0) as client:
        told = await client.all_told()

    as_event = [["next", {"errors": [error]}], ["complete", None]]
    assert told == ([["error", [error]]] if kind == "graphql-ws" else as_event)


@pytest.mark.parametrize("kind", NODE)
async def test_a_client_that_has_enough_ends_the_operation(kind: str, server: Running, api: CountingApi) -> None:
    async with following(kind, server, "subscription { never }", to=1) as client:
        assert await client.told(1) == [["next", {"data": {"never": 0}}]]
        client.stop()
        await api.until(under_way=0)

        assert await client.all_told() == [["complete", None]]


@pytest.mark.parametrize("kind", NODE)
async def test_after_a_restart_of_the_server_clients_are_back(kind: str, server: Running) -> None:
    again = CountingApi()
    async with following(kind, server, "subscription { never }", to=1) as client:
        before = await client.told(1)
        await server.stop()
        async with running(again, port=server.port):
            after = await client.told(1)
            client.stop()
            ended = await client.all_told()

    assert before == after == [["next", {"data": {"never": 0}}]]
    assert ended == [["complete", None]]
    assert again.under_way == 0


# gql


def socket_of(server: Running) -> Client:
    return Client(transport=WebsocketsTransport(url=server.socket_url))


async def test_gql_subscribes_and_asks_over_a_socket(server: Running) -> None:
    async with socket_of(server) as session:
        request = gql("subscription ($to: Int) { count(to: $to) }")
        request.variable_values = {"to": 2}
        counted = [result async for result in session.subscribe(request)]
        hello = await session.execute(gql("{ hello }"))

    assert counted == [{"count": 0}, {"count": 1}]
    assert hello == {"hello": "world"}


async def test_gql_asks_over_http(server: Running) -> None:
    async with Client(transport=HTTPXAsyncTransport(url=server.url)) as session:
        assert await session.execute(gql("{ hello }")) == {"hello": "world"}


async def test_gql_raises_what_the_server_tells(server: Running) -> None:
    async with socket_of(server) as session:
        with pytest.raises(TransportQueryError) as raised:
            _ = [result async for result in session.subscribe(gql("subscription { fails }"))]

    assert raised.value.errors == [TOO_SLOW]


async def test_gql_ends_an_operation(server: Running, api: CountingApi) -> None:
    async with socket_of(server) as session:
        events = session.subscribe(gql("subscription { never }"))
        await anext(events)
        await events.aclose()
        await api.until(under_way=0)

        assert await session.execute(gql("{ hello }")) == {"hello": "world"}


async def test_gql_connects_again_after_a_restart(server: Running) -> None:
    client = socket_of(server)
    session = await client.connect_async(reconnecting=True)  # type: ignore[no-untyped-call]
    request = gql("subscription { never }")
    request.variable_values = {"to": 1}
    before = session.subscribe(request)
    await anext(before)
    await server.stop()
    with pytest.raises(TransportConnectionFailed):
        await anext(before)

    async with running(CountingApi(), port=server.port):
        await session.execute(gql("{ hello }"))
        await client.close_async()  # type: ignore[no-untyped-call]


# The README's examples

USES = {
    "@apollo/client": """
        const { gql } = await import('@apollo/client');
        show(await client.query({ query: gql`{ hello }` }));
        client.subscribe({ query: gql(query) }).subscribe({ next: show, complete: () => socket.dispose() });
    """,
    # urql tells the last result once more when the stream ends, with hasNext: false.
    "@urql/core": """
        show({ data: (await client.query('{ hello }', {})).data });
        client.subscription(query, {}).subscribe(({ data, hasNext }) => hasNext && show({ data }));
    """,
    "relay-runtime": """
        const operation = { id: null, name: 'Count', operationKind: 'subscription', text: query };
        environment.getNetwork().execute(operation, {}, {}).subscribe({ next: show, complete: () => socket.dispose() });
    """,
    "EventSource": "",
    "graphql-sse": "",
}


@pytest.mark.parametrize("uses", USES)
async def test_an_example_in_javascript_subscribes(uses: str, server: Running) -> None:
    (example,) = (block for block in blocks("js") if uses in block)
    program = example.replace("wss://api.example.com/graphql", server.socket_url)
    program = program.replace("https://api.example.com/graphql", server.url) + USES[uses]

    process = await asyncio.create_subprocess_exec(
        *["node", "--no-warnings", "--experimental-eventsource", "--import", "./browser.mjs", "--input-type=module"],
        cwd=CLIENTS,
        env=ENVIRONMENT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        told, _ = await process.communicate(program.encode())

    counted = [{"data": {"count": number}} for number in range(3)]
    assert [json.loads(line) for line in told.splitlines() if b"hello" not in line] == counted


async def test_the_example_in_python_subscribes(server: Running) -> None:
    (example,) = (block for block in blocks("python") if "gql" in block)
    shown: list[Any] = []
    names: dict[str, Any] = {"show": shown.append}
    exec(example.replace("wss://api.example.com/graphql", server.socket_url), names)  # noqa: S102 - our own README

    await names["follow"]("subscription { count }")

    assert shown == [{"count": number} for number in range(3)]
