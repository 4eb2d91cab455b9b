"""Worlds: a model with its data, served by both executors, in memory or by an engine."""

from __future__ import annotations

import inspect
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from graphql import GraphQLSchema
from graphql.type.directives import GraphQLDisableErrorPropagationDirective

from graph.client import Client, Transport
from graph.loaders import Graph, Limits
from graph.model import Model
from graph.patterns import has_lookup, lookup_arguments, lookup_name
from graph.requests import Item, PutItems
from graph.seals import Seals
from graph.tables import create_table
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.conftest import apart
from tests.differential_data import Data, Filler, at
from tests.differential_models import Source, choose
from tests.differential_queries import learn
from tests.differential_spoil import Spoiler
from tests.differential_store import Shelves, Watched
from tests.differential_values import Known, plain_text

EXECUTORS = ["reference", "plan"]


def make_api(graph: Graph, executor: str) -> Api:
    """Make the API with one of the executors, as far as it knows any."""
    known = "executor" in inspect.signature(Api).parameters
    more: dict[str, Any] = {"executor": executor} if known else {}
    return Api(graph, timeout_secs=None, mutations=False, **more)


def schema_of(api: Api) -> GraphQLSchema:
    """Give the schema of an API."""
    return api._schema


@dataclass
class World:
    """A model with its data, served by both executors, and by a lenient reference.

    The lenient one takes the directive by which no error reaches beyond its own field.
    """

    source: Source
    model: Model
    data: Data
    graph: Graph
    watched: Watched
    known: Known
    is_on_engine: bool = False
    apis: list[Api] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.apis = [make_api(self.graph, executor) for executor in EXECUTORS]
        self.lenient = make_api(self.graph, "reference")
        schema = schema_of(self.lenient)
        schema.directives = (*schema.directives, GraphQLDisableErrorPropagationDirective)

    @property
    def schema(self) -> GraphQLSchema:
        """Give the schema."""
        return schema_of(self.apis[0])


def make_world(seed: int, tally: Counter[str], client: Client | None = None, number: int = 0) -> World:
    """Make the world of a seed: in memory, or for the tables that a client reaches, with names of their own."""
    dice = Random(f"world {seed}")
    source, model = choose(dice)
    if client is not None:
        sdl = apart(source.sdl, number)
        source, model = replace(source, sdl=sdl), compile_model(sdl, table=f"differential-{number}")
    # A die of its own: the worlds of known seeds stay as they are.
    if Random(f"keys {seed}").random() < 0.3:
        model = replace(model, seals=Seals([b"k" * 32]))
        tally["worlds that sign"] += 1
    data = Filler(model, dice).fill(dice.choice([3, 6, 6, 10, 10, 50]))
    if client is None:
        source.add_items(model, data)
    if dice.random() < 0.6:
        spoiler = Spoiler(model, dice)
        spoiler.spoil(data.tables, dice.choice([0.05, 0.2, 0.5]))
        tally.update({f"items {name}": count for name, count in spoiler.tally.items()})
    shelves = Shelves(model, data.tables, dice.choice([10**6, 10**6, 7, 3, 1]))
    limits = Limits(
        default_page_size=dice.choice([50, 50, 2, 4]),
        read_budget=dice.choice([5000, 5000, 30, 6]),
        scan_budget=dice.choice([100_000, 100_000, 12]),
        linger_secs=2.0,
    )
    # A thread that unpacks an object is not waited for by a clock that leaps.
    has_objects = any(entry.blob for type_ in model.items.values() for entry in type_.fields.values())
    watched = Watched(client or shelves, is_slow=dice.random() < 0.3 and not has_objects and client is None)
    watched.leaves_keys = watched.is_slow and dice.random() < 0.3
    tally["worlds that leave keys"] += watched.leaves_keys
    tally[f"models {source.kind}"] += 1
    graph = Graph(model, watched, limits, data.objects)
    return World(source, model, data, graph, watched, Known(data.records), client is not None)


_numbers = itertools.count()


async def world_on_engine(seed: int, tally: Counter[str], transport: Transport) -> World:
    """Make the world of a seed with tables of its own on an engine."""
    # Beyond the numbers of the tables that other tests make.
    number = 100_000 + next(_numbers)
    world = make_world(seed, tally, Client(transport), number)
    tables = {table.name: table for table in world.model.tables.values() if table.period is None}
    tables |= {
        name: table
        for name in world.data.tables
        for table in world.model.tables.values()
        if table.period is not None and table.period.names_table(name)
    }
    shelves = Shelves(world.model, world.data.tables)
    for name, table in tables.items():
        await world.graph.send(create_table(world.model, table, name))
        items: Iterator[Item] = (item for (home, _), item in shelves.items.items() if home == name)
        while batch := tuple(itertools.islice(items, 25)):
            await world.graph.send(PutItems(name, batch))
    return world


async def prime(world: World) -> None:
    """Learn some ids of nodes that are there."""
    query = world.schema.query_type
    assert query is not None
    for item in world.model.items.values():
        if not item.is_node or not has_lookup(world.model, item):
            continue
        name = lookup_name(item.name)
        for record in world.known.records.get(item.name, [])[:4]:
            given = []
            for argument, (path, required) in lookup_arguments(world.model, item).items():
                value = at(record, path)
                if required and value is not None:
                    given.append(f"{argument}: {plain_text(query.fields[name].args[argument].type, value)}")
            response = await world.apis[0].execute(Request(f"{{ {name}({', '.join(given)}) {{ id }} }}"))
            learn(world.known, response.body.get("data"))
