"""The planner: what is bound of an access pattern → the index and the key ranges that are read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import InputError
from graph.filters import Every, Filter, Never, Test, bounds, without
from graph.keys import KeyValue, Literal, Part, Path, Shard, Template, Variable
from graph.model import Access, Find, Index, Layout, Model, Relationship
from graph.planner import KeyRange, Plan, plan, shard_of
from graph.requests import Query
from graph.scalars import SCALARS
from resolvers.filters import read_where
from resolvers.sdl import compile_model
from tests.memory import key_condition
from tests.oracle import decides
from tests.strategies import STATUS, templates, values

# --- a plan as its reader would say it ----------------------------------------------------------------------------

SHOP = """
extend schema
  @table(name: "shop", partitionKey: "PK", sortKey: "SK", type: "Type")
  @index(name: "by-day", partitionKey: "PK", sortKey: "Day", local: true)
  @index(name: "by-customer", partitionKey: "Customer", sortKey: "Data")
  @index(name: "by-shard", partitionKey: "Shard", sortKey: "Data")
  @index(name: "by-group", partitionKey: "Group", sortKey: "Rank")
  @index(name: "by-group-keys", partitionKey: "Group", sortKey: "Rank", projection: ["KEYS_ONLY"])
enum Status { OPEN OPENED SHIPPED }
type Shop @node(key: "SHOP#{number}") { number: ID! orders: [Order!]! @relationship visits: [Visit!]! @relationship }
type Customer @node(key: "CUSTOMER#{number}") { number: ID! orders: [Order!]! @relationship }
type Order @node(partition: "{shop}", sort: "ORDER#{number}")
  @indexed(by: "by-customer", partition: "{customer}", sort: "{status}-{date}")
  @indexed(by: "by-shard", partition: "{shard(4)}", sort: "{status}-{date}")
{ shop: Shop! number: ID! customer: Customer! status: Status! date: Date!
  day: Date! @attribute(name: "Day") note: String }
type Visit @node(partition: "{shop}", sort: "VISIT#{guest}#{at}") @indexed(by: "by-group", partition: "{group}")
{ shop: Shop! guest: String! at: DateTime! group: String! rank: Float! @attribute(name: "Rank") }
type Query {
  orders(status: Status, date: Dates): [Order!]! @find
  visits(group: [String!]!): [Visit!]! @find
}
input Dates { from: Date to: Date }
"""


@pytest.fixture(scope="module")
def shop() -> Model:
    """A model with a local index, an overloaded, a sharded and two equal global ones."""
    return compile_model(SHOP)


def planned(pattern: Relationship | Find, where: Filter, known: Mapping[Path, Any]) -> Plan:
    """Plan a pattern with a filter, which must be possible."""
    found = plan(pattern.accesses, bounds(where, known))
    assert found is not None
    return found


def related(model: Model, name: str, source: str, where: Mapping[str, Any] | None = None) -> Plan:
    """Plan a relationship of a node with this number."""
    source_type, _, field = name.partition(".")
    relationship = model.relationships[source_type, field]
    filter_ = read_where(model, relationship.item_types[0], where or {})
    return planned(relationship, filter_, {(relationship.start, *path): source for path in relationship.needs})


def requests(found: Plan) -> list[str]:
    """Write down the key condition of each range's Query, with its values in their places."""
    return [condition(key_range) for key_range in found.ranges]


def condition(key_range: KeyRange) -> str:
    """Write down the key condition of one range's Query."""
    index = key_range.index
    partition = tuple(zip(index.partition_keys, key_range.partition, strict=True))
    return key_condition(Query(key_range.table, index.name, partition, key_range.sort.condition(index.sort_keys)))


# --- patterns without a model -------------------------------------------------------------------------------------


def template(source: str) -> Template:
    """Make a template whose variables say their scalars, like `{day:Date}`; without one it is a String."""
    parts: list[Part] = []
    for piece in filter(None, re.split(r"({.*?})", source)):
        if piece.startswith("{shard"):
            count, _, path = piece[len("{shard(") : -len(")}")].partition(",")
            parts.append(Shard(int(count), (path,) if path else None))
        elif piece.startswith("{"):
            name, scalar, format_ = (piece[1:-1] + "::").split(":")[:3]
            parts.append(Variable((name,), STATUS if scalar == "Status" else SCALARS[scalar or "String"], format_))
        else:
            parts.append(Literal(piece))
    return Template(source, tuple(parts))


