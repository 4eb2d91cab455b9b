"""Small models over the real engine: what stands in an attribute or in a key, and what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from graph.requests import Item
from tests.conftest import Serve

TABLE = 'extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")\n'
DIGITS = "1234567890123456789012345678901234567.8"


def s(text: str) -> dict[str, str]:
    """Write text as DynamoDB JSON."""
    return {"S": text}


def n(number: object) -> dict[str, str]:
    """Write a number as DynamoDB JSON."""
    return {"N": str(number)}


def thing(**attributes: dict[str, Any]) -> Item:
    """Write the one item of a model whose type is Thing, numbered 1."""
    return {"pk": s("THING#1"), "sk": s("thing"), **attributes}


def model(fields: str, others: str = "") -> str:
    """Declare a type Thing with these fields."""
    return (
        f'{TABLE}type Thing @node(partition: "THING#{{number}}", sort: "thing") {{ number: ID!  {fields} }}\n{others}'
    )


# --- scalars ------------------------------------------------------------------------------------------------------

SCALARS = [
    ("ID", s("007"), "007"),
    ("ID", n("7"), "7"),
    ("String", s("Größe 💶"), "Größe 💶"),
    ("String", s(""), ""),
    ("Int", n("-2147483648"), -2147483648),
    ("Int", n("3E+2"), 300),
    ("Float", n("20.56"), 20.56),
    ("Float", n("7"), 7.0),
    ("Boolean", {"BOOL": False}, False),
    ("DateTime", s("2022-07-19T17:59:58Z"), "2022-07-19T17:59:58Z"),
    ("DateTime", n("1658253598"), "2022-07-19T17:59:58Z"),
    ("DateTime", n("1658253598000"), "2022-07-19T17:59:58Z"),
    ("Date", s("2022-07-19"), "2022-07-19"),
    ("Decimal", n(DIGITS), DIGITS),
    ("Decimal", n("-0.50"), "-0.5"),
    ("BigInt", n("9" * 38), "9" * 38),
    ("Base64", {"B": "aGk="}, "aGk="),
    ("JSON", {"M": {"a": {"L": [n(1), {"NULL": True}, {"BOOL": True}]}}}, {"a": [1, None, True]}),
    ("JSON", n("0.1"), 0.1),
    ("JSON", n(DIGITS), DIGITS),
    ("Colour", s("RED"), "RED"),
]


@pytest.mark.parametrize(("type_", "stored", "answered"), SCALARS, ids=str)
async def test_a_scalar_is_answered_as_it_is_stored(serve: Serve, type_: str, stored: Any, answered: Any) -> None:
    served = await serve(model(f"value: {type_}", "enum Colour { RED BLUE }"), [thing(value=stored)])

    data = await served.data('{ thing(number: "1") { value } }')

    assert data == {"thing": {"value": answered}}


@pytest.mark.parametrize(
    "type_", ["ID", "String", "Int", "Float", "Boolean", "DateTime", "Decimal", "JSON", "[Int!]", "Part"]
)
async def test_null_and_absent_are_null(serve: Serve, type_: str) -> None:
    sdl = model(f"one: {type_}  other: {type_}", "type Part { a: Int }")
    served = await serve(sdl, [thing(one={"NULL": True})])
    below = " { a }" if type_ == "Part" else ""

    data = await served.data(f'{{ thing(number: "1") {{ one{below} other{below} }} }}')

    assert data == {"thing": {"one": None, "other": None}}


# --- maps, lists, sets --------------------------------------------------------------------------------------------


async def test_maps_and_lists_lie_in_each_other(serve: Serve) -> None:
    sdl = model(
        "size: Size  stops: [Stop!]  grid: [[Int]]",
        """type Size { width: Float  unit: Unit  made: Made }  enum Unit { CM INCH }
        type Made { at: DateTime @attribute(name: "made at")  by: [String!] }
        type Stop { port: String!  days: [Date!]  next: Stop }""",
    )
    size = {"M": {"width": n(1.5), "unit": s("CM"), "made": {"M": {"made at": n(0), "by": {"SS": ["a", "b"]}}}}}
    stops = {"L": [{"M": {"port": s("Rotterdam"), "next": {"M": {"port": s("Bremen")}}}}, {"M": {"port": s("Oslo")}}]}
    grid = {"L": [{"L": [n(1), {"NULL": True}]}, {"NULL": True}, {"L": []}]}
    served = await serve(sdl, [thing(size=size, stops=stops, grid=grid)])

    data = await served.data(
        """{ thing(number: "1") { size { width unit made { at by } }
        stops { port days next { port next { port } } } grid } }"""
    )

    assert data["thing"] == {
        "size": {"width": 1.5, "unit": "CM", "made": {"at": "1970-01-01T00:00:00Z", "by": ["a", "b"]}},
        "stops": [
            {"port": "Rotterdam", "days": None, "next": {"port": "Bremen", "next": None}},
            {"port": "Oslo", "days": None, "next": None},
        ],
        "grid": [[1, None], None, []],
    }


@pytest.mark.parametrize(
    ("type_", "stored", "answered"),
    [
        ("[String!]", {"SS": ["a", "b"]}, ["a", "b"]),
        ("[Int!]", {"NS": ["2", "10"]}, [2, 10]),
        ("[Base64!]", {"BS": ["aGk="]}, ["aGk="]),
        ("[Colour!]", {"SS": ["BLUE"]}, ["BLUE"]),
        ("[String]", {"L": [s("a"), {"NULL": True}]}, ["a", None]),
    ],
    ids=str,
)
async def test_sets_and_lists_are_lists(serve: Serve, type_: str, stored: Any, answered: Any) -> None:
    served = await serve(model(f"values: {type_}", "enum Colour { RED BLUE }"), [thing(values=stored)])

    data = await served.data('{ thing(number: "1") { values } }')

    assert sorted(data["thing"]["values"], key=str) == sorted(answered, key=str)


# --- keys ---------------------------------------------------------------------------------------------------------


async def test_a_field_that_only_the_key_holds_is_read_from_it(serve: Serve) -> None:
    sdl = f"""{TABLE}
    type Shipment @node(partition: "SITE#{{site}}", sort: "{{day}}#{{status}}#{{number:05}}#{{urgent}}") {{
      site: ID!  day: Date!  status: Status!  number: Int!  urgent: Boolean!  note: String
    }} enum Status {{ OPEN OPENED }}"""
    served = await serve(sdl, [{"pk": s("SITE#x#y"), "sk": s("2022-07-19#OPENED#00042#true"), "note": s("n")}])

    data = await served.data('{ shipment(site: "x#y") { site day status number urgent note } }')

    assert data["shipment"] == {
        "site": "x#y",
        "day": "2022-07-19",
        "status": "OPENED",
        "number": 42,
        "urgent": True,
        "note": "n",
    }


async def test_the_attribute_goes_before_the_key(serve: Serve) -> None:
    served = await serve(model("name: String"), [thing(number=s("one"))])

    assert await served.data('{ thing(number: "1") { number } }') == {"thing": {"number": "one"}}


async def test_a_field_that_only_an_indexs_key_holds_is_read_from_it(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "pk")
      @index(name: "byShelf", partitionKey: "gsi", sortKey: "gsi sort")
    type Book @node(partition: "BOOK#{number}")
      @indexed(by: "byShelf", partition: "SHELF#{shelf}", sort: "{year}-{title}") {
      number: ID!  shelf: ID  year: Int  title: String
    }
    type Query { books(shelf: ID!): [Book!]! @find }"""
    served = await serve(sdl, [{"pk": s("BOOK#1"), "gsi": s("SHELF#9"), "gsi sort": s("1969-Slaughterhouse-5")}])

    data = await served.data('{ books(shelf: "9") { nodes { number shelf year title } } book(number: "1") { title } }')

    assert data["books"]["nodes"] == [{"number": "1", "shelf": "9", "year": 1969, "title": "Slaughterhouse-5"}]
    assert data["book"] == {"title": "Slaughterhouse-5"}


