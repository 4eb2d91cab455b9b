"""What of an item's shape can be decided before it is read: which items surely fit, and whose keys they spell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from graph.columns import plain_prefix
from graph.keys import SORT_KEY_BYTES, Literal, Part, Path, Template, Variable
from graph.model import Index, ItemType, Layout, Model
from graph.records import contents, presence
from graph.requests import Item, ItemKey

Fits = Callable[[Sequence[Item]], bool]
"""Says whether items are surely all of a layout; a no means that each has to be looked at."""

SHORT = SORT_KEY_BYTES // 4
"""So many letters are surely not too long for a sort key."""


def fits(
    model: Model, layout: Layout, known: frozenset[str] = frozenset(), begun: frozenset[str] = frozenset()
) -> Fits | None:
    """Make the quick test of a layout, or None where only the whole look at an item decides.

    `known` are the attributes of the primary key whose texts were made from the layout's templates, `begun` those that
    are texts with the literal of their template at the beginning.
    """
    table, type_ = model.tables[layout.table], model.items[layout.type_name]
    if type_.expiry is not None or (table.type_attribute is None and model.rivals_of(layout)):
        return None
    tests: list[Fits] = []
    if table.type_attribute is not None:
        tests.append(_has_text(table.type_attribute, type_.type_name))
    if layout.self_keyed:
        tests.append(_is_self_keyed(*table.key_attributes))
    for name in table.key_attributes[:1] if layout.self_keyed else table.key_attributes:
        if name not in known:
            tests.append(_has_shape(name, layout.templates[name], is_begun=name in begun))

    def all_fit(items: Sequence[Item]) -> bool:
        try:
            return all([test(items) for test in tests])
        except KeyError:
            return False

    return all_fit


def _has_text(name: str, text: str) -> Fits:
    texts = contents(name)
    return lambda items: texts(items).count(text) == len(items)


def _is_self_keyed(partition: str, sort: str) -> Fits:
    partitions, sorts = contents(partition), contents(sort)
    return lambda items: partitions(items) == sorts(items)


def _has_shape(name: str, template: Template, *, is_begun: bool) -> Fits:
    prefix, texts = plain_prefix(template), contents(name)
    if template.is_number:
        return lambda items: False
    if prefix is None:
        return lambda items: all([template.parse(text) is not None for text in texts(items)])
    length = len(prefix)
    if is_begun:
        return lambda items: not items or len(min(texts(items), key=len)) > length
    return lambda items: all([len(text) > length and text.startswith(prefix) for text in texts(items)])


# --- keys that other keys spell -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedKey:
    """How the primary key of a node is spelt, letter by letter, in the primary key of an item that names it."""

    type: ItemType
    layout: Layout
    table: str
    names: tuple[str, ...]
    """The attributes of the node's key."""
    sources: tuple[str, ...]
    """The attributes of the item's key that hold their texts."""

    def texts(self, items: Sequence[Item]) -> list[str] | None:
        """List the texts that are all of the nodes' keys, or None when there is more to them."""
        if len(set(self.sources)) > 1:
            return None
        texts = contents(self.sources[0])(items)
        return None if texts and len(max(texts, key=len)) > SHORT else texts

    def keys(self, items: Sequence[Item]) -> list[ItemKey] | None:
        """List the keys of the nodes that items name, or None when one may not be a key."""
        table = self.table
        if len(set(self.sources)) == 1:
            texts = contents(self.sources[0])(items)
            if texts and len(max(texts, key=len)) > SHORT:
                return None
            if len(self.names) == 1:
                (name,) = self.names
                return [(table, ((name, text),)) for text in texts]
            partition, sort = self.names
            return [(table, ((partition, text), (sort, text))) for text in texts]
        columns = [contents(source)(items) for source in self.sources]
        found = [(table, tuple(zip(self.names, texts, strict=True))) for texts in zip(*columns, strict=True)]
        return None if any(len(text) > SHORT for _, key in found for _, text in key) else found


def named_key(model: Model, layout: Layout, field_name: str) -> NamedKey | None:
    """Find the key of the node that a field of a layout's items names, where their own key spells it."""
    field = model.items[layout.type_name].fields[field_name]
    name = layout.ends.get(field_name) or (next(iter(field.refs)) if len(field.refs) == 1 else None)
    if name is None or layout.copy == field_name:
        return None
    node = model.items[name]
    first = node.layouts[0]
    own, its = model.tables[layout.table], model.tables[first.table]
    held = {variable.path for one in own.key_attributes for variable in layout.templates[one].variables}
    is_named = node.ref is not None and all((field_name, *variable.path) in held for variable in node.ref.variables)
    if node.virtual or its.period is not None or not is_named:
        return None
    sources = [
        spelt(below(first.templates[one].parts, field_name), layout, own.key_attributes) for one in its.key_attributes
    ]
    found = tuple(source for source in sources if source is not None)
    return NamedKey(node, first, its.name, its.key_attributes, found) if len(found) == len(sources) else None


def below(parts: Sequence[Part], name: str) -> tuple[Part, ...] | None:
    """Write what a key is made of as those write it who name its node; None where it is more than plain text."""
    if not all(isinstance(part, Literal) or _is_plain(part) for part in parts):
        return None
    return tuple(replace(part, path=(name, *part.path)) if isinstance(part, Variable) else part for part in parts)


def _is_plain(part: Part) -> bool:
    return isinstance(part, Variable) and not part.lossy and not part.scalar.numeric


def spelt(parts: tuple[Part, ...] | None, layout: Layout, attributes: Sequence[str]) -> str | None:
    """Name the attribute of a layout whose text is made of exactly these parts."""
    return next((name for name in attributes if layout.templates[name].parts == parts), None)


def spells_partition(model: Model, layout: Layout, start: str, wanted: Layout, index: Index) -> str | None:
    """Name the attribute of a node's own key whose text is the partition key under which a layout's items name it."""
    if len(index.partition_keys) != 1:
        return None
    parts = wanted.templates[index.partition_keys[0]].parts
    for name in model.tables[layout.table].key_attributes:
        if below(layout.templates[name].parts, start) == parts:
            return name
    return None


def disagree(items: Sequence[Item], fields: Sequence[str]) -> bool:
    """Say whether an item has an attribute of its own for what its key holds: the two may differ."""
    return any(True in presence(name)(items) for name in fields)


def held_fields(layout: Layout, attribute: str, type_: ItemType) -> tuple[str, ...]:
    """List the attributes of the fields that a key attribute holds."""
    paths: set[Path] = {variable.path for variable in layout.templates[attribute].variables}
    return tuple(type_.fields[path[0]].attribute for path in paths if len(path) == 1 and path[0] in type_.fields)
