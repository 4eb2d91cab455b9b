"""One run of a plan: what it reads with, and what went wrong so far."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from graphql.execution.values import VariableValues

from graph.columns import Loose
from graph.loaders import Operation
from resolvers.plan.failures import At, Failed, Failures, first


class Run:
    """What belongs to one execution of a plan."""

    __slots__ = ("failures", "operation", "prepared", "variables")

    def __init__(self, operation: Operation, variables: VariableValues) -> None:
        self.operation = operation
        self.variables = variables
        self.failures = Failures()
        self.prepared: dict[object, Any] = {}
        """What a step makes of its arguments, once for all objects."""


class Batch(Protocol):
    """Objects of one type side by side."""

    at: At

    def __len__(self) -> int:
        """Count the objects."""

    def take(self, numbers: Sequence[int]) -> Any:
        """Take some of the objects."""


Leaf = Callable[[Run, Any], list[Any]]
"""Writes a field of all objects of a batch; the column is Loose where one may have failed."""

Branch = Callable[[Run, Any], Coroutine[Any, Any, list[Any]]]
"""The same for a field that reads further."""


def settle(run: Run, values: Sequence[Any], at: At, *, required: bool, what: str) -> list[Any]:
    """Turn exceptions into failures, and those that may be null into null."""
    settled: list[Any] = []
    has_failed = False
    for number, value in enumerate(values):
        if value is None and required:
            value = null_refused(run, at(number), what)
        elif isinstance(value, Exception):
            value = Failed(value, at(number), run.failures.time)
        if type(value) is Failed:
            if required:
                has_failed = True
            else:
                run.failures.absorb(value, at(number))
                value = None
        settled.append(value)
    return Loose(settled) if has_failed else settled


def null_refused(run: Run, place: Any, what: str) -> Failed:
    """Say that something is missing which the schema promises, in graphql-core's words."""
    return Failed(TypeError(f"Cannot return null for non-nullable field {what}."), place, run.failures.time)


def write_rows(names: tuple[str, ...], columns: Sequence[Sequence[Any]], size: int) -> list[Any]:
    """Put columns together to objects; an object fails with the first of its fields that failed."""
    rows = _rows(names, columns, size)
    if not any([type(column) is Loose for column in columns]):
        return rows
    return Loose([first(list(row.values())) or row for row in rows])


def _rows(names: tuple[str, ...], columns: Sequence[Sequence[Any]], size: int) -> list[dict[str, Any]]:
    # A literal takes a third of the time of dict(zip(…)), and most selections are short.
    match names:
        case ():
            return [{} for _ in range(size)]
        case (a,):
            return [{a: v} for v in columns[0]]
        case (a, b):
            return [{a: v, b: w} for v, w in zip(*columns, strict=True)]
        case (a, b, c):
            return [{a: v, b: w, c: x} for v, w, x in zip(*columns, strict=True)]
        case (a, b, c, d):
            return [{a: v, b: w, c: x, d: y} for v, w, x, y in zip(*columns, strict=True)]
        case (a, b, c, d, e):
            return [{a: v, b: w, c: x, d: y, e: z} for v, w, x, y, z in zip(*columns, strict=True)]
        case _:
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
