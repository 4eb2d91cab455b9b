"""The port on which Prometheus reads the metrics: of its own, for they are not for the public.

In a thread, so that it answers while the event loop is stuck, which is when one looks.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=1.0.0; charset=utf-8"
READ_SECS = 10
"""How long a client may take to send its request."""


class Scraped:
    """Answers GET /metrics on a socket that listens already, which several processes may share."""

    def __init__(self, listener: socket.socket, text: Callable[[], bytes]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = READ_SECS
            server_version, sys_version = "tablegraph", ""

            def do_GET(self) -> None:
                known = self.path.split("?")[0] == PATH
                body = text() if known else f"expected {PATH}\n".encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Type", CONTENT_TYPE if known else "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Leave it out of the log: it comes every few seconds."""

        self._server = _Server(listener.getsockname(), Handler, bind_and_activate=False)
        self._server.socket.close()
        # Others may take the connection that this one woke for.
        listener.setblocking(False)
        self._server.socket = listener
        self._thread = Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop to answer."""
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
