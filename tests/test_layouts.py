"""Tables that others made and filled: their traps, each of which would be met without care, and their freedoms."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import boto3
import pytest

from graph.errors import ModelError
from graph.requests import Item
from resolvers.schema import print_sdl
from resolvers.sdl import compile_model
from tests.conftest import BANANAS, ROOT, Serve, example_items

ORDER_ENTRY = (ROOT / "examples/order-entry/schema.graphql").read_text()
B2B = (ROOT / "examples/b2b/schema.graphql").read_text()


def item(**attributes: Any) -> Item:
    """Write an item of texts and numbers as DynamoDB's JSON."""
    return {
        name: {"N": str(value)} if isinstance(value, (int, Decimal)) else {"S": value}
        for name, value in attributes.items()
    }


# --- filled by plain boto3 code -----------------------------------------------------------------------------------


@pytest.fixture
def boto3_table(engine: str) -> Any:
    """Plain boto3: a function from a table's name to the resource that writes to it."""
    resource = boto3.resource(
        "dynamodb", endpoint_url=engine, region_name="eu-central-1", aws_access_key_id="local",
        aws_secret_access_key="local",
    )  # fmt: skip
    yield resource.Table
    resource.meta.client.close()


async def test_bananas_written_by_boto3_are_served(serve: Serve, boto3_table: Any) -> None:
    served = await serve(BANANAS.read_text())
    table = boto3_table(served.table)
    own = {"Tonnage": Decimal("12.5"), "Flags": {"a", "b"}, "Log": [{"at": "dock"}], "Raw": b"\x00"}
    table.put_item(Item={"objectId": "CONTAINER_1", "relatedObjectId": "CONTAINER_1", "Operator": "Line", **own})
    table.put_item(Item={"objectId": "CONTAINER_1", "relatedObjectId": "PALLET_7", "LinkedDatetime": 1658253598, **own})
    table.put_item(Item={"objectId": "PALLET_7", "relatedObjectId": "PALLET_7", "Origin": None, **own})
    table.put_item(Item={"objectId": "CONTAINER_1", "relatedObjectId": "AUDIT#2022"})

    data = await served.data(
        '{ container(number: "1") { operator pallets { totalCount edges {'
        "    linkedDatetime linkedBy node { number origin } } } }"
        '  pallet(number: "7") { container { number } } }'
    )

    assert data == {
        "container": {
            "operator": "Line",
            "pallets": {
                "totalCount": 1,
                "edges": [
                    {
                        "linkedDatetime": "2022-07-19T17:59:58Z",
                        "linkedBy": None,
                        "node": {"number": "7", "origin": None},
                    }
                ],
            },
        },
        "pallet": {"container": {"number": "1"}},
    }


async def test_order_entry_written_by_boto3_is_served(serve: Serve, boto3_table: Any) -> None:
    served = await serve(ORDER_ENTRY)
    table = boto3_table(served.table)
    with table.batch_writer() as batch:
        batch.put_item(
            Item={"PK": "OE-ORDER1", "SK": "CUSTOMER1", "Data": "OPEN-2018-01-12", "Shard": "3", "Note": {"by": "me"}}
        )
        batch.put_item(
            Item={"PK": "OE-ORDER1", "SK": "PRODUCT1", "Data": "OPEN-2018-01-12", "quantity": 2, "Tags": {1, 2}}
        )
        batch.put_item(
            Item={"PK": "OE-CUSTOMER1", "SK": "EMPLOYEE-9", "Data": "CUSTOMER-Acme Inc.", "Type": "Customer"}
        )

    data = await served.data(
        '{ orders(status: OPEN, date: { from: "2018-01-01" }) { nodes {'
        "  number customer { name } items { nodes { quantity product { number } } } } } }"
    )

    (order,) = data["orders"]["nodes"]
    assert order == {
        "number": "1",
        "customer": {"name": "Acme Inc."},
        "items": {"nodes": [{"quantity": 2, "product": {"number": "1"}}]},
    }


