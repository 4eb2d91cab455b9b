"""Mutations of one @transaction that touch the same items: right together, or refused together."""

from __future__ import annotations

import pytest

from tests.conftest import Serve
from tests.library import faults, library
from tests.written import Stored, codes, stored


def link(shelf: str, book: str) -> str:
    return (
        f'link_{shelf}_{book}: createStanding(input: {{ grams: 7, shelf: {{ name: "{shelf}" }}, '
        f'book: {{ title: "{book}" }} }}) {{ __typename }}'
    )


def unlink(shelf: str, book: str) -> str:
    return (
        f'unlink: deleteStanding(key: {{ shelf: {{ name: "{shelf}" }}, book: {{ title: "{book}" }} }}) {{ __typename }}'
    )


MOVE_ROOM = 'move: updateShelf(key: { name: "a" }, set: { room: "s" }) { __typename }'
RENAME = 'rename: updateShelf(key: { name: "a" }, set: { name: "c" }) { __typename }'
RENAME_BOOK = 'title: updateBook(key: { title: "x" }, set: { title: "xx" }) { __typename }'
DESCRIBE = 'describe: updateBook(key: { title: "z" }, set: { about: "me" }) { __typename }'
DELETE_SHELF = 'delete: deleteShelf(key: { name: "a" }, cascade: true) { __typename }'
DELETE_BOOK = 'remove: deleteBook(key: { title: "x" }, cascade: true) { __typename }'
DELETE_Z = 'remove: deleteBook(key: { title: "z" }) { __typename }'
READ = 'read: updateBook(key: { title: "x" }, increment: { read: 1 }) { __typename }'
WEIGH = (
    'weigh: updateStanding(key: { shelf: { name: "a" }, book: { title: "x" } }, increment: { grams: 4 }) { __typename }'
)
PAINT = (
    'paint: updateStanding(key: { shelf: { name: "a" }, book: { title: "x" } }, set: { color: "red" }) { __typename }'
)
NOTE = 'note: updateShelf(key: { name: "a" }, set: { note: "n" }) { __typename }'


PAIRS = [
    (link("a", "z"), DELETE_Z),
    (link("a", "z"), DELETE_SHELF),
    (link("a", "z"), MOVE_ROOM),
    (link("a", "z"), RENAME),
    (link("a", "z"), DESCRIBE),
    (link("a", "z"), NOTE),
    (link("a", "z"), READ),
    (link("a", "z"), unlink("a", "x")),
    (link("a", "z"), DELETE_BOOK),
    (unlink("a", "x"), MOVE_ROOM),
    (unlink("a", "x"), RENAME),
    (unlink("a", "x"), RENAME_BOOK),
    (unlink("a", "x"), DELETE_SHELF),
    (unlink("a", "x"), WEIGH),
    (unlink("a", "x"), PAINT),
    (unlink("a", "x"), READ),
    (unlink("a", "x"), NOTE),
    (unlink("a", "x"), DELETE_BOOK),
    (RENAME, RENAME_BOOK),
    (RENAME, DELETE_BOOK),
    (RENAME, WEIGH),
    (RENAME, PAINT),
    (RENAME, READ),
    (RENAME, NOTE),
    (RENAME_BOOK, READ),
    (RENAME_BOOK, WEIGH),
    (RENAME_BOOK, DELETE_SHELF),
    (RENAME_BOOK, PAINT),
    (MOVE_ROOM, WEIGH),
    (MOVE_ROOM, NOTE),
    (MOVE_ROOM, DELETE_BOOK),
    (READ, DELETE_BOOK),
    (READ, DELETE_SHELF),
    (READ, WEIGH),
    (WEIGH, PAINT),
    (DELETE_BOOK, DELETE_SHELF),
    (DELETE_BOOK, WEIGH),
]


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(one.partition(":")[0] for one in pair))
async def test_two_writes_are_as_good_together_as_one_after_the_other(
    serve: Serve, pair: tuple[str, str], turned: bool
) -> None:
    one, other = pair[::-1] if turned else pair
    at_once, in_turn = await library(serve), await library(serve)
    before = await stored(at_once)

    body = await at_once(f"mutation @transaction {{ {one} {other} }}")

    after = await stored(at_once)
    assert faults(after) == []
    if "errors" in body:
        assert len(codes(body)) == 2
        assert after == before
    else:
        await in_turn.data(f"mutation {{ {one} {other} }}")
        assert without_versions(after) == without_versions(await stored(in_turn))


def without_versions(found: Stored) -> Stored:
    """Leave out how many writes there were: two changes of an item are one."""
    return {key: {name: value for name, value in one.items() if name != "version"} for key, one in found.items()}