def layout(partition: str, sort: str, name: str = "A") -> Layout:
    """Make a layout of two key attributes."""
    return Layout(name, name, "T", {"PK": template(partition), "SK": template(sort)}, {})


def access(partition: str, sort: str, index: str | None = None) -> Access:
    """Make the way to a layout by the table's key, or by an index of this name."""
    return Access(Index("T", index, ("PK",), ("SK",)), (layout(partition, sort),))


def is_(name: str, operator: str, value: Any, scalar: str = "String") -> Test:
    """Make a test."""
    return Test((name,), operator, value, STATUS if scalar == "Status" else SCALARS[scalar])


def every(*filters_: Filter) -> Filter:
    """Join filters."""
    return Every(filters_)


# --- the choice of the index --------------------------------------------------------------------------------------


def test_nothing_bound_of_the_sort_key_reads_the_table_by_the_types_prefix(shop: Model) -> None:
    found = related(shop, "Shop.orders", "1")

    assert requests(found) == ["PK = SHOP#1 AND begins_with(SK, ORDER#)"]


def test_a_bound_sort_key_of_a_local_index_beats_the_unbound_one_of_the_table(shop: Model) -> None:
    found = related(shop, "Shop.orders", "1", {"day": {"ge": "2022-07-19"}})

    assert requests(found) == ["by-day: PK = SHOP#1 AND Day >= 2022-07-19"]


def test_a_whole_value_beats_a_range(shop: Model) -> None:
    found = related(shop, "Shop.orders", "1", {"day": {"ge": "2022-07-19"}, "number": {"eq": "7"}})

    assert requests(found) == ["PK = SHOP#1 AND SK = ORDER#7"]


def test_a_tie_goes_to_the_table(shop: Model) -> None:
    found = related(shop, "Shop.orders", "1", {"day": {"eq": "2022-07-19"}, "number": {"eq": "7"}})

    assert requests(found) == ["PK = SHOP#1 AND SK = ORDER#7"]


def test_a_partition_that_is_known_beats_shards_to_fan_out_over() -> None:
    shards = access("{shard(4)}", "{date:Date}", "shards")
    customer = access("{customer}", "{other}", "customers")
    where = every(is_("customer", "eq", "5"), is_("date", "ge", "2022-07-19", "Date"))

    found = plan([shards, customer], bounds(where))

    assert found is not None
    assert found.index.name == "customers"


def test_among_equals_fewer_requests_win() -> None:
    by_status = access("{shop}", "{status:Status}-{date:Date}", "by-status")
    by_date = access("{shop}", "{date:Date}", "by-date")
    where = every(is_("shop", "eq", "1"), is_("date", "ge", "2022-07-19", "Date"))

    found = plan([by_status, by_date], bounds(where))

    assert found is not None
    assert [key_range.index.name for key_range in found.ranges] == ["by-date"]


def test_of_two_equal_indexes_the_one_that_projects_all_is_read(shop: Model) -> None:
    find = shop.finds["visits"]

    found = planned(find, every(Test(("group",), "eq", "a", SCALARS["String"])), {})

    assert requests(found) == ["by-group: Group = a"]


def test_an_unbound_partition_cannot_be_planned() -> None:
    by_customer = access("{customer}", "{date:Date}")

    assert plan([by_customer], bounds(every(is_("date", "eq", "2022-07-19", "Date")))) is None


# --- ranges closed inside their prefix ----------------------------------------------------------------------------

