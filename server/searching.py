"""`tablegraph search`: the search index is built anew, or looked at."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from graph.loaders import Graph
from graph.maintenance.walk import Walk
from graph.search.index import searched_types
from graph.search.rebuild import index_of, rebuild
from server.maintenance import SEGMENTS, OnTable, segments

READY = 0
NOT_READY = 1


def add_search(commands: Any, command: Callable[..., argparse.ArgumentParser], on_table: OnTable) -> None:
    """Add the commands to the command line."""

    def running(work: Callable[[Graph, argparse.Namespace], Awaitable[int]]) -> Callable[..., int]:
        return lambda options, settings: on_table(settings, lambda graph: work(graph, options))

    text = "build the index of @search anew, or say how it stands"
    search = commands.add_parser("search", help=text, description=text).add_subparsers(required=True, metavar="what")
    text = "build it from the tables, beside the old one, which serves until the new one is whole"
    parser = command(search, "rebuild", running(_rebuild), text, settings=True)
    help_ = f"parts read side by side (default: {SEGMENTS})"
    parser.add_argument("--segments", type=segments, default=SEGMENTS, metavar="N", help=help_)
    command(search, "status", running(_status), "say how it stands", settings=True)


async def _rebuild(graph: Graph, options: argparse.Namespace) -> int:
    walk = Walk(graph, options.segments)
    counts = await rebuild(walk)
    for name, count in counts.items():
        sys.stdout.write(f"{name}: {count:,} documents\n")
    tally = walk.tally
    sys.stderr.write(
        f"{tally.items:,} items in {tally.secs:.1f} s, {tally.items / tally.secs:,.0f} items/s\n"
        f"cost: {tally.requests:,} requests, {tally.read_units:,.1f} read units\n"
    )
    return READY


async def _status(graph: Graph, _: argparse.Namespace) -> int:
    found = [await index_of(graph).status(of) for of in searched_types(graph.model).values()]
    for one in found:
        building = "; a new one is being built" if one.is_building else ""
        sys.stdout.write(f"{one.of.type_name}: {one.problem or f'{one.documents:,} documents'}{building}\n")
    return NOT_READY if any(one.problem for one in found) else READY
