"""An item, or the name of one, as a value of its type: fields come from attributes, else out of the keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from graph.errors import ItemError
from graph.keys import PARTITION_KEY_BYTES, SORT_KEY_BYTES, Path, Template
from graph.model import Field, FieldKind, ItemType, Layout, Model
from graph.requests import Item, ItemKey, KeyAttributes, key_value

HISTORY_FIELDS = ("versions", "at")
"""The fields that a type with @history has besides its own."""


class Unknown:
    """The type of UNKNOWN."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()
"""What is read here does not say: the item itself must be loaded. None, in contrast, is a value that is absent."""


class Entity:
    """A value of an item type.

    `wire` is the item as it came. `holds` says which attributes the reading could have shown: None means all of them,
    so that a missing one is null; for a name or a copy it is a set, and what is outside it is UNKNOWN. `named` are
    the values that another item's key or attribute gave away.
    """

    __slots__ = ("_key", "_parsed", "_paths", "holds", "layout", "model", "named", "nodes", "type", "wire")

    def __init__(
        self,
        model: Model,
        type_: ItemType,
        *,
        layout: Layout | None = None,
        wire: Item | None = None,
        holds: frozenset[str] | None = frozenset(),
        named: Mapping[Path, Any] | None = None,
        parsed: Mapping[str, Mapping[Path, Any]] | None = None,
        key: ItemKey | None = None,
    ) -> None:
        self.model = model
        self.type = type_
        self.layout = layout
        self.wire: Item = wire or {}
        self.holds = holds
        self.named: Mapping[Path, Any] = named or {}
        self.nodes: dict[str, Entity | None] = {}
        """Referenced nodes that were loaded on the way, by field."""
        self._parsed = parsed or {}
        self._paths: dict[Path, Any] | None = None
        self._key = key

    def __repr__(self) -> str:
        return f"<{self.type.name} {dict(self.paths)}>"

    @property
    def paths(self) -> Mapping[Path, Any]:
        """Give every value that keys or a naming item hold, by path; lossless ones win over lossy ones."""
        if self._paths is None:
            self._paths = dict(self.named)
            if self.layout is not None:
                self._paths = _parse_keys(self.layout, self.wire, self._parsed) | self._paths
        return self._paths

    def value(self, field: Field) -> Any:
        """Give a field's value, None when it is absent, or UNKNOWN. Raises ItemError when it is of a wrong type."""
        attribute = self.wire.get(field.attribute)
        if attribute is not None and (self.holds is None or field.attribute in self.holds):
            return self._decode(field, attribute)
        path = (field.name,)
        if path in self.paths and (self.holds is None or not self._is_lossy(path)):
            return self.paths[path]
        return None if self.holds is None or field.attribute in self.holds else UNKNOWN

    def _decode(self, field: Field, attribute: Mapping[str, Any]) -> Any:
        if "NULL" in attribute:
            return None
        try:
            return field.read(attribute)
        except (ValueError, ArithmeticError) as error:
            raise ItemError(
                f"{self.type.name}.{field.name} is declared {field.type} and is read from the attribute "
                f"{field.attribute!r}: expected {error}, got type {next(iter(attribute))}. Mend the item, or declare "
                "the field's type as it is stored"
            ) from None

    def _is_lossy(self, path: Path) -> bool:
        layouts = [self.layout] if self.layout else self.type.layouts
        variables = [v for layout in layouts for t in layout.templates.values() for v in t.variables if v.path == path]
        return bool(variables) and all(variable.lossy for variable in variables)

    def reference(self, field: Field) -> Entity | Unknown | None:
        """Give the node that a reference names: loaded before, named by the key, or named by the attribute."""
        if field.name in self.nodes:
            return self.nodes[field.name]
        named = {path[1:]: value for path, value in self.paths.items() if path[0] == field.name and len(path) > 1}
        attribute = self.wire.get(field.attribute)
        is_held = attribute is not None and (self.holds is None or field.attribute in self.holds)
        if named and is_held and self.layout is not None and not self._is_in_key(field.name):
            # As of a value, the attribute counts, and what else an index key says of the node only if it is the same.
            own = self._from_attribute(field, attribute or {})
            if own is None or any(named.get(path) != value for path, value in own.named.items()):
                return own
        member = self.layout.ends.get(field.name) if self.layout else None
        for name in (member,) if member else field.refs:
            target = self.model.items[name]
            if target.ref is not None and all(variable.path in named for variable in target.ref.variables):
                return Entity(self.model, target, named=named)
        if attribute is None:
            return None if self.holds is None or field.attribute in self.holds else UNKNOWN
        return self._from_attribute(field, attribute)

    @property
    def key_paths(self) -> Mapping[Path, Any]:
        """Give what the primary key holds, as far as it gives it back whole."""
        if self.layout is None:
            return {}
        found: dict[Path, Any] = {}
        for name in self.model.tables[self.layout.table].key_attributes:
            template = self.layout.templates[name]
            values = self._parsed.get(name) or (template.parse(key_value(self.wire[name])) if name in self.wire else {})
            lossless = {variable.path for variable in template.variables if not variable.lossy}
            found |= {path: value for path, value in (values or {}).items() if path in lossless}
        return found

    def _is_in_key(self, name: str) -> bool:
        """Say whether the primary key holds something of a reference."""
        return any(path[0] == name for values in self._parsed.values() for path in values)

    def _from_attribute(self, field: Field, attribute: Mapping[str, Any]) -> Entity | None:
        if "NULL" in attribute:
            return None
        try:
            text = key_value(attribute)
        except ValueError:
            text = ""
        for name, ref in field.refs.items():
            named = ref.parse(text)
            if named is not None:
                return Entity(self.model, self.model.items[name], named=named)
        raise ItemError(
            f"{self.type.name}.{field.name} names a {field.type.named} by the attribute {field.attribute!r}: expected "
            f"{' or '.join(repr(ref.source) for ref in field.refs.values())}, got {text!r}"
        )

    def end(self, name: str) -> Entity | None:
        """Give the node at one end of an edge, with those of its fields that the edge item holds a copy of."""
        found = self.reference(self.type.fields[name])
        if not isinstance(found, Entity):
            return None
        if self.layout is not None and self.layout.copy == name and not found.wire:
            # What is no longer copied, for it is large or counted, may have been before it was declared so.
            kept = found.type.fields.values()
            copied = {entry.attribute for entry in kept if not (entry.blob or entry.count)} & self.wire.keys()
            # Where both have a field of one attribute, the item holds its own.
            copied -= {entry.attribute for entry in self.type.fields.values()}
            return Entity(self.model, found.type, wire=self.wire, holds=frozenset(copied), named=found.named)
        return found

    @property
    def is_version(self) -> bool:
        """Say whether this is an earlier version of an item, and not the item itself."""
        if self.type.history is None or self.key is None:
            return False
        name = self.model.tables[self.type.history.table].key_attributes[-1]
        sort = self.key[1][-1][1]
        return self.type.layouts[0].templates[name].parse(sort) is None

    @property
    def key(self) -> ItemKey | None:
        """Give the table and primary key of the item, or None when what is known does not make one."""
        if self._key is None:
            self._key = self._key_from_wire() if self.layout else self._key_from_values()
        return self._key

    def _key_from_wire(self) -> ItemKey:
        assert self.layout is not None
        names = self.model.tables[self.layout.table].key_attributes
        return self._table(self.layout), tuple((name, key_value(self.wire[name])) for name in names)

    def _table(self, layout: Layout) -> str:
        """Name the table of the item: for a time series that of its period."""
        period = self.model.tables[layout.table].period
        return layout.table if period is None else period.name(self.at((period.field,)))

    def _key_from_values(self) -> ItemKey | None:
        for layout in self.type.layouts:
            templates = [(name, layout.templates[name]) for name in self.model.tables[layout.table].key_attributes]
            # A copy may hold as attributes what its node's key is made of.
            variables = [variable for _, template in templates for variable in template.variables]
            paths = {variable.path for variable in variables}
            values = {path: self.paths[path] if path in self.paths else self._copied(path) for path in paths}
            if all(value is not None and value is not UNKNOWN for value in values.values()):
                return self._table(layout), _format_key(layout, templates, values)
        return None

    def _copied(self, path: Path) -> Any:
        """Give what a copy holds of its node's key; where copies follow by the stream it may no longer be that."""
        is_behind = bool(self.wire) and self.model.is_followed(self.type)
        return UNKNOWN if is_behind else self.at(path)

    def without_copy(self) -> Entity:
        """Take of a node only what names it, unless it was read from its own item: a copy may be behind."""
        if self.holds is None or not self.wire:
            return self
        return Entity(self.model, self.type, named=self.named)

    def as_complete(self) -> Entity:
        """Take what was read as all there is: what it does not hold is null."""
        return Entity(self.model, self.type, layout=self.layout, wire=self.wire, holds=None, named=self.named)

    def lacks(self, names: Iterable[str]) -> bool:
        """Say whether any of these fields cannot be answered from what is known."""
        if self.type.virtual:
            return self.type.must_be_seen
        if self.holds is None:
            return False
        return self.type.must_be_seen or any(self._lacks(name) for name in names)

    def _lacks(self, name: str) -> bool:
        if name == "id":
            return self.key is None
        if name in HISTORY_FIELDS and self.type.history is not None:
            return self.key is None or self.value(self.type.fields[self.type.version or ""]) is UNKNOWN
        field = self.type.fields[name]
        if field.kind is FieldKind.ATTRIBUTE:
            # A large value is not looked into before it is selected.
            is_held = field.blob is not None and self.holds is not None and field.attribute in self.holds
            return not is_held and self._is_unknown(self.value, field)
        if field.kind is FieldKind.REFERENCE:
            return self._is_unknown(self.reference, field)
        relationship = self.model.relationships[self.type.name, name]
        return any(self.at(path) is UNKNOWN for path in relationship.needs)

    @staticmethod
    def _is_unknown(read: Callable[[Field], Any], field: Field) -> bool:
        """Say whether a field must be looked up: a copy that is damaged tells as little as one that is not there."""
        try:
            return read(field) is UNKNOWN
        except ItemError:
            return True

    def at(self, path: Path) -> Any:
        """Give the value at the end of a path through references and nested objects."""
        if path in self.paths and len(path) > 1 and path[0] not in self.nodes:
            return self.paths[path]
        field = self.type.fields[path[0]]
        if field.kind is FieldKind.REFERENCE:
            node = self.reference(field)
            return node.at(path[1:]) if isinstance(node, Entity) and len(path) > 1 else node
        value = self.value(field)
        for name in path[1:]:
            value = value.get(name) if isinstance(value, dict) else None
        return value


