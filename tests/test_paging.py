"""Paging: whatever is asked for in whatever steps, it is a piece of one and the same list."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.filters import NO_FILTER
from graph.loaders import Graph, Limits
from resolvers.filters import read_where
from resolvers.schema import Api
from tests.conftest import Serve, Served
from tests.fleet import (
    CONNECTIONS,
    DAYS,
    FLEET,
    MODEL,
    Connection,
    Edge,
    Loading,
    Page,
    World,
    is_in_order,
    loadings,
    wheres,
    worlds,
)
from tests.memory import Memory

EVERY = 10**6
Step = Callable[..., Awaitable[Page]]


MEMORY = Memory(MODEL)
GRAPH = Graph(MODEL, MEMORY)
SERVED = Served(Api(GRAPH), GRAPH, "fleet")


def in_memory(world: World, *, page_items: int = EVERY, limits: Limits | None = None) -> Served:
    """Serve a world from memory, and nothing that was there before."""
    GRAPH.limits = limits or Limits()
    MEMORY.page_items = page_items
    MEMORY.items.clear()
    MEMORY.put(world.wires())
    return SERVED


@st.composite
def arguments(draw: st.DrawFn, connection: Connection) -> dict[str, Any]:
    """Draw what decides which list it is: a filter and an order."""
    drawn: dict[str, Any] = {}
    if connection.where == "LoadingWhere" and draw(st.booleans()):
        drawn["where"] = draw(wheres())
    if connection.goes_back and draw(st.booleans()):
        drawn["order"] = draw(st.sampled_from(["ASC", "DESC"]))
    return drawn


async def the_list(connection: Connection, served: Served, world: World, chosen: Mapping[str, Any]) -> list[Edge]:
    """Read the whole list and hold it against what plain Python says that it is."""
    edges = await connection.whole(served, **chosen)
    rows = list(connection.rows(world, read_where(MODEL, "Loading", chosen.get("where"))))

    assert is_in_order([label for _, label in edges], rows, descending=chosen.get("order") == "DESC")
    assert len({cursor for cursor, _ in edges}) == len(edges)
    return edges


# --- any page -----------------------------------------------------------------------------------------------------


async def any_page(data: st.DataObject, connection: Connection, served: Served, world: World) -> None:
    """Ask for pages between any two cursors, from either end, and hold them against slices of the list."""
    chosen = data.draw(arguments(connection))
    edges = await the_list(connection, served, world, chosen)
    places = st.none() | st.integers(0, len(edges) - 1) if edges else st.none()
    for _ in range(3):
        after, before = data.draw(places), data.draw(places) if connection.goes_back else None
        if after is not None and before is not None:
            after, before = sorted((after, before))
        size, backward = data.draw(st.integers(0, len(edges) + 1)), connection.goes_back and data.draw(st.booleans())
        cursors = {
            "after": None if after is None else edges[after][0],
            "before": None if before is None else edges[before][0],
        }

        page = await connection.page(served, **{"last" if backward else "first": size}, **cursors, **chosen)

        between = edges[0 if after is None else after + 1 : before]
        expected = between[max(0, len(between) - size) :] if backward else between[:size]
        assert list(page.edges) == expected
        assert page.has_next is (before is not None if backward else len(between) > size)
        assert page.has_previous is (len(between) > size if backward else after is not None)
        assert (page.start, page.end) == ((expected[0][0], expected[-1][0]) if expected else (None, None))


@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda connection: connection.name)
@given(data=st.data(), world=worlds(), page_items=st.integers(1, 5) | st.just(EVERY))
@settings(max_examples=60, deadline=None)
async def test_any_page_is_a_slice_of_the_list(
    connection: Connection, data: st.DataObject, world: World, page_items: int
) -> None:
    """Forward, backward or between two cursors; under any filter, in either order, however early DynamoDB cuts."""
    await any_page(data, connection, in_memory(world, page_items=page_items), world)


@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda connection: connection.name)
@given(data=st.data(), world=worlds())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_page_is_a_slice_of_the_list_on_the_engine(
    serve: Serve, connection: Connection, data: st.DataObject, world: World
) -> None:
    await any_page(data, connection, await serve(FLEET, world.wires()), world)


def laden(count: int) -> World:
    """Make a world whose ship 1 carries many crates, all with the same day, port and state."""
    crates = (Loading("1", f"{number:04}", DAYS[1], "X", "DOCKED", number) for number in range(count))
    return World(frozenset(["1"]), frozenset(crates))


LADEN = [one for one in CONNECTIONS if one.where == "LoadingWhere" and one.name != "turned"]


@pytest.mark.parametrize("count", [0, 1, 50, 51, 1000])
async def test_a_list_of_any_length_is_walked_by_pages_of_any_size(serve: Serve, count: int) -> None:
    """On the engine, with as many items that share a sort key."""
    served = await serve(FLEET, laden(count).wires())

    for connection in LADEN:
        whole = await connection.whole(served)
        rows = list(connection.rows(laden(count), NO_FILTER))
        assert is_in_order([label for _, label in whole], rows, descending=False), connection.name
        for size in (50, 333, 1000):
            pages = [page async for page in walk(Places(whole).forward, connection, served, size, {})]
            full, rest = divmod(count, size)
            assert [len(page.edges) for page in pages] == [size] * full + [rest] * (rest > 0 or count == 0)


# --- walks cut short by the read budget ---------------------------------------------------------------------------


class Places:
    """What is known of cursors: the gap of the list that each stands for, as `after` and as `before`."""

    def __init__(self, edges: list[Edge]) -> None:
        self.edges = edges
        self.gaps = {cursor: (number + 1, number) for number, (cursor, _) in enumerate(edges)}

    async def forward(
        self, connection: Connection, served: Served, size: int, after: str | None, **chosen: Any
    ) -> Page:
        """Read forward, and hold the page against the list from there."""
        page = await connection.page(served, first=size, after=after, **chosen)
        begin = 0 if after is None else self.gaps[after][0]
        end = begin + len(page.edges)
        self._check(page, size, begin, end, has_more=page.has_next, is_last=end == len(self.edges))
        assert page.has_previous is (after is not None)
        if page.has_next and size:
            assert page.end is not None
            self.gaps.setdefault(page.end, (end, end))
        return page

    async def backward(
        self, connection: Connection, served: Served, size: int, before: str | None, **chosen: Any
    ) -> Page:
        """Read backward, and hold the page against the list from there."""
        page = await connection.page(served, last=size, before=before, **chosen)
        end = len(self.edges) if before is None else self.gaps[before][1]
        begin = end - len(page.edges)
        self._check(page, size, begin, end, has_more=page.has_previous, is_last=begin == 0)
        assert page.has_next is (before is not None)
        if page.has_previous and size:
            assert page.start is not None
            self.gaps.setdefault(page.start, (begin, begin))
        return page

    def _check(self, page: Page, size: int, begin: int, end: int, *, has_more: bool, is_last: bool) -> None:
        assert list(page.edges) == self.edges[begin:end]
        assert len(page.edges) <= size
        assert has_more or is_last


def small_budgets() -> st.SearchStrategy[Limits]:
    """Draw limits that cut pages short under a filter."""
    budgets = st.integers(1, 20)
    return st.builds(lambda budget: Limits(read_budget=budget, scan_budget=budget), budgets)


@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda connection: connection.name)
@given(data=st.data(), world=worlds(), page_items=st.integers(1, 5) | st.just(EVERY), limits=small_budgets())
@settings(max_examples=60, deadline=None)
async def test_pages_cut_by_the_read_budget_go_on_to_the_whole_list(
    connection: Connection, data: st.DataObject, world: World, page_items: int, limits: Limits
) -> None:
    """A short page says that there is more and gives a cursor; all pages together are the list, from either end."""
    chosen = data.draw(arguments(connection))
    places = Places(await the_list(connection, in_memory(world), world, chosen))
    served = in_memory(world, page_items=page_items, limits=limits)
    size = data.draw(st.integers(1, 20))

    forward = [page async for page in walk(places.forward, connection, served, size, chosen)]
    backward = [page async for page in walk(places.backward, connection, served, size, chosen)]

    assert [edge for page in forward for edge in page.edges] == places.edges
    assert [edge for page in reversed(backward) for edge in page.edges] == (
        places.edges if connection.goes_back else []
    )


async def walk(
    step: Step, connection: Connection, served: Served, size: int, chosen: Mapping[str, Any]
) -> AsyncIterator[Page]:
    """Take steps in one direction until there is no more; each must get on."""
    is_forward = step.__name__ == "forward"
    if not is_forward and not connection.goes_back:
        return
    seen: set[str | None] = {None}
    cursor: str | None = None
    while True:
        page = await step(connection, served, size, cursor, **chosen)
        yield page
        if not (page.has_next if is_forward else page.has_previous):
            return
        cursor = page.end if is_forward else page.start
        assert cursor not in seen, "the walk stands still"
        seen.add(cursor)


@pytest.mark.parametrize(
    "connection", [one for one in CONNECTIONS if one.goes_back], ids=lambda connection: connection.name
)
@given(data=st.data(), world=worlds(), page_items=st.integers(1, 5) | st.just(EVERY), limits=small_budgets())
@settings(max_examples=60, deadline=None)
async def test_a_walk_may_turn_round_wherever_a_page_ended(
    connection: Connection, data: st.DataObject, world: World, page_items: int, limits: Limits
) -> None:
    """Also at a cursor that is no edge's, where the read budget cut a page."""
    chosen = data.draw(arguments(connection))
    places = Places(await the_list(connection, in_memory(world), world, chosen))
    served = in_memory(world, page_items=page_items, limits=limits)
    cursors: list[str | None] = [None]
    steps: list[Step] = [places.forward, places.backward]
    for _ in range(8):
        step = data.draw(st.sampled_from(steps))
        cursor = data.draw(st.sampled_from(cursors[-3:]))

        page = await step(connection, served, data.draw(st.integers(0, 10)), cursor, **chosen)

        cursors += [known for known in (page.start, page.end) if known in places.gaps]


