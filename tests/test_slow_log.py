"""The log of slow and expensive operations: what a line tells, what it keeps to itself, and how often it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from graph.client import Response, Transport
from resolvers.redaction import CHARACTERS, redacted
from server.telemetry import slow
from tests.conftest import BANANAS, Serve, Served, banana_items
from tests.following import follow
from tests.observed import observed

LOOK = """query Look($number: ID! = "SECRET-0") { # SECRET-1
  container(number: $number) { pallets(first: 10) { nodes { origin } } }
  other: container(number: "SECRET-2") { number }
}"""


def lines_in(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [
        {"message": each.message, **each.__dict__["fields"]} for each in caplog.records if each.name == slow.__name__
    ]


async def test_an_expensive_operation_tells_its_requests_and_no_values(
    bananas: Served, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async with observed(bananas, transport, expensive_units=1) as app:
        answer = await app(LOOK, {"number": "009998"})

    (line,) = lines_in(caplog)
    assert "errors" not in answer.json()
    assert (line["message"], line["type"], line["operation"]) == ("expensive operation", "query", "Look")
    assert (line["requests"], line["items_read"], line["capacity_units"]) == (2, 5, 2.0)
    assert (line["event"], line["errors"], line["suppressed"]) == (False, [], 0)
    assert line["document"] == (
        "query Look($number: ID! = …) { container(number: $number) { pallets(first: 10) { nodes { origin } } } "
        "other: container(number: …) { number } }"
    )
    assert len(line["document_hash"]) == 64
    assert [text.split(" from ")[0] for text in line["dynamodb"]] == [
        f"Query {bananas.table}: 1",
        f"BatchGetItem {bananas.table}: 1",
    ]
    assert [text.split(" ms together, ")[1] for text in line["dynamodb"]] == [
        "3 items, 0.5 units",
        "2 items, 1.5 units",
    ]
    assert "SECRET" not in caplog.text + str(line)
    assert "009998" not in caplog.text + str(line)


async def test_what_is_neither_slow_nor_expensive_is_not_told(
    bananas: Served, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async with observed(bananas, transport, expensive_units=1000, slow_ms=600_000) as app:
        await app(LOOK, {"number": "009998"})

    assert lines_in(caplog) == []


async def test_a_slow_operation_tells_which_request_took_so_long(
    bananas: Served, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    async def slowed(operation: str, parameters: dict[str, Any]) -> Response:
        await asyncio.sleep(0.03)
        return await transport(operation, parameters)

    async with observed(bananas, slowed, slow_ms=30) as app:
        await app('{ container(number: "009998") { operator } }')

    (line,) = lines_in(caplog)
    assert line["message"] == "slow operation"
    assert line["duration_ms"] >= 30
    (call,) = line["dynamodb"]
    assert float(call.split(", ")[1].removesuffix(" ms together")) >= 30


async def test_a_document_is_told_of_once_a_minute(
    bananas: Served, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    times = [0, 59, 59.9, 60, 61]
    clock = iter(times)
    async with observed(bananas, transport, slow_ms=1, expensive_units=1) as app:
        app.telemetry._slow = slow.SlowLog(None, 0, clock=lambda: next(clock, 61))
        for _ in times:
            await app("query Same { __typename }")
        await app("query Another { __typename }")

    assert [(line["operation"], line["suppressed"]) for line in lines_in(caplog)] == [
        ("Same", 0),
        ("Same", 2),
        ("Another", 0),
    ]


async def test_so_many_documents_are_remembered(
    bananas: Served, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow, "DOCUMENTS", 3)
    async with observed(bananas, transport, expensive_units=1) as app:
        app.telemetry._slow = known = slow.SlowLog(None, 0)
        for number in range(10):
            await app(f"query Q{number} {{ __typename }}")

    assert len(known._told) == 3


async def test_an_event_is_told_of_like_an_operation(
    serve: Serve, engine: str, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    followed = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)

    async with observed(followed.served, transport, hub=followed.hub, expensive_units=1) as app:
        query = "subscription Watch { containerChanged { node { pallets { nodes { origin } } } } }"
        asking = asyncio.create_task(app(query, headers={"accept": "text/event-stream"}))
        await followed.hub.wanted.wait()
        await followed.write(
            'mutation { updateContainer(key: {number: "009998"}, set: {operator: "X"}) { __typename } }'
        )
        followed.hub.close()
        await asking

    (line,) = lines_in(caplog)
    assert (line["type"], line["operation"], line["event"]) == ("subscription", "Watch", True)
    assert line["requests"] > 0


@pytest.mark.parametrize(
    ("document", "shown"),
    [
        ('{ a(x: "s", y: 12, z: 1.5, e: RED, b: true, n: null) }', "{ a(x: …, y: …, z: …, e: RED, b: true, n: null) }"),
        ('{ a(x: """block\n "quoted" text""") }', "{ a(x: …) }"),
        ("{ a(first: 10, last: $n) { b } # why\n}", "{ a(first: 10, last: $n) { b } }"),
        ('{ a(where: {first: {eq: "s"}, last: 3}) }', "{ a(where: {first: {eq: …}, last: …}) }"),
        ('{ a(x: "not closed', "{ a(x: …"),
    ],
)
def test_values_in_documents_are_not_shown(document: str, shown: str) -> None:
    assert redacted(document).replace(" ", "") == shown.replace(" ", "")


def test_long_documents_are_shortened() -> None:
    shown = redacted("{ " + " ".join(f"field{number}" for number in range(10_000)) + " }")

    assert len(shown) == CHARACTERS
    assert shown.endswith("…")
