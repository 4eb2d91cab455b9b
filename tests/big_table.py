"""A table as large as no local engine has one: described as DynamoDB describes it, and read by segments and pages."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from graph.apply.state import Target, targets
from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.errors import AccessRefused, RequestRefused
from graph.requests import (
    BatchGetItem,
    DescribeContinuousBackups,
    DescribeTable,
    DescribeTimeToLive,
    GetItem,
    Item,
    Query,
    Request,
    Scan,
)
from graph.sizes import item_bytes
from graph.tables import lasting_table
from resolvers.sdl import compile_model

PAGE_BYTES = 1_000_000
UNIT_BYTES = 8192


def target_of(sdl: str) -> Target:
    """The only table of a model."""
    (target,) = targets(compile_model(sdl), None)
    return target


def described(target: Target, **also: Any) -> dict[str, Any]:
    """The table as DescribeTable describes it when it is as `table apply` makes it."""
    made: dict[str, Any] = {"TableStatus": "ACTIVE", **lasting_table(target.model, target.table).definition}
    for index in made.get("GlobalSecondaryIndexes", ()):
        index["IndexStatus"] = "ACTIVE"
    return made | also


@dataclass(frozen=True)
class Part:
    """The items of one partition: made when they are read, for there may be millions."""

    partition: str
    count: int
    item: Callable[[str, int], Item]


class BigTable:
    """Answers what the doctor asks; items of a partition lie in one segment, in the order of their numbers."""

    def __init__(self, target: Target, parts: Sequence[Part], table: dict[str, Any], *, seed: int = 0) -> None:
        self.table = table
        self.backups: str | None = "ENABLED"
        self.refused: frozenset[str] = frozenset()
        self.time_to_live: dict[str, Any] = {"TimeToLiveStatus": "ENABLED", "AttributeName": target.expiry}
        self.requests: list[Request] = []
        self.units = 0.0
        self._names = target.table.key_attributes
        # Where a partition lies is as good as random, as by DynamoDB's hash.
        placed = [(zlib.crc32(f"{seed}{part.partition}".encode()), part.partition, part) for part in parts]
        self._parts = sorted(placed, key=lambda one: one[:2])

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a request."""
        meter.requests.append(request)
        self.requests.append(request)
        if request.operation in self.refused:
            raise AccessRefused(f"AccessDeniedException: not authorized to perform: dynamodb:{request.operation}")
        if isinstance(request, DescribeTable):
            return {"Table": self.table}
        if isinstance(request, DescribeTimeToLive):
            return {"TimeToLiveDescription": self.time_to_live}
        if isinstance(request, DescribeContinuousBackups):
            if self.backups is None:
                raise RequestRefused("UnknownOperationException")
            status = {"PointInTimeRecoveryStatus": self.backups}
            return {"ContinuousBackupsDescription": {"PointInTimeRecoveryDescription": status}}
        if isinstance(request, GetItem):
            return {}
        if isinstance(request, BatchGetItem):
            self._spend(meter, len(request.keys) / 2)
            return {"Responses": {request.table: []}, "UnprocessedKeys": {}}
        assert isinstance(request, (Scan, Query)), f"the doctor sends no {request.operation}"
        return self._page(request, meter, list(self._in(request)))

    def _in(self, request: Scan | Query) -> Iterator[Part]:
        for place, name, part in self._parts:
            if isinstance(request, Query):
                if name == request.partition[0][1]:
                    yield part
            elif place * request.segments >> 32 == request.segment:
                yield part

    def _page(self, request: Scan | Query, meter: Meter, parts: list[Part]) -> Response:
        start = dict(request.start or ())
        begun = not start
        items: list[Item] = []
        size, last = 0, None
        for part in parts:
            first = 0
            if not begun:
                if part.partition != start[self._names[0]]:
                    continue
                begun, first = True, int(str(start[self._names[1]]).rpartition("#")[2]) + 1
            for number in range(first, part.count):
                item = part.item(part.partition, number)
                items.append(item)
                size += item_bytes(item)
                if size >= PAGE_BYTES or (request.limit and len(items) == request.limit):
                    last = item
                    break
            if last is not None:
                break
        self._spend(meter, max(1, ceil(size / (UNIT_BYTES / 2))) / 2)
        answer: dict[str, Any] = {"Count": len(items), "ScannedCount": len(items)}
        if not request.count:
            answer["Items"] = items
        if last is not None:
            answer["LastEvaluatedKey"] = {name: last[name] for name in self._names}
        return answer

    def _spend(self, meter: Meter, units: float) -> None:
        meter.capacity_units += units
        self.units += units
