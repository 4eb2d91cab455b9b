"""Several processes serve one port: they share the requests, are replaced when they die and end together."""

import asyncio
import json
import os
import signal
import sys
import time
from collections import Counter
from contextlib import suppress

import httpx
import pytest

from tests.test_app import Process, process

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")

TWO = {"TABLEGRAPH_WORKERS": "2"}


async def answering(url: str, requests: int = 20) -> Counter[int]:
    """Which processes answer, each request over a connection of its own."""
    pids: Counter[int] = Counter()

    async def ask() -> None:
        async with httpx.AsyncClient() as client:
            answer = await client.post(url, json={"query": "which process"})
        pids[answer.json()["data"]["pid"]] += 1

    for _ in range(requests):
        await asyncio.gather(*(ask() for _ in range(4)))
    return pids


async def both_answer(server: Process) -> set[int]:
    """Wait until two processes have answered."""
    pids: set[int] = set()
    while len(pids) < 2:
        pids |= set(await answering(server.url, 1))
    return pids


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_the_end(pids: set[int]) -> None:
    while any(map(is_alive, pids)):
        time.sleep(0.05)


async def test_two_workers_answer_on_one_port() -> None:
    async with process(**TWO) as server, asyncio.timeout(20):
        pids = await both_answer(server)
        answered = await answering(server.url)

    assert server.running.pid not in pids
    assert set(answered) <= pids


async def test_a_killed_worker_is_replaced_and_no_request_fails() -> None:
    async with process(**TWO) as server, asyncio.timeout(20):
        before = await both_answer(server)
        killed = min(before)
        os.kill(killed, signal.SIGKILL)
        died = await server.logged(f"worker {killed} ended with -9")
        answered = await answering(server.url)
        await server.logged("GraphQL at ")
        after = await both_answer(server)

    assert died["level"] == "error"
    assert killed not in answered
    assert len(after - before) == 1


async def test_sigterm_ends_all_workers_once_their_requests_are_done() -> None:
    async with process(**TWO) as server, httpx.AsyncClient() as client:
        pids = await both_answer(server)
        request = asyncio.create_task(client.post(server.url, json={"query": "wait a moment"}))
        await server.said("executing")
        server.running.send_signal(signal.SIGTERM)
        answer = await request
        code = await server.running.wait()

    assert (answer.status_code, answer.json()) == (200, {"data": {"hello": "world"}})
    assert code == 0
    assert not any(map(is_alive, pids))


async def test_a_worker_whose_request_does_not_end_is_stopped_within_the_time() -> None:
    async with process(**TWO, TABLEGRAPH_GRACEFUL_SHUTDOWN_SECS="0") as server, httpx.AsyncClient() as client:
        request = asyncio.create_task(client.post(server.url, json={"query": "wait for ever"}))
        await server.said("executing")
        began = time.monotonic()
        server.running.send_signal(signal.SIGTERM)
        answer = await request
        code = await server.running.wait()

    assert answer.json()["errors"][0]["extensions"] == {"code": "SHUTTING_DOWN"}
    assert code == 0
    assert time.monotonic() - began < 5


async def test_an_interrupt_ends_all_workers_as_shells_expect() -> None:
    async with process(**TWO) as server:
        pids = await both_answer(server)
        server.running.send_signal(signal.SIGINT)
        code = await server.running.wait()

    assert code == 130
    assert not any(map(is_alive, pids))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_workers_do_not_outlive_their_parent() -> None:
    async with process(**TWO) as server, asyncio.timeout(20):
        pids = await both_answer(server)
        server.running.kill()
        await asyncio.to_thread(wait_for_the_end, pids)


async def test_workers_that_cannot_start_end_the_server() -> None:
    async with process(**TWO) as server, asyncio.timeout(20):
        assert server.running.stderr
        for pid in await both_answer(server):
            os.kill(pid, signal.SIGKILL)
        async for raw in server.running.stderr:
            line = json.loads(raw)
            if "worker" in line:
                # One that was told of may have ended meanwhile.
                with suppress(ProcessLookupError):
                    os.kill(line["worker"], signal.SIGKILL)
        code = await server.running.wait()

    assert line["message"] == "the workers die as soon as they are started, giving up"
    assert code == 1
