"""What infer sees in values, keys and names, piece by piece."""

from __future__ import annotations

from typing import Any

import pytest

from graph.infer.groups import groupings, type_attribute
from graph.infer.sample import Sample
from graph.infer.texts import Slot, heads, pieces
from graph.infer.values import kind_of
from graph.model import Index
from resolvers.infer.names import attribute_case, camel, field_name, pascal, plural, singular, type_name
from resolvers.infer.nodes import table_word


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("USER#7", "USER#"),
        ("order_item#5", "order_item#"),
        ("CONTAINER_009998", "CONTAINER_"),
        ("PALLET_B021002", "PALLET_"),
        ("HR-EMPLOYEE-1", "HR-EMPLOYEE-"),
        ("OE-ORDER12", "OE-ORDER"),
        ("JH-2015-11-08", "JH-"),
        ("#METADATA#1", "#METADATA#"),
        ("2018-Q1", ""),
        ("2022-07-19T17:59:58Z", ""),
        ("ann@example.com", ""),
        ("https://example.com/a", ""),
        ("9b2f4c3e-8f1a-4c1e-9d55-0d0f6a8c7b11", ""),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", ""),
        ("0ujsswThIGTUYm2K8FjOOfXtY1K", ""),
        ("S1", ""),
        ("PROFILE", ""),
        ("{braces}#1", ""),
    ],
)
def test_the_literal_that_a_key_begins_with(text: str, head: str) -> None:
    assert heads([text])[text] == head


def test_a_word_before_a_point_is_a_literal_where_it_comes_again() -> None:
    assert heads(["customer.joey", "customer.ann"])["customer.ann"] == "customer."
    assert heads(["john.smith", "mary.jones", "x"])["john.smith"] == ""


def items(*rows: dict[str, str]) -> list[dict[str, Any]]:
    return [{name: {"S": value} for name, value in row.items()} for row in rows]


def shape(head: str, texts: list[str], rows: list[dict[str, Any]]) -> list[Any]:
    found = pieces(head, texts, rows, ("PK", "SK"))
    return [(one.attribute, one.format) if isinstance(one, Slot) else one for one in found]


def test_attributes_explain_what_stands_in_keys() -> None:
    rows = items(
        {"first": "Joey", "last": "Zhao", "at": "2020-01-02T03:04:05Z"},
        {"first": "Ann", "last": "Lee", "at": "2020-02-01T00:00:00Z"},
    )

    assert shape("c.", ["c.joey.zhao", "c.ann.lee"], rows) == ["c.", ("first", "lower"), ".", ("last", "lower")]
    assert shape("o#", ["o#1577934245", "o#1580515200"], rows) == ["o#", ("at", "epoch")]
    assert shape("x#", ["x#1#y#2", "x#3#y#4"], rows) == ["x#", (None, ""), "#y#", (None, "")]
    assert shape("d#", ["d#a-b", "d#c-d"], rows) == ["d#", (None, "")]


def test_padded_numbers_are_found() -> None:
    rows = [{"total": {"N": "5"}}, {"total": {"N": "120"}}]

    assert shape("", ["00005", "00120"], rows) == [("total", "05")]


@pytest.mark.parametrize(
    ("values", "name", "kind"),
    [
        ([{"S": "a"}], "x", "String"),
        ([{"S": "a"}], "ownerId", "ID"),
        ([{"S": "2022-07-19"}], "x", "Date"),
        ([{"S": "2022-07-19T17:59:58Z"}], "x", "DateTime"),
        ([{"S": "2022-07-19T17:59:58Z"}, {"S": "later"}], "x", "String"),
        ([{"N": "1"}], "x", "Int"),
        ([{"N": "12345678901"}], "x", "BigInt"),
        ([{"N": "1.5"}], "x", "Float"),
        ([{"N": "1.2345678901234567890"}], "x", "Decimal"),
        ([{"BOOL": True}, {"NULL": True}], "x", "Boolean"),
        ([{"B": "YQ=="}], "x", "Base64"),
        ([{"S": "a"}, {"N": "1"}], "x", "JSON"),
        ([{"NULL": True}], "x", "JSON"),
        ([{"M": {}}], "x", "JSON"),
        ([{"L": []}], "x", "JSON"),
    ],
)
def test_the_scalar_of_values(values: list[dict[str, Any]], name: str, kind: str) -> None:
    assert kind_of(values, name).name == kind


