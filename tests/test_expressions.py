"""Conditions: their golden texts, their placeholders, and that the text means what the condition says."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.expressions import (
    AllOf,
    AnyOf,
    Between,
    Compare,
    Condition,
    Exists,
    Function,
    In,
    Not,
    Placeholders,
    Present,
    render,
    value_of,
)
from graph.expressions import holds as decides
from graph.requests import Scan
from tests.conftest import Serve
from tests.strategies import CONDITIONS

A = Compare("a", "=", ("S", "x"))
B = Compare("b", "<", ("N", "1"))
C = Compare("c", "<>", ("BOOL", True))


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        pytest.param(A, "#n0 = :v0", id="compare"),
        pytest.param(Between("a", ("N", "1"), ("N", "2")), "#n0 BETWEEN :v0 AND :v1", id="between"),
        pytest.param(Between("a", ("N", "1"), ("N", "1")), "#n0 BETWEEN :v0 AND :v0", id="between-of-one-value"),
        pytest.param(In("a", (("S", "x"),)), "#n0 IN (:v0)", id="in-one"),
        pytest.param(In("a", (("S", "x"), ("S", "y"), ("S", "x"))), "#n0 IN (:v0, :v1, :v0)", id="in-several"),
        pytest.param(Function("begins_with", "a", ("S", "x")), "begins_with(#n0, :v0)", id="begins-with"),
        pytest.param(Function("contains", "a", ("S", "x")), "contains(#n0, :v0)", id="contains"),
        pytest.param(Exists("a"), "attribute_exists(#n0) AND NOT attribute_type(#n0, :v0)", id="exists"),
        pytest.param(Not(A), "NOT #n0 = :v0", id="not"),
        pytest.param(
            Not(Exists("a")), "NOT (attribute_exists(#n0) AND NOT attribute_type(#n0, :v0))", id="does-not-exist"
        ),
        pytest.param(AllOf((A, B)), "#n0 = :v0 AND #n1 < :v1", id="all-of"),
        pytest.param(AnyOf((A, B)), "#n0 = :v0 OR #n1 < :v1", id="any-of"),
        pytest.param(AllOf((A, AnyOf((B, C)))), "#n0 = :v0 AND (#n1 < :v1 OR #n2 <> :v2)", id="any-of-in-all-of"),
        pytest.param(AnyOf((AllOf((A, B)), C)), "(#n0 = :v0 AND #n1 < :v1) OR #n2 <> :v2", id="all-of-in-any-of"),
        pytest.param(AllOf((A,)), "#n0 = :v0", id="all-of-one"),
        pytest.param(AnyOf((AllOf((AnyOf((A, B)),)),)), "#n0 = :v0 OR #n1 < :v1", id="one-in-one-in-one"),
        pytest.param(Not(AllOf((AnyOf((A, B)),))), "NOT (#n0 = :v0 OR #n1 < :v1)", id="not-of-one-in-one"),
        pytest.param(Not(Not(A)), "#n0 = :v0", id="not-not"),
        pytest.param(
            AllOf((Not(Not(AnyOf((A, B)))), C)), "(#n0 = :v0 OR #n1 < :v1) AND #n2 <> :v2", id="not-not-of-an-or"
        ),
        pytest.param(Not(AllOf((Not(A),))), "#n0 = :v0", id="not-of-one-not"),
        pytest.param(Compare("a", "=", ("S", "a")), "#n0 = :v0", id="value-that-is-named-like-an-attribute"),
    ],
)
def test_condition_is_written_as(condition: Condition, text: str) -> None:
    assert render(condition, Placeholders()) == text


def test_placeholders_are_numbered_in_the_order_of_use() -> None:
    holders = Placeholders()

    text = render(AllOf((Compare("z", "=", ("S", "2")), Compare("a", "=", ("S", "1")))), holders)

    assert text == "#n0 = :v0 AND #n1 = :v1"
    assert holders.parameters() == {
        "ExpressionAttributeNames": {"#n0": "z", "#n1": "a"},
        "ExpressionAttributeValues": {":v0": {"S": "2"}, ":v1": {"S": "1"}},
    }


def test_the_same_name_or_value_has_one_placeholder() -> None:
    holders = Placeholders()

    text = render(
        AnyOf((Compare("a", "=", ("S", "1")), Compare("a", "=", ("S", "1")), Exists("b"), Exists("a"))), holders
    )

    assert text.count("#n0 = :v0") == 2
    assert holders.names == {"a": "#n0", "b": "#n1"}
    assert holders.parameters()["ExpressionAttributeValues"] == {":v0": {"S": "1"}, ":v1": {"S": "NULL"}}


def test_values_of_different_types_are_different_values() -> None:
    holders = Placeholders()
    values = (("S", "1"), ("N", "1"), ("B", "1"), ("BOOL", True), ("NULL", True))

    render(In("a", values), holders)

    assert [{letter: content} for letter, content in values] == list(
        holders.parameters()["ExpressionAttributeValues"].values()
    )


def test_nothing_used_needs_no_parameters() -> None:
    assert Placeholders().parameters() == {}


def test_value_of_an_attribute_is_hashable() -> None:
    assert {value_of({"S": "a"}), value_of({"S": "a"}), value_of({"BOOL": True})} == {("S", "a"), ("BOOL", True)}


# --- the text means what the condition says -----------------------------------------------------------------------


def holds(condition: Any, true: frozenset[str]) -> bool:
    match condition:
        case Not(inner):
            return not holds(inner, true)
        case AllOf(conditions):
            return all(holds(inner, true) for inner in conditions)
        case AnyOf(conditions):
            return any(holds(inner, true) for inner in conditions)
    return condition.attribute in true


def text_holds(text: str, names: dict[str, str], true: frozenset[str]) -> bool:
    """Decide an expression; NOT, AND and OR bind in DynamoDB as they do in Python."""
    of = {holder: str(name in true) for name, holder in names.items()}
    text = re.sub(r"attribute_exists\((#n\d+)\)|(#n\d+) = :v\d+", lambda use: of[use[1] or use[2]], text)
    text = re.sub(r"attribute_type\([^)]*\)", "False", text)
    return bool(eval(text.replace("NOT", "not").replace("AND", "and").replace("OR", "or")))  # noqa: S307  # ours


@given(condition=CONDITIONS, true=st.frozensets(st.sampled_from("abcd")))
def test_expression_decides_as_its_condition(condition: Condition, true: frozenset[str]) -> None:
    holders = Placeholders()

    text = render(condition, holders)

    assert text_holds(text, holders.names, true) == holds(condition, true)


@given(CONDITIONS)
def test_no_parentheses_are_redundant(condition: Condition) -> None:
    """DynamoDB refuses an expression with needless parentheses."""
    text = re.sub(r"\w+\(#n\d+(, :v\d+)?\)", "x", render(condition, Placeholders()))

    opened: list[int] = []
    pairs = {}
    for place, letter in enumerate(text):
        if letter == "(":
            opened.append(place)
        elif letter == ")":
            pairs[opened.pop()] = place
    assert not any(pairs.get(start + 1) == end - 1 for start, end in pairs.items())
    assert pairs.get(0) != len(text) - 1


# --- abuse --------------------------------------------------------------------------------------------------------

NASTY = (
    st.sampled_from(["size", "a = :v0 OR b", "#n0", ":v0", "GSI1-PK", "é", "a.b[0]", "", "\x00", "NULL"]) | st.text()
)


@given(name=NASTY, value=NASTY)
def test_no_name_or_value_ever_stands_in_the_text(name: str, value: str) -> None:
    letter = ("S", value)
    condition = AllOf(
        (
            Compare(name, "=", letter),
            Between(name, letter, letter),
            In(name, (letter,)),
            Exists(name),
            Not(Function("contains", name, letter)),
        )
    )
    holders = Placeholders()

    text = render(condition, holders)

    assert re.fullmatch(r"[#:\w()=,<> ]+", text, re.ASCII)
    assert set(re.findall(r"[A-Za-z_]{2,}", text)) <= {
        "BETWEEN", "AND", "IN", "NOT", "attribute_exists", "attribute_type", "contains",
    }  # fmt: skip
    assert holders.parameters()["ExpressionAttributeNames"] == {"#n0": name}
    assert {"S": value} in holders.parameters()["ExpressionAttributeValues"].values()


# --- deciding here as DynamoDB does -------------------------------------------------------------------------------

TEXTS = st.sampled_from([("S", "a"), ("S", "ab"), ("S", "b"), ("S", "é"), ("S", "😀"), ("S", "\uffff")])
NUMBERS = st.sampled_from([("N", "1"), ("N", "1.0"), ("N", "10"), ("N", "-2"), ("N", "1e1")])
BYTES = st.sampled_from([("B", "AA=="), ("B", "gA=="), ("B", "gAE=")])
ONE = TEXTS | NUMBERS | BYTES | st.sampled_from([("BOOL", True), ("BOOL", False), ("NULL", True)])
STORED = (
    ONE.map(lambda value: dict([value]))
    | st.lists(TEXTS, min_size=1, max_size=3, unique=True).map(lambda many: {"SS": [text for _, text in many]})
    | st.lists(st.sampled_from(["1", "10", "-2"]), min_size=1, max_size=3, unique=True).map(lambda many: {"NS": many})
    | st.lists(ONE, max_size=3).map(lambda many: {"L": [dict([value]) for value in many]})
)
NAME = st.sampled_from(["a", "b"])
ORDERED = TEXTS | NUMBERS | BYTES
DECIDED = st.recursive(
    st.builds(Compare, NAME, st.sampled_from(["=", "<>"]), ONE)
    | st.builds(Compare, NAME, st.sampled_from(["<", "<=", ">", ">="]), ORDERED)
    | st.builds(In, NAME, st.lists(ONE, min_size=1, max_size=3).map(tuple))
    | st.builds(Function, st.just("begins_with"), NAME, TEXTS | BYTES)
    | st.builds(Function, st.just("contains"), NAME, TEXTS | NUMBERS | BYTES)
    | st.builds(Exists, NAME)
    | st.builds(Present, NAME),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(AllOf, st.lists(inner, min_size=1, max_size=2).map(tuple))
        | st.builds(AnyOf, st.lists(inner, min_size=1, max_size=2).map(tuple))
    ),
    max_leaves=4,
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    items=st.lists(st.fixed_dictionaries({}, optional={"a": STORED, "b": STORED}), min_size=5, max_size=20),
    conditions=st.lists(DECIDED, min_size=5, max_size=10),
)
async def test_conditions_are_decided_as_the_engine_does(
    serve: Serve, items: list[Any], conditions: list[Condition]
) -> None:
    served = await serve(
        'extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk") type T @node(key: "{n}") { n: ID! }'
    )
    keyed = [{"pk": {"S": str(place)}, "sk": {"S": str(place)}, **item} for place, item in enumerate(items)]
    await served.put(keyed)

    for condition in conditions:
        found = await served.graph.send(Scan(served.table, 0, 1, condition))
        expected = {item["pk"]["S"] for item in keyed if decides(condition, item)}
        assert {item["pk"]["S"] for item in found["Items"]} == expected, condition
