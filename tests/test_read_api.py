"""The read API on the banana graph: lookups, relationships both ways, paths, and what they cost."""

from __future__ import annotations

from tests.conftest import Served


async def test_the_seed_answers_as_its_document_says(bananas: Served) -> None:
    data = await bananas.data(
        """{ container(number: "009998") { operator pallets(first: 10) { edges { linkedBy linkedDatetime
        node { number origin destination boxes(first: 30) { nodes { number weightInKg isDangerous } } } } } } }"""
    )

    assert data == {
        "container": {
            "operator": "TheBoatingCompany",
            "pallets": {
                "edges": [
                    {
                        "linkedBy": "MyLoadingCompany",
                        "linkedDatetime": "2022-07-19T17:59:58Z",
                        "node": {
                            "number": "B021002",
                            "origin": "BR",
                            "destination": "DE",
                            "boxes": {
                                "nodes": [
                                    {"number": "A03828", "weightInKg": 20.56, "isDangerous": False},
                                    {"number": "A03829", "weightInKg": 21.2, "isDangerous": False},
                                ]
                            },
                        },
                    },
                    {
                        "linkedBy": "MyLoadingCompany",
                        "linkedDatetime": "2022-07-19T18:01:58Z",
                        "node": {"number": "B021003", "origin": None, "destination": None, "boxes": {"nodes": []}},
                    },
                ]
            },
        }
    }


async def test_a_number_that_dynamodb_cannot_hold_is_refused_by_name(bananas: Served) -> None:
    error = await bananas.error(
        '{ container(number: "000001") { boxes(where: { box: { weightInKg: { lt: 1e200 } } }) { totalCount } } }'
    )

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert error["message"].startswith("`box.weightInKg` is compared with 1e+200: expected ")
