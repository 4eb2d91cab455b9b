"""Who asks: what a server has made sure of about the caller of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Identity:
    """A caller, as their token, API key or proxy says; how that was made sure of is the server's business."""

    subject: str | None = None
    """Who they are; None: nobody in particular, who gave no credentials."""
    roles: frozenset[str] = frozenset()
    claims: Mapping[str, Any] = field(default_factory=dict)
    """What is known of them by name, as in a JWT: texts, numbers, lists of them, and objects."""
    expires: float | None = None
    """The second, since the epoch, from which on this no longer holds."""

    @property
    def is_anonymous(self) -> bool:
        """Say whether nothing is known of the caller."""
        return self.subject is None


ANONYMOUS = Identity()
