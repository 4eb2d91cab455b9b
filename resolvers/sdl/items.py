"""From declared types to tables, item types and their layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product

from graphql import Node

from graph import codec
from graph.codec import Read
from graph.keys import Template
from graph.model import Field, FieldKind, ItemType, Layout, ObjectType, Table, TypeRef
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType, Directive, deprecation
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.templates import Templates, alias, below


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


ATTRIBUTE_CASES: Mapping[str, Callable[[str], str]] = {"AS_WRITTEN": str, "PASCAL": _pascal, "SNAKE": _snake}


class Items:
    """Makes item types and the objects nested in them."""

    def __init__(
        self,
        declared: Declarations,
        templates: Templates,
        tables_: dict[str, Table],
        cases: dict[str, str],
        report: Report,
    ) -> None:
        self._declared = declared
        self._templates = templates
        self._tables = tables_
        self._cases = cases
        self._report = report
        self.objects: dict[str, ObjectType] = {}

    def make(self, type_: DeclaredType) -> ItemType | None:
        """Make an item type with its layouts, or None when something of it cannot be made."""
        uses = type_.uses("node", "edge")
        table = self._table_of(uses[0])
        if table is None:
            return None
        fields = self._fields(type_, self._cases_of(uses[0]))
        node_uses = type_.uses("node")
        if node_uses and type_.is_edge:
            self._report.add(uses[1].node, f"`{type_.name}` is declared @node and @edge: expected one of them")
        ref = self._templates.ref(type_.name, uses[0].node) if node_uses else None
        layouts: list[Layout] = []
        for mirror, use in enumerate(uses):
            layouts += self._layouts(type_, use, mirror, table, fields)
        self._check_key_attributes(type_, layouts, fields)
        return ItemType(
            type_.name,
            bool(node_uses),
            fields,
            tuple(layouts),
            uses[0].get("typeName") or type_.name,
            ref,
            bool(uses[0].get("virtual")),
            type_.interfaces,
            type_.description,
            self._expiry(type_, fields),
        )

    def _expiry(self, type_: DeclaredType, fields: dict[str, Field]) -> str | None:
        """Give the attribute of the field that is marked @ttl."""
        marked = [field for field in type_.fields.values() if "ttl" in field.directives]
        for field in marked:
            if field.type.of is not None or field.type.name not in ("Int", "BigInt", "DateTime"):
                self._report.add(
                    field.node,
                    f"`{type_.name}.{field.name}` is {field.type}, and DynamoDB expires items by a number of seconds "
                    "since 1970: expected DateTime, Int or BigInt for @ttl",
                )
        if len(marked) > 1:
            self._report.add(
                marked[1].node, f"`{type_.name}` has two @ttl fields, and a table has one TTL attribute: keep one"
            )
        return fields[marked[0].name].attribute if marked else None

    def _table_of(self, use: Directive) -> Table | None:
        if not self._tables:
            return None
        name = use.get("table") or next(iter(self._tables))
        if name not in self._tables:
            self._report.add(
                use.at("table"),
                f"no @table is named `{name}`: expected {listed(self._tables)}.{near(name, self._tables)}",
            )
        return self._tables.get(name)

    def _cases_of(self, use: Directive) -> Callable[[str], str]:
        name = use.get("table") or next(iter(self._tables))
        return ATTRIBUTE_CASES[self._cases.get(name, "AS_WRITTEN")]

    # --- fields ---

    def _fields(self, type_: DeclaredType, case: Callable[[str], str]) -> dict[str, Field]:
        return {field.name: self._field(type_, field, case) for field in type_.fields.values()}

    def _field(self, type_: DeclaredType, field: DeclaredField, case: Callable[[str], str]) -> Field:
        use = field.directives.get("attribute")
        attribute = (use.get("name") if use else None) or case(field.name)
        members = self._declared.possible(field.type.named)
        kind = FieldKind.ATTRIBUTE
        refs: dict[str, Template] = {}
        if "relationship" in field.directives:
            kind = FieldKind.RELATIONSHIP
        elif members:
            kind = FieldKind.REFERENCE
            refs = self._refs(type_, field, members, use)
        elif field.type.named in self._declared.unions:
            self._report.add(
                field.node, f"`{type_.name}.{field.name}` is a union of types without items, which cannot be stored"
            )
        self._check_field(type_, field)
        return Field(
            field.name,
            field.type,
            kind,
            attribute,
            self._templates.scalar(field.type.named),
            self.reader(field.type, case) if kind is FieldKind.ATTRIBUTE else lambda value: value,
            refs,
            field.description,
            deprecation(field.node),
        )

    def _refs(
        self, type_: DeclaredType, field: DeclaredField, members: tuple[str, ...], use: Directive | None
    ) -> dict[str, Template]:
        if field.type.of is not None:
            self._report.add(
                field.node,
                f"`{type_.name}.{field.name}` is a list of {field.type.named}, which are items of their own: add "
                "@relationship, "
                "so that it is read by a Query",
            )
            return {}
        own = use.get("ref") if use else None
        refs: dict[str, Template] = {}
        for member in members:
            at = use.at("ref") if use and own else field.node
            ref = self._templates.resolve(own, member, at) if own else self._templates.ref(member, at)
            if ref is not None:
                refs[member] = ref
        return refs

    def _check_field(self, type_: DeclaredType, field: DeclaredField) -> None:
        where = f"`{type_.name}.{field.name}`"
        if field.name == "id" and type_.is_node:
            self._report.add(
                field.node,
                f"{where}: `id` is the global id that every node has already: rename the field, and if its attribute "
                "is called "
                f'`id` add @attribute(name: "id"), like `number: {field.type} @attribute(name: "id")`',
            )
        if field.node.arguments:
            self._report.add(
                field.node.arguments[0], f"{where} takes arguments, which only fields of Query do: remove them"
            )
        if type_.is_edge and field.name in ("cursor", "node"):
            self._report.add(field.node, f"{where}: Relay's edges have a field `{field.name}` of their own: rename it")
        for name in ("find",):
            if name in field.directives:
                self._report.add(field.directives[name].node, f"{where}: @find belongs on the fields of Query")

    def reader(self, type_: TypeRef, case: Callable[[str], str]) -> Read:
        """Make the function that reads an attribute of this type."""
        if type_.of is not None:
            return codec.list_of(codec.optional(self.reader(type_.of, case)))
        scalar = self._templates.scalar(type_.name)
        if scalar is not None:
            return scalar.read
        return codec.map_of(lambda: self._map_fields(type_.name, case))

    def _map_fields(self, name: str, case: Callable[[str], str]) -> dict[str, tuple[str, Read]]:
        return {
            field.name: (field.attribute, codec.optional(field.read))
            for field in self.nested(name, case).fields.values()
        }

    def nested_with(self, name: str, case: str) -> ObjectType:
        """Make a nested type by the name of its attribute case."""
        return self.nested(name, ATTRIBUTE_CASES[case])

    def nested(self, name: str, case: Callable[[str], str]) -> ObjectType:
        """Make a type that lies inside items, once."""
        if name not in self.objects:
            declared = self._declared.objects.get(name) or self._declared.interfaces[name]
            self.objects[name] = ObjectType(
                name,
                self._fields(declared, case),
                declared.interfaces,
                name in self._declared.interfaces,
                declared.description,
            )
        return self.objects[name]

    # --- layouts ---

    def _layouts(
        self, type_: DeclaredType, use: Directive, mirror: int, table: Table, fields: dict[str, Field]
    ) -> Iterator[Layout]:
        sources = self._key_sources(type_, use, table)
        if sources is None:
            return
        copy = use.get("copy")
        if copy is not None and (copy not in fields or fields[copy].kind is not FieldKind.REFERENCE):
            known = [name for name, field in fields.items() if field.kind is FieldKind.REFERENCE]
            self._report.add(
                use.at("copy"),
                f"`copy` names the end whose fields the item stores: expected {listed(known)}, got "
                f"`{copy}`.{near(copy, known)}",
            )
        for ends in self._variants(type_, fields, sources):
            templates = self._templates_of(type_, sources, table, fields, ends)
            if templates is not None:
                marks = [f"{name}: {member}" for name, member in ends.items()] + (
                    [f"mirror {mirror}"] if mirror else []
                )
                name = type_.name + (f"({', '.join(marks)})" if marks else "")
                primary = [templates[attribute] for attribute in table.key_attributes]
                self_keyed = len(primary) == 2 and primary[0].parts == primary[1].parts
                yield Layout(name, type_.name, table.name, templates, ends, mirror, copy, self_keyed)

    def _key_sources(
        self, type_: DeclaredType, use: Directive, table: Table
    ) -> dict[str, tuple[str, Node, bool]] | None:
        """Collect the sources of the key attributes: (template, where it stands, whether the index is sparse)."""
        key, partition, sort = use.get("key"), use.get("partition"), use.get("sort")
        primary = table.primary
        if key is not None and (partition is not None or sort is not None):
            self._report.add(
                use.at("key"), f"`{type_.name}`: `key` stands for partition and sort key at once: expected it alone"
            )
            return None
        if key is None and partition is None:
            self._report.add(
                use.node, f'`{type_.name}` has no key: expected `key: "…"`, or `partition: "…"` and `sort: "…"`'
            )
            return None
        if key is None and primary.sort_key is not None and sort is None:
            self._report.add(
                use.node, f'`{type_.name}`: the table `{table.name}` has a sort key: expected `sort: "…"` as well'
            )
            return None
        if sort is not None and primary.sort_key is None:
            self._report.add(use.at("sort"), f"`{type_.name}`: the table `{table.name}` has no sort key: remove `sort`")
            return None
        sources = {primary.partition_key: (key or partition, use.at("key" if key else "partition"), False)}
        if primary.sort_key is not None:
            sources[primary.sort_key] = (key or sort, use.at("key" if key else "sort"), False)
        for indexed in type_.uses("indexed"):
            self._add_indexed(type_, indexed, table, sources)
        return sources

    def _add_indexed(
        self, type_: DeclaredType, indexed: Directive, table: Table, sources: dict[str, tuple[str, Node, bool]]
    ) -> None:
        name = indexed.get("by")
        index = next((index for index in table.indexes if index.name == name), None)
        if index is None:
            names = [index.name or "" for index in table.indexes]
            self._report.add(
                indexed.at("by"), f"no @index is named `{name}`: expected {listed(names)}.{near(name, names)}"
            )
            return
        for argument, attribute in (("partition", index.partition_key), ("sort", index.sort_key)):
            source = indexed.get(argument)
            if source is None:
                continue
            if attribute is None:
                self._report.add(indexed.at(argument), f"the index `{name}` has no sort key: remove `sort`")
            elif attribute in sources and sources[attribute][0] != source:
                self._report.add(
                    indexed.at(argument),
                    f"the attribute `{attribute}` of `{type_.name}` is filled twice: by {sources[attribute][0]!r} "
                    "already, "
                    f"and by {source!r} here. One attribute holds one value: use the same template, or another index",
                )
            else:
                sources[attribute] = (source, indexed.at(argument), True)

    def _variants(
        self, type_: DeclaredType, fields: dict[str, Field], sources: dict[str, tuple[str, Node, bool]]
    ) -> list[dict[str, str]]:
        """List the ways to fill in the references to unions that the keys mention."""
        several = {
            name: members
            for name, field in fields.items()
            if field.kind is FieldKind.REFERENCE
            and len(members := self._declared.possible(field.type.named)) > 1
            and any(f"{{{name}" in source for source, _, _ in sources.values())
        }
        return [dict(zip(several, choice, strict=True)) for choice in product(*several.values())]

    def _templates_of(
        self,
        type_: DeclaredType,
        sources: dict[str, tuple[str, Node, bool]],
        table: Table,
        fields: dict[str, Field],
        ends: dict[str, str],
    ) -> dict[str, Template] | None:
        templates: dict[str, Template] = {}
        for attribute, (source, at, sparse) in sources.items():
            template = self._templates.resolve(source, type_.name, at, ends=ends, sparse=sparse)
            if template is None:
                return None
            templates[attribute] = alias(template, type_) if type_.is_edge else template
        for index in table.indexes:
            for attribute in filter(None, (index.partition_key, index.sort_key)):
                if attribute not in templates and (found := self._from_field(type_, fields, attribute)) is not None:
                    templates[attribute] = found
        return templates

    def _from_field(self, type_: DeclaredType, fields: dict[str, Field], attribute: str) -> Template | None:
        """Make the template of an index key that is an ordinary attribute of a field."""
        for field in fields.values():
            if field.attribute != attribute or field.kind is FieldKind.RELATIONSHIP or field.type.of is not None:
                continue
            at = type_.fields[field.name].node
            if field.kind is FieldKind.ATTRIBUTE and field.scalar is not None and field.scalar.in_key:
                return self._templates.resolve(f"{{{field.name}}}", type_.name, at, sparse=True)
            if field.kind is FieldKind.REFERENCE and len(field.refs) == 1:
                (ref,) = field.refs.values()
                return Template(ref.source, below((field.name,), ref.parts))
        return None

    def _check_key_attributes(self, type_: DeclaredType, layouts: list[Layout], fields: dict[str, Field]) -> None:
        for name, field in fields.items():
            for layout in layouts:
                template = layout.templates.get(field.attribute)
                if template is None or field.kind is FieldKind.RELATIONSHIP:
                    continue
                variables = template.variables
                if (
                    len(template.parts) == len(variables) == 1
                    and variables[0].path == (name,)
                    and not variables[0].format
                ):
                    continue
                if field.kind is FieldKind.REFERENCE and all(variable.path[0] == name for variable in variables):
                    continue
                self._report.add(
                    type_.fields[name].node,
                    f"`{type_.name}.{name}` is kept in the attribute `{field.attribute}`, which is a key and holds "
                    f"{template.source!r}: rename the field, or give it another attribute with @attribute(name: …)",
                )
                break
