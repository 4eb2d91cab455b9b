"""The way to the tables of a model, as the settings say, and whether they fit it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from graph.blobs import FolderStore, S3Store
from graph.client import Client, Meter, Transport
from graph.errors import AccessRefused, StoreError, TableMissing
from graph.loaders import Graph, Limits
from graph.model import Model
from graph.requests import DescribeTable
from graph.seals import Seals
from graph.search.places import open_index
from graph.tables import differences
from resolvers.sdl import compile_model
from server.keys import read_keys
from server.settings import Settings
from server.transports import open_transport

if TYPE_CHECKING:
    from server.telemetry.telemetry import Telemetry

LOCAL_REGION = "eu-central-1"
LOOK_SECS = 3.0
"""How long the start of a server waits for a table's description."""


def model_of(settings: Settings) -> Model:
    """Compile the model. Raises: ModelError, FileNotFoundError."""
    model = compile_model(settings.schema.read_text(), str(settings.schema), table=settings.table)
    return replace(model, seals=Seals(read_keys(settings.signing_keys) if settings.signing_keys else ()))


def graph_of(model: Model, transport: Transport, settings: Settings, telemetry: Telemetry | None = None) -> Graph:
    """Make a graph, whose requests telemetry is told of; it belongs to one event loop."""
    limits = Limits(
        default_page_size=settings.default_page_size,
        max_page_size=settings.max_page_size,
        read_budget=settings.read_budget,
        max_cascade=settings.max_cascade,
        linger_secs=settings.batch_linger_secs,
        max_cost=settings.max_cost,
    )
    blobs = FolderStore(settings.blobs) if settings.blobs else S3Store()
    search = open_index(model, settings.search)
    make = Client if telemetry is None else telemetry.client
    return Graph(model, make(transport, settings.max_in_flight), limits, blobs, search)


def on_table(settings: Settings, work: Callable[[Graph], Awaitable[int]], *, is_compared: bool = True) -> int:
    """Do something with the tables of a model, once they are known to fit it, and give the exit code."""
    transport = open_transport(settings, region(settings))
    graph = graph_of(model_of(settings), transport, settings)

    async def run() -> int:
        if is_compared:
            await compare(graph)
        return await work(graph)

    try:
        return asyncio.run(run())
    finally:
        transport.close()


def region(settings: Settings) -> str | None:
    """Leave the region to boto3, but for an engine of one's own, which has none and only wants a signature."""
    is_set = any(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"))
    return LOCAL_REGION if settings.endpoint_url and not is_set else None


async def compare(graph: Graph) -> None:
    """Compare the tables with the model before serving, so that a wrong name or key shows at once.

    Raises: TableMissing, AccessRefused. A table that does not answer now may answer later.
    """
    for table in graph.model.tables.values():
        if table.period is not None:
            # Which of a time series' tables there are, only the queries will tell.
            continue
        try:
            deadline = asyncio.get_running_loop().time() + LOOK_SECS
            description = await graph.send(DescribeTable(table.name), Meter(deadline=deadline))
        except TableMissing as error:
            raise TableMissing(
                f"{error}. Name the right one in @table(name: …) or with --table, or make it: `tablegraph table apply`"
            ) from None
        except AccessRefused:
            raise
        except StoreError as error:
            sys.stderr.write(f"{table.name}: {error}. Serving all the same; /readyz tells when it answers.\n")
            continue
        if found := list(differences(graph.model, table, description)):
            raise StoreError("\n".join(["the table does not fit the model:", *(f"  {entry}" for entry in found)]))
