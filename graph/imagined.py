"""An imagined table: answers every request as a table of the model would, so that a query's requests show without one.

Every key that is asked for exists, every list holds the same number of items, and every field has a value.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from itertools import chain, product
from math import ceil
from typing import Any

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.expressions import AllOf, AnyOf, Between, Compare, Condition, Function
from graph.keys import AFTER_ALL, KeyValue, Literal, Path, Shard, Template, shard_path
from graph.model import Field, FieldKind, Index, Layout, Model, Projection, Table
from graph.requests import (
    Action,
    BatchGetItem,
    GetItem,
    Item,
    ItemKey,
    KeyAttributes,
    Query,
    Request,
    Scan,
    TransactWriteItems,
    key_attribute,
    key_value,
)
from graph.scalars import DATE, DATE_TIME, AttributeValue, sample
from graph.sizes import TYPICAL_ITEM_BYTES, WRITE_UNIT_BYTES, item_bytes, read_units

KINDS = ("read", "write")


class ImaginedTable:
    """Stands where the client stands; what a mutation creates is not there before, whatever it reads.

    `length` is how many items every list holds, `item_bytes` how large an item is taken to be for the read units.
    """

    def __init__(self, model: Model, length: int = 10, item_bytes: int = TYPICAL_ITEM_BYTES) -> None:
        self._model = model
        self._length = length
        self._item_bytes = item_bytes
        self.sent: list[tuple[Request, float]] = []
        """Every request, and the units that it would take: of reading, or of writing for a transaction."""

    is_imagined = True

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Answer a read, or take a transaction as done."""
        meter.requests.append(request)
        if isinstance(request, TransactWriteItems):
            self.sent.append((request, sum(map(self._write_units, request.actions))))
            return {}
        if isinstance(request, GetItem):
            found = self._at(request.table, request.key)
            self._note(request, self._units(1))
            return {} if found is None else {"Item": found}
        if isinstance(request, BatchGetItem):
            self._note(request, len(request.keys) * self._units(1))
            items = [item for key in request.keys if (item := self._at(request.table, key)) is not None]
            return {"Responses": {request.table: items}, "UnprocessedKeys": {}}
        assert isinstance(request, (Query, Scan)), f"{request.operation} reads nothing"
        items = list(self._range(request) if isinstance(request, Query) else self._scan(request))
        page = items[: request.limit] if request.limit else items
        self._note(request, self._units(len(page)))
        response: dict[str, Any] = {"Items": page, "Count": len(page), "ScannedCount": len(page)}
        if isinstance(request, Query) and len(page) < len(items):
            response["LastEvaluatedKey"] = page[-1]
        return response

    def keys(self, type_name: str) -> list[ItemKey]:
        """List the keys of so many items of a type as any list holds."""
        layout = self._model.items[type_name].layouts[0]
        items = [self._item(layout, {}, str(number)) for number in range(1, self._length + 1)]
        names = self._model.tables[layout.table].key_attributes
        return [(layout.table, tuple((name, key_value(item[name])) for name in names)) for item in items]

    def _note(self, request: Request, units: float) -> None:
        self.sent.append((request, units * (2 if getattr(request, "consistent", False) else 1)))

    def _write_units(self, action: Action) -> int:
        """Count two units for each kilobyte, as a transaction does; those of indexes come on top."""
        size = self._item_bytes if action.item is None else item_bytes(action.item)
        return 2 * max(1, ceil(size / WRITE_UNIT_BYTES))

    def _units(self, items: int) -> float:
        return read_units(items * self._item_bytes)

    def _at(self, table: str, key: KeyAttributes) -> Item | None:
        for layout in self._layouts(table):
            values = _parsed(layout, key)
            if values is not None:
                return self._item(layout, values, "1")
        return None

    def _scan(self, request: Scan) -> Iterator[Item]:
        if request.segment == 0:
            for layout in self._layouts(request.table):
                for number in range(1, self._length + 1):
                    yield self._item(layout, {}, str(number))

    def _range(self, request: Query) -> Iterator[Item]:
        """Give the items of every type whose keys lie in the range, or of the one that is asked for, in key order."""
        table = self._table(request.table)
        index = next(way for way in table.ways if way.name == request.index)
        chosen = _type_in(request.filter, table.type_attribute)
        found: dict[tuple[str, ...], Item] = {}
        seen: set[str] = set()
        for layout in self._layouts(request.table):
            type_ = self._model.items[layout.type_name]
            if chosen not in (None, type_.type_name) or type_.name in seen or not layout.is_in(index):
                continue
            partition = _parsed(layout, request.partition)
            for item in () if partition is None else self._matching(layout, index, partition, request):
                # Of a union's members, and of mirrors, the first one that fits: a list is as long as any other.
                seen.add(type_.name)
                found.setdefault(tuple(str(item[name]) for name in table.key_attributes), item)
        items = list(found.values())
        items.sort(key=lambda item: [key_value(item[name]) for name in index.sort_keys], reverse=request.descending)
        for item in items[_places_behind(items, request, table.key_attributes) :]:
            yield _projected(item, table, index)

    def _matching(self, layout: Layout, index: Index, partition: Mapping[Path, Any], request: Query) -> Iterator[Item]:
        # Different lists lead to different nodes, or they would be loaded once for all.
        salt = zlib.crc32(str((request.partition, layout.name)).encode()) % 10_000
        ref = self._model.items[layout.type_name].ref
        is_named = ref is not None and all(variable.path in partition for variable in ref.variables)
        for number in range(1, 1 + (1 if is_named else self._length)):
            for values in _guesses(layout, index, partition, request.sort, f"{salt}{number:03}"):
                item = self._item(layout, values, f"{salt}{number:03}")
                if request.sort is None or _holds(request.sort, item):
                    yield item
                    break

    def _table(self, name: str) -> Table:
        """Give a table by its name, that of a period too."""
        tables = self._model.tables
        return tables.get(name) or next(
            table for table in tables.values() if table.period is not None and table.period.names_table(name)
        )

    def _layouts(self, table: str) -> list[Layout]:
        """List the layouts of a table, those with the most literal text in their keys first."""
        pattern = self._table(table).name
        layouts = [layout for item in self._model.items.values() for layout in item.layouts if layout.table == pattern]
        return sorted(layouts, key=_literal_letters, reverse=True)

    # --- items ---

    def _item(self, layout: Layout, values: Mapping[Path, Any], number: str) -> Item:
        type_ = self._model.items[layout.type_name]
        item: dict[str, AttributeValue] = {}
        known = dict(values)
        for field in type_.fields.values():
            attribute = self._attribute(layout, field, known, number)
            if attribute is not None:
                item[field.attribute] = attribute
        if layout.copy is not None:
            # A copy shows its node whole, but for what the node's own items say by their keys alone.
            node = self._model.items[layout.ends.get(layout.copy) or type_.fields[layout.copy].type.named]
            for field in node.fields.values():
                inner = {path[1:]: value for path, value in known.items() if path[0] == layout.copy}
                copied = self._attribute(node.layouts[0], field, inner, number)
                if copied is not None and field.attribute not in layout.templates:
                    item.setdefault(field.attribute, copied)
        for name, template in layout.templates.items():
            for variable in template.variables:
                known.setdefault(variable.path, sample(variable.scalar, number))
            item[name] = key_attribute(template.format(dict.fromkeys(_shard_paths(template), 0) | known))
        table = self._model.tables[layout.table]
        if table.type_attribute:
            item[table.type_attribute] = {"S": type_.type_name}
        return item

    def _attribute(self, layout: Layout, field: Field, known: dict[Path, Any], number: str) -> AttributeValue | None:
        if field.kind is FieldKind.REFERENCE:
            name = layout.ends.get(field.name) or next(iter(field.refs))
            ref = field.refs[name]
            inner = {v.path: known.get((field.name, *v.path), sample(v.scalar, number)) for v in ref.variables}
            return key_attribute(ref.format(inner))
        if field.kind is FieldKind.RELATIONSHIP:
            return None
        if field.scalar is not None:
            value = known.get((field.name,), sample(field.scalar, number))
            written = field.scalar.write(value)
            return {"L": [written]} if field.type.of else written
        return {"L": []} if field.type.of else {"M": self._map(field.type.named, number)}

    def _map(self, name: str, number: str) -> dict[str, AttributeValue]:
        fields = self._model.objects[name].fields.values()
        return {
            field.attribute: field.scalar.write(sample(field.scalar, number))
            for field in fields
            if field.scalar is not None and field.type.of is None
        }


