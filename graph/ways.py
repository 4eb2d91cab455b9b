"""Relationships whose first Query follows from the wire items of their sources alone: found once for a layout."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from graph.bounds import Bound
from graph.columns import plain_prefix
from graph.entity import Entity
from graph.keys import Shard
from graph.loaders import Operation
from graph.model import Layout, Model, Projection, Relationship
from graph.partition import RangeSource, discriminator
from graph.planner import KeyRange, partition_parts, plan
from graph.records import contents
from graph.requests import Item, Query
from graph.rows import Rows
from graph.shapes import Fits, NamedKey, disagree, fits, held_fields, named_key, spells_partition


@dataclass(slots=True)
class Way:
    """What the first Queries of a relationship have in common, whatever the source."""

    relationship: Relationship
    example: KeyRange
    """The range of one of the sources: that of another has another partition."""
    attribute: str
    """Where a source's own item spells its partition."""
    held: tuple[str, ...]
    """The attributes in which a source may keep what that key says, differently."""
    fits: Fits
    end: NamedKey | None
    """How the items spell the keys of the nodes; None where they must be read to tell."""
    names: tuple[str, ...]
    """The attributes that place an item in the list."""
    may_hold_self: bool
    name_from: int | None
    """Where in its partition a source's name begins, if it is all that the relationship needs of it."""
    queries: dict[tuple[int, bool], Query] = field(default_factory=dict)

    @property
    def layout(self) -> Layout:
        """Give the layout of the items that are read."""
        return self.example.layouts[0]

    def source(self, operation: Operation, partition: str) -> RangeSource:
        """Make the list of a source."""
        place = f"{self.relationship.source}.{self.relationship.name}"
        return RangeSource(operation, replace(self.example, partition=(partition,)), place)

    def query(self, operation: Operation, limit: int, partition: str, *, descending: bool) -> Query:
        """Make the first Query of a source."""
        known = self.queries.get((limit, descending))
        if known is None:
            source = self.source(operation, partition)
            known = self.queries[limit, descending] = source.request(
                self.example.sort, limit=limit, descending=descending
            )
        return known.of((partition,))

    def partitions(self, items: Sequence[Item]) -> list[str] | None:
        """List the partitions of sources by their items; None where an item also says otherwise what its key says."""
        attribute = self.attribute
        return None if disagree(items, self.held) else contents(attribute)(items)

    def identity(self, rows: Rows, number: int) -> tuple[object, ...]:
        """Give what of a source names its list."""
        if self.name_from is not None and (wire := rows.wires[number]):
            return (wire[self.attribute]["S"][self.name_from :],)
        node = rows.entity(number)
        return tuple(node.at(path) for path in self.relationship.needs)


class Ways:
    """Finds the way of a relationship from rows of one layout, once for all of them; None where there is none."""

    def __init__(self, relationship: Relationship) -> None:
        self._relationship = relationship
        self._known: dict[str, Way | None] = {}

    def of(self, operation: Operation, rows: Rows) -> Way | None:
        """Give the way of rows."""
        layout = rows.layout
        if layout is None or operation.consistent:
            return None
        if layout.name not in self._known:
            number = next((number for number, wire in enumerate(rows.wires) if wire), None)
            if number is None:
                return None
            self._known[layout.name] = _find(operation.model, self._relationship, layout, rows.entity(number))
        return self._known[layout.name]


def _find(model: Model, relationship: Relationship, layout: Layout, node: Entity) -> Way | None:
    if relationship.path or relationship.consistent:
        return None
    known = {(relationship.start, *path): node.at(path) for path in relationship.needs}
    found = plan(relationship.accesses, {path: Bound(values=(value,)) for path, value in known.items()})
    if found is None or len(found.ranges) != 1 or found.names_items:
        return None
    (range_,) = found.ranges
    index, wanted = range_.index, range_.layouts[0]
    if not _is_plain(model, range_) or any(path in known for path in _sort_paths(range_)):
        return None
    attribute = spells_partition(model, layout, relationship.start, wanted, index)
    quick = fits(model, wanted, frozenset(index.partition_keys), _begun(range_))
    if attribute is None or quick is None or layout.templates[attribute].format(node.paths) != range_.partition[0]:
        return None
    held = held_fields(layout, attribute, node.type)
    prefix = plain_prefix(layout.templates[attribute])
    is_name = prefix is not None and relationship.needs == (layout.templates[attribute].variables[0].path,)
    names = model.tables[index.table].position_attributes(index)
    end = None if relationship.end is None else named_key(model, wanted, relationship.end)
    self_keyed = any(rival.self_keyed for rival in model.rivals_of(wanted))
    is_turned = set(index.key_attributes) == set(model.tables[index.table].key_attributes)
    may_hold_self = is_turned and index.sort_keys != () and self_keyed
    name_from = len(prefix) if is_name and prefix is not None else None
    return Way(relationship, range_, attribute, held, quick, end, names, may_hold_self, name_from)


def _is_plain(model: Model, range_: KeyRange) -> bool:
    """Say whether one Query of any source's partition reads the list, with nothing to be told apart."""
    index = range_.index
    return (
        len(range_.layouts) == 1
        and not range_.parts
        and len(range_.sort.pieces()) == 1
        and index.period is None
        and index.projection is Projection.ALL
        and discriminator(model, range_) is None
        and not any(isinstance(part, Shard) for part in partition_parts(range_.layouts[0], index))
    )


def _sort_paths(range_: KeyRange) -> list[tuple[str, ...]]:
    sorts = range_.layouts[0].sort(range_.index)
    return [variable.path for template in sorts for variable in template.variables]


def _begun(range_: KeyRange) -> frozenset[str]:
    """Name the sort attribute where the range itself says how its texts begin."""
    names, prefix = range_.index.sort_keys, range_.sort.prefix
    is_begun = len(names) == 1 and prefix and plain_prefix(range_.layouts[0].templates[names[0]]) == prefix
    return frozenset(names) if is_begun else frozenset()
