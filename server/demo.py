"""The demo's tables: made from the model on the local engine, and filled once from files."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

from graph.bulk.items import Placed, key_of
from graph.bulk.pump import Pump
from graph.entity import every_layout, read_entity
from graph.errors import TableMissing
from graph.loaders import Graph
from graph.model import Model, Table
from graph.requests import DescribeTable, Item, UpdateTable
from graph.search.index import SearchIndex, searched_types
from graph.sizes import item_bytes
from graph.tables import STREAM, create_table
from server.progress import Progress

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
    names = await store(graph, list(itertools.chain.from_iterable(map(read_items, data))))
    # Not before: the local engine takes the longer for a write the more its stream holds.
    for name in names | {table.name for table in graph.model.tables.values() if table.period is None}:
        await turn_on_stream(graph, name)
    if graph.search is not None:
        await _index(graph, graph.search, is_new=bool(data))


async def _index(graph: Graph, search: SearchIndex, *, is_new: bool) -> None:
    """Build the search index with new data, and where it cannot be searched."""
    states = [await search.status(of) for of in searched_types(graph.model).values()]
    if is_new or any(state.problem for state in states):
        # Only the demo of a model that is searched wants what walks through tables.
        from graph.maintenance.walk import Walk
        from graph.search.rebuild import rebuild

        await rebuild(Walk(graph, WRITERS))
    await search.close()


async def turn_on_stream(graph: Graph, name: str) -> None:
    """Have a table tell its changes, unless it does."""
    described = (await graph.send(DescribeTable(name)))["Table"]
    if not (described.get("StreamSpecification") or {}).get("StreamEnabled"):
        await graph.send(UpdateTable(name, {"StreamSpecification": STREAM}))
        await _until_active(graph, name)


async def store(graph: Graph, items: list[Item]) -> set[str]:
    """Write items, each to the table of its type, and name these; those of a time series that are missing are made."""
    if not items:
        return set()
    homes = [_home(graph.model, item) for item in items]
    for table, name in dict.fromkeys(homes):
        if table.period is not None:
            await _make(graph, table, name)
    progress = Progress("loading the demo's items", len(items))
    pump = Pump(graph.model, graph, WRITERS, progress.add)
    placed = (
        [Placed(name, key_of(name, table.key_attributes, item), item, item_bytes(item))]
        for (table, name), item in zip(homes, items, strict=True)
    )
    await pump.run(enumerate(placed, 1))
    progress.end()
    sys.stderr.write(f"loading the demo's items: {len(items):,} in {progress.seconds:.1f} s\n")
    return {name for _, name in homes}


def _home(model: Model, item: Item) -> tuple[Table, str]:
    """Name the table of the type that an item fits; an item of no type goes to the first one."""
    for type_ in model.items.values():
        for layout in every_layout(type_):
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
