"""Abuse of WebSockets and of Server-Sent Events."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from tests.abuse.wire import (
    INIT,
    Case,
    Target,
    connected,
    frame,
    graphql,
    message,
    read_answer,
    said,
    socket,
    upgrade,
)

QUERY = {"query": "{ __typename }"}
LARGE = {"query": "{ containers(first: 100) { nodes { pallets(first: 20) { nodes { number origin destination } } } } }"}
FOLLOW = {"query": "subscription { boxChanged { kind } }"}
EVENTS = "Accept: text/event-stream"
DONE = message("subscribe", id="last", payload=QUERY)


def subscribe(name: Any, payload: Any = QUERY) -> bytes:
    return message("subscribe", id=name, payload=payload)


def opened(*headers: str, protocol: str) -> Case:
    return upgrade(*headers, protocol=protocol)


async def never_read(target: Target) -> str:
    """Ask for much over a socket without reading any of it, and be gone."""
    async with connected(target) as (reader, writer):
        writer.write(upgrade())
        await read_answer(reader)
        writer.write(INIT + b"".join(subscribe(f"s{number}", LARGE) for number in range(90)))
        await asyncio.sleep(1)
    return "nobody is there to be answered"


async def many_streams(target: Target) -> str:
    """Open streams of events that nobody reads, see that another connection is answered, and be gone."""
    pairs = [await asyncio.open_connection("127.0.0.1", target.port) for _ in range(200)]
    for _, writer in pairs:
        writer.write(graphql(FOLLOW["query"], None, EVENTS))
    found = await said(target, graphql("{ __typename }"))
    for _, writer in pairs:
        writer.transport.abort()
    return f"another connection: {found}"


async def large_events(target: Target) -> str:
    async with connected(target) as (_, writer):
        for _ in range(50):
            writer.write(graphql(LARGE["query"], None, EVENTS))
        await asyncio.sleep(1)
    return "nobody is there to be answered"


async def many_sockets(target: Target) -> str:
    pairs = [await asyncio.open_connection("127.0.0.1", target.port) for _ in range(200)]
    for reader, writer in pairs:
        writer.write(upgrade() + INIT)
        await read_answer(reader)
    found = await said(target, graphql("{ __typename }"))
    for _, writer in pairs:
        writer.transport.abort()
    return f"another connection: {found}"


SOCKETS: Final[dict[str, Case]] = {
    # Before there is a socket.
    "a page of another site": opened("Origin: https://elsewhere.example", protocol="graphql-transport-ws"),
    "an origin that is none": opened("Origin: null", protocol="graphql-transport-ws"),
    "no subprotocol": socket(protocol=""),
    "the old subprotocol": socket(protocol="graphql-ws"),
    "a version that there is not": opened("Sec-WebSocket-Version: 99", protocol="graphql-transport-ws"),
    "a key that is none": opened("Sec-WebSocket-Key: x", protocol="graphql-transport-ws"),
    "200 sockets that only begin": many_sockets,
    # Frames.
    "nothing, once it is open": socket(),
    "a frame without a mask": socket(frame('{"type":"connection_init"}', masked=False)),
    "a frame that says 2^62 bytes": socket(frame(b"x", length=2**62)),
    "a message of 2 MB": socket(INIT, frame(b"x" * 2_000_000)),
    "a message of 2 MB in small frames": socket(
        INIT, frame(b"x" * 1_000, final=False), *[frame(b"x" * 1_000, 0, final=False)] * 2_000
    ),
    "a message within a message": socket(INIT, frame(b"x", final=False), DONE),
    "100,000 empty frames of one message": socket(
        INIT, frame(b"", final=False), *[frame(b"", 0, final=False)] * 100_000, frame(b"", 0)
    ),
    "a frame that goes on from nothing": socket(INIT, frame(b"x", 0)),
    "an opcode that there is not": socket(INIT, frame(b"x", 5)),
    "a ping of a kilobyte": socket(INIT, frame(b"x" * 1_000, 9)),
    "10,000 ping frames": socket(INIT, *[frame(b"x", 9)] * 10_000, DONE, last="complete"),
    "10,000 ping messages": socket(INIT, *[message("ping")] * 10_000, DONE, last="complete"),
    "a compressed frame": socket(INIT, bytes([0xC1]) + frame(b"x")[1:]),
    "a close with a code that there is not": socket(INIT, frame((5).to_bytes(2, "big"), 8)),
    "text that is not UTF-8": socket(INIT, frame(b"\xff\xfe")),
    "a binary frame": socket(INIT, frame(b'{"type":"ping"}', 2)),
    # Messages.
    "no JSON": socket(frame("hello")),
    "an array": socket(frame("[]")),
    "100,000 arrays in each other": socket(frame("[" * 100_000)),
    "a type that there is not": socket(message("start")),
    "a type that is an object": socket(frame('{"type":{"a":1}}')),
    "a subscription before the greeting": socket(subscribe("a")),
    "two greetings": socket(INIT, INIT),
    "a greeting whose payload is a string": socket(message("connection_init", payload="x")),
    "a greeting of 900 kB": socket(message("connection_init", payload={"token": "x" * 900_000}), DONE, last="complete"),
    "a ping whose payload is a list": socket(INIT, message("ping", payload=[])),
    "an id twice": socket(INIT, subscribe("a", FOLLOW), subscribe("a", FOLLOW)),
    "an empty id": socket(INIT, subscribe("")),
    "an id that is a number": socket(INIT, subscribe(1)),
    "an id of 900 kB": socket(INIT, subscribe("x" * 900_000), last="complete"),
    "no payload": socket(INIT, message("subscribe", id="a")),
    "a payload without a document": socket(INIT, subscribe("a", {})),
    "an abusive document": socket(INIT, subscribe("a", {"query": "{" + "a " * 100_000 + "}"}), last="error"),
    "the end of what never began": socket(INIT, message("complete", id="never"), DONE, last="complete"),
    "1,000 subscriptions": socket(
        INIT, *(subscribe(f"s{n}", FOLLOW) for n in range(1_000)), message("ping"), last="pong"
    ),
    "10,000 subscriptions that end at once": socket(
        INIT,
        *(subscribe(f"s{n}", FOLLOW) + message("complete", id=f"s{n}") for n in range(10_000)),
        message("ping"),
        last="pong",
    ),
    "90 large queries whose answers are not read": never_read,
}

EVENTS_: Final[dict[str, Case]] = {
    "a document that is none, as events": graphql("{", None, EVENTS),
    "a query, as events": graphql("{ __typename }", None, EVENTS),
    "a mutation by GET, as events": (
        b"GET /graphql?query=mutation{deleteBox(key:{number:1}){deletedId}} HTTP/1.1\r\nHost: x\r\n"
        b"Accept: text/event-stream\r\n\r\n"
    ),
    "a subscription with a forged cursor": graphql('subscription { boxChanged(after: "x") { kind } }', None, EVENTS),
    "a subscription to an id that is none": graphql('subscription { boxChanged(id: "x") { kind } }', None, EVENTS),
    "a live query every -1 ms": graphql("query @live(throttle: -1) { __typename }", None, EVENTS),
    "a live query with `@defer`": graphql("query @live { ... @defer { __typename } }", None, EVENTS),
    "`@stream` that begins with -1": graphql("{ containers { nodes @stream(initialCount: -1) { id } } }"),
    "50 large answers that are not read": large_events,
    "200 subscribers that read nothing": many_streams,
}
