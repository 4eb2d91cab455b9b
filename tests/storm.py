"""A storm of writes: clients that create, link, move, change and delete, while server and engine are killed.

Each client owns crates of its own, so that it knows what they must be; the depots, their counters and their copies are
everybody's. Every write has an idempotency key and is sent until it is answered, whatever dies meanwhile: what was
acknowledged is there once, and `tablegraph verify` finds nothing. With copies by stream all this holds as soon as
the server has followed what was written.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from graph.boto import BotoTransport
from graph.client import Client
from graph.loaders import Graph
from graph.tables import create_table
from resolvers.sdl import compile_model
from server.engine import Engine
from tests.faults import NONE, FaultProxy, Faults
from tests.run_ui import free_port

SCHEMA = Path(__file__).with_name("storm.graphql")
TABLEGRAPH = Path(sys.executable).with_name("tablegraph")
DEPOTS = [f"D{number}" for number in range(6)]
MOST_CRATES = 5
"""Of each client: a depot that all of them fill can still be renamed in one transaction."""
STATES = ("NEW", "STORED", "GONE")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "eu-central-1"}
PASSING = {"STORE_UNAVAILABLE", "DEADLINE_EXCEEDED", "THROTTLED", "WRITE_CONFLICT", "SHUTTING_DOWN", "INTERNAL"}
"""Codes after which the same write is sent again."""

CREATE = """mutation($input: CreateCrateInput!) { createCrate(input: $input) { crate { version } } }"""
UPDATE = """mutation($key: CrateKey!, $set: UpdateCrateInput!) {
  updateCrate(key: $key, set: $set) { crate { version } } }"""
LINK = """mutation($input: CreateStorageInput!) { upsertStorage(input: $input) { storage { weight } } }"""
UNLINK = """mutation($key: StorageKey!) { deleteStorage(key: $key) { storage { weight } } }"""
CARRY = """mutation($key: StorageKey!, $input: CreateStorageInput!) @transaction {
  deleteStorage(key: $key) { storage { weight } } createStorage(input: $input) { storage { weight } } }"""
ADD = """mutation($key: StorageKey!, $by: Int!) {
  updateStorage(key: $key, increment: { weight: $by }) { storage { weight } } }"""
RENAME = """mutation($key: DepotKey!, $name: String!) {
  updateDepot(key: $key, set: { name: $name }) { depot { name } } }"""
DELETE = """mutation($key: CrateKey!) { deleteCrate(key: $key, cascade: true) { deletedId } }"""
DEPOT = """mutation($input: CreateDepotInput!) { createDepot(input: $input) { depot { number } } }"""
LOOK = """query($number: ID!) {
  crate(number: $number) { label state depots(first: 100) { edges { weight node { number name } } } } }"""
COUNTS = """query($number: ID!) { depot(number: $number) {
  crateCount weight crates(first: 1000) { totalCount edges { weight node { number label state } } } } }"""


@dataclass
class Crate:
    """What a client knows of one of its crates."""

    label: str | None
    state: str
    weights: dict[str, int] = field(default_factory=dict)


@dataclass
class Storm:
    """One run: the server that is written to, and what is known of it."""

    url: str
    until: float
    seed: int
    tally: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    async def send(self, http: httpx.AsyncClient, query: str, variables: dict[str, Any]) -> dict[str, Any]:
        """Send a write until it is answered, always with the same key."""
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        give_up, last = self.until + 60, ""
        while time.monotonic() < give_up:
            try:
                answer = await http.post(self.url, json={"query": query, "variables": variables}, headers=headers)
                body: dict[str, Any] = answer.json()
            except (httpx.HTTPError, ValueError):
                self.tally["lost answers"] += 1
                await asyncio.sleep(0.05)
                continue
            codes = {error["extensions"]["code"] for error in body.get("errors", ())}
            if not codes:
                return body
            if not codes <= PASSING | {"ROLLED_BACK"}:
                self.problems.append(f"{query.split('{')[1].split('(')[0].strip()} {variables}: {body['errors']}")
                return body
            self.tally.update(codes)
            last = str(body["errors"])
            await asyncio.sleep(0.05)
        raise AssertionError(f"no answer to {query} within a minute after the storm, at last {last}")

    async def client(self, number: int) -> dict[str, Crate | None]:
        """Write at random until the storm is over, and give what must be there; None for what must not."""
        dice = random.Random(f"{self.seed}/{number}")
        crates: dict[str, Crate | None] = {}
        async with httpx.AsyncClient(timeout=20) as http:
            while time.monotonic() < self.until:
                await self.step(http, dice, number, crates)
        return crates

    async def step(
        self, http: httpx.AsyncClient, dice: random.Random, number: int, crates: dict[str, Crate | None]
    ) -> None:
        """Carry out one random write."""
        alive = {name: crate for name, crate in crates.items() if crate is not None}
        name = dice.choice(sorted(alive)) if alive else ""
        crate = alive.get(name) or Crate(None, "NEW")
        kinds = ["rename depot", *(["create"] if len(alive) < MOST_CRATES else [])]
        kinds += ["update"] * 3 + ["link"] * 4 + ["move", "delete"] if alive else []
        kinds += ["unlink", "carry", "add", "add"] if crate.weights else []
        kind = dice.choice(kinds)
        self.tally[kind] += 1
        depot = dice.choice(DEPOTS)
        held = dice.choice(sorted(crate.weights)) if crate.weights else depot
        key = {"depot": {"number": held}, "crate": {"number": name}}
        weight = dice.randrange(1, 50)
        edge = {"depot": {"number": depot}, "crate": {"number": name}, "weight": weight}
        if kind == "create":
            name = f"{number}-{len(crates)}-{dice.randrange(10**6)}"
            crates[name] = Crate("new", "NEW", {depot: weight})
            depots = [{"depot": {"number": depot}, "weight": weight}]
            given = {"number": name, "label": "new", "state": "NEW", "depots": depots}
            await self.send(http, CREATE, {"input": given})
        elif kind == "rename depot":
            await self.send(http, RENAME, {"key": {"number": depot}, "name": f"name {dice.randrange(1000)}"})
        elif kind == "update":
            crate.label, crate.state = dice.choice([None, "a", "b"]), dice.choice(STATES)
            await self.send(
                http, UPDATE, {"key": {"number": name}, "set": {"label": crate.label, "state": crate.state}}
            )
        elif kind == "link":
            crate.weights[depot] = weight
            await self.send(http, LINK, {"input": edge})
        elif kind == "unlink":
            del crate.weights[held]
            await self.send(http, UNLINK, {"key": key})
        elif kind == "carry" and depot not in crate.weights:
            del crate.weights[held]
            crate.weights[depot] = weight
            await self.send(http, CARRY, {"key": key, "input": edge})
        elif kind == "add":
            crate.weights[held] += weight
            await self.send(http, ADD, {"key": key, "by": weight})
        elif kind == "move":
            new = f"{name}m"
            crates[new], crates[name] = crate, None
            await self.send(http, UPDATE, {"key": {"number": name}, "set": {"number": new}})
        elif kind == "delete":
            crates[name] = None
            await self.send(http, DELETE, {"key": {"number": name}})

    async def compare(self, expected: dict[str, Crate | None]) -> None:
        """Compare what was acknowledged with what every read path shows."""
        async with httpx.AsyncClient(timeout=60) as http:
            for name, crate in expected.items():
                found = (await self.ask(http, LOOK, name))["crate"]
                weights = {edge["node"]["number"]: edge["weight"] for edge in found["depots"]["edges"]} if found else {}
                seen = Crate(found["label"], found["state"], weights) if found else None
                if seen != crate:
                    self.problems.append(f"crate {name}: expected {crate}, found {seen}")
            for depot in DEPOTS:
                found = (await self.ask(http, COUNTS, depot))["depot"]
                wanted = {n: c for n, c in expected.items() if c is not None and depot in c.weights}
                seen_copies = {
                    edge["node"]["number"]: (edge["node"]["label"], edge["node"]["state"], edge["weight"])
                    for edge in found["crates"]["edges"]
                }
                copies = {n: (c.label, c.state, c.weights[depot]) for n, c in wanted.items()}
                total = sum(crate.weights[depot] for crate in wanted.values())
                counts = found["crateCount"], found["weight"], found["crates"]["totalCount"]
                if counts != (len(wanted), total, len(wanted)):
                    self.problems.append(f"depot {depot}: expected {len(wanted)} crates of {total}, found {counts}")
                if len(copies) <= 1000 and seen_copies != copies:
                    self.problems.append(f"depot {depot}: its copies differ from its crates")

    async def ask(self, http: httpx.AsyncClient, query: str, number: str) -> dict[str, Any]:
        answer = await http.post(self.url, json={"query": query, "variables": {"number": number}})
        data: dict[str, Any] = answer.json()["data"]
        return data


@dataclass
class Victim:
    """The server process, started again whenever it was killed."""

    schema: Path
    endpoint_url: str
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command: list[str | Path] = [
            TABLEGRAPH,
            "serve",
            "--schema",
            self.schema,
            "--endpoint-url",
            self.endpoint_url,
            "--port",
            str(self.port),
        ]
        environment = {**os.environ, **CREDENTIALS}
        self.process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


async def caught_up(storm: Storm) -> None:
    """Wait until the server, which may have been killed a moment ago, has followed all that was written."""
    before: dict[str, Any] = {}
    async with httpx.AsyncClient(timeout=20) as http:
        while True:
            now: dict[str, Any] = (await http.get(storm.url.replace("/graphql", "/streamz"))).json()
            if now["reading"] and now["lagSecs"] == 0 and now == before:
                break
            before = now
            await asyncio.sleep(1)
    if now["abandoned"] or now["gaps"]:
        storm.problems.append(f"not all was followed: {now}")
    storm.tally["changes followed since the last kill"] = now["changes"]


async def kill_at_random(storm: Storm, engine: Engine, server: Victim, kills: int) -> None:
    """Kill server and engine so many times each, all over the storm, with -9."""
    dice = random.Random(storm.seed)
    begin = time.monotonic()
    moments = sorted((dice.random(), who) for who in ("server", "engine") for _ in range(kills))
    for moment, who in moments:
        await asyncio.sleep(max(0.0, begin + moment * (storm.until - begin) - time.monotonic()))
        storm.tally[f"{who} killed"] += 1
        if who == "server":
            server.kill()
            server.start()
        elif engine.pid is not None:
            try:
                os.kill(engine.pid, signal.SIGKILL)
            except ProcessLookupError:
                storm.tally["engine was dead"] += 1


async def blow(
    seconds: float, clients: int, kills: int, seed: int, copies: str = "TRANSACTION", faults: Faults = NONE
) -> Storm:
    """Raise a storm over a table of its own, on a day of such faults, and give what it found."""
    with tempfile.TemporaryDirectory() as folder:
        schema = Path(folder) / "storm.graphql"
        schema.write_text(SCHEMA.read_text().replace('type: "kind"', f'type: "kind", copies: {copies}'))
        async with (
            Engine(db_path=Path(folder) / "storm.db") as engine,
            FaultProxy(engine.endpoint_url, faults, seed=seed) as proxy,
        ):
            model = compile_model(schema.read_text())
            transport = BotoTransport(engine.endpoint_url, "eu-central-1", credentials=("local", "local"))
            for table in model.tables.values():
                await Graph(model, Client(transport)).send(create_table(model, table))
            transport.close()
            server = Victim(schema, engine.endpoint_url if faults == NONE else proxy.url, free_port())
            server.start()
            try:
                return await _blow(seconds, clients, kills, seed, engine, server, follows=copies == "STREAM")
            finally:
                server.kill()


async def _blow(
    seconds: float, clients: int, kills: int, seed: int, engine: Engine, server: Victim, *, follows: bool
) -> Storm:
    storm = Storm(f"http://127.0.0.1:{server.port}/graphql", time.monotonic() + 30, seed)
    async with httpx.AsyncClient(timeout=20) as http:
        for depot in DEPOTS:
            await storm.send(http, DEPOT, {"input": {"number": depot, "name": "new"}})
    storm.until = time.monotonic() + seconds
    known, _ = await asyncio.gather(
        asyncio.gather(*(storm.client(number) for number in range(clients))),
        kill_at_random(storm, engine, server, kills),
    )
    if follows:
        began = time.monotonic()
        await caught_up(storm)
        storm.tally["ms to catch up"] = round(1000 * (time.monotonic() - began))
    await storm.compare({name: crate for crates in known for name, crate in crates.items()})
    verify = await asyncio.create_subprocess_exec(
        *(TABLEGRAPH, "verify", "--schema", server.schema, "--endpoint-url", engine.endpoint_url),
        env={**os.environ, **CREDENTIALS},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await verify.communicate()
    if verify.returncode:
        storm.problems.append(f"verify: {out.decode()}{err.decode()}")
    return storm


def main() -> int:
    """Raise a storm as the command line says, print what happened, and fail when anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=5, help="of the server, and as many of the engine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copies", choices=("TRANSACTION", "STREAM"), default="TRANSACTION")
    options = parser.parse_args()
    storm = asyncio.run(blow(options.seconds, options.clients, options.kills, options.seed, options.copies))
    lines = [f"{count:6} {name}" for name, count in sorted(storm.tally.items())]
    sys.stdout.write("\n".join([*lines, *storm.problems[:20], f"{len(storm.problems)} problems", ""]))
    return 1 if storm.problems else 0


if __name__ == "__main__":
    sys.exit(main())
