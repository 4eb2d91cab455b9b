"""Examining: the tables of a model are described, compared, and sampled within a number of read units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from graph.apply.run import observe
from graph.apply.state import State, Target
from graph.doctor.findings import Code, Finding, ranked
from graph.doctor.indexes import Usage, useless_of
from graph.doctor.items import Items
from graph.doctor.partitions import limited_of, shards_of, skewed_of
from graph.doctor.sample import Sample, draw, follow
from graph.doctor.structure import UNREADABLE, differences_of, habits_of
from graph.errors import AccessRefused, RequestRefused
from graph.loaders import Graph
from graph.maintenance.findings import Code as Wrong
from graph.maintenance.walk import Walk, judged, look_again
from graph.requests import DescribeContinuousBackups, DescribeTable, DescribeTimeToLive
from graph.tables import differences

TO_DRAW = 0.5
"""How much of the units the sample takes; the rest is for large partitions, and for the nodes that its items name."""
TO_FOLLOW = 0.25
AT_ONCE = 25
"""Items judged together: each may take a read of a node that it names."""
FOLLOWED = 3


@dataclass(slots=True)
class Examined:
    """What is known of one table."""

    target: Target
    described: Any = None
    findings: list[Finding] = field(default_factory=list)
    sample: Sample | None = None
    judged: int = 0
    """Items that were compared with what a write would have made of them."""


class Examination:
    """One examination of a model's tables; `units` are the read units for all of them."""

    def __init__(self, graph: Graph, *, units: float, usage: Usage | None = None, seed: int = 0) -> None:
        self._graph = graph
        self._units = units
        self._usage = usage
        self._seed = seed
        self.walk = Walk(graph, 1)
        self.examined: list[Examined] = []

    async def look(self) -> None:
        """Look at the descriptions of the tables alone: nothing is read. Raises StoreError."""
        for target in await self._targets():
            self.examined.append(await self._described(target))

    async def read(self) -> None:
        """Read a sample of each table that fits the model as far as that takes.

        Cost:   the units given, and a page for each of four segments more; of a time series the last table alone.
        Raises: StoreError.
        """
        wanted = self.sampled()
        for number, one in enumerate(wanted):
            left = self._units - self.walk.tally.read_units
            if left > 0:
                await self._sampled(one, left / (len(wanted) - number))

    def findings(self) -> list[Finding]:
        """List all that was found, the most important first."""
        return ranked(finding for one in self.examined for finding in one.findings)

    def sampled(self) -> list[Examined]:
        """List the tables that are to be read."""
        last = {one.target.table.name: one for one in self.examined if one.described is not None}
        return [one for one in last.values() if not any(finding.code in UNREADABLE for finding in one.findings)]

    async def _targets(self) -> list[Target]:
        model = self._graph.model
        return [
            Target(model, table, name)
            for table in model.tables.values()
            for name in sorted(await self.walk.tables(table))
        ]

    async def _described(self, target: Target) -> Examined:
        examined = Examined(target)
        state = await self._state(examined)
        examined.described = state.table
        examined.findings += differences_of(target, state)
        if state.table is not None:
            backups = await self._told(examined, "DescribeContinuousBackups", self._backups)
            examined.findings += habits_of(target, state.table, backups)
            examined.findings += useless_of(target, state, self._usage)
        return examined

    async def _state(self, examined: Examined) -> State:
        try:
            return await observe(self._graph, examined.target)
        except AccessRefused:
            # What else there is to be seen is seen all the same.
            description = await self._graph.send(DescribeTable(examined.target.name))
            state = State(description["Table"])
            ttl = await self._told(examined, "DescribeTimeToLive", self._time_to_live)
            return State(state.table, (ttl or _not_told(examined.target))["TimeToLiveDescription"])

    async def _time_to_live(self, target: Target) -> Any:
        return await self._graph.send(DescribeTimeToLive(target.name))

    async def _backups(self, target: Target) -> Any:
        return (await self._graph.send(DescribeContinuousBackups(target.name)))["ContinuousBackupsDescription"]

    async def _told(self, examined: Examined, what: str, ask: Callable[[Target], Awaitable[Any]]) -> Any:
        """Ask what not everybody may ask, and not every engine knows."""
        try:
            return await ask(examined.target)
        except RequestRefused:
            return None  # This engine has no such thing.
        except AccessRefused as error:
            cure, found = f"allow dynamodb:{what}, or ask who may", f"{what} was refused: {error}"
            examined.findings.append(Finding(Code.NOT_EXAMINED, examined.target.name, what, found, cure))
            return None

    # --- what lies in it

    async def _sampled(self, examined: Examined, units: float) -> None:
        target, end = examined.target, self.walk.tally.read_units + units
        items = Items(target, examined.described)
        sample = await draw(self.walk, target, examined.described, units * TO_DRAW, items.visit, self._seed)
        examined.sample = sample
        cut = [one for one in sample.collections if not one.is_whole and one.units > units * TO_DRAW / 200]
        for one in cut[:FOLLOWED]:
            left = min(end - self.walk.tally.read_units, units * TO_FOLLOW)
            await follow(self.walk, sample, one, left / FOLLOWED)
        sample.collections.sort(key=lambda one: -one.total_bytes)
        examined.findings += items.findings(sample)
        examined.findings += (*skewed_of(sample), *limited_of(sample), *shards_of(sample))
        if not list(differences(target.model, target.table, {"Table": examined.described})):
            await self._judge(examined, sample, end)

    async def _judge(self, examined: Examined, sample: Sample, end: float) -> None:
        """Compare some of the items with what a write would have made of them, as `verify` does with all."""
        target, counts = examined.target, Counter[Wrong]()
        for start in range(0, len(sample.items), AT_ONCE):
            if self.walk.tally.read_units >= end:
                break
            some = sample.items[start : start + AT_ONCE]
            async with self.walk.operation() as operation:
                found = await judged(self.walk, operation, target.table, target.name, some, behind=False)
            suspects = [subject.key for subject, wrong in found if wrong]
            if suspects:
                again = await look_again(self.walk, target.table, suspects, behind=False)
                counts.update(
                    one.code for _, wrong in again for one in {finding.code: finding for finding in wrong}.values()
                )
            examined.judged += len(some)
        examined.findings += _wrong(examined, counts)


def _wrong(examined: Examined, counts: Counter[Wrong]) -> list[Finding]:
    total = examined.judged
    return [
        Finding(
            Code.ITEMS_WRONG,
            examined.target.name,
            code.name,
            f"{count:,} of {total:,} items looked at: {code.value}",
            f"`tablegraph verify` names all of them; `tablegraph repair --only {code.name}` mends what it can",
            {"items": count, "of": total, "share": round(count / total, 4)},
            weight=count / total,
        )
        for code, count in counts.items()
        if code is not Wrong.NO_TYPE  # These are told with their keys' shapes.
    ]


def _not_told(target: Target) -> Any:
    """Take the TTL as it should be, where nobody tells."""
    return {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLED", "AttributeName": target.expiry}}