STATUS_AND_DATE = {"status": {"eq": "OPEN"}}


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        pytest.param({}, ["begins_with(Data, OPEN-)"], id="a-literal-reaches-to-its-separator"),
        pytest.param({"date": {"eq": "2022-07-19"}}, ["Data = OPEN-2022-07-19"], id="eq"),
        pytest.param({"date": {"ge": "2022-07-19"}}, ["Data BETWEEN OPEN-2022-07-19 AND OPEN-…"], id="ge"),
        pytest.param({"date": {"gt": "2022-07-19"}}, ["Data BETWEEN OPEN-2022-07-19␀ AND OPEN-…"], id="gt"),
        pytest.param({"date": {"le": "2022-07-19"}}, ["Data BETWEEN OPEN- AND OPEN-2022-07-19"], id="le"),
        pytest.param({"date": {"lt": "2022-07-19"}}, ["Data BETWEEN OPEN- AND OPEN-2022-07-18…"], id="lt"),
        pytest.param(
            {"date": {"between": ["2022-07-01", "2022-07-31"]}},
            ["Data BETWEEN OPEN-2022-07-01 AND OPEN-2022-07-31"],
            id="between",
        ),
        pytest.param(
            {"date": {"ge": "2022-07-01", "lt": "2022-07-31", "gt": "2022-06-01"}},
            ["Data BETWEEN OPEN-2022-07-01 AND OPEN-2022-07-30…"],
            id="several-bounds-become-the-tightest",
        ),
        pytest.param(
            {"date": {"le": "2022-07-19", "lt": "2022-07-19", "ge": "2022-07-01", "gt": "2022-07-01"}},
            ["Data BETWEEN OPEN-2022-07-01␀ AND OPEN-2022-07-18…"],
            id="of-equal-bounds-the-open-one",
        ),
        pytest.param(
            {"date": {"in": ["2022-07-02", "2022-07-01"]}},
            ["Data = OPEN-2022-07-01", "Data = OPEN-2022-07-02"],
            id="in-is-a-range-for-each-value",
        ),
        pytest.param(
            {"date": {"in": ["2022-07-02", "2022-07-01"], "gt": "2022-07-01"}},
            ["Data = OPEN-2022-07-02"],
            id="listed-values-that-fail-another-test-are-not-asked-for",
        ),
        pytest.param({"date": {"eq": "2022-07-19", "ne": "2022-07-19"}}, [], id="eq-and-ne-contradict"),
        pytest.param({"date": {"eq": "2022-07-19", "gt": "2022-07-19"}}, [], id="eq-and-gt-contradict"),
        pytest.param({"date": {"gt": "2022-07-19", "lt": "2022-07-19"}}, [], id="a-range-without-room"),
        pytest.param({"date": {"between": ["2022-07-31", "2022-07-01"]}}, [], id="between-the-wrong-way-round"),
        pytest.param({"date": {"in": []}}, [], id="in-nothing"),
        pytest.param({"and": [{"date": {"eq": "2022-07-01"}}, {"date": {"eq": "2022-07-02"}}]}, [], id="two-eqs"),
        pytest.param({"note": {"eq": "a", "in": ["b", "c"]}}, [], id="a-contradiction-outside-of-the-key"),
        pytest.param({"date": {"eq": None}}, ["begins_with(Data, OPEN-)"], id="null-binds-nothing"),
        pytest.param({"or": [{"date": {"eq": "2022-07-19"}}]}, ["begins_with(Data, OPEN-)"], id="or-binds-nothing"),
        pytest.param({"not": {"date": {"eq": "2022-07-19"}}}, ["begins_with(Data, OPEN-)"], id="not-binds-nothing"),
    ],
)
def test_a_date_behind_a_status_is_ranged_within_that_status(
    shop: Model, where: Mapping[str, Any], expected: list[str]
) -> None:
    found = related(shop, "Customer.orders", "5", {**STATUS_AND_DATE, **where})

    assert requests(found) == [f"by-customer: Customer = CUSTOMER#5 AND {one}" for one in expected]


@pytest.mark.parametrize(
    ("source", "other", "is_met"),
    [
        pytest.param("store#{number}", "store#004", True, id="with-its-separator"),
        pytest.param("store", "store#004", False, id="a-literal-alone-is-the-whole-key"),
        pytest.param("store.{name}", "store#004", False, id="another-separator"),
    ],
)
def test_a_literal_reaches_no_further_than_it_is_written(source: str, other: str, is_met: bool) -> None:
    one = access("{business}", source)

    found = plan([one], bounds(every(is_("business", "eq", "1"))))

    assert found is not None
    assert any(key_range.sort.contains((other,)) for key_range in found.ranges) is is_met


