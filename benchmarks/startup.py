"""How long a server takes from the start of its process to its first answer, and what memory each worker holds."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path

from graph.client import Client
from graph.loaders import Graph
from resolvers.sdl import compile_model
from server.demo import prepare
from server.engine import Engine
from server.settings import load_settings
from server.transports import open_transport

ROOT = Path(__file__).parent.parent
COMMAND = (sys.executable, "-c", "import sys; from server.cli import main; sys.exit(main())", "serve")
SETTINGS = ("--port", "0", "--log-format", "json", "--log-level", "info")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "eu-central-1"}
QUERIES = 1000
TYPES = 25


@dataclass(frozen=True, slots=True)
class Start:
    """What one start took; memory is that of a worker, the mean where there are several."""

    answer_ms: float
    cpu_ms: float
    start_rss_mb: float
    start_pss_mb: float
    later_rss_mb: float
    later_pss_mb: float


def many_types(count: int) -> str:
    """Write a model of so many types: nodes in a chain, and the edges between them."""
    nodes = (count + 1) // 2
    lines = [
        'extend schema @table(name: "chain", partitionKey: "pk", sortKey: "sk")',
        '  @index(name: "back", partitionKey: "sk", sortKey: "pk")',
    ]
    for each in range(nodes):
        lines += [f'type Node{each} @node(key: "N{each}_{{number}}") {{', "  number: ID!", "  name: String"]
        lines += ["  weight: Float", "  isOpen: Boolean", "  made: DateTime"]
        lines += [f"  below: [Node{each + 1}!]! @relationship"] if each + 1 < nodes else []
        lines += [f"  above: Node{each - 1} @relationship"] if each else []
        lines += ["}"]
    for each in range(count - nodes):
        lines += [f'type Link{each} @edge(partition: "{{upper}}", sort: "{{lower}}") {{']
        lines += [f"  upper: Node{each}!", f"  lower: Node{each + 1}!", "  since: DateTime", "  by: String", "}"]
    return "\n".join(lines)


MODELS = {
    "bananas": ((ROOT / "schema.graphql").read_text(), '{ container(number: "009998") { operator } }'),
    f"{TYPES} types": (many_types(TYPES), '{ node0(number: "1") { name } }'),
}


@contextmanager
def serving(schema: Path, endpoint: str, workers: int) -> Iterator[tuple[int, int]]:
    """Start a server; gives its process id and its port as soon as it says that it listens."""
    command = (*COMMAND, "--schema", str(schema), "--endpoint-url", endpoint, *SETTINGS)
    environment = {**os.environ, **CREDENTIALS} | ({"TABLEGRAPH_WORKERS": str(workers)} if workers > 1 else {})
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr
        try:
            message = next(line for line in map(str.strip, server.stderr) if "GraphQL at" in line)
            # A full pipe would stop the server.
            threading.Thread(target=server.stderr.read).start()
            yield server.pid, int(json.loads(message)["message"].split(":")[2].split("/")[0])
        finally:
            server.send_signal(signal.SIGTERM)


def ask(port: int, query: str, times: int = 1) -> None:
    """Send a query so many times, each over a connection of its own for every worker to have its share."""
    body = json.dumps({"query": query})
    for _ in range(times):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/graphql", body, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        if "errors" in answer:
            sys.exit(f"{query}: {answer['errors']}")


def workers_of(pid: int) -> list[int]:
    """List the processes that answer: the children, or the process itself where it has none."""
    parents = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    children = [int(entry.name) for entry in parents if _stat(entry)[1:2] == [str(pid)]]
    return children or [pid]


def _stat(entry: Path) -> list[str]:
    try:
        return (entry / "stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return []


def memory_mb(pids: list[int]) -> tuple[float, float]:
    """Give the mean resident memory of processes, and their mean share of it: of what several hold a part each."""
    rolled = [Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:] for pid in pids]
    sizes = [{line.split(":")[0]: int(line.split()[1]) for line in lines} for lines in rolled]
    rss, pss = (statistics.mean(each[name] for each in sizes) / 1024 for name in ("Rss", "Pss"))
    return rss, pss


def start(schema: Path, query: str, endpoint: str, workers: int) -> Start:
    """Start a server, ask it, look at its memory, and stop it."""
    began = time.perf_counter()
    with serving(schema, endpoint, workers) as (pid, port):
        ask(port, query)
        answer_secs = time.perf_counter() - began
        pids = workers_of(pid)
        ticks = sum(sum(map(int, _stat(Path(f"/proc/{each}"))[11:13])) for each in {pid, *pids})
        first = memory_mb(pids)
        ask(port, query, QUERIES)
        return Start(answer_secs * 1000, ticks / os.sysconf("SC_CLK_TCK") * 1000, *first, *memory_mb(pids))


async def main() -> None:
    """Measure both models, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=7, help="starts of each server, in turns")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers to compare")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        async with Engine() as engine:
            cases = []
            for name, (text, query) in MODELS.items():
                schema = Path(folder) / f"{len(cases)}.graphql"
                schema.write_text(text)
                await asyncio.to_thread(make_table, text, engine.endpoint_url)
                cases += [(name, workers, schema, query) for workers in options.workers]
            found: dict[tuple[str, int], list[Start]] = {}
            for _ in range(options.starts):
                for name, workers, schema, query in cases:
                    one = await asyncio.to_thread(start, schema, query, engine.endpoint_url, workers)
                    found.setdefault((name, workers), []).append(one)
    names = [field.name for field in fields(Start)]
    print(f"{'model':10} {'workers':>7}", *(f"{name:>14}" for name in names))
    for (name, workers), starts in found.items():
        medians = (statistics.median(getattr(one, field) for one in starts) for field in names)
        print(f"{name:10} {workers:7}", *(f"{value:14.1f}" for value in medians))


def make_table(text: str, endpoint: str) -> None:
    """Make the tables of a model on the engine."""
    transport = open_transport(
        load_settings({}, {"endpoint_url": endpoint}), "eu-central-1", credentials=("local", "local")
    )
    try:
        prepare(Graph(compile_model(text), Client(transport)), [], None)
    finally:
        transport.close()


if __name__ == "__main__":
    asyncio.run(main())
