"""Every mistake that a model can have, and the messages that it gets: tests/refusals holds them, by theme.

A case is `=== rule`, the model, `---`, and the messages, complete and in order. `pytest --update-golden` writes the
messages anew; they are reviewed as prose, for an engineer reads them once.
"""

from __future__ import annotations

import ast
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from graphql import Node

from graph.errors import ModelError
from resolvers.sdl import compile_model
from resolvers.sdl.report import Report

COMPILER = Path(__file__).parent.parent / "resolvers/sdl"
CASES = Path(__file__).parent / "refusals"
# Stands for more text than a sort key can hold.
LITERALS = "x" * 1026
# Types that name each other in a longer chain than anybody has meant to write.
CHAIN = 'extend schema @table(name: "things", partitionKey: "pk")\n' + "".join(
    f'type T{n} @node(partition: "{{next}}") {{ next: T{n + 1}! }}\n' for n in range(400)
)


@dataclass(frozen=True)
class Case:
    """A model, and the messages that it is refused with."""

    rule: str
    model: str
    messages: tuple[str, ...]

    def __str__(self) -> str:
        return f"=== {self.rule}\n{self.model}---\n" + "".join(f"{message}\n" for message in self.messages)


def read_cases(text: str) -> Iterator[Case]:
    """Read a file of cases."""
    for case in text.split("=== ")[1:]:
        rule, rest = case.split("\n", 1)
        model, messages = rest.rsplit("---\n", 1)
        yield Case(rule, model, tuple(filter(None, messages.split("\n"))))


def refusal(model: str) -> tuple[str, ...]:
    """Compile a model that must be refused and give the messages."""
    with pytest.raises(ModelError) as refused:
        compile_model(model.replace("LITERALS", LITERALS))
    return tuple(str(problem) for problem in refused.value.problems)


THEMES = {path: list(read_cases(path.read_text())) for path in sorted(CASES.glob("*.txt"))}
ALL = [pytest.param(path, case, id=f"{path.stem}: {case.rule}") for path, cases in THEMES.items() for case in cases]


@pytest.mark.parametrize(("path", "case"), ALL)
def test_a_mistake_is_refused_with_place_expectation_and_cure(
    path: Path, case: Case, request: pytest.FixtureRequest
) -> None:
    messages = refusal(case.model)

    if request.config.getoption("--update-golden"):
        path.write_text(path.read_text().replace(str(case), str(Case(case.rule, case.model, messages))))
    else:
        assert list(messages) == list(case.messages)


@pytest.mark.parametrize(("path", "case"), ALL)
def test_a_mistake_is_reported_once(path: Path, case: Case) -> None:
    places = [message.split(" ")[0] for message in case.messages]

    assert len(set(places)) == len(places)


def test_every_message_of_the_compiler_has_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, int]] = set()
    add = Report.add

    def record(report: Report, node: Node | None, message: str) -> None:
        caller = sys._getframe(1)
        reached.add((Path(caller.f_code.co_filename).name, caller.f_lineno))
        add(report, node, message)

    monkeypatch.setattr(Report, "add", record)
    for model in (CHAIN, *(case.model for cases in THEMES.values() for case in cases)):
        refusal(model)

    sites = list(call_sites("add"))
    assert len(sites) > 60
    assert [f"{name}:{lines[0]}" for name, lines in sites if not any((name, line) in reached for line in lines)] == []


def call_sites(method: str) -> Iterator[tuple[str, range]]:
    """List the lines of every call of a method of the report."""
    for path in sorted(COMPILER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == method:
                owner = ast.unparse(node.func.value)
                if owner in ("report", "self._report"):
                    yield path.name, range(node.lineno, (node.end_lineno or node.lineno) + 1)


def test_a_chain_of_types_that_is_too_long_is_refused() -> None:
    messages = refusal(CHAIN + 'type T400 @node(partition: "T#{number}") { number: ID! }')

    assert messages == (
        "1:1: the types refer to each other in too long a chain: expected fewer than a hundred. Shorten it",
    )


def test_more_global_indexes_than_the_quota_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    indexes = "".join(f'  @index(name: "by-{n}", partitionKey: "a{n}")\n' for n in range(21))
    model = f"""extend schema
  @table(name: "things", partitionKey: "pk")
{indexes}type Box @node(partition: "BOX#{{number}}") {{ number: ID! }}
"""

    with caplog.at_level(logging.WARNING):
        compile_model(model, "things.graphql")

    assert caplog.messages == [
        "things.graphql:23:3: this is global index number 21 of 21: DynamoDB allows 20 on a table unless AWS has "
        "raised the quota. Ask for more, or let types share an index"
    ]
