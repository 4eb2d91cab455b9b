"""Records: an item of which only some attributes are kept reads like the item itself, whatever the table holds."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.codec import parse_json
from graph.records import MOST_SLOTS, are_items, contents, parse_records, presence
from graph.requests import Item
from graph.rows import NOTHING
from resolvers.sdl import compile_model

MODEL = compile_model("""
extend schema @table(name: "things", partitionKey: "p-k", sortKey: "sk")
enum Color { RED GREEN }
type Crate @node(key: "CRATE#{name}") {
  name: ID!  label: String  weight: Int  isOpen: Boolean  color: Color  raw: Base64
  tags: [String!]  kilos: Float @attribute(name: "größe.kg")  class: String
}
""")
KEPT = ("p-k", "sk", "name", "label", "weight", "isOpen", "color", "raw", "tags", "größe.kg", "class")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "S": st.text(st.characters(codec="utf-8")),
    "N": st.integers().map(str),
    "BOOL": st.booleans(),
    "NULL": st.just(True),
    "SS": st.lists(st.text("ab"), min_size=1, unique=True),
    "L": st.lists(st.just({"S": "x"})),
    "M": st.dictionaries(st.text("SN"), st.just({"N": "1"})),
}
ATTRIBUTES = st.one_of([st.fixed_dictionaries({letter: values}) for letter, values in VALUES.items()])
ITEMS = st.dictionaries(st.sampled_from((*KEPT, "foreign", "S", "slots", "get", "__class__")), ATTRIBUTES)


def parsed(*items: Item, names: frozenset[str] | None = None) -> list[Any]:
    """Parse an answer of items as an operation does that mentions these fields."""
    parse = parse_records(MODEL, names)
    assert parse is not None
    found: list[Any] = parse(orjson.dumps({"Items": items, "Count": len(items)}))["Items"]
    return found


@given(st.lists(ITEMS, max_size=4))
def test_record_is_read_like_its_item(items: list[Item]) -> None:
    for item, record in zip(items, parsed(*items), strict=True):
        for name in KEPT:
            assert record.get(name) == item.get(name)
            assert record.get(name, 7) == item.get(name, 7)
            assert (name in record) is (name in item)
        assert {name for name in record.keys() if name in KEPT} == item.keys() & set(KEPT)  # noqa: SIM118
        assert {name: record[name] for name in record if name in KEPT} == {n: item[n] for n in KEPT if n in item}


@given(st.lists(st.fixed_dictionaries({"label": VALUES["S"].map(lambda text: {"S": text})}), min_size=1), st.data())
def test_columns_agree_on_items_and_records(items: list[Item], data: st.DataObject) -> None:
    records = parsed(*items)
    mixed = [data.draw(st.sampled_from(pair)) for pair in zip(items, records, strict=True)]

    assert contents("label")(mixed) == [item["label"]["S"] for item in items]
    assert presence("label")(mixed) == [True] * len(items)
    assert presence("weight")(mixed) == [False] * len(items)
    assert are_items(mixed)


@pytest.mark.parametrize("of", [lambda item: item, lambda item: parsed(item)[0]], ids=["item", "record"])
def test_column_of_what_is_not_there_raises(of: Any) -> None:
    with pytest.raises(KeyError):
        contents("label")([of({"label": {"S": "x"}}), of({"weight": {"N": "1"}})])


@pytest.mark.parametrize("other", [{"N": "1"}, {"NULL": True}, {"SS": ["x"]}, {}], ids=["N", "NULL", "SS", "none"])
def test_answer_with_an_attribute_of_another_type_is_parsed_as_items(other: Any) -> None:
    items: list[Item] = [{"label": {"S": "x"}}, {"label": other, "foreign": {"S": "y"}}]

    found = parsed(*items)

    assert found[1].get("label") == other
    assert found[0]["label"] == {"S": "x"}


def test_only_what_may_be_looked_at_is_kept() -> None:
    item: Item = {"p-k": {"S": "CRATE#1"}, "sk": {"S": "CRATE#1"}, "label": {"S": "x"}, "class": {"S": "y"}}

    (record,) = parsed(item, names=frozenset({"label"}))

    assert set(record) == {"p-k", "sk", "label"}
    assert record.get("class") is None


def test_record_with_no_attribute_is_an_item_all_the_same() -> None:
    (record,) = parsed({"foreign": {"S": "x"}})

    assert record
    assert not NOTHING
    assert list(record) == []


@pytest.mark.parametrize(
    "body", [b"[]", b"null", b'{"Items": 1}', b'{"Items": [[]]}', b"", b"{", b'{"Items": [{"label"']
)
def test_body_that_is_no_answer_is_parsed_as_json(body: bytes) -> None:
    parse = parse_records(MODEL, None)
    assert parse is not None

    def outcome(of: Any) -> Any:
        try:
            return of(body)
        except ValueError:
            return ValueError

    assert outcome(parse) == outcome(parse_json)


def test_what_nearly_always_fails_is_seldom_tried() -> None:
    parse = parse_records(MODEL, None)
    assert parse is not None
    good, bad = (orjson.dumps({"Items": [{"label": value}]}) for value in ({"S": "x"}, {"N": "1"}))

    def is_tried() -> bool:
        return not isinstance(parse(good)["Items"][0], dict)

    assert is_tried()
    for _ in range(100):
        parse(bad)
    assert sum(is_tried() for _ in range(16)) < 16, "trust was lost"
    assert all(is_tried() for _ in range(16)), "and comes back"


def test_model_of_too_many_attributes_has_no_records() -> None:
    fields = " ".join(f"f{number}: String" for number in range(MOST_SLOTS))
    model = compile_model(f"""
    extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")
    type Crate @node(key: "CRATE#{{name}}") {{ name: ID! {fields} }}
    """)

    assert parse_records(model, None) is None
    assert parse_records(model, frozenset({"f1"})) is not None
