"""The demo's table on an engine, filled."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Any

from benchmarks.queries import TABLE
from benchmarks.servers import REGION, ROOT
from graph.boto import BotoTransport
from graph.client import Client
from graph.loaders import Graph
from graph.requests import PutItems
from graph.tables import create_table
from resolvers.sdl import compile_model
from server.demo import read_items

SCHEMA = ROOT / "schema.graphql"
FLEET = ROOT / "examples/bananas/fleet.py"
ITEMS_IN_A_BATCH = 25


async def make_table(endpoint: str, items: Iterable[Mapping[str, Mapping[str, Any]]] = ()) -> None:
    """Make the table on an engine and put items into it."""
    with closing(BotoTransport(endpoint, REGION, credentials=("local", "local"))) as transport:
        model = compile_model(SCHEMA.read_text())
        graph = Graph(model, Client(transport))
        await graph.send(create_table(model, model.tables[TABLE]))
        rest = iter(items)
        while batch := tuple(itertools.islice(rest, ITEMS_IN_A_BATCH)):
            await graph.send(PutItems(TABLE, batch))


async def make_fleet(endpoint: str) -> None:
    """Make the table with the demo's fleet: 50 containers of 20 pallets of 15 boxes."""
    await make_table(endpoint, read_items(FLEET))
