"""The requests that DynamoDB answers, as frozen values: built purely, compared in tests, sent by the client alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

from graph.expressions import AllOf, Compare, Condition, Placeholders, Value, render, values_in
from graph.keys import KeyValue
from graph.scalars import AttributeValue, number_text
from graph.streams.requests import StreamRequest
from graph.updates import Update, render_update

Item = Mapping[str, AttributeValue]
"""An item as DynamoDB's JSON carries it."""

KeyAttributes = tuple[tuple[str, KeyValue], ...]
"""The attributes of a primary key, or of an ExclusiveStartKey, in order."""

ItemKey = tuple[str, KeyAttributes]
"""A table and the primary key of an item in it."""


def key_attribute(value: KeyValue) -> dict[str, str]:
    """Write a key's value as an attribute value."""
    return {"N": number_text(value)} if isinstance(value, Decimal) else {"S": value}


def key_pair(value: KeyValue) -> Value:
    """Write a key's value as a pair."""
    return ("N", number_text(value)) if isinstance(value, Decimal) else ("S", value)


def key_value(attribute: AttributeValue) -> KeyValue:
    """Read a key's value from its attribute. Raises ValueError on binary keys, which no template makes."""
    if "S" in attribute:
        return str(attribute["S"])
    if "N" in attribute:
        return Decimal(attribute["N"])
    raise ValueError("a key of type S or N")


def key_of(attributes: KeyAttributes) -> dict[str, dict[str, str]]:
    """Write a key as an item's attributes."""
    # As key_attribute does, without a call for each: a BatchGetItem has hundreds.
    return {
        name: {"N": number_text(value)} if isinstance(value, Decimal) else {"S": value} for name, value in attributes
    }


@dataclass(frozen=True, slots=True)
class GetItem:
    """One item by its key. Source: DynamoDB API, GetItem."""

    table: str
    key: KeyAttributes
    consistent: bool = False
    operation = "GetItem"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"TableName": self.table, "Key": key_of(self.key)} | _consistency(consistent=self.consistent)


@dataclass(frozen=True, slots=True)
class BatchGetItem:
    """Up to 100 different items of one table by their keys. Source: DynamoDB API, BatchGetItem.

    All keys name the same attributes in the same order.
    """

    table: str
    keys: tuple[KeyAttributes, ...]
    consistent: bool = False
    operation = "BatchGetItem"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        wanted: dict[str, Any] = {"Keys": list(map(key_of, self.keys))}
        return {"RequestItems": {self.table: wanted | _consistency(consistent=self.consistent)}}


class Prepared(NamedTuple):
    """The body of a Query, written as far as all Queries of its shape have it in common."""

    values: frozenset[Value]
    """The values in its filter: one that is in the key condition as well has but one placeholder for both."""
    head: bytes
    """Everything but the values of the key condition and the ExclusiveStartKey."""


