"""The pages of a relationship for all its sources at once, and those of a find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any

from graph import reads
from graph.cursor import Issuer, issuer
from graph.entity import Entity
from graph.filters import NO_FILTER, Every, Filter
from graph.levels import Named, Start, load_each, one_by_one, starts, with_rest
from graph.lists import prime_inverses
from graph.loaders import Operation
from graph.model import Find, Relationship
from graph.paging import PageArguments
from graph.reads import Asked
from graph.records import are_items
from graph.rows import Rows
from graph.ways import Way, Ways
from resolvers.connection import is_descending, is_fresh, page_arguments, plain
from resolvers.filters import read_arguments, read_where
from resolvers.plan.arguments import Arguments
from resolvers.plan.companions import Companions
from resolvers.plan.connections import Page, as_entity
from resolvers.plan.items import end_of
from resolvers.plan.objects import Items
from resolvers.plan.run import Run
from resolvers.plan.written import Found, Read, Split


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is selected of a connection, whatever its arguments."""

    asked: Asked
    """Without filter and order."""
    companions: Callable[[str], Companions]
    """The relationships whose first page is selected of the nodes, by their type."""
    inverses: frozenset[str]
    """Those of the relationship's inverses that the document selects somewhere."""
    is_constant: bool
    """The operation has no variables, so that every run asks for the same."""

    def of(self, run: Run, where: Filter, *, descending: bool, fresh: bool, in_all: bool = False) -> Asked:
        """Say what a run asks for; it does not keep the run."""
        limits, variables, companions = run.operation.limits, run.variables, self.companions
        return replace(
            self.asked,
            where=where,
            descending=descending,
            companions=lambda name: companions(name).of(limits, variables),
            in_all=in_all,
            fresh=fresh,
        )


def find_read(find: Find, arguments: Arguments, wanted: Wanted) -> Read:
    """Make what reads a field of Query."""

    async def read(run: Run, batch: Any) -> Found:
        given = arguments.of(run)
        where = Every(
            (
                read_arguments(find.arguments, given),
                read_where(run.operation.model, find.item_types[0], given.get("where"), run.operation.permissions),
            )
        )
        descending = is_descending(given, default=find.descending)
        in_all = plain(given.get("match")) == "ALL"
        asked = wanted.of(run, where, descending=descending, fresh=is_fresh(given), in_all=in_all)
        return [await reads.connection(run.operation, find, None, page_arguments(given), asked)], None

    return read


def to_many_read(relationship: Relationship, arguments: Arguments, wanted: Wanted) -> Read:
    """Make what reads the pages of a relationship."""
    reader = _Reader(relationship, wanted)
    constant: list[tuple[PageArguments, Asked]] = []

    async def read(run: Run, batch: Items) -> Found | Split:
        if constant and run.operation.permissions is None:
            return await reader.read(run.operation, batch.rows, *constant[0])
        prepared = run.prepared.get(id(reader))
        if prepared is None:
            given = arguments.of(run)
            where = read_where(
                run.operation.model, relationship.item_types[0], given.get("where"), run.operation.permissions
            )
            asked = wanted.of(run, where, descending=is_descending(given, default=False), fresh=is_fresh(given))
            prepared = run.prepared[id(reader)] = page_arguments(given), asked
            # What one caller may filter by is not what another may.
            if wanted.is_constant and run.operation.permissions is None:
                constant.append(prepared)
        return await reader.read(run.operation, batch.rows, *prepared)

    return read


