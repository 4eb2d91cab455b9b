"""The log of operations that are slow or expensive: one line says what was asked, and where the time went."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from time import perf_counter
from typing import Any

from graph.client import Meter
from resolvers.redaction import redacted
from server.telemetry.exchange import Execution, ObservedExchange

logger = logging.getLogger(__name__)

PAUSE_SECS = 60.0
"""How long nothing more is said of a document of which a line was written."""
DOCUMENTS = 1000
"""So many documents are remembered."""


class SlowLog:
    """Writes a warning for an operation, or an event, above one of two limits; None is no limit."""

    def __init__(
        self, slow_ms: int | None, expensive_units: int | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._slow_ms = slow_ms
        self._expensive_units = expensive_units
        self._clock = clock
        self._told: OrderedDict[str, tuple[float, int]] = OrderedDict()
        """By hash of a document when it was written of, and how often it was not since."""

    def look(self, exchange: ObservedExchange, execution: Execution, meter: Meter) -> None:
        """Take an operation that is over."""
        began = execution.began if execution.is_event else exchange.started
        duration_ms = (perf_counter() - began) * 1000
        is_slow = self._slow_ms is not None and duration_ms >= self._slow_ms
        is_expensive = self._expensive_units is not None and meter.capacity_units >= self._expensive_units
        if not is_slow and not is_expensive:
            return
        suppressed = self._suppressed(exchange.document_hash)
        if suppressed is None:
            return
        began_ns = execution.began_ns if execution.is_event else exchange.began_ns
        fields: dict[str, Any] = {
            "type": exchange.kind,
            "operation": (exchange.operation or "")[:100],
            "event": execution.is_event,
            "duration_ms": round(duration_ms, 3),
            "requests": len(meter.requests),
            "items_read": meter.items_read,
            "capacity_units": round(meter.capacity_units, 3),
            "retries": meter.retries,
            "errors": execution.codes,
            "dynamodb": execution.waterfall.lines(began_ns) if execution.waterfall else [],
            "document_hash": exchange.document_hash,
            "document": redacted(exchange.text),
            "suppressed": suppressed,
        }
        what = "slow and expensive" if is_slow and is_expensive else "slow" if is_slow else "expensive"
        logger.warning("%s operation", what, extra={"fields": fields})

    def _suppressed(self, document_hash: str) -> int | None:
        """Count the lines about a document that were kept back; None where this one is kept back too."""
        now = self._clock()
        written, kept_back = self._told.pop(document_hash, (now - PAUSE_SECS, 0))
        is_due = now - written >= PAUSE_SECS
        self._told[document_hash] = (now, 0) if is_due else (written, kept_back + 1)
        if len(self._told) > DOCUMENTS:
            self._told.popitem(last=False)
        return kept_back if is_due else None
