"""Deletions that take more along than one transaction holds: in parts, the node last, and to be gone on with."""

from __future__ import annotations

import pytest

from graph.loaders import Limits
from tests.conftest import ROOT, Serve, Served

BANANAS = (ROOT / "schema.graphql").read_text()
DELETE = 'mutation { deletePallet(key: { number: "P" }, cascade: true) { deletedId } }'
COUNT = '{ pallet(number: "P") { boxes { totalCount } } }'


async def with_boxes(served: Served, count: int) -> Served:
    await served.data('mutation { createPallet(input: { number: "P" }) { pallet { number } } }')
    for first in range(0, count, 45):
        boxes = [
            {"box": {"create": {"number": str(number)}}, "linkedDatetime": "2022-01-01T00:00:00Z"}
            for number in range(first, min(first + 45, count))
        ]
        query = "mutation ($input: CreatePalletInput!) { upsertPallet(input: $input) { pallet { number } } }"
        await served.data(query, {"input": {"number": "P", "boxes": boxes}})
    return served


@pytest.fixture
async def served(serve: Serve) -> Served:
    return await serve(BANANAS, limits=Limits(max_cascade=150))


async def test_what_fits_goes_in_the_transaction_of_the_node(served: Served) -> None:
    await with_boxes(served, 80)

    await served.data(DELETE)

    assert served.operations.count("TransactWriteItems") == 2  # The lock, and all the rest.
    assert await served.data(COUNT) == {"pallet": None}


async def test_what_does_not_fit_goes_before_the_node(served: Served) -> None:
    await with_boxes(served, 120)

    await served.data(DELETE)

    transactions = [sent for operation, sent in served.sent if operation == "TransactWriteItems"]
    assert [len(sent["TransactItems"]) for sent in transactions] == [1, 90, 30, 1]
    assert await served.data(COUNT) == {"pallet": None}
    assert (await served.data('{ box(number: "7") { pallet { number } } }'))["box"] == {"pallet": None}


async def test_more_than_one_mutation_takes_is_gone_on_with(served: Served) -> None:
    await with_boxes(served, 170)

    error = await served.error(DELETE)
    left = await served.data(COUNT)
    await served.data(DELETE)

    assert error["extensions"]["code"] == "TOO_LARGE"
    assert left == {"pallet": {"boxes": {"totalCount": 20}}}
    assert await served.data(COUNT) == {"pallet": None}


async def test_beside_other_mutations_all_of_it_must_fit(served: Served) -> None:
    await with_boxes(served, 120)

    body = await served(
        'mutation @transaction { a: deletePallet(key: { number: "P" }, cascade: true) { deletedId } '
        'b: createPallet(input: { number: "Q" }) { pallet { number } } }'
    )

    assert {error["extensions"]["code"] for error in body["errors"]} == {"TOO_LARGE"}
    assert await served.data(COUNT) == {"pallet": {"boxes": {"totalCount": 120}}}
    assert (await served.data('{ pallet(number: "Q") { number } }'))["pallet"] is None


async def test_a_change_that_more_items_hold_than_fit_is_refused_before_it_is_sent(served: Served) -> None:
    await with_boxes(served, 120)

    error = await served.error('mutation { updatePallet(key: { number: "P" }, set: { number: "Q" }) { __typename } }')

    assert error["extensions"]["code"] == "TOO_LARGE"
    assert error["message"].startswith("120 items hold what changes of the Pallet PALLET_P")
    assert await served.data(COUNT) == {"pallet": {"boxes": {"totalCount": 120}}}


async def test_a_node_that_is_kept_is_free_to_be_linked_again(served: Served) -> None:
    await with_boxes(served, 1)

    error = await served.error('mutation { deletePallet(key: { number: "P" }) { deletedId } }')
    await with_another(served)

    assert error["extensions"]["code"] == "HAS_EDGES"
    assert await served.data(COUNT) == {"pallet": {"boxes": {"totalCount": 2}}}


async def with_another(served: Served) -> None:
    link = 'box: { create: { number: "x" } }, pallet: { number: "P" }, linkedDatetime: "2022-01-01T00:00:00Z"'
    await served.data(f"mutation {{ createBoxLoading(input: {{ {link} }}) {{ boxLoading {{ linkedBy }} }} }}")
