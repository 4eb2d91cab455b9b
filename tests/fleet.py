"""A model with every kind of list, worlds to fill it, and what its lists hold said in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from hypothesis import strategies as st

from graph.filters import Filter
from graph.keys import Path
from resolvers.sdl import compile_model
from tests.conftest import Served
from tests.oracle import decides

FLEET = """
extend schema
  @table(name: "fleet", partitionKey: "PK", sortKey: "SK")
  @index(name: "turned", partitionKey: "SK", sortKey: "PK")
  @index(name: "by-day", partitionKey: "PK", sortKey: "day", local: true)
  @index(name: "by-port", partitionKey: "port", sortKey: "day")
  @index(name: "by-shard", partitionKey: "shard", sortKey: "data")
enum State { AFLOAT DOCKED SUNK }
input Days { from: Date  to: Date }
type Fleet @node(key: "FLEET#{number}", virtual: true) {
  number: ID!
  ships: [Ship!]! @relationship
  crates: [Crate!]! @relationship(path: "ships.crates")
  parcels: [Parcel!]! @relationship(path: "ships.crates.parcels")
}
type Ship @node(key: "SHIP#{number}", virtual: true) { number: ID!  crates: [Crate!]! @relationship }
type Crate @node(key: "CRATE#{number}") {
  number: ID!  load: Int  ships: [Ship!]! @relationship  parcels: [Parcel!]! @relationship
}
type Port @node(key: "PORT#{name}", virtual: true) {
  name: ID!
  crates: [Crate!]! @relationship
  parcels: [Parcel!]! @relationship(path: "crates.parcels")
}
type Parcel @node(key: "PARCEL#{number}", virtual: true) { number: ID! }
type Enrolment @edge(partition: "{fleet}", sort: "{ship}") { fleet: Fleet!  ship: Ship! }
type Loading @edge(partition: "{ship}", sort: "{crate}")
  @indexed(by: "by-shard", partition: "{shard(3)}", sort: "{state}-{day}") {
  ship: Ship!  crate: Crate!  day: Date!  port: Port!  state: State!  weight: Int
}
type Packing @edge(partition: "{crate}", sort: "{parcel}") { crate: Crate!  parcel: Parcel! }
type Query {
  byPort(port: [ID!]!): [Loading!]! @find
  byState(state: State, day: Days): [Loading!]! @find
  all: [Loading!]! @find(scan: true)
}
"""
MODEL = compile_model(FLEET)

Wire = dict[str, Any]


# --- what lies in the table ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Loading:
    """A crate on a ship."""

    ship: str
    crate: str
    day: str
    port: str
    state: str
    weight: int | None

    def wire(self) -> Wire:
        """Write the item."""
        texts = {
            "PK": f"SHIP#{self.ship}",
            "SK": f"CRATE#{self.crate}",
            "day": self.day,
            "port": f"PORT#{self.port}",
            "state": self.state,
            "shard": str(sum(map(ord, self.ship + self.crate)) % 3),
            "data": f"{self.state}-{self.day}",
        }
        wire: Wire = {name: {"S": text} for name, text in texts.items()}
        return wire if self.weight is None else wire | {"weight": {"N": str(self.weight)}}


@dataclass(frozen=True)
class World:
    """All that lies in the table: the ships of fleet 1, the crates on them, what they hold and weigh."""

    ships: frozenset[str] = frozenset()
    loadings: frozenset[Loading] = frozenset()
    loads: Mapping[str, int] = field(default_factory=dict)
    """The attribute of the crate itself."""
    parcels: Mapping[str, int] = field(default_factory=dict)
    """How many parcels a crate holds."""

    def wires(self) -> Iterator[Wire]:
        """Write every item."""
        for ship in sorted(self.ships):
            yield {"PK": {"S": "FLEET#1"}, "SK": {"S": f"SHIP#{ship}"}}
        for loading in sorted(self.loadings, key=lambda one: (one.ship, one.crate)):
            yield loading.wire()
        for crate in sorted({"1", *self.loads, *(loading.crate for loading in self.loadings)}):
            own: Wire = {"PK": {"S": f"CRATE#{crate}"}, "SK": {"S": f"CRATE#{crate}"}}
            yield own | {"load": {"N": str(self.loads[crate])}} if crate in self.loads else own
        for crate, count in self.parcels.items():
            for parcel in range(count):
                yield {"PK": {"S": f"CRATE#{crate}"}, "SK": {"S": f"PARCEL#{parcel}"}}


SHIPS = ("1", "11", "2", "a")
DAYS = ("2022-01-01", "2022-01-02", "2022-01-03")
PORTS = ("X", "Y")
STATES = ("AFLOAT", "DOCKED", "SUNK")
crates = st.integers(0, 60).map(str)


def loadings(ships: tuple[str, ...] = SHIPS) -> st.SearchStrategy[Loading]:
    """Draw a loading; many share a day, a port and a state."""
    weights = st.none() | st.integers(0, 5)
    choices = (st.sampled_from(each) for each in (DAYS, PORTS, STATES))
    return st.builds(Loading, st.sampled_from(ships), crates, *choices, weights)


def worlds(most: int = 60) -> st.SearchStrategy[World]:
    """Draw a world; a ship may be empty, and a crate may hold nothing."""
    return st.builds(
        World,
        st.frozensets(st.sampled_from(SHIPS)),
        st.lists(loadings(), max_size=most, unique_by=lambda one: (one.ship, one.crate)).map(frozenset),
        st.dictionaries(crates, st.integers(0, 5), max_size=40),
        st.dictionaries(crates, st.integers(0, 3), max_size=10),
    )


# --- its lists ----------------------------------------------------------------------------------------------------

Row = tuple[str, Any, Any]
"""What an edge shows, and by what the list may be sorted, whichever index the planner reads: both where two serve."""


@dataclass(frozen=True)
class Connection:
    """One list of the API: how it is asked for, and what it must hold."""

    name: str
    field: str
    """Its field, down from the root; `...` stands for the paging arguments."""
    node: str
    rows: Callable[[World, Filter], Iterator[Row]]
    goes_back: bool = True
    where: str = "LoadingWhere"

    @cached_property
    def query(self) -> str:
        """Write the query of a page."""
        names = {"first": "Int", "after": "String", "where": self.where}
        if self.goes_back:
            names |= {"last": "Int", "before": "String", "order": "SortOrder"}
        declared = " ".join(f"${name}: {type_}" for name, type_ in names.items())
        field = self.field.replace("...", " ".join(f"{name}: ${name}" for name in names))
        page = "pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
        return f"query ({declared}) {{ {field} {{ edges {{ cursor node {{ {self.node} }} }} {page} }}" + "}" * (
            1 + field.count("{") - field.count("}")
        )

    async def page(self, served: Served, **arguments: Any) -> Page:
        """Ask for a page."""
        found = await served.data(self.query, {name: value for name, value in arguments.items() if value is not None})
        while "edges" not in found:
            (found,) = found.values()
        info = found["pageInfo"]
        edges = tuple((edge["cursor"], _label(edge["node"])) for edge in found["edges"])
        return Page(edges, info["hasPreviousPage"], info["hasNextPage"], info["startCursor"], info["endCursor"])

    async def whole(self, served: Served, **arguments: Any) -> list[Edge]:
        """Read the whole list by pages that are as large as can be."""
        edges: list[Edge] = []
        page = await self.page(served, first=1000, **arguments)
        while page.has_next:
            edges += page.edges
            assert page.end is not None
            page = await self.page(served, first=1000, after=page.end, **arguments)
        return [*edges, *page.edges]


Edge = tuple[str, str]
"""An edge's cursor, and what it shows."""


