"""Copies by stream: a mutation writes the core item alone, and everything made of it follows, whatever happens."""

from __future__ import annotations

import asyncio
import logging
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from graph.client import Client, Transport
from graph.errors import AccessRefused
from graph.loaders import Graph, Limits
from graph.ours import COPIES
from graph.requests import Scan
from graph.streams.change import Place
from graph.streams.copies import Copies
from graph.streams.progress import Progress
from tests.conftest import Serve, Served
from tests.shop import FILL, SHOP, brief, changed, write
from tests.streams import Chaos, Stream, catch_up, stream_of
from tests.written import Stored, actions, codes, item, s, stored

FOLLOWED = SHOP.replace('type: "kind"', 'type: "kind", copies: STREAM')

HOTEL = """extend schema
  @table(name: "hotel", partitionKey: "pk", sortKey: "sk", copies: STREAM)
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type Room @node(partition: "ROOM#{number}", sort: "IN#{floor}", ref: "ROOM#{number}") {
  number: ID!
  floor: String!
  colour: String
  guests: [Guest!]! @relationship
}
type Guest @node(key: "GUEST#{number}") {
  number: ID!
  name: String
  rooms: [Room!]! @relationship
}
type Stay
  @edge(partition: "{guest}", sort: "{room}", copy: "room")
  @edge(partition: "{room}", sort: "{since}#{guest}", copy: "guest") {
  room: Room!
  guest: Guest!
  since: Date!
  note: String
}
"""

LABELLED = """extend schema
  @table(name: "parcels", partitionKey: "pk", sortKey: "sk", copies: STREAM)
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
  @index(name: "by-label", partitionKey: "all", sortKey: "label-key")
type Sender @node(key: "SENDER#{number}") {
  number: ID!
  label: String
  town: String
  parcels: [Parcel!]! @relationship
}
type Parcel @node(key: "PARCEL#{number}") { number: ID! }
type Sending @edge(partition: "{sender}", sort: "{parcel}", copy: "sender")
  @indexed(by: "by-label", partition: "ALL", sort: "{sender.label}#{parcel.number}") {
  sender: Sender!
  parcel: Parcel!
}
"""

CATALOGUE = """extend schema
  @table(name: "catalogue", partitionKey: "pk", sortKey: "sk", copies: STREAM)
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type Author @node(key: "AUTHOR#{number}") { number: ID!  name: String  born: Int }
type Book @node(key: "BOOK#{number}") { number: ID!  title: String  authors: [Author!]! @relationship }
type Authorship @edge(partition: "{book}", sort: "{author}", copy: "author") { book: Book!  author: Author! }
"""
BOOKS = 2_000


async def followed(engine: str, serve: Serve) -> tuple[Served, Stream, Copies]:
    """Serve the shop of copies by stream, and have everything follow that filling it has left."""
    served = await serve(FOLLOWED, limits=Limits())
    await served.data(FILL)
    stream, copies = stream_of(engine, served), Copies(served.graph)
    await catch_up(stream, copies.follow)
    return served, stream, copies


def without_shards(found: Stored) -> Stored:
    """Leave out what is drawn at random."""
    return {key: {name: value for name, value in one.items() if name != "shard"} for key, one in found.items()}


# --- what is written, and what follows -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mutation", "done", "then"),
    [
        ('updatePerson(key: { number: "2" }, set: { name: "Zed" }) { person { name } }', ["Update"], 4),
        (
            'createJob(input: { shop: { number: "2" }, person: { number: "1" } }) { job { hours } }',
            ["ConditionCheck", "Put", "Update"],
            1,
        ),
        (
            'updateJob(key: { shop: { number: "1" }, person: { number: "1" } }, set: { since: "2020-01-01" }) '
            "{ job { hours } }",
            ["Update"],
            1,
        ),
        (
            'deleteJob(key: { shop: { number: "1" }, person: { number: "1" } }) { job { hours } }',
            ["Delete", "Update"],
            1,
        ),
        ('updateShop(key: { number: "1" }, set: { city: "Rome" }) { shop { city } }', ["Update"], 3),
    ],
    ids=["a node with copies", "a new edge", "an edge", "an edge that goes", "what index keys are made of"],
)
async def test_a_mutation_writes_the_core_item_and_the_rest_follows(
    engine: str, serve: Serve, mutation: str, done: list[str], then: int
) -> None:
    served, stream, copies = await followed(engine, serve)
    plain = await serve(SHOP, limits=Limits())
    await plain.data(FILL)
    before = copies.mended

    await served.data(f"mutation {{ {mutation} }}")
    assert sorted(actions(served)) == done
    assert await brief(served) != []

    await catch_up(stream, copies.follow)
    await plain.data(f"mutation {{ {mutation} }}")
    assert await brief(served) == []
    assert copies.mended - before == then
    assert without_shards(await stored(served)) == without_shards(await stored(plain))