async def test_what_a_key_holds_with_loss_comes_from_its_attribute(serve: Serve) -> None:
    sdl = f"""{TABLE} type Store @node(partition: "{{number}}", sort: "store.{{name:lower}}.{{opened:epoch}}") {{
      number: ID!  name: String!  opened: DateTime!
    }}"""
    item = {"pk": s("1"), "sk": s("store.acme.1658253598"), "name": s("ACME"), "opened": s("2022-07-19T17:59:58.250Z")}
    served = await serve(sdl, [item, {"pk": s("2"), "sk": s("store.other.0000000000")}])

    data = await served.data('{ a: store(number: "1") { name opened } b: store(number: "2") { name opened } }')

    assert data["a"] == {"name": "ACME", "opened": "2022-07-19T17:59:58.250Z"}
    # Without the attribute the key is all that is known of it.
    assert data["b"] == {"name": "other", "opened": "1970-01-01T00:00:00Z"}


async def test_number_keys_are_numbers(serve: Serve) -> None:
    sdl = f"""{TABLE} type Reading @node(partition: "{{sensor}}", sort: "{{second}}") {{
      sensor: Int!  second: Decimal!  value: Float
    }}
    input Seconds {{ from: Decimal  to: Decimal }}
    type Query {{ readings(sensor: Int!, second: Seconds): [Reading!]! @find }}"""
    items = [{"pk": n(7), "sk": n(second), "value": n(second * 2)} for second in (-1.5, 2, 10, 100.25)]
    served = await serve(sdl, items)

    data = await served.data(
        """{ readings(sensor: 7, second: { from: "-1.5", to: "10" }) { nodes { id second value } }
        reading(sensor: 7, second: "100.25") { sensor second } }"""
    )

    nodes = data["readings"]["nodes"]
    assert [(node["second"], node["value"]) for node in nodes] == [("-1.5", -3.0), ("2", 4.0), ("10", 20.0)]
    assert data["reading"] == {"sensor": 7, "second": "100.25"}
    again = await served.data("query ($id: ID!) { node(id: $id) { ... on Reading { value } } }", {"id": nodes[0]["id"]})
    assert again == {"node": {"value": -3.0}}


