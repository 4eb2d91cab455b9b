"""Mutations of edges: links, their mirrors and copies, and what their nodes count of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import BANANAS, ROOT, Serve, Served
from tests.written import actions, code, item, n, s, stored

B2B = (ROOT / "examples/b2b/schema.graphql").read_text()
ORDERS = (ROOT / "examples/order-entry/schema.graphql").read_text()


@pytest.fixture
async def bananas(serve: Serve) -> Served:
    served = await serve(BANANAS.read_text())
    for type_, number in (("Container", "1"), ("Container", "2"), ("Pallet", "7")):
        await served.data(f'mutation {{ create{type_}(input: {{ number: "{number}" }}) {{ __typename }} }}')
    return served


@pytest.fixture
async def b2b(serve: Serve) -> Served:
    """One business with two customers and a store."""
    served = await serve(B2B)
    await served.data(
        """mutation { createBusiness(input: { number: "1", businessName: "Acme",
          customers: [{ number: "2", firstName: "Ann", lastName: "Ash" },
                      { number: "3", firstName: "Bo", lastName: "Bay" }],
          stores: [{ number: "4", storeName: "Corner" }] }) { business { number } } }"""
    )
    return served


LINK = """mutation ($container: ID!, $by: String) { createPalletLoading(input: {
  container: { number: $container }, pallet: { number: "7" }, linkedDatetime: "2022-07-19T17:59:58Z", linkedBy: $by
}) { palletLoading { linkedBy container { number } pallet { number } } } }"""


async def test_a_link_is_one_transaction_that_checks_both_ends(bananas: Served) -> None:
    data = await bananas.data(LINK, {"container": "1", "by": "Ann"})

    assert data["createPalletLoading"]["palletLoading"] == {
        "linkedBy": "Ann",
        "container": {"number": "1"},
        "pallet": {"number": "7"},
    }
    assert bananas.operations == ["TransactWriteItems"]
    assert actions(bananas) == ["Put", "ConditionCheck", "ConditionCheck"]
    assert (await stored(bananas))["CONTAINER_1", "PALLET_7"] == {
        "objectId": s("CONTAINER_1"),
        "relatedObjectId": s("PALLET_7"),
        "LinkedDatetime": s("2022-07-19T17:59:58Z"),
        "LinkedBy": s("Ann"),
    }


async def test_a_link_is_read_from_both_ends(bananas: Served) -> None:
    await bananas.data(LINK, {"container": "1", "by": "Ann"})

    data = await bananas.data(
        """{ container(number: "1") { pallets { edges { linkedBy node { number } } totalCount } }
        pallet(number: "7") { container { number } } }"""
    )

    assert data == {
        "container": {"pallets": {"edges": [{"linkedBy": "Ann", "node": {"number": "7"}}], "totalCount": 1}},
        "pallet": {"container": {"number": "1"}},
    }


async def test_a_link_to_a_node_that_is_not_there_is_refused(bananas: Served) -> None:
    before = await stored(bananas)

    error = await bananas.error(LINK, {"container": "9"})

    assert code(error) == ("NOT_FOUND", "input.container")
    assert "CONTAINER_9" in error["message"]
    assert await stored(bananas) == before


async def test_a_link_is_made_once(bananas: Served) -> None:
    await bananas.data(LINK, {"container": "1", "by": "Ann"})

    assert code(await bananas.error(LINK, {"container": "1", "by": "Bob"})) == ("ALREADY_EXISTS", "input")


async def test_a_link_is_changed_and_deleted_by_its_ends(bananas: Served) -> None:
    await bananas.data(LINK, {"container": "1", "by": "Ann"})
    key = '{ container: { number: "1" }, pallet: { number: "7" } }'

    await bananas.data(
        f'mutation {{ updatePalletLoading(key: {key}, set: {{ linkedBy: "Bob" }}) {{ palletLoading {{ linkedBy }} }} }}'
    )
    assert (await stored(bananas))["CONTAINER_1", "PALLET_7"]["LinkedBy"] == s("Bob")
    assert bananas.operations == ["TransactWriteItems"]
    data = await bananas.data(f"mutation {{ deletePalletLoading(key: {key}) {{ palletLoading {{ linkedBy }} }} }}")

    assert data["deletePalletLoading"]["palletLoading"] == {"linkedBy": "Bob"}
    assert ("CONTAINER_1", "PALLET_7") not in await stored(bananas)
    assert ("PALLET_7", "PALLET_7") in await stored(bananas)


async def test_a_link_moves_to_another_node(bananas: Served) -> None:
    await bananas.data(LINK, {"container": "1", "by": "Ann"})
    query = """mutation ($to: ID!) { updatePalletLoading(
      key: { container: { number: "1" }, pallet: { number: "7" } }, set: { container: { number: $to } }
    ) { palletLoading { linkedBy container { number } } } }"""

    assert code(await bananas.error(query, {"to": "9"}))[0] == "NOT_FOUND"
    data = await bananas.data(query, {"to": "2"})

    assert data["updatePalletLoading"]["palletLoading"] == {"linkedBy": "Ann", "container": {"number": "2"}}
    found = await stored(bananas)
    assert ("CONTAINER_1", "PALLET_7") not in found
    assert found["CONTAINER_2", "PALLET_7"]["LinkedBy"] == s("Ann")


async def test_a_linked_node_is_deleted_with_its_edges_only(bananas: Served) -> None:
    await bananas.data(LINK, {"container": "1"})
    before = await stored(bananas)
    query = """mutation ($cascade: Boolean) {
      deletePallet(key: { number: "7" }, cascade: $cascade) { pallet { number } } }"""

    error = await bananas.error(query)
    assert code(error)[0] == "HAS_EDGES"
    assert "CONTAINER_1 / PALLET_7" in error["message"]
    assert await stored(bananas) == before

    await bananas.data(query, {"cascade": True})
    assert set(await stored(bananas)) == {("CONTAINER_1", "CONTAINER_1"), ("CONTAINER_2", "CONTAINER_2")}


async def test_a_renamed_node_takes_its_edges_along(bananas: Served) -> None:
    await bananas.data(LINK, {"container": "1", "by": "Ann"})
    await bananas.data(
        """mutation { createBoxLoading(input: { pallet: { number: "7" }, linkedDatetime: "2022-07-19T17:59:58Z",
        box: { create: { number: "8" } } }) { __typename } }"""
    )

    data = await bananas.data(
        """mutation { updatePallet(key: { number: "7" }, set: { number: "70" }) {
        pallet { number container { number } } } }"""
    )

    assert data["updatePallet"]["pallet"] == {"number": "70", "container": {"number": "1"}}
    assert set(await stored(bananas)) == {
        ("CONTAINER_1", "CONTAINER_1"),
        ("CONTAINER_2", "CONTAINER_2"),
        ("CONTAINER_1", "PALLET_70"),
        ("PALLET_70", "PALLET_70"),
        ("PALLET_70", "BOX_8"),
        ("BOX_8", "BOX_8"),
    }


async def test_a_node_is_not_renamed_to_one_that_is_there(bananas: Served) -> None:
    before = await stored(bananas)

    error = await bananas.error(
        'mutation { updateContainer(key: { number: "1" }, set: { number: "2" }) { container { number } } }'
    )

    assert code(error)[0] == "ALREADY_EXISTS"
    assert await stored(bananas) == before


async def test_foreign_attributes_survive_updates_and_moves(bananas: Served) -> None:
    await bananas.put(
        [
            {"objectId": s("CONTAINER_5"), "relatedObjectId": s("CONTAINER_5"), "theirs": {"BOOL": True}},
            {"objectId": s("CONTAINER_5"), "relatedObjectId": s("PALLET_7"), "theirs": n(5)},
        ]
    )

    await bananas.data(
        """mutation { updateContainer(key: { number: "5" }, set: { operator: "x" }) { container { number } }
        again: updateContainer(key: { number: "5" }, set: { number: "6" }) { container { number } } }"""
    )

    found = await stored(bananas)
    assert found["CONTAINER_6", "CONTAINER_6"]["theirs"] == {"BOOL": True}
    assert found["CONTAINER_6", "PALLET_7"]["theirs"] == n(5)
    assert ("CONTAINER_5", "CONTAINER_5") not in found
    assert ("CONTAINER_5", "PALLET_7") not in found


# --- mirrors and copies -------------------------------------------------------------------------------------------

MANAGE = """mutation { createManagement(input: { customer: { number: "2" }, store: { number: "4" } }) {
  management { customer { firstName } store { storeName } } } }"""


async def test_a_mirrored_edge_is_two_items_with_their_copies(b2b: Served) -> None:
    data = await b2b.data(MANAGE)

    assert data["createManagement"]["management"] == {
        "customer": {"firstName": "Ann"},
        "store": {"storeName": "Corner"},
    }
    found = await stored(b2b)
    assert found["customer#2", "store#4"] == {
        "id": s("customer#2"),
        "type": s("store#4"),
        "storeName": s("Corner"),
        "businessId": s("1"),
    }
    assert found["store#4", "customer#2"] == {
        "id": s("store#4"),
        "type": s("customer#2"),
        "firstName": s("Ann"),
        "lastName": s("Ash"),
        "businessId": s("1"),
    }


async def test_copies_follow_the_node_that_they_are_of(b2b: Served) -> None:
    await b2b.data(MANAGE)
    await b2b.data(
        """mutation { createTagging(input: { tag: { name: "old" }, subject: { customer: { number: "2" } } }) {
        __typename } }"""
    )

    await b2b.data(
        """mutation { updateCustomer(key: { number: "2" }, set: { lastName: "ASH" }) { customer { lastName } }
        updateStore(key: { number: "4" }, set: { storeName: "Shop" }) { store { storeName } } }"""
    )

    found = await stored(b2b)
    assert found["store#4", "customer#2"]["lastName"] == s("ASH")
    assert found["tag#old", "customer#2"]["lastName"] == s("ASH")
    assert found["customer#2", "store#4"]["storeName"] == s("Shop")
    assert ("4", "store.shop") in found
    assert ("4", "store.corner") not in found
    data = await b2b.data(
        """{ customer(number: "2") { lastName stores { nodes { storeName } } tags { nodes { name } } }
        store(number: "4") { customers { nodes { lastName } } } }"""
    )
    assert data == {
        "customer": {
            "lastName": "ASH",
            "stores": {"nodes": [{"storeName": "Shop"}]},
            "tags": {"nodes": [{"name": "old"}]},
        },
        "store": {"customers": {"nodes": [{"lastName": "ASH"}]}},
    }


async def test_mirrors_move_with_their_nodes_and_go_with_the_edge(b2b: Served) -> None:
    await b2b.data(MANAGE)

    await b2b.data('mutation { updateCustomer(key: { number: "2" }, set: { number: "20" }) { customer { number } } }')
    found = await stored(b2b)
    assert {"customer#20", "2", "customer#2", "20"} & {part for key in found for part in key} == {"customer#20", "20"}
    assert found["store#4", "customer#20"]["firstName"] == s("Ann")

    await b2b.data(
        """mutation { deleteManagement(key: { customer: { number: "20" }, store: { number: "4" } }) { __typename } }"""
    )
    assert {key for key in await stored(b2b) if "#" in key[0]} == set()


async def test_a_node_that_others_refer_to_is_not_deleted_even_with_cascade(b2b: Served) -> None:
    before = await stored(b2b)

    for cascade in ("", ", cascade: true"):
        error = await b2b.error(f'mutation {{ deleteBusiness(key: {{ number: "1" }}{cascade}) {{ deletedId }} }}')
        assert code(error)[0] == "HAS_EDGES"
        assert await stored(b2b) == before


async def test_references_follow_a_renamed_node(b2b: Served) -> None:
    await b2b.data('mutation { updateBusiness(key: { number: "1" }, set: { number: "10" }) { business { number } } }')

    found = await stored(b2b)
    assert {one["businessId"]["S"] for one in found.values() if "businessId" in one} == {"10"}
    data = await b2b.data('{ business(number: "10") { customers { totalCount } stores { nodes { number } } } }')
    assert data == {"business": {"customers": {"totalCount": 2}, "stores": {"nodes": [{"number": "4"}]}}}


# --- counters -----------------------------------------------------------------------------------------------------

SHELF = """extend schema
  @table(name: "shelves", partitionKey: "pk", sortKey: "sk")
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type Shelf @node(key: "SHELF#{name}") {
  name: ID!  books: [Book!]! @relationship(through: "Standing")  count: Int! @count(of: "books")
  weight: Int @count(of: "books.grams")
  notes: [Note!]! @relationship  noteCount: Int @count(of: "notes")
}
type Book @node(key: "BOOK#{title}") { title: ID!  shelves: [Shelf!]! @relationship(through: "Standing") }
type Standing @edge(partition: "{shelf}", sort: "{book}") { shelf: Shelf!  book: Book!  grams: Int }
type Note @node(partition: "{shelf}", sort: "NOTE#{number:03}") { shelf: Shelf!  number: Int!  text: String }
"""


@pytest.fixture
async def shelves(serve: Serve) -> Served:
    served = await serve(SHELF)
    await served.data(
        """mutation { a: createShelf(input: { name: "a" }) { __typename }
        b: createShelf(input: { name: "b" }) { __typename }
        x: createBook(input: { title: "x" }) { __typename } y: createBook(input: { title: "y" }) { __typename } }"""
    )
    return served


async def counted(served: Served, name: str) -> Any:
    data = await served.data(
        f'{{ shelf(name: "{name}") {{ count weight noteCount books {{ totalCount }} notes {{ totalCount }} }} }}'
    )
    shelf = data["shelf"]
    assert (shelf["count"], shelf["noteCount"]) == (shelf["books"]["totalCount"], shelf["notes"]["totalCount"])
    return shelf["count"], shelf["weight"], shelf["noteCount"]


async def test_counters_follow_links_values_moves_and_deletions(shelves: Served) -> None:
    assert await counted(shelves, "a") == (0, 0, 0)
    link = """mutation ($book: ID!, $grams: Int) {
      createStanding(input: { shelf: { name: "a" }, book: { title: $book }, grams: $grams }) { __typename } }"""
    await shelves.data(link, {"book": "x", "grams": 100})
    assert actions(shelves) == ["Put", "Update", "ConditionCheck"]
    await shelves.data(link, {"book": "y"})
    assert await counted(shelves, "a") == (2, 100, 0)

    change = """mutation ($set: UpdateStandingInput, $more: IncrementStandingInput) {
      updateStanding(key: { shelf: { name: "a" }, book: { title: "x" } }, set: $set, increment: $more) {
      standing { grams } } }"""
    await shelves.data(change, {"set": {"grams": 150}})
    assert await counted(shelves, "a") == (2, 150, 0)
    await shelves.data(change, {"more": {"grams": -20}})
    assert await counted(shelves, "a") == (2, 130, 0)
    await shelves.data(change, {"set": {"shelf": {"name": "b"}}})
    assert (await counted(shelves, "a"), await counted(shelves, "b")) == ((1, 0, 0), (1, 130, 0))

    await shelves.data('mutation { deleteBook(key: { title: "x" }, cascade: true) { deletedId } }')
    assert await counted(shelves, "b") == (0, 0, 0)
    await shelves.data('mutation { updateShelf(key: { name: "a" }, set: { name: "c" }) { shelf { count } } }')
    assert await counted(shelves, "c") == (1, 0, 0)
    await shelves.data('mutation { deleteShelf(key: { name: "c" }, cascade: true) { shelf { count } } }')
    assert set(await stored(shelves)) == {("SHELF#b", "SHELF#b"), ("BOOK#y", "BOOK#y")}


async def test_children_are_counted_and_move_with_their_reference(shelves: Served) -> None:
    await shelves.data(
        """mutation { createNote(input: { shelf: { name: "a" }, number: 7, text: "x" }) { __typename }
        updateNote(key: { shelf: { name: "a" }, number: 7 }, set: { shelf: { name: "b" } }) { note { text } } }"""
    )

    assert (await counted(shelves, "a"), await counted(shelves, "b")) == ((0, 0, 0), (0, 0, 1))
    found = await stored(shelves)
    assert found["SHELF#b", "NOTE#007"] == item("SHELF#b", "NOTE#007", text="x")
    assert ("SHELF#a", "NOTE#007") not in found
    await shelves.data('mutation { deleteShelf(key: { name: "b" }, cascade: true) { __typename } }')
    assert not [key for key in await stored(shelves) if key[0] == "SHELF#b"]


async def test_a_counter_of_a_foreign_item_begins_at_nothing(shelves: Served) -> None:
    await shelves.put([item("SHELF#z", "SHELF#z")])

    await shelves.data(
        'mutation { createStanding(input: { shelf: { name: "z" }, book: { title: "x" }, grams: 3 }) { __typename } }'
    )

    assert (await stored(shelves))["SHELF#z", "SHELF#z"] == item("SHELF#z", "SHELF#z", count=1, weight=3)


async def test_the_sum_of_stock_is_the_inventory(serve: Serve) -> None:
    served = await serve(ORDERS)
    await served.data(
        """mutation { createProduct(input: { number: "1", name: "Vise", stock: [
          { quantity: 5, warehouse: { create: { number: "1", region: { create: { number: "1", name: "EU" } } } } },
          { quantity: 7, warehouse: { create: { number: "2", region: { create: { number: "2", name: "US" } } } } }
        ] }) { product { totalInventory } } }"""
    )

    async def inventory() -> Any:
        return (await served.data('{ product(number: "1") { totalInventory } }'))["product"]["totalInventory"]

    assert await inventory() == 12
    await served.data(
        """mutation { updateStock(key: { product: { number: "1" }, warehouse: { number: "2" } },
        increment: { quantity: -3 }) { stock { quantity } } }"""
    )
    assert await inventory() == 9
    await served.data(
        'mutation { deleteStock(key: { product: { number: "1" }, warehouse: { number: "1" } }) { __typename } }'
    )
    assert await inventory() == 4
