"""Lists of items: what each kind of list asks of DynamoDB, and that nothing of it outlives its reader."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.cursor import Issuer, Position, write_cursor
from graph.errors import DeadlineExceeded
from graph.loaders import Graph, Limits
from graph.requests import BatchGetItem, Query, Request, Scan
from resolvers.operation import Request as OperationRequest
from resolvers.schema import Api
from resolvers.sdl import compile_model
from tests.clock import now, run
from tests.conftest import Served
from tests.fleet import DAYS, FLEET, Loading, World
from tests.memory import Memory

Wire = dict[str, Any]


@dataclass
class Asked:
    """A model served from memory, and what was asked of it since the last query began."""

    served: Served
    memory: Memory

    async def __call__(self, query: str, **variables: Any) -> Any:
        """Execute a query that must not fail and give its data."""
        self.memory.requests.clear()
        return await self.served.data(query, variables)

    async def error(self, query: str, **variables: Any) -> Any:
        """Execute a query that must fail and give its error's code."""
        self.memory.requests.clear()
        return (await self.served.error(query, variables))["extensions"]["code"]

    @property
    def requests(self) -> list[str]:
        """What was asked, one short line for each request."""
        return [shown(request) for request in self.memory.requests]


def shown(request: Request) -> str:
    """Write down what matters of a request."""
    match request:
        case Query():
            return f"Query {request.index or 'table'} {'COUNT' if request.count else request.limit}"
        case Scan():
            place = "on" if request.start else "from the start"
            return f"Scan {request.segment} {'COUNT' if request.count else place}"
        case BatchGetItem(_, keys):
            return f"BatchGetItem {len(keys)}"
    return request.operation


def serve(sdl: str, items: Iterable[Wire], *, limits: Limits | None = None, page_items: int = 10**6) -> Asked:
    """Serve a model from memory."""
    model = compile_model(sdl)
    memory = Memory(model, page_items)
    memory.put(items)
    graph = Graph(model, memory, limits)
    return Asked(Served(Api(graph), graph, next(iter(model.tables))), memory)


