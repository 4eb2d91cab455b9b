"""A proxy that has made sure of the caller, and says so by headers: taken from the proxies named, and nobody else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson
from starlette.types import Scope

from graph.identity import Identity
from server.identity.claims import Named, second
from server.identity.refusals import Unauthenticated
from server.peers import Peers


class Headers(NamedTuple):
    """The headers that tell of the caller, in lower case; None: there is none for it."""

    subject: bytes
    roles: bytes | None = None
    claims: bytes | None = None


class Proxy:
    """Reads who asks out of a proxy's headers."""

    def __init__(self, names: Headers, peers: Peers, named: Named) -> None:
        self._names = names
        self._all = [name for name in names if name is not None]
        self._named = named
        self._trusts = peers.trusts

    def identify(self, headers: Mapping[bytes, bytes], scope: Scope) -> Identity | None:
        """Say who asks; None where none of the headers is there.

        Raises: Unauthenticated when another peer sends them, or they cannot be read.
        """
        if not any(name in headers for name in self._all):
            return None
        # The socket's own peer: what X-Forwarded-For tells of comes from whoever likes to send it.
        host = scope["client"][0] if scope.get("client") else ""
        if not self._trusts(host):
            raise Unauthenticated("UNTRUSTED_PEER", f"peer {host or 'without an address'}")
        if any(name in self._all and count > 1 for name, count in _counted(scope).items()):
            # The proxy's and the client's own: no telling which is which.
            raise Unauthenticated("MALFORMED", "a header of the proxy came twice")
        subject = _text(headers, self._names.subject)
        if not subject:
            raise Unauthenticated("MALFORMED", "the proxy names no subject")
        claims = {**_object(headers, self._names.claims), "sub": subject}
        expires = second(claims.get("exp"))
        if expires is not None and expires <= time.time():
            raise Unauthenticated("EXPIRED", "by the claims of the proxy")
        return Identity(subject, self._roles(headers, claims), claims, expires)

    def _roles(self, headers: Mapping[bytes, bytes], claims: Mapping[str, Any]) -> frozenset[str]:
        if self._names.roles is None:
            return self._named.roles_of(claims)
        return frozenset(role.strip() for role in _text(headers, self._names.roles).split(",") if role.strip())


def _counted(scope: Scope) -> dict[bytes, int]:
    counts: dict[bytes, int] = {}
    for name, _ in scope["headers"]:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    try:
        return headers.get(name, b"").decode().strip()
    except ValueError:
        raise Unauthenticated("MALFORMED", f"{name.decode()} is not UTF-8") from None


def _object(headers: Mapping[bytes, bytes], name: bytes | None) -> dict[str, Any]:
    if name is None or name not in headers:
        return {}
    try:
        found = orjson.loads(headers[name])
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Unauthenticated("MALFORMED", f"{name.decode()} is no JSON object")
    return found
