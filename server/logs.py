"""Structured logs: one line per HTTP request, and per WebSocket and operation on it, each with an id.

The id stands on every line that is written inside the request or operation.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from datetime import UTC, datetime
from functools import lru_cache
from random import getrandbits
from time import perf_counter
from typing import Any, Literal, TextIO

import orjson
from starlette.types import Scope

from graph.client import Meter
from graph.observation import Observation, Observer, observer

logger = logging.getLogger(__name__)

ROOMS = ("graph", "resolvers", "server")
CLIENT_CLOSED_REQUEST = 499
"""The status logged when the client was gone before an answer; it is never sent. The number is nginx's."""


class Exchange:
    """The HTTP request, WebSocket, or operation on a WebSocket that is under way, as its log lines tell of it.

    It observes its operations, an Observer and an Observation: one, or one for each event.
    """

    __slots__ = (
        "_capacity_units",
        "_indexes",
        "_items_read",
        "_requests",
        "_retries",
        "answer_headers",
        "codes",
        "events",
        "headers",
        "id",
        "is_logged",
        "kind",
        "last_words",
        "operation",
        "socket",
        "started",
        "status",
        "subject",
        "trace_id",
    )

    def __init__(self, headers: Mapping[bytes, bytes]) -> None:
        self.headers = headers
        self.id = _incoming_id(headers.get(b"x-request-id")) or f"{getrandbits(64):016x}"
        self.answer_headers: tuple[tuple[bytes, bytes], ...] = ((b"x-request-id", self.id.encode()),)
        """What its answer has besides its own headers."""
        self.started = perf_counter()
        self.status: int | str | None = None
        """The status sent; None before. Of a WebSocket its close code, of an operation on one how it ended."""
        self.last_words: Callable[[Mapping[str, Any]], bytes] | None = None
        """How an answer of which more was to come ends with an error; None where nothing more is to come."""
        self.kind: str | None = None
        """query, mutation or subscription; None before that is known."""
        self.operation: str | None = None
        """The operation's name."""
        self.codes: list[str] = []
        """The codes of the errors that were sent, each once."""
        self.events: int | None = None
        """How many events have been sent."""
        self.socket: str | None = None
        """The id of the WebSocket that it is on."""
        self.subject: str | None = None
        """Who asks."""
        self.is_logged = True
        self.trace_id: str | None = None
        self._requests: int | None = None
        """Requests to DynamoDB; None before an operation has ended."""
        self._items_read = 0
        self._indexes: set[str] = set()
        self._capacity_units: float | None = None
        """None where DynamoDB was not asked for it."""
        self._retries = 0

    def on_socket(self) -> Exchange:
        """Begin an operation on this WebSocket."""
        exchange = self._another()
        exchange.socket, exchange.events, exchange.status = self.id, 0, "cancelled"
        return exchange

    def _another(self) -> Exchange:
        return Exchange({})

    def goes_on(self) -> None:
        """Take note that what follows are events."""
        self.events = 0

    # --- what is told of it

    def asked(self, kind: str, name: str | None, text: str) -> None:
        """Take what is asked for."""
        self.kind, self.operation = kind, name

    def stepped(self, name: str, began_ns: int, ended_ns: int) -> None:
        """Pass over it: the log does not tell of steps."""

    def begins(self, meter: Meter) -> Observation:
        """Begin to observe an operation."""
        return self

    def failed(self, meter: Meter, codes: Sequence[str]) -> None:
        """Pass over it: what counts is what was sent."""

    def ends(self, meter: Meter) -> None:
        """Add what an operation has spent."""
        self._requests = (self._requests or 0) + len(meter.requests)
        self._items_read += meter.items_read
        self._retries += meter.retries
        self._indexes.update([request.index for request in meter.requests if request.index])
        if meter.report_capacity:
            self._capacity_units = (self._capacity_units or 0.0) + meter.capacity_units

    def note(self, body: Mapping[str, Any]) -> None:
        """Take a GraphQL response, or a further part of one, that is sent."""
        if errors := body.get("errors"):
            codes = dict.fromkeys(error.get("extensions", {}).get("code", "INTERNAL") for error in errors)
            self.codes += [code for code in codes if code not in self.codes]

    def log(self, scope: Scope) -> None:
        """Write the line of it."""
        status = self.status or CLIENT_CLOSED_REQUEST
        level = logging.ERROR if status in _FAILURES else logging.INFO
        if not self.is_logged or not logger.isEnabledFor(level):
            return
        fields = {
            "method": scope.get("method", "WS"),
            "path": scope["path"],
            "status": status,
            "duration_ms": round((perf_counter() - self.started) * 1000, 3),
        }
        self._add_operation(fields)
        if self.socket:
            fields["socket"] = self.socket
        # What Logger.log() does but for walking the stack, half of its cost: this line is always written here.
        message = "{method} {path} {status}".format_map(fields)
        record = logging.LogRecord(logger.name, level, __file__, 0, message, None, None)
        record.fields = fields
        logger.handle(record)

    def _add_operation(self, fields: dict[str, Any]) -> None:
        if self.kind:
            fields["type"] = self.kind
        if self.operation:
            fields["operation"] = self.operation[:100]
        if self.subject is not None:
            fields["subject"] = self.subject[:100]
        if self.codes:
            fields["errors"] = self.codes
        if self.events is not None:
            fields["events"] = self.events
        if self._requests is not None:
            fields["requests"] = self._requests
            fields["items_read"] = self._items_read
        if self._indexes:
            fields["indexes"] = sorted(self._indexes)
        if self._capacity_units is not None:
            fields["capacity_units"] = round(self._capacity_units, 3)
        if self._retries:
            fields["retries"] = self._retries


