"""Records as rows of a table: a column for the path to every value, texts as they are, lists and maps as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from graph.bulk.shapes import BESIDE, TYPENAME
from graph.keys import Path
from graph.model import Field, FieldKind, ItemType, Model


def row_of(model: Model, type_: ItemType, paths: Sequence[Path], record: Mapping[str, Any]) -> list[str]:
    """Write the cells of a record."""
    return [_cell(model, type_, path, record) for path in paths]


def _cell(model: Model, type_: ItemType, path: Path, record: Mapping[str, Any]) -> str:
    value: Any = record
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    if value is None:
        return ""
    if not isinstance(value, str) or (path[-1] != TYPENAME and _is_json(_entry(model, type_, path, record))):
        return orjson.dumps(value).decode()
    # An empty cell is null, and what looks like JSON text is read as such.
    return orjson.dumps(value).decode() if not value or _is_quoted(value) else value


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] == '"'


def _is_json(entry: Field | None) -> bool:
    """Say whether the cells of a field are JSON: what they hold is no single scalar."""
    return entry is None or entry.scalar is None or entry.type.of is not None or entry.scalar.name == "JSON"


def _entry(model: Model, type_: ItemType | None, path: Path, record: Any) -> Field | None:
    """Find the field at the end of a path; None where there is none."""
    entry: Field | None = None
    fields: Mapping[str, Field] = {} if type_ is None else type_.fields
    for name in path:
        entry = fields.get(name)
        if entry is None:
            return None
        record = record.get(name) if isinstance(record, Mapping) else None
        fields = _fields_behind(model, entry, record)
    return entry


def _fields_behind(model: Model, entry: Field, record: Any) -> Mapping[str, Field]:
    if entry.kind is not FieldKind.REFERENCE:
        return model.objects[entry.type.named].fields if entry.type.named in model.objects else {}
    named = entry.type.named
    if named not in model.items and isinstance(record, Mapping):
        named = record.get(TYPENAME) or ""
    return model.items[named].fields if named in model.items else {}


def record_of(model: Model, type_: ItemType | None, paths: Sequence[Path], row: Sequence[str]) -> dict[str, Any]:
    """Read a row as a record.

    An empty cell is null; that of a field which must have a value, or of a field of another type, is as if the column
    were not there.
    Raises: ValueError with the reason when a cell cannot be read.
    """
    record = _nested(paths, row)
    for path in paths:
        if path[-1] != TYPENAME:
            _read_cell(record, path, _entry(model, type_, path, record))
    return _without_blank_nodes(type_, record)


def _nested(paths: Sequence[Path], row: Sequence[str]) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for path, text in zip(paths, row, strict=True):
        below = record
        for name in path[:-1]:
            below = below.setdefault(name, {})
            if not isinstance(below, dict):
                raise ValueError(f"the columns {path[0]} and {'.'.join(path)} contradict each other")
        below[path[-1]] = text or None
    return record


def _read_cell(record: dict[str, Any], path: Path, entry: Field | None) -> None:
    below = record
    for name in path[:-1]:
        below = below[name]
    name, text = path[-1], below[path[-1]]
    if text is None:
        # A column of another type has nothing in this row.
        if entry is None or (len(path) == 1 and entry.type.required):
            del below[name]
    elif entry is not None or name in BESIDE:
        below[name] = _value(".".join(path), entry, text)


def _value(where: str, entry: Field | None, text: str) -> Any:
    if _is_json(entry) or _is_quoted(text):
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            if _is_json(entry):
                raise ValueError(f"`{where}`: expected JSON, got {text[:80]!r}") from None
    assert entry is not None, "what is no field is JSON"
    if entry.scalar is not None and entry.scalar.name == "Boolean":
        return {"true": True, "false": False}.get(text.lower(), text)
    return text


def _without_blank_nodes(type_: ItemType | None, record: dict[str, Any]) -> dict[str, Any]:
    """Take a node of which every cell is empty for none at all."""
    for name, value in record.items():
        entry = None if type_ is None else type_.fields.get(name)
        if entry is not None and entry.kind is FieldKind.REFERENCE:
            record[name] = _pruned(value) or None
    return record


def _pruned(value: Any) -> Any:
    """Take a node without a value for None, and leave out those without so much as a column."""
    if not isinstance(value, dict):
        return value
    below = {name: found for name, one in value.items() if (found := _pruned(one)) != {}}
    return None if below and all(one is None for one in below.values()) else below
