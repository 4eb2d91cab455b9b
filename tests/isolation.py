"""Two tenants in one table: what one of them is answered must not depend on anything of the other's.

Nor on items of their own tenant that have another owner, where a type has owners.

The models are those that the differential tests design at random, with a tenant in every key. A query is sent by a
tenant over the whole table, and again over the table without any item whose key names the other: the answers, data and
errors, must be the same. That the two tenants' items are told apart by a text in their keys, and not by the code that
is tested, makes this an oracle.

    python -m tests.isolation --worlds 50 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from graphql import GraphQLSchema

from graph.errors import GraphError
from graph.identity import Identity
from graph.loaders import Graph, Limits
from graph.model import Field, ItemType, Model
from graph.patterns import has_lookup, lookup_arguments, lookup_name
from graph.requests import Item
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.differential_data import Data, Filler, Record, at
from tests.differential_designs import designed
from tests.differential_queries import Query, learn
from tests.differential_store import Shelves
from tests.differential_values import Known, plain_text
from tests.differential_writer import Writer

OURS, THEIRS = "~ours~", "~theirs~"
ME, YOU = "~me~", "~you~"
OWNED = ("Beta", "Child")
AUTH = ' @auth(tenant: {{ field: "{field}", claim: "org" }}{owner})'


def tenanted(sdl: str) -> str:
    """Put a tenant into the keys of every type of a designed model, and the rules that go with it."""
    # What is copied may be seen where it is copied to: that has other tests.
    have_owners = "copy:" not in sdl

    def with_rules(found: re.Match[str]) -> str:
        return _type(found, have_owners=have_owners)

    return re.sub(r"^type (\w+)(.*?) \{\n(.*?)^\}", with_rules, sdl, flags=re.DOTALL | re.MULTILINE)


def _type(found: re.Match[str], *, have_owners: bool) -> str:
    name, head, body = found.groups()
    if name == "Query":
        # Who reads the whole table must be somebody: what they see is still only what is theirs.
        body = body.replace("@find(scan: true)", "@find(scan: true) @auth")
        return f"type {name}{head} {{\n{body}}}"
    if "@node" not in head and "@edge" not in head:
        return found[0]
    start = re.search(r'(?:partition|key): "\{(\w+)\}"', head)
    if start is not None:
        path = f"{start[1]}.org"
        head = re.sub(r'(by: "by-a", partition: "\w+#)', rf"\1{{{path}}}#", head)
    else:
        path, body = "org", f"  org: ID!\n{body}"
        head = re.sub(r'((?:partition|key|ref): "[A-Z]+#)', r"\1{org}#", head)
        head = re.sub(r'(partition: )"\{label:lower\}"', r'\1"L#{org}#{label:lower}"', head)
    owner = ""
    if have_owners and name in OWNED and "virtual" not in head and "KEYS_ONLY" not in found.string:
        owner, body = ', owner: { field: "by" }', f"  by: ID\n{body}"
    return f"type {name}{head}{AUTH.format(field=path, owner=owner)} {{\n{body}}}"


def tenanted_model(dice: Random) -> tuple[str, Model]:
    """Design models until one has tenants."""
    while True:
        sdl = tenanted(designed(dice)[0])
        try:
            return sdl, compile_model(sdl)
        except GraphError:
            continue


class TenantFiller(Filler):
    """Makes the items of two tenants, and now and then one that links them."""

    def __init__(self, model: Model, dice: Random) -> None:
        super().__init__(model, dice)
        self.of_others: set[int] = set()
        """The items of types with owners that are not ours, by their identity."""

    def _value(self, type_: ItemType, entry: Field, depth: int, *, is_plain: bool) -> Any:
        if entry.name == "org":
            return self._dice.choice((OURS, THEIRS))
        if entry.name == "by":
            return self._dice.choice((ME, ME, YOU, None))
        return super()._value(type_, entry, depth, is_plain=is_plain)

    def _with_objects(self, type_: ItemType, item: Item) -> Item:
        made = super()._with_objects(type_, item)
        if "by" in type_.fields and any(rule.owner for rule in type_.auth):
            attribute = made.get(type_.fields["by"].attribute)
            if attribute is None or attribute.get("S") != ME:
                self.of_others.add(id(made))
        return made


@dataclass
class World:
    """A model with the items of two tenants, whole and without the other's."""

    sdl: str
    model: Model
    data: Data
    known: Known
    whole: list[Api] = field(default_factory=list)
    alone: list[Api] = field(default_factory=list)


def without_theirs(model: Model, data: Data, of_others: set[int]) -> dict[str, list[Item]]:
    """Drop the items whose keys name the other tenant, and those of others."""

    def is_kept(name: str, item: Item) -> bool:
        return id(item) not in of_others and not any(
            THEIRS in str(item[key]) for key in model.tables[name].key_attributes
        )

    def last(name: str, items: list[Item]) -> list[Item]:
        # Of two items with one key the later one is there.
        return list({str([item[key] for key in model.tables[name].key_attributes]): item for item in items}.values())

    return {name: [item for item in last(name, items) if is_kept(name, item)] for name, items in data.tables.items()}


