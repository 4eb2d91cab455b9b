"""Where large values lie: a folder that no key leads out of, and S3, spoken to over HTTP."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graph.blobs import BlobStore, FolderStore, S3Store
from graph.errors import BlobUnavailable
from tests.blobs import MODEL, SCAN, created, read
from tests.conftest import Serve
from tests.s3 import Buckets, running_s3

KEY = "Document/0a1b/scan/1"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Buckets]:
    with running_s3("scans") as buckets:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", buckets.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "mine")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        monkeypatch.setenv("AWS_REGION", "eu-central-1")
        yield buckets


@pytest.fixture(params=["folder", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    """Each of the two, with a bucket that may be used."""
    if request.param == "folder":
        yield FolderStore(tmp_path / "blobs")
        return
    request.getfixturevalue("s3")
    made = S3Store(threads=4)
    yield made
    made.close()


async def keys(store: BlobStore, prefix: str) -> list[str]:
    return sorted([entry.key async for entry in store.list("scans", prefix)])


async def test_an_object_is_put_got_listed_and_deleted(store: BlobStore) -> None:
    await store.put("scans", KEY, b"content")

    assert await store.get("scans", KEY, 7) == b"content"
    (found,) = [entry async for entry in store.list("scans", "Document/")]
    assert (found.bucket, found.key, found.bytes) == ("scans", KEY, 7)
    assert timedelta(seconds=-5) < datetime.now(UTC) - found.modified < timedelta(minutes=1)
    await store.delete("scans", KEY)
    assert await store.get("scans", KEY, 7) is None
    await store.delete("scans", KEY)


async def test_no_more_is_read_than_shows_that_it_is_too_much(store: BlobStore) -> None:
    await store.put("scans", KEY, b"x" * 100_000)

    assert await store.get("scans", KEY, 10) == b"x" * 11


async def test_an_empty_object_is_one(store: BlobStore) -> None:
    await store.put("scans", KEY, b"")

    assert await store.get("scans", KEY, 0) == b""


async def test_a_list_is_as_long_as_it_is_and_of_its_type_alone(store: BlobStore) -> None:
    wanted = [f"Document/{number:02}/scan/1" for number in range(8)]
    await asyncio.gather(*(store.put("scans", key, b"x") for key in [*wanted, "DocumentOld/00/scan/1"]))

    assert await keys(store, "Document/") == wanted
    assert await keys(store, "Nothing/") == []


# --- the folder ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bucket", "key"),
    [
        pytest.param("scans", "../out", id="up"),
        pytest.param("scans", "a/../../out", id="up-within"),
        pytest.param("..", "out", id="bucket-up"),
        pytest.param("scans", "/out", id="root"),
        pytest.param("scans", "a//b", id="nothing-between"),
        pytest.param("scans", ".", id="itself"),
        pytest.param("scans", "a\\b", id="backslash"),
        pytest.param("scans", "a\0b", id="zero"),
        pytest.param("", "a", id="no-bucket"),
        pytest.param("scans", "a\n", id="line-end"),
    ],
)
async def test_no_key_leads_out_of_the_folder(tmp_path: Path, bucket: str, key: str) -> None:
    store = FolderStore(tmp_path / "blobs")

    for work in (store.put(bucket, key, b"x"), store.get(bucket, key, 1), store.delete(bucket, key)):
        with pytest.raises(BlobUnavailable, match="cannot be a file's name"):
            await work
    assert list(tmp_path.iterdir()) == []


async def test_a_write_that_fails_leaves_no_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = FolderStore(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BlobUnavailable, match=r"cannot be used for large values: No space left on device.*--blobs"):
        await store.put("scans", KEY, b"x")

    assert await store.get("scans", KEY, 1) is None
    assert [Path(key).name[:11] for key in await keys(store, "Document/")] == ["unfinished-"]


async def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "blobs").write_text("")

    with pytest.raises(BlobUnavailable, match="cannot be used for large values"):
        await FolderStore(tmp_path / "blobs").put("scans", KEY, b"x")


# --- S3 -----------------------------------------------------------------------------------------------------------


async def refusal(store: S3Store, bucket: str = "scans") -> str:
    with pytest.raises(BlobUnavailable) as refused:
        await store.put(bucket, KEY, b"x")
    store.close()
    return str(refused.value)


async def test_a_bucket_that_is_not_there_is_named(s3: Buckets) -> None:
    message = await refusal(S3Store(), "others")

    assert message.startswith("the bucket 'others' cannot be used (S3 answered NoSuchBucket: NoSuchBucket it is)")
    assert message.endswith("Or keep large values in a folder, with --blobs")


async def test_missing_rights_are_told_and_not_taken_for_a_missing_object(s3: Buckets) -> None:
    s3.refusing = True
    store = S3Store()

    with pytest.raises(BlobUnavailable, match="AccessDenied"):
        await store.get("scans", KEY, 1)
    store.close()


async def test_missing_credentials_are_told(s3: Buckets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))

    assert "(Unable to locate credentials)" in await refusal(S3Store())


async def test_a_server_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, s3: Buckets) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")

    assert "Could not connect" in await refusal(S3Store())


async def test_a_fault_of_the_server_is_tried_again(s3: Buckets) -> None:
    store = S3Store()
    s3.failing = 2

    await store.put("scans", KEY, b"x")

    assert s3.asked == [f"PUT /scans/{KEY}"] * 3
    assert s3.objects["scans"] == {KEY: b"x"}
    store.close()


async def test_large_values_go_to_s3_and_come_back(s3: Buckets, serve: Serve) -> None:
    served = await serve(MODEL)
    store = served.graph.blobs = S3Store()

    assert (await created(served, scan=SCAN))["scan"] == SCAN

    (key,) = s3.objects["scans"]
    assert s3.objects["scans"][key] == base64.b64decode(SCAN)
    assert s3.asked == [f"PUT /scans/{key}"]
    assert (await read(served))["scan"] == SCAN
    assert s3.asked[1:] == [f"GET /scans/{key}"]
    s3.objects["scans"].clear()
    error = await served.error('{ document(number: "1") { scan } }')
    assert error["extensions"]["code"] == "BLOB_MISSING"
    store.close()


async def test_nothing_of_s3_is_asked_before_the_first_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("boto3.session.Session", None)

    S3Store().close()
