"""From @find to access patterns: what the arguments bind, and which index serves them."""

from __future__ import annotations

from collections.abc import Mapping

from graphql import InputValueDefinitionNode

from graph.keys import Path
from graph.model import Access, Argument, FieldKind, Find, ItemType, RangeInput, Table
from resolvers.sdl.accesses import SOME_VALUE, accesses, paths_of, strong
from resolvers.sdl.declarations import Declarations, DeclaredField, deprecation, type_ref
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.templates import Templates
from resolvers.sdl.words import PAGING_ARGUMENTS


class Finds:
    """Resolves the fields of Query, and the lookups that every item type gets; what cannot be resolved is reported."""

    def __init__(
        self,
        declared: Declarations,
        templates: Templates,
        tables: Mapping[str, Table],
        items: Mapping[str, ItemType],
        report: Report,
    ) -> None:
        self._declared = declared
        self._templates = templates
        self._tables = tables
        self._items = items
        self._report = report
        self.inputs: dict[str, RangeInput] = {}

    def all(self) -> dict[str, Find]:
        """Resolve every field of Query."""
        made: dict[str, Find] = {}
        for field in self._declared.query.fields.values() if self._declared.query else ():
            if "find" not in field.directives:
                self._report.add(
                    field.node,
                    f"`Query.{field.name}` has no @find: expected `{field.name}: [{field.type.named}!]! @find`, with "
                    "the fields "
                    "that it searches by as arguments",
                )
            elif (find := self._find(field)) is not None:
                made[field.name] = find
        return made

    def _find(self, field: DeclaredField) -> Find | None:
        use, where = field.directives["find"], f"`Query.{field.name}`"
        targets = self._declared.possible(field.type.named)
        if not targets:
            self._report.add(
                field.node,
                f"{where} finds items, but `{field.type.named}` has none: expected a type with @node or @edge",
            )
            return None
        subject = self._subject(field, targets)
        if subject is None:
            return None
        item_types, end = subject
        arguments = [self._argument(field, item_types[0], argument) for argument in field.node.arguments or ()]
        if None in arguments:
            return None
        known = tuple(argument for argument in arguments if argument is not None)
        if use.get("scan"):
            if field.type.of is None:
                self._report.add(use.at("scan"), f"{where}: a scan finds many items: expected `[{field.type.named}!]!`")
            ways: tuple[Access, ...] = ()
        else:
            ways = self._find_accesses(field, item_types, known)
            if ways and use.get("consistent") and not strong(ways):
                self._report.add(
                    use.at("consistent"),
                    f"{where} is read from the index `{ways[0].index.name}`, and a global index cannot be read "
                    "consistently: remove `consistent`",
                )
            ways = strong(ways) if use.get("consistent") else ways
            if not ways:
                return None
        return Find(
            field.name,
            field.type,
            item_types,
            targets,
            field.type.of is not None,
            known,
            ways,
            end,
            bool(use.get("scan")),
            use.get("sort") == "DESC",
            bool(use.get("consistent")),
            _is_distinct(known, ways, end),
            field.description,
            deprecation(field.node),
        )

    def _subject(self, field: DeclaredField, targets: tuple[str, ...]) -> tuple[tuple[str, ...], str | None] | None:
        """Decide which items are searched: the targets themselves, or the edges that lead to them."""
        names = [argument.name.value for argument in field.node.arguments or ()]
        if all(name in self._items[target].fields for target in targets for name in names):
            return targets, None
        for item in self._items.values():
            ends = [
                entry.name
                for entry in item.references
                if set(self._declared.possible(entry.type.named)) == set(targets)
            ]
            if not item.is_node and ends and all(name in item.fields for name in names):
                return (item.name,), ends[0]
        known = self._items[targets[0]].fields
        unknown = next(argument for argument in field.node.arguments or () if argument.name.value not in known)
        self._report.add(
            unknown,
            f"`Query.{field.name}`: the argument `{unknown.name.value}` names no field of {field.type.named}: "
            "expected one of "
            f"{listed(known)}.{near(unknown.name.value, known)}",
        )
        return None

    def _argument(self, field: DeclaredField, item_name: str, node: InputValueDefinitionNode) -> Argument | None:
        name, type_ = node.name.value, type_ref(node.type)
        where = f"`Query.{field.name}({name}:)`"
        if name == "info":
            self._report.add(
                node, f"{where}: an argument cannot be named `info`, which resolvers use themselves: rename it"
            )
            return None
        if name in PAGING_ARGUMENTS:
            self._report.add(node, f"{where}: every connection has an argument `{name}` of its own: rename it")
            return None
        bound = self._items[item_name].fields[name]
        path: Path = (name,)
        scalar = bound.scalar
        if bound.kind is FieldKind.REFERENCE and len(bound.refs) == 1:
            (ref,) = bound.refs.values()
            if len(ref.variables) == 1:
                path, scalar = (name, *ref.variables[0].path), ref.variables[0].scalar
        if scalar is None or bound.type.of is not None:
            self._report.add(
                node,
                f"{where}: {item_name}.{name} is {bound.type}, which cannot be searched by: expected a scalar field",
            )
            return None
        if type_.named in self._declared.inputs:
            return self._range_argument(where, node, name, path, scalar.name)
        if type_.named != scalar.name:
            self._report.add(
                node,
                f"{where} is {type_}: expected {scalar.name}, [{scalar.name}!] or an input of two {scalar.name}, as "
                f"{item_name}.{name} is {bound.type}",
            )
            return None
        return Argument(name, path, type_, scalar)

    def _range_argument(
        self, where: str, node: InputValueDefinitionNode, name: str, path: Path, scalar_name: str
    ) -> Argument | None:
        type_ = type_ref(node.type)
        declared = self._declared.inputs[type_.named]
        fields = {entry.name.value: type_ref(entry.type) for entry in declared.fields or ()}
        scalar = self._templates.scalar(scalar_name)
        if (
            set(fields) != {"from", "to"}
            or any(entry.named != scalar_name for entry in fields.values())
            or scalar is None
        ):
            self._report.add(
                node,
                f"{where}: the input `{type_.named}` is not a range: expected `input {type_.named} "
                f"{{ from: {scalar_name}  "
                f"to: {scalar_name} }}`, whose bounds are inclusive",
            )
            return None
        description = declared.description.value if declared.description else None
        self.inputs[type_.named] = RangeInput(type_.named, fields, description)
        return Argument(name, path, type_, scalar, ("from", "to"))

    def _find_accesses(
        self, field: DeclaredField, item_types: tuple[str, ...], arguments: tuple[Argument, ...]
    ) -> tuple[Access, ...]:
        layouts = [layout for name in item_types for layout in self._items[name].layouts]
        required = {
            argument.path: SOME_VALUE
            for argument in arguments
            if argument.type.required and argument.range_fields is None
        }
        given = {argument.path: SOME_VALUE for argument in arguments if argument.range_fields is None}
        if accesses(self._tables, layouts, required):
            return accesses(self._tables, layouts, given)
        item = self._items[item_types[0]]
        where = f"`Query.{field.name}`"
        optional = [argument.name for argument in arguments if not argument.type.required]
        if accesses(self._tables, layouts, given):
            self._report.add(
                field.node,
                f"{where} can be served only when {listed(optional)} is given: declare it required, like "
                f"`{optional[0]}: {arguments[0].type}!`",
            )
        elif arguments:
            attribute = item.fields[arguments[0].name].attribute
            self._report.add(
                field.node,
                f"{where}: no index has {listed(argument.name for argument in arguments)} alone in its partition "
                "key. It would "
                f'take `@index(name: "…", partitionKey: "{attribute}")`, or `@find(scan: true)` to read the whole '
                "table each time",
            )
        else:
            self._report.add(
                field.node,
                f"{where} has no arguments, so no index can serve it: give it the fields to search by, or "
                "`@find(scan: true)` to read the whole table each time",
            )
        return ()

    def lookups(self) -> dict[str, tuple[Access, ...]]:
        """Resolve, for each item type, the ways to an item from the fields that name it."""
        found: dict[str, tuple[Access, ...]] = {}
        for item in self._items.values():
            if item.virtual:
                found[item.name] = ()
                continue
            paths = {variable.path for variable in item.ref.variables} if item.ref else paths_of(item.layouts)
            ways = accesses(self._tables, item.layouts, dict.fromkeys(paths, SOME_VALUE))
            if not ways and item.layouts:
                use = self._declared.items[item.name].uses("node", "edge")[0]
                self._report.add(
                    use.at("ref"),
                    f"`{item.name}` is named by {item.ref.source if item.ref else ''!r}, which does not lead to its "
                    "item: expected "
                    "a `ref` with every field of the partition key",
                )
            found[item.name] = tuple(
                way
                for way in ways
                if any(layout.templates[way.index.partition_key].variables for layout in way.layouts)
            )
        return found


def _is_distinct(arguments: tuple[Argument, ...], ways: tuple[Access, ...], end: str | None) -> bool:
    """Say whether several partitions are read whose items name a node by their whole sort key."""
    if end is None or not ways:
        return False
    several = {argument.path for argument in arguments if argument.type.of is not None}
    index, layouts = ways[0].index, ways[0].layouts
    return index.sort_key is not None and all(
        any(variable.path in several for variable in layout.templates[index.partition_key].variables)
        and all(variable.path[0] == end for variable in layout.templates[index.sort_key].variables)
        for layout in layouts
    )
