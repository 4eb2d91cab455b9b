"""Rebuilding: a new index of all searched types is filled from the table, and takes the place of the old one.

Nothing is lost that is written meanwhile, whoever keeps the index, and wherever: from the moment the new index exists,
changes go into both. A change that was kept before that moment is in the table, which is then read consistently; one
that comes after it wins over what is read. Should the stream be told again from earlier on, it ends at the same state;
and where nobody has read it yet, it is read from its beginning.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from graph.errors import AccessRefused, SearchUnavailable
from graph.loaders import Graph, Operation
from graph.maintenance.walk import Walk
from graph.model import Table
from graph.requests import DescribeTable, Item
from graph.search.index import SearchIndex, searched_types
from graph.search.upkeep import core_documents
from graph.streams.lease import Lease
from graph.streams.shards import Progress


async def _begin_to_follow(graph: Graph, tables: Iterable[str]) -> None:
    """Have the streams be read from their beginning, unless they have been read before.

    The first reader would begin with what comes next, and what was written since the rebuild would be lost.
    """
    beginnings: dict[str, Progress] = {}
    for table in tables:
        described = (await graph.send(DescribeTable(table)))["Table"]
        if arn := described.get("LatestStreamArn"):
            beginnings[table] = Progress(arn)
    # Who may only read leaves it to those who follow.
    with suppress(AccessRefused):
        await Lease(graph).begin(beginnings)


def index_of(graph: Graph) -> SearchIndex:
    """Give the search index of a graph. Raises SearchUnavailable."""
    if graph.search is None:
        raise SearchUnavailable("no type of the model is searched: expected @search on a type or a field. Add it")
    return graph.search


async def rebuild(walk: Walk) -> Counter[str]:
    """Build the indexes of all searched types anew, and count the documents of each.

    Cost:   a consistent Scan of the tables that these types lie in, in as many segments as the walk has.
    Raises: SearchUnavailable, StoreError; the old indexes are then as they were.
    """
    index, model = index_of(walk.graph), walk.graph.model
    types = list(searched_types(model).values())
    counts: Counter[str] = Counter({of.type_name: 0 for of in types})
    await _begin_to_follow(walk.graph, {of.table for of in types})
    building = await index.rebuild(types)

    async def visit(_: Operation, table: Table, name: str, items: list[Item]) -> None:
        documents = core_documents(model, table, items)
        await building.add(documents)
        counts.update(document.of.type_name for document in documents if document.texts is not None)

    try:
        await walk.through(visit, only={of.table for of in types}, consistent=True)
        await building.finish()
    except BaseException:
        await asyncio.shield(building.abandon())
        raise
    return counts
