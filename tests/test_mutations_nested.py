"""Items created along with others: nodes that references name, and what hangs on a new node."""

from __future__ import annotations

import pytest

from tests.conftest import BANANAS, ROOT, Serve, Served
from tests.written import actions, code, codes, item, s, stored

ORDERS = (ROOT / "examples/order-entry/schema.graphql").read_text()
B2B = (ROOT / "examples/b2b/schema.graphql").read_text()
LINKED = 'linkedDatetime: "2022-07-19T17:59:58Z"'


@pytest.fixture
async def bananas(serve: Serve) -> Served:
    return await serve(BANANAS.read_text())


async def test_a_tree_is_created_in_one_transaction(bananas: Served) -> None:
    data = await bananas.data(
        f"""mutation {{ createContainer(input: {{ number: "1", pallets: [
          {{ {LINKED}, pallet: {{ create: {{ number: "1", origin: "x", boxes: [
            {{ {LINKED}, box: {{ create: {{ number: "1" }} }} }}, {{ {LINKED}, box: {{ create: {{ number: "2" }} }} }}
          ] }} }} }},
          {{ {LINKED}, linkedBy: "Ann", pallet: {{ create: {{ number: "2" }} }} }}
        ] }}) {{ container {{ number
          pallets {{ edges {{ linkedBy node {{ origin boxes {{ totalCount }} }} }} }} }} }} }}"""
    )

    assert data["createContainer"]["container"]["pallets"]["edges"] == [
        {"linkedBy": None, "node": {"origin": "x", "boxes": {"totalCount": 2}}},
        {"linkedBy": "Ann", "node": {"origin": None, "boxes": {"totalCount": 0}}},
    ]
    assert bananas.operations.count("TransactWriteItems") == 1
    assert actions(bananas) == ["Put"] * 9
    assert set(await stored(bananas)) == {
        ("CONTAINER_1", "CONTAINER_1"),
        *((f"PALLET_{number}", f"PALLET_{number}") for number in "12"),
        *((f"BOX_{number}", f"BOX_{number}") for number in "12"),
        *(("CONTAINER_1", f"PALLET_{number}") for number in "12"),
        *(("PALLET_1", f"BOX_{number}") for number in "12"),
    }


async def test_a_node_is_linked_to_ones_that_are_there_and_to_new_ones(bananas: Served) -> None:
    await bananas.data('mutation { createPallet(input: { number: "7", origin: "x" }) { __typename } }')
    ask = "{ container { pallets { nodes { number origin } } } }"

    data = await bananas.data(
        f"""mutation {{ createContainer(input: {{ number: "1", pallets: [
          {{ {LINKED}, pallet: {{ number: "7" }} }},
          {{ {LINKED}, pallet: {{ create: {{ number: "8" }} }} }} ] }}) {ask} }}"""
    )

    nodes = data["createContainer"]["container"]["pallets"]["nodes"]
    assert nodes == [{"number": "7", "origin": "x"}, {"number": "8", "origin": None}]


async def test_a_fault_below_says_where_it_is_and_nothing_is_written(bananas: Served) -> None:
    await bananas.data('mutation { createPallet(input: { number: "1" }) { __typename } }')
    before = await stored(bananas)
    query = f"""mutation ($second: PalletReference!) {{ createContainer(input: {{ number: "1", pallets: [
      {{ {LINKED}, pallet: {{ number: "1" }} }}, {{ {LINKED}, pallet: $second }}
      ] }}) {{ container {{ number }} }} }}"""

    for second, expected, where in (
        ({"number": "9"}, "NOT_FOUND", "input.pallets.1.pallet"),
        ({"create": {"number": "1"}}, "WRITE_REFUSED", None),
        ({"number": "1"}, "WRITE_REFUSED", "input.pallets.1"),
        ({"create": {"number": ""}}, "BAD_KEY_VALUE", None),
        ({"number": "1", "create": {"number": "2"}}, "BAD_INPUT", None),
    ):
        error = await bananas.error(query, {"second": second})
        assert error["extensions"]["code"] == expected, second
        if where is not None:
            assert code(error) == (expected, where)
        assert await stored(bananas) == before


async def test_what_is_created_along_may_be_there_already(bananas: Served) -> None:
    await bananas.data('mutation { createBox(input: { number: "1" }) { __typename } }')

    error = await bananas.error(
        f"""mutation {{ createPallet(input: {{ number: "1", boxes: [
          {{ {LINKED}, box: {{ create: {{ number: "1" }} }} }} ] }}) {{ pallet {{ number }} }} }}"""
    )

    assert code(error) == ("ALREADY_EXISTS", "input.boxes.0.box.create")


