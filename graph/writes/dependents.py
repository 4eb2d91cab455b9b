"""What is made of a node elsewhere: who holds something of it, and what of that a write takes along by itself.

In a table of copies by stream a write takes along only what says where an item lies and what it names: the items whose
primary key is made of what changes, and those whose references name the node by it. All else that is made of it, the
copies and the keys of indexes, follows by the stream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from graph.keys import Path, Shard, Variable, shard_path
from graph.model import Inward, ItemType, Layout, Model
from graph.writes.draft import paths_of
from graph.writes.stored import copied_fields, is_stored

SOME_VALUES: Mapping[str, Any] = {
    "Int": 1,
    "BigInt": 1,
    "Float": 1.0,
    "Decimal": Decimal(1),
    "Date": "2000-01-01",
    "DateTime": "2000-01-01T00:00:00Z",
}
"""Stand in a key for values that are not known; for a text any letter does."""


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


def refuse_unkeyable(model: Model, type_: ItemType, values: Mapping[str, Any]) -> None:
    """Refuse new values of a node's fields that cannot stand in the keys which follow by the stream.

    What else these keys hold is not known here: that one would be too long, or mistaken for what stands beside it,
    `verify` tells.
    Raises: KeyValueError.
    """
    if not model.is_followed(type_):
        return
    given = {name: value for name, value in values.items() if value is not None and name in type_.fields}
    for inward in dependents(model, type_, given):
        new = {(inward.field, name): value for name, value in given.items()}
        for layout in model.items[inward.item_type].layouts:
            for template in layout.templates.values():
                if any(variable.path in new for variable in template.variables):
                    known = {variable.path: _some_value(variable) for variable in template.variables}
                    shards: dict[Path, Any] = {
                        shard_path(part): 0 for part in template.parts if isinstance(part, Shard)
                    }
                    template.format(known | shards | {path: new[path] for path in known if path in new})


def _some_value(variable: Variable) -> Any:
    return next(iter(variable.scalar.values or ()), SOME_VALUES.get(variable.scalar.name, "x"))


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
