"""A server of raw bytes: what it says to each request is scripted, and what it is asked and by how many is counted."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Act = Callable[[asyncio.StreamWriter], Awaitable[None]]
"""What is done when a request has arrived."""

Bytes = bytes | bytearray


def answer(body: Bytes = b"{}", *headers: str, status: int = 200) -> bytes:
    """Write an answer whose length is told."""
    head = "".join(f"{line}\r\n" for line in (f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers))
    return head.encode() + b"\r\n" + body


def chunked(*chunks: bytes) -> bytes:
    """Write an answer in chunks."""
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)
        + b"0\r\n\r\n"
    )


def say(*parts: Bytes, pause_secs: float = 0, close: bool = False) -> Act:
    """Write these, with a pause after each, and close the connection if told."""

    async def act(writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(pause_secs)
        if close:
            writer.close()

    return act


def wait(event: asyncio.Event) -> Act:
    """Answer when the event has come."""

    async def act(writer: asyncio.StreamWriter) -> None:
        await event.wait()
        writer.write(answer())

    return act


CLOSE = say(close=True)


@dataclass
class Server:
    """The script: an act for each request in turn, the last one for good."""

    acts: list[Act] = field(default_factory=lambda: [say(answer())])
    port: int = 0
    accepted: int = 0
    closed: int = 0
    under_way: int = 0
    most: int = 0
    requests: list[bytes] = field(default_factory=list)
    arrived: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        waiting = asyncio.Queue[None]()
        # Both at once, so that a client that goes is noticed while its answer is made.
        halves = [asyncio.ensure_future(self._read(reader, waiting)), asyncio.ensure_future(self._act(waiting, writer))]
        try:
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)
            self.closed += 1
            self.under_way -= 1
            writer.close()

    async def _read(self, reader: asyncio.StreamReader, waiting: asyncio.Queue[None]) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            self.requests.append(head + await reader.readexactly(int(length.split(b":")[1])))
            waiting.put_nowait(None)

    async def _act(self, waiting: asyncio.Queue[None], writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            await waiting.get()
            act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
            self.arrived.release()
            await act(writer)


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """Run a server in this event loop."""
    script = Server()
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(script.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listening = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    script.port = listening.sockets[0].getsockname()[1]
    try:
        yield script
    finally:
        listening.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
