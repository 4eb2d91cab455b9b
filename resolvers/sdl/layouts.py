"""The layouts of an item type: which template fills each key attribute, of the table and of its indexes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from graph.keys import (
    PARTITION_KEY_BYTES,
    SORT_KEY_BYTES,
    Hole,
    Literal,
    Template,
    TemplateSyntaxError,
    Variable,
    read_template,
)
from graph.model import Field, FieldKind, Index, Layout, Table
from resolvers.sdl.declarations import Declarations, DeclaredType, Directive
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.tables import Tables
from resolvers.sdl.templates import Templates, Written, alias, below

NOT_IN_KEYS = ("Boolean", "Base64")
"""Scalars whose attributes are of a type that DynamoDB has no keys of, or that we read no keys of."""


class Layouts:
    """Makes the layouts of item types."""

    def __init__(self, declared: Declarations, templates: Templates, tables: Tables, report: Report) -> None:
        self._declared = declared
        self._templates = templates
        self._tables = tables
        self._report = report

    def of(
        self, type_: DeclaredType, use: Directive, mirror: int, table: Table, fields: Mapping[str, Field]
    ) -> Iterator[Layout]:
        """Make the layouts of one use of @node or @edge: one, or one for each member of a union in its keys."""
        keys = self._keys(type_, use, table)
        if keys is None:
            return
        for ends in self._variants(fields, keys, table):
            templates = self._fill(type_, keys, table, fields, ends)
            if templates is not None:
                marks = [f"{name}: {member}" for name, member in ends.items()]
                marks += [f"mirror {mirror}"] if mirror else []
                name = f"{type_.name}({', '.join(marks)})" if marks else type_.name
                primary = [templates[attribute].parts for attribute in table.key_attributes]
                self_keyed = len(primary) == 2 and primary[0] == primary[1]
                yield Layout(name, type_.name, table.name, templates, ends, mirror, use.get("copy"), self_keyed)

    # --- the templates as written ---

    def _keys(self, type_: DeclaredType, use: Directive, table: Table) -> dict[str, Written] | None:
        """Collect the templates that the type's directives give, by the attribute that each fills."""
        given = {name for name in ("key", "partition", "sort") if use.get(name) is not None}
        if problem := _shape_problem(given, table):
            # Of a table with a mistake nobody knows whether it has a sort key.
            if self._tables.are_sure and not self._report.blames(use.node):
                self._report.add(use.node, f"`{type_.name}` {problem}")
            return None
        keys: dict[str, Written] = {}
        for argument, attribute in zip(("partition", "sort"), table.key_attributes, strict=False):
            name = "key" if "key" in given else argument
            keys[attribute] = Written(use.get(name), type_.name, use.at(name))
        for indexed in type_.uses("indexed"):
            self._add_indexed(type_, indexed, table, keys)
        return keys

    def _add_indexed(self, type_: DeclaredType, indexed: Directive, table: Table, keys: dict[str, Written]) -> None:
        name = indexed.get("by")
        index = next((index for index in table.indexes if index.name == name), None)
        if index is None:
            names = [index.name or "" for index in table.indexes]
            if self._tables.are_sure:
                self._report.add(
                    indexed.at("by"),
                    f"`{type_.name}`: no @index of its table is named `{name}`: expected {listed(names, 'or')}. "
                    f"Declare it with @index, or mend the name{near(name, names)}",
                )
            return
        given = {argument: indexed.get(argument) for argument in ("partition", "sort")}
        if not any(source is not None for source in given.values()):
            self._report.add(
                indexed.node,
                f"`{type_.name}`: this @indexed fills nothing of the index `{name}`: expected `partition`, `sort` or "
                "both. Write the template of the attribute that is missing, or remove it",
            )
        for argument, attributes in (("partition", index.partition_keys), ("sort", index.sort_keys)):
            sources = given[argument]
            if sources is not None and self._fits(type_, indexed, argument, index, attributes):
                for place, (attribute, source) in enumerate(zip(attributes, sources, strict=True)):
                    at = indexed.at(argument, place)
                    written = Written(source, type_.name, at, sparse=True, sharded=argument == "partition")
                    self._add(type_, attribute, written, keys)

    def _fits(
        self, type_: DeclaredType, indexed: Directive, argument: str, index: Index, attributes: tuple[str, ...]
    ) -> bool:
        """Say whether there is a template for each attribute of an index; report it where not."""
        count = len(indexed.get(argument))
        if not attributes:
            self._report.add(
                indexed.at(argument),
                f"`{type_.name}`: the index `{index.name}` has no sort key: expected no `sort`. Remove it, or add "
                "sortKey to the @index",
            )
        elif count != len(attributes) and self._tables.are_sure:
            self._report.add(
                indexed.at(argument),
                f"`{type_.name}`: `{argument}` has {_templates(count)}, and the index `{index.name}` has "
                f"{listed(attributes)} there: expected {_templates(len(attributes))}, one for each attribute in this "
                f"order. Write {argument}: {_slots(len(attributes))}, and a field alone, like {{field}}, where the "
                "attribute is that field's own",
            )
        return count == len(attributes)

    def _add(self, type_: DeclaredType, attribute: str, written: Written, keys: dict[str, Written]) -> None:
        if attribute in keys and keys[attribute].source != written.source:
            self._report.add(
                written.at,
                f"`{type_.name}`: the attribute `{attribute}` is filled twice, by {keys[attribute].source!r} already "
                f"and by {written.source!r} here: expected one value for one attribute. Use the same template, or an "
                "index with another attribute",
            )
        else:
            keys.setdefault(attribute, written)

    def _variants(self, fields: Mapping[str, Field], keys: Mapping[str, Written], table: Table) -> list[dict[str, str]]:
        """List the ways to fill in the references to several types that the keys are made of."""
        mentioned = {name for written in keys.values() for name in _mentioned(written.source)}
        attributes = {name for index in table.indexes for name in index.key_attributes}
        several = {
            name: self._declared.possible(field.type.named)
            for name, field in fields.items()
            if field.kind is FieldKind.REFERENCE and (name in mentioned or field.attribute in attributes - keys.keys())
        }
        several = {name: members for name, members in several.items() if len(members) > 1}
        return [dict(zip(several, choice, strict=True)) for choice in product(*several.values())]

    # --- the templates resolved ---

    def _fill(
        self,
        type_: DeclaredType,
        keys: Mapping[str, Written],
        table: Table,
        fields: Mapping[str, Field],
        ends: Mapping[str, str],
    ) -> dict[str, Template] | None:
        """Resolve the template of every key attribute: as written, else as a field or the type's name gives it."""
        templates: dict[str, Template] = {}
        is_whole = True
        for attribute, written in keys.items():
            template = self._templates.resolve(replace(written, ends=ends))
            if template is None:
                is_whole = False
                continue
            self._check_size(template, written, attribute, table)
            templates[attribute] = alias(template, type_) if type_.is_edge else template
        for index in table.indexes:
            for attribute in index.key_attributes:
                if attribute in keys or attribute in templates:
                    continue
                found = self._implied(type_, attribute, table, fields, ends)
                if found is not None:
                    templates[attribute] = found
        return templates if is_whole else None

    def _check_size(self, template: Template, written: Written, attribute: str, table: Table) -> None:
        size_bytes = sum(len(part.text.encode()) for part in template.parts if isinstance(part, Literal))
        sorts = {name for way in table.ways for name in way.sort_keys}
        limit = SORT_KEY_BYTES if attribute in sorts else PARTITION_KEY_BYTES
        if size_bytes > limit:
            self._report.add(
                written.at,
                f"the key attribute `{attribute}` of `{written.owner}` has {size_bytes} bytes of literals alone: "
                f"DynamoDB expects {limit} at most, values included. Shorten the template",
            )

    def _implied(
        self,
        type_: DeclaredType,
        attribute: str,
        table: Table,
        fields: Mapping[str, Field],
        ends: Mapping[str, str],
    ) -> Template | None:
        """Make the template of an index key that no directive fills: it holds the type's name, or a field's value."""
        if attribute == table.type_attribute:
            type_name = type_.keys[0].get("typeName") or type_.name
            return Template(type_name, (Literal(type_name),))
        for field in fields.values():
            if field.attribute == attribute and field.kind is FieldKind.ATTRIBUTE:
                return self._of_value(type_, field)
            if field.attribute == attribute and field.kind is FieldKind.REFERENCE and field.refs:
                ref = field.refs.get(ends.get(field.name, next(iter(field.refs))))
                return None if ref is None else Template(ref.source, below((field.name,), ref.parts))
        return None

    def _of_value(self, type_: DeclaredType, field: Field) -> Template | None:
        if field.type.of is not None or field.scalar is None or field.scalar.name in NOT_IN_KEYS:
            if not self._report.blames(type_.fields[field.name].node):
                self._report.add(
                    type_.fields[field.name].node,
                    f"`{type_.name}.{field.name}` is a {field.type}, and its attribute `{field.attribute}` is the key "
                    "of an index: DynamoDB expects text or a number there. Give the field another attribute with "
                    '@attribute(name: "…"), and fill the key by @indexed',
                )
            return None
        if not field.scalar.in_key:
            return None
        return Template(f"{{{field.name}}}", (Variable((field.name,), field.scalar),))


