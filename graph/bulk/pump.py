"""Items written side by side by BatchWriteItem, what DynamoDB leaves over among those that follow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from graph.bulk.items import Placed, key_of
from graph.client import Meter, back_off
from graph.errors import StoreError, Throttled
from graph.loaders import Sender
from graph.model import Model
from graph.requests import PutItems

BATCH_ITEMS = 25
BATCH_BYTES = 4 * 1024 * 1024
"""Well below the 16 MB that a request may have: JSON may take several bytes for one of the item's."""
MOST_WAITING = 1000
"""Items that wait for their table's batch to be full: where there are many tables, none waits for long."""
PATIENCE_SECS = 300.0
"""How long capacity may be lacking without a single item being written."""

Entries = Iterable[tuple[int, list[Placed]]]
"""The items of every line, by its number."""


class Pump:
    """Writes the items of lines, `parallel` requests at a time.

    Of two items with one key the later one stays: it replaces the other in its batch, or waits until that is written.
    """

    def __init__(
        self, model: Model, client: Sender, parallel: int, written: Callable[[int], None] = lambda count: None
    ) -> None:
        self._model = model
        self._client = client
        self._parallel = parallel
        self._written = written
        self._waiting: dict[str, dict[tuple[str, ...], Placed]] = {}
        self._again: dict[str, list[Placed]] = {}
        self._busy: dict[tuple[str, ...], Placed] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: dict[int, int] = {}
        self._line = 0
        self._progressed = time.monotonic()
        self.write_units = 0.0
        self.retried = 0
        self.replaced = 0

    @property
    def line(self) -> int:
        """Give the line up to which, itself included, everything is written."""
        return next(iter(self._open), self._line + 1) - 1

    async def run(self, entries: Entries) -> None:
        """Write everything. Raises StoreError; what was sent by then is written, or is not."""
        try:
            for line, items in entries:
                await self._take(line, items)
            await self._drain()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _take(self, line: int, items: list[Placed]) -> None:
        self._line = line
        if items:
            self._open[line] = len(items)
        for placed in items:
            while placed.key in self._busy:
                await self._progress()
            placed.line = line
            waiting = self._waiting.setdefault(placed.table, {})
            if (replaced := waiting.pop(placed.key, None)) is not None:
                self.replaced += 1
                self._done(replaced)
            waiting[placed.key] = placed
            if len(waiting) >= BATCH_ITEMS:
                await self._send(placed.table)
        if len(self._waiting) > 1 and sum(map(len, self._waiting.values())) > MOST_WAITING:
            for table in list(self._waiting):
                await self._send(table)

    async def _drain(self) -> None:
        while self._tasks or any(self._waiting.values()) or any(self._again.values()):
            for table in [*self._waiting, *self._again]:
                await self._send(table)
            if self._tasks:
                await self._progress()

    async def _progress(self) -> None:
        """Wait until a request is done; one that failed ends it all. What waits to be sent again is sent."""
        if self._tasks:
            done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            self._tasks -= done
            for task in done:
                task.result()
        for table in [table for table, items in self._again.items() if items]:
            if len(self._tasks) < self._parallel:
                self._start(table)

    async def _send(self, table: str) -> None:
        while len(self._tasks) >= self._parallel:
            await self._progress()
        if self._waiting.get(table) or self._again.get(table):
            self._start(table)

    def _start(self, table: str) -> None:
        """Send a batch: first what was left over, then what has waited."""
        again, waiting = self._again.get(table, []), self._waiting.get(table, {})
        batch: list[Placed] = []
        size_bytes = 0
        while len(batch) < BATCH_ITEMS and (again or waiting):
            placed = again[-1] if again else next(iter(waiting.values()))
            size_bytes += placed.size_bytes
            if batch and size_bytes > BATCH_BYTES:
                break
            if again:
                again.pop()
            else:
                del waiting[placed.key]
            self._busy[placed.key] = placed
            batch.append(placed)
        if not waiting:
            self._waiting.pop(table, None)
        task = asyncio.create_task(self._put(table, batch))
        self._tasks.add(task)

    async def _put(self, table: str, batch: list[Placed]) -> None:
        meter = Meter(report_capacity=True)
        request = PutItems(table, tuple(placed.item for placed in batch))
        try:
            response = await self._client.send(request, meter)
        except Throttled as error:
            if time.monotonic() - self._progressed > PATIENCE_SECS:
                raise StoreError(f"no item could be written for {PATIENCE_SECS:.0f} s: {error}") from error
            left = batch
        else:
            left = self._left(table, response)
        self.write_units += meter.capacity_units
        again = {id(placed) for placed in left}
        for placed in batch:
            if id(placed) not in again:
                del self._busy[placed.key]
                self._done(placed)
        if len(left) < len(batch):
            self._progressed = time.monotonic()
            self._written(len(batch) - len(left))
        if left:
            # Whose request is refused in part waits, and with it one of the parallel requests: the rate falls.
            self.retried += len(left)
            tries = 1 + max(placed.tries for placed in left)
            for placed in left:
                placed.tries = tries
            await back_off(min(tries, 10), meter)
            self._again.setdefault(table, []).extend(left)

    def _left(self, table: str, response: Mapping[str, Any]) -> list[Placed]:
        unprocessed = response.get("UnprocessedItems", {}).get(table, ())
        if not unprocessed:
            return []
        names = next(
            one.key_attributes
            for one in self._model.tables.values()
            if one.name == table or (one.period is not None and one.period.names_table(table))
        )
        return [self._busy[key_of(table, names, entry["PutRequest"]["Item"])] for entry in unprocessed]

    def _done(self, placed: Placed) -> None:
        self._open[placed.line] -= 1
        if not self._open[placed.line]:
            del self._open[placed.line]
