"""The gate that every request passes, whatever its transport: who is let in, how often, and what is told back."""

from __future__ import annotations

import logging
from typing import Any

from starlette.types import Scope

from graph.errors import GraphError
from graph.identity import Identity
from resolvers.discretion import summary
from server import view
from server.cors import Cors
from server.headers import CommonHeaders
from server.logs import Exchange, request_id
from server.origins import Origins
from server.peers import Peers
from server.rates import RateLimiter, read_rate
from server.settings import Settings
from server.view import Header

logger = logging.getLogger(__name__)


class Gate:
    """What the settings ask of every request and answer."""

    def __init__(self, settings: Settings) -> None:
        self.origins = Origins(settings.cors_origins)
        cors = Cors(self.origins, credentials=settings.cors_credentials)
        self._peers = Peers(settings.trusted_proxies)
        self.preflight = cors.preflight
        self.add_headers = CommonHeaders(cors, self._peers).add
        rate = read_rate(settings.rate_limit)
        self._limiter = RateLimiter(rate) if rate is not None else None
        self._is_discreet = settings.production

    def count(self, identity: Identity, exchange: Exchange, scope: Scope) -> tuple[Header, ...]:
        """Count an operation of a client, by who it is or else by its address, and say what is left to it.

        Raises: Refusal when the client asks more often than it may.
        """
        if self._limiter is None:
            return ()
        known = identity.subject
        client = f"subject {known}" if known is not None else f"address {self._peers.client(scope, exchange.headers)}"
        return self._limiter.headers(self._limiter.take(client))

    def error_body(self, error: GraphError) -> dict[str, Any]:
        """Put an error that ends an operation into the form of a GraphQL response."""
        return view.error_body(error, self.message(error))

    def withheld(self, problem: str) -> str:
        """Say of a problem that the log has what clients may know: all of it, or that there is one."""
        return "It is in the log." if self._is_discreet else problem

    def message(self, error: GraphError) -> str:
        """Say of an error what clients may know; the rest is in the log, under the request's id."""
        if not self._is_discreet:
            return str(error)
        logger.warning("%s: %s", error.code, error)
        return f"{summary(error)}; its id in the log is {request_id()}"
