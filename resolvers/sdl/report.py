"""Collects the mistakes of a file, each at its line and column, so that all are reported at once."""

from __future__ import annotations

from collections.abc import Iterable

from graphql import GraphQLError, Node, Source
from graphql.language import get_location
from graphql.pyutils import did_you_mean, suggestion_list

from graph.errors import ModelError, Problem


class Report:
    """The mistakes found so far."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._problems: list[Problem] = []

    def add(self, node: Node | None, message: str) -> None:
        """Note a mistake at a node of the file, or at its beginning."""
        if node is None or node.loc is None:
            self._problems.append(Problem(1, 1, message))
            return
        place = get_location(node.loc.source, node.loc.start)
        self._problems.append(Problem(place.line, place.column, message))

    def add_error(self, error: GraphQLError, cure: str = "") -> None:
        """Note a mistake that graphql-core found, at the place in the user's file among those that it names."""
        ours = [node for node in error.nodes or () if node.loc is not None and node.loc.source is self._source]
        message = f"{error.message} {cure}".rstrip()
        if ours:
            self.add(ours[0], message)
        elif error.locations and error.source is self._source:
            self._problems.append(Problem(error.locations[0].line, error.locations[0].column, message))
        else:
            self.add(None, message)

    @property
    def is_clean(self) -> bool:
        """Say whether no mistake has been found yet."""
        return not self._problems

    def raise_if_any(self) -> None:
        """Raise ModelError with everything found."""
        if self._problems:
            raise ModelError(self._problems, self._source.name)


def near(name: str, known: Iterable[str]) -> str:
    """Suggest a near name, as a sentence with a leading space, or nothing."""
    return did_you_mean(suggestion_list(name, sorted(known)))


def listed(names: Iterable[str]) -> str:
    """List names in backquotes."""
    return ", ".join(f"`{name}`" for name in names) or "none"