async def test_a_chain_of_references_is_created_from_its_end(serve: Serve) -> None:
    served = await serve(ORDERS)

    data = await served.data(
        """mutation { createOrder(input: { number: "1", status: OPEN, date: "2022-07-19",
          accountRep: { create: { number: "5", name: "Ann" } },
          customer: { create: { number: "3", name: "Bo", accountRep: { create: { number: "6", name: "Cy" } } } },
          items: [{ quantity: 2, product: { create: { number: "9", name: "Vise" } } }]
        }) { order { status customer { name accountRep { name } } accountRep { name }
             items { edges { node { quantity product { name } } } } } } }"""
    )

    assert data["createOrder"]["order"] == {
        "status": "OPEN",
        "customer": {"name": "Bo", "accountRep": {"name": "Cy"}},
        "accountRep": {"name": "Ann"},
        "items": {"edges": [{"node": {"quantity": 2, "product": {"name": "Vise"}}}]},
    }
    ordered = (await stored(served))["OE-ORDER1", "PRODUCT9"]
    assert 0 <= int(ordered["Shard"]["S"]) < 15
    assert {name: value for name, value in ordered.items() if name != "Shard"} == {
        "PK": s("OE-ORDER1"),
        "SK": s("PRODUCT9"),
        "Type": s("OrderItem"),
        "Data": s("OPEN-2022-07-19"),
        "quantity": {"N": "2"},
    }


async def test_index_keys_behind_a_reference_follow_the_node(serve: Serve) -> None:
    served = await serve(ORDERS)
    await served.data(
        """mutation { createOrder(input: { number: "1", status: OPEN, date: "2022-07-19",
          accountRep: { create: { number: "5", name: "Ann" } },
          customer: { create: { number: "3", name: "Bo", accountRep: { create: { number: "6", name: "Cy" } } } },
          items: [{ quantity: 2, product: { create: { number: "9", name: "Vise" } } }] }) { __typename }
        createRepOrder(input: { order: { number: "1" }, accountRep: { number: "5" } }) { __typename } }"""
    )
    shards = {key: one["Shard"] for key, one in (await stored(served)).items() if "Shard" in one}

    data = await served.data(
        'mutation { updateOrder(key: { number: "1" }, set: { status: SHIPPED }) { order { status date } } }'
    )

    assert data["updateOrder"]["order"] == {"status": "SHIPPED", "date": "2022-07-19"}
    found = await stored(served)
    for key in (("OE-ORDER1", "CUSTOMER3"), ("OE-ORDER1", "PRODUCT9"), ("OE-ORDER1", "EMPLOYEE-5")):
        assert found[key]["Data"] == s("SHIPPED-2022-07-19")
    # A random shard is drawn once: what stays in its partition is not moved about.
    assert {key: one["Shard"] for key, one in found.items() if "Shard" in one} == shards


REQUIRED = """extend schema
  @table(name: "passports", partitionKey: "pk", sortKey: "sk")
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type Person @node(key: "PERSON#{name}") { name: ID!  passport: Passport! @relationship }
type Passport @node(key: "PASSPORT#{number}") { number: ID! }
type Issue @edge(partition: "{person}", sort: "{passport}") { person: Person!  passport: Passport!  on: Date }
"""


async def test_a_node_is_created_with_the_relationship_that_it_needs(serve: Serve) -> None:
    served = await serve(REQUIRED)

    error = await served.error('mutation { createPerson(input: { name: "Ann" }) { person { name } } }')
    assert code(error) == ("REQUIRED", "input.passport")
    assert await stored(served) == {}

    data = await served.data(
        """mutation { createPerson(input: { name: "Ann", passport: { on: "2022-07-19",
        passport: { create: { number: "1" } } } }) { person { passport { number } } } }"""
    )
    assert data["createPerson"]["person"] == {"passport": {"number": "1"}}


