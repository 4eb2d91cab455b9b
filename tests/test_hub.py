"""The hub: each change reaches those whom it concerns, in order and once, whatever happens to the reader."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

import pytest

from graph.cursor import Issuer, write_cursor
from graph.errors import CursorError, PlaceLost, StreamError, SubscriberTooSlow
from graph.streams.change import Change, Place
from graph.streams.hub import Hub, Subscription
from graph.streams.places import Places, Replay, read_places, write_places
from graph.streams.recent import Recent
from graph.streams.topics import Topic, of_item, of_partition, of_type
from resolvers.sdl import compile_model
from tests.conftest import BANANAS

MODEL = compile_model(BANANAS.read_text(), table="t")


def change(number: int, name: str = "CONTAINER_1", shard: str = "a", other: str = "") -> Change:
    """A write of the container's own item, or of its edge to another node, as the number of its shard."""
    values = {"objectId": name, "relatedObjectId": other or name}
    item = {key: {"S": value} for key, value in values.items()} | {"Operator": {"S": f"operator {number}"}}
    return Change(("t", tuple(values.items())), None, item, Place(shard, number))


def key(name: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return "t", (("objectId", name), ("relatedObjectId", name))


CONTAINERS = [of_type("Container")]


async def taken(subscription: Subscription, count: int) -> list[Place]:
    """Take so many changes, which must be there."""
    return [(await anext(subscription)).place for _ in range(count)]


async def rest(subscription: Subscription) -> list[int]:
    """Take all that is there."""
    subscription.close()
    return [one.place.sequence async for one in subscription]


def replaying(changes: Iterable[Change], asked: list[Places]) -> Replay:
    """A stream that holds these changes; what it is asked for is noted."""

    async def replay(places: Places) -> AsyncIterator[Change]:
        asked.append(places)
        for one in changes:
            if one.place.sequence > places.get(one.place.shard, 0):
                yield one

    return replay


# --- whom a change concerns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "concerned"),
    [
        pytest.param(of_type("Container"), [1, 2], id="type"),
        pytest.param(of_type("PalletLoading"), [3], id="edge-type"),
        pytest.param(of_item(key("CONTAINER_1")), [1], id="item"),
        pytest.param(of_partition("t", None, (("objectId", "CONTAINER_1"),)), [1, 3], id="partition"),
        pytest.param(
            of_partition("t", "reverse-lookup-index", (("relatedObjectId", "PALLET_1"),)), [3], id="partition-of-index"
        ),
        pytest.param(of_item(key("CONTAINER_9")), [], id="nobody"),
    ],
)
async def test_change_reaches_those_whom_it_concerns(topic: tuple[object, ...], concerned: list[int]) -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe([topic])

    await hub.publish([change(1), change(2, "CONTAINER_2"), change(3, "CONTAINER_1", other="PALLET_1")])

    assert await rest(subscription) == concerned


async def test_change_of_two_topics_of_one_subscriber_comes_once() -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe([*CONTAINERS, of_item(key("CONTAINER_1"))])

    await hub.publish([change(1)])

    assert await rest(subscription) == [1]


async def test_changes_come_in_the_order_of_their_writes() -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe(CONTAINERS)

    await hub.publish([change(number) for number in range(1, 50)])

    assert await rest(subscription) == list(range(1, 50))


class CountingHub(Hub):
    """Counts whose topics were asked for."""

    def __init__(self) -> None:
        super().__init__(MODEL)
        self.listed: list[Change] = []

    def topics_of(self, change: Change) -> frozenset[Topic]:
        self.listed.append(change)
        return super().topics_of(change)


async def test_subscribers_whom_a_change_does_not_concern_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = CountingHub()
    idle = [hub.subscribe([of_item(key(f"CONTAINER_{number}"))]) for number in range(2, 1002)]
    one = hub.subscribe([of_item(key("CONTAINER_1"))])
    offered: list[Subscription] = []
    offer = Subscription.offer

    def count(subscription: Subscription, change: Change, places: Places) -> None:
        offered.append(subscription)
        offer(subscription, change, places)

    monkeypatch.setattr(Subscription, "offer", count)

    await hub.publish([change(number) for number in range(1, 11)])

    assert offered == [one] * 10
    assert len(hub.listed) == 10
    assert len(idle) == 1000


