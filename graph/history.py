"""Earlier versions of items: what they were, one by one or as a list, by their keys alone."""

from __future__ import annotations

from dataclasses import dataclass

from graph.batches import BATCH_GET_KEYS
from graph.cursor import Position, issuer
from graph.entity import Entity
from graph.items import KeysSource
from graph.loaders import Operation
from graph.model import ItemType, Layout
from graph.paging import PageArguments, read_page, window
from graph.planner import KeyRange
from graph.reads import Connection, Edge
from graph.requests import ItemKey
from graph.sort import SortRange
from graph.sources import Batch, Entry, Reader, Reading, not_ours, read_layouts


def version_key(entity: Entity, version: int) -> ItemKey:
    """Make the key of a version of an item."""
    layout, key = _layout(entity.type), entity.key
    assert key is not None, "the look-ahead asks for it"
    sort = entity.model.tables[layout.table].key_attributes[-1]
    template = layout.templates[sort]
    values = {variable.path: entity.at(variable.path) for variable in template.variables}
    values[entity.type.version or "",] = version
    return key[0], (key[1][0], (sort, template.format(values)))


def _layout(type_: ItemType) -> Layout:
    assert type_.history is not None, "only a type with @history has versions"
    return type_.history


async def version_at(operation: Operation, entity: Entity, version: int) -> Entity | None:
    """Get an item as a version of it was, or None. Cost: one key in a BatchGetItem."""
    item = await operation.loader.load(version_key(entity, version)) if version > 0 else None
    return None if item is None else read_layouts(operation, (_layout(entity.type),), item, entity.type.name)


async def versions(
    operation: Operation,
    entity: Entity,
    arguments: PageArguments,
    *,
    descending: bool = False,
    wants_page: bool = True,
) -> Connection:
    """Read a page of the versions of an item, the first one first, or only say how many there are.

    Cost:   one BatchGetItem for 100 of them, for their keys are known; none to count them.
    Raises: PageError, CursorError; StoreError.
    """
    type_ = entity.type
    count = max(0, int(entity.at((type_.version or "",)) or 0))
    source = VersionsSource(operation, entity, count)
    name = issuer(operation.model.seals, type_.name, "versions", entity.key, descending)
    window_ = window(arguments, operation.limits, name, source)
    if not wants_page:
        return Connection(name, [], None, count)
    page = await read_page(
        source, window_, budget=operation.limits.read_budget, descending=descending, is_late=operation.is_late
    )
    edges = [Edge(name, entry.position, entry.entity, entry.entity) for entry in page.entries]
    return Connection(name, edges, page, count)


@dataclass(frozen=True, slots=True)
class VersionsSource:
    """The versions of an item that exist, in the order of their numbers, from 1 to a last one.

    A position is a version's whole key. Keys are made when they are read: others may have written any number.
    """

    operation: Operation
    entity: Entity
    last: int

    def reader(self, reading: Reading) -> Reader:
        """Begin a walk. Cost: the keys join the BatchGetItems of the operation, as many at a time as are wanted."""
        return _VersionsReader(self, reading)

    def between(self, reading: Reading) -> range:
        """Give the numbers to be read, in the order of reading."""
        first, last, step = (self.last, 1, -1) if reading.descending else (1, self.last, 1)
        if reading.start is not None:
            first = self._number(reading.start) + (0 if reading.with_start else step)
        if reading.stop is not None:
            last = self._number(reading.stop) - (0 if reading.with_stop else step)
        return range(first, last + step, step)

    async def load(self, numbers: range) -> list[Entry]:
        """Get the versions with these numbers that exist."""
        ranges = tuple(map(self._range, numbers))
        source = KeysSource(self.operation, ranges, f"{self.entity.type.name}.versions", is_ordered=True)
        return await source.load(source.ordered(Reading(want=len(ranges))))

    def position(self, number: int) -> Position:
        """Give the place of a version."""
        return tuple(value for _, value in version_key(self.entity, number)[1])

    def check(self, position: Position) -> None:
        """Refuse a position that is none of the versions."""
        self._number(position)

    async def count(self) -> int:
        """Give the number of the last one."""
        return self.last

    def _number(self, position: Position) -> int:
        layout = _layout(self.entity.type)
        template = layout.templates[self.entity.model.tables[layout.table].key_attributes[-1]]
        values = template.parse(position[-1]) if position and isinstance(position[-1], str) else None
        number = values[self.entity.type.version or "",] if values else 0
        if not 1 <= number <= self.last or self.position(number) != position:
            raise not_ours()
        return int(number)

    def _range(self, number: int) -> KeyRange:
        layout = _layout(self.entity.type)
        table, ((_, partition), (_, sort)) = version_key(self.entity, number)
        primary = self.entity.model.tables[layout.table].primary
        return KeyRange(primary, table, (partition,), SortRange.exactly(sort), (layout,))


class _VersionsReader:
    """Gets as many versions at a time as are wanted, and whole batches once some of them turn out to be missing."""

    def __init__(self, source: VersionsSource, reading: Reading) -> None:
        self._source = source
        self._want = min(reading.want, reading.most)
        self._left = source.between(reading)

    async def read(self) -> Batch:
        """Read one round further."""
        numbers, self._left = self._left[: self._want], self._left[self._want :]
        self._want = max(self._want, BATCH_GET_KEYS)
        entries = await self._source.load(numbers)
        return Batch(entries, len(numbers), self._source.position(numbers[-1]) if self._left else None)