async def test_b2b_written_by_boto3_is_served(serve: Serve, boto3_table: Any) -> None:
    served = await serve(B2B)
    table = boto3_table(served.table)
    table.put_item(Item={"id": "001", "type": "customer.joey.zhao", "businessId": "002", "vip": True})
    table.put_item(Item={"id": "customer#001", "type": "store#004", "storeName": "Melbourne", "seen": Decimal(3)})
    table.put_item(Item={"id": "004", "type": "store.melbourne", "businessId": "002"})

    data = await served.data(
        '{ customer(number: "001") { firstName stores { nodes { storeName } } } store(number: "004") { storeName } }'
    )

    # Names that only the key holds are read from it, in the lower case that it keeps.
    assert data == {
        "customer": {"firstName": "joey", "stores": {"nodes": [{"storeName": "Melbourne"}]}},
        "store": {"storeName": "melbourne"},
    }


# --- keys that look alike -----------------------------------------------------------------------------------------


NOTES = """
extend schema @table(name: "notes", partitionKey: "pk", sortKey: "sk")
type Shop @node(partition: "{number}", sort: "store") {
  number: ID!
  name: String
  notes: [Note!]! @relationship
}
type Note @node(partition: "{shop.partition}", sort: "store#{number}") { shop: Shop!  number: ID!  text: String }
"""


async def test_a_literal_reaches_to_its_separator(serve: Serve) -> None:
    """`begins_with "store"` alone would take the note `store#004` for the shop."""
    served = await serve(NOTES, [item(pk="1", sk="store#004", text="note")])

    missing = await served.data('{ shop(number: "1") { name } }')
    await served.put([item(pk="1", sk="store", name="Corner")])
    found = await served.data('{ shop(number: "1") { name notes { nodes { number text } } } }')

    assert missing == {"shop": None}
    assert found == {"shop": {"name": "Corner", "notes": {"nodes": [{"number": "004", "text": "note"}]}}}


async def test_a_nodes_own_item_is_not_among_its_edges(serve: Serve) -> None:
    """With one type at both ends, the item (PERSON_1, PERSON_1) has the shape of an edge from the node to itself."""
    people = """
    extend schema @table(name: "people", partitionKey: "pk", sortKey: "sk")
      @index(name: "back", partitionKey: "sk", sortKey: "pk")
    type Person @node(key: "PERSON_{number}") {
      number: ID!
      follows: [Person!]! @relationship(through: "Follow", from: "one")
      followers: [Person!]! @relationship(through: "Follow", from: "other")
    }
    type Follow @edge(partition: "{one}", sort: "{other}") { one: Person!  other: Person!  since: String }
    """
    rows = [item(pk=f"PERSON_{one}", sk=f"PERSON_{other}") for one, other in ("11", "12", "13", "22", "21", "33")]
    served = await serve(people, rows)

    data = await served.data(
        '{ person(number: "1") { follows(first: 2) { totalCount nodes { number } pageInfo { hasNextPage } }'
        "  followers { nodes { number } } } }"
    )

    assert data["person"] == {
        "follows": {"totalCount": 2, "nodes": [{"number": "2"}, {"number": "3"}], "pageInfo": {"hasNextPage": False}},
        "followers": {"nodes": [{"number": "2"}]},
    }


async def test_one_number_names_a_node_of_each_type(serve: Serve) -> None:
    rows = [item(objectId=key, relatedObjectId=key, Operator=key, Origin=key) for key in ("CONTAINER_1", "PALLET_1")]
    served = await serve(BANANAS.read_text(), rows)

    data = await served.data(
        '{ container(number: "1") { operator } pallet(number: "1") { origin } box(number: "1") { number } }'
    )

    assert data == {"container": {"operator": "CONTAINER_1"}, "pallet": {"origin": "PALLET_1"}, "box": None}


async def test_an_item_without_discriminator_is_of_the_type_that_its_key_fits(serve: Serve) -> None:
    served = await serve(ORDER_ENTRY, [item(PK="OE-ORDER1", SK="CUSTOMER1", Data="OPEN-2018-01-12")])

    data = await served.data('{ order(number: "1") { status } }')

    assert data == {"order": {"status": "OPEN"}}


