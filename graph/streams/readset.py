"""The read set of an execution: what it has read, and whether a change would have it read something else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.errors import DeadlineExceeded, Throttled, Unavailable
from graph.expressions import Condition, holds
from graph.keys import KeyValue
from graph.model import Index, Model, Projection
from graph.requests import BatchGetItem, GetItem, Item, Query, Request, Scan, key_value
from graph.streams.change import Change, table_of
from graph.streams.topics import Topic, of_item, of_partition, of_table, partition_of

if TYPE_CHECKING:
    from graph.loaders import Sender

PASSING = (Throttled, Unavailable, DeadlineExceeded)
"""What may go better the next time."""

Position = tuple[KeyValue, ...]
"""The values of an index's sort attributes."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The part of a partition, or of a table, that one Query or Scan has read, from one position to another."""

    index: Index
    sort: Condition | None = None
    filter: Condition | None = None
    low: Position | None = None
    high: Position | None = None
    is_descending: bool = False

    def holds(self, item: Item) -> bool:
        """Say whether an item of the partition, or of the table, is among those read: within, and not filtered out."""
        if self.low is not None or self.high is not None:
            position = _position(self.index, item)
            if not (self._is_behind_low(position) and self._is_before_high(position)):
                return False
        if self.sort is not None and not holds(self.sort, item):
            return False
        # A filter sees of an item what the index holds of it.
        return self.filter is None or self.index.projection is not Projection.ALL or holds(self.filter, item)

    # Items of an index that share a sort key lie in an order that DynamoDB alone knows: there both ends count. In the
    # table no two share one, and what was read begins behind its ExclusiveStartKey.
    def _is_behind_low(self, position: Position) -> bool:
        is_start = self.index.name is None and not self.is_descending
        return self.low is None or position > self.low or (position == self.low and not is_start)

    def _is_before_high(self, position: Position) -> bool:
        is_start = self.index.name is None and self.is_descending
        return self.high is None or position < self.high or (position == self.high and not is_start)


class ReadSet:
    """What one execution has read: items by their keys, also those that are not there, and stretches of partitions.

    `wait` is told the topics of each request before it is sent, so that no change between the reading and the waiting
    is missed. Size: a topic for each key and each partition, a Stretch for each Query and Scan; nothing of the answers
    but where they ended.
    """

    def __init__(self, model: Model, wait: Callable[[Iterable[Topic]], None]) -> None:
        self._model = model
        self._wait = wait
        self._stretches: dict[Topic, list[Stretch]] = {}
        """By topic; none for an item's key, which any change of the item concerns."""
        self._ways: dict[str, dict[str | None, Index]] = {}
        """By table the indexes that were read, by their names."""
        self.is_behind = False
        """Whether a global secondary index was read, which is always a little behind its table."""
        self.has_failed = False
        """Whether something was not answered that may be the next time."""

    @property
    def topics(self) -> Iterable[Topic]:
        """List what to wait for."""
        return self._stretches.keys()

    def over(self, sender: Sender) -> Sender:
        """Send as another sender does, and write down what is read."""
        return _Recorder(self, sender)

    def begin(self, request: Request) -> Request:
        """Take in what a request is going to read; give it as it is to be sent: consistent, where that can be."""
        match request:
            case GetItem(table, key):
                topics: Sequence[Topic] = (of_item((table, key)),)
            case BatchGetItem(table, keys):
                topics = [of_item((table, key)) for key in keys]
            case Query(table, index, partition):
                topics = (of_partition(table, index, partition),)
            case Scan(table):
                topics = (of_table(table),)
            case _:
                return request
        self._wait(topics)
        for topic in topics:
            self._stretches.setdefault(topic, [])
        if isinstance(request, Query) and not _is_own(self._index(request)):
            self.is_behind = True
            return request
        return request if request.consistent else replace(request, consistent=True)

    def end(self, request: Request, response: Response | None) -> None:
        """Take in how far a request has read; None where it was not answered."""
        if not isinstance(request, (Query, Scan)):
            return
        index = self._index(request)
        self._ways.setdefault(request.table, {})[index.name] = index
        # The order of a Scan is DynamoDB's own: whatever the table holds may lie where it has read.
        topic, stretch = of_table(request.table), Stretch(index, filter=request.filter)
        if isinstance(request, Query):
            begin = None if request.start is None else _place(index, dict(request.start))
            last = (response or {}).get("LastEvaluatedKey")
            end = None if last is None else _position(index, last)
            low, high = (end, begin) if request.descending else (begin, end)
            topic = of_partition(request.table, index.name, request.partition)
            stretch = Stretch(index, request.sort, request.filter, low, high, request.descending)
        known = self._stretches[topic]
        if stretch not in known:
            known.append(stretch)

    def _index(self, request: Query | Scan) -> Index:
        table = table_of(self._model, request.table)
        return next(way for way in table.ways if way.name == request.index)

    def concerns(self, change: Change) -> bool:
        """Say whether the same requests might be answered otherwise after a change; rather once too often."""
        if change.is_nothing:
            return False
        if of_item(change.key) in self._stretches:
            return True
        return any(self._has_read(change.key[0], item) for item in (change.before, change.after) if item is not None)

    def _has_read(self, name: str, item: Item) -> bool:
        return any(
            stretch.holds(item) for topic in self._lists(name, item) for stretch in self._stretches.get(topic, ())
        )

    def _lists(self, name: str, item: Item) -> Iterator[Topic]:
        """Name what an item is part of, and might have been read as part of."""
        yield of_table(name)
        for index in self._ways.get(name, {}).values():
            partition = partition_of(index, item)
            if partition is not None:
                yield of_partition(name, index.name, partition)


class _Recorder:
    """Sends requests for one execution."""

    def __init__(self, reads: ReadSet, sender: Sender) -> None:
        self._reads = reads
        self._sender = sender

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request and give its answer. Raises StoreError."""
        request = self._reads.begin(request)
        response: Response | None = None
        try:
            response = await self._sender.send(request, meter, parse)
        except PASSING:
            self._reads.has_failed = True
            raise
        finally:
            self._reads.end(request, response)
        return response


def _is_own(index: Index) -> bool:
    """Say whether an index can be read consistently: the table's own key, or a local one."""
    return index.name is None or index.local


def _position(index: Index, item: Item) -> Position:
    return tuple(key_value(item[name]) for name in index.sort_keys)


def _place(index: Index, values: dict[str, KeyValue]) -> Position:
    return tuple(values[name] for name in index.sort_keys)
