"""@auth: who may do what to items, to fields, and who may ask a field of Query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from graph.keys import Path, Template, Variable
from graph.model import Access, FieldKind, Find, ItemType, Layout, Projection, Relationship
from graph.rules import Match, Right, Rule
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType, Directive
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.tables import Tables

Ways = tuple[Access, ...]


class Auth:
    """Reads the rules, and reports those that could not be kept."""

    def __init__(self, declared: Declarations, tables: Tables, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report
        self.tenants = {name: _tenants(type_) for name, type_ in declared.items.items()}
        """For each type the fields that hold its tenant."""

    def all(self) -> dict[str, ItemType]:
        """Give the item types with their rules."""
        for type_ in (*self._declared.objects.values(), *self._declared.interfaces.values()):
            for use in (*type_.uses("auth"), *(use for field in type_.fields.values() for use in field.auth)):
                self._report.add(
                    use.node,
                    f"`{type_.name}` has @auth and no items: expected it on a type with @node or @edge, or on a field "
                    "of one. Move it there",
                )
        for use in self._declared.query.uses("auth") if self._declared.query else ():
            self._report.add(
                use.node,
                "`Query` has @auth: expected it on the types that are read, or on single fields of Query. Move it "
                "there",
            )
        for name, item in self._items.items():
            self._check_named(self._declared.items[name], item)
        return {name: self._item(self._declared.items[name], item) for name, item in self._items.items()}

    def _check_named(self, type_: DeclaredType, item: ItemType) -> None:
        """Report a type that everybody may read, and whose items tell of nodes that not everybody may."""
        if type_.uses("auth"):
            return
        variables = (variable for layout in item.layouts for variable in _variables(layout.templates.values()))
        for path in (path for path in variables if len(path) > 1):
            for target in item.fields[path[0]].refs:
                if self._declared.items[target].uses("auth") and not self._report.blames(type_.node):
                    self._report.add(
                        type_.node,
                        f"`{type_.name}` is everybody's, and its keys name a {target}, which is not: expected rules "
                        f"for both. Give `{type_.name}` an @auth of its own"
                        + (
                            f', like @auth(tenant: {{ field: "{path[0]}.{path[-1]}", … }})'
                            if self.tenants[target]
                            else ""
                        ),
                    )
                    return

    # --- fields of Query ---

    def finds(self, finds: Mapping[str, Find]) -> dict[str, Find]:
        """Give the fields of Query with their rules; one without any reads within a tenant only."""
        return {name: self._find(find) for name, find in finds.items()}

    def _find(self, find: Find) -> Find:
        assert self._declared.query is not None
        field = self._declared.query.fields[find.name]
        if field.auth:
            return replace(find, auth=self._of_find(field))
        ruled = [name for name in (*find.item_types, *find.targets) if self.tenants[name]]
        ways = self._within_tenant(find.accesses)
        if ruled and (find.scan or not ways):
            self._report.add(
                field.node,
                f"`Query.{find.name}` reads items of `{ruled[0]}` whatever their tenant: expected an index whose "
                "partition key holds the tenant, or an @auth of its own that says who may read across tenants. Add one "
                "of them",
            )
        return replace(find, accesses=ways)

    def _of_find(self, field: DeclaredField) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        for use in field.auth:
            for word in ("owner", "tenant"):
                if use.get(word) is not None:
                    self._report.add(
                        use.at(word),
                        f"`{word}` of `Query.{field.name}` is about the items that are found: expected it on their "
                        "type. Move it there",
                    )
            if "rights" in {argument.name.value for argument in use.node.arguments or ()}:
                self._report.add(
                    use.at("rights"),
                    f"`Query.{field.name}` can only be read: expected no `rights` in its @auth. Remove them",
                )
            rules.append(self._caller(use))
        return tuple(rules)

    # --- items ---

    def _item(self, type_: DeclaredType, item: ItemType) -> ItemType:
        rules = [rule for use in type_.uses("auth") if (rule := self._rule(type_, item, use)) is not None]
        fields = {
            name: replace(field, auth=self._of_field(type_, type_.fields[name], item))
            if type_.fields[name].auth
            else field
            for name, field in item.fields.items()
        }
        return replace(item, auth=tuple(rules), fields=fields, must_be_seen=self._must_be_seen(item, rules))

    def _must_be_seen(self, item: ItemType, rules: Sequence[Rule]) -> bool:
        """Say whether who names a node may not be who may read it; keys that name one hold its tenant as well."""
        readers = [rule for rule in rules if Right.READ in rule.rights]
        if not rules:
            return False
        return (
            item.virtual
            or not readers
            or any(rule.owner is not None or not rule.tenant for rule in readers)
            or any(
                item.name in field.refs and field.name not in _held(other)
                for other in self._items.values()
                for field in other.references
            )
        )

    def _of_field(self, type_: DeclaredType, field: DeclaredField, item: ItemType) -> tuple[Rule, ...]:
        rules: list[Rule] = []
        where = f"`{type_.name}.{field.name}`"
        for use in field.auth:
            rule = self._caller(use)
            if use.get("tenant") is not None:
                self._report.add(
                    use.at("tenant"),
                    f"{where} would have a tenant of its own: expected `tenant` on the type, for it is part of the "
                    "key. Move it there",
                )
            if Right.DELETE in rule.rights and "rights" in {one.name.value for one in use.node.arguments or ()}:
                self._report.add(
                    use.at("rights"),
                    f"{where} is deleted with its item alone: expected READ, CREATE or UPDATE. Remove DELETE, or move "
                    "the @auth to the type",
                )
            if (owner := use.get("owner")) is not None and self._may_be_hidden(type_, field, item, use):
                path = self._path(type_, item, use, "owner")
                rule = replace(rule, owner=None if path is None else Match(path, owner["claim"]))
            rules.append(rule)
        return tuple(rules)

    def _may_be_hidden(self, type_: DeclaredType, field: DeclaredField, item: ItemType, use: Directive) -> bool:
        """Say whether single items can be without a field's value; report why not."""
        where = f"`{type_.name}.{field.name}`"
        made = item.fields[field.name]
        if made.kind is FieldKind.RELATIONSHIP or field.name in _held(item):
            what = "is a relationship" if made.kind is FieldKind.RELATIONSHIP else "is part of a key"
            self._report.add(
                use.at("owner"),
                f"{where} {what}, which cannot be hidden in some items and not in others: expected `owner` on the "
                "type, or roles or a claim here. Move it there",
            )
            return False
        if field.type.required:
            self._report.add(
                use.at("owner"),
                f"{where} is {field.type}, and null to all but the owner: expected a type that may be null. Remove "
                "the `!`",
            )
        return True

    def _rule(self, type_: DeclaredType, item: ItemType, use: Directive) -> Rule | None:
        rule = self._caller(use)
        owner, tenant = use.get("owner"), use.get("tenant")
        if rule.anonymous and (owner or tenant or rule.roles or rule.claim):
            self._report.add(
                use.at("anonymous"),
                f"`{type_.name}` lets callers in without credentials who have something that only credentials tell: "
                "expected `anonymous` alone. Remove it, or write an @auth of its own for it",
            )
            return None
        if owner is not None:
            path = self._path(type_, item, use, "owner")
            if path is None:
                return None
            if item.virtual:
                self._report.add(
                    use.at("owner"),
                    f"`{type_.name}` is virtual, and no item says who its owner is: expected roles, a claim or a "
                    "tenant. Remove `owner`, or `virtual`",
                )
                return None
            self._check_projections(type_, item, use, path)
            rule = replace(rule, owner=Match(path, owner["claim"]))
        if tenant is not None:
            path = self._path(type_, item, use, "tenant")
            if path is None or not self._is_in_partition(type_, item, use, path):
                return None
            paths = dict.fromkeys((path, *self._tenants_named(item)))
            rule = replace(rule, tenant=tuple(Match(one, tenant["claim"]) for one in paths))
        return rule

    def _check_projections(self, type_: DeclaredType, item: ItemType, use: Directive, path: Path) -> None:
        """Report an index that does not tell the owner: whatever is read through it would be nobody's."""
        attribute = item.fields[path[0]].attribute
        for layout in item.layouts:
            for index in self._tables.stored(layout.table).indexes:
                held = index.projection if isinstance(index.projection, frozenset) else frozenset()
                is_in_key = (
                    path in set(_variables((*layout.partition(index), *layout.sort(index))))
                    if layout.is_in(index)
                    else True
                )
                if (
                    layout.is_in(index)
                    and index.projection is not Projection.ALL
                    and attribute not in held
                    and not is_in_key
                ):
                    self._report.add(
                        use.at("owner"),
                        f"`owner` of `{type_.name}` is `{path[0]}`, which the index `{index.name}` does not hold: "
                        f'expected it in the projection. Write projection: ALL there, or add "{attribute}" to it',
                    )
                    return

    def _caller(self, use: Directive) -> Rule:
        """Read what a rule asks of the caller alone."""
        claim = use.get("claim") or {}
        for word, values in (("rights", use.get("rights")), ("roles", use.get("roles")), ("claim", claim.get("in"))):
            if values == []:
                self._report.add(
                    use.at(word),
                    f"`{word}` of @auth is empty, and lets nobody in: expected one value at least. Name it, or leave "
                    f"`{word}` out",
                )
        return Rule(
            rights=frozenset(Right(name) for name in use.get("rights")),
            roles=frozenset(use.get("roles") or ()),
            claim=claim.get("name"),
            values=frozenset(claim.get("in") or ()),
            anonymous=use.get("anonymous"),
        )

    def _path(self, type_: DeclaredType, item: ItemType, use: Directive, word: str) -> Path | None:
        """Read the field that has to match a claim: one of the item, or one that it names another node by."""
        text: str = use.get(word)["field"]
        first, *rest = text.split(".")
        where = f"`{word}` of `{type_.name}`"
        field = item.fields.get(first)
        if field is None or field.kind is FieldKind.RELATIONSHIP:
            known = [name for name, one in item.fields.items() if one.kind is not FieldKind.RELATIONSHIP]
            self._report.add(
                use.at(word),
                f"{where} is `{text}`: expected a field that its items hold, {listed(known, 'or')}. Name one of "
                f"them{near(first, known)}",
            )
            return None
        if field.kind is FieldKind.REFERENCE:
            named = {".".join((first, *variable.path)) for ref in field.refs.values() for variable in ref.variables}
            if text not in named and not self._report.blames(type_.fields[first].node):
                self._report.add(
                    use.at(word),
                    f"{where} is `{text}`, which the item does not tell of the {field.type.named} that it names: "
                    f"expected {listed(sorted(named), 'or')}. Name one of them",
                )
                return None
            return (first, *rest)
        if rest or field.scalar is None or field.blob is not None:
            self._report.add(
                use.at(word),
                f"{where} is `{text}`, which is no text or number of the item's own: expected a scalar field, or a "
                "list of them. Name one",
            )
            return None
        return (first,)

    # --- tenants: the keys hold them ---

    def _names_tenant(self, type_name: str, path: Path, layout: Layout | None = None) -> bool:
        """Say whether a path leads to the tenant of an item, or of a node that it names."""
        if path in self.tenants.get(type_name, ()):
            return True
        field = self._items[type_name].fields.get(path[0])
        if len(path) == 1 or field is None:
            return False
        end = layout.ends.get(path[0]) if layout is not None else None
        return any(self._names_tenant(target, path[1:]) for target in ((end,) if end else field.refs))

    def _holds_tenant(self, layout: Layout, templates: Iterable[Template]) -> bool:
        return any(self._names_tenant(layout.type_name, path, layout) for path in _variables(templates))

    def _tenants_named(self, item: ItemType) -> Iterator[Path]:
        """List where the keys of an item name a tenant: they must all be the same one."""
        for layout in item.layouts:
            for path in _variables(layout.templates.values()):
                if self._names_tenant(item.name, path, layout):
                    yield path

    def _is_in_partition(self, type_: DeclaredType, item: ItemType, use: Directive, path: Path) -> bool:
        for layout in item.layouts:
            index = self._tables.stored(layout.table).primary
            if not self._holds_tenant(layout, layout.partition(index)) and not self._report.blames(type_.node):
                self._report.add(
                    use.at("tenant"),
                    f"`tenant` of `{type_.name}` is `{'.'.join(path)}`, and the partition key of its items does not "
                    "hold it: expected it there, so that what belongs to others is never read. Write it into the "
                    f'template, like partition: "{{{".".join(path)}}}#…"',
                )
                return False
        return True

    def _within_tenant(self, ways: Ways) -> Ways:
        """Keep the ways that read what is of one tenant only, as far as the items have one."""
        return tuple(
            way
            for way in ways
            if all(
                not self.tenants[layout.type_name] or self._holds_tenant(layout, layout.partition(way.index))
                for layout in way.layouts
            )
        )

    def relationships(self, made: Mapping[tuple[str, str], Relationship]) -> dict[tuple[str, str], Relationship]:
        """Give the relationships with those of their ways that stay within a tenant."""
        found = {key: self._relationship(one) for key, one in made.items()}
        for (type_name, name), one in found.items():
            hops = one.path or (one,)
            if any(not hop.accesses for hop in hops) and all(
                hop.accesses for hop in made[type_name, name].path or (made[type_name, name],)
            ):
                self._report.add(
                    self._declared.items[type_name].fields[name].node,
                    f"`{type_name}.{name}` reads items of {listed(one.item_types)} whatever their tenant: expected an "
                    f"index whose partition key holds it. Write the tenant into what `{type_name}` is named "
                    "by, or into the index's template",
                )
        return found

    def _relationship(self, one: Relationship) -> Relationship:
        path = tuple(self._relationship(hop) for hop in one.path)
        return replace(one, accesses=self._within_tenant(one.accesses), path=path)

    def lookups(self, made: Mapping[str, Ways]) -> dict[str, Ways]:
        """Give the ways of lookups that stay within a tenant."""
        return {name: self._within_tenant(ways) for name, ways in made.items()}


def _held(item: ItemType) -> set[str]:
    """Name the fields that the keys of an item are made of."""
    return {path[0] for layout in item.layouts for path in _variables(layout.templates.values())}


def _variables(templates: Iterable[Template]) -> Iterator[Path]:
    for template in templates:
        yield from (part.path for part in template.parts if isinstance(part, Variable))


def _tenants(type_: DeclaredType) -> frozenset[Path]:
    uses = (use.get("tenant") for use in type_.uses("auth"))
    return frozenset(tuple(tenant["field"].split(".")) for tenant in uses if tenant)
