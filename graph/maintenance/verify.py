"""Verify: every item of the tables is judged, and what is wrong is reported."""

from __future__ import annotations

from collections.abc import Callable

from graph.loaders import Operation
from graph.maintenance.findings import Finding
from graph.maintenance.walk import Walk, judged, look_again
from graph.model import Table
from graph.requests import Item

Report = Callable[[Finding], None]


async def verify(walk: Walk, report: Report) -> None:
    """Report everything that is wrong in the tables of a model, as it is found; nothing is written.

    Cost:   a Scan of every table; BatchGetItems for the nodes that the items name, and for mirrors; a Query for each
            counter, each required relationship, and each node that its name does not lead to; for an item with a
            finding the same again, consistently, so that writes meanwhile are not taken for faults.
    Raises: StoreError.
    """

    async def visit(operation: Operation, table: Table, name: str, items: list[Item]) -> None:
        suspects = [subject.key for subject, found in await judged(walk, operation, table, name, items) if found]
        for _, found in await look_again(walk, table, suspects) if suspects else ():
            for finding in found:
                walk.tally.findings[finding.code.name] += 1
                report(finding)

    await walk.through(visit)
