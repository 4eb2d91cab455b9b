"""`tablegraph infer --workbench`: models of NoSQL Workbench, in every form that its files have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resolvers.sdl import compile_model
from server.cli import main
from server.formats.workbench import read_workbench


def key(partition: str, sort: str | None = None, kind: str = "S") -> dict[str, Any]:
    made = {"PartitionKey": {"AttributeName": partition, "AttributeType": kind}}
    return made | ({"SortKey": {"AttributeName": sort, "AttributeType": "S"}} if sort else {})


def item(**attributes: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in attributes.items()}


LIBRARY = {
    "TableName": "Library",
    "KeyAttributes": key("PK", "SK"),
    "NonKeyAttributes": [{"AttributeName": "Title", "AttributeType": "S"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "Inverse",
            "KeyAttributes": key("SK", "PK"),
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["Title"]},
        }
    ],
    "TableData": [
        *(item(PK=f"BOOK#{number}", SK=f"BOOK#{number}", Title=f"T{number}") for number in range(4)),
        *(item(PK=f"READER#{name}", SK=f"READER#{name}", Name=name) for name in ("ann", "joe", "eve")),
        *(
            item(PK=f"READER#{name}", SK=f"BOOK#{number}", Since="2024-01-02")
            for number, name in enumerate(["ann", "joe", "ann"])
        ),
    ],
    "DataAccess": {"MySql": {}},
}
LOANS = {
    "TableName": "prod-loans",
    "KeyAttributes": key("loan", kind="N"),
    "TableData": [{"loan": {"N": str(number)}, "bookId": {"S": str(number)}} for number in range(3)],
}
FACETS = {
    "TableName": "Shop",
    "KeyAttributes": key("PK", "SK"),
    "TableFacets": [
        {
            "FacetName": "Customers",
            "KeyAttributeAlias": {"PartitionKeyAlias": "PK", "SortKeyAlias": "SK"},
            "TableData": [item(PK=f"c#{number}", SK=f"c#{number}", Name="n") for number in range(3)],
            "NonKeyAttributes": ["Name"],
        },
        {"FacetName": "Orders", "TableData": [item(PK="c#1", SK=f"o#{number}") for number in range(3)]},
    ],
}
EMPTY = {
    "TableName": "Songs",
    "KeyAttributes": key("Id", "Metadata"),
    "NonKeyAttributes": [
        {"AttributeName": "Title", "AttributeType": "S"},
        {"AttributeName": "Downloads", "AttributeType": "N"},
    ],
    "TableFacets": [{"FacetName": "Details", "NonKeyAttributes": ["Title"]}],
}


def inferred(folder: Path, *tables: dict[str, Any]) -> str:
    path, out = folder / "model.json", folder / "schema.graphql"
    path.write_text(json.dumps({"ModelName": "ours", "ModelMetadata": {"Version": "3.0"}, "DataModel": tables}))
    assert main(["infer", "--workbench", str(path), "--out", str(out)]) == 0
    return out.read_text()


def test_tables_with_their_sample_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = inferred(tmp_path, LIBRARY, LOANS)
    told = capsys.readouterr().out

    model = compile_model(text)
    assert "13 of 13 items fit" in told
    assert "tablegraph table apply --schema" in told
    assert list(model.tables) == ["Library", "prod-loans"]
    assert 'projection: ["Title"]' in text
    assert '@edge(partition: "{reader}", sort: "{book}")' in text
    assert "since: Date! " in text or "since: Date!\n" in text
    assert {name for _, name in model.relationships} == {"books", "readers"}
    assert 'type Loan\n  @node(table: "prod-loans", partition: "{loan}") {\n  loan: Int!' in text
    assert 'book: Book! @attribute(name: "bookId", ref: "{number}")' in text or "book: Book" in text


def test_data_of_facets_names_the_types(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = inferred(tmp_path, FACETS)

    assert "6 of 6 items fit" in capsys.readouterr().out
    assert 'type Customer\n  @node(key: "c#{number}")' in text
    assert 'type Order\n  @node(partition: "{customer}", sort: "o#{number}")' in text
    assert "orders: [Order!]! @relationship" in text


def test_without_data_there_is_what_the_file_declares(tmp_path: Path) -> None:
    text = inferred(tmp_path, EMPTY)

    assert "# unsure: Songs has no items" in text
    assert 'title: String @attribute(name: "Title")' in text or "title: String" in text
    assert "downloads: Int" in text


def test_items_without_their_key_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    path.write_text(json.dumps({"DataModel": [{**LOANS, "TableData": [{"bookId": {"S": "1"}}, {"loan": {"N": "1"}}]}]}))

    (sample,) = read_workbench(path)

    assert sample.items == ({"loan": {"N": "1"}},)


@pytest.mark.parametrize(
    "content", ["", "[]", "7", "{}", '{"DataModel": []}', '{"DataModel": [{}]}', '{"DataModel": [{"TableName": "t"}]}']
)
def test_what_is_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str) -> None:
    path, out = tmp_path / "model.json", tmp_path / "schema.graphql"
    path.write_text(content)

    assert main(["infer", "--workbench", str(path), "--out", str(out)]) == 2

    assert str(path) in capsys.readouterr().err
    assert not out.exists()


def test_a_file_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", "--workbench", "nowhere.json", "--out", str(tmp_path / "s.graphql")]) == 2

    assert "nowhere.json" in capsys.readouterr().err
