"""From the templates that the user wrote to templates whose every variable is a path to a scalar."""

from __future__ import annotations

from collections.abc import Mapping

from graphql import Node

from graph.keys import FORMATS, Hole, Literal, Part, Path, Shard, Template, TemplateSyntaxError, Variable, read_template
from graph.scalars import SCALARS, Scalar, enum_scalar
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType
from resolvers.sdl.report import Report, listed, near


class Templates:
    """Resolves templates; what cannot be resolved is reported once, where it is written, and gives None."""

    def __init__(self, declared: Declarations, report: Report) -> None:
        self._declared = declared
        self._report = report
        self._refs: dict[str, Template | None] = {}
        self._resolving: list[str] = []
        self.enums = {
            name: enum_scalar(name, tuple(value.name for value in enum.values)) for name, enum in declared.enums.items()
        }

    def scalar(self, name: str) -> Scalar | None:
        """Give the scalar or enum of this name."""
        return SCALARS.get(name) or self.enums.get(name)

    def resolve(
        self, source: str, owner: str, at: Node, *, ends: Mapping[str, str] | None = None, sparse: bool = False
    ) -> Template | None:
        """Resolve a template of a type.

        `ends` says which member of a union stands at a reference; a `sparse` template may hold nullable fields: an item
        without them is not in the index.
        """
        try:
            parts = read_template(source)
        except TemplateSyntaxError as error:
            self._report.add(at, str(error))
            return None
        resolved: list[Part] = []
        for part in parts:
            if isinstance(part, Hole):
                found = self._hole(part, owner, (), at, source, ends or {}, sparse)
                if found is None:
                    return None
                resolved += found
            else:
                resolved.append(part)
        template = Template(source, _joined(resolved))
        return template if self._is_readable(template, at) else None

    def partition_of(self, name: str, at: Node) -> Template | None:
        """Resolve the partition key of a type's first layout."""
        type_ = self._declared.items[name]
        directive = type_.uses("node", "edge")[0]
        argument = "partition" if directive.get("partition") else "key"
        source = directive.get(argument)
        return None if source is None else self._guarded(f"{name}.partition", source, name, directive.at(argument))

    def ref(self, name: str, at: Node) -> Template | None:
        """Resolve how other items name a node: its `ref`, else its partition key."""
        if name not in self._refs:
            self._refs[name] = self._resolve_ref(name, at)
        return self._refs[name]

    def _resolve_ref(self, name: str, at: Node) -> Template | None:
        type_ = self._declared.items[name]
        if not type_.is_node:
            self._report.add(
                at, f"`{name}` is an edge type, and only nodes can be named by other items: expected a @node type"
            )
            return None
        directive = type_.uses("node")[0]
        source = directive.get("ref")
        return self.partition_of(name, at) if source is None else self._guarded(name, source, name, directive.at("ref"))

    def _guarded(self, mark: str, source: str, owner: str, at: Node) -> Template | None:
        if mark in self._resolving:
            self._report.add(at, f"the key of `{owner}` is made of itself: {' → '.join([*self._resolving, mark])}")
            return None
        self._resolving.append(mark)
        try:
            return self.resolve(source, owner, at)
        finally:
            self._resolving.pop()

    def _hole(
        self, hole: Hole, owner: str, prefix: Path, at: Node, source: str, ends: Mapping[str, str], sparse: bool
    ) -> list[Part] | None:
        type_ = self._declared.items[owner]
        name, rest = hole.names[0], hole.names[1:]
        field = type_.fields.get(name)
        if field is None:
            self._report.add(
                at,
                f"`{'.'.join(hole.names)}` in the template {source!r} names no field `{name}` of `{owner}`: expected "
                "one of "
                f"{listed(type_.fields)}.{near(name, type_.fields)}",
            )
            return None
        if not self._may_stand_in_key(field, owner, at, source, sparse):
            return None
        scalar = self.scalar(field.type.name)
        if scalar is not None:
            return self._scalar_hole(hole, (*prefix, name), scalar, rest, at, source)
        return self._reference_hole(hole, field, owner, prefix, at, source, ends)

    def _may_stand_in_key(self, field: DeclaredField, owner: str, at: Node, source: str, sparse: bool) -> bool:
        if field.type.of is not None or "relationship" in field.directives:
            what = "a relationship" if "relationship" in field.directives else "a list"
            self._report.add(
                at, f"`{owner}.{field.name}` is {what} and cannot be part of the key {source!r}: name a single value"
            )
            return False
        if not field.type.required and not sparse:
            self._report.add(
                at,
                f"`{owner}.{field.name}` is nullable and part of the key {source!r}: every item has its whole key, "
                "so declare "
                f"it `{field.type}!`",
            )
            return False
        return True

    def _scalar_hole(
        self, hole: Hole, path: Path, scalar: Scalar, rest: Path, at: Node, source: str
    ) -> list[Part] | None:
        name = ".".join(path)
        if rest:
            self._report.add(at, f"`{name}` in the template {source!r} is a {scalar.name} and has no field `{rest[0]}`")
            return None
        if not scalar.in_key:
            self._report.add(
                at, f"`{name}` in the template {source!r} is a {scalar.name}, which cannot be part of a key"
            )
            return None
        known = hole.format in ("", *FORMATS) or hole.format.isdigit()
        fits = {
            "lower": scalar.name in ("ID", "String"),
            "epoch": scalar.name == "DateTime",
        }.get(hole.format, not hole.format or scalar.name in ("Int", "BigInt"))
        if not known or not fits:
            self._report.add(
                at,
                f"the format `:{hole.format}` does not fit `{name}`, a {scalar.name}: expected `:lower` for ID and "
                "String, "
                f"`:epoch` for DateTime, digits such as `:012` for Int and BigInt.{near(hole.format, FORMATS)}",
            )
            return None
        return [Variable(path, scalar, hole.format)]

    def _reference_hole(
        self, hole: Hole, field: DeclaredField, owner: str, prefix: Path, at: Node, source: str, ends: Mapping[str, str]
    ) -> list[Part] | None:
        name, rest = hole.names[0], hole.names[1:]
        members = self._declared.possible(field.type.name)
        member = ends.get(name) if not prefix else None
        if member is None and len(members) != 1:
            self._report.add(
                at,
                f"`{owner}.{name}` in the template {source!r} is a {field.type.name}, which has no key of its own: "
                "expected a "
                "scalar, a node type, or (in the item's own key) a union of node types",
            )
            return None
        target = member or members[0]
        path = (*prefix, name)
        if rest == ("partition",):
            template = self.partition_of(target, at)
        elif rest:
            return self._hole(Hole(rest, hole.format), target, path, at, source, {}, False)
        else:
            template = self.ref(target, at)
        return None if template is None else list(below(path, template.parts))

    def _is_readable(self, template: Template, at: Node) -> bool:
        for part, following in zip(template.parts, template.parts[1:], strict=False):
            if not isinstance(part, Literal) and not isinstance(following, Literal):
                one, other = _name(part), _name(following)
                self._report.add(
                    at,
                    f"`{one}` and `{other}` stand side by side in the template {template.source!r}, and could not be "
                    "told "
                    f"apart again: put a separator between them, like {{{one}}}#{{{other}}}",
                )
                return False
        return True


def alias(template: Template, type_: DeclaredType) -> Template:
    """Let an edge's own reference stand for the same field of its end.

    `{order.accountRep}` in the key of an edge that declares `accountRep: Employee!` itself names that very node.
    """

    def rename(part: Part) -> Part:
        if isinstance(part, Variable) and len(part.path) > 2 and part.path[1] in type_.fields:
            return Variable(part.path[1:], part.scalar, part.format)
        return part

    return Template(template.source, tuple(rename(part) for part in template.parts))


def below(path: Path, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Put the variables of a node's template behind the reference that leads to it."""
    return tuple(
        Variable((*path, *part.path), part.scalar, part.format) if isinstance(part, Variable) else part
        for part in parts
    )


def _joined(parts: list[Part]) -> tuple[Part, ...]:
    joined: list[Part] = []
    for part in parts:
        if isinstance(part, Literal) and joined and isinstance(joined[-1], Literal):
            joined[-1] = Literal(joined[-1].text + part.text)
        else:
            joined.append(part)
    return tuple(joined)


def _name(part: Part) -> str:
    return part.name if isinstance(part, Variable) else "shard" if isinstance(part, Shard) else ""
