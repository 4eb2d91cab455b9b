"""From @relationship to access patterns: which items lead there, from which end, and which index serves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graph.keys import Path
from graph.model import Access, ItemType, Relationship, Table
from resolvers.sdl.accesses import SOME_VALUE, accesses, paths_of, strong
from resolvers.sdl.declarations import Declarations, DeclaredField
from resolvers.sdl.report import Report, listed, near


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One way that a relationship could mean: items of a type, from one end to the other."""

    item: ItemType
    start: str
    end: str | None
    accesses: tuple[Access, ...]
    needs: tuple[Path, ...]


class Relationships:
    """Resolves relationships; what cannot be resolved is reported."""

    def __init__(
        self,
        declared: Declarations,
        tables: Mapping[str, Table],
        items: Mapping[str, ItemType],
        report: Report,
    ) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report
        self._made: dict[tuple[str, str], Relationship | None] = {}
        self._making: list[str] = []

    def all(self) -> dict[tuple[str, str], Relationship]:
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
                self._report.add(
                    field.node, f"the path of `{mark}` leads back to itself: {' → '.join([*self._making, mark])}"
                )
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
                f"`{source}.{field.name}` is a relationship, but `{field.type.named}` has no items of its own: "
                "expected a type "
                f"with @node or @edge.{near(field.type.named, self._items)}",
            )
            return None
        if field.type.of is not None and field.type.of.of is not None:
            self._report.add(
                field.node, f"`{source}.{field.name}` is a list of lists: a relationship is a list, or one node"
            )
            return None
        if use.get("path"):
            return self._path(source, field, targets)
        candidates = self._candidates(source, field, targets)
        if len(candidates) == 1:
            (found,) = candidates
            consistent = bool(use.get("consistent"))
            ways = strong(found.accesses) if consistent else found.accesses
            if not ways:
                self._report.add(
                    use.at("consistent"),
                    f"`{source}.{field.name}` is read from the index `{found.accesses[0].index.name}`, and "
                    "a global index cannot be read consistently: remove `consistent`, or keep the items where the table or "
                    "a local index leads to them",
                )
                return None
            return Relationship(
                source,
                field.name,
                (found.item.name,),
                targets,
                field.type.of is not None,
                found.start,
                found.end,
                ways,
                found.needs,
                consistent=consistent,
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
        bound = {path: SOME_VALUE for path in paths_of(layouts) if path[0] == start}
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
                f"{where} is ambiguous: {len(candidates)} ways lead from {source} to {field.type.named}. Say which "
                "one: " + " or ".join(f"@relationship({way})" for way in ways),
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
            self._report.add(
                use.at("from"),
                f"{where}: `from` names the end that {source} is: expected {listed(names)}, got "
                f"`{start}`.{near(start, names)}",
            )
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
                f"{where}: nothing links {source} to {field.type.named}. Expected an edge type, like `type "
                f"{source}{target} "
                f'@edge(partition: "{{{_lower(source)}}}", sort: "{{{_lower(target)}}}") '
                f"{{ {_lower(source)}: {source}! "
                f"{_lower(target)}: {target}! "
                f"}}`, or a field of type {source} in {target} whose attribute is an index key",
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
            self._report.add(
                use.at("path"),
                f'{where}: a path walks two relationships or more and gives a list, like path: "pallets.boxes"',
            )
            return None
        hops: list[Relationship] = []
        current = source
        for step in steps:
            type_ = self._declared.items[current]
            if step not in type_.fields or "relationship" not in type_.fields[step].directives:
                known = [name for name, entry in type_.fields.items() if "relationship" in entry.directives]
                self._report.add(
                    use.at("path"),
                    f"{where}: `{step}` in the path is no relationship of {current}: expected "
                    f"{listed(known)}.{near(step, known)}",
                )
                return None
            hop = self.relationship(current, step)
            if hop is None:
                return None
            if len(hop.targets) != 1 and step is not steps[-1]:
                self._report.add(
                    use.at("path"), f"{where}: `{step}` leads to several types, and a path goes on from one only"
                )
                return None
            hops += hop.path or (hop,)
            current = hop.targets[0]
        if not set(hops[-1].targets) <= set(targets):
            self._report.add(
                use.at("path"),
                f"{where} is a list of {field.type.named}, but its path leads to {listed(hops[-1].targets)}",
            )
            return None
        first = hops[0]
        return Relationship(
            source,
            field.name,
            hops[-1].item_types,
            targets,
            True,
            first.start,
            hops[-1].end,
            (),
            first.needs,
            tuple(hops),
        )


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
