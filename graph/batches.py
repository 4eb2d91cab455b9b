"""Items by their keys, in as few BatchGetItems as the rhythm of one operation allows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, compress
from typing import Any

from aiodataloader import DataLoader

from graph.client import forget_failure
from graph.requests import Item, ItemKey, KeyAttributes

BATCH_GET_KEYS = 100

Found = dict[KeyAttributes, Item]
Get = Callable[[str, list[KeyAttributes]], Awaitable[Found]]
"""Gets up to 100 items of a table; those that do not exist are left out. Raises StoreError."""

GetNamed = Callable[[str, Sequence[str], Sequence[str]], Awaitable[list[Item | None]]]
"""Gets up to 100 items of a table whose key attributes all hold one text, in order. Raises StoreError."""

TURNS = 4
"""How many turns of the event loop it takes until those whom one answer woke have said what they need next."""


def key_of_text(table: str, names: Sequence[str], text: str) -> ItemKey:
    """Make the key whose attributes all hold one text."""
    return table, tuple([(name, text) for name in names])


class Known:
    """Items by their keys. Those whose key is one text throughout are kept by it: it is hashed but once."""

    __slots__ = ("_by_key", "_by_text")

    def __init__(self) -> None:
        self._by_key: dict[ItemKey, Item | None] = {}
        self._by_text: dict[str, dict[str, Item | None]] = {}

    def __contains__(self, key: ItemKey) -> bool:
        text = _text(key)
        if text is None:
            return key in self._by_key
        texts = self._by_text.get(key[0])
        return texts is not None and text in texts

    def item(self, key: ItemKey) -> Item | None:
        """Give a known item."""
        text = _text(key)
        return self._by_key[key] if text is None else self._by_text[key[0]][text]

    def learn(self, key: ItemKey, item: Item | None) -> None:
        """Remember an item, or that there is none."""
        text = _text(key)
        if text is None:
            self._by_key[key] = item
        else:
            self.by_text(key[0])[text] = item

    def learn_first(self, keys: Sequence[ItemKey], items: Sequence[Item | None]) -> None:
        """Remember items unless they are known already."""
        for key, text, item in zip(keys, map(_text, keys), items, strict=True):
            if text is None:
                self._by_key.setdefault(key, item)
            else:
                self.by_text(key[0]).setdefault(text, item)

    def by_text(self, table: str) -> dict[str, Item | None]:
        """Give the items of a table whose keys are one text throughout."""
        return self._by_text.setdefault(table, {})

    def clear(self) -> None:
        """Forget all."""
        self._by_key.clear()
        self._by_text.clear()


def _text(key: ItemKey) -> str | None:
    attributes = key[1]
    text = attributes[0][1]
    return text if type(text) is str and (len(attributes) == 1 or attributes[1][1] == text) else None


class Flow:
    """One who waits for some batches."""

    __slots__ = ("left",)

    def __init__(self, batches: int) -> None:
        self.left = batches


class Batch:
    """Keys of one table that travel together, and those who wait for one of them."""

    __slots__ = ("answered", "flows", "found", "keys", "table", "waiters")

    def __init__(self, table: str) -> None:
        self.table = table
        self.keys: list[ItemKey] = []
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answered.add_done_callback(forget_failure)
        self.found: Found = {}
        self.flows: list[Flow] = []
        self.waiters: list[tuple[ItemKey, asyncio.Future[Any]]] = []

    def outcome(self, key: ItemKey) -> Item | Exception | None:
        """Give what became of a key."""
        error = self.answered.exception()
        assert error is None or isinstance(error, Exception)
        return error or self.found.get(key[1])


class ItemLoader(DataLoader[ItemKey, Any]):
    """aiodataloader's interface, key by key, over the batches of an operation."""

    cache = False

    def __init__(self, batches: Batches) -> None:
        super().__init__()
        self._batches = batches

    async def batch_load_fn(self, keys: list[ItemKey]) -> list[Any]:
        raise AssertionError("keys leave by the batches")

    def do_resolve_reject(self, key: ItemKey, future: asyncio.Future[Any]) -> None:
        future.add_done_callback(forget_failure)
        self._batches.promise(key, future)


