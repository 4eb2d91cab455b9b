"""What is made of a node elsewhere: who holds something of it, and what of that a write takes along by itself.

In a table of copies by stream a write takes along only what says where an item lies and what it names: the items whose
primary key is made of what changes, and those whose references name the node by it. All else that is made of it, the
copies and the keys of indexes, follows by the stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from graph.keys import Path
from graph.model import Inward, ItemType, Layout, Model
from graph.writes.draft import paths_of
from graph.writes.stored import copied_fields, is_stored


def dependents(model: Model, type_: ItemType, changed: Collection[str]) -> Iterator[Inward]:
    """List the references to nodes of a type whose items hold something made of these fields."""
    for inward in model.inward.get(type_.name, ()):
        layouts = model.items[inward.item_type].layouts
        if _is_named_by(model, inward, type_, changed) or any(
            _is_made_of(model, one, inward.field, type_, changed) for one in layouts
        ):
            yield inward


def taken_along(model: Model, type_: ItemType, changed: Collection[str]) -> Iterator[Inward]:
    """List those of them whose items are rewritten in the transaction that changes the node."""
    for inward in dependents(model, type_, changed):
        if (
            not model.is_followed(type_)
            or _is_named_by(model, inward, type_, changed)
            or any(_holds(layout, name, inward.field, changed) for layout, name in _places(model, inward))
        ):
            yield inward


def is_made_of_others(model: Model, type_: ItemType) -> bool:
    """Say whether items of a type have mirrors, or hold more of the nodes that they name than their names."""
    return any(
        layout.mirror
        or layout.copy
        or any(True for name in layout.templates for _ in beyond_names(model, layout, name))
        for layout in type_.layouts
    )


def beyond_names(model: Model, layout: Layout, attribute: str) -> Iterator[Path]:
    """List what a key attribute holds of nodes that is no part of their names."""
    for path in paths_of(layout.templates[attribute]):
        if len(path) > 1:
            refs = model.items[layout.type_name].fields[path[0]].refs
            ends = [layout.ends[path[0]]] if path[0] in layout.ends else refs
            if any(path[1:] not in model.items[end].named_by for end in ends):
                yield path


def _places(model: Model, inward: Inward) -> Iterator[tuple[Layout, str]]:
    """List the attributes of the primary keys under which items lie, mirrors aside."""
    for layout in model.items[inward.item_type].layouts:
        for name in model.tables[layout.table].key_attributes if not layout.mirror else ():
            yield layout, name


def _is_named_by(model: Model, inward: Inward, node: ItemType, changed: Collection[str]) -> bool:
    """Say whether an attribute names the node by one of these fields."""
    item = model.items[inward.item_type]
    entry = item.fields[inward.field]
    named_by = {variable.path[0] for variable in entry.refs[node.name].variables}
    return is_stored(model, item, entry) and not named_by.isdisjoint(changed)


def _is_made_of(model: Model, layout: Layout, name: str, node: ItemType, changed: Collection[str]) -> bool:
    if layout.copy == name and any(entry.name in changed for entry in copied_fields(model, layout, node)):
        return True
    return any(_holds(layout, attribute, name, changed) for attribute in layout.templates)


def _holds(layout: Layout, attribute: str, name: str, changed: Collection[str]) -> bool:
    """Say whether a key attribute holds one of these fields of the node that a reference names."""
    return any(
        path[0] == name and len(path) > 1 and path[1] in changed for path in paths_of(layout.templates[attribute])
    )
