"""An application that is observed, for tests: over a served model's tables, its spans sent to a receiver of OTLP."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as WireSpan

from graph.client import Response, Transport
from graph.loaders import Graph
from graph.streams.hub import Hub
from resolvers.schema import Api, Executor
from server.app import Application, build_app
from server.settings import Settings
from server.telemetry.telemetry import Telemetry
from tests.conftest import PATIENT, Served
from tests.counting import Running

KINDS = {number: name.removeprefix("SPAN_KIND_").lower() for name, number in WireSpan.SpanKind.items()}
FAILED = 2
"""The code of a span's status."""


@dataclass
class Span:
    """A span as it was received."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    links: list[str]
    attributes: dict[str, Any]
    has_failed: bool
    began_ns: int
    ended_ns: int


@dataclass
class Receiver:
    """What a receiver of OTLP over HTTP has received."""

    url: str = ""
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)

    def take(self, body: bytes) -> None:
        """Decode one export."""
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            self.resources.append({each.key: _value(each.value) for each in resource.resource.attributes})
            self.spans += [_read(span) for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Span]:
        """Give the spans of a name."""
        return [span for span in self.spans if span.name == name]

    def children(self, span: Span) -> list[Span]:
        """Give the spans below one, those that began first before all others."""
        return sorted((each for each in self.spans if each.parent == span.id), key=lambda each: each.began_ns)


def _read(span: WireSpan) -> Span:
    return Span(
        span.name,
        KINDS[span.kind],
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        [link.span_id.hex() for link in span.links],
        {each.key: _value(each.value) for each in span.attributes},
        span.status.code == FAILED,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    assert kind is not None
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive OTLP over HTTP."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            receiver.take(gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield receiver
        finally:
            server.shutdown()


@dataclass
class Observed:
    """An application that is observed, and every request of its own that reached DynamoDB."""

    client: httpx.AsyncClient
    telemetry: Telemetry
    app: Application
    sent: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Running]:
        """Serve it on a port, for WebSockets."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            # Without telemetry's own beginning and end, which are here already.
            self.app.state.telemetry = None
            server = Running(self.app, Settings(), listener)
            async with asyncio.timeout(30):
                yield server
            await server.stop()

    async def __call__(
        self, query: str, variables: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Post an operation."""
        return await self.client.post("/graphql", json={"query": query, "variables": variables}, headers=headers)


@asynccontextmanager
async def observed(
    served: Served, transport: Transport, *, executor: Executor = "plan", hub: Hub | None = None, **settings: Any
) -> AsyncIterator[Observed]:
    """Serve a model's tables once more, observed as the settings say; at the end all spans have been sent."""
    chosen = Settings(**settings)
    telemetry = Telemetry(chosen)
    sent: list[tuple[str, dict[str, Any]]] = []

    async def record(operation: str, parameters: dict[str, Any]) -> Response:
        sent.append((operation, parameters))
        return await transport(operation, parameters)

    graph = Graph(served.graph.model, telemetry.client(record, 16), PATIENT)
    app = build_app(Api(graph, executor=executor, hub=hub), chosen, telemetry=telemetry)
    listener = telemetry.listen()
    try:
        async with (
            telemetry.running(None),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
        ):
            yield Observed(client, telemetry, app, sent)
    finally:
        if listener is not None:
            telemetry.close()
