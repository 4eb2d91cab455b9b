"""Searching what one may read: hits, counts and scores are those that there would be without all the rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from graph.identity import Identity
from graph.maintenance.walk import Walk
from graph.search.index import SearchIndex
from graph.search.opensearch import OpenSearchIndex
from graph.search.rebuild import rebuild
from graph.search.sqlite import SqliteIndex
from tests.conftest import Serve, Served
from tests.opensearch_server import opensearch
from tests.works import ADA, ANN, BEN, BOTH, NOBODY, STAFF, ask, codes

TEXTS = """extend schema @table(name: "texts", partitionKey: "pk", sortKey: "sk")
type Page @node(partition: "PAGE#{org}#{number}", sort: "page")
  @auth(tenant: { field: "org", claim: "org" }) @auth(roles: ["staff"]) {
  org: ID!
  number: ID!
  title: String @search(weight: 3)
  body: String @search
  remarks: String @search @auth(roles: ["admin", "staff"])
}
type Letter @search @node(partition: "LETTER#{number}", sort: "letter")
  @auth(owner: { field: "by" }) @auth(roles: ["staff"]) {
  number: ID!
  by: ID!
  text: String
}
"""


@pytest.fixture(params=["sqlite", "opensearch"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SearchIndex]:
    """An index of either kind."""
    if request.param == "sqlite":
        yield SqliteIndex(tmp_path / "search.db")
        return
    with opensearch() as (address, _):
        found = OpenSearchIndex(f"opensearch+http://{address}/texts")
        yield found
        await found.close()


async def write(served: Served, who: Identity, *mutations: str) -> None:
    """Write as somebody, and have all that there is indexed."""
    for mutation in mutations:
        body = await ask(served, who, f"mutation {{ {mutation} {{ __typename }} }}")
        assert "errors" not in body, body
    await rebuild(Walk(served.graph, 1))


@pytest.fixture
async def texts(serve: Serve, index: SearchIndex) -> Served:
    """Pages of two organisations, and letters of two people."""
    served = await serve(TEXTS, search=index)
    for who in (ADA, BEN):
        pages = [
            f'createPage(input: {{ number: "{number}", title: "red tea", body: "{number}" }})' for number in (1, 2)
        ]
        letters = [f'createLetter(input: {{ number: "{who.subject}-{number}", text: "red" }})' for number in (1, 2)]
        await write(served, who, *pages, *letters)
    await write(served, ADA, 'createPage(input: { number: "3", title: "tea", remarks: "red" })')
    return served


async def found(served: Served, who: Identity, text: str, more: str = "") -> Any:
    query = f'{{ searchPages(text: "{text}" {more}) {{ totalCount edges {{ score node {{ org number }} }} }} }}'
    return await ask(served, who, query)


async def test_hits_and_their_count_are_those_of_ones_own_tenant(texts: Served) -> None:
    for who, org in ((ANN, "a"), (BEN, "b")):
        body = await found(texts, who, "red")
        assert [edge["node"]["org"] for edge in body["data"]["searchPages"]["edges"]] == [org, org]
        assert body["data"]["searchPages"]["totalCount"] == 2
        # Nothing is read of others' hits.
        keys = str([parameters for _, parameters in texts.sent])
        assert f"PAGE#{'b' if org == 'a' else 'a'}" not in keys

    assert (await found(texts, BOTH, "red"))["data"]["searchPages"]["totalCount"] == 4
    assert (await found(texts, STAFF, "red"))["data"]["searchPages"]["totalCount"] == 5
    assert codes(await found(texts, NOBODY, "red")) == ["UNAUTHENTICATED"]


async def test_count_alone_is_the_indexs(texts: Served) -> None:
    body = await ask(texts, ANN, '{ searchPages(text: "red") { totalCount } }')

    assert body == {"data": {"searchPages": {"totalCount": 2}}}
    assert texts.sent == []


async def test_scores_tell_nothing_of_others_texts(texts: Served) -> None:
    before = await found(texts, ANN, "red tea")

    await write(texts, BEN, *(f'createPage(input: {{ number: "{n}", title: "red {n}" }})' for n in range(10, 30)))

    assert await found(texts, ANN, "red tea") == before


async def test_better_fits_come_first_also_within_a_tenant(texts: Served) -> None:
    await write(texts, ANN, 'createPage(input: { number: "9", title: "x", body: "red tea" })')

    edges = (await found(texts, ANN, "red tea"))["data"]["searchPages"]["edges"]

    assert [edge["node"]["number"] for edge in edges][-1] == "9"
    assert edges[0]["score"] > edges[-1]["score"]


async def test_what_may_not_be_read_is_not_searched(texts: Served) -> None:
    by_ann, by_ada = [(await found(texts, who, "red"))["data"]["searchPages"]["totalCount"] for who in (ANN, ADA)]

    assert (by_ann, by_ada) == (2, 3)


async def test_pages_together_are_all_hits_and_a_cursor_is_one_tenants(texts: Served) -> None:
    query = """query ($after: String) { searchPages(text: "red", first: 1, after: $after) {
      nodes { number } pageInfo { hasNextPage endCursor } } }"""
    first = (await ask(texts, ANN, query))["data"]["searchPages"]
    second = (await ask(texts, ANN, query, {"after": first["pageInfo"]["endCursor"]}))["data"]["searchPages"]

    assert [first["pageInfo"]["hasNextPage"], second["pageInfo"]["hasNextPage"]] == [True, False]
    assert sorted(node["number"] for page in (first, second) for node in page["nodes"]) == ["1", "2"]
    assert codes(await ask(texts, BEN, query, {"after": first["pageInfo"]["endCursor"]})) == ["BAD_CURSOR"]


async def test_hits_that_are_others_by_their_owner_are_left_out_and_not_counted(texts: Served) -> None:
    query = '{ searchLetters(text: "red") { totalCount nodes { number } } }'

    for who, letters in ((ADA, 2), (BEN, 2), (ANN, 0), (STAFF, 4)):
        body = (await ask(texts, who, query))["data"]["searchLetters"]
        assert (len(body["nodes"]), body["totalCount"]) == (letters, letters)


async def test_index_that_was_built_before_there_were_tenants_is_refused(serve: Serve, tmp_path: Path) -> None:
    index = SqliteIndex(tmp_path / "search.db")
    plain = TEXTS.replace('@auth(tenant: { field: "org", claim: "org" })', "")
    served = await serve(plain, search=index)
    await rebuild(Walk(served.graph, 1))
    ruled = await serve(TEXTS, table=served.table, search=index)

    assert codes(await found(ruled, ANN, "red")) == ["SEARCH_UNAVAILABLE"]
