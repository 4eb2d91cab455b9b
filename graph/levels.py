"""Many sources of one relationship at once: what compiled plans read level by level.

The first Query of a list, and the keys of the nodes that it leads to, follow from the wire items alone wherever the
model lets them; whatever is less plain is read source by source, as `reads` does, from the same answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from graph.bounds import Bound
from graph.collection import Companion, Gathering, accompany, page_gathering
from graph.columns import plain_prefix
from graph.entity import Entity, every_layout
from graph.keys import Shard
from graph.loaders import Operation
from graph.lookups import Needs, load
from graph.model import Projection, Relationship
from graph.partition import RangeSource, discriminator
from graph.planner import KeyRange, partition_parts, plan
from graph.requests import Item, ItemKey, Query, key_value
from graph.rows import NOTHING, KeyOnly, Rows
from graph.shapes import Fits, NamedKey, disagree, fits, held_fields, named_key, spells_partition
from graph.sources import read_layouts

ALL_ITEMS, SOME_ITEMS = frozenset((dict,)), frozenset((dict, type(None)))
"""The types of what was loaded where none, or nothing but items, is missing, and no loading failed."""

T = TypeVar("T")
Outcome = Any
"""What became of one of several readings: its result, or the exception that ended it."""


async def attempt(work: Awaitable[Any]) -> Outcome:
    """Await, and give an exception as a result."""
    try:
        return await work
    except Exception as error:
        return error


@dataclass(slots=True)
class Way:
    """What the first Queries of a relationship have in common, whatever the source."""

    source: RangeSource
    """The list of one of the sources: that of another has another partition."""
    relationship: Relationship
    fits: Fits
    end: NamedKey | None
    """How the items spell the keys of the nodes; None where they must be read to tell."""
    queries: dict[tuple[int, bool], Query] = field(default_factory=dict)

    def query(self, limit: int, partition: str, *, descending: bool) -> Query:
        """Make the first Query of a source."""
        known = self.queries.get((limit, descending))
        if known is None:
            known = self.source.request(self.source.range.sort, limit=limit, descending=descending)
            self.queries[limit, descending] = known
        return known.of((partition,))

    def range(self, partition: str) -> KeyRange:
        """Give the range of a source."""
        return replace(self.source.range, partition=(partition,))


class Ways:
    """Finds the way of a relationship from rows of one layout, once for all of them; None where there is none."""

    def __init__(self, relationship: Relationship) -> None:
        self.relationship = relationship
        self._known: dict[str, tuple[Way, str, tuple[str, ...]] | None] = {}

    def of(self, operation: Operation, rows: Rows) -> tuple[Way, list[str]] | None:
        """Give the way, and the partition of each row that has a wire."""
        layout = rows.layout
        if layout is None or operation.consistent:
            return None
        if layout.name not in self._known:
            self._known[layout.name] = self._find(operation, rows)
        known = self._known[layout.name]
        if known is None:
            return None
        way, attribute, fields = known
        wires = [wire for wire in rows.wires if wire]
        return None if disagree(wires, fields) else (way, [wire[attribute]["S"] for wire in wires])

    def _find(self, operation: Operation, rows: Rows) -> tuple[Way, str, tuple[str, ...]] | None:
        relationship, model, layout = self.relationship, operation.model, rows.layout
        number = next((number for number, wire in enumerate(rows.wires) if wire), None)
        if number is None or layout is None or relationship.path or relationship.consistent:
            return None
        node = rows.entity(number)
        known = {(relationship.start, *path): node.at(path) for path in relationship.needs}
        found = plan(relationship.accesses, {path: Bound(values=(value,)) for path, value in known.items()})
        if found is None or len(found.ranges) != 1 or found.names_items:
            return None
        (range_,) = found.ranges
        index, wanted = range_.index, range_.layouts[0]
        sorts = [variable.path for template in wanted.sort(index) for variable in template.variables]
        is_plain = (
            len(range_.layouts) == 1
            and not range_.parts
            and len(range_.sort.pieces()) == 1
            and index.period is None
            and index.projection is Projection.ALL
            and discriminator(model, range_) is None
            and not any(isinstance(part, Shard) for part in partition_parts(wanted, index))
            and not any(path in known for path in sorts)
        )
        attribute = spells_partition(model, layout, relationship.start, wanted, index) if is_plain else None
        begun = frozenset(index.sort_keys) if range_.sort.prefix and len(index.sort_keys) == 1 else frozenset()
        is_begun = all(plain_prefix(wanted.templates[name]) == range_.sort.prefix for name in begun)
        quick = fits(model, wanted, frozenset(index.partition_keys), begun if is_begun else frozenset())
        if (
            attribute is None
            or quick is None
            or not is_plain
            or rows.wires[number][attribute].get("S") != range_.partition[0]
        ):
            return None
        source = RangeSource(operation, range_, f"{relationship.source}.{relationship.name}")
        end = None if relationship.end is None else named_key(model, wanted, relationship.end)
        return Way(source, relationship, quick, end), attribute, held_fields(layout, attribute, rows.type)


# --- the first items ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Start:
    """The beginning of a list, in the order of reading: what of it was wanted, and whether there is more.

    `entities` are those of the items that had to be looked at, by place; their wires are NOTHING.
    """

    wires: list[Item]
    has_more: bool
    entities: Mapping[int, Entity] | None = None


async def starts(
    operation: Operation,
    way: Way,
    partitions: Sequence[str],
    *,
    want: int,
    keep: int,
    most: int,
    descending: bool = False,
) -> list[Start | Exception | None]:
    """Read the first `want` items behind each source and keep some; None where one Query does not tell.

    Cost: one Query for each source, all side by side.
    """
    source = replace(way.source, operation=operation)
    limit = min(want + source.may_hold_self, most)
    found: list[Start | Exception | None] = [None] * len(partitions)
    asked: list[tuple[int, Query]] = []
    for number, partition in enumerate(partitions):
        known = _collected(operation, way, partition) if operation.collections else None
        if known is not None and (known[1] or not descending):
            items, is_all = known
            items = items[::-1] if descending else items
            found[number] = _start(source, way, partition, items, want, keep, is_all=is_all)
        else:
            asked.append((number, way.query(limit, partition, descending=descending)))
    answers = await operation.pages([query for _, query in asked])
    for (number, _), answer in zip(asked, answers, strict=True):
        found[number] = (
            answer
            if isinstance(answer, Exception)
            else _start(
                source, way, partitions[number], answer["Items"], want, keep, is_all="LastEvaluatedKey" not in answer
            )
        )
    return found


def _collected(operation: Operation, way: Way, partition: str) -> tuple[list[Item], bool] | None:
    """Give what a Query for the item collection has brought of a source's list, and whether that is all of it."""
    range_ = way.source.range
    collection = operation.collections.get((range_.table, range_.index.name, (partition,)))
    return None if collection is None else collection.part(range_.sort)


