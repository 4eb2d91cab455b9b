"""The same of writes: what a tenant's mutations do, and answer, does not depend on the other's items, nor touch them.

Two tables on an engine, one with the items of two tenants and one without those of the other, take the same random
mutations of one tenant, whose arguments name whatever there is of both. After each the answers must be the same, the
other's items as they were, and at the end all that is left the same in both tables.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from graphql import (
    GraphQLInputType,
    GraphQLObjectType,
    get_named_type,
    is_input_object_type,
    is_leaf_type,
    is_non_null_type,
    is_required_argument,
    is_required_input_field,
)

from graph.client import Client, Transport
from graph.keys import OURS as KEPT_BY_US
from graph.loaders import Graph, Limits
from graph.model import Field, ItemType, Model
from graph.requests import Item, PutItems
from graph.tables import create_table
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.conftest import apart
from tests.differential_data import Data, Record
from tests.differential_values import Arguments, Known, plain_text
from tests.isolation import OURS, THEIRS, US, TenantFiller, learn_ids, tenanted_model, without_theirs

RANDOM = ("@blob(s3", "{shard(")
"""What writes something else each time, in the words of a model."""
MOST_DEPTH = 3
_numbers = itertools.count(200_000)


class ApartFiller(TenantFiller):
    """Makes items of two tenants that nothing links."""

    def __init__(self, model: Model, dice: Random) -> None:
        super().__init__(model, dice)
        self._org = OURS

    def record(self, type_: ItemType, depth: int = 0, *, is_plain: bool = False) -> Record:
        if not depth:
            self._org = self._dice.choice((OURS, THEIRS))
        return super().record(type_, depth, is_plain=is_plain)

    def _value(self, type_: ItemType, entry: Field, depth: int, *, is_plain: bool) -> Any:
        return self._org if entry.name == "org" else super()._value(type_, entry, depth, is_plain=is_plain)

    def _node(self, entry: Field, depth: int) -> Record | None:
        org = self._org
        target = self._model.items[self._dice.choice(sorted(entry.refs))]
        pool = self._pool(target, 6) if depth < MOST_DEPTH else self._pools.get(target.name, [])
        self._org = org
        same = [record for record in pool if record.get("org") == org]
        if same and self._dice.random() < 0.95:
            return self._dice.choice(same)
        return None if depth > MOST_DEPTH else self.record(target, depth + 1, is_plain=True)


@dataclass
class Table:
    """One of the two tables, or several of one model, served."""

    graph: Graph
    api: Api
    names: list[str]

    async def items(self, transport: Transport) -> dict[str, Item]:
        """Read all items, by their keys: but for what is kept there besides."""
        found: dict[str, Item] = {}
        for place, name in enumerate(self.names):
            keys = self.graph.model.tables[name].key_attributes
            start: dict[str, Any] = {}
            while True:
                answer = await transport("Scan", {"TableName": name} | start)
                for item in answer["Items"]:
                    key = f"{place} {[item[one] for one in keys]}"
                    if KEPT_BY_US not in key:
                        found[key] = item
                if "LastEvaluatedKey" not in answer:
                    break
                start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
        return found


@dataclass
class Report:
    """What came out."""

    problems: list[str] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)


class MutationWriter:
    """Writes mutations whose arguments name what there is of both tenants."""

    def __init__(self, api: Api, known: Known, dice: Random) -> None:
        self._schema = api.schema
        self._dice = dice
        self._ids = known.ids
        self._arguments = Arguments(known, dice, Counter())

    def write(self) -> str:
        """Write one mutation."""
        root = self._schema.mutation_type
        assert root is not None
        name = self._dice.choice(sorted(root.fields))
        definition = root.fields[name]
        given = []
        for argument, declared in definition.args.items():
            is_key = argument in ("key", "input")
            if argument == "idempotencyKey" or not (is_required_argument(declared) or is_key or self._may(0.4)):
                continue
            value = self._value(declared.type, argument, 0)
            given.append(f"{argument}: {plain_text(declared.type, value)}")
        payload: Any = get_named_type(definition.type)
        return f"mutation {{ {name}({', '.join(given)}) {{ {self._selected(payload, 0)} }} }}"

    def _may(self, share: float) -> bool:
        return self._dice.random() < share

    def _value(self, type_: GraphQLInputType, hint: str, depth: int) -> Any:
        inner: Any = type_.of_type if is_non_null_type(type_) else type_
        if not is_input_object_type(inner):
            if hasattr(inner, "of_type") and is_input_object_type(get_named_type(inner)):
                return [self._value(inner.of_type, hint, depth) for _ in range(self._dice.randrange(2))]
            return self._arguments.value(inner, hint)
        if inner.name.endswith("Where"):
            return self._arguments.value(inner, hint)
        if inner.name.endswith(("Key", "Reference")):
            return self._name(inner, depth)
        chosen = {
            name: one
            for name, one in inner.fields.items()
            if is_required_input_field(one) or (depth < MOST_DEPTH and self._may(0.4))
        }
        return {name: self._value(one.type, name, depth + 1) for name, one in chosen.items()}

    def _name(self, type_: Any, depth: int) -> dict[str, Any]:
        """Name an item: by its id, by the fields of its key, or by what it is to be."""
        ways = ["id"] if "id" in type_.fields and self._ids else []
        ways += ["create"] if "create" in type_.fields and depth < MOST_DEPTH else []
        way = self._dice.choice([*ways, "", "", "", ""])
        if way == "id":
            return {"id": self._dice.choice(self._ids)}
        names = [way] if way else [name for name in type_.fields if name not in ("id", "create")]
        # The tenant need not be said, and may be the other.
        return {
            name: self._dice.choice((OURS, OURS, OURS, THEIRS))
            if name == "org"
            else self._value(type_.fields[name].type, name, depth + 1)
            for name in names
            if name != "org" or self._may(0.5)
        }

    def _selected(self, type_: GraphQLObjectType, depth: int) -> str:
        names = ["__typename"]
        for name, one in type_.fields.items():
            named = get_named_type(one.type)
            if is_leaf_type(named) and not any(is_required_argument(arg) for arg in one.args.values()):
                names.append(name)
            elif depth == 0 and isinstance(named, GraphQLObjectType):
                names.append(f"{name} {{ {self._selected(named, 1)} }}")
        return " ".join(names)


async def make_table(sdl: str, tables: dict[str, list[Item]], data: Data, transport: Transport) -> Table:
    """Make the tables of a model on an engine."""
    number = next(_numbers)
    model = compile_model(apart(sdl, number), table=f"isolation-{number}")
    graph = Graph(model, Client(transport), Limits(linger_secs=0.002), data.objects)
    names = list(model.tables)
    for name, was in zip(names, compile_model(sdl).tables, strict=True):
        await graph.send(create_table(model, model.tables[name]))
        keys = model.tables[name].key_attributes
        items = {str([item[key] for key in keys]): item for item in tables.get(was, [])}
        left: Iterator[Item] = iter(items.values())
        while batch := tuple(itertools.islice(left, 25)):
            await graph.send(PutItems(name, batch))
    return Table(graph, Api(graph, timeout_secs=None), names)


async def run_world(seed: int, steps: int, transport: Transport, report: Report) -> None:
    """Let one tenant write in the world of a seed."""
    dice = Random(f"writes {seed}")
    sdl, model = tenanted_model(dice)
    while any(word in sdl for word in RANDOM):
        sdl, model = tenanted_model(dice)
    filler = ApartFiller(model, dice)
    data = filler.fill(dice.choice([3, 6, 10]))
    known = Known(data.records)
    whole = await make_table(sdl, data.tables, data, transport)
    alone = await make_table(sdl, without_theirs(model, data, set()), data, transport)
    theirs = {key: item for key, item in (await whole.items(transport)).items() if THEIRS in key}
    await learn_ids(model, known, whole.api)
    for _ in range(steps):
        text = MutationWriter(whole.api, known, dice).write()
        answers = [(await table.api.execute(Request(text, identity=US))).body for table in (whole, alone)]
        told = [(answer.get("data"), codes(answer)) for answer in answers]
        report.tally.update(told[0][1] or ["done"])
        report.tally["that name the other tenant"] += THEIRS in text
        leaks = THEIRS in str(answers[0].get("data")) and THEIRS not in text
        if told[0] != told[1] or leaks or "INTERNAL" in told[0][1]:
            report.problems.append(f"seed {seed}\n{sdl}\n{text}\n{answers[0]}\n{answers[1]}")
    left, right = await whole.items(transport), await alone.items(transport)
    if {key: item for key, item in left.items() if THEIRS in key} != theirs:
        report.problems.append(f"seed {seed}\n{sdl}\nitems of the other tenant have changed")
    if {key: item for key, item in left.items() if THEIRS not in key} != right:
        report.problems.append(f"seed {seed}\n{sdl}\nwhat was written differs")


def codes(body: dict[str, Any]) -> list[str]:
    """List the codes of an answer's errors."""
    return [error["extensions"]["code"] for error in body.get("errors", [])]


async def run(seeds: range, steps: int, transport: Transport) -> Report:
    """Run some worlds."""
    report = Report()
    for seed in seeds:
        await asyncio.wait_for(run_world(seed, steps, transport, report), 120)
    return report
