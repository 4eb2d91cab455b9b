"""From @relationship and @find to access patterns: which items lead there, and which index serves them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from graphql import InputValueDefinitionNode

from graph.keys import Path
from graph.model import Access, Argument, FieldKind, Find, ItemType, Layout, RangeInput, Relationship, Table
from graph.planner import is_bound
from graph.filters import Bound
from resolvers.sdl.declarations import Declarations, DeclaredField, deprecation, type_ref
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.templates import Templates
from resolvers.sdl.words import PAGING_ARGUMENTS

_ANY = Bound(values=("x",))


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One way that a relationship could mean: items of a type, from one end to the other."""

    item: ItemType
    start: str
    end: str | None
    accesses: tuple[Access, ...]
    needs: tuple[Path, ...]


def accesses(
    tables: Mapping[str, Table], layouts: Iterable[Layout], bound: Mapping[Path, Bound], prefer_copy: str | None = None
) -> tuple[Access, ...]:
    """List the ways to read layouts whose partition keys are bound, best first: tables, local indexes, then global ones.

    The layouts of a mirror that copies the wanted end come before those that do not.
    """
    mirrors: dict[int, list[Layout]] = {}
    for layout in layouts:
        mirrors.setdefault(layout.mirror, []).append(layout)
    found: list[tuple[tuple[int, bool, int], Access]] = []
    for mirror, group in mirrors.items():
        ways = next(table for table in tables.values() if table.name == group[0].table).ways
        for rank, index in enumerate(ways):
            names = [name for name in (index.partition_key, index.sort_key) if name]
            if all(all(name in layout.templates for name in names) for layout in group) and all(
                is_bound(layout.templates[index.partition_key], bound) for layout in group
            ):
                copies = prefer_copy is not None and group[0].copy == prefer_copy
                found.append(((rank, not copies, mirror), Access(index, tuple(group))))
    return tuple(access for _, access in sorted(found, key=lambda entry: entry[0]))


