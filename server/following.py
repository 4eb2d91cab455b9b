"""Following: the server reads the tables' streams, and keeps in step what depends on them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any

from graph.client import Client
from graph.errors import StreamError
from graph.loaders import Graph
from graph.model import CopyMode, Model
from graph.streams.change import Change, Handler
from graph.streams.hub import Hub
from graph.streams.lanes import Figures
from server.settings import Settings
from server.tables import graph_of
from server.transports import Way

if TYPE_CHECKING:
    from graph.streams.lease import Lease
    from graph.streams.reader import Reader
    from graph.streams.source import Source
    from server.telemetry.telemetry import Telemetry
    from server.valkey import Broker

logger = logging.getLogger(__name__)

SUBSCRIPTIONS = "subscriptions"
SEARCH = "search"
COPIES = "copies"
LINGER_SECS = 10.0
"""How long to read on after the last subscriber has gone: he may only be reconnecting."""
STALE_SECS = 300.0
"""Subscribers want nothing that is older; one with a cursor gets it from there."""
AGAIN_SECS = 1.0
READY_SECS = 10.0
"""How long a subscriber waits for the reader: another process may have just died that had the lease."""


def handlers_of(model: Model, graph: Graph, settings: Settings, hub: Hub | Broker | None) -> dict[str, Handler]:
    """List who is handed every change, by the names that the log uses.

    All but the subscriptions want every change at all times. Under AWS Lambda there is no hub.
    """
    found: dict[str, Handler] = {} if hub is None else {SUBSCRIPTIONS: hub.publish}
    # Imported only where something is searched, or copies follow, for a server starts sooner without.
    if graph.search is not None:
        from graph.search.upkeep import search_upkeep

        found[SEARCH] = search_upkeep(model, graph.search)
    if has_followed_copies(model):
        from graph.streams.copies import Copies

        found[COPIES] = Copies(graph).follow
    return found


def has_followed_copies(model: Model) -> bool:
    """Say whether copies follow by a stream in any of a model's tables."""
    return any(table.copies is CopyMode.STREAM for table in model.tables.values())