# --- scalars and formats in sort keys -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sort", "tests", "expected"),
    [
        pytest.param("String", [("beginsWith", "JO")], ["begins_with(SK, a#JO)"], id="beginsWith"),
        pytest.param(
            "String",
            [("beginsWith", "JO"), ("gt", "JOE")],
            ["SK BETWEEN a#JOE␀ AND a#JO…"],
            id="beginsWith-and-a-range-together",
        ),
        pytest.param("String", [("beginsWith", "JO"), ("lt", "JA")], [], id="a-prefix-outside-of-the-range"),
        pytest.param("String", [("beginsWith", "")], ["begins_with(SK, a#)"], id="beginsWith-nothing"),
        pytest.param("String", [("beginsWith", "JO"), ("beginsWith", "JA")], [], id="two-prefixes-contradict"),
        pytest.param("String", [("eq", "")], [], id="no-key-holds-an-empty-text"),
        pytest.param("String", [("in", ("", "b"))], ["SK = a#b"], id="what-no-key-holds-is-left-out-of-a-list"),
        pytest.param("String", [("le", "")], [], id="nothing-is-below-the-empty-text"),
        pytest.param("String", [("ge", "")], ["begins_with(SK, a#)"], id="all-is-above-the-empty-text"),
        pytest.param("String", [("lt", "b\x00")], ["SK BETWEEN a# AND a#b"], id="below-a-zero-letter"),
        pytest.param("String", [("lt", "\ue000")], ["SK BETWEEN a# AND a#\ud7ff…"], id="below-the-surrogates"),
        pytest.param("String", [("eq", "x" * 1100)], [], id="no-key-is-so-long"),
        pytest.param("String:lower", [("eq", "JO")], ["SK = a#jo"], id="lower-eq"),
        pytest.param("String:lower", [("beginsWith", "JO")], ["begins_with(SK, a#jo)"], id="lower-beginsWith"),
        pytest.param("String:lower", [("gt", "JO")], ["begins_with(SK, a#)"], id="lower-has-no-order"),
        pytest.param("String:lower", [("beginsWith", "ΟΔΟΣ")], ["begins_with(SK, a#οδο)"], id="lower-final-sigma"),
        pytest.param(
            "DateTime",
            [("ge", "2022-07-19T17:59:58.5Z")],
            ["SK BETWEEN a#2022-07-19T17:59:58 AND a#…"],
            id="a-moment-from-its-second",
        ),
        pytest.param(
            "DateTime",
            [("lt", "2022-07-19T17:59:58.5Z")],
            ["SK BETWEEN a# AND a#2022-07-19T17:59:58…"],
            id="a-moment-to-the-end-of-its-second",
        ),
        pytest.param(
            "DateTime",
            [("eq", "2022-07-19T17:59:58Z")],
            ["begins_with(SK, a#2022-07-19T17:59:58)"],
            id="a-moment-however-it-is-spelled",
        ),
        pytest.param(
            "DateTime:epoch",
            [("between", ("2001-09-09T01:46:40Z", "2001-09-09T01:46:41.5Z"))],
            ["SK BETWEEN a#1000000000 AND a#1000000001"],
            id="epoch",
        ),
        pytest.param(
            "DateTime:epoch",
            [("gt", "2001-09-09T01:46:40Z"), ("lt", "2001-09-09T01:46:41.5Z")],
            ["SK BETWEEN a#1000000000 AND a#1000000001"],
            id="epoch-with-open-ends-keeps-the-seconds-of-the-bounds",
        ),
        pytest.param(
            "DateTime:epoch", [("ge", "1960-01-01T00:00:00Z")], ["begins_with(SK, a#)"], id="before-all-epochs"
        ),
        pytest.param("DateTime:epoch", [("lt", "1960-01-01T00:00:00Z")], [], id="before-the-first-epoch"),
        pytest.param("Int:03", [("ge", 7)], ["SK BETWEEN a#007 AND a#…"], id="zero-padded"),
        pytest.param("Int:03", [("lt", 7)], ["SK BETWEEN a# AND a#006…"], id="below-zero-padded"),
        pytest.param("Int:03", [("ge", -7)], ["begins_with(SK, a#)"], id="from-below-what-three-digits-hold"),
        pytest.param("Int:03", [("le", 1000)], ["begins_with(SK, a#)"], id="to-above-what-three-digits-hold"),
        pytest.param("Int:03", [("gt", 1000)], [], id="from-above-what-three-digits-hold"),
        pytest.param("Int:03", [("lt", -1)], [], id="to-below-what-three-digits-hold"),
        pytest.param("Int:03", [("eq", 1000)], [], id="not-what-three-digits-hold"),
        pytest.param("Int", [("ge", 7)], ["begins_with(SK, a#)"], id="numbers-as-text-have-no-order"),
        pytest.param("Int", [("eq", 7)], ["SK = a#7"], id="a-number-as-text"),
    ],
)
def test_the_last_variable_is_ranged_as_its_texts_allow(
    sort: str, tests: list[tuple[str, Any]], expected: list[str]
) -> None:
    one, scalar = access("{p}", f"a#{{s:{sort}}}"), sort.partition(":")[0]
    where = every(is_("p", "eq", "1"), *(is_("s", operator, value, scalar) for operator, value in tests))

    found = plan([one], bounds(where))

    assert found is not None
    assert requests(found) == [f"PK = 1 AND {text}" for text in expected]


