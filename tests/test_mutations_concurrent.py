"""Many clients at once, and answers that get lost: what was acknowledged is done once, and the graph stays right."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from graph.client import Client, Transport
from graph.client import Response as WireResponse
from graph.errors import Throttled, TransactionCancelled, Unavailable
from graph.loaders import Graph, Limits
from resolvers.schema import Api
from tests.conftest import Serve, Served
from tests.library import faults, library
from tests.written import code, codes, stored

Send = Callable[[str, dict[str, Any]], Awaitable[WireResponse]]


async def burst(served: Served, fields: list[str]) -> list[Any]:
    """Send mutations of one field each, all at once; give each one's code, or None where it was acknowledged."""
    bodies = await asyncio.gather(*(served(f"mutation {{ done: {field} }}") for field in fields))
    return [code(body["errors"][0])[0] if "errors" in body else None for body in bodies]


def link(shelf: str, book: str) -> str:
    ends = f'shelf: {{ name: "{shelf}" }}, book: {{ title: "{book}" }}'
    return f"createStanding(input: {{ grams: 7, {ends} }}) {{ __typename }}"


def rename(old: str, new: str) -> str:
    return f'updateShelf(key: {{ name: "{old}" }}, set: {{ name: "{new}" }}) {{ __typename }}'


def retitle(old: str, new: str) -> str:
    return f'updateBook(key: {{ title: "{old}" }}, set: {{ title: "{new}" }}) {{ __typename }}'


def delete(book: str) -> str:
    return f'deleteBook(key: {{ title: "{book}" }}, cascade: true) {{ __typename }}'


MAY_LOSE = {None, "NOT_FOUND", "WRITE_CONFLICT", "ALREADY_EXISTS"}


# --- many at once -------------------------------------------------------------------------------------------------


async def test_increments_at_once_all_count(serve: Serve) -> None:
    served = await library(serve)

    done = await burst(served, ['updateShelf(key: { name: "a" }, increment: { visits: 1 }) { __typename }'] * 30)

    assert done == [None] * 30
    (shelf,) = [one for key, one in (await stored(served)).items() if key[0] == "SHELF#a" and key[1] == "IN#r"]
    assert shelf["visits"] == {"N": "30"}
    assert shelf["version"] == {"N": "31"}


async def test_increments_of_what_is_copied_count_as_often_as_they_are_acknowledged(serve: Serve) -> None:
    served = await library(serve)

    done = await burst(served, ['updateBook(key: { title: "x" }, increment: { read: 1 }) { __typename }'] * 8)

    assert set(done) <= {None, "WRITE_CONFLICT"}
    found = await stored(served)
    assert found["BOOK#x", "BOOK#x"]["read"] == {"N": str(1 + done.count(None))}
    assert faults(found) == []


async def test_links_at_once_are_all_counted(serve: Serve) -> None:
    served = await library(serve)
    await burst(served, [f'createBook(input: {{ title: "n{number}" }}) {{ __typename }}' for number in range(20)])

    done = await burst(served, [link("a", f"n{number}") for number in range(20)])

    assert done == [None] * 20
    assert faults(await stored(served)) == []


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([delete("x")], id="deleted"),
        pytest.param([retitle("x", "xx")], id="renamed"),
        pytest.param([retitle("x", "xx"), delete("x")], id="renamed and deleted"),
        pytest.param([rename("a", "c"), retitle("x", "xx")], id="both ends renamed"),
        pytest.param(['updateBook(key: { title: "x" }, set: { about: "me" }) { __typename }'] * 2, id="described"),
        pytest.param(['updateShelf(key: { name: "b" }, set: { room: "s" }) { __typename }'], id="shelf moved"),
    ],
)
async def test_links_while_their_node_changes(serve: Serve, others: list[str]) -> None:
    served = await library(serve)
    fresh = [
        f'createShelf(input: {{ name: "n{number}", room: "r", books: [{{ grams: 1, book: {{ title: "x" }} }}] }}) '
        "{ __typename }"
        for number in range(6)
    ]
    unlink = 'deleteStanding(key: { shelf: { name: "a" }, book: { title: "x" } }) { __typename }'

    done = await burst(served, [*fresh[:3], *others, link("b", "x"), unlink, *fresh[3:]])

    assert set(done) <= MAY_LOSE
    assert faults(await stored(served)) == []


