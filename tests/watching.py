"""A live query as a test watches it: what it answers, and how often it was executed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph.streams.hub import Hub
from graph.streams.readset import ReadSet
from resolvers.live import LiveQueries
from resolvers.operation import Events, Request, Response
from tests.conftest import Served

WITHIN_SECS = 20.0


@dataclass
class Watched:
    """One live query over what is served."""

    served: Served
    query: str
    variables: Mapping[str, Any] | None = None
    executions: int = 0
    events: Events = field(init=False)
    answers: list[Any] = field(default_factory=list)
    """All that it has answered so far."""
    _executed: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self, hub: Hub, *, throttle_secs: float = 0.0) -> Watched:
        """Open it, and take the first answer."""
        opened = await LiveQueries(hub).open(self.execute, throttle_secs)
        assert not isinstance(opened, Response), opened
        self.events = opened
        await self.next()
        return self

    async def execute(self, reads: ReadSet) -> Response:
        response = await self.served.api.execute(Request(self.query, self.variables), reads)
        self.executions += 1
        self._executed.set()
        return response

    async def executed(self, count: int) -> None:
        """Wait until it was executed so often, whether there was an answer to give or not."""
        async with asyncio.timeout(WITHIN_SECS):
            while self.executions < count:
                self._executed.clear()
                await self._executed.wait()

    async def next(self) -> Any:
        """Wait for the next answer."""
        async with asyncio.timeout(WITHIN_SECS):
            self.answers.append(await anext(aiter(self.events)))
        return self.answers[-1]

    async def fresh(self) -> Any:
        """Execute the query as it is now, outside of what is counted."""
        return (await self.served.api.execute(Request(self.query, self.variables))).body