def laden(count: int, **ships: int) -> Asked:
    """Serve ship 1 with many crates, each heavier than the one before, and more ships of the same fleet."""
    loadings = [
        Loading(ship, f"{number:04}", DAYS[number // 3 % 3], "X", "DOCKED", number)
        for ship, crates in {"1": count, **{name.removeprefix("s"): more for name, more in ships.items()}}.items()
        for number in range(crates)
    ]
    world = World(frozenset(["1", *(name.removeprefix("s") for name in ships)]), frozenset(loadings))
    return serve(FLEET, world.wires())


# --- a range ------------------------------------------------------------------------------------------------------

CRATES = "query ($where: LoadingWhere) { ship(number: 1) { crates(first: 10, where: $where) { nodes { number } } } }"
COUNTED = "query ($where: LoadingWhere) { ship(number: 1) { crates(where: $where) { totalCount } } }"


async def test_a_page_is_one_query_for_one_item_more_than_it_holds() -> None:
    asked = laden(100)

    await asked(CRATES)

    assert asked.requests == ["Query table 11"]


@pytest.mark.parametrize(
    "where",
    [
        pytest.param({"day": {"gt": DAYS[0]}}, id="exactly"),
        pytest.param({"crate": {"number": {"lt": "0050"}}}, id="with-an-open-end"),
        pytest.param({"day": {"in": [DAYS[0]]}}, id="one-value"),
    ],
)
async def test_what_the_key_decides_costs_no_more_than_an_unfiltered_page(where: Mapping[str, Any]) -> None:
    asked = laden(100)

    await asked(CRATES, where=where)

    assert asked.requests in (["Query table 11"], ["Query by-day 11"])


async def test_a_filtered_page_reads_twice_as_much_each_time_until_it_is_full() -> None:
    asked = laden(2000)

    await asked(CRATES, where={"weight": {"ge": 1800}})

    assert asked.requests == [f"Query table {limit}" for limit in (100, 200, 400, 800, 1000)]


async def test_a_filter_on_the_node_loads_the_nodes_of_each_step_together() -> None:
    asked = laden(150)

    await asked(CRATES, where={"crate": {"load": {"exists": True}}})

    assert asked.requests == ["Query table 100", "BatchGetItem 100", "Query table 200", "BatchGetItem 50"]


@pytest.mark.parametrize(
    "where",
    [
        pytest.param({"day": {"gt": DAYS[1], "lt": DAYS[1]}}, id="of-a-key"),
        pytest.param({"and": [{"weight": {"eq": 1}}, {"weight": {"eq": 2}}]}, id="of-an-attribute"),
        pytest.param({"crate": {"number": {"eq": ""}}}, id="that-no-key-can-hold"),
        pytest.param({"ship": {"number": {"eq": "2"}}}, id="with-where-the-list-begins"),
    ],
)
async def test_a_contradiction_costs_nothing(where: Mapping[str, Any]) -> None:
    asked = laden(10)

    data = await asked(CRATES, where=where)

    assert (data["ship"]["crates"]["nodes"], asked.requests) == ([], [])


async def test_a_count_is_one_count() -> None:
    asked = laden(100)

    data = await asked(COUNTED, where={"weight": {"ge": 10}})

    assert (data["ship"]["crates"]["totalCount"], asked.requests) == (90, ["Query table COUNT"])


async def test_a_count_that_only_reading_decides_reads_all_at_once_within_the_budget() -> None:
    asked = laden(100)

    data = await asked(COUNTED, where={"crate": {"number": {"contains": "9"}}})

    assert (data["ship"]["crates"]["totalCount"], asked.requests) == (19, ["Query table 5001"])


# --- whole keys ---------------------------------------------------------------------------------------------------


async def test_whole_keys_are_one_batch_in_the_order_of_the_list() -> None:
    asked = laden(10)

    data = await asked(CRATES, where={"crate": {"number": {"in": ["0007", "none", "0002", "0005"]}}})

    assert [node["number"] for node in data["ship"]["crates"]["nodes"]] == ["0002", "0005", "0007"]
    assert asked.requests == ["BatchGetItem 4"]


async def test_whole_keys_of_many_lists_share_a_batch() -> None:
    asked = laden(10, s2=10, s3=10)

    await asked(
        """{ fleet(number: 1) { ships { nodes { crates(where: { crate: { number: { eq: "0003" } } }) {
        edges { weight } } } } } }"""
    )

    assert asked.requests == ["Query table 51", "BatchGetItem 3"]


STAFF = """
extend schema @table(name: "staff", partitionKey: "PK", sortKey: "SK")
type Team @node(key: "TEAM#{name}", virtual: true) { name: ID!  members: [Person!]! @relationship }
type Person @node(partition: "PERSON#{number}", sort: "NAME#{name}", ref: "PERSON#{number}") {
  number: ID!  name: String!  contract: Contract @relationship
}
type Membership @edge(partition: "{team}", sort: "{member}") { team: Team!  member: Person! }
type Contract @node(partition: "{person.partition}", sort: "#CONTRACT") { person: Person!  pay: Int }
"""


def staff(count: int) -> list[Wire]:
    """Make people with contracts, all of one team."""
    items: list[Wire] = []
    for number in range(count):
        person = {"S": f"PERSON#{number:03}"}
        items += [
            {"PK": person, "SK": {"S": f"NAME#{number}"}},
            {"PK": person, "SK": {"S": "#CONTRACT"}, "pay": {"N": str(number)}},
            {"PK": {"S": "TEAM#a"}, "SK": person},
        ]
    return items


async def test_children_of_a_literal_sort_key_are_one_batch_for_all_parents() -> None:
    asked = serve(STAFF, staff(50))

    data = await asked('{ team(name: "a") { members(first: 50) { nodes { contract { pay } } } } }')

    assert [node["contract"]["pay"] for node in data["team"]["members"]["nodes"]] == list(range(50))
    assert asked.requests == ["Query table 51", "BatchGetItem 50"]


async def test_a_node_named_by_part_of_its_key_is_searched_for_by_one_query() -> None:
    asked = serve(STAFF, staff(3))

    data = await asked('{ team(name: "a") { members { nodes { name } } } }')

    assert [node["name"] for node in data["team"]["members"]["nodes"]] == ["0", "1", "2"]
    assert asked.requests == ["Query table 51"] + ["Query table 100"] * 3


async def test_a_search_ends_at_the_read_budget() -> None:
    children = [{"PK": {"S": "PERSON#1"}, "SK": {"S": f"#{number:03}"}} for number in range(300)]
    asked = serve(STAFF, children, limits=Limits(read_budget=50))

    assert (await asked("{ person(number: 1) { name } }")) == {"person": None}
    assert asked.requests == ["Query table 50"]


# --- a merge ------------------------------------------------------------------------------------------------------

DOCKED = """query ($first: Int, $after: String, $where: LoadingWhere) {
    byState(state: DOCKED, first: $first, after: $after, where: $where) {
    edges { cursor node { ship { number } crate { number } } } pageInfo { hasNextPage endCursor } } }"""


async def test_a_merge_reads_a_share_of_each_range_side_by_side() -> None:
    asked = laden(90)

    await asked(DOCKED, first=29)

    assert asked.requests == ["Query by-shard 20"] * 3


async def test_a_merge_reads_on_only_where_a_range_holds_more_of_what_comes_next() -> None:
    crates = [Loading("1", number, DAYS[0], "X", "DOCKED", None) for number in map(str, range(3, 40, 3))]
    others = [Loading("1", number, DAYS[2], "X", "DOCKED", None) for number in ("1", "2", "4", "5")]
    asked = serve(FLEET, World(frozenset(), frozenset([*crates, *others])).wires())
    shards = [loading.wire()["shard"]["S"] for loading in crates]

    data = await asked(DOCKED, first=12)

    assert len(data["byState"]["edges"]) == 12
    assert len(asked.requests) == 3 + (max(map(shards.count, "012")) > 10)


async def test_a_merge_under_a_filter_keeps_to_the_read_budget_and_goes_on() -> None:
    limits = Limits(read_budget=60)
    asked = laden(600)
    asked.served.graph.limits = limits
    where, cursor, met, pages = {"weight": {"eq": 599}}, None, [], 0

    while True:
        page = (await asked(DOCKED, first=5, after=cursor, where=where))["byState"]
        evaluated = sum(request.limit or 0 for request in asked.memory.requests if isinstance(request, Query))
        assert evaluated <= 3 * limits.read_budget
        met += page["edges"]
        pages += 1
        if not page["pageInfo"]["hasNextPage"]:
            break
        cursor = page["pageInfo"]["endCursor"]
        assert cursor is not None

    assert [edge["node"]["crate"]["number"] for edge in met] == ["0599"]
    assert 600 / (3 * limits.read_budget) <= pages <= 3 * 600 / limits.read_budget


@dataclass
class Slow:
    """A store that takes a second for every request, and refuses what comes too late."""

    memory: Memory

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        await asyncio.sleep(1)
        if meter.deadline is not None and now() > meter.deadline:
            raise DeadlineExceeded("too late")
        return await self.memory.send(request, meter, parse)


def test_a_page_under_a_filter_ends_part_filled_when_time_runs_out() -> None:
    asked = laden(600)
    asked.memory.page_items = 10
    where = {"weight": {"eq": 599}}

    async def walk() -> tuple[list[Any], int]:
        api = Api(Graph(asked.served.graph.model, Slow(asked.memory)), timeout_secs=10)
        met: list[Any] = []
        cursor, pages = None, 0
        while True:
            body = (await api.execute(OperationRequest(DOCKED, {"first": 5, "after": cursor, "where": where}))).body
            page = body["data"]["byState"]
            met += page["edges"]
            pages += 1
            if not page["pageInfo"]["hasNextPage"]:
                return met, pages
            cursor = page["pageInfo"]["endCursor"]

    met, pages = run(walk())

    assert [edge["node"]["crate"]["number"] for edge in met] == ["0599"]
    assert pages > 1


# --- a path -------------------------------------------------------------------------------------------------------

BOXES = """query ($first: Int, $after: String) { fleet(number: 1) { crates(first: $first, after: $after) {
    edges { cursor } nodes { number } pageInfo { endCursor hasNextPage } } } }"""


async def test_a_path_begins_as_many_inner_lists_as_the_page_needs() -> None:
    asked = laden(15, s2=15, s3=15, s4=15)

    await asked(BOXES, first=10)
    assert asked.requests == ["Query table 11", "Query table 11"]

    await asked(BOXES, first=40)
    assert asked.requests == ["Query table 41"] + ["Query table 41"] * 2 + ["Query table 41"]


async def test_a_path_goes_on_by_the_outer_item_under_its_cursor() -> None:
    asked = laden(15, s2=15, s3=15)
    cursor = (await asked(BOXES, first=10))["fleet"]["crates"]["pageInfo"]["endCursor"]

    data = await asked(BOXES, first=10, after=cursor)

    assert [node["number"] for node in data["fleet"]["crates"]["nodes"]] == [
        *(f"{number:04}" for number in range(10, 15)),
        *(f"{number:04}" for number in range(5)),
    ]
    assert asked.requests == ["Query table 11"] * 3


async def test_a_path_over_empty_lists_begins_twice_as_many_each_time() -> None:
    asked = laden(0, **{f"s{number:02}": 0 for number in range(50)}, s99=1)

    data = await asked(BOXES, first=10)

    assert len(data["fleet"]["crates"]["nodes"]) == 1
    # 52 outer items in pages of 11 and more, and a Query for each inner list; never more than 16 side by side.
    assert sum(request == "Query table 11" for request in asked.requests) == 1 + 52


async def test_an_outer_item_that_is_gone_takes_its_inner_list_with_it() -> None:
    asked = laden(15, s2=2)
    cursor = (await asked(BOXES, first=10))["fleet"]["crates"]["pageInfo"]["endCursor"]
    asked.memory.delete({"PK": {"S": "FLEET#1"}, "SK": {"S": "SHIP#1"}})

    data = await asked(BOXES, first=10, after=cursor)

    assert [node["number"] for node in data["fleet"]["crates"]["nodes"]] == ["0000", "0001"]


REGIONS = """
extend schema
  @table(name: "regions", partitionKey: "PK", sortKey: "SK")
  @index(name: "by-area", partitionKey: "area", sortKey: "SK")
type Country @node(key: "COUNTRY#{code}", virtual: true) {
  code: ID!  cities: [City!]! @relationship  houses: [House!]! @relationship(path: "cities.houses")
}
type City @node(key: "CITY#{name}") { name: ID!  area: String!  houses: [House!]! @relationship }
type Seat @edge(partition: "{country}", sort: "{city}") { country: Country!  city: City! }
type House @node(partition: "HOUSE#{number}", sort: "HOUSE")
  @indexed(by: "by-area", partition: "{city.area}#{city.name}") { number: ID!  city: City! }
"""


async def test_a_path_loads_the_nodes_between_where_their_names_do_not_lead_on() -> None:
    items: list[Wire] = []
    for number in range(3):
        key = {"S": f"CITY#{number}"}
        items += [
            {"PK": {"S": "COUNTRY#x"}, "SK": key},
            {"PK": key, "SK": key, "area": {"S": f"area {number}"}},
            {
                "PK": {"S": f"HOUSE#{number}"},
                "SK": {"S": "HOUSE"},
                "area": {"S": f"area {number}#{number}"},
                "city": key,
            },
        ]
    asked = serve(REGIONS, items)

    data = await asked('{ country(code: "x") { houses(first: 100) { nodes { number } } } }')

    assert [node["number"] for node in data["country"]["houses"]["nodes"]] == ["0", "1", "2"]
    assert asked.requests == ["Query table 101", "BatchGetItem 3"] + ["Query by-area 101"] * 3


# --- a scan -------------------------------------------------------------------------------------------------------


async def test_a_scan_reads_one_page_and_the_next_segments_ahead_when_that_does_not_fill_it() -> None:
    asked = laden(10, **{f"s{number}": 10 for number in range(2, 20)})

    await asked("{ all(first: 5) { nodes { crate { number } } } }")
    assert asked.requests == ["Scan 0 from the start"]

    await asked("{ all(first: 1000) { nodes { crate { number } } } }")
    assert asked.requests == ["Scan 0 from the start"] + [f"Scan {segment} from the start" for segment in (1, 2, 3)]


async def test_a_scan_counts_every_segment_side_by_side() -> None:
    asked = laden(100)

    data = await asked("{ all { totalCount } }")

    assert data["all"]["totalCount"] == 100
    assert asked.requests == [f"Scan {segment} COUNT" for segment in range(4)]


# --- lists among other items --------------------------------------------------------------------------------------

USERS = """
extend schema
  @table(name: "users", partitionKey: "PK", sortKey: "SK")
  @index(name: "turned", partitionKey: "SK", sortKey: "PK")
type User @node(key: "{name}") {
  name: ID!
  following: [User!]! @relationship(through: "Follow", from: "follower")
  followers: [User!]! @relationship(through: "Follow", from: "followed")
}
type Follow @edge(partition: "{follower}", sort: "{followed}") { follower: User!  followed: User! }
"""


@pytest.mark.parametrize("field", ["following", "followers"])
@pytest.mark.parametrize("me", ["a", "m", "z"])
async def test_a_nodes_own_item_is_neither_listed_nor_counted_among_its_edges(field: str, me: str) -> None:
    others = [name for name in "amz" if name != me]
    pairs = [(me, other) if field == "following" else (other, me) for other in others]
    asked = serve(USERS, [{"PK": {"S": one}, "SK": {"S": two}} for one, two in [(me, me), *pairs]])

    page = await asked(
        f'{{ user(name: "{me}") {{ {field}(first: 2) {{ nodes {{ name }} pageInfo {{ hasNextPage }} }} }} }}'
    )
    assert page["user"][field] == {"nodes": [{"name": other} for other in others], "pageInfo": {"hasNextPage": False}}

    counted = await asked(f'{{ user(name: "{me}") {{ {field} {{ totalCount }} }} }}')
    assert counted["user"][field] == {"totalCount": 2}


TAGS = """
extend schema @table(name: "tagged", partitionKey: "PK", sortKey: "SK")
union Subject = Book | Song
type Book @node(key: "BOOK#{number}") { number: ID! }
type Song @node(key: "SONG#{number}") { number: ID! }
type Note @node(partition: "{tag}", sort: "NOTE#{number}") { tag: Tag!  number: ID! }
type Tag @node(key: "TAG#{name}", virtual: true) { name: ID!  subjects: [Subject!]! @relationship }
type Tagging @edge(partition: "{tag}", sort: "{subject}") { tag: Tag!  subject: Subject! }
"""


async def test_members_of_a_union_are_read_by_one_query_and_counted_without_what_lies_between() -> None:
    sorts = [f"{kind}#{number}" for kind in ("BOOK", "NOTE", "SONG") for number in range(3)]
    asked = serve(TAGS, [{"PK": {"S": "TAG#x"}, "SK": {"S": sort}} for sort in sorts])

    data = await asked('{ tag(name: "x") { subjects { nodes { __typename } pageInfo { hasNextPage } } } }')
    assert [node["__typename"] for node in data["tag"]["subjects"]["nodes"]] == ["Book"] * 3 + ["Song"] * 3
    assert asked.requests == ["Query table 51"]

    counted = await asked('{ tag(name: "x") { subjects { totalCount } } }')
    assert counted["tag"]["subjects"]["totalCount"] == 6
    assert asked.requests == ["Query table COUNT"] * 2


# --- what goes wrong ----------------------------------------------------------------------------------------------


async def all_done(before: set[asyncio.Task[Any]]) -> bool:
    """Say whether no task is left but those that were there before."""
    await asyncio.sleep(0)
    return asyncio.all_tasks() <= before


EVERYTHING = """{
    fleet(number: 1) { crates(first: 30, where: { crate: { load: { exists: false } } }) {
        totalCount nodes { load ships { nodes { number } } } } }
    byState(state: DOCKED, first: 30) { totalCount nodes { crate { load } } }
    all(first: 90) { nodes { crate { load } } } }"""


async def test_whatever_request_fails_the_answer_says_so_and_nothing_goes_on() -> None:
    asked = laden(15, s2=15, s3=15)
    await asked(EVERYTHING)
    count = len(asked.memory.requests)
    before = asyncio.all_tasks()

    for failing in range(count):
        asked.memory.failing = failing
        asked.memory.requests.clear()
        body = await asked.served(EVERYTHING)
        assert {error["extensions"]["code"] for error in body["errors"]} == {"STORE_UNAVAILABLE"}
        assert await all_done(before)


async def test_wherever_an_operation_is_cancelled_nothing_goes_on() -> None:
    asked = laden(15, s2=15, s3=15)
    before = asyncio.all_tasks()

    for turns in range(0, 60, 3):
        task = asyncio.ensure_future(asked.served(EVERYTHING))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await all_done(before)


FORGED: list[Any] = [
    pytest.param("ship(number: 1) { crates(after: $after) { nodes { number } } }", (), id="empty"),
    pytest.param("ship(number: 1) { crates(after: $after) { nodes { number } } }", ("CRATE#1", "x"), id="too-long"),
    pytest.param("ship(number: 1) { crates(after: $after) { nodes { number } } }", (1,), id="a-number-of-ours"),
    pytest.param("ship(number: 1) { crates(after: $after) { nodes { number } } }", ("PARCEL#1",), id="outside"),
    pytest.param("byState(state: DOCKED, after: $after) { nodes { day } }", (3, ("a", "b", "c")), id="no-such-range"),
    pytest.param(
        "byState(state: DOCKED, after: $after) { nodes { day } }", (-1, ("a", "b", "c")), id="before-all-ranges"
    ),
    pytest.param("byState(state: DOCKED, after: $after) { nodes { day } }", ("DOCKED-",), id="without-its-range"),
    pytest.param(
        "fleet(number: 1) { crates(after: $after) { nodes { number } } }", (("SHIP#1",), 2), id="no-such-mark"
    ),
    pytest.param("fleet(number: 1) { crates(after: $after) { nodes { number } } }", (("SHIP#1",), ("x",)), id="inner"),
    pytest.param("fleet(number: 1) { crates(after: $after) { nodes { number } } }", (("x",), 1), id="outer"),
    pytest.param("all(after: $after) { nodes { day } }", (4, ()), id="no-such-segment"),
    pytest.param("all(after: $after) { nodes { day } }", (0, ("SHIP#1",)), id="half-a-key"),
]


@pytest.mark.parametrize(("field", "position"), FORGED)
async def test_a_cursor_that_no_page_gave_is_refused(field: str, position: Position) -> None:
    asked = laden(3)
    plain = field.replace("after: $after", "").replace("(, ", "(").replace(", )", ")").replace("()", "")
    found = await asked(f"{{ {plain.replace('{ nodes', '{ edges { cursor } nodes')} }}")
    while "edges" not in found:
        (found,) = found.values()
    content = orjson.loads(base64.urlsafe_b64decode(found["edges"][0]["cursor"] + "=="))

    code = await asked.error(f"query ($after: String) {{ {field} }}", after=write_cursor(position, Issuer(content[1])))

    assert code == "BAD_CURSOR"
