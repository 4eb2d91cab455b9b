"""What the caller of a mutation may do: refused before anything is read where their credentials alone decide it.

Else an item decides, as it is and as it is to be, and that it stays so until it is written is asked of the transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from graph.entity import Entity
from graph.errors import Forbidden, InputPath
from graph.keys import Path
from graph.model import Field, FieldKind, ItemType, Layout, Model
from graph.permissions import Grant, OneOf, Permissions
from graph.requests import ItemKey
from graph.rules import Right
from graph.tenancy import of_text
from graph.transaction import Guard
from graph.writes.draft import Draft
from graph.writes.guards import unchanged


class Rights:
    """What one caller may do to items; without permissions everything, for it is our own doing."""

    def __init__(self, model: Model, permissions: Permissions | None) -> None:
        self._model = model
        self._permissions = permissions
        self.resting: dict[ItemKey, list[Guard]] = {}
        """What the right to name a node rests on, besides its key."""

    # --- what the credentials alone decide ---

    def refuse(self, type_: ItemType, *rights: Right, fields: Iterable[str] = ()) -> None:
        """Refuse what the caller may do to no item: one of these rights is enough. Raises Forbidden."""
        if self._permissions is None:
            return
        if all(self._permissions.of(type_.name, right).never for right in rights):
            raise forbidden(rights, type_.name)
        for name in fields:
            if all(self._permissions.of_field(type_.name, name, right).never for right in rights):
                raise forbidden(rights, f"{type_.name}.{name}")

    def refuse_key(self, type_: ItemType, named: Entity) -> None:
        """Refuse to name an item by values that are not the caller's, whether there is one or not. Raises Forbidden."""
        if not self._may_have(type_, named.paths):
            raise Forbidden(
                f"the {type_.name} that is named is not for you, whether there is one or not: leave out what your "
                "credentials say, or give just that"
            )

    def is_sure(self, named: Entity, right: Right, fields: Iterable[str], looked_at: Collection[str]) -> bool:
        """Say whether the key of an item alone gives a right to it, and to look at some of its fields."""
        if self._permissions is None:
            return True
        keyed = Entity(self._model, named.type, named=key_values(named))
        grants = [self._permissions.of(named.type.name, right)]
        grants += [self._permissions.of_field(named.type.name, name, right) for name in fields]
        if looked_at:
            grants.append(self._permissions.of(named.type.name, Right.READ))
            grants += [self._permissions.of_field(named.type.name, name, Right.READ) for name in looked_at]
        return all(grant.holds(keyed) for grant in grants)

    def may_see(self, named: Entity) -> bool:
        """Say whether an item may be one that the caller may read, or write, as far as its key tells."""
        return self._may_have(named.type, key_values(named))

    def _may_have(self, type_: ItemType, known: Mapping[Path, Any]) -> bool:
        permissions = self._permissions
        return permissions is None or any(permissions.of(type_.name, right).may_hold(known) for right in Right)

    def sees(self, read: Entity) -> bool:
        """Say whether the caller may read an item."""
        return self._permissions is None or self._permissions.of(read.type.name, Right.READ).holds(read)

    def may_name(self, node: Entity) -> bool:
        """Say whether the key of a node alone lets the caller name it: any that they may read."""
        if self._permissions is None:
            return True
        grant = self._permissions.of(node.type.name, Right.READ)
        if node.type.virtual:
            return grant.holds(node)
        return grant.always or (node.key is not None and self.is_sure(node, Right.READ, (), ()))

    # --- what an item decides ---

    def has(self, read: Entity, right: Right) -> bool:
        """Say whether the caller has a right to an item."""
        return self._permissions is None or self._permissions.of(read.type.name, right).holds(read)

    def rest(
        self,
        read: Entity,
        key: ItemKey,
        right: Right,
        at: InputPath,
        fields: Iterable[str] = (),
        looked_at: Collection[str] = (),
    ) -> list[Guard]:
        """Ask for a right to an item and fields of it, and to read what is looked at; the guards keep what gives it.

        Raises: Forbidden.
        """
        if self._permissions is None:
            return []
        type_ = read.type
        asked = [(right, "")] + [(right, name) for name in fields]
        if looked_at:
            asked += [(Right.READ, ""), *((Right.READ, name) for name in looked_at)]
        attributes: set[str] = set()
        for wanted, name in asked:
            grant = self._grant(type_, name, wanted)
            if not grant.holds(read):
                raise forbidden((wanted,), f"{type_.name}.{name}" if name else type_.name)
            attributes |= set(_attributes(read, grant))
        return unchanged(read, key, attributes, at)

    def refuse_draft(self, draft: Draft, right: Right, fields: Iterable[str]) -> None:
        """Refuse that an item becomes one to which the caller has no right. Raises Forbidden."""
        if self._permissions is None:
            return
        for name in ("", *fields):
            if not self._grant(draft.type, name, right).holds(draft):
                raise forbidden((right,), f"{draft.type.name}.{name}" if name else draft.type.name)
        if not self._grant(draft.type, "", right).always:
            for rule in draft.type.auth:
                if len({str(draft.at(match.path)) for match in rule.tenant}) > 1:
                    raise Forbidden(f"this {draft.type.name} would name nodes of two tenants: expected those of one")

    def _grant(self, type_: ItemType, field: str, right: Right) -> Grant:
        assert self._permissions is not None
        if field:
            return self._permissions.of_field(type_.name, field, right)
        return self._permissions.of(type_.name, right)

    # --- what need not be said ---

    def implied(self, type_: ItemType, right: Right) -> dict[str, Any]:
        """Give the values of fields that every item has to which the caller has a right."""
        if self._permissions is None:
            return {}
        return dict(_implied(self._model, type_, self._permissions.of(type_.name, right).bound))


