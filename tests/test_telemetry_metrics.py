"""Metrics as Prometheus reads them: read with its own parser, from one process and from several."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterable, Mapping
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from graph.client import Response, Transport
from graph.errors import Throttled
from server.telemetry import metrics
from tests.conftest import BANANAS, ROOT, Serve, Served, banana_items
from tests.following import follow
from tests.observed import Observed, observed
from tests.test_app import Process, process
from tests.test_websocket import acknowledged, subscribe

EXAMPLE = ROOT / "examples/observability"
Samples = Mapping[str, list[tuple[dict[str, str], float]]]


def samples_in(text: str) -> Samples:
    """Read the values by name, each with its labels."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((dict(sample.labels), sample.value))
    return found


def value(samples: Samples, metric: str, /, **labels: str) -> float:
    """Add up the values whose labels are these, among others."""
    return sum(found for each, found in samples.get(metric, ()) if labels.items() <= each.items())


async def scraped(app: Observed) -> Samples:
    """Read the metrics from their port."""
    assert app.telemetry._listener is not None
    port = app.telemetry._listener.getsockname()[1]
    async with httpx.AsyncClient() as client:
        answer = await client.get(f"http://127.0.0.1:{port}/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=1.0.0")
    return samples_in(answer.text)


async def test_operations_and_their_requests_are_counted(bananas: Served, transport: Transport) -> None:
    query = 'query Look { container(number: "009998") { pallets(first: 10) { nodes { origin } } } }'

    async with observed(bananas, transport, metrics_port=0) as app:
        for _ in range(3):
            await app(query)
        await app("{ nothing }")
        await app.client.get("/healthz")
        samples = await scraped(app)

    look = {"type": "query", "name": "Look"}
    assert value(samples, "tablegraph_operations_total", **look, outcome="ok") == 3
    assert value(samples, "tablegraph_operations_total", type="", name="", outcome="refused") == 1
    assert value(samples, "tablegraph_operation_duration_seconds_count", **look) == 3
    assert value(samples, "tablegraph_operation_dynamodb_requests_total", **look) == len(app.sent) == 6
    assert value(samples, "tablegraph_operation_capacity_units_total", **look) == 4.5
    assert value(samples, "tablegraph_errors_total", code="GRAPHQL_VALIDATION_FAILED") == 1
    assert value(samples, "tablegraph_documents_total", cache="hit") == 2
    assert value(samples, "tablegraph_http_responses_total", status="200") == 5
    for operation, units, items in (("Query", 1.5, 9), ("BatchGetItem", 3, 6)):
        where = {"operation": operation, "table": bananas.table, "index": ""}
        assert value(samples, "tablegraph_dynamodb_requests_total", **where, outcome="ok") == 3
        assert value(samples, "tablegraph_dynamodb_request_duration_seconds_count", **where) == 3
        assert value(samples, "tablegraph_dynamodb_capacity_units_total", **where) == units
        assert value(samples, "tablegraph_dynamodb_items_read_total", **where) == items
    assert value(samples, "tablegraph_dynamodb_batch_size_sum", operation="BatchGetItem") == 6
    assert value(samples, "tablegraph_workers") == 1
    assert value(samples, "tablegraph_process_resident_memory_bytes") > 10_000_000


async def test_throttles_retries_and_what_is_left_over_are_counted(bananas: Served, transport: Transport) -> None:
    answers = iter((Throttled("no"), Throttled("no"), None, None))

    async def failing(operation: str, parameters: dict[str, Any]) -> Response:
        if operation == "BatchGetItem" and (error := next(answers)) is not None:
            raise error
        response = await transport(operation, parameters)
        if operation == "BatchGetItem" and len(parameters["RequestItems"][bananas.table]["Keys"]) == 2:
            key = parameters["RequestItems"][bananas.table]["Keys"][0]
            items = response["Responses"][bananas.table]
            response["Responses"][bananas.table] = [item for item in items if not key.items() <= item.items()]
            response["UnprocessedKeys"] = {bananas.table: {"Keys": [key]}}
        return response

    async with observed(bananas, failing, metrics_port=0) as app:
        answer = await app('{ container(number: "009998") { pallets { nodes { number origin } } } }')
        samples = await scraped(app)

    assert "errors" not in answer.json()
    assert value(samples, "tablegraph_dynamodb_requests_total", outcome="THROTTLED") == 2
    assert value(samples, "tablegraph_dynamodb_retries_total", operation="BatchGetItem") == 2
    assert value(samples, "tablegraph_dynamodb_unprocessed_total", table=bananas.table) == 1
    # What was left over is asked for by a request of its own.
    assert value(samples, "tablegraph_dynamodb_requests_total", operation="GetItem", outcome="ok") == 1


async def test_names_that_clients_make_up_become_other(
    bananas: Served, transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "NAMES", 3)

    async with observed(bananas, transport, metrics_port=0) as app:
        for number in range(10):
            await app(f"query Made{number} {{ __typename }}")
        samples = await scraped(app)

    names = {labels["name"]: count for labels, count in samples["tablegraph_operations_total"]}
    assert names == {"Made0": 1, "Made1": 1, "Made2": 1, "other": 7}


