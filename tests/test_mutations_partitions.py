"""Nodes that share a partition of what names them: each has its own, however many lie before them."""

from __future__ import annotations

import pytest

from graph.loaders import Limits
from tests.conftest import Serve, Served
from tests.written import code, item, stored

ATLAS = """extend schema
  @table(name: "atlas", partitionKey: "pk", sortKey: "sk")
type Place @node(partition: "PLACE#{country}", sort: "{name}", ref: "{country}#{name}") {
  country: ID!  name: ID!  visits: [Visit!]! @relationship
}
type Visit @node(partition: "VISIT#{place.country}", sort: "{number}") { place: Place!  number: ID!  note: String }
"""


@pytest.fixture
async def atlas(serve: Serve) -> Served:
    """Two places of a country; the second one's visit lies behind five of the first one's."""
    return await serve(
        ATLAS,
        [
            item("PLACE#nl", "Delft"),
            item("PLACE#nl", "Gouda"),
            *(item("VISIT#nl", f"{number}", place="nl#Delft") for number in range(5)),
            item("VISIT#nl", "9", place="nl#Gouda"),
        ],
        limits=Limits(max_cascade=4),
    )


async def test_a_node_is_linked_though_others_of_its_partition_come_first(atlas: Served) -> None:
    before = await stored(atlas)

    error = await atlas.error('mutation { deletePlace(key: { country: "nl", name: "Gouda" }) { __typename } }')

    assert code(error)[0] == "HAS_EDGES"
    assert await stored(atlas) == before


async def test_what_names_a_node_follows_it_though_others_come_first(atlas: Served) -> None:
    await atlas.data(
        'mutation { updatePlace(key: { country: "nl", name: "Gouda" }, set: { name: "Leiden" }) { place { name } } }'
    )

    assert (await stored(atlas))["VISIT#nl", "9"] == item("VISIT#nl", "9", place="nl#Leiden")


async def test_only_what_names_the_node_goes_with_it(atlas: Served) -> None:
    await atlas.data(
        'mutation { deletePlace(key: { country: "nl", name: "Gouda" }, cascade: true) { place { name } } }'
    )

    assert {key for key in await stored(atlas) if key[1] in "Gouda9"} == set()
    assert len(await stored(atlas)) == 6
