"""The command `serve`: an existing table as an API."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from graph.loaders import Graph
from graph.model import Model
from graph.outline import outline
from graph.search.index import searched_types
from resolvers.examples import example_queries
from server.api import api_of
from server.app import build_app
from server.following import Following
from server.process import serve
from server.production import check_production
from server.settings import Settings
from server.tables import compare, graph_of, model_of, region
from server.transports import Way, open_transport

if TYPE_CHECKING:
    from server.telemetry.telemetry import Telemetry

Tabs = list[dict[str, str]]


def serve_table(_: argparse.Namespace, settings: Settings) -> int:
    """Serve the table until a signal comes, and give the exit code of the process."""
    check_production(settings)
    model = model_of(settings)
    opened = partial(open_transport, settings, region(settings))
    transport = opened()
    asyncio.run(_look(graph_of(model, transport, settings)))
    return run(model, unused(transport, opened, settings), opened, settings, list(example_queries(model)))


async def _look(graph: Graph) -> None:
    """Compare the tables with the model, and say which searches will be refused: no table is scanned unasked."""
    await compare(graph)
    if graph.search is not None:
        for of in searched_types(graph.model).values():
            if problem := (await graph.search.status(of)).problem:
                sys.stderr.write(f"{problem}. Serving all the same, without this search.\n")
        await graph.search.close()


def unused(transport: Way, opened: Callable[..., Way], settings: Settings) -> Way:
    """Give a transport that the server may have: workers are forked, and threads and connections stay behind."""
    if settings.workers == 1:
        return transport
    transport.close()
    return opened()


def run(model: Model, transport: Way, opened: Callable[..., Way], settings: Settings, tabs: Tabs) -> int:
    """Serve a model until a signal comes, and give the exit code of the process; `opened` makes further transports."""
    # A graph of its own: the slots of a client belong to one event loop, and that of the server begins only now.
    telemetry = _telemetry_of(settings)
    graph = graph_of(model, transport, settings, telemetry)
    # In production no page tells the table's name either.
    settings = replace(settings, title=settings.title or ("" if settings.production else next(iter(model.tables))))
    following = Following(model, transport, partial(opened, service="dynamodbstreams"), settings, telemetry)
    api = api_of(graph, settings, following)
    try:
        shown = outline(model)
        app = build_app(api, settings, tabs, outline=shown, following=following, telemetry=telemetry)
        return serve(app, settings)
    finally:
        transport.close()


def _telemetry_of(settings: Settings) -> Telemetry | None:
    """Make what shows what the server does, if anything is to."""
    if not settings.is_observed:
        return None
    # Imported only where it is asked for: a server starts sooner without.
    from server.telemetry.telemetry import Telemetry

    return Telemetry(settings)
