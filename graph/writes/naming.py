"""Items as callers name them: by the fields of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graph.entity import UNKNOWN, Entity
from graph.keys import Path
from graph.model import ItemType, Layout, Model
from graph.writes.draft import Draft, paths_of


def naming_fields(model: Model, type_: ItemType) -> dict[str, bool]:
    """List the fields that name an item, and whether each is needed: those of its key, and what others name it by.

    Where others name a node by less than its key, the rest may be left out.
    """
    if type_.ref is not None and has_name(model, type_):
        needed = {variable.path[0] for variable in type_.ref.variables}
    else:
        needed = {path[0] for path in _key_paths(model, type_.layouts[0])}
    known = dict.fromkeys([*needed, *(path[0] for layout in type_.layouts[:1] for path in _key_paths(model, layout))])
    return {name: name in needed for name in type_.fields if name in known}


def _key_paths(model: Model, layout: Layout) -> Iterator[Path]:
    for name in model.tables[layout.table].key_attributes:
        yield from paths_of(layout.templates[name])


def named(model: Model, type_: ItemType, values: Mapping[str, Any]) -> Entity:
    """Name an item by some of its fields; a reference's value is an item that is named itself.

    Raises: KeyValueError when a value cannot be part of the key.
    """
    draft = Draft(model, type_, values)
    paths: dict[Path, Any] = {}
    for name, value in values.items():
        if isinstance(value, Entity):
            paths |= {(name, *path): below for path, below in value.paths.items()}
        elif value is not None:
            paths[name,] = value
    layouts = draft.layouts
    is_whole = bool(layouts) and all(draft.at(path) not in (None, UNKNOWN) for path in _key_paths(model, layouts[0]))
    key = draft.key(layouts[0]) if is_whole else None
    return Entity(model, type_, named=paths, key=key)


def has_name(model: Model, type_: ItemType) -> bool:
    """Say whether what others name a node by is its name alone.

    That is its partition key where the model does not say: of a node that nobody names many may share a partition, as
    the children of another one do.
    """
    if type_.ref is None or not type_.is_node:
        return False
    layout = type_.layouts[0]
    partition = layout.templates[model.tables[layout.table].key_attributes[0]]
    return bool(model.inward.get(type_.name)) or type_.ref.source != partition.source


def may_have_another_key(model: Model, type_: ItemType) -> bool:
    """Say whether a node of the same name may lie under another key, which holds more than the name."""
    if type_.ref is None or not has_name(model, type_):
        return False
    named = {variable.path for variable in type_.ref.variables}
    layout = type_.layouts[0]
    keys = [layout.templates[name] for name in model.tables[layout.table].key_attributes]
    return not {path for template in keys for path in paths_of(template)} <= named


def by_name(draft: Draft) -> Entity:
    """Name a node by what other items name it by."""
    assert draft.type.ref is not None, "only a node is named by others"
    paths = (variable.path for variable in draft.type.ref.variables)
    return Entity(draft.model, draft.type, named={path: draft.at(path) for path in paths})
