"""Traces: what a receiver of OTLP gets of operations, their steps, each call to DynamoDB, and each event."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from graph.client import Response, Transport
from graph.errors import Throttled
from tests.conftest import BANANAS, ROOT, Serve, Served, banana_items
from tests.following import follow
from tests.observed import Receiver, Span, observed, receiving
from tests.test_golden import variables_of
from tests.test_telemetry_metrics import asked, served
from tests.test_websocket import Client, acknowledged

QUERIES = [
    path
    for path in sorted((ROOT / "tests/golden/bananas").glob("*.graphql"))
    if not any(word in path.read_text() for word in ("# item", "# model", "# data", "mutation"))
]
LOOK = """query Look($number: ID!) {
  container(number: $number) { pallets(first: 10) { edges { linkedBy node { origin } } } }
}"""
CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = CALLER.removesuffix("1") + "0"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver that the environment names."""
    with receiving() as started:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", started.url)
        yield started


def without_costs(span: Span) -> dict[str, Any]:
    """The attributes of a span but for its ids, and for what is told as JSON."""
    left_out = ("tablegraph.document.hash", "tablegraph.request.id", "aws.dynamodb.consumed_capacity")
    return {name: value for name, value in span.attributes.items() if name not in left_out}


async def test_an_operation_its_steps_and_its_calls_are_spans(
    receiver: Receiver, bananas: Served, transport: Transport
) -> None:
    async with observed(bananas, transport, traces="on") as app:
        first = await app(LOOK, {"number": "009998"}, {"traceparent": CALLER, "x-request-id": "a-1"})
        await app(LOOK, {"number": "009998"}, {"traceparent": CALLER})

    root, again = receiver.named("query")
    assert (root.kind, root.trace, root.parent) == ("server", CALLER.split("-")[1], CALLER.split("-")[2])
    assert root.attributes.pop("tablegraph.document.hash") == again.attributes["tablegraph.document.hash"]
    assert root.attributes == {
        "graphql.operation.type": "query",
        "graphql.operation.name": "Look",
        "tablegraph.request.id": "a-1",
        "tablegraph.requests": 2,
        "tablegraph.items_read": 5,
        "tablegraph.capacity_units": 1.5,
        "tablegraph.retries": 0,
        "http.request.method": "POST",
        "url.path": "/graphql",
        "http.response.status_code": first.status_code,
    }
    steps = receiver.children(root)
    assert [step.name for step in steps] == ["graphql.parse", "graphql.validate", "graphql.execute"]
    (execution,) = receiver.children(again)
    assert execution.name == "graphql.execute"
    assert [call.name for call in receiver.children(execution)] == ["DynamoDB.Query", "DynamoDB.BatchGetItem"]
    compiled, page, nodes = receiver.children(steps[-1])
    assert compiled.name == "graphql.compile"
    assert (page.name, page.kind) == ("DynamoDB.Query", "client")
    assert without_costs(page) == {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": "Query",
        "aws.dynamodb.table_names": [bananas.table],
        "aws.dynamodb.count": 3,
        "aws.dynamodb.scanned_count": 3,
    }
    (consumed,) = page.attributes["aws.dynamodb.consumed_capacity"]
    assert json.loads(consumed) == {"TableName": bananas.table, "CapacityUnits": 0.5}
    assert nodes.name == "DynamoDB.BatchGetItem"
    assert nodes.attributes["db.operation.batch.size"] == 2
    assert root.began_ns <= page.began_ns < page.ended_ns <= nodes.began_ns < nodes.ended_ns <= root.ended_ns
    assert receiver.resources[0]["service.name"] == "tablegraph"


@pytest.mark.parametrize("executor", ["plan", "reference"])
async def test_every_request_of_a_golden_query_is_a_span_and_nothing_else_is(
    executor: Any, receiver: Receiver, bananas: Served, transport: Transport
) -> None:
    async with observed(bananas, transport, executor=executor, traces="on") as app:
        assert app.telemetry.traces is not None
        for path in QUERIES:
            variables = await variables_of(bananas, path)
            receiver.spans.clear()
            app.sent.clear()
            answer = (await app(path.read_text(), variables)).json()
            # In a thread, for the receiver has one of this process.
            await asyncio.to_thread(app.telemetry.traces.flush)

            calls = calls_of(receiver, path.stem)
            (root,) = [span for span in receiver.spans if span.kind == "server"]
            assert root.has_failed == ("errors" in answer), path.stem
            assert sorted(map(as_sent, calls)) == sorted(
                (operation, table_of(sent), sent.get("IndexName", ""), batch_of(sent)) for operation, sent in app.sent
            ), path.stem
            golden = json.loads(path.with_suffix(".json").read_text())
            assert len(calls) == sum(map(len, golden["rounds"])), path.stem

    assert len(QUERIES) > 20