def test_few_values_that_come_often_are_an_enum_and_others_are_not() -> None:
    often = [{"S": value} for value in ("OPEN", "SHUT") * 12]

    assert kind_of(often).values == ("OPEN", "SHUT")
    assert "24 values seen" in kind_of(often).note
    assert kind_of(often[:10]).name == "String"
    assert kind_of([*often, {"S": "ONCE"}]).name == "String"
    assert kind_of([{"S": value} for value in ("Open", "shut up") * 12]).name == "String"


def test_maps_lists_and_sets() -> None:
    sizes = kind_of([{"M": {"w": {"N": "1"}, "h": {"N": "2"}}}] * 3)
    assert {name: (member.kind.name, member.is_always) for name, member in sizes.members.items()} == {
        "h": ("Int", True),
        "w": ("Int", True),
    }
    assert kind_of([{"M": {f"user-{number}": {"N": "1"}}} for number in range(20)]).name == "JSON"
    tags = kind_of([{"SS": ["a", "b"]}])
    assert tags.is_set
    assert tags.of is not None
    assert tags.of.name == "String"
    assert kind_of([{"L": [{"S": "a"}, {"NULL": True}]}]).has_nulls


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("box", "boxes"),
        ("category", "categories"),
        ("day", "days"),
        ("address", "addresses"),
        ("orderItem", "orderItems"),
        ("person", "people"),
        ("child", "children"),
        ("series", "series"),
    ],
)
def test_plurals_by_the_rules_of_english(one: str, many: str) -> None:
    assert plural(one) == many
    assert singular(many) == one


def test_names() -> None:
    assert pascal("ORDER_ITEM") == pascal("order-item") == pascal("OrderItem") == "OrderItem"
    assert camel("GSI1PK") == "gsi1Pk"
    assert pascal("007") == "T007"
    assert field_name("first_name", "AS_WRITTEN") == "firstName"
    assert field_name("é!", "AS_WRITTEN").startswith("field")
    assert type_name("Node", ()) == "NodeItem"
    assert type_name("Box", ("BOX",)) == "Box2"
    assert table_word("prod-user-sessions") == "UserSession"
    assert table_word("readings_{time:yyyyMM}") == "Reading"
    assert attribute_case(["WeightInKg", "Origin"]) == "PASCAL"
    assert attribute_case(["weight_in_kg", "origin_code"]) == "SNAKE"
    assert attribute_case(["weightInKg", "origin"]) == "AS_WRITTEN"


def sample(*rows: dict[str, str]) -> Sample:
    return Sample("t12", Index("t12", None, ("PK",), ("SK",)), (), {"PK": "S", "SK": "S"}, tuple(items(*rows)))


def test_a_property_called_type_is_no_discriminator() -> None:
    orders = [{"PK": f"O#{n}", "SK": f"O#{n}", "type": ("fast", "slow")[n % 2]} for n in range(12)]
    mixed = [{"PK": f"{t}#{n}", "SK": f"{t}#{n}", "type": t} for t in ("user", "shop") for n in range(4)]

    assert type_attribute(sample(*orders)) is None
    assert type_attribute(sample(*mixed)) == "type"


def test_words_between_values_and_levels_of_a_hierarchy() -> None:
    children = [{"PK": f"A#{n}", "SK": f"ORDER#{n}"} for n in range(4)]
    grandchildren = [{"PK": f"A#{n}", "SK": f"ORDER#{n}#ITEM#{m}"} for n in range(4) for m in range(3)]
    places = [
        {"PK": "US", "SK": f"{state}#{city}#Hall", "f": "x"} for state in ("WA", "OR") for city in ("Kiel", "Ulm")
    ]

    by_type = next(groupings(sample(*children, *grandchildren)))
    levels = next(groupings(sample(*places)))

    assert sorted(len(group.items) for group in by_type.groups) == [4, 12]
    assert [len(group.items) for group in levels.groups] == [4]
