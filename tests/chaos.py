"""Chaos: clients that read, and a DynamoDB that throttles, fails, leaves keys out, is slow and closes connections.

    python -m tests.chaos --seconds 60 --clients 8 --seed 1 --transport boto3

A server of ours reads through the proxy of faults.py. What it answers is compared with what a server that reads from
the same engine, without the faults, has answered: none may differ, none may be an error, and none may take longer than
the deadline. `--writes` raises the storm of storm.py over the same faults instead, without killing anybody.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import uvloop

from graph.client import Client
from graph.loaders import Graph
from graph.tables import create_table
from graph.wire.pool import Address, Pool
from resolvers.sdl import compile_model
from server.demo import store
from server.engine import Engine
from tests.conftest import ROOT, banana_items, example_items, way_to
from tests.faults import KINDS, FaultProxy, Faults
from tests.run_ui import free_port
from tests.storm import CREDENTIALS, TABLEGRAPH, blow

DEADLINE_SECS = 5.0
PATIENCE_SECS = 20.0
"""How long a client waits to see how late an answer is."""
MOST_PROBLEMS = 20
GOES_ON = 0.7
"""How often a client asks for the next page where there is one."""

Dice = random.Random
Question = tuple[str, dict[str, Any]]

PALLETS = """query($number: ID!, $first: Int!, $after: String) { container(number: $number) {
  operator pallets(first: $first, after: $after) { totalCount pageInfo { hasNextPage endCursor } edges { cursor linkedBy
    node { number origin boxes(first: 15) { edges { linkedBy node { number weightInKg isDangerous } } } } } } } }"""
DANGEROUS = """query($number: ID!, $first: Int!, $after: String) { container(number: $number) {
  boxes(first: $first, after: $after, where: { box: { isDangerous: { eq: true } } }) {
    pageInfo { hasNextPage endCursor } edges { cursor linkedBy node { number weightInKg } } } } }"""
WAREHOUSE = """query($first: Int!, $after: String) { containers(first: $first, after: $after) {
  pageInfo { hasNextPage endCursor } nodes { id number operator pallets(last: 2) { nodes { number } } } } }"""
BUSINESS = """query($number: ID!, $first: Int!, $after: String) { business(number: $number) { businessName
  customers(first: 5) { nodes { firstName lastName stores { nodes { storeName } } } } tags { nodes { name } }
  orders(first: $first, after: $after) { pageInfo { hasNextPage endCursor }
    edges { cursor node { number status createdTime customer { lastName } } } } } }"""
TAG = """query($name: ID!, $first: Int!, $after: String) { tag(name: $name) {
  subjects(first: $first, after: $after) { pageInfo { hasNextPage endCursor } nodes { __typename
    ... on Business { businessName } ... on Customer { lastName business { businessName } }
    ... on Order { createdTime customer { firstName } } ... on Store { storeName } } } } }"""


def _boxes(dice: Dice) -> Question:
    """Ask for many boxes by their numbers, some of which are not there, up to their containers."""
    numbers = [f"C{dice.randrange(1, 4):03}{dice.randrange(1, 21):03}{dice.randrange(1, 17):02}" for _ in range(30)]
    fields = "number weightInKg pallet { number container { operator } }"
    asked = " ".join(f'b{place}: box(number: "{number}") {{ {fields} }}' for place, number in enumerate(numbers))
    return f"{{ {asked} }}", {}


ASKED: dict[str, tuple[Callable[[Dice], Question], ...]] = {
    "bananas": (
        lambda dice: (PALLETS, {"number": f"{dice.randrange(1, 4):06}", "first": dice.choice((3, 10, 20))}),
        lambda dice: (DANGEROUS, {"number": f"{dice.randrange(1, 4):06}", "first": dice.choice((2, 7, 50))}),
        lambda dice: (WAREHOUSE, {"first": dice.choice((1, 2, 50))}),
        _boxes,
    ),
    "b2b": (
        lambda dice: (BUSINESS, {"number": f"{dice.randrange(1, 6):03}", "first": dice.choice((5, 20, 100))}),
        lambda dice: (TAG, {"name": dice.choice(("art", "book", "music")), "first": dice.choice((3, 10, 50))}),
    ),
}
"""What is asked besides the queries that an example comes with."""


def written_queries(example: str) -> Iterator[str]:
    """Give the queries of an example that read, are answered once, and search no index of words."""
    for path in sorted((ROOT / "examples" / example / "queries").glob("*.graphql")):
        text = path.read_text()
        if "\nquery" in text and "@live" not in text and "search" not in path.stem:
            yield text


@dataclass
class Chaos:
    """One run: how to ask the two servers, and what was found."""

    example: str
    until: float
    seed: int
    shaken: Pool
    calm: Pool
    tally: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    latencies_secs: list[float] = field(default_factory=list)
    _expected: dict[bytes, Any] = field(default_factory=dict)

    async def client(self, number: int) -> None:
        """Read at random until the time is up."""
        dice = random.Random(f"{self.seed}/{number}")
        queries = list(written_queries(self.example))
        question: Question | None = None
        while time.monotonic() < self.until:
            if question is None:
                ask = dice.choice((*ASKED[self.example], None))
                question = ask(dice) if ask else (dice.choice(queries), {})
            cursor = await self._ask(*question)
            goes_on = cursor and "$after" in question[0] and dice.random() < GOES_ON
            question = (question[0], {**question[1], "after": cursor}) if goes_on else None

    async def _ask(self, query: str, variables: dict[str, Any]) -> str | None:
        """Ask both servers, compare, and give the cursor that goes on."""
        body = orjson.dumps({"query": query, "variables": variables})
        expected = self._expected.get(body)
        if expected is None:
            expected = self._expected[body] = await answer_of(self.calm, body)
            assert "errors" not in expected, (query, variables, expected)
        began = time.monotonic()
        try:
            found = await answer_of(self.shaken, body)
        except OSError as error:
            found = {"errors": [{"message": repr(error)}]}
        taken = time.monotonic() - began
        self.latencies_secs.append(taken)
        if "errors" in found:
            self._tell("failed", f"{taken:.2f} s: {query} {variables}: {found['errors']}")
        elif is_part(expected["data"], found["data"]) and await self._goes_on(query, variables, expected, found):
            self.tally["part-filled"] += 1
        elif found["data"] != expected["data"]:
            place = differing(expected["data"], found["data"])
            self._tell("wrong", f"{taken:.2f} s: {query} {variables}: {place}")
        elif taken > DEADLINE_SECS:
            self._tell("late", f"{taken:.2f} s: {query} {variables}")
        else:
            self.tally["right"] += 1
        return next(_cursors(expected["data"]), None)

    async def _goes_on(self, query: str, variables: dict[str, Any], expected: Any, found: Any) -> bool:
        """Say whether what a part-filled page lacks is what its cursor leads to."""
        cursor, had = _page(found["data"])
        rest = _page(expected["data"])[1][len(had) :]
        body = orjson.dumps({"query": query, "variables": {**variables, "after": cursor}})
        return "$after" not in query or _page((await answer_of(self.calm, body))["data"])[1][: len(rest)] == rest

    def _tell(self, kind: str, problem: str) -> None:
        self.tally[kind] += 1
        self.problems.append(f"{kind}: {problem}")


def is_part(expected: Any, found: Any) -> bool:
    """Say whether all is equal, but for a page that ended early, and says so, as pages under a filter may."""
    if expected == found or not isinstance(expected, dict) or not isinstance(found, dict):
        return False
    if "pageInfo" not in expected:
        differ = [name for name in expected if expected[name] != found.get(name)]
        return len(differ) == 1 and is_part(expected[differ[0]], found.get(differ[0]))
    had = _page(found)[1]
    return bool(found["pageInfo"]["hasNextPage"]) and _page(expected)[1][: len(had)] == had


def _page(data: Any) -> tuple[str, list[Any]]:
    """Give the end cursor and the edges, or nodes, of the one page of an answer."""
    while "pageInfo" not in data:
        data = next(each for each in data.values() if isinstance(each, dict))
    return data["pageInfo"]["endCursor"], data.get("edges") or data.get("nodes") or []


def differing(expected: Any, found: Any, path: str = "data") -> str:
    """Tell the first place where two answers differ, and how."""
    if isinstance(expected, dict) and isinstance(found, dict) and list(expected) == list(found):
        name = next(name for name in expected if expected[name] != found[name])
        return differing(expected[name], found[name], f"{path}.{name}")
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        place = next(place for place, each in enumerate(expected) if each != found[place])
        return differing(expected[place], found[place], f"{path}[{place}]")
    return f"at {path} expected {expected}, got {found}"


def _cursors(data: Any) -> Iterator[str]:
    """Give the cursors of the pages that have a next one."""
    if isinstance(data, list):
        for each in data:
            yield from _cursors(each)
    elif isinstance(data, dict):
        if data.get("hasNextPage"):
            yield data["endCursor"]
        for each in data.values():
            yield from _cursors(each)


async def answer_of(pool: Pool, body: bytes) -> Any:
    """Ask a server, and give the body of its answer. Raises OSError."""
    head = (
        b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
        b"Content-Length: %d\r\n\r\n"
    )
    answer = await pool.exchange(head % len(body) + body, asyncio.get_running_loop().time() + PATIENCE_SECS)
    return orjson.loads(answer.body)


@asynccontextmanager
async def served(schema: Path, endpoint_url: str, *options: str) -> AsyncIterator[Pool]:
    """Run a server over an endpoint until the block ends, and give a way to it."""
    port = free_port()
    given = ("--schema", str(schema), "--endpoint-url", endpoint_url, "--port", str(port), "--stream", "off")
    command = (str(TABLEGRAPH), "serve", *given, "--log-level", "error", *options)
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **CREDENTIALS})
    pool = Pool(Address("127.0.0.1", port), 64)
    try:
        while True:
            try:
                await answer_of(pool, b'{"query": "{ __typename }"}')
                break
            except OSError:
                assert process.returncode is None, f"the server ended with {process.returncode}"
                await asyncio.sleep(0.05)
        yield pool
    finally:
        pool.close()
        process.terminate()
        await process.wait()


async def fill(example: str, endpoint_url: str) -> Path:
    """Make the tables of an example, fill them, and name its model's file."""
    schema = ROOT / "examples" / example / "schema.graphql"
    model = compile_model(schema.read_text())
    transport = way_to(endpoint_url)
    graph = Graph(model, Client(transport))
    for table in model.tables.values():
        await graph.send(create_table(model, table))
    await store(graph, list(banana_items(3) if example == "bananas" else example_items(example)))
    transport.close()
    return schema


