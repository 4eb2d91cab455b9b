"""Who refers to a node: the items that name it, found through whatever index serves, and what they hold of it."""

from __future__ import annotations

from typing import Any

from graph.bounds import Bound
from graph.cursor import Issuer, read_cursor, write_cursor
from graph.entity import UNKNOWN, Entity
from graph.errors import TooLarge, WriteError
from graph.expressions import Present
from graph.keys import Path
from graph.loaders import Operation
from graph.lookups import load
from graph.merge import MergeSource
from graph.model import FieldKind, Index, Inward, ItemType, Model
from graph.paging import Window, read_page
from graph.partition import RangeSource
from graph.planner import plan
from graph.requests import ItemKey
from graph.sources import Sieve
from graph.transaction import Guard, Rule
from graph.writes.draft import Draft, ref_text
from graph.writes.guards import name_of
from graph.writes.locks import Refused


async def linked(
    operation: Operation, inward: Inward, node: Entity, most: int, *, is_cut_short: bool = False
) -> list[Entity]:
    """Read the items that name a node by one of their fields, as they lie in the table; `most`, or none more.

    Cost:   one Query for each range of the index that serves; where that is a global one, BatchGetItems for the items.
    Raises: WriteError when no index finds them; TooLarge when there are more, unless the list may be cut short.
    """
    index, source = _naming(operation, inward, node)
    items: list[Entity] = []
    after = None
    while True:
        page = await read_page(source, Window(most, after=after), budget=most + 1)
        entities = [entry.entity for entry in page.entries]
        if index.name is not None or any(one.layout and one.layout.mirror for one in entities):
            entities = await _loaded(operation, entities)
        # A partition may hold what names others like it, and all of a page may be those.
        items += [one for one in entities if _names(one, inward, node)]
        if not page.has_next or len(items) > most or (is_cut_short and len(items) == most):
            break
        after = page.end
    if len(items) > most and not is_cut_short:
        raise TooLarge(
            f"more than {most} {inward.item_type} name this {node.type.name} by `{inward.field}`, and one write takes "
            "no more along: delete or change some of them first"
        )
    return items[:most]


async def linked_keys(
    operation: Operation, inward: Inward, node: Entity, most: int, after: str | None = None
) -> tuple[list[ItemKey], str | None]:
    """List where items lie that name a node by one of their fields, as an index shows them, and where to go on.

    Others like them may be among these, and where an index finds mirrors it is these. Where to go on is a text, and
    None at the end.

    Cost:   one Query for each range of the index that serves.
    Raises: WriteError when no index finds them; CursorError; ItemError when the node does not say what names it.
    """
    _, source = _naming(operation, inward, node)
    # Nobody but the streams' reader sees it: it needs no signature, and outlives keys.
    place = Issuer(f"{inward.item_type}.{inward.field}")
    position = None if after is None else read_cursor(after, place, "after")
    if position is not None:
        source.check(position)
    page = await read_page(source, Window(most, after=position), budget=most + 1)
    keys = [key for entry in page.entries if (key := entry.entity.key) is not None]
    return keys, write_cursor(page.end, place) if page.has_next and page.end is not None else None


def _naming(operation: Operation, inward: Inward, node: Entity) -> tuple[Index, MergeSource]:
    """Give the list of the items that name a node, and the index that serves it. Raises WriteError."""
    found = plan(inward.accesses, _bounds(operation.model, inward, node)) if inward.accesses else None
    if found is None:
        raise _not_found(operation.model, inward, node)
    place = f"{inward.item_type}.{inward.field}"
    return found.index, MergeSource([RangeSource(operation, one, place, Sieve()) for one in found.ranges])


async def _loaded(operation: Operation, found: list[Entity]) -> list[Entity]:
    """Take only the keys of what an index gives: a global one may be behind, and may not hold all of an item.

    Raises: Refused when an item is gone meanwhile: where it has moved to the index may not say yet.
    """
    model = operation.model
    named = [Entity(model, one.type, key=Draft.of(one).key()) for one in found]
    items = await load(operation, named, lambda name: stored_fields(model.items[name]))
    for one in named:
        assert one.key is not None, "it was made of one"
        if (await operation.items([one.key]))[0] is None:
            name = name_of(one.type, one.key)
            raise Refused(Guard(Rule.UNCHANGED, Present(one.key[1][0][0]), name), one.key, {})
    return [one for one in items if one is not None]


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
    is_followed = model.is_followed(node.type)
    paths = {
        variable.path
        for access in inward.accesses
        for layout in access.layouts
        for template in layout.templates.values()
        for variable in template.variables
        # What else keys hold of a node may be behind, where it follows by the stream.
        if variable.path[0] == inward.field and (not is_followed or variable.path[1:] in node.type.named_by)
    }
    values: dict[Path, Any] = {path: node.at(path[1:]) for path in paths if len(path) > 1}
    return {path: Bound(values=(value,)) for path, value in values.items() if value not in (None, UNKNOWN)}
