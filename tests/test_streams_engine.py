"""The reader on the engine's own stream, by both ways to it, and by processes that are killed.

Run as a program it reads a table's stream and writes the changes into a file, for the tests that kill it.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from graph.client import Client
from graph.errors import StreamError
from graph.loaders import Graph
from graph.ours import is_ours
from graph.requests import Action, Item, PutItems, Scan, TransactWriteItems, UpdateTable
from graph.streams import reader as reader_
from graph.streams.change import Change, ChangeKind, Handler
from graph.streams.lease import Lease
from graph.streams.reader import Reader
from graph.streams.replay import replay
from graph.streams.source import Source
from resolvers.sdl import compile_model
from server.demo import turn_on_stream
from tests.conftest import ROOT, Serve, Served, way_to
from tests.shop import brief

SDL = """
extend schema @table(name: "fleet", partitionKey: "PK", sortKey: "SK")
type Ship @node(key: "SHIP#{code}") { code: ID!  trips: Int @attribute(name: "Trips")  flag: Base64 }
type Query { ships: [Ship!]! @find(scan: true) }
"""
POLL_SECS = 0.05


def ship(code: object, **attributes: Any) -> Item:
    key = {"S": f"SHIP#{code}"}
    return {"PK": key, "SK": key, **attributes}


async def put(graph: Graph, *items: Item) -> None:
    await graph.send(PutItems(next(iter(graph.model.tables)), items))


@asynccontextmanager
async def reading(
    engine: str, graph: Graph, handlers: Mapping[str, Handler], kind: str = "wire"
) -> AsyncIterator[Reader]:
    """Read the stream of a graph's table, once there is nothing more to be read."""
    with closing(way_to(engine, kind, "dynamodbstreams")) as way:
        reader = Reader(Source(graph, Client(way)), Lease(graph), handlers, POLL_SECS)
        task = asyncio.create_task(reader.run())
        try:
            async with asyncio.timeout(20):
                await reader.caught_up()
                yield reader
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.fixture
async def fleet(serve: Serve) -> Served:
    served = await serve(SDL)
    await turn_on_stream(served.graph, served.table)
    return served


@pytest.mark.parametrize("kind", ["wire", "boto3"])
async def test_what_is_written_past_us_is_told_as_it_was_and_as_it_is(engine: str, fleet: Served, kind: str) -> None:
    told: list[Change] = []
    flag = {"B": "aGFsbG8="}

    async def keep(changes: Sequence[Change]) -> None:
        told.extend(changes)

    async with reading(engine, fleet.graph, {"keep": keep}, kind) as reader:
        await put(fleet.graph, ship("a", flag=flag))
        await put(fleet.graph, ship("a", flag=flag))
        await put(fleet.graph, ship("a", Trips={"N": "1"}))
        key = (("PK", "SHIP#a"), ("SK", "SHIP#a"))
        await fleet.graph.send(TransactWriteItems((Action(fleet.table, key, delete=True),), str(uuid.uuid4())))
        await reader.caught_up()
        assert reader.lag == 0

    assert [change.kind for change in told] == [ChangeKind.CREATED, ChangeKind.CHANGED, ChangeKind.REMOVED]
    assert told[0].after == ship("a", flag=flag)
    assert told[1].before == told[0].after
    assert told[2].before == told[1].after == ship("a", Trips={"N": "1"})
    assert {change.key for change in told} == {(fleet.table, key)}
    assert abs(told[0].at - time.time()) < 60


async def test_item_of_the_lease_is_nobodys_data(engine: str, fleet: Served) -> None:
    told: list[Change] = []

    async def keep(changes: Sequence[Change]) -> None:
        told.extend(changes)

    async with reading(engine, fleet.graph, {"keep": keep}) as reader:
        await asyncio.sleep(2 * 1.1)
        await reader.caught_up()

        (item,) = (await fleet.graph.send(Scan(fleet.table, 0, 1)))["Items"]
        assert is_ours(item, fleet.graph.model.tables[fleet.table])
        assert await brief(fleet) == []
        assert await fleet.data("{ ships { nodes { code } } }") == {"ships": {"nodes": []}}
    assert told == []


async def test_replay_goes_on_behind_a_place(engine: str, fleet: Served) -> None:
    async def ignore(changes: Sequence[Change]) -> None:
        pass

    with closing(way_to(engine, service="dynamodbstreams")) as way:
        source = Source(fleet.graph, Client(way))
        async with reading(engine, fleet.graph, {"ignore": ignore}) as reader:
            await put(fleet.graph, ship(1))
            await reader.caught_up()
            places = dict(reader.places())
            await put(fleet.graph, ship(2), ship(3))

            found = [change.after async for change in replay(source, places)]

    assert sorted(str(item["PK"]) for item in found if item) == ["{'S': 'SHIP#2'}", "{'S': 'SHIP#3'}"]


async def test_table_without_a_stream_says_what_turns_it_on(engine: str, fleet: Served) -> None:
    await fleet.graph.send(UpdateTable(fleet.table, {"StreamSpecification": {"StreamEnabled": False}}))

    cure = re.escape("has no stream, so nobody is told of what is written to it: `tablegraph table apply` turns it on")
    with closing(way_to(engine, service="dynamodbstreams")) as way, pytest.raises(StreamError, match=cure):
        await Source(fleet.graph, Client(way)).streams()


