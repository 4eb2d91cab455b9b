"""Build the example frontends, and run their tests in a browser against demo servers of their own, in memory."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.run_ui import demo

ROOT = Path(__file__).parent.parent
FRONTEND = ROOT / "examples/frontend"


def main() -> int:
    schema, bananas = ROOT / "schema.graphql", ROOT / "examples/bananas"
    seed, fleet = bananas / "seed.jsonl", bananas / "fleet.py"
    # The pages would have to be built first, and nobody opens them here.
    bare = ("--graphiql", "false")
    # Vite serves what was generated last, and the tests look at that as well.
    for build in ("build:persisted", "build"):
        subprocess.run(["npm", "run", build], cwd=FRONTEND, check=True)
    with tempfile.TemporaryDirectory() as trusted, ExitStack() as servers:
        shutil.copy(FRONTEND / "relay/persisted.json", f"{trusted}/relay.json")
        shutil.copy(FRONTEND / "apollo/src/__generated__/persisted-documents.json", f"{trusted}/apollo.json")
        url = servers.enter_context(demo(schema, [seed, fleet], *bare))
        trusts = ("--trusted-documents", trusted, "--only-trusted", "true")
        trusting = servers.enter_context(demo(schema, [seed], *bare, *trusts))
        browser = {"CHROMIUM": shutil.which("chromium") or "chromium"}
        environment = browser | dict(os.environ) | {"TABLEGRAPH_URL": url, "TRUSTING_URL": trusting}
        return subprocess.run(["npm", "test"], cwd=FRONTEND, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
