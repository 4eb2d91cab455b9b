"""Several mutations in one operation: one after the other, or all of them or none under @transaction."""

from __future__ import annotations

import pytest

from tests.conftest import BANANAS, Serve, Served
from tests.written import actions, code, codes, s, stored

LINKED = 'linkedDatetime: "2022-07-19T17:59:58Z"'


@pytest.fixture
async def bananas(serve: Serve) -> Served:
    served = await serve(BANANAS.read_text())
    await served.data('mutation { createContainer(input: { number: "1" }) { __typename } }')
    return served


async def test_without_the_directive_each_mutation_stands_alone(bananas: Served) -> None:
    body = await bananas(
        """mutation {
          a: createPallet(input: { number: "1" }) { pallet { number } }
          b: createContainer(input: { number: "1" }) { container { number } }
          c: createPallet(input: { number: "2" }) { pallet { number } }
        }"""
    )

    assert codes(body) == {"b": ("ALREADY_EXISTS", "input")}
    assert body["data"] == {"a": {"pallet": {"number": "1"}}, "b": None, "c": {"pallet": {"number": "2"}}}
    assert bananas.operations == ["TransactWriteItems"] * 3


async def test_a_transaction_is_one_request(bananas: Served) -> None:
    data = await bananas.data(
        f"""mutation @transaction {{
          a: createPallet(input: {{ number: "1" }}) {{ pallet {{ number container {{ number }} }} }}
          b: createPallet(input: {{ number: "2", origin: "x" }}) {{ pallet {{ origin }} }}
          c: createPalletLoading(input: {{ container: {{ number: "1" }}, pallet: {{ number: "1" }}, {LINKED} }}) {{
            palletLoading {{ container {{ number }} pallet {{ number }} }} }}
        }}"""
    )

    assert data == {
        "a": {"pallet": {"number": "1", "container": {"number": "1"}}},
        "b": {"pallet": {"origin": "x"}},
        "c": {"palletLoading": {"container": {"number": "1"}, "pallet": {"number": "1"}}},
    }
    assert bananas.operations.count("TransactWriteItems") == 1
    assert sorted(actions(bananas)) == ["ConditionCheck", "Put", "Put", "Put"]


async def test_one_refusal_rolls_the_others_back(bananas: Served) -> None:
    before = await stored(bananas)

    body = await bananas(
        """mutation @transaction {
          a: createPallet(input: { number: "1" }) { pallet { number } }
          b: createContainer(input: { number: "1" }) { container { number } }
          c: updateContainer(key: { number: "1" }, set: { operator: "x" }) { container { number } }
        }"""
    )

    # The container is created and changed, which no transaction can: the last of the two is at fault.
    assert codes(body)["a"] == ("ROLLED_BACK", None)
    assert body["data"] == {"a": None, "b": None, "c": None}
    assert await stored(bananas) == before


async def test_the_mutation_at_fault_has_its_own_error(bananas: Served) -> None:
    before = await stored(bananas)

    body = await bananas(
        """mutation @transaction {
          a: createPallet(input: { number: "1" }) { pallet { number } }
          b: createContainer(input: { number: "1" }) { container { number } }
          c: createPallet(input: { number: "3" }) { pallet { number } }
        }"""
    )

    assert codes(body) == {"a": ("ROLLED_BACK", None), "b": ("ALREADY_EXISTS", "input"), "c": ("ROLLED_BACK", None)}
    assert "`b`" in body["errors"][0]["message"]
    assert await stored(bananas) == before


async def test_a_mutation_that_cannot_be_built_rolls_the_others_back(bananas: Served) -> None:
    before = await stored(bananas)

    body = await bananas(
        """mutation @transaction {
          a: createPallet(input: { number: "1" }) { pallet { number } }
          b: updatePallet(key: {}, set: { origin: "x" }) { pallet { number } }
          c: deletePallet(key: { number: "9" }) { pallet { number } }
        }"""
    )

    assert codes(body)["b"][0] == "BAD_INPUT"
    assert codes(body)["a"] == ("ROLLED_BACK", None)
    assert codes(body)["c"] == ("ROLLED_BACK", None)
    assert await stored(bananas) == before
    assert "TransactWriteItems" not in bananas.operations


async def test_arguments_that_do_not_fit_roll_the_others_back(bananas: Served) -> None:
    before = await stored(bananas)

    body = await bananas(
        """mutation ($key: ID = "2") @transaction {
          a: createPallet(input: { number: "1" }) { pallet { number } }
          b: createPallet(input: { number: $key }) { pallet { number } }
          c: createPallet(input: { number: "3" }) { pallet { number } }
        }""",
        {"key": None},
    )

    assert codes(body) == {"a": ("ROLLED_BACK", None), "b": ("BAD_VALUE", None), "c": ("ROLLED_BACK", None)}
    assert await stored(bananas) == before
    assert bananas.sent == []


