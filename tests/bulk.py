"""Tables to load into and to export from, and the commands that do it."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from graph.boto import BotoTransport
from graph.client import Client
from graph.loaders import Graph
from graph.model import Model
from graph.requests import Item, ListTables, Scan
from graph.tables import create_table
from resolvers.sdl import compile_model
from server.cli import main
from server.demo import store
from tests.conftest import apart

_numbers = itertools.count()
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}


@dataclass(frozen=True)
class Place:
    """The tables of a model, and the options that lead there."""

    engine: str
    schema: Path
    model: Model

    @property
    def options(self) -> list[str]:
        return ["--schema", str(self.schema), "--endpoint-url", self.engine, "--table", self.first]

    @property
    def first(self) -> str:
        return next(iter(self.model.tables))

    def load(self, *arguments: object) -> int:
        return main(["load", *self.options, *map(str, arguments)])

    def export(self, *arguments: object) -> int:
        return main(["export", *self.options, *map(str, arguments)])

    def start_load(self, *arguments: object) -> subprocess.Popen[bytes]:
        # It says where it is so often that it can be killed between two times.
        code = (
            "import sys, server.loading; from server.cli import main; server.loading.CHECKPOINT_SECS = 0.05; "
            "sys.exit(main(sys.argv[1:]))"
        )
        return subprocess.Popen(
            [sys.executable, "-c", code, "load", *self.options, *map(str, arguments)],
            env={**os.environ, **CREDENTIALS},
            stderr=subprocess.PIPE,
        )

    def items(self) -> dict[str, list[bytes]]:
        """Every item of every table as DynamoDB returns it, by the pattern of the tables' names."""
        return asyncio.run(self._all())

    async def _all(self) -> dict[str, list[bytes]]:
        graph, transport = self.graph()
        names: list[str] = []
        while True:
            response = await graph.send(ListTables(names[-1] if names else None))
            names += response["TableNames"]
            if "LastEvaluatedTableName" not in response:
                break
        found: dict[str, list[bytes]] = {}
        for number, table in enumerate(self.model.tables.values()):
            period = table.period
            some = [table.name] if period is None else [name for name in names if period.names_table(name)]
            lines = [_line(item) for name in some for item in await _scan(graph, name)]
            found[str(number)] = sorted(lines)
        transport.close()
        return found

    def graph(self) -> tuple[Graph, BotoTransport]:
        transport = BotoTransport(self.engine, "eu-central-1", credentials=("local", "local"))
        return Graph(self.model, Client(transport)), transport


def _line(item: Item) -> bytes:
    return orjson.dumps(item, option=orjson.OPT_SORT_KEYS)


async def _scan(graph: Graph, name: str) -> list[Item]:
    items: list[Item] = []
    start = None
    while True:
        response = await graph.send(Scan(name, 0, 1, start=start, consistent=True))
        items += response["Items"]
        if "LastEvaluatedKey" not in response:
            return items
        start = tuple((key, value["S"]) for key, value in response["LastEvaluatedKey"].items())


def make_place(engine: str, folder: Path, sdl: str, items: Iterable[Item] = ()) -> Place:
    """Make the tables of a model, and of its time series those that some items need, and write the items."""
    number = next(_numbers)
    schema = folder / f"schema-{number}.graphql"
    schema.write_text(apart(sdl, 10_000 + number))
    place = Place(engine, schema, compile_model(schema.read_text(), table=f"bulk-{number}"))

    async def make() -> None:
        graph, transport = place.graph()
        for table in place.model.tables.values():
            if table.period is None:
                await graph.send(create_table(place.model, table))
        await store(graph, list(items))
        transport.close()

    asyncio.run(make())
    return place


def make_months(place: Place, *months: str) -> None:
    """Make the tables of a time series by month."""

    async def make() -> None:
        graph, transport = place.graph()
        for table in place.model.tables.values():
            for month in months if table.period else ():
                name = f"{table.period.before}{month}{table.period.after}" if table.period else ""
                await graph.send(create_table(place.model, table, name))
        transport.close()

    asyncio.run(make())


def write_lines(path: Path, contents: Iterable[Any]) -> Path:
    """Write JSON Lines."""
    path.write_bytes(b"".join(orjson.dumps(content) + b"\n" for content in contents))
    return path
