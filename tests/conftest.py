"""What every test module may use: the engine, a way to serve any model on it, and the recorded requests."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import runpy
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import orjson
import pytest
import uvloop
from anyio.from_thread import start_blocking_portal

from graph.boto import Service
from graph.client import Client, Transport
from graph.client import Response as WireResponse
from graph.loaders import Graph, Limits
from graph.requests import Item
from graph.seals import Seals
from graph.search.index import SearchIndex
from graph.tables import STREAM, create_table
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.demo import read_items, store
from server.engine import Engine
from server.settings import load_settings
from server.transports import Way, open_transport

ROOT = Path(__file__).parent.parent
BANANAS = ROOT / "schema.graphql"
# Long enough that keys always travel together: the number of requests then does not depend on the machine's load.
PATIENT = Limits(linger_secs=2.0)


def way_to(engine: str, kind: str | None = None, service: Service = "dynamodb") -> Way:
    """Make a transport: of the kind that TABLEGRAPH_TRANSPORT says, unless told."""
    settings = load_settings({}, {"transport": kind or os.environ.get("TABLEGRAPH_TRANSPORT"), "endpoint_url": engine})
    return open_transport(settings, "eu-central-1", credentials=("local", "local"), service=service)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the golden files instead of comparing")


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run what opens connections on the server's own event loop as well."""
    plain: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    return {**plain, "uvloop": uvloop.new_event_loop} if item.path.stem.startswith("test_wire") else plain


@pytest.fixture(scope="session")
def engine() -> Iterator[str]:
    """The endpoint URL of one engine in memory, shared by the session: tables want names of their own."""
    # Its event loop has a thread of its own, for tests have a loop each and the engine outlives them all.
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Engine()) as running:
        yield running.endpoint_url


@pytest.fixture(scope="session")
def transport(engine: str) -> Iterator[Way]:
    """The way to the engine, shared by the session: it belongs to no event loop."""
    transport = way_to(engine)
    yield transport
    transport.close()


@dataclass
class Served:
    """A model served on the engine, and every request that reached DynamoDB since the last execution began."""

    api: Api
    graph: Graph
    table: str
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    async def __call__(self, query: str, variables: Mapping[str, Any] | None = None, *, cost: bool = False) -> Any:
        """Execute an operation and give the response's body."""
        self.sent.clear()
        response = await self.api.execute(Request(query, variables, cost=cost))
        return response.body

    async def data(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Execute an operation that must not fail and give its data."""
        body = await self(query, variables)
        assert "errors" not in body, body["errors"]
        return body["data"]

    async def error(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Execute an operation that must fail with one error and give that error."""
        body = await self(query, variables)
        assert len(body.get("errors", ())) == 1, body
        return body["errors"][0]

    @property
    def operations(self) -> list[str]:
        """The names of the DynamoDB operations sent, sorted."""
        return sorted(operation for operation, _ in self.sent)

    async def put(self, items: Iterable[Item]) -> None:
        """Write items as plain DynamoDB JSON, each to the table of its type."""
        await store(self.graph, list(items))


class Serve(Protocol):
    """Makes the table of a model, writes the items, and serves it."""

    def __call__(
        self,
        sdl: str,
        items: Iterable[Item] = (),
        *,
        table: str | None = None,
        limits: Limits = PATIENT,
        search: SearchIndex | None = None,
        keys: Sequence[bytes] = (),
    ) -> Awaitable[Served]: ...


_numbers = itertools.count()


@pytest.fixture
def serve(transport: Transport) -> Serve:
    """Serve a model over a new table of its own; with `table` over an existing one."""

    async def serve_model(
        sdl: str,
        items: Iterable[Item] = (),
        *,
        table: str | None = None,
        limits: Limits = PATIENT,
        search: SearchIndex | None = None,
        keys: Sequence[bytes] = (),
    ) -> Served:
        sent: list[tuple[str, dict[str, Any]]] = []

        async def record(operation: str, parameters: dict[str, Any]) -> WireResponse:
            sent.append((operation, parameters))
            return await transport(operation, parameters)

        number = next(_numbers)
        model = replace(compile_model(apart(sdl, number), table=table or f"table-{number}"), seals=Seals(keys))
        graph = Graph(model, Client(record), limits, search=search)
        if table is None:
            for made in model.tables.values():
                if made.period is None:
                    request = create_table(model, made)
                    if search is not None:
                        # The index follows by the stream; all other tables are written faster without one.
                        request = replace(request, definition={**request.definition, "StreamSpecification": STREAM})
                    await graph.send(request)
        served = Served(Api(graph), graph, next(iter(model.tables)), sent)
        await served.put(items)
        sent.clear()
        return served

    return serve_model


def apart(sdl: str, number: int) -> str:
    """Give every table but the first a name that no other test's table has; the first one is named by the caller."""
    for name in list(compile_model(sdl).tables)[1:]:
        sdl = re.sub(rf'((?:name|table): )"{re.escape(name)}"', rf'\1"table-{number}-{name}"', sdl)
    return sdl


def example_items(example: str, *, whole: bool = True) -> Iterator[Item]:
    """The rows that an example takes from its document, and with `whole` the larger set beside them."""
    folder = ROOT / "examples" / example
    for path in sorted((*folder.glob("*.jsonl"), *(folder.glob("*.py") if whole else ()))):
        yield from read_items(path)


def banana_items(containers: int = 2) -> Iterator[Item]:
    """The seed's rows, and the first containers of the fleet with their 20 pallets of 15 boxes each."""
    yield from read_items(ROOT / "examples/bananas/seed.jsonl")
    fleet = runpy.run_path(str(ROOT / "examples/bananas/fleet.py"))["items"]
    per_container = 1 + 20 * (2 + 15 * 2)
    yield from itertools.islice(fleet(), containers * per_container)


def make_table(engine: str, name: str, sdl: str, items: Iterable[Item]) -> str:
    """Make and fill the table of a model that has one, for tests that only read it; give its name."""

    async def make() -> None:
        transport = way_to(engine)
        model = compile_model(sdl, table=name)
        graph = Graph(model, Client(transport))
        await graph.send(create_table(model, model.tables[name]))
        await store(graph, list(items))
        transport.close()

    with start_blocking_portal() as portal:
        portal.call(make)
    return name


@pytest.fixture(scope="session")
def banana_table(engine: str) -> str:
    """The name of a table that holds the seed and two containers of the fleet; tests only read it."""
    return make_table(engine, "bananas-read-only", BANANAS.read_text(), banana_items())


@pytest.fixture
async def bananas(serve: Serve, banana_table: str) -> Served:
    """The banana graph over the shared table."""
    return await serve(BANANAS.read_text(), table=banana_table)


def as_json(value: object) -> str:
    """Write a value as readable JSON, keys in their order."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
