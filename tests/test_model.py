"""What models compile to, rule by rule."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graph.keys import Literal, Part, Shard, Template
from graph.model import Model, Projection, Relationship
from resolvers.sdl import compile_model

ROOT = Path(__file__).parent.parent
TABLE = 'extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")\n'
INVERSE = TABLE.rstrip() + ' @index(name: "inverse", partitionKey: "sk", sortKey: "pk")\n'


def shape(template: Template) -> str:
    """Write a template with every reference in it written out."""
    return "".join(map(_part, template.parts))


def _part(part: Part) -> str:
    if isinstance(part, Literal):
        return part.text
    if isinstance(part, Shard):
        return f"{{shard({part.count})}}"
    return f"{{{part.name}:{part.format}}}" if part.format else f"{{{part.name}}}"


def layouts(model: Model, type_name: str) -> dict[str, dict[str, str]]:
    """Give the templates of a type's layouts."""
    return {
        layout.name: {name: shape(template) for name, template in layout.templates.items()}
        for layout in model.items[type_name].layouts
    }


def keys(model: Model, type_name: str) -> dict[str, str]:
    """Give the templates of a type that has one layout."""
    (templates,) = layouts(model, type_name).values()
    return templates


def indexes(relationship: Relationship) -> list[str]:
    """Name the ways that serve a relationship, best first."""
    return [access.index.name or "table" for access in relationship.accesses]


# --- attributes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("case", "attributes"),
    [
        ("AS_WRITTEN", ["number", "weightInKg", "URL", "x1Y"]),
        ("PASCAL", ["Number", "WeightInKg", "URL", "X1Y"]),
        ("SNAKE", ["number", "weight_in_kg", "u_r_l", "x1_y"]),
    ],
)
def test_the_tables_rule_makes_attribute_names(case: str, attributes: list[str]) -> None:
    model = compile_model(
        f"""extend schema @table(name: "things", partitionKey: "pk", attributeCase: {case})
        type Box @node(partition: "BOX#{{number}}") {{ number: ID!  weightInKg: Float  URL: String  x1Y: Int }}"""
    )

    assert [field.attribute for field in model.items["Box"].fields.values()] == attributes


def test_attribute_goes_before_the_tables_rule() -> None:
    model = compile_model(
        """extend schema @table(name: "things", partitionKey: "pk", attributeCase: SNAKE)
        type Box @node(partition: "BOX#{number}") { number: ID! @attribute(name: "Box Number")  size: Size }
        type Size { inCm: Int @attribute(name: "cm")  inMm: Int }"""
    )

    assert model.items["Box"].fields["number"].attribute == "Box Number"
    assert [field.attribute for field in model.objects["Size"].fields.values()] == ["cm", "in_mm"]


def test_what_lies_inside_items_follows_the_rule_of_its_items_table() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk", attributeCase: PASCAL)
          @table(name: "others", partitionKey: "pk", attributeCase: SNAKE)
        type Box @node(partition: "BOX#{number}") { number: ID!  size: Size }
        type Lid @node(partition: "LID#{number}", table: "others") { number: ID!  size: Size }
        type Size { inCm: Int }"""
    )
    stored = {"M": {"InCm": {"N": "1"}, "in_cm": {"N": "2"}}}

    assert model.items["Box"].fields["size"].read(stored) == {"inCm": 1}
    assert model.items["Lid"].fields["size"].read(stored) == {"inCm": 2}


# --- templates ----------------------------------------------------------------------------------------------------


def test_a_node_is_named_by_its_ref_and_without_one_by_its_partition() -> None:
    model = compile_model(
        TABLE
        + """type Box @node(partition: "B#{number}", sort: "box", ref: "box-{number}") { number: ID! }
        type Lid @node(partition: "L#{number}", sort: "lid") { number: ID! }
        type Fit @edge(partition: "{box}", sort: "{lid}#{box.partition}#{lid.number}") { box: Box!  lid: Lid! }"""
    )

    assert keys(model, "Fit") == {"pk": "box-{box.number}", "sk": "L#{lid.number}#B#{box.number}#{lid.number}"}


def test_a_key_attribute_is_filled_by_the_field_that_is_kept_in_it() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk")
          @index(name: "byOwner", partitionKey: "ownerId", sortKey: "CreatedAt")
        type User @node(partition: "USER#{name}", ref: "{name}") { name: ID!  boxes: [Box!]! @relationship }
        type Box @node(partition: "BOX#{number}") {
          number: ID!
          owner: User @attribute(name: "ownerId")
          created: DateTime @attribute(name: "CreatedAt")
        }"""
    )

    assert keys(model, "Box") == {"pk": "BOX#{number}", "ownerId": "{owner.name}", "CreatedAt": "{created}"}
    assert indexes(model.relationships["User", "boxes"]) == ["byOwner"]