# --- a list that changes meanwhile --------------------------------------------------------------------------------


@pytest.mark.parametrize("connection", CONNECTIONS, ids=lambda connection: connection.name)
@given(data=st.data(), world=worlds(), page_items=st.integers(1, 5) | st.just(EVERY))
@settings(max_examples=60, deadline=None)
async def test_what_is_there_all_the_time_is_met_once_whatever_comes_and_goes(
    connection: Connection, data: st.DataObject, world: World, page_items: int
) -> None:
    """Also where the item under the cursor, or the one that led to it, is deleted between two pages."""
    served = in_memory(world, page_items=page_items)
    chosen = data.draw(arguments(connection))
    size, backward = data.draw(st.integers(1, 5)), connection.goes_back and data.draw(st.booleans())
    lists = [await connection.whole(served, **chosen)]
    met: list[Edge] = []
    page = await connection.page(served, **{"last" if backward else "first": size}, **chosen)
    while True:
        met = [*page.edges, *met] if backward else [*met, *page.edges]
        if not (page.has_previous if backward else page.has_next):
            break
        if len(lists) < 10:
            change(data, [label for _, label in page.edges])
            lists.append(await connection.whole(served, **chosen))
        cursor = {"last": size, "before": page.start} if backward else {"first": size, "after": page.end}
        page = await connection.page(served, **cursor, **chosen)

    stayed = [edge for edge in lists[0] if all(edge in later for later in lists)]
    assert [edge for edge in met if edge in stayed] == stayed
    assert len(set(met)) == len(met)
    assert set(met) <= {edge for each in lists for edge in each}


def change(data: st.DataObject, shown: list[str]) -> None:
    """Delete and insert items, often those that a page has just shown."""
    links = [wire for wire in MEMORY.items.values() if wire["PK"] != wire["SK"]]
    near = [wire for wire in links if any(label.split()[-1] == wire["SK"]["S"].split("#")[1] for label in shown)]
    for wire in data.draw(st.lists(st.sampled_from(near or links), max_size=2, unique_by=id)) if links else ():
        MEMORY.delete(wire)
    for loading in data.draw(st.lists(loadings(), max_size=2)):
        MEMORY.put(World(frozenset([loading.ship]), frozenset([loading])).wires())