async def test_a_name_is_changed_with_the_items_that_it_names_and_their_mirrors_follow(
    engine: str, serve: Serve
) -> None:
    served = await serve(HOTEL)
    await served.data(
        """mutation { createRoom(input: { number: "1", floor: "a", colour: "red", guests: [
          { since: "2020-01-01", guest: { create: { number: "7", name: "Ann" } } } ] }) { __typename } }"""
    )
    stream, copies = stream_of(engine, served), Copies(served.graph)
    await catch_up(stream, copies.follow)

    await served.data(
        'mutation { updateRoom(key: { number: "1" }, set: { number: "2", colour: null }) { __typename } }'
    )

    keys = {key for key in await stored(served) if "GUEST" in str(key)}
    assert keys == {("GUEST#7", "GUEST#7"), ("GUEST#7", "ROOM#2"), ("ROOM#1", "2020-01-01#GUEST#7")}
    await catch_up(stream, copies.follow)
    found = await stored(served)
    assert found.keys() == keys - {("ROOM#1", "2020-01-01#GUEST#7")} | {
        ("ROOM#2", "2020-01-01#GUEST#7"),
        ("ROOM#2", "IN#a"),
    }
    assert found["GUEST#7", "ROOM#2"] == item("GUEST#7", "ROOM#2", since="2020-01-01")


async def test_a_node_that_moves_without_another_name_is_followed(engine: str, serve: Serve) -> None:
    served = await serve(HOTEL)
    await served.data(
        """mutation { createRoom(input: { number: "1", floor: "a", colour: "red", guests: [
          { since: "2020-01-01", guest: { create: { number: "7" } } } ] }) { __typename } }"""
    )
    stream, copies = stream_of(engine, served), Copies(served.graph)
    await catch_up(stream, copies.follow)

    await served.data(
        'mutation { updateRoom(key: { number: "1" }, set: { floor: "b", colour: "blue" }) { __typename } }'
    )
    assert sorted(actions(served)) == ["Delete", "Put"]

    await catch_up(stream, copies.follow)
    assert (await stored(served))["GUEST#7", "ROOM#1"]["colour"] == s("blue")
    assert await brief(served) == []


async def test_what_is_written_past_us_is_followed(engine: str, serve: Serve) -> None:
    served, stream, copies = await followed(engine, serve)
    before = await changed(served, "PERSON#2", "person", {"name": s("Zed"), "data": s("zed")})
    await write(served, gone=[before["SHOP#2", "PERSON#2"]])

    await catch_up(stream, copies.follow)

    found = await stored(served)
    assert ("PERSON#2", "SHOP#2") not in found
    assert found["SHOP#1", "PERSON#2"]["name"] == s("Zed")
    assert found["SHOP#1", "PERSON#2"]["data"] == s("zed")
    # What it counts is none of the copies' business.
    assert await brief(served) == ["WRONG_COUNT SHOP#2/shop staff: 0, 1"]


async def test_a_change_that_comes_again_writes_nothing(engine: str, serve: Serve) -> None:
    served, stream, copies = await followed(engine, serve)
    await served.data('mutation { updatePerson(key: { number: "2" }, set: { name: "Zed" }) { __typename } }')
    changes = stream.read()
    await copies.follow(changes)
    before, mended = await stored(served), copies.mended

    await copies.follow(changes)

    assert copies.mended == mended
    assert await stored(served) == before


async def test_what_nothing_is_made_of_costs_nothing(engine: str, serve: Serve) -> None:
    served, stream, copies = await followed(engine, serve)
    # A counter is not copied, and a Note's text is in no key.
    await served.data(
        'mutation { updateJob(key: { shop: { number: "1" }, person: { number: "1" } }, increment: { hours: 1 }) '
        "{ __typename } }"
    )
    changes = [change for change in stream.read() if change.key[1][1][1] == "shop"]
    assert len(changes) == 1
    served.sent.clear()

    await copies.follow(changes)

    assert served.sent == []


