"""The process that serves the application: its socket, its signals, its end."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import os
import signal
import socket
import sys
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from server.app import Application
from server.logs import configure_logging
from server.page import ENDPOINT
from server.protocol import Protocol
from server.settings import Settings

if TYPE_CHECKING:
    from server.telemetry.telemetry import Telemetry

logger = logging.getLogger(__name__)

FAILED = 1
INTERRUPTED = 130
CURE = "--port or TABLEGRAPH_PORT, --host or TABLEGRAPH_HOST"
CURE_OF_METRICS = "--metrics-port or TABLEGRAPH_METRICS_PORT, --metrics-host or TABLEGRAPH_METRICS_HOST"
UNREAD_SECS = 60
"""How long a client may leave what it was sent unread."""


class GracefulServer(uvicorn.Server):
    """uvicorn's server; the application knows from the signal on that it is about to end."""

    def __init__(self, app: Application, settings: Settings, parent: int | None = None) -> None:
        """Take the application; `parent` is a file descriptor that is readable once the parent process is gone."""
        super().__init__(_uvicorn_config(app, settings))
        self.app = app
        self.parent = parent

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take SIGTERM or SIGINT."""
        self.app.state.shutting_down = True
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to listen, and say where; from here on signals are heard and requests answered."""
        await super().startup(sockets)
        if self.parent is not None:
            asyncio.get_running_loop().add_reader(self.parent, self._follow_parent, self.parent)
        worker = {} if self.parent is None else {"worker": os.getpid()}
        for listener in sockets or []:
            logger.info("GraphQL at %s%s", _url(listener), ENDPOINT, extra={"fields": worker})

    def _follow_parent(self, parent: int) -> None:
        asyncio.get_running_loop().remove_reader(parent)
        self.handle_exit(signal.SIGTERM, None)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, then wait for the requests under way."""
        logger.info("shutting down; requests under way: %d", len(self.server_state.tasks))
        self.app.end_streams()
        await super().shutdown(sockets)


def serve(app: Application, settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT, let running requests finish, and return the exit code of the process.

    Must run in the main thread, for signals come there.
    """
    if settings.workers > 1 and not hasattr(os, "fork"):
        sys.stderr.write("TABLEGRAPH_WORKERS: expected 1, for this system cannot fork processes.\n")
        return FAILED
    try:
        listeners = _listen(settings.host, settings.port, settings.workers)
    except OSError as error:
        return _fail_to_listen(error, settings.host, settings.port, CURE)
    telemetry: Telemetry | None = app.state.telemetry
    try:
        measured = None if telemetry is None else telemetry.listen()
    except OSError as error:
        return _fail_to_listen(error, settings.metrics_host, settings.metrics_port, CURE_OF_METRICS)
    configure_logging(settings.log_format, settings.log_level)
    if measured is not None:
        logger.info("metrics at %s/metrics", _url(measured))
    settle_garbage_collection()
    try:
        if settings.workers == 1:
            return _run(app, settings, listeners[0])
        # Imported here, for it brings multiprocessing, which one process alone has no use for.
        from server.workers import Workers

        return Workers(partial(_run, app, settings), settings.graceful_shutdown_secs, listeners).run()
    finally:
        if telemetry is not None:
            telemetry.close()


def _fail_to_listen(error: OSError, host: str, port: int | None, cure: str) -> int:
    cause = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
    sys.stderr.write(f"Cannot listen on {host}:{port}: {cause}; choose another with {cure}.\n")
    return FAILED


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _run(app: Application, settings: Settings, listener: socket.socket, parent: int | None = None) -> int:
    server = GracefulServer(app, settings, parent)
    # uvicorn raises the signal again when it is done, to end as a process without a handler would: killed, not with 0.
    signal.signal(signal.SIGTERM, server.handle_exit)
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Listen on a port, with so many sockets; each of them gets a part of the connections."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listen = partial(_listener, family=family)
    if count == 1 or sys.platform != "linux":
        # Workers may share one, but the first to wake takes all connections that are waiting.
        return [listen((host, port))] * count
    # Tells whether another process has the port, which sockets that share it do not.
    with listen((host, port)) as first:
        port = first.getsockname()[1]
    return [listen((host, port), reuse_port=True) for _ in range(count)]


def _listener(address: tuple[str, int], *, family: socket.AddressFamily, reuse_port: bool = False) -> socket.socket:
    listener = socket.create_server(address, family=family, backlog=2048, reuse_port=reuse_port)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # Inherited by every connection. Who takes nothing for so long is gone: without, a stream to a client that
        # reads no more, or lost its network, would be kept for a quarter of an hour, or for ever.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREAD_SECS * 1000)
    return listener


def _uvicorn_config(app: Application, settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        lifespan="on",
        http=cast("Any", partial(Protocol, app.admission, request_timeout_secs=settings.request_timeout_secs)),
        ws=cast("Any", _open_socket),
        ws_max_size=settings.max_body_bytes,
        # Each socket would keep two windows of it, more than everything else about it.
        ws_per_message_deflate=False,
        log_config=None,
        access_log=False,
        server_header=False,
        # It would put what X-Forwarded-For says in the place of the socket's peer, whom we may trust more than that.
        proxy_headers=False,
        # Without a limit one open stream keeps the process from ever ending.
        timeout_graceful_shutdown=settings.graceful_shutdown_secs,
    )


def _open_socket(**connection: Any) -> asyncio.Protocol:
    """Take a connection over from HTTP; uvicorn makes its protocols by calling a class."""
    from server.upgrade import WebSocketProtocol

    return WebSocketProtocol(**connection)


def settle_garbage_collection() -> None:
    """Keep what was made at start, the schema above all, out of every collection, and collect more rarely.

    Workers share these objects' memory for as long as no collection touches them. Collecting once more before would
    take a tenth of the start, for a megabyte. An operation leaves nothing to collect, unless graphql-core executes it:
    what a collection walks through is what is under way, tens of thousands of objects where many operations are.
    """
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()
