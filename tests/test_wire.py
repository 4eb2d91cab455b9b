"""Connections of our own: what a server may do to them, how many there are, and what becomes of those that die."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator, Callable

import pytest

from graph.wire.connection import Answer, Broken
from graph.wire.pool import MAX_CONNECTS, Address, Pool
from tests.wire_server import CLOSE, Act, Server, answer, chunked, say, serving, wait

REQUEST = b"POST / HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}"
CRC = "X-Amz-Crc32: 2745614147"
SILENCE_SECS = 0.2
"""Short enough to be waited for, and long enough for an answer on a busy machine."""


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serving() as script:
        yield script


def pool_to(server: Server, size: int = 4, *, read_timeout_secs: float = 20) -> Pool:
    return Pool(Address("127.0.0.1", server.port, read_timeout_secs=read_timeout_secs), size)


@pytest.fixture
async def pool(server: Server) -> AsyncIterator[Pool]:
    pool = pool_to(server)
    yield pool
    pool.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for is the other end's, and has no event
            await asyncio.sleep(0.001)


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        pytest.param([answer(b'{"a": 1}')], b'{"a": 1}', id="whole"),
        pytest.param([bytes([one]) for one in answer(b'{"a": 1}')], b'{"a": 1}', id="byte-by-byte"),
        pytest.param([answer(b"")], b"", id="empty"),
        pytest.param([chunked(b'{"a"', b": 1}")], b'{"a": 1}', id="chunked"),
        pytest.param([bytes([one]) for one in chunked(b'{"a"', b": 1}")], b'{"a": 1}', id="chunked-byte-by-byte"),
        pytest.param([b"HTTP/1.1 100 Continue\r\n\r\n", answer(b"{}")], b"{}", id="continue-first"),
        pytest.param([answer(bytes(16_000_000))], bytes(16_000_000), id="16-MB"),
    ],
)
async def test_answer_is_read_whatever_its_pieces(server: Server, pool: Pool, parts: list[bytes], body: bytes) -> None:
    server.acts = [say(*parts)]

    for _ in range(2):
        assert (await pool.exchange(REQUEST)).body == body

    assert server.requests == [REQUEST] * 2
    assert server.accepted == 1


async def test_status_and_checksum_are_those_of_the_answer(server: Server, pool: Pool) -> None:
    server.acts = [say(answer(b"{}", CRC, status=400)), say(answer(b"no"))]

    first, second = await pool.exchange(REQUEST), await pool.exchange(REQUEST)

    assert first == Answer(400, b"2745614147", b"{}")
    assert second == Answer(200, None, b"no")


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(CLOSE, id="nothing"),
        pytest.param(say(answer(b'{"a": 1}')[:-3], close=True), id="half-a-body"),
        pytest.param(say(answer()[:20], close=True), id="half-a-head"),
        pytest.param(say(chunked(b"{}")[:-5], close=True), id="without-the-last-chunk"),
        pytest.param(say(b"HTTP/1.1 200 OK\r\n\r\n{}", close=True), id="without-a-length"),
        pytest.param(say(b"SSH-2.0-OpenSSH_9.6\r\n"), id="not-HTTP"),
        pytest.param(say(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}"), id="no-number"),
    ],
)
@pytest.mark.parametrize("is_used", [False, True], ids=["fresh", "used"])
async def test_half_an_answer_is_none(server: Server, pool: Pool, act: Act, is_used: bool) -> None:
    server.acts = [say(answer())] * is_used + [act]
    if is_used:
        await pool.exchange(REQUEST)

    with pytest.raises(Broken):
        await pool.exchange(REQUEST)

    # Only what nothing of an answer came to is sent again, and only over a connection that may have died before.
    assert server.accepted == (2 if is_used and act is CLOSE else 1)
    server.acts = [say(answer())]
    assert (await pool.exchange(REQUEST)).status == 200


# --- keeping alive ------------------------------------------------------------------------------------------------


async def test_connection_serves_one_request_after_the_other(server: Server, pool: Pool) -> None:
    for _ in range(20):
        await pool.exchange(REQUEST)

    assert server.accepted == 1


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(say(answer(b"{}", "Connection: close")), id="said-to-be-closed"),
        pytest.param(say(answer(), close=True), id="closed"),
        pytest.param(say(answer() + answer()), id="another-answer-behind-it"),
        pytest.param(say(answer(), b"HTTP/1.1 200 OK\r\n", pause_secs=0.02), id="another-answer-later"),
    ],
)
async def test_connection_that_cannot_be_trusted_is_not_used_again(server: Server, pool: Pool, act: Act) -> None:
    server.acts = [act, say(answer(b"second"))]

    await pool.exchange(REQUEST)
    await until(lambda: server.closed == 1)

    assert (await pool.exchange(REQUEST)).body == b"second"
    assert (server.accepted, len(server.requests)) == (2, 2)


async def test_request_on_a_connection_that_died_while_idle_is_sent_again_over_a_new_one(
    server: Server, pool: Pool
) -> None:
    server.acts = [say(answer()), CLOSE, say(answer(b"again"))]
    await pool.exchange(REQUEST)

    assert (await pool.exchange(REQUEST)).body == b"again"

    assert (server.accepted, len(server.requests)) == (2, 3)


async def test_request_is_sent_again_only_once_and_not_over_another_idle_connection(server: Server, pool: Pool) -> None:
    together = asyncio.Event()
    server.acts = [wait(together)]
    idle = [asyncio.ensure_future(pool.exchange(REQUEST)) for _ in range(3)]
    for _ in idle:
        await server.arrived.acquire()
    together.set()
    await asyncio.gather(*idle)
    server.acts = [CLOSE]

    with pytest.raises(Broken):
        await pool.exchange(REQUEST)

    assert (server.accepted, len(server.requests)) == (4, 5)


# --- time and cancellation ----------------------------------------------------------------------------------------


async def test_server_that_says_nothing_is_not_waited_for(server: Server) -> None:
    server.acts = [say(answer()), wait(asyncio.Event())]
    pool = pool_to(server, read_timeout_secs=SILENCE_SECS)
    await pool.exchange(REQUEST)

    with pytest.raises(TimeoutError, match=r"^no answer within 0.2 s$"):
        await pool.exchange(REQUEST)

    await until(lambda: server.closed == 1)
    assert len(server.requests) == 2


async def test_answer_may_take_long_as_long_as_it_comes(server: Server) -> None:
    whole = answer(b"{}")
    pieces = [whole[start : start + 9] for start in range(0, len(whole), 9)]
    server.acts = [say(*pieces, pause_secs=SILENCE_SECS / 3)]
    pool = pool_to(server, read_timeout_secs=SILENCE_SECS)

    assert (await pool.exchange(REQUEST)).body == b"{}"
    assert len(pieces) > 4
    pool.close()


async def test_silence_is_noticed_in_any_request_of_a_connection(server: Server) -> None:
    """Though it has but one timer, which was set for an earlier request."""
    server.acts = [*[say(answer(), pause_secs=0)] * 8, wait(asyncio.Event())]
    pool = pool_to(server, read_timeout_secs=SILENCE_SECS)
    loop = asyncio.get_running_loop()
    for _ in range(8):
        await pool.exchange(REQUEST)
        await asyncio.sleep(SILENCE_SECS / 5)
    began = loop.time()

    with pytest.raises(TimeoutError, match=r"^no answer within 0.2 s$"):
        await pool.exchange(REQUEST)

    assert SILENCE_SECS * 0.9 < loop.time() - began < SILENCE_SECS * 3
    assert server.accepted == 1


@pytest.mark.parametrize("is_used", [False, True], ids=["fresh", "used"])
async def test_answer_is_not_waited_for_beyond_the_deadline(server: Server, pool: Pool, is_used: bool) -> None:
    server.acts = [*[say(answer())] * is_used, wait(asyncio.Event()), say(answer(b"next"))]
    loop = asyncio.get_running_loop()
    if is_used:
        await pool.exchange(REQUEST)
    deadline = loop.time() + SILENCE_SECS

    with pytest.raises(TimeoutError, match=r"^no answer in the time that there was for it$"):
        await pool.exchange(REQUEST, deadline)

    assert -0.01 < loop.time() - deadline < SILENCE_SECS
    await until(lambda: server.closed == 1)
    assert (await pool.exchange(REQUEST, loop.time() + 5)).body == b"next"
    assert server.accepted == 2


async def test_deadline_of_a_request_is_not_that_of_the_next(server: Server) -> None:
    pool = pool_to(server)
    loop = asyncio.get_running_loop()
    server.acts = [say(answer()), say(b"", answer(), pause_secs=SILENCE_SECS)]
    await pool.exchange(REQUEST, loop.time() + SILENCE_SECS / 2)

    assert (await pool.exchange(REQUEST, loop.time() + 5)).status == 200
    assert (await pool.exchange(REQUEST)).status == 200
    pool.close()


async def test_connection_and_its_turn_are_not_waited_for_beyond_the_deadline() -> None:
    # Nobody speaks TLS there.
    async with serving() as server:
        pool = Pool(Address("127.0.0.1", server.port, ssl.create_default_context()), 2)
        deadline = asyncio.get_running_loop().time() + SILENCE_SECS

        found = await asyncio.gather(*(pool.exchange(REQUEST, deadline) for _ in range(3)), return_exceptions=True)

        assert [type(one) for one in found] == [TimeoutError] * 3
        assert asyncio.get_running_loop().time() - deadline < SILENCE_SECS


async def test_connection_that_is_not_made_is_not_waited_for() -> None:
    # Nobody speaks TLS there.
    async with serving() as server:
        address = Address("127.0.0.1", server.port, ssl.create_default_context(), connect_timeout_secs=0.05)

        with pytest.raises(TimeoutError, match=r"^no connection within 0.05 s$"):
            await Pool(address, 1).exchange(REQUEST)


async def test_cancelled_request_closes_its_connection(server: Server) -> None:
    server.acts = [wait(asyncio.Event()), say(answer(b"next"))]
    pool = pool_to(server, size=1)
    abandoned = asyncio.ensure_future(pool.exchange(REQUEST))
    await server.arrived.acquire()

    abandoned.cancel()

    assert (await pool.exchange(REQUEST)).body == b"next"
    await until(lambda: server.closed == 1)
    assert abandoned.cancelled()
    assert server.accepted == 2
    pool.close()


# --- how many -----------------------------------------------------------------------------------------------------


async def test_no_more_connections_are_open_than_the_pool_may_have(server: Server, pool: Pool) -> None:
    server.acts = [say(answer(), pause_secs=0.005)]

    await asyncio.gather(*(pool.exchange(REQUEST) for _ in range(40)))

    assert server.most == server.accepted == 4


async def test_connections_that_keep_dying_stay_few(server: Server, pool: Pool) -> None:
    server.acts = [say(answer(), close=True), CLOSE]

    answers = await asyncio.gather(*(pool.exchange(REQUEST) for _ in range(40)), return_exceptions=True)

    assert sum(isinstance(one, Broken) for one in answers) == 39
    assert server.most <= 4
    assert server.accepted <= 41


async def test_few_connections_are_being_made_at_once() -> None:
    """As when a server comes back on which every connection had ended."""
    async with serving() as server:
        pool = Pool(Address("127.0.0.1", server.port, ssl.create_default_context()), 16)
        sent = [asyncio.ensure_future(pool.exchange(REQUEST)) for _ in range(16)]

        await until(lambda: server.accepted == MAX_CONNECTS)
        await asyncio.sleep(0.05)

        assert server.accepted == MAX_CONNECTS
        for one in sent:
            one.cancel()
        await asyncio.wait(sent)


async def test_closed_pool_leaves_nothing_open(server: Server, pool: Pool) -> None:
    held = asyncio.Event()
    server.acts = [wait(held)]
    under_way = asyncio.ensure_future(pool.exchange(REQUEST))
    await server.arrived.acquire()
    pool.close()

    held.set()

    assert (await under_way).status == 200
    await until(lambda: server.closed == 1)


async def test_refused_connection_is_an_os_error(server: Server) -> None:
    with pytest.raises(ConnectionRefusedError):
        await Pool(Address("127.0.0.1", 1), 1).exchange(REQUEST)


def test_loop_that_ends_closes_its_connections() -> None:
    """Without anybody's telling: a socket that is left open is a warning, and so an error here."""

    async def main() -> Server:
        async with serving() as server:
            pool = pool_to(server)
            await pool.open()
            await pool.exchange(REQUEST)
            return server

    assert asyncio.run(main()).accepted == 1
    gc.collect()
