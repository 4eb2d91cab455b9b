"""Large values on the engine: written before they are pointed to, read only when selected, swept when nobody does."""

from __future__ import annotations

import asyncio
import base64
import gzip
import os
import random
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph.blobs import FolderStore, StoredObject
from graph.loaders import Limits
from graph.sweep import delete, orphans
from server.sweep import age, sweep
from tests.conftest import Serve, Served

MODEL = """extend schema @table(name: "documents", partitionKey: "pk", sortKey: "sk", attributeCase: PASCAL)
  @index(name: "byShelf", partitionKey: "Shelf", sortKey: "sk")
type Document @node(partition: "DOC#{number}", sort: "doc") {
  number: ID!
  title: String
  shelf: String
  body: String @blob(gzip: true)
  scan: Base64 @blob(s3: "scans", over: 100)
  data: JSON @blob(gzip: true, s3: "scans", over: 100)
  pages: [Page!] @blob(s3: "scans", over: 100)
  version: Int @version
  notes: [Note!]! @relationship
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

    def list(self, bucket: str, prefix: str) -> AsyncIterator[StoredObject]:
        self.calls.append(f"list {bucket} {prefix}")
        return super().list(bucket, prefix)

    @property
    def files(self) -> list[Path]:
        """The objects, oldest first."""
        return sorted((path for path in self.folder.rglob("*") if path.is_file()), key=lambda path: path.stat().st_mtime_ns)


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
    await created(served, data={"a": "x" * 10_000}, body="y" * 10_000, pages=[{"number": n, "text": "z" * 99} for n in (1, 2)])

    found = await item(served)
    assert set(found["Data"]) == set(found["Body"]) == {"B"}
    assert len(store.files) == 1
    assert set(found["Pages"]) == {"M"}
    document = await read(served)
    assert document["data"] == {"a": "x" * 10_000}
    assert document["body"] == "y" * 10_000
    assert document["pages"] == [{"number": 1, "text": "z" * 99}, {"number": 2, "text": "z" * 99}]


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
    query = """mutation { createNote(input: { document: { number: "1" }, to: { create: { number: "2" } }, long: "%s" }) {
      note { long } } }""" % ("n" * 50)

    await served.data(query)

    operation = served.graph.operation()
    (edge,) = await operation.items([(served.table, (("pk", "DOC#1"), ("sk", "NOTE#DOC#2")))])
    assert edge is not None
    assert "Title" in edge
    assert not {"Scan", "Body", "Data", "Pages"} & edge.keys()
    found = await served.data('{ document(number: "1") { notes { edges { long node { number } } } } }')
    assert found["document"]["notes"]["edges"] == [{"long": "n" * 50, "node": {"number": "2"}}]


async def test_a_mutation_that_begins_again_writes_its_object_once(served: Served, store: Watched) -> None:
    await created(served, version_is_kept := None) if False else await created(served, title="0")
    set_ = {"set": {"scan": SCAN}}

    # Both rest on the version that they have read: one of them begins again.
    await asyncio.gather(
        served.api.execute(_request(UPDATE, set_)),
        served.api.execute(_request(UPDATE, {"set": {"scan": OTHER}})),
        served.api.execute(_request(UPDATE, {"set": {"title": "1"}})),
    )

    assert store.calls.count("put") == 2
    assert (await read(served))["version"] == 4


def _request(query: str, variables: Any) -> Any:
    from resolvers.operation import Request

    return Request(query, variables)
