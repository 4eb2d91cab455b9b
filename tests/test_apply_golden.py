"""Golden files of apply: rows 45 and 46 of the source documents, as plans and as the exact requests."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from graph.apply.plan import refusals
from graph.apply.run import apply, observe
from graph.apply.state import Target, targets
from graph.client import Client, Transport
from graph.client import Response as WireResponse
from graph.loaders import Graph
from graph.model import Model
from resolvers.sdl import compile_model
from server.apply import Progress, shown
from tests.conftest import ROOT
from tests.slow_tables import definition
from tests.test_golden import GOLDEN, Rounds, agree, as_designed, pretty

ORDERS = (ROOT / "examples/order-entry/schema.graphql").read_text()


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether to rewrite the golden files instead of comparing."""
    return bool(request.config.getoption("--update-golden"))


ROWS = [
    {"PK": "HR-EMPLOYEE-1", "SK": "John Smith", "Type": "Employee", "Data": "1"},
    {"PK": "OE-CUSTOMER5", "SK": "EMPLOYEE-1", "Type": "Customer", "Data": "CUSTOMER-Ace", "name": "Ace"},
    {"PK": "OE-ORDER7", "SK": "CUSTOMER5", "Type": "Order", "Data": "OPEN-2020-01-02", "accountRep": "EMPLOYEE-1"},
]


class Applied:
    """Order entry over a table of the test's own, and every request that is sent to it."""

    def __init__(self, transport: Transport, sdl: str, name: str) -> None:
        self.model: Model = compile_model(sdl, table=name)
        self.rounds = Rounds(transport)
        self.graph = Graph(self.model, Client(self.rounds))
        self.name = name

    async def plan(self, *, drop: bool = False) -> list[str]:
        (target,) = targets(self.model, None)
        seen = [(target, await observe(self.graph, target))]
        refused = [line for refusal in refusals(*seen[0]) for line in refusal.text.splitlines()]
        return self._named(refused or list(shown(self.graph, seen, drop=drop)))

    async def apply(self, *, drop: bool = False) -> list[Any]:
        (target,) = targets(self.model, None)
        self.rounds.sent.clear()
        await apply(self.graph, target, Progress(), drop=drop, segments=1)
        sent = [(operation, parameters) for each in self.rounds.sent for operation, parameters in each]
        return [{operation: as_designed(parameters, self.name, "order-entry")} for operation, parameters in sent]

    def _named(self, texts: Sequence[str]) -> list[str]:
        return [text.replace(self.name, "order-entry") for text in texts]


async def made(transport: Transport, target: Target, *indexes: str) -> None:
    """Make the table of a model with some of its indexes, and put the rows."""
    await transport("CreateTable", definition(target, *indexes))
    items = [{name: {"S": value} for name, value in row.items()} for row in ROWS]
    requests = [{"PutRequest": {"Item": item}} for item in items]
    response: WireResponse = await transport("BatchWriteItem", {"RequestItems": {target.name: requests}})
    assert not response.get("UnprocessedItems")


async def test_row_45_a_later_index_is_made_and_backfilled(transport: Transport, update: bool) -> None:
    """Order entry over a table that has GSI-1 only: the plan, and every request of carrying it out."""
    random.seed("row-45")
    orders = Applied(transport, ORDERS, "apply-row-45")
    await made(transport, targets(orders.model, None)[0], "GSI-1")

    golden = {"plan": await orders.plan(), "requests": await orders.apply(), "plan afterwards": await orders.plan()}

    agree(GOLDEN / "apply/row-45-a-later-index.json", pretty(golden) + "\n", update=update)
    assert [name for one in golden["requests"] for name in one].count("UpdateTable") == 1
    assert (await stored_at(transport, "apply-row-45", "OE-ORDER7", "CUSTOMER5"))["Shard"]["S"] in map(str, range(15))


async def test_row_46_an_index_of_another_key_is_replaced(transport: Transport, update: bool) -> None:
    """GSI-2 by another key: refused with its cure; under a new name made, backfilled, and the old one dropped."""
    random.seed("row-46")
    former = ORDERS.replace(
        '"GSI-2", partitionKey: "Shard", sortKey: "Data"', '"GSI-2", partitionKey: "Shard", sortKey: "SK"'
    )
    former = re.sub(r'(by: "GSI-2", partition: "\{shard\(15\)\}"), sort: "[^"]*"', r"\1", former)
    former = re.sub(r"  orders\(status.*\n", "", former)
    table = "apply-row-46"
    await made(transport, targets(compile_model(former, table=table), None)[0], "GSI-1", "GSI-2")
    same_name = Applied(transport, ORDERS, table)
    new_name = Applied(transport, ORDERS.replace('"GSI-2"', '"GSI-2-2"'), table)

    golden = {
        "plan of the same name": await same_name.plan(),
        "plan of a new name": await new_name.plan(drop=True),
        "requests": await new_name.apply(drop=True),
        "plan when switched": await new_name.plan(drop=True),
        "requests when switched": await new_name.apply(drop=True),
        "plan afterwards": await new_name.plan(drop=True),
    }

    agree(GOLDEN / "apply/row-46-another-key.json", pretty(golden) + "\n", update=update)


async def stored_at(transport: Transport, table: str, pk: str, sk: str) -> Any:
    """Read one item."""
    response = await transport("GetItem", {"TableName": table, "Key": {"PK": {"S": pk}, "SK": {"S": sk}}})
    return response["Item"]
