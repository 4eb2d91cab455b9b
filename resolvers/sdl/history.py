"""@history: how the versions of an item lie beside it, under its own key with their number in the place of 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from graph.entity import HISTORY_FIELDS
from graph.keys import Literal, Part, Template, Variable
from graph.model import Field, Layout, Table
from graph.scalars import INT
from resolvers.sdl.declarations import DeclaredType
from resolvers.sdl.report import Report

NOW = "v0"


def history_of(
    type_: DeclaredType,
    layouts: Sequence[Layout],
    table: Table,
    fields: Mapping[str, Field],
    version: str | None,
    report: Report,
) -> Layout | None:
    """Make the layout of a type's versions; what keeps it from having any is reported."""
    use = next(iter(type_.uses("history")), None)
    if use is None:
        return None
    where = f"`{type_.name}` keeps its history"
    if not type_.is_node or len(type_.keys) != 1 or type_.keys[0].get("virtual"):
        report.add(use.node, f"{where}: expected it on a type with one @node that is not virtual. Remove @history")
        return None
    if version is None:
        report.add(
            use.node,
            f"{where} and does not count its versions: expected a field with @version. Add `version: Int! @version`",
        )
        return None
    for name in HISTORY_FIELDS:
        if name in fields:
            report.add(
                type_.fields[name].node,
                f"{where}, and so the API has `{type_.name}.{name}` already: expected another name. Rename the field",
            )
    sort = next(iter(table.primary.sort_keys), None)
    if not layouts or fields[version].scalar is None:
        return None
    template = layouts[0].templates[sort] if sort is not None else None
    first = template.parts[0] if template is not None else None
    if template is None or sort is None or not isinstance(first, Literal) or not first.text.startswith(NOW):
        written = "it has no sort key" if template is None else f"it is {template.source!r}"
        report.add(
            use.node,
            f"{where} under its sort key, and {written}: expected one that begins with {NOW!r}, where the versions "
            f'have v1, v2 and so on. Write sort: "{NOW}_{type_.name}"',
        )
        return None
    return _layout(layouts[0], sort, template, fields[version])


def _layout(own: Layout, sort: str, template: Template, version: Field) -> Layout:
    first = template.parts[0]
    rest = first.text.removeprefix(NOW) if isinstance(first, Literal) else ""
    literal: tuple[Part, ...] = (Literal(rest),) if rest else ()
    numbered: tuple[Part, ...] = (Literal("v"), Variable((version.name,), version.scalar or INT))
    source = template.source.replace(NOW, f"v{{{version.name}}}", 1)
    made = Template(source, (*numbered, *literal, *template.parts[1:]))
    return replace(own, name=f"{own.name} (versions)", templates={**own.templates, sort: made})
