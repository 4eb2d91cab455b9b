"""Shards: which of them may be read now, so that what happened to an item is read in its order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

BEGINNING = 0
"""The position in a shard of which nothing has been read."""


class Shard(NamedTuple):
    """A part of a stream. One that has no room any more ends, and its children go on; no item is in two at a time."""

    id: str
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a stream is read.

    A shard's position is the sequence number up to which it is read, and BEGINNING before the first one. Below zero it
    is a second since 1970, negated: nothing has been read yet, and what was written before that second is not wanted.
    """

    stream: str
    positions: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, int] = field(default_factory=dict)
    """The shards that have been read to their end, as far as their children do not tell: with their last position."""

    @property
    def known(self) -> dict[str, int]:
        """Give the positions of all shards, also those that have been read to their end."""
        return {**self.ended, **self.positions}


def from_now(stream: str, shards: Iterable[Shard], second: int) -> Progress:
    """Begin with what is written from a second on: those that have children are over."""
    listed = list(shards)
    parents = {shard.parent for shard in listed}
    return Progress(stream, {shard.id: -second for shard in listed if shard.id not in parents})


def readable(shards: Iterable[Shard], progress: Progress) -> list[Shard]:
    """List the shards that may be read: not read to their end, and their parents are, or are trimmed away."""
    by_id = {shard.id: shard for shard in shards}
    over = _over(by_id, progress)
    return [
        shard
        for shard in by_id.values()
        if shard.id not in over and (shard.parent is None or shard.parent not in by_id or shard.parent in over)
    ]


def pruned(shards: Iterable[Shard], progress: Progress) -> Progress:
    """Leave out what the positions of children tell, and shards that are trimmed away."""
    by_id = {shard.id: shard for shard in shards}
    parents = {shard.parent for shard in by_id.values() if shard.id in progress.known}
    return Progress(
        progress.stream,
        {shard: position for shard, position in progress.positions.items() if shard in by_id},
        {shard: last for shard, last in progress.ended.items() if shard in by_id and shard not in parents},
    )


def trimmed(shards: Iterable[Shard], progress: Progress) -> list[str]:
    """List the shards that were not read to their end, and are gone."""
    there = {shard.id for shard in shards}
    return [shard for shard in progress.positions if shard not in there]


def _over(by_id: Mapping[str, Shard], progress: Progress) -> set[str]:
    """Collect the shards that are read to their end, as they say or as one that comes after them does."""
    over = set(progress.ended)
    for name in progress.known:
        shard = by_id.get(name)
        while shard is not None and shard.parent is not None and shard.parent not in over:
            over.add(shard.parent)
            shard = by_id.get(shard.parent)
    return over
