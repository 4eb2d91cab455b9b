"""A record as the items of its type: values by the model's field names, checked, completed and written."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from graph.bulk.items import Placed, placed
from graph.bulk.rest import with_rest
from graph.bulk.shapes import ATTRIBUTES, BESIDE, IS_VERSION, TYPENAME, held_paths, named_paths, value_fields
from graph.bulk.values import taken
from graph.errors import InputError
from graph.keys import Path, Shard
from graph.model import Field, FieldKind, ItemType, Layout, Model
from graph.packing import Blob
from graph.requests import key_attribute
from graph.scalars import AttributeValue
from graph.writes.defaults import initial
from graph.writes.draft import Draft, refuse_unfit, written
from graph.writes.history import version_item
from graph.writes.stored import is_stored


@dataclass(frozen=True, slots=True)
class Moment:
    """What a load makes its defaults of: read again, the same record gives the same items.

    So a load that is taken up again after a kill writes nothing twice under another key.
    """

    now: datetime
    seed: str

    def draw(self, line: int, what: str) -> bytes:
        """Draw sixteen bytes for something of a line."""
        return hashlib.blake2b(f"{self.seed} {line} {what}".encode(), digest_size=16).digest()


class _Drawn(Draft):
    """A draft whose random shards are drawn again the same."""

    __slots__ = ("line", "moment")

    moment: Moment
    line: int

    def _shard(self, shard: Shard) -> int:
        if shard.path is not None:
            return super()._shard(shard)
        return int.from_bytes(self.moment.draw(self.line, f"shard {shard.count}")) % shard.count


class RecordReader:
    """Turns records into the items that createX would write; `type_name` is the type of those that name none."""

    def __init__(self, model: Model, moment: Moment, type_name: str | None = None) -> None:
        self._model = model
        self._moment = moment
        self._type_name = type_name
        self._held: dict[tuple[str, str, str], tuple[Path, ...]] = {}
        self._fields = {
            name: {entry.name: entry for entry in value_fields(type_)} for name, type_ in model.items.items()
        }

        self._stored = {
            name: [entry for entry in value_fields(type_) if is_stored(model, type_, entry)]
            for name, type_ in model.items.items()
        }

    def items(self, record: Any, line: int = 0) -> list[Placed]:
        """Make the items of a record, one for each mirror. Raises InputError with all that is wrong with it."""
        draft, rest = self.draft(record, line)
        history = draft.type.history
        found = []
        for layout in (history,) if history is not None and record.get(IS_VERSION) else draft.layouts:
            item = self.item(draft, layout)
            if layout.mirror == 0 and rest is not None:
                item = with_rest(draft, layout, item, rest)
            table = self._model.tables[layout.table]
            name = table.name if table.period is None else table.period.name(draft.at((table.period.field,)))
            found.append(placed(table, name, item))
            if layout.mirror == 0 and history is not None and layout is not history:
                found.append(placed(table, name, version_item(self._model, draft, draft.key(history), item)))
        return found

    def draft(self, record: Any, line: int = 0) -> tuple[Draft, Any]:
        """Take a record's values, and what it keeps beside them. Raises InputError with all that is wrong with it."""
        type_ = self._type(record)
        problems: list[str] = []
        values = self._values(type_, record, line, problems)
        draft = _Drawn(self._model, type_, values)
        draft.moment, draft.line = self._moment, line
        if not problems:
            refuse_unfit(draft)
            problems += [f"`{'.'.join(path)}` is missing" for path in self._missing(draft)]
        if problems:
            raise InputError(f"is no {type_.name}: {'; '.join(problems)}")
        return draft, record.get(ATTRIBUTES)

    def item(self, draft: Draft, layout: Layout) -> dict[str, AttributeValue]:
        """Write the item of a layout. Raises InputError when a value cannot be stored or be part of its key."""
        try:
            if layout is draft.type.history:
                return version_item(self._model, draft, draft.key(layout), draft.item(draft.layouts[0]))
            return self._made(draft, layout)
        except (ValueError, ArithmeticError) as expected:
            name = next((name for name, entry in draft.type.fields.items() if _is_unwritable(draft, entry)), "a value")
            raise InputError(f"is no {draft.type.name}: `{name}`: expected {expected}") from None

    def _made(self, draft: Draft, layout: Layout) -> dict[str, AttributeValue]:
        """Write an item that nothing is kept of, as Draft.item does, without asking of each what holds for all."""
        if layout.copy is not None:
            return draft.item(layout)
        item: dict[str, AttributeValue] = {}
        for entry in self._stored[draft.type.name]:
            value = draft.values[entry.name]
            if value is not None and not (entry.is_set and not value):
                item[entry.attribute] = written(entry, value)
        type_attribute = self._model.tables[layout.table].type_attribute
        names = self._model.tables[layout.table].key_attributes
        if type_attribute is not None:
            item[type_attribute] = {"S": draft.type.type_name}
        for name in layout.templates:
            if layout.self_keyed and name == names[1]:
                item[name] = item[names[0]]
            elif (value := draft.made_key(layout, name)) is not None:
                item[name] = key_attribute(value)
        return item

    # --- values ---

    def _type(self, record: Any) -> ItemType:
        if not isinstance(record, Mapping):
            raise InputError("is no record: expected an object of fields")
        name = record.get(TYPENAME, self._type_name)
        if name is None:
            raise InputError(f"has no `{TYPENAME}`: add it, or name the type of all records with --type")
        type_ = self._model.items.get(name) if isinstance(name, str) else None
        if type_ is None or type_.virtual:
            known = ", ".join(one.name for one in self._model.items.values() if not one.virtual)
            raise InputError(f"is of the type {name!r}: expected one of {known}")
        return type_

    def _values(self, type_: ItemType, record: Mapping[str, Any], line: int, problems: list[str]) -> dict[str, Any]:
        fields = self._fields[type_.name]
        rest = record.get(ATTRIBUTES)
        values: dict[str, Any] = {}
        for name, entry in fields.items():
            content = record[name] if name in record else self._initial(type_, entry, line)
            values[name] = self._value(entry, content, (name,), problems)
            # What lies in a bucket is given by its attribute alone.
            is_kept = entry.blob is not None and isinstance(rest, Mapping) and rest.get(entry.attribute) is not None
            if content is None and entry.type.required and not is_kept:
                problems.append(f"`{name}` is {'null' if name in record else 'missing'}")
        if record.keys() - fields.keys() - BESIDE:
            problems += _unknown(type_, record.keys() - BESIDE, fields, ())
        return values

    def _initial(self, type_: ItemType, entry: Field, line: int) -> Any:
        if entry.default is not None and entry.default.uuid:
            return str(uuid.UUID(bytes=self._moment.draw(line, f"uuid {entry.name}"), version=4))
        return initial(type_, entry, self._moment.now)

    def _value(self, entry: Field, content: Any, at: Path, problems: list[str], *, whole: bool = True) -> Any:
        if content is None:
            return None
        if entry.kind is FieldKind.REFERENCE:
            return self._node(entry, content, at, problems)
        try:
            value = taken(self._model, entry, content, whole=whole)
            if entry.blob is not None and entry.blob.bucket is not None:
                _refuse_large(entry.blob, value)
            return value
        except (ValueError, ArithmeticError) as expected:
            problems.append(f"`{'.'.join(at)}` is {_short(content)}: expected {expected}")
            return None

    def _node(self, entry: Field, content: Any, at: Path, problems: list[str]) -> Draft | None:
        """Take a node that is named by some of its fields, with what its item's keys and copies hold of it."""
        where = ".".join(at)
        if not isinstance(content, Mapping):
            problems.append(f"`{where}` is {_short(content)}: expected an object of the fields that name the node")
            return None
        name = entry.type.named if entry.type.named in self._model.items else content.get(TYPENAME)
        if not isinstance(name, str) or name not in entry.refs:
            problems.append(f"`{where}.{TYPENAME}` is {_short(name)}: expected one of {', '.join(entry.refs)}")
            return None
        type_ = self._model.items[name]
        fields = self._fields[type_.name]
        if content.keys() - fields.keys() - {TYPENAME}:
            problems += _unknown(type_, content.keys() - {TYPENAME}, fields, at)
        node = Draft(
            self._model,
            type_,
            {
                field: self._value(fields[field], value, (*at, field), problems, whole=False)
                for field, value in content.items()
                if field in fields
            },
        )
        for path in named_paths(type_):
            if node.at(path) is None:
                problems.append(f"`{'.'.join((*at, *path))}` is missing")
        return node

    # --- completeness ---

    def _missing(self, draft: Draft) -> Iterator[Path]:
        """List the paths that the items hold and the record does not give."""
        seen: set[Path] = set()
        for layout in draft.layouts:
            for name, entry in self._fields[draft.type.name].items():
                node = draft.values[name] if entry.kind is FieldKind.REFERENCE else None
                if node is None:
                    continue
                for path in self._paths_held(layout, entry, node.type):
                    if (name, *path) not in seen and not _is_given(node, path):
                        seen.add((name, *path))
                        yield (name, *path)

    def _paths_held(self, layout: Layout, entry: Field, target: ItemType) -> tuple[Path, ...]:
        key = (layout.name, entry.name, target.name)
        if key not in self._held:
            self._held[key] = tuple(dict.fromkeys(held_paths(self._model, layout, entry, target)))
        return self._held[key]


def _refuse_large(blob: Blob, value: Any) -> None:
    _, content = blob.pack(value)
    if len(content) > blob.over:
        raise ValueError(
            f"at most {blob.over:,} bytes, for larger values lie in a bucket, and a load writes none there"
        )


def _is_given(node: Draft, path: Path) -> bool:
    value: Any = node
    for name in path:
        values = value.values if isinstance(value, Draft) else value
        # Of what is null all is known.
        if not isinstance(values, Mapping):
            return True
        if name not in values:
            return False
        value = values[name]
    return True


def _unknown(type_: ItemType, names: Iterable[str], fields: Mapping[str, Field], at: Path) -> Iterator[str]:
    for name in sorted(set(names) - fields.keys()):
        where = ".".join((*at, name))
        if name in type_.fields:
            yield f"`{where}` leads to other items, which have records of their own: leave it out"
        else:
            yield f"`{where}` is no field of {type_.name}: expected {', '.join(fields)}"


def _is_unwritable(draft: Draft, entry: Field) -> bool:
    value = draft.values.get(entry.name)
    if entry.kind is not FieldKind.ATTRIBUTE or value is None:
        return False
    try:
        entry.write(value)
    except (ValueError, ArithmeticError):
        return True
    return False


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
