"""The requests that DynamoDB answers, as frozen values: built purely, compared in tests, sent by the client alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from graph.expressions import Between as BetweenCondition
from graph.expressions import Compare, Condition, Function, Placeholders, Value, render
from graph.keys import AFTER_ALL, KeyValue
from graph.scalars import AttributeValue, number_text
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


def key_value(attribute: AttributeValue) -> KeyValue:
    """Read a key's value from its attribute. Raises ValueError on binary keys, which no template makes."""
    if "S" in attribute:
        return str(attribute["S"])
    if "N" in attribute:
        return Decimal(attribute["N"])
    raise ValueError("a key of type S or N")


def _key(attributes: KeyAttributes) -> dict[str, dict[str, str]]:
    return {name: key_attribute(value) for name, value in attributes}


def _value(value: KeyValue) -> Value:
    return ("N", number_text(value)) if isinstance(value, Decimal) else ("S", value)


@dataclass(frozen=True, slots=True)
class SortRange:
    """A closed range of sort keys; `prefix` where the range is exactly the texts that begin so."""

    low: KeyValue | None = None
    high: KeyValue | None = None
    prefix: str | None = None

    @staticmethod
    def beginning(prefix: str) -> SortRange:
        """Make the range of all texts with this prefix."""
        return SortRange(prefix, prefix + AFTER_ALL, prefix) if prefix else SortRange()

    @staticmethod
    def exactly(value: KeyValue) -> SortRange:
        """Make the range of one value."""
        return SortRange(value, value)

    def from_(self, low: KeyValue) -> SortRange:
        """Narrow the range to start at `low`."""
        if self.low is not None and low <= self.low:  # type: ignore[operator]
            return self
        return SortRange(low, self.high)

    def to(self, high: KeyValue) -> SortRange:
        """Narrow the range to end at `high`."""
        if self.high is not None and high >= self.high:  # type: ignore[operator]
            return self
        return SortRange(self.low, high)

    @staticmethod
    def around(ranges: Sequence[SortRange]) -> SortRange:
        """Make the least range that holds all of these."""
        lows = [one.low for one in ranges]
        highs = [one.high for one in ranges]
        # Keys of one index are all text or all numbers.
        low = None if None in lows else min(lows)  # type: ignore[type-var]
        high = None if None in highs else max(highs)  # type: ignore[type-var]
        return SortRange(low, high)

    def holds(self, other: SortRange) -> bool:
        """Say whether another range lies within this one."""
        low_fits = self.low is None or (other.low is not None and self.low <= other.low)  # type: ignore[operator]
        return low_fits and (self.high is None or (other.high is not None and other.high <= self.high))  # type: ignore[operator]

    def contains(self, value: KeyValue) -> bool:
        """Say whether a sort key lies in the range."""
        return self.holds(SortRange(value, value))

    def is_below(self, value: KeyValue) -> bool:
        """Say whether the range ends before a sort key."""
        return self.high is not None and self.high < value  # type: ignore[operator]

    @property
    def empty(self) -> bool:
        """Say whether nothing can lie in the range."""
        return self.low is not None and self.high is not None and self.low > self.high  # type: ignore[operator]

    def condition(self, attribute: str) -> Condition | None:
        """Make the key condition on the sort key, or None when the whole partition is meant."""
        if self.prefix is not None:
            return Function("begins_with", attribute, _value(self.prefix))
        if self.low is None and self.high is None:
            return None
        if self.low is None:
            assert self.high is not None
            return Compare(attribute, "<=", _value(self.high))
        if self.high is None:
            return Compare(attribute, ">=", _value(self.low))
        if self.low == self.high:
            return Compare(attribute, "=", _value(self.low))
        return BetweenCondition(attribute, _value(self.low), _value(self.high))


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
        return {"TableName": self.table, "Key": _key(self.key)} | _consistency(consistent=self.consistent)


@dataclass(frozen=True, slots=True)
class BatchGetItem:
    """Up to 100 different items of one table by their keys. Source: DynamoDB API, BatchGetItem."""

    table: str
    keys: tuple[KeyAttributes, ...]
    consistent: bool = False
    operation = "BatchGetItem"
    index = None

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        wanted: dict[str, Any] = {"Keys": [_key(key) for key in self.keys]}
        return {"RequestItems": {self.table: wanted | _consistency(consistent=self.consistent)}}


@dataclass(frozen=True, slots=True)
class Query:
    """A range of one partition, of a table or an index. Source: DynamoDB API, Query.

    `limit` counts the items read, before the filter. `start` is exclusive.
    """

    table: str
    index: str | None
    partition: tuple[str, KeyValue]
    sort: Condition | None = None
    filter: Condition | None = None
    limit: int | None = None
    start: KeyAttributes | None = None
    descending: bool = False
    count: bool = False
    consistent: bool = False
    operation = "Query"

    def parameters(self) -> dict[str, Any]:
        """Write the request as DynamoDB's API takes it."""
        holders = Placeholders()
        name, value = self.partition
        condition = render(Compare(name, "=", _value(value)), holders)
        if self.sort is not None:
            condition += " AND " + render(self.sort, holders)
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
        parameters["ExclusiveStartKey"] = _key(request.start)
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
        body |= {"Key": _key(self.key)} if self.item is None else {"Item": self.item}
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


Request = (
    GetItem | BatchGetItem | Query | Scan | PutItems | TransactWriteItems | DescribeTable | ListTables | CreateTable
)
