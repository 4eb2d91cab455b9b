"""The completion of values: leaves and lists of them, and nullability as the specification has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from graphql import (
    GraphQLLeafType,
    GraphQLOutputType,
    Undefined,
    is_leaf_type,
    is_list_type,
    is_non_null_type,
)

from graph.columns import Loose
from resolvers.plan.failures import At, Failed, Place
from resolvers.plan.run import Run, null_refused

AS_THEY_ARE = frozenset(("String", "ID", "Boolean", "Float", "Date", "DateTime", "Base64", "JSON"))
"""Scalars whose values, as the graph reads them, are already what the response holds."""

MOST = 2**31 - 1


class Leaves:
    """Completes the values of a leaf type, or of lists of one, inside the lists and nullability of a field."""

    def __init__(self, type_: GraphQLOutputType, what: str) -> None:
        self.required = is_non_null_type(type_)
        self.what = what
        inner: Any = type_.of_type if is_non_null_type(type_) else type_
        self._item = Leaves(inner.of_type, what) if is_list_type(inner) else None
        self._type: GraphQLLeafType | None = inner if is_leaf_type(inner) else None
        self._write = None if self._type is None else _writer(self._type)

    def write(self, run: Run, values: list[Any], at: At) -> list[Any]:
        """Complete a column."""
        if self._item is None and type(values) is list:
            if self._write is None:
                return values
            try:
                return self._write(values)
            except Exception:  # noqa: S110  # one after the other will tell which
                pass
        written = [self.one(run, value, partial(at, number)) for number, value in enumerate(values)]
        has_failed = self.required and any([type(value) is Failed for value in written])
        return Loose(written) if has_failed else written

    def one(self, run: Run, value: Any, at: Callable[[], Place]) -> Any:
        """Complete one value."""
        result: Any
        if isinstance(value, Exception):
            result = Failed(value, at(), run.failures.time)
        elif value is None:
            result = None
        elif self._item is not None:
            result = self._list(run, self._item, value, at)
        else:
            result = self._leaf(run, value, at)
        if result is None and self.required:
            result = null_refused(run, at(), self.what)
        if type(result) is Failed and not self.required:
            run.failures.absorb(result, at())
            return None
        return result

    @staticmethod
    def _list(run: Run, item: Leaves, values: Sequence[Any], at: Callable[[], Place]) -> Any:
        written = [item.one(run, value, partial(_inside, at, number)) for number, value in enumerate(values)]
        return next((value for value in written if type(value) is Failed), written)

    def _leaf(self, run: Run, value: Any, at: Callable[[], Place]) -> Any:
        assert self._type is not None
        try:
            written = self._type.coerce_output_value(value)
        except Exception as error:
            return Failed(error, at(), run.failures.time)
        if written is Undefined or written is None:
            problem = f"Expected `{self._type}.coerce_output_value({value!r})` to return non-nullable value"
            return Failed(TypeError(problem), at(), run.failures.time)
        return written


def _inside(at: Callable[[], Place], number: int) -> Place:
    return (*at(), number)


Write = Callable[[list[Any]], list[Any]]


def _writer(type_: GraphQLLeafType) -> Write | None:
    """Make what writes a column in which there is a value everywhere; None where values are as they are."""
    # An enum's values were read as its names.
    if type_.name in AS_THEY_ARE or not hasattr(type_, "parse_literal") or hasattr(type_, "values"):
        return None
    if type_.name == "Int":
        return _integers
    write = type_.coerce_output_value
    return lambda values: [write(value) for value in values]


def _integers(values: list[int]) -> list[int]:
    if values and not (max(values) <= MOST and min(values) >= -MOST - 1):
        raise ValueError("32 bits")
    return values
