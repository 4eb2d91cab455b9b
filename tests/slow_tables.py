"""One table as DynamoDB changes it: slowly, one index at a time, and with an error for whoever does not wait."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from graph.apply.state import Target, targets
from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.errors import RequestRefused, TableBusy, TableMissing, Throttled
from graph.requests import (
    CreateTable,
    DescribeTable,
    DescribeTimeToLive,
    GetItem,
    Request,
    Scan,
    TransactWriteItems,
    UpdateTable,
    UpdateTimeToLive,
)
from graph.tables import STREAM, create_table
from resolvers.sdl import compile_model

FLEET = """
extend schema
  @table(name: "fleet", partitionKey: "PK", sortKey: "SK")
  @index(name: "reverse", partitionKey: "SK", sortKey: "PK")
  @index(name: "by-owner", partitionKey: "Owner", sortKey: "Number")
  @index(name: "names", partitionKey: "Name", projection: ["Size"])

type Ship @node(key: "SHIP#{code}") @indexed(by: "by-owner", partition: "OWNER#{owner}", sort: "{number}")
  @indexed(by: "names", partition: "{name:lower}") {
  code: ID!
  owner: ID!
  number: Int!
  name: String!
  size: Int @attribute(name: "Size")
  gone: Int @ttl
}
"""
ALL = ("reverse", "by-owner", "names")
ON = {"TimeToLiveStatus": "ENABLED", "AttributeName": "gone"}


def target_of(sdl: str) -> Target:
    """The only table of a model."""
    (target,) = targets(compile_model(sdl), None)
    return target


def definition(target: Target, *indexes: str, **also: Any) -> dict[str, Any]:
    """The model's table as CreateTable makes it, with these global indexes alone."""
    made = dict(create_table(target.model, target.table).definition)
    held = [index for index in made.pop("GlobalSecondaryIndexes", ()) if index["IndexName"] in indexes]
    names = {key["AttributeName"] for one in (made, *held) for key in one["KeySchema"]}
    made["AttributeDefinitions"] = [one for one in made["AttributeDefinitions"] if one["AttributeName"] in names]
    return made | ({"GlobalSecondaryIndexes": held} if held else {}) | {"StreamSpecification": STREAM} | also


def described(target: Target, *indexes: str, **also: Any) -> dict[str, Any]:
    """The same as DescribeTable describes it, all of it ready for use."""
    made = {"TableStatus": "ACTIVE", "ItemCount": 7, **definition(target, *indexes, **also)}
    for index in made.get("GlobalSecondaryIndexes", ()):
        index.setdefault("IndexStatus", "ACTIVE")
    return made


class Killed(BaseException):
    """The process ends here."""


