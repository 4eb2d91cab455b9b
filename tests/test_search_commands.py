"""The commands around the search index, and who builds it for a newcomer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from graph.client import Client
from graph.loaders import Graph
from graph.search.sqlite import SqliteIndex
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.cli import main
from server.demo import prepare
from tests.conftest import ROOT, example_items, make_table, way_to

EXAMPLE = ROOT / "examples/b2b"
B2B = (EXAMPLE / "schema.graphql").read_text()


@pytest.fixture(scope="module")
def table(engine: str) -> str:
    """A table that holds the example's rows."""
    return make_table(engine, "b2b-searched-by-commands", B2B, example_items("b2b"))


@pytest.fixture
def options(engine: str, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What every command is told."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    where = ["--endpoint-url", engine, "--table", table, "--search", str(tmp_path / "deep/search.db")]
    return ["--schema", str(EXAMPLE / "schema.graphql"), *where]


def test_an_index_is_missing_then_built_and_then_there(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    stores = sum(item["type"]["S"].startswith("store.") for item in example_items("b2b"))

    assert main(["search", "status", *options]) == 1
    assert "there is no search index of `Store` yet: `tablegraph search rebuild` builds it" in capsys.readouterr().out
    assert main(["search", "rebuild", "--segments", "3", *options]) == 0
    told = capsys.readouterr()
    assert told.out == f"Store: {stores} documents\n"
    assert "read units" in told.err
    assert main(["search", "status", *options]) == 0
    assert capsys.readouterr().out == f"Store: {stores} documents\n"


def test_a_model_without_search_has_no_index(
    engine: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    make_table(engine, "bananas-without-search", (ROOT / "schema.graphql").read_text(), [])

    code = main(
        [
            "search",
            "rebuild",
            *options[2:],
            "--schema",
            str(ROOT / "schema.graphql"),
            "--table",
            "bananas-without-search",
        ]
    )

    assert code == 1
    assert "no type of the model is searched: expected @search" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["http://localhost:9200", "opensearch+ftp://x", "opensearch+http://", "redis://x"])
def test_where_an_index_lies_is_a_file_or_an_opensearch(
    options: list[str], capsys: pytest.CaptureFixture[str], text: str
) -> None:
    assert main(["search", "status", *options, "--search", text]) == 2
    assert "expected a file, or a URL like opensearch+https://localhost:9200/prefix" in capsys.readouterr().err


def test_the_demo_has_an_index_that_goes_with_its_data(engine: str, tmp_path: Path) -> None:
    transport = way_to(engine)
    model = compile_model(B2B, table="b2b-demonstrated")
    data = [EXAMPLE / "seed.jsonl"]

    def demonstrate(name: str) -> None:
        prepare(Graph(model, Client(transport), search=SqliteIndex(tmp_path / name)), data, tmp_path / "loaded")

    async def search(name: str) -> object:
        graph = Graph(model, Client(transport), search=SqliteIndex(tmp_path / name))
        response = await Api(graph).execute(Request('{ searchStores(text: "melborne") { nodes { storeName } } }'))
        return response.body["data"]["searchStores"]["nodes"]

    demonstrate("a.search")
    first = asyncio.run(search("a.search"))
    # The data is there already, and the index is not: somebody has deleted it.
    demonstrate("b.search")

    assert first == asyncio.run(search("b.search")) == [{"storeName": "Melbourne"}]
    transport.close()


def test_a_search_is_explained_without_an_index(capsys: pytest.CaptureFixture[str]) -> None:
    query = '{ searchStores(text: "acme", first: 3) { totalCount nodes { storeName business { businessName } } } }'

    assert main(["explain", "--schema", str(EXAMPLE / "schema.graphql"), query]) == 0

    assert "BatchGetItem" in capsys.readouterr().out
