"""Credentials for connections of our own: refreshed in time, in a thread, and once for all who wait."""

from __future__ import annotations

import asyncio
import datetime
import threading
from dataclasses import dataclass, field
from typing import Any

import botocore.credentials
import botocore.exceptions
import pytest

from graph.errors import AccessRefused, StoreError, Unavailable
from graph.wire.credentials import Credentials
from graph.wire.signing import Keys


@dataclass
class Expiring:
    """Credentials as botocore keeps them: `left_secs` before their end, new ones every time that they are refreshed."""

    left_secs: float = 0
    failure: Exception | None = None
    refreshed: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    threads: set[threading.Thread] = field(default_factory=set)

    def refresh_needed(self, refresh_in: float | None = None) -> bool:
        return self.left_secs < (15 * 60 if refresh_in is None else refresh_in)

    def get_frozen_credentials(self) -> Any:
        if self.refresh_needed():
            self.threads.add(threading.current_thread())
            assert self.gate.wait(5)
            if self.failure is not None:
                raise self.failure
            self.refreshed += 1
            self.left_secs = 3600
        return Keys("key", str(self.refreshed), "token")


@pytest.fixture
def always_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph.wire.credentials.CHECK_SECS", 0)


async def test_credentials_are_refreshed_once_for_all_who_wait_and_not_in_the_loop() -> None:
    source = Expiring()
    credentials = Credentials(source)
    waiting = [asyncio.ensure_future(credentials.keys()) for _ in range(50)]
    await asyncio.sleep(0.01)
    waiting.pop().cancel()

    source.gate.set()

    assert await asyncio.gather(*waiting) == [Keys("key", "1", "token")] * 49
    assert source.refreshed == len(source.threads) == 1
    assert threading.current_thread() not in source.threads


async def test_nobody_waits_for_new_credentials_while_the_old_are_good(always_checked: None) -> None:
    source = Expiring(left_secs=3600)
    credentials = Credentials(source)
    old = await credentials.keys()

    source.left_secs = 12 * 60
    for _ in range(10):
        assert await credentials.keys() == old
    assert len(source.threads) == 1
    source.gate.set()
    for thread in source.threads:
        thread.join()

    assert (await credentials.keys()).secret_key == "1"


async def test_credentials_about_to_end_are_waited_for(always_checked: None) -> None:
    source = Expiring(left_secs=3600)
    credentials = Credentials(source)
    await credentials.keys()

    source.left_secs = 9 * 60
    waiting = asyncio.ensure_future(credentials.keys())
    await asyncio.sleep(0.01)

    assert not waiting.done()
    source.gate.set()
    assert (await waiting).secret_key == "1"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (botocore.exceptions.CredentialRetrievalError(provider="sso", error_msg="gone"), AccessRefused),
        (botocore.exceptions.ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole"), AccessRefused),
        (RuntimeError("the refreshed credentials are still expired"), AccessRefused),
        (botocore.exceptions.EndpointConnectionError(endpoint_url="https://sts"), Unavailable),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_refresh_that_fails_is_told_and_tried_again(error: Exception, kind: type[StoreError]) -> None:
    source = Expiring(failure=error)
    source.gate.set()
    credentials = Credentials(source)

    with pytest.raises(kind):
        await credentials.keys()
    source.failure = None

    assert (await credentials.keys()).secret_key == "1"


async def test_credentials_of_botocore_that_expire_are_refreshed_by_botocore() -> None:
    made: list[threading.Thread] = []

    def make() -> dict[str, str]:
        made.append(threading.current_thread())
        ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        return {"access_key": "key", "secret_key": "new", "token": "token", "expiry_time": ends.isoformat()}

    ends = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
    source = botocore.credentials.RefreshableCredentials("key", "old", "token", ends, make, "test")
    credentials = Credentials(source)

    for _ in range(3):
        assert await credentials.keys() == Keys("key", "new", "token")
    assert len(made) == 1
    assert threading.current_thread() not in made
