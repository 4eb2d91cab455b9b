"""The ways to DynamoDB beside each other: CPU for each request and for each query, in alternating rounds of one run.

A process of its own answers from memory what the engine has answered once. With `--latency` numbers of connections are
compared instead. aiohttp, which is no dependency, takes part when it can be imported.
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
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, closing
from functools import partial
from typing import Any

import orjson
import uvloop

from benchmarks.front import HOST
from benchmarks.queries import BOXES, QUERIES, TABLE
from benchmarks.servers import fronted
from benchmarks.table import FLEET, SCHEMA
from graph.bodies import body_of
from graph.boto import BotoTransport
from graph.client import Client, Meter, Response, Transport
from graph.codec import Parse
from graph.expressions import Function
from graph.loaders import Graph
from graph.requests import Action, BatchGetItem, GetItem, PutItems, Query, Request, TransactWriteItems
from graph.tables import create_table
from graph.wire.connection import Answer
from graph.wire.credentials import Credentials
from graph.wire.endpoint import endpoint_of
from graph.wire.signing import Signing
from graph.wire.transport import OPERATIONS, WireTransport, read_answer
from resolvers.operation import Request as Operation
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.demo import read_items
from server.engine import Engine

Works = Mapping[str, Callable[[], Awaitable[object]]]

PLACE: Any = ("eu-central-1", 16)
KEYS = ("local", "local")
FIFTY = [
    {"objectId": {"S": "FIFTY"}, "relatedObjectId": {"S": f"BOX_{n}"}, "WeightInKg": {"N": "7"}} for n in range(50)
]
PALLET = Query(
    TABLE, None, (("objectId", "PALLET_C001001"),), Function("begins_with", "relatedObjectId", ("S", "BOX_")), limit=16
)
REQUESTS: dict[str, tuple[Request, int]] = {
    "GetItem": (GetItem(TABLE, (("objectId", "CONTAINER_000001"), ("relatedObjectId", "CONTAINER_000001"))), 160),
    "Query of 15": (PALLET, 128),
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

    carried = OPERATIONS

    def __init__(self, boto: BotoTransport) -> None:
        aiohttp: Any = importlib.import_module("aiohttp")
        endpoint = endpoint_of(boto)
        assert endpoint is not None
        self._endpoint = endpoint
        self._credentials = Credentials(boto.session.get_credentials())
        self._prepared: dict[str, tuple[int, Signing]] = {}
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=16),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=3, sock_read=20),
            skip_auto_headers=("User-Agent", "Accept"),
        )

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        return read_answer(operation, await self._post(operation, orjson.dumps(parameters)), lambda: parameters)

    async def carry(self, request: Request, deadline: float | None, parse: Parse, *, report_capacity: bool) -> Response:
        assert not report_capacity
        async with asyncio.timeout_at(deadline):
            answer = await self._post(request.operation, body_of(request))
        return read_answer(request.operation, answer, request.parameters, parse)

    async def _post(self, operation: str, body: bytes) -> Answer:
        signing = await self._signing(operation)
        headers = {**signing.headers, "accept-encoding": "identity"}
        headers["authorization"] += signing.signature(body)
        async with self._session.post(self._endpoint.url, data=body, headers=headers) as response:
            return Answer(response.status, response.headers.get("x-amz-crc32"), await response.read())

    async def _signing(self, operation: str) -> Signing:
        now = int(time.time())
        second, signing = self._prepared.get(operation, (0, None))
        if signing is None or second != now:
            headers, keys = self._endpoint.headers(operation), await self._credentials.keys()
            signing = self._endpoint.signer.signing(headers, keys, now)
            self._prepared[operation] = now, signing
        return signing

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


async def _compare(name: str, works: Works, times: int, at_once: int) -> None:
    found: dict[str, list[float]] = {way: [] for way in works}
    for way in itertools.chain.from_iterable([list(works)] * (OPTIONS.rounds + 1)):
        found[way].append(await _cpu_ms(works[way], times, at_once))
    # The first round opens the connections.
    medians = {way: statistics.median(spent[1:]) for way, spent in found.items()}
    cells = "".join(f"{medians[way]:>10.3f}" for way in works)
    ratios = "".join(f"{medians[way] / medians['wire']:>10.2f}" for way in works if way != "wire")
    print(f"{name:24}{at_once:>8}{cells}{ratios}", flush=True)


async def _filled(transport: Transport) -> None:
    model = compile_model(SCHEMA.read_text())
    graph = Graph(model, Client(transport))
    await graph.send(create_table(model, model.tables[TABLE]))
    items = itertools.chain(FIFTY, read_items(FLEET))
    while batch := tuple(itertools.islice(items, 25)):
        await graph.send(PutItems(TABLE, batch))


async def _compare_requests(ways: dict[str, Transport]) -> None:
    heads = "".join(f"{way:>10}" for way in ways) + "".join(f"{way:>10}" for way in ways if way != "wire")
    print(f"{'CPU ms each, times':24}{'at once':>8}{heads}   (medians of {OPTIONS.rounds} rounds)")
    for name, (request, times) in REQUESTS.items():
        for at_once in (1, 16):
            works = {way: partial(_send, Client(send), request) for way, send in ways.items()}
            await _compare(name, works, times, at_once)


async def _send(client: Client, request: Request) -> None:
    await client.send(request, Meter(deadline=asyncio.get_running_loop().time() + 30))


async def _compare_queries(ways: dict[str, Transport]) -> None:
    model = compile_model(SCHEMA.read_text())
    apis = {way: Api(Graph(model, Client(send))) for way, send in ways.items()}
    for name, query in QUERIES.items():
        works = {way: partial(api.execute, Operation(query)) for way, api in apis.items()}
        await _compare(name, works, 20 if name in ("Q1", "Q4") else 2, 1)


# --- how many connections -----------------------------------------------------------------------------------------


async def _operation(client: Client) -> None:
    """Send what Q2 does: a container, its pallets, their boxes' edges, and the boxes by the hundred."""
    meter = Meter(deadline=asyncio.get_running_loop().time() + 30)
    await client.send(REQUESTS["GetItem"][0], meter)
    await client.send(PALLET, meter)
    pallets = [PALLET.of((f"PALLET_C001{pallet:03}",)) for pallet in range(1, 21)]
    await asyncio.gather(*(client.send(pallet, meter) for pallet in pallets))
    await asyncio.gather(*(client.send(REQUESTS["BatchGetItem of 100"][0], meter) for _ in range(3)))