def _start(
    source: RangeSource, way: Way, partition: str, items: list[Item], want: int, keep: int, *, is_all: bool
) -> Start | None:
    entities: dict[int, Entity] = {}
    if not way.fits(items):
        items, entities = _looked_at(replace(source, range=way.range(partition)), way, items)
    if len(items) < want and not is_all:
        return None
    return Start(items[:keep], len(items) > keep, entities or None)


def _looked_at(source: RangeSource, way: Way, items: list[Item]) -> tuple[list[Item], dict[int, Entity]]:
    """Look at each item: those of other types are left out, and some are of this one after all."""
    wires: list[Item] = []
    entities: dict[int, Entity] = {}
    for item in items:
        if way.fits((item,)):
            wires.append(item)
        elif (entry := source.entry(item)) is not None:
            entities[len(wires)] = entry.entity
            wires.append(NOTHING)
    return wires, entities


# --- the nodes ----------------------------------------------------------------------------------------------------


class Named:
    """Loads the nodes that items of a layout name by keys which those items spell."""

    def __init__(self, named: NamedKey, needs: Needs) -> None:
        self.named = named
        self.needs = needs
        self._fits: Fits | None = None
        self._lacks: bool | None = None
        self._gatherings: dict[tuple[tuple[str, int], ...], Gathering | None] = {}

    def lacks(self, node: Entity) -> bool:
        """Say whether nodes of which only the name is known must be loaded; it is the same for all of them."""
        if self._lacks is None:
            self._lacks = node.lacks(self.needs(self.named.type.name))
        return self._lacks

    async def nodes(
        self,
        operation: Operation,
        items: Sequence[Item],
        first: Entity | None,
        companions: Sequence[Companion] = (),
    ) -> list[Outcome] | None:
        """Give the nodes that items name, each as its item, its key where that will do, or an entity.

        `first` is the first of them as it is named; None where the items have to be looked at.
        """
        keys = None if first is None else self.named.keys(items)
        if keys is None or first is None:
            return None
        if self.lacks(first):
            if companions and (shape := self._gathering(operation, first, companions)) is not None:
                await accompany(operation, shape, keys)
            return await self._load(operation, keys)
        held = {variable.path for name in self.named.names for variable in self.named.layout.templates[name].variables}
        return [KeyOnly.of(key) for _, key in keys] if held.issuperset(first.named) else None

    def _gathering(self, operation: Operation, node: Entity, companions: Sequence[Companion]) -> Gathering | None:
        sizes = tuple([(companion.relationship.name, companion.want) for companion in companions])
        if sizes not in self._gatherings:
            self._gatherings[sizes] = page_gathering(operation, node, companions)
        return self._gatherings[sizes]

    async def _load(self, operation: Operation, keys: Sequence[ItemKey]) -> list[Outcome]:
        if self._fits is None:
            known = frozenset(self.named.names)
            self._fits = fits(operation.model, self.named.layout, known) or never
        outcomes: list[Any] = await operation.outcomes(keys)
        kinds = frozenset(map(type, outcomes))
        if kinds == ALL_ITEMS and self._fits(outcomes):
            return outcomes
        if kinds == SOME_ITEMS and self._fits([item for item in outcomes if item is not None]):
            return outcomes
        return [self._looked_at(operation, outcome) for outcome in outcomes]

    def _looked_at(self, operation: Operation, outcome: Outcome) -> Outcome:
        if outcome is None or isinstance(outcome, Exception):
            return outcome
        return read_layouts(operation, every_layout(self.named.type), outcome, self.named.type.name)