class SlowTable:
    """Every DescribeTable finds it a phase further; what is asked for meanwhile is refused as DynamoDB refuses it.

    Source: DynamoDB Developer Guide, "Phases of index creation". `lag` is how many descriptions are still those of
    before a change.
    """

    def __init__(self, definition: dict[str, Any] | None = None, lag: int = 0) -> None:
        self.table: dict[str, Any] | None = None
        self.time_to_live: dict[str, str] = {"TimeToLiveStatus": "DISABLED"}
        self.mark: Any = None
        self.requests: list[Request] = []
        self.refused: list[str] = []
        self.kill_at: int | None = None
        self._lag = lag
        self._stale: list[Any] = []
        self._phases: Iterator[None] = iter(())
        if definition is not None:
            self._create(definition)
            self.settle()

    def settle(self) -> None:
        """Let all that is under way come to its end."""
        for _ in self._phases:
            pass
        self._stale.clear()

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a request, or be killed in its place."""
        if self.kill_at == len(self.requests):
            self.kill_at = None
            raise Killed
        self.requests.append(request)
        return self._answer(request)

    def _answer(self, request: Request) -> Response:
        if isinstance(request, DescribeTable):
            return self._describe()
        if isinstance(request, CreateTable):
            if self.table is not None:
                raise self._refusal(TableBusy("ResourceInUseException"))
            return self._changed(lambda: self._create(request.parameters()))
        if isinstance(request, UpdateTable):
            parameters = request.parameters()
            if "StreamSpecification" in parameters:
                return self._changed(lambda: self._switch(parameters["StreamSpecification"]))
            return self._changed(lambda: self._update(parameters["GlobalSecondaryIndexUpdates"]))
        if isinstance(request, DescribeTimeToLive):
            return {"TimeToLiveDescription": dict(self.time_to_live)}
        if isinstance(request, UpdateTimeToLive):
            if self.time_to_live["TimeToLiveStatus"] != "DISABLED":
                raise self._refusal(RequestRefused("ValidationException"))
            self.time_to_live = {"TimeToLiveStatus": "ENABLING", "AttributeName": request.attribute}
            return {}
        return self._data(request)

    def _data(self, request: Request) -> Response:
        if self.table is None or self.table["TableStatus"] == "CREATING":
            raise self._refusal(TableMissing("ResourceNotFoundException"))
        if isinstance(request, GetItem):
            return {} if self.mark is None else {"Item": self.mark}
        if isinstance(request, TransactWriteItems):
            (action,) = request.actions
            self.mark = action.item
            return {}
        assert isinstance(request, Scan), f"{request.operation} is not expected of an empty table"
        return {"Items": [], "Count": 0, "ScannedCount": 0}

    def _describe(self) -> Response:
        if self._stale:
            described = self._stale.pop()
        else:
            next(self._phases, None)
            described = copy.deepcopy(self.table)
        if described is None:
            raise TableMissing("ResourceNotFoundException")
        return {"Table": described}

    def _changed(self, change: Callable[[], None]) -> Response:
        before = copy.deepcopy(self.table)
        change()
        self._stale = [before] * self._lag
        return {}

    def _refusal(self, error: Exception) -> Exception:
        self.refused.append(str(error))
        return error

    def _create(self, definition: dict[str, Any]) -> None:
        self.table = {**copy.deepcopy(definition), "TableStatus": "CREATING", "ItemCount": 0}
        for index in self.table.get("GlobalSecondaryIndexes", ()):
            index["IndexStatus"] = "CREATING"
        self._phases = self._creating()

    def _creating(self) -> Iterator[None]:
        assert self.table is not None
        yield
        self.table["TableStatus"] = "ACTIVE"
        for index in self.table.get("GlobalSecondaryIndexes", ()):
            index["IndexStatus"] = "ACTIVE"
        yield

    def _switch(self, stream: dict[str, Any]) -> None:
        assert self.table is not None
        if self.table["TableStatus"] != "ACTIVE":
            raise self._refusal(TableBusy("ResourceInUseException"))
        if "StreamSpecification" in self.table:
            raise self._refusal(RequestRefused("ValidationException"))
        self.table |= {"StreamSpecification": stream, "TableStatus": "UPDATING"}
        self._phases = self._settling()

    def _settling(self) -> Iterator[None]:
        assert self.table is not None
        yield
        self.table["TableStatus"] = "ACTIVE"
        yield

    def _update(self, updates: list[dict[str, Any]]) -> None:
        assert self.table is not None
        indexes = self.table.setdefault("GlobalSecondaryIndexes", [])
        if self.table["TableStatus"] != "ACTIVE":
            raise self._refusal(TableBusy("ResourceInUseException"))
        if len(updates) != 1 or any(index["IndexStatus"] != "ACTIVE" for index in indexes):
            raise self._refusal(Throttled("LimitExceededException: Only 1 online index can be created or deleted"))
        ((verb, change),) = updates[0].items()
        found = [index for index in indexes if index["IndexName"] == change["IndexName"]]
        if bool(found) is (verb == "Create"):
            raise self._refusal(RequestRefused("ValidationException"))
        index = found[0] if found else {**copy.deepcopy(change), "IndexStatus": "CREATING", "Backfilling": False}
        if not found:
            indexes.append(index)
        self.table["TableStatus"] = "UPDATING"
        self._phases = self._adding(index) if verb == "Create" else self._deleting(index)

    def _adding(self, index: dict[str, Any]) -> Iterator[None]:
        assert self.table is not None
        yield
        # The table takes part again while the index is filled.
        self.table["TableStatus"], index["Backfilling"] = "ACTIVE", True
        yield
        yield
        index["IndexStatus"] = "ACTIVE"
        del index["Backfilling"]
        yield

    def _deleting(self, index: dict[str, Any]) -> Iterator[None]:
        assert self.table is not None
        index["IndexStatus"] = "DELETING"
        yield
        self.table["TableStatus"] = "ACTIVE"
        yield
        self.table["GlobalSecondaryIndexes"].remove(index)
        yield
