"""The session's credentials, always fresh: botocore finds and refreshes them, in a thread, once for all who wait."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Protocol

import botocore.exceptions

from graph.answers import no_credentials, unreachable
from graph.boto import NO_CREDENTIALS
from graph.wire.signing import Keys

CHECK_SECS = 1.0
"""How often credentials are asked whether they expire: it costs more than a signature."""

MANDATORY_SECS = 10 * 60
"""Before that time to their end nobody waits for new credentials. Source: botocore, RefreshableCredentials."""


class Source(Protocol):
    """Credentials as botocore keeps them; those that expire have `refresh_needed` besides."""

    def get_frozen_credentials(self) -> Any:
        """Give the credentials, after refreshing them if that is due, which blocks."""


class Credentials:
    """Gives the keys to sign with, without ever blocking the loop."""

    def __init__(self, source: Source | None, find: Callable[[], Source | None] | None = None) -> None:
        """Take where the keys come from, and what finds that again when they are refused before their time."""
        self._source = source
        self._find = find
        self._renewal: asyncio.Future[None] | None = None
        self._renewed_at = 0.0
        self._keys: Keys | None = None
        self._fresh_until = 0.0
        self._refresh: Future[None] | None = None

    def ready(self) -> Keys | None:
        """Give the keys if they were looked at a short time ago."""
        return self._keys if time.monotonic() < self._fresh_until else None

    async def keys(self) -> Keys:
        """Give the keys, waiting for new ones only when the old are about to end.

        Raises: AccessRefused when there are none. Unavailable when whoever gives them cannot be reached.
        """
        if ready := self.ready():
            return ready
        now = time.monotonic()
        if self._is_due():
            refresh = self._refreshing()
            if self._keys is None or self._is_due(MANDATORY_SECS):
                await self._refreshed(refresh)
        else:
            # Nothing is due, so this does not block.
            self._take()
        if self._keys is None:
            raise no_credentials(botocore.exceptions.NoCredentialsError())
        self._fresh_until = now + CHECK_SECS
        return self._keys

    async def renew(self) -> None:
        """Look for other keys, for DynamoDB has refused those that there are: once for all who ask at the same time.

        Those of a file, of a container or of a machine may be replaced at any time, before the old ones have expired.
        """
        if self._find is None:
            return
        if self._renewal is None or (self._renewal.done() and time.monotonic() > self._renewed_at + CHECK_SECS):
            self._renewed_at = time.monotonic()
            self._renewal = asyncio.ensure_future(asyncio.to_thread(self._look_again, self._find))
        await asyncio.wait([self._renewal])

    def _look_again(self, find: Callable[[], Source | None]) -> None:
        with suppress(
            *NO_CREDENTIALS, botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError, RuntimeError
        ):
            if (source := find()) is not None:
                self._source, self._keys = source, _keys_of(source)

    def _is_due(self, refresh_in: float | None = None) -> bool:
        refresh_needed = getattr(self._source, "refresh_needed", None)
        return refresh_needed is not None and refresh_needed(refresh_in)

    def _take(self) -> None:
        if self._source is not None:
            self._keys = _keys_of(self._source)

    def _refreshing(self) -> Future[None]:
        if self._refresh is None or self._refresh.done():
            self._refresh = Future()
            # From here on a waiter that is cancelled cannot cancel it for the others.
            self._refresh.set_running_or_notify_cancel()
            threading.Thread(target=self._run, args=(self._refresh,), name="credentials", daemon=True).start()
        return self._refresh

    def _run(self, refresh: Future[None]) -> None:
        try:
            self._take()
        except BaseException as error:
            refresh.set_exception(error)
        else:
            refresh.set_result(None)

    async def _refreshed(self, refresh: Future[None]) -> None:
        try:
            await asyncio.wrap_future(refresh)
        # RuntimeError: the new ones have expired already. ClientError: the role may not be assumed.
        except (*NO_CREDENTIALS, botocore.exceptions.ClientError, RuntimeError) as error:
            raise no_credentials(error) from error
        except botocore.exceptions.BotoCoreError as error:
            raise unreachable(error) from error


def _keys_of(source: Source) -> Keys:
    frozen = source.get_frozen_credentials()
    return Keys(frozen.access_key, frozen.secret_key, frozen.token)
