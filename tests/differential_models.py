"""The models that are compared: designed at random, those of the examples with their rows, and those of other tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from graph.bulk.items import ItemReader
from graph.errors import GraphError
from graph.model import Model
from resolvers.sdl import compile_model
from server.demo import read_items
from tests.differential_data import Data
from tests.differential_designs import designed

ROOT = Path(__file__).parent.parent
FIXED = ("examples/bananas", "examples/order-entry", "examples/b2b", "examples/step5")


@dataclass(frozen=True)
class Source:
    """Where a model comes from."""

    name: str
    kind: str
    sdl: str

    def add_items(self, model: Model, data: Data) -> None:
        """Put the rows of an example beside the data that was made up."""
        reader = ItemReader(model, allow_unfit=True)
        for path in sorted((ROOT / self.name).glob("*.jsonl")) if self.kind == "of examples" else ():
            for item in read_items(path):
                for placed in reader.items(item):
                    data.tables.setdefault(placed.table, []).append(placed.item)


def choose(dice: Random) -> tuple[Source, Model]:
    """Draw a model."""
    kind = dice.random()
    if kind < 0.5:
        sdl, model = designed(dice)
        return Source("designed at random", "designed", sdl), model
    sources = _examples() if kind < 0.7 else _of_tests()
    while True:
        source = dice.choice(sources)
        try:
            model = compile_model(source.sdl)
        except GraphError:
            # Some tests are of models that cannot work.
            continue
        if model.items:
            return source, model


@cache
def _examples() -> list[Source]:
    found = [Source(name, "of examples", (ROOT / name / "schema.graphql").read_text()) for name in FIXED]
    return [*found, Source("tests/storm.graphql", "of tests", (ROOT / "tests/storm.graphql").read_text())]


@cache
def _of_tests() -> list[Source]:
    """List the models that stand in the tests' files and each was written for something that is special."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / "tests").glob("*.py")):
        if not path.name.startswith(("differential", "test_differential")):
            for text in _texts(ast.parse(path.read_text())):
                found.setdefault(text, path.name)
    return [Source(name, "of tests", text) for text, name in found.items()]


def _texts(module: ast.Module) -> list[str]:
    """List the texts of a module that look like models, with the names that stand for text put in."""
    names: dict[str, str] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            text = _text(statement.value, names)
            if text is not None:
                names[statement.targets[0].id] = text
    texts = (_text(node, names) for node in ast.walk(module) if isinstance(node, (ast.Constant, ast.BinOp, ast.Call)))
    return [
        text for text in texts if text and re.search(r"extend\s+schema", text) and re.search(r"@(node|edge)\(", text)
    ]


def _text(node: ast.expr, names: Mapping[str, str]) -> str | None:
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Name(name):
            return names.get(name)
        case ast.BinOp(left, ast.Add(), right):
            one, two = _text(left, names), _text(right, names)
            return None if one is None or two is None else one + two
        case ast.Call(ast.Attribute(inner, "strip" | "rstrip" as method), [], []):
            text_ = _text(inner, names)
            return None if text_ is None else getattr(text_, method)()
    return None
