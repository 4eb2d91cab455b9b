"""Plans answer as the reference does, whatever the model, the data and the query; and a difference would be found."""

from __future__ import annotations

from typing import Any

import pytest

from resolvers.operation import Outcome
from tests import differential, differential_worlds
from tests.differential_compare import Answer, Error, differences

CASES = 1000
EVERYTHING = (
    *("alias", "same field twice", "@skip", "@include", "__typename", "introspection", "next pages"),
    *(
        "inline fragment on union",
        "inline fragment on interface",
        "inline fragment without type",
        "named fragment again",
    ),
    *("connection(first:)", "connection(last:)", "connection(after:)", "connection(before:)", "connection(where:)"),
    *("connection(order:)", "variable default", "variable absent", "variable null", "variable wrong"),
    *("again with other variables", "several operations", "spoilt documents"),
    *("models designed", "models of examples", "models of tests", "items lacking", "items foreign"),
    *("code BAD_CURSOR", "code BAD_ID", "code BAD_PAGE", "code BAD_ITEM_VALUE", "code BAD_USER_INPUT"),
    *("lookup", "find", "field node", "field versions", "field totalCount", "reference to one", "union below"),
    *("answers with data and errors", "answers nulled above an error", "answers refused", "worlds that sign"),
)


def test_plans_answer_as_the_reference_does() -> None:
    report = differential.run(1, CASES)

    assert not report.problems, "\n\n".join(report.problems.values())
    assert report.cases == CASES
    assert [name for name in EVERYTHING if not report.tally[name]] == []


def test_the_reference_answers_as_it_did_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential_worlds, "EXECUTORS", ["reference", "reference"])

    report = differential.run(10_000, CASES // 4)

    assert not report.problems, "\n\n".join(report.problems.values())


async def test_plans_answer_as_the_reference_does_on_an_engine(engine: str) -> None:
    report = await differential.run_on_engine(engine, [3, 4, 8])

    assert not report.problems, "\n\n".join(report.problems.values())


def test_a_difference_is_found_and_the_command_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Were the second executor to lose an error, to read more, or to turn two keys round, it would be told."""
    ask, asked = differential.ask, 0

    async def spoilt(world: Any, api: Any, query: Any) -> Answer:
        nonlocal asked
        answer = await ask(world, api, query)
        data = answer.body.get("data")
        if api is world.apis[1] and data and len(data) > 1:
            asked += 1
            answer.body["data"] = dict(reversed(data.items()))
        return answer

    monkeypatch.setattr(differential, "ask", spoilt)
    monkeypatch.setattr("sys.argv", ["differential", "--seed", "1", "--cases", "40", "--most", "1"])

    assert differential.main() == 1
    assert asked > 0
    said = capsys.readouterr().out
    assert "order of keys" in said
    assert "python -m tests.differential --seed 1 --cases" in said


# --- what counts as a difference ----------------------------------------------------------------------------------

COST = {"requests": {"total": 3}, "itemsRead": 5, "capacityUnits": 1.5}


def error(*path: str | int, message: str = "no", column: int = 1) -> Error:
    """Write an error as a response holds it."""
    return {"message": message, "path": list(path), "locations": [{"line": 1, "column": column}]}


def answer(data: Any, *errors: Error, outcome: Outcome = "executed", **cost: Any) -> Answer:
    """Write an answer."""
    more = {"errors": list(errors)} if errors else {}
    return Answer({"data": data, **more, "extensions": {"cost": {**COST, **cost}}}, outcome)


async def found(one: Answer, other: Answer, *possible: Error) -> list[str]:
    """Compare two answers; `possible` are the errors of the lenient execution."""

    async def lenient() -> list[Error]:
        return list(possible)

    return await differences(one, other, lenient)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(answer({"a": 1}), answer({"a": 2}), "data at .a", id="another value"),
        pytest.param(answer({"a": 1}), answer({"a": 1.0}), "data at .a", id="another kind of number"),
        pytest.param(answer({"a": [1, 2]}), answer({"a": [2, 1]}), "data at .a[0]", id="another order"),
        pytest.param(answer({"a": 1, "b": 2}), answer({"b": 2, "a": 1}), "order of keys", id="keys turned round"),
        pytest.param(answer({"a": None}), answer({"a": None}, error("a")), "entries", id="an error more"),
        pytest.param(
            answer({"a": None}, error("a")), answer({"a": None}, error("a", message="yes")), "errors", id="message"
        ),
        pytest.param(
            answer({"a": None}, error("a")), answer({"a": None}, error("a", column=2)), "errors", id="another location"
        ),
        pytest.param(answer(None), answer(None, outcome="refused"), "outcome", id="another outcome"),
        pytest.param(answer({}), answer({}, requests={"total": 4}), "requests", id="a request more"),
        pytest.param(answer({}), answer({}, itemsRead=6), "itemsRead", id="an item more"),
        pytest.param(answer({}), answer({}, capacityUnits=2.0), "capacityUnits", id="more units"),
    ],
)
async def test_what_differs_is_told(one: Answer, other: Answer, expected: str) -> None:
    said = await found(one, other)

    assert said
    assert said[0].startswith(expected)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(answer({"a": 1}), answer({"a": 1}), id="all alike"),
        pytest.param(answer({}), answer({}, requests={"total": 2}, itemsRead=4), id="less is read"),
        pytest.param(
            answer({"a": None, "b": None}, error("a"), error("b")),
            answer({"a": None, "b": None}, error("b"), error("a")),
            id="errors in another order",
        ),
        pytest.param(
            answer({"a": None}, error("a", "x")), answer({"a": None}, error("a", "y")), id="the first of two errors"
        ),
        pytest.param(
            answer({"a": None}, error("a", "x")),
            answer({"a": None}, error("a", "x"), requests={"total": 9}),
            id="what is cancelled may have been sent",
        ),
    ],
)
async def test_what_is_left_open_is_no_difference(one: Answer, other: Answer) -> None:
    assert await found(one, other, error("a", "x"), error("a", "y")) == []


async def test_an_error_that_nothing_can_cause_is_told() -> None:
    one, other = answer({"a": None}, error("a", "x")), answer({"a": None}, error("a", "z"))

    (said,) = await found(one, other, error("a", "x"), error("a", "y"))

    assert said.startswith("errors below the null at ('a',)")


async def test_the_only_error_below_a_null_is_that_of_both() -> None:
    one = answer({"a": None}, error("a", "x"))

    (said,) = await found(one, answer({"a": None}, error("a")), error("a", "x"))

    assert said.startswith("errors below the null at ('a',)")
