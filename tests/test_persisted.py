"""Documents that clients name instead of sending them: by every transport, trusted or kept under their hash."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect

from graph.imagined import ImaginedTable
from graph.loaders import Graph
from resolvers import persisted
from resolvers.limits import DocumentLimits
from resolvers.operation import Request
from resolvers.persisted import PersistedDocuments, Persistence, bare, hash_of
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.api import api_of
from server.cli import main
from server.documents import read_trusted
from server.settings import Settings, SettingsError, load_settings
from server.view import Refusal, as_request
from tests.conftest import BANANAS, Served
from tests.counting import Running, running

MODEL = compile_model(BANANAS.read_text())
QUERY = 'query Find { container(number: "009998") { number } }'
OTHER = 'query Find { container(number: "009998") { operator } }'
FOUND = {"data": {"container": {"number": "009998"}}}
DELETING = 'mutation { deleteBox(key: { number: "none" }) { deletedId } }'
EVENTS = "event: next\ndata: {}\n\nevent: complete\ndata:\n\n"


def graph() -> Graph:
    return Graph(MODEL, ImaginedTable(MODEL, 1, 100))


def apollo(hash_: str) -> dict[str, Any]:
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": hash_}}}


def trusting(**texts: str) -> Persistence:
    return Persistence(texts, only_trusted=True)


async def code(api: Api, query: str = "", document_id: str | None = None) -> str | None:
    """Ask, and give the code of the error; None where there is none."""
    response = await api.execute(Request(query, document_id=document_id))
    errors = response.body.get("errors")
    return errors[0]["extensions"]["code"] if errors else None


# How a client names a document


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({"documentId": "abc"}, "abc", id="custom"),
        pytest.param({"documentId": "x-mine:abc"}, "x-mine:abc", id="another-prefix"),
        pytest.param({"documentId": f"sha256:{hash_of(QUERY)}"}, hash_of(QUERY), id="hash"),
        pytest.param(apollo(hash_of(QUERY)), hash_of(QUERY), id="apollo"),
        pytest.param(apollo(f"sha256:{hash_of(QUERY)}"), hash_of(QUERY), id="apollo-with-prefix"),
        pytest.param({**apollo("abc"), "documentId": "abc"}, "abc", id="twice-the-same"),
        pytest.param({"query": "{ a }", "documentId": ""}, None, id="empty-is-none"),
        pytest.param({"query": "{ a }", "extensions": {"persistedQuery": None}}, None, id="null-is-none"),
        pytest.param({"query": "{ a }", "extensions": {"other": 1}}, None, id="other-extensions"),
    ],
)
def test_a_document_is_named(parameters: dict[str, Any], expected: str | None) -> None:
    assert as_request(parameters, cost=False).document_id == expected


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"documentId": ""}, id="empty"),
        pytest.param({"documentId": 5}, id="no-string"),
        pytest.param({"documentId": "sha256:abc"}, id="short-hash"),
        pytest.param({"extensions": {"persistedQuery": "abc"}}, id="apollo-no-object"),
        pytest.param({"extensions": {"persistedQuery": {"version": 2, "sha256Hash": "a"}}}, id="apollo-version"),
        pytest.param({"extensions": {"persistedQuery": {"version": 1}}}, id="apollo-without-hash"),
        pytest.param({"extensions": {"persistedQuery": {"version": 1, "sha256Hash": 7}}}, id="apollo-hash-no-string"),
        pytest.param({**apollo("abc"), "documentId": "abd"}, id="twice-and-different"),
    ],
)
def test_what_names_no_document_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        as_request(parameters, cost=False)

    assert (refused.value.status, refused.value.code) == (400, "INVALID_REQUEST")


@pytest.fixture
async def server(bananas: Served) -> AsyncIterator[Running]:
    api = Api(bananas.graph, persistence=Persistence({"find": QUERY, "delete": DELETING}))
    async with running(api) as started:
        yield started


@pytest.mark.parametrize("named", [{"documentId": "find"}, {"documentId": f"sha256:{hash_of(QUERY)}"}, apollo("find")])
async def test_a_document_is_named_by_every_transport(server: Running, named: Mapping[str, Any]) -> None:
    parameters = {name: value if isinstance(value, str) else json.dumps(value) for name, value in named.items()}
    async with httpx.AsyncClient() as client:
        posted = await client.post(server.url, json=named)
        got = await client.get(server.url, params=parameters)
        events = await client.post(server.url, json=named, headers={"Accept": "text/event-stream"})
    async with connect(server.socket_url, subprotocols=["graphql-transport-ws"], proxy=None) as socket:  # type: ignore[list-item]
        await socket.send(json.dumps({"type": "connection_init"}))
        await socket.recv()
        await socket.send(json.dumps({"id": "a", "type": "subscribe", "payload": named}))
        message = json.loads(await socket.recv())

    assert (posted.json(), got.json(), message["payload"]) == (FOUND, FOUND, FOUND)
    assert events.text == EVENTS.replace("{}", json.dumps(FOUND, separators=(",", ":")))


async def test_a_mutation_is_not_named_by_get(server: Running) -> None:
    async with httpx.AsyncClient() as client:
        answer = await client.get(server.url, params={"documentId": "delete"})

    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_an_unknown_document_is_a_well_formed_error(server: Running) -> None:
    async with httpx.AsyncClient(headers={"Accept": "application/graphql-response+json"}) as client:
        answer = await client.get(server.url, params={"documentId": "nothing"})

    assert (answer.status_code, answer.headers["cache-control"]) == (400, "no-store")
    assert [error["extensions"]["code"] for error in answer.json()["errors"]] == ["PERSISTED_QUERY_NOT_FOUND"]


# Kept under the hash


async def test_a_document_is_known_once_it_was_sent_with_its_hash() -> None:
    api = Api(graph())

    assert await code(api, document_id=hash_of(QUERY)) == "PERSISTED_QUERY_NOT_FOUND"
    assert await code(api, QUERY, hash_of(QUERY)) is None
    assert await code(api, document_id=hash_of(QUERY)) is None


async def test_apollos_clients_are_told_in_their_words() -> None:
    hash_ = hash_of(QUERY)
    kept = await Api(graph()).execute(Request("", document_id=hash_))
    not_kept = await Api(graph(), persistence=Persistence(most_bytes=0)).execute(Request("", document_id=hash_))

    assert kept.body == {
        "errors": [{"message": "PersistedQueryNotFound", "extensions": {"code": "PERSISTED_QUERY_NOT_FOUND"}}]
    }
    assert not_kept.body == {
        "errors": [{"message": "PersistedQueryNotSupported", "extensions": {"code": "PERSISTED_QUERY_NOT_SUPPORTED"}}]
    }


async def test_a_document_of_another_hash_is_refused_and_not_kept() -> None:
    api = Api(graph())
    await code(api, QUERY, hash_of(QUERY))

    assert await code(api, OTHER, hash_of(QUERY)) == "DOCUMENT_ID_MISMATCH"
    assert await code(api, QUERY, hash_of(OTHER)) == "DOCUMENT_ID_MISMATCH"
    assert await code(api, document_id=hash_of(OTHER)) == "PERSISTED_QUERY_NOT_FOUND"


@pytest.mark.parametrize("query", ["{", "{ nothing }"])
async def test_a_document_that_is_refused_is_not_kept(query: str) -> None:
    api = Api(graph())
    await code(api, query, hash_of(query))

    assert await code(api, document_id=hash_of(query)) == "PERSISTED_QUERY_NOT_FOUND"


async def test_a_hash_is_written_in_lower_case() -> None:
    api = Api(graph())

    assert await code(api, QUERY, hash_of(QUERY).upper()) is None
    assert await code(api, document_id=hash_of(QUERY).upper()) == "PERSISTED_QUERY_NOT_FOUND"


async def test_a_document_is_not_kept_under_another_name() -> None:
    api = Api(graph())

    assert await code(api, QUERY, "mine") is None
    assert await code(api, document_id="mine") == "PERSISTED_QUERY_NOT_FOUND"


def text(documents: PersistedDocuments, document_id: str) -> object:
    return documents.text(Request("", document_id=document_id))


def test_those_that_were_not_asked_for_the_longest_make_room() -> None:
    documents = PersistedDocuments(Persistence(most_bytes=10))
    a, b, c = "aaaa", "bbbb", "cccc"
    for one in (a, b):
        documents.keep(hash_of(one), one)
    text(documents, hash_of(a))

    documents.keep(hash_of(c), c)

    assert (text(documents, hash_of(a)), text(documents, hash_of(c))) == (a, c)
    assert text(documents, hash_of(b)) != b


def test_the_kept_are_bounded_by_bytes_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(persisted, "DOCUMENTS_KEPT", 3)
    documents = PersistedDocuments(Persistence(most_bytes=100))
    texts = [f"{number:02}" for number in range(9)] + ["x" * 101, "ä" * 51]

    for one in texts:
        documents.keep(hash_of(one), one)

    assert [one for one in texts if text(documents, hash_of(one)) == one] == ["06", "07", "08"]


def test_a_kept_text_is_there_once() -> None:
    api = Api(graph())
    sent = "".join([QUERY, " "])
    first = api.documents.prepare(Request("".join([QUERY, " "])))

    api.documents.prepare(Request(sent, document_id=hash_of(sent)))

    assert not isinstance(first, list)
    assert first.document.loc is not None
    assert api.documents._persisted.text(Request("", document_id=hash_of(sent))) is first.document.loc.source.body


# Trusted documents


async def test_only_trusted_documents_are_taken_where_it_is_said() -> None:
    api = Api(graph(), persistence=trusting(find=QUERY))
    answers = [
        await code(api, document_id="find"),
        await code(api, document_id=hash_of(QUERY)),
        await code(api, QUERY),
        await code(api, QUERY, hash_of(QUERY)),
    ]
    refusals = [
        await code(api, OTHER),
        await code(api, OTHER, hash_of(OTHER)),
        await code(api, document_id=hash_of(OTHER)),
        await code(api, document_id="other"),
        await code(api, OTHER, "other"),
        await code(api, "{"),
    ]

    assert answers == [None] * 4
    assert refusals == ["DOCUMENT_NOT_TRUSTED"] * 6
    assert await code(api, OTHER, "find") == "DOCUMENT_ID_MISMATCH"


async def test_a_subscription_that_is_not_trusted_is_not_begun() -> None:
    api = Api(graph(), persistence=trusting(find=QUERY))

    opened = await api.open(Request("subscription { boxChanged { kind } }"))

    assert getattr(opened, "outcome", None) == "refused"


async def test_limits_of_documents_are_for_those_of_others() -> None:
    limits = DocumentLimits(depth=1, tokens=5)

    assert await code(Api(graph(), limits=limits), QUERY) == "LIMIT_EXCEEDED"
    assert await code(Api(graph(), limits=limits, persistence=Persistence({"find": QUERY})), QUERY) is None


# Files


def manifest(*operations: Any) -> str:
    return json.dumps({"format": "apollo-persisted-query-manifest", "version": 1, "operations": operations})


def test_a_folder_holds_documents_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/Find.graphql").write_text(f"{QUERY}\n")
    (tmp_path / "relay.json").write_text(json.dumps({"d41d8cd98f00b204e9800998ecf8427e": OTHER}))
    (tmp_path / "gql.json").write_text(json.dumps({f"sha256:{hash_of(OTHER)}": OTHER}))
    (tmp_path / "apollo.json").write_text(manifest({"id": "a", "name": "Find", "type": "query", "body": QUERY}))
    (tmp_path / "notes.txt").write_text("nothing")

    ids = {(document.id, document.text) for document in read_trusted(tmp_path)}

    assert ids == {
        ("Find", QUERY),
        (hash_of(f"{QUERY}\n"), QUERY),
        ("d41d8cd98f00b204e9800998ecf8427e", OTHER),
        (hash_of(OTHER), OTHER),
        ("a", QUERY),
    }


def test_no_documents_are_trusted_unless_told() -> None:
    assert read_trusted(None) == []


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({}, ["FOLDER: there is no document: expected *.graphql or *.gql, or a .json that"], id="none"),
        pytest.param(
            {"a.json": "{", "b.graphql": b"\xff"},
            ["FOLDER/a.json: expected JSON in UTF-8, got", "FOLDER/b.graphql: expected GraphQL in UTF-8, got"],
            id="not-readable",
        ),
        pytest.param({"a.json": "[]"}, ['FOLDER/a.json: expected an object like {"<id>": "<text>"}'], id="no-object"),
        pytest.param(
            {"a.json": '{"x": 5, "": "{ a }"}'},
            [f"FOLDER/a.json: expected an id and a text as document {number}" for number in (1, 2)],
            id="no-text",
        ),
        pytest.param(
            {"a.json": manifest().replace("1", "2"), "b.json": manifest(5, {"id": "x"})},
            ["FOLDER/a.json: expected the format apollo-persisted-query-manifest, version 1"]
            + [f"FOLDER/b.json: expected an id and a text as document {number}" for number in (1, 2)],
            id="manifest",
        ),
        pytest.param(
            {"a.json": json.dumps({"x": QUERY}), "b.json": json.dumps({"x": OTHER})},
            ["FOLDER/b.json: x: the id 'x' is that of another document in FOLDER/a.json: x"],
            id="one-id-twice",
        ),
        pytest.param(
            {
                "a.json": json.dumps({"x": "{ nothing }", "y": QUERY}),
                "b.graphql": "{",
                "c.graphql": "fragment F on Box { number }",
            },
            [
                "FOLDER/a.json: x: 1:3: Cannot query field 'nothing' on type 'Query'.",
                "FOLDER/b.graphql: 1:2: Syntax Error: Expected Name, found <EOF>.",
                "FOLDER/c.graphql: 1:1: Fragment 'F' is never used.",
            ],
            id="not-of-the-schema",
        ),
    ],
)
def test_every_mistake_is_told_at_once(files: Mapping[str, str | bytes], expected: list[str], tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    with pytest.raises(SettingsError) as refused:
        api_of(graph(), Settings(trusted_documents=tmp_path))

    heading, *lines = str(refused.value).replace(str(tmp_path), "FOLDER").splitlines()
    assert heading == f"--trusted-documents: {len(expected)} mistake{'s' if len(expected) > 1 else ''}:"
    assert [line.strip()[: len(start)] for line, start in zip(lines, expected, strict=True)] == expected


async def test_a_document_that_was_not_checked_is_when_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "Bad.graphql").write_text("{ nothing }")
    api = api_of(graph(), Settings(trusted_documents=tmp_path), checks_documents=False)

    assert await code(api, document_id="Bad") == "GRAPHQL_VALIDATION_FAILED"


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file or directory: expected a file or a folder"):
        read_trusted(tmp_path / "nothing.json")


def test_trusting_alone_needs_something_to_trust() -> None:
    with pytest.raises(SettingsError, match="TABLEGRAPH_TRUSTED_DOCUMENTS"):
        load_settings({"TABLEGRAPH_ONLY_TRUSTED": "true"})


@pytest.mark.parametrize(("query", "exit_code", "told"), [(QUERY, 0, ""), ("{ nothing }", 2, "a.json: x: 1:3: Cannot")])
def test_check_looks_at_them(
    query: str, exit_code: int, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"x": query}))

    assert main(["check", "--schema", str(BANANAS), "--trusted-documents", str(path)]) == exit_code
    assert told in capsys.readouterr().err


def test_a_hash_is_an_id_with_and_without_its_prefix() -> None:
    hash_ = hash_of(QUERY)

    assert [bare(one) for one in (hash_, f"sha256:{hash_}", "sha256:x", "x")] == [hash_, hash_, "sha256:x", "x"]
