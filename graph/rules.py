"""Rules of the model that say who may do what: `@auth`, read from schema.graphql."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from graph.keys import Path


class Right(Enum):
    """What may be done to an item, or to a field of it."""

    READ = "READ"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


ALL_RIGHTS = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Match:
    """A field of the item that must equal a claim of the caller, or one of its values."""

    path: Path
    claim: str


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to be let in, by callers for whom all of it holds. Of several rules any one lets in."""

    rights: frozenset[Right] = ALL_RIGHTS
    roles: frozenset[str] = frozenset()
    """The caller has one of these; none: whatever roles there are."""
    claim: str | None = None
    """The caller has this claim, with one of `values` if there are any."""
    values: frozenset[str] = frozenset()
    owner: Match | None = None
    """What the item says of its owner."""
    tenant: tuple[Match, ...] = ()
    """What the item's keys say of the tenant: they hold it, and so isolation costs no filter."""
    anonymous: bool = False
    """Also callers without credentials."""

    @property
    def matches(self) -> tuple[Match, ...]:
        """List what of the item has to match."""
        return self.tenant + ((self.owner,) if self.owner is not None else ())
