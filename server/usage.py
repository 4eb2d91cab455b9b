"""Which indexes were read: from the lines of our structured log, and from metrics as Prometheus has them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from graph.doctor.indexes import Usage

_METRIC = re.compile(r"tablegraph_dynamodb_requests(?:_total)?\{(.*)\}\s+([0-9.eE+]+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_OTHER = "other"
"""What the metrics count together, once there are many tables."""


def usage_of(paths: Iterable[Path]) -> Usage:
    """Read files of logs (a JSON object a line) or metrics; a line that is neither is passed over.

    Raises: FileNotFoundError.
    """
    usage = Usage()
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                if line.startswith(b"{"):
                    _take_log(usage, line)
                elif match := _METRIC.match(line.decode(errors="replace")):
                    _take_metric(usage, dict(_LABEL.findall(match[1])), float(match[2]))
    return usage


def _take_log(usage: Usage, line: bytes) -> None:
    try:
        told = orjson.loads(line)
    except orjson.JSONDecodeError:
        return
    if not isinstance(told.get("requests"), int):
        return
    usage.operations += 1
    usage.indexes.update(told.get("indexes", ()))
    if time := _time(told):
        usage.first = min(usage.first or time, time)
        usage.last = max(usage.last, time)


def _time(told: dict[str, Any]) -> str:
    time = told.get("time")
    return time if isinstance(time, str) else ""


def _take_metric(usage: Usage, labels: dict[str, str], count: float) -> None:
    usage.operations += int(count)
    if labels.get("table") == _OTHER:
        usage.is_partial = True
    if name := labels.get("index"):
        usage.indexes[name] += int(count)