def _format_key(layout: Layout, templates: Sequence[tuple[str, Template]], values: Mapping[Path, Any]) -> KeyAttributes:
    if layout.self_keyed:
        text = templates[0][1].format(values, limit=SORT_KEY_BYTES)
        return tuple((name, text) for name, _ in templates)
    limits = (PARTITION_KEY_BYTES, SORT_KEY_BYTES)
    return tuple(
        (name, template.format(values, limit=limit)) for (name, template), limit in zip(templates, limits, strict=False)
    )


def _parse_keys(layout: Layout, wire: Item, parsed: Mapping[str, Mapping[Path, Any]]) -> dict[Path, Any]:
    """Parse what the key attributes hold; those in `parsed` have been."""
    lossless: dict[Path, Any] = {}
    lossy: dict[Path, Any] = {}
    for name, template in layout.templates.items():
        values = parsed.get(name)
        if values is None and name in wire:
            values = template.parse(key_value(wire[name]))
        if values is not None:
            for variable in template.variables:
                (lossy if variable.lossy else lossless).setdefault(variable.path, values[variable.path])
    return lossy | lossless


def read_entity(model: Model, layout: Layout, wire: Item, holds: frozenset[str] | None = None) -> Entity | None:
    """Take an item as one of this layout, or None when it is not: its key has another shape, or names another type."""
    table = model.tables[layout.table]
    type_ = model.items[layout.type_name]
    tag = wire.get(table.type_attribute) if table.type_attribute else None
    if tag is not None and tag.get("S") != type_.type_name:
        return None
    names = table.key_attributes
    parsed = _parse_shape(layout, wire, names)
    if parsed is None:
        return None
    rivals = model.rivals_of(layout) if tag is None else ()
    # Between a node and an edge of its own kind, the same text in both keys means the node.
    if any(_parse_shape(rival, wire, names) and layout.self_keyed <= rival.self_keyed for rival in rivals):
        return None
    return Entity(model, type_, layout=layout, wire=wire, holds=holds, parsed=parsed)


def every_layout(type_: ItemType) -> tuple[Layout, ...]:
    """List the layouts of a type, with that of its earlier versions."""
    return type_.layouts if type_.history is None else (*type_.layouts, type_.history)


def _parse_shape(layout: Layout, wire: Item, names: tuple[str, ...]) -> dict[str, Mapping[Path, Any]] | None:
    """Parse the primary key of an item as a layout's, by attribute, or None when it has another shape."""
    parsed: dict[str, Mapping[Path, Any]] = {}
    if layout.self_keyed and wire.get(names[0]) != wire.get(names[1]):
        return None
    for name in names:
        attribute = wire.get(name)
        if attribute is None or "B" in attribute:
            return None
        values = next(iter(parsed.values())) if parsed and layout.self_keyed else None
        if values is None:
            values = layout.templates[name].parse(key_value(attribute))
        if values is None:
            return None
        parsed[name] = values
    return parsed


def fits_any(model: Model, table: str, wire: Item) -> bool:
    """Say whether an item is of any type of the model."""
    items = model.items.values()
    layouts = (layout for item in items for layout in every_layout(item) if layout.table == table)
    return any(read_entity(model, layout, wire) is not None for layout in layouts)
