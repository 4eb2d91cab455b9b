"""Large values on the engine: written before they are pointed to, read only when they are selected."""

from __future__ import annotations

import asyncio
import base64
import gzip
import random
import re
from pathlib import Path
from typing import Any

import pytest

from resolvers.operation import Request
from tests.blobs import CREATE, MODEL, OTHER, READ, SCAN, UPDATE, Watched, created, item, read
from tests.conftest import Serve, Served


@pytest.fixture
def store(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "blobs")


@pytest.fixture
async def served(serve: Serve, store: Watched) -> Served:
    served = await serve(MODEL)
    served.graph.blobs = store
    return served


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


async def test_a_value_that_an_index_holds_is_looked_into_only_when_selected(serve: Serve, store: Watched) -> None:
    served = await serve(MODEL.replace('"byShelf", ', '"byShelf", projection: ["Title", "Body"], '))
    served.graph.blobs = store
    damaged = {"Title": {"S": "t"}, "Shelf": {"S": "s"}, "Body": {"B": "H4sI"}}
    await served.put([{"pk": {"S": "DOC#1"}, "sk": {"S": "doc"}, **damaged}])

    body = await served('{ shelved(shelf: "s") { nodes { title body } } }')

    assert body["data"]["shelved"]["nodes"] == [{"title": "t", "body": None}]
    assert [error["extensions"]["code"] for error in body["errors"]] == ["BAD_ITEM_VALUE"]
    assert served.operations == ["Query"]
