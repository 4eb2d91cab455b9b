"""Many sources of one relationship at once: what compiled plans read level by level.

The first Query of a list, and the keys of the nodes that it leads to, follow from the wire items alone wherever the
model lets them; whatever is less plain is read source by source, as `reads` does, from the same answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from graph.collection import Companion, Gathering, accompany, page_gathering
from graph.entity import Entity, every_layout
from graph.loaders import Operation, keys_of
from graph.lookups import Needs, by_keys, permitted
from graph.model import Layout
from graph.partition import RangeSource
from graph.records import are_items
from graph.requests import Item, ItemKey, Query, key_value
from graph.rows import NOTHING, KeyOnly, Rows
from graph.shapes import Fits, NamedKey, fits
from graph.sources import read_layouts
from graph.ways import Way

T = TypeVar("T")
Outcome = Any
"""What became of one of several readings: its result, or the exception that ended it."""


async def attempt(work: Awaitable[Any]) -> Outcome:
    """Await, and give an exception as a result."""
    try:
        return await work
    except Exception as error:
        return error


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
    limit = min(want + way.may_hold_self, most)
    found: list[Start | Exception | None] = [None] * len(partitions)
    asked: list[tuple[int, Query]] = []
    lists: list[tuple[int, list[Item], bool]] = []
    for number, partition in enumerate(partitions):
        known = _collected(operation, way, partition) if operation.collections else None
        if known is not None and (known[1] or not descending):
            items, is_all = known
            lists.append((number, items[::-1] if descending else items, is_all))
        else:
            asked.append((number, way.query(operation, limit, partition, descending=descending)))
    answers = await operation.pages([query for _, query in asked]) if asked else []
    for (number, _), answer in zip(asked, answers, strict=True):
        if isinstance(answer, Exception):
            found[number] = answer
        else:
            lists.append((number, answer["Items"], "LastEvaluatedKey" not in answer))
    everything = list(chain.from_iterable([items for _, items, _ in lists]))
    all_fit = way.fits(everything)
    is_sought = operation.sought is None or way.layout.type_name in operation.sought
    if all_fit and is_sought:
        _prime(operation, way.layout, everything)
    for number, items, is_all in lists:
        entities: dict[int, Entity] | None = None
        if not all_fit:
            if not way.fits(items):
                items, entities = _looked_at(way.source(operation, partitions[number]), way, items)
            if is_sought:
                _prime(operation, way.layout, [item for item in items if item])
        if is_all or len(items) >= want:
            found[number] = Start(items[:keep], len(items) > keep, entities)
    return found


def _collected(operation: Operation, way: Way, partition: str) -> tuple[list[Item], bool] | None:
    """Give what a Query for the item collection has brought of a source's list, and whether that is all of it."""
    range_ = way.example
    collection = operation.collections.get((range_.table, range_.index.name, (partition,)))
    return None if collection is None else collection.part(range_.sort)


