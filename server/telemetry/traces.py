"""Traces by OpenTelemetry: spans for an operation, its steps, and each call to DynamoDB; never for a field.

Everything but the sampling and the way out, which OTEL_* variables say, is here.

Source: OpenTelemetry semantic conventions, "GraphQL server spans" and "AWS DynamoDB client operations".
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue
from starlette.types import Scope

from graph.client import Meter
from graph.observation import Call
from resolvers.redaction import redacted
from server.telemetry.exchange import Execution, ObservedExchange

FLUSH_MS = 3000
"""How long the end of the process may wait for the last spans to be sent."""


class Traces:
    """Makes the spans of one process."""

    def __init__(self, *, with_documents: bool = False, exporter: SpanExporter | None = None) -> None:
        # OTEL_SERVICE_NAME wins over ours, as a resource that the environment names does.
        name = Resource.create().attributes.get(SERVICE_NAME, "")
        named = {SERVICE_NAME: "tablegraph"} if str(name).startswith("unknown_service") else {}
        self._provider = TracerProvider(resource=Resource.create(named), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("tablegraph")
        self._with_documents = with_documents

    def flush(self) -> None:
        """Send what has not been sent yet."""
        self._provider.force_flush(FLUSH_MS)

    def close(self) -> None:
        """Send what is left, and no more."""
        self.flush()
        self._provider.shutdown()

    # --- operations

    def operation(self, exchange: ObservedExchange) -> Span:
        """Begin the span of what a client asks, in the trace that its request names."""
        return self._tracer.start_span(
            "GraphQL Operation", _parent(exchange.headers), SpanKind.SERVER, start_time=exchange.began_ns
        )

    def trace_id(self, span: Span) -> str:
        """Write the id of a span's trace."""
        return format_trace_id(span.get_span_context().trace_id)

    def step(self, span: Span | None, name: str, began_ns: int, ended_ns: int) -> None:
        """Add a step that is done."""
        if span is not None and span.is_recording():
            step = self._tracer.start_span(f"graphql.{name}", set_span_in_context(span, Context()), start_time=began_ns)
            step.end(ended_ns)

    def execution(self, span: Span | None) -> Span | None:
        """Begin the span of an execution, the parent of its calls; None where nothing is recorded."""
        if span is None or not span.is_recording():
            return None
        return self._tracer.start_span("graphql.execute", set_span_in_context(span, Context()))

    def event(self, exchange: ObservedExchange, subscribed: Span | None) -> Span | None:
        """Begin the trace of one event, linked to the operation that asked for it; None where nothing is recorded."""
        links = [] if subscribed is None else [Link(subscribed.get_span_context())]
        span = self._tracer.start_span(f"{exchange.kind} event", Context(), SpanKind.CONSUMER, links=links)
        return span if span.is_recording() else None

    def called(self, execution: Execution, call: Call) -> None:
        """Add a call to DynamoDB that is over."""
        parent = execution.span
        if parent is None:
            return
        span = self._tracer.start_span(
            f"DynamoDB.{call.request.operation}",
            set_span_in_context(parent, Context()),
            SpanKind.CLIENT,
            _of_call(call),
            start_time=call.began_ns,
        )
        if call.error is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end(call.began_ns + int(call.secs * 1e9))

    def executed(self, exchange: ObservedExchange, execution: Execution, meter: Meter) -> None:
        """End the span of an execution, or the trace of an event."""
        span = execution.span
        if span is None:
            return
        if execution.is_event:
            self._describe(span, exchange)
        spent = len(meter.requests), meter.items_read, meter.capacity_units, meter.retries
        span.set_attributes(_of_cost(*spent))
        _fail(span, execution.codes)
        span.end()

    def operated(self, exchange: ObservedExchange, span: Span | None, scope: Scope | None) -> None:
        """End the span of what a client asked."""
        if span is None:
            return
        if span.is_recording():
            self._describe(span, exchange)
            if exchange.kind is not None:
                span.update_name(exchange.kind)
            span.set_attributes(_of_cost(*exchange.spent))
            if scope is not None:
                span.set_attribute("url.path", scope["path"])
                if scope["type"] == "http":
                    span.set_attribute("http.request.method", scope["method"])
                    span.set_attribute("http.response.status_code", exchange.status or 499)
            _fail(span, exchange.codes or (["CANCELLED"] if exchange.outcome == "cancelled" else []))
        span.end()

    def _describe(self, span: Span, exchange: ObservedExchange) -> None:
        if exchange.kind is not None:
            span.set_attribute("graphql.operation.type", exchange.kind)
        if exchange.operation:
            span.set_attribute("graphql.operation.name", exchange.operation[:100])
        if exchange.text:
            span.set_attribute("tablegraph.document.hash", exchange.document_hash)
            if self._with_documents:
                span.set_attribute("graphql.document", redacted(exchange.text))
        span.set_attribute("tablegraph.request.id", exchange.id)


def _parent(headers: Mapping[bytes, bytes]) -> Context:
    """Read the caller's span. Source: W3C Trace Context."""
    if b"traceparent" not in headers:
        return Context()
    carrier = {name: headers.get(name.encode(), b"").decode("latin-1") for name in ("traceparent", "tracestate")}
    return TraceContextTextMapPropagator().extract(carrier, Context())


def _of_call(call: Call) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": call.request.operation,
        "aws.dynamodb.table_names": call.tables,
    }
    if call.request.index is not None:
        attributes["aws.dynamodb.index_name"] = call.request.index
    if call.batch is not None:
        attributes["db.operation.batch.size"] = call.batch
    if call.attempt > 1:
        attributes["tablegraph.attempt"] = call.attempt
    if call.error is not None:
        attributes["error.type"] = call.error
    response = call.response
    if response is not None:
        consumed = response.get("ConsumedCapacity") or []
        entries = consumed if isinstance(consumed, list) else [consumed]
        if entries:
            attributes["aws.dynamodb.consumed_capacity"] = [json.dumps(entry) for entry in entries]
        if "ScannedCount" in response:
            attributes["aws.dynamodb.count"] = response["Count"]
            attributes["aws.dynamodb.scanned_count"] = response["ScannedCount"]
        if call.unprocessed:
            attributes["tablegraph.unprocessed"] = call.unprocessed
    return attributes


def _of_cost(requests: int, items_read: int, capacity_units: float, retries: int) -> dict[str, AttributeValue]:
    return {
        "tablegraph.requests": requests,
        "tablegraph.items_read": items_read,
        "tablegraph.capacity_units": round(capacity_units, 3),
        "tablegraph.retries": retries,
    }


def _fail(span: Span, codes: list[str]) -> None:
    if codes:
        span.set_attribute("error.type", codes[0])
        span.set_status(Status(StatusCode.ERROR, ", ".join(codes)))
