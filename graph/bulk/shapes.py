"""What a record of a type consists of: its fields, and what its keys and copies hold of the nodes that it names."""

from __future__ import annotations

from collections.abc import Iterator

from graph.keys import Path
from graph.model import Field, FieldKind, ItemType, Layout, Model
from graph.writes.draft import paths_of
from graph.writes.stored import copied_fields

TYPENAME = "__typename"
ATTRIBUTES = "__attributes"
"""What the fields of a record do not say of its item: attributes as DynamoDB's JSON; null for one that is not there."""

IS_VERSION = "__isVersion"
"""True for a record of an earlier version, which @history keeps beside the item: it makes no item but that copy."""
BESIDE = frozenset((TYPENAME, ATTRIBUTES, IS_VERSION))
"""What a record may have besides fields."""


def value_fields(type_: ItemType) -> Iterator[Field]:
    """List the fields that a record of a type may give."""
    for entry in type_.fields.values():
        if entry.kind is not FieldKind.RELATIONSHIP:
            yield entry


def named_paths(type_: ItemType) -> tuple[Path, ...]:
    """List the paths by which others name a node."""
    return () if type_.ref is None else tuple(dict.fromkeys(variable.path for variable in type_.ref.variables))


def held_paths(model: Model, layout: Layout, entry: Field, target: ItemType) -> Iterator[Path]:
    """List what the items of a layout hold of the node of some type at a reference, as paths below it."""
    for template in layout.templates.values():
        for path in paths_of(template):
            if path[0] == entry.name and len(path) > 1:
                yield path[1:]
    if layout.copy == entry.name:
        for copied in copied_fields(model, layout, target):
            yield (copied.name,)


def columns(model: Model, type_: ItemType) -> tuple[Path, ...]:
    """List the paths to every value that a record of a type may have: the columns of its table."""
    found: dict[Path, None] = {}
    for entry in value_fields(type_):
        if entry.kind is FieldKind.REFERENCE:
            found |= dict.fromkeys((entry.name, *path) for path in _below(model, type_, entry))
        else:
            found[entry.name,] = None
    return (*found, *([(IS_VERSION,)] if type_.history else []), (ATTRIBUTES,))


def _below(model: Model, type_: ItemType, entry: Field) -> Iterator[Path]:
    if entry.type.named not in model.items:
        yield (TYPENAME,)
    for name in entry.refs:
        target = model.items[name]
        yield from named_paths(target)
        for layout in type_.layouts:
            if layout.ends.get(entry.name, name) == name:
                for path in held_paths(model, layout, entry, target):
                    yield from _expanded(model, target, path)


def _expanded(model: Model, target: ItemType, path: Path) -> Iterator[Path]:
    """Name a copied reference by what names its node."""
    entry = target.fields[path[0]]
    if len(path) > 1 or entry.kind is not FieldKind.REFERENCE:
        yield path
        return
    if entry.type.named not in model.items:
        yield (*path, TYPENAME)
    for name in entry.refs:
        yield from ((*path, *below) for below in named_paths(model.items[name]))
