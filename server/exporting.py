"""An export: a parallel Scan, written as it comes and given its name when it is whole."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Protocol

from graph.bulk.items import Fitting, all_layouts
from graph.bulk.records import Moment, RecordReader
from graph.bulk.written import RecordWriter, mirror_keys, unknown_nodes
from graph.entity import Entity, read_entity
from graph.errors import GraphError, InputError
from graph.keys import OURS
from graph.loaders import Graph
from graph.lookups import by_keys
from graph.model import Model, Table
from graph.ours import is_ours
from graph.requests import DescribeTable, Item, KeyAttributes, ListTables, Scan, key_value
from graph.tasks import together
from graph.writes.draft import Draft
from server.formats import ITEMS, RECORDS
from server.formats.comma_separated import CommaSeparatedWriter
from server.formats.dynamodb_export import DynamoExportWriter
from server.formats.json_lines import JsonLinesWriter
from server.progress import Progress

SHOWN_UNREADABLE = 20


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be exported, and how."""

    model: Model
    format: str
    type_name: str | None = None
    segments: int = 4

    @property
    def is_records(self) -> bool:
        """Say whether items become records."""
        return self.format in ("jsonl", "csv")


@dataclass(slots=True)
class Exported:
    """What became of an export."""

    written: int = 0
    unfit: int = 0
    expired: int = 0
    unreadable: list[str] = field(default_factory=list)
    unreadable_count: int = 0
    seconds: float = 0.0

    def summary(self) -> str:
        """Tell it in lines for standard error."""
        lines = [*self.unreadable]
        if self.unreadable_count:
            lines.append(f"{self.unreadable_count:,} items make no record: --format dynamodb-json has them")
        if self.unfit:
            lines.append(f"{self.unfit:,} items fit no type and are left out: --format dynamodb-json has them")
        if self.expired:
            lines.append(f"{self.expired:,} items have expired and are left out")
        rate = self.written / max(self.seconds, 1e-9)
        lines.append(f"exported {self.written:,} in {self.seconds:.1f} s ({rate:,.0f}/s)")
        return "\n".join(lines) + "\n"


class _Writer(Protocol):
    def write(self, contents: list[dict[str, Any]]) -> None: ...

    def close(self) -> None: ...


async def export(plan: Export, graph: Graph, target: str) -> Exported:
    """Write the items of the model's tables to a file or folder.

    Raises: InputError when the target cannot be written, StoreError when DynamoDB does not do what is asked.
    """
    exported = Exported()
    tables = [entry async for entry in _tables(plan, graph)]
    total = sum([(await graph.send(DescribeTable(name)))["Table"].get("ItemCount", 0) for _, name in tables])
    progress = Progress("exporting", total)
    if plan.format == "dynamodb-export":
        with _folder(Path(target)) as folder:
            for table, name in tables:
                await _scan(plan, graph, table, name, DynamoExportWriter(folder, name), exported, progress)
    else:
        with _file(target) as file:
            writer = _writer(plan, file)
            for table, name in tables:
                await _scan(plan, graph, table, name, writer, exported, progress)
            if not tables:
                writer.close()
    progress.end()
    exported.seconds = progress.seconds
    return exported


def _writer(plan: Export, file: IO[bytes]) -> _Writer:
    if plan.format == "csv":
        assert plan.type_name is not None, "the command wants a type for csv"
        return CommaSeparatedWriter(file, plan.model, plan.model.items[plan.type_name])
    return JsonLinesWriter(file, RECORDS if plan.is_records else ITEMS)


@contextmanager
def _file(target: str) -> Iterator[IO[bytes]]:
    """Open the target, or standard output; a file has its name only when it is whole."""
    if target == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    new = path.with_name(path.name + ".writing")
    try:
        with new.open("wb") as file:
            yield file
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _folder(path: Path) -> Iterator[Path]:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} is there already: name a folder that is not")
    new = path.with_name(path.name + ".writing")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        yield new
        new.replace(path)
    finally:
        shutil.rmtree(new, ignore_errors=True)


async def _tables(plan: Export, graph: Graph) -> Any:
    """List the tables to be scanned, each with its name: of a time series those that there are."""
    types = plan.model.items.values()
    wanted = {layout.table for type_ in types if plan.type_name in (None, type_.name) for layout in type_.layouts}
    existing: list[str] | None = None
    for table in plan.model.tables.values():
        if table.name not in wanted:
            continue
        if table.period is None:
            yield table, table.name
            continue
        if existing is None:
            existing = await _existing(graph)
        for name in existing:
            if table.period.names_table(name):
                yield table, name


async def _existing(graph: Graph) -> list[str]:
    names: list[str] = []
    after: str | None = None
    while True:
        response = await graph.send(ListTables(after))
        names += response["TableNames"]
        after = response.get("LastEvaluatedTableName")
        if after is None:
            return names