class Links:
    """Resolves relationships and finds; what cannot be resolved is reported."""

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
        self._made: dict[tuple[str, str], Relationship | None] = {}
        self._making: list[str] = []
        self.inputs: dict[str, RangeInput] = {}

    # --- relationships ---

    def relationships(self) -> dict[tuple[str, str], Relationship]:
        """Resolve every relationship of every item type."""
        for name in self._items:
            for field in self._declared.items[name].fields.values():
                if "relationship" in field.directives:
                    self.relationship(name, field.name)
        made = {key: value for key, value in self._made.items() if value is not None}
        return {key: replace(value, inverses=_inverses(value, made)) for key, value in made.items()}

    def relationship(self, source: str, name: str) -> Relationship | None:
        """Resolve one relationship, once."""
        if (source, name) not in self._made:
            mark = f"{source}.{name}"
            field = self._declared.items[source].fields[name]
            if mark in self._making:
                self._report.add(field.node, f"the path of `{mark}` leads back to itself: {' → '.join([*self._making, mark])}")
                return None
            self._making.append(mark)
            self._made[source, name] = self._resolve(source, field)
            self._making.pop()
        return self._made[source, name]

    def _resolve(self, source: str, field: DeclaredField) -> Relationship | None:
        use = field.directives["relationship"]
        targets = self._declared.possible(field.type.named)
        if not targets:
            self._report.add(
                field.node,
                f"`{source}.{field.name}` is a relationship, but `{field.type.named}` has no items of its own: expected a type "
                f"with @node or @edge.{near(field.type.named, self._items)}",
            )
            return None
        if field.type.of is not None and field.type.of.of is not None:
            self._report.add(field.node, f"`{source}.{field.name}` is a list of lists: a relationship is a list, or one node")
            return None
        if use.get("path"):
            return self._path(source, field, targets)
        candidates = self._candidates(source, field, targets)
        if len(candidates) == 1:
            (found,) = candidates
            return Relationship(
                source,
                field.name,
                (found.item.name,),
                targets,
                field.type.of is not None,
                found.start,
                found.end,
                found.accesses,
                found.needs,
            )
        self._report_candidates(source, field, targets, candidates)
        return None

    def _candidates(self, source: str, field: DeclaredField, targets: tuple[str, ...]) -> list[_Candidate]:
        use = field.directives["relationship"]
        found = []
        for item in self._items.values():
            if use.get("through") not in (None, item.name):
                continue
            for start, end in _ends(self._declared, item, source, targets, is_through=use.get("through") is not None):
                if use.get("from") not in (None, start):
                    continue
                if (candidate := self._candidate(item, source, start, end, targets)) is not None:
                    found.append(candidate)
        return found

    def _candidate(
        self, item: ItemType, source: str, start: str, end: str | None, targets: tuple[str, ...]
    ) -> _Candidate | None:
        layouts = [
            layout
            for layout in item.layouts
            if layout.ends.get(start, source) == source and (end is None or layout.ends.get(end, targets[0]) in targets)
        ]
        bound = {path: _ANY for path in _paths(layouts) if path[0] == start}
        # A partition of shards alone is bound as well, but holds everybody's items: the source must be in the key.
        ways = [way for way in accesses(self._tables, layouts, bound, prefer_copy=end) if _needs(way, start)]
        if not ways:
            return None
        needs = _needs(ways[0], start)
        return _Candidate(item, start, end, tuple(way for way in ways if set(_needs(way, start)) <= set(needs)), needs)

    def _report_candidates(
        self, source: str, field: DeclaredField, targets: tuple[str, ...], candidates: list[_Candidate]
    ) -> None:
        use, where = field.directives["relationship"], f"`{source}.{field.name}`"
        if candidates:
            ways = [f'through: "{one.item.name}", from: "{one.start}"' for one in candidates]
            self._report.add(
                use.node,
                f"{where} is ambiguous: {len(candidates)} ways lead from {source} to {field.type.named}. Say which one: "
                + " or ".join(f"@relationship({way})" for way in ways),
            )
            return
        through, start = use.get("through"), use.get("from")
        if through is not None and through not in self._items:
            self._report.add(
                use.at("through"),
                f"{where}: no type with items is named `{through}`: expected one of {listed(self._items)}."
                f"{near(through, self._items)}",
            )
            return
        possible = [
            (item, start_)
            for item in self._items.values()
            for start_, _ in _ends(self._declared, item, source, targets, is_through=through is not None)
            if through in (None, item.name)
        ]
        if start is not None and possible and start not in [name for _, name in possible]:
            names = [name for _, name in possible]
            self._report.add(use.at("from"), f"{where}: `from` names the end that {source} is: expected {listed(names)}, got `{start}`.{near(start, names)}")
        elif possible:
            item, name = possible[0]
            self._report.add(
                use.node,
                f"{where}: {item.name} links {source} to {field.type.named}, but neither the table nor an index has "
                f"`{name}` alone in its partition key. Cure: {self._cure(item, name)}",
            )
        else:
            target = targets[0]
            self._report.add(
                use.node,
                f"{where}: nothing links {source} to {field.type.named}. Expected an edge type, like `type {source}{target} "
                f'@edge(partition: "{{{_lower(source)}}}", sort: "{{{_lower(target)}}}") {{ {_lower(source)}: {source}! '
                f"{_lower(target)}: {target}! }}`, or a field of type {source} in {target} whose attribute is an index key",
            )

    def _cure(self, item: ItemType, name: str) -> str:
        table = next(table for table in self._tables.values() if table.name == item.layouts[0].table)
        for attribute, template in item.layouts[0].templates.items():
            if all(variable.path[0] == name for variable in template.variables) and template.variables:
                return (
                    f'`@index(name: "…", partitionKey: "{attribute}", sortKey: "{table.primary.partition_key}")`, as '
                    f"`{attribute}` holds {template.source!r}"
                )
        field = item.fields[name]
        return f'`@index(name: "…", partitionKey: "{field.attribute}")`, as `{field.attribute}` holds the {name}'

    def _path(self, source: str, field: DeclaredField, targets: tuple[str, ...]) -> Relationship | None:
        use = field.directives["relationship"]
        where, steps = f"`{source}.{field.name}`", str(use.get("path")).split(".")
        if field.type.of is None or len(steps) < 2:
            self._report.add(use.at("path"), f'{where}: a path walks two relationships or more and gives a list, like path: "pallets.boxes"')
            return None
        hops: list[Relationship] = []
        current = source
        for step in steps:
            type_ = self._declared.items[current]
            if step not in type_.fields or "relationship" not in type_.fields[step].directives:
                known = [name for name, entry in type_.fields.items() if "relationship" in entry.directives]
                self._report.add(
                    use.at("path"),
                    f"{where}: `{step}` in the path is no relationship of {current}: expected {listed(known)}.{near(step, known)}",
                )
                return None
            hop = self.relationship(current, step)
            if hop is None:
                return None
            if len(hop.targets) != 1 and step is not steps[-1]:
                self._report.add(use.at("path"), f"{where}: `{step}` leads to several types, and a path goes on from one only")
                return None
            hops += hop.path or (hop,)
            current = hop.targets[0]
        if not set(hops[-1].targets) <= set(targets):
            self._report.add(use.at("path"), f"{where} is a list of {field.type.named}, but its path leads to {listed(hops[-1].targets)}")
            return None
        first = hops[0]
        return Relationship(source, field.name, hops[-1].item_types, targets, True, first.start, hops[-1].end, (), first.needs, tuple(hops))

    # --- finds ---

    def finds(self) -> dict[str, Find]:
        """Resolve every field of Query."""
        made: dict[str, Find] = {}
        for field in self._declared.query.fields.values() if self._declared.query else ():
            if "find" not in field.directives:
                self._report.add(
                    field.node,
                    f"`Query.{field.name}` has no @find: expected `{field.name}: [{field.type.named}!]! @find`, with the fields "
                    "that it searches by as arguments",
                )
            elif (find := self._find(field)) is not None:
                made[field.name] = find
        return made

    def _find(self, field: DeclaredField) -> Find | None:
        use, where = field.directives["find"], f"`Query.{field.name}`"
        targets = self._declared.possible(field.type.named)
        if not targets:
            self._report.add(field.node, f"{where} finds items, but `{field.type.named}` has none: expected a type with @node or @edge")
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
                entry.name for entry in item.references if set(self._declared.possible(entry.type.named)) == set(targets)
            ]  # fmt: skip
            if not item.is_node and ends and all(name in item.fields for name in names):
                return (item.name,), ends[0]
        known = self._items[targets[0]].fields
        unknown = next(argument for argument in field.node.arguments or () if argument.name.value not in known)
        self._report.add(
            unknown,
            f"`Query.{field.name}`: the argument `{unknown.name.value}` names no field of {field.type.named}: expected one of "
            f"{listed(known)}.{near(unknown.name.value, known)}",
        )
        return None

    def _argument(self, field: DeclaredField, item_name: str, node: InputValueDefinitionNode) -> Argument | None:
        name, type_ = node.name.value, type_ref(node.type)
        where = f"`Query.{field.name}({name}:)`"
        if name == "info":
            self._report.add(node, f"{where}: an argument cannot be named `info`, which resolvers use themselves: rename it")
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
            self._report.add(node, f"{where}: {item_name}.{name} is {bound.type}, which cannot be searched by: expected a scalar field")
            return None
        if type_.named in self._declared.inputs:
            return self._range_argument(where, node, name, path, scalar.name)
        if type_.named != scalar.name:
            self._report.add(node, f"{where} is {type_}: expected {scalar.name}, [{scalar.name}!] or an input of two {scalar.name}, as {item_name}.{name} is {bound.type}")
            return None
        return Argument(name, path, type_, scalar)

    def _range_argument(self, where: str, node: InputValueDefinitionNode, name: str, path: Path, scalar_name: str) -> Argument | None:
        type_ = type_ref(node.type)
        declared = self._declared.inputs[type_.named]
        fields = {entry.name.value: type_ref(entry.type) for entry in declared.fields or ()}
        scalar = self._templates.scalar(scalar_name)
        if set(fields) != {"from", "to"} or any(entry.named != scalar_name for entry in fields.values()) or scalar is None:
            self._report.add(
                node,
                f"{where}: the input `{type_.named}` is not a range: expected `input {type_.named} {{ from: {scalar_name}  "
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
            argument.path: _ANY for argument in arguments if argument.type.required and argument.range_fields is None
        }  # fmt: skip
        given = {argument.path: _ANY for argument in arguments if argument.range_fields is None}
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
                f"{where}: no index has {listed(argument.name for argument in arguments)} alone in its partition key. It would "
                f'take `@index(name: "…", partitionKey: "{attribute}")`, or `@find(scan: true)` to read the whole table each time',
            )
        else:
            self._report.add(
                field.node,
                f"{where} has no arguments, so no index can serve it: give it the fields to search by, or "
                "`@find(scan: true)` to read the whole table each time",
            )
        return ()

    # --- lookups ---

    def lookups(self) -> dict[str, tuple[Access, ...]]:
        """Resolve, for each item type, the ways to an item from the fields that name it."""
        found: dict[str, tuple[Access, ...]] = {}
        for item in self._items.values():
            if item.virtual:
                found[item.name] = ()
                continue
            paths = {variable.path for variable in item.ref.variables} if item.ref else _paths(item.layouts)
            ways = accesses(self._tables, item.layouts, {path: _ANY for path in paths})
            if not ways and item.layouts:
                use = self._declared.items[item.name].uses("node", "edge")[0]
                self._report.add(
                    use.at("ref"),
                    f"`{item.name}` is named by {item.ref.source if item.ref else ''!r}, which does not lead to its item: expected "
                    "a `ref` with every field of the partition key",
                )
            found[item.name] = tuple(
                way for way in ways if any(layout.templates[way.index.partition_key].variables for layout in way.layouts)
            )
        return found


