"""What a connection or a to-one field asks of the table: a page of a list, the nodes that it leads to, a count."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from graph.collection import Companion, accompany_nodes
from graph.cursor import Issuer, Position, issuer, write_cursor
from graph.entity import Entity
from graph.errors import BudgetExceeded, GraphError
from graph.filters import NO_FILTER, Filter
from graph.lists import find_list, knowing, prime_inverses, relationship_list, target
from graph.loaders import Operation
from graph.lookups import Needs, load, nothing_needed
from graph.model import Find, Model, Relationship
from graph.paging import Page, PageArguments, Window, read_first, read_page, window
from graph.sources import Source
from graph.tenancy import tenant_of

Companions = Callable[[str], Sequence[Companion]]


def no_companions(_: str) -> Sequence[Companion]:
    """Want no relationship along with a node."""
    return ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a query wants of a connection besides the page: its filter, its order, and what it selects of the nodes."""

    where: Filter = NO_FILTER
    descending: bool = False
    needs: Needs = nothing_needed
    edge_needs: Needs = nothing_needed
    """What it selects of the edges' own fields."""
    wants_nodes: bool = True
    wants_page: bool = True
    wants_count: bool = False
    companions: Companions = no_companions
    """The relationships whose first page is selected of the nodes, by their type: some are read along with them."""
    in_all: bool = False
    """Of several partitions that may lead to the same node every one must, not any: for a find that is distinct."""
    fresh: bool = False
    """Take no node from a copy."""


@dataclass(slots=True)
class Edge:
    """One edge of a connection: where it lies, the item read, and the node it leads to (None when it dangles)."""

    connection: Issuer
    position: Position
    item: Entity
    node: Entity | None

    @property
    def cursor(self) -> str:
        """Write the edge's cursor: only when somebody asks."""
        return write_cursor(self.position, self.connection)


@dataclass(slots=True)
class Connection:
    """The answer to a connection field."""

    name: Issuer
    edges: list[Edge]
    page: Page | None
    total_count: int | GraphError | None

    def cursor(self, position: Position | None) -> str | None:
        """Write the cursor of a place in this connection."""
        return None if position is None else write_cursor(position, self.name)


def shows_copies(model: Model, pattern: Relationship | Find) -> bool:
    """Say whether the nodes may come from copies that follow by the stream, and so may be behind."""
    last = pattern.path[-1] if isinstance(pattern, Relationship) and pattern.path else pattern
    layouts = [layout for access in last.accesses for layout in access.layouts]
    are_copied = last.end is not None and any(layout.copy == last.end for layout in layouts)
    return are_copied and any(model.is_followed(model.items[name]) for name in last.targets)


async def connection(
    operation: Operation,
    pattern: Relationship | Find,
    parent: Entity | None,
    arguments: PageArguments,
    asked: Asked,
) -> Connection:
    """Read a connection: the page, its nodes together, and the total count if it is asked for.

    Raises: PageError, CursorError, KeyValueError for the arguments; StoreError.
    """
    source, name = await _begin(operation, pattern, parent, asked)
    window_ = window(arguments, operation.limits, name, source)
    budget = _budget(operation, pattern)
    page = None
    if asked.wants_page:
        page = await read_page(source, window_, budget=budget, descending=asked.descending, is_late=operation.is_late)
    entries = [] if page is None else page.entries
    edges = [Edge(name, entry.position, entry.entity, target(pattern.end, entry.entity)) for entry in entries]
    loading = _load(operation, pattern, parent, edges, asked)
    *_, counted = await operation.together([*loading, total(source, page, budget, asked)])
    return Connection(name, edges, page, counted)


async def _begin(
    operation: Operation, pattern: Relationship | Find, parent: Entity | None, asked: Asked
) -> tuple[Source, Issuer]:
    """Make the list, and name it."""
    if isinstance(pattern, Find):
        tenant = tenant_of(operation, pattern, asked.where)
        source = find_list(operation, pattern, asked.where, tenant, in_all=asked.in_all)
        identity = ("Query", pattern.name, *([sorted(tenant.items())] if tenant else []))
        # A list of one tenant is another one than that of the next.
        return source, _name(operation.model, identity, asked)
    assert parent is not None
    node = await knowing(operation, pattern, parent)
    return relationship_list(operation, pattern, node, asked.where), connection_name(pattern, node, asked)


