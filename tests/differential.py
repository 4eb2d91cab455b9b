"""Two executors, one answer: random queries on random data of random models are executed by both, and compared.

    python -m tests.differential --seed 7 --cases 2000

Every 40 cases have a model and data of their own, which follow from a seed: a difference is replayed by the command
that is printed with it.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import re
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random

from graphql import DocumentNode

from resolvers.operation import Request
from resolvers.schema import Api
from server.engine import Engine
from tests.clock import LeapingLoop
from tests.conftest import way_to
from tests.differential_compare import COSTS, Answer, Error, Lenient, differences
from tests.differential_queries import Query, again, learn, next_page
from tests.differential_shrink import shrunk
from tests.differential_store import random_fault
from tests.differential_worlds import EXECUTORS, World, make_world, prime, world_on_engine
from tests.differential_writer import Writer

CASES_PER_MODEL = 40
MOST_REQUESTS = 40
COUNTED = ("requests", *COSTS)
RHYTHMS = 12
"""In how many other orders answers come to the reference before the plan is said to ask for more."""
"""How differences begin that are about what was asked of the tables, and not about the answer."""


@dataclass
class Report:
    """What a run found."""

    tally: Counter[str] = field(default_factory=Counter)
    problems: dict[str, str] = field(default_factory=dict)
    """The first difference of each kind, described."""
    kinds: Counter[str] = field(default_factory=Counter)
    cases: int = 0
    tell: Callable[[str], object] = lambda _: None
    """What is done with the first difference of a kind at once."""

    def is_new(self, found: list[str]) -> bool:
        """Count the differences of a case, and say whether they are the first of their kind."""
        self.kinds[kind_of(found)] += 1
        return kind_of(found) not in self.problems

    def add(self, found: list[str], description: str) -> None:
        """Keep the first of a kind."""
        self.problems[kind_of(found)] = description
        self.tell(description + "\n\n")


def kind_of(found: list[str]) -> str:
    """Name the kind of some differences: the first one, without what only this case has."""
    if found[0].startswith(COUNTED):
        return found[0].partition(":")[0]
    return re.sub(r"[0-9]+|'[^']*'|\"[^\"]*\"|\.[a-z]\w*|\[…\]", "…", found[0])[:60]


async def ask(world: World, api: Api, query: Query) -> Answer:
    """Execute a query, and note what it asks of the tables."""
    world.watched.requests = []
    try:
        request = Request(query.text(), query.variables.given, query.asked, cost=True)
        # Where the clock leaps, whoever waits for nothing is found out at once.
        response = await asyncio.wait_for(api.execute(request), 30)
    except Exception as error:
        where = "".join(traceback.format_tb(error.__traceback__)[-6:])
        return Answer({"raised": f"{error!r}\n{where}"}, "refused", world.watched.requests)
    return Answer(response.body, response.outcome, world.watched.requests)


async def compare(world: World, query: Query) -> tuple[list[str], list[Answer]]:
    """Execute a query by both executors and list the differences."""
    world.watched.doomed, world.watched.failed = {}, {}
    reference = await ask(world, world.apis[0], query)
    share_documents(world.apis, query.text())
    answers = [reference, await ask(world, world.apis[1], query)]

    async def lenient() -> list[Error]:
        world.watched.requests = []
        request = Request(query.text(lenient=True), query.variables.given, query.asked)
        response = await world.lenient.execute(request)
        return Answer(response.body, response.outcome).errors

    found = await differences(answers[0], answers[1], lenient)
    if found and world.watched.failed:
        answers = await in_any_company(world, query)
        found = await differences(answers[0], answers[1], lenient)
    if found and all(one.startswith(COUNTED) for one in found) and await in_rhythm(world, query, answers[1], lenient):
        found = []
    # What is read anew, and what travels together, depends on which answer comes first: an engine's are never alike.
    return [one for one in found if not (world.is_on_engine and one.startswith(COUNTED))], answers


async def in_any_company(world: World, query: Query) -> list[Answer]:
    """Execute a query by both executors where a key fails by itself, or never.

    A BatchGetItem fails for the keys that happen to travel with the one that it fails for, and which do is no property
    of an executor. So all that failed with either of them is made to fail always, until nothing else does.
    """
    while True:
        world.watched.doomed = dict(world.watched.failed)
        answers = [await ask(world, api, query) for api in world.apis]
        if world.watched.failed.keys() == world.watched.doomed.keys():
            return answers


async def in_rhythm(world: World, query: Query, answer: Answer, lenient: Lenient) -> bool:
    """Say whether the reference answers alike, for as much, where its own answers come in another order.

    Keys of different levels share a BatchGetItem if they happen to wait at the same time: how many do is no property
    of an executor, but of when each answer comes. So the plan may need as many as the reference under some timing.
    """
    try:
        for salt in range(1, RHYTHMS + 1):
            world.watched.salt = salt
            other = await ask(world, world.apis[0], query)
            world.watched.salt = 0
            left = await differences(other, answer, lenient)
            if not left:
                return True
    finally:
        world.watched.salt = 0
    return False


def share_documents(apis: list[Api], text: str) -> None:
    """Spare the second API to parse and validate what the first one has: most of a case's time goes there."""
    mine, other = (api.documents._documents for api in apis)
    found = mine.get(text)
    if isinstance(found, (DocumentNode, list)) and text not in other:
        other[text] = found


