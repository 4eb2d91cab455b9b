"""Items as they are to be: the values of a type's own fields, written as one item for each of its layouts."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from graph.entity import UNKNOWN, Entity
from graph.errors import KeyValueError
from graph.keys import (
    OURS,
    PARTITION_KEY_BYTES,
    SORT_KEY_BYTES,
    KeyValue,
    Literal,
    Part,
    Path,
    Shard,
    Template,
    Variable,
    shard_path,
)
from graph.model import Field, FieldKind, ItemType, Layout, Model
from graph.packing import Stored
from graph.planner import shard_of
from graph.requests import Item, ItemKey, key_attribute, key_value
from graph.scalars import AttributeValue
from graph.writes.stored import copied_fields, declared_attributes, is_stored


class Draft:
    """The values that an item is to have: scalars by field, and for a reference the node that it names.

    `kept` is the item as it lies in the table, where it does: what no field says stays as it is.
    """

    __slots__ = ("kept", "model", "type", "values")

    def __init__(self, model: Model, type_: ItemType, values: Mapping[str, Any], kept: Item | None = None) -> None:
        self.model = model
        self.type = type_
        self.values = dict(values)
        self.kept: Item = kept or {}

    @classmethod
    def of(cls, entity: Entity) -> Draft:
        """Take an item as it was read, with the nodes that were loaded for its references."""
        values = {
            field.name: _as_read(entity, field) if field.kind is FieldKind.ATTRIBUTE else entity.reference(field)
            for field in entity.type.fields.values()
            if field.kind is not FieldKind.RELATIONSHIP
        }
        # The key decides which item it is, whatever an attribute beside it says.
        values |= {path[0]: value for path, value in entity.key_paths.items() if len(path) == 1}
        return cls(entity.model, entity.type, values, entity.wire)

    def changed(self, values: Mapping[str, Any]) -> Draft:
        """Make the draft that has these values instead."""
        return Draft(self.model, self.type, {**self.values, **values}, self.kept)

    def at(self, path: Path) -> Any:
        """Give the value at the end of a path through references and nested objects; None where there is none."""
        value = self.values.get(path[0])
        if isinstance(value, (Draft, Entity)) and len(path) > 1:
            return value.at(path[1:])
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    @property
    def key_paths(self) -> Mapping[Path, Any]:
        """Give what a key says against the values: nothing, for it is made of them."""
        return {}

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """List the layouts that the item has: one for each mirror, of the types that its references name."""
        return tuple(
            layout
            for layout in self.type.layouts
            if all(_type_name(self.values.get(name)) == member for name, member in layout.ends.items())
        )

    @property
    def written_layouts(self) -> tuple[Layout, ...]:
        """List those of its layouts whose items a mutation writes by itself."""
        written = written_layouts(self.model, self.type)
        return tuple(layout for layout in self.layouts if layout in written)

    def key(self, layout: Layout | None = None) -> ItemKey:
        """Make the table and primary key of the item in a layout, by default its first. Raises KeyValueError."""
        layout = layout or self.layouts[0]
        table = self.model.tables[layout.table]
        key = tuple((name, self.made_key(layout, name)) for name in table.key_attributes)
        return (layout.table if table.period is None else table.period.name(self.at((table.period.field,)))), key

    def item(self, layout: Layout) -> dict[str, AttributeValue]:
        """Write the item of a layout: its keys, its fields, the copy that it holds, and what nobody declared.

        Raises: KeyValueError when a value cannot stand in its key.
        """
        declared = declared_attributes(self.model, layout)
        item = {name: value for name, value in self.kept.items() if not (name in declared or name.startswith(OURS))}
        changed = frozenset(self.type.fields)
        item |= {name: value for name, value in self.rewritten(layout, changed).items() if value is not None}
        type_attribute = self.model.tables[layout.table].type_attribute
        if type_attribute is not None:
            item[type_attribute] = {"S": self.type.type_name}
        for name in layout.templates:
            if name not in item and (value := self.made_key(layout, name)) is not None:
                item[name] = key_attribute(value)
        return item

    def rewritten(self, layout: Layout, changed: Collection[str]) -> dict[str, AttributeValue | None]:
        """Write the attributes that are made of some fields; None for one that is to be no more.

        A reference has changed when it names another node, and when the node that it names has.
        """
        found: dict[str, AttributeValue | None] = {}
        if layout.copy in changed:
            found |= self._copied(layout)
        for field in self.type.fields.values():
            if field.name in changed and self._has_attribute(field):
                found[field.attribute] = self._written(field)
        for name in keys_made_of(layout, changed):
            value = self.made_key(layout, name)
            found[name] = None if value is None else key_attribute(value)
        return found

    def _written(self, field: Field) -> AttributeValue | None:
        value = self.values.get(field.name)
        if value is None or value is UNKNOWN or (field.is_set and not value):
            return None
        return written(field, value)

    def _has_attribute(self, field: Field) -> bool:
        """Say whether a field is kept in an attribute of its own.

        What the key holds is not stored a second time; who did so keeps it, and it is kept right.
        """
        if field.kind is FieldKind.RELATIONSHIP:
            return False
        return is_stored(self.model, self.type, field) or field.attribute in self.kept

    def _copied(self, layout: Layout) -> dict[str, AttributeValue | None]:
        end = self.values.get(layout.copy) if layout.copy else None
        if not isinstance(end, (Draft, Entity)):
            return {}
        found: dict[str, AttributeValue | None] = {}
        for field in copied_fields(self.model, layout, end.type):
            value = end.at((field.name,))
            is_nothing = value is None or (field.is_set and not value)
            found[field.attribute] = None if is_nothing else written(field, value)
        return found

    # --- keys ---

    def made_key(self, layout: Layout, name: str) -> Any:
        """Make a key attribute; None for one of an index that lacks a value. Raises KeyValueError."""
        template = layout.templates[name]
        table = self.model.tables[layout.table]
        values = {path: self.at(path) for path in paths_of(template)}
        is_primary = name in table.key_attributes
        unknown = [path for path, value in values.items() if value is UNKNOWN]
        assert not unknown, f"{unknown} of {self.type.name} was not read for the key {name!r}"
        if not is_primary and any(value is None for value in values.values()):
            return None
        if (kept := self._kept_key(template, name, values)) is not None:
            return kept
        shards = {shard_path(part): self._shard(part) for part in template.parts if isinstance(part, Shard)}
        return template.format(values | shards, limit=_limit(layout, self.model, name))

    def _kept_key(self, template: Template, name: str, values: Mapping[Path, Any]) -> KeyValue | None:
        """Give the key that the item has, where it holds these values: a random shard is drawn once."""
        shards = [part for part in template.parts if isinstance(part, Shard) and part.path is None]
        if name not in self.kept or not shards:
            return None
        kept = str(key_value(self.kept[name]))
        match = re.fullmatch("".join(self._pattern(part, values) for part in template.parts), kept)
        is_kept = match is not None and all(
            int(number) < shard.count for number, shard in zip(match.groups(), shards, strict=True)
        )
        return kept if is_kept else None

    def _pattern(self, part: Part, values: Mapping[Path, Any]) -> str:
        if isinstance(part, Variable):
            return re.escape(part.text(values[part.path]))
        if isinstance(part, Literal):
            return re.escape(part.text)
        return r"(0|[1-9][0-9]*)" if part.path is None else str(self._shard(part))

    def _shard(self, shard: Shard) -> int:
        return random.randrange(shard.count) if shard.path is None else shard_of(shard, self.at(shard.path))


Wanted = dict[str, set[Path]]
"""What must be known of the nodes that an item names: the paths below each of its references."""


def written_layouts(model: Model, type_: ItemType) -> tuple[Layout, ...]:
    """List the layouts whose items a mutation writes by itself; mirrors may follow by the stream."""
    is_followed = model.is_followed(type_)
    return tuple(layout for layout in type_.layouts if not (layout.mirror and is_followed))


def behind(model: Model, draft: Draft, changed: Collection[str], layouts: Collection[Layout] | None = None) -> Wanted:
    """List what the items hold of the nodes that they name, as far as it is made of some fields.

    They are those that a mutation writes, unless other layouts are given.
    """
    found: Wanted = {}
    for layout in draft.written_layouts if layouts is None else layouts:
        _collect(found, layout, keys_made_of(layout, changed))
        if layout.copy is not None and layout.copy in changed:
            node = draft.values.get(layout.copy)
            if isinstance(node, (Draft, Entity)):
                copied = {(field.name,) for field in copied_fields(model, layout, node.type)}
                found.setdefault(layout.copy, set()).update(copied)
    return found


def behind_keys(model: Model, draft: Draft) -> Wanted:
    """List what the primary keys of the items hold of the nodes that they name."""
    found: Wanted = {}
    for layout in draft.written_layouts:
        _collect(found, layout, model.tables[layout.table].key_attributes)
    return found


def _collect(found: Wanted, layout: Layout, names: Iterable[str]) -> None:
    for name in names:
        for path in paths_of(layout.templates[name]):
            if len(path) > 1:
                found.setdefault(path[0], set()).add(path[1:])


def keys_made_of(layout: Layout, changed: Collection[str]) -> Iterator[str]:
    """List the key attributes that hold some of these fields, or a hash of them."""
    for name, template in layout.templates.items():
        if any(path[0] in changed for path in paths_of(template)):
            yield name


def paths_of(template: Template) -> Iterator[Path]:
    """List what a key is made of: its variables, and what decides its shards."""
    for part in template.parts:
        if not isinstance(part, Literal) and part.path is not None:
            yield part.path


def _as_read(entity: Entity, field: Field) -> Any:
    """Give a value as it was read; a large one is not looked into, for it is kept or written anew as a whole."""
    is_opaque = field.blob is not None and field.attribute in entity.wire
    return Stored(entity.wire[field.attribute]) if is_opaque else entity.value(field)


def _type_name(value: Any) -> str | None:
    return value.type.name if isinstance(value, (Draft, Entity)) else None


def written(field: Field, value: Any) -> AttributeValue:
    """Write the attribute of a field that has a value."""
    if field.kind is FieldKind.REFERENCE:
        return key_attribute(ref_text(field, value))
    return field.write(value)


def ref_text(field: Field, node: Draft | Entity) -> KeyValue:
    """Write how an attribute names a node."""
    ref = field.refs[node.type.name]
    return ref.format({variable.path: node.at(variable.path) for variable in ref.variables})


def _limit(layout: Layout, model: Model, name: str) -> int:
    if layout.self_keyed:
        return SORT_KEY_BYTES
    table = model.tables[layout.table]
    sorts = {name for way in table.ways for name in way.sort_keys}
    return SORT_KEY_BYTES if name in sorts else PARTITION_KEY_BYTES


def refuse_unfit(draft: Draft) -> None:
    """Refuse references that no layout has items for. Raises KeyValueError."""
    if not draft.layouts:
        ends = ", ".join(f"{name}: {_type_name(draft.values.get(name))}" for name in draft.type.layouts[0].ends)
        raise KeyValueError(f"no item of {draft.type.name} has these ends: {ends}. Name nodes of other types")