async def read(
    example: str, seconds: float, clients: int, seed: int, faults: Faults, transport: str = "wire"
) -> tuple[Chaos, Counter[str]]:
    """Read for so long, and give what was found and which faults there were."""
    deadline = ("--operation-timeout-secs", str(DEADLINE_SECS), "--transport", transport)
    async with Engine() as engine:
        schema = await fill(example, engine.endpoint_url)
        async with (
            FaultProxy(engine.endpoint_url, faults, seed=seed) as proxy,
            served(schema, engine.endpoint_url) as calm,
            served(schema, proxy.url, *deadline) as shaken,
        ):
            chaos = Chaos(example, time.monotonic() + seconds, seed, shaken, calm)
            await asyncio.gather(*(chaos.client(number) for number in range(clients)))
            return chaos, proxy.tally


def report(chaos: Chaos, faults: Counter[str]) -> str:
    """Write what was found."""
    taken = sorted(chaos.latencies_secs)
    places = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    lines = [f"{chaos.example}: {len(taken)} reads, {', '.join(f'{n} {kind}' for kind, n in chaos.tally.items())}"]
    times = [f"{name} {1000 * taken[int(len(taken) * share)]:.0f} ms" for name, share in places.items()]
    lines.append(f"  {', '.join(times)}, longest {1000 * taken[-1]:.0f} ms")
    lines.append(f"  faults: {', '.join(f'{n} {kind}' for kind, n in sorted(faults.items()))}")
    return "\n".join([*lines, *chaos.problems[:MOST_PROBLEMS], f"  {len(chaos.problems)} problems", ""])


def main() -> int:
    """Run as the command line says, print what happened, and fail when anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="for each example")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", nargs="+", choices=tuple(ASKED), default=tuple(ASKED))
    parser.add_argument("--transport", choices=("wire", "boto3"), default="wire")
    parser.add_argument("--writes", action="store_true", help="write instead of reading")
    for kind in KINDS:
        parser.add_argument(f"--{kind}", type=float, default=getattr(Faults(), kind), help="share of the requests")
    options = parser.parse_args()
    faults = Faults(**{kind: getattr(options, kind) for kind in KINDS})
    if options.writes:
        storm = uvloop.run(blow(options.seconds, options.clients, 0, options.seed, faults=faults))
        lines = [f"{count:6} {name}" for name, count in sorted(storm.tally.items())]
        sys.stdout.write("\n".join([*lines, *storm.problems[:MOST_PROBLEMS], f"{len(storm.problems)} problems", ""]))
        return 1 if storm.problems else 0
    is_well = True
    for example in options.examples:
        run = read(example, options.seconds, options.clients, options.seed, faults, options.transport)
        chaos, seen = uvloop.run(run)
        sys.stdout.write(report(chaos, seen))
        is_well = is_well and not chaos.problems
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