class _Reader:
    """Reads the pages of one relationship: level by level where its way is plain, else source by source."""

    def __init__(self, relationship: Relationship, wanted: Wanted) -> None:
        self._relationship = relationship
        self._wanted = wanted
        self._ways = Ways(relationship)
        self._named: dict[int, Named] = {}

    async def read(self, operation: Operation, rows: Rows, arguments: PageArguments, asked: Asked) -> Found | Split:
        size = _open_size(operation, arguments, asked)
        way = None if size is None else self._ways.of(operation, rows)
        partitions = None if way is None else way.partitions([wire for wire in rows.wires if wire])
        found: list[Any] = [None] * len(rows)
        follow = partial(self._one, operation, rows, arguments, asked)
        is_plain = way is not None and (way.end is not None or self._relationship.end is None)
        if way is None or size is None or partitions is None or not is_plain:
            outcomes = await one_by_one(operation, range(len(rows)), follow)
            return [outcomes[number] for number in range(len(rows))], None
        pages = await self._plain(operation, rows, way, partitions, size, arguments.last is not None, asked, found)
        rest = [number for number, one in enumerate(found) if one is None and number not in pages]
        ready = {number: page for number, page in pages.items() if self._is_ready(operation, way, page, asked)}
        if len(ready) == len(pages):
            ready = {} if not rest else ready
        waiting = {number: page for number, page in pages.items() if number not in ready}

        async def load() -> list[Any]:
            work = self._load_nodes(operation, rows, way, waiting, asked, found)
            _, outcomes = await with_rest(operation, work, rest, follow)
            for number, outcome in (*waiting.items(), *outcomes.items()):
                found[number] = found[number] or outcome
            return [found[number] for number in behind]

        behind = [number for number in range(len(rows)) if number not in ready]
        if not ready:
            return await load(), None
        await self._load_nodes(operation, rows, way, ready, asked, found)
        return Split([*ready], [found[number] or page for number, page in ready.items()], behind, load())

    def _is_ready(self, operation: Operation, way: Way, page: Page, asked: Asked) -> bool:
        """Say whether the nodes of a page are there without a further request."""
        if way.end is None or not asked.wants_nodes or not page.edges:
            return True
        named = self._named.get(id(way))
        if named is None or not are_items(page.edges):
            return False
        first = way.end.keys(page.edges[:1])
        if first is None or not operation.has(first[0]):
            return False
        keys = way.end.keys(page.edges)
        return keys is not None and all(map(operation.has, keys))

    async def _one(self, operation: Operation, rows: Rows, arguments: PageArguments, asked: Asked, number: int) -> Any:
        return await reads.connection(operation, self._relationship, rows.entity(number), arguments, asked)

    async def _plain(
        self,
        operation: Operation,
        rows: Rows,
        way: Way,
        partitions: Sequence[str],
        size: int,
        is_backward: bool,
        asked: Asked,
        found: list[Any],
    ) -> dict[int, Page]:
        """Read the pages that one Query tells; what fails is put among what was found."""
        numbers = [number for number, wire in enumerate(rows.wires) if wire]
        most = max(operation.limits.read_budget, size + 1)
        begun = await starts(
            operation,
            way,
            partitions,
            want=size + 1,
            keep=size,
            most=most,
            descending=asked.descending is not is_backward,
        )
        pages: dict[int, Page] = {}
        for number, start in zip(numbers, begun, strict=True):
            if isinstance(start, Exception):
                found[number] = start
            elif start is not None and not (asked.wants_count and start.has_more):
                pages[number] = self._page(operation, rows, number, way, start, is_backward, asked)
        return pages

    def _page(
        self, operation: Operation, rows: Rows, number: int, way: Way, start: Start, is_backward: bool, asked: Asked
    ) -> Page:
        entities = start.entities or {}
        edges: list[Any] = (
            [entities.get(place, wire) for place, wire in enumerate(start.wires)] if entities else start.wires
        )
        if is_backward:
            edges = edges[::-1]
        return Page(
            edges,
            way.layout,
            partial(_name, way, rows, number, asked),
            way.names,
            has_previous=is_backward and start.has_more,
            has_next=not is_backward and start.has_more,
        )

    async def _load_nodes(
        self, operation: Operation, rows: Rows, way: Way, pages: Mapping[int, Page], asked: Asked, found: list[Any]
    ) -> None:
        edges = list(chain.from_iterable([page.edges for page in pages.values()]))
        if not edges:
            return
        if self._relationship.end is None:
            for page in pages.values():
                page.nodes, page.node_layout = page.edges, page.layout
            return
        assert way.end is not None
        named = self._named.setdefault(id(way), Named(way.end, asked.needs))
        nodes = await self._nodes(operation, way, named, edges, asked)
        may_fail = not are_items(nodes, or_none=True)
        begin = 0
        for number, page in pages.items():
            page.nodes, page.node_layout = nodes[begin : begin + len(page.edges)], way.end.layout
            begin += len(page.edges)
            if may_fail and (failed := next((node for node in page.nodes if isinstance(node, Exception)), None)):
                found[number] = failed
            elif self._wanted.inverses:
                self._prime(operation, rows.entity(number), page)

    async def _nodes(
        self, operation: Operation, way: Way, named: Named, edges: Sequence[Any], asked: Asked
    ) -> list[Any]:
        layout, end = way.layout, self._relationship.end or ""
        type_ = operation.model.items[layout.type_name]
        is_plain = are_items(edges)
        entities = {} if is_plain else {place: edge for place, edge in enumerate(edges) if isinstance(edge, Entity)}
        rows = Rows(operation.model, type_, layout, edges, entities)
        if not entities and asked.wants_nodes:
            found = await named.nodes(
                operation, edges, lambda: rows.entity(0).end(end), asked.companions(named.named.type.name)
            )
            if found is not None:
                return found
        nodes = [end_of(rows, place, end) for place in range(len(edges))]
        return await load_each(operation, nodes, asked.needs) if asked.wants_nodes else nodes

    def _prime(self, operation: Operation, parent: Entity, page: Page) -> None:
        for node in page.nodes:
            entity = as_entity(operation.model, node, page.node_layout)
            if entity is not None:
                prime_inverses(operation, self._relationship, parent, entity)


def _open_size(operation: Operation, arguments: PageArguments, asked: Asked) -> int | None:
    """Give the size of a page at either end of a connection without a filter; None for every other page."""
    first, last = arguments.first, arguments.last
    is_open = arguments.after is None and arguments.before is None and (first is None or last is None)
    if not is_open or not asked.wants_page or asked.where != NO_FILTER:
        return None
    size = first if first is not None else last if last is not None else operation.limits.default_page_size
    return size if 0 <= size <= operation.limits.max_page_size else None


def _name(way: Way, rows: Rows, number: int, asked: Asked) -> Issuer:
    """Name the connection of a source, as `reads` does."""
    relationship = way.relationship
    identity = (relationship.source, relationship.name, *way.identity(rows, number))
    return issuer(rows.model.seals, *identity, asked.where, asked.descending, asked.in_all)