@dataclass(frozen=True)
class Page:
    """A page as the API gives it."""

    edges: tuple[Edge, ...]
    has_previous: bool
    has_next: bool
    start: str | None
    end: str | None


def _label(node: Any) -> str:
    return f"{node['ship']['number']} {node['crate']['number']}" if "ship" in node else str(node["number"])


def is_in_order(shown: list[str], rows: list[Row], *, descending: bool) -> bool:
    """Say whether labels are those of the rows, in the order of their sort keys; ties may stand either way."""
    return any(_is_sorted(shown, rows, place, descending=descending) for place in (1, 2))


def _is_sorted(shown: list[str], rows: list[Row], place: int, *, descending: bool) -> bool:
    groups: dict[Any, list[str]] = {}
    for row in sorted(rows, key=lambda row: row[place], reverse=descending):
        groups.setdefault(row[place], []).append(row[0])
    begin = 0
    for group in groups.values():
        if sorted(shown[begin : begin + len(group)]) != sorted(group):
            return False
        begin += len(group)
    return begin == len(shown)


def _kept(world: World, where: Filter) -> Iterator[Loading]:
    for one in world.loadings:
        values: dict[Path, Any] = {
            ("ship", "number"): one.ship,
            ("crate", "number"): one.crate,
            ("crate", "load"): world.loads.get(one.crate),
            ("day",): one.day,
            ("port", "name"): one.port,
            ("state",): one.state,
            ("weight",): one.weight,
        }
        if decides(where, values.get):
            yield one


