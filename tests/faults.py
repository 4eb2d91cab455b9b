"""A proxy between server and engine on which DynamoDB has a bad day: at random, by a seed, some requests go wrong.

    async with FaultProxy(engine_url, Faults(throttled=0.2), seed=1) as proxy:
        ...  # serve with --endpoint-url proxy.url
        proxy.faults = Faults(failed=1, tables=frozenset({"orders"}))  # from now on

    python -m tests.faults --engine http://127.0.0.1:8001 --port 8002 --seed 1 --throttled 0.2

What goes wrong does so as on AWS: what is throttled was not carried out, and what is not answered may have been.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import sys
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self, cast
from urllib.parse import urlsplit

import httptools
import orjson

from graph.wire.connection import Answer
from graph.wire.pool import Address, Pool

VERSION = "DynamoDB_20120810."
NOT_PASSED_ON = (b"host", b"content-length", b"connection", b"accept-encoding", b"expect")
NAMESPACE = "com.amazonaws.dynamodb.v20120810#"
BALANCER = b"<html><body><h1>503 Service Temporarily Unavailable</h1></body></html>"
"""What comes with a 503: no JSON, for DynamoDB itself was not asked."""


@dataclass(frozen=True, slots=True)
class Faults:
    """What share of the requests goes wrong, and how; no request does in two ways."""

    throttled: float = 0.20
    """Refused with one of DynamoDB's errors for too much at once, and not carried out."""
    failed: float = 0.05
    """Answered with 500 or 503; half of those with 500 are carried out all the same."""
    unprocessed: float = 0.05
    """Batches of which a part, or all, is left out and given back as unprocessed."""
    slow: float = 0.02
    reset: float = 0.03
    """Connections closed before, in the midst of or after the answer, and answers with another byte in them."""
    hang: float = 0.0005
    """Requests that are never answered, over a connection that stays open."""
    slow_secs: tuple[float, float] = (0.2, 2.0)
    tables: frozenset[str] = frozenset()
    """The only tables that have a bad day; none named is all."""

    def choose(self, dice: random.Random) -> str:
        """Name what goes wrong with the next request, or nothing."""
        roll = dice.random()
        for kind in KINDS:
            roll -= getattr(self, kind)
            if roll < 0:
                return kind
        return ""


KINDS = ("throttled", "failed", "unprocessed", "slow", "reset", "hang")
NONE = Faults(throttled=0, failed=0, unprocessed=0, slow=0, reset=0, hang=0)
"""A good day: everything passes."""

THROTTLING = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")
TRANSACTION_THROTTLING = ("TransactionInProgressException", "TransactionConflict", "ThrottlingError")
"""The first is an error of its own, the others are reasons of a cancelled transaction."""
RESETS = ("before", "unanswered", "cut", "after", "damaged")


class Request(NamedTuple):
    """What arrived: the operation's name, the headers that are passed on, and the body."""

    operation: str
    headers: bytes
    body: bytes


