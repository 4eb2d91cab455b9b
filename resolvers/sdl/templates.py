"""From the templates that the user wrote to templates whose every variable is a path to a scalar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from graphql import Node

from graph.keys import FORMATS, Hole, Literal, Part, Path, Shard, Template, TemplateSyntaxError, Variable, read_template
from graph.scalars import SCALARS, Scalar, enum_scalar
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType
from resolvers.sdl.report import Report, listed, near

PARTS = 100


@dataclass(frozen=True, slots=True)
class Written:
    """A template as written: its text, its place in the file, the type that it belongs to, and what may stand in it."""

    source: str
    owner: str
    at: Node
    ends: Mapping[str, str] = field(default_factory=dict)
    """Which member of a union stands at a reference."""
    sparse: bool = False
    """Its fields may be nullable: an item without them is not in the index."""
    sharded: bool = False
    """It is the partition key of an index, which shards may spread."""

    def __str__(self) -> str:
        return f"the template {self.source!r}"


class Templates:
    """Resolves templates; what cannot be resolved is reported, where it is written, and gives None."""

    def __init__(self, declared: Declarations, report: Report) -> None:
        self._declared = declared
        self._report = report
        self._resolving: list[str] = []
        self._circles: set[frozenset[str]] = set()
        self.enums = {
            name: enum_scalar(name, tuple(value.name for value in enum.values)) for name, enum in declared.enums.items()
        }

    def scalar(self, name: str) -> Scalar | None:
        """Give the scalar or enum of this name."""
        return SCALARS.get(name) or self.enums.get(name)

    def resolve(self, written: Written) -> Template | None:
        """Resolve a template of a type."""
        try:
            parts = read_template(written.source)
        except TemplateSyntaxError as error:
            self._report.add(written.at, f"`{written.owner}`: {error}. Write text, and {{field}} where a value belongs")
            return None
        resolved: list[Part] = []
        for part in parts:
            found = self._part(part, written)
            if found is None:
                return None
            resolved += found
        if len(resolved) > PARTS:
            self._report.add(
                written.at,
                f"`{written.owner}`: {written} is made of {len(resolved)} parts once its references are written out: "
                f"expected {PARTS} at most, for a key holds 2048 bytes. Give the types that it names a shorter `ref`",
            )
            return None
        template = Template(written.source, _joined(resolved))
        return template if self._is_readable(template, written) else None

    def _part(self, part: Literal | Hole | Shard, written: Written) -> list[Part] | None:
        if isinstance(part, Literal):
            return [part]
        if isinstance(part, Hole):
            return self._hole(written, part, written.owner, ())
        return self._shard(written, part)

    # --- what names a node ---

    def partition_of(self, name: str, at: Node) -> Template | None:
        """Resolve the partition key of a type's first layout."""
        use = self._declared.items[name].keys[0]
        if self._report.blames(use.node):
            return None
        argument = "key" if use.get("partition") is None else "partition"
        if use.get(argument) is None:
            return None
        return self._guarded(f"{name}.partition", Written(use.get(argument), name, use.at(argument)))

    def ref(self, name: str, at: Node) -> Template | None:
        """Resolve how other items name a node: its `ref`, else its partition key."""
        type_ = self._declared.items[name]
        if not type_.is_node:
            self._report.add(
                at,
                f"`{name}` is an edge type, which no other item can name: expected a node here. Name the edge's ends "
                f"instead, or make `{name}` a @node",
            )
            return None
        use = type_.uses("node")[0]
        if self._report.blames(use.node):
            return None
        if use.get("ref") is None:
            return self.partition_of(name, at)
        return self._guarded(f"{name}.ref", Written(use.get("ref"), name, use.at("ref")))

    def _guarded(self, mark: str, written: Written) -> Template | None:
        if mark in self._resolving:
            circle = self._resolving[self._resolving.index(mark) :]
            if frozenset(circle) not in self._circles:
                self._circles.add(frozenset(circle))
                self._report.add(
                    written.at,
                    f"the key of `{written.owner}` is made of itself: {' → '.join([*circle, mark])}. Expected a key "
                    "that ends in scalars: give one of these types a key of its own fields",
                )
            return None
        self._resolving.append(mark)
        try:
            return self.resolve(written)
        finally:
            self._resolving.pop()

    # --- variables ---

    def _hole(self, written: Written, hole: Hole, owner: str, prefix: Path) -> list[Part] | None:
        fields = self._declared.items[owner].fields
        name = hole.names[0]
        if name not in fields:
            usable = [known for known, entry in fields.items() if self._stands_in_keys(entry)]
            self._report.add(
                written.at,
                f"`{name}` in {written} names no field of `{owner}`: expected {listed(usable, 'or')}. Write one of them"
                f"{near(name, usable)}",
            )
            return None
        if not self._may_stand_in_key(written, fields[name], owner):
            return None
        scalar = self.scalar(fields[name].type.name)
        if scalar is not None:
            return self._scalar_hole(written, hole, (*prefix, name), scalar)
        return self._reference_hole(written, hole, fields[name], owner, prefix)

    def _stands_in_keys(self, field: DeclaredField) -> bool:
        is_value = self._declared.is_leaf(field.type.name) or bool(self._declared.possible(field.type.name))
        return is_value and not field.is_relationship

    def _may_stand_in_key(self, written: Written, field: DeclaredField, owner: str) -> bool:
        if self._report.blames(field.node):
            return False
        if field.type.of is not None or field.is_relationship:
            what = "a relationship" if field.is_relationship else "a list"
            cure = "Name a single value, or a reference without @relationship"
            self._report.add(
                written.at,
                f"`{owner}.{field.name}` is {what} and cannot be part of {written}: expected one value. {cure}",
            )
            return False
        if not field.type.required and not written.sparse:
            self._report.add(
                written.at,
                f"`{owner}.{field.name}` is nullable and part of {written}: every item has its whole key, so expected "
                f"`{field.type}!`. Declare it so, or take it out of the key",
            )
            return False
        return True

    def _scalar_hole(self, written: Written, hole: Hole, path: Path, scalar: Scalar) -> list[Part] | None:
        name, rest = ".".join(path), hole.names[1:]
        if rest:
            self._report.add(
                written.at,
                f"`{name}` in {written} is of type {scalar.name} and has no field `{rest[0]}`: expected `{{{name}}}`. "
                f"Remove `.{'.'.join(rest)}`",
            )
            return None
        if not scalar.in_key:
            self._report.add(
                written.at,
                f"`{name}` in {written} is of type {scalar.name}, which has no place in a key: expected text, a "
                "number, a date or an enum. Take it out of the key",
            )
            return None
        if not _fits(hole.format, scalar):
            self._report.add(
                written.at,
                f"the format `:{hole.format}` in {written} does not fit `{name}` of type {scalar.name}: expected "
                f"`:lower` for ID and String, `:epoch` for DateTime, or digits like `:012` for Int "
                f"and BigInt. Mend it, or remove it{near(hole.format, FORMATS)}",
            )
            return None
        return [Variable(path, scalar, hole.format)]

    def _reference_hole(
        self, written: Written, hole: Hole, field: DeclaredField, owner: str, prefix: Path
    ) -> list[Part] | None:
        name, rest = hole.names[0], hole.names[1:]
        members = self._declared.possible(field.type.name)
        member = written.ends.get(name) if not prefix else None
        if self._report.blames(*self._declared.directives(field.type.name)):
            return None
        if member is None and len(members) != 1:
            what = "may be one of several types" if members else "has no key of its own"
            self._report.add(
                written.at,
                f"`{owner}.{name}` in {written} is a {field.type.name}, which {what}: expected a scalar or one node "
                "type, or in the item's own key a union of node types. Take it out of the template",
            )
            return None
        target = member or members[0]
        path = (*prefix, name)
        if rest == ("partition",) and "partition" not in self._declared.items[target].fields:
            template = self.partition_of(target, written.at)
        elif rest:
            return self._hole(written, replace(hole, names=rest), target, path)
        else:
            template = self.ref(target, written.at)
        return None if template is None else list(below(path, template.parts))

    def _shard(self, written: Written, shard: Shard) -> list[Part] | None:
        if not written.sharded:
            self._report.add(
                written.at,
                f"`{{shard({shard.count})}}` in {written} would hide the item: expected shards in the partition key of "
                "an index only, where a read asks all of them. Write it as @indexed(by: …, partition: …)",
            )
            return None
        if shard.path is None:
            return [shard]
        parts = self._hole(written, Hole(shard.path), written.owner, ())
        if parts is None:
            return None
        variables = [part for part in parts if isinstance(part, Variable)]
        if len(variables) != 1:
            self._report.add(
                written.at,
                f"`{'.'.join(shard.path)}` in {written} is made of {len(variables)} fields: expected one that decides "
                "the shard. Name one of them",
            )
            return None
        return [Shard(shard.count, variables[0].path)]

    def _is_readable(self, template: Template, written: Written) -> bool:
        for part, following in zip(template.parts, template.parts[1:], strict=False):
            if not isinstance(part, Literal) and not isinstance(following, Literal):
                one, other = _name(part), _name(following)
                self._report.add(
                    written.at,
                    f"`{one}` and `{other}` stand side by side in {written} and could not be told apart again: "
                    f"expected a separator. Write {{{one}}}#{{{other}}}, or another sign that the values do not hold",
                )
                return False
        return True


def _fits(format_: str, scalar: Scalar) -> bool:
    if format_.isdigit():
        return scalar.name in ("Int", "BigInt")
    allowed = {"": True, "lower": scalar.name in ("ID", "String"), "epoch": scalar.name == "DateTime"}
    return allowed.get(format_, False)


def alias(template: Template, type_: DeclaredType) -> Template:
    """Let an edge's own reference stand for the same field of its end.

    `{order.accountRep}` in the key of an edge that declares `accountRep: Employee!` itself names that very node.
    """

    def rename(part: Part) -> Part:
        if not isinstance(part, Literal) and part.path and len(part.path) > 2 and part.path[1] in type_.fields:
            return replace(part, path=part.path[1:])
        return part

    return Template(template.source, tuple(rename(part) for part in template.parts))


def below(path: Path, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Put the variables of a node's template behind the reference that leads to it."""
    return tuple(replace(part, path=(*path, *part.path)) if isinstance(part, Variable) else part for part in parts)


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
