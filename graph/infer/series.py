"""Time series: tables whose names differ by a period alone, taken as one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from graph.infer.groups import text_of
from graph.infer.sample import Sample
from graph.infer.values import date_kind

_DIGITS = re.compile(r"(?<!\d)(\d{8}|\d{6}|\d{4})(?!\d)")
_FORMATS = {4: "yyyy", 6: "yyyyMM", 8: "yyyyMMdd"}


def joined(samples: Sequence[Sample]) -> list[Sample]:
    """Put the tables of each time series together: "readings_202201", "readings_202202" and so on."""
    made: dict[str, list[Sample]] = {}
    for sample in samples:
        made.setdefault(_pattern(sample) or sample.name, []).append(sample)
    return [found for name, several in made.items() for found in _one(name, several)]


def _pattern(sample: Sample) -> str | None:
    """Write a table's name with its period, where a key says the same."""
    match = _DIGITS.search(sample.name)
    if match is None or not sample.items:
        return None
    for name in sample.keys:
        texts = [text_of(item, name) for item in sample.items]
        if date_kind(texts) and all(text.replace("-", "").startswith(match[0]) for text in texts):
            before, after = sample.name[: match.start()], sample.name[match.end() :]
            return f"{before}{{{name}:{_FORMATS[len(match[0])]}}}{after}"
    return None


def _one(name: str, samples: Sequence[Sample]) -> list[Sample]:
    first = samples[0]
    if len(samples) < 2 or any((one.keys, one.key_types) != (first.keys, first.key_types) for one in samples):
        return list(samples)
    items = tuple(item for one in samples for item in one.items)
    return [replace(first, name=name, items=items, is_whole=all(one.is_whole for one in samples))]
