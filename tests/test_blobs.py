"""Large values on the engine: written before they are pointed to, read only when selected, swept when nobody does."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import random
import re
import time
from argparse import ArgumentTypeError
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph.blobs import FolderStore, StoredObject
from graph.sweep import delete, orphans
from resolvers.operation import Request
from server.cli import main
from server.sweep import age, sweep
from tests.conftest import Serve, Served, make_table

MODEL = """extend schema @table(name: "documents", partitionKey: "pk", sortKey: "sk", attributeCase: PASCAL)
  @index(name: "byShelf", partitionKey: "Shelf", sortKey: "sk")
  @index(name: "inverse", partitionKey: "sk", sortKey: "pk")
type Document @node(partition: "DOC#{number}", sort: "doc") {
  number: ID!
  title: String
  shelf: String
  body: String @blob(gzip: true)
  scan: Base64 @blob(s3: "scans", over: 100)
  data: JSON @blob(gzip: true, s3: "scans", over: 100)
  pages: [Page!] @blob(s3: "scans", over: 100)
  version: Int @version
  notes: [Document!]! @relationship(from: "document")
}
type Page { number: Int!  text: String }
type Note @edge(partition: "{document.partition}", sort: "NOTE#{to}", copy: "document") {
  document: Document!
  to: Document!
  long: String @blob(s3: "scans", over: 10)
}
type Query {
  shelved(shelf: String!): [Document!]! @find
  documents: [Document!]! @find(scan: true)
}
"""
SCAN = base64.b64encode(random.Random(1).randbytes(500)).decode()
OTHER = base64.b64encode(random.Random(2).randbytes(500)).decode()
CREATE = "mutation($input: CreateDocumentInput!) { createDocument(input: $input) { document { number scan } } }"
UPDATE = """mutation($set: UpdateDocumentInput!) {
  updateDocument(key: { number: "1" }, set: $set) { document { number scan } }
}"""
READ = '{ document(number: "1") { number title body scan data pages { number text } version } }'


@dataclass
class Watched(FolderStore):
    """A folder that notes what is done to it."""

    folder: Path
    calls: list[str] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    def __post_init__(self) -> None:
        super().__init__(self.folder)

    async def put(self, bucket: str, key: str, content: bytes) -> None:
        await super().put(bucket, key, content)
        self.calls.append("put")

    async def get(self, bucket: str, key: str, most_bytes: int) -> bytes | None:
        self.calls.append("get")
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1
        return await super().get(bucket, key, most_bytes)

    @property
    def files(self) -> list[Path]:
        """The objects, oldest first."""
        return sorted(
            (path for path in self.folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime_ns
        )

    def list(self, bucket: str, prefix: str) -> AsyncIterator[StoredObject]:
        self.calls.append(f"list {bucket} {prefix}")
        return super().list(bucket, prefix)


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "blobs")


@pytest.fixture
async def served(serve: Serve, store: Watched) -> Served:
    served = await serve(MODEL)
    served.graph.blobs = store
    return served


async def created(served: Served, **values: Any) -> Any:
    found = await served.data(CREATE, {"input": {"number": "1", **values}})
    return found["createDocument"]["document"]


async def item(served: Served, number: str = "1") -> Any:
    """The item as it lies in the table."""
    operation = served.graph.operation()
    (found,) = await operation.items([(served.table, (("pk", f"DOC#{number}"), ("sk", "doc")))])
    return found


async def read(served: Served) -> Any:
    return (await served.data(READ))["document"]


# --- writing ------------------------------------------------------------------------------------------------------


async def test_a_large_value_is_an_object_and_the_item_points_to_it(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)

    (path,) = store.files
    assert path.read_bytes() == base64.b64decode(SCAN)
    key = path.relative_to(store.folder / "scans").as_posix()
    assert re.fullmatch(r"Document/[0-9a-f]{16}/scan/[0-9a-f-]{36}", key)
    pointer = (await item(served))["Scan"]["M"]
    assert pointer["tablegraph-blob"] == {"S": key}
    assert pointer["bytes"] == {"N": "500"}
    assert (await read(served))["scan"] == SCAN


async def test_what_was_just_written_is_not_read(served: Served, store: Watched) -> None:
    body = await served(CREATE, {"input": {"number": "1", "scan": SCAN}}, cost=True)

    assert body["data"]["createDocument"]["document"]["scan"] == SCAN
    assert store.calls == ["put"]
    assert body["extensions"]["cost"]["blobs"] == {"read": 0, "written": 1}


async def test_small_values_stay_in_the_item(served: Served, store: Watched) -> None:
    await created(served, scan="aGk=", body="short", data={"a": 1}, pages=[{"number": 1}])

    assert store.calls == []
    found = await item(served)
    assert found["Scan"] == {"B": "aGk="}
    assert found["Body"] == {"S": "short"}
    assert found["Data"] == {"M": {"a": {"N": "1"}}}
    assert found["Pages"] == {"L": [{"M": {"Number": {"N": "1"}}}]}
    assert "blobs" not in (await served(READ, cost=True))["extensions"]["cost"]


async def test_compression_comes_before_the_question_of_size(served: Served, store: Watched) -> None:
    pages = [{"number": number, "text": "z" * 99} for number in (1, 2)]

    await created(served, data={"a": "x" * 10_000}, body="y" * 10_000, pages=pages)

    found = await item(served)
    assert set(found["Data"]) == set(found["Body"]) == {"B"}
    assert len(store.files) == 1
    assert set(found["Pages"]) == {"M"}
    document = await read(served)
    assert document["data"] == {"a": "x" * 10_000}
    assert document["body"] == "y" * 10_000
    assert document["pages"] == pages


async def test_an_update_writes_a_new_object_and_leaves_the_old_one(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)

    await served.data(UPDATE, {"set": {"scan": OTHER}})

    assert len(store.files) == 2
    assert (await read(served))["scan"] == OTHER


async def test_an_update_of_another_field_touches_no_object(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN, body="b" * 999)
    before = await item(served)

    await served.data(UPDATE.replace(" scan }", " title }"), {"set": {"title": "new", "shelf": "s"}})

    assert store.calls == ["put"]
    after = await item(served)
    assert (after["Scan"], after["Body"]) == (before["Scan"], before["Body"])


async def test_a_value_is_taken_away(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)

    await served.data(UPDATE, {"set": {"scan": None}})

    assert "Scan" not in await item(served)
    assert (await read(served))["scan"] is None


async def test_an_upsert_writes_one_object_for_each_change(served: Served, store: Watched) -> None:
    upsert = CREATE.replace("createDocument", "upsertDocument")

    await served.data(upsert, {"input": {"number": "1", "scan": SCAN}})
    await served.data(upsert, {"input": {"number": "1", "scan": OTHER}})

    assert store.calls == ["put", "put"]
    assert (await read(served))["scan"] == OTHER


async def test_a_deleted_item_is_answered_with_its_value(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)

    found = await served.data('mutation { deleteDocument(key: { number: "1" }) { document { scan } } }')

    assert found["deleteDocument"]["document"]["scan"] == SCAN
    assert len(store.files) == 1


async def test_an_edge_has_large_values_and_copies_none(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN, title="t")
    note = {"document": {"number": "1"}, "to": {"create": {"number": "2"}}, "long": "n" * 50}

    await served.data(
        "mutation($input: CreateNoteInput!) { createNote(input: $input) { note { long } } }", {"input": note}
    )

    operation = served.graph.operation()
    (edge,) = await operation.items([(served.table, (("pk", "DOC#1"), ("sk", "NOTE#DOC#2")))])
    assert edge is not None
    assert "Title" in edge
    assert not {"Scan", "Body", "Data", "Pages"} & edge.keys()
    found = await served.data('{ document(number: "1") { notes { edges { long node { number } } } } }')
    assert found["document"]["notes"]["edges"] == [{"long": "n" * 50, "node": {"number": "2"}}]
    found = await served.data('{ note(document: "1", to: "2") { document { title scan } } }')
    assert found["note"]["document"] == {"title": "t", "scan": SCAN}


async def test_a_copy_from_before_is_not_believed(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)
    edge = {"pk": {"S": "DOC#1"}, "sk": {"S": "NOTE#DOC#2"}, "Scan": {"B": OTHER}, "Title": {"S": "t"}}
    await served.put([edge])

    found = await served.data('{ note(document: "1", to: "2") { document { title scan } } }')

    assert found["note"]["document"]["scan"] == SCAN


async def test_a_mutation_that_begins_again_writes_its_object_once(served: Served, store: Watched) -> None:
    await created(served)

    # A change of the shelf rests on what was read: of several at once all but one begin again.
    bodies = await asyncio.gather(
        *(
            served.api.execute(Request(UPDATE, {"set": {"shelf": str(number), "scan": scan}}, cost=True))
            for number, scan in enumerate((SCAN, OTHER, SCAN))
        )
    )

    costs = [response.body["extensions"]["cost"] for response in bodies]
    assert sum(cost["requests"]["TransactWriteItems"] for cost in costs) > 3
    assert [cost["blobs"] for cost in costs] == [{"read": 0, "written": 1}] * 3
    assert store.calls == ["put"] * 3
    assert (await read(served))["version"] == 4


async def test_values_of_one_transaction_are_written_before_it(served: Served, store: Watched) -> None:
    query = """mutation @transaction {
      a: createDocument(input: { number: "1", scan: "%s" }) { document { scan } }
      b: createDocument(input: { number: "2", scan: "%s" }) { document { scan } }
    }"""

    data = await served.data(query % (SCAN, OTHER))

    assert [data[name]["document"]["scan"] for name in "ab"] == [SCAN, OTHER]
    assert store.calls == ["put", "put"]


# --- reading ------------------------------------------------------------------------------------------------------


async def test_an_object_is_read_only_when_its_field_is_selected(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN, title="t")
    store.calls.clear()

    assert await served.data('{ document(number: "1") { title body data } }')
    assert store.calls == []

    body = await served(
        '{ a: document(number: "1") { scan } b: document(number: "1") { scan again: scan } }', cost=True
    )
    assert body["data"]["b"] == {"scan": SCAN, "again": SCAN}
    assert store.calls == ["get"]
    assert body["extensions"]["cost"]["blobs"] == {"read": 1, "written": 0}


async def test_the_objects_of_a_page_are_read_side_by_side_but_not_all_at_once(served: Served, store: Watched) -> None:
    values = [base64.b64encode(random.Random(n).randbytes(200)).decode() for n in range(20)]
    for number, scan in enumerate(values):
        await served.data(CREATE, {"input": {"number": f"{number:02}", "shelf": "s", "scan": scan}})
    store.calls.clear()

    data = await served.data('{ shelved(shelf: "s") { nodes { number scan } } }')

    assert sorted((node["number"], node["scan"]) for node in data["shelved"]["nodes"]) == [
        (f"{number:02}", scan) for number, scan in enumerate(values)
    ]
    assert store.calls == ["get"] * 20
    assert store.most_at_once == 8


async def test_a_table_from_before_goes_on_as_it_is(served: Served, store: Watched) -> None:
    old: dict[str, Any] = {
        "Body": {"S": "b" * 999},
        "Scan": {"B": SCAN},
        "Data": {"L": [{"N": "1"}]},
        "Pages": {"L": []},
    }
    await served.put([{"pk": {"S": "DOC#1"}, "sk": {"S": "doc"}, **old}])

    found = await read(served)

    assert (found["body"], found["scan"], found["data"], found["pages"]) == ("b" * 999, SCAN, [1], [])
    await served.data(UPDATE, {"set": {"shelf": "s"}})
    assert {name: (await item(served))[name] for name in old} == old


@pytest.mark.parametrize(
    ("damage", "code", "text"),
    [
        pytest.param(lambda path: path.unlink(), "BLOB_MISSING", "expected it there, and it is gone", id="gone"),
        pytest.param(lambda path: path.write_bytes(b"x" * 500), "BLOB_DAMAGED", "got others", id="other-bytes"),
        pytest.param(lambda path: path.write_bytes(b"x" * 501), "BLOB_DAMAGED", "expected 500 bytes", id="too-many"),
        pytest.param(lambda path: path.write_bytes(b""), "BLOB_DAMAGED", "expected 500 bytes", id="none"),
    ],
)
async def test_an_object_that_is_not_what_was_written_is_an_error_of_its_field(
    served: Served, store: Watched, damage: Any, code: str, text: str
) -> None:
    await created(served, scan=SCAN, title="t")
    damage(store.files[0])

    body = await served('{ document(number: "1") { title scan } }')

    assert body["data"] == {"document": {"title": "t", "scan": None}}
    (error,) = body["errors"]
    assert error["path"] == ["document", "scan"]
    assert error["extensions"]["code"] == code
    assert error["message"].startswith("Document.scan is kept in the object 'Document/")
    assert text in error["message"]


async def test_a_bomb_is_refused_and_can_be_deleted(served: Served) -> None:
    bomb = base64.b64encode(gzip.compress(bytes(65_000_000))).decode()
    await served.put([{"pk": {"S": "DOC#1"}, "sk": {"S": "doc"}, "Title": {"S": "t"}, "Body": {"B": bomb}}])

    assert await served.data('{ document(number: "1") { title } }') == {"document": {"title": "t"}}
    error = await served.error('{ document(number: "1") { title body } }')

    assert error["extensions"]["code"] == "BAD_ITEM_VALUE"
    assert "expected gzip of at most 64,000,000 bytes, got type B" in error["message"]
    await served.data(UPDATE, {"set": {"shelf": "s"}})
    assert await served.data('mutation { deleteDocument(key: { number: "1" }) { document { title } } }')


async def test_a_pointer_that_leads_elsewhere_is_refused(served: Served, store: Watched) -> None:
    (store.folder.parent / "secret").write_bytes(b"secret")
    pointer = {"tablegraph-blob": {"S": "../../secret"}, "bytes": {"N": "6"}, "sha256": {"S": "0"}}
    await served.put([{"pk": {"S": "DOC#1"}, "sk": {"S": "doc"}, "Scan": {"M": pointer}}])

    error = await served.error('{ document(number: "1") { scan } }')

    assert error["extensions"]["code"] == "BAD_ITEM_VALUE"
    assert store.calls == []


async def test_without_a_store_only_large_values_fail(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN, title="t")
    served.graph.blobs = None

    assert await served.data('{ document(number: "1") { title } }')
    assert (await served.error('{ document(number: "1") { scan } }'))["extensions"]["code"] == "BLOB_UNAVAILABLE"
    error = await served.error(UPDATE, {"set": {"scan": OTHER}})
    assert error["extensions"]["code"] == "BLOB_UNAVAILABLE"
    assert (await item(served))["Scan"]["M"]["bytes"] == {"N": "500"}


# --- the sweep ----------------------------------------------------------------------------------------------------


async def found(served: Served, older: timedelta = timedelta()) -> list[StoredObject]:
    return await orphans(served.graph, datetime.now(UTC) - older + timedelta(seconds=1))


async def test_the_sweep_deletes_what_nothing_points_to(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)
    await served.data(UPDATE, {"set": {"scan": OTHER}})
    await served.data(CREATE, {"input": {"number": "2", "scan": SCAN}})
    await served.data('mutation { deleteDocument(key: { number: "2" }) { deletedId } }')
    kept = (await item(served))["Scan"]["M"]["tablegraph-blob"]["S"]

    old = await found(served)
    await delete(served.graph, old)

    assert len(old) == 2
    assert [path.relative_to(store.folder / "scans").as_posix() for path in store.files] == [kept]
    assert (await read(served))["scan"] == OTHER
    assert await found(served) == []


async def test_what_a_kill_between_object_and_item_has_left_is_swept(served: Served, store: Watched) -> None:
    await created(served)

    # The object is written, and then the transaction is refused, as if the process had ended in between.
    error = await served.error(CREATE, {"input": {"number": "1", "scan": SCAN}})

    assert error["extensions"]["code"] == "ALREADY_EXISTS"
    assert store.calls == ["put"]
    assert (await read(served))["scan"] is None
    assert len(await found(served)) == 1


async def test_a_file_that_was_never_finished_is_swept(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)
    (store.files[0].parent / "unfinished-1").write_bytes(b"half")

    old = await found(served)

    assert [Path(entry.key).name for entry in old] == ["unfinished-1"]
    await delete(served.graph, old)
    assert len(store.files) == 1


async def test_what_is_young_is_left_alone_without_a_scan(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)
    await served.data(UPDATE, {"set": {"scan": OTHER}})
    os.utime(store.files[0], (time.time() - 7200,) * 2)
    served.sent.clear()

    assert await found(served, timedelta(hours=3)) == []
    assert served.sent == []
    assert len(await found(served, timedelta(hours=1))) == 1
    assert served.operations == ["Scan"] * 8


async def test_objects_of_other_types_are_not_even_listed(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)
    for name in ("DocumentOld", "Else"):
        await store.put("scans", f"{name}/00/scan/{'0' * 36}", b"x")
    store.calls.clear()

    assert await found(served) == []
    assert store.calls == ["list scans Document/", "list scans Note/"]


async def test_what_an_item_of_no_type_points_to_is_spared(served: Served, store: Watched) -> None:
    await created(served, scan=SCAN)
    kept = await item(served)
    await served.put([{"pk": {"S": "archive"}, "sk": {"S": "x"}, "versions": {"L": [{"M": {"Scan": kept["Scan"]}}]}}])
    await served.data('mutation { deleteDocument(key: { number: "1" }) { deletedId } }')

    assert await found(served) == []


async def test_the_command_says_what_it_deletes(
    served: Served, store: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    await created(served, scan=SCAN)
    await served.data(UPDATE, {"set": {"scan": None}})
    os.utime(store.files[0], (time.time() - 7200,) * 2)

    await sweep(served.graph, timedelta(hours=1), dry_run=True)
    assert len(store.files) == 1
    await sweep(served.graph, timedelta(hours=1), dry_run=False)

    assert store.files == []
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"scans/Document/\w+/scan/[\w-]+  500 bytes  \d{4}-\d\d-\d\d \d\d:\d\d", lines[0])
    assert lines[1] == "1 objects with 500 bytes would be deleted"
    assert lines[3] == "1 objects with 500 bytes deleted"


async def test_what_an_earlier_version_points_to_is_read_and_spared(serve: Serve, store: Watched) -> None:
    served = await serve(MODEL.replace('sort: "doc") {', 'sort: "v0_doc") @history {'))
    served.graph.blobs = store
    await created(served, scan=SCAN)
    await served.data(UPDATE, {"set": {"scan": OTHER}})
    await served.data(UPDATE, {"set": {"title": "t"}})

    data = await served.data('{ document(number: "1") { scan versions { nodes { version scan } } } }')

    versions = {node["version"]: node["scan"] for node in data["document"]["versions"]["nodes"]}
    assert versions == {1: SCAN, 2: OTHER, 3: OTHER}
    assert await found(served) == []


async def test_an_item_that_moves_takes_its_pointers_along(serve: Serve, store: Watched) -> None:
    moving = MODEL.replace('sort: "doc")', 'sort: "doc#{shelf}", ref: "DOC#{number}")')
    served = await serve(moving.replace("shelf: String\n", "shelf: String!\n"))
    served.graph.blobs = store
    await created(served, scan=SCAN, shelf="a", body="b" * 999)

    await served.data(UPDATE, {"set": {"shelf": "b"}})

    data = await served.data('{ document(number: "1", shelf: "b") { scan body } }')
    assert data["document"] == {"scan": SCAN, "body": "b" * 999}
    assert store.calls.count("put") == 1
    assert await found(served) == []


@pytest.mark.parametrize(("text", "hours"), [("1d", 24), ("12h", 12), ("90m", 1.5), ("60m", 1)])
def test_an_age_is_read(text: str, hours: float) -> None:
    assert age(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["59m", "0d", "1", "d", "-1d", "1.5h", "1w", "9999999d"])
def test_an_age_that_is_none_or_too_small_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"like 1d, 12h or 90m, got '{text}'"):
        age(text)


def test_the_command_line_sweeps_a_folder(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schema, key = tmp_path / "schema.graphql", f"scans/Document/0a/scan/{'0' * 36}"
    schema.write_text(MODEL)
    old = tmp_path / "blobs" / key
    old.parent.mkdir(parents=True)
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
    table = make_table(engine, "documents-to-sweep", MODEL, [])
    options = ["--schema", str(schema), "--table", table, "--endpoint-url", engine, "--blobs", str(tmp_path / "blobs")]

    assert main(["sweep", *options, "--older-than", "2h"]) == 0

    assert not old.exists()
    assert capsys.readouterr().out == f"{key}  1 bytes  1970-01-01 00:00\n1 objects with 1 bytes deleted\n"
    with pytest.raises(SystemExit):
        main(["sweep", *options, "--older-than", "1s"])
    assert "expected an age of an hour or more" in capsys.readouterr().err
