"""@cacheControl: how long answers may be kept, decided by what they show; and what caches are told."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.identity import Identity
from graph.imagined import ImaginedTable
from graph.loaders import Graph
from resolvers.operation import CachePolicy, Request, Response
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.caching import cached
from server.view import Answer, Head, headers_for
from tests.conftest import BANANAS, Serve
from tests.counting import Running, running
from tests.test_readme import README, blocks

LIBRARY = """
extend schema
  @table(name: "library", partitionKey: "pk", sortKey: "sk")
  @index(name: "back", partitionKey: "sk", sortKey: "pk")

interface Named { name: ID! }
union Thing @cacheControl(maxAge: 7) = Book | Desk
union Owned = Book | Shelf

type Book implements Named @cacheControl(maxAge: 60) @node(key: "BOOK_{name}") @search {
  name: ID!
  title: String @cacheControl(maxAge: 30)
  price: Float @cacheControl(scope: PRIVATE)
  size: Size
  origin: Origin
  shelf: Shelf
  calm: Shelf @cacheControl(inheritMaxAge: true)
  quiet: Shelf @cacheControl(maxAge: 45)
  desk: Desk
  thing: Thing
  owned: Owned
  readers: [Reader!]! @relationship
}

type Size { height: Float width: Float @cacheControl(maxAge: 20) }
type Origin @cacheControl(maxAge: 10) { city: String }

type Shelf implements Named @cacheControl(maxAge: 90, scope: PRIVATE) @node(key: "SHELF_{name}") { name: ID! }
type Desk implements Named @node(key: "DESK_{name}") { name: ID!  lamp: String @cacheControl(maxAge: 100) }
type Reader @cacheControl(maxAge: 50) @node(key: "READER_{name}") {
  name: ID!
  books: [Book!]! @relationship @cacheControl(maxAge: 600)
}

type Loan @cacheControl(maxAge: 40) @edge(partition: "{book}", sort: "{reader}") {
  book: Book!
  reader: Reader!
  day: String
  note: String @cacheControl(maxAge: 5)
}

