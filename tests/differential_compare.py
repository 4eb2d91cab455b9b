"""Two responses to one request: whether they are the same, as far as the specification leaves no choice.

The data must be the same bytes, keys in their order, and the errors the same multiset of message, path, locations and
extensions, in any order. One thing is left open. Where a field that is declared `!` fails, the nearest nullable
ancestor becomes null, and the reference cancels whatever else is under way below it: which of several errors down there
are still reported depends on who was first. Errors are therefore grouped by the null that they lie under. In a group
that is not the same on both sides, each side must report at least one error, and only errors that the lenient execution
of the same document by the reference (where no error reaches beyond its own field, so that all are reported) reports
below the same null. Where an error lies at the null itself nothing was cancelled, and the group has to be the same.

Likewise the requests: there may be others, but not more of them, and they may not read more. What is cancelled early
may have been sent or not: they are only looked at where no error went beyond its own field.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from graph.requests import Request
from resolvers.operation import Outcome

Error = dict[str, Any]
Path = tuple[str | int, ...]
_NUMBER = re.compile(r"(unexpected error; its id in the log is )[0-9a-f]{12}")
COSTS = ("itemsRead", "capacityUnits")


@dataclass
class Answer:
    """What one executor answered, what it cost, and what it asked of the tables."""

    body: dict[str, Any]
    outcome: Outcome
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.body = dict(self.body)
        extensions = dict(self.body.pop("extensions", {}))
        self.cost: dict[str, Any] = extensions.pop("cost", {})
        if extensions:
            self.body["extensions"] = extensions
        errors = self.body.get("errors")
        if errors is not None:
            self.body["errors"] = [_plain(error) for error in errors]

    @property
    def spent(self) -> tuple[float, ...]:
        """Give how many requests it took, and what they cost."""
        return (self.cost.get("requests", {}).get("total", 0), *(self.cost.get(name, 0) for name in COSTS))

    @property
    def errors(self) -> list[Error]:
        """List the errors."""
        found: list[Error] = self.body.get("errors", [])
        return found

    def null_above(self, error: Error) -> Path | None:
        """Give the null that an error lies under or at, or None where the data has none for it."""
        value, path = self.body.get("data"), tuple(error.get("path") or ())
        for number, step in enumerate(path):
            if value is None:
                return path[:number]
            try:
                value = value[step]
            except (LookupError, TypeError):
                return None
        return path if value is None else None

    @property
    def went_up(self) -> bool:
        """Say whether an error made more than its own field null."""
        return any(self.null_above(error) != tuple(error.get("path") or ()) for error in self.errors)


def _plain(error: Error) -> Error:
    message = _NUMBER.sub(r"\1…", error["message"])
    made: Error = orjson.loads(orjson.dumps({**error, "message": message}))
    return made


def _text(error: Error) -> str:
    return orjson.dumps(error, option=orjson.OPT_SORT_KEYS).decode()


Lenient = Callable[[], Awaitable[list[Error]]]
"""Gives all errors that the document has where none of them reaches beyond its own field."""


async def differences(reference: Answer, other: Answer, lenient: Lenient) -> list[str]:
    """List what is different in another answer than in the reference's."""
    found = list(_body_differences(reference, other))
    found += await _error_differences(reference, other, lenient)
    if not (reference.went_up or other.went_up):
        found += _cost_differences(reference, other)
    return found


def _body_differences(reference: Answer, other: Answer) -> list[str]:
    if reference.outcome != other.outcome:
        return [f"outcome: {reference.outcome} became {other.outcome}"]
    if list(reference.body) != list(other.body):
        return [f"entries of the response: {list(reference.body)} became {list(other.body)}"]
    one, two = (orjson.dumps(answer.body.get("data"), default=repr) for answer in (reference, other))
    found = []
    if one != two:
        sort = orjson.OPT_SORT_KEYS
        is_order = one != two and all(
            orjson.dumps(orjson.loads(one), option=sort) == orjson.dumps(orjson.loads(text), option=sort)
            for text in (two,)
        )
        found.append("order of keys" if is_order else f"data at {_place(orjson.loads(one), orjson.loads(two))}")
    rest = [
        {key: value for key, value in answer.body.items() if key not in ("data", "errors")}
        for answer in (reference, other)
    ]
    return found if rest[0] == rest[1] else [*found, f"rest: {rest[0]} became {rest[1]}"]


def _place(one: Any, two: Any, path: str = "") -> str:
    """Find the first place where two values differ."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for key in one:
            if _bytes(one[key]) != _bytes(two[key]):
                return _place(one[key], two[key], f"{path}.{key}")
    if isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, (left, right) in enumerate(zip(one, two, strict=True)):
            if _bytes(left) != _bytes(right):
                return _place(left, right, f"{path}[{number}]")
    return f"{path or 'the root'}: {_bytes(one)[:200]!r} became {_bytes(two)[:200]!r}"


def _bytes(value: Any) -> bytes:
    return orjson.dumps(value)


async def _error_differences(reference: Answer, other: Answer, lenient: Lenient) -> list[str]:
    one, two = (Counter(map(_text, answer.errors)) for answer in (reference, other))
    if one == two:
        return []
    if reference.body.get("data") != other.body.get("data"):
        return [f"errors: {list((one - two).elements())} became {list((two - one).elements())}"]
    if any(not error.get("path") for error in (*reference.errors, *other.errors)):
        return [f"errors of the request: {sorted(one)} became {sorted(two)}"]
    possible = _grouped(reference, await lenient())
    before, after = _grouped(reference, reference.errors), _grouped(other, other.errors)
    found = []
    for null in sorted({*before, *after}, key=repr):
        mine, theirs = before.get(null, Counter()), after.get(null, Counter())
        if mine != theirs and not _is_free(null, mine, theirs, possible.get(null, Counter())):
            gone, come = list((mine - theirs).elements()), list((theirs - mine).elements())
            found.append(f"errors below the null at {null}: {gone} became {come}")
    return found


def _is_free(null: Path | None, mine: Counter[str], theirs: Counter[str], possible: Counter[str]) -> bool:
    """Say whether which errors are reported below a null was a matter of who was first."""
    paths = [tuple(orjson.loads(text)["path"]) for text in possible]
    is_below = null is not None and any(path != null for path in paths)
    return is_below and bool(mine) and bool(theirs) and theirs <= possible


def _grouped(answer: Answer, errors: list[Error]) -> dict[Path | None, Counter[str]]:
    groups: dict[Path | None, Counter[str]] = {}
    for error in errors:
        groups.setdefault(answer.null_above(error), Counter())[_text(error)] += 1
    return groups


def _cost_differences(reference: Answer, other: Answer) -> list[str]:
    if not reference.cost or not other.cost:
        return [] if reference.cost == other.cost else ["cost: one of the two tells none"]
    found = []
    before, after = reference.cost["requests"]["total"], other.cost["requests"]["total"]
    if after > before:
        found.append(f"requests: {reference.cost['requests']} became {other.cost['requests']}")
    for name in COSTS:
        if other.cost[name] > reference.cost[name]:
            found.append(f"{name}: {reference.cost[name]} became {other.cost[name]}")
    return found
