"""One connection: HTTP/1.1 with keep-alive, a request at a time, its answer in one buffer."""

from __future__ import annotations

import asyncio
from typing import NamedTuple, cast

import httptools


class Broken(ConnectionError):
    """A connection ended before its answer did.

    `is_stale`: nothing of the answer had arrived, and another one had before. It may have died while it was idle.
    """

    def __init__(self, reason: object, *, is_stale: bool) -> None:
        super().__init__(str(reason))
        self.is_stale = is_stale


class Answer(NamedTuple):
    """A whole answer: `crc32` is DynamoDB's own checksum of the body."""

    status: int
    crc32: bytes | None
    body: bytes


class Connection(asyncio.Protocol):
    """Carries one request after the other; httptools calls its `on_…` methods, and asyncio the others."""

    def __init__(self, read_timeout_secs: float) -> None:
        self.is_open = False
        """Whether it can carry another request, as far as one can know."""
        self._read_timeout_secs = read_timeout_secs
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self._is_used = False
        self._is_silent = True
        self._heard = 0.0
        self._deadline: float | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._watch_at = 0.0
        self._crc32: bytes | None = None
        self._body = b""
        self._more: list[bytes] = []

    def exchange(self, request: bytes, deadline: float | None = None) -> asyncio.Future[Answer]:
        """Send a request; the future is its answer, and who does not wait for it closes the connection.

        Raises: Broken, as the future does. TimeoutError comes when nothing arrives for the read timeout, and at the
        deadline.
        """
        if not self.is_open or self._transport is None:
            raise Broken("the connection is closed", is_stale=self._is_used)
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        self._is_silent = True
        self._heard = self._loop.time()
        self._deadline = deadline
        self._watch_until(self._limit())
        self._transport.write(request)
        return waiter

    def close(self) -> None:
        """Close it at once: what is under way on it is given up."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # --- time

    def _limit(self) -> float:
        limit = self._heard + self._read_timeout_secs
        return limit if self._deadline is None or self._deadline > limit else self._deadline

    def _watch_until(self, limit: float) -> None:
        """Look at that time at the latest. One timer serves many requests: it is set anew when it has gone off."""
        if self._watch is not None:
            if self._watch_at <= limit:
                return
            self._watch.cancel()
        self._watch_at = limit
        self._watch = self._loop.call_at(limit, self._check)

    def _check(self) -> None:
        """Fail if the time of the request under way is over, else look again when it may be."""
        self._watch = None
        if self._waiter is None:
            return
        limit = self._limit()
        if self._loop.time() < limit:
            self._watch_until(limit)
        elif limit == self._deadline:
            self._fail(TimeoutError("no answer in the time that there was for it"))
        else:
            self._fail(TimeoutError(f"no answer within {self._read_timeout_secs:g} s"))

    def _fail(self, error: Exception) -> None:
        self.is_open = False
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)

    # --- asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

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

    def eof_received(self) -> None:
        # What is closed next is not open any more.
        self.is_open = False

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        reason = exc or "the connection was closed before the answer's end"
        self._fail(Broken(reason, is_stale=self._is_silent and self._is_used))

    # --- httptools

    def on_message_begin(self) -> None:
        if self._waiter is None or self._waiter.done():
            self.is_open = False
        self._crc32 = None
        self._body = b""
        self._more = []

    def on_header(self, name: bytes, value: bytes) -> None:
        # By its length first: of the names that DynamoDB sends hardly another one has it.
        if len(name) == 11 and name.lower() == b"x-amz-crc32":
            self._crc32 = value

    def on_body(self, body: bytes) -> None:
        if self._body:
            self._more.append(body)
        else:
            self._body = body

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        # Below 200 another answer follows.
        if status >= 200 and self._waiter is not None and not self._waiter.done():
            self.is_open = self.is_open and self._parser.should_keep_alive()
            self._is_used = True
            body = b"".join((self._body, *self._more)) if self._more else self._body
            self._waiter.set_result(Answer(status, self._crc32, body))
            self._waiter = None
