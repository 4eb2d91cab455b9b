"""How a request arrives: in time and with a head of some size, or it is refused before the application hears of it."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from server.view import Refusal, head_too_large, not_http, too_slow

MAX_HEAD_BYTES = 65_536
"""Room for a query in a URL; what proxies let pass is less."""


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's own, which would wait for the rest of a request, and take more of its head, for ever."""

    def __init__(self, *arguments: Any, request_timeout_secs: float, **more: Any) -> None:
        """Take what uvicorn gives, and the time in which a request has to be there."""
        super().__init__(*arguments, **more)
        self._timeout_secs = request_timeout_secs
        self._timer: asyncio.TimerHandle | None = None
        self._is_arriving = False
        self._is_in_head = False
        self._head_bytes = 0
        self._refusal: Refusal | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived; the time runs while a request has begun and is not there."""
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
                self._refuse(head_too_large(MAX_HEAD_BYTES))
        if not self._is_arriving:
            self._wait_no_longer()
        elif self._timer is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Give the connection away."""
        self._wait_no_longer()
        self._is_arriving = self._is_in_head = False
        super().handle_websocket_upgrade()

    # --- The parser's callbacks

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._is_arriving = self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """Have the head, unless it came with too much of it at once."""
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MAX_HEAD_BYTES:
            self._refusal = head_too_large(MAX_HEAD_BYTES)
            raise self._refusal
        # Refuses URLs that are none.
        super().on_headers_complete()
        self._is_in_head = False

    def on_message_complete(self) -> None:
        """Have the whole request."""
        self._is_arriving = False
        super().on_message_complete()

    # --- What is refused

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser stopped at."""
        if not self.transport.is_closing():
            self._refuse(self._refusal or not_http())
        self._is_arriving = self._is_in_head = False

    def _refuse(self, refusal: Refusal) -> None:
        """Answer in place of the application, if the next answer is that to what is arriving, and close."""
        if self._is_next():
            answer = refusal.answer()
            head = b"".join(b"%b: %b\r\n" % header for header in answer.headers)
            length = b"content-length: %d\r\nconnection: close\r\n\r\n" % len(answer.body)
            self.transport.write(STATUS_LINE[answer.status] + head + length + answer.body)
        self.transport.close()

    def _is_next(self) -> bool:
        """Say whether nothing has been said yet to what is arriving, and all before it is answered."""
        # None before the first request, whatever uvicorn declares.
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return not self._is_arriving or self._is_in_head
        # The cycle of a request begins behind its head.
        return self._is_arriving and not self._is_in_head and not self.pipeline and not cycle.response_started

    def _wait(self) -> None:
        self._timer = self.loop.call_later(self._timeout_secs, self._give_up)

    def _wait_no_longer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        """End a connection whose time is over: with an answer, if a request had begun."""
        self._timer = None
        if self.transport.is_closing():
            return
        if self._is_arriving:
            self._refuse(too_slow(self._timeout_secs))
        else:
            self.transport.close()