async def test_a_value_that_cannot_be_in_a_key_that_follows_is_refused(serve: Serve) -> None:
    served = await serve(LABELLED)
    await served.data('mutation { createSender(input: { number: "1", label: "a" }) { __typename } }')

    error = await served.error('mutation { updateSender(key: { number: "1" }, set: { label: "a#b" }) { __typename } }')

    assert error["extensions"]["code"] == "BAD_KEY_VALUE"
    assert "label = 'a#b'" in error["message"]
    await served.data('mutation { updateSender(key: { number: "1" }, set: { label: null }) { __typename } }')


async def test_what_cannot_be_a_key_is_left_and_the_rest_follows(
    engine: str, serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served = await serve(LABELLED)
    stream, copies = stream_of(engine, served), Copies(served.graph)
    await served.data(
        """mutation { createSender(input: { number: "1", label: "a", parcels: [
          { parcel: { create: { number: "1" } } }, { parcel: { create: { number: "2" } } } ] }) { __typename } }"""
    )
    await catch_up(stream, copies.follow)
    # Past us, for we would refuse it; and what is not to be a number of one parcel stands in the way of the other.
    await changed(served, "SENDER#1", "SENDER#1", {"label": s("x" * 1100), "town": s("Ulm")})

    with caplog.at_level(logging.WARNING):
        await catch_up(stream, copies.follow)

    found = await stored(served)
    assert [found["SENDER#1", f"PARCEL#{number}"]["town"] for number in "12"] == [s("Ulm")] * 2
    assert {one.split(" ")[0] for one in await brief(served)} == {"BAD_VALUE"}


@pytest.mark.parametrize(
    "spoilt",
    [("PERSON#2", "person", "name"), ("PERSON#2", "person", "skills"), ("SHOP#1", "PERSON#2", "hours")],
    ids=["what keys are made of", "what is copied", "a field of the edge"],
)
async def test_a_node_that_is_not_what_the_model_says_stops_nothing(
    engine: str, serve: Serve, spoilt: tuple[str, str, str]
) -> None:
    served, stream, copies = await followed(engine, serve)
    partition, sort, attribute = spoilt
    await changed(served, partition, sort, {attribute: {"BOOL": True}})
    await served.data('mutation { updateShop(key: { number: "1" }, set: { city: "Rome" }) { __typename } }')

    await catch_up(stream, copies.follow)

    found = await stored(served)
    assert found["PERSON#1", "SHOP#1"]["city"] == s("Rome")
    assert found["SHOP#1", "NOTE#1"]["data"] == s("Rome#1")


# --- many copies -----------------------------------------------------------------------------------------------------


@dataclass
class Cut:
    """A way to the engine that ends after so many requests that write."""

    transport: Transport
    writes_left: float = float("inf")
    sent: list[str] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[None]] | None = None
    """What others do before the first write."""

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> Any:
        self.writes_left -= operation == "TransactWriteItems"
        if self.writes_left < 0:
            raise AccessRefused("killed")
        if operation == "TransactWriteItems" and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()
        self.sent.append(operation)
        return await self.transport(operation, parameters)


async def catalogue(serve: Serve, books: int = BOOKS) -> Served:
    """Serve one author of many books, each with a copy of the author."""
    served = await serve(CATALOGUE, limits=Limits())
    numbers = [f"{number:05}" for number in range(books)]
    await served.put([item("AUTHOR#1", "AUTHOR#1", name="Ann")])
    await served.put([item(f"BOOK#{number}", f"BOOK#{number}", title="T") for number in numbers])
    await served.put([item(f"BOOK#{number}", "AUTHOR#1", name="Ann") for number in numbers])
    return served


RENAME = 'mutation { updateAuthor(key: { number: "1" }, set: { name: "Zoe" }) { author { name } } }'


def names_of(found: Stored) -> list[str]:
    return [one["name"]["S"] for key, one in found.items() if key[1] == "AUTHOR#1" and key[0] != "AUTHOR#1"]


async def progress_of(served: Served) -> list[Any]:
    """List what is written down about how far it is."""
    page = await served.graph.send(Scan(served.table, 0, 1))
    return [one[COPIES] for one in page["Items"] if COPIES in one]


