"""Whether an API shows what lies in its tables: every item is asked for by its own key, and compared field by field."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from graph.bulk.items import Fitting, all_layouts
from graph.entity import Entity
from graph.loaders import Graph
from graph.model import Field, FieldKind, Model, Table
from graph.patterns import has_lookup, lookup_arguments, lookup_name
from graph.requests import Item, ListTables, Scan, key_value
from resolvers.operation import Request
from resolvers.schema import Api

AT_ONCE = 40
"""Lookups in one document."""
COMPARED = ("ID", "String", "Int", "Boolean", "Date", "BigInt")


async def names_of(graph: Graph, table: Table) -> list[str]:
    """The names of a table, or of all tables of a time series."""
    if table.period is None:
        return [table.name]
    found: list[str] = []
    while True:
        answer = await graph.send(ListTables(found[-1] if found else None))
        found += answer["TableNames"]
        if "LastEvaluatedTableName" not in answer:
            return [name for name in found if table.period.names_table(name)]


async def stored(graph: Graph) -> list[tuple[str, Item]]:
    """Every item of every table of a model, with the table's name in the model."""
    found: list[tuple[str, Item]] = []
    for table in graph.model.tables.values():
        for name in await names_of(graph, table):
            start = None
            while True:
                answer = await graph.send(Scan(name, 0, 1, start=start, consistent=True))
                found += [(table.name, item) for item in answer["Items"]]
                if "LastEvaluatedKey" not in answer:
                    break
                last = answer["LastEvaluatedKey"]
                start = tuple((key, key_value(last[key])) for key in table.key_attributes)
    return found


async def unreached(api: Api, graph: Graph) -> list[str]:
    """List the items that no lookup shows as they are stored; what has expired is nobody's to see."""
    problems: list[str] = []
    wanted: list[Entity] = []
    for table, item in await stored(graph):
        layouts = (layout for layout in all_layouts(graph.model) if layout.table == table)
        entity = Fitting(graph.model, layouts).read(item)
        if entity is None:
            problems.append(f"fits no type: {item}")
        elif not _has_expired(entity):
            entity.holds = None
            wanted.append(entity)
    for start in range(0, len(wanted), AT_ONCE):
        problems += [problem async for problem in _compare(api, graph.model, wanted[start : start + AT_ONCE])]
    return problems


async def _compare(api: Api, model: Model, entities: list[Entity]) -> Any:
    fields = [f"a{number}: {lookup(model, entity)}" for number, entity in enumerate(entities)]
    body = (await api.execute(Request(f"{{ {' '.join(fields)} }}"))).body
    if body.get("errors"):
        yield f"{body['errors'][0]} in {fields[:2]}"
    for number, entity in enumerate(entities):
        shown = (body.get("data") or {}).get(f"a{number}")
        if shown is None:
            yield f"is not there: {fields[number]}"
            continue
        if entity.layout is not None and entity.layout.mirror:
            continue
        for field in compared(entity):
            expected = _json(entity.value(field))
            if field.scalar is not None and field.scalar.name == "BigInt" and expected is not None:
                expected = str(expected)
            if shown[field.name] != expected:
                yield f"{fields[number]}: {field.name} is {shown[field.name]!r}, stored is {expected!r}"


def lookup(model: Model, entity: Entity) -> str:
    """Write the lookup of an item, with every field that is compared."""
    assert has_lookup(model, entity.type), entity.type.name
    arguments = [
        f"{name}: {json.dumps(_json(entity.at(path)), ensure_ascii=False)}"
        for name, (path, _) in lookup_arguments(model, entity.type).items()
    ]
    names = [field.name for field in compared(entity)]
    return f"{lookup_name(entity.type.name)}({', '.join(arguments)}) {{ __typename {' '.join(names)} }}"


def compared(entity: Entity) -> Iterator[Field]:
    for field in entity.type.fields.values():
        is_value = field.kind is FieldKind.ATTRIBUTE and field.scalar is not None and field.type.of is None
        if is_value and field.scalar is not None and field.scalar.name in COMPARED:
            yield field


def _json(value: Any) -> Any:
    """Write a key's number as its scalar does: large ones and fractions as text."""
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == int(value) else str(value)


def _has_expired(entity: Entity) -> bool:
    expiry = entity.wire.get(entity.type.expiry or "", {}).get("N")
    return expiry is not None and Decimal(expiry) <= time.time()


def counts(model: Model, items: Iterable[tuple[str, Item]]) -> dict[str, int]:
    """Count the items of each type."""
    found: dict[str, int] = {}
    fitting = Fitting(model, all_layouts(model))
    for _, item in items:
        entity = fitting.read(item)
        name = "" if entity is None else entity.type.name
        found[name] = found.get(name, 0) + 1
    return found
