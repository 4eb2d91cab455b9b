"""CORS: what a browser is told about the pages of other sites that want to use the API.

Ours, not Starlette's middleware: by that one a cache may give an answer without `Vary: Origin` to a page that needs
one, whoever brings a cookie has any origin echoed, and a request takes 16 microseconds longer, here 1.

Source: Fetch standard, "CORS protocol", https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

from collections.abc import Mapping

from server import view
from server.origins import PREFLIGHTED, Origins
from server.view import COST_HEADER, IDEMPOTENCY_HEADER, Answer, Head, Header

ALLOWED = (
    *(b"authorization", b"content-type", b"x-api-key", b"x-request-id", b"if-none-match"),
    *(IDEMPOTENCY_HEADER, COST_HEADER, *PREFLIGHTED, b"traceparent", b"tracestate", b"baggage"),
)
"""The headers that pages may send, beyond those that every page may."""
EXPOSED = (b"X-Request-Id", b"Retry-After", b"RateLimit", b"RateLimit-Policy", b"ETag", b"WWW-Authenticate")
"""The headers of an answer that they may read."""
MAX_AGE_SECS = 7200
"""How long a browser remembers what it was allowed; Chromium takes no longer time."""

_PREFLIGHT: tuple[Header, ...] = (
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b", ".join(ALLOWED)),
    (b"access-control-max-age", b"%d" % MAX_AGE_SECS),
)
_EXPOSED: Header = (b"access-control-expose-headers", b", ".join(EXPOSED))
_VARY: Header = (b"vary", b"Origin")


class Cors:
    """Says to browsers what pages of which sites may do."""

    def __init__(self, origins: Origins, *, credentials: bool) -> None:
        """Take the origins; with `credentials` their pages may send cookies and read what comes for them."""
        self._origins = origins
        self._credentials: tuple[Header, ...] = ((b"access-control-allow-credentials", b"true"),) if credentials else ()

    def headers(self, headers: Mapping[bytes, bytes]) -> tuple[Header, ...]:
        """Give what any answer says, whatever it is: an error must be readable too."""
        if not self._origins:
            return ()
        if self._origins.is_any:
            return (b"access-control-allow-origin", b"*"), _EXPOSED
        origin = headers.get(b"origin")
        if origin is None or not self._origins.allow(origin.decode("latin-1")):
            # A cache must not give this answer to a page that may have it.
            return (_VARY,)
        return _VARY, (b"access-control-allow-origin", origin), _EXPOSED, *self._credentials

    def preflight(self, head: Head) -> Answer | None:
        """Answer the question that a browser asks before; None where it asks none, or nobody else is to ask.

        Raises: Refusal when the origin is not allowed.
        """
        if head.method != "OPTIONS" or not self._origins or b"access-control-request-method" not in head.headers:
            return None
        origin = head.text(b"origin")
        if not self._origins.allow(origin):
            raise view.origin_not_allowed(origin, head.text(b"host"))
        return Answer(204, b"", _PREFLIGHT)
