"""Which attributes an item has, and of what: its own keys and fields, and the fields of an end that it copies."""

from __future__ import annotations

from collections.abc import Iterator

from graph.model import Field, FieldKind, ItemType, Layout, Model


def is_stored(model: Model, type_: ItemType, field: Field) -> bool:
    """Say whether a field has an attribute of its own: the primary key does not give its value back whole."""
    if not type_.layouts:
        return True
    layout = type_.layouts[0]
    names = model.tables[layout.table].key_attributes
    held = {v.path for name in names for v in layout.templates[name].variables if not v.lossy}
    if field.kind is FieldKind.ATTRIBUTE:
        return (field.name,) not in held
    return not all((field.name, *v.path) in held for ref in field.refs.values() for v in ref.variables)


def copied_fields(model: Model, layout: Layout, end: ItemType) -> Iterator[Field]:
    """List the fields of an end that the items of a layout hold a copy of: those that its own item stores.

    A counter is not copied, for every write of what it counts would have to rewrite all copies.
    """
    taken = own_attributes(model, layout)
    for field in end.fields.values():
        is_value = field.kind is not FieldKind.RELATIONSHIP and field.count is None and field.name != end.version
        if is_value and field.attribute not in taken and is_stored(model, end, field):
            yield field


def own_attributes(model: Model, layout: Layout) -> frozenset[str]:
    """List the attributes that an item of a layout has of its own: keys, fields, and its type's name."""
    fields = model.items[layout.type_name].fields.values()
    names = {field.attribute for field in fields if field.kind is not FieldKind.RELATIONSHIP}
    type_attribute = model.tables[layout.table].type_attribute
    return frozenset({*names, *layout.templates, *([type_attribute] if type_attribute else [])})


def declared_attributes(model: Model, layout: Layout) -> frozenset[str]:
    """List every attribute of an item of a layout that the model speaks of."""
    ends = model.items[layout.type_name].fields[layout.copy].refs if layout.copy else ()
    copied = {field.attribute for end in ends for field in copied_fields(model, layout, model.items[end])}
    return own_attributes(model, layout) | copied