class Following:
    """Reads the streams while anybody needs it and this process has the lease; made before, and begun in, a process."""

    def __init__(
        self,
        model: Model,
        transport: Way,
        opened: Callable[[], Way],
        settings: Settings,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Take the way to the tables, and what opens the one to their streams."""
        self.hub = Hub(model, replay=self.replay, ready=self.ready)
        self._broker: Broker | None = None
        self._made = asyncio.Event()
        """Set once there is a reader."""
        self._model = model
        self._transport = transport
        self._opened = opened
        self._settings = settings
        self._telemetry = telemetry
        self._streams: Way | None = None
        self._opening: asyncio.Task[Source] | None = None
        self._reader: Reader | None = None
        self._watched: Lease | None = None
        """Where this process never reads: what another one writes down."""
        self._is_unwanted = False
        self._problem: str | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow in the background, and give the lease up at the end."""
        async with AsyncExitStack() as stack:
            if self._settings.broker != "memory":
                # Imported only where there is one: its client is an extra.
                from server.valkey import Broker

                self._broker = Broker(self.hub, self._settings.broker)
                await stack.enter_async_context(self._broker.running())
            task = asyncio.create_task(self._run())
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                self.hub.close()
                if self._streams is not None:
                    self._streams.close()

    async def ready(self) -> None:
        """Wait until changes come to the hub. Raises StreamError where they do not."""
        if self._broker is not None:
            await self._broker.ready()
            return
        if self._settings.stream == "off":
            raise StreamError("the streams are not read: expected a server with `--stream auto` or `--stream on`")
        try:
            async with asyncio.timeout(READY_SECS):
                await self._made.wait()
                assert self._reader is not None
                await self._reader.following()
        except TimeoutError:
            reason = self._problem or (self._reader.problem if self._reader else None)
            raise StreamError(
                reason
                or "another process reads the streams, and keeps what it reads to itself: subscribe there, or have all "
                "processes share it by `--broker redis://HOST:PORT/0`"
            ) from None

    def figures(self) -> dict[str, Any]:
        """Tell whether this process reads, how many seconds it lags behind, and what has happened so far."""
        reader = self._reader
        return {
            "stream": self._settings.stream,
            "reading": reader is not None and reader.is_reading,
            "lagSecs": reader.lag if reader else None,
            **asdict(reader.figures if reader else Figures()),
            "problem": self._problem or (reader.problem if reader else None),
        }

    def watermark(self) -> float | None:
        """Tell before when all was written that is followed: here, or as another process writes down; None: not known.

        On the event loop's clock.
        """
        told = self._reader or self._watched
        return None if told is None else told.watermark

    async def places(self) -> Mapping[str, int]:
        """Tell by shard how far the streams are read, for a cursor: here, or a moment ago in another process.

        Raises: StreamError, StoreError.
        """
        if self._reader is not None and self._reader.is_reading:
            return self._reader.places(SUBSCRIPTIONS)
        # Imported only where streams are read, for a server starts sooner without.
        from graph.streams.lease import Lease

        looked = await Lease(self._graph).look()
        return {shard: position for progress in looked.values() for shard, position in progress.known.items()}

    async def replay(self, places: Mapping[str, int]) -> AsyncIterator[Change]:
        """Give all changes behind the places of a cursor. Raises: PlaceLost, StreamError, StoreError."""
        from graph.streams.replay import replay

        async for change in replay(await self._source(), places):
            yield change

    async def _run(self) -> None:
        if self._settings.stream == "off" and has_followed_copies(self._model):
            await self._watch()
        while self._settings.stream != "off":
            try:
                await self._follow()
            except StreamError as error:
                # No other try makes a model what it is not.
                self._problem = str(error)
                logger.error("the streams cannot be followed: %s", error)
                return
            except Exception:
                logger.exception("following the streams failed, and begins again")
                await asyncio.sleep(AGAIN_SECS)

    async def _watch(self) -> None:
        """Have the age of copies known where others read, if any do."""
        from graph.streams.lease import Lease

        # A model of time series alone is followed by nobody.
        with suppress(StreamError):
            self._watched = Lease(self._graph)
            await self._watched.watch()

    async def _follow(self) -> None:
        """Follow once: for ever, or as long as there are subscribers."""
        is_for_subscribers = self._handlers.keys() <= {SUBSCRIPTIONS}
        # Whether any process of those that share a broker has subscribers, this one does not know.
        is_at_times = is_for_subscribers and self._settings.stream == "auto" and self._broker is None
        if is_at_times:
            await self.hub.wanted.wait()
        from graph.streams.lease import Lease
        from graph.streams.reader import Reader

        if self._reader is None:
            poll_secs = self._settings.stream_poll_ms / 1000
            lease = Lease(self._graph, **({"forget_after_secs": STALE_SECS} if is_for_subscribers else {}))
            listener = self._broker or self.hub
            self._reader = Reader(await self._source(), lease, self._handlers, poll_secs, listener)
            self._made.set()
        self._is_unwanted = False
        reading = asyncio.create_task(self._reader.run(forgets=lambda: self._is_unwanted))
        try:
            while not self._is_unwanted:
                await asyncio.wait([reading], timeout=LINGER_SECS)
                if reading.done():
                    reading.result()
                self._is_unwanted = is_at_times and not self.hub.wanted.is_set()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            self.hub.pause()

    @cached_property
    def _handlers(self) -> dict[str, Handler]:
        return handlers_of(self._model, self._graph, self._settings, self._broker or self.hub)

    @cached_property
    def _graph(self) -> Graph:
        # Its own: a client belongs to one event loop, and operations are not to keep the lease waiting.
        return graph_of(self._model, self._transport, self._settings, self._telemetry)

    async def _source(self) -> Source:
        if self._opening is None or (self._opening.done() and self._opening.exception() is not None):
            self._opening = asyncio.create_task(self._open())
        # Others may be waiting for it as well.
        return await asyncio.shield(self._opening)

    async def _open(self) -> Source:
        from graph.streams.source import Source

        # In a thread, for botocore reads its description of the service.
        self._streams = await asyncio.to_thread(self._opened)
        return Source(self._graph, Client(self._streams, self._settings.max_in_flight))
