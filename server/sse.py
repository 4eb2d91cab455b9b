"""An answer of many events, each sent as it comes.

Source: GraphQL over Server-Sent Events, distinct connections mode,
        https://github.com/enisdenjo/graphql-sse/blob/master/PROTOCOL.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from server.negotiation import EVENT_STREAM
from server.view import Answer, Header

HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    (b"vary", b"Accept, Accept-Encoding"),
    # Whoever compressed the stream on its way would hold events back until a block of them is full.
    (b"cache-control", b"no-cache, no-transform"),
    # For nginx, which would hold them back until it has a page of them.
    (b"x-accel-buffering", b"no"),
)
# Lines end with LF alone: urql splits events at LF LF.
COMMENT: Final = b":\n\n"
"""What clients pass over, sent to be heard from: proxies end connections on which nothing comes."""
# The empty data is for EventSource, which keeps an event without any to itself.
COMPLETE: Final = b"event: complete\ndata:\n\n"


def event(body: Mapping[str, Any]) -> bytes:
    """Encode a GraphQL response.

    Raises: TypeError when it holds a value that JSON has no form for.
    """
    return b"event: next\ndata: %b\n\n" % orjson.dumps(body)


def last_event(body: Mapping[str, Any]) -> bytes:
    """Encode the last response, after which the client does not ask again."""
    return event(body) + COMPLETE


def one_event(body: Mapping[str, Any]) -> Answer:
    """Answer with one response, of errors too: when the status is not 200, EventSource tells its page nothing."""
    return Answer(200, last_event(body), HEADERS)