async def test_what_a_node_needs_goes_only_when_something_takes_its_place(serve: Serve) -> None:
    served = await serve(
        REQUIRED,
        [
            item("PERSON#Ann", "PERSON#Ann"),
            item("PERSON#Ann", "PASSPORT#1"),
            item("PASSPORT#1", "PASSPORT#1"),
            item("PASSPORT#2", "PASSPORT#2"),
        ],
    )
    before = await stored(served)
    delete = 'deleteIssue(key: { person: { name: "Ann" }, passport: { number: "1" } }) { __typename }'
    create = 'createIssue(input: { person: { name: "Ann" }, passport: { number: "2" } }) { __typename }'

    assert (await served.error(f"mutation {{ {delete} }}"))["extensions"]["code"] == "REQUIRED"
    error = await served.error('mutation { deletePassport(key: { number: "1" }, cascade: true) { __typename } }')
    assert error["extensions"]["code"] == "REQUIRED"
    assert await stored(served) == before

    await served.data(f"mutation @transaction {{ {delete} {create} }}")
    assert ("PERSON#Ann", "PASSPORT#2") in await stored(served)
    await served.data(
        """mutation { updateIssue(key: { person: { name: "Ann" }, passport: { number: "2" } },
        set: { passport: { number: "1" } }) { __typename } }"""
    )
    assert ("PERSON#Ann", "PASSPORT#1") in await stored(served)
    await served.data('mutation { deletePerson(key: { name: "Ann" }, cascade: true) { __typename } }')
    assert set(await stored(served)) == {("PASSPORT#1", "PASSPORT#1"), ("PASSPORT#2", "PASSPORT#2")}


async def test_who_leaves_a_node_without_what_it_needs_is_to_blame(serve: Serve) -> None:
    served = await serve(REQUIRED)

    body = await served(
        """mutation @transaction { a: createPassport(input: { number: "1" }) { __typename }
        b: createPerson(input: { name: "Ann" }) { __typename }
        c: createPassport(input: { number: "2" }) { __typename } }"""
    )

    assert codes(body) == {
        "a": ("ROLLED_BACK", None),
        "b": ("REQUIRED", "input.passport"),
        "c": ("ROLLED_BACK", None),
    }


async def test_an_upsert_writes_what_hangs_on_the_node_as_well(bananas: Served) -> None:
    query = f"""mutation ($origin: String, $by: String) {{ upsertContainer(input: {{ number: "1", pallets: [
      {{ {LINKED}, linkedBy: $by, pallet: {{ number: "7" }} }} ] }}) {{ container {{ number }} }}
      upsertPallet(input: {{ number: "7", origin: $origin }}) {{ pallet {{ origin }} }} }}"""
    await bananas.data('mutation { createPallet(input: { number: "7" }) { __typename } }')

    await bananas.data(query, {"origin": "a", "by": "Ann"})
    await bananas.data(query, {"origin": "b", "by": "Bob"})

    found = await stored(bananas)
    assert found["CONTAINER_1", "PALLET_7"]["LinkedBy"] == s("Bob")
    assert found["PALLET_7", "PALLET_7"]["Origin"] == s("b")
    assert len(found) == 3


async def test_a_union_takes_any_member_and_creates_it(serve: Serve) -> None:
    served = await serve(B2B)

    await served.data(
        """mutation { createTagging(input: { tag: { name: "new" },
        subject: { business: { create: { number: "1", businessName: "Acme" } } } }) { __typename } }"""
    )

    assert (await stored(served))["tag#new", "business#1"] == {
        "id": s("tag#new"),
        "type": s("business#1"),
        "businessName": s("Acme"),
    }
    data = await served.data('{ tagged(tag: ["new"]) { nodes { ... on Business { businessName } } } }')
    assert data == {"tagged": {"nodes": [{"businessName": "Acme"}]}}
    two = '{ business: { number: "1" }, store: { number: "2" } }'
    error = await served.error(
        f'mutation {{ createTagging(input: {{ tag: {{ name: "x" }}, subject: {two} }}) {{ __typename }} }}'
    )
    assert error["extensions"]["code"] == "BAD_INPUT"


async def test_an_update_may_create_the_node_that_a_reference_is_to_name(serve: Serve) -> None:
    served = await serve(B2B)
    await served.data(
        """mutation { createCustomer(input: { number: "1", firstName: "a", lastName: "b"
          business: { create: { number: "2", businessName: "Old" } } }) { __typename } }"""
    )

    data = await served.data(
        """mutation { updateCustomer(key: { number: "1" }, set: { business: { create: {
          number: "3", businessName: "New" } } }) { customer { business { businessName } } } }"""
    )

    assert data["updateCustomer"]["customer"] == {"business": {"businessName": "New"}}
    found = await served.data('{ business(number: "3") { customers { nodes { number } } } }')
    assert found["business"]["customers"]["nodes"] == [{"number": "1"}]


async def test_a_node_that_an_update_would_create_is_not_left_behind_when_it_is_refused(serve: Serve) -> None:
    served = await serve(B2B)

    error = await served.error(
        """mutation { updateCustomer(key: { number: "9" }, set: { business: { create: {
          number: "3", businessName: "New" } } }) { __typename } }"""
    )

    assert error["extensions"]["code"] == "NOT_FOUND"
    assert await stored(served) == {}
