"""The search index follows the table: over the engine's own stream, through replays, rebuilds and deaths."""

from __future__ import annotations

import asyncio
import pickle
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from graph.loaders import Operation
from graph.maintenance.walk import Tally, Walk
from graph.model import Table
from graph.requests import CreateTable, Item
from graph.search.index import searched_types
from graph.search.rebuild import rebuild
from graph.search.sqlite import SqliteIndex
from graph.search.upkeep import core_documents, search_upkeep
from graph.search.words import tokens, wanted
from graph.streams import reader
from graph.streams.change import Change, Handler, Place, read_change
from graph.streams.lease import Lease
from graph.tables import create_table
from resolvers.sdl import compile_model
from tests.conftest import ROOT, Serve, Served, example_items, way_to
from tests.test_following import SOON, following, reads
from tests.test_search import PLACES, place

B2B = (ROOT / "examples/b2b/schema.graphql").read_text()
STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


@dataclass
class Follower:
    """Reads the stream of a table from its beginning, as far as it goes now, and hands it on."""

    served: Served
    streams: Any
    arn: str
    told: list[Change] = field(default_factory=list)

    async def read(self) -> list[Change]:
        """Give all changes that there are."""
        self.told = await asyncio.to_thread(self._read)
        return self.told

    async def follow(self, handler: Handler, batch: int = 100, start: int = 0) -> None:
        """Hand on the changes from one on, in batches."""
        changes = (await self.read())[start:]
        for number in range(0, len(changes), batch):
            await handler(changes[number : number + batch])

    def _read(self) -> list[Change]:
        found: list[Change] = []
        for shard in self.streams.describe_stream(StreamArn=self.arn)["StreamDescription"]["Shards"]:
            iterator = self.streams.get_shard_iterator(
                StreamArn=self.arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
            while iterator:
                answer = self.streams.get_records(ShardIterator=iterator)
                for record in answer["Records"]:
                    record["dynamodb"].pop("ApproximateCreationDateTime", None)
                    name = f"{self.arn}/{shard['ShardId']}"
                    found.append(read_change(self.served.graph.model, self.served.table, record, name))
                iterator = answer.get("NextShardIterator") if answer["Records"] else None
        return found


Follow = Callable[..., Awaitable[Follower]]


@pytest.fixture
def follow(serve: Serve, engine: str, index: SqliteIndex, request: pytest.FixtureRequest) -> Follow:
    """Serve a model over a table with a stream, beside an index."""

    async def begin(sdl: str = PLACES, items: Iterable[Item] = ()) -> Follower:
        name = f"followed-{abs(hash(request.node.name)):x}"
        made = compile_model(sdl, table=name)
        transport = way_to(engine)
        definition = create_table(made, made.tables[name])
        asked = replace(definition, definition={**definition.definition, "StreamSpecification": STREAM})
        assert isinstance(asked, CreateTable)
        answer = await transport("CreateTable", asked.parameters())
        transport.close()
        served = await serve(sdl, table=name, search=index)
        assert answer is not None
        await served.put(items)
        streams = boto3.client(
            "dynamodbstreams",
            endpoint_url=engine,
            region_name="eu-central-1",
            aws_access_key_id="local",
            aws_secret_access_key="local",
            config=Config(parameter_validation=False),
        )
        arn = streams.list_streams(TableName=name)["Streams"][0]["StreamArn"]
        return Follower(served, streams, arn)

    return begin


@pytest.fixture
def index(tmp_path: Path) -> SqliteIndex:
    """An index in a file of its own."""
    return SqliteIndex(tmp_path / "search.db")


def upkeep(follower: Follower) -> Handler:
    """What keeps the index of a graph."""
    graph = follower.served.graph
    assert graph.search is not None
    return search_upkeep(graph.model, graph.search)


async def build(follower: Follower) -> None:
    """Build the index."""
    await rebuild(Walk(follower.served.graph, 2))


async def found(follower: Follower, text: str, type_name: str = "Place") -> list[str]:
    """The ids that the index has for a text, without a look at the table."""
    graph = follower.served.graph
    assert graph.search is not None
    hits = await graph.search.search(searched_types(graph.model)[type_name], wanted(text), 10_000, None)
    return sorted(hit.id for hit in hits)


def ids(*numbers: object) -> list[str]:
    """The ids of places."""
    return sorted(f'["PLACE#{number}","place"]' for number in numbers)


async def texts(index: SqliteIndex) -> dict[str, tuple[str, ...]]:
    """Everything that the ready index of places holds, by id."""
    await index.close()
    with sqlite3.connect(index._path) as one:
        (number,) = one.execute("SELECT number FROM indexes WHERE is_ready").fetchone()
        rows = one.execute(
            f"SELECT id, f0, f1, f2 FROM documents_{number} JOIN texts_{number} ON document = texts_{number}.rowid"  # noqa: S608
        ).fetchall()
        (count,) = one.execute(f"SELECT count(*) FROM texts_{number}").fetchone()  # noqa: S608
    assert count == len(rows)
    return {id_: tuple(rest) for id_, *rest in rows}


async def truth(follower: Follower) -> dict[str, tuple[str, ...]]:
    """What it has to hold, by the table."""
    held: dict[str, tuple[str, ...]] = {}
    for item in await all_items(follower):
        if not item["pk"]["S"].startswith("PLACE#"):
            # How far the stream is read.
            continue
        number = item["pk"]["S"].removeprefix("PLACE#")
        shown = [item.get(attribute, {}).get("S", "") for attribute in ("name", "about")]
        held[ids(number)[0]] = tuple(map(tokens, (number, *shown)))
    return held


# --- one change after the other -----------------------------------------------------------------------------------


async def test_what_is_written_is_found_and_what_is_deleted_is_not(follow: Follow) -> None:
    follower = await follow()
    await build(follower)
    for text in ("create", "update", "delete"):
        assert await found(follower, text) == []
    await follower.served.data('mutation { createPlace(input: { number: "1", name: "create" }) { place { number } } }')
    await follower.follow(upkeep(follower))
    assert await found(follower, "create") == ids(1)
    await follower.served.data(
        'mutation { updatePlace(key: { number: "1" }, set: { name: "update" }) { place { number } } }'
    )
    await follower.follow(upkeep(follower), start=len(follower.told))
    assert await found(follower, "create") == []
    assert await found(follower, "update") == ids(1)
    await follower.served.data('mutation { deletePlace(key: { number: "1" }) { place { number } } }')
    await follower.follow(upkeep(follower), start=len(follower.told))
    assert await found(follower, "update") == []


async def test_a_store_follows_its_new_key_and_its_copies_do_not_count(follow: Follow) -> None:
    follower = await follow(B2B)
    await build(follower)
    await follower.served.put(example_items("b2b"))
    await follower.follow(upkeep(follower))
    stores = [item for item in example_items("b2b") if item["type"]["S"].startswith("store.")]
    graph = follower.served.graph
    assert graph.search is not None
    assert (await graph.search.status(searched_types(graph.model)["Store"])).documents == len(stores)
    number = stores[0]["id"]["S"]

    await follower.served.data(
        "mutation ($key: StoreKey!) "
        '{ updateStore(key: $key, set: { storeName: "Quixotic Emporium" }) { store { id } } }',
        {"key": {"number": number}},
    )
    await follower.follow(upkeep(follower), start=len(follower.told))

    assert await found(follower, "quixotic", "Store") == [f'["{number}","store.quixotic emporium"]']
    assert (await graph.search.status(searched_types(graph.model)["Store"])).documents == len(stores)
    data = await follower.served.data(
        '{ searchStores(text: "quixotic") { nodes { number storeName customers { totalCount } } } }'
    )
    assert [node["number"] for node in data["searchStores"]["nodes"]] == [number]


async def test_expired_versions_and_receipts_are_not_indexed(follow: Follow) -> None:
    sdl = """
    extend schema @table(name: "notes", partitionKey: "pk", sortKey: "sk")
    type Note @search @history @node(partition: "{number}", sort: "v0") {
      number: ID!
      text: String
      edition: Int @version
      until: DateTime @ttl
    }
    """
    follower = await follow(sdl)
    await build(follower)
    soon = int(time.time()) - 10
    create = (
        'mutation ($input: CreateNoteInput!) { createNote(input: $input, idempotencyKey: "k") { note { number } } }'
    )
    await follower.served.data(create, {"input": {"number": "1", "text": "first words"}})
    await follower.served.data(
        'mutation { updateNote(key: { number: "1" }, set: { text: "second words" }) { note { number } } }'
    )
    await follower.served.put(
        [
            {
                "pk": {"S": "2"},
                "sk": {"S": "v0"},
                "text": {"S": "expired words"},
                "edition": {"N": "1"},
                "until": {"N": str(soon)},
            }
        ]
    )

    await follower.follow(upkeep(follower))
    by_stream = [await found(follower, text, "Note") for text in ("words", "first")]
    await build(follower)

    assert by_stream == [['["1","v0"]'], []]
    assert [await found(follower, text, "Note") for text in ("words", "first")] == by_stream


async def test_an_item_that_becomes_another_type_changes_its_index(follow: Follow) -> None:
    sdl = """
    extend schema @table(name: "things", partitionKey: "pk", type: "kind")
    type Cat @search @node(partition: "{number}") { number: ID!  name: String }
    type Dog @search @node(partition: "{number}") { number: ID!  name: String }
    """
    follower = await follow(sdl)
    await build(follower)
    await follower.served.put([{"pk": {"S": "1"}, "kind": {"S": "Cat"}, "name": {"S": "Rex"}}])
    await follower.served.put([{"pk": {"S": "1"}, "kind": {"S": "Dog"}, "name": {"S": "Rex"}}])

    await follower.follow(upkeep(follower))

    assert [await found(follower, "rex", name) for name in ("Cat", "Dog")] == [[], ['["1"]']]


# --- again, and in any batches ------------------------------------------------------------------------------------


async def write_at_random(follower: Follower, writes: int, seed: int = 1, numbers: int = 25) -> None:
    """Put and delete places."""
    chance = random.Random(seed)
    for _ in range(writes):
        number = chance.randrange(numbers)
        if chance.random() < 0.3:
            # What is not there is refused.
            await follower.served(f'mutation {{ deletePlace(key: {{ number: "{number}" }}) {{ place {{ number }} }} }}')
        else:
            await follower.served.put([place(number, f"acme {chance.choice('abcdef')}{chance.randrange(9)}")])


async def test_replays_in_any_batches_end_at_the_table(follow: Follow, index: SqliteIndex) -> None:
    follower = await follow()
    await build(follower)
    await write_at_random(follower, 200)
    handler = upkeep(follower)
    chance = random.Random(2)

    for _ in range(6):
        await follower.follow(handler, batch=chance.randrange(1, 90), start=chance.randrange(150))

    assert await texts(index) == await truth(follower)


async def test_a_reader_that_comes_late_with_old_changes_does_no_harm(follow: Follow, index: SqliteIndex) -> None:
    follower = await follow()
    await build(follower)
    await write_at_random(follower, 100)
    handler = upkeep(follower)
    await follower.follow(handler)

    # It lost the lease before it had handed these on, and does not know it yet.
    await handler(follower.told[30:60])

    assert await texts(index) == await truth(follower)


async def test_a_new_stream_counts_from_its_own_beginning(index: SqliteIndex, follow: Follow) -> None:
    follower = await follow()
    await build(follower)
    before = Change(("x", ()), None, place(1, "old"), Place("a stream", 10**30))
    after = replace(before, after=place(1, "new"), place=Place("the stream that was switched on after it", 5))
    key = (follower.served.table, (("pk", "PLACE#1"), ("sk", "place")))
    handler = upkeep(follower)

    for change in (before, after):
        await handler([replace(change, key=key)])

    assert (await found(follower, "old"), await found(follower, "new")) == ([], ids(1))


# --- rebuilding ---------------------------------------------------------------------------------------------------


async def test_a_rebuild_while_others_write_loses_nothing(follow: Follow, index: SqliteIndex) -> None:
    follower = await follow(items=[place(number, f"acme {number}") for number in range(300)])
    await build(follower)
    handler = upkeep(follower)
    is_over = asyncio.Event()
    missing: list[bool] = []

    async def write() -> None:
        for seed in range(12):
            await write_at_random(follower, 15, seed, numbers=300)

    async def keep() -> None:
        start = 0
        while not is_over.is_set():
            await follower.follow(handler, batch=7, start=start)
            # As a reader that was killed before its checkpoint: some come again.
            start = max(0, len(follower.told) - 5)

    async def search() -> None:
        while not is_over.is_set():
            missing.append(not await found(follower, "acme"))

    async def build_again() -> None:
        for _ in range(3):
            await build(follower)

    others = asyncio.gather(keep(), search())
    await asyncio.gather(write(), build_again())
    is_over.set()
    await others
    await follower.follow(handler, start=max(0, len(follower.told) - 5))

    # The old index serves until the new one is whole.
    assert not any(missing)
    assert await texts(index) == await truth(follower)


async def test_what_a_change_brought_meanwhile_wins_over_what_the_walk_read(follow: Follow) -> None:
    follower = await follow(items=[place(1, "old"), place(2, "gone")])
    graph = follower.served.graph
    assert graph.search is not None
    await build(follower)
    building = await graph.search.rebuild(list(searched_types(graph.model).values()))
    read = await all_items(follower)
    await follower.served.data(
        'mutation { updatePlace(key: { number: "1" }, set: { name: "new" }) { place { number } } '
        'deletePlace(key: { number: "2" }) { place { number } } }'
    )
    await follower.follow(upkeep(follower))

    await building.add(core_documents(graph.model, graph.model.tables[follower.served.table], read))
    await building.finish()

    assert [await found(follower, text) for text in ("old", "new", "gone")] == [[], ids(1), []]


async def all_items(follower: Follower) -> list[Item]:
    """Everything in the table."""
    items: list[Item] = []

    async def visit(_: Operation, table: Table, name: str, page: list[Item]) -> None:
        items.extend(page)

    await Walk(follower.served.graph, 1).through(visit)
    return items


async def test_a_rebuild_that_fails_leaves_the_old_index(follow: Follow) -> None:
    follower = await follow(items=[place(1, "acme")])
    await build(follower)
    graph = follower.served.graph

    def fail(_: Tally) -> None:
        raise RuntimeError("the walk ends here")

    walk = Walk(graph, 1, fail)
    with pytest.raises(RuntimeError):
        await rebuild(walk)

    assert await found(follower, "acme") == ids(1)
    assert graph.search is not None
    assert not (await graph.search.status(searched_types(graph.model)["Place"])).is_building


# --- the server ---------------------------------------------------------------------------------------------------


async def test_a_server_keeps_the_index_from_the_rebuild_on(
    engine: str, serve: Serve, index: SqliteIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A first reader would begin with what is written in an hour.
    monkeypatch.setattr(reader, "PAST_SECS", -3600)
    served = await serve(PLACES, [place(1, "acme")], search=index)
    await rebuild(Walk(served.graph, 1))
    # Before anybody reads the stream.
    await served.data('mutation { createPlace(input: { number: "2", name: "between" }) { place { number } } }')
    settings = replace(SOON, search=str(index._path))

    async with following(engine, served, settings) as (made, _):
        await served.data('mutation { createPlace(input: { number: "3", name: "acme" }) { place { number } } }')
        await reads(made)
        query = "query ($text: String!) { searchPlaces(text: $text) { nodes { number } } }"
        found = [(await served.data(query, {"text": text}))["searchPlaces"]["nodes"] for text in ("between", "acme")]

    assert found == [[{"number": "2"}], [{"number": "1"}, {"number": "3"}]]


async def test_a_rebuild_leaves_alone_how_far_the_stream_is_read(engine: str, serve: Serve, index: SqliteIndex) -> None:
    served = await serve(PLACES, search=index)
    async with following(engine, served, replace(SOON, search=str(index._path))) as (made, _):
        await served.put([place(1, "acme")])
        await reads(made)
    before = await Lease(served.graph).look()

    await rebuild(Walk(served.graph, 1))

    assert await Lease(served.graph).look() == before != {}


# --- death --------------------------------------------------------------------------------------------------------

DOOMED = """
import asyncio, pickle, sys
from pathlib import Path
from graph.search.sqlite import SqliteIndex
from graph.search.upkeep import search_upkeep
from resolvers.sdl import compile_model

async def main():
    sdl, table, path, told = pickle.loads(sys.stdin.buffer.read())
    model = compile_model(sdl, table=table)
    handler = search_upkeep(model, SqliteIndex(Path(path)))
    done = 0
    while True:
        # Over and over: it never ends by itself.
        await handler(told[done % len(told):][:40])
        done += 40
        print(min(done, len(told)), flush=True)

asyncio.run(main())
"""


async def test_an_index_outlives_the_death_of_whoever_writes_it(follow: Follow, index: SqliteIndex) -> None:
    follower = await follow()
    await build(follower)
    await write_at_random(follower, 300)
    told = await follower.read()
    await index.close()
    chance = random.Random(3)
    for _ in range(4):
        command = [sys.executable, "-c", DOOMED]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as doomed:  # noqa: ASYNC220
            assert doomed.stdin is not None
            assert doomed.stdout is not None
            doomed.stdin.write(pickle.dumps((PLACES, follower.served.table, str(index._path), told)))
            doomed.stdin.close()
            # In the middle of some batch behind this one.
            lines = [doomed.stdout.readline() for _ in range(chance.randrange(1, 30))]
            assert all(lines)
            doomed.send_signal(signal.SIGKILL)
        # It is usable at once, and what was kept is there.
        assert isinstance(await found(follower, "acme"), list)

    # From the last checkpoint, or from the beginning.
    await follower.follow(upkeep(follower), start=0)

    assert await texts(index) == await truth(follower)


async def test_a_death_while_the_index_is_built_anew_leaves_the_old_one(follow: Follow, index: SqliteIndex) -> None:
    follower = await follow(items=[place(1, "acme")])
    await build(follower)
    graph = follower.served.graph
    assert graph.search is not None
    types = list(searched_types(graph.model).values())
    # Nobody finishes it.
    await SqliteIndex(index._path).rebuild(types)

    assert (await index.status(types[0])).is_building
    assert await found(follower, "acme") == ids(1)
    await build(follower)
    assert not (await index.status(types[0])).is_building
    assert await found(follower, "acme") == ids(1)
