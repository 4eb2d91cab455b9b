"""Random models whose index has a key of several attributes: every list is whole, in order, and made of its pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from graph.cursor import write_cursor
from graph.entity import Entity
from graph.filters import Every, Filter
from graph.keys import Path
from graph.loaders import Graph, Operation
from graph.model import Find, Model, Relationship
from graph.paging import PageArguments
from graph.reads import Asked, Connection, connection
from resolvers.filters import read_arguments, read_where
from resolvers.sdl import compile_model
from tests.memory import Memory
from tests.oracle import decides

# --- models -------------------------------------------------------------------------------------------------------

VALUES: Mapping[str, tuple[Any, ...]] = {
    "a": ("x", "xy", "y"),
    "b": ("x", "y"),
    "n": (-1, 2, 10),
    "m": (0, 7),
    "e": ("OFF", "ON", "ONE"),
    "d": ("2022-01-01", "2022-01-02", "2022-01-03"),
}
"""What each field may be: few values, so that many items share them."""

TYPES = {"a": "String", "b": "String", "n": "Int", "m": "BigInt", "e": "Mode", "d": "Date"}


@dataclass(frozen=True)
class Design:
    """An index: for each attribute of its key the field that fills it, and whether a template does.

    `shards` stand beside the partition attributes, and `owner` says whether one of them is the reference.
    """

    partition: tuple[tuple[str, bool], ...]
    sort: tuple[tuple[str, bool], ...]
    shards: bool
    owner: bool

    @property
    def templates(self) -> tuple[dict[str, str], dict[str, str]]:
        """Give the template of every attribute of the partition key and of the sort key."""
        partition = {_attribute(name, is_made): _template(name, is_made) for name, is_made in self.partition}
        partition |= {"owner": "{owner}"} if self.owner else {}
        partition |= {"shard": "{shard(2)}"} if self.shards else {}
        return partition, {_attribute(name, is_made): _template(name, is_made) for name, is_made in self.sort}

    @property
    def sdl(self) -> str:
        """Write the model."""
        partition, sort = self.templates
        indexed = f"partition: {_listed(partition.values())}" + (f", sort: {_listed(sort.values())}" if sort else "")
        bound = [name for name, _ in self.partition] + (["owner"] if self.owner else [])
        arguments = " ".join(f"{name}: [{TYPES.get(name, 'ID')}!]!" for name in bound)
        many = " ".join(f"{name}: [{TYPES[name]}!]" for name, _ in self.sort)
        fields = "  ".join(f"{name}: {type_}" for name, type_ in TYPES.items())
        return f"""extend schema
          @table(name: "things", partitionKey: "PK")
          @index(name: "index", partitionKey: {_listed(partition)}, sortKey: {_listed(sort) if sort else "null"})
        enum Mode {{ OFF ON ONE }}
        type Owner @node(partition: "OWNER#{{number}}") {{
          number: ID!  {"things: [Thing!]! @relationship" if self.owner else ""}
        }}
        type Thing @node(partition: "THING#{{number}}") @indexed(by: "index", {indexed}) {{
          number: ID! @attribute(name: "no")  owner: Owner  {fields}  note: Int
        }}
        type Query {{ things{f"({arguments} {many})" if bound or many else ""}: [Thing!]! @find }}"""


def _attribute(name: str, is_made: bool) -> str:
    return f"of_{name}" if is_made else name


def _template(name: str, is_made: bool) -> str:
    return f"F-{{{name}}}" if is_made else f"{{{name}}}"


def _listed(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


@st.composite
def designs(draw: st.DrawFn) -> Design:
    """Draw an index of up to four partition and up to four sort attributes, of any fields in any order."""
    names = draw(st.permutations([*VALUES]))
    shards, owner = draw(st.booleans()), draw(st.booleans())
    size = draw(st.integers(0 if shards or owner else 1, 4 - shards - owner))
    made = st.booleans()
    partition = tuple((name, draw(made)) for name in names[:size])
    return Design(
        partition, tuple((name, draw(made)) for name in names[size:][: draw(st.integers(0, 4))]), shards, owner
    )


@cache
def compiled(design: Design) -> Model:
    return compile_model(design.sdl)


# --- items --------------------------------------------------------------------------------------------------------

Values = Mapping[str, Any]
OWNERS = ("1", "2")


def items(seed: int, count: int) -> list[Values]:
    """Make items by chance; of some fields one in eight has no value."""
    chance = Random(seed)
    fields = {**VALUES, "owner": OWNERS, "note": (0, 1, 2)}
    return [
        {
            name: None if name in "bm" and chance.randrange(8) == 0 else chance.choice(known)
            for name, known in fields.items()
        }
        for _ in range(count)
    ]


def wire(design: Design, number: int, one: Values) -> dict[str, Any]:
    """Write an item with what its fields make of the index's key."""
    item: dict[str, Any] = {"PK": {"S": f"THING#{number}"}, "owner": {"S": f"OWNER#{one['owner']}"}}
    for name in (*VALUES, "note"):
        if one[name] is not None:
            item[name] = {"N": str(one[name])} if isinstance(one[name], int) else {"S": one[name]}
    for name, is_made in (*design.partition, *design.sort):
        if is_made and one[name] is not None:
            item[f"of_{name}"] = {"S": f"F-{one[name]}"}
    return item | ({"shard": {"S": str(number % 2)}} if design.shards else {})


