"""Versions of items: kept by every write, listed by their keys, and gone with their item."""

from __future__ import annotations

import base64
from typing import Any

import orjson
import pytest

from graph.loaders import Limits
from tests.conftest import Serve, Served

MODEL = """
extend schema
  @table(name: "audits", partitionKey: "id", sortKey: "sk")
  @index(name: "by-status", partitionKey: "statusKey", sortKey: "id")
type Audit @node(partition: "AUDIT#{number}", sort: "v0_Audit") @history
  @indexed(by: "by-status", partition: "STATUS#{status}") {
  number: ID!
  status: String
  version: Int! @version
}
type Query { audits(status: String!): [Audit!]! @find }
"""
UPDATE = 'mutation { updateAudit(key: { number: "1" }, set: { status: "%s" }) { audit { version } } }'
VERSIONS = """query ($first: Int, $after: String, $last: Int, $before: String, $order: SortOrder) {
  audit(number: "1") { versions(first: $first, after: $after, last: $last, before: $before, order: $order) {
    totalCount nodes { version status } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }"""


@pytest.fixture
async def audits(serve: Serve) -> Served:
    served = await serve(MODEL, limits=Limits(linger_secs=0))
    await served.data('mutation { createAudit(input: { number: "1", status: "s1" }) { audit { version } } }')
    return served


async def changed(audits: Served, count: int) -> None:
    for number in range(2, count + 1):
        await audits.data(UPDATE % f"s{number}")


async def test_every_write_keeps_what_the_item_is_from_then_on(audits: Served) -> None:
    await changed(audits, 3)

    data = await audits.data('{ audit(number: "1") { status version at(version: 2) { status version } } }')

    assert data["audit"] == {"status": "s3", "version": 3, "at": {"status": "s2", "version": 2}}


async def test_a_version_that_never_was_is_null(audits: Served) -> None:
    data = await audits.data('{ audit(number: "1") { a: at(version: 0) { status } b: at(version: 9) { status } } }')

    assert data["audit"] == {"a": None, "b": None}


async def test_versions_are_in_the_order_of_their_numbers_and_page_both_ways(audits: Served) -> None:
    await changed(audits, 12)

    forward: list[Any] = []
    page: dict[str, Any] = {"first": 5}
    while True:
        found = (await audits.data(VERSIONS, page))["audit"]["versions"]
        forward += found["nodes"]
        if not found["pageInfo"]["hasNextPage"]:
            break
        page = {"first": 5, "after": found["pageInfo"]["endCursor"]}
    backward = (await audits.data(VERSIONS, {"last": 3}))["audit"]["versions"]
    newest = (await audits.data(VERSIONS, {"first": 2, "order": "DESC"}))["audit"]["versions"]["nodes"]

    assert forward == [{"version": number, "status": f"s{number}"} for number in range(1, 13)]
    assert backward["totalCount"] == 12
    assert backward["nodes"] == forward[-3:]
    assert newest == [forward[-1], forward[-2]]


async def test_a_page_of_versions_is_one_batch_get_item(audits: Served) -> None:
    await changed(audits, 4)

    await audits.data('{ audit(number: "1") { versions { nodes { status } } } }')

    assert audits.operations == ["BatchGetItem", "GetItem"]


LARGEST = 2**31 - 1


async def foreign(audits: Served, *versions: int) -> None:
    """Others have written the item with the largest version there can be, and of its versions only some."""
    keys = {0: "v0_Audit", **{version: f"v{version}_Audit" for version in versions}}
    await audits.put(
        {
            "id": {"S": "AUDIT#1"},
            "sk": {"S": key},
            "version": {"N": str(number or LARGEST)},
            "status": {"S": f"s{number}"},
        }
        for number, key in keys.items()
    )


async def test_an_item_with_a_huge_version_has_the_page_read_that_is_asked_for(audits: Served) -> None:
    kept = [*range(1, 8), *range(LARGEST - 7, LARGEST + 1)]
    await foreign(audits, *kept)

    first = (await audits.data(VERSIONS, {"first": 3}))["audit"]["versions"]
    requests = audits.operations
    cursor = first["pageInfo"]["endCursor"]
    second = (await audits.data(VERSIONS, {"first": 3, "after": cursor}))["audit"]["versions"]
    before = (await audits.data(VERSIONS, {"last": 2, "before": second["pageInfo"]["endCursor"]}))["audit"]["versions"]
    last = (await audits.data(VERSIONS, {"last": 3}))["audit"]["versions"]
    newest = (await audits.data(VERSIONS, {"first": 3, "order": "DESC"}))["audit"]["versions"]
    cursor = newest["pageInfo"]["endCursor"]
    older = (await audits.data(VERSIONS, {"first": 3, "order": "DESC", "after": cursor}))["audit"]["versions"]

    def numbers(page: dict[str, Any]) -> list[int]:
        return [node["version"] for node in page["nodes"]]

    assert [numbers(page) for page in (first, second, before)] == [[1, 2, 3], [4, 5, 6], [4, 5]]
    assert [numbers(page) for page in (last, newest, older)] == [kept[-3:], kept[:-4:-1], kept[-4:-7:-1]]
    assert [page["totalCount"] for page in (first, last, newest)] == [LARGEST] * 3
    assert [page["pageInfo"]["hasNextPage"] for page in (first, second, newest)] == [True] * 3
    assert requests == ["BatchGetItem", "GetItem"]