def never(_: Sequence[Item]) -> bool:
    """Be sure of no item."""
    return False


async def load_each(operation: Operation, nodes: Sequence[Outcome], needs: Needs) -> list[Outcome]:
    """Load those of the nodes that lack something needed, each with what becomes of it alone.

    Cost: as `lookups.load`, for all of them together.
    """
    outcomes = list(nodes)
    keyed: list[tuple[int, ItemKey]] = []
    searched: list[int] = []
    for number, node in enumerate(nodes):
        if not isinstance(node, Entity):
            continue
        try:
            if node.lacks(needs(node.type.name)):
                key = node.key
                searched.append(number) if key is None else keyed.append((number, key))
        except Exception as error:
            outcomes[number] = error
    if not keyed and not searched:
        return outcomes
    operation.request_items([key for _, key in keyed])
    found = await one_by_one(operation, searched, lambda number: load(operation, [nodes[number]], needs))
    for number, outcome in found.items():
        outcomes[number] = outcome if isinstance(outcome, Exception) else outcome[0]
    items: list[Any] = await operation.outcomes([key for _, key in keyed])
    for (number, _), item in zip(keyed, items, strict=True):
        type_ = nodes[number].type
        is_item = item is not None and not isinstance(item, Exception)
        outcomes[number] = read_layouts(operation, every_layout(type_), item, type_.name) if is_item else item
    return outcomes


Follow = Callable[[int], Awaitable[Any]]
"""Reads behind one of the sources, as `reads` does."""


async def one_by_one(operation: Operation, numbers: Sequence[int], follow: Follow) -> dict[int, Outcome]:
    """Read behind some sources one by one, side by side."""
    if not numbers:
        return {}
    with operation.several(len(numbers)):
        if len(numbers) == 1:
            return {numbers[0]: await attempt(follow(numbers[0]))}
        tasks = [asyncio.ensure_future(attempt(follow(number))) for number in numbers]
        try:
            await asyncio.wait(tasks)
        finally:
            for task in tasks:
                task.cancel()
    return {number: task.result() for number, task in zip(numbers, tasks, strict=True)}


async def with_rest(
    operation: Operation, work: Coroutine[Any, Any, T], numbers: Sequence[int], follow: Follow
) -> tuple[T, dict[int, Outcome]]:
    """Do the work for most of the sources, and read behind the others one by one meanwhile: keys travel together."""
    if not numbers:
        return await work, {}
    with operation.several(1):
        done, found = await asyncio.gather(work, one_by_one(operation, numbers, follow))
    return done, found


def item_keys(rows: Rows) -> list[ItemKey | None]:
    """List the keys of rows, as far as their wires tell them without a look at the entity."""
    if rows.layout is None:
        return [None] * len(rows)
    table = rows.model.tables[rows.layout.table]
    if table.period is not None:
        return [None] * len(rows)
    names = table.key_attributes
    return [
        (table.name, tuple([(name, key_value(wire[name])) for name in names])) if wire else None for wire in rows.wires
    ]
