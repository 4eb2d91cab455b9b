"""From @find to access patterns: what the arguments bind, and which index serves them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from graph.keys import Path
from graph.model import Access, Argument, Find, ItemType
from graph.planner import is_bound
from resolvers.sdl.accesses import SOME_VALUE, accesses, strong
from resolvers.sdl.arguments import Arguments
from resolvers.sdl.declarations import Declarations, DeclaredField, Directive, deprecation
from resolvers.sdl.layouts import is_whole
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.tables import Tables

OF_QUERY = ("find", "auth", "cacheControl", "deprecated")
"""The directives of Query's fields."""


class Finds:
    """Resolves the fields of Query; what cannot be resolved is reported."""

    def __init__(
        self,
        declared: Declarations,
        arguments: Arguments,
        tables: Tables,
        items: Mapping[str, ItemType],
        tenants: Mapping[str, frozenset[Path]],
        report: Report,
    ) -> None:
        """Take the fields that hold the tenant of each type: who reads within one need not say which."""
        self._declared = declared
        self._tenants = tenants
        self._arguments = arguments
        self._tables = tables
        self._items = items
        self._report = report

    def all(self) -> dict[str, Find]:
        """Resolve every field of Query."""
        made: dict[str, Find] = {}
        for field in self._declared.query.fields.values() if self._declared.query else ():
            others = [use.node for name, use in field.directives.items() if name not in OF_QUERY]
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
        use, targets = field.directives.get("find"), self._targets(field)
        subject = self._subject(field, targets) if targets else None
        if use is None or subject is None:
            return None
        item_types, end = subject
        arguments = self._arguments.of(field, self._items[item_types[0]])
        ways = None if arguments is None else self._ways(field, use, item_types, arguments)
        if arguments is None or ways is None:
            return None
        # A list of distinct nodes is one whatever is asked for: it is read in no other way then.
        distinct = tuple(way for way in ways if _is_distinct(arguments, way, end))
        is_distinct = ways[:1] == distinct[:1] and any(_is_always_open(arguments, way) for way in distinct)
        return Find(
            name=field.name,
            type=field.type,
            item_types=item_types,
            targets=targets,
            many=field.type.of is not None,
            arguments=arguments,
            accesses=distinct if is_distinct else ways,
            end=end,
            scan=use.get("scan"),
            descending=use.get("sort") == "DESC",
            consistent=use.get("consistent"),
            is_distinct=is_distinct,
            description=field.description,
            deprecation_reason=deprecation(field.node),
        )

    def _targets(self, field: DeclaredField) -> tuple[str, ...]:
        """List the types that a field finds; none when it is not written as a find."""
        where, use, name = f"`Query.{field.name}`", field.directives.get("find"), field.type.named
        targets = self._declared.possible(name)
        if use is None:
            self._report.add(
                field.node,
                f"{where} does not say what it finds: expected @find, with what it searches by as arguments. "
                f"Write `{field.name}: [{name}!]! @find`",
            )
            return ()
        if not targets and not self._report.blames(*filter(None, [self._declared.nodes.get(name)])):
            self._report.add(
                field.node,
                f"{where} finds items, but `{name}` has none: expected a type with @node or @edge. Give it @node, or "
                f"name another type{near(name, self._items)}",
            )
        is_list, scan = field.type.of is not None, use.get("scan")
        if targets and ((field.type.of and field.type.of.of) or (scan and not is_list)):
            self._report.add(
                field.node,
                f"{where} gives {field.type}: expected a list{', for a scan finds many' if scan else ', or one item'}. "
                f"Write `{field.name}: [{name}!]!`",
            )
            return ()
        return targets

    def _subject(self, field: DeclaredField, targets: tuple[str, ...]) -> tuple[tuple[str, ...], str | None] | None:
        """Decide which items are searched: the targets themselves, or the edges that lead to them."""
        names = [argument.name.value for argument in field.node.arguments or ()]
        known = [name for name in self._items[targets[0]].fields if all(name in self._items[t].fields for t in targets)]
        if set(names) <= set(known):
            if any(self._items[target].virtual for target in targets):
                self._report.add(
                    field.node,
                    f"`Query.{field.name}` finds {field.type.named}, which is virtual and has no items: expected a "
                    "type with items, or an argument of edges that lead to it. Name an edge's field as an argument, or "
                    "remove `virtual`",
                )
                return None
            return targets, None
        for item in self._items.values():
            ends = [
                entry.name
                for entry in item.references
                if set(self._declared.possible(entry.type.named)) == set(targets)
            ]
            if not item.is_node and ends and all(name in item.fields for name in names):
                return (item.name,), ends[0]
        unknown = next(argument for argument in field.node.arguments or () if argument.name.value not in known)
        self._report.add(
            unknown,
            f"`Query.{field.name}`: the argument `{unknown.name.value}` names no field of {field.type.named}, nor of "
            f"an edge type that leads there with all arguments: expected {listed(known, 'or')}. Rename it to the field "
            f"that it searches by{near(unknown.name.value, known)}",
        )
        return None

    # --- the ways that serve it ---

    def _ways(
        self, field: DeclaredField, use: Directive, item_types: tuple[str, ...], arguments: tuple[Argument, ...]
    ) -> tuple[Access, ...] | None:
        """List the ways to the items; a scan needs none. None when nothing serves."""
        if use.get("scan"):
            return ()
        ways = self._served(field, item_types, arguments)
        if not ways or not use.get("consistent"):
            return ways or None
        if not strong(ways):
            self._report.add(
                use.at("consistent"),
                f"`Query.{field.name}` is read from the global index `{ways[0].index.name}`, which is always a little "
                "behind: expected `consistent` only where the table or a local index serves. Remove it",
            )
        return strong(ways) or None

    def _served(
        self, field: DeclaredField, item_types: tuple[str, ...], arguments: tuple[Argument, ...]
    ) -> tuple[Access, ...]:
        layouts = [layout for name in item_types for layout in self._items[name].layouts]
        values = [argument for argument in arguments if argument.range_fields is None]
        known = {} if field.auth else dict.fromkeys(chain(*(self._tenants[name] for name in item_types)), SOME_VALUE)
        given = known | {argument.path: SOME_VALUE for argument in values}
        required = known | {argument.path: SOME_VALUE for argument in values if argument.type.required}
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
        else:
            self._report.add(
                field.node,
                f"{where}: {self._missing_index(self._items[item_types[0]], arguments)}, or @find(scan: true), which "
                "reads the whole table each time",
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


def _is_always_open(arguments: tuple[Argument, ...], way: Access) -> bool:
    """Say whether the required arguments alone bind the partition key."""
    required = {argument.path: SOME_VALUE for argument in arguments if argument.type.required}
    return all(is_bound(layout, way.index, required) for layout in way.layouts)


def _is_distinct(arguments: tuple[Argument, ...], way: Access, end: str | None) -> bool:
    """Say whether several partitions are read whose items name a node by their whole sort key."""
    several = {argument.path for argument in arguments if argument.type.of is not None}
    return (
        end is not None
        and way.index.sort_keys != ()
        and all(
            any(variable.path in several for template in layout.partition(way.index) for variable in template.variables)
            and all(variable.path[0] == end for template in layout.sort(way.index) for variable in template.variables)
            for layout in way.layouts
        )
    )