def make_world(seed: int) -> World:
    """Make the world of a seed."""
    dice = Random(f"isolation {seed}")
    sdl, model = tenanted_model(dice)
    filler = TenantFiller(model, dice)
    data = filler.fill(dice.choice([3, 6, 10, 30]))
    page_items = dice.choice([10**6, 7, 2, 1])
    limits = Limits(default_page_size=dice.choice([50, 2, 4]), read_budget=10**6, scan_budget=10**6, linger_secs=0.002)
    world = World(sdl, model, data, Known(data.records))
    for apis, tables in ((world.whole, data.tables), (world.alone, without_theirs(model, data, filler.of_others))):
        graph = Graph(model, Shelves(model, tables, page_items), limits, data.objects)
        apis += [Api(graph, timeout_secs=None, executor=executor) for executor in ("plan", "reference")]
    return world


async def learn_ids(model: Model, known: Known, api: Api) -> None:
    """Learn ids of nodes of both tenants, each from its own lookups."""
    for item in model.nodes:
        for record in known.records.get(item.name, [])[:8] if has_lookup(model, item) else ():
            text = lookup_text(model, api.schema, item, record)
            for org in (OURS, THEIRS):
                response = await api.execute(Request(f"{{ {text} {{ id }} }}", identity=tenant(org)))
                learn(known, response.body.get("data"))


def lookup_text(model: Model, schema: GraphQLSchema, item: ItemType, record: Record) -> str:
    """Write the lookup of a record."""
    name = lookup_name(item.name)
    assert schema.query_type is not None
    arguments = schema.query_type.fields[name].args
    given = []
    for argument, (path, _) in lookup_arguments(model, item).items():
        if (value := at(record, path)) is not None:
            given.append(f"{argument}: {plain_text(arguments[argument].type, value)}")
    return f"{name}({', '.join(given)})"


def tenant(org: str) -> Identity:
    """Make somebody of a tenant."""
    return Identity(ME, frozenset(), {"org": org})


US = tenant(OURS)


@dataclass
class Report:
    """What came out."""

    cases: int = 0
    leaks: list[str] = field(default_factory=list)
    tally: Counter[str] = field(default_factory=Counter)


async def check(world: World, query: Query, report: Report) -> None:
    """Send a query over both tables by both executors."""
    text = query.text()
    for number, executor in enumerate(("plan", "reference")):
        answers = []
        for api in (world.whole[number], world.alone[number]):
            request = Request(text, query.variables.given, query.asked, identity=US)
            answers.append((await asyncio.wait_for(api.execute(request), 60)).body)
        report.cases += 1
        report.tally["with data"] += bool(answers[0].get("data"))
        report.tally["with nodes of ours"] += OURS in str(answers[0].get("data"))
        report.tally["with errors"] += "errors" in answers[0]
        named = THEIRS in text or THEIRS in str(query.variables.given)
        report.tally["that name the other tenant"] += named
        report.tally["with owners"] += "owner: {" in world.sdl
        if told(answers[0]) != told(answers[1]) or (THEIRS in str(answers[0].get("data")) and not named):
            report.leaks.append(f"{executor}\n{world.sdl}\n{text}\n{query.variables.given}\n{answers[0]}\n{answers[1]}")


def told(body: dict[str, Any]) -> Any:
    """Take of an answer what must be the same: of errors below one null it depends on time which is told."""
    errors = body.get("errors") or []
    if any("unexpected error" in error["message"] for error in errors):
        return "unexpected", str(errors)
    return body.get("data"), bool(errors)


async def run_world(seed: int, cases: int, report: Report) -> None:
    """Send random queries in the world of a seed."""
    world = make_world(seed)
    await learn_ids(world.model, world.known, world.whole[0])
    for number in range(cases):
        dice = Random(f"case {seed} {number}")
        query = Writer(world.model, world.whole[0].schema, world.known, dice, Counter()).write()
        await check(world, query, report)
        response = await world.whole[0].execute(
            Request(query.text(), query.variables.given, query.asked, identity=tenant(dice.choice((OURS, THEIRS))))
        )
        # Ids and cursors of both go into later queries.
        learn(world.known, response.body.get("data"))


def run(seeds: Iterator[int] | range, cases: int) -> Report:
    """Run some worlds."""
    report = Report()
    for seed in seeds:
        asyncio.run(run_world(seed, cases, report))
    return report


def main() -> int:
    """Run from the command line: exit code 1 when anything leaks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worlds", type=int, default=50)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    # Who links across tenants makes items that fit no type: of each the log would tell.
    logging.disable()
    report = run(range(asked.seed, asked.seed + asked.worlds), asked.cases)
    for leak in report.leaks[:3]:
        sys.stdout.write(f"{leak}\n\n")
    sys.stdout.write(
        f"{report.cases} cases, {len(report.leaks)} that depend on the other tenant; {dict(report.tally)}\n"
    )
    return bool(report.leaks)


if __name__ == "__main__":
    sys.exit(main())
