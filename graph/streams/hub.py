"""The hub: hands changes to those in this process who wait for them, by topic."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from graph.errors import SubscriberTooSlow
from graph.model import Model
from graph.streams.change import Change
from graph.streams.topics import Topic, topics_of

MOST_WAITING = 1_000
"""So many changes wait for one subscriber."""


class Subscription:
    """The changes of some topics, in the order of their writes, each once; to be closed.

    Raises: SubscriberTooSlow in the place of the first change that had no room.
    """

    def __init__(self, hub: Hub, topics: frozenset[Topic], most_waiting: int) -> None:
        self.topics = topics
        self._hub = hub
        self._most = most_waiting
        self._waiting: deque[Change] = deque()
        self._arrived = asyncio.Event()
        self._is_closed = self._has_overflowed = False
        self._last: dict[str, int] = {}
        """By shard the last change that came: a reader that begins again tells some twice."""

    def __aiter__(self) -> Subscription:
        return self

    async def __anext__(self) -> Change:
        while not self._waiting:
            if self._has_overflowed:
                self.close()
                raise SubscriberTooSlow(
                    f"more than {self._most} changes were waiting for this subscriber, which takes them more slowly "
                    "than they come: subscribe again, after the last cursor that came, and to less"
                )
            if self._is_closed:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        return self._waiting.popleft()

    def offer(self, change: Change) -> None:
        """Take a change, unless it has come before."""
        shard, sequence = change.place
        if self._has_overflowed or self._last.get(shard, -1) >= sequence:
            return
        self._last[shard] = sequence
        if len(self._waiting) >= self._most:
            self._has_overflowed = True
        else:
            self._waiting.append(change)
        self._arrived.set()

    def retopic(self, topics: Iterable[Topic]) -> None:
        """Wait for other topics from now on."""
        self._hub.move(self, frozenset(topics))

    def close(self) -> None:
        """End it; what waits still comes."""
        self._hub.move(self, frozenset())
        self._is_closed = True
        self._arrived.set()


class Hub:
    """Hands changes to the subscriptions of one process; belongs to one event loop.

    Cost of a change: its topics, and the subscriptions to them; the others do not count.
    """

    def __init__(self, model: Model, most_waiting: int = MOST_WAITING) -> None:
        self._model = model
        self._most = most_waiting
        self._by_topic: dict[Topic, dict[Subscription, None]] = {}
        self.places: dict[str, int] = {}
        """By shard where its changes begin."""
        self.wanted = asyncio.Event()
        """Set while anybody waits for anything."""

    def subscribe(self, topics: Iterable[Topic]) -> Subscription:
        """Begin to collect the changes of some topics."""
        subscription = Subscription(self, frozenset(), self._most)
        self.move(subscription, frozenset(topics))
        return subscription

    async def publish(self, changes: Sequence[Change]) -> None:
        """Hand changes to all whom they concern; a Handler."""
        for change in changes:
            if not self._by_topic:
                return
            for subscription in self._concerned(change):
                subscription.offer(change)

    def _concerned(self, change: Change) -> Iterable[Subscription]:
        found: dict[Subscription, None] = {}
        for topic in topics_of(self._model, change):
            found |= self._by_topic.get(topic, {})
        return found

    def begin(self, places: Mapping[str, int]) -> None:
        """Take note that changes behind these places will come."""
        self.places |= places

    def end(self, shards: Iterable[str]) -> None:
        """Forget shards of which nothing more comes."""
        for shard in shards:
            self.places.pop(shard, None)

    def move(self, subscription: Subscription, topics: frozenset[Topic]) -> None:
        """Have a subscription wait for these topics and no others."""
        for topic in subscription.topics - topics:
            waiting = self._by_topic[topic]
            del waiting[subscription]
            if not waiting:
                del self._by_topic[topic]
        for topic in topics - subscription.topics:
            self._by_topic.setdefault(topic, {})[subscription] = None
        subscription.topics = topics
        if self._by_topic:
            self.wanted.set()
        else:
            self.wanted.clear()

    def close(self) -> None:
        """End all subscriptions."""
        for subscription in {one for waiting in self._by_topic.values() for one in waiting}:
            subscription.close()
