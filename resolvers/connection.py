"""Relay connections: the arguments and the selection of a field become one reading of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from graph import history, reads
from graph.collection import Companion
from graph.entity import Entity
from graph.errors import GraphError
from graph.filters import Every
from graph.loaders import Operation
from graph.model import Find, Relationship
from graph.paging import PageArguments
from graph.reads import Asked, Connection
from resolvers.filters import read_arguments, read_where
from resolvers.node import companions, needs_of
from resolvers.selection import Selection


async def relationship(
    operation: Operation, pattern: Relationship, parent: Entity, arguments: Mapping[str, Any], selection: Selection
) -> Connection:
    """Resolve a to-many relationship. Raises PageError, CursorError, InputError, StoreError."""
    where = read_where(operation.model, pattern.item_types[0], arguments.get("where"), operation.permissions)
    asked = _asked(operation, where, is_descending(arguments, default=False), selection)
    asked = replace(asked, fresh=is_fresh(arguments))
    return await reads.connection(operation, pattern, parent, page_arguments(arguments), asked)


async def find(operation: Operation, pattern: Find, arguments: Mapping[str, Any], selection: Selection) -> Connection:
    """Resolve a field of Query. Raises PageError, CursorError, InputError, StoreError."""
    where = Every(
        (
            read_arguments(pattern.arguments, arguments),
            read_where(operation.model, pattern.item_types[0], arguments.get("where"), operation.permissions),
        )
    )
    asked = _asked(operation, where, is_descending(arguments, default=pattern.descending), selection)
    asked = replace(asked, in_all=plain(arguments.get("match")) == "ALL", fresh=is_fresh(arguments))
    return await reads.connection(operation, pattern, None, page_arguments(arguments), asked)


async def versions(
    operation: Operation, entity: Entity, arguments: Mapping[str, Any], selection: Selection
) -> Connection:
    """Resolve the earlier versions of an item. Raises PageError, CursorError, StoreError."""
    descending = is_descending(arguments, default=False)
    return await history.versions(
        operation,
        entity,
        page_arguments(arguments),
        descending=descending,
        wants_page=wants_page(selection.names()),
    )


async def find_one(
    operation: Operation, pattern: Find, arguments: Mapping[str, Any], selection: Selection
) -> Entity | None:
    """Resolve a field of Query that gives one item: the first."""
    where = read_arguments(pattern.arguments, arguments)
    asked = Asked(where, pattern.descending, needs_of(selection), wants_nodes=True, fresh=is_fresh(arguments))
    found = await reads.connection(operation, pattern, None, PageArguments(first=1), asked)
    return found.edges[0].node if found.edges else None


def page_arguments(arguments: Mapping[str, Any]) -> PageArguments:
    return PageArguments(*(arguments.get(name) for name in ("first", "after", "last", "before")))


def is_descending(arguments: Mapping[str, Any], *, default: bool) -> bool:
    order = plain(arguments.get("order"))
    return default if order is None else bool(order == "DESC")


def is_fresh(arguments: Mapping[str, Any]) -> bool:
    """Say whether nodes are asked for as they are, and not as copies have them."""
    return bool(arguments.get("fresh"))


def plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _asked(operation: Operation, where: Any, descending: bool, selection: Selection) -> Asked:
    names, edge_names = selection.names(), selection.child("edges").names()
    own_names = edge_names - {"cursor", "node"}
    nodes = (selection.child("edges", "node"), selection.child("nodes"))
    return Asked(
        where,
        descending,
        needs_of(*nodes),
        lambda _: own_names,
        wants_nodes="nodes" in names or "node" in edge_names,
        wants_page=wants_page(names),
        wants_count="totalCount" in names,
        companions=lambda name: _companions(operation, name, nodes),
    )


def wants_page(names: frozenset[str]) -> bool:
    """Say whether a connection's page must be read for what is selected of it."""
    return bool(names & {"edges", "nodes", "pageInfo"})


def _companions(operation: Operation, name: str, nodes: Sequence[Selection]) -> list[Companion]:
    return [found for one in nodes for found in companions(operation, operation.model.items[name], one)]


def total_count(connection: Connection) -> int | None:
    """Give the total count, or raise what kept it from being counted."""
    if isinstance(connection.total_count, GraphError):
        raise connection.total_count
    return connection.total_count


def page_info(connection: Connection) -> dict[str, Any]:
    """Give the fields of PageInfo."""
    page = connection.page
    assert page is not None, "the selection has asked for the page"
    return {
        "hasNextPage": page.has_next,
        "hasPreviousPage": page.has_previous,
        "startCursor": connection.cursor(page.start),
        "endCursor": connection.cursor(page.end),
    }


def edge_nodes(connection: Connection) -> list[Entity | None]:
    """List the nodes of a connection's edges."""
    return [edge.node for edge in connection.edges]
