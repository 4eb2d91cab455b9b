"""The local engine starts, survives a kill -9 with its data, and says what to do when it cannot run."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from server.engine import Engine, EngineFailed, EngineMissing, find_engine

ITEM = {"id": {"S": "banana"}}


@contextmanager
def dynamodb(endpoint_url: str) -> Iterator[Any]:
    client: Any = boto3.client(
        "dynamodb",
        endpoint_url=endpoint_url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
        # Enough tries to bridge the restart of a killed engine.
        config=Config(retries={"mode": "standard", "total_max_attempts": 10}),
    )
    with closing(client):
        yield client


def create_table(client: Any) -> None:
    client.create_table(
        TableName="fruit",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )


def answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except ConnectionRefusedError:
        return False


def test_engine_of_the_session_answers(engine: str) -> None:
    with dynamodb(engine) as client:
        assert isinstance(client.list_tables()["TableNames"], list)


async def test_engine_in_memory_starts_empty_and_stops_with_its_context() -> None:
    async with Engine() as engine:
        with dynamodb(engine.endpoint_url) as client:
            tables = await asyncio.to_thread(client.list_tables)

    assert tables["TableNames"] == []
    assert not answers(engine.port)


async def test_killed_engine_comes_back_on_the_same_port_with_its_data(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with Engine(db_path=tmp_path / "made" / "for" / "it.db") as engine:
        endpoint_url, first_pid = engine.endpoint_url, engine.pid
        with dynamodb(endpoint_url) as client:
            await asyncio.to_thread(create_table, client)
            await asyncio.to_thread(client.put_item, TableName="fruit", Item=ITEM)

            assert first_pid is not None
            os.kill(first_pid, signal.SIGKILL)
            answer = await asyncio.to_thread(client.get_item, TableName="fruit", Key=ITEM)

        assert answer["Item"] == ITEM
        assert engine.endpoint_url == endpoint_url
        assert engine.pid != first_pid
        restarts = [record.message for record in caplog.records if record.name == "server.engine"]
        assert len(restarts) == 1
        assert restarts[0].startswith(f"starting the engine again at {endpoint_url}: exit code -9, last output: ")


async def test_taken_port_is_refused_before_anything_starts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(EngineFailed, match=f"Expected port {port} of 127.0.0.1 to be free .* ss -ltnp"):
            await Engine(port=port).__aenter__()


async def test_engine_that_dies_at_every_start_is_given_up_with_its_last_words(tmp_path: Path) -> None:
    db_path = tmp_path / "broken.db"
    db_path.write_text("neither SQLite nor empty " * 100)

    with pytest.raises(EngineFailed, match=r"died 4 times at once: exit code 1, .* not a valid SQLite database"):
        await Engine(db_path=db_path).__aenter__()


async def test_engine_given_up_later_ends_the_wait_and_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db_path = tmp_path / "data.db"
    async with Engine(db_path=db_path) as engine:
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        for file in tmp_path.iterdir():
            file.unlink()
        db_path.mkdir()

        with pytest.raises(EngineFailed, match="unable to open database file"):
            await asyncio.wait_for(engine.wait(), 30)
        assert "the engine is given up" in caplog.text


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux's kernel ends a child with its parent")
def test_no_engine_outlives_a_killed_parent() -> None:
    parent = """
import asyncio, server.engine
async def main():
    async with server.engine.Engine() as engine:
        print(engine.port, flush=True)
        await asyncio.Event().wait()
asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        assert answers(port)
        process.kill()

    # Not by the process id, which lasts until somebody reaps the zombie.
    deadline = time.monotonic() + 5
    while answers(port) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not answers(port)


def test_engine_is_looked_for_in_the_variable_then_on_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    named, on_path = tmp_path / "named", tmp_path / "dynoxide"
    for binary in (named, on_path):
        binary.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    monkeypatch.setenv("TABLEGRAPH_ENGINE", str(named))
    assert find_engine() == named

    monkeypatch.delenv("TABLEGRAPH_ENGINE")
    assert find_engine() == on_path


async def test_missing_engine_names_the_place_and_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLEGRAPH_ENGINE", "/nowhere/dynoxide")

    with pytest.raises(EngineMissing, match=r"TABLEGRAPH_ENGINE=/nowhere/dynoxide\n.*npm ci"):
        await Engine().__aenter__()
