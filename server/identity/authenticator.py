"""The one place that says who asks, of whatever sources are configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from graph.identity import ANONYMOUS, Identity
from server.identity.refusals import Unauthenticated

# A server imports of these only what it is configured to use: what checks tokens takes a tenth of a second.
if TYPE_CHECKING:
    from starlette.types import Scope

    from server.identity.api_keys import ApiKeys
    from server.identity.aws import Authorizer
    from server.identity.proxy import Proxy
    from server.identity.tokens import Tokens

_BEARER: Final = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9._~+/-]+=*) *")
"""Source: RFC 6750, 2.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authenticator:
    """Says who asks; without any source, nobody in particular does."""

    tokens: Tokens | None = None
    api_keys: ApiKeys | None = None
    proxy: Proxy | None = None
    authorizer: Authorizer | None = None
    anonymous: bool = True
    """Whether those who give no credentials are served."""

    def start(self) -> None:
        """Have what is fetched fetched before the first request; from the event loop."""
        if self.tokens is not None:
            self.tokens.start()

    async def identify(self, headers: Mapping[bytes, bytes], scope: Scope) -> Identity:
        """Say who sends a request. Raises: Refusal."""
        try:
            identity = await self._given(headers, scope)
            if identity is None and not self.anonymous:
                raise Unauthenticated("MISSING")
        except Unauthenticated as refusal:
            refusal.log()
            raise
        return identity or ANONYMOUS

    async def greet(self, headers: Mapping[bytes, bytes], scope: Scope) -> Identity | None:
        """Say who opens a WebSocket; None where that is yet to be said, by connection_init. Raises: Refusal."""
        try:
            return await self._given(headers, scope)
        except Unauthenticated as refusal:
            refusal.log()
            raise

    async def introduce(self, payload: Any, greeted: Identity | None) -> Identity:
        """Say who is on a WebSocket, by connection_init and by who opened it. Raises: Refusal."""
        try:
            given = _authorization(payload) if self._takes_bearer else None
            identity = greeted if given is None else await self._of_bearer(given)
            if identity is None and not self.anonymous:
                raise Unauthenticated("MISSING")
        except Unauthenticated as refusal:
            refusal.log()
            raise
        return identity or ANONYMOUS

    @property
    def _takes_bearer(self) -> bool:
        return self.tokens is not None or self.api_keys is not None

    async def _given(self, headers: Mapping[bytes, bytes], scope: Scope) -> Identity | None:
        """Say who sends these headers; None where there are no credentials."""
        if self.proxy is not None and (identity := self.proxy.identify(headers, scope)) is not None:
            return identity
        if self.authorizer is not None and (identity := self.authorizer.identify(scope)) is not None:
            return identity
        if self._takes_bearer and (sent := headers.get(b"authorization")) is not None:
            return await self._of_bearer(sent.decode("latin-1"))
        return None

    async def _of_bearer(self, authorization: str) -> Identity:
        bearer = _BEARER.fullmatch(authorization)
        if bearer is None:
            raise Unauthenticated("MALFORMED", "expected Bearer and one token")
        credential = bearer[1]
        # Tokens have dots in them, keys have not.
        if self.tokens is not None and ("." in credential or self.api_keys is None):
            return await self.tokens.identify(credential)
        if self.api_keys is not None:
            return self.api_keys.identify(credential)
        raise Unauthenticated("MALFORMED")


def _authorization(payload: Any) -> str | None:
    """Find the authorization that connection_init brings: by itself or among `headers`, in any letter case.

    Of headers no other counts: what a proxy says by them is for the proxy alone to say.
    """
    if not isinstance(payload, Mapping):
        return None
    places = [payload, *(value for name, value in payload.items() if name.lower() == "headers")]
    found = [
        value
        for place in places
        if isinstance(place, Mapping)
        for name, value in place.items()
        if name.lower() == "authorization" and value is not None
    ]
    if len(set(map(str, found))) > 1 or not all(isinstance(value, str) for value in found):
        raise Unauthenticated("MALFORMED", "expected one authorization, a text")
    return found[0] if found else None
