"""The guard of an operation: what its caller may not read is, for all that the operation can tell, not there.

Nothing is asked for where every item would be kept back, and what comes is looked through item by item; so no way to
an item, whichever it is, leads past the rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from msgspec import UNSET

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.entity import Entity, every_layout, read_entity
from graph.keys import KeyValue, Path, Template
from graph.model import FieldKind, ItemType, Layout, Model, Table
from graph.permissions import ALWAYS, Grant, Permissions
from graph.records import Record
from graph.requests import BatchGetItem, GetItem, Item, KeyAttributes, Query, Request, Scan, key_value
from graph.rules import Right
from graph.streams.change import table_of

if TYPE_CHECKING:
    from graph.loaders import Sender

NOTHING: Response = {"Items": [], "Count": 0, "ScannedCount": 0}


@dataclass(frozen=True, slots=True)
class Ruled:
    """A layout whose items the caller may not all read, or not read whole."""

    layout: Layout
    key: str
    partition: Template
    """The attribute of the partition key, and what it looks like."""
    grant: Grant
    hidden: tuple[tuple[str, Grant], ...]
    """Attributes that the caller may not read in every item."""
    copies: bool
    """It holds a copy of a node that the caller may not read everywhere, or not whole."""
    keys: tuple[tuple[str, Template], ...]
    """The attributes of its key where they alone tell all: what the item is, and whether it may be read; else none."""


class Sight:
    """What of a model's items one caller may read: the same for all their operations."""

    def __init__(self, model: Model, permissions: Permissions) -> None:
        self.permissions = permissions
        self._model = model
        self._ruled: dict[str, tuple[Ruled, ...]] = {}

    def is_reachable(self, table: str, index: str | None, partition: Sequence[KeyValue]) -> bool:
        """Say whether a partition may hold anything that the caller may read, as far as its key tells."""
        stored = table_of(self._model, table)
        way = next(way for way in stored.ways if way.name == index)
        is_of_model = False
        for type_ in self._model.items.values():
            grant = self.permissions.of(type_.name, Right.READ)
            for layout in every_layout(type_):
                if layout.table != stored.name or not layout.is_in(way):
                    continue
                values: dict[Path, Any] = {}
                for template, value in zip(layout.partition(way), partition, strict=True):
                    parsed = template.parse(value)
                    if parsed is None:
                        break
                    values |= parsed
                else:
                    is_of_model = True
                    if grant.may_hold(values):
                        return True
        # What is none of the model's is nobody's data.
        return not is_of_model

    def ruled(self, table: str) -> tuple[Ruled, ...]:
        """List the layouts of a table whose items have to be looked at."""
        known = self._ruled.get(table)
        if known is None:
            known = self._ruled[table] = tuple(self._list(table_of(self._model, table)))
        return known

    def _list(self, table: Table) -> Iterator[Ruled]:
        for type_ in self._model.items.values():
            grant, hidden = self.permissions.of(type_.name, Right.READ), self._hidden(type_)
            for layout in every_layout(type_):
                ends = () if layout.copy is None else type_.fields[layout.copy].refs
                copies = any(self._is_ruled(self._model.items[name]) for name in ends)
                if layout.table == table.name and (grant != ALWAYS or hidden or copies):
                    (key,) = table.primary.partition_keys
                    keys = () if hidden or copies else self._telling(table, layout, grant)
                    yield Ruled(layout, key, layout.templates[key], grant, hidden, copies, keys)

    def _telling(self, table: Table, layout: Layout, grant: Grant) -> tuple[tuple[str, Template], ...]:
        keys = tuple((name, layout.templates[name]) for name in table.key_attributes)
        told = {variable.path for _, template in keys for variable in template.variables if not variable.lossy}
        are_told = all(test.in_key and test.path in told for way in grant.ways for test in way)
        is_plain = table.type_attribute is None and not layout.self_keyed and not self._model.rivals_of(layout)
        return keys if are_told and is_plain else ()

    def _is_ruled(self, type_: ItemType) -> bool:
        return self.permissions.of(type_.name, Right.READ) != ALWAYS or bool(self._hidden(type_))

    def _hidden(self, type_: ItemType) -> tuple[tuple[str, Grant], ...]:
        fields = (field for field in type_.fields.values() if field.auth and field.kind is not FieldKind.RELATIONSHIP)
        grants = [(field.attribute, self.permissions.by(field.auth, Right.READ)) for field in fields]
        return tuple((attribute, grant) for attribute, grant in grants if not grant.always)

    def shows(self, ruled: Iterable[Ruled], item: Item) -> bool:
        """Say whether the caller may read an item; what they may not read of it is taken out."""
        for one in ruled:
            if one.keys:
                values = _parsed(one.keys, item)
                if values is None:
                    continue
                return one.grant.may_hold(values)
            entity = read_entity(self._model, one.layout, item)
            if entity is None:
                continue
            if not one.grant.holds(entity):
                return False
            hidden = [attribute for attribute, grant in one.hidden if not grant.holds(entity)]
            if one.copies:
                hidden += self._hidden_copies(entity, one.layout)
            for attribute in hidden:
                _take_out(item, attribute)
            return True
        return True

    def _hidden_copies(self, entity: Entity, layout: Layout) -> list[str]:
        """List the attributes of a node copied into an item that the caller may not read there."""
        node = entity.end(layout.copy or "")
        if node is None or not node.holds:
            return []
        copied = node.holds - layout.templates.keys()
        if not self.permissions.of(node.type.name, Right.READ).holds(node):
            return list(copied)
        return [name for name, grant in self._hidden(node.type) if name in copied and not grant.holds(node)]


