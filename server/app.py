"""The HTTP application: its routes, the GraphQL endpoint at the rim of the network, and the process that serves it."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from html import escape
from pathlib import Path
from types import FrameType
from typing import Any, Protocol, cast

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse
from starlette.responses import Response as HttpResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import GraphError
from resolvers.operation import Request, Response
from server import view
from server.logs import RequestLog, configure_logging, note, request_id
from server.settings import Settings
from server.view import Answer, Head, Refusal

logger = logging.getLogger(__name__)

ENDPOINT = "/graphql"
IDE = "/graphql-ide"
IDE_DIST = Path(__file__).parent / "ide" / "dist"
CANNOT_LISTEN = 1
INTERRUPTED = 130


class Api(Protocol):
    """What the server needs of the GraphQL API."""

    async def execute(self, request: Request) -> Response:
        """Run one operation."""

    async def ready(self) -> None:
        """Read from the table. Raises GraphError when it cannot be read."""


def build_app(
    api: Api, settings: Settings, tabs: Sequence[Mapping[str, str]] = (), *, ide_dist: Path = IDE_DIST
) -> Starlette:
    """Put the routes together: the endpoint, GraphiQL with `tabs` as example queries, and the health checks."""
    page = _ide_page(ide_dist, settings, tabs) if settings.graphiql else None
    routes: list[BaseRoute] = [
        Route(ENDPOINT, GraphQLEndpoint(api, settings, page)),
        Route("/", _to_endpoint),
        Route("/healthz", _healthz),
        Route("/readyz", _readyz),
    ]
    if settings.graphiql and ide_dist.is_dir():
        routes.append(Mount(IDE, IdeFiles(directory=ide_dist)))
    app = Starlette(routes=routes, middleware=[Middleware(RequestLog), Middleware(MaskErrors)], lifespan=_lifespan)
    app.state.api = api
    app.state.shutting_down = False
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncIterator[None]:
    yield
    app.state.shutting_down = True


# The endpoint


class ClientGone(Exception):
    """The client closed the connection before it had its answer."""


class GraphQLEndpoint:
    """ASGI application: reads an HTTP request, has the API execute it and sends the answer."""

    def __init__(self, api: Api, settings: Settings, page: Answer | None) -> None:
        self.api = api
        self.settings = settings
        self.page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = _head(scope)
        try:
            answer = await self.answer(head, receive)
        except Refusal as refusal:
            answer = refusal.answer(_json_type(head))
        except ClientGone:
            return
        await _send(answer, send)

    async def answer(self, head: Head, receive: Receive) -> Answer:
        """Answer one HTTP request. Raises: Refusal when it is not a GraphQL request, ClientGone."""
        view.check_head(head, self.settings.max_body_bytes)
        accept = head.headers.get("accept", "")
        media_type = view.negotiate(accept, html=self.page is not None and head.method == "GET")
        if media_type is None:
            raise view.not_acceptable(accept)
        if media_type == view.HTML and self.page is not None:
            return self.page
        body = await _read_body(receive, self.settings.max_body_bytes) if head.method == "POST" else b""
        request = view.read_request(head, body, self.settings.cost)
        note(operation=request.operation_name and request.operation_name[:100])
        response = await _unless_client_goes(self.api.execute(request), receive)
        note(cost=response.body.get("extensions", {}).get("cost"))
        return view.write_response(response, media_type)


_HEADERS = {
    name.encode(): name
    for name in (
        *("accept", "content-type", "content-encoding", "content-length"),
        *(view.COST_HEADER.lower(), view.IDEMPOTENCY_HEADER.lower()),
    )
}


def _head(scope: Scope) -> Head:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        if name := _HEADERS.get(raw_name):
            value = raw_value.decode("latin-1")
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(scope["method"], headers, scope["query_string"])


def _json_type(head: Head) -> str:
    return view.negotiate(head.headers.get("accept", "")) or view.JSON


async def _read_body(receive: Receive, limit_bytes: int) -> bytes:
    """Collect the body. Raises: Refusal as soon as it passes the limit, ClientGone."""
    chunks: list[bytes] = []
    size_bytes = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunks.append(message.get("body", b""))
        size_bytes += len(chunks[-1])
        if size_bytes > limit_bytes:
            raise view.body_too_large(limit_bytes)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _unless_client_goes(work: Coroutine[Any, Any, Response], receive: Receive) -> Response:
    """Await the work, and cancel it when the client disconnects. Raises: ClientGone."""
    task = cast("asyncio.Task[Any]", asyncio.current_task())
    gone = False

    async def watch() -> None:
        nonlocal gone
        while (await receive())["type"] != "http.disconnect":
            pass
        gone = True
        task.cancel()

    # The watcher, not the work, gets a task of its own: work that is done at once never starts it. Cancelling from
    # the side and then taking the cancellation back is how asyncio.timeout() does it.
    watcher = asyncio.create_task(watch())
    try:
        return await work
    except asyncio.CancelledError:
        if gone and not task.uncancel():
            raise ClientGone from None
        raise
    finally:
        watcher.cancel()


async def _send(answer: Answer, send: Send) -> None:
    headers = [("content-type", answer.media_type), ("content-length", str(len(answer.body))), *answer.headers]
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": raw})
    await send({"type": "http.response.body", "body": answer.body})


class MaskErrors:
    """ASGI middleware: logs an exception nobody expected, once, and sends the client no more than its id."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, receive, watched_send)
        except asyncio.CancelledError:
            if not scope["app"].state.shutting_down:
                raise
            answer = view.shutting_down(_json_type(_head(scope)))
        except Exception:
            logger.exception("unexpected error")
            answer = view.internal_error(request_id(), _json_type(_head(scope)))
        else:
            return
        if not started:
            await _send(answer, send)


