"""What a search index is: it holds the texts of nodes by the keys of their items, and is asked for keys.

The table stays the truth: what is found is read from it by key. So an index may be a little behind, and may be thrown
away and built anew at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from graph.cursor import Position
from graph.errors import SearchUnavailable
from graph.keys import KeyValue, Path
from graph.model import ItemType, Model
from graph.requests import ItemKey
from graph.scalars import number_text, storable
from graph.search.words import VERSION, Word
from graph.streams.change import Place

CURE = "`tablegraph search rebuild` builds it"


@dataclass(frozen=True, slots=True)
class Searched:
    """A type whose nodes are searched: the table that they lie in, its key, and how much each field counts."""

    type_name: str
    table: str
    key_attributes: tuple[str, ...]
    fields: Mapping[str, float]
    tenant: Path | None = None
    """What of a node says its tenant: how well others' nodes fit then has no part in how well one does."""
    tenants: frozenset[str] | None = None
    """Whose nodes are searched; None: everybody's."""
    hidden: frozenset[str] = frozenset()
    """The fields that are not searched, for who searches may not read them."""

    @property
    def name(self) -> str:
        """Name its index; several models may share the place where indexes lie."""
        return f"{self.table}.{self.type_name}"

    @property
    def makings(self) -> list[Any]:
        """List what an index is made of: with other fields or keys, or other words of a text, it is another one."""
        tenant = [] if self.tenant is None else [".".join(self.tenant)]
        return [VERSION, self.key_attributes, list(self.fields), *tenant]

    @property
    def shown(self) -> dict[str, float]:
        """Give the fields that are searched, and how much each counts."""
        return {name: weight for name, weight in self.fields.items() if name not in self.hidden}


@dataclass(frozen=True, slots=True)
class Document:
    """What an index is to hold of one node: its words by field, None where the node is gone.

    `place` is the change that made it so, None for what was read from the table.
    """

    of: Searched
    id: str
    texts: Mapping[str, str] | None
    place: Place | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A node that was found: its document's id, how well it fits, and its place in the order of relevance."""

    id: str
    score: float
    position: Position


@dataclass(frozen=True, slots=True)
class Status:
    """How the index of a type stands; `problem` says why it cannot be searched, if it cannot."""

    of: Searched
    documents: int = 0
    problem: str | None = None
    is_building: bool = False


class Rebuilding(Protocol):
    """A new index that is filled beside the old one; changes reach both."""

    async def add(self, documents: Sequence[Document]) -> None:
        """Take documents as they were read from the table, but for those that a change has brought meanwhile."""

    async def finish(self) -> None:
        """Put the new index in the place of the old one, from one search to the next."""

    async def abandon(self) -> None:
        """Drop the new index."""


class SearchIndex(Protocol):
    """Holds the indexes of all searched types. Every method may raise SearchUnavailable."""

    async def apply(self, documents: Sequence[Document]) -> None:
        """Take changes, in their order; kept for good when this returns. One that was taken before does no harm."""

    async def search(self, of: Searched, words: Sequence[Word], limit: int, after: Position | None) -> list[Hit]:
        """Find the best hits, or those behind a place.

        All words must be found. Before all else come hits that have every word as it is, then those in which the last
        one is the beginning of a word, then those with typos.
        """

    def check(self, position: Position) -> bool:
        """Say whether a position may be one of this index's."""

    async def count(self, of: Searched, words: Sequence[Word]) -> int:
        """Count all hits."""

    async def rebuild(self, types: Sequence[Searched]) -> Rebuilding:
        """Begin new indexes of these types. One that was begun before and not finished is dropped."""

    async def status(self, of: Searched) -> Status:
        """Say how the index of a type stands."""

    async def close(self) -> None:
        """Let go of files and connections."""


def searched_types(model: Model) -> dict[str, Searched]:
    """List the types of a model that are searched, by name."""
    return {item.name: searched(model, item) for item in model.items.values() if item.searched}


def searched(model: Model, item: ItemType) -> Searched:
    """Say how a type is searched."""
    table = model.tables[item.layouts[0].table]
    tenant = min(item.tenants, key=lambda path: (len(path), path), default=None)
    return Searched(item.name, table.name, table.key_attributes, item.searched, tenant)


def missing(of: Searched) -> SearchUnavailable:
    """Refuse a search for which there is no index."""
    return SearchUnavailable(f"there is no search index of `{of.type_name}` yet: {CURE}")


def of_another_model(of: Searched) -> SearchUnavailable:
    """Refuse a search in an index of other fields."""
    return SearchUnavailable(
        f"the search index of `{of.type_name}` was built for another model: expected one of the fields "
        f"{', '.join(of.fields)} and the key of {', '.join(of.key_attributes)}: {CURE}"
    )


def document_id(key: ItemKey) -> str:
    """Write the key of an item as the id of its document."""
    return orjson.dumps([_written(value) for _, value in key[1]]).decode()


def _written(value: KeyValue) -> Any:
    return value if isinstance(value, str) else {"N": number_text(value)}


def item_key(of: Searched, id_: str) -> ItemKey:
    """Read the key of an item back."""
    values = [value if isinstance(value, str) else storable(value["N"]) for value in orjson.loads(id_)]
    return of.table, tuple(zip(of.key_attributes, values, strict=True))
