"""Read sets: which changes concern what was read, request by request."""

from __future__ import annotations

from typing import Any

import pytest

from graph.client import Meter
from graph.errors import RequestRefused, StoreError, Unavailable
from graph.expressions import Between, Compare, Condition, Function
from graph.requests import BatchGetItem, GetItem, Item, KeyAttributes, Query, Request, Scan
from graph.streams.change import Change, Place
from graph.streams.readset import ReadSet
from graph.streams.topics import Topic, of_item, of_partition, of_table, topics_of
from resolvers.sdl import compile_model

MODEL = compile_model("""extend schema
  @table(name: "notes", partitionKey: "pk", sortKey: "sk")
  @index(name: "days", partitionKey: "day", sortKey: "rank")
  @index(name: "slim", partitionKey: "day", sortKey: "sk", projection: ["rank"])
  @index(name: "near", partitionKey: "pk", sortKey: "rank", local: true)
type Book @node(key: "B{number}", virtual: true) { number: ID!  notes: [Note!]! @relationship }
type Note @node(partition: "{book}", sort: "{place}") @indexed(by: "days", sort: "{rank}") {
  book: Book!  place: String!  day: String  rank: String  text: String }
""")


def note(place: str, *, book: str = "1", day: str = "mon", rank: str = "m", text: str = "t") -> Item:
    """Write a note."""
    texts = {"pk": f"B{book}", "sk": place, "day": day, "rank": rank, "text": text}
    return {name: {"S": value} for name, value in texts.items()}


def key(place: str, book: str = "1") -> KeyAttributes:
    """Write the key of a note."""
    return ("pk", f"B{book}"), ("sk", place)


def change(before: Item | None, after: Item | None) -> Change:
    """Tell of a write."""
    item = after or before or {}
    return Change(("notes", key(item["sk"]["S"], item["pk"]["S"][1:])), before, after, Place("shard", 1))


class Answering:
    """Answers every request with one thing."""

    def __init__(self, answer: dict[str, Any] | Exception) -> None:
        self._answer = answer
        self.sent: list[Request] = []

    async def send(self, request: Request, *_: Any) -> Any:
        """Answer a request."""
        self.sent.append(request)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


async def reading(request: Request, answer: dict[str, Any] | Exception | None = None) -> ReadSet:
    """Read something."""
    reads = ReadSet(MODEL, lambda _: None)
    await reads.over(Answering(answer or {})).send(request, Meter())
    return reads


def query(sort: Condition | None = None, index: str | None = None, **more: Any) -> Query:
    """Ask for notes of book 1, or of a monday."""
    partition = (("day", "mon"),) if index in ("days", "slim") else (("pk", "B1"),)
    return Query("notes", index, partition, sort, **more)


def last(place: str, rank: str = "m") -> dict[str, Any]:
    """Answer that there is more behind a note."""
    return {"Items": [], "LastEvaluatedKey": {name: {"S": text} for name, text in (*key(place), ("rank", rank))}}


PLAIN = query()
PREFIX = query(Function("begins_with", "sk", ("S", "a")))
BETWEEN = query(Between("sk", ("S", "b"), ("S", "d")))
BEHIND = query(start=key("c"))
BEFORE = query(start=key("c"), descending=True)
RANKED = query(index="days", start=(("day", "mon"), *key("c"), ("rank", "m")))
MINE = query(filter=Compare("text", "=", ("S", "mine")))
SLIM = query(index="slim", filter=Compare("text", "=", ("S", "mine")))


