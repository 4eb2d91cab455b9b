"""Raw bytes to a server and, in a few words, what it says to them: clients that obey the rules cannot be abusive."""

from __future__ import annotations

import asyncio
import base64
import os
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import orjson

QUIET_SECS = 15.0
"""How long an answer is waited for; what is not answered by then hangs."""
HANGS = "nothing, and it hangs"
GONE = "the connection is closed"


@dataclass(frozen=True)
class Target:
    """The server, and what of its table is asked for."""

    port: int
    another_cursor: str
    """A cursor that it gave for another connection."""


Case = bytes | Callable[[Target], Awaitable[str]]
"""What is sent over a connection of its own, or what does more than that and says what came back."""

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def http(
    body: bytes | str = b"", *headers: str, line: str = "POST /graphql HTTP/1.1", length: str | None = None
) -> bytes:
    """Write a request for JSON; headers replace those of the same name that it would have."""
    content = body.encode() if isinstance(body, str) else body
    names = {header.split(":")[0].lower() for header in headers}
    usual = {"Host": "localhost", "Content-Type": "application/json", "Accept": "application/json"}
    lines = [line, *(f"{name}: {value}" for name, value in usual.items() if name.lower() not in names), *headers]
    if not names & {"content-length", "transfer-encoding"}:
        lines.append(f"Content-Length: {len(content) if length is None else length}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content


def graphql(query: str, variables: Mapping[str, Any] | None = None, *headers: str) -> bytes:
    """Write a GraphQL request."""
    return http(orjson.dumps({"query": query, "variables": variables}), *headers)


@asynccontextmanager
async def connected(target: Target) -> AsyncIterator[Pair]:
    """Connect, and end it at once afterwards."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, limit=2**24)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def said(target: Target, *parts: bytes, pause_secs: float = 0, ends: bool = False) -> str:
    """Send these over a connection, with pauses between them, and give the answer; `ends`: nothing else will come."""
    async with connected(target) as (reader, writer):
        answering = asyncio.ensure_future(answer(reader, is_bodiless=parts[0].startswith(b"HEAD")))
        with suppress(OSError):
            for number, part in enumerate(parts):
                if number:
                    await asyncio.wait([answering], timeout=pause_secs)
                if answering.done():
                    break
                writer.write(part)
                # What is not taken is not waited for: it may be answered all the same.
                with suppress(TimeoutError):
                    await asyncio.wait_for(writer.drain(), 1)
            if ends:
                writer.write_eof()
        try:
            return await asyncio.wait_for(answering, QUIET_SECS)
        except TimeoutError:
            return HANGS


async def answer(reader: asyncio.StreamReader, *, is_bodiless: bool = False) -> str:
    """Read one answer, and give its status and what it holds."""
    try:
        status, headers, body = await read_answer(reader, is_bodiless=is_bodiless)
    except (OSError, EOFError):
        return GONE
    return summary(status, headers, body)


async def read_answer(reader: asyncio.StreamReader, *, is_bodiless: bool = False) -> tuple[int, dict[str, str], bytes]:
    """Read one HTTP answer to its end. Raises OSError and EOFError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ")[1])
    if status == 100:
        return await read_answer(reader)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        return status, headers, body
    if "content-length" in headers:
        # The answer to HEAD has a length and no body.
        size = 0 if is_bodiless else int(headers["content-length"])
        return status, headers, await reader.readexactly(size)
    return status, headers, b"" if status == 101 else await reader.read()


def summary(status: int, headers: Mapping[str, str], body: bytes) -> str:
    """Say in a few words what an answer is."""
    try:
        return f"{status} {told(orjson.loads(body))}"
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace").strip()
        events = re.findall(r"^data: (.+)$", text, re.MULTILINE)
        if events:
            return f"{status} event: " + ", ".join(told(orjson.loads(event)) for event in events[:3])
        kind = headers.get("content-type", "").split(";")[0]
        return f"{status} {kind if len(text) > 60 else text}".strip()


def told(body: Any) -> str:
    """Say what a GraphQL response holds: data, and the codes of its errors with the limits that they name."""
    if not isinstance(body, dict):
        return "JSON"
    errors = body.get("errors", body.get("payload") if isinstance(body.get("payload"), list) else None) or []
    parts: list[str] = []
    if body.get("data") and any(value is not None for value in body["data"].values()):
        parts.append("data")
    elif "data" in body and not errors:
        parts.append("null")
    counted = Counter(_code(error) for error in errors)
    return (
        ", ".join([*parts, *(code if many == 1 else f"{code} ({many} times)" for code, many in counted.items())])
        or "JSON"
    )


def _code(error: Mapping[str, Any]) -> str:
    extensions = error.get("extensions") or {}
    code = str(extensions.get("code", "no code"))
    return f"{code} {extensions['limit']}" if "limit" in extensions else code


# --- WebSocket


def frame(
    data: bytes | str, opcode: int = 1, *, masked: bool = True, final: bool = True, length: int | None = None
) -> bytes:
    """Write a frame of RFC 6455; `length` is what it says of its length, if that is not so."""
    content = data.encode() if isinstance(data, str) else data
    size = len(content) if length is None else length
    first = bytes([(0x80 if final else 0) | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head = first + bytes([bit | size])
    elif size < 2**16:
        head = first + bytes([bit | 126]) + size.to_bytes(2, "big")
    else:
        head = first + bytes([bit | 127]) + size.to_bytes(8, "big")
    # A mask of zeros changes nothing, and is one.
    return head + (b"\0\0\0\0" if masked else b"") + content


def message(type_: str, **more: Any) -> bytes:
    """Write a message of graphql-transport-ws."""
    return frame(orjson.dumps({"type": type_, **more}))


def upgrade(*headers: str, protocol: str = "graphql-transport-ws") -> bytes:
    """Write the request that opens a socket."""
    key = base64.b64encode(os.urandom(16)).decode()
    offered = [f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
    names = {header.split(":")[0].lower() for header in headers}
    usual = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    given = [f"{name}: {value}" for name, value in usual.items() if name.lower() not in names]
    return http(b"", *given, *offered, *headers, line="GET /graphql HTTP/1.1")


INIT = message("connection_init")


def socket(
    *frames: bytes, protocol: str = "graphql-transport-ws", last: str | None = None
) -> Callable[[Target], Awaitable[str]]:
    """Open a socket, send these, and say what came until it was closed, or until a message of the type `last`."""

    async def converse(target: Target) -> str:
        async with connected(target) as (reader, writer):
            writer.write(upgrade(protocol=protocol))
            status, answered, body = await read_answer(reader)
            if status != 101:
                return summary(status, answered, body)
            listening = asyncio.ensure_future(_listen(reader, last))
            with suppress(OSError, TimeoutError):
                for one in frames:
                    writer.write(one)
                await asyncio.wait_for(writer.drain(), QUIET_SECS)
            try:
                return await asyncio.wait_for(listening, QUIET_SECS)
            except TimeoutError:
                return HANGS

    return converse


async def _listen(reader: asyncio.StreamReader, last: str | None) -> str:
    heard: Counter[str] = Counter()
    try:
        while True:
            first, second = await reader.readexactly(2)
            size = second & 0x7F
            if size > 125:
                size = int.from_bytes(await reader.readexactly(2 if size == 126 else 8), "big")
            data = await reader.readexactly(size)
            if first & 0x0F == 8:
                heard[f"closed with {int.from_bytes(data[:2], 'big') or 1005}"] += 1
                break
            if first & 0x0F == 1:
                content = orjson.loads(data)
                heard[_said(content)] += 1
                if content["type"] == last:
                    break
            elif first & 0x0F == 10:
                heard["pong frame"] += 1
    except (OSError, EOFError):
        heard[GONE] += 1
    del heard["connection_ack"]
    return ", ".join(what if many == 1 else f"{what} ({many} times)" for what, many in heard.items())


def _said(content: Any) -> str:
    kind = str(content["type"])
    if kind == "next":
        return f"next: {told(content['payload'])}"
    return f"error: {told(content)}" if kind == "error" else kind
