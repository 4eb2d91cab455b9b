"""Requests: the parameters of each, as DynamoDB's API takes them, and the ranges of sort keys."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from botocore.session import Session
from botocore.validate import ParamValidator
from hypothesis import given
from hypothesis import strategies as st

from graph.expressions import Between, Compare, Condition, Function
from graph.keys import AFTER_ALL
from graph.requests import (
    BatchGetItem,
    CreateTable,
    DescribeTable,
    GetItem,
    PutItems,
    Query,
    Request,
    Scan,
    SortRange,
    key_attribute,
    key_value,
)
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
        Query("t", None, ("objectId", "CONTAINER_1")),
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
            ("relatedObjectId", "BOX_1"),
            SortRange.beginning("PALLET_").condition("objectId"),
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
            "t", None, ("n", Decimal(7)), SortRange(Decimal(1), Decimal(2)).condition("m"), count=True, consistent=True
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
    one = Query("t", None, ("n", Decimal("1.0")), SortRange.beginning("a").condition("m"), limit=1)
    same = Query("t", None, ("n", Decimal("1.00")), SortRange.beginning("a").condition("m"), limit=1)
    backward = Query("t", None, ("n", Decimal(1)), SortRange.beginning("a").condition("m"), limit=1, descending=True)

    assert {one, same, backward} == {one, backward}
    assert one.parameters() == same.parameters()


def test_key_of_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="a key of type S or N"):
        key_value({"B": "aGk="})


@given(st.text(min_size=1) | DECIMALS)
def test_key_value_is_read_back_from_its_attribute(value: str | Decimal) -> None:
    assert key_value(key_attribute(value)) == value


# --- ranges of sort keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sort", "condition"),
    [
        pytest.param(SortRange(), None, id="whole-partition"),
        pytest.param(SortRange.beginning(""), None, id="beginning-with-nothing"),
        pytest.param(SortRange.beginning("a"), Function("begins_with", "k", ("S", "a")), id="prefix"),
        pytest.param(SortRange.exactly("a"), Compare("k", "=", ("S", "a")), id="one-value"),
        pytest.param(SortRange.exactly(Decimal("1.0")), Compare("k", "=", ("N", "1")), id="one-number"),
        pytest.param(SortRange("a", "b"), Between("k", ("S", "a"), ("S", "b")), id="closed"),
        pytest.param(SortRange(low="a"), Compare("k", ">=", ("S", "a")), id="from"),
        pytest.param(SortRange(high="a"), Compare("k", "<=", ("S", "a")), id="to"),
        pytest.param(SortRange(low=Decimal(1)), Compare("k", ">=", ("N", "1")), id="from-a-number"),
        pytest.param(
            SortRange.beginning("a").from_("a3"), Between("k", ("S", "a3"), ("S", "a" + AFTER_ALL)), id="prefix-from"
        ),
        pytest.param(SortRange.beginning("a").to("a3"), Between("k", ("S", "a"), ("S", "a3")), id="prefix-to"),
        pytest.param(
            SortRange.beginning("a").from_("a"),
            Function("begins_with", "k", ("S", "a")),
            id="prefix-from-its-beginning",
        ),
        pytest.param(
            SortRange.beginning("a").to("a" + AFTER_ALL),
            Function("begins_with", "k", ("S", "a")),
            id="prefix-to-its-end",
        ),
        pytest.param(
            SortRange.beginning("a").from_("A"), Function("begins_with", "k", ("S", "a")), id="prefix-from-before-it"
        ),
        pytest.param(
            SortRange.beginning("a").to("b"), Function("begins_with", "k", ("S", "a")), id="prefix-to-behind-it"
        ),
        pytest.param(SortRange().from_("a").to("a"), Compare("k", "=", ("S", "a")), id="from-and-to-the-same"),
    ],
)
def test_range_is_written_as(sort: SortRange, condition: Condition | None) -> None:
    assert sort.condition("k") == condition


TEXTS = st.text("abc", max_size=3)


def holds(condition: Condition | None, key: str) -> bool:
    """Decide a key condition as DynamoDB does, by bytes."""
    text = key.encode()
    match condition:
        case None:
            return True
        case Function("begins_with", _, (_, prefix)):
            return text.startswith(prefix.encode())
        case Between(_, (_, low), (_, high)):
            return bool(low.encode() <= text <= high.encode())
        case Compare(_, comparator, (_, value)):
            other = value.encode()
            return bool({"=": text == other, "<=": text <= other, ">=": text >= other}[comparator])
    raise AssertionError(condition)


@given(prefix=TEXTS, bound=TEXTS.filter(bool), key=st.text("abcé\U0001f34c", min_size=1, max_size=4))
def test_narrowed_range_holds_what_is_in_both(prefix: str, bound: str, key: str) -> None:
    whole = SortRange.beginning(prefix)

    assert holds(whole.condition("k"), key) == key.startswith(prefix)
    for narrowed, fits in ((whole.from_(bound), key >= bound), (whole.to(bound), key <= bound)):
        found = False if narrowed.empty else holds(narrowed.condition("k"), key)
        assert found == (key.startswith(prefix) and fits)


@given(low=DECIMALS, high=DECIMALS)
def test_range_is_empty_when_its_ends_cross(low: Decimal, high: Decimal) -> None:
    assert SortRange(low, high).empty == (low > high)
    assert SortRange().from_(low).to(high).empty == (low > high)
    assert not SortRange(low=low).empty


RANGES = st.builds(SortRange, st.none() | TEXTS, st.none() | TEXTS) | TEXTS.map(SortRange.beginning)
UNIVERSE = ["".join(letters) for size in range(4) for letters in product("abc", repeat=size)]


def inside(sort: SortRange) -> set[str]:
    return {text for text in UNIVERSE if sort.contains(text)}


@given(RANGES)
def test_range_contains_what_its_condition_finds(sort: SortRange) -> None:
    assert inside(sort) == {text for text in UNIVERSE if not sort.empty and holds(sort.condition("k"), text)}


@given(one=RANGES, other=RANGES)
def test_range_that_holds_another_contains_all_of_it(one: SortRange, other: SortRange) -> None:
    assert not one.holds(other) or other.empty or inside(other) <= inside(one)
    assert one.holds(one)


@given(st.lists(RANGES.filter(lambda sort: not sort.empty), min_size=1, max_size=4))
def test_range_around_others_holds_each_and_begins_and_ends_with_one(ranges: list[SortRange]) -> None:
    around = SortRange.around(ranges)

    assert all(around.holds(one) for one in ranges)
    assert around.low in {one.low for one in ranges}
    assert around.high in {one.high for one in ranges}


@given(sort=RANGES, key=TEXTS)
def test_range_is_below_a_key_when_nothing_in_it_reaches_that(sort: SortRange, key: str) -> None:
    assert not sort.is_below(key) or all(text < key for text in inside(sort))
    assert sort.high is None or sort.is_below(sort.high + "a")  # type: ignore[operator]
