"""The hub: hands changes to those in this process who wait for them, by topic."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence

from graph.errors import GraphError, PlaceLost, StreamError, SubscriberTooSlow
from graph.model import Model
from graph.streams.change import Change
from graph.streams.places import BEGINNING, Places, Replay, further
from graph.streams.recent import Recent
from graph.streams.topics import Topic, topics_of

MOST_WAITING = 1_000
"""So many changes wait for one subscriber."""
OVERLAP_SECS = 3600.0
"""A reader is less far behind what was read of the stream for one subscriber."""

GONE_PAST = "changes went past this server: subscribe again, after the last cursor that came"

Ready = Callable[[], Awaitable[None]]
"""Waits until changes come. Raises StreamError where they do not."""


class Subscription:
    """The changes of some topics, in the order of their writes, each once; to be closed.

    Raises: SubscriberTooSlow in the place of the first change that had no room; PlaceLost where what came first is
            gone; StreamError where the hub has lost the thread.
    """

    def __init__(self, hub: Hub, most_waiting: int) -> None:
        self.topics: set[Topic] = set()
        self.places: Places = hub.places
        """How far the stream was followed with the change that came last: who goes on behind it misses nothing."""
        self._hub = hub
        self._most = most_waiting
        self._earlier: AsyncIterator[Change] | None = None
        """What comes before all that waits, of any topic."""
        self._overlaps_until = 0.0
        """Until when what was read of the stream may come again."""
        self._waiting: deque[tuple[Change, Places]] = deque()
        self._arrived = asyncio.Event()
        self._is_closed = False
        self._error: GraphError | None = None

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Change:
        while self._earlier is not None:
            change = await anext(self._earlier, None)
            if change is None:
                self._earlier, self._overlaps_until = None, time.monotonic() + OVERLAP_SECS
            elif self._follow(change, {}) and self._hub.topics_of(change) & self.topics:
                return change
        while True:
            change, places = await self._next()
            if self._overlaps_until < time.monotonic():
                self.places = places
                return change
            if self._follow(change, places):
                return change

    async def _next(self) -> tuple[Change, Places]:
        while not self._waiting:
            if self._error is not None:
                self.close()
                raise self._error
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    def _follow(self, change: Change, places: Places) -> bool:
        """Go on to a change, and as far as that means; False where it has come before."""
        shard, sequence = change.place
        is_new = self.places.get(shard, BEGINNING) < sequence
        if is_new:
            self.places = further(further(self.places, places), {shard: sequence})
        return is_new

    def go_back(self, places: Places) -> None:
        """Begin with what came behind these places. Raises PlaceLost."""
        self.places = places
        self._earlier = self._hub.behind(places)

    def offer(self, change: Change, places: Places) -> None:
        """Take a change, and how far the stream was followed with it."""
        if self._error is not None:
            return
        if len(self._waiting) < self._most:
            self._waiting.append((change, places))
            self._arrived.set()
        else:
            self.fail(
                SubscriberTooSlow(
                    f"more than {self._most} changes were waiting for this subscriber, which takes them more slowly "
                    "than they come: subscribe again, after the last cursor that came, and to less"
                )
            )

    def fail(self, error: GraphError) -> None:
        """End it with an error, behind what waits."""
        self._error = self._error or error
        self._arrived.set()

    def join(self, topics: Iterable[Topic]) -> None:
        """Wait for these topics as well from now on."""
        if not self._is_closed:
            self._hub.join(self, topics)

    def retopic(self, topics: Iterable[Topic]) -> None:
        """Wait for other topics from now on."""
        if not self._is_closed:
            wanted = frozenset(topics)
            self._hub.leave(self, self.topics - wanted)
            self._hub.join(self, wanted)

    def close(self) -> None:
        """End it; what waits still comes."""
        self._is_closed = True
        self._hub.part(self)
        self._arrived.set()

    async def aclose(self) -> None:
        """End it, and what is read of the stream for it; nothing comes any more."""
        self.close()
        self._waiting.clear()
        if isinstance(self._earlier, AsyncGenerator):
            await self._earlier.aclose()


class Hub:
    """Hands changes to the subscriptions of one process; belongs to one event loop.

    Cost of a change: its topics, and the subscriptions to them; the others do not count.
    """

    def __init__(
        self,
        model: Model,
        most_waiting: int = MOST_WAITING,
        *,
        replay: Replay | None = None,
        ready: Ready | None = None,
        recent: Recent | None = None,
    ) -> None:
        self.model = model
        self._most = most_waiting
        self._replay = replay
        self._ready = ready
        self._recent = recent or Recent()
        self._all: dict[Subscription, set[str]] = {}
        """By subscription the shards that nobody has read since: what went past there is none of its business."""
        self._coming = 0
        """How many wait until changes come."""
        self._is_fed = False
        self._by_topic: dict[Topic, dict[Subscription, None]] = {}
        self._places: dict[str, int] = {}
        self._last: dict[str, int] = {}
        """By shard the last change that came, wherever a reader begins again."""
        self.wanted = asyncio.Event()
        """Set while anybody waits for anything."""

    @property
    def places(self) -> Places:
        """Say how far the stream was followed."""
        return dict(self._places)

    # --- who writes to it ---

    def begin(self, places: Places) -> None:
        """Take note that changes behind these places will come: a reader begins there, or begins a shard.

        Where others have followed the stream meanwhile, or nobody has, all subscriptions end, to be resumed by cursors.
        """
        self._is_fed = True
        for shard, place in places.items():
            known = self._places.get(shard)
            is_gap = known is not None and (place != known if place < 0 else place > max(known, BEGINNING))
            if known is None or is_gap:
                self._places[shard] = place
                self._recent.begin(shard, place)
            for subscription, unread in self._all.items():
                if is_gap and shard not in unread:
                    subscription.fail(StreamError(GONE_PAST))
                unread.discard(shard)

    def pause(self) -> None:
        """Take note that no changes come until somebody begins: who subscribes meanwhile begins then."""
        self._is_fed = False

    def end(self, shards: Iterable[str]) -> None:
        """Forget shards that are done with, once those that follow on them have begun."""
        for shard in shards:
            self._places.pop(shard, None)
            self._last.pop(shard, None)
            self._recent.end(shard)

    async def publish(self, changes: Sequence[Change]) -> None:
        """Hand changes to all whom they concern, those that came before to nobody; a Handler."""
        for change in changes:
            shard, sequence = change.place
            if self._last.get(shard, BEGINNING) >= sequence or self._places.get(shard, BEGINNING) >= sequence:
                continue
            self._places[shard] = self._last[shard] = sequence
            self._recent.keep(change)
            if self._by_topic and (concerned := self._concerned(change)):
                places = dict(self._places)
                for subscription in concerned:
                    subscription.offer(change, places)

    def fail(self, error: GraphError) -> None:
        """End all subscriptions with an error."""
        for subscription in self._all:
            subscription.fail(error)

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in list(self._all):
            subscription.close()

    # --- who reads from it ---

    @property
    def subscribers(self) -> int:
        """Count the subscriptions under way."""
        return len(self._all)

    def subscribe(self, topics: Iterable[Topic]) -> Subscription:
        """Begin to collect the changes of some topics, those that come."""
        subscription = Subscription(self, self._most)
        self._all[subscription] = set() if self._is_fed else set(self._places)
        self.wanted.set()
        subscription.join(topics)
        return subscription

    async def follow(self, topics: Iterable[Topic], after: Places | None = None) -> Subscription:
        """Begin to collect the changes of some topics, once changes come: from then on, or all behind some places.

        Cost:   nothing while the last changes are remembered here, else what came since is read from the stream.
        Raises: StreamError where no changes come; PlaceLost.
        """
        self._coming += 1
        self.wanted.set()
        try:
            if self._ready is not None:
                await self._ready()
            subscription = self.subscribe(topics)
        finally:
            self._coming -= 1
            self._rest()
        if after is not None:
            try:
                subscription.go_back(after)
            except PlaceLost:
                subscription.close()
                raise
        return subscription

    def _rest(self) -> None:
        if not self._all and not self._coming:
            self.wanted.clear()

    def part(self, subscription: Subscription) -> None:
        """Hand nothing more to a subscription: its topics remain, for what it has yet to be read."""
        if subscription in self._all:
            topics = set(subscription.topics)
            self.leave(subscription, topics)
            subscription.topics = topics
            del self._all[subscription]
            self._rest()

    def behind(self, places: Places) -> AsyncIterator[Change]:
        """Give all changes behind some places. Raises PlaceLost."""
        known = self._recent.behind(places)
        if known is not None:
            return _each(known)
        if self._replay is None:
            raise PlaceLost("what came after this cursor is forgotten here: read anew, and subscribe without `after`")
        return self._replay(places)

    def topics_of(self, change: Change) -> frozenset[Topic]:
        """List what a change is about."""
        return topics_of(self.model, change)

    def _concerned(self, change: Change) -> dict[Subscription, None]:
        found: dict[Subscription, None] = {}
        for topic in self.topics_of(change):
            found |= self._by_topic.get(topic, {})
        return found

    def join(self, subscription: Subscription, topics: Iterable[Topic]) -> None:
        """Have a subscription wait for these topics as well."""
        for topic in topics:
            self._by_topic.setdefault(topic, {})[subscription] = None
            subscription.topics.add(topic)

    def leave(self, subscription: Subscription, topics: Collection[Topic]) -> None:
        """Have a subscription no longer wait for these topics, all of which it waits for."""
        subscription.topics.difference_update(topics)
        for topic in topics:
            waiting = self._by_topic[topic]
            del waiting[subscription]
            if not waiting:
                del self._by_topic[topic]


async def _each(changes: Iterable[Change]) -> AsyncIterator[Change]:
    for change in changes:
        yield change
