"""The connections of one event loop to one host: few, kept alive, and never opened all at once."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass

from graph.boto import CONNECT_TIMEOUT_SECS, READ_TIMEOUT_SECS
from graph.slots import Slots
from graph.wire.connection import Answer, Broken, Connection

MAX_CONNECTS = 4
"""Most connections that are being made at once: a server that has just come back is not met by all of them."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect, how, and how long to wait."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None
    connect_timeout_secs: float = CONNECT_TIMEOUT_SECS
    read_timeout_secs: float = READ_TIMEOUT_SECS


class Pool:
    """Sends requests over at most `size` connections, the one used last first."""

    def __init__(self, address: Address, size: int) -> None:
        self._address = address
        self._slots = Slots(size)
        self._connects = Slots(MAX_CONNECTS)
        self._idle: list[Connection] = []
        self._is_closed = False
        self._end = self._until_the_loop_ends()

    async def open(self) -> None:
        """Have the connections closed when the loop ends."""
        await anext(self._end)

    async def _until_the_loop_ends(self) -> AsyncIterator[None]:
        # The only thing that asyncio tells of its end: whoever runs a loop closes its asynchronous generators.
        try:
            yield
        finally:
            self.close()
            await asyncio.sleep(0)

    async def exchange(self, request: bytes, deadline: float | None = None) -> Answer:
        """Send a request; where a connection had died while it was idle, once more over a new one.

        Raises: OSError, of which TimeoutError and Broken are kinds.
        """
        if not self._slots.take():
            await self._slots.turn(None, deadline)
        connection: Connection | None = None
        try:
            connection = self._idle_one() or await self._connected(deadline)
            try:
                answer = await connection.exchange(request, deadline)
            except Broken as broken:
                if not broken.is_stale:
                    raise
                # The other idle ones may be dead as well.
                connection = await self._connected(deadline, is_new=True)
                answer = await connection.exchange(request, deadline)
        except BaseException:
            if connection is not None:
                # Its answer may still come, and would be taken for that of another request.
                connection.close()
            raise
        finally:
            self._slots.free()
        if self._is_closed or not connection.is_open:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def _idle_one(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
        return None

    async def _connected(self, deadline: float | None, *, is_new: bool = False) -> Connection:
        if not self._connects.take():
            await self._connects.turn(None, deadline)
        try:
            # While we waited for our turn another request may have left its connection.
            if not is_new and (connection := self._idle_one()):
                return connection
            async with asyncio.timeout_at(deadline):
                return await self._connect()
        finally:
            self._connects.free()

    async def _connect(self) -> Connection:
        address = self._address
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(address.connect_timeout_secs):
                _, connection = await loop.create_connection(
                    lambda: Connection(address.read_timeout_secs), address.host, address.port, ssl=address.tls
                )
        except TimeoutError:
            raise TimeoutError(f"no connection within {address.connect_timeout_secs:g} s") from None
        return connection

    def close(self) -> None:
        """Close the idle connections at once, and those in use when they are done."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