async def test_of_two_renamings_one_wins(serve: Serve) -> None:
    served = await library(serve)

    done = await burst(served, [rename("a", "c"), rename("a", "d"), rename("a", "e")])

    assert done.count(None) == 1
    assert set(done) <= {None, "NOT_FOUND"}
    assert faults(await stored(served)) == []


async def test_two_nodes_that_are_renamed_to_each_other_stay_two(serve: Serve) -> None:
    served = await library(serve)

    done = await burst(served, [retitle("x", "y"), retitle("y", "x"), retitle("z", "x")])

    assert set(done) <= MAY_LOSE
    found = await stored(served)
    assert faults(found) == []
    assert len([key for key in found if key[0].startswith("BOOK#")]) == 3


async def test_a_key_is_created_once(serve: Serve) -> None:
    served = await library(serve)

    done = await burst(served, ['createBook(input: { title: "n" }) { __typename }'] * 10)

    assert sorted(done, key=str) == ["ALREADY_EXISTS"] * 9 + [None]


async def test_a_name_is_created_once_whatever_else_the_key_holds(serve: Serve, transport: Transport) -> None:
    served = await library(serve)
    both = asyncio.Barrier(2)

    async def send(operation: str, parameters: dict[str, Any]) -> WireResponse:
        if operation == "TransactWriteItems":
            # Neither writes before both have looked.
            await both.wait()
        return await transport(operation, parameters)

    graph = Graph(served.graph.model, Client(send), Limits())
    creates = [f'createShelf(input: {{ name: "n", room: "{room}" }}) {{ __typename }}' for room in "rs"]
    await burst(Served(Api(graph), graph, served.table), creates)

    assert len([key for key in await stored(served) if key[0] == "SHELF#n"]) == 1


async def test_upserts_at_once_leave_one_item(serve: Serve) -> None:
    served = await library(serve)
    fields = [f'upsertBook(input: {{ title: "n", read: {number} }}) {{ __typename }}' for number in range(8)]

    done = await burst(served, fields)

    assert done == [None] * 8
    assert 0 <= int((await stored(served))["BOOK#n", "BOOK#n"]["read"]["N"]) < 8


async def test_links_and_deletions_of_the_same_edge_leave_right_counters(serve: Serve) -> None:
    served = await library(serve)
    unlink = 'deleteStanding(key: { shelf: { name: "b" }, book: { title: "z" } }) { __typename }'
    weigh = (
        'updateStanding(key: { shelf: { name: "b" }, book: { title: "z" } }, increment: { grams: 1 }) { __typename }'
    )

    done = await burst(served, [link("b", "z"), unlink, weigh, link("b", "z"), weigh, unlink, link("b", "z"), weigh])

    assert set(done) <= MAY_LOSE
    assert faults(await stored(served)) == []


# --- locks --------------------------------------------------------------------------------------------------------


async def lock(served: Served, since: float) -> None:
    book = (await stored(served))["BOOK#x", "BOOK#x"]
    await served.put([{**book, "tablegraph-lock": {"S": f"{since:.3f} somebody"}}])


async def test_the_lock_of_a_dead_process_is_broken(serve: Serve) -> None:
    served = await library(serve)
    await lock(served, time.time() - 3600)

    await served.data(f"mutation {{ {link('b', 'x')} }}")

    found = await stored(served)
    assert faults(found) == []
    assert ("SHELF#b", "BOOK#x") in found


async def test_a_link_waits_while_somebody_else_has_locked_the_node(serve: Serve, transport: Transport) -> None:
    served = await library(serve)
    await lock(served, time.time())
    book = {name: value for name, value in (await stored(served))["BOOK#x", "BOOK#x"].items() if "lock" not in name}
    refused = asyncio.Event()

    async def send(operation: str, parameters: dict[str, Any]) -> WireResponse:
        try:
            return await transport(operation, parameters)
        except TransactionCancelled:
            refused.set()
            raise

    graph = Graph(served.graph.model, Client(send), Limits())
    linking = asyncio.create_task(Served(Api(graph), graph, served.table)(f"mutation {{ {link('b', 'x')} }}"))
    await refused.wait()
    assert ("SHELF#b", "BOOK#x") not in await stored(served)
    await served.put([book])

    assert "errors" not in await linking
    assert faults(await stored(served)) == []


# --- what goes wrong on the way -----------------------------------------------------------------------------------


