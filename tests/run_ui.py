"""Run the tests of the pages in a browser against demo servers of their own, with their engines in memory.

`--update-screenshots` writes anew the pictures that README shows.
"""

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from server.identity.api_keys import hash_of, make_key
from tests.test_layouts import large_model

ROOT = Path(__file__).parent.parent
IDE = ROOT / "server/ide"
SCREENSHOTS = ROOT / "docs/screenshots"
READY_SECS = 60.0
STOP_SECS = 20.0
TABLEGRAPH = Path(sys.executable).with_name("tablegraph")

GUARDED = """
type Harbour @search @node(key: "HARBOUR_{number}") { number: ID!  name: String! }
type Vault @node(key: "VAULT_{number}") { number: ID!  contents: String @auth(roles: ["guard"]) }
"""
GUARDED_ITEMS = [
    {"pk": {"S": "HARBOUR_1"}, "sk": {"S": "HARBOUR_1"}, "name": {"S": "Guayaquil"}},
    {"pk": {"S": "VAULT_1"}, "sk": {"S": "VAULT_1"}, "contents": {"S": "gold"}},
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def wait_until_ready(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + READY_SECS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit(f"The demo server ended with exit code {server.returncode} before it was ready.")
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=1):
                return
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            time.sleep(0.05)
    sys.exit(f"Expected {url}/readyz to answer 200 within {READY_SECS:.0f} s.")


@contextmanager
def demo(schema: Path, data: list[Path], *options: str | Path) -> Iterator[str]:
    """Serve a model with data; gives the address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # No --db: the engine keeps everything in memory. Only these data, for the tests know them by heart.
    loaded = [argument for file in data for argument in ("--data", file)]
    command = [TABLEGRAPH, "demo", "--schema", schema, *loaded, "--port", str(port), *options]
    with subprocess.Popen(command, cwd=ROOT) as server:
        try:
            wait_until_ready(url, server)
            yield url
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                server.kill()


def fleet(containers: int, pallets: int, boxes: int) -> Iterator[dict[str, dict[str, str]]]:
    """Make containers of so many pallets, each of so many boxes."""
    for one in range(containers):
        container = f"CONTAINER_F{one}"
        yield {"objectId": {"S": container}, "relatedObjectId": {"S": container}, "Operator": {"S": f"Line {one}"}}
        for two in range(pallets):
            pallet = f"PALLET_F{one}-{two:02}"
            yield {"objectId": {"S": pallet}, "relatedObjectId": {"S": pallet}, "Origin": {"S": "EC"}}
            yield _link(container, pallet)
            for three in range(boxes):
                box = f"BOX_F{one}-{two:02}-{three:02}"
                yield {"objectId": {"S": box}, "relatedObjectId": {"S": box}, "WeightInKg": {"N": f"{18 + three}"}}
                yield _link(pallet, box)


def _link(outer: str, inner: str) -> dict[str, dict[str, str]]:
    return {
        "objectId": {"S": outer},
        "relatedObjectId": {"S": inner},
        "LinkedDatetime": {"S": "2026-01-31T08:00:00Z"},
        "LinkedBy": {"S": "Docks"},
    }


def main() -> int:
    """Serve the bananas with a fleet of 507 nodes, and a large model behind API keys; then run the tests."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--update-screenshots", action="store_true")
    screenshots = {"SCREENSHOTS": str(SCREENSHOTS)} if options.parse_args().update_screenshots else {}
    SCREENSHOTS.mkdir(exist_ok=True)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        fleet_file, schema, guarded, keys = (folder / name for name in ("f.jsonl", "s.graphql", "g.jsonl", "k.toml"))
        fleet_file.write_text("".join(f"{json.dumps(row)}\n" for row in fleet(3, 8, 20)))
        schema.write_text(large_model(25, 60) + GUARDED)
        guarded.write_text("".join(f"{json.dumps(row)}\n" for row in GUARDED_ITEMS))
        key = make_key()
        keys.write_text(f'[[keys]]\nname = "guest"\nsha256 = "{hash_of(key)}"\n')
        examples = ROOT / "examples/bananas"
        # Another site for browsers, and one that the server knows.
        friend = f"http://localhost:{free_port()}"
        bananas = demo(
            ROOT / "schema.graphql",
            [examples / "seed.jsonl", fleet_file],
            "--queries",
            examples / "queries",
            "--cors-origins",
            friend,
        )
        environment = {"CHROMIUM": shutil.which("chromium") or "chromium", **os.environ, **screenshots}
        environment["TABLEGRAPH_URL"] = stack.enter_context(bananas)
        environment["TABLEGRAPH_LARGE_URL"] = stack.enter_context(demo(schema, [guarded], "--api-keys", keys))
        environment |= {"TABLEGRAPH_KEY": key, "TABLEGRAPH_FRIEND": friend}
        return subprocess.run(["npm", "test", "--silent"], cwd=IDE, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