@dataclass(frozen=True)
class Query:
    """A range of one partition, of a table or an index. Source: DynamoDB API, Query.

    `sort` is on the sort attributes from the first on: equal values, and behind them at most one range. `limit` counts
    the items read, before the filter. `start` is exclusive.

    Its shape is everything but the values of the key condition and `start`. Queries made from each other by `of` have
    one shape, which is written as JSON once for all of them.
    """

    table: str
    index: str | None
    partition: KeyAttributes
    sort: Condition | None = None
    filter: Condition | None = None
    limit: int | None = None
    start: KeyAttributes | None = None
    descending: bool = False
    count: bool = False
    consistent: bool = False
    operation = "Query"

    def of(
        self, values: tuple[KeyValue, ...], start: KeyAttributes | None = None, sort: Condition | None = None
    ) -> Query:
        """Make the Query of another partition, by the values of its attributes, from the beginning or from `start`.

        A `sort` differs from this one's in its values only.

        Raises: ValueError for another number of values.
        """
        fields = self.__dict__.copy()
        if "prepared" not in fields:
            fields["prepared"] = self.prepared
            fields["_hash_of_shape"] = self._hash_of_shape
            fields["sort_values"] = self.sort_values
        if len(values) == len(self.partition) == 1:
            fields["partition"] = ((self.partition[0][0], values[0]),)
        else:
            fields["partition"] = tuple(
                [(name, value) for (name, _), value in zip(self.partition, values, strict=True)]
            )
        fields["start"] = start
        if sort is not None:
            fields["sort"] = sort
            fields.pop("_hash_of_shape", None)
            fields.pop("sort_values", None)
        made = object.__new__(Query)
        # Past __init__: what is prepared goes along.
        object.__setattr__(made, "__dict__", fields)
        return made

    def __hash__(self) -> int:
        return hash((self._hash_of_shape, self.partition, self.start))

    @cached_property
    def _hash_of_shape(self) -> int:
        flags = self.descending, self.count, self.consistent
        return hash((self.table, self.index, self.sort, self.filter, self.limit, flags))

    @property
    def has_several_attributes(self) -> bool:
        """Say whether it names several partition attributes, or several sort attributes."""
        return len(self.partition) > 1 or isinstance(self.sort, AllOf)

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return self.written([key_pair(value) for _, value in self.partition], self.sort, Placeholders())

    @cached_property
    def sort_values(self) -> list[Value]:
        """The values in `sort`, in the order of its expression."""
        return [] if self.sort is None else values_in(self.sort)

    @cached_property
    def prepared(self) -> dict[tuple[int, ...], Prepared]:
        """The bodies of the shape, by which of the key condition's values are equal: filled by `body_of`."""
        return {}

    def written(self, values: list[Value], sort: Condition | None, holders: Placeholders) -> dict[str, Any]:
        """Write the parameters with these values of the partition attributes, and this sort condition."""
        equal = (Compare(name, "=", value) for (name, _), value in zip(self.partition, values, strict=True))
        condition = render(AllOf(tuple(equal)), holders)
        if sort is not None:
            condition += " AND " + render(sort, holders)
        parameters: dict[str, Any] = {"TableName": self.table}
        if self.index is not None:
            parameters["IndexName"] = self.index
        parameters["KeyConditionExpression"] = condition
        _add_reading(parameters, self, holders)
        if self.descending:
            parameters["ScanIndexForward"] = False
        return parameters | _consistency(consistent=self.consistent)


@dataclass(frozen=True, slots=True)
class Scan:
    """One segment of a whole table. Source: DynamoDB API, Scan; "Parallel scan"."""

    table: str
    segment: int
    segments: int
    filter: Condition | None = None
    limit: int | None = None
    start: KeyAttributes | None = None
    count: bool = False
    consistent: bool = False
    operation = "Scan"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        parameters: dict[str, Any] = {"TableName": self.table}
        if self.segments > 1:
            parameters |= {"Segment": self.segment, "TotalSegments": self.segments}
        _add_reading(parameters, self, Placeholders())
        return parameters | _consistency(consistent=self.consistent)


def _consistency(*, consistent: bool) -> dict[str, Any]:
    return {"ConsistentRead": True} if consistent else {}


def _add_reading(parameters: dict[str, Any], request: Query | Scan, holders: Placeholders) -> None:
    if request.filter is not None:
        parameters["FilterExpression"] = render(request.filter, holders)
    parameters |= holders.parameters()
    if request.limit is not None:
        parameters["Limit"] = request.limit
    if request.start is not None:
        parameters["ExclusiveStartKey"] = key_of(request.start)
    if request.count:
        parameters["Select"] = "COUNT"


@dataclass(frozen=True, slots=True)
class PutItems:
    """Up to 25 items written without conditions. Source: DynamoDB API, BatchWriteItem."""

    table: str
    items: tuple[Item, ...]
    operation = "BatchWriteItem"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"RequestItems": {self.table: [{"PutRequest": {"Item": item}} for item in self.items]}}


NO_UPDATE = Update()


