"""Small models over the real engine: interfaces, unions, discriminators, and what introspection shows."""

from __future__ import annotations

from typing import Any

import pytest

from graph.requests import Item
from tests.conftest import Serve, Served

INVERSE = """extend schema
  @table(name: "things", partitionKey: "pk", sortKey: "sk")
  @index(name: "inverse", partitionKey: "sk", sortKey: "pk")
"""


def item(pk: str, sk: str, **attributes: str) -> Item:
    """Write an item whose attributes are all text."""
    return {name: {"S": text} for name, text in {"pk": pk, "sk": sk, **attributes}.items()}


# --- interfaces and unions ----------------------------------------------------------------------------------------

TAGS = (
    INVERSE
    + """
    "Whatever has a name."
    interface Named { id: ID!  name: String!  label: String  owner: User }
    type User implements Named @node(partition: "USER#{name}", sort: "user") {
      name: String!  label: String  owner: User  mail: String  tags: [Tag!]! @relationship
    }
    type Photo implements Named @node(partition: "PHOTO#{name}", sort: "photo") {
      name: String!  label: String  owner: User  width: String  tags: [Tag!]! @relationship
    }
    type Song @node(partition: "SONG#{number}", sort: "song") { number: ID!  title: String }
    union Subject = User | Photo | Song
    type Tag @node(partition: "TAG#{tag}", sort: "tag", virtual: true) {
      tag: ID!
      subjects: [Subject!]! @relationship
      named: [Named!]! @relationship
      songs: [Song!]! @relationship
    }
    type Tagging @edge(partition: "{tag}", sort: "{subject}") { tag: Tag!  subject: Subject!  by: String }
    type Query { everything: [Named!]! @find(scan: true)  tagged(tag: ID!): [Subject!]! @find }"""
)


def tagged() -> list[Item]:
    """A user, a photo of his and a song, all tagged red; the song also blue, together with a photo that is gone."""
    return [
        item("USER#ann", "user", label="Ann", mail="ann@example.org"),
        item("PHOTO#sea", "photo", label="The sea", width="640", owner="USER#ann"),
        item("SONG#1", "song", title="Blue"),
        *(item("TAG#red", subject, by="me") for subject in ("USER#ann", "PHOTO#sea", "SONG#1")),
        *(item("TAG#blue", subject) for subject in ("SONG#1", "PHOTO#gone")),
    ]


@pytest.fixture
async def tags(serve: Serve) -> Served:
    """Tags on users, photos and songs."""
    return await serve(TAGS, tagged())


async def test_a_union_leads_to_every_type_with_what_each_is_asked_for(tags: Served) -> None:
    data = await tags.data(
        """{ tag(tag: "red") { subjects { edges { by node { __typename
        ... on User { mail } ... on Photo { width owner { mail } } ... on Song { title } } } } } }"""
    )

    assert data["tag"]["subjects"]["edges"] == [
        {"by": "me", "node": {"__typename": "Photo", "width": "640", "owner": {"mail": "ann@example.org"}}},
        {"by": "me", "node": {"__typename": "Song", "title": "Blue"}},
        {"by": "me", "node": {"__typename": "User", "mail": "ann@example.org"}},
    ]


async def test_a_union_is_walked_back_from_each_of_its_types(tags: Served) -> None:
    data = await tags.data(
        '{ user(name: "ann") { tags { nodes { tag } } } photo(name: "sea") { tags { edges { by node { tag } } } } }'
    )

    assert data == {
        "user": {"tags": {"nodes": [{"tag": "red"}]}},
        "photo": {"tags": {"edges": [{"by": "me", "node": {"tag": "red"}}]}},
    }


async def test_one_member_of_a_union_is_one_key_condition(tags: Served) -> None:
    data = await tags.data('{ tag(tag: "red") { songs { nodes { number } totalCount } } }')

    assert data["tag"]["songs"] == {"nodes": [{"number": "1"}], "totalCount": 1}
    assert "SONG#" in str(tags.sent)


async def test_an_edge_to_a_node_that_is_gone_stays_and_its_node_is_null(tags: Served) -> None:
    data = await tags.data(
        '{ tag(tag: "blue") { subjects { edges { node { ... on Song { title } ... on Photo { width } } } } } }'
    )

    assert data["tag"]["subjects"]["edges"] == [{"node": None}, {"node": {"title": "Blue"}}]


