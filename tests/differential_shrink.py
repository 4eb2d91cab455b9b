"""Makes a query that shows a difference small: takes away whatever it shows the difference without."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from copy import deepcopy

from tests.differential_queries import Field, Inline, Query, Selection, Spread

MOST_TRIES = 400


async def shrunk(query: Query, still_fails: Callable[[Query], Awaitable[bool]]) -> Query:
    """Take parts away one after the other, as long as what is left still fails."""
    if query.spoilt is not None:
        return query
    tries = MOST_TRIES
    number = 0
    while tries:
        smaller = _without(query, number)
        if smaller is None:
            return query
        tries -= 1
        # After a success the next part has moved into the place of the one that is gone.
        if await still_fails(smaller):
            query = smaller
        else:
            number += 1
    return query


def _without(query: Query, number: int) -> Query | None:
    """Carry out one of the changes that make a query smaller, or give None when there are no more."""
    made = deepcopy(query)
    for place, change in enumerate(_changes(made)):
        if place == number:
            change()
            made.drop_unused()
            return made
    return None


def _changes(query: Query) -> Iterator[Callable[[], None]]:
    """List the changes: of a whole selection first, so that large parts go early."""
    yield from _changes_of(query, query.children)
    for _, children in list(query.fragments.values()):
        yield from _changes_of(query, children)


def _changes_of(query: Query, children: list[Selection]) -> Iterator[Callable[[], None]]:
    for child in list(children):
        if len(children) > 1:
            yield lambda child=child: children.remove(child)  # type: ignore[misc]
        if isinstance(child, Inline):
            yield lambda child=child: _put(children, child, child.children)  # type: ignore[misc]
        if isinstance(child, Spread):
            on, below = query.fragments[child.name]
            inline = Inline(on, child.directives, deepcopy(below))
            yield lambda child=child, inline=inline: _put(children, child, [inline])  # type: ignore[misc]
        if child.directives and not (isinstance(child, Field) and child.name.startswith("__")):
            yield lambda child=child: setattr(child, "directives", "")  # type: ignore[misc]
        if isinstance(child, Field):
            for name in list(child.arguments):
                yield lambda child=child, name=name: child.arguments.pop(name)  # type: ignore[misc]
            if child.alias:
                yield lambda child=child: setattr(child, "alias", "")  # type: ignore[misc]
        if not isinstance(child, Spread):
            yield from _changes_of(query, child.children or [])


def _put(children: list[Selection], old: Selection, new: list[Selection]) -> None:
    place = next(number for number, child in enumerate(children) if child is old)
    children[place : place + 1] = new