async def run_world(world: World, seed: int, cases: int, report: Report) -> None:
    """Compare as many queries of a world."""
    await prime(world)
    follow: Query | None = None
    for number in range(cases):
        dice = Random(f"case {seed} {number}")
        query = follow
        if query is None:
            query = Writer(world.model, world.schema, world.known, dice, report.tally).write()
        world.watched.fault = None
        if dice.random() < 0.12:
            name, world.watched.fault = random_fault(world.model, dice)
            report.tally[f"fault {name}"] += 1
        found, answers = await compare(world, query)
        report.cases += 1
        count_answer(report.tally, answers)
        if found and report.is_new(found):
            report.add(found, await described(world, seed, number, query, found))
        cursors = learn(world.known, answers[0].body.get("data"))
        follow = None
        if query.variables.declared and dice.random() < 0.5:
            report.tally["again with other variables"] += 1
            follow = again(query, dice)
        elif cursors and query.spoilt is None and dice.random() < 0.8:
            report.tally["next pages"] += 1
            follow = next_page(query, cursors, dice)


def count_answer(tally: Counter[str], answers: list[Answer]) -> None:
    """Count what the reference answered, and how the other one did with fewer requests."""
    body, cost = answers[0].body, answers[0].cost
    tally["answers with errors" if answers[0].errors else "answers without errors"] += 1
    tally["answers refused"] += answers[0].outcome == "refused"
    tally["answers with data and errors"] += bool(body.get("data") and answers[0].errors)
    tally["answers nulled above an error"] += answers[0].outcome == "executed" and answers[0].went_up
    tally.update(f"code {error['extensions']['code']}" for error in answers[0].errors)
    if cost:
        costs = [answer.cost["requests"]["total"] if answer.cost else 0 for answer in answers]
        tally["requests of the reference"] += costs[0]
        tally["requests of the plan"] += costs[1]
        tally["answers with fewer requests by the plan"] += costs[1] < costs[0]
        tally["answers with more requests by the plan"] += costs[1] > costs[0]
        tally["requests skipping items"] += "skippedItems" in cost
        tally["answers with other requests by the plan"] += cost["requests"] != answers[1].cost.get("requests")
        tally["skipped items told differently"] += cost.get("skippedItems") != answers[1].cost.get("skippedItems")


async def described(world: World, seed: int, number: int, query: Query, found: list[str]) -> str:
    """Describe a difference so that it can be looked into, by the smallest query that shows it."""

    async def still_fails(smaller: Query) -> bool:
        again, _ = await compare(world, smaller)
        return bool(again) and kind_of(again) == kind_of(found)

    small = await shrunk(query, still_fails)
    less, answers = await compare(world, small)
    lines = [f"=== seed {seed}, case {number}: {world.source.name}", *(less or found), ""]
    hashes = os.environ.get("PYTHONHASHSEED", "random")
    lines += [
        f"replay: PYTHONHASHSEED={hashes} python -m tests.differential --seed {seed} --cases {number + 1}",
        "",
        world.source.sdl,
        "",
    ]
    lines += [small.text(), f"variables: {small.variables.given}", f"operationName: {small.asked}"]
    lines += [f"fails: {world.watched.fault is not None}, slow: {world.watched.is_slow}, limits: {world.graph.limits}"]
    for executor, answer in zip(EXECUTORS, answers, strict=True):
        lines += ["", f"--- {executor}: {answer.outcome}, {answer.cost}", str(answer.body)]
    lines += ["", "--- requests: - of the reference alone, + of the plan alone", *compared_requests(answers)]
    if small.text() != query.text():
        lines += ["", "--- as it was at first", query.text(), f"variables: {query.variables.given}"]
    return "\n".join(lines)


