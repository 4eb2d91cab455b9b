"""Connections: pages of many sources read together, their edges and nodes written as one level each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from graph.columns import Loose
from graph.cursor import Issuer, Position, write_cursor, write_cursors
from graph.entity import Entity
from graph.model import ItemType, Layout, Model
from graph.reads import Connection, Edge
from graph.records import are_items, contents
from graph.requests import key_value
from graph.rows import Rows
from resolvers.connection import total_count
from resolvers.plan.failures import At, Step
from resolvers.plan.objects import Nodes, Selection, below, rows_of, some
from resolvers.plan.run import Batch, Branch, Leaf, Run, settle
from resolvers.plan.values import Leaves
from resolvers.plan.written import Write, regroup, within


class Page:
    """A page whose edges are items as they came: what a Connection tells, put together only when asked for."""

    __slots__ = (
        "_known_name",
        "_name",
        "edges",
        "has_next",
        "has_previous",
        "layout",
        "names",
        "node_layout",
        "nodes",
        "total",
    )

    def __init__(
        self,
        edges: list[Any],
        layout: Layout,
        name: Callable[[], Issuer],
        names: Sequence[str],
        *,
        has_previous: bool,
        has_next: bool,
    ) -> None:
        self.edges = edges
        """Items of the layout, or entities where that had to be looked at."""
        self.layout = layout
        self._name = name
        self._known_name: Issuer | None = None
        self.names = names
        """The attributes that place an edge in the connection."""
        self.has_previous = has_previous
        self.has_next = has_next
        self.total = None if has_previous or has_next else len(edges)
        self.nodes: list[Any] = []
        """What the edges lead to, each an item of `node_layout`, an entity, or None."""
        self.node_layout: Layout | None = None

    def name(self) -> Issuer:
        """Name the connection in its cursors."""
        if self._known_name is None:
            self._known_name = self._name()
        return self._known_name

    def only(self, number: int) -> Page:
        """Take one edge."""
        page = Page([self.edges[number]], self.layout, self.name, self.names, has_previous=False, has_next=False)
        page.nodes, page.node_layout = self.nodes[number : number + 1], self.node_layout
        return page

    def cursors(self) -> list[str]:
        """Write the cursors of all edges."""
        if len(self.names) == 1 and are_items(self.edges):
            try:
                return write_cursors(contents(self.names[0])(self.edges), self.name())
            except KeyError:
                # A number or a binary.
                pass
        return list(map(self.cursor, range(len(self.edges))))

    def cursor(self, number: int) -> str:
        """Write the cursor of an edge."""
        return write_cursor(self.position(number), self.name())

    def position(self, number: int) -> Position:
        """Give the place of an edge."""
        edge = self.edges[number]
        item = edge.wire if isinstance(edge, Entity) else edge
        try:
            return tuple([item[name]["S"] for name in self.names])
        except KeyError:
            return tuple([key_value(item[name]) for name in self.names])

    def edge(self, number: int, model: Model) -> Edge:
        """Give an edge as its resolvers take it."""
        node = as_entity(model, self.nodes[number], self.node_layout) if self.nodes else None
        return Edge(self.name(), self.position(number), as_entity(model, self.edges[number], self.layout), node)


class ReadPage:
    """A page that was read as a Connection, seen like the others."""

    __slots__ = ("connection", "edges", "has_next", "has_previous", "layout", "node_layout", "nodes")

    def __init__(self, connection: Connection) -> None:
        page = connection.page
        self.connection = connection
        self.edges = [edge.item for edge in connection.edges]
        self.nodes = [edge.node for edge in connection.edges]
        self.layout: Layout | None = None
        self.node_layout: Layout | None = None
        self.has_next = page is not None and page.has_next
        self.has_previous = page is not None and page.has_previous

    def only(self, number: int) -> ReadPage:
        """Take one edge."""
        connection = self.connection
        return ReadPage(Connection(connection.name, connection.edges[number : number + 1], connection.page, None))

    @property
    def total(self) -> int | None:
        """Give the total count, or raise what kept it from being counted."""
        return total_count(self.connection)

    def cursors(self) -> list[str]:
        """Write the cursors of all edges."""
        return [edge.cursor for edge in self.connection.edges]

    def cursor(self, number: int) -> str:
        """Write the cursor of an edge."""
        return self.connection.edges[number].cursor

    def edge(self, number: int, model: Model) -> Edge:
        """Give an edge as its resolvers take it."""
        return self.connection.edges[number]


AnyPage = Page | ReadPage


class Pages:
    """Pages of one relationship or find side by side."""

    __slots__ = ("at", "pages")

    def __init__(self, pages: Sequence[AnyPage], at: At) -> None:
        self.pages = pages
        self.at = at

    def __len__(self) -> int:
        return len(self.pages)

    def take(self, numbers: Sequence[int]) -> Pages:
        """Take some of the pages."""
        return Pages([self.pages[number] for number in numbers], some(self.at, numbers))


class Edges:
    """The edges of many pages side by side."""

    def __init__(self, model: Model, type_: ItemType | None, pages: Sequence[AnyPage], at: At) -> None:
        self._model = model
        self._type = type_
        self._pages = pages
        self._rows: Rows | None = None
        self._size = sum([len(page.edges) for page in pages])
        self.at = at

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> Rows:
        """Give the items that the edges are."""
        if self._rows is None:
            assert self._type is not None, "only edges with fields of their own are of a type"
            found, layout = _together(self._model, [(page.edges, page.layout) for page in self._pages])
            self._rows = rows_of(self._model, self._type.name, found, layout)
        return self._rows

    @property
    def nodes(self) -> tuple[list[Any], Layout | None]:
        """List what the edges lead to."""
        return _together(self._model, [(page.nodes, page.node_layout) for page in self._pages])

    def cursors(self) -> list[str]:
        """Write the cursors of the edges."""
        return list(chain.from_iterable([page.cursors() for page in self._pages]))

    def source(self, number: int) -> Edge:
        """Give an edge as its resolvers take it."""
        page, place = self._place(number)
        return page.edge(place, self._model)

    def _place(self, number: int) -> tuple[AnyPage, int]:
        for page in self._pages:
            if number < len(page.edges):
                return page, number
            number -= len(page.edges)
        raise IndexError(number)

    def take(self, numbers: Sequence[int]) -> Edges:
        """Take some of the edges, each as a page of its own."""
        pages = [page.only(place) for page, place in map(self._place, numbers)]
        return Edges(self._model, self._type, pages, some(self.at, numbers))


def _together(model: Model, parts: list[tuple[list[Any], Layout | None]]) -> tuple[list[Any], Layout | None]:
    """Put what pages hold behind each other: as it came where all of it is of one layout."""
    layouts = {id(layout): layout for found, layout in parts if found}
    if len(layouts) <= 1:
        layout = next(iter(layouts.values()), None)
        return list(chain.from_iterable([found for found, _ in parts])), layout
    return [as_entity(model, one, layout) for found, layout in parts for one in found], None


def as_entity(model: Model, found: Any, layout: Layout | None) -> Any:
    if found is None or isinstance(found, Entity) or layout is None:
        return found
    return Rows(model, model.items[layout.type_name], layout, [found]).entity(0)


# --- the fields of a connection -----------------------------------------------------------------------------------


def pages_of(selection: Selection) -> Write:
    """Write connections; what is no page stays as it is."""

    async def write(run: Run, values: Sequence[Any], at: At, _: Layout | None) -> list[Any]:
        pages = [ReadPage(value) if isinstance(value, Connection) else value for value in values]
        numbers = [number for number, page in enumerate(pages) if isinstance(page, (Page, ReadPage))]
        rows = await selection.run(run, Pages([pages[number] for number in numbers], some(at, numbers)))
        if len(numbers) == len(values):
            return rows
        for number, row in zip(numbers, rows, strict=True):
            pages[number] = row
        return Loose(pages)

    return write


def edges_branch(model: Model, type_: ItemType | None, selection: Selection, step: Step, what: str) -> Branch:
    """Make the branch of `edges`."""

    async def branch(run: Run, batch: Pages) -> list[Any]:
        at = below(batch.at, step)
        lists = [page.edges for page in batch.pages]
        edges = Edges(model, type_, batch.pages, within(lists, at))
        grouped = regroup(lists, await selection.run(run, edges))
        return grouped if type(grouped) is list else settle(run, grouped, at, required=True, what=what)

    return branch


def nodes_branch(model: Model, nodes: Nodes, step: Step, what: str) -> Branch:
    """Make the branch of `nodes`."""

    async def branch(run: Run, batch: Pages) -> list[Any]:
        at = below(batch.at, step)
        lists = [page.nodes for page in batch.pages]
        place = within(lists, at)
        found, layout = _together(model, [(page.nodes, page.node_layout) for page in batch.pages])
        written = await nodes.write(run, found, place, layout)
        if type(written) is not list:
            written = settle(run, written, place, required=False, what=what)
        return regroup(lists, written)

    return branch


def node_branch(nodes: Nodes, step: Step) -> Branch:
    """Make the branch of an edge's `node`."""

    async def branch(run: Run, batch: Edges) -> list[Any]:
        at = below(batch.at, step)
        found, layout = batch.nodes
        written = await nodes.write(run, found, at, layout)
        return written if type(written) is list else settle(run, written, at, required=False, what="")

    return branch


