"""Earlier versions of items: what they were, one by one or as a list, by their keys alone."""

from __future__ import annotations

from graph.cursor import fingerprint
from graph.entity import Entity
from graph.items import KeysSource
from graph.loaders import Operation
from graph.model import ItemType, Layout
from graph.paging import PageArguments, read_page, window
from graph.planner import KeyRange
from graph.reads import Connection, Edge
from graph.requests import ItemKey
from graph.sort import SortRange
from graph.sources import read_layouts


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
    operation: Operation, entity: Entity, arguments: PageArguments, *, descending: bool = False
) -> Connection:
    """Read a page of the versions of an item, the first one first.

    Cost:   one BatchGetItem for 100 of them, for their keys are known.
    Raises: PageError, CursorError; StoreError.
    """
    type_, layout = entity.type, _layout(entity.type)
    table = entity.model.tables[layout.table]
    count = int(entity.at((type_.version or "",)) or 0)
    keys = [version_key(entity, number) for number in range(1, count + 1)]
    ranges = tuple(
        KeyRange(table.primary, name, (partition,), SortRange.exactly(sort), (layout,))
        for name, ((_, partition), (_, sort)) in keys
    )
    source = KeysSource(operation, ranges, f"{type_.name}.versions", is_ordered=True)
    name = fingerprint(type_.name, "versions", entity.key, descending)
    window_ = window(arguments, operation.limits, name, source)
    page = await read_page(source, window_, budget=operation.limits.read_budget, descending=descending)
    edges = [Edge(name, entry.position, entry.entity, entry.entity) for entry in page.entries]
    return Connection(name, edges, page, count)
