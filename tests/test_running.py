"""What the server is run by: image, service, Procfile, and the template and packages of the function."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import IO

import pytest

from server.production import check_production
from server.settings import load_settings
from tests.conftest import BANANAS, ROOT

SERVICE = ROOT / "deploy/tablegraph.service"
TEMPLATE = ROOT / "deploy/lambda.yaml"


def dockerfile() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, in order."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", "")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def only(name: str) -> str:
    """The last instruction of a kind."""
    return [rest for each, rest in dockerfile() if each == name][-1]


def given(text: str) -> dict[str, str]:
    """The variables of ours among NAME=value pairs."""
    return dict(re.findall(r"(TABLEGRAPH_\w+)=(\S+)", text))


# The image


def test_the_image_is_made_of_files_that_there_are_and_that_docker_is_given() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    sources = [
        source
        for name, rest in dockerfile()
        if name == "COPY" and not rest.startswith("--from=")
        for source in rest.split()[:-1]
    ]

    assert [source for source in sources if not (ROOT / source).exists()] == []
    assert {source.split("/")[0] for source in sources} == let_in
    kept_out = [rule for rule in rules[1:] if not rule.startswith("!")]
    assert [source for source in sources for rule in kept_out if fnmatch(source, rule)] == []


def test_everything_in_the_image_has_its_hash_and_was_built_elsewhere() -> None:
    steps = [step.strip() for name, rest in dockerfile() if name == "RUN" for step in rest.split("&&")]
    installs = [step for step in steps if re.search(r"\bpip\b.* install ", step)]

    assert len(installs) == 3
    for step in installs:
        assert "--no-deps --no-index" in step or "--require-hashes --only-binary :all:" in step, step
    assert [step for step in steps if step.startswith("npm")] == ["npm ci --no-audit --no-fund", "npm run build"]
    assert not any("apt-get" in step for step in steps)


def test_the_image_serves_as_nobody_in_particular() -> None:
    last = dockerfile()[[name for name, _ in dockerfile()].index("USER") :]

    assert int(only("USER")) > 0
    assert not {"RUN", "COPY"} & {name for name, _ in last}, "nothing is written once rights are given up"
    assert json.loads(only("ENTRYPOINT")) + json.loads(only("CMD")) == ["tablegraph", "serve"]
    settings = load_settings(given(only("ENV")))
    assert settings.production
    assert (settings.host, settings.port) == ("0.0.0.0", int(only("EXPOSE")))  # noqa: S104


class Health(BaseHTTPRequestHandler):
    """Answers with the status that its server has."""

    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def healthy() -> Iterator[str]:
    """The port of something that is well."""
    server = HTTPServer(("127.0.0.1", 0), Health)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield str(server.server_port)
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_image_tells_whether_it_is_well(healthy: str) -> None:
    python, *arguments = json.loads(only("HEALTHCHECK").split("CMD", 1)[1])
    assert python == "python"

    def check(port: str) -> int:
        command = [sys.executable, *arguments]
        return subprocess.run(command, env={"TABLEGRAPH_PORT": port}, stderr=subprocess.DEVNULL).returncode

    assert check(healthy) == 0
    assert check("1") == 1, "nobody listens"


# The packages


def test_what_runs_is_locked_as_everything_is() -> None:
    def pins(lock: str) -> dict[str, str]:
        text = re.sub(r"^ +#.*\n", "", (ROOT / lock).read_text(), flags=re.MULTILINE)
        return dict(re.findall(r"^([\w-]+)(==.*(?:\n    --hash.*)+)", text, re.MULTILINE))

    everything, run = pins("requirements.lock"), pins("requirements-run.lock")

    assert {"boto3", "mangum", "redis", "uvicorn"} <= run.keys()
    assert not {"mypy", "pytest", "ruff", "hatchling"} & run.keys()
    # A package may be for fewer platforms where fewer want it; what it is stays the same.
    hashes = {name: text.partition("\\")[2] for name, text in everything.items()}
    assert [name for name, text in run.items() if text.partition("\\")[2] != hashes[name]] == []


# Processes


def served(stderr: IO[str]) -> str:
    """Wait until a server says where it is."""
    lines = []
    for line in stderr:
        lines.append(line)
        if "GraphQL at " in line:
            return line
    raise AssertionError("".join(lines))


def test_procfile_starts_as_many_workers_as_it_is_told_on_the_port_that_it_is_given(
    engine: str, banana_table: str
) -> None:
    name, _, command = (ROOT / "Procfile").read_text().strip().partition(": ")
    assert name == "web"
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PORT": "0",
        "TABLEGRAPH_SCHEMA": str(BANANAS),
        "TABLEGRAPH_TABLE": banana_table,
        "TABLEGRAPH_ENDPOINT_URL": engine,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "TABLEGRAPH_SIGNING_KEYS": "k" * 43,
        "TABLEGRAPH_ANONYMOUS": "true",
    }
    for more, wanted in ({}, False), ({"WEB_CONCURRENCY": "2"}, True):
        started = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"], env=environment | more, cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        with started:
            assert started.stderr is not None
            line = json.loads(served(started.stderr))
            started.send_signal(signal.SIGTERM)
            started.stderr.read()

        assert line["message"].startswith("GraphQL at http://0.0.0.0:")
        assert ("worker" in line) is wanted
        assert started.returncode in (0, -signal.SIGTERM)


def directives() -> dict[str, str]:
    """The directives of the service; of one that is given twice the last."""
    return dict(re.findall(r"^(\w+)=(.*)$", SERVICE.read_text(), re.MULTILINE))


def test_the_service_ends_by_itself_before_systemd_ends_it() -> None:
    settings = load_settings(given(directives()["Environment"].replace("@%d/signing-keys", "k" * 43)))

    assert shlex.split(directives()["ExecStart"])[1:] == ["serve", "--production"]
    assert int(directives()["TimeoutStopSec"]) > settings.graceful_shutdown_secs
    assert directives()["DynamicUser"] == directives()["NoNewPrivileges"] == "yes"
    assert directives()["ProtectSystem"] == "strict"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_understands_the_service_and_finds_it_confined(tmp_path: Path) -> None:
    unit = tmp_path / "tablegraph.service"
    unit.write_text(SERVICE.read_text().replace("/opt/tablegraph/bin/tablegraph", "/bin/true"))

    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")
    rated = subprocess.run(["systemd-analyze", "security", "--offline=true", unit], capture_output=True, text=True)
    rating = re.search(r"exposure level for tablegraph.service: ([\d.]+)", rated.stdout)
    assert rating is not None
    assert float(rating[1]) < 2, rated.stdout


# The function


def test_the_template_names_what_there_is() -> None:
    text = TEMPLATE.read_text()
    values = dict(re.findall(r"^ +(\w+): \"?([^\s\"]+)\"?$", text, re.MULTILINE))
    module, _, name = values["Handler"].rpartition(".")

    assert callable(getattr(import_module(module), name))
    ours = {name: value for name, value in values.items() if name.startswith("TABLEGRAPH_")}
    settings = load_settings(ours | {"TABLEGRAPH_TABLE": "t", "TABLEGRAPH_SIGNING_KEYS": "k" * 43})
    check_production(settings)
    assert settings.operation_timeout_secs < int(values["Timeout"]) - 2, "the client is told that time is up"
    makefile = (ROOT / "Makefile").read_text()
    assert f"build/lambda/{settings.schema}\n" in makefile
    assert (TEMPLATE.parent / values["CodeUri"]).resolve() == ROOT / "build/lambda"
