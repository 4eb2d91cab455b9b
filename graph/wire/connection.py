"""One connection: HTTP/1.1 with keep-alive, a request at a time, its answer in one buffer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import httptools


class Broken(ConnectionError):
    """A connection ended before its answer did.

    `is_stale`: nothing of the answer had arrived, and another one had before. It may have died while it was idle.
    """

    def __init__(self, reason: object, *, is_stale: bool) -> None:
        super().__init__(str(reason))
        self.is_stale = is_stale


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer: `crc32` is DynamoDB's own checksum of the body."""

    status: int
    crc32: str | None
    body: bytearray


class Connection(asyncio.Protocol):
    """Carries one request after the other; httptools calls its `on_…` methods, and asyncio the others."""

    def __init__(self, read_timeout_secs: float) -> None:
        self._read_timeout_secs = read_timeout_secs
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._is_kept = True
        self._is_used = False
        self._is_silent = True
        self._heard = 0.0
        self._crc32: str | None = None
        self._body = bytearray()

    @property
    def is_open(self) -> bool:
        """Say whether it can carry another request, as far as one can know."""
        return self._is_kept and self._transport is not None and not self._transport.is_closing()

    async def exchange(self, request: bytes) -> Answer:
        """Send a request and wait for its answer; who is cancelled meanwhile leaves a closed connection.

        Raises: Broken. TimeoutError when nothing arrives for the read timeout.
        """
        if not self.is_open or self._transport is None:
            raise Broken("the connection is closed", is_stale=self._is_used)
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        self._is_silent = True
        self._heard = self._loop.time()
        self._transport.write(request)
        self._watch = self._loop.call_later(self._read_timeout_secs, self._check)
        try:
            return await waiter
        except BaseException:
            self.close()
            raise
        finally:
            self._watch.cancel()
            self._waiter = None

    def close(self) -> None:
        """Close it at once: what is under way on it is given up."""
        self._is_kept = False
        if self._transport is not None:
            self._transport.abort()

    def _check(self) -> None:
        """Fail if nothing came for too long, else look again when that may be: one timer serves a long answer."""
        left = self._heard + self._read_timeout_secs - self._loop.time()
        if left > 0:
            self._watch = self._loop.call_later(left, self._check)
        else:
            self._fail(TimeoutError(f"no answer within {self._read_timeout_secs:g} s"))

    def _fail(self, error: Exception) -> None:
        self._is_kept = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:
            # Nobody asked: what else comes over this connection could be taken for the answer to another request.
            self.close()
            return
        self._is_silent = False
        self._heard = self._loop.time()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(Broken(f"the answer is not HTTP: {error}", is_stale=False))

    def connection_lost(self, exc: Exception | None) -> None:
        reason = exc or "the connection was closed before the answer's end"
        self._fail(Broken(reason, is_stale=self._is_silent and self._is_used))

    # --- httptools

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            self._is_kept = False
        self._crc32 = None
        self._body = bytearray()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-amz-crc32":
            self._crc32 = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        # Below 200 another answer follows.
        if status >= 200 and self._waiter is not None and not self._waiter.done():
            self._is_kept = self._is_kept and self._parser.should_keep_alive()
            self._is_used = True
            self._waiter.set_result(Answer(status, self._crc32, self._body))