async def _scan(
    plan: Export, graph: Graph, table: Table, name: str, writer: _Writer, exported: Exported, progress: Progress
) -> None:
    """Scan a table, all segments side by side; every page is written as it comes."""
    pages = _Pages(plan, graph, table, exported)

    async def scan(segment: int) -> None:
        start: KeyAttributes | None = None
        while True:
            request = Scan(name, segment, plan.segments, start=start, consistent=True)
            response = await graph.send(request)
            contents = await pages.contents(response["Items"])
            writer.write(contents)
            exported.written += len(contents)
            progress.add(len(response["Items"]))
            if "LastEvaluatedKey" not in response:
                return
            last = response["LastEvaluatedKey"]
            start = tuple((key, key_value(last[key])) for key in table.key_attributes)

    await together([scan(segment) for segment in range(plan.segments)])
    writer.close()


class _Pages:
    """Turns pages of items into what is written of them."""

    def __init__(self, plan: Export, graph: Graph, table: Table, exported: Exported) -> None:
        self._plan = plan
        self._graph = graph
        self._table = table
        self._exported = exported
        model = plan.model
        self._fitting = Fitting(model, (layout for layout in all_layouts(model) if layout.table == table.name))
        self._is_told = len(model.tables) > 1 and not plan.is_records
        self._writer = RecordWriter(model, RecordReader(model, Moment(datetime.now(UTC), "export")))

    async def contents(self, items: list[Item]) -> list[dict[str, Any]]:
        """Give the records, or the items, of a page."""
        kept: list[dict[str, Any]] = []
        entities: list[Entity] = []
        for item in items:
            if is_ours(item, self._table):
                continue
            entity = self._fitting.read(item)
            if entity is not None and self._has_expired(entity):
                self._exported.expired += 1
            elif entity is None:
                self._add_unfit(kept, item)
            elif self._plan.type_name in (None, entity.type.name):
                entities.append(entity)
                if not self._plan.is_records:
                    kept.append(_public(item))
        return await self._records(entities) if self._plan.is_records else kept

    def _add_unfit(self, kept: list[dict[str, Any]], item: Item) -> None:
        if self._plan.is_records:
            self._exported.unfit += 1
        elif self._plan.type_name is None:
            public = _public(item)
            # Nothing in such an item says to which of several tables it belongs.
            is_line = self._plan.format == "dynamodb-json" and self._is_told
            kept.append({"Item": public, "TableName": self._table.name} if is_line else public)

    @staticmethod
    def _has_expired(entity: Entity) -> bool:
        expiry = entity.wire.get(entity.type.expiry or "", {}).get("N")
        return expiry is not None and Decimal(expiry) <= int(time.time())

    async def _records(self, entities: list[Entity]) -> list[dict[str, Any]]:
        firsts = [one for one in entities if one.layout is not None and one.layout.mirror == 0]
        mirrors, nodes = await self._behind(firsts)
        records: list[dict[str, Any]] = []
        for number, entity in enumerate(firsts):
            try:
                records.append(self._writer.record(entity, mirrors.get(number, ()), nodes.get(number)))
            except GraphError as error:
                self._exported.unreadable_count += 1
                if len(self._exported.unreadable) < SHOWN_UNREADABLE:
                    self._exported.unreadable.append(f"{entity.key}: {error}")
        return records

    async def _behind(self, entities: list[Entity]) -> tuple[dict[int, list[Entity]], dict[int, dict[str, Entity]]]:
        """Read what edges with mirrors do not say themselves: the mirrors, else the nodes at their ends."""
        mirrored = {number: Draft.of(entity) for number, entity in enumerate(entities) if len(entity.type.layouts) > 1}
        keys = {number: found for number, draft in mirrored.items() if (found := mirror_keys(draft))}
        if not mirrored:
            return {}, {}
        operation = self._graph.operation(consistent=True)
        wanted = [(number, name, key) for number, found in keys.items() for name, key in found.items()]
        items = await operation.items([key for _, _, key in wanted])
        mirrors: dict[int, list[Entity]] = {}
        for (number, name, _), item in zip(wanted, items, strict=True):
            layout = next(layout for layout in entities[number].type.layouts if layout.name == name)
            mirror = None if item is None else read_entity(self._plan.model, layout, item)
            if mirror is not None:
                mirrors.setdefault(number, []).append(mirror)
        asked = [
            (number, name, node)
            for number in mirrored
            for name, node in unknown_nodes(entities[number], mirrors.get(number, ())).items()
        ]
        found_nodes = await by_keys(operation, [node for _, _, node in asked])
        nodes: dict[int, dict[str, Entity]] = {}
        for (number, name, _), node in zip(asked, found_nodes, strict=True):
            if node is not None:
                nodes.setdefault(number, {})[name] = node
        return mirrors, nodes


def _public(item: Item) -> dict[str, Any]:
    return {name: value for name, value in item.items() if not name.startswith(OURS)}
