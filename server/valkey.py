"""The broker between processes: who reads the stream adds its changes to a stream of Valkey or Redis, and all read it.

A process reads while it has subscribers. What one of them missed while the broker was away, it gets by its cursor from
the tables' own streams: nothing rests on what the broker keeps.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import orjson
from redis.asyncio import Redis
from redis.exceptions import RedisError

from graph.cursor import fingerprint
from graph.errors import StreamError, Unavailable
from graph.model import Model
from graph.requests import key_value
from graph.streams.change import Change, Place, table_of
from graph.streams.hub import Hub
from graph.streams.places import Places

logger = logging.getLogger(__name__)

MOST_KEPT = 10_000
"""So many entries remain for those who read slowly, roughly: an entry holds what one GetRecords brought."""
MOST_AT_ONCE = 100
BLOCK_SECS = 1.0
"""How long to wait for entries before looking whether anybody still wants them."""

Entry = dict[str, Any]
"""What happened to the hubs: `begin` (places), `end` (shards) and `changes`."""


class Broker:
    """Takes changes where a hub does, and hands them to the hubs of all processes; belongs to one event loop."""

    def __init__(self, hub: Hub, url: str) -> None:
        """Take the hub of this process, which is the only one that reads from here, and the server's URL."""
        self._hub = hub
        self._shown = _without_password(url)
        name = f"tablegraph:{fingerprint(*sorted(hub.model.tables))}"
        self._changes, self._places = f"{name}:changes", f"{name}:places"
        self._client: Any = Redis.from_url(url, protocol=2, socket_connect_timeout=5)
        self._notes: list[Entry] = []
        """What is still to be told before the next changes."""
        self._adding = asyncio.Lock()
        self._telling: asyncio.Task[None] | None = None
        self._joining = asyncio.Lock()
        self._reading: asyncio.Task[None] | None = None
        self._last = b"0"

    # --- who reads the tables' streams ---

    def begin(self, places: Places) -> None:
        """Tell all hubs that changes behind these places will come."""
        self._tell({"begin": {shard: str(place) for shard, place in places.items()}})

    def end(self, shards: Iterable[str]) -> None:
        """Tell all hubs that nothing more comes of these shards."""
        self._tell({"end": list(shards)})

    async def publish(self, changes: Sequence[Change]) -> None:
        """Add changes for all hubs; a Handler. Raises Unavailable where the broker is away: nothing is added then."""
        try:
            await self._add(*([{"changes": [_write(change) for change in changes]}] if changes else []))
        except RedisError as error:
            raise Unavailable(f"the broker {self._shown} does not take changes: {error}") from error

    def _tell(self, note: Entry) -> None:
        self._notes.append(note)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell_now())

    async def _tell_now(self) -> None:
        # Where it is away, the next changes take the notes along.
        with suppress(RedisError):
            await self._add()

    async def _add(self, *entries: Entry) -> None:
        async with self._adding:
            notes = len(self._notes)
            added = [*self._notes, *entries]
            if not added:
                return
            async with self._client.pipeline(transaction=True) as transaction:
                for entry in added:
                    content = orjson.dumps(entry)
                    transaction.xadd(self._changes, {"e": content}, maxlen=MOST_KEPT, approximate=True)
                    if places := _places_of(entry):
                        transaction.hset(self._places, mapping=places)
                    if shards := entry.get("end"):
                        transaction.hdel(self._places, *shards)
                await transaction.execute()
            del self._notes[:notes]

    # --- who has subscribers ---

    async def ready(self) -> None:
        """Read from now on, as long as anybody waits for changes. Raises StreamError where the broker is away."""
        async with self._joining:
            if self._reading is not None and not self._reading.done():
                return
            try:
                places, last = await self._now()
            except RedisError as error:
                raise self._away(error) from error
            self._hub.begin(places)
            self._last = last
            self._reading = asyncio.create_task(self._read())

    async def _now(self) -> tuple[Places, bytes]:
        """Tell how far the hubs are that have read everything, and the last entry."""
        async with self._client.pipeline(transaction=True) as transaction:
            transaction.hgetall(self._places)
            transaction.xrevrange(self._changes, count=1)
            places, entries = await transaction.execute()
        last = entries[0][0] if entries else b"0"
        return {shard.decode(): int(at) for shard, at in places.items()}, last

    async def _read(self) -> None:
        try:
            while self._hub.wanted.is_set():
                for entry in await self._next():
                    self._hub.begin({shard: int(place) for shard, place in entry.get("begin", {}).items()})
                    self._hub.end(entry.get("end", ()))
                    await self._hub.publish([_read(self._hub.model, change) for change in entry.get("changes", ())])
        except RedisError as error:
            logger.warning("the broker %s is away: %s", self._shown, error)
            self._hub.fail(self._away(error))
        except StreamError as error:
            logger.warning("the broker %s has dropped what was not read yet", self._shown)
            self._hub.fail(error)
        except Exception:
            logger.exception("reading from the broker %s failed", self._shown)
            self._hub.fail(StreamError("changes were lost here: subscribe again, after the last cursor that came"))

    async def _next(self) -> list[Entry]:
        """Wait for entries; none where a while has passed. Raises StreamError where some were dropped unread."""
        answer = await self._client.xread({self._changes: self._last}, count=MOST_AT_ONCE, block=int(1000 * BLOCK_SECS))
        if not answer:
            return []
        ((_, found),) = answer
        # So many at once may be what is left of more.
        is_behind = len(found) == MOST_AT_ONCE and self._last != b"0"
        if is_behind and not await self._client.xrange(self._changes, self._last, self._last):
            raise StreamError(
                "changes came faster than they are read here, and some are gone: subscribe again, after the last "
                "cursor that came"
            )
        self._last = found[-1][0]
        return [orjson.loads(fields[b"e"]) for _, fields in found]

    def _away(self, error: RedisError) -> StreamError:
        return StreamError(
            f"changes do not come, for the broker is away ({type(error).__name__}): subscribe again, after the last "
            "cursor that came"
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close the connections at the end."""
        try:
            yield
        finally:
            tasks = [task for task in (self._reading, self._telling) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._client.aclose()


def _places_of(entry: Entry) -> Mapping[str, str]:
    """Say how far an entry goes in each shard, as text: sequence numbers are larger than the integers of JSON."""
    return entry.get("begin") or {shard: sequence for _, _, _, shard, sequence, *_ in entry.get("changes", ())}


def _write(change: Change) -> list[Any]:
    place = (change.place.shard, str(change.place.sequence))
    return [change.key[0], change.before, change.after, *place, change.at, change.is_expiry]


def _read(model: Model, written: Sequence[Any]) -> Change:
    table, before, after, shard, sequence, at, is_expiry = written
    item: Mapping[str, Any] = after or before
    key = tuple((name, key_value(item[name])) for name in table_of(model, table).key_attributes)
    return Change((table, key), before, after, Place(shard, int(sequence)), at, is_expiry)


def _without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"
