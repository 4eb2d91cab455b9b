"""Nodes: their global ids, the lookups by id and by key, and the nodes that items name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import orjson

from graph import lookups
from graph.collection import Companion
from graph.entity import Entity, every_layout
from graph.errors import IdError
from graph.keys import KeyValue, Path
from graph.loaders import Limits, Operation
from graph.lookups import Needs
from graph.model import ItemType, Model, Relationship
from graph.records import contents
from graph.rows import Rows
from graph.scalars import number_text
from graph.seals import Seal
from resolvers.selection import Selection


def needs_of(*selections: Selection) -> Needs:
    """Say what these selections need of a node of each type."""
    known: dict[str, frozenset[str]] = {}

    def needs(type_name: str) -> frozenset[str]:
        if type_name not in known:
            known[type_name] = frozenset().union(*(selection.names(type_name) for selection in selections))
        return known[type_name]

    return needs


def write_id(entity: Entity) -> str:
    """Write a node's global id: its type and its key, the sort key only where it differs from the partition key."""
    if entity.layout is not None and entity.layout.mirror:
        entity = Entity(entity.model, entity.type, named=entity.paths)
    key = entity.key
    assert key is not None, "the selection has made sure that the key is known"
    values = [value for _, value in key[1]]
    parts = [entity.type.name, *map(_write, values if len(set(values)) > 1 else values[:1])]
    return entity.model.seals.id.write(orjson.dumps(parts))


def write_ids(rows: Rows) -> list[str]:
    """Write the global ids of rows."""
    layout = rows.layout
    if layout is None or layout.mirror or not all(rows.wires):
        return [write_id(rows.entity(number)) for number in range(len(rows))]
    names = rows.model.tables[layout.table].key_attributes
    name, seal = rows.type.name, rows.model.seals.id
    try:
        if layout.self_keyed:
            key = names[0]
            return seal.write_all([orjson.dumps([name, text]) for text in contents(key)(rows.wires)])
        columns = [contents(key)(rows.wires) for key in names]
        texts = [list(dict.fromkeys(key_texts)) for key_texts in zip(*columns, strict=True)]
    except KeyError:
        return [write_id(rows.entity(number)) for number in range(len(rows))]
    return seal.write_all([orjson.dumps([name, *key_texts]) for key_texts in texts])


def _write(value: KeyValue) -> str:
    return number_text(value) if isinstance(value, Decimal) else value


def read_id(model: Model, text: str) -> Entity:
    """Read the node that a global id names.

    Raises: IdError when the id is damaged, or names a type or key that the model does not have.
    """
    parts = _decode(text, model.seals.id)
    if not parts or not all(isinstance(part, str) for part in parts):
        raise _refused(text, "it is not one")
    item = model.items.get(parts[0])
    if item is None or not item.is_node:
        raise _refused(text, f"it is of a type {parts[0]!r}, which the model does not have")
    for layout in every_layout(item):
        table = model.tables[layout.table]
        values = parts[1:] * (len(table.key_attributes) if len(parts) == 2 else 1)
        if len(values) != len(table.key_attributes):
            continue
        named: dict[Path, Any] = {}
        key: list[tuple[str, KeyValue]] = []
        for name, value in zip(table.key_attributes, values, strict=True):
            template = layout.templates[name]
            key.append((name, _number(value) if template.is_number else value))
            parsed = template.parse(key[-1][1])
            if parsed is None:
                break
            named |= parsed
        else:
            is_version = layout is item.history
            return Entity(model, item, named=named, key=(layout.table, tuple(key)) if is_version else None)
    raise _refused(text, f"its key is not one of a {item.name}")


def _number(value: str) -> KeyValue:
    try:
        return Decimal(value)
    except ArithmeticError:
        return value


def _decode(text: str, seal: Seal) -> list[Any] | None:
    try:
        content = seal.read(text)
        parts = orjson.loads(content)
    except ValueError:
        return None
    # One object, one id: normalised caches would keep a second spelling of it as another object.
    return parts if isinstance(parts, list) and orjson.dumps(parts) == content else None


def _refused(text: str, reason: str) -> IdError:
    shown = text if len(text) <= 40 else text[:40] + "…"
    return IdError(f"expected the `id` of a node of this API, got {shown!r}: {reason}")


async def nodes(operation: Operation, ids: list[str]) -> list[Entity | None]:
    """Get the nodes of global ids, in order; one that does not exist is None. Raises IdError."""
    return await lookups.by_keys(operation, [read_id(operation.model, text) for text in ids])


async def lookup(
    operation: Operation,
    item: ItemType,
    arguments: Mapping[str, tuple[Path, bool]],
    values: Mapping[str, Any],
    selection: Selection,
) -> Entity | None:
    """Get the item of these arguments, or None when there is none."""
    named = named_by(arguments, values)
    return await lookups.lookup(operation, item, named, list(companions(operation, item, selection)))


def named_by(arguments: Mapping[str, tuple[Path, bool]], values: Mapping[str, Any]) -> dict[Path, Any]:
    """Say what the arguments of a lookup name."""
    return {path: values[name] for name, (path, _) in arguments.items() if values.get(name) is not None}


def companions(operation: Operation, item: ItemType, selection: Selection) -> Iterator[Companion]:
    """List the relationships whose first page is asked for with the item."""
    for name, first, below in selection.plain(item.name):
        relationship = operation.model.relationships.get((item.name, name))
        if relationship is None:
            continue
        if not relationship.many:
            yield Companion(relationship, 1)
        elif (
            below.names() & PAGE_FIELDS
            and (companion := page_companion(operation.limits, relationship, first)) is not None
        ):
            yield companion


PAGE_FIELDS = frozenset(("edges", "nodes", "pageInfo"))
"""The fields of a connection for which its page must be read."""


def page_companion(limits: Limits, relationship: Relationship, first: int | None) -> Companion | None:
    """Make the companion of a first page, unless there can be none of its size."""
    size = limits.default_page_size if first is None else first
    return Companion(relationship, size + 1) if 0 < size <= limits.max_page_size else None