def _crates_of_ship(world: World, where: Filter) -> Iterator[Row]:
    return ((one.crate, one.crate, one.day) for one in _kept(world, where) if one.ship == "1")


def _ships_of_crate(world: World, where: Filter) -> Iterator[Row]:
    return ((one.ship, one.ship, one.ship) for one in _kept(world, where) if one.crate == "1")


def _crates_of_fleet(world: World, where: Filter) -> Iterator[Row]:
    for one in _kept(world, where):
        if one.ship in world.ships:
            yield one.crate, (one.ship, one.crate), (one.ship, one.day)


def _parcels_of_fleet(world: World, _: Filter) -> Iterator[Row]:
    for one in world.loadings:
        for parcel in range(world.parcels.get(one.crate, 0) if one.ship in world.ships else 0):
            yield str(parcel), (one.ship, one.crate, parcel), (one.ship, one.crate, parcel)


def _crates_of_port(world: World, where: Filter) -> Iterator[Row]:
    return ((one.crate, one.day, one.day) for one in _kept(world, where) if one.port == "X")


def _parcels_of_port(world: World, _: Filter) -> Iterator[Row]:
    for one in world.loadings:
        for parcel in range(world.parcels.get(one.crate, 0) if one.port == "X" else 0):
            yield str(parcel), one.day, one.day


def _in_ports(world: World, where: Filter) -> Iterator[Row]:
    return ((f"{one.ship} {one.crate}", one.day, one.day) for one in _kept(world, where))


def _docked(world: World, where: Filter) -> Iterator[Row]:
    return ((f"{one.ship} {one.crate}", one.day, one.day) for one in _kept(world, where) if one.state == "DOCKED")


def _since_the_second(world: World, where: Filter) -> Iterator[Row]:
    return ((f"{one.ship} {one.crate}", one.day, one.day) for one in _kept(world, where) if one.day >= DAYS[1])


def _all(world: World, where: Filter) -> Iterator[Row]:
    return ((f"{one.ship} {one.crate}", 0, 0) for one in _kept(world, where))


_BOTH = "ship { number } crate { number }"

CONNECTIONS = (
    Connection("range", 'ship(number: "1") { crates(...)', "number", _crates_of_ship),
    Connection("turned", 'crate(number: "1") { ships(...)', "number", _ships_of_crate),
    Connection("path", 'fleet(number: "1") { crates(...)', "number", _crates_of_fleet),
    Connection("long path", 'fleet(number: "1") { parcels(...)', "number", _parcels_of_fleet, where="PackingWhere"),
    Connection("ties", 'port(name: "X") { crates(...)', "number", _crates_of_port),
    Connection("path over ties", 'port(name: "X") { parcels(...)', "number", _parcels_of_port, where="PackingWhere"),
    Connection("ports", 'byPort(port: ["Y", "X"] ...)', _BOTH, _in_ports),
    Connection("state", "byState(state: DOCKED ...)", _BOTH, _docked),
    Connection("days", 'byState(day: { from: "2022-01-02" } ...)', _BOTH, _since_the_second),
    Connection("scan", "all(...)", _BOTH, _all, goes_back=False),
)


# --- filters on loadings ------------------------------------------------------------------------------------------


def wheres() -> st.SearchStrategy[dict[str, Any]]:
    """Draw filters that bind keys, that DynamoDB decides, that need the node, and what joins them."""
    number = st.fixed_dictionaries(
        {},
        optional={
            "eq": crates,
            "in": st.lists(crates, max_size=4),
            "beginsWith": st.sampled_from(["1", "2", ""]),
            "gt": crates,
            "lt": crates,
            "ne": crates,
        },
    )
    day = st.fixed_dictionaries(
        {}, optional={"ge": st.sampled_from(DAYS), "lt": st.sampled_from(DAYS), "in": st.lists(st.sampled_from(DAYS))}
    )
    amount = st.fixed_dictionaries(
        {}, optional={"ge": st.integers(0, 5), "ne": st.integers(0, 5), "exists": st.booleans()}
    )
    one = (
        st.fixed_dictionaries({"crate": st.fixed_dictionaries({"number": number})})
        | st.fixed_dictionaries({"day": day})
        | st.fixed_dictionaries({"weight": amount})
        | st.fixed_dictionaries({"crate": st.fixed_dictionaries({"load": amount})})
        | st.fixed_dictionaries({"state": st.fixed_dictionaries({"in": st.lists(st.sampled_from(STATES))})})
    )
    return st.recursive(
        one,
        lambda inner: (
            st.dictionaries(st.sampled_from(["and", "or"]), st.lists(inner, min_size=1, max_size=3), min_size=1)
            | st.fixed_dictionaries({"not": inner})
        ),
        max_leaves=4,
    )
