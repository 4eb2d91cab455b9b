"""Where an index lies: in a file, or in an OpenSearch."""

from __future__ import annotations

from pathlib import Path

from graph.model import Model
from graph.search.index import SearchIndex, searched_types


def open_index(model: Model, place: str) -> SearchIndex | None:
    """Open the search index; None where no type of the model is searched, which is spared the imports."""
    if not searched_types(model):
        return None
    if "://" in place:
        from graph.search.opensearch import OpenSearchIndex

        return OpenSearchIndex(place)
    from graph.search.sqlite import SqliteIndex

    return SqliteIndex(Path(place))
