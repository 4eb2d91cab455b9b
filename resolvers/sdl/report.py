"""Collects the mistakes of a file, each at its line and column, so that all are reported at once."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from graphql import GraphQLError, Node, Source
from graphql.language import get_location
from graphql.pyutils import did_you_mean, suggestion_list

from graph.errors import ModelError, Problem

log = logging.getLogger(__name__)


class Report:
    """The mistakes found so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._problems: list[Problem] = []
        self._offsets: list[int] = []

    def add(self, node: Node | None, message: str) -> None:
        """Note a mistake at a node of the file, or at its beginning."""
        self._add_at(0 if node is None or node.loc is None else node.loc.start, message)

    def add_error(self, error: GraphQLError, cure: str) -> None:
        """Note a mistake that graphql-core found: where several places clash, at the last one.

        One in the words alone is the consequence of a clash that is reported where the file has it.
        """
        places = [node.loc.start for node in error.nodes or () if node.loc and node.loc.source is self._source]
        if error.nodes and not places:
            return
        offset = places[-1] if places else next(iter(error.positions or ()), 0)
        stop = "" if error.message.endswith((".", "?")) else "."
        self._add_at(offset, f"{error.message}{stop} {cure}")

    def _add_at(self, offset: int, message: str) -> None:
        place = get_location(self._source, offset)
        self._offsets.append(offset)
        self._problems.append(Problem(place.line, place.column, message))

    def warn(self, node: Node, message: str) -> None:
        """Say in the log what may go wrong with a file that is right in itself."""
        assert node.loc is not None
        place = get_location(self._source, node.loc.start)
        log.warning("%s:%s", self._source.name, Problem(place.line, place.column, message))

    def blames(self, *nodes: Node) -> bool:
        """Say whether a mistake lies within one of these nodes: what does not work because of them follows from it."""
        spans = [(node.loc.start, node.loc.end) for node in nodes if node.loc and node.loc.source is self._source]
        return any(start <= offset < end for offset in self._offsets for start, end in spans)

    def raise_if_any(self) -> None:
        """Raise ModelError with everything found."""
        if self._problems:
            raise ModelError(self._problems, self._source.name)


def near(name: str, known: Iterable[str]) -> str:
    """Suggest a near name, as a sentence that ends the one before it, or nothing."""
    found = suggestion_list(name, sorted(known))
    return f".{did_you_mean(found)}" if found else ""


def listed(names: Iterable[str], word: str = "and") -> str:
    """List names in backquotes: `a`, `b` and `c`."""
    *others, last = [f"`{name}`" for name in names] or ["none"]
    return f"{', '.join(others)} {word} {last}" if others else last
