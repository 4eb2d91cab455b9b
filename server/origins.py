"""Which sites' pages may use the API: those of the site that it is on, and those that the settings name.

A browser sends requests for any page of any site, with this site's cookies and from inside the visitor's network. What
could change something, and what a page could read, it asks about before (`cors.py`). Two things it does unasked:

- It opens WebSockets. A client that sends no Origin is no browser, and no page can forge it, nor any other header of a
  socket.
- It sends GETs, as for an image. GETs only read here, and the page sees no answer; but it sees how long that takes,
  which may depend on what the visitor may see, and the table's owner pays for it. So a GET that a browser says is made
  for another site's page is refused, unless it has a header that only a page which was allowed to may send. What sends
  no Sec-Fetch-Site is no browser, or one older than 2023, or one that speaks plain HTTP to another host than localhost.

Source: RFC 6455, 10.2; Fetch Metadata Request Headers (W3C); Fetch standard, "CORS-safelisted request-header".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from server import view
from server.negotiation import is_simple
from server.view import Head

PREFLIGHTED = (b"graphql-require-preflight", b"apollo-require-preflight", b"x-apollo-operation-name")
"""Headers by which clients force the question that a browser asks before; the latter two are Apollo's."""


class Origins:
    """The origins of other sites that are allowed."""

    def __init__(self, setting: str) -> None:
        """Take them as the setting has them."""
        self._listed = frozenset(each.strip().lower() for each in setting.split(",") if each.strip())
        self.is_any = "*" in self._listed

    def __bool__(self) -> bool:
        return bool(self._listed)

    def allow(self, origin: str) -> bool:
        """Say whether pages of an origin may send requests, and read what comes."""
        return self.is_any or self.name(origin)

    def name(self, origin: str) -> bool:
        """Say whether an origin is allowed by its name."""
        return origin.strip().lower() in self._listed

    def check_socket(self, headers: Mapping[bytes, bytes]) -> None:
        """Admit pages of this site, of origins that are allowed, and clients that are no browsers. Raises: Refusal.

        A socket cannot be opened without the cookies that there are: with any they must be of an origin that is named.
        """
        origin = _text(headers, b"origin").strip().lower()
        has_credentials = b"cookie" in headers or b"authorization" in headers
        if not origin or self.name(origin) or (self.is_any and not has_credentials) or _is_same(origin, headers):
            return
        raise view.origin_not_allowed(origin, _text(headers, b"host"))

    def check_get(self, head: Head) -> None:
        """Refuse a GET that a browser sends for a page of another site. Raises: Refusal."""
        headers = head.headers
        site = headers.get(b"sec-fetch-site")
        if site is None or site in (b"same-origin", b"none"):
            return
        content_type = headers.get(b"content-type")
        if any(name in headers for name in PREFLIGHTED) or (content_type and not is_simple(content_type)):
            return
        if b"origin" in headers and self.allow(_text(headers, b"origin")):
            return
        raise view.cross_site()


def _is_same(origin: str, headers: Mapping[bytes, bytes]) -> bool:
    # Proxies that rename the host say so: what the browser asked for is the first name.
    hosts = [_text(headers, name) for name in (b"host", b"x-forwarded-host")]
    site = _without_default_port(origin.partition("://")[2])
    return bool(site) and site in [_without_default_port(host.partition(",")[0].strip().lower()) for host in hosts]


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str:
    return headers.get(name, b"").decode("latin-1")


def _without_default_port(host: str) -> str:
    return re.sub(r":(80|443)$", "", host)
