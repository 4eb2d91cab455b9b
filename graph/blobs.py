"""Where large values lie outside of the table: objects in buckets, of S3 or in a folder that stands in for it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import re
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import boto3
import botocore.exceptions
from botocore.config import Config

from graph.errors import BlobUnavailable
from graph.files import put_file, sync_folder

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as a bucket lists it."""

    bucket: str
    key: str
    bytes: int
    modified: datetime


class BlobStore(Protocol):
    """Objects by bucket and key: written once and whole, never changed. Every method raises BlobUnavailable."""

    async def put(self, bucket: str, key: str, content: bytes) -> None:
        """Write an object; once this returns, it is there for everybody and stays."""

    async def get(self, bucket: str, key: str, most_bytes: int) -> bytes | None:
        """Read an object, or so much of it that it is known to be too large; None when there is none."""

    def list(self, bucket: str, prefix: str) -> AsyncIterator[StoredObject]:
        """List the objects whose keys begin so."""

    async def delete(self, bucket: str, key: str) -> None:
        """Delete an object, if it is there."""


# --- a folder -----------------------------------------------------------------------------------------------------

_STEP = re.compile(r"(?!\.\.?$)[A-Za-z0-9._-]+")


class FolderStore:
    """Keeps each bucket in a folder, each object in a file."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, bucket: str, key: str, content: bytes) -> None:
        """Write a file of its own first, and give it its name when it is safe on the disk."""
        await asyncio.to_thread(self._put, self._path(bucket, key), content)

    async def get(self, bucket: str, key: str, most_bytes: int) -> bytes | None:
        """Read a file."""
        return await asyncio.to_thread(self._get, self._path(bucket, key), most_bytes)

    async def list(self, bucket: str, prefix: str) -> AsyncIterator[StoredObject]:
        """List the files, those that a kill has left half-written among them."""
        for found in await asyncio.to_thread(lambda: list(self._list(bucket, prefix))):
            yield found

    async def delete(self, bucket: str, key: str) -> None:
        """Delete a file."""
        await asyncio.to_thread(self._delete, self._path(bucket, key))

    def _path(self, bucket: str, key: str) -> Path:
        steps = [bucket, *key.split("/")]
        # A key may come from a table that others write: it must not lead out of the folder.
        if not all(_STEP.fullmatch(step) for step in steps):
            raise BlobUnavailable(f"the key {key!r} cannot be a file's name: expected letters, digits and `-_.` only")
        return self._folder.joinpath(*steps)

    def _put(self, path: Path, content: bytes) -> None:
        with self._as_unavailable():
            path.parent.mkdir(parents=True, exist_ok=True)
            put_file(path, content, path.with_name(f"unfinished-{uuid.uuid4()}"))
            # The name is safe when the folders that lead to it are.
            for folder in path.parent.relative_to(self._folder).parents:
                sync_folder(self._folder / folder)

    def _get(self, path: Path, most_bytes: int) -> bytes | None:
        with self._as_unavailable(), suppress(FileNotFoundError), path.open("rb") as file:
            return file.read(most_bytes + 1)
        return None

    def _list(self, bucket: str, prefix: str) -> Iterator[StoredObject]:
        root = self._path(bucket, prefix.rstrip("/"))
        with self._as_unavailable():
            for path in sorted(root.rglob("*")):
                with suppress(FileNotFoundError):
                    if path.is_file():
                        state = path.stat()
                        key = path.relative_to(self._folder / bucket).as_posix()
                        yield StoredObject(bucket, key, state.st_size, datetime.fromtimestamp(state.st_mtime, UTC))

    def _delete(self, path: Path) -> None:
        with self._as_unavailable():
            path.unlink(missing_ok=True)

    @contextmanager
    def _as_unavailable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BlobUnavailable(
                f"the folder {str(self._folder)!r} cannot be used for large values: {error.strerror}. Make it readable "
                "and writable, or name another with --blobs"
            ) from error


# --- S3 -----------------------------------------------------------------------------------------------------------

_MISSING = ("NoSuchKey", "404")


class S3Store:
    """Keeps objects in S3, through boto3 in threads; credentials, region and endpoint are boto3's ordinary ones."""

    def __init__(self, threads: int = 8) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="s3")
        self._size = threads
        self._making = threading.Lock()
        self._made: Any = None

    async def put(self, bucket: str, key: str, content: bytes) -> None:
        """Write an object, which S3 takes only if it has arrived undamaged."""
        digest = base64.b64encode(hashlib.sha256(content).digest()).decode()
        await self._call(bucket, lambda s3: s3.put_object(Bucket=bucket, Key=key, Body=content, ChecksumSHA256=digest))

    async def get(self, bucket: str, key: str, most_bytes: int) -> bytes | None:
        """Read an object."""

        def read(s3: Any) -> bytes | None:
            try:
                with s3.get_object(Bucket=bucket, Key=key)["Body"] as body:
                    content: bytes = body.read(most_bytes + 1)
                    return content
            except botocore.exceptions.ClientError as error:
                if _code(error) in _MISSING:
                    return None
                raise

        return await self._call(bucket, read)

    async def list(self, bucket: str, prefix: str) -> AsyncIterator[StoredObject]:
        """List the objects, a thousand with a request."""
        start: dict[str, str] = {}
        while True:
            asked = {"Bucket": bucket, "Prefix": prefix, **start}
            page = await self._call(bucket, lambda s3, asked=asked: s3.list_objects_v2(**asked))  # type: ignore[misc]
            for entry in page.get("Contents", ()):
                yield StoredObject(bucket, entry["Key"], entry["Size"], entry["LastModified"])
            if not page.get("IsTruncated"):
                return
            start = {"ContinuationToken": page["NextContinuationToken"]}

    async def delete(self, bucket: str, key: str) -> None:
        """Delete an object."""
        await self._call(bucket, lambda s3: s3.delete_object(Bucket=bucket, Key=key))

    async def _call(self, bucket: str, call: Callable[[Any], T]) -> T:
        def work() -> T:
            try:
                return call(self._client())
            except botocore.exceptions.ClientError as error:
                text = error.response.get("Error", {}).get("Message", "")
                raise _unavailable(bucket, f"S3 answered {_code(error)}: {text}".rstrip(": ")) from error
            except (botocore.exceptions.BotoCoreError, ValueError, OSError) as error:
                raise _unavailable(bucket, str(error)) from error

        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def _client(self) -> Any:
        # Only who has large values needs S3: nothing of it is made before the first one.
        with self._making:
            if self._made is None:
                # Some servers that speak S3 know no hosts named after buckets.
                is_own = any(os.environ.get(name) for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
                self._made = boto3.session.Session().client(
                    "s3",
                    region_name=os.environ.get("AWS_REGION"),
                    config=Config(
                        max_pool_connections=self._size,
                        retries={"total_max_attempts": 4, "mode": "standard"},
                        connect_timeout=3,
                        read_timeout=20,
                        s3={"addressing_style": "path" if is_own else "auto"},
                    ),
                )
            return self._made

    def close(self) -> None:
        """Let running requests end and free the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._made is not None:
            self._made.close()


def _code(error: botocore.exceptions.ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def _unavailable(bucket: str, cause: str) -> BlobUnavailable:
    return BlobUnavailable(
        f"the bucket {bucket!r} cannot be used ({cause}): expected one that is there, with credentials that allow its "
        "objects to be read and written. Or keep large values in a folder, with --blobs"
    )
