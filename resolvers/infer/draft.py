"""A schema in the making: its tables, types and fields, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from graph.infer.groups import Group
from graph.infer.sample import Sample
from graph.model import Index, Projection
from resolvers.infer.names import unique
from resolvers.sdl.fields import ATTRIBUTE_CASES


class Named(Protocol):
    """A node that one field names."""

    field: DraftField | None


@dataclass(frozen=True)
class Ref:
    """How an attribute names a node: a literal, and the node's field behind it."""

    literal: str
    node: Named

    def __str__(self) -> str:
        return f"{self.literal}{{{self.node.field.name if self.node.field else 'number'}}}"


@dataclass(eq=False)
class DraftField:
    """A field: of an attribute, of a key, of a reference, or a relationship."""

    name: str
    type: str
    attribute: str | None = None
    """None: what a key holds alone, and relationships."""
    ref: Ref | None = None
    """For a reference: how its attribute names the node, where that is not how others do."""
    target: DraftType | None = None
    """The node that it names, or leads to; its name stands for "{}" in the type."""
    plain: str = "String"
    """What a reference is otherwise: the scalar of its attribute."""
    relationship: str | None = None
    """The arguments of @relationship."""
    through: DraftType | None = None
    is_set: bool = False
    is_ttl: bool = False
    notes: list[str] = field(default_factory=list)
    is_dropped: bool = False

    def line(self, case: str) -> str:
        """Write it."""
        type_ = self.type.replace("{}", self.target.name) if self.target else self.type
        words = [f"{self.name}: {type_}"]
        arguments = []
        if self.attribute is not None and self.attribute != ATTRIBUTE_CASES[case](self.name):
            arguments.append(f"name: {quoted(self.attribute)}")
        if self.ref is not None and self.target is not None:
            arguments.append(f"ref: {quoted(str(self.ref))}")
        if self.is_set:
            arguments.append("set: true")
        if arguments:
            words.append(f"@attribute({', '.join(arguments)})")
        if self.is_ttl:
            words.append("@ttl")
        if self.relationship is not None:
            told = self.relationship.replace("{}", self.through.name if self.through else "")
            words.append(f"@relationship({told})" if told else "@relationship")
        return " ".join(words)


@dataclass(frozen=True)
class Hole:
    """A variable of a template."""

    field: DraftField
    below: str = ""
    format: str = ""

    def __str__(self) -> str:
        below = f".{self.below}" if self.below else ""
        return f"{{{self.field.name}{below}{':' if self.format else ''}{self.format}}}"


Written = tuple[str | Hole, ...]


def template(parts: Written) -> str:
    """Write a template."""
    return "".join(map(str, parts))


@dataclass(eq=False)
class DraftKey:
    """A use of @node or @edge."""

    partition: Written
    sort: Written | None
    is_edge: bool = False
    is_self_keyed: bool = False
    copy: DraftField | None = None

    def line(self, owner: DraftType, *, is_first: bool) -> str:
        """Write it."""
        arguments = [f"table: {quoted(owner.table)}"] if owner.table_is_told else []
        if self.is_self_keyed:
            arguments.append(f"key: {quoted(template(self.partition))}")
        else:
            arguments.append(f"partition: {quoted(template(self.partition))}")
            arguments += [f"sort: {quoted(template(self.sort))}"] if self.sort else []
        if is_first and owner.ref is not None and not self.is_edge:
            arguments.append(f"ref: {quoted(template(owner.ref))}")
        if self.copy is not None:
            arguments.append(f"copy: {quoted(self.copy.name)}")
        if is_first and owner.tag is not None and owner.tag != owner.name:
            arguments.append(f"typeName: {quoted(owner.tag)}")
        if owner.is_virtual:
            arguments.append("virtual: true")
        return f"@{'edge' if self.is_edge else 'node'}({', '.join(arguments)})"


@dataclass(eq=False)
class DraftIndexed:
    """A use of @indexed."""

    index: Index
    partition: tuple[Written, ...] | None
    sort: tuple[Written, ...] | None
    fields: list[DraftField]
    """The fields of the attributes that it stands for."""

    def line(self) -> str:
        """Write it."""
        words = [f"by: {quoted(self.index.name or '')}"]
        for name, given in (("partition", self.partition), ("sort", self.sort)):
            if given is not None:
                texts = [quoted(template(one)) for one in given]
                words.append(f"{name}: {texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}")
        return f"@indexed({', '.join(words)})"