class FaultProxy:
    """Listens for the length of an `async with`; what it did is in `tally`, by the kind of the fault."""

    def __init__(self, engine_url: str, faults: Faults | None = None, *, seed: int = 0, port: int = 0) -> None:
        parts = urlsplit(engine_url)
        assert parts.hostname is not None, engine_url
        assert parts.port is not None, engine_url
        self.faults = faults or Faults()
        """Those of the requests to come."""
        self.tally: Counter[str] = Counter()
        self.port = port
        self._host = parts.netloc.encode()
        self._pool = Pool(Address(parts.hostname, parts.port), 256)
        self._dice = random.Random(seed)
        self._callers: set[Caller] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """The URL that a DynamoDB client takes as its endpoint."""
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.refuse()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.close()

    async def listen(self) -> None:
        """Take connections, on the same port as before."""
        loop = asyncio.get_running_loop()
        self._listening = await loop.create_server(lambda: Caller(self), "127.0.0.1", self.port)
        self.port = self._listening.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Be down: close every connection, and refuse those to come, until `listen`."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for caller in list(self._callers):
            caller.abort()
        await asyncio.sleep(0)

    # --- one request

    def take(self, caller: Caller, request: Request) -> None:
        """Begin with a request that has arrived."""
        task = asyncio.ensure_future(self._answer(caller, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, caller: Caller, request: Request) -> None:
        self.tally["requests"] += 1
        kind = self.faults.choose(self._dice)
        if kind and self.faults.tables and not self.faults.tables & tables_of(request.body):
            kind = ""
        if kind == "unprocessed" and request.operation not in ("BatchGetItem", "BatchWriteItem"):
            kind = ""
        if kind:
            self.tally[kind] += 1
        try:
            await getattr(self, f"_{kind or 'pass'}")(caller, request)
        except OSError:
            # The engine itself is away.
            self.tally["engine away"] += 1
            caller.abort()

    async def _forward(self, request: Request) -> Answer:
        head = b"POST / HTTP/1.1\r\nHost: %s\r\n%sContent-Length: %d\r\n\r\n"
        return await self._pool.exchange(head % (self._host, request.headers, len(request.body)) + request.body)

    async def _pass(self, caller: Caller, request: Request) -> None:
        answer = await self._forward(request)
        caller.say(written(answer.status, answer.body))

    async def _throttled(self, caller: Caller, request: Request) -> None:
        if request.operation != "TransactWriteItems":
            caller.say(refusal(self._dice.choice(THROTTLING)))
            return
        code = self._dice.choice(THROTTLING + TRANSACTION_THROTTLING)
        if code not in TRANSACTION_THROTTLING[1:]:
            caller.say(refusal(code))
            return
        count = len(orjson.loads(request.body)["TransactItems"])
        reasons: list[dict[str, str]] = [{"Code": "None"} for _ in range(count)]
        reasons[self._dice.randrange(count)] = {"Code": code, "Message": "one of those days"}
        caller.say(refusal("TransactionCanceledException", CancellationReasons=reasons))

    async def _failed(self, caller: Caller, request: Request) -> None:
        way = self._dice.randrange(3)
        if way == 0:
            caller.say(written(503, BALANCER, "text/html"))
            return
        if way == 1:
            await self._forward(request)
        caller.say(refusal("InternalServerError", status=500))

    async def _unprocessed(self, caller: Caller, request: Request) -> None:
        asked = orjson.loads(request.body)
        is_read = request.operation == "BatchGetItem"
        taken, left = self._split(asked["RequestItems"], is_read=is_read)
        answer: dict[str, Any] = {"Responses": {table: [] for table in left}} if is_read else {}
        if taken:
            forwarded = await self._forward(request._replace(body=orjson.dumps({**asked, "RequestItems": taken})))
            if forwarded.status != 200:
                caller.say(written(forwarded.status, forwarded.body))
                return
            told = orjson.loads(forwarded.body)
            told["Responses"] = {**answer.get("Responses", {}), **told.get("Responses", {})}
            answer = told
        name = "UnprocessedKeys" if is_read else "UnprocessedItems"
        answer[name] = merged(left, answer.get(name) or {}, is_read=is_read)
        caller.say(written(200, orjson.dumps(answer)))

    def _split(self, items: dict[str, Any], *, is_read: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Part what is asked for into what is carried out and what is left; one time in four all of it is left."""
        is_all = self._dice.random() < 0.25
        taken: dict[str, Any] = {}
        left: dict[str, Any] = {}
        for table, wanted in items.items():
            entries = wanted["Keys"] if is_read else wanted
            chosen = [is_all or self._dice.random() < 0.5 for _ in entries]
            for part, side in ((taken, False), (left, True)):
                if mine := [entry for entry, is_left in zip(entries, chosen, strict=True) if is_left is side]:
                    part[table] = {**wanted, "Keys": mine} if is_read else mine
        return taken, left

    async def _slow(self, caller: Caller, request: Request) -> None:
        delay = self._dice.uniform(*self.faults.slow_secs)
        # Before or after it is carried out.
        if self._dice.random() < 0.5:
            await asyncio.sleep(delay)
            delay = 0
        answer = await self._forward(request)
        await asyncio.sleep(delay)
        caller.say(written(answer.status, answer.body))

    async def _reset(self, caller: Caller, request: Request) -> None:
        way = self._dice.choice(RESETS)
        self.tally[f"reset {way}"] += 1
        if way == "before":
            caller.abort()
            return
        answer = await self._forward(request)
        whole = written(answer.status, answer.body)
        if way == "unanswered":
            caller.abort()
        elif way == "cut":
            caller.say(whole[: self._dice.randrange(1, len(whole))])
            caller.close()
        elif way == "after":
            caller.say(whole)
            caller.close()
        else:
            # In the midst of the body, where only the checksum tells.
            place = len(whole) - 1 - self._dice.randrange(len(answer.body)) if answer.body else 0
            caller.say(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])

    async def _hang(self, caller: Caller, request: Request) -> None:
        if self._dice.random() < 0.5:
            await self._forward(request)


def tables_of(body: bytes) -> set[str]:
    """Name the tables that a request is for."""
    request = orjson.loads(body)
    names = {request["TableName"]} if "TableName" in request else set(request.get("RequestItems", ()))
    return names | {
        part["TableName"] for action in request.get("TransactItems", ()) for part in action.values() if part
    }


def merged(left: dict[str, Any], more: dict[str, Any], *, is_read: bool) -> dict[str, Any]:
    """Add what the engine itself left unprocessed, keys or items, to what we did."""
    whole = dict(left)
    for table, wanted in more.items():
        if table not in whole:
            whole[table] = wanted
        elif is_read:
            whole[table] = {**wanted, "Keys": whole[table]["Keys"] + wanted["Keys"]}
        else:
            whole[table] = whole[table] + wanted
    return whole


def refusal(code: str, *, status: int = 400, **more: Any) -> bytes:
    """Write one of DynamoDB's errors."""
    return written(status, orjson.dumps({"__type": NAMESPACE + code, "message": "one of those days", **more}))


def written(status: int, body: bytes, content_type: str = "application/x-amz-json-1.0") -> bytes:
    """Write a whole answer, with the checksum that DynamoDB's have."""
    checksum = b"" if status == 503 else b"X-Amz-Crc32: %d\r\n" % zlib.crc32(body)
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s" % (
        status,
        content_type.encode(),
        checksum,
        len(body),
        body,
    )


@dataclass(eq=False, slots=True)
class Caller(asyncio.Protocol):
    """One connection to us; httptools calls its `on_…` methods, and asyncio the others."""

    proxy: FaultProxy
    _parser: Any = None
    _transport: asyncio.Transport | None = None
    _operation: str = ""
    _headers: list[bytes] = field(default_factory=list)
    _body: list[bytes] = field(default_factory=list)

    def say(self, answer: bytes) -> None:
        """Send an answer, if anybody is still there."""
        if self._transport is not None:
            self._transport.write(answer)

    def close(self) -> None:
        """Close it when everything is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close it at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        self.proxy._callers.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self.proxy._callers.discard(self)

    def on_message_begin(self) -> None:
        self._operation = ""
        self._headers = []
        self._body = []

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"x-amz-target":
            self._operation = value.decode().removeprefix(VERSION)
        if name.lower() not in NOT_PASSED_ON:
            self._headers.append(b"%s: %s\r\n" % (name, value))

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        self.proxy.take(self, Request(self._operation, b"".join(self._headers), b"".join(self._body)))


async def run(engine_url: str, faults: Faults, *, seed: int, port: int) -> None:
    """Serve until SIGTERM or SIGINT, and print what was done."""
    end = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end.set)
    async with FaultProxy(engine_url, faults, seed=seed, port=port) as proxy:
        sys.stdout.write(f"{proxy.url}\n")
        sys.stdout.flush()
        with suppress(asyncio.CancelledError):
            await end.wait()
    sys.stdout.write("".join(f"{count:8} {name}\n" for name, count in sorted(proxy.tally.items())))


def main() -> None:
    """Serve as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", required=True, help="URL of what is behind")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    defaults = {each.name: each.default for each in fields(Faults)}
    for kind in KINDS:
        parser.add_argument(f"--{kind}", type=float, default=defaults[kind], help="share of the requests")
    options = parser.parse_args()
    faults = Faults(**{kind: getattr(options, kind) for kind in KINDS})
    asyncio.run(run(options.engine, faults, seed=options.seed, port=options.port))


if __name__ == "__main__":
    main()
