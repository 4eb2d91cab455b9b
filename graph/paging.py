"""Keyset pagination over any source: full pages under a filter, both ways, within a read budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from graph.cursor import Issuer, Position, read_cursor
from graph.errors import BudgetExceeded, PageError
from graph.loaders import Limits
from graph.sources import Entry, Reading, Source


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

    @property
    def is_open(self) -> bool:
        """Say whether all of the connection lies in it."""
        return self.after is None and self.before is None


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


def window(arguments: PageArguments, limits: Limits, connection: Issuer, source: Source) -> Window:
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
            "cursor",
            size if size > 0 else None,
            limits.max_page_size,
        )
    after = _position(arguments.after, "after", connection, source)
    before = _position(arguments.before, "before", connection, source)
    return Window(size, last is not None, after, before)


def _position(cursor: str | None, argument: str, connection: Issuer, source: Source) -> Position | None:
    if cursor is None:
        return None
    position = read_cursor(cursor, connection, argument)
    source.check(position)
    return position


def never() -> bool:
    """Have all the time there is."""
    return False


async def read_page(
    source: Source,
    window_: Window,
    *,
    budget: int,
    descending: bool = False,
    is_late: Callable[[], bool] = never,
) -> Page:
    """Read one page; `descending` is the connection's own order, and it ends part-filled when it `is_late`.

    Cost:   one item more than the page holds, which decides hasNextPage; where a filter drops items as many as it
            takes, until the page is full or about `budget` items were evaluated.
    Source: Relay Cursor Connections, "Pagination algorithm", read from whichever end is asked for.
    """
    start, stop = (window_.before, window_.after) if window_.backward else (window_.after, window_.before)
    if start is not None and start == stop:
        return _page([], None, start, window_)
    want = window_.size + 1
    most = max(budget, want)
    reader = source.reader(Reading(want, most, start, stop, descending is not window_.backward))
    entries: list[Entry] = []
    evaluated = 0
    while True:
        batch = await reader.read()
        entries += batch.entries
        evaluated += batch.evaluated
        if batch.end is None or len(entries) >= want or evaluated >= most or is_late():
            return _page(entries, batch.end, start, window_)


def _page(entries: list[Entry], reached: Position | None, start: Position | None, window_: Window) -> Page:
    is_full = len(entries) > window_.size
    is_cut = reached is not None and not is_full
    kept = entries[: window_.size]
    near = kept[0].position if kept else start if is_cut else None
    far = reached if is_cut else kept[-1].position if kept else None
    more = is_full or is_cut
    if window_.backward:
        kept.reverse()
        return Page(kept, more, window_.before is not None, far, near, window_.is_open and not more)
    return Page(kept, window_.after is not None, more, near, far, window_.is_open and not more)


async def read_first(source: Source, budget: int) -> Entry | None:
    """Read the first item alone. Raises BudgetExceeded when it is not among as many as may be evaluated."""
    reader, evaluated = source.reader(Reading(want=1, most=budget)), 0
    while evaluated < budget:
        batch = await reader.read()
        if batch.entries or batch.end is None:
            return batch.entries[0] if batch.entries else None
        evaluated += batch.evaluated
    raise BudgetExceeded(
        f"the one item wanted is not among the first {evaluated} that it may be, and the read budget is {budget}",
        budget,
    )