def calls_of(receiver: Receiver, query: str) -> list[Span]:
    """The calls to DynamoDB in the one trace that was received, which has no other spans than it should."""
    (root,) = [span for span in receiver.spans if span.kind == "server"]
    steps = receiver.children(root)
    inner = [span for step in steps for span in receiver.children(step)]
    assert [step.name for step in steps] in (
        ["graphql.parse", "graphql.validate", "graphql.execute"],
        ["graphql.parse", "graphql.validate"],
    ), query
    assert len(receiver.spans) == 1 + len(steps) + len(inner), query
    assert {span.name for span in inner if span.kind != "client"} <= {"graphql.compile"}, query
    return [span for span in inner if span.kind == "client"]


def as_sent(call: Span) -> tuple[str, str, str, int]:
    (table,) = call.attributes["aws.dynamodb.table_names"]
    index = call.attributes.get("aws.dynamodb.index_name", "")
    return call.attributes["db.operation.name"], table, index, call.attributes.get("db.operation.batch.size", 0)


def table_of(sent: dict[str, Any]) -> str:
    return str(sent["TableName"] if "TableName" in sent else next(iter(sent["RequestItems"])))


def batch_of(sent: dict[str, Any]) -> int:
    return sum(len(each["Keys"]) for each in sent.get("RequestItems", {}).values())


async def test_a_mutation_shows_what_it_reads_and_its_transaction(
    receiver: Receiver, serve: Serve, transport: Transport
) -> None:
    served = await serve(BANANAS.read_text(), banana_items(0))

    async with observed(served, transport, traces="on") as app:
        await app('mutation Go { updateContainer(key: {number: "009998"}, set: {operator: "X"}) { container { id } } }')

    (root,) = receiver.named("mutation")
    assert root.attributes["graphql.operation.name"] == "Go"
    (execution,) = receiver.named("graphql.execute")
    calls = receiver.children(execution)
    assert [call.attributes["db.operation.name"] for call in calls] == [operation for operation, _ in app.sent]
    assert calls[-1].name == "DynamoDB.TransactWriteItems"
    assert calls[-1].attributes["db.operation.batch.size"] == len(app.sent[-1][1]["TransactItems"])


async def test_each_event_is_a_trace_of_its_own_linked_to_its_subscription(
    receiver: Receiver, serve: Serve, engine: str, transport: Transport
) -> None:
    followed = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)
    update = (
        'mutation {{ updateContainer(key: {{number: "009998"}}, set: {{operator: "{}"}}) {{ deleted: __typename }} }}'
    )
    subscription = "subscription Watch { containerChanged { kind node { pallets { totalCount } } } }"

    async with observed(followed.served, transport, hub=followed.hub, traces="on") as app:
        asking = asyncio.create_task(app(subscription, headers={"accept": "text/event-stream", "traceparent": CALLER}))
        await followed.hub.wanted.wait()
        for operator in ("one", "two"):
            await followed.write(update.format(operator))
        followed.hub.close()
        answer = await asking

    assert answer.text.count("event: next") == 2
    (root,) = receiver.named("subscription")
    assert (root.kind, root.trace) == ("server", CALLER.split("-")[1])
    events = receiver.named("subscription event")
    assert [(event.kind, event.parent, event.links) for event in events] == [("consumer", "", [root.id])] * 2
    assert len({event.trace for event in (root, *events)}) == 3
    for event in events:
        assert event.attributes["graphql.operation.name"] == "Watch"
        assert event.attributes["tablegraph.requests"] == len(receiver.children(event)) > 0
        assert {call.trace for call in receiver.children(event)} == {event.trace}
        assert root.ended_ns <= event.began_ns


async def test_a_live_query_is_an_operation_and_then_events(
    receiver: Receiver, serve: Serve, engine: str, transport: Transport
) -> None:
    followed = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)
    query = 'query Watch @live(throttle: 0) { container(number: "009998") { operator } }'

    async with (
        observed(followed.served, transport, hub=followed.hub, traces="on") as app,
        app.served() as server,
        acknowledged(server) as client,
    ):
        await client.say({"type": "subscribe", "id": "a", "payload": {"query": query}})
        await client.hear()
        await followed.write(
            'mutation { updateContainer(key: {number: "009998"}, set: {operator: "X"}) { __typename } }'
        )
        assert (await client.hear())["payload"]["data"] == {"container": {"operator": "X"}}

    (root,) = receiver.named("query")
    assert root.attributes["graphql.operation.name"] == "Watch"
    events = receiver.named("query event")
    assert events
    assert {event.parent for event in events} == {""}
    assert [event.links for event in events] == [[root.id]] * len(events)


async def test_operations_on_a_socket_are_traces_of_their_own(
    receiver: Receiver, bananas: Served, transport: Transport
) -> None:
    ask = {"type": "subscribe", "payload": {"query": 'query Look { container(number: "009998") { number } }'}}

    async with (
        observed(bananas, transport, traces="on") as app,
        app.served() as server,
        acknowledged(server) as client,
    ):
        await client.say({**ask, "id": "a"}, {**ask, "id": "b"})
        assert len([heard async for heard in until_complete(client)]) == 4

    roots = receiver.named("query")
    assert [(root.parent, root.attributes["graphql.operation.name"]) for root in roots] == [("", "Look")] * 2
    assert len({root.trace for root in roots}) == 2
    assert len(receiver.named("graphql.execute")) == 2