class Way:
    """A way to the engine on which the first transaction meets a mishap."""

    def __init__(self, transport: Transport, mishap: Callable[[Send, dict[str, Any]], Awaitable[Any]]) -> None:
        self._transport = transport
        self._mishap = mishap
        self.tokens: list[str] = []

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> WireResponse:
        if operation == "TransactWriteItems":
            self.tokens.append(parameters["ClientRequestToken"])
            if len(self.tokens) == 1:
                await self._mishap(self._transport, parameters)
        return await self._transport(operation, parameters)


async def conflict(_: Send, __: dict[str, Any]) -> None:
    raise Throttled("DynamoDB cancelled the transaction (TransactionConflict)")


async def lost(send: Send, parameters: dict[str, Any]) -> None:
    await send("TransactWriteItems", parameters)
    raise Unavailable("the answer is lost")


async def refused(_: Send, __: dict[str, Any]) -> None:
    return None


def by(way: Way, served: Served) -> Served:
    """Serve the same table by another way."""
    graph = Graph(served.graph.model, Client(way), Limits())
    return Served(Api(graph), graph, served.table)


INCREMENT = 'mutation { updateShelf(key: { name: "a" }, increment: { visits: 5 }) { shelf { visits } } }'


@pytest.mark.parametrize("mishap", [conflict, lost])
async def test_what_is_sent_again_has_the_same_token_and_happens_once(
    serve: Serve, transport: Transport, mishap: Any
) -> None:
    served = await library(serve)
    way = Way(transport, mishap)

    data = await by(way, served).data(INCREMENT)

    assert data["updateShelf"]["shelf"]["visits"] == 5
    assert len(way.tokens) == 2
    assert len(set(way.tokens)) == 1


@pytest.mark.parametrize("mishap", [conflict, lost])
@pytest.mark.parametrize(
    "field",
    [
        'createBook(input: { title: "n" }) { book { title } }',
        'upsertBook(input: { title: "n" }) { book { title } }',
        'deleteBook(key: { title: "x" }, cascade: true) { book { title } }',
        retitle("x", "xx"),
        rename("a", "c"),
        link("b", "z"),
    ],
)
async def test_a_mishap_on_the_way_changes_nothing(serve: Serve, transport: Transport, mishap: Any, field: str) -> None:
    straight, served = await library(serve), await library(serve)

    await straight.data(f"mutation {{ {field} }}")
    await by(Way(transport, mishap), served).data(f"mutation {{ {field} }}")

    assert await stored(served) == await stored(straight)
    assert faults(await stored(served)) == []


async def test_a_condition_that_fails_is_not_tried_again(serve: Serve, transport: Transport) -> None:
    served = await library(serve)
    way = Way(transport, refused)

    error = await by(way, served).error('mutation { createBook(input: { title: "x" }) { __typename } }')

    assert code(error) == ("ALREADY_EXISTS", "input")
    assert len(way.tokens) == 1


async def test_who_cannot_lock_a_node_is_the_one_to_blame(serve: Serve, transport: Transport) -> None:
    served = await library(serve)

    async def gone(_: Send, __: dict[str, Any]) -> None:
        await served.data('mutation { deleteBook(key: { title: "z" }) { __typename } }')

    body = await by(Way(transport, gone), served)(
        """mutation @transaction { a: createBook(input: { title: "n" }) { __typename }
        b: deleteBook(key: { title: "z" }) { __typename } }"""
    )

    assert codes(body) == {"a": ("ROLLED_BACK", None), "b": ("NOT_FOUND", None)}


async def test_a_client_that_goes_leaves_no_lock(serve: Serve, transport: Transport) -> None:
    served = await library(serve)
    locked = asyncio.Event()

    async def send(operation: str, parameters: dict[str, Any]) -> WireResponse:
        if locked.is_set() and operation == "Query":
            await asyncio.Event().wait()
        response = await transport(operation, parameters)
        if operation == "TransactWriteItems":
            locked.set()
        return response

    graph = Graph(served.graph.model, Client(send), Limits())
    gone = asyncio.create_task(Served(Api(graph), graph, served.table)(f"mutation {{ {delete('x')} }}"))
    await locked.wait()
    assert "tablegraph-lock" in str(await stored(served))
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)

    assert faults(await stored(served)) == []
    assert "tablegraph-lock" not in str(await stored(served))
