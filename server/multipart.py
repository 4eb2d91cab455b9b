"""An answer in several payloads, each a part of its own.

Source: Incremental Delivery over HTTP, an RFC of the graphql-over-http working group,
        https://github.com/graphql/graphql-over-http/blob/main/rfcs/IncrementalDelivery.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from server.negotiation import JSON
from server.view import Header

# No JSON text holds a line of dashes.
HEADERS: Final[tuple[Header, ...]] = (
    (b"content-type", b'multipart/mixed; boundary="-"'),
    (b"vary", b"Accept, Accept-Encoding"),
    (b"cache-control", b"no-cache"),
    # For nginx, which would hold the parts back until it has a page of them.
    (b"x-accel-buffering", b"no"),
)
BEGINNING: Final = b"\r\n---"
END: Final = b"--\r\n"
_PART_HEAD: Final = f"\r\nContent-Type: {JSON}; charset=utf-8\r\n\r\n".encode()


def part(payload: Mapping[str, Any]) -> bytes:
    """Encode a payload with the boundary after it, by which the client knows at once that the part is whole.

    Raises: TypeError when it holds a value that JSON has no form for.
    """
    return b"%b%b%b" % (_PART_HEAD, orjson.dumps(payload), BEGINNING)


def last_part(body: Mapping[str, Any]) -> bytes:
    """Encode a payload after which none comes, though some were to come."""
    return part({**body, "hasNext": False}) + END
