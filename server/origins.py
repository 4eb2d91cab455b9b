"""Which sites' pages may open WebSockets.

Browsers open a socket for any page of any site, with this site's cookies and from inside their own network, and ask
nobody before: what CORS decides for other requests is for us to decide. A client that sends no Origin is no browser,
and no page can forge it, nor any other header of a socket.

Source: RFC 6455, 10.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from server import view


def check_origin(headers: Mapping[bytes, bytes], allowed: str) -> None:
    """Admit pages of this site, of the origins that are allowed, and clients that are no browsers. Raises: Refusal."""
    origin = headers.get(b"origin", b"").decode("latin-1").strip().lower()
    if not origin or _is_listed(origin, allowed):
        return
    # Proxies that rename the host say so: what the browser asked for is the first name.
    hosts = [headers.get(name, b"").decode("latin-1") for name in (b"host", b"x-forwarded-host")]
    site = _without_default_port(origin.partition("://")[2])
    if site and site in [_without_default_port(host.partition(",")[0].strip().lower()) for host in hosts]:
        return
    raise view.origin_not_allowed(origin, hosts[0])


def _is_listed(origin: str, allowed: str) -> bool:
    return bool({"*", origin} & {each.strip().lower() for each in allowed.split(",")})


def _without_default_port(host: str) -> str:
    return re.sub(r":(80|443)$", "", host)