async def test_an_interfaces_fields_are_those_of_its_types(tags: Served) -> None:
    data = await tags.data(
        """query { everything(first: 10) { nodes { ...Name ... on Photo { width } } } }
        fragment Name on Named { __typename id name label owner { name } }"""
    )

    nodes = sorted(data["everything"]["nodes"], key=lambda node: node["__typename"])
    assert [{name: value for name, value in node.items() if name != "id"} for node in nodes] == [
        {"__typename": "Photo", "name": "sea", "label": "The sea", "owner": {"name": "ann"}, "width": "640"},
        {"__typename": "User", "name": "ann", "label": "Ann", "owner": None},
    ]


async def test_a_node_is_found_by_its_id_as_its_interface(tags: Served) -> None:
    ids = await tags.data('{ photo(name: "sea") { id } song(number: "1") { id } tag(tag: "red") { id } }')

    data = await tags.data(
        "query ($ids: [ID!]!) { nodes(ids: $ids) { __typename id ... on Named { label owner { label } } } }",
        {"ids": [entry["id"] for entry in ids.values()]},
    )

    assert data["nodes"] == [
        {"__typename": "Photo", "id": ids["photo"]["id"], "label": "The sea", "owner": {"label": "Ann"}},
        {"__typename": "Song", "id": ids["song"]["id"]},
        {"__typename": "Tag", "id": ids["tag"]["id"]},
    ]


async def test_what_a_tag_holds_of_an_interface_is_read_by_the_types_of_the_interface_alone(tags: Served) -> None:
    data = await tags.data('{ tag(tag: "red") { named { nodes { name } totalCount } } }')

    assert data["tag"]["named"] == {"nodes": [{"name": "sea"}, {"name": "ann"}], "totalCount": 2}


async def test_a_union_is_found_through_its_edges(tags: Served) -> None:
    data = await tags.data('{ tagged(tag: "blue", last: 1) { nodes { ... on Song { title } } totalCount } }')

    assert data == {"tagged": {"nodes": [{"title": "Blue"}], "totalCount": 2}}


async def test_a_union_in_an_attribute_is_followed_and_walked_back(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "pk")
      @index(name: "about", partitionKey: "aboutId", sortKey: "pk")
    type Box @node(partition: "BOX#{number}") { number: ID!  size: String  notes: [Note!]! @relationship }
    type Lid @node(partition: "LID#{number}") { number: ID!  colour: String  notes: [Note!]! @relationship }
    union Thing = Box | Lid
    type Note @node(partition: "NOTE#{number}") {
      number: ID!  text: String  about: Thing @attribute(name: "aboutId")
    }"""
    things: list[Item] = [{"pk": {"S": "BOX#1"}, "size": {"S": "L"}}, {"pk": {"S": "LID#1"}, "colour": {"S": "red"}}]
    notes = {"1": "BOX#1", "2": "LID#1", "3": "LID#1"}
    items = [{"pk": {"S": f"NOTE#{number}"}, "aboutId": {"S": about}} for number, about in notes.items()]
    served = await serve(sdl, [*things, *items, {"pk": {"S": "NOTE#4"}, "text": {"S": "about nothing"}}])

    data = await served.data(
        """{ box(number: "1") { notes { nodes { number } } } lid(number: "1") { notes { nodes { number } } }
        note(number: "2") { about { __typename ... on Lid { colour } ... on Box { size } } }
        none: note(number: "4") { text about { __typename } } }"""
    )

    assert data == {
        "box": {"notes": {"nodes": [{"number": "1"}]}},
        "lid": {"notes": {"nodes": [{"number": "2"}, {"number": "3"}]}},
        "note": {"about": {"__typename": "Lid", "colour": "red"}},
        "none": {"text": "about nothing", "about": None},
    }


# --- discriminators -----------------------------------------------------------------------------------------------

ANIMALS = """extend schema @table(name: "zoo", partitionKey: "cage", sortKey: "animal", type: "kind")
type Cage @node(partition: "{number}", sort: "cage") {
  number: ID!  cats: [Cat!]! @relationship  dogs: [Dog!]! @relationship
}
type Cat @node(partition: "{cage}", sort: "{name}", typeName: "cat") { cage: Cage!  name: String!  lives: String }
type Dog @node(partition: "{cage}", sort: "{name}", typeName: "dog") { cage: Cage!  name: String!  tricks: String }"""


def animal(name: str, **attributes: str) -> Item:
    """Write an animal of cage 1."""
    return {key: {"S": text} for key, text in {"cage": "1", "animal": name, **attributes}.items()}


async def test_a_discriminator_tells_types_of_one_key_shape_apart(serve: Serve) -> None:
    served = await serve(
        ANIMALS,
        [animal("cage", kind="Cage"), animal("tom", kind="cat", lives="9"), animal("rex", kind="dog", tricks="sit")],
    )

    data = await served.data(
        '{ cage(number: "1") { cats { nodes { name lives } totalCount } dogs(first: 1) { nodes { name tricks } } } }'
    )

    assert data["cage"] == {
        "cats": {"nodes": [{"name": "tom", "lives": "9"}], "totalCount": 1},
        "dogs": {"nodes": [{"name": "rex", "tricks": "sit"}]},
    }


async def test_an_item_without_discriminator_is_none_of_the_types_that_it_could_be(serve: Serve) -> None:
    served = await serve(ANIMALS, [animal("cage", kind="Cage"), animal("who")])

    body = await served('{ cage(number: "1") { cats { nodes { name } } dogs { nodes { name } } } }', cost=True)

    assert body["data"]["cage"] == {"cats": {"nodes": []}, "dogs": {"nodes": []}}
    assert sum(body["extensions"]["cost"]["skippedItems"].values()) >= 1


async def test_an_item_of_a_wrong_discriminator_is_no_item_of_the_type(serve: Serve) -> None:
    served = await serve(ANIMALS, [animal("cage", kind="Cage"), animal("tom", kind="lion"), animal("rex", kind="dog")])

    data = await served.data(
        """{ cage(number: "1") { cats { nodes { name } totalCount } }
        cat(cage: "1", name: "rex") { name } dog(cage: "1", name: "rex") { name } }"""
    )

    assert data == {"cage": {"cats": {"nodes": [], "totalCount": 0}}, "cat": None, "dog": {"name": "rex"}}


# --- introspection ------------------------------------------------------------------------------------------------

DOCUMENTED = (
    INVERSE
    + """
