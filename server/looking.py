"""The commands that look at a model and send nothing: `schema`, `check`, `explain` and `shards`."""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any

from graph.identity import ANONYMOUS, Identity
from graph.imagined import ImaginedTable, explanation
from graph.loaders import Graph, Limits
from graph.model import CopyMode
from graph.patterns import access_patterns
from graph.search.imagined import ImaginedIndex
from graph.sharding import shards_needed
from graph.writes.dependents import is_made_of_others
from resolvers.operation import Request
from resolvers.schema import Api, print_sdl
from server.api import api_of
from server.settings import Settings
from server.tables import model_of

SHARD_PADDING = 1.15

FAILED = 1
MISUSED = 2


def _fail(message: str, code: int) -> int:
    sys.stderr.write(f"{message}\n")
    return code


def schema(_: argparse.Namespace, settings: Settings) -> int:
    """Print the public GraphQL schema."""
    model = model_of(settings)
    sys.stdout.write(print_sdl(model, mutations=settings.mutations, federation=settings.federation))
    return 0


def check(_: argparse.Namespace, settings: Settings) -> int:
    """Print the table of access patterns, once model and trusted documents are known to be right."""
    model = model_of(settings)
    # Made for its refusals: nothing is asked of it.
    api_of(Graph(model, ImaginedTable(model, 1, 1)), settings)
    sys.stdout.write(
        f"{settings.schema}: {len(model.nodes)} node types, {len(model.items) - len(model.nodes)} edge types, "
        f"{len(model.relationships)} relationships and {len(model.finds)} access patterns: no mistakes\n\n"
    )
    for table in model.tables.values():
        if table.copies is CopyMode.STREAM:
            names = [name for name, type_ in model.items.items() if is_made_of_others(model, type_)]
            sys.stdout.write(f"What is made of others follows by the stream of {table.name}: {', '.join(names)}\n\n")
    rows = [("FIELD", "REQUESTS", "INDEX", "KEY CONDITION", "THEN, FOR THE NODES")]
    rows += [
        (entry.field, entry.requests, entry.index, entry.key_condition, entry.then) for entry in access_patterns(model)
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        sys.stdout.write(f"{line.rstrip()}\n")
    return 0


def explain(options: argparse.Namespace, settings: Settings) -> int:
    """Print the requests of a query."""
    model = model_of(settings)
    query = Path(options.query[1:]).read_text() if options.query.startswith("@") else options.query
    table = ImaginedTable(model, options.length, options.item_bytes)
    graph = Graph(model, table, Limits(linger_secs=1.0), search=ImaginedIndex(table))
    api = Api(graph, executor=settings.executor, limits=settings.document_limits, federation=settings.federation)
    try:
        variables = _json_object("--variables", options.variables)
        identity = _caller(options)
    except ValueError as error:
        return _fail(str(error), MISUSED)
    response = asyncio.run(api.execute(Request(query, variables, identity=identity)))
    if "errors" in response.body:
        return _fail("\n".join(error["message"] for error in response.body["errors"]), FAILED)
    sys.stdout.write(explanation(table, options.length, options.item_bytes) + "\n")
    return 0


def _json_object(name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name}: expected a JSON object, got {text!r}: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name}: expected a JSON object, got {text!r}")
    return found


def _caller(options: argparse.Namespace) -> Identity:
    """Make the caller that the query is explained for. Raises ValueError."""
    roles = frozenset(role.strip() for role in options.roles.split(",") if role.strip())
    if options.claims is None and not roles:
        return ANONYMOUS
    claims = _json_object("--claims", options.claims or "{}")
    return Identity(str(claims.get("sub", "somebody")), roles, claims)


def shards(options: argparse.Namespace, _: Settings) -> int:
    """Print how many shards are needed, and how many leave room."""
    if not (options.items > 0 and 0 < options.share <= 1 and options.size > 0):
        return _fail("expected --items and --size above 0, and --share above 0 and at most 1", MISUSED)
    exact = shards_needed(options.items * options.share, options.size)
    needed = math.ceil(exact)
    roomy = math.ceil(needed * SHARD_PADDING)
    sys.stdout.write(f"{needed} shards are needed ({exact:.1f}); {roomy} leave room for uneven data\n")
    return 0