async def test_attributes_may_have_any_name(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "follower#", sortKey: "GSI1-PK.[0]")
      @index(name: "by.size-1", partitionKey: "Größe in cm", sortKey: "#:s")
    type Thing @node(partition: "T#{number}", sort: "x") {
      number: ID!
      size: Int @attribute(name: "Größe in cm")
      made: Date @attribute(name: "#:s")
      note: String @attribute(name: "💶 {note} AND #n = :v")
    }
    type Query { things(size: Int!): [Thing!]! @find }"""
    served = await serve(
        sdl,
        [
            {
                "follower#": s(f"T#{day}"),
                "GSI1-PK.[0]": s("x"),
                "Größe in cm": n(5),
                "#:s": s(f"2022-07-{day}"),
                "💶 {note} AND #n = :v": s(f"note {day}"),
            }
            for day in (10, 11, 12)
        ],
    )

    data = await served.data(
        """{ things(size: 5, where: { made: { gt: "2022-07-10" }, note: { contains: "2" } }) {
        nodes { number note } } }"""
    )

    assert data == {"things": {"nodes": [{"number": "12", "note": "note 12"}]}}


async def test_composite_keys_are_read_at_every_level(serve: Serve) -> None:
    sdl = f"""{TABLE} type Place @node(partition: "{{country}}", sort: "{{state}}#{{city}}#{{street}}") {{
      country: ID!  state: String!  city: String!  street: String!
    }}
    type Query {{ places(country: ID!, state: String, city: String): [Place!]! @find }}"""
    places = ["CA#LA#1", "CA#LA#2", "CA#LAX#1", "WA#SEA#1"]
    served = await serve(sdl, [{"pk": s("US"), "sk": s(place)} for place in places])

    data = await served.data(
        """{ all: places(country: "US") { totalCount } ca: places(country: "US", state: "CA") { totalCount }
        la: places(country: "US", state: "CA", city: "LA") { nodes { city street } }
        sea: places(country: "US", city: "SEA") { nodes { state } }
        place(country: "US", state: "WA", city: "SEA", street: "1") { street } }"""
    )

    assert (data["all"]["totalCount"], data["ca"]["totalCount"]) == (4, 3)
    assert data["la"]["nodes"] == [{"city": "LA", "street": "1"}, {"city": "LA", "street": "2"}]
    assert data["sea"]["nodes"] == [{"state": "WA"}]
    assert data["place"] == {"street": "1"}


async def test_a_table_may_have_no_sort_key(serve: Serve) -> None:
    sdl = """extend schema @table(name: "users", partitionKey: "id")
    type User @node(partition: "{number}") { number: ID! @attribute(name: "id")  name: String }
    type Query { users: [User!]! @find(scan: true) }"""
    served = await serve(sdl, [{"id": s(str(number)), "name": s(f"n{number}")} for number in range(3)])

    data = await served.data('{ user(number: "1") { id name } users { nodes { number } } }')
    again = await served.data(
        "query ($id: ID!) { node(id: $id) { ... on User { number } } }", {"id": data["user"]["id"]}
    )

    assert data["user"]["name"] == "n1"
    assert sorted(user["number"] for user in data["users"]["nodes"]) == ["0", "1", "2"]
    assert again == {"node": {"number": "1"}}


# --- what is not as declared --------------------------------------------------------------------------------------

WRONG = [
    ("Int", s("seven"), "Int", "S"),
    ("Int", n("7.5"), "Int", "N"),
    ("String", n("7"), "String", "N"),
    ("Boolean", s("true"), "Boolean", "S"),
    ("Date", s("19/07/2022"), "Date", "S"),
    ("DateTime", s("yesterday"), "DateTime", "S"),
    ("Colour", s("GREEN"), "Colour", "S"),
    ("[Int!]", n("7"), "[Int!]", "N"),
    ("Part", s("part"), "Part", "S"),
    ("Part", {"M": {"a": s("x")}}, "Part", "M"),
]


@pytest.mark.parametrize(("type_", "stored", "declared", "letter"), WRONG, ids=str)
async def test_a_wrong_value_is_an_error_in_its_place_and_leaves_its_siblings(
    serve: Serve, type_: str, stored: Any, declared: str, letter: str
) -> None:
    sdl = model(f"value: {type_}  other: String", "type Part { a: Int }  enum Colour { RED }")
    served = await serve(sdl, [thing(value=stored, other=s("fine"))])
    below = " { a }" if type_ == "Part" else ""

    body = await served(f'{{ thing(number: "1") {{ value{below} other }} }}')

    assert body["data"] == {"thing": {"value": None, "other": "fine"}}
    (error,) = body["errors"]
    assert error["path"] == ["thing", "value"]
    assert error["extensions"]["code"] == "BAD_ITEM_VALUE"
    assert f"Thing.value is declared {declared}" in error["message"]
    assert f"got type {letter}" in error["message"]