def compared_requests(answers: list[Answer]) -> list[str]:
    """Write down the requests of both executors, those of one alone with a sign."""
    one, two = (
        Counter(f"{request.operation} {request.parameters()}" for request in answer.requests) for answer in answers
    )
    both, gone, come = one & two, one - two, two - one
    signed = [(" ", both), ("-", gone), ("+", come)]
    lines = [f"{sign} {request}" for sign, requests in signed for request in requests.elements()]
    return lines if len(lines) <= MOST_REQUESTS else [line for line in lines if line[0] != " "] + ["  …"]


class Faults(logging.Handler):
    """Counts what the log says of faults of our own, and keeps it from the screen."""

    def __init__(self, tally: Counter[str]) -> None:
        super().__init__()
        self._tally = tally
        self._log = logging.getLogger("resolvers")

    def emit(self, record: logging.LogRecord) -> None:
        """Count a fault by its cause."""
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frame = traceback.extract_tb(error.__traceback__)[-1]
            self._tally[f"fault of our own: {error!r:.90} in {frame.name}, {frame.filename[-40:]}:{frame.lineno}"] += 1

    def __enter__(self) -> None:
        self._log.addHandler(self)
        self._log.propagate = False

    def __exit__(self, *_: object) -> None:
        self._log.removeHandler(self)
        self._log.propagate = True


def run(seed: int, cases: int, *, most_problems: int = 5, report: Report | None = None) -> Report:
    """Compare that many cases, beginning with the world of a seed."""
    report = report or Report()
    while report.cases < cases and len(report.problems) < most_problems:
        world = make_world(seed, report.tally)
        with (
            Faults(report.tally),
            asyncio.Runner(loop_factory=LeapingLoop if world.watched.is_slow else None) as runner,
        ):
            count = min(CASES_PER_MODEL, cases - report.cases)
            runner.run(run_world(world, seed, count, report))
        seed += 1
    return report


async def run_on_engine(endpoint_url: str, seeds: Iterable[int], report: Report | None = None) -> Report:
    """Compare the cases of the worlds of these seeds, their tables on an engine."""
    report = report or Report()
    transport = way_to(endpoint_url)
    try:
        for seed in seeds:
            world = await world_on_engine(seed, report.tally, transport)
            await run_world(world, seed, CASES_PER_MODEL, report)
    finally:
        transport.close()
    return report


async def _run_with_engine(seed: int, worlds: int, report: Report) -> None:
    async with Engine() as engine:
        await run_on_engine(engine.endpoint_url, range(seed, seed + worlds), report)


def statistics(report: Report) -> str:
    """Write down how often everything occurred."""
    return "\n".join(f"{count:8} {name}" for name, count in sorted(report.tally.items()))


def main() -> int:
    """Compare as the command line says, print what was found, and fail when anything is different."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=CASES_PER_MODEL)
    parser.add_argument("--most", type=int, default=5, help="after so many kinds of differences it ends")
    parser.add_argument("--engine", type=int, metavar="WORLDS", help="so many worlds on an engine instead")
    options = parser.parse_args()
    begin = time.monotonic()
    report = Report(tell=sys.stdout.write)
    if options.engine:
        asyncio.run(_run_with_engine(options.seed, options.engine, report))
    else:
        run(options.seed, options.cases, most_problems=options.most, report=report)
    seconds = time.monotonic() - begin
    lines = [statistics(report), f"{report.cases} cases in {seconds:.0f} s, {report.cases / seconds:.0f} a second"]
    lines += [f"{count:8} {kind}" for kind, count in report.kinds.most_common()]
    sys.stdout.write("\n".join([*lines, f"{report.kinds.total()} differences", ""]))
    return 1 if report.problems else 0


if __name__ == "__main__":
    if "PYTHONHASHSEED" not in os.environ:
        # The order of a set's entries decides what is met first: a replay is to meet the same.
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})  # noqa: S606  # ourselves again
    sys.exit(main())
