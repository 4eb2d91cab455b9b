"""Metrics for Prometheus: every label has few values, however clients name their operations.

With several workers each writes what it counts to files that they share, and any of them answers for all.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import prometheus_client
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from graph.client import Meter
from graph.observation import Call
from server.telemetry.exchange import Execution, ObservedExchange

NAMES = 100
"""So many operations, and so many tables with their indexes, are counted apart; the rest together as `other`."""
OTHER = "other"

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
SIZES = (1, 2, 5, 10, 25, 50, 75, 100)
WHERE = ("operation", "table", "index")
WHAT = ("type", "name")

Where = tuple[str, str, str]


class Bounded(dict[str, str]):
    """The first names that come, each as it is; all further ones are `other`."""

    def __missing__(self, name: str) -> str:
        if len(self) >= NAMES:
            return OTHER
        self[name] = name
        return name


class _Calls:
    """What is counted of the calls of one kind."""

    def __init__(self, metrics: Metrics, where: Where) -> None:
        self.outcome: dict[str | None, Counter] = {}
        self.duration = metrics.call_secs.labels(*where)
        self.units = metrics.units.labels(*where)
        self.items = metrics.items.labels(*where)
        self.retries = metrics.retries.labels(*where)
        self.where = where


class Metrics:
    """The metrics of one process."""

    def __init__(self, shared: Path | None = None) -> None:
        """Take the folder that several workers share, which PROMETHEUS_MULTIPROC_DIR names already."""
        # When each series began is a series more for each.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        self._shared = shared
        self._registry = CollectorRegistry()
        make = self._registry
        self._operations = Counter(
            "tablegraph_operations",
            "Operations, by how they ended: ok, errors (some field failed), refused (nothing was read), cancelled.",
            (*WHAT, "outcome"),
            registry=make,
        )
        self._operation_secs = Histogram(
            "tablegraph_operation_duration_seconds",
            "Time from the request's arrival until its answer was sent; of a subscription until it was set up.",
            WHAT,
            buckets=SECONDS,
            registry=make,
        )
        self._operation_requests = Counter(
            "tablegraph_operation_dynamodb_requests", "Requests to DynamoDB, by operation.", WHAT, registry=make
        )
        self._operation_units = Counter(
            "tablegraph_operation_capacity_units", "Capacity units that operations consumed.", WHAT, registry=make
        )
        self._errors = Counter("tablegraph_errors", "Answers with an error, by its code.", ("code",), registry=make)
        self._answers = Counter(
            "tablegraph_http_responses", "HTTP answers, and ends of WebSockets, by status.", ("status",), registry=make
        )
        self._documents = Counter(
            "tablegraph_documents",
            "Documents asked for: hit (parsed and validated before) or miss.",
            ("cache",),
            registry=make,
        )
        self._events = Counter(
            "tablegraph_events", "Changes that a subscription or live query was executed for.", WHAT, registry=make
        )
        self._event_secs = Histogram(
            "tablegraph_event_duration_seconds", "Time to execute one.", WHAT, buckets=SECONDS, registry=make
        )
        self.calls = Counter(
            "tablegraph_dynamodb_requests",
            "Requests to DynamoDB, each try for itself, by outcome: ok, or the code of the error (THROTTLED, …).",
            (*WHERE, "outcome"),
            registry=make,
        )
        self.call_secs = Histogram(
            "tablegraph_dynamodb_request_duration_seconds",
            "Time of a request to DynamoDB.",
            WHERE,
            buckets=SECONDS,
            registry=make,
        )
        self.units = Counter(
            "tablegraph_dynamodb_capacity_units", "Capacity units, as DynamoDB reports them.", WHERE, registry=make
        )
        self.items = Counter(
            "tablegraph_dynamodb_items_read", "Items read, also those that a filter drops.", WHERE, registry=make
        )
        self.retries = Counter(
            "tablegraph_dynamodb_retries", "Requests that were sent once more.", WHERE, registry=make
        )
        self._unprocessed = Counter(
            "tablegraph_dynamodb_unprocessed", "Items of a batch that DynamoDB left over.", ("table",), registry=make
        )
        self._batch = Histogram(
            "tablegraph_dynamodb_batch_size", "Items that a batch names.", ("operation",), buckets=SIZES, registry=make
        )
        self._gauges: dict[str, Gauge] = {}
        self._totals: dict[str, tuple[Counter, float]] = {}
        self.loop_lag = Histogram(
            "tablegraph_event_loop_lag_seconds",
            "How late the event loop is to do what is due, looked at each second.",
            buckets=SECONDS,
            registry=make,
        )
        self._names, self._tables, self._codes = Bounded(), Bounded(), Bounded()
        self._by_where: dict[tuple[str, tuple[str, ...], str | None], _Calls] = {}
        self._children: dict[tuple[str, ...], Any] = {}

    def text(self) -> bytes:
        """Write all metrics in Prometheus' text format; for any thread."""
        if self._shared is None:
            return generate_latest(self._registry)
        _forget_the_dead(self._shared)
        registry = CollectorRegistry()
        MultiProcessCollector(registry, str(self._shared))  # type: ignore[no-untyped-call]
        return generate_latest(registry)

    # --- what is counted

    def called(self, call: Call) -> None:
        """Count a call to DynamoDB."""
        name = call.request.operation, call.tables, call.request.index
        calls = self._by_where.get(name)
        if calls is None:
            calls = self._calls(name)
        outcome = calls.outcome.get(call.error)
        if outcome is None:
            outcome = calls.outcome[call.error] = self.calls.labels(*calls.where, call.error or "ok")
        outcome.inc()
        calls.duration.observe(call.secs)
        if units := call.capacity_units:
            calls.units.inc(units)
        if items := call.items_read:
            calls.items.inc(items)
        if call.attempt > 1:
            calls.retries.inc()
        batch = call.batch
        if batch is not None:
            self._child(self._batch, name[0]).observe(batch)
            if left := call.unprocessed:
                self._child(self._unprocessed, calls.where[1]).inc(left)

    def _calls(self, name: tuple[str, tuple[str, ...], str | None]) -> _Calls:
        operation, tables, index = name
        # Of a time series there is a table for each month, and a transaction may name several.
        table = self._tables[",".join(tables)]
        where = operation, table, (index or "") if table != OTHER else ""
        calls = _Calls(self, where)
        if len(self._by_where) < 10 * NAMES:
            self._by_where[name] = calls
        return calls

    def operated(self, exchange: ObservedExchange, secs: float) -> None:
        """Count what a client asked."""
        what = self._what(exchange)
        self._child(self._operations, *what, exchange.outcome).inc()
        self._child(self._operation_secs, *what).observe(secs)
        if exchange.kind is not None:
            self._child(self._documents, "hit" if exchange.is_known else "miss").inc()
        for code in exchange.codes:
            self._child(self._errors, self._codes[code]).inc()

    def executed(self, exchange: ObservedExchange, execution: Execution, meter: Meter, secs: float) -> None:
        """Count what an operation, or an event, has spent."""
        what = self._what(exchange)
        self._child(self._operation_requests, *what).inc(len(meter.requests))
        self._child(self._operation_units, *what).inc(meter.capacity_units)
        if execution.is_event:
            self._child(self._events, *what).inc()
            self._child(self._event_secs, *what).observe(secs)

    def answered(self, status: str) -> None:
        """Count an HTTP answer."""
        self._child(self._answers, status).inc()

    def _what(self, exchange: ObservedExchange) -> tuple[str, str]:
        # What was refused before it was read may have any name.
        return (exchange.kind, self._names[exchange.operation or ""]) if exchange.kind else ("", "")

    def _child(self, metric: Any, *labels: str) -> Any:
        child = self._children.get((metric._name, *labels))
        if child is None:
            child = self._children[(metric._name, *labels)] = metric.labels(*labels)
        return child

    # --- what is looked at from time to time

    def gauge(self, name: str, doc: str, value: float, *, largest: bool = False) -> None:
        """Set what goes up and down; of several workers' values the sum is told, or the largest."""
        if name not in self._gauges:
            mode: Any = "livemax" if largest else "livesum"
            self._gauges[name] = Gauge(f"tablegraph_{name}", doc, registry=self._registry, multiprocess_mode=mode)
        self._gauges[name].set(value)

    def total(self, name: str, doc: str, value: float) -> None:
        """Set what only goes up, as it is counted elsewhere."""
        counter, before = self._totals.get(name) or (Counter(f"tablegraph_{name}", doc, registry=self._registry), 0.0)
        if value > before:
            counter.inc(value - before)
        self._totals[name] = counter, max(value, before)


def _forget_the_dead(shared: Path) -> None:
    """Remove the gauges of workers that are no more; what they counted stays."""
    for file in shared.glob("gauge_live*_*.db"):
        try:
            os.kill(int(file.stem.rsplit("_", 1)[1]), 0)
        except ProcessLookupError:
            file.unlink(missing_ok=True)
        except (PermissionError, ValueError):
            pass
