"""The command line: serve a table, serve the demo, print the schema, check a model."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

from graph.blobs import FolderStore, S3Store
from graph.client import Client, Transport
from graph.errors import AccessRefused, ModelError, StoreError, TableMissing
from graph.imagined import READ_UNIT_BYTES, ImaginedTable, explanation
from graph.loaders import Graph, Limits
from graph.model import Model
from graph.patterns import access_patterns
from graph.requests import DescribeTable
from graph.tables import differences
from resolvers.examples import example_queries
from resolvers.operation import Request
from resolvers.schema import Api, print_sdl
from resolvers.sdl import compile_model
from server.app import build_app, serve
from server.apply import add_apply
from server.bulk import add_bulk
from server.demo import prepare
from server.engine import Engine, EngineFailed, EngineMissing
from server.maintenance import add_maintenance
from server.settings import Settings, SettingsError, all_settings, load_settings
from server.sweep import add_sweep
from server.transports import Way, open_transport

PARTITION_READ_UNITS = 3000
SHARD_PADDING = 1.15

FAILED = 1
MISUSED = 2
LOCAL_REGION = "eu-central-1"
BLOBS = Path(".data/blobs")
"""Where the demo keeps large values."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command that the arguments name and return the process's exit code: 1 failed, 2 misused."""
    options = _parser().parse_args(arguments)
    run: Callable[[argparse.Namespace, Settings], int] = options.run
    try:
        return run(options, load_settings(os.environ, vars(options)))
    except SettingsError as error:
        return _fail(str(error), MISUSED)
    except (FileNotFoundError, IsADirectoryError) as error:
        return _fail(f"there is no file {error.filename}: say which one with --schema or --data", MISUSED)
    except (ModelError, StoreError, EngineMissing, EngineFailed) as error:
        return _fail(str(error), FAILED)


