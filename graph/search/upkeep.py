"""Upkeep: changes of the table become changes of the index. Of a node only the item counts that it is itself."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from graph.entity import Entity
from graph.errors import ItemError
from graph.model import Model, Table
from graph.permissions import claim_text
from graph.requests import Item
from graph.search.index import Document, Searched, SearchIndex, document_id, searched, searched_types
from graph.search.words import tokens
from graph.sources import has_expired
from graph.streams.change import Change, Handler, Place, entity_of, table_of


def search_upkeep(model: Model, index: SearchIndex) -> Handler:
    """Make the Handler that keeps the search index of a model; it has kept all changes when it returns.

    Cost:   one commit for a batch of changes.
    Raises: SearchUnavailable, and nothing of the batch is lost when it comes again.
    """
    tables = frozenset(of.table for of in searched_types(model).values())

    async def handle(changes: Sequence[Change]) -> None:
        documents = [
            document
            for change in changes
            if (table := table_of(model, change.key[0])).name in tables
            for document in documents_of(model, table, change)
        ]
        if documents:
            await index.apply(documents)

    return handle


def documents_of(model: Model, table: Table, change: Change) -> list[Document]:
    """List what a change makes of the documents: the item's own, and none for mirrors, edges and what is no node."""
    before, after = (_core(model, table, item) for item in (change.before, change.after))
    found: list[Document] = []
    if before is not None and (after is None or after.type is not before.type):
        found.append(gone(before, change.place))
    if after is not None:
        found.append(document_of(after, change.place))
    return found


def core_documents(model: Model, table: Table, items: Sequence[Item]) -> list[Document]:
    """List the documents of items as they lie in a table."""
    found = (_core(model, table, item) for item in items)
    return [document_of(entity) for entity in found if entity is not None]


def _core(model: Model, table: Table, item: Item | None) -> Entity | None:
    """Take an item as a searched node, None for anything else: mirrors, edges with copies, earlier versions, ours."""
    entity = entity_of(model, table, item)
    if entity is None or not entity.type.searched or entity.layout is None or entity.layout.mirror:
        return None
    return None if entity.is_version else entity


def document_of(entity: Entity, place: Place | None = None) -> Document:
    """Make the document of a node."""
    if has_expired(entity, int(time.time())):
        return gone(entity, place)
    texts = {name: tokens(_text(entity, name)) for name in entity.type.searched}
    of = searched(entity.model, entity.type)
    return Document(of, _id(entity), texts, place, _tenant(entity, of))


def _tenant(entity: Entity, of: Searched) -> str | None:
    """Say whose a node is: its key holds it."""
    if of.tenant is None:
        return None
    held = entity.key_paths
    return claim_text(held[of.tenant] if of.tenant in held else entity.at(of.tenant))


def gone(entity: Entity, place: Place | None) -> Document:
    """Say that a node is no more."""
    return Document(searched(entity.model, entity.type), _id(entity), None, place)


def _id(entity: Entity) -> str:
    assert entity.key is not None, "it was read whole"
    return document_id(entity.key)


def _text(entity: Entity, name: str) -> str:
    try:
        return _joined(entity.value(entity.type.fields[name]))
    except ItemError:
        # It is not shown either.
        return ""


def _joined(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_joined, value))
    return value if isinstance(value, str) else ""