class Guard:
    """Sends the requests of one operation, and gives of the answers what its caller may read."""

    def __init__(self, sender: Sender, sight: Sight) -> None:
        self.sender = sender
        """What it guards: it sees everything."""
        self.sight = sight
        self._reachable: dict[tuple[str, str | None, tuple[KeyValue, ...]], bool] = {}
        self._ruled: dict[tuple[str, KeyValue], tuple[Ruled, ...]] = {}

    @property
    def is_imagined(self) -> bool:
        """Say whether the operation is only explained."""
        return bool(getattr(self.sender, "is_imagined", False))

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request, and give of its answer what may be read. Raises StoreError."""
        match request:
            case GetItem():
                return await self._get(request, meter, parse)
            case BatchGetItem():
                return await self._get_batch(request, meter, parse)
            case Query():
                if not self._may_reach(request.table, request.index, tuple([value for _, value in request.partition])):
                    return dict(NOTHING)
                return await self._page(request, meter, parse)
            case Scan():
                return await self._page(request, meter, parse)
        return await self.sender.send(request, meter, parse)

    async def _get(self, request: GetItem, meter: Meter, parse: Parse) -> Response:
        if not self._may_reach_item(request.table, request.key):
            return {}
        response = await self.sender.send(request, meter, parse)
        if "Item" in response and not self._kept(request.table, [response["Item"]]):
            del response["Item"]
        return response

    async def _get_batch(self, request: BatchGetItem, meter: Meter, parse: Parse) -> Response:
        keys = tuple([key for key in request.keys if self._may_reach_item(request.table, key)])
        if not keys:
            return {"Responses": {request.table: []}}
        response = await self.sender.send(replace(request, keys=keys), meter, parse)
        answers = response["Responses"]
        answers[request.table] = self._kept(request.table, answers.get(request.table, []))
        return response

    async def _page(self, request: Query | Scan, meter: Meter, parse: Parse) -> Response:
        if not self.sight.ruled(request.table):
            return await self.sender.send(request, meter, parse)
        # DynamoDB would count what the caller may not read.
        response = await self.sender.send(replace(request, count=False) if request.count else request, meter, parse)
        response["Items"] = self._kept(request.table, response["Items"])
        response["Count"] = len(response["Items"])
        if request.count:
            del response["Items"]
        return response

    def _may_reach_item(self, table: str, key: KeyAttributes) -> bool:
        return self._may_reach(table, None, (key[0][1],))

    def _may_reach(self, table: str, index: str | None, partition: tuple[KeyValue, ...]) -> bool:
        known = self._reachable.get((table, index, partition))
        if known is None:
            known = self.sight.is_reachable(table, index, partition)
            self._reachable[table, index, partition] = known
        return known

    def _kept(self, table: str, items: Sequence[Item]) -> list[Item]:
        """Keep the items that the caller may read."""
        return [item for item in items if self.sight.shows(self._candidates(table, item), item)]

    def _candidates(self, table: str, item: Item) -> tuple[Ruled, ...]:
        """List the layouts that an item may have, as far as the first attribute of its key tells: others share it."""
        ruled = self.sight.ruled(table)
        if not ruled:
            return ()
        attribute = item.get(ruled[0].key)
        if attribute is None or "B" in attribute:
            return ruled
        value = key_value(attribute)
        known = self._ruled.get((table, value))
        if known is None:
            found = tuple([one for one in ruled if one.partition.parse(value) is not None])
            known = self._ruled[table, value] = found
        return known


def _parsed(keys: Iterable[tuple[str, Template]], item: Item) -> dict[Path, Any] | None:
    """Parse the key of an item; None where it has another shape."""
    values: dict[Path, Any] = {}
    for name, template in keys:
        attribute = item.get(name)
        if attribute is None or "B" in attribute:
            return None
        found = template.parse(key_value(attribute))
        if found is None:
            return None
        values |= found
    return values


def _take_out(item: Item, attribute: str) -> None:
    """Remove an attribute from an answer, which is ours alone."""
    if isinstance(item, Record):
        if attribute in item.slots:
            setattr(item, item.slots[attribute], UNSET)
    else:
        cast(MutableMapping[str, Any], item).pop(attribute, None)