async def test_tables_of_a_time_series_are_followed_those_to_come_from_their_beginning(
    engine: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader_, "LOOK_SECS", 0.1)
    sdl = """extend schema @table(name: "sensors", partitionKey: "id")
      @table(name: "readings_{time:yyyyMM}", partitionKey: "sensor", sortKey: "time")
    type Sensor @node(partition: "{number}", table: "sensors") { number: ID! }
    type Reading @node(partition: "{sensor}", sort: "{time}", table: "readings_{time:yyyyMM}") {
      sensor: ID!  time: DateTime! }"""
    wanted = {("202601", "2026-01-02T00:00:00Z"), ("202602", "2026-02-02T00:00:00Z")}
    served, both = await serve(sdl), asyncio.Event()
    told: set[tuple[str, str]] = set()

    async def keep(changes: Sequence[Change]) -> None:
        told.update((change.key[0].rpartition("_")[2], str(change.key[1][1][1])) for change in changes)
        if told >= wanted:
            both.set()

    def measured(time: str) -> Item:
        return {"sensor": {"S": "one"}, "time": {"S": time}}

    sensors, readings = served.graph.model.tables.values()
    await turn_on_stream(served.graph, sensors.name)
    await served.put([measured("2025-12-01T00:00:00Z"), measured("2026-01-01T00:00:00Z")])
    assert readings.period is not None
    # That of December has no stream, and is left alone.
    await turn_on_stream(served.graph, readings.period.name("2026-01-01"))
    async with reading(engine, served.graph, {"keep": keep}):
        await served.put([measured("2026-01-02T00:00:00Z"), measured("2026-02-01T00:00:00Z")])
        await turn_on_stream(served.graph, readings.period.name("2026-02-01"))
        await served.put([measured("2026-02-02T00:00:00Z")])
        await both.wait()


# --- kill -9 ------------------------------------------------------------------------------------------------------


@contextmanager
def process(engine: str, table: str, out: Path) -> Any:
    """Run this file: a process that reads, and writes down what it has handled."""
    arguments = [sys.executable, __file__, engine, table, str(out)]
    with subprocess.Popen(arguments, env=os.environ | {"PYTHONPATH": str(ROOT)}, cwd=ROOT) as running:
        try:
            yield running
        finally:
            running.kill()


async def lines(out: Path, enough: Callable[[list[str]], bool]) -> list[str]:
    """Wait until enough is written."""
    while True:
        # The last line may be half of one: the process was killed.
        found = out.read_text().split("\n")[:-1] if out.exists() else []
        if enough(found):
            return found
        await asyncio.sleep(0.02)


def numbers(found: list[str]) -> list[int]:
    return [int(line) for line in found if line.isdigit()]


async def test_nothing_is_lost_when_readers_are_killed_and_others_take_over(
    engine: str, fleet: Served, tmp_path: Path
) -> None:
    outs = [tmp_path / name for name in ("first", "second", "third")]
    count = 400
    written = 0

    async def write(upto: int) -> None:
        nonlocal written
        while written < upto:
            await put(fleet.graph, ship(written % 7, Trips={"N": str(written)}))
            written += 1
            await asyncio.sleep(0.002)

    async with asyncio.timeout(60):
        with process(engine, fleet.table, outs[0]) as first, process(engine, fleet.table, outs[1]) as second:
            begun = await either(outs[:2])
            victim, standby = (first, second) if begun == 0 else (second, first)
            await write(100)
            await lines(outs[begun], lambda found: len(numbers(found)) > 10)
            victim.kill()
            await write(200)
            await lines(outs[1 - begun], lambda found: max(numbers(found), default=0) > 150)
            standby.kill()
            with process(engine, fleet.table, outs[2]):
                await write(count)
                await lines(outs[2], lambda found: max(numbers(found), default=0) == count - 1)

    told = [numbers(out.read_text().split("\n")[:-1]) for out in outs]
    assert {number for one in told for number in one} == set(range(count))
    for one in told:
        assert all([n for n in one if n % 7 == code] == sorted(n for n in one if n % 7 == code) for code in range(7))


async def either(outs: list[Path]) -> int:
    """Wait until one of them reads, and say which."""
    while True:
        for number, out in enumerate(outs):
            if out.exists() and "reading" in out.read_text():
                return number
        await asyncio.sleep(0.02)


async def main(engine: str, table: str, out: str) -> None:
    model = compile_model(SDL, table=table)
    with open(out, "a", buffering=1) as file, closing(way_to(engine)) as way:  # noqa: ASYNC230 (a line for each change)
        graph = Graph(model, Client(way))

        async def keep(changes: Sequence[Change]) -> None:
            for change in changes:
                assert change.after is not None
                file.write(change.after["Trips"]["N"] + "\n")
                await asyncio.sleep(0.003)

        with closing(way_to(engine, service="dynamodbstreams")) as streams:
            source = Source(graph, Client(streams))
            reader = Reader(source, Lease(graph, good_for_secs=2), {"keep": keep}, POLL_SECS)
            task = asyncio.create_task(reader.run())
            await reader.caught_up()
            file.write("reading\n")
            await task


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
