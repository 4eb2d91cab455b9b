"""Who refers to a node: the items that name it, found through whatever index serves, and what they hold of it."""

from __future__ import annotations

from typing import Any

from graph.bounds import Bound
from graph.entity import UNKNOWN, Entity
from graph.errors import TooLarge, WriteError
from graph.keys import Path
from graph.loaders import Operation
from graph.lookups import load
from graph.merge import MergeSource
from graph.model import FieldKind, Inward, ItemType, Model
from graph.paging import Window, read_page
from graph.partition import RangeSource
from graph.planner import plan
from graph.sources import Sieve
from graph.writes.draft import Draft, ref_text


async def linked(
    operation: Operation, inward: Inward, node: Entity, most: int, *, is_cut_short: bool = False
) -> list[Entity]:
    """Read the items that name a node by one of their fields, as they lie in the table; `most`, or none more.

    Cost:   one Query for each range of the index that serves; where that is a global one, BatchGetItems for the items.
    Raises: WriteError when no index finds them; TooLarge when there are more, unless the list may be cut short.
    """
    found = plan(inward.accesses, _bounds(operation.model, inward, node)) if inward.accesses else None
    if found is None:
        raise _not_found(operation.model, inward, node)
    place = f"{inward.item_type}.{inward.field}"
    sources = [RangeSource(operation, one, place, Sieve()) for one in found.ranges]
    page = await read_page(MergeSource(sources), Window(most), budget=most + 1)
    if page.has_next and not is_cut_short:
        raise TooLarge(
            f"more than {most} {inward.item_type} name this {node.type.name} by `{inward.field}`, and one write takes "
            "no more along: delete or change some of them first"
        )
    items = [entry.entity for entry in page.entries]
    if found.index.name is not None or any(item.layout and item.layout.mirror for item in items):
        # A global index may be behind, and may not hold all of an item: of what it gives only the keys are taken.
        keys = [Entity(operation.model, item.type, key=Draft.of(item).key()) for item in items]
        loaded = await load(operation, keys, lambda name: stored_fields(operation.model.items[name]))
        items = [item for item in loaded if item is not None]
    return [item for item in items if _names(item, inward, node)]


def _not_found(model: Model, inward: Inward, node: Entity) -> WriteError:
    table = model.tables[model.items[inward.item_type].layouts[0].table]
    if table.period is not None:
        cure = f"they lie in as many tables as there are periods. Keep the {node.type.name}"
    else:
        cure = f"add an index whose partition key holds `{inward.field}`"
    return WriteError(
        f"nothing finds every {inward.item_type} whose `{inward.field}` is this {node.type.name}, so that this write "
        f"could leave a wrong graph behind: {cure}"
    )


def stored_fields(type_: ItemType) -> frozenset[str]:
    """List the fields of a type that are not relationships."""
    return frozenset(field.name for field in type_.fields.values() if field.kind is not FieldKind.RELATIONSHIP)


def _names(item: Entity, inward: Inward, node: Entity) -> bool:
    """Say whether an item names this very node: a partition may hold what names others like it."""
    entry = item.type.fields[inward.field]
    named = item.reference(entry)
    if not isinstance(named, Entity) or named.type is not node.type:
        return False
    return bool(ref_text(entry, named) == ref_text(entry, node))


def _bounds(model: Model, inward: Inward, node: Entity) -> dict[Path, Bound]:
    paths = {
        variable.path
        for access in inward.accesses
        for layout in access.layouts
        for template in layout.templates.values()
        for variable in template.variables
        if variable.path[0] == inward.field
    }
    values: dict[Path, Any] = {path: node.at(path[1:]) for path in paths if len(path) > 1}
    return {path: Bound(values=(value,)) for path, value in values.items() if value not in (None, UNKNOWN)}
