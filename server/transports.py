"""Which way requests go, as the settings say."""

from __future__ import annotations

from graph.boto import BotoTransport
from graph.wire.transport import WireTransport
from server.settings import Settings

Way = BotoTransport | WireTransport


MOST_THREADS = 16
"""More threads make boto3 no faster: what it computes for a request keeps the interpreter busy."""


def open_transport(
    settings: Settings,
    region: str | None,
    requests_at_once: int | None = None,
    *,
    credentials: tuple[str, str] | None = None,
) -> Way:
    """Make the transport; so many requests at once are `max_in_flight` unless told.

    Raises: AccessRefused without a region, or with half of the credentials.
    """
    at_once = requests_at_once or settings.max_in_flight
    if settings.transport == "wire":
        return WireTransport(settings.endpoint_url, region, at_once, credentials=credentials)
    return BotoTransport(settings.endpoint_url, region, min(at_once, MOST_THREADS), credentials=credentials)
