"""What belongs to one operation: its loaders, its meter, and the rhythm in which its requests leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from graph.batches import Batches, ItemLoader
from graph.blobs import BlobStore
from graph.client import MAX_TRIES, Meter, Response, back_off, forget_failure
from graph.codec import Parse, parse_json
from graph.errors import RequestRefused, StoreError, TableMissing, Throttled
from graph.guard import Guard, Sight
from graph.identity import Identity
from graph.keys import KeyValue
from graph.model import Index, Model
from graph.observation import observer
from graph.permissions import Permissions
from graph.pointers import Pointers
from graph.records import contents
from graph.requests import (
    BatchGetItem,
    GetItem,
    Item,
    ItemKey,
    KeyAttributes,
    Query,
    Request,
    Scan,
    TransactWriteItems,
    key_value,
)
from graph.tasks import together

if TYPE_CHECKING:
    from graph.collection import Collection
    from graph.search.index import SearchIndex
    from graph.streams.readset import ReadSet
    from graph.writes.commit import Group

T = TypeVar("T")

IN_TIME = 0.7
"""The share of an operation's time after which a page is returned as far as it is: the rest is for its nodes."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers that bound an operation.

    `max_cascade` is how many items a write may take along besides its own. `read_budget` and `scan_budget` count the
    items that one page may evaluate under a filter before it is returned part-filled. `max_cost` is in read units: an
    operation that is estimated to take more is refused, and one that has taken more reads no further.
    """

    default_page_size: int = 50
    max_page_size: int = 1000
    read_budget: int = 5_000
    scan_budget: int = 100_000
    max_cascade: int = 1000
    linger_secs: float = 0.015
    max_cost: float = inf


class Sender(Protocol):
    """What an operation sends its requests through: the client, or an imagined table."""

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request and give its answer. Raises StoreError."""


