"""Answers compressed for the clients that accept it."""

from __future__ import annotations

import asyncio
import re
import zlib
from functools import lru_cache

from server.view import Answer, Header

LEAST_BYTES = 1024
"""A smaller answer is one packet with its headers in any case."""
LEVEL = 1
"""Of GraphQL's JSON, whose names repeat, level 6 leaves a tenth less and takes two and a half times the CPU."""
MOST_BYTES_IN_LOOP = 256 * 1024
"""What takes half a millisecond; a larger answer is compressed in a thread, beside the event loop."""

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_HEADER: Header = (b"content-encoding", b"gzip")
_QUALITY = re.compile(r"q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)")


@lru_cache(maxsize=128)
def accepts_gzip(accept_encoding: bytes) -> bool:
    """Tell whether a client takes gzip, and likes it no less than what is not compressed.

    Source: RFC 9110, 12.5.3. A coding that is not named has the quality of `*`; `identity` is then only tolerated.
    """
    qualities: dict[str, float] = {}
    for part in accept_encoding.decode("latin-1").lower().split(","):
        coding, *parameters = (piece.strip() for piece in part.split(";"))
        quality = _QUALITY.fullmatch(parameters[0]) if parameters else None
        # A damaged quality is taken as 0: uncompressed is understood by everyone.
        qualities["gzip" if coding == "x-gzip" else coding] = float(quality[1]) if quality else float(not parameters)
    gzip = qualities.get("gzip", qualities.get("*", 0.0))
    return gzip > 0 and gzip >= qualities.get("identity", 0.0)


async def compressed(answer: Answer) -> Answer:
    """Compress the body of an answer."""
    if len(answer.body) > MOST_BYTES_IN_LOOP:
        body = await asyncio.to_thread(_gzip, answer.body)
    else:
        body = _gzip(answer.body)
    return Answer(answer.status, body, (*answer.headers, _HEADER))


def _gzip(body: bytes) -> bytes:
    return zlib.compress(body, LEVEL, _GZIP_WINDOW)
