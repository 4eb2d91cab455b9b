"""Filters: what each operator accepts, decided here or by DynamoDB alike."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.entity import Entity, read_entity
from graph.expressions import Placeholders, render
from graph.filters import EXPRESSION_BYTES, Every, Filter, Never, Some, Test, conjuncts, holds, push_down
from graph.keys import Path
from graph.model import Field, Projection
from graph.requests import PutItems
from graph.scalars import SCALARS, Scalar, number_text
from resolvers.filters import operators, read_where
from resolvers.sdl import compile_model
from tests.conftest import Serve, Served
from tests.oracle import decides
from tests.strategies import values

SHELVES = """
extend schema @table(name: "shelves", partitionKey: "PK", sortKey: "SK")
enum Colour { RED GREEN }
type Place { city: String since: DateTime }
type Maker @node(key: "MAKER#{number}") { number: ID! name: String country: Country }
type Country @node(key: "COUNTRY#{code}") { code: ID! name: String }
type Shelf @node(key: "SHELF#{number}", virtual: true) { number: ID! things: [Thing!]! @relationship }
type Thing @node(partition: "{shelf}", sort: "THING#{number}") {
  shelf: Shelf!  number: ID!
  anId: ID  aString: String  anInt: Int  aBigInt: BigInt  aFloat: Float  aDecimal: Decimal  aBoolean: Boolean
  aDate: Date  aDateTime: DateTime  aColour: Colour  aJSON: JSON  aBase64: Base64
  words: [String]  moments: [DateTime]  place: Place  maker: Maker
}
"""

MODEL = compile_model(SHELVES)
THING = MODEL.items["Thing"]
SCALAR_FIELDS = [field for field in THING.fields.values() if field.name.startswith("a")]

# Three values of each scalar in their order; the first of each begins the second where it is a text.
SAMPLES: Mapping[str, tuple[Any, ...]] = {
    "ID": ("a", "ab", "b"),
    "String": ("a", "ab", "é"),
    "Int": (-1, 0, 2),
    "BigInt": (-(10**30), 9, 10**30),
    "Float": (-0.5, 0.1, 12.5),
    "Decimal": (Decimal("-0.10"), Decimal(2), Decimal("10.25")),
    "Boolean": (False, True),
    "Date": ("2021-12-31", "2022-01-01", "2022-01-02"),
    "DateTime": ("2022-01-01T00:00:00Z", "2022-01-01T00:00:00.500000Z", "2022-01-01T00:00:01Z"),
    "Colour": ("GREEN", "RED"),
    "JSON": ({"a": 1}, [], "text"),
    "Base64": ("AA==", "AQ=="),
}

Values = dict[Path, Any]
Wire = dict[str, Any]


def item(number: str, values_: Values, shelf: str = "1") -> Wire:
    """Store the values of a thing; None is stored as NULL."""
    wire: Wire = {"PK": {"S": f"SHELF#{shelf}"}, "SK": {"S": f"THING#{number}"}}
    for (name,), value in values_.items():
        scalar = THING.fields[name].scalar
        assert scalar is not None
        wire[name] = {"NULL": True} if value is None else scalar.write(value)
    return wire


def as_json(filter_: Filter) -> dict[str, Any]:
    """Write a filter as a client gives it."""
    if isinstance(filter_, Test):
        return {filter_.path[0]: {filter_.operator: _plain(filter_.value)}}
    if isinstance(filter_, Never):
        return {"not": as_json(filter_.filter)}
    word = "and" if isinstance(filter_, Every) else "or"
    return {word: [as_json(part) for part in filter_.filters]}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    is_long = isinstance(value, Decimal) or (isinstance(value, int) and abs(value) >= 2**31)
    return number_text(value) if is_long else value


THINGS = (
    "query ($shelf: ID!, $where: ThingWhere) { shelf(number: $shelf) { things(where: $where) { nodes { number } } } }"
)


async def found(shelves: Served, where: Mapping[str, Any], shelf: str = "1") -> list[str]:
    """List the numbers of the things of a shelf that a filter accepts."""
    data = await shelves.data(THINGS, {"shelf": shelf, "where": where})
    return [node["number"] for node in data["shelf"]["things"]["nodes"]]


# --- each operator on each scalar ---------------------------------------------------------------------------------


def samples(scalar: Scalar) -> list[Values]:
    """Give things that have each sample of a scalar, NULL, and nothing."""
    (path,) = [(field.name,) for field in SCALAR_FIELDS if field.scalar is scalar]
    stored: list[Values] = [{path: value} for value in (*SAMPLES[scalar.name], None)]
    return [*stored, {}]


def cases(field: Field) -> Iterator[Test]:
    """Make a test of every operator that a field offers with every sample of its scalar, and with null."""
    scalar = field.scalar
    assert scalar is not None
    known = SAMPLES[scalar.name]
    for operator in operators(scalar, is_list=False):
        if operator == "exists":
            operands: tuple[Any, ...] = (True, False)
        elif operator == "in":
            operands = ((), (None,), known[:1], known[1:], (*known, None))
        elif operator == "between":
            operands = tuple(itertools.product(known, known))
        elif operator in ("eq", "ne"):
            operands = (*known, None)
        else:
            operands = (*known, "") if isinstance(known[0], str) and scalar.name in ("ID", "String") else known
        yield from (Test((field.name,), operator, operand, scalar) for operand in operands)


@pytest.mark.parametrize("field", SCALAR_FIELDS, ids=lambda field: field.scalar.name)
async def test_each_operator_gives_what_plain_python_gives(serve: Serve, field: Field) -> None:
    assert field.scalar is not None
    stored = {str(number): values_ for number, values_ in enumerate(samples(field.scalar))}
    shelves = await serve(SHELVES, [item(number, values_) for number, values_ in stored.items()])

    for test in cases(field):
        expected = [number for number, values_ in stored.items() if decides(test, values_.get)]
        assert await found(shelves, as_json(test)) == expected, test


@pytest.mark.parametrize("field", SCALAR_FIELDS, ids=lambda field: field.scalar.name)
def test_each_operator_is_decided_here_as_plain_python_does(field: Field) -> None:
    assert field.scalar is not None
    for values_ in samples(field.scalar):
        thing = entity(item("1", values_))
        for test in cases(field):
            assert holds(test, thing) is decides(test, values_.get), test


def entity(wire: Wire) -> Entity:
    """Read a thing."""
    read = read_entity(MODEL, THING.layouts[0], wire)
    assert read is not None
    return read


# --- any filter, pushed down or not -------------------------------------------------------------------------------

FIELDS = [field for field in SCALAR_FIELDS if field.scalar is not None and field.scalar.in_key]


@st.composite
def a_test(draw: st.DrawFn) -> Test:
    """Draw a test on a field."""
    field = draw(st.sampled_from(FIELDS))
    return draw(st.sampled_from(list(cases(field))))


def a_filter() -> st.SearchStrategy[Filter]:
    """Draw tests joined by and, or and not."""
    return st.recursive(
        a_test(),
        lambda inner: (
            st.builds(Never, inner)
            | st.lists(inner, max_size=3).map(lambda parts: Every(tuple(parts)))
            | st.lists(inner, min_size=1, max_size=3).map(lambda parts: Some(tuple(parts)))
        ),
        max_leaves=6,
    )


def some_values() -> st.SearchStrategy[Values]:
    """Draw the values of a thing, many of them samples, NULL or absent."""
    drawn: dict[Path, st.SearchStrategy[Any]] = {
        (field.name,): st.none() | st.sampled_from(SAMPLES[field.scalar.name]) | _drawn(field.scalar)
        for field in FIELDS
        if field.scalar is not None
    }
    return st.fixed_dictionaries({}, optional=drawn)


def _drawn(scalar: Scalar) -> st.SearchStrategy[Any]:
    return st.sampled_from(scalar.values) if scalar.values else values(scalar)


@pytest.fixture
async def shelves(serve: Serve) -> Served:
    """Empty shelves."""
    return await serve(SHELVES)


shelf_numbers = map(str, itertools.count())


@given(things=st.lists(some_values(), min_size=1, max_size=8), where=a_filter())
@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_filter_gives_what_plain_python_gives(shelves: Served, things: list[Values], where: Filter) -> None:
    shelf = next(shelf_numbers)
    items = [item(str(number), values_, shelf) for number, values_ in enumerate(things)]
    await shelves.graph.send(PutItems(shelves.table, tuple(items)))

    answer = await found(shelves, as_json(where), shelf)

    assert answer == [str(number) for number, values_ in enumerate(things) if decides(where, values_.get)]


@given(values_=some_values(), where=a_filter())
@settings(max_examples=1000)
def test_what_is_pushed_down_and_what_is_left_make_the_whole_filter(values_: Values, where: Filter) -> None:
    thing = entity(item("1", values_))

    condition, rest = push_down(where, THING)

    pushed = [part for part in conjuncts(where) if part not in list(conjuncts(rest))]
    assert bool(pushed) is (condition is not None)
    assert holds(where, thing) is (holds(Every(tuple(pushed)), thing) and holds(rest, thing))
    assert holds(where, thing) is decides(where, values_.get)


# --- what DynamoDB decides ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param({"anInt": {"eq": 1}}, "#n0 = :v0", id="eq"),
        pytest.param({"anInt": {"ne": 1}}, "#n0 <> :v0", id="ne"),
        pytest.param({"anInt": {"gt": 1, "le": 5}}, "#n0 > :v0 AND #n0 <= :v1", id="two-conjuncts"),
        pytest.param({"anInt": {"between": [1, 5]}}, "#n0 BETWEEN :v0 AND :v1", id="between"),
        pytest.param({"anInt": {"between": [5, 1]}}, "#n0 >= :v0 AND #n0 <= :v1", id="between-the-wrong-way-round"),
        pytest.param({"anInt": {"in": [1, 2]}}, "#n0 IN (:v0, :v1)", id="in"),
        pytest.param({"anInt": {"in": []}}, None, id="in-nothing"),
        pytest.param({"anInt": {"in": [1, None]}}, None, id="in-with-null"),
        pytest.param({"anInt": {"in": list(range(101))}}, None, id="in-with-more-operands-than-IN-takes"),
        pytest.param({"aString": {"beginsWith": "a"}}, "begins_with(#n0, :v0)", id="beginsWith"),
        pytest.param(
            {"aString": {"beginsWith": ""}},
            "attribute_exists(#n0) AND NOT attribute_type(#n0, :v0)",
            id="every-text-begins-with-nothing",
        ),
        pytest.param({"aString": {"contains": "a"}}, "contains(#n0, :v0)", id="contains"),
        pytest.param({"aString": {"eq": ""}}, None, id="the-empty-text"),
        pytest.param(
            {"aString": {"exists": True}}, "attribute_exists(#n0) AND NOT attribute_type(#n0, :v0)", id="exists"
        ),
        pytest.param(
            {"aString": {"eq": None}}, "NOT (attribute_exists(#n0) AND NOT attribute_type(#n0, :v0))", id="null"
        ),
        pytest.param({"not": {"anInt": {"eq": 1}}}, "NOT #n0 = :v0", id="not"),
        pytest.param({"or": [{"anInt": {"eq": 1}}, {"aFloat": {"eq": 1}}]}, "#n0 = :v0 OR #n1 = :v0", id="or"),
        pytest.param({"or": [{"anInt": {"eq": 1}}, {"anId": {"eq": "1"}}]}, None, id="an-or-goes-whole-or-not-at-all"),
        pytest.param({"anId": {"eq": "1"}}, None, id="an-id-may-be-stored-as-a-number"),
        pytest.param(
            {"anId": {"exists": True}},
            "attribute_exists(#n0) AND NOT attribute_type(#n0, :v0)",
            id="that-an-id-is-there-is-the-same-for-both",
        ),
        pytest.param({"aDateTime": {"eq": "2022-01-01T00:00:00Z"}}, None, id="a-moment-has-several-spellings"),
        pytest.param({"words": {"contains": "a"}}, None, id="a-list-may-be-a-set-or-hold-null"),
        pytest.param({"place": {"city": {"eq": "Rio"}}}, None, id="a-nested-field"),
        pytest.param({"maker": {"name": {"eq": "Ann"}}}, None, id="a-field-of-another-item"),
        pytest.param({"number": {"eq": "1"}}, None, id="a-field-of-the-key"),
    ],
)
def test_dynamodb_is_left_what_it_decides_as_we_would(where: Mapping[str, Any], expected: str | None) -> None:
    filter_ = read_where(MODEL, "Thing", where)

    condition, rest = push_down(filter_, THING)

    assert (None if condition is None else render(condition, Placeholders())) == expected
    assert list(conjuncts(rest)) == (list(conjuncts(filter_)) if expected is None else [])


def test_what_dynamodb_cannot_decide_does_not_keep_the_rest_from_it() -> None:
    pushed, left = (Test((name,), "eq", 1, THING.fields[name].scalar or SCALARS["Int"]) for name in ("anInt", "anId"))

    condition, rest = push_down(Every((left, Every((pushed,)))), THING)

    assert (condition, rest) == (push_down(pushed, THING)[0], Every((left,)))


def test_an_attribute_that_the_index_does_not_show_is_not_asked_for() -> None:
    where = read_where(MODEL, "Thing", {"anInt": {"eq": 1}, "aFloat": {"eq": 2}})

    shown, rest = push_down(where, THING, frozenset(["anInt"]))
    hidden, _ = push_down(where, THING, Projection.KEYS_ONLY)

    assert (shown, hidden) == (push_down(read_where(MODEL, "Thing", {"anInt": {"eq": 1}}), THING)[0], None)
    assert [test.path for test in conjuncts(rest) if isinstance(test, Test)] == [("aFloat",)]


async def test_a_filter_longer_than_an_expression_is_decided_here(serve: Serve) -> None:
    shelves = await serve(SHELVES, [item(str(number), {("anInt",): number}) for number in range(5)])
    long = {"or": [{"anInt": {"eq": number}} for number in range(3, 1000)]}

    assert await found(shelves, long) == ["3", "4"]
    assert all("FilterExpression" not in parameters for _, parameters in shelves.sent)


async def test_as_many_conjuncts_as_an_expression_holds_go_to_dynamodb(serve: Serve) -> None:
    shelves = await serve(SHELVES, [item(str(number), {("anInt",): number}) for number in range(5)])
    long = {"and": [{"anInt": {"ne": number}} for number in range(3, 1000)]}

    assert await found(shelves, long) == ["0", "1", "2"]
    (query,) = [parameters for operation, parameters in shelves.sent if operation == "Query"]
    assert EXPRESSION_BYTES - 200 < len(query["FilterExpression"]) <= EXPRESSION_BYTES


# --- values inside and behind an item -----------------------------------------------------------------------------


async def test_a_list_contains_an_entry_however_it_is_stored(serve: Serve) -> None:
    stored: list[Wire] = [
        {"words": {"L": [{"S": "a"}, {"NULL": True}]}},
        {"words": {"SS": ["a", "b"]}},
        {"words": {"L": []}},
        {"words": {"NULL": True}},
        {},
    ]
    shelves = await serve(SHELVES, [item(str(i), {}) | attributes for i, attributes in enumerate(stored)])

    assert await found(shelves, {"words": {"contains": "a"}}) == ["0", "1"]
    assert await found(shelves, {"words": {"contains": "b"}}) == ["1"]
    assert await found(shelves, {"not": {"words": {"contains": "a"}}}) == ["2", "3", "4"]
    assert await found(shelves, {"words": {"exists": True}}) == ["0", "1", "2"]


async def test_a_list_of_moments_contains_a_moment_in_any_spelling(serve: Serve) -> None:
    moments = {"L": [{"S": "2022-01-01T02:00:00+02:00"}, {"NULL": True}]}
    shelves = await serve(SHELVES, [item("1", {}) | {"moments": moments}, item("2", {})])

    assert await found(shelves, {"moments": {"contains": "2022-01-01T00:00:00Z"}}) == ["1"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param({"eq": "2022-01-01T00:00:00Z"}, ["0", "1", "2"], id="eq"),
        pytest.param({"ne": "2022-01-01T00:00:00Z"}, ["3", "4", "5"], id="ne"),
        pytest.param({"gt": "2022-01-01T00:00:00Z"}, ["3", "4"], id="gt"),
        pytest.param({"le": "2021-12-31T23:00:00-01:00"}, ["0", "1", "2"], id="le"),
        pytest.param({"in": ["2022-01-01T01:00:00+01:00", None]}, ["0", "1", "2", "5"], id="in"),
        pytest.param({"between": ["2022-01-01T00:00:00.25Z", "2022-01-01T00:00:01Z"]}, ["3", "4"], id="between"),
    ],
)
async def test_moments_are_compared_as_moments(serve: Serve, where: Mapping[str, Any], expected: list[str]) -> None:
    stored: list[Wire] = [
        {"S": "2022-01-01T00:00:00Z"},
        {"S": "2022-01-01T02:00:00.000+02:00"},
        {"N": "1640995200"},
        {"S": "2022-01-01T00:00:00.5Z"},
        {"N": "1640995201000"},
    ]
    things = [item(str(i), {}) | {"aDateTime": attribute} for i, attribute in enumerate(stored)]
    shelves = await serve(SHELVES, [*things, item("5", {})])

    assert await found(shelves, {"aDateTime": where}) == expected


async def test_an_id_is_compared_as_text_also_where_it_is_stored_as_a_number(serve: Serve) -> None:
    stored: list[Wire] = [{"S": "7"}, {"N": "7"}, {"N": "8"}]
    shelves = await serve(SHELVES, [item(str(i), {}) | {"anId": attribute} for i, attribute in enumerate(stored)])

    assert await found(shelves, {"anId": {"eq": "7"}}) == ["0", "1"]
    assert await found(shelves, {"anId": {"ne": "7"}}) == ["2"]


async def test_a_nested_field_is_null_where_its_object_is(serve: Serve) -> None:
    stored: list[Wire] = [
        {"place": {"M": {"city": {"S": "Rio"}, "since": {"S": "2022-01-01T01:00:00+01:00"}}}},
        {"place": {"M": {}}},
        {"place": {"NULL": True}},
        {},
    ]
    shelves = await serve(SHELVES, [item(str(i), {}) | attributes for i, attributes in enumerate(stored)])

    assert await found(shelves, {"place": {"city": {"eq": "Rio"}}}) == ["0"]
    assert await found(shelves, {"place": {"city": {"eq": None}}}) == ["1", "2", "3"]
    assert await found(shelves, {"place": {"since": {"le": "2022-01-01T00:00:00Z"}}}) == ["0"]
    assert await found(shelves, {"place": {"or": [{"city": {"beginsWith": "R"}}, {"since": {"exists": True}}]}}) == [
        "0"
    ]


def maker(number: str, country: str | None = None, **attributes: str) -> Wire:
    """Make the item of a maker."""
    wire: Wire = {name: {"S": text} for name, text in attributes.items()}
    reference = {} if country is None else {"country": {"S": f"COUNTRY#{country}"}}
    return wire | reference | {"PK": {"S": f"MAKER#{number}"}, "SK": {"S": f"MAKER#{number}"}}


async def test_what_a_filter_looks_at_behind_references_is_loaded_in_one_batch_for_each_step(serve: Serve) -> None:
    things = [item(f"{i:02}", {}) | {"maker": {"S": f"MAKER#{i % 20}"}} for i in range(50)]
    makers = [maker(str(i), country=str(i % 2), name=f"maker {i}") for i in range(20)]
    countries: list[Wire] = [
        {"PK": {"S": key}, "SK": {"S": key}, "name": {"S": key}} for key in ("COUNTRY#0", "COUNTRY#1")
    ]
    shelves = await serve(SHELVES, [*things, *makers, *countries])

    answer = await found(shelves, {"maker": {"country": {"name": {"eq": "COUNTRY#1"}}}})

    assert answer == [f"{i:02}" for i in range(50) if i % 2 == 1]
    assert shelves.operations == ["BatchGetItem", "BatchGetItem", "Query"]


async def test_a_filter_on_the_key_of_a_reference_loads_nothing(serve: Serve) -> None:
    shelves = await serve(SHELVES, [item(str(i), {}) | {"maker": {"S": f"MAKER#{i}"}} for i in range(3)])

    assert await found(shelves, {"maker": {"number": {"ne": "1"}}}) == ["0", "2"]
    assert shelves.operations == ["Query"]


async def test_a_reference_that_leads_nowhere_has_only_nulls_behind_it(serve: Serve) -> None:
    stored: list[Wire] = [
        {"maker": {"S": "MAKER#gone"}},
        {"maker": {"S": "MAKER#1"}},
        {"maker": {"S": "MAKER#2"}},
        {},
    ]
    things = [item(str(i), {}) | attributes for i, attributes in enumerate(stored)]
    shelves = await serve(SHELVES, [*things, maker("1", name="Ann"), maker("2")])

    assert await found(shelves, {"maker": {"name": {"eq": None}}}) == ["0", "2", "3"]
    assert await found(shelves, {"maker": {"name": {"ne": "Bob"}}}) == ["0", "1", "2", "3"]
    assert await found(shelves, {"maker": {"country": {"name": {"exists": False}}}}) == ["0", "1", "2", "3"]


async def test_an_attribute_outside_of_the_projection_is_loaded_to_decide_on_it(serve: Serve) -> None:
    sdl = """
    extend schema @table(name: "things", partitionKey: "PK", sortKey: "SK")
      @index(name: "by-kind", partitionKey: "kind", sortKey: "SK", projection: ["KEYS_ONLY"])
    type Thing @node(partition: "{number}", sort: "THING") { number: ID!  kind: String!  size: Int }
    type Query { things(kind: String!): [Thing!]! @find }
    """
    sizes = [1, 2, None, 3]
    things: list[Wire] = [
        {"PK": {"S": str(i)}, "SK": {"S": "THING"}, "kind": {"S": "a"}} | ({"size": {"N": str(size)}} if size else {})
        for i, size in enumerate(sizes)
    ]
    shop = await serve(sdl, things)

    data = await shop.data('{ things(kind: "a", where: { size: { ge: 2 } }) { nodes { number } } }')

    assert sorted(node["number"] for node in data["things"]["nodes"]) == ["1", "3"]
    assert shop.operations == ["BatchGetItem", "Query"]