# --- what a list is -----------------------------------------------------------------------------------------------


Chosen = Mapping[str, Sequence[Any]]
"""The values asked for, by field."""

Ranged = Mapping[str, Mapping[str, Any]]
"""What else a `where` asks, by field and operator."""


@dataclass(frozen=True)
class Listed:
    """A list to be read: the items that it must hold, by what they are ordered, and how it is asked for."""

    pattern: Relationship | Find
    parent: Entity | None
    where: Filter
    numbers: dict[int, tuple[Any, ...]]


def listed(design: Design, things: Sequence[Values], chosen: Chosen, ranged: Ranged) -> Listed:
    """Say in plain Python which items a filter finds in the index, and by what they are ordered."""
    model = compiled(design)
    where = read_where(model, "Thing", ranged)
    if design.owner and len(chosen["owner"]) == 1:
        # The relationship of one owner: all else is bound by the filter.
        pattern: Relationship | Find = model.relationships["Owner", "things"]
        parent = Entity(model, model.items["Owner"], named={("number",): chosen["owner"][0]})
        content = {name: {"in": list(known)} for name, known in chosen.items() if name != "owner"}
        where = Every((where, read_where(model, "Thing", content)))
    else:
        pattern, parent = model.finds["things"], None
        where = Every((where, read_arguments(pattern.arguments, {name: list(known) for name, known in chosen.items()})))
    numbers = {
        number: order_key(design, chosen, ranged, one)
        for number, one in enumerate(things)
        if all(one[name] is not None for name, _ in (*design.partition, *design.sort))
        and all(one[name] in known for name, known in chosen.items())
        and decides(read_where(model, "Thing", ranged), partial(value_at, one))
    }
    return Listed(pattern, parent, where, numbers)


def value_at(one: Values, path: Path) -> Any:
    """Give an item's value for a filter."""
    return one[path[0]]


def order_key(design: Design, chosen: Chosen, ranged: Ranged, one: Values) -> tuple[Any, ...]:
    """Give what an item is ordered by: the sort attributes behind those that several ranges are read for."""
    names, begin = [name for name, _ in design.sort], 0
    for place, name in enumerate(names):
        known = chosen.get(name) or (VALUES["e"] if name == "e" and leads(names[place + 1 :], chosen, ranged) else ())
        if not known:
            break
        if len(known) > 1 and place + 1 < len(names):
            begin = place + 1
    # A number in a template with more than itself is text.
    return tuple(str(one[name]) if is_made else one[name] for name, is_made in design.sort[begin:])


def leads(names: list[str], chosen: Chosen, ranged: Ranged) -> bool:
    """Say whether the next field is bound, or is the enum and one behind it is."""
    if not names:
        return False
    return names[0] in {*chosen, *ranged} or (names[0] == "e" and leads(names[1:], chosen, ranged))


# --- reading it ---------------------------------------------------------------------------------------------------


