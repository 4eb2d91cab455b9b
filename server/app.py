"""The HTTP application: what holds for every request, and the routes beside the GraphQL endpoint."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from starlette.applications import Starlette
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import RedirectResponse
from starlette.responses import Response as HttpResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from graph.errors import GraphError
from server import view
from server.admission import Admission
from server.endpoint import Api, GraphQLEndpoint, break_off, deliver
from server.following import Following
from server.gate import Gate
from server.identity.configured import authenticator_of
from server.logs import Exchange, enter, leave, request_id
from server.negotiation import JSON
from server.page import ENDPOINT, IDE_DIST, OUTLINE, IdeFiles, may_outline, pages
from server.settings import Settings
from server.view import Answer, Head, Refusal
from server.watch import Streams
from server.websocket import INTERNAL_ERROR, SERVICE_RESTART, WebSocketEndpoint, close

if TYPE_CHECKING:
    from server.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

IDE = "/graphql-ide"


def build_app(
    api: Api,
    settings: Settings,
    tabs: Sequence[Mapping[str, str]] = (),
    *,
    outline: Mapping[str, Any] | None = None,
    following: Following | None = None,
    telemetry: Telemetry | None = None,
    ide_dist: Path = IDE_DIST,
) -> Application:
    """Put the application together: the endpoint, the pages for people, and the health checks.

    GraphiQL has `tabs` as example queries; without an `outline` of the model no page shows it.

    While it runs it follows the streams as well, and telemetry is told of all that it does. Raises: SettingsError where
    it cannot know who asks as it is told to.
    """
    has_outline = outline is not None and may_outline(settings)
    shown = pages(ide_dist, settings, tabs, has_outline=has_outline) if settings.graphiql else {}
    routes: list[BaseRoute] = [
        Route("/", _to_endpoint),
        Route(f"{ENDPOINT}/", _to_endpoint, methods=["GET", "POST"]),
        Route("/healthz", _healthz),
        Route("/readyz", _readyz),
        Route("/streamz", _streamz),
        *(Route(path, _shows(page)) for path, page in shown.items() if path != ENDPOINT),
    ]
    if has_outline:
        routes.append(Route(OUTLINE, _tells(orjson.dumps(outline))))
    if settings.graphiql and ide_dist.is_dir():
        routes.append(Mount(IDE, IdeFiles(directory=ide_dist)))
    streams, authenticator, gate = Streams(), authenticator_of(settings), Gate(settings)
    admission = Admission(settings.max_operations)
    endpoint = GraphQLEndpoint(api, settings, shown.get(ENDPOINT), streams, authenticator, gate, admission)
    sockets = WebSocketEndpoint(api, settings, streams, authenticator, gate, admission)
    app = Application(endpoint, sockets, streams, gate, routes, telemetry)
    app.admission = admission
    app.state.api = api
    app.state.authenticator = authenticator
    app.state.following = following
    return app


class Application(Starlette):
    """Gives each request its id, sent back as X-Request-Id, a line in the log, and an answer whatever happens.

    The endpoint is reached from here, past Starlette's routing, which would double what a request costs.
    """

    admission: Admission

    def __init__(
        self,
        endpoint: GraphQLEndpoint,
        sockets: WebSocketEndpoint,
        streams: Streams,
        gate: Gate,
        routes: Sequence[BaseRoute],
        telemetry: Telemetry | None,
    ) -> None:
        super().__init__(routes=routes, lifespan=_lifespan)
        self._endpoint = endpoint
        self._sockets = sockets
        self._streams = streams
        self._exchange = Exchange if telemetry is None else telemetry.exchange
        self.state.telemetry = telemetry
        self.gate = gate
        self.state.shutting_down = False

    def build_middleware_stack(self) -> ASGIApp:
        """Leave out the layer that answers unexpected errors: they are answered, and logged, below."""
        return ExceptionMiddleware(self.router)

    def end_streams(self) -> None:
        """End what goes on by itself; from the event loop, when the process is about to end."""
        self._streams.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        if scope["type"] == "lifespan" or (is_socket and scope["path"] != ENDPOINT):
            await super().__call__(scope, receive, send)
            return
        exchange = self._exchange(_headers(scope["headers"]))
        self.gate.add_headers(exchange, scope)
        token = enter(exchange)
        try:
            if is_socket:
                await self._sockets(exchange, scope, receive, send)
            elif scope["path"] == ENDPOINT:
                await self._endpoint(exchange, scope, receive, send)
            else:
                await super().__call__(scope, receive, _telling(exchange, send))
        except (Exception, asyncio.CancelledError) as error:
            await self._excuse(error, exchange, scope, send)
        finally:
            exchange.log(scope)
            leave(token)

    async def _excuse(self, error: BaseException, exchange: Exchange, scope: Scope, send: Send) -> None:
        """Tell the client, where there is still a way, no more of an error than the id that the log has it under."""
        if not isinstance(error, asyncio.CancelledError):
            logger.error("unexpected error", exc_info=error)
            refusal = view.internal_error(exchange.id)
        elif self.state.shutting_down:
            refusal = view.shutting_down()
        else:
            raise error
        exchange.codes.append(refusal.code)
        if scope["type"] == "websocket":
            code = SERVICE_RESTART if refusal.status == 503 else INTERNAL_ERROR
            await close(code, str(refusal), exchange, send)
        elif exchange.status is None:
            head = Head(scope["method"], exchange.headers)
            await deliver(refusal.answer(view.json_type(head)), exchange, send)
        else:
            await break_off(refusal, exchange, send)


@asynccontextmanager
async def _lifespan(app: Application) -> AsyncIterator[None]:
    app.state.authenticator.start()
    following, telemetry = app.state.following, app.state.telemetry
    async with (
        telemetry.running(following) if telemetry is not None else nullcontext(),
        following.running() if following is not None else nullcontext(),
    ):
        yield
        app.state.shutting_down = True


def _headers(raw: Iterable[tuple[bytes, bytes]]) -> Mapping[bytes, bytes]:
    pairs = list(raw)
    headers = dict(pairs)
    if len(headers) < len(pairs):
        headers = {}
        for name, value in pairs:
            # Of a header given twice the values are one list. Source: RFC 9110, 5.3.
            headers[name] = b"%b, %b" % (headers[name], value) if name in headers else value
    return headers


def _telling(exchange: Exchange, send: Send) -> Send:
    """Send with the headers that every answer has, and keep the status for the log."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *exchange.answer_headers]
        await send(message)

    return send_with_headers


