"""The ways to DynamoDB beside each other: CPU for each request and for each query, in alternating rounds of one run.

aiohttp, which is no dependency, is measured when it is installed: `.venv/bin/pip install aiohttp`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import importlib.util
import itertools
import statistics
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import orjson
import uvloop

from benchmarks.run import BOXES, QUERIES, ROOT, TABLE
from graph.boto import BotoTransport
from graph.client import Client, Response, Transport
from graph.loaders import Graph
from graph.requests import Action, BatchGetItem, GetItem, PutItems, Query, Request, TransactWriteItems
from graph.tables import create_table
from graph.wire.connection import Answer
from graph.wire.credentials import Credentials
from graph.wire.endpoint import endpoint_of
from graph.wire.transport import WireTransport, read_answer
from resolvers.operation import Request as Operation
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.demo import read_items
from server.engine import Engine

PLACE: Any = ("eu-central-1", 16)
KEYS = ("local", "local")
FIFTY = [
    {"objectId": {"S": "FIFTY"}, "relatedObjectId": {"S": f"BOX_{n}"}, "WeightInKg": {"N": "7"}} for n in range(50)
]
REQUESTS: dict[str, tuple[Request, int]] = {
    "GetItem": (GetItem(TABLE, (("objectId", "CONTAINER_000001"), ("relatedObjectId", "CONTAINER_000001"))), 160),
    "Query of 50": (Query(TABLE, None, (("objectId", "FIFTY"),)), 96),
    "BatchGetItem of 100": (
        BatchGetItem(
            TABLE,
            tuple(
                (("objectId", f"BOX_{box}"), ("relatedObjectId", f"BOX_{box}"))
                for box in (*BOXES, *(box.replace("C001", "C002") for box in BOXES))
            ),
        ),
        48,
    ),
    "TransactWriteItems of 3": (
        TransactWriteItems(
            tuple(
                Action(TABLE, (("objectId", "FIFTY"), ("relatedObjectId", item["relatedObjectId"]["S"])), item)
                for item in FIFTY[:3]
            ),
            "the-same-so-it-is-written-once",
        ),
        96,
    ),
}
"""What is measured, and how often in one round."""


class Aiohttp:
    """The wire with aiohttp in place of our connections: signed, checked and parsed by the same code."""

    def __init__(self, boto: BotoTransport) -> None:
        aiohttp: Any = importlib.import_module("aiohttp")
        endpoint = endpoint_of(boto)
        assert endpoint is not None
        self._endpoint = endpoint
        self._credentials = Credentials(boto.session.get_credentials())
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=16),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=3, sock_read=20),
            skip_auto_headers=("User-Agent", "Accept"),
        )

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        endpoint = self._endpoint
        body = orjson.dumps(parameters)
        headers = {"content-type": endpoint.content_type, "x-amz-target": f"{endpoint.target}.{operation}"}
        signed = endpoint.signer.signed(headers, body, await self._credentials.keys(), time.time())
        signed["accept-encoding"] = "identity"
        async with self._session.post(endpoint.url, data=body, headers=signed) as response:
            answer = Answer(response.status, response.headers.get("x-amz-crc32"), await response.read())
        return read_answer(operation, answer, parameters)

    async def aclose(self) -> None:
        await self._session.close()


async def _cpu_ms(work: Callable[[], Awaitable[object]], times: int, at_once: int) -> float:
    """Do it so many times, in lanes side by side, and give the CPU of each."""

    async def lane() -> None:
        for _ in range(times // at_once):
            await work()

    # A full collection costs as much as some queries, and would fall upon whoever happens to be next.
    gc.collect()
    gc.disable()
    started = time.process_time()
    await asyncio.gather(*(lane() for _ in range(at_once)))
    spent = time.process_time() - started
    gc.enable()
    return spent * 1000 / times


async def _compare(name: str, works: dict[str, Callable[[], Awaitable[object]]], times: int, at_once: int) -> None:
    found: dict[str, list[float]] = {way: [] for way in works}
    for way in itertools.chain.from_iterable([list(works)] * (OPTIONS.rounds + 1)):
        found[way].append(await _cpu_ms(works[way], times, at_once))
    # The first round opens the connections.
    medians = {way: statistics.median(spent[1:]) for way, spent in found.items()}
    cells = "".join(f"{medians[way]:>10.3f}" for way in works)
    ratios = "".join(f"{medians[way] / medians['wire']:>10.2f}" for way in works if way != "wire")
    print(f"{name:24}{at_once:>8}{cells}{ratios}", flush=True)


async def _filled(transport: Transport) -> None:
    model = compile_model((ROOT / "schema.graphql").read_text())
    graph = Graph(model, Client(transport))
    await graph.send(create_table(model, model.tables[TABLE]))
    items = itertools.chain(FIFTY, read_items(ROOT / "examples/bananas/fleet.py"))
    while batch := tuple(itertools.islice(items, 25)):
        await graph.send(PutItems(TABLE, batch))


async def main() -> None:
    """Load the fleet, run the rounds, print the table."""
    async with Engine() as engine:
        with (
            closing(WireTransport(engine.endpoint_url, *PLACE, credentials=KEYS)) as wire,
            closing(BotoTransport(engine.endpoint_url, *PLACE, credentials=KEYS)) as boto,
        ):
            await _filled(boto)
            gc.freeze()
            ways: dict[str, Transport] = {"wire": wire}
            if importlib.util.find_spec("aiohttp"):
                ways["aiohttp"] = library = Aiohttp(boto)
            ways["boto3"] = boto
            heads = "".join(f"{way:>10}" for way in ways) + "".join(f"{way:>10}" for way in ways if way != "wire")
            print(f"{'CPU ms each, times':24}{'at once':>8}{heads}   (medians of {OPTIONS.rounds} rounds)")
            for name, (request, times) in REQUESTS.items():
                for at_once in (1, 16):
                    parameters = request.parameters()
                    works = {
                        way: lambda send=send, request=request, parameters=parameters: send(
                            request.operation, parameters
                        )
                        for way, send in ways.items()
                    }
                    await _compare(name, works, times, at_once)  # type: ignore[arg-type]
            model = compile_model((ROOT / "schema.graphql").read_text())
            apis = {way: Api(Graph(model, Client(send))) for way, send in ways.items()}
            for name, query in QUERIES.items():
                works = {way: lambda api=api, query=query: api.execute(Operation(query)) for way, api in apis.items()}
                await _compare(name, works, 20 if name in ("Q1", "Q4") else 2, 1)  # type: ignore[arg-type]
            if "aiohttp" in ways:
                await library.aclose()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    OPTIONS = parser.parse_args()
    uvloop.run(main())
