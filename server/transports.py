"""Which way requests go, as the settings say."""

from __future__ import annotations

from graph.boto import BotoTransport
from graph.wire.transport import WireTransport
from server.settings import Settings

Way = BotoTransport | WireTransport


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
    kind = WireTransport if settings.transport == "wire" else BotoTransport
    return kind(settings.endpoint_url, region, requests_at_once or settings.max_in_flight, credentials=credentials)
