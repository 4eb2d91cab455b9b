"""The lease: one process among many reads the streams, and what it has read is kept in the same item.

An item of ours in one of the tables holds who reads, a counter that grows with every write of it, and how far the
streams are read. Clocks of different machines are never compared: whoever wants the lease watches the counter, and
takes it when that has not moved for as long as the lease is good for. Every write is conditional on what the writer
knows, so a reader that has lost the lease cannot write any more.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress

import orjson

from graph.client import Meter
from graph.errors import StoreError, StreamError, TransactionCancelled
from graph.expressions import Compare, Condition, Not, Present
from graph.keys import OURS
from graph.loaders import Graph
from graph.model import Model
from graph.ours import STREAM, place
from graph.requests import Action, GetItem, Item, ItemKey, TransactWriteItems, key_attribute
from graph.scalars import AttributeValue
from graph.streams.shards import Progress
from graph.streams.watermark import Watched

logger = logging.getLogger(__name__)

OWNER = f"{OURS}owner"
COUNTER = f"{OURS}counter"
GOOD_FOR = f"{OURS}good-for"
"""For how many seconds the lease is good once it is written."""
AT = f"{OURS}at"
"""When it was written, by the clock of whoever did."""
BEHIND = f"{OURS}behind"
"""How many seconds the handlers were behind at most when the write began; missing where that was not known."""

Checkpoint = Mapping[str, Progress]
"""How far the stream of each table is read."""


class LeaseLost(StreamError):
    """Another process reads the streams now."""


class Lease:
    """One process's hold of the lease; taken, renewed and given up again by one task."""

    def __init__(self, graph: Graph, good_for_secs: float = 4.0, forget_after_secs: float = math.inf) -> None:
        """Take the tables; what was read longer ago than `forget_after_secs` does not say where to go on.

        This alone compares clocks, and is for those who want nothing old.
        """
        self._graph = graph
        self._forget_after = forget_after_secs
        self._key = _place(graph.model)
        self._good_for = good_for_secs
        self._owner = ""
        self._counter = 0
        self._until = 0.0
        self._renewing = asyncio.Lock()
        self._watched = Watched()
        self.is_held = False

    @property
    def renewal_secs(self) -> float:
        """Say how often to renew it."""
        return self._good_for / 4

    @property
    def watermark(self) -> float | None:
        """Tell by this event loop's clock before when all was written that is handled, as far as holders have said.

        None: too little of the item has been seen.
        """
        return self._watched.watermark

    async def watch(self) -> None:
        """Look at what the holder writes down, until cancelled. Cost: a GetItem each second."""
        while True:
            try:
                await self._read()
            except StoreError as error:
                logger.info("the lease of the streams cannot be looked at: %s", error)
            await asyncio.sleep(self.renewal_secs)

    async def take(self) -> Checkpoint:
        """Wait until nobody else holds it, take it, and give how far the streams were read. Raises StoreError."""
        loop = asyncio.get_running_loop()
        # Another one each time: what an earlier hold left under way is not to be taken for this one's.
        self._owner = uuid.uuid4().hex
        seen, since = -1.0, 0.0
        while True:
            item = await self._read()
            now = loop.time()
            counter = _number(item, COUNTER)
            is_free = item is None or OWNER not in item
            if counter != seen:
                seen, since = counter, now
            if is_free or now - since >= _number(item, GOOD_FOR):
                is_old = abs(time.time() - _number(item, AT)) > self._forget_after
                checkpoint = {} if is_old else _checkpoint(item)
                as_seen = Not(Present(COUNTER)) if item is None else Compare(COUNTER, "=", ("N", f"{counter:.0f}"))
                self._counter = int(counter)
                try:
                    await self._write(checkpoint, as_seen)
                except TransactionCancelled:
                    # Somebody was faster.
                    continue
                self.is_held = True
                logger.info("reading the streams of %s", ", ".join(self._graph.model.tables))
                return checkpoint
            await asyncio.sleep(self._good_for / 8)

    async def look(self) -> Checkpoint:
        """Give how far the streams were read a moment ago, by whomever. Raises StoreError."""
        return _checkpoint(await self._read())

    async def begin(self, checkpoint: Checkpoint) -> None:
        """Write down where to begin to read the streams, unless they have been read before. Raises StoreError."""
        with suppress(TransactionCancelled):
            await self._write(checkpoint, Not(Present(COUNTER)), is_held=False)

    async def renew(self, checkpoint: Checkpoint, watermark: float | None = None) -> None:
        """Keep the lease, and write down how far the streams are read, and how far behind that may be.

        Raises: LeaseLost when another process has taken it, or it could not be renewed for as long as it is good for.
        """
        try:
            async with asyncio.timeout_at(self._until), self._renewing:
                while True:
                    try:
                        await self._write(checkpoint, self._held(), watermark=watermark)
                        return
                    except TransactionCancelled:
                        self.is_held = False
                        raise LeaseLost("another process has taken over") from None
                    except StoreError as error:
                        logger.warning("the lease of the streams cannot be renewed: %s", error)
                        await asyncio.sleep(self._good_for / 20)
        except TimeoutError:
            self.is_held = False
            raise LeaseLost(f"the lease could not be renewed for {self._good_for:g} s") from None

    async def give_up(self, checkpoint: Checkpoint) -> None:
        """Let others take it at once, and write down how far the streams are read, unless it is lost. No error."""
        if not self.is_held:
            return
        self.is_held = False
        try:
            async with asyncio.timeout(self._good_for / 2):
                await self._write(checkpoint, self._held(), is_held=False)
        except (StoreError, TimeoutError) as error:
            logger.info("the lease of the streams is not given up, and will expire: %s", error)

    def _held(self) -> Condition:
        return Compare(OWNER, "=", ("S", self._owner))

    async def _read(self) -> Item | None:
        began = asyncio.get_running_loop().time()
        item: Item | None = (await self._graph.send(GetItem(*self._key, consistent=True))).get("Item")
        behind = _number(item, BEHIND) if item is not None and BEHIND in item else None
        self._watched.look(began, _number(item, COUNTER), behind)
        return item

    async def _write(
        self, checkpoint: Checkpoint, condition: Condition, *, is_held: bool = True, watermark: float | None = None
    ) -> None:
        # Also where the answer to the write before was lost.
        self._counter += 1
        began = asyncio.get_running_loop().time()
        table, key = self._key
        item: dict[str, AttributeValue] = {name: key_attribute(value) for name, value in key}
        item |= {
            COUNTER: {"N": str(self._counter)},
            AT: {"N": f"{time.time():.0f}"},
            STREAM: {"S": _written(checkpoint)},
        }
        if is_held:
            item |= {OWNER: {"S": self._owner}, GOOD_FOR: {"N": f"{self._good_for:g}"}}
        if watermark is not None:
            item[BEHIND] = {"N": f"{began - watermark:.3f}"}
        action = Action(table, key, item, condition=condition)
        # Retried by the client with its token, so a write whose answer was lost does not refuse itself.
        await self._graph.send(TransactWriteItems((action,), str(uuid.uuid4())), Meter())
        self._until = began + self._good_for


def _place(model: Model) -> ItemKey:
    table = next((table for table in model.tables.values() if table.period is None), None)
    if table is None:
        raise StreamError(
            "following the streams needs a table that is there at all times, for it keeps there how far they are read: "
            "this model has time series alone. Add a @table to it"
        )
    return place(model, table, "stream")


def _number(item: Item | None, name: str) -> float:
    if item is None or name not in item:
        return 0
    return float(item[name]["N"])


def _written(checkpoint: Checkpoint) -> str:
    # As texts: a sequence number has up to 40 digits.
    content = {
        table: {
            "stream": progress.stream,
            "positions": {shard: str(position) for shard, position in progress.positions.items()},
            "ended": {shard: str(position) for shard, position in progress.ended.items()},
        }
        for table, progress in checkpoint.items()
    }
    return orjson.dumps(content).decode()


def _checkpoint(item: Item | None) -> Checkpoint:
    if item is None or STREAM not in item:
        return {}
    return {
        table: Progress(
            told["stream"],
            {shard: int(position) for shard, position in told["positions"].items()},
            {shard: int(position) for shard, position in told["ended"].items()},
        )
        for table, told in orjson.loads(item[STREAM]["S"]).items()
    }
