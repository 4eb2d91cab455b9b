"""Media types: in which form a client takes its answer, and sends its request. Source: RFC 9110, 12.5.1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, Literal, NamedTuple

JSON: Final = "application/json"
GRAPHQL_RESPONSE: Final = "application/graphql-response+json"
HTML: Final = "text/html"
MULTIPART: Final = "multipart/mixed"
EVENT_STREAM: Final = "text/event-stream"

MediaType = Literal["application/json", "application/graphql-response+json", "text/html"]


class Wanted(NamedTuple):
    """What a client asks for by its Accept header: the form of one answer, and whether it takes more than one."""

    media_type: MediaType | None
    incremental: bool
    """True when it takes an answer in several payloads."""
    events: bool
    """True when it takes the events of an operation that goes on."""
    prefers_events: bool
    """True when even one answer is to be an event: the stream is named before, or with more quality than, JSON."""


@lru_cache(maxsize=128)
def wanted(accept: bytes, html: bool) -> Wanted:
    """Read an Accept header.

    Only ranges that name multipart and event streams admit them: whoever sends `*/*` expects one answer. urql names
    event streams last on every query, and wants JSON.
    """
    text = accept.decode("latin-1")
    ranges = list(_media_ranges(text))
    named = {name for name, quality in ranges if quality}
    media_type = negotiate(text, html=html)
    events = EVENT_STREAM in named
    prefers = events and (media_type is None or _is_before(EVENT_STREAM, media_type, ranges))
    return Wanted(media_type, MULTIPART in named and not prefers, events, prefers)


def _is_before(offer: str, other: str, ranges: list[_Range]) -> bool:
    ranks = _rank(offer, ranges), _rank(other, ranges)
    return ranks[1] is None or (ranks[0] is not None and ranks[0] > ranks[1])


def negotiate(accept: str, *, html: bool = False) -> MediaType | None:
    """Choose the media type of the answer, None when nothing on offer is acceptable.

    The highest quality wins, then the range that names the type rather than a wildcard, then the range listed first.
    HTML, offered to browsers, never wins a tie: whoever names JSON as well gets JSON.

    Source: RFC 9110, 12.5.1. No Accept header and `*/*` mean application/json, as graphql-http's audits 80D8 and 47DE
    have it, for old clients that read errors only from a 200.
    """
    if not accept.strip():
        return JSON
    ranges = list(_media_ranges(accept))
    offers: tuple[MediaType, ...] = (JSON, GRAPHQL_RESPONSE, HTML) if html else (JSON, GRAPHQL_RESPONSE)
    ranked = [(rank, offer) for offer in offers if (rank := _rank(offer, ranges))]
    return max(ranked, key=lambda pair: pair[0])[1] if ranked else None


_Range = tuple[str, float]
_QUALITY = re.compile(r"0(\.\d{0,3})?|1(\.0{0,3})?")


def _media_ranges(accept: str) -> Iterable[_Range]:
    for part in accept.split(","):
        name, *parameters = (piece.strip() for piece in part.lower().split(";"))
        values = dict(_parameter(parameter) for parameter in parameters)
        quality = values.get("q", "1")
        # A range that asks for another encoding than the one we write cannot be met, nor can a damaged one, nor
        # `deferSpec=20220824`: payloads of that time say where they belong in another way.
        if _QUALITY.fullmatch(quality) and values.get("charset", "utf-8") in _UTF8 and "deferspec" not in values:
            yield name, float(quality)


def _rank(offer: str, ranges: list[_Range]) -> tuple[float, int, bool, int] | None:
    """Order an offer among the others; the most specific range decides about it."""
    names = ("*/*", offer.split("/")[0] + "/*", offer)
    matches = [
        (names.index(name), -position, quality) for position, (name, quality) in enumerate(ranges) if name in names
    ]
    if not matches:
        return None
    specificity, position, quality = max(matches)
    return (quality, specificity, offer != HTML, position) if quality else None


@lru_cache(maxsize=128)
def is_json(content_type: bytes) -> bool:
    """Say whether a body is declared to be JSON in UTF-8."""
    name, *parameters = content_type.decode("latin-1").split(";")
    charset = dict(_parameter(parameter) for parameter in parameters).get("charset", "utf-8")
    return name.strip().lower() == JSON and charset in _UTF8


@lru_cache(maxsize=128)
def is_simple(content_type: bytes) -> bool:
    """Say whether browsers send a body of this type for any page, unasked. Source: Fetch, "CORS-safelisted"."""
    return content_type.partition(b";")[0].strip().lower() in _SIMPLE


_SIMPLE = (b"application/x-www-form-urlencoded", b"multipart/form-data", b"text/plain")
_UTF8 = ("utf-8", "utf8")


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip().strip('"').lower()