def _places_behind(items: list[Item], request: Query, names: tuple[str, ...]) -> int:
    """Count the items up to the one that the request starts behind."""
    start = dict(request.start or ())
    keys = [{name: key_value(item[name]) for name in names} for item in items]
    wanted = {name: start[name] for name in names if name in start}
    return keys.index(wanted) + 1 if wanted in keys else 0


def _projected(item: Item, table: Table, index: Index) -> Item:
    """Keep of an item what the index holds."""
    if index.projection is Projection.ALL:
        return item
    held = {*table.key_attributes, *index.key_attributes}
    if not isinstance(index.projection, Projection):
        held |= index.projection
    return {name: value for name, value in item.items() if name in held}


def _parsed(layout: Layout, key: KeyAttributes) -> dict[Path, Any] | None:
    """Read the values that key attributes hold, or None when one has another shape than the layout's."""
    values: dict[Path, Any] = {}
    for name, value in key:
        parsed = layout.templates[name].parse(value)
        if parsed is None:
            return None
        values |= parsed
    return values


def _shard_paths(template: Template) -> list[Path]:
    return [shard_path(part) for part in template.parts if isinstance(part, Shard)]


def _guesses(
    layout: Layout, index: Index, partition: Mapping[Path, Any], sort: Condition | None, number: str
) -> Iterator[dict[Path, Any]]:
    """Guess values that may satisfy a sort condition: those in its bounds first, then every enum value."""
    if sort is None:
        yield dict(partition)
        return
    *same, last = sort.conditions if isinstance(sort, AllOf) else (sort,)
    known = dict(partition)
    for name, bound in chain.from_iterable(map(_bounds, same)):
        known |= layout.templates[name].parse(bound) or {}
    for name, bound in _bounds(last):
        for tail in ("", number, sample(DATE, number), sample(DATE_TIME, number)):
            parsed = layout.templates[name].parse(bound + tail if isinstance(bound, str) else bound)
            if parsed is not None:
                yield known | parsed
    variables = [variable for template in layout.sort(index) for variable in template.variables]
    choices = [variable.scalar.values or (sample(variable.scalar, number),) for variable in variables]
    for choice in product(*choices):
        yield dict(zip((variable.path for variable in variables), choice, strict=True)) | dict(partition)


