"""API keys: a file that names who has one, by the key's hash."""

from __future__ import annotations

import json
import re
import secrets
import time
import tomllib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from graph.identity import Identity
from server.identity.refusals import Unauthenticated
from server.identity.watched import Watched

PREFIX: Final = "tg_"
"""What our keys begin with, so that scanners for lost secrets find them; keys of one's own need not."""
ENTRY: Final = frozenset(("name", "sha256", "roles", "claims", "expires"))

Entries = Mapping[bytes, Identity]
"""Who has a key, by its hash."""


class ApiKeys:
    """Knows who has a key."""

    def __init__(self, file: Watched[Entries], clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock

    def identify(self, key: str) -> Identity:
        """Say who has the key. Raises: Unauthenticated."""
        # Compared by its hash: how long that takes tells of the hash alone, which nobody can steer towards another.
        identity = self._file.value().get(sha256(key.encode()).digest())
        if identity is None:
            raise Unauthenticated("UNKNOWN_API_KEY")
        if identity.expires is not None and identity.expires <= self._clock():
            raise Unauthenticated("EXPIRED", f"the API key {identity.subject}")
        return identity


def read_api_keys(content: bytes) -> Entries:
    """Read a file of keys, in TOML or JSON. Raises: ValueError with the expectation."""
    try:
        text = content.decode()
        found = json.loads(text) if text.lstrip().startswith("{") else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"TOML or JSON, got something else ({error})") from None
    members = found.get("keys", [])
    if set(found) - {"keys"} or not isinstance(members, list):
        raise ValueError('a list of keys and nothing else: [[keys]] in TOML, {"keys": [...]} in JSON')
    entries: dict[bytes, Identity] = {}
    for number, member in enumerate(members, 1):
        name, identity = _entry(member, number)
        if name in entries or identity.subject in [each.subject for each in entries.values()]:
            raise ValueError(f"each key and each name once, got {identity.subject} again, or its key")
        entries[name] = identity
    return entries


def _entry(member: Any, number: int) -> tuple[bytes, Identity]:
    if not isinstance(member, dict):
        raise ValueError(f"each key to be a table, got something else for key {number}")
    if unknown := sorted(set(member) - ENTRY):
        raise ValueError(f"name, sha256, roles, claims and expires, got {unknown[0]} as well in key {number}")
    name, hash_, claims = member.get("name"), member.get("sha256"), member.get("claims", {})
    roles = member.get("roles", [])
    if not isinstance(name, str) or not name:
        raise ValueError(f"a name, which says who has the key, got none in key {number}")
    if not isinstance(hash_, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", hash_):
        raise ValueError(f"the sha256 of {name} to be 64 hexadecimal digits, as `tablegraph key` prints them")
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise ValueError(f"the roles of {name} to be a list of texts")
    if not isinstance(claims, dict):
        raise ValueError(f"the claims of {name} to be a table")
    identity = Identity(name, frozenset(roles), {"sub": name, **claims}, _expiry(member.get("expires"), name))
    return bytes.fromhex(hash_), identity


def _expiry(value: Any, name: str) -> float | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    except (ValueError, TypeError):
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ValueError(f"the expiry of {name} to be a moment with its zone, like 2027-01-31T00:00:00Z")
    return moment.astimezone(UTC).timestamp()


def make_key() -> str:
    """Make a new key, of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(key: str) -> str:
    """Give the hash by which a file names a key."""
    return sha256(key.encode()).hexdigest()
