"""Tables: the request that makes one from its model, and how an existing one differs from it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from graph.client import Transport
from graph.model import Model
from graph.tables import create_table, differences
from resolvers.sdl import compile_model

SDL = """
extend schema
  @table(name: "fleet", partitionKey: "PK", sortKey: "SK")
  @index(name: "by-owner", partitionKey: "Owner", sortKey: "Number")
  @index(name: "names", partitionKey: "PK", sortKey: "Name", local: true, projection: ["Name", "Size"])
  @index(name: "keys", partitionKey: "Owner", projection: ["KEYS_ONLY"])

type Ship @node(key: "SHIP#{code}") @indexed(by: "by-owner", partition: "OWNER#{owner}", sort: "{number}")
  @indexed(by: "names", sort: "{name:lower}") @indexed(by: "keys", partition: "OWNER#{owner}") {
  code: ID!
  owner: ID!
  number: Int!
  name: String!
}
"""


@pytest.fixture(scope="module")
def model() -> Model:
    return compile_model(SDL)


def test_table_is_made_with_the_keys_and_indexes_of_the_model(model: Model) -> None:
    request = create_table(model, model.tables["fleet"])

    assert request.table == "fleet"
    assert request.parameters() == {
        "TableName": "fleet",
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
            {"AttributeName": "Name", "AttributeType": "S"},
            {"AttributeName": "Owner", "AttributeType": "S"},
            {"AttributeName": "Number", "AttributeType": "N"},
        ],
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
        "GlobalSecondaryIndexes": [
            {
                "IndexName": "by-owner",
                "KeySchema": [
                    {"AttributeName": "Owner", "KeyType": "HASH"},
                    {"AttributeName": "Number", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            },
            {
                "IndexName": "keys",
                "KeySchema": [{"AttributeName": "Owner", "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            },
        ],
        "LocalSecondaryIndexes": [
            {
                "IndexName": "names",
                "KeySchema": [
                    {"AttributeName": "PK", "KeyType": "HASH"},
                    {"AttributeName": "Name", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["Size"]},
            },
        ],
    }


def test_table_whose_copies_follow_by_the_stream_is_made_with_one() -> None:
    model = compile_model(SDL.replace('@table(name: "fleet"', '@table(copies: STREAM, name: "fleet"'))

    stream = create_table(model, model.tables["fleet"]).parameters()["StreamSpecification"]

    assert stream == {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def test_table_without_indexes_names_none() -> None:
    model = compile_model(
        'extend schema @table(name: "one", partitionKey: "id")\ntype A @node(partition: "{number}") { number: ID! }'
    )

    parameters = create_table(model, model.tables["one"]).parameters()

    assert not any(name.endswith("Indexes") for name in parameters)
    assert parameters["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]


def test_projection_of_keys_alone_is_what_dynamodb_calls_keys_only() -> None:
    model = compile_model(SDL.replace('["Name", "Size"]', '["Name", "PK"]'))

    parameters = create_table(model, model.tables["fleet"]).parameters()

    # DynamoDB has its keys in every index, and would not have them named as attributes beside the key.
    assert parameters["LocalSecondaryIndexes"][0]["Projection"] == {"ProjectionType": "KEYS_ONLY"}


async def test_table_that_we_made_does_not_differ(transport: Transport) -> None:
    model = compile_model(SDL, table="test-tables")
    table = model.tables["test-tables"]
    request = create_table(model, table)

    await transport(request.operation, request.parameters())

    assert list(differences(model, table, await transport("DescribeTable", {"TableName": "test-tables"}))) == []


def described(model: Model) -> dict[str, Any]:
    """Describe the table just as the model wants it, keys in an order that is not ours."""
    made = create_table(model, model.tables["fleet"]).parameters()
    made["KeySchema"] = made["KeySchema"][::-1]
    return {"Table": copy.deepcopy(made)}


def without_indexes(table: dict[str, Any]) -> None:
    del table["GlobalSecondaryIndexes"], table["LocalSecondaryIndexes"]


def another_key(table: dict[str, Any]) -> None:
    table["KeySchema"] = [{"AttributeName": "id", "KeyType": "HASH"}]


def another_index_key(table: dict[str, Any]) -> None:
    table["GlobalSecondaryIndexes"][0]["KeySchema"][1]["AttributeName"] = "Code"


def keys_only(table: dict[str, Any]) -> None:
    table["GlobalSecondaryIndexes"][0]["Projection"] = {"ProjectionType": "KEYS_ONLY"}


def includes_less(table: dict[str, Any]) -> None:
    table["LocalSecondaryIndexes"][0]["Projection"] = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["Colour"]}


def includes_more(table: dict[str, Any]) -> None:
    table["LocalSecondaryIndexes"][0]["Projection"] = {"ProjectionType": "ALL"}
    table["GlobalSecondaryIndexes"][1]["Projection"] = {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["Size"]}


def one_index_more(table: dict[str, Any]) -> None:
    table["GlobalSecondaryIndexes"].append(dict(table["GlobalSecondaryIndexes"][0], IndexName="other"))


@pytest.mark.parametrize(
    ("change", "found"),
    [
        pytest.param(lambda table: None, [], id="as-the-model-says"),
        pytest.param(
            another_key,
            [
                "the key of the table `fleet` is id, and the model says PK and SK: "
                "mend @table(partitionKey: …, sortKey: …)"
            ],
            id="another-key",
        ),
        pytest.param(
            without_indexes,
            [
                f"the table `fleet` has no index `{name}`: it has none. Add it (`tablegraph table apply` does), or "
                "mend @index"
                for name in ("by-owner", "names", "keys")
            ],
            id="no-indexes",
        ),
        pytest.param(
            another_index_key,
            [
                "the key of the index `by-owner` is Owner and Code, and the model says Owner and Number: "
                "mend @index(partitionKey: …, sortKey: …)"
            ],
            id="another-key-of-an-index",
        ),
        pytest.param(
            keys_only,
            [
                "the index `by-owner` does not hold all attributes, as the model says, and what it lacks would read as "
                "null: mend @index(projection: …)"
            ],
            id="an-index-with-keys-alone",
        ),
        pytest.param(
            includes_less,
            [
                "the index `names` does not hold Size, as the model says, and what it lacks would read as null: "
                "mend @index(projection: …)"
            ],
            id="an-index-with-fewer-attributes",
        ),
        pytest.param(includes_more, [], id="indexes-that-hold-more"),
        pytest.param(one_index_more, [], id="an-index-that-the-model-does-not-know"),
    ],
)
def test_table_differs_from_its_model_by(
    model: Model, change: Callable[[dict[str, Any]], None], found: list[str]
) -> None:
    description = described(model)
    change(description["Table"])

    assert list(differences(model, model.tables["fleet"], description)) == found


def test_a_key_of_another_type_than_the_models_is_a_difference(model: Model) -> None:
    description = described(model)
    attribute = description["Table"]["AttributeDefinitions"][0]
    attribute["AttributeType"] = "N" if attribute["AttributeType"] == "S" else "S"

    (found,) = differences(model, model.tables["fleet"], description)

    assert found.startswith(f"the key attribute `{attribute['AttributeName']}` of the table `fleet` is of type ")


FOLLOWED = """extend schema @table(name: "things", partitionKey: "pk", copies: STREAM)
type Box @node(partition: "BOX#{number}") { number: ID! }
"""


@pytest.mark.parametrize(
    ("stream", "has"),
    [
        ({}, "no stream"),
        ({"StreamEnabled": False}, "no stream"),
        ({"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}, "a stream of KEYS_ONLY"),
    ],
)
def test_copies_by_stream_need_a_stream_of_both_images(stream: dict[str, Any], has: str) -> None:
    model = compile_model(FOLLOWED)
    table = model.tables["things"]
    made = create_table(model, table).parameters()
    assert list(differences(model, table, {"Table": made})) == []

    assert list(differences(model, table, {"Table": {**made, "StreamSpecification": stream}})) == [
        f"the table `things` has {has}, and by @table(copies: STREAM) its copies follow one of new and old images: "
        "turn one on (`tablegraph table apply` does), or leave `copies` out"
    ]