@dataclass(frozen=True, slots=True)
class Action:
    """What a transaction does to one item: one of `item` (Put), `update` and `delete`, or else a check.

    Source: DynamoDB API, TransactWriteItem.
    """

    table: str
    key: KeyAttributes
    item: Item | None = None
    update: Update = NO_UPDATE
    delete: bool = False
    condition: Condition | None = None

    @property
    def verb(self) -> str:
        """Name the action as DynamoDB does."""
        if self.item is not None:
            return "Put"
        return "Update" if self.update else "Delete" if self.delete else "ConditionCheck"

    def parameters(self) -> dict[str, Any]:
        """Write the action as DynamoDB's API takes it."""
        holders = Placeholders()
        body: dict[str, Any] = {"TableName": self.table}
        body |= {"Key": key_of(self.key)} if self.item is None else {"Item": self.item}
        if self.update:
            body["UpdateExpression"] = render_update(self.update, holders)
        if self.condition is not None:
            body["ConditionExpression"] = render(self.condition, holders)
            # What lies there says which part of the condition failed.
            body["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return {self.verb: body | holders.parameters()}


@dataclass(frozen=True, slots=True)
class TransactWriteItems:
    """Up to 100 actions on different items, all or none. Source: DynamoDB API, TransactWriteItems.

    `token` makes the request, sent again within ten minutes, happen once.
    """

    actions: tuple[Action, ...]
    token: str
    operation = "TransactWriteItems"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {
            "TransactItems": [action.parameters() for action in self.actions],
            "ClientRequestToken": self.token,
        }


@dataclass(frozen=True, slots=True)
class DescribeTable:
    """The state of a table. Source: DynamoDB API, DescribeTable."""

    table: str
    operation = "DescribeTable"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"TableName": self.table}


@dataclass(frozen=True, slots=True)
class ListTables:
    """The names of up to 100 tables, in order, behind one of them. Source: DynamoDB API, ListTables."""

    after: str | None = None
    operation = "ListTables"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {} if self.after is None else {"ExclusiveStartTableName": self.after}


@dataclass(frozen=True, slots=True)
class CreateTable:
    """A new table with its indexes, billed by request. Source: DynamoDB API, CreateTable."""

    table: str
    definition: Mapping[str, Any]
    operation = "CreateTable"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return dict(self.definition)


@dataclass(frozen=True, slots=True)
class UpdateTable:
    """One change of a table, of a global index or its stream: DynamoDB takes no more at once.

    Source: DynamoDB API, UpdateTable.
    """

    table: str
    changes: Mapping[str, Any]
    operation = "UpdateTable"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"TableName": self.table, **self.changes}


@dataclass(frozen=True, slots=True)
class DescribeTimeToLive:
    """By which attribute the items of a table expire. Source: DynamoDB API, DescribeTimeToLive."""

    table: str
    operation = "DescribeTimeToLive"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"TableName": self.table}


@dataclass(frozen=True, slots=True)
class UpdateTimeToLive:
    """Has DynamoDB delete the items of a table that have expired. Source: DynamoDB API, UpdateTimeToLive."""

    table: str
    attribute: str
    operation = "UpdateTimeToLive"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        specification = {"Enabled": True, "AttributeName": self.attribute}
        return {"TableName": self.table, "TimeToLiveSpecification": specification}


@dataclass(frozen=True, slots=True)
class DescribeContinuousBackups:
    """Whether a table can be restored as of any second. Source: DynamoDB API, DescribeContinuousBackups."""

    table: str
    operation = "DescribeContinuousBackups"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        return {"TableName": self.table}


TableRequest = (
    DescribeTable
    | ListTables
    | CreateTable
    | UpdateTable
    | DescribeTimeToLive
    | UpdateTimeToLive
    | DescribeContinuousBackups
)
"""Requests about tables themselves: they consume no capacity."""

Request = GetItem | BatchGetItem | Query | Scan | PutItems | TransactWriteItems | TableRequest | StreamRequest
