"""A table in memory whose writes are told, whose reads take time, and whose indexes are behind: all by the clock."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Any

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.model import Model
from graph.requests import Item, ItemKey, Query, Request, key_value
from graph.streams.change import Change, Place
from graph.streams.hub import Hub
from tests.clock import now
from tests.memory import Memory


class Stage(Memory):
    """The first table of a model; `told_after` and `behind` say in seconds how late the stream and an index are."""

    def __init__(self, model: Model, *, takes: float = 0.0, told_after: float = 0.0, behind: float = 0.0) -> None:
        super().__init__(model)
        self.hub = Hub(model)
        self.takes = takes
        self.told_after = told_after
        self._behind = behind
        self._past: list[tuple[float, dict[ItemKey, Item]]] = [(0.0, {})]
        self._written = 0
        self._untold: deque[Sequence[Change]] = deque()
        self._telling: set[asyncio.Task[None]] = set()

    # --- writing ---

    def write(self, items: Sequence[Item], gone: Sequence[ItemKey] = ()) -> None:
        """Write and delete items in one transaction, and have the stream tell of it."""
        table = next(iter(self._model.tables))
        names = self._model.tables[table].key_attributes
        keys: list[tuple[ItemKey, Item | None]] = [
            ((table, tuple((name, key_value(item[name])) for name in names)), item) for item in items
        ]
        changes: list[Change] = []
        for key, after in (*keys, *((key, None) for key in gone)):
            before = self.items.get(key)
            if after is None:
                self.items.pop(key, None)
            else:
                self.items[key] = after
            if before is not None or after is not None:
                self._written += 1
                changes.append(Change(key, before, after, Place("shard", self._written)))
        self._past.append((now(), dict(self.items)))
        self._untold.append(changes)
        task = asyncio.ensure_future(self._tell())
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _tell(self) -> None:
        await asyncio.sleep(self.told_after)
        # Timers of one moment may come in any order, the changes of a shard may not.
        await self.hub.publish(self._untold.popleft())

    # --- reading ---

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a request: half of its time before the table is looked at, half of it after."""
        await asyncio.sleep(self.takes / 2)
        try:
            return await super().send(request, meter, parse)
        finally:
            await asyncio.sleep(self.takes / 2)

    def _query(self, request: Query) -> Response:
        if request.index is None or request.consistent:
            return super()._query(request)
        present: Any = self.items
        self.items = next(items for time, items in reversed(self._past) if time <= now() - self._behind or not time)
        try:
            return super()._query(request)
        finally:
            self.items = present
