"""Structured logs: one line per HTTP request, and the request's id on every line that is written inside it."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Literal, TextIO

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

logger = logging.getLogger(__name__)

ROOMS = ("graph", "resolvers", "server")
CLIENT_CLOSED_REQUEST = 499
"""The status logged when the client was gone before an answer; it is never sent. The number is nginx's."""


@dataclass(slots=True)
class Exchange:
    """The HTTP request under way, as its log lines tell of it."""

    id: str
    status: int | None = None
    notes: dict[str, Any] = field(default_factory=dict)


_exchange: ContextVar[Exchange | None] = ContextVar("exchange", default=None)


def request_id() -> str:
    """Name the request under way; empty outside of one."""
    exchange = _exchange.get()
    return exchange.id if exchange else ""


def note(**fields: Any) -> None:
    """Add fields to the line of the request under way; those that are None are left out."""
    if exchange := _exchange.get():
        exchange.notes.update({name: value for name, value in fields.items() if value is not None})


class RequestLog:
    """ASGI middleware: gives each request its id, sends it back as X-Request-Id and logs one line at the end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        exchange = Exchange(_incoming_id(scope["headers"]) or secrets.token_hex(8))
        id_header = (b"x-request-id", exchange.id.encode("ascii"))

        async def send_with_id(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = [*message.get("headers", ()), id_header]
            await send(message)

        started = perf_counter()
        token = _exchange.set(exchange)
        try:
            await self.app(scope, receive, send_with_id)
        finally:
            _log(exchange, scope, perf_counter() - started)
            _exchange.reset(token)


def _log(exchange: Exchange, scope: Scope, duration_secs: float) -> None:
    status = exchange.status or CLIENT_CLOSED_REQUEST
    level = logging.ERROR if status >= 500 else logging.INFO
    if logger.isEnabledFor(level):
        fields = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "duration_ms": round(duration_secs * 1000, 3),
            **exchange.notes,
        }
        logger.log(level, "%s %s %s", fields["method"], fields["path"], status, extra={"fields": fields})


_SANE_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


def _incoming_id(headers: list[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == b"x-request-id":
            return value.decode("ascii") if _SANE_ID.fullmatch(value) else None
    return None


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level and message first, then the request's id and the record's own fields."""
        line: dict[str, Any] = {
            "time": _time(record).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
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
        parts = [f"{_time(record):%H:%M:%S}", f"{record.levelname.lower():7}", record.getMessage()]
        parts += [f"{name}={value}" for name, value in known.items()]
        # Control characters come from clients, in paths and names; written raw they could forge lines.
        line = " ".join(parts).translate(_ESCAPES)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))} | {0x2028: "\\u2028", 0x2029: "\\u2029"}


def _time(record: logging.LogRecord) -> datetime:
    return datetime.fromtimestamp(record.created, UTC)


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
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for room in ROOMS:
        logging.getLogger(room).setLevel(level.upper())
