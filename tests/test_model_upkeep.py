"""What writes need of a model: versions, defaults, counters, sets, and how a field's value is stored."""

from __future__ import annotations

from typing import Any

import pytest

from graph.model import Count, Default, Model, Moment
from resolvers.sdl import compile_model
from tests.test_model import TABLE
from tests.test_model_examples import example

MODEL = """extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk", attributeCase: PASCAL)
enum Colour { RED GREEN }
type Box @node(partition: "BOX#{number}", sort: "box") {
  number: ID! @default(uuid: true)
  made: DateTime! @default(now: CREATE)
  changed: Int @default(now: WRITE)
  version: BigInt! @version
  lidCount: Int @count(of: "lids")
  weight: Float @count(of: "lids.weight")
  lids: [Lid!]! @relationship
  colours: [Colour!] @attribute(name: "C", set: true)
  sizes: [Decimal!] @attribute(set: true)
  codes: [Base64!] @attribute(set: true)
  names: [String]
  expires: DateTime @ttl
  inside: [Inside!]
}
type Lid @node(partition: "{box}", sort: "LID#{number}") { box: Box!  number: ID!  weight: Float  note: Box }
type Inside { colour: Colour  tags: [ID!] @attribute(set: true)  inner: Inside  anything: JSON }
"""


def box() -> Model:
    return compile_model(MODEL)


def test_a_type_has_the_version_default_and_counter_that_are_declared() -> None:
    item = box().items["Box"]

    assert item.version == "version"
    assert {name: field.default for name, field in item.fields.items() if field.default} == {
        "number": Default(uuid=True),
        "made": Default(Moment.CREATE),
        "changed": Default(Moment.WRITE),
    }
    assert {name: field.count for name, field in item.fields.items() if field.count} == {
        "lidCount": Count("lids"),
        "weight": Count("lids", "weight"),
    }
    assert [name for name, field in item.fields.items() if field.is_set] == ["colours", "sizes", "codes"]
    assert box().items["Lid"].version is None


def test_an_edges_number_is_added_up() -> None:
    assert example("order-entry").items["Product"].fields["totalInventory"].count == Count("stock", "quantity")


def test_a_key_may_hold_a_default() -> None:
    model = compile_model(
        TABLE
        + """type Note @node(partition: "NOTE#{number}", sort: "{made}") {
          number: ID! @default(uuid: true)
          made: DateTime! @default(now: CREATE)
        }"""
    )

    assert model.items["Note"].fields["made"].default == Default(Moment.CREATE)


@pytest.mark.parametrize(
    ("field", "value", "attribute"),
    [
        ("number", "1", {"S": "1"}),
        ("changed", 5, {"N": "5"}),
        ("made", "2022-07-19T17:59:58Z", {"S": "2022-07-19T17:59:58Z"}),
        ("expires", "2022-07-19T17:59:58Z", {"N": "1658253598"}),
        ("colours", ["RED", "GREEN"], {"SS": ["RED", "GREEN"]}),
        ("sizes", [1, 2], {"NS": ["1", "2"]}),
        ("codes", ["aGk="], {"BS": ["aGk="]}),
        ("names", ["a", None, ""], {"L": [{"S": "a"}, {"NULL": True}, {"S": ""}]}),
        (
            "inside",
            [
                {"colour": "RED", "tags": ["a"], "inner": None, "anything": {"a": None}},
                {"colour": None, "tags": None, "inner": {}, "anything": 1},
            ],
            {
                "L": [
                    {
                        "M": {
                            "Colour": {"S": "RED"},
                            "Tags": {"SS": ["a"]},
                            "Anything": {"M": {"a": {"NULL": True}}},
                        }
                    },
                    {"M": {"Inner": {"M": {}}, "Anything": {"N": "1"}}},
                ]
            },
        ),
    ],
)
def test_a_field_stores_a_value_and_reads_it_back(field: str, value: Any, attribute: dict[str, Any]) -> None:
    made = box().items["Box"].fields[field]
    nothing = dict.fromkeys(("colour", "tags", "inner", "anything"))

    assert made.write(value) == attribute
    assert made.read(attribute) == ([value[0], {**value[1], "inner": nothing}] if field == "inside" else value)


def test_an_empty_set_inside_a_map_is_stored_as_null() -> None:
    assert box().items["Box"].fields["inside"].write([{"tags": []}]) == {"L": [{"M": {"Tags": {"NULL": True}}}]}


def test_what_names_a_node_is_stored_as_text_or_as_a_number() -> None:
    for key, attribute in (("{number}", {"N": "5"}), ("{number}#", {"S": "5#"})):
        model = compile_model(
            f"""extend schema @table(name: "things", partitionKey: "pk")
            type Day @node(partition: "{key}") {{ number: Int!  next: Day }}"""
        )
        field = model.items["Day"].fields["next"]

        assert field.write(field.refs["Day"].format({("number",): 5})) == attribute