async def test_an_item_without_discriminator_that_fits_several_types_is_of_none(serve: Serve) -> None:
    """(HR-EMPLOYEE-1, TITLE-Clerk) may be a job holder, or an employee of that name."""
    row = item(PK="HR-EMPLOYEE-1", SK="TITLE-Clerk", Data="2018-01-08")
    served = await serve(ORDER_ENTRY, [row])

    undecided = await served.data('{ employee(number: "1") { name } jobHolders(title: "Clerk") { nodes { since } } }')
    await served.put([{**row, **item(Type="JobHolder")}])
    decided = await served.data('{ employee(number: "1") { name } jobHolders(title: "Clerk") { nodes { since } } }')

    assert undecided == {"employee": None, "jobHolders": {"nodes": []}}
    assert decided == {"employee": None, "jobHolders": {"nodes": [{"since": "2018-01-08"}]}}


async def test_two_edge_types_between_the_same_two_types_are_kept_apart(serve: Serve) -> None:
    crew = """
    extend schema @table(name: "crew", partitionKey: "pk", sortKey: "sk")
    type Ship @node(key: "SHIP_{number}") {
      number: ID!
      captains: [Sailor!]! @relationship(through: "Command")
      cooks: [Sailor!]! @relationship(through: "Galley")
    }
    type Sailor @node(key: "SAILOR_{number}") { number: ID! }
    type Command @edge(partition: "{ship}", sort: "CAPTAIN#{sailor}") { ship: Ship!  sailor: Sailor!  since: String }
    type Galley @edge(partition: "{ship}", sort: "COOK#{sailor}") { ship: Ship!  sailor: Sailor!  stars: Int }
    """
    served = await serve(
        crew,
        [
            item(pk="SHIP_1", sk="SHIP_1"),
            item(pk="SHIP_1", sk="CAPTAIN#SAILOR_1", since="2001"),
            item(pk="SHIP_1", sk="COOK#SAILOR_1", stars=3),
            item(pk="SHIP_1", sk="COOK#SAILOR_2", stars=1),
        ],
    )

    data = await served.data(
        '{ ship(number: "1") { captains { edges { since node { number } } }'
        "  cooks { edges { stars node { number } } } } }"
    )

    assert data["ship"] == {
        "captains": {"edges": [{"since": "2001", "node": {"number": "1"}}]},
        "cooks": {"edges": [{"stars": 3, "node": {"number": "1"}}, {"stars": 1, "node": {"number": "2"}}]},
    }


@pytest.mark.parametrize("name", ["Edge", "Order", "Model", "Type", "Id", "Item", "Filter", "Match_", "Result"])
async def test_a_users_type_may_be_named_like_a_word_of_the_api(name: str, serve: Serve) -> None:
    sdl = f"""
    extend schema @table(name: "words", partitionKey: "pk", sortKey: "sk")
    type {name} @node(key: "X_{{number}}") {{ number: ID!  others: [Other!]! @relationship }}
    type Other @node(partition: "{{owner.partition}}", sort: "O_{{number}}") {{ owner: {name}!  number: ID! }}
    """
    served = await serve(sdl, [item(pk="X_1", sk="X_1"), item(pk="X_1", sk="O_2")])
    field = name[:1].lower() + name[1:]

    data = await served.data(f'{{ {field}(number: "1") {{ __typename others {{ nodes {{ owner {{ number }} }} }} }} }}')

    assert data == {field: {"__typename": name, "others": {"nodes": [{"owner": {"number": "1"}}]}}}


def test_union_members_whose_keys_look_alike_are_refused() -> None:
    sdl = """
    extend schema @table(name: "pets", partitionKey: "pk", sortKey: "sk")
    type Cat @node(partition: "CAT_{number}", sort: "self", ref: "PET_{number}") { number: ID! }
    type Dog @node(partition: "DOG_{number}", sort: "self", ref: "PET_{number}") { number: ID! }
    union Pet = Cat | Dog
    type Owner @node(key: "OWNER_{number}") { number: ID!  pets: [Pet!]! @relationship }
    type Keeping @edge(partition: "{owner}", sort: "{pet}") { owner: Owner!  pet: Pet! }
    """

    with pytest.raises(ModelError, match=r"a Cat by .* and a Dog by .* which may look alike"):
        compile_model(sdl)


# --- what the model promises --------------------------------------------------------------------------------------