@dataclass(eq=False)
class DraftType:
    """A type: of items, or of maps inside them."""

    name: str
    table: str = ""
    table_is_told: bool = False
    keys: list[DraftKey] = field(default_factory=list)
    fields: list[DraftField] = field(default_factory=list)
    indexed: list[DraftIndexed] = field(default_factory=list)
    ref: Written | None = None
    tag: str | None = None
    is_virtual: bool = False
    enum: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    told: str = ""
    case: str = "AS_WRITTEN"
    groups: list[Group] = field(default_factory=list)

    def add(self, made: DraftField) -> DraftField:
        """Add a field under a name that is free."""
        made.name = unique(made.name, (one.name for one in self.fields))
        self.fields.append(made)
        return made

    def of(self, attribute: str) -> DraftField | None:
        """Give the field of an attribute."""
        return next((one for one in self.fields if one.attribute == attribute and one.relationship is None), None)


@dataclass(eq=False)
class DraftFind:
    """A field of Query."""

    line: str
    target: DraftType
    is_dropped: bool = False


@dataclass(eq=False)
class DraftTable:
    """A table with its indexes."""

    sample: Sample
    case: str
    type_attribute: str | None
    indexes: list[Index] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


Line = tuple[str, object]
"""A line of the file, and what it is about: what is changed where the line has a mistake."""


@dataclass(eq=False)
class Draft:
    """A whole file."""

    tables: list[DraftTable]
    types: list[DraftType]
    finds: list[DraftFind] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    """What stands above it all."""

    def lines(self) -> Iterator[Line]:
        """Write the file."""
        for told in self.told:
            yield f"# {told}", None
        for table in self.tables:
            for note in table.notes:
                yield f"# unsure: {note}", None
        yield "extend schema", None
        for number, table in enumerate(self.tables):
            yield from _table(table, is_first=number == 0)
        for type_ in self.types:
            yield "", None
            yield from _type(type_)
        finds = [find for find in self.finds if not find.is_dropped]
        if finds:
            yield "", None
            yield "type Query {", None
            for find in finds:
                yield f"  {find.line.replace('{}', find.target.name)}", find
            yield "}", None

    def text(self) -> str:
        """Write the file as text."""
        return "\n".join(line for line, _ in self.lines()) + "\n"


def _table(table: DraftTable, *, is_first: bool) -> Iterator[Line]:
    keys = table.sample.keys
    arguments = [f"name: {quoted(table.sample.name)}", f"partitionKey: {quoted(keys[0])}"]
    arguments += [f"sortKey: {quoted(keys[1])}"] if keys[1:] else []
    arguments += [f"type: {quoted(table.type_attribute)}"] if table.type_attribute else []
    arguments += [f"attributeCase: {table.case}"] if table.case != "AS_WRITTEN" else []
    yield f"  @table({', '.join(arguments)})", table
    for index in table.indexes:
        words = [f"name: {quoted(index.name or '')}"]
        words += [] if is_first else [f"table: {quoted(table.sample.name)}"]
        words.append(f"partitionKey: {_names(index.partition_keys)}")
        words += [f"sortKey: {_names(index.sort_keys)}"] if index.sort_keys else []
        if index.projection is not Projection.ALL:
            shown = ["KEYS_ONLY"] if index.projection is Projection.KEYS_ONLY else sorted(index.projection)
            words.append(f"projection: [{', '.join(map(quoted, shown))}]")
        words += ["local: true"] if index.local else []
        yield f"  @index({', '.join(words)})", index


def _names(names: tuple[str, ...]) -> str:
    return quoted(names[0]) if len(names) == 1 else f"[{', '.join(map(quoted, names))}]"


def _type(type_: DraftType) -> Iterator[Line]:
    if type_.told:
        yield f"# {type_.told}", None
    for note in type_.notes:
        yield f"# unsure: {note}", None
    if type_.enum:
        yield f"enum {type_.name} {{ {' '.join(type_.enum)} }}", type_
        return
    uses: list[Line] = [(key.line(type_, is_first=number == 0), key) for number, key in enumerate(type_.keys)]
    uses += [(indexed.line(), indexed) for indexed in type_.indexed]
    if len(uses) == 1 and len(uses[0][0]) < 90:
        yield f"type {type_.name}", type_
        yield f"  {uses[0][0]} {{", uses[0][1]
    elif uses:
        yield f"type {type_.name}", type_
        for number, (text, about) in enumerate(uses):
            yield f"  {text}{' {' if number + 1 == len(uses) else ''}", about
    else:
        yield f"type {type_.name} {{", type_
    for one in type_.fields:
        if not one.is_dropped:
            for note in one.notes:
                yield f"  # unsure: {note}", None
            yield f"  {one.line(type_.case)}", one
    yield "}", None


def quoted(text: str) -> str:
    """Write a text as GraphQL does."""
    return json.dumps(text, ensure_ascii=False)