@contextmanager
def following(engine: str, served: Served, folder: Path, stream: Stream) -> Iterator[subprocess.Popen[bytes]]:
    """Have a process of its own follow the stream of a catalogue."""
    schema = folder / "schema.graphql"
    schema.write_text(CATALOGUE)
    command = [sys.executable, "-m", "tests.streams", engine, str(schema), served.table, stream.places()]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_more_copies_than_a_transaction_takes_follow_and_who_is_killed_goes_on(
    engine: str, transport: Transport, serve: Serve, tmp_path: Path
) -> None:
    served = await catalogue(serve)
    stream = stream_of(engine, served)
    stream.read()
    stream.acknowledge()

    await served.data(RENAME)
    assert actions(served) == ["Update"]
    changes = stream.read()

    with following(engine, served, tmp_path, stream) as process:
        while not await progress_of(served):
            assert process.poll() is None, "it has ended before it could be killed"
            await asyncio.sleep(0.01)
        process.kill()
    so_far = names_of(await stored(served)).count("Zoe")
    assert 0 < so_far < BOOKS

    again = Cut(transport)
    copies = Copies(Graph(served.graph.model, Client(again)))
    await copies.follow(changes)

    assert names_of(await stored(served)) == ["Zoe"] * BOOKS
    assert copies.mended == BOOKS - so_far
    # The page that it was killed in, and what is behind it: the others are not looked at again.
    assert again.sent.count("Query") <= (BOOKS - so_far) // 200 + 4
    assert await brief(served) == []


async def test_the_progress_is_no_data_and_is_taken_away(engine: str, transport: Transport, serve: Serve) -> None:
    served = await catalogue(serve, 500)
    stream = stream_of(engine, served)
    stream.read()
    await served.data(RENAME)
    changes = stream.read()
    with pytest.raises(AccessRefused):
        await Copies(Graph(served.graph.model, Client(Cut(transport, writes_left=15)))).follow(changes)

    assert len(await progress_of(served)) == 1
    assert {one.split()[0] for one in await brief(served)} == {"WRONG_COPY"}
    await Copies(served.graph).follow(changes)
    assert await progress_of(served) == []


async def test_an_earlier_change_brings_what_a_later_one_has_made_of_the_node(
    engine: str, transport: Transport, serve: Serve
) -> None:
    served = await catalogue(serve, 500)
    stream = stream_of(engine, served)
    stream.read()
    await served.data(RENAME)
    earlier = stream.read()
    with pytest.raises(AccessRefused):
        await Copies(Graph(served.graph.model, Client(Cut(transport, writes_left=15)))).follow(earlier)
    await served.data(RENAME.replace("Zoe", "Eve"))

    copies = Copies(served.graph)
    await copies.follow(earlier)
    assert "Eve" in names_of(await stored(served)), "a node that is written all the time is followed all the same"
    await catch_up(stream, copies.follow)

    assert names_of(await stored(served)) == ["Eve"] * 500
    assert await progress_of(served) == []


async def test_a_change_of_something_else_does_not_end_the_work(engine: str, serve: Serve) -> None:
    served = await catalogue(serve, 3)
    stream = stream_of(engine, served)
    stream.read()
    await served.data(RENAME)
    earlier = stream.read()
    await served.data('mutation { updateAuthor(key: { number: "1" }, set: { born: 1900 }) { __typename } }')

    await Copies(served.graph).follow(earlier)

    assert names_of(await stored(served)) == ["Zoe"] * 3


async def test_who_wrote_what_has_changed_meanwhile_looks_again(
    engine: str, transport: Transport, serve: Serve
) -> None:
    served = await catalogue(serve, 3)
    stream = stream_of(engine, served)
    stream.read()
    await served.data(RENAME)
    earlier = stream.read()

    async def back() -> None:
        # The copies are as they must be then, so that this finds nothing to do.
        await served.data(RENAME.replace("Zoe", "Ann"))
        await Copies(served.graph).follow(stream.read())

    slow = Cut(transport, meanwhile=back)
    await Copies(Graph(served.graph.model, Client(slow))).follow(earlier)

    assert slow.meanwhile is None
    assert names_of(await stored(served)) == ["Ann"] * 3


async def test_progress_of_another_change_does_not_count(serve: Serve) -> None:
    served = await catalogue(serve, 1)
    key = served.table, (("pk", "AUTHOR#1"), ("sk", "AUTHOR#1"))
    first, other = Place("shard", 1), Place("shard", 2)
    assert await Progress(served.graph, key, first, "x").reach(0, "a") == (0, "a")

    assert await Progress(served.graph, key, first, "x").reach(0, "0") == (0, "a")
    assert await Progress(served.graph, key, first, "y").reach(0, "b") == (0, "b")
    assert await Progress(served.graph, key, other, "y").reach(1, "c") == (1, "c")


# --- any writes, in any order ----------------------------------------------------------------------------------------


