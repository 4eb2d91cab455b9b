"""Which way requests go, as the settings say."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from graph.boto import BotoTransport, Service
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
    service: Service = "dynamodb",
) -> Way:
    """Make the transport; so many requests at once are `max_in_flight` unless told.

    Raises: AccessRefused without a region, or with half of the credentials.
    """
    at_once = requests_at_once or settings.max_in_flight
    endpoint = settings.endpoint_url or (_streams_endpoint() if service == "dynamodbstreams" else None)
    if settings.transport == "wire":
        return WireTransport(endpoint, region, at_once, credentials=credentials, service=service)
    return BotoTransport(endpoint, region, min(at_once, MOST_THREADS), credentials=credentials, service=service)


def _streams_endpoint() -> str | None:
    """Find an engine's streams where its tables are: AWS alone has a host of their own for them."""
    tables = os.environ.get("AWS_ENDPOINT_URL_DYNAMODB")
    is_own = any(os.environ.get(name) for name in ("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "AWS_ENDPOINT_URL"))
    if tables is None or is_own or str(urlsplit(tables).hostname).endswith((".amazonaws.com", ".amazonaws.com.cn")):
        return None
    return tables
