"""Answers that may be kept: by the client, and by the caches on the way to it, where `@cacheControl` allows it.

Only what was asked by GET: no cache keeps what was sent by POST.

Source: RFC 9111 (caching), RFC 9110, 8.8.3 and 13.1.2 (entity tags)
"""

from __future__ import annotations

import re
from hashlib import blake2b

from resolvers.operation import Request, Response
from server.view import NO_STORE, Answer, Head

VARY = b"Accept, Accept-Encoding, Authorization"
"""What another answer may be given for: who is known and who is not must not get what was kept for the other."""

_TAG = re.compile(rb'(?:W/)?"([^"]*)"')


def cached(answer: Answer, response: Response, request: Request, head: Head, *, is_plain: bool = True) -> Answer:
    """Say how long the answer to a GET may be kept, and answer with 304 where the client has it already.

    An answer with an error in it is not kept, nor one that is not plain: of a form that few clients ask for.
    """
    policy = response.cache
    if policy is None or answer.status != 200 or not is_plain:
        return answer._replace(headers=(*answer.headers, NO_STORE))
    # Whoever is known may see what others do not, whatever the model says of the field.
    scope = b"private" if policy.is_private or not request.identity.is_anonymous else b"public"
    tag = blake2b(answer.body, digest_size=12).hexdigest().encode()
    headers = (
        *[header for header in answer.headers if header[0] != b"vary"],
        (b"vary", VARY),
        (b"cache-control", b"max-age=%d, %b" % (policy.max_age_secs, scope)),
        # Weak, for the same answer may come compressed.
        (b"etag", b'W/"%b"' % tag),
    )
    if _has(head.headers.get(b"if-none-match", b""), tag):
        return Answer(304, b"", tuple(header for header in headers if header[0] != b"content-type"))
    return Answer(answer.status, answer.body, headers)


def _has(if_none_match: bytes, tag: bytes) -> bool:
    return if_none_match.strip() == b"*" or tag in _TAG.findall(if_none_match)
