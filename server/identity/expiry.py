"""What goes on ends when who asked for it is no longer certain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graph.identity import Identity
from server.identity.refusals import Unauthenticated


@asynccontextmanager
async def until_expiry(identity: Identity) -> AsyncIterator[None]:
    """Cancel what is inside when the identity expires. Raises: Unauthenticated then."""
    left_secs = None if identity.expires is None else max(0.0, identity.expires - time.time())
    try:
        async with asyncio.timeout(left_secs) as limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise Unauthenticated("EXPIRED", "while an operation went on") from None
        raise
