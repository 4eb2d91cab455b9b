"""Filters as data: what they bind of a key, what DynamoDB can filter, and what is decided here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import ge, gt, le, lt
from types import MappingProxyType
from typing import Any

from graph import expressions
from graph.bounds import Bound
from graph.entity import UNKNOWN, Entity
from graph.expressions import Condition, Placeholders, render, value_of
from graph.keys import Path
from graph.model import Field, FieldKind, ItemType, Projection
from graph.scalars import Scalar

EXPRESSION_BYTES = 3_000
"""How much of a FilterExpression's 4,096 bytes a filter may take; the rest is for what tells the types apart."""
MOST_OPERANDS = 100
"""How many operands DynamoDB's IN takes."""


# Without slots, for what is kept of it.
@dataclass(frozen=True)
class Test:
    """One operator on the value at a path; `value` is a tuple for `in` and `between`."""

    path: Path
    operator: str
    value: Any
    scalar: Scalar
    __test__ = False  # pytest would collect it by its name

    @cached_property
    def listed(self) -> Collection[Any]:
        """Give the values of `in` as they are compared, by hash where they have one: there may be thousands."""
        values = [_comparable(self, entry) for entry in self.value]
        try:
            return frozenset(values)
        except TypeError:
            return values


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


def without(filter_: Filter, decided: Collection[Filter]) -> Filter:
    """Give what is left of a filter once some of its conjuncts are decided."""
    return Every(tuple(part for part in conjuncts(filter_) if part not in decided))


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


# --- binding keys -------------------------------------------------------------------------------------------------


def bounds(filter_: Filter, known: Mapping[Path, Any] = MappingProxyType({})) -> dict[Path, Bound]:
    """Collect what the filter binds, path by path; only what must hold in any case can bind a key.

    `known` are values that all items at hand have, whatever the filter says.
    """
    tests: dict[Path, list[Test]] = {path: [] for path in known}
    for part in conjuncts(filter_):
        if isinstance(part, Test):
            tests.setdefault(part.path, []).append(part)
    found = {path: _bound(group, (known[path],) if path in known else _listed(group)) for path, group in tests.items()}
    return {path: bound for path, bound in found.items() if bound is not None}


def _listed(tests: list[Test]) -> tuple[Any, ...] | None:
    for test in tests:
        if test.operator == "eq" and test.value is not None:
            return (test.value,)
        if test.operator == "in" and None not in test.value:
            return tuple(dict.fromkeys(test.value))
    return None


def _bound(tests: list[Test], candidates: tuple[Any, ...] | None) -> Bound | None:
    if candidates is not None:
        # Whatever the tests are, each value can be put to them all.
        return Bound(tuple(value for value in candidates if _holds(tests, value)), tests=tuple(tests))
    ranged = tuple(test for test in tests if test.operator in ("gt", "ge", "lt", "le", "between", "beginsWith"))
    if not ranged:
        return None
    order = ranged[0].scalar.comparable
    low = max(_lows(ranged), key=lambda end: (order(end[0]), end[1]), default=(None, False))
    high = min(_highs(ranged), key=lambda end: (order(end[0]), not end[1]), default=(None, False))
    prefix = max((test.value for test in ranged if test.operator == "beginsWith"), key=len, default=None)
    bound = Bound(None, low[0], high[0], low[1], high[1], prefix, ranged)
    return Bound((), tests=ranged) if _is_empty(bound, order) else bound


def _lows(tests: tuple[Test, ...]) -> Iterator[tuple[Any, bool]]:
    for test in tests:
        if test.operator in ("gt", "ge"):
            yield test.value, test.operator == "gt"
        elif test.operator == "between":
            yield test.value[0], False


def _highs(tests: tuple[Test, ...]) -> Iterator[tuple[Any, bool]]:
    for test in tests:
        if test.operator in ("lt", "le"):
            yield test.value, test.operator == "lt"
        elif test.operator == "between":
            yield test.value[1], False


def _is_empty(bound: Bound, order: Callable[[Any], Any]) -> bool:
    if any(t.operator == "beginsWith" and not str(bound.prefix).startswith(t.value) for t in bound.tests):
        return True
    if bound.low is None or bound.high is None:
        return False
    low, high = order(bound.low), order(bound.high)
    return bool(low > high or (low == high and (bound.low_open or bound.high_open)))


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


def _holds(tests: list[Test], value: Any) -> bool:
    return all(_test(test, value) for test in tests)


_ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {"lt": lt, "le": le, "gt": gt, "ge": ge}


def _test(test: Test, value: Any) -> bool:
    """Decide one test on one value, which is None where there is none."""
    operator, wanted = test.operator, test.value
    if value is UNKNOWN or isinstance(value, Entity):
        value = None
    if operator == "exists":
        return (value is not None) is wanted
    if operator == "in":
        return _is_listed(_comparable(test, value), test.listed)
    if operator in ("eq", "ne"):
        return (_comparable(test, value) == _comparable(test, wanted)) is (operator == "eq")
    if value is None or wanted is None:
        return False
    if operator == "contains":
        # A text in a text, or an entry in a list.
        within = test.scalar.comparable(value) if isinstance(value, str) else _entries(test, value)
        return test.scalar.comparable(wanted) in within
    place = test.scalar.comparable(value)
    if operator == "beginsWith":
        return bool(place.startswith(test.scalar.comparable(wanted)))
    if operator == "between":
        return bool(test.scalar.comparable(wanted[0]) <= place <= test.scalar.comparable(wanted[1]))
    return _ORDERED[operator](place, test.scalar.comparable(wanted))


