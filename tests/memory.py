"""Tables in memory, as strict as DynamoDB about what a read may ask, and free to choose what it leaves open.

It ends its pages early, orders the items of an index that share a sort key by nothing that could be guessed, gives a
LastEvaluatedKey behind which nothing is left, and refuses what some engines let pass.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.errors import Unavailable
from graph.expressions import AllOf, AnyOf, Between, Compare, Condition, Function, Not, holds
from graph.model import Index, Model, Projection
from graph.requests import (
    BatchGetItem,
    GetItem,
    Item,
    ItemKey,
    KeyAttributes,
    PutItems,
    Query,
    Request,
    Scan,
    key_value,
)


class Memory:
    """The tables of a model; `page_items` is how many items make a megabyte."""

    def __init__(self, model: Model, page_items: int = 10**6) -> None:
        self._model = model
        self.page_items = page_items
        self.items: dict[ItemKey, Item] = {}
        self.requests: list[Request] = []
        """What was asked, in order."""
        self.failing: int | None = None
        """The number of a request that is answered with an error."""

    def put(self, items: Iterable[Item]) -> None:
        """Store items in the first table."""
        table = next(iter(self._model.tables))
        for item in items:
            self.items[self._key(table, item)] = item

    def delete(self, item: Item) -> None:
        """Delete an item of the first table."""
        del self.items[self._key(next(iter(self._model.tables)), item)]

    def _key(self, table: str, item: Item) -> ItemKey:
        names = self._model.tables[table].key_attributes
        return table, tuple((name, key_value(item[name])) for name in names)

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a request."""
        meter.requests.append(request)
        number = len(self.requests)
        self.requests.append(request)
        await asyncio.sleep(0)
        if number == self.failing:
            raise Unavailable("this request fails")
        match request:
            case GetItem(table, key):
                found = self.items.get((table, key))
                return {} if found is None else {"Item": found}
            case BatchGetItem(table, keys):
                assert 1 <= len(keys) <= 100
                assert len(set(keys)) == len(keys), "a BatchGetItem may not ask for a key twice"
                found_ = [self.items[table, key] for key in keys if (table, key) in self.items]
                return {"Responses": {table: found_}, "UnprocessedKeys": {}}
            case Query():
                return self._query(request)
            case Scan():
                return self._scan(request)
            case PutItems(_, items):
                self.put(items)
        return {}

    # --- Query ---

    def _query(self, request: Query) -> Response:
        index = next(way for way in self._model.tables[request.table].ways if way.name == request.index)
        partition = dict(request.partition)
        assert len(partition) == len(request.partition), "one condition for each attribute"
        assert partition.keys() == {*index.partition_keys}, "a Query says what every partition attribute equals"
        assert "" not in partition.values()
        refuse_sort(request.sort, index.sort_keys)
        _refuse_names(request.filter, {*index.key_attributes})
        items = [
            item
            for (table, _), item in self.items.items()
            if table == request.table
            and _is_in(index, item)
            and all(key_value(item[name]) == value for name, value in request.partition)
        ]
        items = [item for item in items if request.sort is None or holds(request.sort, item)]
        place = self._place(index)
        items.sort(key=place, reverse=request.descending)
        if request.start is not None:
            start = self._start(index, request)
            items = [item for item in items if (place(item) < start if request.descending else place(item) > start)]
        names = (*self._model.tables[request.table].key_attributes, *index.key_attributes)
        return self._page(request, items, index, list(dict.fromkeys(names)))

    def _place(self, index: Index) -> Callable[[Item], tuple[Any, int]]:
        def place(item: Item) -> tuple[Any, int]:
            sort = tuple(key_value(item[name]) for name in index.sort_keys)
            primary = self._key(index.table, item)
            return sort, 0 if index.name is None else zlib.crc32(repr(primary).encode())

        return place

    def _start(self, index: Index, request: Query) -> tuple[Any, int]:
        assert request.start is not None
        start = {
            name: {"N": str(value)} if isinstance(value, Decimal) else {"S": value} for name, value in request.start
        }
        names = {*index.key_attributes, *self._model.tables[index.table].key_attributes}
        assert start.keys() == names, "the ExclusiveStartKey has the keys of the table and of the index"
        assert len(start) == len(request.start)
        assert all(key_value(start[name]) == value for name, value in request.partition)
        assert request.sort is None or holds(request.sort, start), "the ExclusiveStartKey is outside of the range"
        return self._place(index)(start)

    def _page(self, request: Query | Scan, items: list[Item], index: Index, key: list[str]) -> Response:
        limit = min(request.limit or self.page_items, self.page_items)
        assert request.limit is None or request.limit >= 1
        evaluated = items[:limit]
        found = [item for item in evaluated if request.filter is None or holds(request.filter, item)]
        response: Response = {"Count": len(found), "ScannedCount": len(evaluated)}
        if not request.count:
            response["Items"] = [_projected(index, item, key) for item in found]
        if len(evaluated) == limit:
            response["LastEvaluatedKey"] = {name: evaluated[-1][name] for name in key}
        return response

    # --- Scan ---

    def _scan(self, request: Scan) -> Response:
        def hashed(key: KeyAttributes) -> int:
            return zlib.crc32(repr(key).encode())

        keys = sorted((key for table, key in self.items if table == request.table), key=hashed)
        keys = [key for key in keys if zlib.crc32(repr(key[0]).encode()) % request.segments == request.segment]
        if request.start is not None:
            keys = [key for key in keys if hashed(key) > hashed(request.start)]
        primary = self._model.tables[request.table].primary
        items = [self.items[request.table, key] for key in keys]
        return self._page(request, items, primary, list(self._model.tables[request.table].key_attributes))


