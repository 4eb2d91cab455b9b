"""The entry point for AWS Lambda: batches as the event source mapping gives them, and which record failed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from graph.ours import STREAM
from graph.streams.change import Change, ChangeKind
from server import container, lambda_stream
from server.lambda_stream import Follower, handler
from tests.fake_streams import MODEL, told
from tests.test_streams_engine import SDL, ship

ARN = "arn:aws:dynamodb:eu-central-1:123456789012:table/fleet/stream/2026-11-20T00:00:00.000"
FIRST = 4421584500000000017450439091


def record(number: int, before: Any, after: Any) -> dict[str, Any]:
    item = after or before
    images = {"OldImage": before, "NewImage": after}
    return {
        "eventID": f"{number:032x}",
        "eventName": "MODIFY",
        "eventSource": "aws:dynamodb",
        "eventSourceARN": ARN,
        "dynamodb": {
            "ApproximateCreationDateTime": 1795192436.0,
            "Keys": {"PK": item["PK"], "SK": item["SK"]},
            "SequenceNumber": str(FIRST + number),
            "StreamViewType": "NEW_AND_OLD_IMAGES",
            **{name: image for name, image in images.items() if image is not None},
        },
    }


def trips(code: str, count: int) -> Any:
    return ship(code, Trips={"N": str(count)})


class Fragile:
    """A handler that fails at some changes, and keeps the others."""

    def __init__(self, *fails_at: tuple[str, int]) -> None:
        self.handled: list[Change] = []
        self._fails_at = fails_at

    async def __call__(self, changes: Sequence[Change]) -> None:
        if any(told(change) in self._fails_at for change in changes):
            raise ValueError("not this one")
        self.handled += changes


BATCH = [record(number, None, trips("ab"[number % 2], number)) for number in range(6)]


async def test_batch_is_handed_on_at_once_and_in_order() -> None:
    keep = Fragile()

    report = await Follower(MODEL, {"keep": keep}).follow(BATCH, "one")

    assert report == {"batchItemFailures": []}
    assert [told(change) for change in keep.handled] == [("ab"[number % 2], number) for number in range(6)]
    assert [change.place.sequence for change in keep.handled] == [FIRST + number for number in range(6)]


async def test_first_record_that_fails_is_named_and_nothing_behind_it_is_handed_on() -> None:
    keep = Fragile(("b", 3), ("b", 5))

    report = await Follower(MODEL, {"keep": keep}).follow(BATCH, "one")

    assert report == {"batchItemFailures": [{"itemIdentifier": str(FIRST + 3)}]}
    assert [told(change) for change in keep.handled] == [("a", 0), ("b", 1), ("a", 2)]


async def test_batch_that_fails_only_as_a_whole_has_no_failures() -> None:
    handed: list[int] = []

    async def small(changes: Sequence[Change]) -> None:
        handed.append(len(changes))
        if len(changes) > 1:
            raise ValueError("too many")

    assert await Follower(MODEL, {"small": small}).follow(BATCH, "one") == {"batchItemFailures": []}
    assert handed == [6, 1, 1, 1, 1, 1, 1]


async def test_our_own_items_and_writes_that_change_nothing_are_left_out() -> None:
    keep = Fragile()
    ours = {"PK": {"S": "tablegraph-stream"}, "SK": {"S": "tablegraph-stream"}, STREAM: {"S": "{}"}}
    same = trips("a", 1)

    report = await Follower(MODEL, {"keep": keep}).follow([record(1, None, ours), record(2, same, same)], "one")

    assert report == {"batchItemFailures": []}
    assert keep.handled == []


async def test_stream_of_keys_alone_fails_at_its_first_record() -> None:
    keys = record(1, None, trips("a", 1))
    del keys["dynamodb"]["NewImage"]

    report = await Follower(MODEL, {"keep": Fragile()}).follow([keys], "one")

    assert report == {"batchItemFailures": [{"itemIdentifier": str(FIRST + 1)}]}


def test_handler_is_configured_by_its_environment(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tmp_path / "schema.graphql"
    schema.write_text(SDL)
    keep = Fragile()
    variables = {"TABLEGRAPH_SCHEMA": str(schema), "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "x"}
    for name, value in (variables | {"AWS_SECRET_ACCESS_KEY": "y"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(container, "configure_logging", lambda *_: None)
    monkeypatch.setattr(lambda_stream, "handlers_of", lambda *_: {"keep": keep})
    lambda_stream._made.cache_clear()

    flagged = {**trips("a", 2), "flag": {"B": "aGFsbG8="}}
    binary = record(1, trips("a", 1), flagged)
    reports = [
        handler({"Records": records}, SimpleNamespace(aws_request_id="one")) for records in ([], [binary], BATCH)
    ]

    lambda_stream._made()[0].close()
    lambda_stream._made.cache_clear()
    assert reports == [{"batchItemFailures": []}] * 3
    assert keep.handled[0].kind is ChangeKind.CHANGED
    assert keep.handled[0].after == flagged
    assert len(keep.handled) == 7