@pytest.mark.parametrize(
    ("request_", "answer", "change_", "is_concerned"),
    [
        pytest.param(GetItem("notes", key("a")), {}, change(None, note("a")), True, id="item-that-was-not-there"),
        pytest.param(GetItem("notes", key("a")), {}, change(note("a"), note("a")), False, id="nothing-changed"),
        pytest.param(GetItem("notes", key("a")), {}, change(None, note("b")), False, id="other-item"),
        pytest.param(
            BatchGetItem("notes", (key("a"), key("b"))), {}, change(note("b"), None), True, id="one-of-a-batch"
        ),
        pytest.param(PLAIN, {}, change(None, note("b")), True, id="in-the-partition"),
        pytest.param(PLAIN, {}, change(None, note("b", book="2")), False, id="in-another-partition"),
        pytest.param(PLAIN, last("c"), change(None, note("b")), True, id="before-the-end"),
        pytest.param(PLAIN, last("c"), change(note("c"), None), True, id="at-the-end"),
        pytest.param(PLAIN, last("c"), change(None, note("d")), False, id="behind-the-end"),
        pytest.param(PREFIX, {}, change(None, note("ab")), True, id="in-the-range"),
        pytest.param(PREFIX, {}, change(None, note("b")), False, id="outside-of-the-range"),
        pytest.param(BETWEEN, last("c"), change(None, note("cc")), False, id="in-the-range-behind-the-end"),
        pytest.param(BEHIND, {}, change(None, note("d")), True, id="behind-the-start"),
        pytest.param(BEHIND, {}, change(note("c"), None), False, id="at-the-start"),
        pytest.param(BEHIND, {}, change(None, note("b")), False, id="before-the-start"),
        pytest.param(BEFORE, last("a"), change(None, note("b")), True, id="descending"),
        pytest.param(BEFORE, last("a"), change(note("a"), None), True, id="descending-at-the-end"),
        pytest.param(BEFORE, last("a"), change(note("c"), None), False, id="descending-at-the-start"),
        pytest.param(BEFORE, last("a"), change(None, note("d")), False, id="descending-before-the-start"),
        pytest.param(BEFORE, last("b"), change(None, note("a")), False, id="descending-behind-the-end"),
        pytest.param(RANKED, {}, change(None, note("z")), True, id="shares-its-sort-key-with-the-start"),
        pytest.param(RANKED, {}, change(None, note("z", rank="l")), False, id="before-the-start-of-an-index"),
        pytest.param(RANKED, last("z", "p"), change(None, note("y", rank="p")), True, id="shares-it-with-the-end"),
        pytest.param(RANKED, last("z", "p"), change(None, note("y", rank="q")), False, id="behind-the-end-of-an-index"),
        pytest.param(
            RANKED, last("z", "p"), change(note("y", rank="q"), note("y", rank="o")), True, id="moves-into-it"
        ),
        pytest.param(
            RANKED, last("z", "p"), change(note("y", rank="o"), note("y", rank="q")), True, id="moves-out-of-it"
        ),
        pytest.param(
            RANKED,
            {},
            change(note("y", day="tue"), note("y", day="wed")),
            False,
            id="moves-elsewhere",
        ),
        pytest.param(MINE, {}, change(None, note("a", text="mine")), True, id="passes-the-filter"),
        pytest.param(MINE, {}, change(None, note("a")), False, id="does-not-pass-the-filter"),
        pytest.param(MINE, {}, change(note("a", text="mine"), note("a")), True, id="no-longer-passes-the-filter"),
        pytest.param(SLIM, {}, change(None, note("a")), True, id="filter-on-what-the-index-does-not-hold"),
        pytest.param(query(count=True), {"Count": 1}, change(note("a"), None), True, id="counted"),
        pytest.param(Scan("notes", 0, 4), last("a"), change(None, note("z", book="9")), True, id="scanned"),
        pytest.param(
            Scan("notes", 0, 4, Compare("text", "=", ("S", "mine"))), {}, change(None, note("a")), False, id="filtered"
        ),
    ],
)
async def test_change_concerns_what_was_read(
    request_: Request, answer: dict[str, Any], change_: Change, is_concerned: bool
) -> None:
    reads = await reading(request_, answer)

    assert reads.concerns(change_) is is_concerned
    assert not is_concerned or {*reads.topics} & topics_of(MODEL, change_), "the hub would not have told of it"


@pytest.mark.parametrize(
    ("request_", "topics"),
    [
        (GetItem("notes", key("a")), {of_item(("notes", key("a")))}),
        (
            BatchGetItem("notes", (key("a"), key("b"))),
            {of_item(("notes", key("a"))), of_item(("notes", key("b")))},
        ),
        (PREFIX, {of_partition("notes", None, (("pk", "B1"),))}),
        (RANKED, {of_partition("notes", "days", (("day", "mon"),))}),
        (Scan("notes", 0, 4), {of_table("notes")}),
    ],
)
async def test_topics_are_waited_for_before_the_request_is_sent(request_: Request, topics: set[Topic]) -> None:
    waited: set[Topic] = set()
    reads = ReadSet(MODEL, waited.update)

    class Sender:
        async def send(self, *_: Any) -> Any:
            assert waited == topics
            return {}

    await reads.over(Sender()).send(request_, Meter())

    assert {*reads.topics} == topics


@pytest.mark.parametrize(
    ("request_", "is_consistent"),
    [
        (GetItem("notes", key("a")), True),
        (BatchGetItem("notes", (key("a"),)), True),
        (PLAIN, True),
        (query(index="near"), True),
        (query(index="days"), False),
        (Scan("notes", 0, 1), True),
    ],
)
async def test_all_but_a_global_index_is_read_consistently(request_: Any, is_consistent: bool) -> None:
    sender = Answering({})
    reads = ReadSet(MODEL, lambda _: None)

    await reads.over(sender).send(request_, Meter())

    (sent,) = sender.sent
    assert sent.parameters().get("ConsistentRead", "RequestItems" in sent.parameters()) is is_consistent
    assert reads.is_behind is not is_consistent


@pytest.mark.parametrize(("error", "may_pass"), [(Unavailable("gone"), True), (RequestRefused("no"), False)])
async def test_what_was_not_answered_concerns_all_that_it_might_have_read(error: StoreError, may_pass: bool) -> None:
    reads = ReadSet(MODEL, lambda _: None)

    with pytest.raises(StoreError):
        await reads.over(Answering(error)).send(query(limit=1), Meter())

    assert reads.concerns(change(None, note("z")))
    assert reads.has_failed is may_pass
