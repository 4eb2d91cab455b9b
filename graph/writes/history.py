"""Versions kept: every write of an item with @history also puts what the item is from then on, for good."""

from __future__ import annotations

from collections.abc import Iterable

from graph.errors import InputPath
from graph.model import Model
from graph.requests import Item, ItemKey, key_attribute
from graph.scalars import AttributeValue
from graph.writes.draft import Draft
from graph.writes.writing import Writing


def keep_version(writing: Writing, draft: Draft, item: Item, at: InputPath) -> None:
    """Put a copy of an item under the number of its version, out of the way of every index."""
    if draft.type.history is not None:
        key = draft.key(draft.type.history)
        writing.transaction.put(key, version_item(writing.model, draft, key, item), (), at)


def version_item(model: Model, draft: Draft, key: ItemKey, item: Item) -> dict[str, AttributeValue]:
    """Write the copy of an item that keeps one version of it."""
    own = {field.attribute for field in draft.type.fields.values()}
    filled = draft.layouts[0].templates.keys() - own
    kept = {name: value for name, value in item.items() if name not in filled}
    return kept | {name: key_attribute(value) for name, value in key[1]}


def version_count(draft: Draft) -> int:
    """Count the versions that lie beside an item."""
    return int(draft.values[draft.type.version] or 0) if draft.type.history and draft.type.version else 0


def drop_versions(writing: Writing, draft: Draft, numbers: Iterable[int], at: InputPath) -> None:
    """Delete versions of an item."""
    if draft.type.history is not None and draft.type.version is not None:
        for number in numbers:
            key = draft.changed({draft.type.version: number}).key(draft.type.history)
            writing.transaction.delete(key, (), at)
