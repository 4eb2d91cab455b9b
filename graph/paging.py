"""Keyset pagination over any source: full pages under a filter, both ways, within a read budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from graph.cursor import Position, read_cursor
from graph.errors import PageError
from graph.expressions import Condition
from graph.loaders import Limits
from graph.sources import Entry, Reading, Source

Keep = Callable[[list[Entry]], Awaitable[list[Entry]]]
"""Drops the entries that a filter refuses, keeping the order."""


@dataclass(frozen=True, slots=True)
class PageArguments:
    """The paging arguments of a connection, as the client gave them."""

    first: int | None = None
    after: str | None = None
    last: int | None = None
    before: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """Checked paging arguments: up to `size` edges, from one end of what lies between the two positions."""

    size: int
    backward: bool = False
    after: Position | None = None
    before: Position | None = None


@dataclass(slots=True)
class Page:
    """A page's edges in the connection's order, and what lies around it.

    `start` and `end` are where to go on from: the first and last edge, or, on a page cut short by the read budget, how
    far the reading went.
    """

    entries: list[Entry]
    has_previous: bool
    has_next: bool
    start: Position | None
    end: Position | None
    is_whole: bool = False
    """The page is the whole connection, so that its length is the total count."""


def window(arguments: PageArguments, limits: Limits, connection: str, source: Source) -> Window:
    """Check the paging arguments.

    Raises: PageError when they contradict each other, are negative or too large; CursorError.
    Source: Relay Cursor Connections, "Arguments" and "Pagination algorithm".
    """
    first, last = arguments.first, arguments.last
    if first is not None and last is not None:
        raise PageError(
            "`first` and `last` were given together: expected one of them. `first` pages forward, `last` backward"
        )
    size = limits.default_page_size if first is None and last is None else first if last is None else last
    assert size is not None
    name = "first" if last is None else "last"
    if not 0 <= size <= limits.max_page_size:
        raise PageError(
            f"`{name}` must be from 0 to {limits.max_page_size}, got {size}. Ask for a smaller page and go on from its "
            "cursor"
        )
    after = _position(arguments.after, "after", connection, source)
    before = _position(arguments.before, "before", connection, source)
    return Window(size, last is not None, after, before)


def _position(cursor: str | None, argument: str, connection: str, source: Source) -> Position | None:
    if cursor is None:
        return None
    position = read_cursor(cursor, connection, argument)
    source.check(position)
    return position


async def read_page(
    source: Source,
    window_: Window,
    *,
    descending: bool = False,
    condition: Condition | None = None,
    keep: Keep | None = None,
    budget: int,
) -> Page:
    """Read one page.

    `descending` is the connection's own order; `condition` is left to DynamoDB, `keep` decides what it cannot.

    Cost:   one item more than the page holds, which decides hasNextPage; under a filter as many as it takes, until
            the page is full or `budget` items were evaluated.
    Source: Relay Cursor Connections, "Pagination algorithm", read from whichever end is asked for.
    """
    start, stop = (window_.before, window_.after) if window_.backward else (window_.after, window_.before)
    reverse = descending != window_.backward
    reading = Reading(
        want=window_.size + 1,
        start=start,
        descending=reverse,
        filter=condition,
        sparse=condition is not None or keep is not None,
    )
    kept: list[Entry] = []
    evaluated, reached, more, stopped = 0, start, False, False
    async with aclosing(source.batches(reading)) as batches:  # type: ignore[type-var]
        async for batch in batches:
            entries = batch.entries
            if stop is not None:
                before_stop = [entry for entry in entries if not source.passed(entry.position, stop, reverse)]
                stopped = len(before_stop) < len(entries)
                entries = before_stop
            kept += entries if keep is None else await keep(entries)
            evaluated += batch.evaluated
            reached = batch.end or (batch.entries[-1].position if batch.entries else reached)
            if len(kept) > window_.size or stopped:
                break
            if evaluated >= budget and batch.end is not None:
                more = True
                break
    if len(kept) > window_.size:
        del kept[window_.size :]
        more = True
        reached = kept[-1].position if kept else start
    elif not more and kept:
        reached = kept[-1].position
    return _page(kept, window_, start, reached, more)


def _page(kept: list[Entry], window_: Window, start: Position | None, reached: Position | None, more: bool) -> Page:
    began = kept[0].position if kept else start if more else None
    ended = reached if kept or more else None
    is_whole = window_.after is None and window_.before is None and not more
    if window_.backward:
        kept.reverse()
        return Page(kept, more, window_.before is not None, ended, began, is_whole)
    return Page(kept, window_.after is not None, more, began, ended, is_whole)
