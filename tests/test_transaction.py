"""Writes put together: one action for each item, what may be merged, sizes, and which condition is to blame."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.entity import Entity
from graph.errors import TooLarge, WriteError
from graph.expressions import AllOf, Compare, Condition, Exists, Not, Placeholders, Present, holds
from graph.requests import Item, ItemKey
from graph.sizes import item_bytes
from graph.transaction import Guard, Rule, Transaction
from graph.updates import Update, added, render_update
from graph.writes.guards import absent, blamed, present, unchanged, unlocked
from resolvers.sdl import compile_model
from tests.strategies import CONDITIONS
from tests.written import n, s

MODEL = compile_model(
    """extend schema
      @table(name: "things", partitionKey: "pk", sortKey: "sk")
      @index(name: "by-state", partitionKey: "state", sortKey: "data")
    type Box @node(partition: "BOX#{number}", sort: "box") @indexed(by: "by-state", sort: "{weight:04}-{label:lower}") {
      number: ID!  state: String  weight: Int  label: String  colours: [String!] @attribute(set: true)
    }
    type Lid @node(partition: "{box}", sort: "LID#{number}")
      @indexed(by: "by-state", partition: "{shard(3)}", sort: "LID-{box.label}") {
      box: Box!  number: ID!
    }"""
)
BOX, LID = MODEL.items["Box"], MODEL.items["Lid"]


def key(number: object) -> ItemKey:
    return "things", (("pk", f"BOX#{number}"), ("sk", "box"))


THERE = Present("pk")


def guard(rule: Rule = Rule.PRESENT, condition: Condition = THERE) -> Guard:
    return Guard(rule, condition, "Box 1")


# --- updates ------------------------------------------------------------------------------------------------------

BOTH_ADD = Update(add={"a": n(1), "b": n(2)})


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (Update(put={"a": n(1)}), Update(put={"b": n(2)}), Update(put={"a": n(1), "b": n(2)})),
        (Update(put={"a": n(1)}), Update(remove=frozenset("b")), Update(put={"a": n(1)}, remove=frozenset("b"))),
        (Update(add={"a": n(1)}), Update(add={"a": n(-3)}), Update(add={"a": n(-2)})),
        (BOTH_ADD, BOTH_ADD, Update(add={"a": n(2), "b": n(4)})),
        (Update(), BOTH_ADD, BOTH_ADD),
        pytest.param(Update(put={"a": n(1)}), Update(put={"a": n(1)}), None, id="put twice"),
        pytest.param(Update(put={"a": n(1)}), Update(add={"a": n(1)}), None, id="put and added to"),
        pytest.param(Update(add={"a": {"SS": ["x"]}}), Update(add={"a": {"SS": ["y"]}}), None, id="sets"),
        pytest.param(Update(remove=frozenset("a")), Update(append={"a": {"L": []}}), None, id="removed, appended to"),
        pytest.param(Update(discard={"a": {"SS": ["x"]}}), Update(add={"a": {"SS": ["y"]}}), None, id="in and out"),
    ],
)
def test_two_updates_are_one_unless_they_change_the_same_attribute(
    one: Update, other: Update, both: Update | None
) -> None:
    assert one.merged(other) == both
    assert other.merged(one) == both


def test_an_update_is_written_clause_by_clause() -> None:
    update = Update(
        put={"a": s("x"), "b": n(1)},
        remove=frozenset(("z", "y")),
        add={"c": n(2), "d": {"SS": ["t"]}},
        append={"e": {"L": [n(1)]}},
        discard={"f": {"NS": ["1"]}},
    )
    holders = Placeholders()

    text = render_update(update, holders)

    assert text == (
        "SET #n0 = :v0, #n1 = :v1, #n2 = list_append(if_not_exists(#n2, :v2), :v3) "
        "REMOVE #n3, #n4 ADD #n5 :v4, #n6 :v5 DELETE #n7 :v6"
    )
    assert list(holders.names) == ["a", "b", "e", "y", "z", "c", "d", "f"]
    assert holders.parameters()["ExpressionAttributeValues"][":v2"] == {"L": []}


@pytest.mark.parametrize(
    ("number", "delta", "total"),
    [
        (None, "1", "1"),
        ("1", "-1", "0"),
        ("0.1", "0.2", "0.3"),
        ("1" * 37 + "2", "1", "1" * 37 + "3"),
        ("1E+30", "0.0000001", "1" + "0" * 30 + ".0000001"),
        ("1E+2", "1", "101"),
    ],
)
def test_numbers_are_added_exactly(number: str | None, delta: str, total: str) -> None:
    assert added(None if number is None else n(number), n(delta)) == n(total)


# --- sizes: DynamoDB developer guide, "DynamoDB item sizes and formats" -------------------------------------------


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (s(""), 0),
        (s("abc"), 3),
        (s("é💶"), 6),
        (n(0), 1),
        (n(1), 2),
        (n(27), 2),
        (n(-27), 2),
        (n(123), 3),
        ({"B": "aGk="}, 2),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"SS": ["ab", "c"]}, 3),
        ({"L": []}, 3),
        ({"M": {}}, 3),
        ({"L": [s("abc"), {"BOOL": True}]}, 3 + (1 + 3) + (1 + 1)),
        ({"M": {"ab": s("c")}}, 3 + (1 + 2 + 1)),
    ],
    ids=str,
)
def test_an_attribute_has_the_size_of_its_name_and_value(value: Any, size: int) -> None:
    assert item_bytes({"name": value}) in (len("name") + size, len("name") + size + (1 if "N" in value else 0))


# --- one action for each item -------------------------------------------------------------------------------------


def verbs(transaction: Transaction) -> list[str]:
    return [action.verb for action in transaction.request().actions]


def test_a_check_joins_the_write_of_the_same_item() -> None:
    transaction = Transaction()
    transaction.check(key(1), [guard()])
    transaction.update(key(1), Update(put={"a": n(1)}), [guard(Rule.WHERE, Exists("b"))])

    (action,) = transaction.request().actions

    assert action.verb == "Update"
    assert action.condition == AllOf((Present("pk"), Exists("b")))


def test_equal_conditions_are_asked_once_even_of_lists() -> None:
    transaction = Transaction()
    same = Compare("a", "=", ("L", [n(1)]))
    for _ in range(2):
        transaction.update(key(1), Update(), [guard(Rule.UNCHANGED, same)])

    assert transaction.request().actions[0].condition == AllOf((same,))


def test_what_is_put_needs_no_check() -> None:
    transaction = Transaction()
    transaction.check(key(1), [guard()])
    transaction.put(key(1), {"pk": s("BOX#1")}, [guard(Rule.ABSENT, Not(Present("pk")))])
    transaction.check(key(1), [guard()])

    assert transaction.request().actions[0].condition == AllOf((Not(Present("pk")),))


def test_counts_before_and_behind_a_put_are_in_the_item() -> None:
    transaction = Transaction()
    transaction.count(key(1), "count", Decimal(2))
    transaction.put(key(1), {"pk": s("BOX#1"), "count": n(0)})
    transaction.count(key(1), "count", Decimal(3))

    assert transaction.changes[key(1)].item == {"pk": s("BOX#1"), "count": n(5)}


def test_what_is_deleted_counts_no_more() -> None:
    transaction = Transaction()
    transaction.count(key(1), "count", Decimal(1))
    transaction.delete(key(1))
    transaction.count(key(1), "count", Decimal(1))

    assert verbs(transaction) == ["Delete"]


def test_what_moves_into_the_place_of_another_item_takes_it() -> None:
    transaction = Transaction()
    transaction.delete(key(1), [guard()], is_moved=True)
    transaction.put(key(2), {"pk": s("BOX#2")})
    transaction.delete(key(3), [guard()], is_moved=True)
    transaction.put(key(1), {"pk": s("BOX#1")}, [guard(Rule.ABSENT, Not(Present("pk")))])

    assert verbs(transaction) == ["Put", "Put", "Delete"]
    assert transaction.request().actions[0].condition == AllOf((Present("pk"),))


PUT, UPDATE, ADD, COUNT, DELETE, MOVE, CHECK, REST = (
    "put",
    "update",
    "add",
    "count",
    "delete",
    "move",
    "check",
    "rest",
)


def do(transaction: Transaction, verb: str) -> None:
    """Do something to the first box: check that it is there, or with REST that an attribute is as it was read."""
    if verb == PUT:
        transaction.put(key(1), {"pk": s("BOX#1")}, [guard()])
    elif verb == UPDATE:
        transaction.update(key(1), Update(put={"a": n(1)}), [guard()])
    elif verb == ADD:
        transaction.update(key(1), Update(add={"a": n(1)}), [guard()])
    elif verb == COUNT:
        transaction.count(key(1), "count", Decimal(1), [guard()])
    elif verb in (DELETE, MOVE):
        transaction.delete(key(1), [guard()], is_moved=verb == MOVE)
    else:
        transaction.check(key(1), [guard()], frozenset("a") if verb == REST else frozenset())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (PUT, PUT),
        (PUT, UPDATE),
        (PUT, DELETE),
        (UPDATE, PUT),
        (UPDATE, UPDATE),
        (UPDATE, DELETE),
        (UPDATE, MOVE),
        (DELETE, UPDATE),
        (DELETE, CHECK),
        (MOVE, CHECK),
        (CHECK, DELETE),
        (CHECK, MOVE),
        (ADD, PUT),
        (COUNT, MOVE),
        (MOVE, COUNT),
        (REST, UPDATE),
        (UPDATE, REST),
    ],
)
def test_two_writes_that_do_not_fit_together_are_refused(first: str, second: str) -> None:
    transaction = Transaction()
    do(transaction, first)

    with pytest.raises(WriteError) as raised:
        do(transaction, second)
    assert type(raised.value) is WriteError


def test_each_guard_knows_the_mutation_that_asked_for_it() -> None:
    transaction = Transaction()
    transaction.check(key(1), [guard()])
    transaction.mutation = 1
    transaction.update(key(1), Update(put={"a": n(1)}), [guard(Rule.WHERE)])

    assert [(one.rule, one.mutation) for one in transaction.changes[key(1)].guards] == [
        (Rule.PRESENT, 0),
        (Rule.WHERE, 1),
    ]


def test_a_request_has_a_token_of_its_own() -> None:
    transaction = Transaction()
    do(transaction, PUT)

    assert transaction.request().token != transaction.request().token


def test_a_transaction_has_at_most_a_hundred_actions() -> None:
    transaction = Transaction()
    for number in range(100):
        transaction.check(key(number), [guard()])
    assert len(transaction.request().actions) == 100

    transaction.check(key(100), [guard()])
    with pytest.raises(TooLarge, match="101 items"):
        transaction.request()


# --- blame --------------------------------------------------------------------------------------------------------


def test_the_guard_that_fails_is_blamed() -> None:
    guards = [
        present(BOX, key(1), 0, ()),
        unlocked(BOX, key(1), ()),
        guard(Rule.VERSION, Compare("v", "=", ("N", "2"))),
        guard(Rule.WHERE, Compare("a", ">", ("N", "10"))),
    ]

    def rule(item: Item) -> Rule:
        return blamed(guards, item).rule

    assert rule({}) is Rule.PRESENT
    assert rule({"pk": s("x"), "v": n(2), "a": n(11), "tablegraph-lock": s("1 x")}) is Rule.UNLOCKED
    assert rule({"pk": s("x"), "v": n(3), "a": n(9)}) is Rule.VERSION
    assert rule({"pk": s("x"), "v": n(2), "a": n(9)}) is Rule.WHERE


def test_an_item_that_is_there_is_not_absent() -> None:
    assert blamed([absent(BOX, key(1), 0, ())], {"pk": s("x")}).rule is Rule.ABSENT


@given(CONDITIONS, st.dictionaries(st.sampled_from("abcd"), st.sampled_from("abcd").map(s)))
def test_a_condition_is_decided_as_the_engine_decides_it(condition: Condition, item: Item) -> None:
    last = guard(Rule.MIRRORED, Present("never"))

    found = blamed([guard(Rule.WHERE, condition), last], item)

    assert (found is last) is holds(condition, item)


@pytest.mark.parametrize(
    ("read", "now", "is_same"),
    [
        (n(1), n("1.0"), True),
        (n(1), n(2), False),
        ({"SS": ["a", "b"]}, {"SS": ["b", "a"]}, True),
        ({"SS": ["a", "b"]}, {"SS": ["a"]}, False),
        ({"L": [n(1), s("a")]}, {"L": [n(1), s("a")]}, True),
        (None, None, True),
        (None, n(1), False),
        (s("1"), n(1), False),
        (s(""), None, False),
    ],
    ids=str,
)
def test_what_was_read_is_compared_with_what_is_there(read: Any, now: Any, is_same: bool) -> None:
    entity = Entity(MODEL, BOX, wire={} if read is None else {"a": read}, holds=None)
    guards = unchanged(entity, key(1), ["a", "pk"], ())

    found = blamed([*guards, guard(Rule.MIRRORED, Present("never"))], {} if now is None else {"a": now})

    assert [one.condition for one in guards] == [one.condition for one in guards if "pk" not in str(one.condition)]
    assert (found.rule is Rule.MIRRORED) is is_same