async def until_complete(client: Client) -> AsyncIterator[Any]:
    """What is heard until two operations are complete."""
    complete = 0
    while complete < 2:
        heard = await client.hear()
        complete += heard["type"] == "complete"
        yield heard


async def test_each_try_is_a_span_with_its_error(receiver: Receiver, bananas: Served, transport: Transport) -> None:
    left = 2

    async def throttling(operation: str, parameters: dict[str, Any]) -> Response:
        nonlocal left
        left -= 1
        if left >= 0:
            raise Throttled("too much")
        return await transport(operation, parameters)

    async with observed(bananas, throttling, traces="on") as app:
        answer = await app('{ container(number: "009998") { operator } }')

    assert "errors" not in answer.json()
    (execution,) = receiver.named("graphql.execute")
    calls = [span for span in receiver.children(execution) if span.kind == "client"]
    assert [call.attributes.get("error.type") for call in calls] == ["THROTTLED", "THROTTLED", None]
    assert [call.attributes.get("tablegraph.attempt") for call in calls] == [None, 2, 3]
    assert [call.has_failed for call in calls] == [True, True, False]
    assert receiver.named("query")[0].attributes["tablegraph.retries"] == 2


async def test_what_is_refused_is_a_span_that_failed(receiver: Receiver, bananas: Served, transport: Transport) -> None:
    async with observed(bananas, transport, traces="on") as app:
        await app("{ nothing }")
        await app("{ nothing }")
        await app.client.get("/healthz")

    assert [(span.name, span.has_failed) for span in receiver.spans if span.kind == "server"] == [
        ("GraphQL Operation", True)
    ] * 2
    assert {span.attributes.get("error.type") for span in receiver.spans} == {None, "GRAPHQL_VALIDATION_FAILED"}


@pytest.mark.parametrize(("traces", "is_told"), [("on", False), ("documents", True)])
async def test_documents_are_told_where_asked_for_without_the_values_in_them(
    traces: str, is_told: bool, receiver: Receiver, bananas: Served, transport: Transport
) -> None:
    async with observed(bananas, transport, traces=traces) as app:
        await app('{ container(number: "009998") { pallets(first: 3) { totalCount } } }')

    (root,) = receiver.named("query")
    shown = "{ container(number: …) { pallets(first: 3) { totalCount } } }"
    assert root.attributes.get("graphql.document") == (shown if is_told else None)
    assert "009998" not in str(receiver.spans)


@pytest.mark.parametrize(
    ("environment", "traceparent", "spans"),
    [
        ({}, UNSAMPLED, 0),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, None, 0),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, CALLER, 0),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, CALLER, 4),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, CALLER, 0),
    ],
)
async def test_opentelemetry_decides_what_is_sampled(
    environment: dict[str, str],
    traceparent: str | None,
    spans: int,
    receiver: Receiver,
    bananas: Served,
    transport: Transport,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    sent = {} if traceparent is None else {"traceparent": traceparent}

    async with observed(bananas, transport, executor="reference", traces="on") as app:
        answer = await app('{ container(number: "009998") { number } }', headers=sent)

    assert answer.status_code == 200
    assert len([span for span in receiver.spans if span.name != "DynamoDB.GetItem"]) == spans


async def test_the_service_is_named_by_the_environment(
    receiver: Receiver, bananas: Served, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")

    async with observed(bananas, transport, traces="on") as app:
        await app("{ __typename }")

    assert {each["service.name"] for each in receiver.resources} == {"shop"}


async def test_a_receiver_that_is_gone_holds_nothing_up(
    bananas: Served, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("server.telemetry.telemetry.CLOSE_SECS", 0.1)

    async with asyncio.timeout(20), observed(bananas, transport, traces="on") as app:
        answer: httpx.Response = await app('{ container(number: "009998") { number } }')

    assert answer.json() == {"data": {"container": {"number": "009998"}}}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
async def test_workers_send_what_they_have_before_they_end(receiver: Receiver, engine: str, banana_table: str) -> None:
    environ = {"TABLEGRAPH_TRACES": "on", "TABLEGRAPH_WORKERS": "2"}

    async with served(engine, banana_table, **environ) as server, asyncio.timeout(60):
        await server.logged("GraphQL at ")
        await asked(server, 20)
        server.running.terminate()
        code = await server.running.wait()

    assert code == 0
    assert len(receiver.named("query")) == 20
    assert len({each["service.instance.id"] for each in receiver.resources}) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
async def test_a_process_ends_though_nobody_takes_its_spans(engine: str, banana_table: str) -> None:
    environ = {"TABLEGRAPH_TRACES": "on", "TABLEGRAPH_WORKERS": "2", "TABLEGRAPH_GRACEFUL_SHUTDOWN_SECS": "0"}

    with socket.create_server(("127.0.0.1", 0)) as silent:
        environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with served(engine, banana_table, **environ) as server, asyncio.timeout(60):
            await server.logged("GraphQL at ")
            await asked(server, 4)
            server.running.terminate()
            said = [json.loads(line)["message"] async for line in server.lines()]
            code = await server.running.wait()

    assert code == 0
    assert [line for line in said if "killing" in line] == []