def connection_name(pattern: Relationship, node: Entity, asked: Asked) -> Issuer:
    """Name the list behind a relationship of a node of which enough is known."""
    identity = (pattern.source, pattern.name, *(node.at(path) for path in pattern.needs))
    return _name(node.model, identity, asked)


def _name(model: Model, identity: tuple[object, ...], asked: Asked) -> Issuer:
    return issuer(model.seals, *identity, asked.where, asked.descending, asked.in_all)


async def load_edges(
    operation: Operation, pattern: Relationship, parent: Entity, edges: list[Edge], asked: Asked
) -> None:
    """Load what is selected of edges that are known already, and of their nodes."""
    await operation.together(_load(operation, pattern, parent, edges, asked))


def _load(
    operation: Operation, pattern: Relationship | Find, parent: Entity | None, edges: list[Edge], asked: Asked
) -> list[Coroutine[Any, Any, Any]]:
    for edge in edges if asked.fresh else ():
        edge.node = edge.node and edge.node.without_copy()
    if parent is not None and isinstance(pattern, Relationship):
        _prime_inverses(operation, pattern, parent, edges)
    return [_load_nodes(operation, edges, asked), _load_edges(operation, pattern, edges, asked)]


def _budget(operation: Operation, pattern: Relationship | Find) -> int:
    is_scan = isinstance(pattern, Find) and pattern.scan
    return operation.limits.scan_budget if is_scan else operation.limits.read_budget


async def one(
    operation: Operation, relationship: Relationship, parent: Entity, needs: Needs, *, fresh: bool = False
) -> Entity | None:
    """Get the one node behind a to-one relationship: the first, or None; a `fresh` one is not taken from a copy."""
    key = parent.key
    node = None if key is None else operation.inverses.get((relationship.source, relationship.name, key))
    if node is None:
        source = relationship_list(operation, relationship, await knowing(operation, relationship, parent))
        first = await read_first(source, operation.limits.read_budget)
        node = None if first is None else target(relationship.end, first.entity)
    (loaded,) = await load(operation, [node.without_copy() if node is not None and fresh else node], needs)
    return loaded


def _prime_inverses(operation: Operation, pattern: Relationship, parent: Entity, edges: list[Edge]) -> None:
    """Tell each node's to-one relationships back to where it was found from what they lead to."""
    last = pattern.path[-1] if pattern.path else pattern
    for edge in edges if last.inverses else ():
        origin = edge.item.end(last.start) if pattern.path else parent
        if edge.node is not None and origin is not None:
            prime_inverses(operation, last, origin, edge.node)


async def _load_nodes(operation: Operation, edges: list[Edge], asked: Asked) -> None:
    if asked.wants_nodes:
        lacking = [edge.node for edge in edges if edge.node is not None and _lacks(edge.node, asked.needs)]
        with operation.reading():
            await accompany_nodes(operation, lacking, asked.companions)
        nodes = await load(operation, [edge.node for edge in edges], asked.needs)
        for edge, node in zip(edges, nodes, strict=True):
            edge.node = node


def _lacks(node: Entity, needs: Needs) -> bool:
    return node.lacks(needs(node.type.name))


async def _load_edges(operation: Operation, pattern: Relationship | Find, edges: list[Edge], asked: Asked) -> None:
    """Load what an index does not hold of the edges themselves."""
    if pattern.end is not None:
        items = await load(operation, [edge.item for edge in edges], asked.edge_needs)
        for edge, item in zip(edges, items, strict=True):
            # One that was deleted meanwhile keeps what the index showed.
            edge.item = item or edge.item.as_complete()


async def total(source: Source, page: Page | None, budget: int, asked: Asked) -> int | GraphError | None:
    """Count the connection: by the page where that is all of it, else by COUNT requests, else by reading.

    An error of the count alone is returned, so that it does not take the page with it.
    """
    if not asked.wants_count:
        return None
    if page is not None and page.is_whole:
        return len(page.entries)
    try:
        counted = await source.count()
        return await _count_by_reading(source, budget) if counted is None else counted
    except GraphError as error:
        return error


async def _count_by_reading(source: Source, budget: int) -> int:
    """Count what only reading decides. Raises BudgetExceeded when that takes too many items."""
    page = await read_page(source, Window(size=budget), budget=budget)
    if page.has_next:
        raise BudgetExceeded(
            f"totalCount with this filter would read more than {budget} items, which is the read budget: expected a "
            "filter that a key condition can serve, or no totalCount",
            budget,
        )
    return len(page.entries)
