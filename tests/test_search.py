"""Searching, as a client sees it: what is found, in which order, page by page; on the engine and a real index."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graph.cursor import Issuer, write_cursor
from graph.loaders import Limits
from graph.maintenance.walk import Walk
from graph.requests import Item
from graph.search.index import Document, Searched
from graph.search.rebuild import rebuild
from graph.search.sqlite import SqliteIndex
from graph.search.words import tokens, wanted
from resolvers.schema import Api
from tests.conftest import PATIENT, ROOT, Serve, Served, example_items

B2B = (ROOT / "examples/b2b/schema.graphql").read_text()
PLACES = """
extend schema @table(name: "places", partitionKey: "pk", sortKey: "sk")
enum Kind { CAFE TRAIN_STATION }
type Town @node(partition: "TOWN#{name}", sort: "town", ref: "TOWN#{name}") { name: ID!  country: String }
type Place @search @node(partition: "PLACE#{number}", sort: "place") {
  number: ID!
  name: String @search(weight: 5)
  about: String
  kind: Kind
  tags: [String!]
  stars: Int
  town: Town
}
"""
Search = Callable[..., Awaitable[Any]]


def place(number: int | str, name: str, about: str = "", **more: Any) -> Item:
    """A place as it lies in the table."""
    item: dict[str, Any] = {
        "pk": {"S": f"PLACE#{number}"},
        "sk": {"S": "place"},
        "name": {"S": name},
        "about": {"S": about},
    }
    return item | more


@pytest.fixture
def index(tmp_path: Path) -> SqliteIndex:
    """An index in a file of its own."""
    return SqliteIndex(tmp_path / "search.db")


@pytest.fixture
def serve_places(serve: Serve, index: SqliteIndex) -> Callable[..., Awaitable[Served]]:
    """Serve places that are indexed."""

    async def serve_indexed(items: Iterable[Item], limits: Limits = PATIENT, sdl: str = PLACES) -> Served:
        served = await serve(sdl, items, limits=limits, search=index)
        await rebuild(Walk(served.graph, 2))
        served.sent.clear()
        return served

    return serve_indexed


async def names(served: Served, text: str, **arguments: Any) -> list[str]:
    """The names of the places that are found, in their order."""
    data = await served.data(
        "query ($text: String!, $where: PlaceWhere, $first: Int) "
        "{ searchPlaces(text: $text, where: $where, first: $first) { nodes { name } } }",
        {"text": text, **arguments},
    )
    return [node["name"] for node in data["searchPlaces"]["nodes"]]


async def walk(served: Served, text: str, first: int, where: Mapping[str, Any] | None = None) -> list[str]:
    """The numbers of all that is found, page by page; no page but the last is short."""
    found: list[str] = []
    after = None
    while True:
        data = await served.data(
            "query ($text: String!, $first: Int, $after: String, $where: PlaceWhere) { searchPlaces(text: $text, "
            "first: $first, after: $after, where: $where) { nodes { number } pageInfo { hasNextPage endCursor } } }",
            {"text": text, "first": first, "after": after, "where": where},
        )
        page = data["searchPlaces"]
        found += [node["number"] for node in page["nodes"]]
        if not page["pageInfo"]["hasNextPage"]:
            return found
        assert len(page["nodes"]) == first
        after = page["pageInfo"]["endCursor"]


# --- what is found ------------------------------------------------------------------------------------------------


async def test_words_as_they_are_come_before_beginnings_and_these_before_typos(serve_places: Search) -> None:
    served = await serve_places(
        [place(1, "Acne Clinic"), place(2, "Acmeville Acmetown"), place(3, "Acme"), place(4, "Beside", "acme, acme!")]
    )

    # The name counts five times as much as what else is told of a place.
    assert await names(served, "acme") == ["Acme", "Beside", "Acmeville Acmetown", "Acne Clinic"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("hel", True, id="the-beginning-of-the-last-word"),
        pytest.param("hel cafe", False, id="not-of-another-word"),
        pytest.param("cafe hel", True, id="words-in-any-order"),
        pytest.param("helsinki missing", False, id="all-words-must-be-found"),
        pytest.param("helsinky", True, id="a-typo"),
        pytest.param("hlesinki", True, id="swapped-letters"),
        pytest.param("hellsinky", True, id="two-typos-in-a-long-word"),
        pytest.param("hxlsxnkx", False, id="three-typos"),
        pytest.param("cofe", True, id="a-typo-in-a-word-of-four"),
        pytest.param("cofi", False, id="two-typos-in-a-word-of-four"),
        pytest.param("by", True, id="a-short-word"),
        pytest.param("bi", False, id="no-typo-in-a-short-word"),
        pytest.param("hellsin", True, id="a-typo-in-a-beginning"),
        pytest.param("a7301", True, id="the-beginning-of-a-code"),
        pytest.param("a73012", False, id="another-code"),
        pytest.param("station", True, id="a-word-of-an-enum"),
        pytest.param("quiet", True, id="an-entry-of-a-list"),
        pytest.param("", False, id="nothing"),
        pytest.param(" -- ?! ", False, id="no-words"),
    ],
)
async def test_what_is_found(serve_places: Search, text: str, found: bool) -> None:
    extras = {"kind": {"S": "TRAIN_STATION"}, "tags": {"L": [{"S": "quiet"}]}}
    served = await serve_places([place("A73011", "Cafe Helsinki", "by the sea", **extras), place(2, "Oslo")])

    assert await names(served, text) == (["Cafe Helsinki"] if found else [])


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        pytest.param("Café Zoé", "CAFE zoe", id="accents"),
        pytest.param("Cafe\u0301", "café", id="accents-by-themselves"),
        pytest.param("Große Straße", "grosse STRASSE", id="sharp-s"),
        pytest.param("Ørsted & Łódź", "orsted lodz", id="letters-with-strokes"),
        pytest.param("İstanbul", "istanbul", id="dotted-i"),
        pytest.param("\uff21\uff23\uff2d\uff25\u3000\uff11\uff12", "acme 12", id="full-width"),
        pytest.param("東京都庁", "東京", id="han"),
        pytest.param("すしバー", "すし", id="kana"),
        pytest.param("서울특별시", "서울", id="hangul"),
        pytest.param("Ελλάδα", "ελλαδα", id="greek"),
        pytest.param("Москва", "москва", id="cyrillic"),
        pytest.param("กรุงเทพ", "กรุง", id="thai"),
        pytest.param("O\u2019Neill's", "oneills", id="apostrophes"),
        pytest.param("rock-n-roll", "rock roll", id="hyphens"),
    ],
)
async def test_case_accents_and_width_do_not_matter(serve_places: Search, stored: str, text: str) -> None:
    served = await serve_places([place(1, stored), place(2, "京東 other")])

    assert await names(served, text) == [stored]


async def test_characters_of_a_script_without_spaces_stand_behind_each_other(serve_places: Search) -> None:
    served = await serve_places([place(1, "東京"), place(2, "京東")])

    assert await names(served, "京東") == ["京東"]


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '" OR "a"*',
        "a* OR b*",
        "NEAR(acme, 2)",
        "name:acme",
        "-acme",
        "^acme",
        "acme'); DROP TABLE indexes; --",
        "{f0}: acme",
        "+",
        "\\",
        "\x00",
        "\ud800",
    ],
)
async def test_no_character_is_an_operator(serve_places: Search, text: str) -> None:
    served = await serve_places([place(1, "Acme"), place(2, "a b")])

    found = await names(served, text)

    wanted = set(tokens(text).split())
    assert found == [name for name in ("Acme", "a b") if wanted and wanted <= set(tokens(name).split())]


async def test_a_long_text_is_refused(serve_places: Search) -> None:
    served = await serve_places([])

    for text, told in (
        ("x" * 1001, "1,001 characters"),
        (" ".join(f"w{number}" for number in range(33)), "33 different"),
    ):
        error = await served.error(
            "query ($text: String!) { searchPlaces(text: $text) { nodes { name } } }", {"text": text}
        )

        assert error["extensions"]["code"] == "BAD_INPUT"
        assert told in error["message"]
    assert await names(served, " ".join(["acme"] * 200)) == []


async def test_as_many_words_as_are_taken_find(serve_places: Search) -> None:
    text = " ".join(f"{a}{b}ddle" for a in "bcdfghjklmnpqrst" for b in "ia")
    served = await serve_places([place(1, text)])

    assert await names(served, text.replace("middle", "moddle")) == [text]


# --- pages --------------------------------------------------------------------------------------------------------


async def test_pages_together_are_all_hits_each_once(serve_places: Search) -> None:
    # Most fit equally well, so that only the id tells their order.
    items = [place(number, f"Acme {'Store' if number % 7 else 'Stores'}") for number in range(150)]
    served = await serve_places(items)

    whole = await walk(served, "acme store", 1000)

    assert sorted(whole, key=int) == [str(number) for number in range(150)]
    for size in (1, 7, 50, 149):
        assert await walk(served, "acme store", size) == whole


async def test_a_page_is_one_search_and_one_batch(serve_places: Search) -> None:
    served = await serve_places([place(number, "Acme") for number in range(60)])

    body = await served(
        '{ searchPlaces(text: "acme", first: 50) { edges { cursor score node { id name } } } }', cost=True
    )

    assert len(body["data"]["searchPlaces"]["edges"]) == 50
    assert served.operations == ["BatchGetItem"]
    assert body["extensions"]["cost"]["searches"] == 1
    assert body["extensions"]["cost"]["requests"] == {"total": 1, "BatchGetItem": 1}


async def test_counting_alone_reads_nothing(serve_places: Search) -> None:
    served = await serve_places([place(number, "Acme" if number % 2 else "Acne") for number in range(60)])

    data = await served.data('{ searchPlaces(text: "acme") { totalCount } }')

    assert data["searchPlaces"]["totalCount"] == 60
    assert served.sent == []


async def test_searches_of_one_query_share_their_batch(serve_places: Search) -> None:
    served = await serve_places([place(1, "Acme"), place(2, "Oslo")])

    data = await served.data(
        '{ a: searchPlaces(text: "acme") { nodes { name } } b: searchPlaces(text: "oslo") { nodes { name } } }'
    )

    assert data == {"a": {"nodes": [{"name": "Acme"}]}, "b": {"nodes": [{"name": "Oslo"}]}}
    assert served.operations == ["BatchGetItem"]


async def test_filtered_pages_are_full(serve_places: Search) -> None:
    items = [place(number, "Acme", stars={"N": str(number % 5)}) for number in range(200)]
    served = await serve_places(items)

    found = await walk(served, "acme", 9, {"stars": {"eq": 3}})

    assert sorted(found, key=int) == [str(number) for number in range(200) if number % 5 == 3]


async def test_a_filter_looks_behind_references(serve_places: Search) -> None:
    towns: list[Item] = [
        {"pk": {"S": f"TOWN#{name}"}, "sk": {"S": "town"}, "country": {"S": country}}
        for name, country in (("Bergen", "NO"), ("Turku", "FI"))
    ]
    places = [place(number, "Acme", town={"S": f"TOWN#{('Bergen', 'Turku')[number % 2]}"}) for number in range(6)]
    served = await serve_places([*towns, *places])

    found = await walk(served, "acme", 2, {"town": {"country": {"eq": "FI"}}})

    assert sorted(found) == ["1", "3", "5"]


async def test_a_filter_that_refuses_all_ends_with_the_read_budget(serve_places: Search) -> None:
    served = await serve_places(
        [place(number, "Acme") for number in range(450)], Limits(read_budget=200, linger_secs=2.0)
    )

    data = await served.data(
        '{ searchPlaces(text: "acme", first: 5, where: { stars: { eq: 1 } }) '
        "{ nodes { name } pageInfo { hasNextPage endCursor } } }"
    )

    page = data["searchPlaces"]
    assert page["nodes"] == []
    assert page["pageInfo"]["hasNextPage"]
    assert len(served.sent) == 2
    error = await served.error('{ searchPlaces(text: "acme", where: { stars: { eq: 1 } }) { totalCount } }')
    assert error["extensions"]["code"] == "READ_BUDGET"


async def test_cursors_of_another_search_are_refused(serve_places: Search) -> None:
    served = await serve_places([place(number, "Acme Oslo") for number in range(3)])
    query = (
        "query ($text: String!, $after: String) "
        "{ searchPlaces(text: $text, after: $after, first: 1) { pageInfo { endCursor } } }"
    )
    cursor = (await served.data(query, {"text": "acme"}))["searchPlaces"]["pageInfo"]["endCursor"]

    for text, after in (("oslo", cursor), ("acme", "nonsense"), ("acme", cursor[:-4])):
        error = await served.error(query, {"text": text, "after": after})
        assert error["extensions"]["code"] == "BAD_CURSOR"
    for rank in (2**63, -1):
        _, name, (_, id_) = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        forged = write_cursor((rank, id_), Issuer(name))
        assert (await served.error(query, {"text": "acme", "after": forged}))["extensions"]["code"] == "BAD_CURSOR"
    # The same words are the same search, however they are written.
    await served.data(query, {"text": "  ACME!", "after": cursor})


async def test_what_is_gone_from_the_table_is_left_out(serve_places: Search) -> None:
    served = await serve_places([place(number, "Acme") for number in range(30)])
    await served.data(
        "mutation { "
        + " ".join(f'd{n}: deletePlace(key: {{ number: "{n}" }}) {{ place {{ number }} }}' for n in range(20))
        + " }"
    )

    found = await walk(served, "acme", 4)

    assert sorted(found, key=int) == [str(number) for number in range(20, 30)]


async def test_what_has_changed_is_shown_as_it_is(serve_places: Search) -> None:
    served = await serve_places([place(1, "Acme")])
    await served.data('mutation { updatePlace(key: { number: "1" }, set: { name: "Oslo" }) { place { name } } }')

    assert await names(served, "acme") == ["Oslo"]


@pytest.mark.parametrize("executor", ["plan", "reference"])
async def test_both_executors_answer_alike(serve_places: Search, executor: Any) -> None:
    served = await serve_places(
        [
            place(1, "Acme", town={"S": "TOWN#Bergen"}),
            place(2, "Acmes"),
            {"pk": {"S": "TOWN#Bergen"}, "sk": {"S": "town"}, "country": {"S": "NO"}},
        ]
    )
    served.api = Api(served.graph, executor=executor)

    data = await served.data(
        'query ($yes: Boolean!) { searchPlaces(text: "acme", first: 1) { __typename totalCount '
        "edges { __typename score cursor @skip(if: $yes) "
        "node { __typename name town { country } } } "
        "pageInfo { hasNextPage hasPreviousPage startCursor @skip(if: $yes) } } }",
        {"yes": True},
    )

    score = data["searchPlaces"]["edges"][0].pop("score")
    assert 2 < score < 3
    assert data["searchPlaces"] == {
        "__typename": "QuerySearchPlacesConnection",
        "totalCount": 2,
        "edges": [
            {
                "__typename": "QuerySearchPlacesEdge",
                "node": {"__typename": "Place", "name": "Acme", "town": {"country": "NO"}},
            }
        ],
        "pageInfo": {"hasNextPage": True, "hasPreviousPage": False},
    }


# --- without an index ---------------------------------------------------------------------------------------------


async def test_an_index_that_is_missing_names_the_command(serve: Serve, index: SqliteIndex) -> None:
    for search in (None, index):
        served = await serve(PLACES, search=search)

        error = await served.error('{ searchPlaces(text: "acme") { nodes { name } } }')

        assert error["extensions"]["code"] == "SEARCH_UNAVAILABLE"
        assert "`tablegraph search rebuild`" in error["message"]
    # Looking for an index makes none.
    assert not (index._path).exists()


async def test_an_index_of_another_model_names_the_command(
    serve: Serve, serve_places: Search, index: SqliteIndex
) -> None:
    served = await serve_places([place(1, "Acme")])
    other = await serve(PLACES.replace("  tags: [String!]\n", ""), table=served.table, search=index)

    error = await other.error('{ searchPlaces(text: "acme") { nodes { name } } }')

    assert error["extensions"]["code"] == "SEARCH_UNAVAILABLE"
    assert "another model" in error["message"]
    assert await names(served, "acme") == ["Acme"]


async def test_a_damaged_index_is_told_with_its_cure(serve_places: Search, index: SqliteIndex) -> None:
    served = await serve_places([place(1, "Acme")])
    await index.close()
    for path in index._path.parent.iterdir():
        path.unlink()
    index._path.write_bytes(b"not a database" * 1000)

    error = await served.error('{ searchPlaces(text: "acme") { nodes { name } } }')

    assert error["extensions"]["code"] == "SEARCH_UNAVAILABLE"
    assert "delete it" in error["message"]


async def test_an_index_of_another_format_is_told_with_its_cure(serve_places: Search, index: SqliteIndex) -> None:
    served = await serve_places([place(1, "Acme")])
    await index.close()
    with sqlite3.connect(index._path) as one:
        one.execute("PRAGMA user_version = 99")

    error = await served.error('{ searchPlaces(text: "acme") { nodes { name } } }')

    assert "of format 99" in error["message"]
    assert "delete it" in error["message"]


async def test_a_file_that_was_replaced_is_the_one_that_is_searched(serve_places: Search, index: SqliteIndex) -> None:
    served = await serve_places([place(1, "Acme")])
    assert await names(served, "acme") == ["Acme"]
    for path in index._path.parent.iterdir():
        path.unlink()
    assert (await served.error('{ searchPlaces(text: "acme") { nodes { name } } }'))["message"].startswith(
        "there is no"
    )
    await served.put([place(2, "Acmes")])

    served.graph.search = SqliteIndex(index._path)
    await rebuild(Walk(served.graph, 1))
    served.graph.search = index

    assert await names(served, "acme") == ["Acme", "Acmes"]


async def test_an_error_of_the_file_is_not_for_ever(serve_places: Search, index: SqliteIndex) -> None:
    served = await serve_places([place(1, "Acme")])
    with sqlite3.connect(index._path) as one:
        one.execute("ALTER TABLE documents_1 RENAME TO elsewhere")
    for _ in range(3):
        assert "no such table" in (await served.error('{ searchPlaces(text: "acme") { nodes { name } } }'))["message"]

    with sqlite3.connect(index._path) as one:
        one.execute("ALTER TABLE elsewhere RENAME TO documents_1")

    assert await names(served, "acme") == ["Acme"]


# --- only what is itself ------------------------------------------------------------------------------------------


async def test_stores_are_found_once_and_never_by_their_copies(serve: Serve, index: SqliteIndex) -> None:
    served = await serve(B2B, example_items("b2b"), search=index)
    stores = [item for item in example_items("b2b") if item["type"]["S"].startswith("store.")]
    copies = [item for item in example_items("b2b") if "storeName" in item and item not in stores]
    assert copies, "edges and tags hold copies of the names of stores"

    counts = await rebuild(Walk(served.graph, 4))
    data = await served.data(
        '{ searchStores(text: "melbourne", first: 100) { totalCount nodes { number storeName } } }'
    )

    assert counts == {"Store": len(stores)}
    numbers = sorted(item["id"]["S"] for item in stores if "melbourne" in tokens(item["storeName"]["S"]).split())
    assert sorted(node["number"] for node in data["searchStores"]["nodes"]) == numbers != []
    assert data["searchStores"]["totalCount"] == len(numbers)


# --- any text -----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=st.lists(st.text(max_size=30), max_size=6), text=st.text(max_size=30))
@example(stored=["a\u0301 ❤\ufe0f"], text="❤\ufe0f")
@example(stored=["ǆ ﬁ ﷺ"], text="fi")
async def test_any_text_finds_what_has_its_words(tmp_path_factory: Any, stored: list[str], text: str) -> None:
    index = SqliteIndex(tmp_path_factory.mktemp("any") / "search.db")
    of = Searched("Place", "places", ("pk",), {"name": 1.0})
    building = await index.rebuild([of])
    await building.add([Document(of, f"[{number}]", {"name": tokens(one)}) for number, one in enumerate(stored)])
    await building.finish()

    words = wanted(text)
    found = await index.search(of, words, 100, None)

    pieces = {token for word in words for token in word.tokens}
    if all(len(word.tokens) == 1 for word in words):
        sure = {f"[{number}]" for number, one in enumerate(stored) if pieces and pieces <= set(tokens(one).split())}
        assert {hit.id for hit in found if hit.score >= 2} == sure
    assert len(found) == await index.count(of, words)
    ranks = [(-hit.score, hit.id) for hit in found]
    assert ranks == sorted(ranks)
    again: Sequence[Any] = []
    while len(again) < len(found):
        again = [*again, *await index.search(of, words, 2, again[-1].position if again else None)]
    assert list(again) == found
    await index.close()


@given(st.text())
@example("ΐ")
def test_words_of_words_are_the_same_words(text: str) -> None:
    assert tokens(tokens(text)) == tokens(text)
    assert all(token and " " not in token for token in tokens(text).split(" ") if tokens(text))