def _ends(
    declared: Declarations, item: ItemType, source: str, targets: tuple[str, ...], *, is_through: bool
) -> list[tuple[str, str | None]]:
    """List the pairs of ends by which items of a type may lead from the source to the targets.

    With the items themselves as the targets there is no second end.
    """
    starts = [field.name for field in item.references if source in declared.possible(field.type.named)]
    if item.name in targets and not (is_through and not item.is_node and len(targets) > 1):
        return [(start, None) for start in starts]
    if item.is_node:
        return []
    return [
        (start, field.name)
        for start in starts
        for field in item.references
        if field.name != start and set(declared.possible(field.type.named)) & set(targets)
    ]


def _paths(layouts: Iterable[Layout]) -> set[Path]:
    return {
        variable.path for layout in layouts for template in layout.templates.values() for variable in template.variables
    }


def _needs(access: Access, start: str) -> tuple[Path, ...]:
    return tuple(
        dict.fromkeys(
            variable.path[1:]
            for layout in access.layouts
            for variable in layout.templates[access.index.partition_key].variables
            if variable.path[0] == start
        )
    )


def _inverses(relationship: Relationship, made: Mapping[tuple[str, str], Relationship]) -> tuple[str, ...]:
    """List the to-one relationships of the target that go the same edge back."""
    if relationship.path or relationship.end is None:
        return ()
    return tuple(
        other.name
        for (source, _), other in made.items()
        if source in relationship.targets
        and not other.many
        and not other.path
        and other.item_types == relationship.item_types
        and (other.start, other.end) == (relationship.end, relationship.start)
    )


def _lower(name: str) -> str:
    return name[:1].lower() + name[1:]