def _fail(message: str, code: int) -> int:
    print(message, file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tablegraph", description="A GraphQL API over a graph-shaped DynamoDB table.")
    commands = parser.add_subparsers(required=True, metavar="command")
    _command(commands, "serve", _serve, "serve an existing table; no table is created", settings=True)
    demo = _command(commands, "demo", _demo, "serve a model on the local engine, with its demo data", settings=True)
    demo.add_argument(
        "--data", type=Path, action="append", default=[], metavar="FILE", help="items to load (.jsonl, .py)"
    )
    demo.add_argument("--queries", type=Path, metavar="FOLDER", help="example queries (.graphql) for GraphiQL's tabs")
    demo.add_argument("--db", type=Path, metavar="FILE", help="where to keep the table; in memory when left out")
    _command(commands, "schema", _schema, "print the public GraphQL schema of a model")
    _command(commands, "check", _check, "check a model file: its mistakes, or its access patterns")
    explain = _command(
        commands, "explain", _explain, "print the requests of a query, and their read units, without running it"
    )
    explain.add_argument("query", help="a GraphQL query, or @FILE")
    explain.add_argument("--variables", default="{}", metavar="JSON", help="the query's variables")
    explain.add_argument("--length", type=int, default=10, metavar="N", help="items that every list is taken to hold")
    explain.add_argument(
        "--item-bytes", type=int, default=400, metavar="N", help="size that every item is taken to have"
    )
    add_maintenance(commands, _command, _on_table)
    add_apply(commands, _command, partial(_on_table, is_compared=False))
    add_sweep(commands, _command, _on_table)
    add_bulk(commands, _region)
    shards = commands.add_parser("shards", help="compute how many shards a hot partition needs")
    shards.set_defaults(run=_shards)
    shards.add_argument("--items", type=float, required=True, help="items of the type in the table, like 3e6")
    shards.add_argument("--share", type=float, required=True, help="the share of them that one query reads, like 0.2")
    shards.add_argument(
        "--size", type=float, required=True, help="average bytes that the query reads for each, like 250"
    )
    return parser


def _command(
    commands: Any, name: str, run: Callable[[argparse.Namespace, Settings], int], text: str, *, settings: bool = False
) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    command.set_defaults(run=run)
    for setting in all_settings():
        if settings or setting.name == "schema":
            default = "" if setting.default is None else f" (default: {setting.default})"
            help_ = f"{setting.doc}{default} [{setting.variable}]".replace("%", "%%")
            command.add_argument(setting.flag, dest=setting.name, metavar="VALUE", help=help_)
    return command


def _model(settings: Settings) -> Model:
    return compile_model(settings.schema.read_text(), str(settings.schema), table=settings.table)


def _graph(model: Model, transport: Transport, settings: Settings) -> Graph:
    limits = Limits(
        default_page_size=settings.default_page_size,
        max_page_size=settings.max_page_size,
        read_budget=settings.read_budget,
        max_cascade=settings.max_cascade,
        linger_secs=settings.batch_linger_secs,
    )
    blobs = FolderStore(settings.blobs) if settings.blobs else S3Store()
    return Graph(model, Client(transport, settings.max_in_flight), limits, blobs)


def _schema(_: argparse.Namespace, settings: Settings) -> int:
    sys.stdout.write(print_sdl(_model(settings)))
    return 0


def _check(_: argparse.Namespace, settings: Settings) -> int:
    model = _model(settings)
    print(
        f"{settings.schema}: {len(model.nodes)} node types, {len(model.items) - len(model.nodes)} edge types, "
        f"{len(model.relationships)} relationships and {len(model.finds)} access patterns: no mistakes\n"
    )
    rows = [("FIELD", "REQUESTS", "INDEX", "KEY CONDITION", "THEN, FOR THE NODES")]
    rows += [
        (entry.field, entry.requests, entry.index, entry.key_condition, entry.then) for entry in access_patterns(model)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _explain(options: argparse.Namespace, settings: Settings) -> int:
    model = _model(settings)
    query = Path(options.query[1:]).read_text() if options.query.startswith("@") else options.query
    table = ImaginedTable(model, options.length, options.item_bytes)
    api = Api(Graph(model, table, Limits(linger_secs=1.0)))
    try:
        variables = json.loads(options.variables)
    except ValueError as error:
        return _fail(f"--variables: expected a JSON object, got {options.variables!r}: {error}", MISUSED)
    response = asyncio.run(api.execute(Request(query, variables)))
    if "errors" in response.body:
        return _fail("\n".join(error["message"] for error in response.body["errors"]), FAILED)
    print(explanation(table, options.length, options.item_bytes))
    return 0


def _shards(options: argparse.Namespace, _: Settings) -> int:
    """Compute N = items read at once / items that one partition gives a second. Source: AWS, write sharding of GSIs."""
    if not (options.items > 0 and 0 < options.share <= 1 and options.size > 0):
        return _fail("expected --items and --size above 0, and --share above 0 and at most 1", MISUSED)
    # A read unit gives several small items, or a part of a large one.
    per_unit = options.size <= READ_UNIT_BYTES and math.floor(READ_UNIT_BYTES / options.size)
    per_second = PARTITION_READ_UNITS * (per_unit or 1 / math.ceil(options.size / READ_UNIT_BYTES))
    exact = options.items * options.share / per_second
    needed = math.ceil(exact)
    print(f"{needed} shards are needed ({exact:.1f}); {math.ceil(needed * SHARD_PADDING)} leave room for uneven data")
    return 0


def _serve(_: argparse.Namespace, settings: Settings) -> int:
    model = _model(settings)
    transport = open_transport(settings, _region(settings))
    asyncio.run(_compare(_graph(model, transport, settings)))
    return _run(model, transport, settings, list(example_queries(model)))


def _on_table(settings: Settings, work: Callable[[Graph], Awaitable[int]], *, is_compared: bool = True) -> int:
    """Do something with the tables of a model, once they are known to fit it, and give the exit code."""
    transport = open_transport(settings, _region(settings))
    graph = _graph(_model(settings), transport, settings)

    async def run() -> int:
        if is_compared:
            await _compare(graph)
        return await work(graph)

    try:
        return asyncio.run(run())
    finally:
        transport.close()


def _region(settings: Settings) -> str | None:
    """Leave the region to boto3, but for an engine of one's own, which has none and only wants a signature."""
    is_set = any(os.environ.get(name) for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"))
    return LOCAL_REGION if settings.endpoint_url and not is_set else None


async def _compare(graph: Graph) -> None:
    """Compare the tables with the model before serving, so that a wrong name or key shows at once.

    Raises: TableMissing, AccessRefused. A table that does not answer now may answer later.
    """
    for table in graph.model.tables.values():
        if table.period is not None:
            # Which of a time series' tables there are, only the queries will tell.
            continue
        try:
            description = await graph.send(DescribeTable(table.name))
        except TableMissing as error:
            raise TableMissing(
                f"{error}. Name the right one in @table(name: …) or with --table, or make it: `tablegraph apply`"
            ) from None
        except AccessRefused:
            raise
        except StoreError as error:
            print(f"{table.name}: {error}. Serving all the same; /readyz tells when it answers.", file=sys.stderr)
            continue
        if found := list(differences(graph.model, table, description)):
            raise StoreError("\n".join(["the table does not fit the model:", *(f"  {entry}" for entry in found)]))


def _run(model: Model, transport: Way, settings: Settings, tabs: list[dict[str, str]]) -> int:
    # A graph of its own: the slots of a client belong to one event loop, and that of the server begins only now.
    graph = _graph(model, transport, settings)
    settings = replace(settings, title=settings.title or next(iter(model.tables)))
    api = Api(
        graph,
        timeout_secs=settings.operation_timeout_secs,
        introspection=settings.introspection,
        mutations=settings.mutations,
    )
    try:
        return serve(build_app(api, settings, tabs), settings)
    finally:
        transport.close()


def _demo(options: argparse.Namespace, settings: Settings) -> int:
    model = _model(settings)
    settings = replace(settings, blobs=settings.blobs or BLOBS)
    tabs = _read_queries(options.queries) if options.queries else list(example_queries(model))
    if endpoint := settings.endpoint_url or os.environ.get("AWS_ENDPOINT_URL_DYNAMODB"):
        return _serve_demo(model, endpoint, None, options, settings, tabs)
    # The engine lives in a loop of its own: the server's begins later and ends earlier.
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Engine(db_path=options.db)) as engine:
        watch = _Watch(portal, engine)
        code = _serve_demo(model, engine.endpoint_url, options.db, options, settings, tabs)
        return FAILED if watch.has_failed else code


def _serve_demo(
    model: Model,
    endpoint: str,
    db: Path | None,
    options: argparse.Namespace,
    settings: Settings,
    tabs: list[dict[str, str]],
) -> int:
    local = replace(settings, endpoint_url=endpoint)
    transport = open_transport(local, LOCAL_REGION, credentials=("local", "local"))
    marker = None if db is None else db.with_name(db.name + ".loaded")
    prepare(_graph(model, transport, settings), options.data, marker)
    print(_greeting(settings, tabs), file=sys.stderr)
    return _run(model, transport, settings, tabs)


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


def _read_queries(folder: Path) -> list[dict[str, str]]:
    """Read the example queries of a folder, in the order of their file names: `10-container.graphql` is "container"."""
    return [
        {"title": path.stem.lstrip("0123456789-").replace("-", " "), "query": path.read_text()}
        for path in sorted(folder.glob("*.graphql"))
    ]


def _greeting(settings: Settings, tabs: list[dict[str, str]]) -> str:
    lines = ["", f"  GraphQL and GraphiQL: http://{settings.host}:{settings.port}/graphql", ""]
    if tabs:
        lines += [
            "  A query to begin with:",
            "",
            *(f"    {line}" for line in tabs[0]["query"].strip().splitlines()),
            "",
        ]
    return "\n".join(lines)
