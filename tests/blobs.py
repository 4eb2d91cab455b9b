"""Documents with large values, and a folder that notes what is done to it."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graph.blobs import FolderStore, StoredObject
from tests.conftest import Served

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