def _bounds(sort: Condition) -> Iterator[tuple[str, KeyValue]]:
    """Give the attribute of a sort condition, and the value that it begins at."""
    match sort:
        case Compare(name, _, value) | Between(name, value, _) | Function(_, name, value):
            letter, text = value
            yield name, Decimal(text) if letter == "N" else text


def _holds(sort: Condition, item: Item) -> bool:
    match sort:
        case AllOf(conditions):
            return all(_holds(one, item) for one in conditions)
        case Compare(attribute, "=", (letter, text)):
            return bool(item[attribute].get(letter) == text)
        case Function("begins_with", attribute, (_, text)):
            return str(item[attribute].get("S", "")).startswith(text)
        case Between(attribute, (letter, low), (_, high)):
            return bool(low <= item[attribute].get(letter, "") <= high)
        case _:
            return True


def _literal_letters(layout: Layout) -> int:
    return sum(
        len(part.text) for template in layout.templates.values() for part in template.parts if isinstance(part, Literal)
    )


def _type_in(condition: Condition | None, attribute: str | None) -> str | None:
    """Give the type that a filter on the discriminator asks for."""
    match condition:
        case Compare(name, "=", (_, text)) if name == attribute:
            return str(text)
        case AllOf(parts) | AnyOf(parts):
            return next((found for part in parts if (found := _type_in(part, attribute)) is not None), None)
        case _:
            return None


def explanation(table: ImaginedTable, length: int, item_bytes: int) -> str:
    """Write down what was sent: equal shapes once, with how often they occur, and the sum of their units."""
    shapes: dict[tuple[str, str], list[float]] = {}
    for request, units in table.sent:
        shapes.setdefault((_shape(request), _kind(request)), []).append(units)
    lines = [f"{len(units):>5} x {shape}  ({sum(units):g} {kind} units)" for (shape, kind), units in shapes.items()]
    read, written = (sum(units for request, units in table.sent if _kind(request) == kind) for kind in KINDS)
    how = f"{written:g} write units without those of indexes" if written else "eventually consistent"
    assumed = f"if every list holds {length} items of {item_bytes} bytes"
    return "\n".join([*lines, f"{len(table.sent):>5} requests, {read:g} read units, {how}, {assumed}"])


def _kind(request: Request) -> str:
    return KINDS[isinstance(request, TransactWriteItems)]


def _shape(request: Request) -> str:
    """Write a request with what differs between its likes cut off: the values of keys."""
    if isinstance(request, GetItem):
        return f"GetItem {', '.join(name for name, _ in request.key)}"
    if isinstance(request, TransactWriteItems):
        verbs = Counter(action.verb for action in request.actions)
        return f"TransactWriteItems of {', '.join(f'{count} {verb}' for verb, count in verbs.items())}"
    if isinstance(request, BatchGetItem):
        return f"BatchGetItem of {len(request.keys)} keys"
    if not isinstance(request, Query):
        return request.operation
    where = f" on {request.index}" if request.index else ""
    named = {str(value) for _, value in request.partition}
    sort = "" if request.sort is None else f" and {_sort_shape(request.sort, named)}"
    suffix = f"{', filtered' if request.filter else ''}{', COUNT' if request.count else f', limit {request.limit}'}"
    partition = " and ".join(f"{name} = …" for name, _ in request.partition)
    return f"Query{where}: {partition}{sort}{suffix}"


def _sort_shape(sort: Condition, named: Collection[str]) -> str:
    """Write a sort condition; an end that is the partition's own name says nothing that its likes do not."""
    match sort:
        case AllOf(conditions):
            return " and ".join(_sort_shape(one, named) for one in conditions)
        case Function(_, attribute, (_, text)):
            return f"{attribute} begins with {text}"
        case Between(attribute, (_, low), (_, high)):
            ends = ("…" if end in named else end for end in (low, high))
            first, last = (end.rstrip(chr(0)).replace(AFTER_ALL, "…") for end in ends)
            return f"{attribute} from {first} to {last}"
        case Compare(attribute, comparator, (_, text)):
            return f"{attribute} {comparator} {text}"
        case _:
            return ""