def key_condition(query: Query) -> str:
    """Write down the key condition of a Query, with its names and values in their places."""
    parameters = query.parameters()
    text: str = parameters["KeyConditionExpression"]
    for holder, name in parameters["ExpressionAttributeNames"].items():
        text = re.sub(rf"{holder}\b", name, text)
    for holder, value in parameters["ExpressionAttributeValues"].items():
        ((_, shown),) = value.items()
        text = re.sub(rf"{holder}\b", shown.replace("\U0010ffff", "…").replace("\x00", "␀"), text)
    return text if query.index is None else f"{query.index}: {text}"


def _is_in(index: Index, item: Item) -> bool:
    return all(name in item for name in index.key_attributes)


def _projected(index: Index, item: Item, key: list[str]) -> Item:
    if index.projection is Projection.ALL:
        return item
    more = index.projection if isinstance(index.projection, frozenset) else ()
    return {name: value for name, value in item.items() if name in (*key, *more)}


def _conditions(condition: Condition | None) -> Iterator[Condition]:
    if condition is not None:
        yield condition
    if isinstance(condition, Not):
        yield from _conditions(condition.condition)
    elif isinstance(condition, (AllOf, AnyOf)):
        for part in condition.conditions:
            yield from _conditions(part)


def refuse_sort(sort: Condition | None, names: Sequence[str]) -> None:
    """Refuse what DynamoDB does: a gap before a condition on a sort attribute, or one behind a range."""
    conditions = () if sort is None else sort.conditions if isinstance(sort, AllOf) else (sort,)
    assert len(conditions) <= len(names), "more conditions than sort attributes"
    for place, condition in enumerate(conditions):
        assert isinstance(condition, (Compare, Between, Function)), "no condition on a key"
        assert condition.attribute == names[place], "sort attributes are bound from left to right, without gaps"
        is_equal = isinstance(condition, Compare) and condition.comparator == "="
        assert is_equal or place == len(conditions) - 1, "only the last condition may be a range"
        _refuse_values(condition)


def _refuse_values(condition: Compare | Between | Function) -> None:
    match condition:
        case Compare(_, comparator, (_, value)):
            assert comparator != "<>"
            assert value != "", "a key condition takes no empty text"
        case Function(name, _, (letter, value)):
            assert (name, letter) == ("begins_with", "S")
            assert value != "", "a key condition takes no empty text"
        case Between(_, (_, low), (letter, high)):
            assert low != ""
            assert (Decimal(low) <= Decimal(high)) if letter == "N" else low <= high, "BETWEEN the wrong way round"


def _refuse_names(filter_: Condition | None, names: set[str]) -> None:
    for condition in _conditions(filter_):
        if not isinstance(condition, (Not, AllOf, AnyOf)):
            assert condition.attribute not in names, "a filter may not name the attributes of the key"
        if isinstance(condition, Between):
            assert holds(Compare("x", "<=", condition.high), {"x": dict([condition.low])})
