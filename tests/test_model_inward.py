"""Who refers to a node: every reference that may lead to it, and the indexes that find all items that have one."""

from __future__ import annotations

import pytest

from graph.model import Model
from resolvers.sdl import compile_model
from tests.test_model import INVERSE, ROOT, TABLE
from tests.test_model_examples import example


def inward(model: Model, node: str) -> dict[str, list[str]]:
    """Give the ways of each reference to a node: the index, and the layouts read in it."""
    return {
        f"{one.item_type}.{one.field}": [
            f"{access.index.name or 'table'}: {', '.join(layout.name for layout in access.layouts)}"
            for access in one.accesses
        ]
        for one in model.inward[node]
    }


EXAMPLES = [
    ("bananas", "Container", {"PalletLoading.container": ["table: PalletLoading"]}),
    (
        "bananas",
        "Pallet",
        {"PalletLoading.pallet": ["reverse-lookup-index: PalletLoading"], "BoxLoading.pallet": ["table: BoxLoading"]},
    ),
    (
        "order-entry",
        "Employee",
        {
            "JobHistory.employee": ["table: JobHistory"],
            "JobHolder.employee": ["table: JobHolder"],
            "HireRecord.employee": ["table: HireRecord"],
            "SalesTotal.employee": ["table: SalesTotal"],
            "WarehouseStaff.employee": ["table: WarehouseStaff"],
            "Customer.accountRep": ["GSI-1: Customer"],
            "Order.accountRep": [],
            "RepOrder.accountRep": ["GSI-1: RepOrder"],
        },
    ),
    # The sort key of GSI-1 is empty in a Warehouse.
    ("order-entry", "Region", {"Warehouse.region": []}),
    ("order-entry", "Job", {}),
    (
        "b2b",
        "Store",
        {
            "Management.store": ["table: Management(mirror 1)", "typeGsi: Management"],
            "Tagging.subject": ["typeGsi: Tagging(subject: Store)"],
        },
    ),
    (
        "b2b",
        "Tag",
        {
            "Tagging.tag": [
                "table: Tagging(subject: Business), Tagging(subject: Customer), Tagging(subject: Order), "
                "Tagging(subject: Store)"
            ]
        },
    ),
    # Nobody knows all months that have readings.
    ("step5", "Sensor", {"Reading.sensor": [], "Alert.sensor": ["table: Alert"]}),
]


@pytest.mark.parametrize(("name", "node", "expected"), EXAMPLES, ids=lambda value: value if value else None)
def test_these_references_lead_to_a_node(name: str, node: str, expected: dict[str, list[str]]) -> None:
    assert inward(example(name), node) == expected


def test_every_node_type_of_the_demo_has_its_references() -> None:
    model = compile_model((ROOT / "schema.graphql").read_text())

    assert list(model.inward) == ["Container", "Pallet", "Box"]
    assert inward(model, "Box") == {"BoxLoading.box": ["reverse-lookup-index: BoxLoading"]}


def test_a_node_may_be_named_by_both_ends_of_an_edge_and_by_itself() -> None:
    model = compile_model(
        INVERSE
        + """type User @node(key: "USER#{name}") { name: ID!  boss: User }
        type Following @edge(partition: "{follower}", sort: "{followee}") { follower: User!  followee: User! }"""
    )

    assert inward(model, "User") == {
        "User.boss": [],
        "Following.follower": ["table: Following"],
        "Following.followee": ["inverse: Following"],
    }


def test_a_reference_to_several_types_leads_to_each_by_its_own_layout() -> None:
    model = compile_model(
        INVERSE
        + """interface Named { name: String! }
        type Box implements Named @node(key: "BOX#{name}") { name: String! }
        type Lid implements Named @node(key: "LID#{name}") { name: String! }
        type Cup @node(key: "CUP#{name}") { name: String! }
        union Thing = Box | Lid
        type Use @edge(partition: "{of}", sort: "{cup}") { of: Named!  cup: Cup! }
        type Pair @edge(partition: "{one}", sort: "{other}") { one: Thing!  other: Thing! }"""
    )

    assert inward(model, "Box") == {
        "Use.of": ["table: Use(of: Box)"],
        "Pair.one": ["table: Pair(one: Box, other: Box), Pair(one: Box, other: Lid)"],
        "Pair.other": ["inverse: Pair(one: Box, other: Box), Pair(one: Lid, other: Box)"],
    }
    assert inward(model, "Cup") == {"Use.cup": ["inverse: Use(of: Box), Use(of: Lid)"]}


def test_an_index_that_misses_items_is_no_way_to_find_all() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk")
          @index(name: "byOwner", partitionKey: "ownerId", sortKey: "made")
          @index(name: "byMaker", partitionKey: "makerId", sortKey: "name")
          @index(name: "byColour", partitionKey: "friendColour")
          @index(name: "byKind", partitionKey: "guestKind")
        type User @node(partition: "USER#{name}") { name: ID!  colour: String  kind: String! }
        type Box @node(partition: "BOX#{number}")
          @indexed(by: "byColour", partition: "{friend.colour}")
          @indexed(by: "byKind", partition: "{guest.kind}") {
          number: ID!
          name: String!
          made: Date
          owner: User! @attribute(name: "ownerId")
          maker: User @attribute(name: "makerId")
          friend: User!
          guest: User!
        }"""
    )

    assert inward(model, "User") == {
        "Box.owner": [],  # A box that has no `made` is not in the index.
        "Box.maker": ["byMaker: Box"],
        "Box.friend": [],  # Nor is one whose friend has no colour.
        "Box.guest": ["byKind: Box"],
    }


def test_shards_alone_hold_everybodys_items() -> None:
    model = compile_model(
        TABLE.rstrip()
        + """ @index(name: "all", partitionKey: "shard", sortKey: "sk") @index(name: "mine", partitionKey: "own")
        type User @node(partition: "USER#{name}", sort: "user") { name: ID! }
        type Box @node(partition: "BOX#{number}", sort: "{owner}")
          @indexed(by: "all", partition: "{shard(5)}")
          @indexed(by: "mine", partition: "{shard(3)}#{owner}") { number: ID!  owner: User! }"""
    )

    assert inward(model, "User") == {"Box.owner": ["mine: Box"]}


def test_a_way_that_must_know_more_of_the_node_than_the_best_one_is_left_out() -> None:
    model = compile_model(
        """extend schema
          @table(name: "things", partitionKey: "pk", sortKey: "sk")
          @index(name: "byKind", partitionKey: "ownerKind", sortKey: "pk")
        type User @node(partition: "USER#{name}", sort: "user") { name: ID!  kind: String! }
        type Box @node(partition: "{owner}", sort: "BOX#{number}")
          @indexed(by: "byKind", partition: "{owner.kind}") { number: ID!  owner: User! }"""
    )

    assert inward(model, "User") == {"Box.owner": ["table: Box"]}
