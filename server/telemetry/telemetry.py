"""What one process shows of what it does, as the settings say: put together here, and told of everything from here."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import TYPE_CHECKING

from starlette.types import Scope

from graph.client import Client, Meter, Transport
from graph.observation import Call, ObservedClient
from server.following import Following
from server.settings import Settings
from server.telemetry.exchange import Execution, ObservedExchange
from server.telemetry.slow import SlowLog

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from server.telemetry.metrics import Metrics
    from server.telemetry.traces import Traces

LOOK_SECS = 1.0
"""How often is looked at what nobody tells of: queues, subscribers, the event loop."""
CLOSE_SECS = 1.5
"""How long the end of the process may wait for the last spans to be sent; less than a worker's end has left."""


class Telemetry:
    """Made before workers are forked; what belongs to one process begins in `running`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clients: list[ObservedClient] = []
        self._slow: SlowLog | None = None
        if settings.slow_ms is not None or settings.expensive_units is not None:
            self._slow = SlowLog(settings.slow_ms, settings.expensive_units)
        self.traces: Traces | None = None
        self._metrics: Metrics | None = None
        self._listener: socket.socket | None = None
        self._shared: Path | None = None

    @property
    def has_waterfalls(self) -> bool:
        """Say whether somebody asks for the calls of an operation."""
        return self._slow is not None

    def listen(self) -> socket.socket | None:
        """Listen on the port of the metrics, if there are any. Raises OSError."""
        port = self._settings.metrics_port
        if port is None:
            return None
        host = self._settings.metrics_host
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family)
        if self._settings.workers > 1:
            # Before prometheus_client is imported, which looks there whether it shares anything.
            self._shared = Path(tempfile.mkdtemp(prefix="tablegraph-metrics-"))
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(self._shared)
        return self._listener

    def close(self) -> None:
        """Give up what `listen` took."""
        if self._listener is not None:
            self._listener.close()
        if self._shared is not None:
            del os.environ["PROMETHEUS_MULTIPROC_DIR"]
            shutil.rmtree(self._shared, ignore_errors=True)

    @asynccontextmanager
    async def running(self, following: Following | None) -> AsyncIterator[None]:
        """Begin in a process, and send at its end what is left."""
        settings, looking, closing = self._settings, None, []
        if settings.traces != "off":
            from server.telemetry.traces import Traces

            self.traces = Traces(with_documents=settings.traces == "documents")
            closing.append(self.traces.close)
        if self._listener is not None:
            from server.telemetry.metrics import Metrics
            from server.telemetry.scrape import Scraped

            self._metrics = Metrics(self._shared)
            self._look(self._metrics, following)
            looking = asyncio.create_task(self._keep_looking(self._metrics, following))
            closing.append(Scraped(self._listener, self._metrics.text).close)
        try:
            yield
        finally:
            if looking is not None:
                looking.cancel()
            await _at_most(CLOSE_SECS, closing)

    # --- what is made for it

    def client(self, transport: Transport, max_in_flight: int) -> Client:
        """Make a client that tells of its calls."""
        client = ObservedClient(transport, max_in_flight, told=self._called)
        self._clients.append(client)
        return client

    def exchange(self, headers: Mapping[bytes, bytes]) -> ObservedExchange:
        """Make what observes a request."""
        return ObservedExchange(self, headers)

    # --- what is told

    def _called(self, call: Call, meter: Meter) -> None:
        if self._metrics is not None:
            self._metrics.called(call)
        execution = meter.observation
        if isinstance(execution, Execution):
            if execution.waterfall is not None:
                execution.waterfall.add(call)
            if self.traces is not None:
                self.traces.called(execution, call)

    def executed(self, exchange: ObservedExchange, execution: Execution, meter: Meter) -> None:
        """Take an operation, or an event, that is over."""
        if self._slow is not None:
            self._slow.look(exchange, execution, meter)
        if self.traces is not None:
            self.traces.executed(exchange, execution, meter)
        if self._metrics is not None:
            self._metrics.executed(exchange, execution, meter, perf_counter() - execution.began)

    def operated(self, exchange: ObservedExchange, span: Span | None, scope: Scope | None) -> None:
        """Take what a client asked, once it is answered, or goes on."""
        if self.traces is not None:
            self.traces.operated(exchange, span, scope)
        if self._metrics is not None:
            self._metrics.operated(exchange, perf_counter() - exchange.started)

    def answered(self, exchange: ObservedExchange) -> None:
        """Take the end of an HTTP request or WebSocket."""
        if self._metrics is not None and exchange.socket is None:
            self._metrics.answered(str(exchange.status or 499))

    # --- what is looked at

    async def _keep_looking(self, metrics: Metrics, following: Following | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + LOOK_SECS
            await asyncio.sleep(LOOK_SECS)
            metrics.loop_lag.observe(max(0.0, loop.time() - due))
            self._look(metrics, following)

    def _look(self, metrics: Metrics, following: Following | None) -> None:
        gauge, total = metrics.gauge, metrics.total
        gauge("workers", "Processes that serve.", 1)
        in_flight, waiting = (
            sum([getattr(client, name) for client in self._clients]) for name in ("in_flight", "waiting")
        )
        gauge("dynamodb_in_flight", "Requests to DynamoDB under way.", in_flight)
        gauge("dynamodb_waiting", "Requests to DynamoDB that wait for a slot.", waiting)
        # The state of circuit breakers, and what was refused because of them, belongs here.
        if following is not None:
            figures = following.figures()
            gauge("subscribers", "Subscriptions and live queries under way.", following.hub.subscribers)
            gauge("stream_readers", "Processes that read the streams.", figures["reading"])
            gauge("stream_lag_seconds", "How far what is read is behind.", figures["lagSecs"] or 0.0, largest=True)
            for name, doc in _STREAM.items():
                total(f"stream_{name}", doc, figures[name])
        usage = resource.getrusage(resource.RUSAGE_SELF)
        total("process_cpu_seconds", "Processor time of the workers.", usage.ru_utime + usage.ru_stime)
        gauge("process_resident_memory_bytes", "Memory of the workers; what they share counts for each.", _memory())


async def _at_most(secs: float, work: Sequence[Callable[[], None]]) -> None:
    """Do some work in a thread, and wait for it no longer: who is to take the spans may be gone."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()

    def do() -> None:
        for each in work:
            each()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done.set)

    # Of its own, for the loop's end would wait for one of the loop's threads.
    Thread(target=do, daemon=True).start()
    with suppress(TimeoutError):
        async with asyncio.timeout(secs):
            await done.wait()


_STREAM = {
    "changes": "Changes handled.",
    "failures": "Failures of handlers, each of which tries again.",
    "abandoned": "Changes that a handler did without.",
    "gaps": "Shards of which something was trimmed before it was read.",
}


def _memory() -> int:
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    # Without /proc the most that it ever was, in bytes on macOS and KiB elsewhere.
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
