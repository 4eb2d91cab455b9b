"""Repair: what verify finds is mended, each item by one transaction that rests on what was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from graph.client import MAX_TRIES, back_off
from graph.errors import KeyValueError, RequestRefused, WriteError
from graph.loaders import Operation
from graph.maintenance.findings import NEVER_MENDED, Code, Finding
from graph.maintenance.mending import build
from graph.maintenance.nodes import looks_behind
from graph.maintenance.subjects import Subject
from graph.maintenance.walk import Walk, judged, look_again
from graph.model import Table
from graph.requests import Item, ItemKey
from graph.transaction import Rule
from graph.writes.locks import Locks, Refused, break_stale, send
from graph.writes.writing import Writing

LATER = frozenset((Code.DANGLING, Code.WRONG_COUNT, Code.REQUIRED))
"""What is only decided when the keys are right that lead to nodes, and the items counted are there."""


class Outcome(Enum):
    """What has become of a finding."""

    MENDED = "mended"
    WOULD_MEND = "would mend"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be mended: which codes, whether edges go that lead to no node, and whether it is only told."""

    codes: frozenset[Code] = frozenset(Code) - NEVER_MENDED
    delete_dangling: bool = False
    dry_run: bool = False
    is_early: bool = False
    """Nothing is wanted that is only decided later: the tables are walked once."""

    def takes(self, finding: Finding) -> bool:
        """Say whether a finding is to be mended."""
        is_wanted = finding.code in self.codes and finding.mend is not None
        return is_wanted and (finding.code is not Code.DANGLING or self.delete_dangling)


Report = Callable[[Finding, Outcome], None]


async def repair(walk: Walk, wish: Wish, report: Report) -> None:
    """Mend what is wrong in the tables of a model, and report it as it is done; what cannot be mended is left.

    The tables are walked a second time, where the model or a finding asks for it, for what rests on other items.

    Cost:   what verify costs, and for each item mended one read of it and one transaction.
    Raises: StoreError.
    """
    repairing = _Repair(walk, wish, report)
    await walk.through(repairing.visit)
    if not wish.is_early and (repairing.is_needed_again or looks_behind(walk.graph.model)):
        repairing.is_later = True
        await walk.through(repairing.visit)


class _Repair:
    def __init__(self, walk: Walk, wish: Wish, report: Report) -> None:
        self._walk = walk
        self._wish = wish
        self._report = report
        self.is_later = False
        self.is_needed_again = False

    async def visit(self, operation: Operation, table: Table, name: str, items: list[Item]) -> None:
        """Mend the items of a page, one after the other: they may rest on the same nodes."""
        found = await judged(self._walk, operation, table, name, items, behind=self.is_later)
        for subject, findings in found:
            self.is_needed_again = self.is_needed_again or any(one.code in LATER for one in findings)
            if any(self._is_now(one) for one in findings):
                await self._mend(table, subject.key)

    def _is_now(self, finding: Finding) -> bool:
        return (finding.code in LATER) is self.is_later

    async def _mend(self, table: Table, key: ItemKey) -> None:
        """Judge an item anew and mend it, again and again while others write what that rests on."""
        for attempt in range(1, MAX_TRIES + 1):
            looked = await look_again(self._walk, table, [key], behind=self.is_later)
            subject, found = looked[0] if looked else (None, [])
            found = [finding for finding in found if self._is_now(finding)]
            wanted = [finding for finding in found if self._wish.takes(finding)]
            if subject is None or not wanted or self._wish.dry_run:
                return self._tell(found, wanted, Outcome.WOULD_MEND)
            async with self._walk.operation(consistent=True) as operation:
                try:
                    await self._send(operation, subject, wanted)
                except Refused as refused:
                    await break_stale(operation, refused)
                    # Where another item lies in the way, it will not go by being tried again.
                    is_taken = refused.guard.rule is Rule.ABSENT and attempt > 1
                    if attempt < MAX_TRIES and not is_taken:
                        await back_off(attempt, operation.meter)
                        continue
                except (WriteError, KeyValueError, RequestRefused):
                    # DynamoDB does not take it, or what it names is gone: the others are mended all the same.
                    pass
                else:
                    return self._tell(found, wanted, Outcome.MENDED)
            return self._tell(found, (), Outcome.MENDED)
        return None

    async def _send(self, operation: Operation, subject: Subject, wanted: list[Finding]) -> None:
        writing = Writing(operation, Locks(operation))
        await build(writing, subject, wanted)
        read_units = operation.meter.capacity_units
        await send(operation, writing.transaction)
        spent = operation.meter.capacity_units - read_units
        self._walk.tally.write_units += spent
        self._walk.tally.read_units -= spent

    def _tell(self, found: Iterable[Finding], taken: Iterable[Finding], outcome: Outcome) -> None:
        taken = list(taken)
        for finding in found:
            self._walk.tally.findings[finding.code.name] += 1
            self._report(finding, outcome if any(finding is one for one in taken) else Outcome.LEFT)