@pytest.mark.parametrize(
    ("scalar", "tests", "expected"),
    [
        pytest.param("Int", [("eq", 7)], ["SK = 7"], id="eq"),
        pytest.param("Int", [("in", (7, 5))], ["SK = 5", "SK = 7"], id="in"),
        pytest.param("Int", [("gt", 7)], ["SK >= 8"], id="gt"),
        pytest.param("Int", [("lt", 7)], ["SK <= 6"], id="lt"),
        pytest.param("Int", [("between", (-5, 7))], ["SK BETWEEN -5 AND 7"], id="between"),
        pytest.param("Int", [], [""], id="unbound"),
        pytest.param("BigInt", [("gt", 10**38 - 1)], ["SK >= 1" + "0" * 38], id="above-38-digits"),
        pytest.param("Float", [("lt", 0.5)], ["SK <= 0.4" + "9" * 37], id="below-a-float"),
        pytest.param("Decimal", [("gt", Decimal(0))], [f"SK >= 0.{'0' * 129}1"], id="above-zero"),
        pytest.param("Decimal", [("lt", Decimal(0))], [f"SK <= -0.{'0' * 129}1"], id="below-zero"),
    ],
)
def test_a_number_key_is_ranged_as_a_number(scalar: str, tests: list[tuple[str, Any]], expected: list[str]) -> None:
    one = access("{p}", f"{{s:{scalar}}}")
    where = every(is_("p", "eq", "1"), *(is_("s", operator, value, scalar) for operator, value in tests))

    found = plan([one], bounds(where))

    assert found is not None
    assert requests(found) == [f"PK = 1 AND {text}" if text else "PK = 1" for text in expected]


def test_a_variable_that_more_follows_is_only_begun() -> None:
    one = access("{p}", "{a}#{b}")
    where = every(is_("p", "eq", "1"), is_("a", "beginsWith", "JO"), is_("b", "eq", "x"))

    found = plan([one], bounds(where))

    assert found is not None
    assert requests(found) == ["PK = 1 AND begins_with(SK, JO)"]


def test_a_date_that_more_follows_is_ranged_to_the_end_of_what_follows() -> None:
    one = access("{p}", "{d:Date}#{b}")
    where = every(is_("p", "eq", "1"), is_("d", "gt", "2022-07-18", "Date"), is_("d", "le", "2022-07-19", "Date"))

    found = plan([one], bounds(where))

    assert found is not None
    assert requests(found) == ["PK = 1 AND SK BETWEEN 2022-07-18… AND 2022-07-19…"]


# --- fan-out ------------------------------------------------------------------------------------------------------


def test_an_unbound_enum_is_fanned_out_where_that_binds_what_follows(shop: Model) -> None:
    found = related(shop, "Customer.orders", "5", {"date": {"ge": "2022-07-19"}})

    assert requests(found) == [
        f"by-customer: Customer = CUSTOMER#5 AND Data BETWEEN {status}-2022-07-19 AND {status}-…"
        for status in ("OPEN", "OPENED", "SHIPPED")
    ]
    assert [key_range.merge_key(key_range.sort.low) for key_range in found.ranges] == [("-2022-07-19",)] * 3


def test_an_unbound_enum_is_not_fanned_out_for_nothing(shop: Model) -> None:
    found = related(shop, "Customer.orders", "5", {"note": {"eq": "urgent"}})

    assert requests(found) == ["by-customer: Customer = CUSTOMER#5"]


