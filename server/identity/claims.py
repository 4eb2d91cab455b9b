"""What claims say of a caller: who they are, and which roles they have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

Claims = Mapping[str, Any]


class Named(NamedTuple):
    """Where in claims the subject and the roles are."""

    subject: str = "sub"
    roles: str = "roles"

    def subject_of(self, claims: Claims) -> str | None:
        """Read the subject; None where it is missing, empty or no text."""
        found = found_at(claims, self.subject)
        return found if isinstance(found, str) and found else None

    def roles_of(self, claims: Claims) -> frozenset[str]:
        """Read the roles: a list of texts, or one text with spaces between them, as `scope` is."""
        found = found_at(claims, self.roles)
        if isinstance(found, str):
            return frozenset(found.split())
        return frozenset(role for role in found if isinstance(role, str)) if isinstance(found, list) else frozenset()


def found_at(claims: Claims, path: str) -> Any:
    """Read `realm_access.roles`, a claim within another; a claim of just this name, dots and all, comes first."""
    # Claims of one's own are commonly named by a URL: https://example.com/roles.
    if path in claims:
        return claims[path]
    found: Any = claims
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def second(value: Any) -> float | None:
    """Read a NumericDate of claims; None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