_FAILURES = range(500, 600)
_SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


def _incoming_id(sent: bytes | None) -> str | None:
    return sent.decode("ascii") if sent is not None and _SANE_ID.fullmatch(sent) else None


enter: Callable[[Exchange], Token[Observer | None]] = observer.set
"""Begin to observe by an exchange, and to write its id on every line; gives what `leave` takes."""
leave = observer.reset


def _exchange() -> Exchange | None:
    found = observer.get()
    return found if isinstance(found, Exchange) else None


def request_id() -> str:
    """Name the request under way; empty outside of one."""
    exchange = _exchange()
    return exchange.id if exchange else ""


def _ids() -> dict[str, str]:
    """Name the request under way, and its trace where there is one."""
    exchange = _exchange()
    if exchange is None:
        return {}
    return {"request_id": exchange.id, **({"trace_id": exchange.trace_id} if exchange.trace_id else {})}


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level and message first, then the request's id and the record's own fields."""
        line: dict[str, Any] = {
            "time": f"{_second(int(record.created))}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            "logger": record.name,
        }
        line.update(_ids())
        line.update(_fields(record))
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(line, default=str).decode()
        except TypeError:
            # A log line must come out whatever it holds; the standard library takes what orjson does not.
            return json.dumps(line, default=str, skipkeys=True)


class TextFormatter(logging.Formatter):
    """Writes a record as a line for people; only a traceback takes more than one."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the time of day in UTC, level, message and what else is known."""
        known = {name: value for name, value in _fields(record).items() if name not in ("method", "path", "status")}
        known.update(_ids())
        parts = [_second(int(record.created))[11:], f"{record.levelname.lower():7}", record.getMessage()]
        parts += [f"{name}={value}" for name, value in known.items()]
        # Control characters come from clients, in paths and names; written raw they could forge lines.
        line = " ".join(parts).translate(_ESCAPES)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {0x2028: "\\u2028", 0x2029: "\\u2029"}


@lru_cache(maxsize=2)
def _second(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = getattr(record, "fields", {})
    return fields


class _Handler(logging.StreamHandler[TextIO]):
    """Ours, so that configuring twice replaces it and leaves the handlers of others alone."""


def configure_logging(form: Literal["auto", "json", "text"], level: str, stream: TextIO | None = None) -> None:
    """Send every record to standard error, or to the given stream, in the form asked for.

    The level holds for our own rooms. Libraries log from warning up, for at lower levels botocore writes signed
    requests, credentials included.
    """
    stream = stream or sys.stderr
    handler = _Handler(stream)
    as_json = form == "json" or (form == "auto" and not stream.isatty())
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    # Neither form tells of them, and they are a third of what a record costs.
    for unused in ("logThreads", "logProcesses", "logMultiprocessing", "logAsyncioTasks"):
        setattr(logging, unused, False)
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for room in ROOMS:
        logging.getLogger(room).setLevel(level.upper())
