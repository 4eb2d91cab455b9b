"""Imports go one way, server → resolvers → graph, and each room keeps to its libraries."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FORBIDDEN = {
    "graph": {"strawberry", "graphql", "starlette", "resolvers", "server"},
    "resolvers": {"starlette", "boto3", "botocore", "server"},
}


def imported(source: str) -> Iterator[str]:
    for statement in ast.walk(ast.parse(source)):
        if isinstance(statement, ast.Import):
            yield from (alias.name.split(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
            yield statement.module.split(".")[0]


@pytest.mark.parametrize("room", FORBIDDEN)
def test_imports_go_one_way(room: str) -> None:
    files = sorted((ROOT / room).rglob("*.py"))

    wrong = [(str(file.relative_to(ROOT)), name) for file in files for name in imported(file.read_text())]

    assert files, f"{room}/ holds no Python file"
    assert [(file, name) for file, name in wrong if name in FORBIDDEN[room]] == []