def test_an_order_that_no_index_gives_is_refused_at_start() -> None:
    sdl = BANANAS.read_text().replace(
        "containers: [", "containersOf(operator: String!): [Container!]! @find\n  containers: ["
    )

    with pytest.raises(
        ModelError, match=r'`Query\.containersOf`: no index .*@index\(name: "…", partitionKey: "Operator"'
    ):
        compile_model(sdl)


async def test_a_boolean_in_a_template_is_text(serve: Serve) -> None:
    sdl = """
    extend schema @table(name: "flags", partitionKey: "pk", sortKey: "sk")
    type Flag @node(partition: "FLAGS", sort: "{active}#{number}", ref: "{active}#{number}") {
      number: ID!
      active: Boolean!
    }
    type Query { flags(active: Boolean): [Flag!]! @find }
    """
    served = await serve(sdl, [item(pk="FLAGS", sk="true#1"), item(pk="FLAGS", sk="false#2")])

    data = await served.data("{ flags(active: true) { nodes { number active } } }")

    assert data == {"flags": {"nodes": [{"number": "1", "active": True}]}}
    assert served.sent[0][1]["ExpressionAttributeValues"][":v1"] == {"S": "true#"}


def without_stores(sdl: str) -> str:
    """Give the business model as it was before stores."""
    kept = re.sub(r"^type (?:Store|Management) .*?}$", "", sdl, flags=re.DOTALL | re.MULTILINE)
    return kept.replace("stores: [Store!]! @relationship", "").replace(" | Store", "")


async def test_a_new_type_is_served_from_the_table_as_it_is(serve: Serve) -> None:
    old = await serve(without_stores(B2B), example_items("b2b", whole=False))
    new = await serve(B2B, table=old.table)

    data = await new.data('{ business(number: "002") { stores { nodes { storeName } } } }')

    assert "Store" not in print_sdl(old.api.model)
    assert data == {"business": {"stores": {"nodes": [{"storeName": "Melbourne"}, {"storeName": "Sydney"}]}}}


async def test_what_a_copy_does_not_hold_is_fetched(serve: Serve) -> None:
    rows = [
        item(id="001", type="customer.joey.zhao", firstName="Joey", lastName="Zhao"),
        item(id="store#004", type="customer#001", firstName="Joey"),
        item(id="004", type="store.melbourne"),
    ]
    served = await serve(B2B, rows)
    query = '{ store(number: "004") { customers { nodes { FIELDS } } } }'

    held = await served.data(query.replace("FIELDS", "number firstName"))
    requests_when_held = len(served.sent)
    fetched = await served.data(query.replace("FIELDS", "number firstName lastName"))

    assert held["store"]["customers"]["nodes"] == [{"number": "001", "firstName": "Joey"}]
    assert fetched["store"]["customers"]["nodes"] == [{"number": "001", "firstName": "Joey", "lastName": "Zhao"}]
    assert (requests_when_held, len(served.sent)) == (2, 3)


def test_25_types_with_60_relationships_compile() -> None:
    model = compile_model(large_model(25, 60))

    assert len(model.nodes) == 25
    assert len(model.relationships) == 60


def large_model(types: int, relationships: int) -> str:
    """Write a model of so many types, each linked to others through edge types of its own."""
    declared = [
        'extend schema @table(name: "large", partitionKey: "pk", sortKey: "sk")',
        '  @index(name: "back", partitionKey: "sk", sortKey: "pk")',
    ]
    fields: dict[int, list[str]] = {number: [] for number in range(types)}
    for number in range(relationships // 2):
        one, other = number % types, (number * 7 + 1 + number // types) % types
        if one == other:
            other = (other + 1) % types
        fields[one].append(f'  to{number}: [T{other}!]! @relationship(through: "E{number}")')
        fields[other].append(f'  from{number}: [T{one}!]! @relationship(through: "E{number}")')
        declared.append(
            f'type E{number} @edge(partition: "{{one}}", sort: "E{number}#{{other}}") '
            f'@indexed(by: "back", partition: "E{number}#{{other}}") {{ one: T{one}!  other: T{other}!  note: String }}'
        )
    for number, links in fields.items():
        declared.append(f'type T{number} @node(key: "T{number}_{{number}}") {{\n  number: ID!\n  name: String')
        declared += [*links, "}"]
    return "\n".join(declared)
