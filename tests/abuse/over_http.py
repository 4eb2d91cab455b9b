"""Abuse of HTTP and of JSON."""

from __future__ import annotations

import asyncio
import gzip
from typing import Final

from tests.abuse.wire import Case, Target, connected, graphql, http, read_answer, said, summary

OK = '{"query":"{ __typename }"}'
MEGABYTE = 10**6
CHUNKED = "Transfer-Encoding: chunked"


def head(*headers: str, line: str = "GET /graphql?query={__typename} HTTP/1.1") -> bytes:
    return http(b"", *headers, line=line)


def slowly(*parts: bytes, every_secs: float = 0.25) -> Case:
    """Send a part again and again, and never come to an end."""

    async def drip(target: Target) -> str:
        return await said(target, *parts[:-1], *[parts[-1]] * 60, pause_secs=every_secs)

    return drip


def ending(data: bytes) -> Case:
    """Send, and say that nothing more will come."""

    async def send(target: Target) -> str:
        return await said(target, data, ends=True)

    return send


def leaving(data: bytes, times: int) -> Case:
    """Send over many connections, and be gone at once from each."""

    async def send(target: Target) -> str:
        for _ in range(times):
            async with connected(target) as (_, writer):
                writer.write(data)
                await writer.drain()
        return "nobody is there to be answered"

    return send


async def pipelined(target: Target) -> str:
    async with connected(target) as (reader, writer):
        writer.write(http(OK) * 100)
        answers = [summary(*await read_answer(reader)) for _ in range(100)]
    return f"{answers[0]} ({len(answers)} times)" if len(set(answers)) == 1 else ", ".join(sorted(set(answers)))


async def idle(target: Target) -> str:
    """Open many connections that say nothing, and see that another is answered."""
    opened = [await asyncio.open_connection("127.0.0.1", target.port) for _ in range(300)]
    found = await said(target, http(OK))
    for _, writer in opened:
        writer.transport.abort()
    return f"another connection: {found}"


