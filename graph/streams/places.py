"""Places: how far a stream was followed, also as the cursor with which a subscriber goes on where it stopped."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from itertools import chain

from graph.cursor import Issuer, read_cursor, write_cursor
from graph.errors import CursorError
from graph.streams.change import Change

Places = Mapping[str, int]
"""How far each shard was followed: up to a sequence number, and BEGINNING where no change has come yet.

Below zero it is a second since 1970, negated: nothing has come yet, and what is older than that is not wanted.
"""

BEGINNING = 0
"""The place before a shard's first change: sequence numbers are greater."""

Replay = Callable[[Places], AsyncIterator[Change]]
"""Reads what the stream still holds behind places, as far as it reaches by then, those of one item in their order.

A shard that has no place is read from its beginning, unless one of its descendants has a place: then it was done with.

Raises: PlaceLost where the stream no longer holds what came right behind a place.
"""


def write_places(places: Places, subscription: Issuer) -> str:
    """Write places as a cursor of a subscription, named by its issuer."""
    return write_cursor(tuple(chain.from_iterable((name, str(places[name])) for name in sorted(places))), subscription)


def read_places(cursor: str, subscription: Issuer) -> dict[str, int]:
    """Read the places back.

    Raises: CursorError when the cursor is damaged, of another version, or was issued for another subscription.
    """
    position = read_cursor(cursor, subscription, "after")
    try:
        return {str(name): int(number) for name, number in zip(position[::2], position[1::2], strict=True)}
    except (TypeError, ValueError):
        raise CursorError("the cursor given as `after` is not one of a subscription: start again without it") from None


def further(one: Places, other: Places) -> dict[str, int]:
    """Go as far in each shard as either."""
    return {**one, **{name: max(number, one.get(name, number)) for name, number in other.items()}}
