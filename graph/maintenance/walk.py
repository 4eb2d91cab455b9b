"""Walking: every item of every table of a model, segments side by side, a page at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import chain

from graph.loaders import Graph, Operation
from graph.maintenance.findings import Finding
from graph.maintenance.judging import judge
from graph.maintenance.nodes import judge_nodes
from graph.maintenance.subjects import Subject, subjects_of
from graph.model import Table
from graph.periods import Period
from graph.requests import Item, ItemKey, ListTables, Scan, key_value
from graph.tasks import together

NO_BUDGET = 2**62
PAGE_ITEMS = 1000
"""A megabyte may hold ten thousand small items, and what they are judged by takes many times their own memory."""


Visit = Callable[[Operation, Table, str, list[Item]], Awaitable[None]]
"""Takes a page: the operation that read it, the table of the model, its name, and the items."""


@dataclass(slots=True)
class Tally:
    """What a walk has met and spent so far."""

    items: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    requests: int = 0
    findings: Counter[str] = field(default_factory=Counter)
    """How many there are of each code."""
    began: float = field(default_factory=time.monotonic)

    @property
    def secs(self) -> float:
        """Give the time since the walk began, in seconds."""
        return max(time.monotonic() - self.began, 1e-6)


class Walk:
    """One walk through the tables of a model; `moved` is told after every page."""

    def __init__(self, graph: Graph, segments: int, moved: Callable[[Tally], None] = lambda _: None) -> None:
        self.graph = graph
        self.segments = segments
        self.tally = Tally()
        self._moved = moved

    @asynccontextmanager
    async def operation(self, *, consistent: bool = False) -> AsyncIterator[Operation]:
        """Begin an operation whose requests count for the walk, and end it."""
        operation = self.graph.operation(report_capacity=True, consistent=consistent)
        # What is not found within a budget is not gone: here all is read that there is.
        operation.limits = replace(operation.limits, read_budget=NO_BUDGET)
        try:
            yield operation
        finally:
            self.tally.requests += len(operation.meter.requests)
            self.tally.read_units += operation.meter.capacity_units
            await operation.close()

    async def through(
        self,
        visit: Visit,
        *,
        only: Collection[str] | None = None,
        consistent: bool = False,
    ) -> None:
        """Visit every page of every table, or of those named, as many at once as there are segments.

        Cost: one Scan for each megabyte of a table, or each 1,000 items of it.
        """
        for table in self.graph.model.tables.values():
            if only is not None and table.name not in only:
                continue
            for name in await self.tables(table):
                first = Scan(name, 0, self.segments, limit=PAGE_ITEMS, consistent=consistent)
                parts = [replace(first, segment=number) for number in range(self.segments)]
                await together([self._segment(table, part, visit) for part in parts])

    async def _segment(self, table: Table, part: Scan, visit: Visit) -> None:
        name, start = part.table, None
        while True:
            async with self.operation() as operation:
                page = await operation.page(replace(part, start=start))
                await visit(operation, table, name, page["Items"])
            self.tally.items += len(page["Items"])
            self._moved(self.tally)
            if (last := page.get("LastEvaluatedKey")) is None:
                return
            start = tuple((attribute, key_value(last[attribute])) for attribute in table.key_attributes)

    async def tables(self, table: Table) -> list[str]:
        """Name the tables of one of the model: for a time series those that there are."""
        if table.period is None:
            return [table.name]
        found: list[str] = []
        after: str | None = None
        while True:
            answer = await self.graph.send(ListTables(after))
            found += (name for name in answer["TableNames"] if _is_of(table.period, name))
            if (after := answer.get("LastEvaluatedTableName")) is None:
                return found


def _is_of(period: Period, name: str) -> bool:
    middle = name.removeprefix(period.before).removesuffix(period.after)
    return period.names_table(name) and len(middle) == len(period.format) and middle.isdigit()


async def judged(
    walk: Walk, operation: Operation, table: Table, name: str, items: Iterable[Item], *, behind: bool = True
) -> list[tuple[Subject, list[Finding]]]:
    """Judge items of a table; with `behind` also what only shows in the lists behind a node."""
    subjects = await subjects_of(operation, table, name, items)
    found = [judge(subject) for subject in subjects]
    behind_found = await judge_nodes(walk, operation, subjects) if behind else {}
    return [
        (subject, list(chain(findings, behind_found.get(number, ()))))
        for number, (subject, findings) in enumerate(zip(subjects, found, strict=True))
    ]


async def look_again(
    walk: Walk, table: Table, keys: Sequence[ItemKey], *, behind: bool = True
) -> list[tuple[Subject, list[Finding]]]:
    """Judge items again by consistent reads: what a scan shows of a table in use may be no more."""
    async with walk.operation(consistent=True) as operation:
        items = [item for item in await operation.items(keys) if item is not None]
        return await judged(walk, operation, table, keys[0][0], items, behind=behind) if items else []