def shop_write(dice: random.Random) -> str:
    """Draw a mutation of the shop."""
    one, two = dice.choice("123"), dice.choice("123")
    ends = f'shop: {{ number: "{one}" }}, person: {{ number: "{two}" }}'
    owner = dice.choice(["null", f'{{ number: "{two}" }}'])
    name, place = dice.choice(["Ann", "ANN", "Bob", "Zed"]), '"Ulm"'
    return dice.choice(
        [
            f'createPerson(input: {{ number: "{two}", name: "{name}" }})',
            f'updatePerson(key: {{ number: "{two}" }}, set: {{ name: "{name}" }})',
            f'updatePerson(key: {{ number: "{two}" }}, append: {{ skills: ["{name}"] }})',
            f'updatePerson(key: {{ number: "{two}" }}, set: {{ skills: null }})',
            f'deletePerson(key: {{ number: "{two}" }}, cascade: true)',
            f'createShop(input: {{ number: "{one}", name: "{name}", owner: {owner} }})',
            f'updateShop(key: {{ number: "{one}" }}, set: {{ city: {dice.choice(["null", place])} }})',
            f'updateShop(key: {{ number: "{one}" }}, set: {{ name: "{name}", owner: {owner} }})',
            f'deleteShop(key: {{ number: "{one}" }}, cascade: true)',
            f"upsertJob(input: {{ {ends}, hours: {dice.randrange(9)} }})",
            f"upsertJob(input: {{ {ends}, since: null }})",
            f"deleteJob(key: {{ {ends} }})",
            f'upsertNote(input: {{ shop: {{ number: "{one}" }}, number: "{two}", text: "x" }})',
        ]
    )


def hotel_write(dice: random.Random) -> str:
    """Draw a mutation of the hotel, where mirrors move by a field of their own and rooms by their floor."""
    one, two = dice.choice("123"), dice.choice("123")
    ends = f'room: {{ number: "{one}" }}, guest: {{ number: "{two}" }}'
    since = f'since: "2020-01-0{dice.randrange(1, 4)}"'
    value = dice.choice(["null", '"x"', '"y"'])
    return dice.choice(
        [
            f'createRoom(input: {{ number: "{one}", floor: "a", colour: {value} }})',
            f'updateRoom(key: {{ number: "{one}" }}, set: {{ floor: "{two}" }})',
            f'updateRoom(key: {{ number: "{one}" }}, set: {{ colour: {value}, floor: "{two}" }})',
            f'updateRoom(key: {{ number: "{one}" }}, set: {{ number: "{two}" }})',
            f'updateRoom(key: {{ number: "{one}" }}, set: {{ number: "{two}", colour: {value} }})',
            f'deleteRoom(key: {{ number: "{one}" }}, cascade: true)',
            f'upsertGuest(input: {{ number: "{two}", name: {value} }})',
            f'updateGuest(key: {{ number: "{two}" }}, set: {{ number: "{one}" }})',
            f'deleteGuest(key: {{ number: "{two}" }}, cascade: true)',
            f"upsertStay(input: {{ {ends}, {since} }})",
            f"upsertStay(input: {{ {ends}, {since}, note: {value} }})",
            f"updateStay(key: {{ {ends} }}, set: {{ {since} }})",
            f"deleteStay(key: {{ {ends} }})",
        ]
    )


def said(body: Any) -> set[str]:
    return {code for code, _ in codes(body).values()}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("sdl", "draw"), [(FOLLOWED, shop_write), (HOTEL, hotel_write)], ids=["the shop", "the hotel"])
async def test_all_is_in_the_end_as_it_would_be_at_once(
    engine: str,
    transport: Transport,
    serve: Serve,
    sdl: str,
    draw: Callable[[random.Random], str],
    seed: int,
) -> None:
    dice = random.Random(seed)
    served, plain = await serve(sdl), await serve(sdl.replace("copies: STREAM", "copies: TRANSACTION"))
    stream, chaos = stream_of(engine, served), Chaos(served.graph, transport, dice)
    written = 0
    for _ in range(80):
        mutation = f"mutation {{ done: {draw(dice)} {{ __typename }} }}"
        body = await served(mutation)
        # Of two nodes that are missing either may be told.
        assert said(body) == said(await plain(mutation)), mutation
        written += "errors" not in body
        if dice.random() < 0.3:
            await chaos.follow(stream.read())
    await catch_up(stream, chaos.follow)

    assert await brief(served) == []
    assert without_shards(await stored(served)) == without_shards(await stored(plain))
    assert written > 10
    assert chaos.killed > 0
