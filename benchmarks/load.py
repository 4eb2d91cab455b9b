"""`tablegraph load` beside a plain boto3 BatchWriteItem loop: the same items, the same parallelism, in turns."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import runpy
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import orjson

from graph.boto import BotoTransport
from graph.bulk.records import Moment, RecordReader
from graph.bulk.written import RecordWriter
from graph.client import Client
from graph.entity import read_entity
from graph.loaders import Graph
from graph.tables import create_table
from resolvers.sdl import compile_model
from server.engine import Engine

ROOT = Path(__file__).parent.parent
SCHEMA = ROOT / "schema.graphql"
PARALLEL = 8
ENVIRONMENT = {**os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}

PLAIN = """
import itertools, json, sys
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
import boto3
from botocore.config import Config

endpoint, table, path, parallel = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="eu-central-1",
                      config=Config(max_pool_connections=parallel))

def put(items):
    requests = {table: [{"PutRequest": {"Item": item}} for item in items]}
    while requests:
        requests = client.batch_write_item(RequestItems=requests)["UnprocessedItems"]

with open(path) as file, ThreadPoolExecutor(parallel) as pool:
    items = map(json.loads, file)
    running = set()
    while batch := list(itertools.islice(items, 25)):
        running.add(pool.submit(put, batch))
        if len(running) >= 2 * parallel:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                one.result()
    for one in running:
        one.result()
"""
COMMAND = """
import sys
from server.cli import main

code = main(sys.argv[1:])
"""
# What os.wait4 reports is at least what this process had when it made the other.
PEAK = """
import os
with open("/proc/self/status") as status, open(os.environ["PEAK"], "w") as peak:
    peak.write(next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


def fleet(count: int) -> Iterator[dict[str, dict[str, str]]]:
    """Yield items of the demo's fleet, again under other numbers where it is too small."""
    for number in itertools.count():
        items = runpy.run_path(str(ROOT / "examples/bananas/fleet.py"))["items"]()
        for item in items:
            if number:
                for name in ("objectId", "relatedObjectId"):
                    item[name] = {"S": f"{item[name]['S']}X{number}"}
            yield item
            count -= 1
            if not count:
                return


def write_inputs(folder: Path, count: int) -> dict[str, Path]:
    """Write the items, and the records that make them."""
    model = compile_model(SCHEMA.read_text())
    writer = RecordWriter(model, RecordReader(model, Moment(None, "")))  # type: ignore[arg-type]
    layouts = [layout for type_ in model.items.values() for layout in type_.layouts]
    items, records = folder / f"items-{count}.jsonl", folder / f"records-{count}.jsonl"
    with items.open("wb") as item_file, records.open("wb") as record_file:
        for item in fleet(count):
            item_file.write(orjson.dumps(item) + b"\n")
            read = (read_entity(model, layout, item) for layout in layouts)
            record_file.write(orjson.dumps(writer.record(next(one for one in read if one is not None))) + b"\n")
    return {"items": items, "records": records}


def run(command: list[str]) -> tuple[float, float]:
    """Run a process and give its seconds and the most memory that it had, in MB."""
    code, *arguments = command
    with tempfile.NamedTemporaryFile("r") as peak:
        began = time.perf_counter()
        environment = {**ENVIRONMENT, "PEAK": peak.name}
        subprocess.run([sys.executable, "-c", code + PEAK, *arguments], env=environment, check=True)
        return time.perf_counter() - began, int(peak.read()) / 1024


class Bench:
    """One engine, and a new table for every run."""

    def __init__(self, endpoint: str, parallel: int) -> None:
        self._endpoint = endpoint
        self._parallel = parallel
        self._numbers = itertools.count(1)

    async def _table(self) -> str:
        name = f"load-{next(self._numbers)}"
        transport = BotoTransport(self._endpoint, "eu-central-1", credentials=("local", "local"))
        model = compile_model(SCHEMA.read_text(), table=name)
        await Graph(model, Client(transport)).send(create_table(model, model.tables[name]))
        transport.close()
        return name

    async def plain(self, path: Path) -> tuple[float, float]:
        """Load items by the plain loop."""
        table = await self._table()
        return await asyncio.to_thread(run, [PLAIN, self._endpoint, table, str(path), str(self._parallel)])

    async def ours(self, path: Path) -> tuple[float, float]:
        """Load items or records by our command."""
        table = await self._table()
        options = ["--schema", str(SCHEMA), "--table", table, "--endpoint-url", self._endpoint]
        command = [COMMAND, "load", *options, "--parallel", str(self._parallel), str(path)]
        return await asyncio.to_thread(run, command)


async def main() -> None:
    """Load in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="*", default=[10_000, 50_000, 100_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--parallel", type=int, default=PARALLEL)
    options = parser.parse_args()
    heads = ("items", "input", "plain /s", "ours /s", "ratio", "plain MB", "ours MB")
    print("".join(f"{head:>10}" for head in heads) + f"   (medians of {options.rounds} rounds, starts included)")
    with tempfile.TemporaryDirectory() as folder:
        for count in options.items:
            inputs = write_inputs(Path(folder), count)
            found: dict[str, list[tuple[float, float]]] = {"plain": [], "items": [], "records": []}
            for _ in range(options.rounds):
                # A new engine each time: what is in it already makes the next load slower.
                async with Engine() as engine:
                    bench = Bench(engine.endpoint_url, options.parallel)
                    found["plain"].append(await bench.plain(inputs["items"]))
                    for name, path in inputs.items():
                        found[name].append(await bench.ours(path))
            show(count, found)


def show(count: int, found: dict[str, list[tuple[float, float]]]) -> None:
    """Print a line for each kind of input."""
    seconds = {name: statistics.median(one for one, _ in runs) for name, runs in found.items()}
    memory = {name: max(one for _, one in runs) for name, runs in found.items()}
    for name in ("items", "records"):
        ratio = statistics.median(
            plain / ours for (plain, _), (ours, _) in zip(found["plain"], found[name], strict=True)
        )
        print(
            f"{count:>10,}{name:>10}{count / seconds['plain']:>10,.0f}{count / seconds[name]:>10,.0f}{ratio:>10.2f}"
            f"{memory['plain']:>10.0f}{memory[name]:>10.0f}"
        )


if __name__ == "__main__":
    asyncio.run(main())
