"""The sweep: what nothing points to is deleted, and nothing else."""

from __future__ import annotations

import os
import re
import time
from argparse import ArgumentTypeError
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from graph.blobs import StoredObject
from graph.ours import EXPIRES
from graph.requests import Item, Scan
from graph.sweep import delete, orphans
from server.cli import main
from server.sweep import age, sweep
from tests.blobs import CREATE, MODEL, OTHER, SCAN, UPDATE, Watched, created, item, read
from tests.conftest import ROOT, Serve, Served, make_table

NO_RECEIPTS = "0 receipts of idempotency keys deleted\n"


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "blobs")


@pytest.fixture
async def served(serve: Serve, store: Watched) -> Served:
    served = await serve(MODEL)
    served.graph.blobs = store
    return served


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
    assert lines[4] == "1 objects with 500 bytes deleted"


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
    assert capsys.readouterr().out == f"{key}  1 bytes  1970-01-01 00:00\n1 objects with 1 bytes deleted\n{NO_RECEIPTS}"
    with pytest.raises(SystemExit):
        main(["sweep", *options, "--older-than", "1s"])
    assert "expected an age of an hour or more" in capsys.readouterr().err


async def test_receipts_that_have_run_out_are_swept(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    boxes = await serve((ROOT / "schema.graphql").read_text())
    for number in (1, 2, 3):
        query = (
            f'mutation {{ createBox(idempotencyKey: "{number}", input: {{ number: "{number}" }}) {{ box {{ id }} }} }}'
        )
        await boxes.data(query)
    old, young = [item for item in await everything(boxes) if EXPIRES in item][:2]
    await boxes.put([{**old, EXPIRES: {"N": "1"}}, young])

    told = await sweep(boxes.graph, timedelta(days=1), dry_run=True), capsys.readouterr().out
    swept = await sweep(boxes.graph, timedelta(days=1), dry_run=False), capsys.readouterr().out

    assert told == (0, "0 objects with 0 bytes would be deleted\n1 receipts of idempotency keys would be deleted\n")
    assert swept == (0, "0 objects with 0 bytes deleted\n1 receipts of idempotency keys deleted\n")
    assert len([item for item in await everything(boxes) if EXPIRES in item]) == 2


async def everything(served: Served) -> list[Item]:
    items: list[Item] = (await served.graph.send(Scan(served.table, 0, 1)))["Items"]
    return items
