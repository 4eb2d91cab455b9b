"""Sources: ordered lists of items, read round by round from any place in either direction.

partition.py reads a key range, which is one Query after the other, items.py items of whole keys, merge.py many ranges
as one list, chain.py follows a path of relationships, scan.py walks a whole table. Paging knows only that they are
sources.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypeVar

from graph.client import Response
from graph.cursor import Position
from graph.entity import Entity, fits_any, read_entity
from graph.errors import CursorError
from graph.expressions import AllOf, AnyOf, Compare, Condition, Exists, Not
from graph.loaders import Operation
from graph.model import Layout
from graph.requests import Item, Query, Scan

SPARSE_LIMIT = 100
LARGEST_LIMIT = 1000

T = TypeVar("T")


@dataclass(slots=True)
class Entry:
    """One item of a source, and its place there."""

    position: Position
    entity: Entity


@dataclass(slots=True)
class Batch:
    """What one round of requests brought: the entries, how many items it evaluated, and how far it went.

    Without an `end` the list has ended; else it goes on behind that place, which need not be an entry's.
    """

    entries: list[Entry]
    evaluated: int = 0
    end: Position | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """How a source is to be read: from one place to another, both exclusive.

    Where items of an index share a sort key, DynamoDB alone knows their order: there a `stop` before the `start`, or
    one whose item is gone, ends the reading behind that sort key.

    `want` is how many entries the reader hopes for, `most` how many items the first round may evaluate. `with_start`
    and `with_stop` also give the items at the two places, should they still be there.
    """

    want: int
    most: int = LARGEST_LIMIT
    start: Position | None = None
    stop: Position | None = None
    descending: bool = False
    with_start: bool = False
    with_stop: bool = False


class Reader(Protocol):
    """One walk along a source."""

    async def read(self) -> Batch:
        """Read one round further; not to be called again once the list has ended."""


class Source(Protocol):
    """An ordered list of items."""

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk."""

    def check(self, position: Position) -> None:
        """Refuse a position that this source never gave. Raises CursorError."""

    async def count(self) -> int | None:
        """Count the items without reading them; None when they must be read to tell."""


Keep = Callable[[list[Entry]], Awaitable[list[Entry]]]
"""Drops the entries that a filter refuses, keeping the order."""


@dataclass(frozen=True, slots=True)
class Sieve:
    """What of a filter is left to a source: the condition for DynamoDB, and what else drops entries.

    `sparse`: so much may be dropped that reading just as many items as are wanted would take many rounds.
    """

    condition: Condition | None = None
    keep: Keep | None = None
    sparse: bool = False


NO_SIEVE = Sieve()


def not_ours() -> CursorError:
    """Refuse a cursor whose position no source of this connection can have given."""
    return CursorError("the cursor does not fit this connection: start again without it")


async def send(operation: Operation, request: Query | Scan) -> Response:
    """Send a request, and have the keys that wait to be loaded wait for the keys that its answer may add."""
    with operation.reading():
        return await operation.page(request)


def read_layouts(
    operation: Operation, layouts: tuple[Layout, ...], item: Item, place: str, *, is_whole: bool = True
) -> Entity | None:
    """Take an item as one of these layouts, unless it has expired; count it as skipped when it fits no type at all."""
    for layout in layouts:
        entity = read_live(operation, layout, item, None if is_whole else frozenset(item))
        if entity is not None:
            # An index is behind the table: what it shows does for a query, and not for a write.
            if is_whole and entity.key is not None and not operation.consistent:
                operation.prime_item(entity.key, item)
            return entity
    if not fits_any(operation.model, layouts[0].table, item):
        skipped = operation.meter.skipped
        skipped[place] = skipped.get(place, 0) + 1
    return None


def read_live(operation: Operation, layout: Layout, item: Item, holds: frozenset[str] | None = None) -> Entity | None:
    """Take an item as one of a layout, unless it has expired: DynamoDB deletes such items when it finds the time."""
    entity = read_entity(operation.model, layout, item, holds)
    return None if entity is None or has_expired(entity, operation.now) else entity


def has_expired(entity: Entity, now: int) -> bool:
    """Say whether an item no longer exists in a second."""
    expiry = entity.wire.get(entity.type.expiry or "", {}).get("N")
    return expiry is not None and Decimal(expiry) <= now


def not_expired(operation: Operation, layouts: tuple[Layout, ...]) -> Condition | None:
    """Make the filter that keeps a COUNT from counting expired items."""
    names = {operation.model.items[layout.type_name].expiry for layout in layouts}
    tests = tuple(
        AnyOf((Not(Exists(name)), Compare(name, ">", ("N", str(operation.now)))))
        for name in sorted(filter(None, names))
    )
    return AllOf(tests) if tests else None


def all_of(*conditions: Condition | None) -> Condition | None:
    """Join the conditions that there are."""
    given = tuple(condition for condition in conditions if condition is not None)
    return AllOf(given) if len(given) > 1 else given[0] if given else None
