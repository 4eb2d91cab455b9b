"""Requests: the parameters of each, as DynamoDB's API takes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from graph.expressions import Compare
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
from tests.strategies import DECIMALS

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


def test_key_of_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="a key of type S or N"):
        key_value({"B": "aGk="})


@given(st.text(min_size=1) | DECIMALS)
def test_key_value_is_read_back_from_its_attribute(value: str | Decimal) -> None:
    assert key_value(key_attribute(value)) == value
