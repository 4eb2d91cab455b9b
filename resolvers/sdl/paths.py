"""The fields that keys are made of, their own and those of the nodes that they name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from graph.keys import Path, Shard, Template, Variable
from graph.model import ItemType, Layout

Place = tuple[str, str]
"""A field, by its type and its name."""


def places(items: Mapping[str, ItemType], type_name: str, path: Path, layout: Layout | None = None) -> Iterator[Place]:
    """Walk a path from a type: each step is a field of the type that the one before it leads to."""
    name, *rest = path
    yield type_name, name
    field = items[type_name].fields.get(name)
    if rest and field is not None:
        end = layout.ends.get(name) if layout else None
        for target in (end,) if end else field.refs:
            yield from places(items, target, tuple(rest))


def keyed(items: Mapping[str, ItemType]) -> dict[Place, Template]:
    """Give the fields that keys and the names of nodes are made of, each with a template that it is in."""
    return {
        place: template
        for type_name, template, layout in _templates(items)
        for part in template.parts
        if isinstance(part, (Variable, Shard)) and part.path
        for place in places(items, type_name, part.path, layout)
    }


def _templates(items: Mapping[str, ItemType]) -> Iterator[tuple[str, Template, Layout | None]]:
    for item in items.values():
        for layout in item.layouts:
            yield from ((item.name, template, layout) for template in layout.templates.values())
        if item.ref is not None:
            yield item.name, item.ref, None
        for field in item.references:
            yield from ((target, ref, None) for target, ref in field.refs.items())
