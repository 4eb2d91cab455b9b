"""What writes fill in by themselves: versions, defaults and counters, each where it can be kept right."""

from __future__ import annotations

from collections.abc import Mapping

from graph.model import Count, Default, FieldKind, ItemType, Moment, Relationship
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType, Directive
from resolvers.sdl.paths import keyed
from resolvers.sdl.report import Report, listed, near

FILLED = ("version", "count", "default")
INTEGERS = ("Int", "BigInt")
NUMBERS = (*INTEGERS, "Float", "Decimal")
TIMES = ("DateTime", "Date", *INTEGERS)
TEXTS = ("ID", "String")


def default_of(field: DeclaredField) -> Default | None:
    """Make the default of a field."""
    use = field.directives.get("default")
    if use is None:
        return None
    return Default(Moment[use.get("now")] if use.get("now") else None, bool(use.get("uuid")))


def count_of(field: DeclaredField) -> Count | None:
    """Make the counter that a field is."""
    use = field.directives.get("count")
    if use is None:
        return None
    relationship, _, number = str(use.get("of")).partition(".")
    return Count(relationship, number or None)


class Upkeep:
    """Looks at the fields that writes fill in, and reports those that they could not."""

    def __init__(
        self,
        declared: Declarations,
        items: Mapping[str, ItemType],
        relationships: Mapping[tuple[str, str], Relationship],
        report: Report,
    ) -> None:
        self._declared = declared
        self._items = items
        self._relationships = relationships
        self._report = report
        self._keyed = keyed(items)

    def check(self) -> None:
        """Report every field that cannot be kept right."""
        for type_ in self._declared.types.values():
            for field in type_.fields.values():
                found = [name for name in FILLED if name in field.directives]
                if found and not self._report.blames(field.node):
                    self._check(type_, field, found)
            self._check_versions(type_)

    def _check(self, type_: DeclaredType, field: DeclaredField, found: list[str]) -> None:
        where, use = f"`{type_.name}.{field.name}`", field.directives[found[0]]
        if not type_.keys or type_.keys[0].get("virtual"):
            # Of a type whose directives have a mistake nobody knows what kind of type it was meant to be.
            if not self._report.blames(*self._declared.directives(type_.name)):
                self._report.add(
                    use.node,
                    f"{where}: writes fill in fields of items, and this is none of an item's own: expected "
                    f"@{found[0]} on a field of a type with @node or @edge that is not virtual. Move it there",
                )
        elif len(found) > 1 or ("ttl" in field.directives and found != ["default"]):
            both = [*found, *(["ttl"] if "ttl" in field.directives else [])]
            self._report.add(
                use.node,
                f"{where} has {' and '.join(f'@{name}' for name in both)}: expected one of them, for each says by "
                "itself what the value is. Remove the others, or move them to fields of their own",
            )
        elif found == ["default"]:
            self._check_default(where, use, field)
        elif template := self._keyed.get((type_.name, field.name)):
            self._report.add(
                use.node,
                f"{where} has @{found[0]} and is part of the key {template.source!r}, which would change whenever it "
                "counts: expected a field that no key holds. Take it out of the key, or remove "
                f"@{found[0]}",
            )
        elif found == ["version"]:
            self._check_type(where, use, field, "the number of an item's writes", INTEGERS)
        elif self._check_type(where, use, field, "a counter", NUMBERS):
            self._check_count(where, use, type_, field)

    def _check_type(
        self, where: str, use: Directive, field: DeclaredField, what: str, expected: tuple[str, ...]
    ) -> bool:
        if field.type.of is None and field.type.name in expected:
            return True
        self._report.add(
            field.node,
            f"{where} is {field.type}, and cannot hold {what}: expected {listed(expected, 'or')}. Change its type, or "
            f"remove @{use.node.name.value}",
        )
        return False

    def _check_versions(self, type_: DeclaredType) -> None:
        marked = [field for field in type_.fields.values() if "version" in field.directives]
        for field in marked[1:]:
            if not self._report.blames(field.node):
                self._report.add(
                    field.directives["version"].node,
                    f"`{type_.name}.{field.name}`: `{marked[0].name}` counts the writes already: expected one @version "
                    "in a type. Remove one of them",
                )

    def _check_default(self, where: str, use: Directive, field: DeclaredField) -> None:
        now, uuid = use.get("now"), use.get("uuid")
        if bool(now) == bool(uuid):
            self._report.add(
                use.node,
                f"{where}: this @default says {'two things' if now else 'nothing'}: expected `now` or `uuid`. Write "
                "@default(now: CREATE), @default(now: WRITE) or @default(uuid: true)",
            )
        elif now:
            self._check_type(where, use, field, "the time of a write", TIMES)
        else:
            self._check_type(where, use, field, "a UUID", TEXTS)

    # --- counters ---

    def _check_count(self, where: str, use: Directive, type_: DeclaredType, field: DeclaredField) -> None:
        count = count_of(field)
        assert count is not None
        known = [
            entry.name
            for entry in type_.fields.values()
            if entry.is_relationship and entry.type.of is not None and not entry.directives["relationship"].get("path")
        ]
        if count.relationship not in known:
            self._report.add(
                use.at("of"),
                f"{where} counts `{use.get('of')}`: expected a list of `{type_.name}` that is a relationship without a "
                f'path, {listed(known, "or")}, or a number in it. Write @count(of: "…") with its name'
                f"{near(count.relationship, known)}",
            )
        elif (type_.name, count.relationship) in self._relationships:
            read = self._relationships[type_.name, count.relationship].item_types
            self._check_expiry(where, use, read)
            if count.field is not None:
                self._check_sum(where, use, count.field, read)

    def _check_expiry(self, where: str, use: Directive, read: tuple[str, ...]) -> None:
        """Report a counter of items that go without a write."""
        expiring = [name for name in read if self._items[name].expiry is not None]
        if expiring:
            self._report.add(
                use.at("of"),
                f"{where} counts {listed(expiring)}, whose items expire by @ttl without a write that could count them "
                "off: expected items that stay. Ask for `totalCount` instead, or remove @ttl",
            )

    def _check_sum(self, where: str, use: Directive, number: str, read: tuple[str, ...]) -> None:
        """Report a sum of what is no number, or of one that a write does not give as it is."""
        known = [name for name in self._items[read[0]].fields if all(self._is_plain(item, name) for item in read)]
        if number not in known:
            self._report.add(
                use.at("of"),
                f"{where} adds up `{number}` of {listed(read)}: expected a number of theirs that no key holds and "
                f"no directive fills in, {listed(known, 'or')}. Name one of them{near(number, known)}",
            )

    def _is_plain(self, item: str, name: str) -> bool:
        made, written = self._items[item].fields.get(name), self._declared.items[item].fields.get(name)
        return (
            made is not None
            and written is not None
            and made.kind is FieldKind.ATTRIBUTE
            and made.type.name in NUMBERS
            and (item, name) not in self._keyed
            and not any(filled in written.directives for filled in FILLED)
        )
