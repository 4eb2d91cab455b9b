"""What naming a document costs beside sending it: CPU inside the application, with no network around it.

First of reading a request until its operation is known, then of the whole request on a table that is imagined.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.types import Message, Scope

from graph.imagined import ImaginedTable
from graph.loaders import Graph
from resolvers.persisted import Persistence, hash_of
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.app import Application, build_app
from server.logs import configure_logging
from server.settings import Settings
from server.view import Head, read_request

ROOT = Path(__file__).parent.parent
SMALL = 'query Find { container(number: "1") { number operator } }'
PART = "aN: container(number: $number) { number operator }"
LARGE = f"query Find($number: ID!) {{ {' '.join(PART.replace('N', str(n)) for n in range(40))} }}"
VARIABLES = {"number": "1"}
JSON = (b"content-type", b"application/json")

Call = tuple[Scope, bytes]


def scope(method: str, query_string: bytes = b"", *headers: tuple[bytes, bytes]) -> Scope:
    """Make the scope of a request."""
    return {
        "type": "http",
        "method": method,
        "path": "/graphql",
        "query_string": query_string,
        "headers": [(b"host", b"localhost"), (b"accept", b"application/json"), *headers],
    }


def posted(**parameters: Any) -> Call:
    """Make a request by POST."""
    return scope("POST", b"", JSON), orjson.dumps({**parameters, "variables": VARIABLES})


def got(**parameters: str) -> Call:
    """Make a request by GET."""
    named = {**parameters, "variables": orjson.dumps(VARIABLES).decode()}
    return scope("GET", urlencode(named).encode()), b""


def ways(document: str) -> dict[str, Call]:
    """List the ways to ask for a document."""
    hash_ = hash_of(document)
    extensions = {"persistedQuery": {"version": 1, "sha256Hash": hash_}}
    return {
        "POST, text": posted(query=document),
        "POST, text and hash": posted(query=document, extensions=extensions),
        "POST, documentId": posted(documentId=f"sha256:{hash_}"),
        "POST, Apollo's hash": posted(extensions=extensions),
        "GET, text": got(query=document),
        "GET, documentId": got(documentId=f"sha256:{hash_}"),
        "GET, Apollo's hash": got(extensions=orjson.dumps(extensions).decode()),
    }


async def ask(app: Application, call: Call) -> int:
    """Send one request and give the status of its answer."""
    request, body = call
    messages: list[Message] = []
    is_read = False

    async def receive() -> Message:
        nonlocal is_read
        if is_read:
            await asyncio.Event().wait()
        is_read = True
        return {"type": "http.request", "body": body}

    async def send(message: Message) -> None:
        messages.append(message)

    await app(request, receive, send)
    status: int = messages[0]["status"]
    return status


def read(api: Api, call: Call) -> None:
    """Read a request as far as its operation."""
    request, body = call
    head = Head(request["method"], dict(request["headers"]), request["query_string"])
    prepared = api._documents.prepare(read_request(head, body, "header"))
    if isinstance(prepared, list):
        raise SystemExit(prepared[0].message)


async def measure(api: Api, calls: dict[str, Call], rounds: int, count: int) -> dict[str, tuple[float, float]]:
    """Give the CPU of each request in microseconds, reading and whole: the medians of rounds in turns."""
    app = build_app(api, Settings())
    reading: dict[str, list[float]] = {name: [] for name in calls}
    whole: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            if (status := await ask(app, call)) != 200:
                raise SystemExit(f"{name}: {status}")
            begun = time.process_time()
            for _ in range(count):
                read(api, call)
            between = time.process_time()
            for _ in range(count):
                await ask(app, call)
            reading[name].append((between - begun) / count * 1e6)
            whole[name].append((time.process_time() - between) / count * 1e6)
    return {name: (statistics.median(reading[name]), statistics.median(whole[name])) for name in calls}


def main() -> int:
    """Measure, and print a table for each of two documents."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    configure_logging("json", "warning")
    # So that answers by GET have an ETag made as well.
    sdl = (ROOT / "schema.graphql").read_text().replace("type Container @", "type Container @cacheControl(maxAge: 9) @")
    model = compile_model(sdl)
    api = Api(Graph(model, ImaginedTable(model)), persistence=Persistence({"small": SMALL, "large": LARGE}))
    for document in (SMALL, LARGE):
        print(f"a document of {len(document):,} characters: CPU µs until it is known, and of the whole request")
        for name, spent in asyncio.run(measure(api, ways(document), options.rounds, options.count)).items():
            print(f"  {name:20} {spent[0]:7.2f} {spent[1]:7.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
