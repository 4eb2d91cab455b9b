"""Carrying out: the first step that is left is taken, then the plan is made anew from what is there by now."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Protocol

from graph.apply.backfill import Filled, backfill, begin, due, end
from graph.apply.plan import Kind, Step, filled, plan
from graph.apply.state import State, Target
from graph.errors import RequestRefused, StoreError, TableBusy, TableMissing, Throttled
from graph.loaders import Graph
from graph.maintenance.walk import Tally
from graph.requests import DescribeTable, DescribeTimeToLive

FIRST_PAUSE_SECS = 0.2
MOST_PAUSE_SECS = 10.0
MOST_TRIES = {TableBusy: 60, Throttled: 30, TableMissing: 6, RequestRefused: 6}
"""How often a step is tried that DynamoDB does not take: a description may be a little older than the table, and of
many tables only some are changed at once."""
MOST_EFFECTLESS = 6
"""How often a step may be taken without showing in the descriptions."""


class Watch(Protocol):
    """Is told how far it is."""

    def taking(self, step: Step) -> None:
        """Hear that a step is begun."""

    def waiting(self, step: Step, why: str, secs: float) -> None:
        """Hear why a step has to wait, and for how long so far."""

    def moved(self, step: Step, tally: Tally) -> None:
        """Hear how far a backfill is."""

    def ended(self, step: Step, result: Filled | None) -> None:
        """Hear that a step is done, and what a backfill has done."""


@dataclass(slots=True)
class Done:
    """What has been done to a table: the steps taken, and what is left for another run."""

    steps: list[Step] = field(default_factory=list)
    filled: Filled = field(default_factory=Filled)
    rest: tuple[Step, ...] = ()


async def observe(graph: Graph, target: Target) -> State:
    """See what is there of a table. Raises StoreError.

    Cost: a DescribeTable; where there is a table, one GetItem, and a DescribeTimeToLive if its items expire.
    """
    try:
        table = (await graph.send(DescribeTable(target.name)))["Table"]
    except TableMissing:
        return State()
    state = State(table)
    if not state.is_readable:
        return state
    ttl = {}
    if target.expiry is not None:
        ttl = (await graph.send(DescribeTimeToLive(target.name)))["TimeToLiveDescription"]
    return State(table, ttl, await due(graph, target) if filled(target, target.index_names) else ())


async def apply(
    graph: Graph,
    target: Target,
    watch: Watch,
    *,
    drop: bool = False,
    fill: tuple[str, ...] = (),
    segments: int = 4,
) -> Done:
    """Take the steps that make a table what the model says, up to one that only a person can take.

    Indexes to `fill` are backfilled although they are there: somebody else has made them.

    Raises: StoreError.
    """
    if fill:
        await begin(graph, target, tuple(dict.fromkeys((*await due(graph, target), *fill))))
    return await _Run(graph, target, watch, segments, drop=drop).run()


class _Run:
    def __init__(self, graph: Graph, target: Target, watch: Watch, segments: int, *, drop: bool) -> None:
        self._graph = graph
        self._target = target
        self._watch = watch
        self._segments = segments
        self._drop = drop
        self._done = Done()
        self._tries: Counter[tuple[Kind, str]] = Counter()
        self._taken: Counter[tuple[Kind, str]] = Counter()
        self._sent: Step | None = None
        """What was sent last: it is done when it is no longer in the plan, and nothing is under way."""
        self._why = ""
        self._pauses = pauses()
        self._began = asyncio.get_running_loop().time()

    async def run(self) -> Done:
        """Take one step after the other."""
        while True:
            state = await observe(self._graph, self._target)
            steps = self._steps(state)
            step = steps[0] if steps else None
            if self._sent is not None and (step is None or step.kind is not Kind.WAIT):
                self._settle(self._sent, step)
            if step is None:
                return self._done
            if step.kind is Kind.BACKFILL:
                await self._fill(step, state)
            elif step.kind is Kind.WAIT:
                await self._pause(step, step.reason)
            elif _is_disabling(step, state):
                await self._pause(step, "it is being turned off, and can be turned on when it is")
            else:
                await self._send(step, state)

    def _steps(self, state: State) -> tuple[Step, ...]:
        """Plan anew; what comes behind a step that only a person can take is left, also when it could be taken."""
        steps = plan(self._target, state, drop=self._drop)
        by_hand = next((number for number, step in enumerate(steps) if step.kind is Kind.SWITCH), None)
        if by_hand is None:
            return steps
        self._drop, self._done.rest = False, steps[by_hand:]
        return steps[:by_hand]

    def _settle(self, sent: Step, now_first: Step | None) -> None:
        """Take what was sent for done, unless it is still to be done."""
        if now_first is None or (now_first.kind, now_first.subject) != (sent.kind, sent.subject):
            self._done.steps.append(sent)
            self._watch.ended(sent, None)
            self._sent = None

    async def _send(self, step: Step, state: State) -> None:
        place = step.kind, step.subject
        if self._tries[place]:
            await self._pause(step, self._why)
        else:
            self._restart_clock()
            self._watch.taking(step)
        self._tries[place] += 1
        assert step.request is not None, "all other steps have been taken otherwise"
        try:
            if step.kind is Kind.CREATE_INDEX and step.index is not None and filled(self._target, (step.index,)):
                await begin(self._graph, self._target, tuple(dict.fromkeys((*state.due, step.index))))
            await self._graph.send(step.request)
        except tuple(MOST_TRIES) as error:
            self._why = str(error)
            if self._tries[place] >= MOST_TRIES[type(error)]:
                raise
        else:
            self._sent, self._why = step, "the description of the table does not show it yet"
            self._taken[place] += 1
            if self._taken[place] >= MOST_EFFECTLESS:
                raise StoreError(
                    f"{step.line()}: DynamoDB takes the request again and again, and the description of the table "
                    f"`{step.table}` never shows it: expected it to be changed. Look whether something else changes it"
                )

    async def _fill(self, step: Step, state: State) -> None:
        self._watch.taking(step)
        result = await backfill(
            self._graph, self._target, state.due, self._segments, lambda tally: self._watch.moved(step, tally)
        )
        await end(self._graph, self._target)
        self._done.steps.append(step)
        self._done.filled = result
        self._watch.ended(step, result)

    async def _pause(self, step: Step, why: str) -> None:
        self._watch.waiting(step, why, asyncio.get_running_loop().time() - self._began)
        await asyncio.sleep(next(self._pauses))

    def _restart_clock(self) -> None:
        self._pauses = pauses()
        self._began = asyncio.get_running_loop().time()


def _is_disabling(step: Step, state: State) -> bool:
    """Say whether the table's TTL is being turned off, until which it cannot be turned on again."""
    return step.kind is Kind.TTL and state.time_to_live.get("TimeToLiveStatus") == "DISABLING"


def pauses() -> Iterator[float]:
    """Give the pauses between two looks at a table, in seconds: short ones first, for an index may take hours."""
    growing = (FIRST_PAUSE_SECS * 1.5**number for number in range(12))
    return (min(pause, MOST_PAUSE_SECS) for pause in chain(growing, repeat(MOST_PAUSE_SECS)))