async def page(operation: Operation, one: Listed, *, descending: bool, **arguments: Any) -> Connection:
    """Read a page."""
    return await connection(
        operation, one.pattern, one.parent, PageArguments(**arguments), Asked(one.where, descending)
    )


def shown(found: Connection) -> list[tuple[int, str]]:
    """Give the numbers of the items on a page, with their cursors."""
    return [(int(edge.item.at(("number",))), write_cursor(edge.position, edge.connection)) for edge in found.edges]


async def walked(read: Callable[..., Any], size: int, *, backward: bool) -> list[tuple[int, str]]:
    """Walk a list page by page, from either end."""
    edges: list[tuple[int, str]] = []
    cursor: str | None = None
    while True:
        found = await (read(last=size, before=cursor) if backward else read(first=size, after=cursor))
        edges = [*shown(found), *edges] if backward else [*edges, *shown(found)]
        assert found.page is not None
        more = found.page.has_previous if backward else found.page.has_next
        if not more:
            return edges
        cursor = found.cursor(found.page.start if backward else found.page.end)


@given(st.data())
@settings(max_examples=300, deadline=None)
async def test_every_list_by_an_index_of_several_attributes_is_whole_in_order_and_made_of_its_pages(
    data: st.DataObject,
) -> None:
    design = data.draw(designs())
    things = items(data.draw(st.integers(0, 999)), data.draw(st.sampled_from([80, 20, 3, 0])))
    model = compiled(design)
    memory = Memory(model, data.draw(st.sampled_from([10**6, 3, 1])))
    memory.put([wire(design, number, one) for number, one in enumerate(things)])
    chosen = data.draw(choices(design))
    one = listed(design, things, chosen, data.draw(ranges(chosen)))
    descending = data.draw(st.booleans())
    operation = Graph(model, memory).operation()

    async def read(**arguments: Any) -> Connection:
        return await page(operation, one, descending=descending, **arguments)

    whole = await walked(read, 1000, backward=False)
    numbers = [number for number, _ in whole]
    assert sorted(numbers) == sorted(one.numbers)
    keys = [one.numbers[number] for number in numbers]
    assert keys == sorted(keys, reverse=descending)
    size = data.draw(st.integers(1, 5))
    assert await walked(read, size, backward=False) == whole
    assert await walked(read, size, backward=True) == whole
    if whole:
        after, before = sorted(data.draw(st.tuples(*[st.integers(0, len(whole) - 1)] * 2)))
        assert (
            shown(await read(first=size, after=whole[after][1], before=whole[before][1]))
            == (whole[after + 1 : before][:size])
        )
        between = whole[after + 1 : before]
        assert (
            shown(await read(last=size, after=whole[after][1], before=whole[before][1]))
            == (between[max(0, len(between) - size) :])
        )
    counted = await connection(
        operation, one.pattern, one.parent, PageArguments(), Asked(one.where, wants_page=False, wants_count=True)
    )
    assert counted.total_count == len(one.numbers)
    await operation.close()


@st.composite
def choices(draw: st.DrawFn, design: Design) -> dict[str, list[Any]]:
    """Draw what is asked for: values of all partition attributes, and of some of the sort attributes."""
    chosen = {name: draw(some(name)) for name, _ in design.partition}
    chosen |= {"owner": draw(some("owner"))} if design.owner else {}
    for name, _ in design.sort:
        if draw(st.booleans()):
            chosen[name] = draw(some(name))
    return chosen


def some(name: str) -> st.SearchStrategy[list[Any]]:
    """Draw one value of a field, or several."""
    return st.lists(st.sampled_from(VALUES.get(name, OWNERS)), min_size=1, max_size=3, unique=True)


def ranges(chosen: Chosen) -> st.SearchStrategy[Ranged]:
    """Draw ranges of the fields of which no values are asked for, and what no key can decide."""
    operators = {
        name: st.dictionaries(st.sampled_from(["ge", "gt", "le", "lt"]), st.sampled_from(known), min_size=1, max_size=2)
        for name, known in VALUES.items()
        if name not in chosen and name != "e"
    }
    note = st.fixed_dictionaries({"ne": st.integers(0, 2)})
    return st.fixed_dictionaries({}, optional={**operators, "note": note})
