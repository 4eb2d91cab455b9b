"""What an UpdateItem does to an item, as a frozen value, and how it is written as an UpdateExpression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Context, Decimal

from graph.expressions import Placeholders, value_of
from graph.scalars import AttributeValue, number_text

Attributes = Mapping[str, AttributeValue]

EMPTY_LIST: AttributeValue = {"L": []}
EXACT = Context(prec=300)
"""From 1E-130 to 9.9E+125 no sum of two numbers has more digits."""


@dataclass(frozen=True, slots=True)
class Update:
    """The changes to one item, each attribute at most once.

    `add` puts a number to a number, or entries into a set; `append` puts a list behind a list; `discard` takes entries
    out of a set.
    """

    put: Attributes = field(default_factory=dict)
    remove: frozenset[str] = frozenset()
    add: Attributes = field(default_factory=dict)
    append: Attributes = field(default_factory=dict)
    discard: Attributes = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Say whether anything changes."""
        return bool(self.names)

    @property
    def names(self) -> frozenset[str]:
        """Give the attributes that change."""
        return frozenset().union(self.put, self.remove, self.add, self.append, self.discard)

    def merged(self, other: Update) -> Update | None:
        """Make both changes in one; None when they change the same attribute, unless each adds to a number."""
        both = self.names & other.names
        if any("N" not in self.add.get(name, {}) or "N" not in other.add.get(name, {}) for name in both):
            return None
        sums = {name: added(self.add[name], other.add[name]) for name in both}
        return Update(
            {**self.put, **other.put},
            self.remove | other.remove,
            {**self.add, **other.add, **sums},
            {**self.append, **other.append},
            {**self.discard, **other.discard},
        )

    def values(self) -> dict[str, AttributeValue]:
        """Give the values that the update carries, by attribute."""
        return {**self.put, **self.add, **self.append, **self.discard}


def added(number: AttributeValue | None, delta: AttributeValue) -> AttributeValue:
    """Add two number attributes; one that is not there is 0."""
    return {"N": number_text(plus(Decimal((number or {}).get("N", 0)), Decimal(delta["N"])))}


def plus(one: Decimal, other: Decimal) -> Decimal:
    """Add two numbers exactly: the decimal context of Python would round them to 28 digits."""
    return EXACT.add(one, other)


def render_update(update: Update, holders: Placeholders) -> str:
    """Write an update as an expression. Source: DynamoDB developer guide, "Using update expressions"."""

    def pairs(entries: Attributes, form: str) -> list[str]:
        return [
            form.format(name=holders.name(name), value=holders.value(value_of(value)))
            for name, value in entries.items()
        ]

    puts = pairs(update.put, "{name} = {value}")
    if update.append:
        empty = holders.value(value_of(EMPTY_LIST))
        puts += pairs(update.append, f"{{name}} = list_append(if_not_exists({{name}}, {empty}), {{value}})")
    clauses = {
        "SET": puts,
        "REMOVE": [holders.name(name) for name in sorted(update.remove)],
        "ADD": pairs(update.add, "{name} {value}"),
        "DELETE": pairs(update.discard, "{name} {value}"),
    }
    return " ".join(f"{word} {', '.join(parts)}" for word, parts in clauses.items() if parts)
