"""The folder that DynamoDB's export to S3 makes: manifests, and data files of items, compressed.

Source: DynamoDB developer guide, "DynamoDB table export output format".
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import secrets
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from graph.errors import InputError
from server.formats import ITEMS
from server.formats.json_lines import read_json_lines

FOLDER = "AWSDynamoDB"
FILE_ITEMS = 100_000


@dataclass(frozen=True, slots=True)
class _DataFile:
    path: Path
    table: str
    items: int
    checksum: str
    start: int
    """The number of its first line, counted through all files."""


class DynamoExport:
    """One export, or several beside each other: one for each table."""

    kind = ITEMS

    def __init__(self, folder: Path) -> None:
        self._files = list(_data_files(folder))
        self.size_bytes = sum(file.path.stat().st_size for file in self._files)
        self._checked: set[Path] = set()

    def read(self) -> Iterator[tuple[int, Any]]:
        """Read every item, with its number among all lines: as `{"Item": …, "TableName": …}`, or Damaged.

        Raises: InputError when a file is not what the manifest says of it.
        """
        for file in self._files:
            if file.path not in self._checked:
                _refuse_changed(file)
            count = 0
            try:
                with gzip.open(file.path, "rb") as lines:
                    for number, content in read_json_lines(lines, file.start):
                        count += 1
                        if isinstance(content, dict) and "Item" in content:
                            content = {"Item": content["Item"], "TableName": file.table}
                        yield number, content
            except (OSError, EOFError) as error:
                raise InputError(f"{file.path}: expected a file compressed by gzip: {error}") from None
            if count != file.items:
                raise InputError(f"{file.path} holds {count} items: expected {file.items}, as the manifest says")
            self._checked.add(file.path)

    def where(self, number: int) -> str:
        """Say where a line stands."""
        file = next((file for file in reversed(self._files) if file.start <= number), None)
        return f"line {number}" if file is None else f"line {number - file.start + 1} of {file.path.name}"


def _data_files(folder: Path) -> Iterator[_DataFile]:
    summaries = sorted({*folder.glob("manifest-summary.json"), *folder.glob(f"{FOLDER}/*/manifest-summary.json")})
    if not summaries:
        raise InputError(f"{folder}: expected a folder with {FOLDER}/<id>/manifest-summary.json, or that folder itself")
    start = 1
    for path in summaries:
        summary = _json(path.read_bytes(), path)
        _refuse_unknown(summary, path)
        table = str(summary.get("tableArn", "")).rpartition("/")[2]
        for line in (path.parent / "manifest-files.json").read_bytes().splitlines():
            entry = _json(line, path.parent / "manifest-files.json")
            # The key holds the bucket's prefix, which is not part of what was downloaded.
            data = path.parent / "data" / Path(entry["dataFileS3Key"]).name
            yield _DataFile(data, table, entry["itemCount"], entry["md5Checksum"], start)
            start += entry["itemCount"]


def _json(line: bytes, path: Path) -> dict[str, Any]:
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object")
    return content


def _refuse_unknown(summary: dict[str, Any], path: Path) -> None:
    if summary.get("outputFormat", "DYNAMODB_JSON") != "DYNAMODB_JSON":
        raise InputError(f"{path}: expected an export in DYNAMODB_JSON, got {summary['outputFormat']}")
    if summary.get("exportType", "FULL_EXPORT") != "FULL_EXPORT":
        raise InputError(f"{path}: expected a full export, got {summary['exportType']}: it holds changes, and no items")


def _refuse_changed(file: _DataFile) -> None:
    try:
        with file.path.open("rb") as data:
            digest = hashlib.file_digest(data, lambda: hashlib.md5(usedforsecurity=False)).digest()
    except FileNotFoundError:
        raise InputError(f"{file.path} is missing, and the manifest names it") from None
    if _checksum(digest) != file.checksum:
        raise InputError(
            f"{file.path} has the MD5 checksum {_checksum(digest)}: expected {file.checksum}, as the manifest says"
        )


def _checksum(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


class DynamoExportWriter:
    """Writes one table's export into a folder: data files as items come, the manifests at the end."""

    def __init__(self, folder: Path, table: str) -> None:
        self._table = table
        self._id = f"{int(time.time() * 1000):014}-{secrets.token_hex(4)}"
        self._home = folder / FOLDER / self._id
        (self._home / "data").mkdir(parents=True)
        self._began = _moment()
        self._entries: list[dict[str, Any]] = []
        self._file: gzip.GzipFile | None = None
        self._path = self._home
        self._count = 0

    def write(self, contents: list[dict[str, Any]]) -> None:
        """Write some items."""
        if self._file is None:
            self._path = self._home / "data" / f"{secrets.token_hex(13)}.json.gz"
            self._file = gzip.GzipFile(self._path, "wb", compresslevel=6)
        self._file.write(b"".join(orjson.dumps({"Item": content}) + b"\n" for content in contents))
        self._count += len(contents)
        if self._count >= FILE_ITEMS:
            self._end_file()

    def _end_file(self) -> None:
        if self._file is None:
            return
        self._file.close()
        with self._path.open("rb") as data:
            digest = hashlib.file_digest(data, lambda: hashlib.md5(usedforsecurity=False)).digest()
        self._entries.append(
            {
                "itemCount": self._count,
                "md5Checksum": _checksum(digest),
                "etag": f"{digest.hex()}-1",
                "dataFileS3Key": f"{FOLDER}/{self._id}/data/{self._path.name}",
            }
        )
        self._file, self._count = None, 0

    def close(self) -> None:
        """Write the manifests, each with its checksum beside it."""
        self._end_file()
        if not self._entries:
            # DynamoDB, too, makes a file where there is nothing.
            self.write([])
            self._end_file()
        arn = f"arn:aws:dynamodb:local:000000000000:table/{self._table}"
        summary = {
            "version": "2020-06-30",
            "exportArn": f"{arn}/export/{self._id}",
            "startTime": self._began,
            "endTime": _moment(),
            "tableArn": arn,
            "tableId": str(uuid.uuid4()),
            "exportTime": self._began,
            "s3Bucket": None,
            "s3Prefix": None,
            "s3SseAlgorithm": None,
            "s3SseKmsKeyId": None,
            "manifestFilesS3Key": f"{FOLDER}/{self._id}/manifest-files.json",
            "billedSizeBytes": 0,
            "itemCount": sum(entry["itemCount"] for entry in self._entries),
            "outputFormat": "DYNAMODB_JSON",
            "exportType": "FULL_EXPORT",
        }
        files = b"".join(orjson.dumps(entry) + b"\n" for entry in self._entries)
        for name, content in (("manifest-files", files), ("manifest-summary", orjson.dumps(summary))):
            (self._home / f"{name}.json").write_bytes(content)
            digest = hashlib.md5(content, usedforsecurity=False).digest()
            (self._home / f"{name}.checksum").write_text(_checksum(digest))


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