def test_an_index_on_the_discriminator_holds_the_types_name() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk", type: "kind")
          @index(name: "byKind", partitionKey: "kind", sortKey: "made")
        type Box @node(partition: "BOX#{number}", typeName: "box") { number: ID!  made: Date }
        type Query { boxes: [Box!]! @find }"""
    )

    assert keys(model, "Box") == {"pk": "BOX#{number}", "kind": "box", "made": "{made}"}
    assert model.finds["boxes"].accesses[0].index.name == "byKind"


def test_one_numeric_field_alone_makes_a_number() -> None:
    model = compile_model(
        TABLE + 'type Reading @node(partition: "{sensor}", sort: "{second}") { sensor: BigInt!  second: Float! }'
    )

    templates = model.items["Reading"].layouts[0].templates

    assert [template.is_number for template in templates.values()] == [True, True]


def test_a_shard_may_be_hashed_from_a_field_or_from_what_names_a_node() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk")
          @index(name: "all", partitionKey: "shard")
          @index(name: "more", partitionKey: "other")
        type User @node(partition: "USER#{name}") { name: ID! }
        type Box @node(partition: "BOX#{number}")
          @indexed(by: "all", partition: "{shard(5, owner)}")
          @indexed(by: "more", partition: "{shard(7, number)}") { number: ID!  owner: User! }"""
    )

    templates = model.items["Box"].layouts[0].templates

    assert templates["shard"].parts == (Shard(5, ("owner", "name")),)
    assert templates["other"].parts == (Shard(7, ("number",)),)


def test_a_template_of_an_index_may_hold_nullable_fields_also_of_other_nodes() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk")
          @index(name: "byColour", partitionKey: "colour", sortKey: "made")
        type Crate @node(partition: "CRATE#{number}") { number: ID!  colour: String }
        type Box @node(partition: "BOX#{number}")
          @indexed(by: "byColour", partition: "{crate.colour}", sort: "{made}") {
          number: ID!  crate: Crate!  made: Date
        }"""
    )

    assert keys(model, "Box") == {"pk": "BOX#{number}", "colour": "{crate.colour}", "made": "{made}"}


# --- mirrors and unions -------------------------------------------------------------------------------------------


def test_a_union_in_an_attribute_that_is_an_index_key_is_one_too() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk")
          @index(name: "about", partitionKey: "aboutId")
        type Box @node(partition: "BOX#{number}") { number: ID!  notes: [Note!]! @relationship }
        type Lid @node(partition: "LID#{number}") { number: ID!  notes: [Note!]! @relationship }
        union Thing = Box | Lid
        type Note @node(partition: "NOTE#{number}") { number: ID!  about: Thing! @attribute(name: "aboutId") }"""
    )

    assert {layout.ends["about"]: shape(layout.templates["aboutId"]) for layout in model.items["Note"].layouts} == {
        "Box": "BOX#{about.number}",
        "Lid": "LID#{about.number}",
    }
    assert indexes(model.relationships["Lid", "notes"]) == ["about"]


def test_an_interface_stands_for_every_type_that_implements_it() -> None:
    model = compile_model(
        INVERSE
        + """interface Named { id: ID!  name: String! }
        type Box implements Named @node(key: "BOX#{name}") { name: String! }
        type Lid implements Named @node(key: "LID#{name}") { name: String! }
        type Tag @node(key: "TAG#{tag}", virtual: true) { tag: ID!  things: [Named!]! @relationship }
        type Tagging @edge(partition: "{tag}", sort: "{thing}") { tag: Tag!  thing: Named! }"""
    )

    assert model.relationships["Tag", "things"].targets == ("Box", "Lid")
    assert model.possible("Named") == {"Box", "Lid"}


# --- relationships ------------------------------------------------------------------------------------------------


def test_from_says_which_end_a_node_is_where_both_are_of_its_type() -> None:
    model = compile_model(
        INVERSE
        + """type User @node(key: "USER#{name}") {
          name: ID!
          following: [User!]! @relationship(from: "follower")
          followers: [User!]! @relationship(from: "followee")
        }
        type Following @edge(partition: "{follower}", sort: "{followee}") { follower: User!  followee: User! }"""
    )

    assert indexes(model.relationships["User", "following"]) == ["table"]
    assert indexes(model.relationships["User", "followers"]) == ["inverse"]


def test_an_edge_that_leads_to_one_of_the_types_only_is_no_way_to_all() -> None:
    model = compile_model(
        TABLE
        + """type Crate @node(key: "CRATE#{number}") { number: ID!  things: [Thing!]! @relationship }
        type Box @node(key: "BOX#{number}") { number: ID! }
        type Lid @node(key: "LID#{number}") { number: ID! }
        union Thing = Box | Lid
        type Packing @edge(partition: "{crate}", sort: "PACKS#{box}") { crate: Crate!  box: Box! }
        type Holding @edge(partition: "{crate}", sort: "HOLDS#{thing}") { crate: Crate!  thing: Thing! }"""
    )

    assert model.relationships["Crate", "things"].item_types == ("Holding",)


