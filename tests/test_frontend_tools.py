"""The tools of frontends take the public schema: graphql-eslint's rules, and Relay's compiler on every example."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from resolvers.schema import print_sdl
from resolvers.sdl import compile_model
from tests.conftest import ROOT
from tests.test_clients import CLIENTS

MODELS = {path.parent.name: path for path in sorted(ROOT.glob("examples/*/schema.graphql"))}
RELAY = CLIENTS / "node_modules/.bin/relay-compiler"
ESLINT = CLIENTS / "node_modules/.bin/eslint"
OPERATION = re.compile(r"^(query|mutation|subscription)\s+\w+", re.M)
FRONTEND = ROOT / "examples/frontend"

from_npm = pytest.mark.skipif(
    not ESLINT.exists() or not RELAY.exists(), reason="the tools from npm are not there: make test brings them"
)


def sdl(example: str) -> str:
    return print_sdl(compile_model(MODELS[example].read_text()))


def run(command: list[str | Path], folder: Path, **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_frontends_are_built_with_the_schema_that_is_served(request: pytest.FixtureRequest) -> None:
    committed = FRONTEND / "api.graphql"
    if request.config.getoption("--update-golden"):
        committed.write_text(sdl("bananas"))

    assert committed.read_text() == sdl("bananas"), "write it anew: make golden"


@from_npm
@pytest.mark.parametrize("example", MODELS)
def test_schema_passes_the_rules_of_graphql_eslint(example: str, tmp_path: Path) -> None:
    schema = tmp_path / "schema.graphql"
    schema.write_text(sdl(example))

    run([ESLINT, "--config", CLIENTS / "eslint.config.js", "schema.graphql"], tmp_path, SCHEMA=str(schema))


@from_npm
@pytest.mark.parametrize("example", MODELS)
def test_relays_compiler_accepts_every_example(example: str, tmp_path: Path) -> None:
    (tmp_path / "schema.graphql").write_text(sdl(example))
    (tmp_path / "src").mkdir()
    config = {"src": "./src", "schema": "./schema.graphql", "language": "typescript"}
    (tmp_path / "relay.config.json").write_text(json.dumps(config))
    # Relay wants an operation to be named after its module.
    for number, path in enumerate(sorted((MODELS[example].parent / "queries").glob("*.graphql"))):
        text = OPERATION.sub(rf"\1 Module{number}\1", path.read_text())
        text = re.sub(rf"Module{number}(\w)", lambda found: found[0].removesuffix(found[1]) + found[1].upper(), text)
        (tmp_path / f"src/Module{number}.ts").write_text(f"graphql`{text}`;")

    run([RELAY], tmp_path)