def test_an_enum_is_not_fanned_out_for_what_lies_behind_another_gap() -> None:
    one = access("{p}", "{status:Status}-{x}-{date:Date}")

    found = plan([one], bounds(every(is_("p", "eq", "1"), is_("date", "eq", "2022-07-19", "Date"))))

    assert found is not None
    assert requests(found) == ["PK = 1"]


def test_random_shards_are_all_read(shop: Model) -> None:
    found = planned(shop.finds["orders"], every(is_("status", "eq", "OPEN")), {})

    assert requests(found) == [f"by-shard: Shard = {shard} AND begins_with(Data, OPEN-)" for shard in range(4)]


def test_shards_and_an_unbound_enum_multiply(shop: Model) -> None:
    found = planned(shop.finds["orders"], every(is_("date", "eq", "2022-07-19", "Date")), {})

    assert len(found.ranges) == 4 * 3


def test_a_hashed_shard_is_one_where_the_value_is_known() -> None:
    one, shard = access("{shard(15,customer)}", "{customer}#{date:Date}"), Shard(15, ("customer",))

    found = plan([one], bounds(every(is_("customer", "in", ("5", "6")))))

    assert found is not None
    assert requests(found) == [
        f"PK = {shard_of(shard, customer)} AND begins_with(SK, {customer}#)" for customer in ("5", "6")
    ]


def test_a_hashed_shard_is_any_where_the_value_is_not_known() -> None:
    one = access("{shard(3,customer)}", "{date:Date}")

    found = plan([one], bounds(every(is_("date", "eq", "2022-07-19", "Date"))))

    assert found is not None
    assert [key_range.partition for key_range in found.ranges] == [("0",), ("1",), ("2",)]


def test_a_variable_of_both_keys_has_one_value_in_them() -> None:
    one = access("{a}", "{a}#{b}")

    found = plan([one], bounds(every(is_("a", "in", ("x", "y")))))

    assert found is not None
    assert requests(found) == ["PK = x AND begins_with(SK, x#)", "PK = y AND begins_with(SK, y#)"]


def test_a_variable_that_stands_twice_has_one_value_in_both_places() -> None:
    one = access("{p}", "{a}#{b}#{a}")

    found = plan([one], bounds(every(is_("p", "eq", "1"), is_("a", "in", ("x", "y")), is_("b", "eq", "z"))))

    assert found is not None
    assert requests(found) == ["PK = 1 AND SK = x#z#x", "PK = 1 AND SK = y#z#y"]


def test_a_list_of_partitions_is_a_range_for_each(shop: Model) -> None:
    found = planned(shop.finds["visits"], every(is_("group", "in", ("b", "a", "b"), "String")), {})

    assert requests(found) == ["by-group: Group = b", "by-group: Group = a"]


def test_a_partition_that_no_key_can_have_is_not_asked_for(shop: Model) -> None:
    found = planned(shop.finds["visits"], every(is_("group", "in", ("", "a", "x" * 3000), "String")), {})

    assert requests(found) == ["by-group: Group = a"]


def test_a_long_list_of_partitions_is_refused(shop: Model) -> None:
    where = every(is_("group", "in", tuple(map(str, range(101))), "String"))

    with pytest.raises(InputError) as refused:
        planned(shop.finds["visits"], where, {})

    assert str(refused.value) == ("`group` lists 101 values, and each takes a Query of its own: expected at most 100")


def test_a_long_list_of_sort_keys_is_the_range_around_it() -> None:
    one = access("{p}", "{d:Date}")
    dates = tuple(f"2022-{month:02}-{day:02}" for month in range(1, 11) for day in range(1, 12))
    where = every(is_("p", "eq", "1"), is_("d", "in", dates, "Date"))

    found = plan([one], bounds(where))

    assert found is not None
    assert requests(found) == ["PK = 1 AND SK BETWEEN 2022-01-01 AND 2022-10-11"]
    assert found.exact == {is_("p", "eq", "1")}
    assert found.near == set()


# --- several ranges in one partition ------------------------------------------------------------------------------


def test_union_members_that_share_a_partition_are_read_by_one_query() -> None:
    members = [layout("{tag}", f"{name}#{{{name}}}", f"Tagging({name})") for name in "bc"]
    one = Access(Index("T", None, ("PK",), ("SK",)), tuple(members))

    found = plan([one], bounds(every(is_("tag", "eq", "x"))))

    assert found is not None
    assert requests(found) == ["PK = x"]
    assert [each.name for each in found.ranges[0].layouts] == ["Tagging(b)", "Tagging(c)"]
    assert [part.prefix for part in found.ranges[0].parts] == ["b#", "c#"]


