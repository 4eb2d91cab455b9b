"""A server starts without what it does not need."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


def imported_by(command: str) -> set[str]:
    """The modules that there are once a command has failed for want of a model."""
    program = (
        f"import sys; from server.cli import main; code = main({command.split()!r} + ['--schema', 'none.graphql'])\n"
        "print(code, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    code, *modules = done.stdout.split()
    assert code == "2", done.stderr
    return set(modules)


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("serve", {"server.bulk", "server.apply", "server.maintenance", "server.engine", "graph.imagined"}),
        ("serve", {"server.telemetry", "opentelemetry", "prometheus_client", "resolvers.redaction"}),
        ("check", {"server.bulk", "server.app", "uvicorn", "starlette"}),
        ("serve --workers 1", {"server.workers"}),
    ],
)
def test_a_command_imports_nothing_of_the_others(command: str, unneeded: set[str]) -> None:
    assert imported_by(command) & unneeded == set()