def _is_listed(value: Any, listed: Collection[Any]) -> bool:
    try:
        return value in listed
    except TypeError:
        # A list is none of the values that have a hash.
        return False


def _comparable(test: Test, value: Any) -> Any:
    return None if value is None else test.scalar.comparable(value)


def _entries(test: Test, value: list[Any]) -> list[Any]:
    return [_comparable(test, entry) for entry in value]


# --- leaving it to DynamoDB ---------------------------------------------------------------------------------------


def push_down(
    filter_: Filter, type_: ItemType, projection: Projection | frozenset[str] = Projection.ALL
) -> tuple[Condition | None, Filter]:
    """Split a filter into the condition that DynamoDB decides as we would, and what is left to decide here.

    Only conjuncts whose every test is on an attribute that the index holds can go: a field that a key may hold has no
    attribute in some tables, and key attributes are refused in a filter of a Query.
    """
    conditions: list[Condition] = []
    rest: list[Filter] = []
    room = EXPRESSION_BYTES
    for part in conjuncts(filter_):
        condition = _condition(part, type_, projection)
        size = 0 if condition is None else len(render(condition, Placeholders())) + len(" AND ()")
        if condition is None or size > room:
            rest.append(part)
        else:
            conditions.append(condition)
            room -= size
    if len(conditions) <= 1:
        return conditions[0] if conditions else None, Every(tuple(rest))
    return expressions.AllOf(tuple(conditions)), Every(tuple(rest))


def _condition(filter_: Filter, type_: ItemType, projection: Projection | frozenset[str]) -> Condition | None:
    match filter_:
        case Test(path):
            field = type_.fields[path[0]]
            is_own = len(path) == 1 and _is_stored(field, type_, projection)
            return _test_condition(filter_, field) if is_own else None
        case Never(inner):
            condition = _condition(inner, type_, projection)
            return None if condition is None else expressions.Not(condition)
        case Every(filters) | Some(filters):
            found = [_condition(part, type_, projection) for part in filters]
            conditions = tuple(condition for condition in found if condition is not None)
            if not conditions or len(conditions) < len(found):
                return None
            return expressions.AllOf(conditions) if isinstance(filter_, Every) else expressions.AnyOf(conditions)


def _is_stored(field: Field, type_: ItemType, projection: Projection | frozenset[str]) -> bool:
    """Say whether every item has the field in an attribute of its own, and the index shows it."""
    is_shown = projection is Projection.ALL or (isinstance(projection, frozenset) and field.attribute in projection)
    in_key = any(
        name == field.attribute or any(variable.path == (field.name,) for variable in template.variables)
        for layout in type_.layouts
        for name, template in layout.templates.items()
    )
    return field.kind is FieldKind.ATTRIBUTE and is_shown and not in_key


_COMPARATORS: Mapping[str, expressions.Comparator] = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
}


def _test_condition(test: Test, field: Field) -> Condition | None:
    name, operator = field.attribute, test.operator
    if operator == "exists" or test.value is None:
        return _presence_condition(test, name)
    if not test.scalar.same_in_store or field.type.of is not None:
        return None
    if operator in ("in", "between"):
        return _listed_condition(test, name)
    if test.value == "":
        return _presence_condition(test, name)
    value = value_of(test.scalar.write(test.value))
    if operator in ("beginsWith", "contains"):
        return expressions.Function("begins_with" if operator == "beginsWith" else "contains", name, value)
    return expressions.Compare(name, _COMPARATORS[operator], value)


def _presence_condition(test: Test, name: str) -> Condition | None:
    """Ask whether there is a value: what null means, and what the empty text comes to where any text has it."""
    present = expressions.Exists(name)
    match test.operator, test.value:
        case ("exists", True) | ("ne", None) | ("beginsWith" | "contains", ""):
            return present
        case ("exists", False) | ("eq", None):
            return expressions.Not(present)
    return None


def _listed_condition(test: Test, name: str) -> Condition | None:
    if None in test.value or not 1 <= len(test.value) <= MOST_OPERANDS:
        return None
    values = tuple(value_of(test.scalar.write(value)) for value in test.value)
    if test.operator == "in":
        return expressions.In(name, values)
    # DynamoDB refuses a BETWEEN whose bounds are the wrong way round; for us nothing lies between them.
    low, high = expressions.Compare(name, ">=", values[0]), expressions.Compare(name, "<=", values[1])
    is_range = test.scalar.comparable(test.value[0]) <= test.scalar.comparable(test.value[1])
    return expressions.Between(name, values[0], values[1]) if is_range else expressions.AllOf((low, high))
