"""The broker on a real server: every process gets every change, in order and once, also when the server goes away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from graph.errors import PlaceLost, StreamError, Unavailable
from graph.requests import Item
from graph.streams.change import Change, Place
from graph.streams.hub import Hub, Subscription
from graph.streams.places import Replay
from graph.streams.topics import of_type
from resolvers.operation import Events, Request, Response
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server import valkey
from server.demo import turn_on_stream
from server.following import Following
from server.settings import Settings
from server.valkey import Broker
from tests.conftest import BANANAS, Serve
from tests.following import global_id, soon
from tests.test_following import following
from tests.test_streams_engine import SDL, put, ship
from tests.valkey_server import SERVER, Server

MODEL = compile_model(BANANAS.read_text(), table="t")
CONTAINERS = [of_type("Container")]
BIG = 10**22
"""DynamoDB's sequence numbers are larger than any integer of JSON."""

pytestmark = pytest.mark.skipif(SERVER is None, reason="neither valkey-server nor redis-server is on PATH")


def change(number: int, shard: str = "a") -> Change:
    key = (("objectId", "CONTAINER_1"), ("relatedObjectId", "CONTAINER_1"))
    item: Item = {name: {"S": value} for name, value in key}
    before = {**item, "Operator": {"S": "before"}}
    return Change(("t", key), before, item, Place(shard, BIG + number), 1.5)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # The path of a socket may have 107 characters.
    server = Server(tmp_path_factory.mktemp("v"))
    server.start()
    yield server
    server.kill()


@dataclass
class Process:
    """What one process has."""

    hub: Hub
    broker: Broker

    async def follow(self, after: dict[str, int] | None = None) -> Subscription:
        return await self.hub.follow(CONTAINERS, after)


class Processes:
    """Makes processes, and ends them."""

    def __init__(self, url: str, stack: AsyncExitStack) -> None:
        self._url = url
        self._stack = stack

    async def __call__(self, replay: Replay | None = None) -> Process:
        async def ready() -> None:
            await process.broker.ready()

        hub = Hub(MODEL, replay=replay, ready=ready)
        process = Process(hub, Broker(hub, self._url))
        await self._stack.enter_async_context(process.broker.running())
        return process


@pytest.fixture
async def processes(server: Server) -> AsyncIterator[Processes]:
    async with AsyncExitStack() as stack:
        yield Processes(server.url, stack)


async def taken(subscription: Subscription, count: int) -> list[int]:
    async with asyncio.timeout(30):
        return [(await anext(subscription)).place.sequence - BIG for _ in range(count)]


async def test_change_reaches_every_process_as_it_was(processes: Processes) -> None:
    reader, other = await processes(), await processes()
    subscriptions = [await one.follow() for one in (reader, other)]

    await reader.broker.publish([change(1), change(2)])

    for subscription in subscriptions:
        async with asyncio.timeout(30):
            assert [await anext(subscription), await anext(subscription)] == [change(1), change(2)]
        assert subscription.places == {"a": BIG + 2}


async def test_reader_that_begins_again_in_another_process_tells_nothing_twice(processes: Processes) -> None:
    first, second, third = [await processes() for _ in range(3)]
    subscription = await third.follow()
    first.broker.begin({"a": 0})
    await first.broker.publish([change(1), change(2), change(3)])

    # Its checkpoint was behind.
    second.broker.begin({"a": BIG + 1})
    await second.broker.publish([change(2), change(3), change(4)])

    assert await taken(subscription, 4) == [1, 2, 3, 4]
    assert subscription.places == {"a": BIG + 4}


async def test_process_that_comes_later_knows_how_far_all_are(processes: Processes) -> None:
    reader = await processes()
    reader.broker.begin({"a": 0, "b": -1000, "done": 0})
    await reader.broker.publish([change(7)])
    reader.broker.end(["done"])
    await reader.broker.publish([])

    late = await processes()
    subscription = await late.follow()
    await reader.broker.publish([change(1, "c")])
    await taken(subscription, 1)

    assert subscription.places == {"a": BIG + 7, "b": -1000, "c": BIG + 1}


async def test_subscriber_goes_on_in_another_process(processes: Processes) -> None:
    asked: list[Any] = []

    async def replay(places: Any) -> AsyncIterator[Change]:
        asked.append(places)
        for one in (change(2), change(3)):
            yield one

    reader = await processes()
    reader.broker.begin({"a": 0})
    subscription = await reader.follow()
    await reader.broker.publish([change(1), change(2), change(3)])
    await taken(subscription, 1)

    late = await processes(replay)
    again = await late.follow(dict(subscription.places))
    await reader.broker.publish([change(4)])

    assert await taken(again, 3) == [2, 3, 4]
    assert asked == [{"a": BIG + 1}]


