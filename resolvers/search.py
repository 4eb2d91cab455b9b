"""Search: the root field of every searched type, a connection in the order of relevance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strawberry.annotation import StrawberryAnnotation
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.field import StrawberryField

from graph.loaders import Operation
from graph.model import ItemType
from graph.patterns import search_name
from graph.reads import Asked, Connection
from graph.search import hits
from resolvers.connection import page_arguments, wants_page
from resolvers.fields import annotation, argument, resolver_field, value_field
from resolvers.filters import read_where
from resolvers.selection import Possible, Selection

WORDS = "The words that all must be found; the last one may be the beginning of a word, and longer ones misspelt."


def score_field() -> StrawberryField:
    """Make the field of an edge that tells how well its node fits."""
    return value_field("score", annotation(float), lambda edge: edge.score, "How well it fits: the more, the better.")


def search_field(
    item: ItemType, connection: StrawberryAnnotation, arguments: list[StrawberryArgument], possible: Possible
) -> StrawberryField:
    """Make the root field that searches a type."""

    async def resolve(_: Any, operation: Operation, given: Mapping[str, Any], selection: Selection) -> Any:
        return await search(operation, item, given, selection)

    return resolver_field(
        search_name(item.name),
        connection,
        resolve,
        possible,
        [argument("text", annotation(str), WORDS), *arguments],
        f"The nodes of {item.name} with these words in {', '.join(item.searched)}, the best first.",
    )


async def search(
    operation: Operation, item: ItemType, arguments: Mapping[str, Any], selection: Selection
) -> Connection:
    """Resolve the search of a type. Raises PageError, CursorError, InputError, SearchUnavailable, StoreError."""
    names = selection.names()
    where = read_where(operation.model, item.name, arguments.get("where"), operation.permissions)
    asked = Asked(where, wants_page=wants_page(names), wants_count="totalCount" in names)
    return await hits.search(operation, item, arguments["text"], page_arguments(arguments), asked)