def test_the_table_goes_before_local_indexes_and_those_before_the_ones_that_hold_less() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk", sortKey: "sk")
          @index(name: "keys-only", partitionKey: "pk", sortKey: "a", projection: "KEYS_ONLY")
          @index(name: "some", partitionKey: "pk", sortKey: "b", projection: ["a", "b"])
          @index(name: "whole", partitionKey: "pk", sortKey: "c")
          @index(name: "near", partitionKey: "pk", sortKey: "d", local: true)
        type Box @node(partition: "BOX#{number}", sort: "{a}") { number: ID!  a: Int!  b: Int  c: Int  d: Int }"""
    )

    ways = model.tables["things"].ways

    assert [way.name for way in ways] == [None, "near", "whole", "keys-only", "some"]
    assert [way.projection for way in ways[3:]] == [Projection.KEYS_ONLY, frozenset({"a", "b"})]


def test_a_node_may_be_named_by_whatever_an_index_leads_to_it_by() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk")
          @index(name: "byMail", partitionKey: "mail")
        type User @node(partition: "USER#{name}") { name: ID!  mail: String! }
        type Post @node(partition: "POST#{number}") {
          number: ID!
          author: User @attribute(name: "authorMail", ref: "{mail}")
        }"""
    )

    assert [access.index.name for access in model.lookups["User"]] == [None, "byMail"]


# --- what is carried over -----------------------------------------------------------------------------------------


def test_descriptions_and_deprecations_are_carried_over() -> None:
    model = compile_model(
        TABLE
        + """"A box." type Box @node(partition: "BOX#{number}", sort: "box") {
          "Its number." number: ID!
          size: Size @deprecated
        }
        "How large." enum Size { "Tiny." S  L @deprecated(reason: "too large") }
        "Anything." union Thing = Box
        "Bounds." input Range { "The least." from: ID  to: ID }
        type Query { "Some." boxes("Which." number: ID!): [Box!]! @find @deprecated(reason: "slow") }"""
    )

    box, size, find = model.items["Box"], model.enums["Size"], model.finds["boxes"]
    assert (box.description, box.fields["number"].description) == ("A box.", "Its number.")
    assert box.fields["size"].deprecation_reason == "No longer supported"
    assert [value.description for value in size.values] == ["Tiny.", None]
    assert [value.deprecation_reason for value in size.values] == [None, "too large"]
    assert (size.description, model.unions["Thing"].description) == ("How large.", "Anything.")
    assert (find.description, find.deprecation_reason) == ("Some.", "slow")
    assert find.arguments[0].description == "Which."


def test_the_first_table_may_be_served_under_another_name() -> None:
    model = compile_model((ROOT / "schema.graphql").read_text(), table="copy")

    assert list(model.tables) == ["copy"]
    assert {index.table for index in model.tables["copy"].ways} == {"copy"}
    assert {layout.table for item in model.items.values() for layout in item.layouts} == {"copy"}


# --- size ---------------------------------------------------------------------------------------------------------


def test_twenty_five_types_with_sixty_relationships_compile(record_property: Callable[[str, object], None]) -> None:
    """The goal is a second; what it took is in the report (`pytest --junitxml`), for a slow machine is no mistake."""
    model_text = INVERSE + large_model(types=25, edges=30)
    began = time.perf_counter()

    model = compile_model(model_text)

    record_property("seconds", round(time.perf_counter() - began, 3))
    assert len(model.nodes) == 25
    assert len(model.relationships) == 60


def large_model(*, types: int, edges: int) -> str:
    """Write a model of node types in a ring of edges, each walked both ways."""
    fields: dict[int, list[str]] = {n: ["number: ID!", "name: String", "made: DateTime"] for n in range(types)}
    links = []
    for n in range(edges):
        one, other = n % types, (n * 7 + 1) % types
        fields[one].append(f'out{n}: [T{other}!]! @relationship(through: "E{n}", from: "one")')
        fields[other].append(f'in{n}: [T{one}!]! @relationship(through: "E{n}", from: "other")')
        ends = f"one: T{one}!  other: T{other}!  since: Date"
        links.append(f'type E{n} @edge(partition: "{{one}}", sort: "E{n}#{{other}}") {{ {ends} }}')
    nodes = [f'type T{n} @node(key: "T{n}#{{number}}") {{ {" ".join(lines)} }}' for n, lines in fields.items()]
    return "\n".join([*nodes, *links])