async def test_events_and_subscribers_are_counted(serve: Serve, engine: str, transport: Transport) -> None:
    followed = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)

    async with observed(followed.served, transport, hub=followed.hub, metrics_port=0) as app:
        query = "subscription Watch { containerChanged { kind } }"
        asking = asyncio.create_task(app(query, headers={"accept": "text/event-stream"}))
        await followed.hub.wanted.wait()
        assert followed.hub.subscribers == 1
        await followed.write(
            'mutation { updateContainer(key: {number: "009998"}, set: {operator: "X"}) { __typename } }'
        )
        followed.hub.close()
        await asking
        samples = await scraped(app)

    watch = {"type": "subscription", "name": "Watch"}
    assert value(samples, "tablegraph_operations_total", **watch, outcome="ok") == 1
    assert value(samples, "tablegraph_events_total", **watch) == 1
    assert value(samples, "tablegraph_event_duration_seconds_count", **watch) == 1


async def test_operations_on_sockets_are_counted(serve: Serve, engine: str, transport: Transport) -> None:
    followed = await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)

    async with observed(followed.served, transport, hub=followed.hub, metrics_port=0) as app:
        async with app.served() as server, acknowledged(server) as client:
            await client.say(subscribe("a", "subscription Watch { containerChanged { kind } }"))
            await followed.hub.wanted.wait()
            await client.say(subscribe("b", "query Type { __typename }"), subscribe("c", "{ nothing }"))
            assert {(await client.hear())["type"] for _ in range(3)} == {"next", "complete", "error"}
        samples = await scraped(app)

    assert value(samples, "tablegraph_operations_total", name="Watch", outcome="ok") == 1
    assert value(samples, "tablegraph_operations_total", name="Type", outcome="ok") == 1
    assert value(samples, "tablegraph_operations_total", outcome="refused") == 1
    assert value(samples, "tablegraph_errors_total", code="GRAPHQL_VALIDATION_FAILED") == 1
    # That of the socket: its operations are no HTTP answers.
    assert sum(found for _, found in samples["tablegraph_http_responses_total"]) == 1


# The process


async def metrics_of(server: Process) -> Samples:
    """Read the metrics of a process."""
    async with httpx.AsyncClient() as client:
        return samples_in((await client.get(server.metrics)).text)


async def asked(server: Process, count: int) -> None:
    """Ask several times, each over a connection of its own, which any worker may take."""
    for _ in range(count):
        async with httpx.AsyncClient() as client:
            assert (await client.post(server.url, json={"query": "query Type { __typename }"})).status_code == 200


def served(engine: str, table: str, **environ: str) -> Any:
    """Run the command `serve` with a port for metrics."""
    command = "import sys; from server.cli import main; sys.exit(main())"
    settings = {"TABLE": table, "ENDPOINT_URL": engine, "METRICS_PORT": "0", "LOG_FORMAT": "json", "STREAM": "off"}
    variables = {f"TABLEGRAPH_{name}": text for name, text in settings.items()}
    credentials = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
    return process("-c", command, "serve", **variables, **credentials, **environ)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")
async def test_several_workers_are_counted_together_and_a_dead_one_keeps_what_it_counted(
    engine: str, banana_table: str
) -> None:
    async with served(engine, banana_table, TABLEGRAPH_WORKERS="2") as server, asyncio.timeout(60):
        pids = {server.worker, (await server.logged("GraphQL at "))["worker"]}
        await asked(server, 20)
        before = await metrics_of(server)
        os.kill(min(pids), signal.SIGKILL)
        new = (await server.logged("GraphQL at "))["worker"]
        await asked(server, 5)
        after = await metrics_of(server)
        server.running.terminate()
        assert await server.running.wait() == 0

    assert new not in pids
    assert value(before, "tablegraph_operations_total", name="Type", outcome="ok") == 20
    assert value(before, "tablegraph_workers") == 2
    assert value(after, "tablegraph_operations_total", name="Type", outcome="ok") == 25
    assert value(after, "tablegraph_workers") == 2


async def test_metrics_are_on_a_port_of_their_own_and_on_no_other(engine: str, banana_table: str) -> None:
    async with served(engine, banana_table) as server, httpx.AsyncClient() as client, asyncio.timeout(60):
        public = await client.get(server.url.replace("/graphql", "/metrics"))
        elsewhere = await client.get(server.metrics + "x")
        posted = await client.post(server.metrics)

    assert server.metrics.startswith("http://127.0.0.1:")
    assert (public.status_code, elsewhere.status_code, posted.status_code) == (404, 404, 501)


# The example


def named_in(texts: Iterable[str]) -> set[str]:
    """Find the names of our metrics."""
    return {name for text in texts for name in re.findall(r"tablegraph_\w+", text)}


async def test_every_metric_of_the_dashboard_and_the_alerts_exists(bananas: Served, transport: Transport) -> None:
    async with observed(bananas, transport, metrics_port=0) as app:
        await app('query Look { container(number: "009998") { pallets { nodes { origin } } } }')
        assert app.telemetry._listener is not None
        port = app.telemetry._listener.getsockname()[1]
        async with httpx.AsyncClient() as client:
            text = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    suffixes = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",), "gauge": ("",)}
    known = {
        family.name + suffix for family in text_string_to_metric_families(text) for suffix in suffixes[family.type]
    }
    # Those of the streams are there where streams are followed.
    known |= {"tablegraph_subscribers", "tablegraph_stream_lag_seconds", "tablegraph_stream_failures_total"}

    dashboard = json.loads((EXAMPLE / "dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]

    named = named_in([*expressions, (EXAMPLE / "alerts.yml").read_text()])
    assert len(named) > 10
    assert named - known == set()
