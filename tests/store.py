"""A store in memory that answers an operation's requests as slowly as it is told, on a clock that leaps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.loaders import Graph, Limits, Operation
from graph.requests import BatchGetItem, GetItem, Item, ItemKey, Query, Request, key_attribute
from resolvers.sdl import compile_model
from tests.clock import now

MODEL = compile_model(
    """
    extend schema
      @table(name: "fruit", partitionKey: "id")
      @table(name: "ships", partitionKey: "PK", sortKey: "SK")
    type Fruit @node(partition: "{number}", table: "fruit") { number: ID! }
    type Ship @node(key: "SHIP#{number}", table: "ships") { number: ID! }
    """
)
LINGER_SECS = 0.015


def fruit(name: object) -> ItemKey:
    return "fruit", (("id", str(name)),)


def ship(name: object) -> ItemKey:
    return "ships", (("PK", f"SHIP#{name}"), ("SK", f"SHIP#{name}"))


def query(partition: str) -> Query:
    return Query("fruit", None, (("id", partition),))


def item(key: ItemKey) -> Item:
    return {name: key_attribute(value) for name, value in key[1]}


class Store:
    """Knows some items, and answers after `delay` seconds with what `answer` makes of its own answer."""

    def __init__(
        self,
        known: Iterable[ItemKey] = (),
        *,
        delay: Callable[[Request], float] = lambda request: 0.0,
        answer: Callable[[Request, Response], Response] = lambda request, response: response,
    ) -> None:
        self.known = {key: item(key) for key in known}
        self.sent: list[Request] = []
        self.times: list[float] = []
        self._delay = delay
        self._answer = answer

    def operation(self, *, timeout_secs: float | None = None) -> Operation:
        """Begin an operation on this store."""
        return Graph(MODEL, self, Limits(linger_secs=LINGER_SECS)).operation(timeout_secs=timeout_secs)

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        self.sent.append(request)
        self.times.append(now())
        await asyncio.sleep(self._delay(request))
        return self._answer(request, self._own_answer(request))

    def _own_answer(self, request: Request) -> Response:
        if isinstance(request, GetItem):
            found = self.known.get((request.table, request.key))
            return {} if found is None else {"Item": found}
        if isinstance(request, BatchGetItem):
            assert len(set(request.keys)) == len(request.keys) <= 100, "DynamoDB refuses this batch"
            # In an order that is not the one asked for, as DynamoDB may answer.
            items = [self.known[request.table, key] for key in request.keys[::-1] if (request.table, key) in self.known]
            return {"Responses": {request.table: items}, "UnprocessedKeys": {}}
        return {"Items": [], "Count": 0, "ScannedCount": 0}

    @property
    def shapes(self) -> list[Any]:
        """Say what was sent: the table and the number of keys of each, or its operation."""
        return [
            (request.table, len(request.keys)) if isinstance(request, BatchGetItem) else request.operation
            for request in self.sent
        ]