type Query {
  books: [Book!]! @find(scan: true)
  desks: [Desk!]! @find(scan: true)
  readers: [Reader!]! @find(scan: true) @cacheControl(maxAge: 3600)
  named: [Book!]! @find(scan: true) @cacheControl(scope: PRIVATE)
}
"""
ITEMS = [{"pk": {"S": "BOOK_Emma"}, "sk": {"S": "BOOK_Emma"}, "title": {"S": "Emma"}}]

MODEL = compile_model(LIBRARY)
API = Api(Graph(MODEL, ImaginedTable(MODEL, 1, 100)))


def policy(query: str, name: str | None = None) -> tuple[int, str] | None:
    """How long, and by whom, an answer may be kept."""
    prepared = API.documents.prepare(Request(query, operation_name=name))
    assert not isinstance(prepared, list), prepared
    return prepared.cache and (prepared.cache.max_age_secs, "PRIVATE" if prepared.cache.is_private else "PUBLIC")


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        pytest.param("name", (60, "PUBLIC"), id="a scalar is kept as long as its type"),
        pytest.param("id __typename", (60, "PUBLIC"), id="and so is the id"),
        pytest.param("title", (30, "PUBLIC"), id="a field's own hint is stricter"),
        pytest.param("price", (60, "PRIVATE"), id="one private field makes the answer private"),
        pytest.param("size { height }", (60, "PUBLIC"), id="an object in the item belongs to it"),
        pytest.param("size { width }", (20, "PUBLIC"), id="its fields have hints of their own"),
        pytest.param("origin { city }", (10, "PUBLIC"), id="and it may have one itself"),
        pytest.param("shelf { name }", (60, "PRIVATE"), id="another node has the hint of its type"),
        pytest.param("quiet { name }", (45, "PRIVATE"), id="the field's age goes before the type's, whose scope stays"),
        pytest.param("calm { name }", (60, "PRIVATE"), id="a type's age goes before inheritMaxAge"),
        pytest.param("desk { name }", None, id="a node whose type has none is not kept"),
        pytest.param("desk { lamp }", None, id="whatever its fields say"),
        pytest.param("thing { __typename }", (7, "PUBLIC"), id="a union has its own"),
        pytest.param("owned { __typename }", (60, "PRIVATE"), id="or the strictest of its members"),
        pytest.param("readers { totalCount }", (40, "PUBLIC"), id="a connection has those of its node and its edge"),
        pytest.param(
            "readers { edges { day node { name } } pageInfo { endCursor } }", (40, "PUBLIC"), id="in all parts"
        ),
        pytest.param("readers { edges { note } }", (5, "PUBLIC"), id="a field of the edge has its own"),
        pytest.param("readers { nodes { books { nodes { title } } } }", (30, "PUBLIC"), id="through both ends"),
        pytest.param("title @skip(if: true)", (30, "PUBLIC"), id="what is skipped counts all the same"),
        pytest.param("... on Named { name }", (60, "PUBLIC"), id="through an interface it is the type's"),
        pytest.param("...A", (30, "PUBLIC"), id="fragments count where they are spread"),
    ],
)
def test_what_is_shown_decides(selection: str, expected: object) -> None:
    fragments = " fragment A on Book { ...B } fragment B on Book { title }" if "...A" in selection else ""

    assert policy(f'{{ book(name: "1") {{ {selection} }} }}{fragments}') == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("{ __typename }", None, id="nothing"),
        pytest.param('{ __type(name: "Book") { name } }', None, id="introspection"),
        pytest.param("{ books { nodes { name } } }", (60, "PUBLIC"), id="a find has its type's"),
        pytest.param("{ readers { nodes { name } } }", (3600, "PUBLIC"), id="or its own before it"),
        pytest.param("{ readers { nodes { books { totalCount } } } }", (600, "PUBLIC"), id="as has a relationship"),
        pytest.param("{ named { nodes { name } } }", (60, "PRIVATE"), id="or a scope alone"),
        pytest.param("{ desks { nodes { name } } }", None, id="or none"),
        pytest.param("{ books { totalCount } desks { totalCount } }", None, id="one root field that is not kept"),
        pytest.param('{ searchBooks(text: "emma") { nodes { name } } }', (60, "PUBLIC"), id="a search has its type's"),
        pytest.param('{ node(id: "x") { id } }', None, id="any node may be one that is not kept"),
        pytest.param('mutation { deleteBook(key: { name: "1" }) { deletedId } }', None, id="a mutation"),
        pytest.param("subscription { bookChanged { kind } }", None, id="a subscription"),
    ],
)
def test_roots(query: str, expected: object) -> None:
    assert policy(query) == expected


def test_each_operation_of_a_document_has_a_policy_of_its_own() -> None:
    document = "query A { books { nodes { ...F } } } query B { books { nodes { name } } } fragment F on Book { title }"

    assert (policy(document, "A"), policy(document, "B")) == ((30, "PUBLIC"), (60, "PUBLIC"))


def test_nodes_are_kept_where_every_type_says_how_long() -> None:
    model = compile_model(BANANAS.read_text().replace("@node(", "@cacheControl(maxAge: 9) @node("))
    api = Api(Graph(model, ImaginedTable(model, 1, 100)))

    prepared = api.documents.prepare(Request('{ nodes(ids: ["x"]) { id } }'))

    assert not isinstance(prepared, list)
    assert prepared.cache == CachePolicy(9, False)


SELECTIONS = {
    "name": (),
    "title": (30, False),
    "price": (None, True),
    "size { width }": (20, False),
    "shelf { name }": (90, True),
    "desk { name }": (0, False),
    "readers { edges { note } }": (5, False),
}


@given(st.lists(st.sampled_from(sorted(SELECTIONS)), min_size=1), st.booleans())
def test_the_strictest_counts_in_whatever_order_and_place(chosen: list[str], is_spread: bool) -> None:
    selection = " ".join(chosen)
    if is_spread:
        query = f"{{ books {{ nodes {{ ...F }} }} }} fragment F on Book {{ {selection} }}"
    else:
        query = f"{{ books {{ nodes {{ {selection} }} }} }}"
    hints = [SELECTIONS[one] for one in chosen if SELECTIONS[one]]
    age = min([60, *(hint[0] for hint in hints if hint[0] is not None)])
    is_private = any(hint[1] for hint in hints)

    assert policy(query) == ((age, "PRIVATE" if is_private else "PUBLIC") if age else None)


def test_the_directive_is_not_in_the_public_schema() -> None:
    assert "cacheControl" not in API.sdl()


# HTTP


@pytest.fixture
async def server(serve: Serve) -> AsyncIterator[Running]:
    served = await serve(LIBRARY, ITEMS)
    async with running(served.api) as started:
        yield started


@pytest.fixture
async def client(server: Running) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as client:
        yield client


async def get(client: httpx.AsyncClient, selection: str, headers: dict[str, str] | None = None) -> httpx.Response:
    return await client.get(
        "/graphql", params={"query": f'{{ book(name: "Emma") {{ {selection} }} }}'}, headers=headers
    )


async def test_an_answer_by_get_tells_how_long_it_may_be_kept(client: httpx.AsyncClient) -> None:
    answer = await get(client, "title")

    assert answer.json() == {"data": {"book": {"title": "Emma"}}}
    assert answer.headers["cache-control"] == "max-age=30, public"
    assert answer.headers["vary"] == "Accept, Accept-Encoding, Authorization"
    assert answer.headers["etag"].startswith('W/"')


async def test_what_the_client_has_already_is_not_sent_again(client: httpx.AsyncClient) -> None:
    first = await get(client, "title")
    again = await get(client, "title", {"If-None-Match": f'"other", {first.headers["etag"]}'})
    other = await get(client, "name", {"If-None-Match": first.headers["etag"]})

    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])
    assert "content-length" not in again.headers
    assert again.headers["cache-control"] == "max-age=30, public"
    assert (other.status_code, other.json()) == (200, {"data": {"book": {"name": "Emma"}}})


@pytest.mark.parametrize(
    ("selection", "headers"),
    [
        pytest.param("desk { name }", {}, id="no-hint"),
        pytest.param("readers(first: -1) { totalCount }", {}, id="error-in-a-field"),
        pytest.param("nonsense", {}, id="refused"),
        pytest.param("title", {"Tablegraph-Cost": "1"}, id="with-its-cost"),
        pytest.param("title", {"Accept": "image/png"}, id="not-acceptable"),
    ],
)
async def test_anything_else_by_get_is_not_to_be_kept(
    client: httpx.AsyncClient, selection: str, headers: dict[str, str]
) -> None:
    answer = await get(client, selection, headers)

    assert answer.headers["cache-control"] == "no-store"
    assert "etag" not in answer.headers


async def test_an_answer_by_post_says_nothing_of_caches(client: httpx.AsyncClient) -> None:
    answer = await client.post("/graphql", json={"query": '{ book(name: "Emma") { title } }'})

    assert not {"cache-control", "etag"} & set(answer.headers)


async def test_events_and_parts_are_never_kept(client: httpx.AsyncClient) -> None:
    for accept in ("text/event-stream", "multipart/mixed"):
        answer = await get(client, "title", {"Accept": accept})

        assert answer.headers["cache-control"].startswith("no-cache")
        assert "etag" not in answer.headers


async def test_what_the_readme_shows_is_what_comes(serve: Serve) -> None:
    (model,) = (block for block in blocks("graphql") if "@cacheControl" in block)
    (shown,) = re.findall(r"```\n(Cache-Control: .*?)```", README.read_text(), re.DOTALL)
    book = {"pk": {"S": "BOOK_1"}, "sk": {"S": "BOOK_1"}, "title": {"S": "Emma"}}
    served = await serve(model, [book])

    async with running(served.api) as server, httpx.AsyncClient() as client:
        answers = [
            await client.get(server.url, params={"query": f'{{ book(isbn: "1") {{ title {more} }} }}'})
            for more in ("", "readers", "note")
        ]

    told = answers[0].headers
    assert [line for line in shown.splitlines() if told[line.split(":")[0]] != line.split(": ")[1]] == []
    assert [answer.headers["cache-control"] for answer in answers[1:]] == ["max-age=60, public", "max-age=240, private"]


def headers_of(request: Request, cache: CachePolicy, **sent: str) -> dict[bytes, bytes]:
    head = Head("GET", {name.encode(): value.encode() for name, value in sent.items()})
    body: dict[str, Any] = {"data": {}}
    answer = Answer(200, b'{"data":{}}', headers_for("application/json"))
    return dict(cached(answer, Response(body, "executed", cache=cache), request, head).headers)


def test_what_is_told_to_someone_is_kept_by_them_alone() -> None:
    stranger, known = Request("{ a }"), Request("{ a }", identity=Identity("ann"))

    assert headers_of(stranger, CachePolicy(5, False))[b"cache-control"] == b"max-age=5, public"
    assert headers_of(stranger, CachePolicy(5, True))[b"cache-control"] == b"max-age=5, private"
    assert headers_of(known, CachePolicy(5, False))[b"cache-control"] == b"max-age=5, private"