def test_union_members_of_the_same_key_are_read_once() -> None:
    members = [layout("{tag}", "{subject}", f"Tagging({name})") for name in "bc"]
    one = Access(Index("T", None, ("PK",), ("SK",)), tuple(members))

    found = plan([one], bounds(every(is_("tag", "eq", "x"), is_("subject", "eq", "1"))))

    assert found is not None
    assert requests(found) == ["PK = x AND SK = 1"]
    assert len(found.ranges[0].layouts) == 2


def test_listed_values_of_which_one_begins_with_another_are_read_once() -> None:
    one = access("{p}", "{a}#{b}")

    found = plan([one], bounds(every(is_("p", "eq", "1"), is_("a", "in", ("x", "x#y", "z")))))

    assert found is not None
    assert requests(found) == ["PK = 1 AND begins_with(SK, x#)", "PK = 1 AND begins_with(SK, z#)"]


def test_a_whole_primary_key_names_an_item_and_a_range_or_an_index_key_does_not(shop: Model) -> None:
    whole = related(shop, "Shop.orders", "1", {"number": {"in": ["7", "8"]}})
    ranged = related(shop, "Shop.orders", "1", {"number": {"beginsWith": "7"}})
    indexed = related(shop, "Shop.orders", "1", {"day": {"eq": "2022-07-19"}})

    assert [found.names_items for found in (whole, ranged, indexed)] == [True, False, False]


# --- what the key conditions decide -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sort", "tests", "decided"),
    [
        pytest.param("{a}#{b}", [("a", "eq", "x")], "exact", id="a-value-up-to-its-separator"),
        pytest.param("{a}#{b}", [("a", "eq", "x#y")], "near", id="a-value-that-holds-the-separator"),
        pytest.param("{a}--{b}", [("a", "eq", "x-")], "near", id="a-value-that-makes-the-separator-begin-early"),
        pytest.param("{a}#{d:Date}", [("a", "eq", "x")], "near", id="what-follows-decides-where-the-value-ends"),
        pytest.param("{a}#{d:Date}", [("a", "eq", "x"), ("d", "eq", "2022-07-19")], "exact", id="the-whole-key"),
        pytest.param("{a:String:lower}", [("a", "eq", "x")], "near", id="lower-loses-the-case"),
        pytest.param("{d:Date}#{b}", [("d", "gt", "2022-07-19")], "exact", id="a-range-of-dates"),
        pytest.param("{b}", [("b", "lt", "x")], "exact", id="an-open-range-of-texts"),
        pytest.param("{b}", [("b", "gt", "x"), ("b", "beginsWith", "x")], "exact", id="a-range-with-a-prefix"),
        pytest.param("{b}", [("b", "eq", "x"), ("b", "ne", "y"), ("b", "exists", True)], "exact", id="all-tests-on-it"),
        pytest.param("{b}", [("b", "contains", "x")], "left", id="contains-is-no-range"),
        pytest.param("{b}", [("b", "ne", "x")], "left", id="ne-is-no-range"),
        pytest.param("{t:DateTime}", [("t", "ge", "2022-07-19T17:59:58Z")], "near", id="moments-by-the-second"),
        pytest.param("{e:Status}-{b}", [("e", "eq", "SHIPPED")], "exact", id="an-enum-value"),
        pytest.param("{e:Status}_{b}", [("e", "eq", "OPEN")], "near", id="an-enum-value-that-another-begins-with"),
        pytest.param("{a}#{b}", [("a", "beginsWith", "x")], "exact", id="a-prefix-without-the-separator"),
        pytest.param("{a}#{b}", [("a", "beginsWith", "x#")], "near", id="a-prefix-with-the-separator"),
        pytest.param("{a}#{b}", [("a", "gt", "x")], "left", id="no-range-where-more-follows"),
    ],
)
def test_a_test_is_decided_by_the_key_only_if_the_key_can_tell(
    sort: str, tests: list[tuple[str, str, Any]], decided: str
) -> None:
    one = access("{p}", sort)
    scalars = {variable.path: variable.scalar for variable in template(sort).variables}
    asked = [Test((name,), operator, value, scalars[name,]) for name, operator, value in tests]

    found = plan([one], bounds(every(is_("p", "eq", "1"), *asked)))

    assert found is not None
    kinds = {"exact": found.exact, "near": found.near}
    assert {kind for kind, tests in kinds.items() if set(asked) & tests} == ({decided} - {"left"})
    assert all(test in kinds.get(decided, asked) for test in asked)


