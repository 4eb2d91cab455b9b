"""Requests: the parameters of each, as DynamoDB's API takes them."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import repeat
from typing import Any

import orjson
import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from graph.bodies import body_of
from graph.expressions import AllOf, Between, Compare, Condition, Function, value_of, with_values
from graph.requests import (
    BatchGetItem,
    CreateTable,
    DescribeTable,
    DescribeTimeToLive,
    GetItem,
    PutItems,
    Query,
    Request,
    Scan,
    UpdateTable,
    UpdateTimeToLive,
    key_attribute,
    key_value,
)
from graph.sort import SortRange
from tests.strategies import CONDITIONS, DECIMALS

KEY = (("objectId", "CONTAINER_1"), ("relatedObjectId", "CONTAINER_1"))
OTHER = (("objectId", "CONTAINER_2"), ("relatedObjectId", "CONTAINER_2"))
WIRE_KEY = {"objectId": {"S": "CONTAINER_1"}, "relatedObjectId": {"S": "CONTAINER_1"}}
WIRE_OTHER = {"objectId": {"S": "CONTAINER_2"}, "relatedObjectId": {"S": "CONTAINER_2"}}
OPERATOR = Compare("Operator", "=", ("S", "x"))
DEFINITION = {
    "TableName": "t",
    "KeySchema": [{"AttributeName": "objectId", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "objectId", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}

REQUESTS = [
    pytest.param(GetItem("t", KEY), {"TableName": "t", "Key": WIRE_KEY}, id="get-item"),
    pytest.param(
        GetItem("t", (("n", Decimal("1.50")),)), {"TableName": "t", "Key": {"n": {"N": "1.5"}}}, id="get-item-by-number"
    ),
    pytest.param(
        BatchGetItem("t", (KEY, OTHER)), {"RequestItems": {"t": {"Keys": [WIRE_KEY, WIRE_OTHER]}}}, id="batch-get-item"
    ),
    pytest.param(
        Query("t", None, (("objectId", "CONTAINER_1"),)),
        {
            "TableName": "t",
            "KeyConditionExpression": "#n0 = :v0",
            "ExpressionAttributeNames": {"#n0": "objectId"},
            "ExpressionAttributeValues": {":v0": {"S": "CONTAINER_1"}},
        },
        id="query-of-a-partition",
    ),
    pytest.param(
        Query(
            "t",
            "reverse-lookup-index",
            (("relatedObjectId", "BOX_1"),),
            SortRange.beginning("PALLET_").condition(["objectId"]),
            OPERATOR,
            limit=11,
            start=(("relatedObjectId", "BOX_1"), ("objectId", "PALLET_1")),
            descending=True,
        ),
        {
            "TableName": "t",
            "IndexName": "reverse-lookup-index",
            "KeyConditionExpression": "#n0 = :v0 AND begins_with(#n1, :v1)",
            "FilterExpression": "#n2 = :v2",
            "ExpressionAttributeNames": {"#n0": "relatedObjectId", "#n1": "objectId", "#n2": "Operator"},
            "ExpressionAttributeValues": {":v0": {"S": "BOX_1"}, ":v1": {"S": "PALLET_"}, ":v2": {"S": "x"}},
            "Limit": 11,
            "ExclusiveStartKey": {"relatedObjectId": {"S": "BOX_1"}, "objectId": {"S": "PALLET_1"}},
            "ScanIndexForward": False,
        },
        id="query-of-an-index-backward-under-a-filter",
    ),
    pytest.param(
        Query(
            "t",
            None,
            (("n", Decimal(7)),),
            SortRange((Decimal(1),), (Decimal(2),)).condition(["m"]),
            count=True,
            consistent=True,
        ),
        {
            "TableName": "t",
            "KeyConditionExpression": "#n0 = :v0 AND #n1 BETWEEN :v1 AND :v2",
            "ExpressionAttributeNames": {"#n0": "n", "#n1": "m"},
            "ExpressionAttributeValues": {":v0": {"N": "7"}, ":v1": {"N": "1"}, ":v2": {"N": "2"}},
            "Select": "COUNT",
            "ConsistentRead": True,
        },
        id="consistent-count-of-numbers",
    ),
    pytest.param(
        Query("t", None, (("a", "x"), ("b", "x")), Compare("s", ">=", ("S", "x"))),
        {
            "TableName": "t",
            "KeyConditionExpression": "#n0 = :v0 AND #n1 = :v0 AND #n2 >= :v0",
            "ExpressionAttributeNames": {"#n0": "a", "#n1": "b", "#n2": "s"},
            "ExpressionAttributeValues": {":v0": {"S": "x"}},
        },
        id="query-whose-key-has-one-value-throughout",
    ),
    pytest.param(Scan("t", 0, 1), {"TableName": "t"}, id="scan-of-one-segment"),
    pytest.param(
        Scan("t", 2, 4, OPERATOR, limit=5, start=KEY, count=True),
        {
            "TableName": "t",
            "Segment": 2,
            "TotalSegments": 4,
            "FilterExpression": "#n0 = :v0",
            "ExpressionAttributeNames": {"#n0": "Operator"},
            "ExpressionAttributeValues": {":v0": {"S": "x"}},
            "Limit": 5,
            "ExclusiveStartKey": WIRE_KEY,
            "Select": "COUNT",
        },
        id="scan-of-a-segment-under-a-filter",
    ),
    pytest.param(
        PutItems("t", ({"objectId": {"S": "a"}}, {"objectId": {"S": "b"}})),
        {
            "RequestItems": {
                "t": [
                    {"PutRequest": {"Item": {"objectId": {"S": "a"}}}},
                    {"PutRequest": {"Item": {"objectId": {"S": "b"}}}},
                ]
            }
        },
        id="put-items",
    ),
    pytest.param(DescribeTable("t"), {"TableName": "t"}, id="describe-table"),
    pytest.param(CreateTable("t", DEFINITION), DEFINITION, id="create-table"),
    pytest.param(
        UpdateTable("t", {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "old"}}]}),
        {"TableName": "t", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "old"}}]},
        id="update-table",
    ),
    pytest.param(DescribeTimeToLive("t"), {"TableName": "t"}, id="describe-time-to-live"),
    pytest.param(
        UpdateTimeToLive("t", "gone"),
        {"TableName": "t", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "gone"}},
        id="update-time-to-live",
    ),
]


# Few enough that a partition's value is often one of the expressions as well, or of another partition attribute.
TEXTS = st.sampled_from(["x", "y", 'a "quoted" \\ é\n'])
NUMBERS = st.sampled_from([Decimal(1), Decimal("1.0")]) | DECIMALS
VALUES = TEXTS | NUMBERS


@pytest.mark.parametrize(("request_", "parameters"), REQUESTS)
def test_request_is_written_as(request_: Request, parameters: dict[str, Any]) -> None:
    assert request_.parameters() == parameters


@pytest.mark.parametrize(("request_", "parameters"), REQUESTS)
def test_parameters_are_valid_in_the_service_model(request_: Request, parameters: dict[str, Any]) -> None:
    shape = Session().get_service_model("dynamodb").operation_model(request_.operation).input_shape
    assert shape is not None

    report = ParamValidator().validate(parameters, shape)

    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize(("request_", "parameters"), REQUESTS)
def test_body_is_the_parameters_as_json(request_: Request, parameters: dict[str, Any]) -> None:
    assert orjson.loads(body_of(request_)) == parameters


@pytest.mark.parametrize(("request_", "parameters"), REQUESTS)
def test_parameters_are_made_anew_each_time(request_: Request, parameters: dict[str, Any]) -> None:
    """The client adds to them."""
    request_.parameters()["ReturnConsumedCapacity"] = "TOTAL"

    assert request_.parameters() == parameters


def test_equal_requests_are_equal_and_hashable() -> None:
    sort = SortRange.beginning("a").condition(["m"])
    one = Query("t", None, (("n", Decimal("1.0")),), sort, limit=1)
    same = Query("t", None, (("n", Decimal("1.00")),), sort, limit=1)
    backward = Query("t", None, (("n", Decimal(1)),), sort, limit=1, descending=True)

    assert {one, same, backward} == {one, backward}
    assert one.parameters() == same.parameters()


@given(
    st.lists(st.tuples(st.text() | TEXTS | DECIMALS, st.text()), min_size=1, max_size=100),
    st.sampled_from([("a", "b"), ("b",), ("100 %", '"%b"')]),
    st.booleans(),
)
def test_body_of_many_keys_is_the_parameters_as_json(
    values: list[tuple[str | Decimal, str]], names: tuple[str, ...], consistent: bool
) -> None:
    request = BatchGetItem("t", tuple(tuple(zip(names, key, strict=False)) for key in values), consistent)

    assert orjson.loads(body_of(request)) == request.parameters()


# --- Queries of one shape -----------------------------------------------------------------------------------------


@st.composite
def queries_of_one_shape(draw: st.DrawFn) -> tuple[Query, Query]:
    """Draw a Query, and another one with the same shape and other values."""
    names = draw(st.sampled_from([("a",), ("a", "b"), ("é", "b", "c")]))
    sort = draw(st.sampled_from(SORTS))
    shape: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {
                "filter": st.none() | CONDITIONS,
                "limit": st.none() | st.integers(1, 1000),
                "descending": st.booleans(),
                "count": st.booleans(),
                "consistent": st.booleans(),
            }
        )
    )
    index = draw(st.none() | st.just("i"))

    def query() -> Query:
        partition = tuple((name, draw(VALUES)) for name in names)
        start = draw(st.none() | st.just((*partition, ("s", draw(VALUES)))))
        values = (value_of(key_attribute(draw(VALUES))) for _ in repeat(None))
        return Query("t", index, partition, sort and with_values(sort, values), start=start, **shape)

    return query(), query()


SORTS: list[Condition | None] = [
    None,
    Compare("s", "=", ("S", "")),
    Function("begins_with", "s", ("S", "")),
    Between("s", ("S", ""), ("S", "")),
    AllOf((Compare("s", "=", ("S", "")), Between("t", ("S", ""), ("S", "")))),
]


@given(queries_of_one_shape())
def test_query_of_another_partition_is_as_if_it_had_been_made_from_the_beginning(both: tuple[Query, Query]) -> None:
    one, other = both

    derived = one.of(tuple(value for _, value in other.partition), other.start, other.sort)

    assert derived == other
    assert hash(derived) == hash(other)
    assert repr(derived) == repr(other)
    assert derived.parameters() == other.parameters()
    for query in (one, other, derived, replace(derived, start=None)):
        assert orjson.loads(body_of(query)) == query.parameters()


@pytest.mark.parametrize(
    "other",
    [
        Query("u", None, KEY[:1]),
        Query("t", "i", KEY[:1]),
        Query("t", None, OTHER[:1]),
        Query("t", None, KEY),
        Query("t", None, KEY[:1], sort=OPERATOR),
        Query("t", None, KEY[:1], filter=OPERATOR),
        Query("t", None, KEY[:1], limit=1),
        Query("t", None, KEY[:1], start=KEY),
        Query("t", None, KEY[:1], descending=True),
        Query("t", None, KEY[:1], count=True),
        Query("t", None, KEY[:1], consistent=True),
        Scan("t", 0, 1),
    ],
)
def test_queries_that_differ_anywhere_are_not_equal(other: Query) -> None:
    one = Query("t", None, KEY[:1])

    assert one != other
    assert len({one, other, one.of(("CONTAINER_1",))}) == 2


def test_query_derived_again_and_changed_has_the_rendering_of_what_it_is() -> None:
    first = Query("t", None, KEY[:1], OPERATOR, limit=5)

    second = replace(first.of(("a",)), limit=7, filter=None).of(("b",)).of(("c",))

    assert second == Query("t", None, (("objectId", "c"),), OPERATOR, limit=7)
    assert orjson.loads(body_of(second)) == second.parameters()


@pytest.mark.parametrize("values", [(), ("a", "b", "c")])
@pytest.mark.parametrize("partition", [KEY, KEY[:1]])
def test_query_takes_as_many_values_as_it_has_partition_attributes(values: Any, partition: Any) -> None:
    with pytest.raises(ValueError, match=r"values to unpack|zip"):
        Query("t", None, partition).of(values)


def test_key_of_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="a key of type S or N"):
        key_value({"B": "aGk="})


@given(st.text(min_size=1) | DECIMALS)
def test_key_value_is_read_back_from_its_attribute(value: str | Decimal) -> None:
    assert key_value(key_attribute(value)) == value
