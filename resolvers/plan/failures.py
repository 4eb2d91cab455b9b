"""What went wrong while a plan ran: where, in which order, and how far it takes its surroundings with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphql import FieldNode, GraphQLError, located_error

Step = tuple[str, str] | int
"""A step down in the response: the type and the response name of a field, or the place in a list."""

Place = tuple[Step, ...]
At = Callable[[int], Place]
"""Tells where each of several objects or values stands; asked only when something went wrong."""


class Failed:
    """Stands for a value that is not there and may not be null: what holds it fails with it."""

    __slots__ = ("error", "place", "time")

    def __init__(self, error: Exception, place: Place, time: int) -> None:
        self.error = error
        self.place = place
        self.time = time


class Failures:
    """The errors of one operation."""

    def __init__(self) -> None:
        self.time = 0
        """How many readings have ended: of what fails at the same time, the first in the document counts."""
        self._absorbed: list[tuple[Failed, Place]] = []

    def __bool__(self) -> bool:
        return bool(self._absorbed)

    def absorb(self, failed: Failed, place: Place) -> None:
        """Keep an error whose effect ends at a place, which becomes null."""
        self._absorbed.append((failed, place))

    def located(self, locate: Callable[[Place], tuple[list[FieldNode], Sequence[int]]]) -> list[GraphQLError]:
        """List the errors in the order of time, then of the document.

        Of several under one null only the first is told. Source: GraphQL specification, "Handling Execution Errors".
        """
        ordered = []
        for failed, place in self._absorbed:
            nodes, order = locate(failed.place)
            ordered.append((failed.time, order, nodes, failed, place))
        ordered.sort(key=lambda entry: (entry[0], entry[1]))
        nulled: set[Place] = set()
        errors: list[GraphQLError] = []
        for _, _, nodes, failed, place in ordered:
            if any(place[:length] in nulled for length in range(len(place) + 1)):
                continue
            nulled.add(place)
            errors.append(located_error(failed.error, nodes, path(failed.place)))
        return errors


def path(place: Place) -> list[str | int]:
    """Write a place as the path of an error."""
    return [step if isinstance(step, int) else step[1] for step in place]


def first(values: Sequence[Any]) -> Failed | None:
    """Give the first failure among values of one object."""
    failures = [value for value in values if type(value) is Failed]
    return min(failures, key=lambda failed: failed.time) if failures else None