def forbidden(rights: Iterable[Right], what: str) -> Forbidden:
    """Refuse what the caller may not do."""
    names = " or ".join(right.value for right in rights)
    return Forbidden(f"you may not {names} this {what}: expected a caller whom its @auth lets")


# --- values that the credentials say ------------------------------------------------------------------------------


def implied_fields(type_: ItemType) -> frozenset[str]:
    """List the fields of a type that a rule binds to the caller, so that they may be left out of a new item."""
    paths = {match.path: "" for rule in type_.auth if Right.CREATE in rule.rights for match in rule.matches}
    return frozenset(field.name for field, _ in _named_whole(type_, paths))


def _named_whole(type_: ItemType, paths: Mapping[Path, Any]) -> Iterator[tuple[Field, dict[Path, Any]]]:
    """List the fields of which some paths say all, with what the node is named by where they name one."""
    for name in dict.fromkeys(path[0] for path in paths):
        field = type_.fields[name]
        if field.kind is not FieldKind.REFERENCE:
            yield field, {}
        elif len(field.refs) == 1:
            (ref,) = field.refs.values()
            below = {variable.path: paths.get((name, *variable.path)) for variable in ref.variables}
            if None not in below.values():
                yield field, below


def _implied(model: Model, type_: ItemType, bound: Mapping[Path, str]) -> Iterator[tuple[str, Any]]:
    for field, below in _named_whole(type_, bound):
        if field.kind is FieldKind.REFERENCE:
            ((target, ref),) = field.refs.items()
            scalars = {variable.path: variable.scalar for variable in ref.variables}
            named = {path: of_text(scalars[path], text) for path, text in below.items()}
            yield field.name, Entity(model, model.items[target], named=named)
        elif field.scalar is not None:
            value = of_text(field.scalar, bound[field.name,])
            yield field.name, value if field.type.of is None else [value]


def key_values(named: Entity) -> dict[Path, Any]:
    """Give what the key of an item says of it, and nothing that was said besides."""
    found: dict[Path, Any] | None = None
    for layout in named.type.layouts if named.key is not None else ():
        values = None if layout.mirror else _parsed(named.model, layout, named.key)
        if values is not None:
            # An edge to a union has as many layouts as members, and a key may have the shape of several.
            found = values if found is None else dict(found.items() & values.items())
    return found or {}


def _parsed(model: Model, layout: Layout, key: ItemKey | None) -> dict[Path, Any] | None:
    values: dict[Path, Any] = {}
    for name, value in key[1] if key is not None else ():
        parsed = layout.templates[name].parse(value) if name in layout.templates else None
        if parsed is None:
            return None
        lossless = {variable.path for variable in layout.templates[name].variables if not variable.lossy}
        values |= {path: one for path, one in parsed.items() if path in lossless}
    return values


# --- what a right rests on ----------------------------------------------------------------------------------------


def _attributes(read: Entity, grant: Grant) -> Iterator[str]:
    """List the attributes that give a right to an item, but for those of its primary key."""
    way = next(way for way in grant.ways if all(test.passes(read) for test in way))
    for test in way:
        if test.path not in read.key_paths:
            yield from _attributes_of(read.type, test)


def _attributes_of(type_: ItemType, test: OneOf) -> Iterator[str]:
    name = test.path[0]
    yield type_.fields[name].attribute
    for layout in type_.layouts:
        for attribute, template in layout.templates.items():
            if any(variable.path[0] == name for variable in template.variables):
                yield attribute
