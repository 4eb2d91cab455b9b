"""@cacheControl: how long answers may be kept that show a field, or anything of a type."""

from __future__ import annotations

from collections.abc import Iterator

from graphql import UnionTypeDefinitionNode

from graph.model import CacheHint
from resolvers.sdl.declarations import Declarations, Directive, read_directives
from resolvers.sdl.report import Report

Owner = tuple[str, str | None]
"""A type, or a field of it."""


def cache_hints(declared: Declarations, report: Report) -> dict[Owner, CacheHint]:
    """Collect what the file says of caching; what says nothing, or nothing that counts, is reported."""
    found: dict[Owner, CacheHint] = {}
    for owner, use in _uses(declared, report):
        if (problem := _problem(declared, owner, use)) is not None:
            if not report.blames(use.node):
                report.add(use.node, f"`{'.'.join(filter(None, owner))}` {problem}")
            continue
        scope = use.get("scope")
        found[owner] = CacheHint(use.get("maxAge"), None if scope is None else scope == "PRIVATE", _inherits(use))
    return found


def _uses(declared: Declarations, report: Report) -> Iterator[tuple[Owner, Directive]]:
    query = {} if declared.query is None else {"Query": declared.query}
    for name, type_ in {**declared.types, **query}.items():
        for use in type_.uses("cacheControl"):
            yield (name, None), use
        for field in type_.fields.values():
            if "cacheControl" in field.directives:
                yield (name, field.name), field.directives["cacheControl"]
    for name in declared.unions:
        node = declared.nodes[name]
        if isinstance(node, UnionTypeDefinitionNode):
            yield from (
                ((name, None), use) for kind, use in read_directives(node.directives, report) if kind == "cacheControl"
            )


def _problem(declared: Declarations, owner: Owner, use: Directive) -> str | None:
    """Say what is wrong with a use."""
    type_name, field_name = owner
    max_age = use.get("maxAge")
    if max_age is not None and max_age < 0:
        return (
            f"has `maxAge: {max_age}`: expected a number of seconds, 0 where no answer that shows it may be kept. "
            "Write one"
        )
    if max_age is not None and _inherits(use):
        return (
            "has `maxAge` and `inheritMaxAge`: expected one of them, for what has a time of its own inherits none. "
            "Remove one of the two"
        )
    if max_age is None and not _inherits(use) and use.get("scope") is None:
        return "has @cacheControl and says nothing by it: expected `maxAge`, `scope` or `inheritMaxAge`. Write one"
    if type_name == "Query" and field_name is None:
        return (
            "has @cacheControl, and every answer is one of it: expected it on its fields, or on the types that they "
            "give. Move it there"
        )
    if type_name == "Query" and _inherits(use):
        return "has `inheritMaxAge` and nothing to inherit from: expected `maxAge`. Write that instead"
    if type_name in declared.interfaces and field_name is not None:
        return (
            "has @cacheControl, and what is shown is a field of another type that has it by this interface: expected "
            "it on the fields of those types, or on the interface itself. Move it there"
        )
    return None


def _inherits(use: Directive) -> bool:
    return bool(use.get("inheritMaxAge"))
