"""The headers that every answer has besides its own: what browsers may do with it, and its request's id.

Source: OWASP, HTTP Security Response Headers Cheat Sheet; Fetch standard; RFC 6797 (HSTS).
"""

from __future__ import annotations

from starlette.types import Scope

from server.cors import Cors
from server.logs import Exchange
from server.peers import Peers
from server.view import Header

ALWAYS: tuple[Header, ...] = (
    # It is what it says it is: no script, though another page may name it as one.
    (b"x-content-type-options", b"nosniff"),
    # No page may show it in a frame, to have its own visitor click there.
    (b"x-frame-options", b"DENY"),
    # No page of another site may have it but by asking for it, as CORS says.
    (b"cross-origin-resource-policy", b"same-origin"),
    # URLs hold queries.
    (b"referrer-policy", b"same-origin"),
)
STRICT_TRANSPORT: Header = (b"strict-transport-security", b"max-age=31536000")
"""For a year the browser speaks TLS alone to this host. Not for those below it: they are not ours."""


class CommonHeaders:
    """Makes the headers of answers."""

    def __init__(self, cors: Cors, peers: Peers) -> None:
        self._cors = cors
        self._peers = peers

    def add(self, exchange: Exchange, scope: Scope) -> None:
        """Say what the answer to a request has besides its own."""
        headers = (*exchange.answer_headers, *ALWAYS, *self._cors.headers(exchange.headers))
        # Over plain HTTP it counts for nothing. Source: RFC 6797, 7.2.
        is_encrypted = self._peers.is_encrypted(scope, exchange.headers)
        exchange.answer_headers = (*headers, STRICT_TRANSPORT) if is_encrypted else headers