@pytest.mark.parametrize(("page", "found"), [({"first": 2}, [1]), ({"last": 2}, [LARGEST])])
async def test_versions_that_are_missing_take_the_read_budget_and_no_more(
    audits: Served, page: dict[str, Any], found: list[int]
) -> None:
    await foreign(audits, 1, LARGEST)

    data = (await audits.data(VERSIONS, page))["audit"]["versions"]

    has_more = "hasNextPage" if "first" in page else "hasPreviousPage"
    budget = Limits().read_budget
    assert [node["version"] for node in data["nodes"]] == found
    assert data["pageInfo"][has_more]
    assert audits.operations == ["BatchGetItem"] * (budget // 100 + 1) + ["GetItem"]


@pytest.mark.parametrize("sort", ["v5_Audit", "v0_Audit", "v01_Audit", "AUDIT#1", 3])
async def test_a_place_that_is_none_of_the_versions_is_refused(audits: Served, sort: Any) -> None:
    await changed(audits, 4)
    data = await audits.data(VERSIONS, {"first": 1})
    version, name, (partition, _) = orjson.loads(
        base64.urlsafe_b64decode(data["audit"]["versions"]["pageInfo"]["endCursor"] + "==")
    )
    forged = base64.urlsafe_b64encode(orjson.dumps([version, name, [partition, sort]])).decode().rstrip("=")

    error = await audits.error(VERSIONS, {"after": forged})

    assert error["extensions"]["code"] == "BAD_CURSOR"


async def test_versions_are_counted_without_reading_them(audits: Served) -> None:
    await changed(audits, 3)

    data = await audits.data('{ audit(number: "1") { versions { totalCount } } }')

    assert data["audit"]["versions"] == {"totalCount": 3}
    assert audits.operations == ["GetItem"]


async def test_versions_are_out_of_the_way_of_every_index(audits: Served) -> None:
    await changed(audits, 2)

    data = await audits.data('{ old: audits(status: "s1") { totalCount } new: audits(status: "s2") { totalCount } }')

    assert data == {"old": {"totalCount": 0}, "new": {"totalCount": 1}}


async def test_a_version_has_an_id_of_its_own_and_cannot_be_written(audits: Served) -> None:
    await changed(audits, 2)
    found = (await audits.data('{ audit(number: "1") { id at(version: 1) { id } } }'))["audit"]
    old = found["at"]["id"]

    data = await audits.data("query ($id: ID!) { node(id: $id) { id ... on Audit { status } } }", {"id": old})
    error = await audits.error(
        "mutation ($id: ID!) { updateAudit(key: { id: $id }, set: { status: null }) { audit { status } } }", {"id": old}
    )

    assert old != found["id"]
    assert data["node"] == {"id": old, "status": "s1"}
    assert error["extensions"]["code"] == "BAD_INPUT"


async def test_an_item_goes_with_all_of_its_versions(audits: Served) -> None:
    await changed(audits, 130)

    await audits.data('mutation { deleteAudit(key: { number: "1" }) { deletedId } }')
    await audits.data('mutation { createAudit(input: { number: "1" }) { audit { version } } }')

    data = await audits.data(
        '{ audit(number: "1") { versions { totalCount nodes { version } } at(version: 2) { status } } }'
    )
    assert data["audit"] == {"versions": {"totalCount": 1, "nodes": [{"version": 1}]}, "at": None}


async def test_a_refused_write_keeps_no_version(audits: Served) -> None:
    await changed(audits, 2)

    error = await audits.error(
        'mutation { updateAudit(key: { number: "1" }, set: { status: "x" }, ifVersion: 1) { audit { status } } }'
    )

    assert error["extensions"] == {"code": "VERSION_CONFLICT", "argument": "ifVersion"}
    assert (await audits.data('{ audit(number: "1") { version at(version: 3) { status } } }'))["audit"] == {
        "version": 2,
        "at": None,
    }


async def test_the_key_of_an_item_with_a_history_stays(audits: Served) -> None:
    error = await audits.error(
        'mutation { updateAudit(key: { number: "1" }, set: { number: "2" }) { audit { status } } }'
    )

    assert error["extensions"]["code"] == "BAD_KEY_VALUE"
    assert (await audits.data('{ audit(number: "1") { version } }'))["audit"] == {"version": 1}
