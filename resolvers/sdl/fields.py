"""From declared fields to fields that know where their values come from, of items and of what lies inside items."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graph import codec
from graph.codec import Read, Write
from graph.keys import Template
from graph.model import Field, FieldKind, ObjectType, TypeRef
from graph.requests import key_attribute
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType, Directive, deprecation
from resolvers.sdl.report import Report, listed
from resolvers.sdl.templates import Templates, Written
from resolvers.sdl.upkeep import count_of, default_of


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


IN_SETS = ("ID", "String", "Int", "Float", "BigInt", "Decimal", "Base64")
"""Scalars that DynamoDB has sets of; enums are texts too."""

ATTRIBUTE_CASES: Mapping[str, Callable[[str], str]] = {"AS_WRITTEN": str, "PASCAL": _pascal, "SNAKE": _snake}


class Fields:
    """Makes the fields of types; `case` is the name of the rule that makes attribute names of field names."""

    def __init__(self, declared: Declarations, templates: Templates, report: Report) -> None:
        self._declared = declared
        self._templates = templates
        self._report = report
        self._nested: dict[tuple[str, str], ObjectType] = {}

    def of(self, type_: DeclaredType, case: str) -> dict[str, Field]:
        """Make the fields of a type; what cannot be stored as declared is reported."""
        made = {field.name: self._field(type_, field, case) for field in type_.fields.values()}
        self._check_attributes(type_, made)
        return made

    def nested(self, name: str, case: str) -> ObjectType:
        """Make a type that lies inside items, or an interface, once for each case."""
        if (name, case) not in self._nested:
            declared = self._declared.objects.get(name) or self._declared.interfaces[name]
            is_interface = name in self._declared.interfaces
            self._nested[name, case] = ObjectType(
                name, self.of(declared, case), declared.interfaces, is_interface, declared.description
            )
        return self._nested[name, case]

    def _field(self, type_: DeclaredType, field: DeclaredField, case: str) -> Field:
        use = field.directives.get("attribute")
        attribute = use.get("name") if use else None
        kind = self._kind(field)
        self._check_name(type_, field)
        self._check_kind(type_, field, kind)
        refs = self._refs(field, use) if kind is FieldKind.REFERENCE else {}
        self._check_directives(type_, field, kind)
        if field.node.arguments:
            self._report.add(
                field.node.arguments[0],
                f"`{type_.name}.{field.name}` takes arguments: expected them on fields of Query only. Remove them; "
                "lists get their paging and filter arguments by themselves",
            )
        return Field(
            field.name,
            field.type,
            kind,
            ATTRIBUTE_CASES[case](field.name) if attribute is None else attribute,
            self._templates.scalar(field.type.named),
            self._reader(field.type, case) if kind is FieldKind.ATTRIBUTE else lambda value: value,
            refs,
            field.description,
            deprecation(field.node),
            self._writer(field, kind, case),
            is_set=_is_set(field),
            default=default_of(field),
            count=count_of(field),
        )

    # --- what a field may be, and where ---

    def _kind(self, field: DeclaredField) -> FieldKind:
        if field.is_relationship:
            return FieldKind.RELATIONSHIP
        return FieldKind.REFERENCE if self._declared.possible(field.type.named) else FieldKind.ATTRIBUTE

    def _check_kind(self, type_: DeclaredType, field: DeclaredField, kind: FieldKind) -> None:
        """Report a field that its type cannot have."""
        where, is_list = f"`{type_.name}.{field.name}`", field.type.of is not None
        if kind is FieldKind.ATTRIBUTE:
            self._check_value(where, field)
        elif not self._may_lead_on(type_, field, kind):
            what = "is a relationship" if kind is FieldKind.RELATIONSHIP else "leads to other items"
            self._report.add(field.node, f"{where} {what}: {self._nodes_only(type_, field)}")
        elif kind is FieldKind.REFERENCE and is_list and type_.keys:
            self._report.add(
                field.node,
                f"{where} is a list of {field.type.named}, which are items of their own: expected a relationship, read "
                f"by a Query. Write `{field.name}: {field.type} @relationship`",
            )

    def _may_lead_on(self, type_: DeclaredType, field: DeclaredField, kind: FieldKind) -> bool:
        if self._report.blames(*self._declared.directives(type_.name)):
            return True  # Nobody knows what kind of type it was meant to be.
        if kind is FieldKind.RELATIONSHIP:
            return type_.is_node
        return bool(type_.keys) or (type_.name in self._declared.interfaces and field.type.of is None)

    def _nodes_only(self, type_: DeclaredType, field: DeclaredField) -> str:
        if type_.name in self._declared.interfaces:
            return (
                "each type reads it through keys of its own, so expected no such field in an interface. Leave it out "
                f"of `{type_.name}` and declare it in the types"
            )
        if type_.is_edge:
            return f"expected relationships on nodes only. Declare `{field.name}` on one of the ends of `{type_.name}`"
        return (
            f"`{type_.name}` lies inside items, so expected only values in it. Move `{field.name}` to the type with "
            f"@node, or give `{type_.name}` items with @node"
        )

    def _check_value(self, where: str, field: DeclaredField) -> None:
        name = field.type.named
        if name in self._declared.unions or name in self._declared.interfaces:
            members = [
                *(self._declared.unions[name].members if name in self._declared.unions else ()),
                *(type_.name for type_ in self._declared.types.values() if name in type_.interfaces),
            ]
            if not self._report.blames(
                self._declared.nodes[name],
                *(self._declared.nodes[one] for one in members if one in self._declared.nodes),
            ):
                self._report.add(
                    field.node,
                    f"{where} may be one of {listed(members)}, and a map in an item does not say which one it is: "
                    "expected one of them, or types with items. Declare the one, or give them @node",
                )
        if name == "Query":
            self._report.add(
                field.node,
                f"{where} is the root itself, which no item holds: expected a scalar, an enum or another type. Remove "
                "it",
            )

    def _check_name(self, type_: DeclaredType, field: DeclaredField) -> None:
        where = f"`{type_.name}.{field.name}`"
        if field.name == "id" and type_.is_node:
            self._report.add(
                field.node,
                f"{where}: `id` is the global id, which every node has already: expected another name. Rename the "
                "field, "
                f'and if its attribute is called `id` write `number: {field.type} @attribute(name: "id")`',
            )
        if field.name in ("cursor", "node") and type_.is_edge:
            self._report.add(
                field.node,
                f"{where}: Relay's edges have a `{field.name}` of their own, beside the fields of this type: expected "
                f'another name. Rename the field and keep its attribute with @attribute(name: "{field.name}")',
            )

    def _check_directives(self, type_: DeclaredType, field: DeclaredField, kind: FieldKind) -> None:
        where = f"`{type_.name}.{field.name}`"
        if (use := field.directives.get("find")) is not None:
            self._report.add(use.node, f"{where}: expected @find on fields of Query only. Use @relationship here")
        if (use := field.directives.get("ttl")) is not None and not type_.keys:
            self._report.add(
                use.node,
                f"{where}: DynamoDB deletes items, not what lies in them: expected @ttl on a field of a type with "
                "@node or @edge. Move it there",
            )
        if (use := field.directives.get("attribute")) is not None:
            self._check_attribute(where, use, field, kind)

    def _check_attribute(self, where: str, use: Directive, field: DeclaredField, kind: FieldKind) -> None:
        if kind is FieldKind.RELATIONSHIP:
            self._report.add(
                use.node,
                f"{where} is a relationship, which is read by a Query and kept in no attribute: expected @relationship "
                "or @attribute. Remove one of them",
            )
        elif use.get("ref") is not None and kind is not FieldKind.REFERENCE:
            self._report.add(
                use.at("ref"),
                f"{where} is a value, and `ref` says how an attribute names another node: expected it on a field of a "
                "node type. Remove `ref`",
            )
        elif use.get("set") and not self._may_be_set(field.type):
            self._report.add(
                use.at("set"),
                f"{where} is {field.type}, which DynamoDB has no sets of: expected a list, without nulls, of "
                f"{', '.join(IN_SETS)} or an enum. Write it like [String!], or remove `set`",
            )
        elif use.get("name") == "" or (use.get("name") is None and use.get("ref") is None and not use.get("set")):
            self._report.add(
                use.at("name"),
                f'{where}: this @attribute names no attribute: expected @attribute(name: "…"). Write the name, or '
                "remove "
                "the directive",
            )

    def _may_be_set(self, type_: TypeRef) -> bool:
        of = type_.of
        return of is not None and of.required and (of.name in IN_SETS or of.name in self._declared.enums)

    def _check_attributes(self, type_: DeclaredType, made: Mapping[str, Field]) -> None:
        first: dict[str, str] = {}
        for field in made.values():
            if field.kind is not FieldKind.ATTRIBUTE:
                continue
            if field.attribute in first:
                self._report.add(
                    type_.fields[field.name].node,
                    f"`{type_.name}.{field.name}` is kept in the attribute `{field.attribute}`, as "
                    f"`{type_.name}.{first[field.attribute]}` is: expected an attribute for each field. Remove one of "
                    "them, or name another attribute with @attribute(name: …)",
                )
            first.setdefault(field.attribute, field.name)

    # --- what the attributes hold ---

    def _refs(self, field: DeclaredField, use: Directive | None) -> dict[str, Template]:
        own = use.get("ref") if use else None
        refs: dict[str, Template] = {}
        if field.type.of is not None or self._report.blames(field.node):
            return refs
        for member in self._declared.possible(field.type.named):
            if use is not None and own is not None:
                ref = self._templates.resolve(Written(own, member, use.at("ref")))
            else:
                ref = self._templates.ref(member, field.node)
            if ref is not None:
                refs[member] = ref
        return refs

    def _reader(self, type_: TypeRef, case: str) -> Read:
        if type_.of is not None:
            return codec.list_of(codec.optional(self._reader(type_.of, case)))
        scalar = self._templates.scalar(type_.name)
        return scalar.read if scalar is not None else codec.map_of(lambda: self._map_readers(type_.name, case))

    def _map_readers(self, name: str, case: str) -> dict[str, tuple[str, Read]]:
        return {
            field.name: (field.attribute, codec.optional(field.read))
            for field in self.nested(name, case).fields.values()
        }

    def _writer(self, field: DeclaredField, kind: FieldKind, case: str) -> Write:
        if kind is not FieldKind.ATTRIBUTE:
            return key_attribute
        if _is_set(field) and self._may_be_set(field.type):
            return codec.as_set(self._type_writer(field.type.of or field.type, case))
        # DynamoDB lets items expire by numbers alone.
        if "ttl" in field.directives and field.type.name == "DateTime":
            return codec.as_seconds
        return self._type_writer(field.type, case)

    def _type_writer(self, type_: TypeRef, case: str) -> Write:
        if type_.of is not None:
            return codec.as_list(codec.or_null(self._type_writer(type_.of, case)))
        scalar = self._templates.scalar(type_.name)
        return scalar.write if scalar is not None else codec.as_map(lambda: self._map_writers(type_.name, case))

    def _map_writers(self, name: str, case: str) -> dict[str, tuple[str, Write]]:
        return {field.name: (field.attribute, field.write) for field in self.nested(name, case).fields.values()}


def _is_set(field: DeclaredField) -> bool:
    use = field.directives.get("attribute")
    return use is not None and bool(use.get("set"))
