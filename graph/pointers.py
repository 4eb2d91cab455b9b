"""One operation's large values: each object read once, a few at a time, and written before anything points to it."""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import Awaitable
from typing import Any, TypeVar

from graph.blobs import BlobStore
from graph.client import Meter, forget_failure
from graph.entity import Entity
from graph.errors import BlobDamaged, BlobMissing, BlobUnavailable, DeadlineExceeded, ItemError
from graph.model import Field
from graph.packing import Blob, Pointer, Stored

AT_ONCE = 8
"""How many objects an operation reads or writes at once: each may be large."""

T = TypeVar("T")


class Pointers:
    """What one operation has read and written of the store."""

    def __init__(self, store: BlobStore | None, meter: Meter) -> None:
        self._store = store
        self._meter = meter
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._contents: dict[tuple[str, str], asyncio.Future[bytes]] = {}
        self._written: dict[tuple[str, str, str], asyncio.Future[Pointer]] = {}

    async def value(self, entity: Entity, field: Field) -> Any:
        """Give a field's value, from its object where it lies in one.

        Cost:   one GET for each object of the operation, and none for what the operation itself has written.
        Raises: ItemError, BlobMissing, BlobDamaged, BlobUnavailable, DeadlineExceeded.
        """
        value, blob = entity.value(field), field.blob
        if not isinstance(value, Pointer):
            return value
        assert blob is not None, "only a blob's attribute is read as a pointer"
        assert blob.bucket is not None
        name = f"{entity.type.name}.{field.name}"
        content = await self._content(blob.bucket, value, name)
        try:
            return await asyncio.to_thread(blob.unpack, content)
        except ValueError as error:
            raise ItemError(
                f"{name} is declared {field.type} and is read from the object {value.key!r}: expected {error}. Write "
                "the value again"
            ) from None

    async def _content(self, bucket: str, pointer: Pointer, name: str) -> bytes:
        place = bucket, pointer.key
        if place not in self._contents:
            self._contents[place] = asyncio.ensure_future(self._read(bucket, pointer, name))
        return await _shared(self._contents[place])

    async def _read(self, bucket: str, pointer: Pointer, name: str) -> bytes:
        store = self._reached(bucket)
        self._meter.blobs_read += 1
        content = await self._in_time(store.get(bucket, pointer.key, pointer.bytes))
        where = f"{name} is kept in the object {pointer.key!r} of the bucket {bucket!r}"
        if content is None:
            raise BlobMissing(f"{where}: expected it there, and it is gone. Restore it, or write the value again")
        if len(content) != pointer.bytes or hashlib.sha256(content).hexdigest() != pointer.sha256:
            raise BlobDamaged(
                f"{where}: expected {pointer.bytes:,} bytes of the SHA-256 {pointer.sha256}, got others. Restore it, "
                "or write the value again"
            )
        return content

    async def stored(self, type_name: str, field: Field, blob: Blob, value: Any, owner: object) -> Stored:
        """Make the attribute of a value: the value itself, compressed or not, or a pointer to a new object.

        Cost:   one PUT for a value that is too large; an equal one of the same field shares it.
        Raises: ValueError for a value that is too large for any object; BlobUnavailable, DeadlineExceeded.
        """
        attribute, content = await asyncio.to_thread(blob.pack, value)
        if blob.bucket is None or len(content) <= blob.over:
            return Stored(attribute)
        digest = hashlib.sha256(content).hexdigest()
        # An attempt at a mutation may fail and begin again: the object is there already.
        place = type_name, field.name, digest
        if place not in self._written:
            folder = hashlib.sha256(repr(owner).encode()).hexdigest()[:16]
            pointer = Pointer(f"{type_name}/{folder}/{field.name}/{uuid.uuid4()}", len(content), digest)
            self._written[place] = asyncio.ensure_future(self._write(blob.bucket, pointer, content))
        return Stored((await _shared(self._written[place])).attribute())

    async def _write(self, bucket: str, pointer: Pointer, content: bytes) -> Pointer:
        store = self._reached(bucket)
        self._meter.blobs_written += 1
        await self._in_time(store.put(bucket, pointer.key, content))
        # What was just written need not be read.
        known = self._contents[bucket, pointer.key] = asyncio.get_running_loop().create_future()
        known.set_result(content)
        return pointer

    def _reached(self, bucket: str) -> BlobStore:
        if self._store is None:
            raise BlobUnavailable(f"nothing keeps the bucket {bucket!r} here: serve with S3, or with --blobs")
        return self._store

    async def _in_time(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(self._meter.deadline), self._slots:
                return await work
        except TimeoutError:
            raise DeadlineExceeded(
                "the operation's time is used up before its large values are read or written: ask for fewer, or raise "
                "the time limit",
                self._meter.timeout_secs,
            ) from None

    async def close(self) -> None:
        """Cancel what is still under way."""
        tasks: list[asyncio.Future[Any]] = [*self._contents.values(), *self._written.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _shared(future: asyncio.Future[T]) -> T:
    """Await what others await as well: none of them takes it along when he is cancelled."""
    future.add_done_callback(forget_failure)
    if not future.done():
        await asyncio.wait([future])
    return future.result()
