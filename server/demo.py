"""The demo's tables: made from the model on the local engine, and filled once from files."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import runpy
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from graph.client import Meter, back_off
from graph.entity import read_entity
from graph.errors import TableMissing
from graph.loaders import Graph
from graph.model import Model, Table
from graph.requests import DescribeTable, Item, PutItems
from graph.tables import create_table

BATCH_ITEMS = 25
WRITERS = 4


def read_items(path: Path) -> Iterator[Item]:
    """Read items as DynamoDB's JSON: one a line of a .jsonl file, or all that `items()` of a .py file yields."""
    if path.suffix == ".py":
        yield from runpy.run_path(str(path))["items"]()
        return
    with path.open("rb") as lines:
        for line in lines:
            if line.strip():
                yield orjson.loads(line)


def prepare(graph: Graph, data: list[Path], marker: Path | None) -> None:
    """Make the tables that are missing and load the data, unless the marker says that just this data was loaded.

    Loading again after a kill writes the same items to the same keys.
    """
    state = hashlib.sha256(b"".join(path.read_bytes() for path in data)).hexdigest()
    is_loaded = marker is not None and marker.exists() and marker.read_text() == state
    asyncio.run(_prepare(graph, [] if is_loaded else data))
    if marker is not None:
        marker.write_text(state)


async def _prepare(graph: Graph, data: list[Path]) -> None:
    for table in graph.model.tables.values():
        if table.period is None:
            await _make(graph, table, table.name)
    await store(graph, list(itertools.chain.from_iterable(map(read_items, data))))


async def store(graph: Graph, items: list[Item]) -> None:
    """Write items, each to the table of its type; those of a time series that are missing are made."""
    if not items:
        return
    placed: dict[str, list[Item]] = {}
    for item in items:
        table, name = _home(graph.model, item)
        if name not in placed and table.period is not None:
            await _make(graph, table, name)
        placed.setdefault(name, []).append(item)
    batches = iter(
        [
            (name, some[start : start + BATCH_ITEMS])
            for name, some in placed.items()
            for start in range(0, len(some), BATCH_ITEMS)
        ]
    )
    progress = Progress("loading the demo's items", len(items))

    async def write() -> None:
        for name, batch in batches:
            await _put(graph, name, batch)
            progress.add(len(batch))

    await asyncio.gather(*(write() for _ in range(WRITERS)))
    progress.end()


def _home(model: Model, item: Item) -> tuple[Table, str]:
    """Name the table of the type that an item fits; an item of no type goes to the first one."""
    for type_ in model.items.values():
        for layout in type_.layouts:
            entity = read_entity(model, layout, item)
            if entity is not None and entity.key is not None:
                return model.tables[layout.table], entity.key[0]
    first = next(iter(model.tables.values()))
    return first, first.name


async def _make(graph: Graph, table: Table, name: str) -> None:
    try:
        await graph.send(DescribeTable(name))
    except TableMissing:
        await graph.send(create_table(graph.model, table, name))
        await _until_active(graph, name)


async def _until_active(graph: Graph, name: str) -> None:
    while True:
        described = (await graph.send(DescribeTable(name)))["Table"]
        states = [
            described["TableStatus"],
            *(index["IndexStatus"] for index in described.get("GlobalSecondaryIndexes", ())),
        ]
        if all(state == "ACTIVE" for state in states):
            return
        await asyncio.sleep(0.2)


async def _put(graph: Graph, table: str, batch: list[Item]) -> None:
    meter = Meter()
    attempt = 0
    left = batch
    while left:
        response = await graph.send(PutItems(table, tuple(left)), meter)
        left = [entry["PutRequest"]["Item"] for entry in response.get("UnprocessedItems", {}).get(table, ())]
        if left:
            attempt += 1
            await back_off(attempt, meter)


class Progress:
    """A line that counts up where a person looks, and nothing elsewhere until the end."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._began = self._shown = time.monotonic()
        self._is_seen = sys.stderr.isatty()

    def add(self, count: int) -> None:
        """Count on, and show it ten times a second at the most."""
        self._done += count
        now = time.monotonic()
        if self._is_seen and (now - self._shown > 0.1 or self._done == self._total):
            self._shown = now
            filled = 30 * self._done // self._total
            bar = "█" * filled + "░" * (30 - filled)
            sys.stderr.write(f"\r{self._what} {bar} {self._done:,} of {self._total:,}")
            sys.stderr.flush()

    def end(self) -> None:
        """Finish the line."""
        seconds = time.monotonic() - self._began
        start = "\n" if self._is_seen else ""
        sys.stderr.write(f"{start}{self._what}: {self._done:,} in {seconds:.1f} s\n")
