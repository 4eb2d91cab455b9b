"""What one caller may do: the rules of the model, applied to an identity once for an operation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

from graph.entity import UNKNOWN
from graph.errors import ItemError
from graph.identity import Identity
from graph.keys import Path
from graph.model import Model
from graph.rules import Right, Rule

LISTS = ("scope", "scp")
"""Claims whose text is a list with spaces between its values. Source: RFC 8693, 4.2."""


Denied = tuple[str, str, Right]
"""What a caller may never do: the type, its field or an empty text for all of it, and the right."""


class Valued(Protocol):
    """What has values at paths: an item, or what one is to become."""

    @property
    def key_paths(self) -> Mapping[Path, Any]:
        """Give what the primary key holds, as far as it gives it back whole."""

    def at(self, path: Path) -> Any:
        """Give the value at the end of a path."""


@dataclass(frozen=True, slots=True)
class OneOf:
    """A field of an item, and the values of which it must have one."""

    path: Path
    values: frozenset[str]
    in_key: bool = False
    """What the primary key says counts, and not what an attribute may say besides."""

    def passes(self, entity: Valued) -> bool:
        """Say whether an item passes: one of which this cannot be read does not."""
        try:
            keys = entity.key_paths if self.in_key else {}
            value = keys[self.path] if self.path in keys else entity.at(self.path)
        except ItemError:
            return False
        values = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
        return any(one is not None and one is not UNKNOWN and claim_text(one) in self.values for one in values)


@dataclass(frozen=True, slots=True)
class Grant:
    """For which items a caller has a right: those that pass all tests of one of the ways."""

    ways: tuple[tuple[OneOf, ...], ...]

    @property
    def always(self) -> bool:
        """Say whether the caller has it for every item."""
        return () in self.ways

    @property
    def never(self) -> bool:
        """Say whether the caller has it for none."""
        return not self.ways

    def holds(self, entity: Valued) -> bool:
        """Say whether the caller has it for this item."""
        return any(all(test.passes(entity) for test in way) for way in self.ways)

    def may_hold(self, known: Mapping[Path, Any]) -> bool:
        """Say whether the caller may have it for an item of which these values are known."""
        return any(
            all(test.path not in known or claim_text(known[test.path]) in test.values for test in way)
            for way in self.ways
        )

    @property
    def bound(self) -> Mapping[Path, str]:
        """Give the values that fields of every such item have: where each way leaves but one, and it is the same."""
        found: dict[Path, set[str]] = {}
        for path in {test.path for way in self.ways for test in way}:
            found[path] = set()
            for way in self.ways:
                here = [test.values for test in way if test.path == path]
                found[path] |= here[0] if here else {"", "*"}
        return {path: next(iter(values)) for path, values in found.items() if len(values) == 1}


ALWAYS: Final = Grant(((),))
NEVER: Final = Grant(())


class Permissions:
    """What one caller may do to the items of a model."""

    def __init__(self, model: Model, identity: Identity) -> None:
        # What is remembered by its identity must not keep that alive.
        self.subject = identity.subject
        """Who they are; None for somebody without credentials."""
        self._roles = identity.roles
        self._said = identity.claims
        self._model = model
        self._claims: dict[str, frozenset[str]] = {}
        self._grants: dict[tuple[Rule, ...], dict[Right, Grant]] = {}

    def of(self, type_name: str, right: Right) -> Grant:
        """Say for which items of a type the caller has a right; of a type without rules everybody has every right."""
        type_ = self._model.items.get(type_name)
        return ALWAYS if type_ is None else self.by(type_.auth, right)

    def of_field(self, type_name: str, field: str, right: Right) -> Grant:
        """Say for which items of a type the caller has a right to a field, besides that to the items."""
        type_ = self._model.items.get(type_name)
        found = type_.fields.get(field) if type_ is not None else None
        return ALWAYS if found is None else self.by(found.auth, right)

    def of_find(self, name: str) -> Grant:
        """Say whether the caller may ask a field of Query: it is ALWAYS or NEVER."""
        found = self._model.finds.get(name)
        return ALWAYS if found is None else self.by(found.auth, Right.READ)

    def by(self, rules: tuple[Rule, ...], right: Right) -> Grant:
        """Apply rules."""
        if not rules:
            return ALWAYS
        known = self._grants.setdefault(rules, {})
        if right not in known:
            ways = [way for rule in rules if right in rule.rights and (way := self._way(rule)) is not None]
            known[right] = ALWAYS if () in ways else Grant(tuple(dict.fromkeys(ways)))
        return known[right]

    def _way(self, rule: Rule) -> tuple[OneOf, ...] | None:
        """Apply one rule; None where it does not let the caller in, whatever the item."""
        if rule.anonymous:
            return ()
        if self.subject is None or (rule.roles and not rule.roles & self._roles):
            return None
        if rule.claim is not None:
            values = self.claim(rule.claim)
            if not values or (rule.values and not values & rule.values):
                return None
        tests = [OneOf(match.path, self.claim(match.claim), match in rule.tenant) for match in rule.matches]
        return tuple(tests) if all(test.values for test in tests) else None

    def claim(self, name: str) -> frozenset[str]:
        """Give the values of a claim, a list's one by one; `a.b` is what is called b in the object a."""
        known = self._claims.get(name)
        if known is None:
            known = self._claims[name] = frozenset(_values(name, self._raw(name)))
        return known

    def _raw(self, name: str) -> Any:
        claims = self._said
        if name in claims:
            return claims[name]
        value: Any = claims
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return self.subject if value is None and name == "sub" else value

    @cached_property
    def denied(self) -> frozenset[Denied]:
        """List what the caller may not do to any item: (type, field or "", right); of finds ("Query", name, READ).

        Callers with the same list see the same API.
        """
        model = self._model
        found: set[Denied] = set()
        for type_ in model.items.values():
            rules = [("", type_.auth)] + [(name, field.auth) for name, field in type_.fields.items()]
            found |= {(type_.name, name, right) for name, one in rules for right in Right if self.by(one, right).never}
        found |= {("Query", name, Right.READ) for name in model.finds if self.of_find(name).never}
        return frozenset(found)


def _values(name: str, raw: Any) -> Iterable[str]:
    if isinstance(raw, str) and name.rpartition(".")[2] in LISTS:
        return raw.split()
    values = raw if isinstance(raw, (list, tuple)) else (raw,)
    return [claim_text(value) for value in values if isinstance(value, (str, int, float)) and value != ""]


def claim_text(value: Any) -> str:
    """Write a value as claims and items have it in common: true, and 7 for 7.0."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
