"""A hundred operations at once: within the slots, and each with its share, however much the others ask for."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from typing import Any

import pytest

from graph.client import Client, Meter, Response
from graph.codec import Parse, parse_json
from graph.expressions import holds
from graph.loaders import Graph
from graph.requests import BatchGetItem, GetItem, Item, Query
from graph.requests import Request as TableRequest
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.clock import now, run
from tests.conftest import ROOT

MODEL = compile_model((ROOT / "schema.graphql").read_text())
TABLE = next(iter(MODEL.tables))
SLOTS = 16
HEAVY, PALLETS, BOXES = 99, 10, 5
HEAVY_REQUESTS = 1 + PALLETS + 1
"""The container with its edges, each pallet with its own, and all boxes together."""

# Each has a container of its own, so that its requests tell whose they are.
DEEP = """{ container(number: "%s") { number pallets(first: 10) { edges { linkedBy node {
  number origin boxes(first: 5) { edges { linkedBy node { number weightInKg } } }
} } } } }"""
LIGHT = '{ container(number: "light") { number operator } }'


class Engine:
    """Containers of any number, each with its pallets and their boxes; a request takes a second of a leaping clock."""

    carried = frozenset(("GetItem", "BatchGetItem", "Query"))

    def __init__(self) -> None:
        self.under_way = self.most = 0
        self.served: list[TableRequest] = []

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Response:
        raise AssertionError(operation)

    async def carry(
        self, request: TableRequest, deadline: float | None, parse: Parse, *, report_capacity: bool
    ) -> Response:
        """Answer a request."""
        self.served.append(request)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(1)
        finally:
            self.under_way -= 1
        return _answer(request)


def _answer(request: TableRequest) -> Response:
    match request:
        case GetItem(_, ((_, partition), (_, sort))):
            return {"Item": _item(str(partition), str(sort))}
        case BatchGetItem(_, keys):
            return {"Responses": {TABLE: [_item(str(partition), str(sort)) for (_, partition), (_, sort) in keys]}}
        case Query(partition=((_, partition),)):
            found = [item for item in _partition(str(partition)) if request.sort is None or holds(request.sort, item)]
            shown = found[: request.limit]
            last: Response = {"LastEvaluatedKey": {}} if len(shown) < len(found) else {}
            return {"Items": shown, "Count": len(shown), "ScannedCount": len(shown), **last}
    raise AssertionError(request)


def _partition(key: str) -> list[Item]:
    kind, number = key.split("_", 1)
    below, count = {"CONTAINER": ("PALLET", PALLETS), "PALLET": ("BOX", BOXES)}[kind]
    items = [_item(key, key), *(_item(key, f"{below}_{number}-{each:02}") for each in range(count))]
    return sorted(items, key=lambda item: item["relatedObjectId"]["S"])


def _item(partition: str, sort: str) -> Item:
    return {"objectId": {"S": partition}, "relatedObjectId": {"S": sort}, "LinkedBy": {"S": "Turbo Carga"}}


class Told:
    """Sends by a client, and keeps for each request its operation's meter, and how many were served by then."""

    def __init__(self, client: Client, engine: Engine) -> None:
        self._client = client
        self._engine = engine
        self.sent: dict[int, tuple[Meter, int]] = {}

    async def send(self, request: TableRequest, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request."""
        self.sent[id(request)] = meter, len(self._engine.served)
        return await self._client.send(request, meter, parse)


async def _run_light(api: Api, heavy: asyncio.Future[Any]) -> list[float]:
    """Ask for little again and again until the others are done, and give how long each time took."""
    latencies = []
    while not heavy.done():
        began = now()
        response = await api.execute(Request(LIGHT))
        latencies.append(now() - began)
        assert response.body["data"]["container"]["number"] == "light"
    return latencies


Together = tuple[Engine, Told, list[float], list[Any]]
"""The engine, what was sent, how long each of the small operations took, and what the large ones were answered."""


async def _run_together() -> Together:
    engine = Engine()
    told = Told(Client(engine, SLOTS), engine)
    api = Api(Graph(MODEL, told), timeout_secs=None)
    heavy = asyncio.gather(*[api.execute(Request(DEEP % number)) for number in range(HEAVY)])
    await asyncio.sleep(0.5)
    latencies = await _run_light(api, heavy)
    return engine, told, latencies, list(await heavy)


@pytest.fixture(scope="module")
def together() -> Together:
    return run(_run_together())


def test_hundred_operations_at_once_stay_within_the_slots(together: Together) -> None:
    engine, _, latencies, responses = together

    boxes = [
        len(pallet["node"]["boxes"]["edges"])
        for response in responses
        for pallet in response.body["data"]["container"]["pallets"]["edges"]
    ]
    assert boxes == [BOXES] * PALLETS * HEAVY
    assert len(engine.served) == HEAVY * HEAVY_REQUESTS + len(latencies)
    assert engine.most == SLOTS


def test_small_operation_beside_many_large_ones_waits_for_one_round_of_them(together: Together) -> None:
    _, _, latencies, _ = together

    # A round gives each of the others one request; a second is its own, and one more may have just begun.
    assert max(latencies) <= HEAVY / SLOTS + 2
    assert len(latencies) >= HEAVY_REQUESTS - 2


def test_operations_take_turns(together: Together) -> None:
    """While a request waits no other operation has more than a turn for each of those before it, and one."""
    engine, told, _, _ = together

    groups = [id(told.sent[id(request)][0]) for request in engine.served]
    waits = []
    for place, (request, group) in enumerate(zip(engine.served, groups, strict=True)):
        sent = told.sent[id(request)][1]
        between = Counter(groups[sent:place])
        # Another one's that had been given its slot, but had not begun, counts besides.
        assert max(between.values(), default=0) <= between[group] + 2
        waits.append(place - sent)
    assert max(waits) > HEAVY


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(LIGHT, id="lookup"),
        pytest.param(DEEP % 1, id="levels"),
        pytest.param('{ container(number: "1") { pallets(after: "x") { totalCount edges { cursor } } } }', id="failed"),
    ],
)
def test_operation_leaves_nothing_to_the_garbage_collector(document: str) -> None:
    async def main() -> list[object]:
        api = Api(Graph(MODEL, Client(Engine(), SLOTS)), timeout_secs=None)
        for _ in range(2):
            await api.execute(Request(document))
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await api.execute(Request(document))
            gc.collect()
        finally:
            gc.set_debug(0)
            gc.enable()
        left = [entry for entry in gc.garbage if type(entry).__module__.split(".")[0] in ("graph", "resolvers")]
        gc.garbage.clear()
        return left

    assert run(main()) == []