async def test_change_costs_nothing_while_nobody_waits() -> None:
    hub = CountingHub()
    hub.subscribe(CONTAINERS).close()

    await hub.publish([change(1)])

    assert hub.listed == []
    assert hub.places == {"a": 1}


# --- each once ----------------------------------------------------------------------------------------------------


async def test_reader_that_begins_again_tells_nothing_twice() -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe(CONTAINERS)

    await hub.publish([change(1), change(2)])
    await hub.publish([change(1), change(2), change(3)])

    assert await rest(subscription) == [1, 2, 3]


async def test_shards_are_counted_apart() -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe(CONTAINERS)

    await hub.publish([change(5), change(2, shard="b"), change(6), change(1, shard="b")])

    assert await taken(subscription, 3) == [Place("a", 5), Place("b", 2), Place("a", 6)]
    assert await rest(subscription) == []


# --- those who cannot follow --------------------------------------------------------------------------------------


async def test_slow_subscriber_gets_what_waited_and_then_an_error() -> None:
    hub = Hub(MODEL, most_waiting=3)
    slow, other = hub.subscribe(CONTAINERS), hub.subscribe([of_item(key("CONTAINER_2"))])

    await hub.publish([change(number) for number in range(1, 6)])
    await hub.publish([change(6, "CONTAINER_2")])

    assert await taken(slow, 3) == [Place("a", 1), Place("a", 2), Place("a", 3)]
    with pytest.raises(SubscriberTooSlow, match="more than 3 changes were waiting"):
        await anext(slow)
    assert await rest(other) == [6]


async def test_slow_subscriber_goes_on_behind_its_last_place() -> None:
    hub = Hub(MODEL, most_waiting=3)
    hub.begin({"a": 0})
    slow = hub.subscribe(CONTAINERS)
    await hub.publish([change(number) for number in range(1, 6)])
    await taken(slow, 3)

    again = await hub.follow(CONTAINERS, slow.places)

    assert await taken(again, 2) == [Place("a", 4), Place("a", 5)]


async def test_changes_that_went_past_end_all_subscriptions() -> None:
    hub = Hub(MODEL)
    hub.begin({"a": 4})
    subscription = hub.subscribe(CONTAINERS)
    await hub.publish([change(5)])

    hub.begin({"a": 9})

    assert await taken(subscription, 1) == [Place("a", 5)]
    with pytest.raises(StreamError, match="subscribe again, after the last cursor"):
        await anext(subscription)


async def test_reader_that_begins_behind_what_came_ends_nothing() -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe(CONTAINERS)
    await hub.publish([change(5)])

    hub.begin({"a": 3, "b": 0})
    await hub.publish([change(4), change(5), change(6)])

    assert await rest(subscription) == [5, 6]


async def test_second_from_which_a_reader_begins_anew_is_a_gap_for_those_who_waited_before() -> None:
    hub = Hub(MODEL)
    hub.begin({"a": 0})
    waiting = hub.subscribe(CONTAINERS)
    await hub.publish([change(5)])

    hub.begin({"a": -1000})
    await hub.publish([change(5), change(9)])

    assert await taken(waiting, 1) == [Place("a", 5)]
    with pytest.raises(StreamError):
        await anext(waiting)
    # What lies between, nobody here has.
    with pytest.raises(PlaceLost):
        await hub.follow(CONTAINERS, {"a": 5})