def test_what_is_known_of_the_source_decides_the_tests_on_it(shop: Model) -> None:
    same = related(shop, "Shop.orders", "1", {"shop": {"number": {"ne": "2"}}})
    other = related(shop, "Shop.orders", "1", {"shop": {"number": {"eq": "2"}}})

    assert requests(same) == ["PK = SHOP#1 AND begins_with(SK, ORDER#)"]
    assert [test.value for test in same.exact] == ["2"]
    assert requests(other) == []


# --- the property -------------------------------------------------------------------------------------------------

Values = dict[Path, Any]
# Few letters, so that values hold, begin and end with each other and with the literals between them.
CONFUSABLE = st.text("a-#1._", min_size=1, max_size=4)


def value_of(variable: Variable) -> st.SearchStrategy[Any]:
    """Draw a value of a variable."""
    return CONFUSABLE | values(variable.scalar) if variable.scalar.name in ("ID", "String") else values(variable.scalar)


@st.composite
def filters(draw: st.DrawFn, drawn: list[Variable], items: list[Values]) -> Filter:
    """Draw tests on variables, mostly with the values of items."""
    parts: list[Filter] = []
    for variable in draw(st.lists(st.sampled_from(drawn), max_size=3)):
        met = st.sampled_from([item[variable.path] for item in items])
        operators = ["eq", "in", "ne", "exists"]
        if not variable.scalar.values and variable.scalar.name != "Boolean":
            operators += ["lt", "le", "gt", "ge", "between"]
        if variable.scalar.name in ("ID", "String"):
            operators += ["beginsWith", "contains"]
        operator = draw(st.sampled_from(operators))
        value = _operand(operator, met | met | value_of(variable))
        test = Test(variable.path, operator, draw(value), variable.scalar)
        parts.append(Never(test) if draw(st.integers(0, 9)) == 0 else test)
    return every(*parts)


def _operand(operator: str, value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    if operator == "exists":
        return st.booleans()
    if operator == "in":
        return st.lists(value, max_size=3).map(tuple)
    if operator == "between":
        return st.tuples(value, value)
    return value.map(lambda text: text[:2]) if operator in ("beginsWith", "contains") else value


@given(st.data())
@settings(max_examples=1500)
def test_the_ranges_hold_every_matching_item_exactly_once(data: st.DataObject) -> None:
    """Over random templates, items and filters; and what the key conditions decide exactly needs no filter."""
    sorts = data.draw(st.lists(templates(), min_size=1, max_size=3))
    made = {"PK": template("p#{p}"), "PK2": template("{e:Status}")}
    made |= {f"SK{place}": sort for place, sort in enumerate(sorts)}
    one = Access(Index("T", "I", ("PK", "PK2"), (*made,)[2:]), (Layout("A", "A", "T", made, {}),))
    variables = list({v.path: v for key in made.values() for v in key.variables}.values())
    drawn = st.fixed_dictionaries({v.path: value_of(v) for v in variables[1:]} | {("p",): st.sampled_from("xxy")})
    items = data.draw(st.lists(drawn, min_size=1, max_size=6))
    where = every(is_("p", "eq", "x"), data.draw(filters(variables, items)))

    found = plan([one], bounds(where))

    assert found is not None
    rest = without(where, found.exact)
    for item in items:
        if (keys := keys_of(one, item)) is not None:
            holding = [r for r in found.ranges if r.partition == keys[:2] and r.sort.contains(keys[2:])]
            assert len(holding) <= 1
            assert (bool(holding) and decides(rest, item.get)) == decides(where, item.get)


def keys_of(one: Access, item: Values) -> tuple[KeyValue, ...] | None:
    """Make the keys of an item, or None when its values cannot be kept in them."""
    try:
        return tuple(template.format(item, limit=1024) for template in one.layouts[0].templates.values())
    except InputError:
        return None