# The routes


def _shows(page: Answer) -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
    async def show(_: HttpRequest) -> HttpResponse:
        return _written(page)

    return show


def _tells(outline: bytes) -> Callable[[HttpRequest], Awaitable[HttpResponse]]:
    """Tell the model to whom the API would answer."""

    async def tell(request: HttpRequest) -> HttpResponse:
        try:
            await request.app.state.authenticator.identify(_headers(request.scope["headers"]), request.scope)
        except Refusal as refusal:
            return _written(refusal.answer())
        return HttpResponse(outline, headers={"Cache-Control": "no-cache"}, media_type=JSON)

    return tell


def _written(answer: Answer) -> HttpResponse:
    response = HttpResponse(answer.body, answer.status)
    response.raw_headers = [*answer.headers, (b"content-length", b"%d" % len(answer.body))]
    return response


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
            reason = request.app.gate.message(error)
        except Exception:
            logger.exception("unexpected error in the readiness check")
            reason = f"Unexpected error; id {request_id()}"
    # Asked again, for the signal may have come while the table was read.
    if state.shutting_down:
        reason = "The server is shutting down."
    return _state(503, status="unavailable", reason=reason) if reason else _state(200, status="ok")


async def _streamz(request: HttpRequest) -> HttpResponse:
    following: Following | None = request.app.state.following
    if following is None:
        return _state(404, status="unavailable", reason="This server follows no streams.")
    figures = following.figures()
    # The log has it whole.
    return _state(200, **figures | {"problem": figures["problem"] and request.app.gate.withheld(figures["problem"])})


def _state(code: int, **fields: object) -> HttpResponse:
    headers = {"Cache-Control": "no-store"}
    return HttpResponse(orjson.dumps(fields), status_code=code, headers=headers, media_type=JSON)
