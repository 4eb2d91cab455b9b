"""Abusive inputs over real connections to a real server: each has its answer, and nobody else notices.

`make golden` writes answers.json and docs/abusive-inputs.md; what changed is reviewed as code.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.abuse.table import TABLE
from tests.abuse.wire import Case, Target, graphql, said
from tests.conftest import BANANAS, ROOT, banana_items, make_table
from tests.run_ui import free_port
from tests.storm import CREDENTIALS, TABLEGRAPH
from tests.test_golden import agree

ANSWERS = Path(__file__).parent / "abuse/answers.json"
DOCUMENT = ROOT / "docs/abusive-inputs.md"
CASES = [(kind, name) for kind, cases in TABLE.items() for name in cases]
MEMORY_MB = 150.0
"""What a server may have grown by all of this: a few bodies and answers at once, and what Python keeps of them."""
UNEXPECTED = ("INTERNAL", "hangs", "no code", "500")
"""What no answer may hold."""
NORMAL = '{ container(number: "000001") { operator pallets(first: 2) { nodes { number } } } }'
FIRST = "{ containers(first: 1) { pageInfo { endCursor } } }"


@dataclass
class Abused:
    """A server, and what it logs."""

    target: Target
    process: subprocess.Popen[bytes]
    log: Path
    normal: str = ""
    memory_mb: float = 0.0

    def holds_mb(self) -> float:
        """Give its resident memory."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1000


@pytest.fixture(scope="module")
def server(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Abused]:
    """Serve the bananas as by default, but for a shorter time for a request to arrive."""
    table = make_table(engine, "abused-bananas", BANANAS.read_text(), banana_items(2))
    port, log = free_port(), tmp_path_factory.mktemp("abuse") / "log"
    given = ("--schema", BANANAS, "--table", table, "--endpoint-url", engine)
    command = (TABLEGRAPH, "serve", *given, "--port", str(port), "--request-timeout-secs", "1")
    with log.open("wb") as output:
        process = subprocess.Popen(command, env={**os.environ, **CREDENTIALS}, stderr=output)
    url = f"http://127.0.0.1:{port}/graphql"
    try:
        with httpx.Client(timeout=20) as http:
            while True:
                with suppress(httpx.TransportError):
                    page = http.post(url, json={"query": FIRST}).json()["data"]["containers"]["pageInfo"]
                    normal = http.post(url, json={"query": NORMAL}).text
                    break
                assert process.poll() is None, log.read_text()
        abused = Abused(Target(port, page["endCursor"]), process, log, normal)
        abused.memory_mb = abused.holds_mb()
        yield abused
    finally:
        process.terminate()
        process.wait()


def answers() -> dict[str, dict[str, str]]:
    """Read what is expected."""
    found: dict[str, dict[str, str]] = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    return found


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}: {name}" for kind, name in CASES])
async def test_abuse_has_its_answer_and_nobody_else_notices(
    server: Abused, kind: str, name: str, request: pytest.FixtureRequest
) -> None:
    case: Case = TABLE[kind][name]
    async with asyncio.timeout(60):
        found = await (said(server.target, case) if isinstance(case, bytes) else case(server.target))

        async with httpx.AsyncClient(timeout=20) as http:
            normal = await http.post(f"http://127.0.0.1:{server.target.port}/graphql", json={"query": NORMAL})
    assert normal.text == server.normal
    assert server.holds_mb() < server.memory_mb + MEMORY_MB
    expected = answers()
    if request.config.getoption("--update-golden"):
        expected.setdefault(kind, {})[name] = found
        kept = {
            kind: {name: given[name] for name in cases if name in given}
            for kind, cases in TABLE.items()
            if (given := expected.get(kind))
        }
        ANSWERS.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
        return
    assert found == expected.get(kind, {}).get(name), f"{name}: review it, and run `make golden`"
    assert not [bad for bad in UNEXPECTED if bad in found]


def test_nothing_unexpected_was_logged(server: Abused) -> None:
    # uvicorn shows a traceback of its own for text that is not UTF-8 on a socket, which it closes as it should.
    assert b"unexpected error" not in server.log.read_bytes()


def test_there_are_many_of_them_and_each_has_its_answer() -> None:
    given = answers()

    assert len(CASES) >= 100
    assert [(kind, name) for kind, cases in given.items() for name in cases] == CASES


def document() -> str:
    """Write docs/abusive-inputs.md."""
    lines = [
        "# Abusive inputs, and the answer to each",
        "",
        "Written by `make golden` from `tests/abuse/`. Each is sent to a server with its default settings, but for",
        "the time in which a request has to arrive. The server then answers an ordinary query as before, its memory",
        "stays bounded, and its log holds nothing unexpected. An answer is told by its HTTP status, by whether it has",
        "data, and by the codes of its errors, or by what came over the WebSocket and with which code it was closed.",
    ]
    for kind, cases in answers().items():
        lines += ["", f"## {kind}", "", "| sent | answer |", "| --- | --- |"]
        lines += [f"| {_cell(name)} | {_cell(given)} |" for name, given in cases.items()]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_document_is_fresh(request: pytest.FixtureRequest) -> None:
    agree(DOCUMENT, document(), update=bool(request.config.getoption("--update-golden")))


def test_an_ordinary_query_is_no_abuse(server: Abused) -> None:
    assert asyncio.run(said(server.target, graphql(NORMAL))) == "200 data"
