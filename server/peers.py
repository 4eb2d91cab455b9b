"""Who is at the other end: the client's address, and whether its way here is encrypted, behind trusted proxies.

Anybody may send X-Forwarded-For and X-Forwarded-Proto: they count as far as proxies that the settings name set them.

Source: MDN, "X-Forwarded-For", Selecting an IP address, by trusted proxy list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

Network = IPv4Network | IPv6Network
MOST_HOPS = 20
"""Proxies in a row that are looked at: whoever asks may write any number of them."""
SITE_BITS = 64
"""Of an IPv6 address the part that one client is given: of the rest it may have any."""


def read_networks(text: str) -> tuple[Network, ...]:
    """Read addresses and networks with commas between them. Raises ValueError with the expectation as its message."""
    try:
        return tuple(ip_network(each.strip()) for each in text.split(",")) if text else ()
    except ValueError:
        raise ValueError("addresses or networks like 10.0.0.0/8 or ::1, with commas between them") from None


class Peers:
    """Tells clients from the proxies in front of them."""

    def __init__(self, trusted: str) -> None:
        """Take the trusted proxies, as the setting has them."""
        self.trusts = lru_cache(maxsize=1024)(_Within(read_networks(trusted)))
        """Whether an address is that of a trusted proxy."""

    def client(self, scope: Scope, headers: Mapping[bytes, bytes]) -> str:
        """Give the client's address; an IPv6 one as its network. Empty where there is none, as on a Unix socket."""
        address = str(scope["client"][0]) if scope.get("client") else ""
        if b"x-forwarded-for" in headers and self.trusts(address):
            # Each proxy adds the one that it was asked by at the end.
            for hop in reversed(headers[b"x-forwarded-for"].decode("latin-1").split(",")[-MOST_HOPS:]):
                address = _plain(hop)
                if not self.trusts(address):
                    break
        return _network(address)

    def is_encrypted(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Say whether the client speaks TLS, to us or to a trusted proxy."""
        if scope.get("scheme") in ("https", "wss"):
            return True
        sent = headers.get(b"x-forwarded-proto")
        return (
            sent is not None
            and sent.strip() == b"https"
            and bool(scope.get("client"))
            and self.trusts(scope["client"][0])
        )


class _Within:
    def __init__(self, networks: Sequence[Network]) -> None:
        self._networks = networks

    def __call__(self, host: str) -> bool:
        try:
            address = ip_address(host)
        except ValueError:
            return False
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def _plain(hop: str) -> str:
    """Take a port, and brackets, off an address."""
    hop = hop.strip().strip('"')
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop


@lru_cache(maxsize=4096)
def _network(host: str) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        # Whatever a trusted proxy has written there, it is no longer than an address.
        return host[:64]
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(IPv6Network((address.packed[:8] + bytes(8), SITE_BITS)))
    return host