def _slots(count: int) -> str:
    slots = ", ".join(['"…"'] * count)
    return slots if count == 1 else f"[{slots}]"


def _templates(count: int) -> str:
    return "1 template" if count == 1 else f"{count} templates"


def is_whole(type_: DeclaredType, layouts: tuple[Layout, ...]) -> bool:
    """Say whether every key of a type made a layout; what kept one from it is reported already."""
    return {layout.mirror for layout in layouts} == set(range(len(type_.keys)))


def _shape_problem(given: set[str], table: Table) -> str:
    """Say what is wrong with the arguments that make a primary key, or nothing."""
    if not given & {"key", "partition"}:
        return 'has no key: expected `key: "…"`, or `partition: "…"` and `sort: "…"`. Write the templates of its items'
    if "key" in given and len(given) > 1:
        return "has `key` beside `partition` or `sort`: expected `key` alone, which stands for both. Remove one of them"
    if not table.primary.sort_keys and "sort" in given:
        return f"has a sort key, and the table `{table.name}` none: expected `partition` alone. Remove `sort`"
    if table.primary.sort_keys and "sort" not in given and "key" not in given:
        return f"has no sort key, and the table `{table.name}` has one: expected `sort` as well. Write its template"
    return ""


def _mentioned(source: str) -> Iterator[str]:
    """List the fields that a template's holes begin with; of a template that cannot be read, none."""
    try:
        parts = read_template(source)
    except TemplateSyntaxError:
        return
    yield from (part.names[0] for part in parts if isinstance(part, Hole))


def holds(template: Template, field: Field, type_attribute: str | None) -> bool:
    """Say whether a key attribute holds what a field of the same attribute would keep there."""
    if field.kind is FieldKind.REFERENCE:
        return any(template.parts == below((field.name,), ref.parts) for ref in field.refs.values())
    is_type_name = field.attribute == type_attribute and not template.variables
    return is_type_name or (field.scalar is not None and template.parts == (Variable((field.name,), field.scalar),))
