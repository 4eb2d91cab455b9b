"""The command `demo`: a model with its demo data on the local engine."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio.from_thread import BlockingPortal, start_blocking_portal

from graph.model import Model
from resolvers.examples import example_queries
from server.demo import prepare
from server.engine import Engine, EngineFailed, EngineMissing
from server.production import check_production
from server.serving import Tabs, run, unused
from server.settings import Settings
from server.tables import LOCAL_REGION, graph_of, model_of
from server.transports import open_transport

FAILED = 1
BLOBS = Path(".data/blobs")
"""Where the demo keeps large values."""

POLL_MS = 50
"""An engine of one's own takes as many requests as one likes."""


def serve_demo(options: argparse.Namespace, settings: Settings) -> int:
    """Serve a model with its demo data until a signal comes, and give the exit code of the process."""
    check_production(settings)
    model = model_of(settings)
    settings = replace(settings, blobs=settings.blobs or BLOBS)
    with _search_place(options.db, settings) as search:
        return _serve_demo(model, options, replace(settings, search=search))


@contextmanager
def _search_place(db: Path | None, settings: Settings) -> Iterator[str]:
    """Say where the search index lies: beside the tables, and in a folder that goes with tables in memory."""
    if settings.search != Settings().search:
        yield settings.search
    elif db is not None:
        yield str(db.with_name(db.name + ".search"))
    else:
        with TemporaryDirectory(prefix="tablegraph-") as folder:
            yield f"{folder}/search.db"


def _serve_demo(model: Model, options: argparse.Namespace, settings: Settings) -> int:
    tabs = _read_queries(options.queries) if options.queries else list(example_queries(model))
    if endpoint := settings.endpoint_url or os.environ.get("AWS_ENDPOINT_URL_DYNAMODB"):
        return _serve(model, endpoint, None, options, settings, tabs)
    # The engine lives in a loop of its own: the server's begins later and ends earlier.
    try:
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(Engine(db_path=options.db)) as engine:
            watch = _Watch(portal, engine)
            code = _serve(model, engine.endpoint_url, options.db, options, settings, tabs)
            return FAILED if watch.has_failed else code
    except (EngineMissing, EngineFailed) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED


def _serve(
    model: Model,
    endpoint: str,
    db: Path | None,
    options: argparse.Namespace,
    settings: Settings,
    tabs: Tabs,
) -> int:
    local = replace(settings, endpoint_url=endpoint)
    opened = partial(open_transport, local, LOCAL_REGION, credentials=("local", "local"))
    transport = opened()
    marker = None if db is None else db.with_name(db.name + ".loaded")
    prepare(graph_of(model, transport, settings), options.data, marker)
    sys.stderr.write(_greeting(settings, tabs) + "\n")
    if settings.stream_poll_ms == Settings().stream_poll_ms:
        settings = replace(settings, stream_poll_ms=POLL_MS)
    return run(model, unused(transport, opened, settings), opened, settings, tabs)


class _Watch:
    """Ends the server when the engine is given up: it would answer nothing but errors."""

    def __init__(self, portal: BlockingPortal, engine: Engine) -> None:
        self.has_failed = False
        self._engine = engine
        portal.start_task_soon(self._wait)

    async def _wait(self) -> None:
        try:
            await self._engine.wait()
        except EngineFailed:
            self.has_failed = True
            os.kill(os.getpid(), signal.SIGTERM)


def _read_queries(folder: Path) -> Tabs:
    """Read the example queries of a folder, in the order of their file names: `10-container.graphql` is "container"."""
    return [
        {"title": path.stem.lstrip("0123456789-").replace("-", " "), "query": path.read_text()}
        for path in sorted(folder.glob("*.graphql"))
    ]


def _greeting(settings: Settings, tabs: Tabs) -> str:
    url = f"http://{settings.host}:{settings.port}"
    lines = [
        "",
        f"  GraphQL and GraphiQL: {url}/graphql",
        f"  The graph, seen: {url}/graph, its model: {url}/schema",
        "",
    ]
    if tabs:
        lines += [
            "  A query to begin with:",
            "",
            *(f"    {line}" for line in tabs[0]["query"].strip().splitlines()),
            "",
        ]
    return "\n".join(lines)