async def test_who_subscribes_while_nobody_reads_begins_where_the_reader_does() -> None:
    hub = Hub(MODEL)
    hub.begin({"a": 0, "b": 0})
    await hub.publish([change(5), change(6, shard="b")])

    hub.pause()
    subscription = hub.subscribe(CONTAINERS)
    hub.begin({"a": -1000})
    await hub.publish([change(9)])
    hub.begin({"b": 8})
    await hub.publish([change(9, shard="b")])

    assert await taken(subscription, 2) == [Place("a", 9), Place("b", 9)]
    # From here on it would miss something.
    hub.begin({"a": 20})
    with pytest.raises(StreamError):
        await anext(subscription)


async def test_subscriber_who_has_to_wait_for_the_reader_goes_back_behind_where_it_began() -> None:
    asked: list[Places] = []
    hub: Hub

    async def ready() -> None:
        # The reader begins where it had stopped being wanted, and others have written meanwhile.
        hub.begin({"a": 7})

    hub = Hub(MODEL, replay=replaying([change(5), change(6), change(7)], asked), ready=ready)
    hub.begin({"a": 0})
    await hub.publish([change(4), change(5)])

    subscription = await hub.follow(CONTAINERS, {"a": 4})
    await hub.publish([change(8)])

    assert [place.sequence for place in await taken(subscription, 4)] == [5, 6, 7, 8]
    assert asked == [{"a": 4}]


async def test_subscriber_is_refused_where_no_changes_come() -> None:
    async def ready() -> None:
        raise StreamError("nobody reads")

    hub = Hub(MODEL, ready=ready)

    with pytest.raises(StreamError, match="nobody reads"):
        await hub.follow(CONTAINERS)
    assert not hub.wanted.is_set()


async def test_hub_is_wanted_while_anybody_waits() -> None:
    hub = Hub(MODEL)
    one, other = hub.subscribe(CONTAINERS), hub.subscribe(CONTAINERS)
    wanted = [hub.wanted.is_set()]

    for subscription in (one, other, other):
        subscription.close()
        wanted.append(hub.wanted.is_set())

    assert wanted == [True, True, False, False]


async def test_closed_hub_ends_subscriptions_behind_what_waits() -> None:
    hub = Hub(MODEL)
    subscription = hub.subscribe(CONTAINERS)
    await hub.publish([change(1)])

    hub.close()

    assert [one.place.sequence async for one in subscription] == [1]


# --- going on behind a place --------------------------------------------------------------------------------------


async def test_short_absence_is_served_from_memory() -> None:
    asked: list[Places] = []
    hub = Hub(MODEL, replay=replaying([], asked))
    hub.begin({"a": 0, "b": 0})
    await hub.publish([change(1), change(2), change(1, "CONTAINER_2", shard="b"), change(3, "PALLET_1")])

    subscription = await hub.follow(CONTAINERS, {"a": 1, "b": 0})
    await hub.publish([change(4)])

    assert await taken(subscription, 3) == [Place("a", 2), Place("b", 1), Place("a", 4)]
    assert asked == []
    assert subscription.places == {"a": 4, "b": 1}


async def test_shard_that_began_meanwhile_is_remembered_whole() -> None:
    hub = Hub(MODEL)
    hub.begin({"a": 0})
    await hub.publish([change(1)])
    places = hub.places
    hub.begin({"child": 0})
    await hub.publish([change(7, shard="child")])

    subscription = await hub.follow(CONTAINERS, places)

    assert await taken(subscription, 1) == [Place("child", 7)]


async def test_shard_that_is_done_with_is_in_no_place_any_more() -> None:
    asked: list[Places] = []
    hub = Hub(MODEL, replay=replaying([], asked))
    hub.begin({"a": 0})
    await hub.publish([change(1)])
    places = hub.places
    hub.begin({"child": 0})
    hub.end(["a"])
    await hub.publish([change(7, shard="child")])

    subscription = await hub.follow(CONTAINERS, places)
    await hub.publish([change(8, shard="child")])

    assert hub.places == {"child": 8}
    # Whether there was more in it, only the stream can say.
    assert await taken(subscription, 1) == [Place("child", 8)]
    assert asked == [{"a": 1}]


