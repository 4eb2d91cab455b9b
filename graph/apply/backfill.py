"""Backfilling: items that were there before an index get the attributes that its key is made of.

That a backfill is due is written into the table before the index is created, and taken away when it is done: whoever is
interrupted in between, the next run knows. The mark lies among the receipts, which nothing takes for data.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass

from graph.apply.plan import filled
from graph.apply.state import Target
from graph.errors import RequestRefused, TableMissing
from graph.loaders import Graph
from graph.maintenance.findings import Code, Finding
from graph.maintenance.repair import Outcome, Wish, repair
from graph.maintenance.walk import Tally, Walk
from graph.model import Table
from graph.ours import RECEIPT, place
from graph.requests import Action, GetItem, Item, KeyAttributes, TransactWriteItems, key_attribute


@dataclass(slots=True)
class Filled:
    """What has become of a backfill."""

    mended: int = 0
    left: int = 0
    """Attributes that could not be written: what they are made of is missing, or DynamoDB does not take it."""


async def due(graph: Graph, target: Target) -> tuple[str, ...]:
    """Name the indexes whose backfill was begun and not finished. Raises StoreError."""
    try:
        answer = await graph.send(GetItem(target.name, _place(target), consistent=True))
    except TableMissing:
        # Described, and yet not there to be read: it is new.
        return ()
    except RequestRefused:
        # A table of another key, which is refused anyway, has no such item.
        return ()
    if "Item" not in answer:
        return ()
    return tuple(name["S"] for name in answer["Item"][RECEIPT]["M"]["backfill"]["L"])


async def begin(graph: Graph, target: Target, names: tuple[str, ...]) -> None:
    """Write down that a backfill of these indexes is due. Raises StoreError."""
    key = _place(target)
    item: Item = {name: key_attribute(value) for name, value in key}
    content = {"M": {"backfill": {"L": [{"S": name} for name in names]}}}
    await _write(graph, Action(target.name, key, {**item, RECEIPT: content}))


async def end(graph: Graph, target: Target) -> None:
    """Take away what was written down. Raises StoreError."""
    await _write(graph, Action(target.name, _place(target), delete=True))


async def _write(graph: Graph, action: Action) -> None:
    await graph.send(TransactWriteItems((action,), str(uuid.uuid4())))


def _place(target: Target) -> KeyAttributes:
    # A time series' tables have names of their own, and the same key.
    return place(target.model, target.table, "receipt#apply")[1]


async def backfill(
    graph: Graph, target: Target, names: tuple[str, ...], segments: int, moved: Callable[[Tally], None]
) -> Filled:
    """Write the attributes that the keys of these indexes are made of, where items lack them or hold others.

    Cost:   a Scan of the table, BatchGetItems for the nodes that its items name, and for each item that lacks
            something one read and one transaction.
    Raises: StoreError.
    """
    wish = _Filling(attributes=frozenset(filled(target, names)), is_early=True)
    result = Filled()
    while True:
        tally = _Tally()

        def report(finding: Finding, outcome: Outcome, tally: _Tally = tally) -> None:
            tally.count(finding, outcome, is_wanted=wish.takes(finding))

        await repair(_OneTable(graph, target, segments, moved), wish, report)
        result.mended += tally.mended
        result.left = tally.left
        if not (tally.mended and tally.dangling):
            return result
        # A node may be found through the new index alone: what names it is filled when the node is in there.


@dataclass(slots=True)
class _Tally:
    mended: int = 0
    left: int = 0
    dangling: int = 0

    def count(self, finding: Finding, outcome: Outcome, *, is_wanted: bool) -> None:
        self.mended += outcome is Outcome.MENDED
        self.left += is_wanted and outcome is Outcome.LEFT
        self.dangling += finding.code is Code.DANGLING


@dataclass(frozen=True, slots=True)
class _Filling(Wish):
    """Mends key attributes of new indexes alone: nothing is moved, and nothing taken away."""

    attributes: frozenset[str] = frozenset()

    def takes(self, finding: Finding) -> bool:
        mend = finding.mend
        if finding.code is not Code.STALE_KEY or mend is None or mend.move or mend.update.remove:
            return False
        return bool(mend.update.put) and mend.update.put.keys() <= self.attributes


class _OneTable(Walk):
    """A walk through one table alone."""

    def __init__(self, graph: Graph, target: Target, segments: int, moved: Callable[[Tally], None]) -> None:
        super().__init__(graph, segments, moved)
        self._target = target

    async def tables(self, table: Table) -> list[str]:
        """Name the table, if it is one of these."""
        return [self._target.name] if table is self._target.table else []