def cursor_leaf(run: Run, batch: Edges) -> list[Any]:
    """Write the cursors of edges."""
    return batch.cursors()


def total_leaf(leaves: Leaves, step: Step) -> Leaf:
    """Make the leaf of `totalCount`, which may have failed alone."""

    def leaf(run: Run, batch: Pages) -> list[Any]:
        return leaves.write(run, Loose(map(_total, batch.pages)), below(batch.at, step))

    return leaf


def _total(page: AnyPage) -> Any:
    try:
        return page.total
    except Exception as error:
        return error


def _start_cursor(page: AnyPage) -> str | None:
    if isinstance(page, ReadPage):
        whole = page.connection.page
        return None if whole is None else page.connection.cursor(whole.start)
    return page.cursor(0) if page.edges else None


def _end_cursor(page: AnyPage) -> str | None:
    if isinstance(page, ReadPage):
        whole = page.connection.page
        return None if whole is None else page.connection.cursor(whole.end)
    return page.cursor(len(page.edges) - 1) if page.edges else None


PAGE_INFO: Mapping[str, Callable[[AnyPage], Any]] = {
    "hasNextPage": lambda page: page.has_next,
    "hasPreviousPage": lambda page: page.has_previous,
    "startCursor": _start_cursor,
    "endCursor": _end_cursor,
}


def page_info_leaf(name: str) -> Leaf:
    """Make the leaf of a field of PageInfo."""
    read = PAGE_INFO[name]

    def leaf(run: Run, batch: Batch) -> list[Any]:
        assert isinstance(batch, Pages)
        return [read(page) for page in batch.pages]

    return leaf