HTTP: Final[dict[str, Case]] = {
    # Lines and methods.
    "PUT": http(OK, line="PUT /graphql HTTP/1.1"),
    "TRACE": head(line="TRACE /graphql HTTP/1.1"),
    "HEAD": head(line="HEAD /graphql HTTP/1.1"),
    "CONNECT to another host": head(line="CONNECT elsewhere:443 HTTP/1.1"),
    "a method that there is not": head(line="HACK /graphql HTTP/1.1"),
    "HTTP/0.9": b"GET /graphql\r\n\r\n",
    "HTTP/9.9": head(line="GET /graphql HTTP/9.9"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS handshake": bytes.fromhex("16030100c8010000c40303") + b"\0" * 200,
    "a megabyte of random letters": b"x" * MEGABYTE,
    "a URL of 100 kB": head(line="GET /graphql?query=" + "x" * 100_000 + " HTTP/1.1"),
    "a URL with another host in it": http(OK, line="POST http://elsewhere/graphql HTTP/1.1"),
    "a path that climbs": head(line="GET /graphql-ide/../../../etc/passwd HTTP/1.1"),
    "a path that climbs, encoded": head(line="GET /graphql-ide/%2e%2e/%2e%2e/%2e%2e/etc/passwd HTTP/1.1"),
    "a path with a NUL": head(line="GET /graphql-ide/%00 HTTP/1.1"),
    # Headers.
    "no Host": b"GET /graphql?query={__typename} HTTP/1.1\r\nAccept: application/json\r\n\r\n",
    "two Hosts": head("Host: one", "Host: two"),
    "a header of a megabyte": head("X-Large: " + "x" * MEGABYTE),
    "10,000 headers": head(*(f"X-{number}: 1" for number in range(10_000))),
    "a header's name of 100 kB": head("X" * 100_000 + ": 1"),
    "a NUL in a header": head("X-Nul: a\0b"),
    "a header with a space before its colon": head("X-Space : 1"),
    "a header that goes on in the next line": head("X-Folded: a\r\n b"),
    "headers that never end, bit by bit": slowly(b"GET /graphql HTTP/1.1\r\n", b"X-More: 1\r\n"),
    "a request line that never ends, letter by letter": slowly(b"GET /", b"x"),
    "300 connections that say nothing": idle,
    "an Accept of 10,000 media types": http(OK, "Accept: " + ",".join(f"a/b{n};q=0.5" for n in range(5_000))),
    "an Accept that admits nothing we have": http(OK, "Accept: image/png"),
    "an upgrade to HTTP/2": http(OK, "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    "an Expect that nobody knows": http(OK, "Expect: 200-maybe"),
    # Where a body ends: what proxies and servers must not see differently.
    "Content-Length and chunks": http(b"0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n", CHUNKED, "Content-Length: 4"),
    "two lengths": http(OK, "Content-Length: 26", "Content-Length: 5"),
    "a length below zero": http(OK, "Content-Length: -1"),
    "a length with a sign": http(OK, "Content-Length: +26"),
    "a length in hexadecimal": http(OK, "Content-Length: 0x1a"),
    "a length of 10^12": http(OK, "Content-Length: 1000000000000"),
    "a length of 10^30": http(OK, "Content-Length: 1" + "0" * 30),
    "a length that is less than the body": http(OK + "GET /healthz HTTP/1.1\r\n\r\n", "Content-Length: 26"),
    "a length that is more than the body, and the end": ending(http(OK, "Content-Length: 1000")),
    "a body that stops in its midst": slowly(http(OK[:10], "Content-Length: 26"), b""),
    "a body that comes letter by letter": slowly(http(b"", "Content-Length: 5000"), b" "),
    "a coding that is nearly chunked": http(OK, "Transfer-Encoding: xchunked"),
    "chunked twice": http(b"0\r\n\r\n", "Transfer-Encoding: chunked, chunked"),
    "a chunk of 2^64 bytes": http(b"FFFFFFFFFFFFFFFF\r\n{", CHUNKED),
    "a chunk whose size is no number": http(b"zz\r\n{}\r\n0\r\n\r\n", CHUNKED),
    "a chunk with an extension of 100 kB": http(b"2;" + b"x" * 100_000 + b"\r\n{}\r\n0\r\n\r\n", CHUNKED),
    "chunks without end": http((b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 40, CHUNKED),
    "100,000 chunks of a byte": http(b"1\r\n \r\n" * 100_000 + b"0\r\n\r\n", CHUNKED),
    "100 requests without waiting for an answer": pipelined,
    "1,000 clients that go away at once": leaving(http(OK), 1_000),
    "200 clients that go away in the midst of a body": leaving(http(OK[:10], "Content-Length: 26"), 200),
    # What the body is.
    "a body of 1 MB and a byte": http(b" " * (MEGABYTE + 1)),
    "a gzip bomb": http(gzip.compress(b" " * (100 * MEGABYTE), 1), "Content-Encoding: gzip"),
    "a form, as a page of another site could send it": http(b"query={__typename}", "Content-Type: text/plain"),
    "a form with fields": http(b"query={__typename}", "Content-Type: application/x-www-form-urlencoded"),
    "an upload": http(b"--x\r\n\r\n{}\r\n--x--", "Content-Type: multipart/form-data; boundary=x"),
    "no Content-Type": http(OK, "Content-Type:"),
    "UTF-16": http(OK.encode("utf-16"), "Content-Type: application/json; charset=utf-16"),
    "UTF-16 that says nothing of it": http(OK.encode("utf-16")),
}

JSON: Final[dict[str, Case]] = {
    "nothing": http(b""),
    "null": http("null"),
    "a number": http("42"),
    "an array of 1,000 requests": http("[" + ",".join([OK] * 1_000) + "]"),
    "100,000 arrays in each other": http("[" * 100_000),
    "100,000 objects in each other as variables": http('{"query":"{__typename}","variables":' + '{"a":' * 100_000),
    "900 objects in each other as variables": http(
        '{"query":"{__typename}","variables":' + '{"a":' * 900 + "1" + "}" * 900 + "}"
    ),
    "bytes that are not UTF-8": http(b'{"query":"\xff\xfe"}'),
    "a byte order mark": http(b"\xef\xbb\xbf" + OK.encode()),
    "half a surrogate pair": http('{"query":"{ __typename }","variables":{"a":"\\ud800"}}'),
    "a NUL in the document": http('{"query":"{ __typename \\u0000 }"}'),
    "NaN": http('{"query":"{ __typename }","variables":{"a":NaN}}'),
    "Infinity": http('{"query":"{ __typename }","variables":{"a":Infinity}}'),
    "1e400": http('{"query":"{ __typename }","variables":{"a":1e400}}'),
    "an integer of 10,000 digits": http('{"query":"{ __typename }","variables":{"a":' + "9" * 10_000 + "}}"),
    "a name given twice": http('{"query":"{ nothing }","query":"{ __typename }"}'),
    "a comment": http('{"query":"{ __typename }"} // ' + "x" * 1000),
    "a second object behind the first": http(OK + OK),
    "a document that is a number": http('{"query":1}'),
    "an empty document": http('{"query":""}'),
    "variables that are a string": http('{"query":"{ __typename }","variables":"a"}'),
    "an operation's name that is a list": http('{"query":"{ __typename }","operationName":["a"]}'),
    "extensions that are a list": http('{"query":"{ __typename }","extensions":[]}'),
    "the name of an operation that is not there": http('{"query":"query a { __typename }","operationName":"b"}'),
    "`__proto__` and `constructor` as variables": http(
        '{"query":"{ __typename }","variables":{"__proto__":{"a":1},"constructor":{"prototype":1}}}'
    ),
    "50,000 variables that nobody declared": graphql("{ __typename }", {f"v{n}": n for n in range(50_000)}),
    "a mutation by GET": head(line="GET /graphql?query=mutation{deleteBox(key:{number:1}){deletedId}} HTTP/1.1"),
    "a subscription by POST": graphql("subscription { boxChanged { kind } }"),
    "a query string that is not UTF-8": head(line="GET /graphql?query=%ff%fe HTTP/1.1"),
    "variables in the URL that are no JSON": head(line="GET /graphql?query={__typename}&variables={ HTTP/1.1"),
    "1,000 queries in one URL": head(line="GET /graphql?" + "query={__typename}&" * 1_000 + " HTTP/1.1"),
}
