"""Structured logs: one line per HTTP request, and per WebSocket and operation on it, each with an id.

The id stands on every line that is written inside the request or operation.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache
from random import getrandbits
from time import perf_counter
from typing import Any, Literal, TextIO

import orjson
from starlette.types import Scope

logger = logging.getLogger(__name__)

ROOMS = ("graph", "resolvers", "server")
CLIENT_CLOSED_REQUEST = 499
"""The status logged when the client was gone before an answer; it is never sent. The number is nginx's."""


class Exchange:
    """The HTTP request, WebSocket, or operation on a WebSocket that is under way, as its log lines tell of it."""

    __slots__ = (
        "answer_headers",
        "cost",
        "events",
        "headers",
        "id",
        "last_words",
        "operation",
        "socket",
        "started",
        "status",
        "subject",
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
        self.operation: str | None = None
        self.events: int | None = None
        """How many events have been sent."""
        self.socket: str | None = None
        """The id of the WebSocket that it is on."""
        self.cost: Any = None
        self.subject: str | None = None
        """Who asks."""

    def note_cost(self, body: Mapping[str, Any]) -> None:
        """Keep what a GraphQL response says of its cost."""
        if extensions := body.get("extensions"):
            self.cost = extensions.get("cost")

    def log(self, scope: Scope) -> None:
        """Write the line of it."""
        status = self.status or CLIENT_CLOSED_REQUEST
        level = logging.ERROR if status in _FAILURES else logging.INFO
        if not logger.isEnabledFor(level):
            return
        fields = {
            "method": scope.get("method", "WS"),
            "path": scope["path"],
            "status": status,
            "duration_ms": round((perf_counter() - self.started) * 1000, 3),
        }
        if self.operation:
            fields["operation"] = self.operation[:100]
        if self.subject is not None:
            fields["subject"] = self.subject[:100]
        if self.events is not None:
            fields["events"] = self.events
        if self.socket:
            fields["socket"] = self.socket
        if self.cost is not None:
            fields["cost"] = self.cost
        # What Logger.log() does but for walking the stack, half of its cost: this line is always written here.
        message = "{method} {path} {status}".format_map(fields)
        record = logging.LogRecord(logger.name, level, __file__, 0, message, None, None)
        record.fields = fields
        logger.handle(record)


_FAILURES = range(500, 600)
_SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


def _incoming_id(sent: bytes | None) -> str | None:
    return sent.decode("ascii") if sent is not None and _SANE_ID.fullmatch(sent) else None


_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)
enter = _exchange.set
"""Begin to write an exchange's id on every line; gives what `leave` takes."""
leave = _exchange.reset


def request_id() -> str:
    """Name the request under way; empty outside of one."""
    exchange = _exchange.get()
    return exchange.id if exchange else ""


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
        if request := request_id():
            line["request_id"] = request
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
        if request := request_id():
            known["request_id"] = request
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
