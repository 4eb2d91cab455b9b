"""An imagined index: finds as many nodes as any list of the imagined table holds, so that a search can be explained."""

from __future__ import annotations

from collections.abc import Sequence

from graph.cursor import Position
from graph.errors import SearchUnavailable
from graph.imagined import ImaginedTable
from graph.search.index import Document, Hit, Rebuilding, Searched, Status, document_id
from graph.search.words import Word


class ImaginedIndex:
    """Stands where the index stands; nothing is written to it."""

    def __init__(self, table: ImaginedTable) -> None:
        self._table = table

    async def search(self, of: Searched, words: Sequence[Word], limit: int, after: Position | None) -> list[Hit]:
        """Find the first of the nodes that there are."""
        keys = self._table.keys(of.type_name)
        start = 0 if after is None else int(after[0])
        return [
            Hit(document_id(key), 1.0, (start + place,)) for place, key in enumerate(keys[start : start + limit], 1)
        ]

    def check(self, position: Position) -> bool:
        """Say whether a position may be one of this index's."""
        return len(position) == 1 and isinstance(position[0], int)

    async def count(self, of: Searched, words: Sequence[Word]) -> int:
        """Count the nodes that there are."""
        return len(self._table.keys(of.type_name))

    async def status(self, of: Searched) -> Status:
        """Say that all is well."""
        return Status(of)

    async def apply(self, documents: Sequence[Document]) -> None:
        """Take nothing."""

    async def rebuild(self, types: Sequence[Searched]) -> Rebuilding:
        """Refuse to. Raises: SearchUnavailable."""
        raise SearchUnavailable("an imagined index finds whatever is asked for: there is nothing to build")

    async def close(self) -> None:
        """Have nothing to let go of."""
