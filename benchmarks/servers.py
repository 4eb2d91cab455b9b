"""The servers that are compared: how each is started, and what CPU it has taken."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.front import HOST
from benchmarks.queries import TABLE

ROOT = Path(__file__).parent.parent
PEERS = Path(__file__).parent / "peers"
REGION = "eu-central-1"
START_SECS = 60.0
STOP_SECS = 5.0
TICKS = os.sysconf("SC_CLK_TCK")
PYTHON = sys.executable


@dataclass(frozen=True, slots=True)
class Server:
    """A server to compare: {port} and {endpoint} in its command are filled in when it starts."""

    name: str
    title: str
    command: tuple[str, ...]
    is_graphql: bool = True


OURS = "tablegraph"
COMMAND = (PYTHON, "-c", "import sys; from server.cli import main; sys.exit(main())")
OPTIONS = ("--schema", str(ROOT / "schema.graphql"), "--log-level", "warning")
SERVERS = {
    server.name: server
    for server in (
        Server(
            OURS,
            "tablegraph",
            (*COMMAND, "serve", *OPTIONS, "--endpoint-url", "{endpoint}", "--port", "{port}"),
        ),
        Server("strawberry", "Strawberry, aiodataloader, boto3", (PYTHON, "-m", "benchmarks.peers.strawberry_api")),
        Server("mercurius", "Mercurius, JIT, AWS SDK 3", ("node", str(PEERS / "mercurius.js"))),
        Server("apollo", "Apollo Server 5, AWS SDK 3", ("node", str(PEERS / "apollo.js"))),
        Server("python", "by hand, Python", (PYTHON, "-m", "benchmarks.peers.plain"), is_graphql=False),
        Server("node", "by hand, Node", ("node", str(PEERS / "plain.js")), is_graphql=False),
    )
}


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers at a port."""

    server: Server
    pid: int
    port: int

    def cpu_secs(self) -> float:
        """Give the CPU that the server has taken since its start, with its threads and its children's processes."""
        return sum(_cpu_secs(pid) for pid in _family(self.pid))

    def memory_mb(self) -> float:
        """Give the memory that it holds now."""
        return sum(_status_kb(pid, "VmRSS") for pid in _family(self.pid)) / 1000


@asynccontextmanager
async def started(command: tuple[str, ...], port: int, environment: dict[str, str]) -> AsyncIterator[int]:
    """Run a process until the block ends, once it listens on the port; gives its id.

    Raises: RuntimeError if it does not come to listen.
    """
    process = await asyncio.create_subprocess_exec(*command, env={**os.environ, **environment}, cwd=ROOT)
    try:
        async with asyncio.timeout(START_SECS):
            while not await _listens(port):
                if process.returncode is not None:
                    raise RuntimeError(f"{' '.join(command)} ended with code {process.returncode}")
                await asyncio.sleep(0.05)
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECS)
        except TimeoutError:
            process.kill()
            await process.wait()


@asynccontextmanager
async def serving(server: Server, endpoint: str) -> AsyncIterator[Running]:
    """Run a server on the table behind an endpoint until the block ends."""
    port = free_port()
    environment = {
        "AWS_ENDPOINT_URL_DYNAMODB": endpoint,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "NODE_ENV": "production",
        # The SDK's advice on versions of Node.
        "NODE_NO_WARNINGS": "1",
        "PORT": str(port),
        "TABLE": TABLE,
    }
    command = tuple(part.format(port=port, endpoint=endpoint) for part in server.command)
    async with started(command, port, environment) as pid:
        yield Running(server, pid, port)


@asynccontextmanager
async def fronted(engine: str, latency_ms: float) -> AsyncIterator[int]:
    """Run the front before an engine until the block ends; gives its port."""
    port = free_port()
    command = (PYTHON, "-m", "benchmarks.front", "--engine", engine, "--port", str(port), "--latency", str(latency_ms))
    async with started(command, port, {}):
        yield port


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(HOST, port)
    except OSError:
        return False
    writer.close()
    return True


def _family(pid: int) -> list[int]:
    """Give a process and all that it has started."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread may end meanwhile.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in (task / "children").read_text().split():
                found += _family(int(child))
    return found


def _cpu_secs(pid: int) -> float:
    # The name, in parentheses, may hold spaces. Then: utime and stime, and those of children that have ended.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def _status_kb(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))