async def test_long_absence_is_read_from_the_stream_and_goes_on_live() -> None:
    asked: list[Places] = []
    past = [change(1), change(2, "PALLET_1"), change(3), change(4)]
    hub = Hub(MODEL, replay=replaying(past, asked))
    hub.begin({"a": 3})

    subscription = await hub.follow(CONTAINERS, {"a": 0})
    await hub.publish([change(4), change(5)])

    assert await taken(subscription, 4) == [Place("a", 1), Place("a", 3), Place("a", 4), Place("a", 5)]
    assert asked == [{"a": 0}]
    assert await rest(subscription) == []


async def test_places_go_forward_over_changes_that_concern_nobody() -> None:
    hub = Hub(MODEL, replay=replaying([change(1), change(2, "PALLET_1"), change(3)], []))
    subscription = await hub.follow(CONTAINERS, {})

    await taken(subscription, 2)

    assert subscription.places == {"a": 3}


async def test_place_that_nobody_holds_is_lost() -> None:
    hub = Hub(MODEL)
    await hub.publish([change(5)])

    with pytest.raises(PlaceLost, match="subscribe without `after`"):
        await hub.follow(CONTAINERS, {"a": 3})


@pytest.mark.parametrize(
    ("places", "found"),
    [
        pytest.param({"a": 2}, [3, 4], id="remembered"),
        pytest.param({"a": 4}, [], id="nothing-new"),
        pytest.param({"a": 1}, None, id="forgotten"),
        pytest.param({}, None, id="from-the-beginning"),
        pytest.param({"a": 3, "b": 1}, None, id="a-shard-that-is-not-known"),
    ],
)
def test_recent_changes_tell_whether_they_are_all(places: Places, found: Sequence[int] | None) -> None:
    recent = Recent(most=2)
    recent.begin("a", 0)
    for number in range(1, 5):
        recent.keep(change(number))

    behind = recent.behind(places)

    assert (behind if behind is None else [one.place.sequence for one in behind]) == found


def test_recent_changes_are_forgotten_when_they_are_old() -> None:
    recent = Recent(secs=-1.0)

    recent.keep(change(1))

    assert recent.behind({"a": 0}) is None
    assert recent.behind({"a": 1}) == []


@pytest.mark.parametrize(
    ("places", "is_known"),
    [({"a": -1000}, True), ({"a": -2000}, True), ({"a": -900}, False), ({"a": 0}, False), ({}, False)],
)
def test_second_is_a_place_too(places: Places, is_known: bool) -> None:
    recent = Recent()
    recent.begin("a", -1000)
    recent.keep(change(7))

    assert (recent.behind(places) is not None) is is_known


# --- cursors ------------------------------------------------------------------------------------------------------

SUBSCRIPTION = Issuer("name")


@pytest.mark.parametrize("places", [{}, {"a": 0}, {"b": 10**24, "a": -1763000000}])
def test_places_read_back(places: Places) -> None:
    assert read_places(write_places(places, SUBSCRIPTION), SUBSCRIPTION) == places


def test_equal_places_are_equal_cursors() -> None:
    assert write_places({"a": 1, "b": 2}, SUBSCRIPTION) == write_places({"b": 2, "a": 1}, SUBSCRIPTION)


def test_cursor_of_another_subscription_is_refused() -> None:
    with pytest.raises(CursorError, match="belongs to another"):
        read_places(write_places({"a": 1}, Issuer("one")), Issuer("other"))


@pytest.mark.parametrize("damaged", ["", "x", "WzEs", write_places({"a": 1}, SUBSCRIPTION)[:-2], "AAAA"])
def test_damaged_cursor_is_refused(damaged: str) -> None:
    with pytest.raises(CursorError):
        read_places(damaged, SUBSCRIPTION)


def test_cursor_of_a_page_is_no_place() -> None:
    with pytest.raises(CursorError, match="not one of a subscription"):
        read_places(write_cursor(("PALLET_1",), SUBSCRIPTION), SUBSCRIPTION)
