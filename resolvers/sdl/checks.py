"""What only shows when all types are known: items that cannot be told apart, edges of one node, clashing names."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from graph.keys import overlap
from graph.model import Find, Index, ItemType, Layout, Table
from graph.patterns import lookup_name
from resolvers.sdl.declarations import Declarations
from resolvers.sdl.report import Report, listed
from resolvers.sdl.words import RESERVED_TYPES


def find_rivals(
    declared: Declarations, tables: Mapping[str, Table], items: Mapping[str, ItemType], report: Report
) -> dict[tuple[str, str | None], tuple[Layout, ...]]:
    """Find the layouts whose items may look alike; report those that nothing tells apart."""
    rivals: dict[tuple[str, str | None], list[Layout]] = {}
    layouts = [layout for item in items.values() for layout in item.layouts]
    for one, other in combinations(layouts, 2):
        if one.table != other.table or one.type_name == other.type_name:
            continue
        table = next(table for table in tables.values() if table.name == one.table)
        names = {items[one.type_name].type_name, items[other.type_name].type_name}
        told_apart = table.type_attribute is not None and len(names) == 2
        colliding = [way for way in table.ways if _overlap(one, other, way)]
        for way in colliding:
            rivals.setdefault((one.name, way.name), []).append(other)
            rivals.setdefault((other.name, way.name), []).append(one)
        if told_apart or not colliding:
            continue
        if colliding[0] is not table.primary:
            _report_collision(declared, report, one, other, colliding[0])
        elif one.self_keyed == other.self_keyed:
            _report_alike(declared, report, one, other, table)
    return {name: tuple(found) for name, found in rivals.items()}


def _overlap(one: Layout, other: Layout, index: Index) -> bool:
    names = [name for name in (index.partition_key, index.sort_key) if name]
    return all(
        name in one.templates and name in other.templates and overlap(one.templates[name], other.templates[name])
        for name in names
    )


def _report_alike(declared: Declarations, report: Report, one: Layout, other: Layout, table: Table) -> None:
    second = declared.items[other.type_name]
    keys = " and ".join(f"{name} = {other.templates[name].source!r}" for name in table.key_attributes)
    cure = (
        "give the two different `typeName`s"
        if table.type_attribute
        else 'begin one of the keys with a literal of its own, or name the attribute of the type: @table(type: "…")'
    )
    report.add(
        second.uses("node", "edge")[0].node,
        f"an item of `{other.type_name}` ({keys}) could as well be one of `{one.type_name}`: no literal and no "
        "discriminator "
        f"tells them apart. Cure: {cure}",
    )


def _report_collision(declared: Declarations, report: Report, one: Layout, other: Layout, index: Index) -> None:
    sort = index.sort_key or index.partition_key
    report.add(
        declared.items[other.type_name].uses("node", "edge")[0].node,
        f"on the index `{index.name}` items of `{other.type_name}` ({sort} = {other.templates[sort].source!r}) and of "
        f"`{one.type_name}` ({one.templates[sort].source!r}) collide: a page of one would read the other's items "
        "too. Cure: "
        'begin them with different literals, or name the attribute that holds the type: @table(type: "…")',
    )


def check_edges(declared: Declarations, items: Mapping[str, ItemType], report: Report) -> None:
    """Report edges whose keys do not mention two nodes."""
    for item in items.values():
        if item.is_node or not item.layouts:
            continue
        references = {field.name for field in item.references}
        mentioned = {
            variable.path[0]
            for layout in item.layouts
            for template in layout.templates.values()
            for variable in template.variables
            if variable.path[0] in references
        }
        if len(mentioned) < 2:
            use = declared.items[item.name].uses("edge")[0]
            report.add(
                use.node,
                f"the keys of the edge `{item.name}` mention {listed(sorted(mentioned))}, and an edge stands between "
                "two nodes: "
                f'expected two of its references in the keys, like partition: "{{a}}", sort: "{{b}}" (it has '
                f"{listed(sorted(references))})",
            )


def check_key_types(declared: Declarations, items: Mapping[str, ItemType], report: Report) -> None:
    """Report key attributes that are a number in one type and text in another."""
    first: dict[tuple[str, str], tuple[str, bool]] = {}
    for item in items.values():
        for layout in item.layouts:
            for attribute, template in layout.templates.items():
                type_name, is_number = first.setdefault((layout.table, attribute), (item.name, template.is_number))
                if is_number != template.is_number:
                    report.add(
                        declared.items[item.name].uses("node", "edge")[0].node,
                        f"the key attribute `{attribute}` is {'a number' if is_number else 'text'} in `{type_name}` "
                        "and "
                        f"{'text' if is_number else 'a number'} in `{item.name}`: DynamoDB keeps one type for each. "
                        "A template "
                        "that is one numeric field alone makes a number; add a literal or digits, like {n:012}, to "
                        "make text",
                    )


def check_virtual(declared: Declarations, items: Mapping[str, ItemType], report: Report) -> None:
    """Report fields of virtual nodes that no item can hold."""
    for item in items.values():
        if not item.virtual or item.ref is None:
            continue
        held = {variable.path[0] for variable in item.ref.variables}
        for field in declared.items[item.name].fields.values():
            if field.name not in held and "relationship" not in field.directives:
                report.add(
                    field.node,
                    f"`{item.name}` is virtual: it has no item that could hold `{field.name}`. Expected only fields "
                    "of its key "
                    f"{item.ref.source!r} and relationships",
                )


def check_names(
    declared: Declarations, items: Mapping[str, ItemType], finds: Mapping[str, Find], report: Report
) -> None:
    """Report names that the generated API needs for itself."""
    every = {**declared.items, **declared.objects, **declared.interfaces}
    generated = {
        f"{source}{name[:1].upper()}{name[1:]}{suffix}": f"{source}.{name}"
        for source, names in [
            *((item.name, list(declared.items[item.name].fields)) for item in items.values()),
            ("Query", list(finds)),
        ]
        for name in names
        for suffix in ("Connection", "Edge")
    }
    for name, type_ in every.items():
        if name in RESERVED_TYPES:
            report.add(
                type_.node,
                f"the name `{name}` is taken: it is {RESERVED_TYPES[name]}. Rename the type and keep its items with "
                "@node(typeName: …)",
            )
        elif name in generated:
            report.add(
                type_.node, f"the name `{name}` is taken by the generated type of `{generated[name]}`: rename the type"
            )
    lookups: dict[str, str] = {"node": "Relay's lookup by global id", "nodes": "Relay's lookup by global ids"}
    for item in items.values():
        root = lookup_name(item.name)
        if root in lookups:
            report.add(
                declared.items[item.name].node,
                f"the root field `{root}` of `{item.name}` is taken: it is {lookups[root]}. Rename the type",
            )
        lookups.setdefault(root, f"the lookup of {item.name}")
    for find in finds.values():
        if find.name in lookups and declared.query is not None:
            report.add(
                declared.query.fields[find.name].node,
                f"`Query.{find.name}` is taken: it is {lookups[find.name]}. Rename the field",
            )


def check_periods(
    declared: Declarations, tables: Mapping[str, Table], items: Mapping[str, ItemType], report: Report
) -> None:
    """Report types of a time series whose key does not say in which of its tables an item lies."""
    for item in items.values():
        for layout in item.layouts:
            table = next(table for table in tables.values() if table.name == layout.table)
            if table.period is None:
                continue
            held = {variable.path for name in table.key_attributes for variable in layout.templates[name].variables}
            field = item.fields.get(table.period.field)
            fits = field is not None and field.scalar is not None and field.scalar.name in ("Date", "DateTime")
            if not fits or (table.period.field,) not in held:
                report.add(
                    declared.items[item.name].uses("node", "edge")[0].node,
                    f"`{item.name}` lies in {table.name!r}, a table for each {table.period.format}: expected a field "
                    f"`{table.period.field}` of type Date! or DateTime! in its key, which then says in "
                    "which table the item lies",
                )
