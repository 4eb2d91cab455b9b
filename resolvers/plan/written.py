"""The values of a field, completed by its type: lists, leaves, items, connections and mappings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from itertools import chain
from typing import Any, NamedTuple

from graphql import GraphQLOutputType, is_leaf_type, is_list_type, is_non_null_type

from graph.columns import Loose
from graph.model import Layout
from resolvers.plan.failures import At, Failed, Place, Step
from resolvers.plan.objects import Objects, Selection, below, some, spread
from resolvers.plan.run import Batch, Branch, Run, settle
from resolvers.plan.values import Leaves

Found = tuple[Sequence[Any], Layout | None]
"""Values, exceptions among them, and the layout of those that are items as they came."""


class Split(NamedTuple):
    """Values of which some are there before the others, so that what is read behind them need not wait."""

    ahead: list[int]
    """Which objects have theirs already."""
    values: Sequence[Any]
    rest: list[int]
    work: Coroutine[Any, Any, Sequence[Any]]
    """Brings the values of the rest."""


Read = Callable[[Run, Any], Awaitable[Found | Split]]

Write = Callable[[Run, Sequence[Any], At, Layout | None], Awaitable[list[Any]]]
"""Writes objects; None, exceptions and failures stay as they are."""


class Written:
    """Completes values of one type, whatever its lists and nullability."""

    def __init__(self, type_: GraphQLOutputType, what: str, objects: Write | None) -> None:
        """Take how to write objects, where the type holds any."""
        self._required = is_non_null_type(type_)
        self._what = what
        inner: Any = type_.of_type if is_non_null_type(type_) else type_
        self._leaves = Leaves(type_, what) if objects is None else None
        self._item = Written(inner.of_type, what, objects) if is_list_type(inner) and objects is not None else None
        self._objects = objects

    async def write(self, run: Run, values: Sequence[Any], at: At, layout: Layout | None = None) -> list[Any]:
        """Complete a column."""
        if self._leaves is not None:
            return self._leaves.write(run, Loose(values), at)
        if self._item is not None:
            column = await self._lists(run, self._item, values, at, layout)
        else:
            assert self._objects is not None
            column = await self._objects(run, values, at, layout)
        if type(column) is list:
            return column
        return settle(run, column, at, required=self._required, what=self._what)

    @staticmethod
    async def _lists(run: Run, item: Written, values: Sequence[Any], at: At, layout: Layout | None) -> list[Any]:
        written = await item.write(run, flatten(values), within(values, at), layout)
        return regroup(values, written)


def flatten(lists: Sequence[Any]) -> list[Any]:
    """Put lists behind each other, what is no list left out."""
    return list(chain.from_iterable([entries for entries in lists if is_list(entries)]))


def within(lists: Sequence[Any], at: At) -> At:
    """Tell the places of the entries of lists that were put behind each other."""

    def place(number: int) -> Place:
        for outer, entries in enumerate(lists):
            if is_list(entries):
                if number < len(entries):
                    return (*at(outer), number)
                number -= len(entries)
        raise IndexError(number)

    return place


def is_list(value: Any) -> bool:
    """Say whether a value is a list, and not what came instead of one."""
    return value is not None and not isinstance(value, (Exception, Failed))


def regroup(lists: Sequence[Any], written: list[Any]) -> list[Any]:
    """Cut what was written into the lists that it came from; one with a failure in it fails."""
    begin = 0
    grouped: list[Any] = []
    is_loose = type(written) is Loose
    for entries in lists:
        if not is_list(entries):
            is_loose = True
            grouped.append(entries)
            continue
        part = written[begin : begin + len(entries)]
        begin += len(entries)
        failed = next((one for one in part if type(one) is Failed), None) if is_loose else None
        grouped.append(part if failed is None else failed)
    return Loose(grouped) if is_loose else grouped


def objects_of(selection: Selection) -> Write:
    """Write objects of the one type of a selection."""

    async def write(run: Run, values: Sequence[Any], at: At, _: Layout | None) -> list[Any]:
        numbers = [number for number, value in enumerate(values) if is_list(value)]
        rows = await selection.run(run, Objects([values[number] for number in numbers], some(at, numbers)))
        if len(numbers) == len(values):
            return rows
        spread_ = Loose(spread(rows, numbers, len(values)))
        for number, value in enumerate(values):
            if not is_list(value):
                spread_[number] = value
        return spread_

    return write


def branch_of(read: Read, written: Written, step: Step) -> Branch:
    """Make the branch of a field from what reads its values and what completes them."""

    async def branch(run: Run, batch: Batch) -> list[Any]:
        at = below(batch.at, step)
        try:
            found = await read(run, batch)
        except Exception as error:
            found = [error] * len(batch), None
        run.failures.time += 1
        if isinstance(found, Split):
            return await _write_split(run, written, found, at)
        values, layout = found
        return await written.write(run, values, at, layout)

    return branch


async def _write_split(run: Run, written: Written, split: Split, at: At) -> list[Any]:
    async def rest() -> list[Any]:
        values = await split.work
        run.failures.time += 1
        return await written.write(run, values, some(at, split.rest))

    ahead = written.write(run, split.values, some(at, split.ahead))
    columns = await run.operation.together([ahead, rest()])
    return merged((split.ahead, split.rest), columns)


def merged(parts: Sequence[Sequence[int]], columns: Sequence[list[Any]]) -> list[Any]:
    """Put the columns of parts of a batch together again."""
    values: list[Any] = [None] * sum(map(len, parts))
    for numbers, column in zip(parts, columns, strict=True):
        for number, value in zip(numbers, column, strict=True):
            values[number] = value
    return Loose(values) if Loose in map(type, columns) else values


def in_two(branch: Branch, ready: Callable[[Run, Any], list[int]]) -> Branch:
    """Let what is ready go ahead: what it leads to can then travel with what the others still wait for."""

    async def both(run: Run, batch: Batch) -> list[Any]:
        first = ready(run, batch) if len(batch) > 1 else []
        if not first or len(first) == len(batch):
            return await branch(run, batch)
        ahead = frozenset(first)
        rest = [number for number in range(len(batch)) if number not in ahead]
        parts = (first, rest)
        columns = await run.operation.together([branch(run, batch.take(numbers)) for numbers in parts])
        return merged(parts, columns)

    return both


def is_leaf(type_: GraphQLOutputType) -> bool:
    """Say whether a type is a leaf, or lists of one."""
    inner: Any = type_
    while is_non_null_type(inner) or is_list_type(inner):
        inner = inner.of_type
    return is_leaf_type(inner)