class Operation:
    """One GraphQL operation's requests: nothing here outlives it, and equal reads happen once."""

    def __init__(
        self,
        model: Model,
        client: Sender,
        limits: Limits,
        meter: Meter,
        *,
        consistent: bool = False,
        blobs: BlobStore | None = None,
        search: SearchIndex | None = None,
        permissions: Permissions | None = None,
    ) -> None:
        self.model = model
        self.permissions = permissions
        """What the caller may do; None: everything."""
        self.search = search
        """What holds the texts of nodes; None where none of them is searched."""
        self.consistent = consistent
        """Read consistently wherever DynamoDB can: what a mutation reads must be what is there."""
        self.limits = limits
        self.meter = meter
        self._blobs = blobs
        self.now = int(time.time())
        """The second in which the operation began: what has expired by then is not there."""
        self.inverses: dict[tuple[str, str, ItemKey], Any] = {}
        """What a to-one relationship (type, field) of a node leads to, where the way there has shown it already."""
        self.collections: dict[tuple[str, str | None, tuple[KeyValue, ...]], Collection] = {}
        """What is known of partitions that were read together with their node, by table, index and partition key."""
        self.sought: frozenset[str] | None = None
        """The types of the items that may be asked for by their keys; None: any."""
        self.parse: Parse = parse_json
        """Parses the answers: into items or, where it is known what may be looked at, into records."""
        self.idempotency_key: str | None = None
        """The caller's key for all mutations of the operation, each by its name in the response."""
        self.group: Group | None = None
        """The mutations that become one transaction, under @transaction."""
        self._begin = asyncio.get_running_loop().time() if meter.deadline is not None else 0.0
        self._client = client
        self._writer: Operation | None = None
        self._batches = Batches(self._get_if_any, self._get_named, limits.linger_secs)
        self.reading = self._batches.reading
        self._pages: dict[Query | Scan, asyncio.Future[Response]] = {}

    def _send(self, request: Request) -> Awaitable[Response]:
        return self._client.send(request, self.meter, self.parse)

    @property
    def sight(self) -> Sight | None:
        """Give what the caller may read of items; None: everything."""
        return self._client.sight if isinstance(self._client, Guard) else None

    @property
    def writer(self) -> Operation:
        """Give the operation that mutations read and write by: it sees what the caller may not as well.

        What they must keep right, the edges, copies, counters and locks of a node, may be others'. What they may do is
        for `graph.writes.rights` to say, and what they tell for `graph.visible`.
        """
        if self.permissions is None:
            return self
        if self._writer is None:
            self._writer = Operation(
                self.model,
                self._client.sender if isinstance(self._client, Guard) else self._client,
                self.limits,
                self.meter,
                consistent=self.consistent,
                blobs=self._blobs,
                search=self.search,
                permissions=self.permissions,
            )
        return self._writer

    @cached_property
    def pointers(self) -> Pointers:
        """Give the large values that the operation reads and writes."""
        return Pointers(self._blobs, self.meter)

    def is_late(self) -> bool:
        """Say whether most of the operation's time is used up: what can end early then ends."""
        now = asyncio.get_running_loop().time()
        return self.meter.deadline is not None and now > self._begin + IN_TIME * (self.meter.deadline - self._begin)

    # --- items ---

    @property
    def hands(self) -> int:
        """Count who walks along the operation side by side; 0 where nobody counts."""
        return self._batches.hands

    @hands.setter
    def hands(self, count: int) -> None:
        self._batches.hands = count

    async def together(self, work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
        """Await all of these side by side, each counted as a hand until it is done, where hands are counted."""
        if not self.hands or len(work) < 2:
            return await together(work)
        self.hands += len(work) - 1
        left = len(work)

        def count(_: asyncio.Task[T]) -> None:
            nonlocal left
            left -= 1
            # The last one goes on for all.
            self.hands -= left > 0

        return await together(work, count)

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Have the others not wait for one who waits for something else than items."""
        counted = self.hands > 1
        self.hands -= counted
        try:
            yield
        finally:
            self.hands += counted

    def request_items(self, keys: Sequence[ItemKey]) -> None:
        """Queue the keys of items that will be needed.

        Cost: keys not seen before in the operation share BatchGetItems of 100 with everybody else's.
        """
        self._batches.request(keys)

    async def outcomes(self, keys: Sequence[ItemKey]) -> list[Item | Exception | None]:
        """Give the items of keys, in order: None for one that does not exist, the exception for one that failed."""
        return await self._batches.outcomes(keys)

    async def named(self, table: str, names: Sequence[str], texts: Sequence[str]) -> list[Item | Exception | None]:
        """Give the items whose key attributes all hold one text, in order, as `outcomes` does."""
        return await self._batches.named(table, names, texts)

    async def items(self, keys: Sequence[ItemKey]) -> list[Item | None]:
        """Give the items of keys, in order; one that does not exist is None. Raises StoreError."""
        found: list[Item | None] = []
        for outcome in await self._batches.outcomes(keys):
            if isinstance(outcome, Exception):
                raise outcome
            found.append(outcome)
        return found

    @cached_property
    def loader(self) -> ItemLoader:
        """Give the dataloader of items, for resolvers that know one key at a time."""
        return ItemLoader(self._batches)

    def knows(self, key: ItemKey) -> bool:
        """Say whether an item is known, or on its way."""
        return self._batches.knows(key)

    def has(self, key: ItemKey) -> bool:
        """Say whether an item is known."""
        return self._batches.has(key)

    def prime_item(self, key: ItemKey, item: Item | None) -> None:
        """Remember an item that another request brought whole."""
        self._batches.prime((key,), (item,))

    def prime_items(self, keys: Sequence[ItemKey], items: Sequence[Item | None]) -> None:
        """Remember items that another request brought whole."""
        self._batches.prime(keys, items)

    async def _get_if_any(self, table: str, keys: list[KeyAttributes]) -> dict[KeyAttributes, Item]:
        try:
            return await self._get(table, keys)
        except TableMissing:
            # A period in which nothing happened has no table: only those of the model must be there.
            if table in self.model.tables:
                raise
            return {}

    async def _get(self, table: str, keys: list[KeyAttributes]) -> dict[KeyAttributes, Item]:
        """Get up to 100 items of a table, asking again for what DynamoDB left unprocessed (16 MB, or throttling)."""
        if len(keys) == 1:
            response = await self._send(GetItem(table, keys[0], self.consistent))
            return {keys[0]: response["Item"]} if "Item" in response else {}
        names = [name for name, _ in keys[0]]
        found: dict[KeyAttributes, Item] = {}
        attempt, size = 0, len(keys)
        while keys:
            asked, keys = keys[:size], keys[size:]
            response = await self._send(BatchGetItem(table, tuple(asked), self.consistent))
            items = response["Responses"].get(table, ())
            found.update(zip(keys_of(items, names), items, strict=True))
            left = response.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
            if not left:
                continue
            # Of a request that is too much for the table nothing is answered: less of it at once may be.
            is_stuck = len(left) == len(asked)
            attempt, size = (attempt + 1, max(1, len(asked) // 2)) if is_stuck else (1, size)
            keys += [_key_of(item, names) for item in left]
            if attempt == MAX_TRIES:
                raise Throttled(f"DynamoDB left {len(left)} keys of {table!r} unprocessed {MAX_TRIES} times in a row")
            await back_off(attempt, self.meter)
        return found

    async def _get_named(self, table: str, names: Sequence[str], texts: Sequence[str]) -> list[Item | None]:
        keys: list[KeyAttributes] = [tuple([(name, text) for name in names]) for text in texts]
        if len(keys) == 1:
            return [(await self._get(table, keys)).get(keys[0])]
        response = await self._send(BatchGetItem(table, tuple(keys), self.consistent))
        name = names[-1]
        items = response["Responses"].get(table, ())
        found = dict(zip(contents(name)(items), items, strict=True))
        if left := response.get("UnprocessedKeys", {}).get(table, {}).get("Keys", []):
            rest = await self._get(table, [_key_of(item, names) for item in left])
            found |= {str(key[-1][1]): item for key, item in rest.items()}
        return [found.get(text) for text in texts]

    @property
    def is_imagined(self) -> bool:
        """Say whether the operation is only explained: every item that it could ask for is there."""
        return bool(getattr(self._client, "is_imagined", False))

    def reads_consistently(self, index: Index) -> bool:
        """Say whether a Query of an index is to be consistent: a global index is always a little behind."""
        return self.consistent and (index.name is None or index.local)

    # --- writes ---

    async def write(self, request: TransactWriteItems) -> None:
        """Send a transaction, and forget what was read before. Raises StoreError, TransactionCancelled among them."""
        try:
            await self._client.send(request, self.meter)
        finally:
            self.forget()

    def forget(self) -> None:
        """Forget everything read: it may have been written since."""
        self._batches.forget()
        self._pages.clear()
        self.inverses.clear()
        self.collections.clear()

    # --- pages ---

    async def page(self, request: Query | Scan) -> Response:
        """Send a Query or Scan; an equal one of the same operation shares its answer. Raises StoreError."""
        future = self._page(request)
        if not future.done():
            await asyncio.wait([future])
        return future.result()

    async def pages(self, requests: Sequence[Query]) -> list[Response | Exception]:
        """Send many Queries side by side, and give each one's answer or the exception that it ended in."""
        if len(requests) == 1 and self._batches.is_alone and requests[0] not in self._pages:
            return [await self._send_alone(requests[0])]
        futures = [self._page(request) for request in requests]
        if pending := [future for future in futures if not future.done()]:
            with self.reading():
                await asyncio.wait(pending)
        outcomes: list[Response | Exception] = []
        for future in futures:
            error = future.exception()
            assert error is None or isinstance(error, Exception)
            outcomes.append(error or future.result())
        return outcomes

    async def _send_alone(self, request: Query) -> Response | Exception:
        """Send a Query without a task for it: nobody else is there to ask for the same one meanwhile."""
        try:
            response = await self._send_page(request)
        except StoreError as error:
            return error
        future = self._pages[request] = asyncio.get_running_loop().create_future()
        future.set_result(response)
        return response

    def _page(self, request: Query | Scan) -> asyncio.Future[Response]:
        future = self._pages.get(request)
        if future is None:
            loop = asyncio.get_running_loop()
            future = self._pages[request] = loop.create_task(self._send_page(request))
            future.add_done_callback(forget_failure)
        return future

    async def _send_page(self, request: Query | Scan) -> Response:
        try:
            return await self._send(request)
        except StoreError as error:
            self._pages.pop(request, None)
            if isinstance(error, RequestRefused) and isinstance(request, Query) and request.has_several_attributes:
                raise _of_several_attributes(error, request) from error
            raise

    async def close(self) -> None:
        """Cancel what is still under way: the client has gone, or its answer is complete."""
        if self._writer is not None:
            await self._writer.close()
        await self._batches.close()
        if "pointers" in self.__dict__:
            await self.pointers.close()
        pages = [page for page in self._pages.values() if not page.done()]
        for page in pages:
            page.cancel()
        if pages:
            await asyncio.gather(*pages, return_exceptions=True)
        # What was read is large, and an operation is held by what it holds: nobody is to wait for the collector.
        self.forget()
        observation, self.meter.observation = self.meter.observation, None
        if observation is not None:
            observation.ends(self.meter)


def _of_several_attributes(error: StoreError, request: Query) -> RequestRefused:
    """Say what to do where an engine does not serve index keys of several attributes."""
    return RequestRefused(
        f"the Query of the index `{request.index}` was refused: expected an engine that serves keys of several "
        f"attributes, as DynamoDB does since November 2025, and it says: {error}. Where it does not, use an index of "
        'one attribute, and put the values together in its template: @indexed(partition: "{a}#{b}")'
    )


def _key_of(item: Item, names: Sequence[str]) -> KeyAttributes:
    return tuple([(name, key_value(item[name])) for name in names])


def keys_of(items: Sequence[Item], names: Sequence[str]) -> list[KeyAttributes]:
    """List the keys of items: nearly all are texts."""
    try:
        if len(names) == 2:
            partition, sort = names
            texts = zip(contents(partition)(items), contents(sort)(items), strict=True)
            return [((partition, one), (sort, other)) for one, other in texts]
    except KeyError:
        pass
    return [_key_of(item, names) for item in items]


class Graph:
    """A model and the client that reads its tables: made once per process."""

    def __init__(
        self,
        model: Model,
        client: Sender,
        limits: Limits | None = None,
        blobs: BlobStore | None = None,
        search: SearchIndex | None = None,
    ) -> None:
        self.model = model
        self.blobs = blobs
        """What keeps the values that are too large for the table; None where no model needs it."""
        self.search = search
        """What holds the texts of nodes; None where no model needs it."""
        self.limits = limits or Limits()
        self._client = client
        self._has_rules = model.has_rules
        self._sights: WeakKeyDictionary[Identity, Sight] = WeakKeyDictionary()
        """By the identities that are still in use: a server keeps one as long as its token."""

    def operation(
        self,
        *,
        timeout_secs: float | None = None,
        report_capacity: bool = False,
        consistent: bool = False,
        reads: ReadSet | None = None,
        identity: Identity | None = None,
    ) -> Operation:
        """Begin an operation with fresh loaders and its own deadline; `reads` is told what it reads.

        `identity` is who asks: only what the rules of the model let them may be done. None: it is our own doing.
        """
        deadline = None if timeout_secs is None else asyncio.get_running_loop().time() + timeout_secs
        meter = Meter(report_capacity, deadline, timeout_secs, self.limits.max_cost)
        if (observing := observer.get()) is not None:
            meter.observation = observing.begins(meter)
        client = self._client if reads is None else reads.over(self._client)
        sight = self._sight(identity) if identity is not None and self._has_rules else None
        return Operation(
            self.model,
            client if sight is None else Guard(client, sight),
            self.limits,
            meter,
            consistent=consistent,
            blobs=self.blobs,
            search=self.search,
            permissions=None if sight is None else sight.permissions,
        )

    def permissions(self, identity: Identity) -> Permissions | None:
        """Say what a caller may do; None where the model has no rules, and everybody may do everything."""
        return self._sight(identity).permissions if self._has_rules else None

    def _sight(self, identity: Identity) -> Sight:
        found = self._sights.get(identity)
        if found is None:
            found = self._sights[identity] = Sight(self.model, Permissions(self.model, identity))
        return found

    @property
    def tables_down(self) -> list[str]:
        """Name the tables that are taken not to answer now."""
        down: list[str] = getattr(self._client, "tables_down", [])
        return down

    async def send(self, request: Request, meter: Meter | None = None, parse: Parse = parse_json) -> Response:
        """Send a single request outside any operation. Raises StoreError."""
        return await self._client.send(request, meter or Meter(), parse)
