"""Filters as data: what they bind of a key, what DynamoDB can filter, and what is decided here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from graph import expressions
from graph.bounds import Bound
from graph.entity import UNKNOWN, Entity
from graph.expressions import Condition, value_of
from graph.keys import Path
from graph.model import Field, FieldKind, ItemType
from graph.scalars import Scalar


@dataclass(frozen=True, slots=True)
class Test:
    """One operator on the value at a path; `value` is a tuple for `in` and `between`."""

    path: Path
    operator: str
    value: Any
    scalar: Scalar
    __test__ = False  # pytest would collect it by its name


@dataclass(frozen=True, slots=True)
class Every:
    """All of the filters hold; with none, it always does."""

    filters: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    """At least one of the filters holds."""

    filters: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Never:
    """The filter does not hold."""

    filter: Filter


Filter = Test | Every | Some | Never
NO_FILTER = Every()


def conjuncts(filter_: Filter) -> Iterator[Filter]:
    """List the parts that must all hold."""
    if isinstance(filter_, Every):
        for part in filter_.filters:
            yield from conjuncts(part)
    else:
        yield filter_


def bounds(filter_: Filter) -> dict[Path, Bound]:
    """Collect what the filter binds, path by path; only what must hold in any case can bind a key."""
    found: dict[Path, Bound] = {}
    for part in conjuncts(filter_):
        if isinstance(part, Test) and part.value is not None:
            before = found.get(part.path, Bound())
            bound = _bind(before, part)
            if bound is not None:
                found[part.path] = bound
            elif part.path in found:
                found[part.path] = replace(before, clashes=True)
    return found


def _bind(bound: Bound, test: Test) -> Bound | None:
    value = test.value
    match test.operator:
        case "eq":
            return replace(bound, values=_both(bound.values, (value,)))
        case "in" if None not in value:
            return replace(bound, values=_both(bound.values, tuple(dict.fromkeys(value))))
        case "gt" | "ge":
            return replace(bound, low=value, low_open=test.operator == "gt") if bound.low is None else None
        case "lt" | "le":
            return replace(bound, high=value, high_open=test.operator == "lt") if bound.high is None else None
        case "between" if bound.low is None and bound.high is None:
            return replace(bound, low=value[0], high=value[1])
        case "beginsWith" if bound.prefix is None:
            return replace(bound, prefix=value)
    return None


def _both(one: tuple[Any, ...] | None, other: tuple[Any, ...]) -> tuple[Any, ...]:
    return other if one is None else tuple(value for value in one if value in other)


def residue(filter_: Filter, consumed: frozenset[Path]) -> Filter:
    """Give what is left to decide once a key condition stands for all tests on these paths."""
    rest = tuple(part for part in conjuncts(filter_) if not (isinstance(part, Test) and part.path in consumed))
    return rest[0] if len(rest) == 1 else Every(rest)


# --- deciding here ------------------------------------------------------------------------------------------------


def holds(filter_: Filter, entity: Entity) -> bool:
    """Decide a filter on an entity. An absent value equals only null; every order comparison with it is false."""
    match filter_:
        case Test():
            return _test(filter_, entity.at(filter_.path))
        case Every(filters):
            return all(holds(part, entity) for part in filters)
        case Some(filters):
            return any(holds(part, entity) for part in filters)
        case Never(inner):
            return not holds(inner, entity)


def _test(test: Test, value: Any) -> bool:
    if value is UNKNOWN or isinstance(value, Entity):
        value = None
    operator, wanted = test.operator, test.value
    if operator == "exists":
        return (value is not None) is wanted
    if operator == "contains":
        return value is not None and wanted in value
    if operator == "in":
        return _comparable(test, value) in [_comparable(test, entry) for entry in wanted]
    if operator == "eq":
        return bool(_comparable(test, value) == _comparable(test, wanted))
    if operator == "ne":
        return bool(_comparable(test, value) != _comparable(test, wanted))
    if value is None or wanted is None:
        return False
    if operator == "beginsWith":
        return str(value).startswith(wanted)
    return _in_order(test, _comparable(test, value))


def _in_order(test: Test, value: Any) -> bool:
    if test.operator == "between":
        return bool(_comparable(test, test.value[0]) <= value <= _comparable(test, test.value[1]))
    wanted = _comparable(test, test.value)
    decided: bool = {"lt": value < wanted, "le": value <= wanted, "gt": value > wanted, "ge": value >= wanted}[
        test.operator
    ]
    return decided


def _comparable(test: Test, value: Any) -> Any:
    return None if value is None else test.scalar.comparable(value)


def paths(filter_: Filter) -> Iterator[Path]:
    """List the paths that a filter looks at."""
    match filter_:
        case Test(path):
            yield path
        case Every(filters) | Some(filters):
            for part in filters:
                yield from paths(part)
        case Never(inner):
            yield from paths(inner)


# --- leaving it to DynamoDB ---------------------------------------------------------------------------------------


def push_down(filter_: Filter, type_: ItemType) -> Condition | None:
    """Turn what DynamoDB decides as we would into a filter expression; the caller decides the whole filter again.

    Only conjuncts whose every test is on an attribute of the item's own can go: a field that a key may hold has no
    attribute in some tables, and key attributes are refused in a filter of a Query.
    """
    conditions = tuple(condition for part in conjuncts(filter_) if (condition := _condition(part, type_)) is not None)
    if not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else expressions.AllOf(conditions)


def pushes_all(filter_: Filter, type_: ItemType) -> bool:
    """Say whether nothing would be left to decide here."""
    return all(_condition(part, type_) is not None for part in conjuncts(filter_))


def _condition(filter_: Filter, type_: ItemType) -> Condition | None:
    match filter_:
        case Test():
            field = type_.fields.get(filter_.path[0])
            if len(filter_.path) > 1 or field is None or not _is_pushable(field, type_):
                return None
            return _test_condition(filter_, field)
        case Never(inner):
            condition = _condition(inner, type_)
            return None if condition is None else expressions.Not(condition)
        case Every(filters) | Some(filters):
            found = [_condition(part, type_) for part in filters]
            conditions = tuple(condition for condition in found if condition is not None)
            if not conditions or len(conditions) < len(found):
                return None
            return expressions.AllOf(conditions) if isinstance(filter_, Every) else expressions.AnyOf(conditions)


def _is_pushable(field: Field, type_: ItemType) -> bool:
    if field.kind is not FieldKind.ATTRIBUTE or field.scalar is None or field.type.of is not None:
        return False
    in_key = any(
        name == field.attribute or any(variable.path == (field.name,) for variable in template.variables)
        for layout in type_.layouts
        for name, template in layout.templates.items()
    )
    return field.scalar.same_in_store and not in_key


def _test_condition(test: Test, field: Field) -> Condition | None:
    name, operator = field.attribute, test.operator
    if operator == "exists" or test.value is None:
        present: Condition = expressions.Exists(name)
        wanted = test.value if operator == "exists" else operator == "ne"
        if operator not in ("exists", "eq", "ne"):
            return None
        return present if wanted else expressions.Not(present)
    if operator in ("in", "between"):
        if None in test.value or not 1 <= len(test.value) <= 100:
            return None
        values = tuple(value_of(test.scalar.write(value)) for value in test.value)
        return expressions.In(name, values) if operator == "in" else expressions.Between(name, values[0], values[1])
    value = value_of(test.scalar.write(test.value))
    if operator in ("beginsWith", "contains"):
        return expressions.Function("begins_with" if operator == "beginsWith" else "contains", name, value)
    comparators: dict[str, expressions.Comparator] = {
        "eq": "=",
        "ne": "<>",
        "lt": "<",
        "le": "<=",
        "gt": ">",
        "ge": ">=",
    }
    return expressions.Compare(name, comparators[operator], value)
