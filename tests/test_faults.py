"""The fault proxy does what it says, and tells of everything that it did."""

from __future__ import annotations

import asyncio
import random
import zlib
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from tests.conftest import BANANAS, banana_items, make_table
from tests.faults import KINDS, NONE, RESETS, FaultProxy, Faults

TABLE = "faults"
KEYS = [{"objectId": {"S": f"PALLET_{number}"}, "relatedObjectId": {"S": f"PALLET_{number}"}} for number in range(20)]


def only(kind: str, **more: Any) -> Faults:
    """Have every request go wrong in one way."""
    return replace(NONE, **{kind: 1.0, **more})


@pytest.fixture(scope="module")
def table(engine: str) -> str:
    items = [{**key, "type": {"S": "Pallet"}} for key in KEYS]
    return make_table(engine, TABLE, BANANAS.read_text(), [*banana_items(0), *items])


@pytest.fixture
async def proxy(engine: str, table: str) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(engine, NONE, seed=1) as proxy:
        yield proxy


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=20) as http:
        yield http


async def ask(http: httpx.AsyncClient, url: str, operation: str, **parameters: Any) -> httpx.Response:
    headers = {
        "X-Amz-Date": "20260101T000000Z",
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/eu-central-1/dynamodb/aws4_request, "
        "SignedHeaders=host, Signature=0",
    }
    return await http.post(url, json=parameters, headers=headers)


async def get(http: httpx.AsyncClient, proxy: FaultProxy) -> httpx.Response:
    return await ask(http, proxy.url, "GetItem", TableName=TABLE, Key=KEYS[0])


async def get_all(http: httpx.AsyncClient, proxy: FaultProxy) -> Any:
    return (await ask(http, proxy.url, "BatchGetItem", RequestItems={TABLE: {"Keys": KEYS}})).json()


def test_a_seed_decides_what_goes_wrong_and_the_shares_are_kept() -> None:
    faults = Faults()

    days = [[faults.choose(dice) for _ in range(20_000)] for dice in (random.Random(7), random.Random(7))]

    assert days[0] == days[1]
    found = Counter(days[0])
    assert all(abs(found[kind] / 20_000 - getattr(faults, kind)) < 0.01 for kind in KINDS)


async def test_on_a_good_day_everything_passes(http: httpx.AsyncClient, engine: str, proxy: FaultProxy) -> None:
    through = await get(http, proxy)

    straight = await ask(http, engine, "GetItem", TableName=TABLE, Key=KEYS[0])
    assert (through.status_code, through.json()) == (straight.status_code, straight.json())
    assert int(through.headers["X-Amz-Crc32"]) == zlib.crc32(through.content)
    assert proxy.tally == {"requests": 1}


@pytest.mark.parametrize(("kind", "statuses"), [("throttled", {400}), ("failed", {500, 503})])
async def test_what_is_refused_has_the_status_of_dynamodb(
    http: httpx.AsyncClient, proxy: FaultProxy, kind: str, statuses: set[int]
) -> None:
    proxy.faults = only(kind)

    answers = [await get(http, proxy) for _ in range(20)]

    assert {answer.status_code for answer in answers} == statuses
    assert proxy.tally == {"requests": 20, kind: 20}


async def test_what_is_throttled_is_not_written_and_what_failed_may_be(
    http: httpx.AsyncClient, engine: str, proxy: FaultProxy
) -> None:
    async def write(number: int) -> bool:
        key = {name: {"S": f"BOX_{proxy.faults.throttled}_{number}"} for name in KEYS[0]}
        await ask(http, proxy.url, "TransactWriteItems", TransactItems=[{"Put": {"TableName": TABLE, "Item": key}}])
        found = await ask(http, engine, "GetItem", TableName=TABLE, Key=key)
        return "Item" in found.json()

    proxy.faults = only("throttled")
    assert not any([await write(number) for number in range(20)])

    proxy.faults = only("failed")
    assert {await write(number) for number in range(20)} == {True, False}


async def test_a_batch_is_parted_into_what_is_answered_and_what_is_left(
    http: httpx.AsyncClient, proxy: FaultProxy
) -> None:
    proxy.faults = only("unprocessed")
    left_over = set()

    for _ in range(20):
        answer = await get_all(http, proxy)
        left = answer["UnprocessedKeys"].get(TABLE, {"Keys": []})["Keys"]
        found = [{name: item[name] for name in KEYS[0]} for item in answer["Responses"].get(TABLE, [])]
        assert sorted(map(str, [*left, *found])) == sorted(map(str, KEYS))
        left_over.add(len(left))

    assert 20 in left_over
    assert len(left_over) > 3


async def test_connections_break_in_every_way_and_no_answer_is_taken_for_another(
    http: httpx.AsyncClient, proxy: FaultProxy
) -> None:
    expected = (await get(http, proxy)).json()
    proxy.faults = only("reset")
    seen = Counter[str]()

    for _ in range(60):
        try:
            answer = await get(http, proxy)
        except httpx.HTTPError:
            seen["lost"] += 1
        else:
            is_whole = int(answer.headers["X-Amz-Crc32"]) == zlib.crc32(answer.content)
            assert not is_whole or answer.json() == expected
            seen["whole" if is_whole else "damaged"] += 1

    assert set(seen) == {"lost", "whole", "damaged"}
    assert seen["whole"] == proxy.tally["reset after"]
    assert seen["damaged"] == proxy.tally["reset damaged"]
    assert all(proxy.tally[f"reset {way}"] for way in RESETS)


async def test_what_hangs_is_not_answered_while_others_are(http: httpx.AsyncClient, proxy: FaultProxy) -> None:
    proxy.faults = only("hang")
    hanging = asyncio.ensure_future(get(http, proxy))
    while not proxy.tally["hang"]:  # noqa: ASYNC110, the proxy tells nobody but its tally
        await asyncio.sleep(0)
    proxy.faults = only("slow", slow_secs=(0.001, 0.002))

    assert (await get(http, proxy)).status_code == 200

    assert not hanging.done()
    hanging.cancel()


async def test_only_the_tables_that_are_named_have_a_bad_day(http: httpx.AsyncClient, proxy: FaultProxy) -> None:
    proxy.faults = only("failed", tables=frozenset({"another"}))
    assert (await get(http, proxy)).status_code == 200

    proxy.faults = only("failed", tables=frozenset({TABLE, "another"}))
    assert (await get(http, proxy)).status_code >= 500


async def test_an_outage_refuses_connections_until_it_is_over(http: httpx.AsyncClient, proxy: FaultProxy) -> None:
    await get(http, proxy)

    await proxy.refuse()
    with pytest.raises(httpx.HTTPError):
        await get(http, proxy)
    await proxy.listen()

    assert (await get(http, proxy)).status_code == 200