"A box."
type Box @node(partition: "BOX#{number}", sort: "box") {
  "What is printed on it."
  number: ID!
  size: Size @deprecated(reason: "use `volume`")
  "Who made it."
  maker: Maker
  lids: [Lid!]! @relationship @deprecated
}
"What closes a box."
type Lid @node(partition: "{box}", sort: "LID#{number}") {
  "The box it closes."
  box: Box!
  number: ID!
}
"Where it was made."
type Maker { "Its town." town: String @deprecated(reason: "gone") }
"How large."
enum Size { "Tiny." S L @deprecated(reason: "too large") }
type Query {
  "Boxes of one number."
  boxes("The number." number: ID!): [Box!]! @find @deprecated(reason: "slow")
}
"""
)


async def introspect(served: Served, name: str) -> Any:
    """Give a type as introspection shows it, its fields and values by name."""
    parts = "name description isDeprecated deprecationReason"
    data = await served.data(
        f"""{{ __type(name: "{name}") {{ description
        fields(includeDeprecated: true) {{ {parts} args {{ name description }} }}
        enumValues(includeDeprecated: true) {{ {parts} }} }} }}"""
    )
    return data["__type"]


async def test_descriptions_are_in_the_api(serve: Serve) -> None:
    served = await serve(DOCUMENTED)

    box, lid, maker = [await introspect(served, name) for name in ("Box", "Lid", "Maker")]
    size, query = await introspect(served, "Size"), await introspect(served, "Query")

    assert [type_["description"] for type_ in (box, lid, maker, size)] == [
        "A box.",
        "What closes a box.",
        "Where it was made.",
        "How large.",
    ]
    fields = {field["name"]: field["description"] for type_ in (query, box, lid, maker) for field in type_["fields"]}
    assert {name: fields[name] for name in ("maker", "box", "town", "boxes")} == {
        "maker": "Who made it.",
        "box": "The box it closes.",
        "town": "Its town.",
        "boxes": "Boxes of one number.",
    }
    assert [value["description"] for value in size["enumValues"]] == ["Tiny.", None]


async def test_deprecations_are_in_the_api(serve: Serve) -> None:
    served = await serve(DOCUMENTED)

    types = [await introspect(served, name) for name in ("Box", "Maker", "Query", "Size")]

    parts = [part for type_ in types for part in (*(type_["fields"] or ()), *(type_["enumValues"] or ()))]
    assert {part["name"]: part["deprecationReason"] for part in parts if part["isDeprecated"]} == {
        "size": "use `volume`",
        "lids": "No longer supported",
        "town": "gone",
        "boxes": "slow",
        "L": "too large",
    }


async def test_no_word_of_the_mapping_is_in_the_api(serve: Serve) -> None:
    served = await serve(DOCUMENTED)

    sdl = served.api.sdl()

    assert not any(
        f"@{word}" in sdl for word in ("node", "edge", "table", "index", "relationship", "find", "attribute")
    )
    assert "AttributeCase" not in sdl
