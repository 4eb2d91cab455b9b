"""Names that the generated API needs for itself, and names that it would need twice."""

from __future__ import annotations

from collections.abc import Iterator

from graphql import Node

from graph.patterns import lookup_name, search_name
from resolvers.sdl.declarations import Declarations, DeclaredType
from resolvers.sdl.report import Report
from resolvers.sdl.words import RESERVED_TYPES, WHERE_FIELDS

NAMING = {"{}Key": "the key of `{}`", "{}Reference": "a reference to `{}`"}
"""The inputs that name an item."""

WRITING = {
    "{}Payload": "the result of `create{}`",
    "Delete{}Payload": "the result of `delete{}`",
    "Create{}Input": "the input of `create{}`",
    "Update{}Input": "the input of `update{}`",
    "Increment{}Input": "what `update{}` adds to numbers",
    "Append{}Input": "what `update{}` appends to lists",
    "Remove{}Input": "what `update{}` removes",
}
"""The types of the mutations of an item."""


def check_names(declared: Declarations, report: Report) -> None:
    """Report every name that is taken."""
    _check_types(declared, report)
    _check_roots(declared, report)
    for type_ in (*declared.items.values(), *declared.objects.values()):
        for field in type_.fields.values():
            if field.name in WHERE_FIELDS:
                report.add(
                    field.node,
                    f"`{type_.name}.{field.name}`: filters have `{field.name}` already, to put conditions together: "
                    "expected another name. Rename the field, and keep its attribute with @attribute(name: "
                    f'"{field.name}")',
                )


def _check_types(declared: Declarations, report: Report) -> None:
    """Report types whose name the API gives to one of its own."""
    taken = RESERVED_TYPES | {name: meaning for name, (meaning, _) in _generated(declared, report).items()}
    for name, node in declared.nodes.items():
        if name.startswith("__") and not report.blames(node):
            report.add(
                node, f"the name `{name}` is taken, for introspection needs it: expected another name. Rename it"
            )
        meaning = taken.get(name)
        if meaning is None and name.endswith("Connection") and name in declared.items | declared.objects:
            meaning = "that of a connection, as every name in -Connection is by the rules of Relay"
        if meaning:
            keeps = name in declared.items and any(use.get("type") for kind, use in declared.schema if kind == "table")
            cure = f', and keep its items with typeName: "{name}"' if keeps else ""
            report.add(
                node, f"the name `{name}` is taken, for it is {meaning}: expected another name. Rename the type{cure}"
            )


def _generated(declared: Declarations, report: Report) -> dict[str, tuple[str, Node]]:
    """Collect the types that the API will have beside the declared ones; report those that it would have twice."""
    found: dict[str, tuple[str, Node]] = {}
    for name, meaning, node in _generate(declared):
        before = found.setdefault(name, (meaning, node))[0]
        if before != meaning and not report.blames(node):
            report.add(
                node,
                f"the type `{name}` would be {before} and {meaning} at once: expected names that make different types. "
                "Rename one of the two",
            )
    return found


def _searched(declared: Declarations) -> Iterator[tuple[str, DeclaredType, Node]]:
    """List the root fields that search, with their types and where these say so."""
    for type_ in declared.items.values():
        marked = [field.directives["search"] for field in type_.fields.values() if "search" in field.directives]
        for use in [*type_.uses("search"), *marked][:1]:
            yield search_name(type_.name), type_, use.node


def _generate(declared: Declarations) -> Iterator[tuple[str, str, Node]]:
    for root, _, node in _searched(declared):
        for suffix, meaning in (("Connection", "the connection"), ("Edge", "an edge")):
            yield f"Query{root[:1].upper()}{root[1:]}{suffix}", f"{meaning} of `Query.{root}`", node
    query = [declared.query] if declared.query else []
    for type_ in (*declared.items.values(), *query):
        for field in type_.fields.values():
            if field.type.of is not None and (field.is_relationship or "find" in field.directives):
                for suffix, meaning in (("Connection", "the connection"), ("Edge", "an edge")):
                    name = f"{type_.name}{field.name[:1].upper()}{field.name[1:]}{suffix}"
                    yield name, f"{meaning} of `{type_.name}.{field.name}`", field.node
    for type_ in (*declared.items.values(), *declared.objects.values()):
        yield f"{type_.name}Where", f"the filter of `{type_.name}`", type_.node
        for use in type_.uses("history"):
            for suffix, meaning in (("Connection", "the connection"), ("Edge", "an edge")):
                yield f"{type_.name}Versions{suffix}", f"{meaning} of `{type_.name}.versions`", use.node
        for field in type_.fields.values():
            leaf = field.type.named
            if declared.is_leaf(leaf):
                kind = "" if field.type.of is None else "List"
                of = f"lists of {leaf}" if kind else leaf
                yield f"{leaf}{kind}Filter", f"the filter of {of}", field.node
    yield from _generate_writes(declared)
    yield from _generate_changes(declared)


def _generate_writes(declared: Declarations) -> Iterator[tuple[str, str, Node]]:
    for type_ in declared.items.values():
        is_stored = not type_.keys[0].get("virtual")
        for name, meaning in (NAMING | WRITING if is_stored else NAMING).items():
            yield name.format(type_.name), meaning.format(type_.name), type_.node
        for field in type_.fields.values():
            if field.is_relationship and field.type.of is not None and is_stored:
                # Without Create in front: an edge type is often called like the field that it serves, `BoxLids`.
                name = f"{type_.name}{field.name[:1].upper()}{field.name[1:]}Input"
                yield name, f"the input of `{type_.name}.{field.name}`", field.node
    for type_ in declared.objects.values():
        yield f"{type_.name}Input", f"the input of `{type_.name}`", type_.node
    for several in (*declared.unions, *declared.interfaces):
        if declared.possible(several):
            for name, meaning in NAMING.items():
                yield name.format(several), meaning.format(several), declared.nodes[several]


def _generate_changes(declared: Declarations) -> Iterator[tuple[str, str, Node]]:
    for type_ in declared.items.values():
        if type_.is_node:
            yield f"{type_.name}Change", f"a change of `{type_.name}`", type_.node
            for field in type_.fields.values():
                if field.is_relationship and field.type.of is not None:
                    name = f"{type_.name}{field.name[:1].upper()}{field.name[1:]}Change"
                    yield name, f"a change of an edge of `{type_.name}.{field.name}`", field.node


def _check_roots(declared: Declarations, report: Report) -> None:
    """Report root fields that would be there twice."""
    taken = {"node": "Relay's lookup by global id", "nodes": "Relay's lookup by global ids"}
    for type_ in declared.items.values():
        root = lookup_name(type_.name)
        if root in taken and type_.name not in RESERVED_TYPES:
            report.add(
                type_.node,
                f"the root field `{root}` of `{type_.name}` is taken, for it is {taken[root]}: expected another name. "
                "Rename the type",
            )
        taken.setdefault(root, f"the lookup of `{type_.name}`")
    for root, type_, node in _searched(declared):
        if root in taken:
            report.add(
                node,
                f"the root field `{root}`, which searches `{type_.name}`, is taken, for it is {taken[root]}: expected "
                "another name. Rename one of the two types",
            )
        taken.setdefault(root, f"the search of `{type_.name}`")
    for field in declared.query.fields.values() if declared.query else ():
        if field.name in taken:
            report.add(
                field.node,
                f"`Query.{field.name}` is taken, for it is {taken[field.name]}: expected another name. Rename the "
                "field",
            )