async def test_the_same_item_is_not_written_twice(bananas: Served) -> None:
    before = await stored(bananas)

    body = await bananas(
        """mutation @transaction {
          a: createPallet(input: { number: "1" }) { pallet { number } }
          b: createPallet(input: { number: "1", origin: "x" }) { pallet { number } }
        }"""
    )

    assert codes(body) == {"a": ("ROLLED_BACK", None), "b": ("WRITE_REFUSED", "input")}
    assert "written twice" in body["errors"][1]["message"]
    assert await stored(bananas) == before


async def test_two_updates_of_different_fields_of_an_item_are_one(bananas: Served) -> None:
    await bananas.data('mutation { createPallet(input: { number: "1" }) { __typename } }')

    await bananas.data(
        """mutation @transaction {
          a: updatePallet(key: { number: "1" }, set: { origin: "x" }) { pallet { number } }
          b: updatePallet(key: { number: "1" }, set: { destination: "y" }) { pallet { number } }
        }"""
    )

    assert actions(bananas) == ["Update"]
    assert (await stored(bananas))["PALLET_1", "PALLET_1"]["Destination"] == s("y")
    body = await bananas(
        """mutation @transaction {
          a: updatePallet(key: { number: "1" }, set: { origin: "1" }) { pallet { number } }
          b: updatePallet(key: { number: "1" }, set: { origin: "2" }) { pallet { number } }
        }"""
    )
    assert codes(body) == {"a": ("ROLLED_BACK", None), "b": ("WRITE_REFUSED", None)}


async def test_a_node_that_is_deleted_is_not_linked_in_the_same_transaction(bananas: Served) -> None:
    await bananas.data('mutation { createPallet(input: { number: "1" }) { __typename } }')
    before = await stored(bananas)
    link = f"""createPalletLoading(input: {{
      container: {{ number: "1" }}, pallet: {{ number: "1" }}, {LINKED} }}) {{ __typename }}"""
    delete = 'deletePallet(key: { number: "1" }) { __typename }'

    for both in (f"{delete} {link}", f"{link} {delete}"):
        body = await bananas(f"mutation @transaction {{ {both} }}")
        found = {one[0] for one in codes(body).values()}
        assert found, both
        assert found in ({"WRITE_REFUSED", "ROLLED_BACK"}, {"HAS_EDGES", "ROLLED_BACK"})
        assert await stored(bananas) == before


async def test_an_edge_and_its_node_are_deleted_together(bananas: Served) -> None:
    await bananas.data(
        f"""mutation @transaction {{ createPalletLoading(input: {{ container: {{ number: "1" }},
        pallet: {{ create: {{ number: "1" }} }}, {LINKED} }}) {{ __typename }} }}"""
    )

    await bananas.data(
        """mutation @transaction {
          a: deletePalletLoading(key: { container: { number: "1" }, pallet: { number: "1" } }) { __typename }
          b: deletePallet(key: { number: "1" }) { pallet { number } }
        }"""
    )

    assert set(await stored(bananas)) == {("CONTAINER_1", "CONTAINER_1")}


async def test_nothing_is_locked_when_a_transaction_is_refused(bananas: Served) -> None:
    await bananas.data('mutation { createPallet(input: { number: "1" }) { __typename } }')
    before = await stored(bananas)

    body = await bananas(
        """mutation @transaction {
          a: deletePallet(key: { number: "1" }) { pallet { number } }
          b: createContainer(input: { number: "1" }) { container { number } }
        }"""
    )

    assert codes(body) == {"a": ("ROLLED_BACK", None), "b": ("ALREADY_EXISTS", "input")}
    assert await stored(bananas) == before


async def test_fields_skipped_and_introspection_are_no_mutations(bananas: Served) -> None:
    data = await bananas.data(
        """mutation @transaction {
          __typename
          a: createPallet(input: { number: "1" }) @skip(if: true) { pallet { number } }
          b: createPallet(input: { number: "2" }) { pallet { number } }
        }"""
    )

    assert data == {"__typename": "Mutation", "b": {"pallet": {"number": "2"}}}


async def test_a_transaction_of_nothing_is_nothing(bananas: Served) -> None:
    assert await bananas.data("mutation @transaction { __typename }") == {"__typename": "Mutation"}


async def test_a_transaction_sent_again_says_what_is_there_already(bananas: Served) -> None:
    query = """mutation @transaction {
      a: createPallet(input: { number: "1" }) { pallet { number } }
      b: createPallet(input: { number: "2" }) { pallet { number } } }"""
    await bananas.data(query)

    body = await bananas(query)

    assert sorted(one[0] for one in codes(body).values()) == ["ALREADY_EXISTS", "ROLLED_BACK"]
    assert code(body["errors"][0])[0] in ("ALREADY_EXISTS", "ROLLED_BACK")
