"""From @find to access patterns: what the arguments bind, and which index serves them."""

from __future__ import annotations

from collections.abc import Mapping

from graph.model import Access, Argument, Find, ItemType
from resolvers.sdl.accesses import SOME_VALUE, accesses, strong
from resolvers.sdl.arguments import Arguments
from resolvers.sdl.declarations import Declarations, DeclaredField, deprecation
from resolvers.sdl.layouts import is_whole
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.tables import Tables


class Finds:
    """Resolves the fields of Query; what cannot be resolved is reported."""

    def __init__(
        self,
        declared: Declarations,
        arguments: Arguments,
        tables: Tables,
        items: Mapping[str, ItemType],
        report: Report,
    ) -> None:
        self._declared = declared
        self._arguments = arguments
        self._tables = tables
        self._items = items
        self._report = report

    def all(self) -> dict[str, Find]:
        """Resolve every field of Query."""
        made: dict[str, Find] = {}
        for field in self._declared.query.fields.values() if self._declared.query else ():
            others = [use.node for name, use in field.directives.items() if name not in ("find", "deprecated")]
            if others and not self._report.blames(others[0]):
                self._report.add(
                    others[0],
                    f"`Query.{field.name}` has @{others[0].name.value}, which is for fields of items: expected @find. "
                    "Write that instead",
                )
            elif not self._report.blames(field.node) and (find := self._find(field)) is not None:
                made[field.name] = find
        return made

    def _find(self, field: DeclaredField) -> Find | None:
        where = f"`Query.{field.name}`"
        use = field.directives.get("find")
        if use is None:
            self._report.add(
                field.node,
                f"{where} does not say what it finds: expected @find, with what it searches by as arguments. "
                f"Write `{field.name}: [{field.type.named}!]! @find`",
            )
            return None
        targets = self._declared.possible(field.type.named)
        if not targets:
            named = self._declared.nodes.get(field.type.named)
            if named is None or not self._report.blames(named):
                self._report.add(
                    field.node,
                    f"{where} finds items, but `{field.type.named}` has none: expected a type with @node or @edge. "
                    f"Give it @node, or name another type{near(field.type.named, self._items)}",
                )
            return None
        subject = self._subject(field, targets)
        if subject is None:
            return None
        item_types, end = subject
        arguments = self._arguments.of(field, self._items[item_types[0]])
        is_list, scan = field.type.of is not None, bool(use.get("scan"))
        if (field.type.of is not None and field.type.of.of is not None) or (scan and not is_list):
            self._report.add(
                field.node,
                f"{where} gives {field.type}: expected a list{', for a scan finds many' if scan else ', or one item'}. "
                f"Write `{field.name}: [{field.type.named}!]!`",
            )
            return None
        if arguments is None:
            return None
        ways = () if scan else self._ways(field, item_types, arguments)
        if ways and use.get("consistent") and not strong(ways):
            self._report.add(
                use.at("consistent"),
                f"{where} is read from the global index `{ways[0].index.name}`, which is always a little behind: "
                "expected `consistent` only where the table or a local index serves. Remove it",
            )
        ways = strong(ways) if use.get("consistent") else ways
        if not ways and not scan:
            return None
        return Find(
            field.name,
            field.type,
            item_types,
            targets,
            is_list,
            arguments,
            ways,
            end,
            scan,
            use.get("sort") == "DESC",
            bool(use.get("consistent")),
            _is_distinct(arguments, ways, end),
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
        known = [name for name in self._items[targets[0]].fields if all(name in self._items[t].fields for t in targets)]
        unknown = next(argument for argument in field.node.arguments or () if argument.name.value not in known)
        self._report.add(
            unknown,
            f"`Query.{field.name}`: the argument `{unknown.name.value}` names no field of {field.type.named}, nor of "
            f"an edge type that leads there with all arguments: expected {listed(known, 'or')}. Rename it to "
            f"the field that it searches by{near(unknown.name.value, known)}",
        )
        return None

    # --- the ways that serve it ---

    def _ways(
        self, field: DeclaredField, item_types: tuple[str, ...], arguments: tuple[Argument, ...]
    ) -> tuple[Access, ...]:
        layouts = [layout for name in item_types for layout in self._items[name].layouts]
        values = [argument for argument in arguments if argument.range_fields is None]
        given = {argument.path: SOME_VALUE for argument in values}
        required = {argument.path: SOME_VALUE for argument in values if argument.type.required}
        ways = accesses(self._tables, layouts, given)
        if accesses(self._tables, layouts, required):
            return ways
        are_whole = all(is_whole(self._declared.items[name], self._items[name].layouts) for name in item_types)
        if not are_whole or not self._tables.are_sure:
            return ()
        where, optional = f"`Query.{field.name}`", [argument for argument in values if not argument.type.required]
        if ways:
            written = " and ".join(f"`{argument.name}: {argument.type}!`" for argument in optional)
            self._report.add(
                field.node,
                f"{where} can be served only when {listed(argument.name for argument in optional)} is given: expected "
                f"required arguments for a partition key. Write {written}",
            )
            return ()
        self._report.add(
            field.node,
            f"{where}: {self._missing_index(self._items[item_types[0]], arguments)}, or @find(scan: true), "
            "which reads the whole table each time",
        )
        return ()

    def _missing_index(self, item: ItemType, arguments: tuple[Argument, ...]) -> str:
        """Say which index would serve a pattern."""
        values = [argument for argument in arguments if argument.range_fields is None]
        ranges = [argument for argument in arguments if argument.range_fields is not None]
        if not values:
            sort = f', sort: "{{{ranges[0].name}}}"' if ranges else ""
            return (
                "no index has a partition key that is known without an argument. Expected one that many items share, "
                f'like `@indexed(by: "…", partition: "{item.name}"{sort})` on `{item.name}`'
            )
        first, *others = [*values, *ranges]
        sort = f', sortKey: "{item.fields[others[0].name].attribute}"' if others else ""
        return (
            f"no index has {listed(argument.name for argument in values)} alone in its partition key. Expected "
            f'`@index(name: "…", partitionKey: "{item.fields[first.name].attribute}"{sort})`'
        )


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
