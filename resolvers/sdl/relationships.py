"""From @relationship to access patterns: which items lead there, from which end, and which index serves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from graph.model import Access, ItemType, Relationship
from resolvers.sdl.accesses import alike, asks, is_filled, mentions, needs, strong, ways_from
from resolvers.sdl.declarations import Declarations, DeclaredField, Directive
from resolvers.sdl.layouts import is_whole
from resolvers.sdl.report import Report, listed, near
from resolvers.sdl.tables import Tables

HOPS = 10


@dataclass(frozen=True, slots=True)
class _Way:
    """One way that a relationship could mean: items of a type, from one end to the other or to the items themselves."""

    item: ItemType
    start: str
    end: str | None


class Relationships:
    """Resolves relationships; what cannot be resolved is reported."""

    def __init__(self, declared: Declarations, tables: Tables, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report
        self._made: dict[tuple[str, str], Relationship | None] = {}
        self._making: list[str] = []

    def all(self) -> dict[tuple[str, str], Relationship]:
        """Resolve every relationship of every node type."""
        for name, type_ in self._declared.items.items():
            for field in type_.fields.values():
                if field.is_relationship and type_.is_node:
                    self.relationship(name, field.name)
        made = {key: value for key, value in self._made.items() if value is not None}
        made = {key: replace(value, inverses=_inverses(value, made)) for key, value in made.items()}
        return {
            key: replace(value, path=tuple(made[hop.source, hop.name] for hop in value.path))
            for key, value in made.items()
        }

    def relationship(self, source: str, name: str) -> Relationship | None:
        """Resolve one relationship, once."""
        if (source, name) not in self._made:
            mark = f"{source}.{name}"
            field = self._declared.items[source].fields[name]
            if mark in self._making:
                self._report.add(
                    field.node,
                    f"the path of `{mark}` leads back to itself, {' → '.join([*self._making, mark])}: expected a path "
                    "that ends. Walk relationships that have no path of their own",
                )
                return None
            self._making.append(mark)
            self._made[source, name] = self._resolve(source, field)
            self._making.pop()
        return self._made[source, name]

    def _resolve(self, source: str, field: DeclaredField) -> Relationship | None:
        use, where = field.directives["relationship"], f"`{source}.{field.name}`"
        targets = self._declared.possible(field.type.named)
        if self._report.blames(field.node):
            return None
        if not targets:
            named = self._declared.nodes.get(field.type.named)
            if named is None or not self._report.blames(named):
                self._report.add(
                    field.node,
                    f"{where} is a relationship, but `{field.type.named}` has no items of its own: expected a type "
                    "with @node or @edge. Give it @node, or remove "
                    f"@relationship{near(field.type.named, self._items)}",
                )
            return None
        if field.type.of is not None and field.type.of.of is not None:
            self._report.add(
                field.node,
                f"{where} is a list of lists: expected a list, or one node. Write `{field.name}: "
                f"[{field.type.named}!]! @relationship`",
            )
            return None
        if use.get("path") is not None:
            return self._path(source, field, targets)
        ways = list(self._ways(source, use, targets))
        resolved = [made for way in ways if (made := self._along(source, field, way, targets)) is not None]
        resolved = [made for made in resolved if not made.asks] or resolved
        if len(resolved) > 1:
            self._report_ambiguous(where, field, resolved)
        elif not resolved and not self._follows_from_a_mistake(source, targets):
            self._report_unserved(source, field, ways, targets)
        return self._consistent(where, use, resolved[0]) if len(resolved) == 1 else None

    # --- the ways from one node to others ---

    def _ways(self, source: str, use: Directive, targets: tuple[str, ...]) -> Iterator[_Way]:
        """List the ways that the items declared would lead from the source to the targets, index or not."""
        for item in self._items.values():
            through = use.get("through")
            if through in (None, item.name):
                for way in self._ways_of(item, source, targets, is_through=through is not None):
                    if use.get("from") in (None, way.start):
                        yield way

    def _ways_of(self, item: ItemType, source: str, targets: tuple[str, ...], *, is_through: bool) -> Iterator[_Way]:
        starts = [field.name for field in item.references if source in self._declared.possible(field.type.named)]
        if item.virtual:
            return
        if item.name in targets and not (is_through and not item.is_node and len(targets) > 1):
            yield from (_Way(item, start, None) for start in starts)
        elif not item.is_node:
            for start in starts:
                for field in item.references:
                    if field.name != start and set(targets) <= set(self._declared.possible(field.type.named)):
                        yield _Way(item, start, field.name)

    def _along(self, source: str, field: DeclaredField, way: _Way, targets: tuple[str, ...]) -> Relationship | None:
        """Make the relationship of one way, if the table or an index serves it."""
        served = self._accesses(way, source, targets, by_filter=False)
        others = self._accesses(way, source, targets, by_filter=True) if field.type.of is not None else []
        # Of a list that is there without a filter, a way that takes one must hold all.
        found = [*served, *(access for access in others if not served or self._holds_all(access, way.start))]
        if not found:
            return None
        return Relationship(
            source,
            field.name,
            (way.item.name,),
            targets,
            field.type.of is not None,
            way.start,
            way.end,
            alike(found, way.start),
            needs(found[0], way.start),
            () if served else asks(found[0], way.start),
        )

    def _accesses(self, way: _Way, source: str, targets: tuple[str, ...], *, by_filter: bool) -> list[Access]:
        layouts = [
            layout for layout in way.item.layouts if way.end is None or layout.ends.get(way.end, targets[0]) in targets
        ]
        # Where the end may be of other types too, the key must say of which: a page reads what lies together.
        ends = self._declared.possible(way.item.fields[way.end].type.named) if way.end else targets
        ways = ways_from(self._tables, layouts, way.start, source, way.end, by_filter=by_filter)
        return [access for access in ways if len(ends) == len(targets) or mentions(access, way.end or "")]

    def _holds_all(self, access: Access, start: str) -> bool:
        """Say whether every item with a partition key is in the index."""
        return all(
            is_filled(self._items, layout, name, start) for layout in access.layouts for name in access.index.sort_keys
        )

    def _consistent(self, where: str, use: Directive, made: Relationship) -> Relationship | None:
        """Leave only the ways that can be read consistently, if that is asked for."""
        if not use.get("consistent"):
            return made
        ways = strong(made.accesses)
        if not ways:
            self._report.add(
                use.at("consistent"),
                f"{where} is read from the global index `{made.accesses[0].index.name}`, which is always a little "
                "behind: expected `consistent` only where the table or a local index serves. Remove it",
            )
            return None
        return replace(made, accesses=ways, consistent=True)

    # --- what is wrong where there is none, or more than one ---

    def _follows_from_a_mistake(self, source: str, targets: tuple[str, ...]) -> bool:
        """Say whether a mistake reported already may be why no way is found: in an index, or in a type between."""
        linking = [
            type_
            for type_ in self._declared.types.values()
            if type_.name in targets
            or any(
                {source, *targets} & set(self._declared.possible(field.type.named))
                for field in type_.fields.values()
                if not field.is_relationship
            )
        ]
        nodes = [node for type_ in linking for node in self._declared.makings(type_)]
        are_whole = all(is_whole(type_, self._items[type_.name].layouts) for type_ in linking if type_.keys)
        return not are_whole or not self._tables.are_sure or self._report.blames(*nodes)

    def _report_ambiguous(self, where: str, field: DeclaredField, resolved: list[Relationship]) -> None:
        ways = list(dict.fromkeys(f'through: "{one.item_types[0]}", from: "{one.start}"' for one in resolved))
        cure = (
            "Say which one: " + " or ".join(f"@relationship({way})" for way in ways)
            if len(ways) == len(resolved)
            else "Give each way an edge type of its own"
        )
        self._report.add(
            field.directives["relationship"].node,
            f"{where} is ambiguous: expected one way to {field.type.named}, found {len(resolved)}. {cure}",
        )

    def _report_unserved(self, source: str, field: DeclaredField, ways: list[_Way], targets: tuple[str, ...]) -> None:
        use, where = field.directives["relationship"], f"`{source}.{field.name}`"
        through, start = use.get("through"), use.get("from")
        linking = [
            way for item in self._items.values() for way in self._ways_of(item, source, targets, is_through=False)
        ]
        if ways:
            self._report.add(
                use.node,
                f"{where}: {ways[0].item.name} links {source} to {field.type.named}, but neither the table nor an "
                f"index has `{ways[0].start}` alone in its partition key. Expected {self._missing_index(ways[0])}",
            )
        elif through is not None and through not in {way.item.name for way in linking}:
            known = {way.item.name: None for way in linking}
            self._report.add(
                use.at("through"),
                f"{where}: `through` names `{through}`, which does not link {source} to {field.type.named}: expected "
                f"{listed(known, 'or')}. Name one of them, or an edge type with both as ends{near(through, known)}",
            )
        elif start is not None and linking:
            known = {way.start: None for way in linking if through in (None, way.item.name)}
            self._report.add(
                use.at("from"),
                f"{where}: `from` is `{start}`: expected the end that {source} is, {listed(known, 'or')}. Name one of "
                f"them{near(start, known)}",
            )
        else:
            one, other = _lower(source), _lower(targets[0])
            self._report.add(
                use.node,
                f"{where}: nothing links {source} to {field.type.named}. Expected an edge type, `type "
                f'{source}{targets[0]} @edge(partition: "{{{one}}}", sort: "{{{other}}}") {{ {one}: {source}!  '
                f"{other}: {targets[0]}! }}`, or a field of type {source} in {targets[0]} that the partition key of "
                "the table or of an index holds",
            )

    def _missing_index(self, way: _Way) -> str:
        layout = next(iter(way.item.layouts))
        primary = self._tables.stored(layout.table).primary
        for attribute, template in layout.templates.items():
            if template.variables and all(variable.path[0] == way.start for variable in template.variables):
                (partition_key,) = primary.partition_keys
                sort = "" if attribute == partition_key else f', sortKey: "{partition_key}"'
                return f'`@index(name: "…", partitionKey: "{attribute}"{sort})`, for it holds {template.source!r}'
        attribute = way.item.fields[way.start].attribute
        return f'`@index(name: "…", partitionKey: "{attribute}")`, for it holds the {way.start}'

    # --- paths ---

    def _path(self, source: str, field: DeclaredField, targets: tuple[str, ...]) -> Relationship | None:
        use, where = field.directives["relationship"], f"`{source}.{field.name}`"
        steps = use.get("path").split(".")
        others = [name for name in ("through", "from", "consistent") if use.get(name)]
        if field.type.of is None or len(steps) < 2 or others:
            self._report.add(
                use.at("path"),
                f"{where}: expected a list whose path walks two relationships or more, and nothing "
                'beside it. Write it like `boxes: [Box!]! @relationship(path: "pallets.boxes")`',
            )
            return None
        hops = self._hops(source, use, where, steps)
        if hops is None:
            return None
        if (asking := next((hop for hop in hops[:-1] if hop.asks), None)) is not None:
            self._report.add(
                use.at("path"),
                f"{where}: `{asking.name}` in the path is read only with a filter on "
                f"{listed('.'.join(path) for path in asking.asks)}, which a path gives to its end alone: expected an "
                f"index with the {asking.source} alone in its partition key. Add one, or let the path end there",
            )
            return None
        first, last = hops[0], hops[-1]
        if not set(last.targets) <= set(targets) or len(hops) > HOPS:
            self._report.add(
                use.at("path"),
                f"{where} is a list of {field.type.named} and its path of {len(hops)} relationships leads to "
                f"{listed(last.targets)}: expected {HOPS} at most, that lead to what the field's type says. Mend the "
                "path or the type",
            )
            return None
        return Relationship(
            source,
            field.name,
            last.item_types,
            targets,
            True,
            first.start,
            last.end,
            (),
            first.needs,
            last.asks,
            tuple(hops),
        )

    def _hops(self, source: str, use: Directive, where: str, steps: list[str]) -> list[Relationship] | None:
        """Resolve the relationships of a path, one after the other; a hop may be a path itself."""
        hops: list[Relationship] = []
        targets: tuple[str, ...] = (source,)
        for step in steps:
            if len(targets) != 1:
                self._report.add(
                    use.at("path"),
                    f"{where}: the path goes on with `{step}` from {listed(targets, 'or')}: expected one type to go on "
                    "from. End the path before it",
                )
                return None
            fields = self._declared.items[targets[0]].fields
            known = [name for name, entry in fields.items() if entry.is_relationship]
            if step not in known:
                self._report.add(
                    use.at("path"),
                    f"{where}: `{step}` in the path is no relationship of {targets[0]}: expected "
                    f"{listed(known, 'or')}. Mend the path{near(step, known)}",
                )
                return None
            hop = self.relationship(targets[0], step)
            if hop is None:
                return None
            hops += hop.path or (hop,)
            targets = hop.targets
        return hops


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
