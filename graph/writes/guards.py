"""What a write asks of the items that it touches, as guards: conditions that know why they are there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from graph.entity import Entity
from graph.errors import InputPath
from graph.expressions import AllOf, AnyOf, Between, Compare, Condition, Exists, Function, In, Not, Present, value_of
from graph.model import ItemType
from graph.requests import Item, ItemKey
from graph.transaction import Guard, Rule, shown

LOCK = "tablegraph-lock"
"""The attribute of a node that is being moved or deleted, or whose copies are being rewritten: nothing may link it."""


def name_of(type_: ItemType, key: ItemKey) -> str:
    """Name an item for a message."""
    return f"{type_.name} {shown(key)}"


def absent(type_: ItemType, key: ItemKey, now: int, at: InputPath, rule: Rule = Rule.ABSENT) -> Guard:
    """Ask that there is no item; one that has expired is none."""
    condition: Condition = Not(Present(key[1][0][0]))
    if type_.expiry is not None:
        condition = AnyOf((condition, Compare(type_.expiry, "<=", ("N", str(now)))))
    return Guard(rule, condition, name_of(type_, key), at)


def present(type_: ItemType, key: ItemKey, now: int, at: InputPath, rule: Rule = Rule.PRESENT) -> Guard:
    """Ask that there is an item, and that it has not expired."""
    condition: Condition = Present(key[1][0][0])
    if type_.expiry is not None:
        alive = AnyOf((Not(Exists(type_.expiry)), Compare(type_.expiry, ">", ("N", str(now)))))
        condition = AllOf((condition, alive))
    return Guard(rule, condition, name_of(type_, key), at)


def unlocked(type_: ItemType, key: ItemKey, at: InputPath) -> Guard:
    """Ask that nobody is about to move or delete a node, or to rewrite what is copied of it."""
    return Guard(Rule.UNLOCKED, Not(Present(LOCK)), name_of(type_, key), at)


def locked(type_: ItemType, key: ItemKey, lock: str, at: InputPath) -> Guard:
    """Ask that a lock is still ours."""
    return Guard(Rule.UNCHANGED, Compare(LOCK, "=", ("S", lock)), name_of(type_, key), at)


def unchanged(read: Entity, key: ItemKey, attributes: Iterable[str], at: InputPath) -> list[Guard]:
    """Ask that attributes are as they were read."""
    name, names = name_of(read.type, key), sorted(set(attributes) - {name for name, _ in key[1]})
    return [Guard(Rule.UNCHANGED, _as_read(read.wire, attribute), name, at) for attribute in names]


def _as_read(item: Item, attribute: str) -> Condition:
    value = item.get(attribute)
    return Not(Present(attribute)) if value is None else Compare(attribute, "=", value_of(value))


# --- telling which one failed -------------------------------------------------------------------------------------


def blamed(guards: Iterable[Guard], item: Mapping[str, Any]) -> Guard:
    """Find the guard that an item does not pass, of several the one that is told first."""
    ordered = sorted(guards, key=lambda guard: list(Rule).index(guard.rule))
    failed = [guard for guard in ordered if not _passes(guard.condition, item)]
    # What lies there now may have been written since: then the last suspect is a change, which is worth another try.
    return failed[0] if failed else ordered[-1]


def _passes(condition: Condition, item: Mapping[str, Any]) -> bool:
    match condition:
        case Present(attribute):
            return attribute in item
        case Exists(attribute):
            return attribute in item and "NULL" not in item[attribute]
        case Not(inner):
            return not _passes(inner, item)
        case AllOf(conditions):
            return all(_passes(one, item) for one in conditions)
        case AnyOf(conditions):
            return any(_passes(one, item) for one in conditions)
        case In(attribute, values):
            return any(_compares(item.get(attribute), "=", value) for value in values)
        case Between(attribute, low, high):
            return _compares(item.get(attribute), ">=", low) and _compares(item.get(attribute), "<=", high)
        case Compare(attribute, comparator, value):
            return _compares(item.get(attribute), comparator, value)
        case Function(function, attribute, value):
            return _function(function, item.get(attribute), value)


def _compares(found: Any, comparator: str, value: Any) -> bool:
    if found is None or value[0] not in found:
        return comparator == "<>"
    left, right = found[value[0]], value[1]
    if value[0] == "N":
        left, right = Decimal(left), Decimal(right)
    if comparator in ("=", "<>"):
        is_equal = sorted(left) == sorted(right) if value[0] in ("SS", "NS", "BS") else left == right
        return bool(is_equal is (comparator == "="))
    return bool({"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[comparator])


def _function(function: str, found: Any, value: Any) -> bool:
    if function == "begins_with":
        return bool(found and value[0] in found and found[value[0]].startswith(value[1]))
    ((letter, content),) = (found or {"NULL": True}).items()
    if letter == "L":
        return any(entry == {value[0]: value[1]} for entry in content)
    return letter in ("S", "SS", "NS", "BS") and value[1] in content
