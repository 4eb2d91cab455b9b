"""Build the example frontends, and run their tests in a browser against demo servers of their own, in memory."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.run_ui import STOP_SECS, free_port, wait_until_ready

ROOT = Path(__file__).parent.parent
FRONTEND = ROOT / "examples/frontend"


@contextmanager
def demo(*options: str) -> Iterator[str]:
    """Serve the banana graph on a free port; give the address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    tablegraph = Path(sys.executable).with_name("tablegraph")
    command = [
        str(tablegraph),
        "demo",
        "--schema",
        "schema.graphql",
        "--port",
        str(port),
        "--graphiql",
        "false",
        *options,
    ]
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


def main() -> int:
    seed, fleet = ("--data", "examples/bananas/seed.jsonl"), ("--data", "examples/bananas/fleet.py")
    # Vite serves what was generated last, and the tests look at that as well.
    for build in ("build:persisted", "build"):
        subprocess.run(["npm", "run", build], cwd=FRONTEND, check=True)
    with tempfile.TemporaryDirectory() as trusted, ExitStack() as servers:
        shutil.copy(FRONTEND / "relay/persisted.json", f"{trusted}/relay.json")
        shutil.copy(FRONTEND / "apollo/src/__generated__/persisted-documents.json", f"{trusted}/apollo.json")
        url = servers.enter_context(demo(*seed, *fleet))
        trusting = servers.enter_context(demo(*seed, "--trusted-documents", trusted, "--only-trusted", "true"))
        browser = {"CHROMIUM": shutil.which("chromium") or "chromium"}
        environment = browser | dict(os.environ) | {"TABLEGRAPH_URL": url, "TRUSTING_URL": trusting}
        return subprocess.run(["npm", "test"], cwd=FRONTEND, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