def _prime(operation: Operation, layout: Layout, items: Sequence[Item]) -> None:
    """Have items that came whole not be asked for again."""
    table = operation.model.tables[layout.table]
    operation.prime_items([(table.name, key) for key in keys_of(items, table.key_attributes)], items)


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
        self._is_key_only: bool | None = None
        self._gatherings: dict[tuple[tuple[str, int], ...], Gathering | None] = {}

    def lacks(self, node: Entity) -> bool:
        """Say whether nodes of which only the name is known must be loaded; it is the same for all of them."""
        return node.lacks(self.needs(self.named.type.name))

    async def nodes(
        self,
        operation: Operation,
        items: Sequence[Item],
        first: Callable[[], Entity | None],
        companions: Sequence[Companion] = (),
    ) -> list[Outcome] | None:
        """Give the nodes that items name, each as its item, its key where that will do, or an entity.

        `first` gives the first of them as it is named; None where the items have to be looked at.
        """
        if self._lacks is None:
            node = first()
            if node is None:
                return None
            self._lacks = self.lacks(node)
        if self._lacks and self.named.type.virtual:
            return None
        texts = None if companions or not self._lacks else self.named.texts(items)
        if texts is not None:
            return self._seen(operation, await operation.named(self.named.table, self.named.names, texts))
        keys = self.named.keys(items)
        if keys is None:
            return None
        if self._lacks:
            if companions and (shape := self._gathering(operation, first, companions)) is not None:
                await accompany(operation, shape, keys)
            return self._seen(operation, await operation.outcomes(keys))
        if self._is_key_only is None:
            templates = [self.named.layout.templates[name] for name in self.named.names]
            held = {variable.path for template in templates for variable in template.variables}
            node = first()
            self._is_key_only = node is not None and held.issuperset(node.named)
        return [KeyOnly.of(key) for _, key in keys] if self._is_key_only else None

    def _gathering(
        self, operation: Operation, first: Callable[[], Entity | None], companions: Sequence[Companion]
    ) -> Gathering | None:
        sizes = tuple([(companion.relationship.name, companion.want) for companion in companions])
        if sizes not in self._gatherings:
            node = first()
            self._gatherings[sizes] = None if node is None else page_gathering(operation, node, companions)
        return self._gatherings[sizes]

    def _seen(self, operation: Operation, outcomes: list[Any]) -> list[Outcome]:
        """Have a look at what was loaded, where it is not certain what it is."""
        if self._fits is None:
            known = frozenset(self.named.names)
            self._fits = fits(operation.model, self.named.layout, known) or never
        if are_items(outcomes, or_none=True) and self._fits([item for item in outcomes if item is not None]):
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
    lacking: dict[int, Entity] = {}
    for number, node in enumerate(nodes):
        if not isinstance(node, Entity):
            continue
        try:
            if node.lacks(needs(node.type.name)):
                lacking[number] = node
        except Exception as error:
            outcomes[number] = error
    if lacking:
        for number, outcome in zip(lacking, await get_each(operation, [*lacking.values()]), strict=True):
            outcomes[number] = outcome
    return outcomes


async def get_each(operation: Operation, named: Sequence[Entity]) -> list[Outcome]:
    """Get nodes from the table, each with what becomes of it alone; one that does not exist is None.

    Cost: as `lookups.load`, for all of them together.
    """
    outcomes: list[Outcome] = [None] * len(named)
    keyed: list[tuple[int, ItemKey]] = []
    searched: list[int] = []
    for number, node in enumerate(named):
        try:
            if node.type.virtual:
                outcomes[number] = permitted(operation, node)
                continue
            key = node.key
            searched.append(number) if key is None else keyed.append((number, key))
        except Exception as error:
            outcomes[number] = error
    if not keyed and not searched:
        return outcomes
    operation.request_items([key for _, key in keyed])
    found = await one_by_one(operation, searched, lambda number: by_keys(operation, [named[number]]))
    for number, outcome in found.items():
        outcomes[number] = outcome if isinstance(outcome, Exception) else outcome[0]
    items: list[Any] = await operation.outcomes([key for _, key in keyed])
    for (number, _), item in zip(keyed, items, strict=True):
        type_ = named[number].type
        is_item = item is not None and not isinstance(item, Exception)
        outcomes[number] = read_layouts(operation, every_layout(type_), item, type_.name) if is_item else item
    return outcomes


Follow = Callable[[int], Awaitable[Any]]
"""Reads behind one of the sources, as `reads` does."""


async def one_by_one(operation: Operation, numbers: Sequence[int], follow: Follow) -> dict[int, Outcome]:
    """Read behind some sources one by one, side by side."""
    if not numbers:
        return {}
    outcomes = await operation.together([attempt(follow(number)) for number in numbers])
    return dict(zip(numbers, outcomes, strict=True))


async def with_rest(
    operation: Operation, work: Coroutine[Any, Any, T], numbers: Sequence[int], follow: Follow
) -> tuple[T, dict[int, Outcome]]:
    """Do the work for most of the sources, and read behind the others one by one meanwhile: keys travel together."""
    if not numbers:
        return await work, {}
    done: Any
    found: Any
    done, found = await operation.together([work, one_by_one(operation, numbers, follow)])
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
