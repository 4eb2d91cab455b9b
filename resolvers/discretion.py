"""Discretion: what clients are not told in production, names of tables, indexes and attributes, keys and all that was
not foreseen.

It is the log that tells, under an id which the client gets instead. In development nothing but the unforeseen is kept
back.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator

from graphql import GraphQLSchema, print_schema

from graph.errors import GraphError
from graph.keys import Literal
from graph.model import Layout, Model

log = logging.getLogger(__name__)

LEAST_LITERAL = 3
"""Characters of a literal of a key by which a key is known; shorter ones stand in any message."""


class Discretion:
    """Knows the names that a model has for the store, and nobody else has."""

    def __init__(self, model: Model, schema: GraphQLSchema) -> None:
        public = set(re.findall(r"\w+", print_schema(schema)))
        names = {name for name in _names(model) if name not in public}
        literals = {text for text in _literals(model) if len(text) >= LEAST_LITERAL and text not in public}
        # The longest first: of two that begin alike the shorter one must not hide the longer.
        patterns = [rf"(?<!\w){re.escape(name)}(?!\w)" for name in names] + [re.escape(text) for text in literals]
        self._private = re.compile("|".join(sorted(patterns, key=len, reverse=True)) or "(?!)")

    def allows(self, text: str) -> bool:
        """Say whether a text names nothing of the store."""
        return self._private.search(text) is None

    def public(self, error: GraphError) -> str | None:
        """Give what clients may be told of an error in place of its message; None where that itself may be told."""
        if error.in_public is None and self.allows(str(error)):
            return None
        return summary(error)


def summary(error: GraphError) -> str:
    """Say what is wrong as far as anybody may know it: in the words that are for clients, or those of the class."""
    words = error.in_public or (type(error).__doc__ or "The operation failed.").partition("\n")[0].split(";")[0]
    return words.rstrip(".")


def _names(model: Model) -> Iterator[str]:
    for table in model.tables.values():
        # Of a time series' tables the part that all their names have.
        yield table.name if table.period is None else table.period.before.rstrip("_-.")
        yield from filter(None, (table.type_attribute, *table.key_attributes))
        for index in table.indexes:
            yield from filter(None, (index.name, *index.key_attributes))
    for item in model.items.values():
        yield from (field.attribute for field in item.fields.values())
    for shape in model.objects.values():
        yield from (field.attribute for field in shape.fields.values())


def _literals(model: Model) -> Iterator[str]:
    layouts: list[Layout] = [layout for item in model.items.values() for layout in item.layouts]
    layouts += [item.history for item in model.items.values() if item.history is not None]
    for layout in layouts:
        for template in layout.templates.values():
            yield from (part.text for part in template.parts if isinstance(part, Literal))


class Teller:
    """Tells a client of the errors of one operation; what it is not told the log has, once for each error."""

    def __init__(self, discretion: Discretion | None) -> None:
        """Take what is kept back; None: nothing but the unforeseen."""
        self._discretion = discretion
        self._ids: dict[BaseException, str] = {}

    def withheld(self, error: BaseException, path: object) -> str | None:
        """Give what stands in the place of an error's message; None where that may be told."""
        if not isinstance(error, GraphError):
            return f"unexpected error; its id in the log is {self._id(error, path)}"
        public = self._discretion.public(error) if self._discretion is not None else None
        return None if public is None else f"{public}; its id in the log is {self._id(error, path)}"

    def _id(self, error: BaseException, path: object) -> str:
        if error not in self._ids:
            self._ids[error] = number = uuid.uuid4().hex[:12]
            if isinstance(error, GraphError):
                log.warning("%s %s at %s: %s", error.code, number, path, error)
            else:
                log.error("unexpected error %s at %s", number, path, exc_info=error)
        return self._ids[error]