async def test_process_reads_only_while_it_has_subscribers(processes: Processes) -> None:
    reader, other = await processes(), await processes()
    reader.broker.begin({"a": 0})
    await reader.broker.publish([])
    first = await other.follow()
    reading = other.broker._reading
    assert reading is not None
    first.close()
    await asyncio.wait([reading], timeout=30)
    await reader.broker.publish([change(1)])

    assert reading.done()
    assert dict(other.hub.places) == {"a": 0}

    second = await other.follow()
    await reader.broker.publish([change(2)])

    assert await taken(second, 1) == [2]
    # What went past meanwhile is not taken for remembered.
    with pytest.raises(PlaceLost):
        await other.follow({"a": 0})


async def test_outage_ends_subscriptions_and_they_go_on_behind_their_cursors(
    processes: Processes, server: Server
) -> None:
    stream = [change(number) for number in range(1, 6)]

    async def replay(places: Any) -> AsyncIterator[Change]:
        for one in stream:
            if one.place.sequence > places.get("a", 0):
                yield one

    reader, other = await processes(), await processes(replay)
    reader.broker.begin({"a": 0})
    subscription = await other.follow()
    await reader.broker.publish(stream[:2])
    assert await taken(subscription, 2) == [1, 2]

    server.kill()

    async with asyncio.timeout(30):
        with pytest.raises(StreamError, match="the broker is away"):
            await anext(subscription)
    with pytest.raises(StreamError, match="the broker is away"):
        await other.follow(dict(subscription.places))
    with pytest.raises(Unavailable):
        await reader.broker.publish(stream[2:3])

    server.start()
    again = await other.follow(dict(subscription.places))
    # The handler failed, so the reader tells it again.
    await reader.broker.publish(stream[2:3])
    await reader.broker.publish(stream[3:])

    assert await taken(again, 3) == [3, 4, 5]


async def test_who_reads_too_slowly_is_told_so(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(valkey, "MOST_AT_ONCE", 1)
    reader, other = await processes(), await processes()
    await reader.broker.publish([change(1)])
    subscription = await other.follow()
    await reader.broker.publish([change(2)])
    await taken(subscription, 1)
    client = reader.broker._client

    # More than are kept come at once.
    async with client.pipeline(transaction=True) as transaction:
        transaction.delete(reader.broker._changes)
        for number in (8, 9):
            content = orjson.dumps({"changes": [valkey._write(change(number))]})
            # Emptied, it may give an id again.
            transaction.xadd(reader.broker._changes, {"e": content}, id=f"9999999999999-{number}")
        await transaction.execute()

    async with asyncio.timeout(30):
        with pytest.raises(StreamError, match="faster than they are read"):
            await anext(subscription)


async def test_changes_of_many_writers_come_in_the_order_of_each(processes: Processes) -> None:
    readers = [await processes() for _ in range(3)]
    follower = await processes()
    subscription = await follower.follow()

    async def write(reader: Process, shard: str) -> None:
        for number in range(1, 41):
            await reader.broker.publish([change(number, shard)])

    await asyncio.gather(*(write(reader, shard) for reader, shard in zip(readers, "abc", strict=True)))

    found: dict[str, list[int]] = {}
    async with asyncio.timeout(30):
        for _ in range(120):
            place = (await anext(subscription)).place
            found.setdefault(place.shard, []).append(place.sequence - BIG)
    assert found == {shard: list(range(1, 41)) for shard in "abc"}


async def test_one_process_reads_the_streams_for_the_subscribers_of_all(
    engine: str, serve: Serve, server: Server
) -> None:
    fleet = await serve(SDL)
    await turn_on_stream(fleet.graph, fleet.table)
    settings = Settings(stream_poll_ms=20, broker=server.url)
    subscription = Request("subscription($after: String) { shipChanged(after: $after) { nodeId cursor } }")
    async with (
        following(engine, fleet, settings) as (one, hub),
        following(engine, fleet, settings) as (other, other_hub),
    ):
        # Whoever has the lease reads, also while nobody subscribes.
        async with asyncio.timeout(30):
            tasks = [asyncio.create_task(caught_up(made)) for made in (one, other)]
            _, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        apis = [Api(fleet.graph, hub=found) for found in (hub, other_hub)]
        opened = [await api.open(subscription) for api in apis]
        await put(fleet.graph, ship("a"))
        first = [await told(events) for events in opened]
        # A subscriber goes on in the other process, where the stream is not read.
        await put(fleet.graph, ship("b"))
        cursors = {"after": first[0]["cursor"]}
        again = [await api.open(subscription._replace(variables=cursors)) for api in apis]
        await put(fleet.graph, ship("c"))
        later = [[(await told(events))["nodeId"] for _ in range(2)] for events in again]

        assert sorted([one.figures()["reading"], other.figures()["reading"]]) == [False, True]
    assert [body["nodeId"] for body in first] == [global_id("Ship", "SHIP#a")] * 2
    assert later == [[global_id("Ship", "SHIP#b"), global_id("Ship", "SHIP#c")]] * 2


async def caught_up(made: Following) -> None:
    await made._made.wait()
    assert made._reader is not None
    await made._reader.caught_up()


async def told(events: Events | Response) -> Any:
    assert not isinstance(events, Response), events.body
    return (await soon(events))["data"]["shipChanged"]
