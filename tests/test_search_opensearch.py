"""The index in OpenSearch: what is sent to it, and that it finds what the file finds.

No OpenSearch runs here: a server of ours answers as it documents, and refuses what it would refuse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from graph.errors import SearchUnavailable
from graph.maintenance.walk import Walk
from graph.search.index import Document, Searched
from graph.search.opensearch import OpenSearchIndex, version
from graph.search.rebuild import rebuild
from graph.search.words import tokens, wanted
from graph.streams.change import Place
from tests.conftest import Serve, Served
from tests.opensearch_server import Cluster, opensearch
from tests.test_search import PLACES, place, walk

OF = Searched("Place", "Places", ("pk",), {"name": 5.0, "about": 1.0})


@pytest.fixture
def cluster() -> Iterator[tuple[str, Cluster]]:
    """A server, and what it holds."""
    with opensearch("joe:secret/1") as found:
        yield found


@pytest.fixture
async def index(cluster: tuple[str, Cluster]) -> Any:
    """An index there."""
    index = OpenSearchIndex(f"opensearch+http://joe:secret%2F1@{cluster[0]}/shop")
    yield index
    await index.close()


async def serve_places(serve: Serve, index: OpenSearchIndex, *names: str) -> Served:
    """Serve places that are indexed."""
    served = await serve(PLACES, [place(number, name) for number, name in enumerate(names)], search=index)
    await rebuild(Walk(served.graph, 2))
    return served


def document(number: int, name: str | None, sequence: int | None = None, of: Searched = OF) -> Document:
    """A document, as a change or as the table has it."""
    texts = None if name is None else {"name": tokens(name), "about": ""}
    return Document(of, f'["{number}"]', texts, None if sequence is None else Place("shard", sequence))


async def found(index: OpenSearchIndex, text: str) -> list[str]:
    """The ids that are found."""
    return [hit.id for hit in await index.search(OF, wanted(text), 100, None)]


# --- searching ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param("acme", ["Acme", "Acmeville", "Acne Clinic"], id="as-it-is-then-begun-then-with-typos"),
        pytest.param("acme x", [], id="all-words"),
        pytest.param("clinic acn", ["Acne Clinic"], id="the-last-one-begun"),
        pytest.param("東京", ["東京都"], id="characters-behind-each-other"),
        pytest.param("京東", [], id="and-not-the-other-way"),
        pytest.param('" OR *', [], id="no-operators"),
        pytest.param("", [], id="nothing"),
    ],
)
async def test_what_is_found(serve: Serve, index: OpenSearchIndex, text: str, names: list[str]) -> None:
    served = await serve_places(serve, index, "Acne Clinic", "Acmeville", "Acme", "東京都")

    data = await served.data(
        "query ($text: String!) { searchPlaces(text: $text) { totalCount nodes { name } } }", {"text": text}
    )

    assert [node["name"] for node in data["searchPlaces"]["nodes"]] == names
    assert data["searchPlaces"]["totalCount"] == len(names)


async def test_pages_together_are_all_hits_each_once(serve: Serve, index: OpenSearchIndex) -> None:
    served = await serve_places(serve, index, *(f"Acme {'Store' if number % 7 else 'Stores'}" for number in range(60)))

    whole = await walk(served, "acme store", 1000)

    assert sorted(whole, key=int) == [str(number) for number in range(60)]
    assert await walk(served, "acme store", 7) == whole


@pytest.mark.parametrize(
    "position", [("2.5", "x"), ("x", "y"), ("9" * 400 + ".0", "x"), ("-1.0", "x"), ("1.0",), (1, "x")]
)
def test_positions_are_checked_before_they_are_sent(position: Any) -> None:
    index = OpenSearchIndex("opensearch+https://localhost/x")

    assert index.check(position) is (position in [("2.5", "x")])


# --- writing ------------------------------------------------------------------------------------------------------


async def test_an_older_change_never_wins(index: OpenSearchIndex) -> None:
    await (await index.rebuild([OF])).finish()

    await index.apply([document(1, "new", 8), document(2, None, 9)])
    await index.apply([document(1, "old", 7), document(2, "back", 8), document(3, None, 1)])

    assert [await found(index, text) for text in ("new", "old", "back")] == [['["1"]'], [], []]


def test_versions_are_in_the_order_of_sequence_numbers() -> None:
    numbers = sorted(
        {first * 10**power + more for power in range(40) for first in (1, 7, 9) for more in (0, 1, 10**power)}
    )

    versions = [version(Place("shard", number)) for number in numbers]

    assert versions == sorted(versions)
    assert versions[-1] < 2**63
    assert version(None) == 0 < versions[0]


async def test_changes_reach_the_new_index_too_and_win_over_what_the_walk_reads(
    index: OpenSearchIndex, cluster: tuple[str, Cluster]
) -> None:
    first = await index.rebuild([OF])
    await first.add([document(1, "first")])
    await first.finish()
    second = await index.rebuild([OF])
    await index.apply([document(1, "changed", 5), document(2, None, 6)])
    assert await found(index, "changed") == ['["1"]']

    await second.add([document(1, "first"), document(2, "second"), document(3, "third")])
    await second.finish()

    assert [await found(index, text) for text in ("first", "changed", "second", "third")] == [
        [],
        ['["1"]'],
        [],
        ['["3"]'],
    ]
    assert len(cluster[1].indexes) == 1


async def test_what_a_killed_rebuild_left_is_dropped(index: OpenSearchIndex, cluster: tuple[str, Cluster]) -> None:
    await (await index.rebuild([OF])).finish()
    await index.rebuild([OF])
    assert (await index.status(OF)).is_building

    again = await index.rebuild([OF])
    await again.abandon()

    assert len(cluster[1].indexes) == 1
    assert await index.status(OF) == await OpenSearchIndex(index_url(cluster)).status(OF)


def index_url(cluster: tuple[str, Cluster]) -> str:
    """The address of the indexes."""
    return f"opensearch+http://joe:secret%2F1@{cluster[0]}/shop"


async def test_one_document_that_is_refused_fails_the_batch(
    index: OpenSearchIndex, cluster: tuple[str, Cluster]
) -> None:
    await (await index.rebuild([OF])).finish()
    strange = Document(OF, "[]", {"other": "x"}, Place("shard", 1))

    with pytest.raises(SearchUnavailable, match="not allowed"):
        await index.apply([document(1, "acme", 1), strange])


# --- trouble ------------------------------------------------------------------------------------------------------


async def test_an_index_that_is_missing_or_of_another_model_names_the_command(index: OpenSearchIndex) -> None:
    with pytest.raises(SearchUnavailable, match="`tablegraph search rebuild`"):
        await found(index, "acme")
    await (await index.rebuild([Searched("Place", "Places", ("pk",), {"name": 5.0})])).finish()

    with pytest.raises(SearchUnavailable, match="another model"):
        await found(index, "acme")


async def test_one_who_does_not_answer_is_named_without_the_password(cluster: tuple[str, Cluster]) -> None:
    index = OpenSearchIndex("opensearch+http://joe:secret@127.0.0.1:1/shop")

    with pytest.raises(SearchUnavailable, match=r"127\.0\.0\.1:1 does not answer") as refused:
        await found(index, "acme")
    assert "secret" not in str(refused.value)
    with pytest.raises(SearchUnavailable, match="401"):
        await found(OpenSearchIndex(f"opensearch+http://{cluster[0]}"), "acme")


async def test_a_refusal_is_told(index: OpenSearchIndex, cluster: tuple[str, Cluster]) -> None:
    await (await index.rebuild([OF])).finish()
    assert await found(index, "acme") == []
    cluster[1].fail_next = 429

    with pytest.raises(SearchUnavailable, match="429: rejected execution"):
        await found(index, "acme")
