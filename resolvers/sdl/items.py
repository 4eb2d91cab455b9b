"""From declared types to item types: their table, their fields, and the layouts of their items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graph.model import Field, FieldKind, ItemType, Layout, Table
from graph.scalars import ignoring_case
from resolvers.sdl.declarations import Declarations, DeclaredType, Directive
from resolvers.sdl.fields import Fields
from resolvers.sdl.history import history_of
from resolvers.sdl.layouts import Layouts, holds
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.tables import Tables
from resolvers.sdl.templates import Templates


class Items:
    """Makes item types; of one with a mistake as much as can be made, so that what mentions it can be checked too."""

    def __init__(
        self, declared: Declarations, templates: Templates, fields: Fields, tables: Tables, report: Report
    ) -> None:
        self._declared = declared
        self._templates = templates
        self._fields = fields
        self._tables = tables
        self._layouts = Layouts(declared, templates, tables, report)
        self._report = report

    def make(self, type_: DeclaredType) -> ItemType:
        """Make an item type with its layouts."""
        use = type_.keys[0]
        fields = self._fields.of(type_, self._tables.case(use.get("table")))
        layouts: list[Layout] = []
        self._check_uses(type_, fields)
        if (table := self._table(type_, use)) is not None:
            for mirror, key in enumerate(type_.keys):
                layouts += self._layouts.of(type_, key, mirror, table, fields)
            self._check_key_attributes(type_, layouts, table, fields)
            fields = _ignoring_case(fields, layouts)
        type_name = use.get("typeName")
        version = next((field.name for field in type_.fields.values() if "version" in field.directives), None)
        return ItemType(
            type_.name,
            type_.is_node,
            fields,
            tuple(layouts),
            type_.name if type_name is None else type_name,
            self._templates.ref(type_.name, use.node) if type_.is_node else None,
            bool(use.get("virtual")),
            type_.interfaces,
            type_.description,
            self._expiry(type_, fields),
            version,
            history_of(type_, layouts, table, fields, version, self._report) if table is not None else None,
        )

    def _expiry(self, type_: DeclaredType, fields: Mapping[str, Field]) -> str | None:
        """Give the attribute of the field that is marked @ttl."""
        marked = [field for field in type_.fields.values() if "ttl" in field.directives]
        for field in marked:
            if field.type.of is not None or field.type.name not in ("Int", "BigInt", "DateTime"):
                self._report.add(
                    field.node,
                    f"`{type_.name}.{field.name}` is {field.type}, and DynamoDB lets items expire by a number of "
                    "seconds since 1970: expected DateTime, Int or BigInt. Change its type, or remove @ttl",
                )
        return fields[marked[0].name].attribute if marked else None

    def _table(self, type_: DeclaredType, use: Directive) -> Table | None:
        table, known = self._tables.named(use.get("table")), self._tables.by_name
        if table is None:
            if self._tables.are_sure:
                self._report.add(
                    use.at("table"),
                    f"`{type_.name}` is in the table `{use.get('table')}`, which no @table declares: expected "
                    f"{listed(known, 'or')}. Declare it with @table, or mend the name{near(use.get('table'), known)}",
                )
        elif use.get("typeName") is not None and table.type_attribute is None:
            self._report.add(
                use.at("typeName"),
                f"`typeName` of `{type_.name}` is kept nowhere, for the table has no attribute for it: expected "
                f'@table(name: "{use.get("table") or next(iter(known))}", type: "…"). Add `type` there, or remove '
                "`typeName`",
            )
        return table

    def _check_uses(self, type_: DeclaredType, fields: Mapping[str, Field]) -> None:
        if type_.is_node and type_.is_edge:
            self._report.add(
                type_.keys[1].node,
                f"`{type_.name}` is declared @node and @edge: expected one of them. Keep @edge if its keys mention two "
                "nodes and no other item names it, else @node",
            )
        for mirror, use in enumerate(type_.keys):
            if use.get("copy") is not None:
                self._check_copy(type_, use, fields)
            for argument in ("table", "typeName", "ref"):
                if mirror and use.get(argument) is not None:
                    self._report.add(
                        use.at(argument),
                        f"`{argument}` of `{type_.name}` stands on a mirror: expected it on the first "
                        f"@{use.node.name.value}, for all mirrors share it. Move it there",
                    )

    def _check_copy(self, type_: DeclaredType, use: Directive, fields: Mapping[str, Field]) -> None:
        copy = use.get("copy")
        known = [name for name, field in fields.items() if field.kind is FieldKind.REFERENCE]
        if copy not in known and not self._report.blames(*self._declared.makings(type_)):
            self._report.add(
                use.at("copy"),
                f"`copy` of `{type_.name}` is `{copy}`: expected the end whose fields the items store, "
                f"{listed(known, 'or')}. Name one of them{near(copy, known)}",
            )

    def _check_key_attributes(
        self, type_: DeclaredType, layouts: list[Layout], table: Table, fields: Mapping[str, Field]
    ) -> None:
        """Report fields whose attribute is a key that holds something else."""
        for name, field in fields.items():
            templates = [layout.templates[field.attribute] for layout in layouts if field.attribute in layout.templates]
            others = [template for template in templates if not holds(template, field, table.type_attribute)]
            if others and field.kind is not FieldKind.RELATIONSHIP:
                self._report.add(
                    type_.fields[name].node,
                    f"`{type_.name}.{name}` is kept in the attribute `{field.attribute}`, which is a key and holds "
                    f"{others[0].source!r}: expected an attribute of its own. Name another one with "
                    '@attribute(name: "…"), or rename the field; what a key holds is read from the key anyway',
                )


def _ignoring_case(fields: dict[str, Field], layouts: list[Layout]) -> dict[str, Field]:
    """Let a field that a key holds in lower case be searched whatever its case: the key knows no other."""
    variables = [v for layout in layouts for template in layout.templates.values() for v in template.variables]
    lower = {variable.path[0] for variable in variables if variable.format == "lower" and len(variable.path) == 1}
    return {
        name: replace(field, scalar=ignoring_case(field.scalar)) if name in lower and field.scalar else field
        for name, field in fields.items()
    }
