"""The issuer's JWK Set, by its URL: kept for a time, fetched again in the background, and when a key is unknown."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3

from server.identity.jwks import Key, KeySet, candidates, read_jwks
from server.identity.refusals import unavailable
from server.identity.watched import Watched

logger = logging.getLogger(__name__)

FRESH_SECS: Final = 600.0
"""How long a set is taken for the issuer's newest: a key that it withdraws counts so much longer."""
PAUSE_SECS: Final = 10.0
"""How long at least is between two fetches: whoever makes key ids up does not have us flood the issuer."""
FETCH_SECS: Final = 5.0
READ_SECS: Final = 3.0
MOST_BYTES: Final = 1_000_000
LOCAL: Final = ("localhost", "127.0.0.1", "::1")


class Keys(Protocol):
    """Where the keys come from that tokens are checked by."""

    def known(self) -> KeySet:
        """Give the keys as they are known now, without waiting."""

    async def find(self, id_: str | None, algorithm: str) -> list[Key]:
        """Find the keys that a token may be signed by. Raises: Refusal when that cannot be known."""


class KeysOfFile:
    """Keys of a file, read anew when it changes."""

    def __init__(self, file: Watched[KeySet]) -> None:
        self.known = file.value

    async def find(self, id_: str | None, algorithm: str) -> list[Key]:
        """Find the keys that a token may be signed by."""
        return candidates(self.known(), id_, algorithm)


class KeysOfIssuer:
    """Keys that the issuer publishes. There is one fetch at a time, for all who wait."""

    def __init__(
        self,
        url: str,
        *,
        fetch: Callable[[str], bytes] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._fetch = fetch or fetch_jwks
        self._clock = clock
        self._keys: KeySet = ()
        self._fetched: float | None = None
        """When a set came last."""
        self._tried: float | None = None
        """When one was last asked for."""
        self._fetching: asyncio.Task[None] | None = None

    def known(self) -> KeySet:
        """Give the keys as they are known now; a set that is missing, or no longer fresh, is fetched meanwhile."""
        if self._fetched is None or self._clock() - self._fetched >= FRESH_SECS:
            self._begin()
        return self._keys

    async def find(self, id_: str | None, algorithm: str) -> list[Key]:
        """Find the keys that a token may be signed by; where none is known, the issuer may have a new one.

        Raises: Refusal 503 when no set of keys has ever come.
        """
        found = candidates(self.known(), id_, algorithm)
        if not found and (fetching := self._begin()) is not None:
            # Shielded, for others wait for it too.
            await asyncio.shield(fetching)
            found = candidates(self._keys, id_, algorithm)
        if self._fetched is None:
            raise unavailable(PAUSE_SECS)
        return found

    def _begin(self) -> asyncio.Task[None] | None:
        """Fetch the set, unless that was tried just now; one fetch that is under way is enough."""
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._tried is not None and self._clock() - self._tried < PAUSE_SECS:
            return None
        self._tried = self._clock()
        self._fetching = asyncio.create_task(self._refresh())
        return self._fetching

    async def _refresh(self) -> None:
        try:
            # urllib3 blocks, and once in ten minutes a thread is cheap.
            keys = read_jwks(await asyncio.to_thread(self._fetch, self._url))
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
            goes_on = "" if self._fetched is None else "; going on with those that were there before"
            logger.error("the issuer's keys cannot be had: %s%s", error, goes_on)
            return
        if keys != self._keys:
            logger.info(
                "the issuer has %d keys for us", len(keys), extra={"fields": {"kids": [key.id for key in keys]}}
            )
        self._keys = keys
        self._fetched = self._clock()


def fetch_jwks(url: str) -> bytes:
    """Fetch the set, in a thread. Raises: OSError, ValueError, urllib3's HTTPError."""
    deadline = time.monotonic() + FETCH_SECS
    with _pool(url) as pool:
        # Nothing is followed: where a redirect leads, others may decide.
        timeout = urllib3.Timeout(connect=READ_SECS, read=READ_SECS)
        headers = {"Accept": "application/json"}
        answer = pool.request(
            "GET", url, headers=headers, timeout=timeout, retries=False, redirect=False, preload_content=False
        )
        try:
            if answer.status != 200:
                raise ValueError(f"expected status 200, got {answer.status}")
            return _read(answer, deadline)
        finally:
            answer.close()


def _read(answer: urllib3.BaseHTTPResponse, deadline: float) -> bytes:
    content = b""
    while chunk := answer.read1(65536, decode_content=True):
        content += chunk
        if len(content) > MOST_BYTES:
            raise ValueError(f"expected at most {MOST_BYTES} bytes, got more")
        if time.monotonic() > deadline:
            raise TimeoutError(f"expected them within {FETCH_SECS:g} seconds")
    return content


def _pool(url: str) -> urllib3.PoolManager:
    parts = urlsplit(url)
    host = parts.hostname or ""
    proxy = getproxies().get(parts.scheme)
    if proxy is None or host in LOCAL or proxy_bypass(host):
        return urllib3.PoolManager()
    return urllib3.ProxyManager(proxy)