class Batches:
    """The items of one operation: each key is asked for once, and waits as long as that saves requests.

    Keys leave by Nagle's rule: at once while nothing is outstanding; else when a batch is full, when all that is
    outstanding has been answered (so that what the answers lead to can travel together), or after a short linger.

    Who counts the hands that walk along the operation side by side knows better: keys then leave when all of them wait.
    """

    def __init__(self, get: Get, get_named: GetNamed, linger_secs: float) -> None:
        self._hands = 0
        self._waiting = 0
        """How many of the hands wait for items."""
        self._get = get
        self._get_named = get_named
        self._linger_secs = linger_secs
        self._known = Known()
        self._under_way: dict[ItemKey, Batch] = {}
        """The batch of each key that is not answered yet."""
        self._open: dict[str, Batch] = {}
        """The batch of each table that still waits to be sent."""
        self._readers: set[asyncio.Task[Any] | None] = set()
        """The tasks whose requests are outstanding: what they read may lead to more keys."""
        self._flush_planned = False
        self._linger: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # --- asking ---

    def request(self, keys: Sequence[ItemKey]) -> None:
        """Queue keys, those that were asked for before left out."""
        known, under_way = self._known, self._under_way
        if new := [key for key in keys if key not in known and key not in under_way]:
            for table in dict.fromkeys([key[0] for key in new]):
                self._enqueue(table, [key for key in dict.fromkeys(new) if key[0] == table])
            if not self._hands:
                self._plan_flush()

    def _enqueue(self, table: str, keys: list[ItemKey]) -> None:
        while keys:
            batch = self._open.get(table)
            if batch is None:
                batch = self._open[table] = Batch(table)
            room = BATCH_GET_KEYS - len(batch.keys)
            taken, keys = keys[:room], keys[room:]
            batch.keys += taken
            self._under_way.update(dict.fromkeys(taken, batch))
            if len(batch.keys) == BATCH_GET_KEYS:
                self._send(batch)

    def promise(self, key: ItemKey, future: asyncio.Future[Any]) -> None:
        """Have a future get an item when it is there."""
        if key in self._known:
            future.set_result(self._known.item(key))
            return
        self.request((key,))
        batch = self._under_way[key]
        batch.waiters.append((key, future))
        batch.flows.append(Flow(1))
        self._waiting += 1
        self._settle()

    async def outcomes(self, keys: Sequence[ItemKey]) -> list[Any]:
        """Give the items of keys, in order: None for one that does not exist, the exception for one that failed."""
        known = self._known
        if self.is_alone and not self._under_way and keys:
            table = keys[0][0]
            wanted = list(dict.fromkeys([key for of, key in keys if of == table]))
            if len(wanted) == len(keys) and not any([key in known for key in keys]):
                items = await self._get_alone(table, wanted)
                for key, item in zip(keys, items, strict=True):
                    if not isinstance(item, BaseException):
                        known.learn(key, item)
                return items
        self.request(keys)
        under_way = self._under_way
        batches = {under_way[key] for key in keys if key not in known}
        if batches:
            await self._wait(batches)
            if any([key not in known for key in keys]):
                found = {key: batch.outcome(key) for batch in batches for key in batch.keys}
                return [found[key] if key in found else known.item(key) for key in keys]
        return [known.item(key) for key in keys]

    async def named(self, table: str, names: Sequence[str], texts: Sequence[str]) -> list[Any]:
        """Give the items whose key attributes all hold one text, as `outcomes` does."""
        known = self._known.by_text(table)
        is_new = known.keys().isdisjoint(texts) and len(set(texts)) == len(texts)
        if not (self.is_alone and not self._under_way and is_new and texts):
            return await self.outcomes([key_of_text(table, names, text) for text in texts])
        chunks = [texts[begin : begin + BATCH_GET_KEYS] for begin in range(0, len(texts), BATCH_GET_KEYS)]
        if len(chunks) == 1:
            return await self._get_named_chunk(table, names, texts)
        outcomes = await asyncio.gather(*[self._get_named_chunk(table, names, chunk) for chunk in chunks])
        return list(chain.from_iterable(outcomes))

    async def _get_named_chunk(self, table: str, names: Sequence[str], texts: Sequence[str]) -> list[Any]:
        try:
            items = await self._get_named(table, names, texts)
        except Exception as error:
            return [error] * len(texts)
        self._known.by_text(table).update(zip(texts, items, strict=True))
        return items

    async def _get_alone(self, table: str, wanted: list[KeyAttributes]) -> list[Any]:
        """Get items for the only one who walks along the operation: nobody else can wait for them."""
        chunks = [wanted[begin : begin + BATCH_GET_KEYS] for begin in range(0, len(wanted), BATCH_GET_KEYS)]
        if len(chunks) == 1:
            return await self._get_chunk(table, wanted)
        outcomes = await asyncio.gather(*[self._get_chunk(table, chunk) for chunk in chunks])
        return list(chain.from_iterable(outcomes))

    async def _get_chunk(self, table: str, chunk: list[KeyAttributes]) -> list[Any]:
        try:
            found = await self._get(table, chunk)
        except Exception as error:
            return [error] * len(chunk)
        return [found.get(key) for key in chunk]

    async def _wait(self, batches: set[Batch]) -> None:
        if self.is_alone:
            batch, *others = batches
            if not others and self._open.get(batch.table) is batch:
                # Without a task for it.
                del self._open[batch.table]
                await self._load(batch)
                return
        flow = Flow(len(batches))
        for batch in batches:
            batch.flows.append(flow)
        self._waiting += 1
        self._settle()
        with self.not_reading():
            await asyncio.wait([batch.answered for batch in batches])

    def knows(self, key: ItemKey) -> bool:
        """Say whether a key has been asked for, or what it leads to is known."""
        return key in self._known or key in self._under_way

    def has(self, key: ItemKey) -> bool:
        """Say whether it is known what a key leads to."""
        return key in self._known

    def prime(self, keys: Sequence[ItemKey], items: Sequence[Item | None]) -> None:
        """Remember items that another request brought whole."""
        if self._under_way:
            is_free = [key not in self._under_way for key in keys]
            keys, items = list(compress(keys, is_free)), list(compress(items, is_free))
        self._known.learn_first(keys, items)

    def forget(self) -> None:
        """Forget every item: it may have been written since."""
        self._known.clear()
        self._under_way = {key: batch for batch in self._open.values() for key in batch.keys}

    # --- hands ---

    @property
    def hands(self) -> int:
        """Count who walks along the operation side by side; 0 where nobody counts."""
        return self._hands

    @hands.setter
    def hands(self, count: int) -> None:
        self._hands = count
        self._settle()

    @property
    def is_alone(self) -> bool:
        """Say whether there is nobody to wait for."""
        return self._hands == 1

    def _settle(self) -> None:
        """Send what waits if nobody can add to it, and see to it that it does not wait for ever."""
        if not self._open:
            return
        if not self._hands:
            self._plan_flush()
        elif self._waiting >= self._hands:
            self._flush()
        elif self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(self._linger_secs, self._flush)

    # --- sending ---

    def _plan_flush(self) -> None:
        if not self._open:
            return
        if not self._readers:
            self._flush_when_quiet()
        elif self._linger is None:
            self._linger = asyncio.get_running_loop().call_later(self._linger_secs, self._flush)

    def _flush_when_quiet(self) -> None:
        """Flush after the loop has run what is ready: resolvers that the same answer woke enqueue their keys first."""
        if not self._flush_planned:
            self._flush_planned = True
            self._turn(TURNS)

    def _turn(self, left: int) -> None:
        if left:
            asyncio.get_running_loop().call_soon(self._turn, left - 1)
            return
        self._flush_planned = False
        if not self._readers:
            self._flush()
        elif self._open:
            # A reading has begun meanwhile, and may itself wait for a key that is queued here.
            self._plan_flush()

    def _flush(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        for batch in list(self._open.values()):
            self._send(batch)

    def _send(self, batch: Batch) -> None:
        del self._open[batch.table]
        if not self._open and self._linger is not None:
            self._linger.cancel()
            self._linger = None
        task = asyncio.ensure_future(self._load(batch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _load(self, batch: Batch) -> None:
        with self.reading():
            try:
                batch.found = found = await self._get(batch.table, [key for _, key in batch.keys])
            except Exception as error:
                self._take(batch)
                batch.answered.set_exception(error)
                self._release(batch)
                for _, future in batch.waiters:
                    if not future.done():
                        future.set_exception(error)
                return
            if self._take(batch):
                for key in batch.keys:
                    self._known.learn(key, found.get(key[1]))
            batch.answered.set_result(None)
            self._release(batch)
            for key, future in batch.waiters:
                if not future.done():
                    future.set_result(found.get(key[1]))

    def _release(self, batch: Batch) -> None:
        """Count those who have all that they waited for as walking on."""
        for flow in batch.flows:
            flow.left -= 1
            self._waiting -= not flow.left

    def _take(self, batch: Batch) -> bool:
        """Take a batch off what is under way, and say whether its answer is still to be remembered."""
        if self._under_way.get(batch.keys[0]) is not batch:
            return False
        for key in batch.keys:
            del self._under_way[key]
        return True

    # --- rhythm ---

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Count as outstanding until what was read has led to the keys that follow from it."""
        reader = asyncio.current_task()
        self._readers.add(reader)
        try:
            yield
        finally:
            self._end_reading(reader)

    @contextmanager
    def not_reading(self) -> Iterator[None]:
        """Do not count while waiting for items: nobody would send them before this very reader was done."""
        reader = asyncio.current_task()
        if reader not in self._readers:
            yield
            return
        self._end_reading(reader)
        try:
            yield
        finally:
            self._readers.add(reader)

    def _end_reading(self, reader: asyncio.Task[Any] | None) -> None:
        self._readers.discard(reader)
        if not self._readers and self._open and not self._hands:
            self._flush_when_quiet()

    async def close(self) -> None:
        """Let go of everybody who waits for an item."""
        if self._linger is not None:
            self._linger.cancel()
        for batch in {*self._open.values(), *self._under_way.values()} if self._under_way else ():
            batch.answered.cancel()
            for _, future in batch.waiters:
                future.cancel()
        self._open.clear()
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.gather(*tasks, return_exceptions=True)
        # It leads back to the operation: without it nothing has to wait for the garbage collector.
        self._get = self._get_named = _closed


async def _closed(*_: Any) -> Any:
    raise AssertionError("the operation is over")
