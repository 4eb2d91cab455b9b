"""One request of a client as traces, metrics and the log of slow operations have it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from starlette.types import Scope

from graph.client import Meter
from graph.observation import Observation
from server.logs import Exchange
from server.telemetry.waterfall import Waterfall

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from server.telemetry.telemetry import Telemetry


class Execution:
    """One operation that is carried out, or one event of a subscription or live query; an Observation."""

    __slots__ = ("_exchange", "began", "began_ns", "codes", "is_event", "span", "waterfall")

    def __init__(
        self, exchange: ObservedExchange, span: Span | None, waterfall: Waterfall | None, *, is_event: bool
    ) -> None:
        self._exchange = exchange
        self.span = span
        """None where it is not recorded."""
        self.is_event = is_event
        self.began_ns, self.began = time.time_ns(), perf_counter()
        self.codes: list[str] = []
        self.waterfall = waterfall
        """None where nobody asks for it."""

    def failed(self, meter: Meter, codes: Sequence[str]) -> None:
        """Take the codes of errors in its answer."""
        self.codes += [code for code in codes if code not in self.codes]

    def ends(self, meter: Meter) -> None:
        """Tell all who want to know of it."""
        self._exchange.ended(self, meter)


class ObservedExchange(Exchange):
    """An exchange that tells more than the log."""

    __slots__ = ("_execution", "_is_known", "_span", "_telemetry", "began_ns", "is_following", "text")

    def __init__(self, telemetry: Telemetry, headers: Mapping[bytes, bytes]) -> None:
        super().__init__(headers)
        self.began_ns = time.time_ns()
        self.text = ""
        """The document."""
        self.is_following = False
        """Whether what goes on now are events."""
        self._is_known = True
        """Whether the document was known before."""
        self._telemetry = telemetry
        self._span: Span | None = None
        self._execution: Span | None = None

    @property
    def document_hash(self) -> str:
        """Give the SHA-256 of the document, in hexadecimal digits, as persisted documents are named."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def _another(self) -> Exchange:
        return ObservedExchange(self._telemetry, {})

    # --- what is told of it

    def stepped(self, name: str, began_ns: int, ended_ns: int) -> None:
        """Take a step on the way to a plan."""
        self._is_known = self._is_known and name != "parse"
        if (traces := self._telemetry.traces) is not None and not self.is_following:
            traces.step(self._execution or self._begun(), name, began_ns, ended_ns)

    def asked(self, kind: str, name: str | None, text: str) -> None:
        """Take what is asked for."""
        super().asked(kind, name, text)
        self.text = text
        self._begun()

    def begins(self, meter: Meter) -> Observation:
        """Begin to observe an operation."""
        meter.report_capacity = True
        span = None
        if (traces := self._telemetry.traces) is not None:
            span = traces.event(self, self._span) if self.is_following else traces.execution(self._begun())
            self._execution = span
        waterfall = Waterfall() if self._telemetry.has_waterfalls else None
        return Execution(self, span, waterfall, is_event=self.is_following)

    def ended(self, execution: Execution, meter: Meter) -> None:
        """Take an operation that is over."""
        super().ends(meter)
        self._telemetry.executed(self, execution, meter)

    def note(self, body: Mapping[str, Any]) -> None:
        """Take a GraphQL response that is sent."""
        super().note(body)
        self._begun()

    def goes_on(self) -> None:
        """End the operation: what follows are events, each of its own."""
        super().goes_on()
        self.is_following = True
        self._end()

    def log(self, scope: Scope) -> None:
        """Write the line of it, and tell all others who want to know."""
        super().log(scope)
        self._telemetry.answered(self)
        if not self.is_following:
            self._end(scope)

    def _begun(self) -> Span | None:
        if self._span is None and (traces := self._telemetry.traces) is not None:
            self._span = traces.operation(self)
            self.trace_id = traces.trace_id(self._span)
        return self._span

    def _end(self, scope: Scope | None = None) -> None:
        if self.kind is not None or self._span is not None or self.codes:
            self._telemetry.operated(self, self._span, scope)

    # --- what it came to

    @property
    def is_known(self) -> bool:
        """Say whether its document had been read before."""
        return self._is_known

    @property
    def outcome(self) -> str:
        """Say how it went: ok, errors, refused (before anything was asked of DynamoDB) or cancelled."""
        if self.codes:
            return "errors" if self._requests else "refused"
        is_waiting = self.status is None or self.status == "cancelled"
        return "cancelled" if is_waiting and not self.is_following else "ok"

    @property
    def spent(self) -> tuple[int, int, float, int]:
        """Give its requests, the items that they read, their capacity units and the retries so far."""
        return self._requests or 0, self._items_read, self._capacity_units or 0.0, self._retries