async def _rate(client: Client, secs: float) -> tuple[float, float]:
    """Have 32 clients do one operation after the other, and give operations a second and CPU ms for each."""
    done = 0

    async def lane(end: float) -> None:
        nonlocal done
        while time.monotonic() < end:
            await _operation(client)
            done += 1

    started, spent = time.monotonic(), time.process_time()
    await asyncio.gather(*(lane(started + secs) for _ in range(32)))
    return done / (time.monotonic() - started), (time.process_time() - spent) * 1000 / done


async def _beside_many(client: Client, meter: Meter, crowd: Meter) -> float:
    """Give the ms that a GetItem takes while another operation has a thousand Queries under way or waiting."""
    queries = [PALLET.of((f"PALLET_C001{number % 20 + 1:03}",)) for number in range(1000)]
    sent = [asyncio.ensure_future(client.send(query, crowd)) for query in queries]
    await asyncio.sleep(0)
    began = time.monotonic()
    await client.send(REQUESTS["GetItem"][0], meter)
    took = time.monotonic() - began
    await asyncio.gather(*sent)
    return took * 1000


async def _compare_connections(endpoint: str) -> None:
    found: dict[int, list[tuple[float, ...]]] = {}
    print("connections  operations/s  CPU ms each   GetItem beside 1,000 Queries: ms by turns, ms in one line")
    for connections in (16, 32, 64, 128, 256) * (OPTIONS.rounds + 1):
        with closing(WireTransport(endpoint, PLACE[0], connections, credentials=KEYS)) as wire:
            client, crowd = Client(wire, connections), Meter()
            # The first opens the connections; one meter for both is one queue.
            await _rate(client, 0.5)
            beside = await _beside_many(client, Meter(), crowd), await _beside_many(client, crowd, crowd)
            found.setdefault(connections, []).append((*await _rate(client, 1.5), *beside))
    for connections, rounds in found.items():
        rate, cpu, by_turns, in_line = (statistics.median(column) for column in zip(*rounds[1:], strict=True))
        print(f"{connections:>11}{rate:>14.1f}{cpu:>13.2f}{by_turns:>35.1f}{in_line:>16.1f}", flush=True)


async def main() -> None:
    """Load the fleet, run the rounds, print the table."""
    async with Engine() as engine, fronted(engine.endpoint_url, OPTIONS.latency) as port:
        endpoint = f"http://{HOST}:{port}"
        with closing(BotoTransport(engine.endpoint_url, *PLACE, credentials=KEYS)) as boto:
            await _filled(boto)
        gc.freeze()
        if OPTIONS.latency:
            await _compare_connections(endpoint)
            return
        with (
            closing(WireTransport(endpoint, *PLACE, credentials=KEYS)) as wire,
            closing(BotoTransport(endpoint, *PLACE, credentials=KEYS)) as boto,
        ):
            ways: dict[str, Transport] = {"wire": wire}
            async with AsyncExitStack() as stack:
                if importlib.util.find_spec("aiohttp"):
                    ways["aiohttp"] = await stack.enter_async_context(aclosing(Aiohttp(boto)))
                ways["boto3"] = boto
                await _compare_requests(ways)
                await _compare_queries(ways)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--latency", type=float, default=0.0, metavar="MS")
    OPTIONS = parser.parse_args()
    uvloop.run(main())
