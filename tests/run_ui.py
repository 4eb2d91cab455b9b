"""Run GraphiQL's tests in a browser against a demo server of their own, with the engine in memory."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parent.parent
READY_SECS = 60.0
STOP_SECS = 20.0


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


def main() -> int:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # Another site for browsers, and one that the server knows.
    friend = f"http://localhost:{free_port()}"
    tablegraph = Path(sys.executable).with_name("tablegraph")
    # No --db: the engine keeps everything in memory. Only the seed, for the tests know it by heart.
    demo = [
        "demo",
        "--schema",
        "schema.graphql",
        "--data",
        "examples/bananas/seed.jsonl",
        "--queries",
        "examples/bananas/queries",
        "--port",
        str(port),
        "--cors-origins",
        friend,
    ]
    with subprocess.Popen([tablegraph, *demo], cwd=ROOT) as server:
        try:
            wait_until_ready(url, server)
            browser = {"CHROMIUM": shutil.which("chromium") or "chromium"}
            environment = browser | dict(os.environ) | {"TABLEGRAPH_URL": url, "TABLEGRAPH_FRIEND": friend}
            return subprocess.run(["node", "--test"], cwd=ROOT / "server/ide", env=environment).returncode
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECS)
            except subprocess.TimeoutExpired:
                server.kill()


if __name__ == "__main__":
    sys.exit(main())
