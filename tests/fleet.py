"""A model with every kind of list, worlds to fill it, and what its lists hold said in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from graph.client import BotoTransport
from graph.filters import Filter
from graph.keys import Path
from graph.loaders import Graph, Limits
from resolvers.filters import read_where
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.conftest import Served
from tests.memory import Memory
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
type Parcel @node(key: "PARCEL#{number}", virtual: true) { number: ID! }
type Enrolment @edge(partition: "{fleet}", sort: "{ship}") { fleet: Fleet!  ship: Ship! }
type Loading @edge(partition: "{ship}", sort: "{crate}")
  @indexed(by: "by-shard", partition: "{shard(3)}", sort: "{state}-{day}") {
  ship: Ship!  crate: Crate!  day: Date!  port: String!  state: State!  weight: Int
}
type Packing @edge(partition: "{crate}", sort: "{parcel}") { crate: Crate!  parcel: Parcel! }
type Query {
  byPort(port: [String!]!): [Loading!]! @find
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
            "port": self.port,
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
    """The attribute of the crate itself; a crate without one has no item."""
    parcels: Mapping[str, int] = field(default_factory=dict)
    """How many parcels a crate holds."""

    def wires(self) -> Iterator[Wire]:
        """Write every item."""
        for ship in sorted(self.ships):
            yield {"PK": {"S": "FLEET#1"}, "SK": {"S": f"SHIP#{ship}"}}
        for loading in sorted(self.loadings, key=lambda one: (one.ship, one.crate)):
            yield loading.wire()
        for crate, load in self.loads.items():
            yield {"PK": {"S": f"CRATE#{crate}"}, "SK": {"S": f"CRATE#{crate}"}, "load": {"N": str(load)}}
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
    """Draw a world; a ship may be empty, and a crate may hold nothing or have no item."""
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
    """Its field, with its place for arguments; `...` stands for the paging arguments."""
    node: str
    rows: Callable[[World, Filter], Iterator[Row]]
    goes_back: bool = True
    label: tuple[str, ...] = ("number",)

    def query(self) -> str:
        """Write the query of a page."""
        names = {"first": "Int", "after": "String", "where": "LoadingWhere"}
        if self.goes_back:
            names |= {"last": "Int", "before": "String", "order": "SortOrder"}
        declared = " ".join(f"${name}: {type_}" for name, type_ in names.items())
        given = " ".join(f"{name}: ${name}" for name in names)
        page = f"edges {{ cursor node {{ {self.node} }} }} pageInfo {{ {PAGE_INFO} }}"
        depth = self.field.count("{")
        return f"query ({declared}) {{ {self.field.replace('...', given)} {{ {page} }} {'}' * depth} }}"


PAGE_INFO = "hasNextPage hasPreviousPage startCursor endCursor"


def _kept(world: World, where: Filter) -> Iterator[Loading]:
    for one in world.loadings:
        values: dict[Path, Any] = {
            ("ship", "number"): one.ship,
            ("crate", "number"): one.crate,
            ("crate", "load"): world.loads.get(one.crate),
            ("day",): one.day,
            ("port",): one.port,
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
    Connection("range", '{ ship(number: "1") { crates(...)', "number", _crates_of_ship),
    Connection("turned", '{ crate(number: "1") { ships(...)', "number", _ships_of_crate),
    Connection("path", '{ fleet(number: "1") { crates(...)', "number", _crates_of_fleet),
    Connection("ports", 'byPort(port: ["Y", "X"] ...)', _BOTH, _in_ports),
    Connection("state", "byState(state: DOCKED ...)", _BOTH, _docked),
    Connection("days", 'byState(day: { from: "2022-01-02" } ...)', _BOTH, _since_the_second),
    Connection("scan", "all(...)", _BOTH, _all, goes_back=False),
)