# The other routes


async def _to_endpoint(_: HttpRequest) -> HttpResponse:
    return RedirectResponse(ENDPOINT)


async def _healthz(_: HttpRequest) -> HttpResponse:
    return _state(200, status="ok")


async def _readyz(request: HttpRequest) -> HttpResponse:
    state = request.app.state
    reason = ""
    if not state.shutting_down:
        try:
            await state.api.ready()
        except GraphError as error:
            reason = str(error)
        except Exception:
            logger.exception("unexpected error in the readiness check")
            reason = f"Unexpected error; id {request_id()}"
    # Asked again, for the signal may have come while the table was read.
    if state.shutting_down:
        reason = "The server is shutting down."
    return _state(503, status="unavailable", reason=reason) if reason else _state(200, status="ok")


def _state(code: int, **fields: str) -> HttpResponse:
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(orjson.dumps(fields), status_code=code, headers=headers, media_type=view.JSON)


# GraphiQL

_PAGE_HEADERS = (
    *view.COMMON_HEADERS,
    (
        "Content-Security-Policy",
        "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "font-src 'self' data:; worker-src 'self' blob:; connect-src 'self'; frame-ancestors 'none'",
    ),
    ("Referrer-Policy", "same-origin"),
    # The page names its hashed files, so an old page must not outlive them.
    ("Cache-Control", "no-cache"),
)


def _ide_page(dist: Path, settings: Settings, tabs: Sequence[Mapping[str, str]]) -> Answer:
    """Fill the built page with its configuration, or say how to build it."""
    config = {"endpoint": ENDPOINT, "title": settings.title, "tabs": list(tabs), "costHeader": view.COST_HEADER}
    try:
        page = (dist / "index.html").read_text(encoding="utf-8")
    except FileNotFoundError:
        page = _page_without_ide(settings)
    else:
        # A "<" inside a query could otherwise end the script element that holds the configuration.
        page = page.replace("__TABLEGRAPH_CONFIG__", orjson.dumps(config).decode().replace("<", "\\u003c"))
    return Answer(200, f"{view.HTML}; charset=utf-8", page.encode(), _PAGE_HEADERS)


def _page_without_ide(settings: Settings) -> str:
    url = f"http://{settings.host}:{settings.port}{ENDPOINT}"
    curl = f"""curl {url} -H 'Content-Type: application/json' -d '{{"query": "{{ __typename }}"}}'"""
    return (
        "<!doctype html>\n"
        '<html lang="en"><meta charset="utf-8"><title>tablegraph</title>\n'
        "<h1>The GraphQL API is running</h1>\n"
        "<p>GraphiQL is not built yet: <code>make run</code> builds it and starts the server.</p>\n"
        f"<p>From a shell:</p>\n<pre>{escape(curl)}</pre>\n"
    )


class IdeFiles(StaticFiles):
    """The built files of GraphiQL; those whose names carry a hash of their content may be kept for ever."""

    async def get_response(self, path: str, scope: Scope) -> HttpResponse:
        """Serve a file, with how long it may be kept."""
        response = await super().get_response(path, scope)
        hashed = path.startswith("assets/")
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if hashed else "no-cache"
        response.headers["X-Content-Type-Options"] = "nosniff"
        return response


# The process


class GracefulServer(uvicorn.Server):
    """uvicorn's server; the application knows from the signal on that it is about to end."""

    def __init__(self, app: Starlette, settings: Settings) -> None:
        super().__init__(_uvicorn_config(app, settings))
        self.app = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take SIGTERM or SIGINT."""
        self.app.state.shutting_down = True
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and say where; from here on signals are heard and requests answered."""
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            logger.info("GraphQL at http://%s:%d%s", f"[{host}]" if ":" in host else host, port, ENDPOINT)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, then wait for the requests under way."""
        logger.info("shutting down; requests under way: %d", len(self.server_state.tasks))
        await super().shutdown(sockets)


def serve(app: Starlette, settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT, let running requests finish, and return the exit code of the process.

    Must run in the main thread, for signals come there.
    """
    try:
        listener = _listen(settings.host, settings.port)
    except OSError as error:
        cause = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        cure = "choose another with --port or TABLEGRAPH_PORT, --host or TABLEGRAPH_HOST"
        sys.stderr.write(f"Cannot listen on {settings.host}:{settings.port}: {cause}; {cure}.\n")
        return CANNOT_LISTEN
    configure_logging(settings.log_format, settings.log_level)
    server = GracefulServer(app, settings)
    # uvicorn raises the signal again when it is done, to end as a process without a handler would: killed, not with 0.
    signal.signal(signal.SIGTERM, server.handle_exit)
    _settle_garbage_collection()
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def _uvicorn_config(app: Starlette, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        # Without a limit one open stream keeps the process from ever ending.
        timeout_graceful_shutdown=settings.graceful_shutdown_secs,
    )


def _settle_garbage_collection() -> None:
    """Keep what was made at start, the schema above all, out of every later collection, and collect more rarely."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
