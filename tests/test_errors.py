"""Errors: a tree in which every class has a code and says when it is raised, and every AWS error has a place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import get_args

import pytest
from botocore.session import Session

import graph.errors
from graph.answers import AWS_ERRORS
from graph.errors import GraphError, ModelError, Problem, StoreError
from graph.requests import Request
from graph.streams.requests import StreamRequest

TREE = {
    name: kind
    for name, kind in vars(graph.errors).items()
    if inspect.isclass(kind) and issubclass(kind, GraphError) and kind.__module__ == "graph.errors"
}


MORE: Mapping[str, Mapping[str, object]] = {
    "BudgetExceeded": {"limit": "readBudget", "value": 1, "most": 0},
    "CostExceeded": {"limit": "cost", "value": 0.0, "most": 0.0},
    "CircuitOpen": {"retryAfter": 0.0},
}
"""What errors carry besides their code."""


def drawn(text: str | None) -> Iterator[tuple[str, str]]:
    """Read the tree in a docstring: each class with the one that it is drawn below."""
    above: list[str] = []
    for prefix, name in re.findall(r"^((?:[│ ]   )*(?:[├└]── )?)([A-Z]\w+)(?:  |$)", text or "", re.MULTILINE):
        depth = len(prefix) // 4
        del above[depth:]
        yield name, above[-1] if above else "Exception"
        above.append(name)


def test_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    assert dict(drawn(graph.errors.__doc__)) == {name: kind.__bases__[0].__name__ for name, kind in TREE.items()}


def test_every_class_has_a_code_of_its_own() -> None:
    codes = {name: kind.__dict__.get("code") for name, kind in TREE.items()}

    # One of a kind that clients need not tell apart has the code of its kind.
    own = {name: code for name, code in codes.items() if code is not None}
    assert {name for name, code in codes.items() if code is None} == {"CircuitOpen", "KeysRefused"}
    assert all(re.fullmatch(r"[A-Z]+(_[A-Z]+)*", code) for code in own.values()), own
    assert len(set(own.values())) == len(own), own


@pytest.mark.parametrize("kind", TREE.values(), ids=TREE)
def test_every_class_says_in_a_sentence_when_it_is_raised(kind: type[GraphError]) -> None:
    assert kind.__doc__ is not None
    assert re.fullmatch(r"[A-Z][^\n]+\.", kind.__doc__)


@pytest.mark.parametrize(
    "kind", [kind for kind in TREE.values() if kind is not ModelError], ids=lambda kind: kind.__name__
)
def test_error_carries_its_code_and_its_text(kind: type[GraphError]) -> None:
    error = kind("expected this, got that")

    assert str(error) == "expected this, got that"
    assert error.extensions == {"code": kind.code, **MORE.get(kind.__name__, {})}


def test_model_error_lists_every_mistake_once_in_the_order_of_the_file() -> None:
    error = ModelError([Problem(9, 1, "late"), Problem(2, 5, "early"), Problem(9, 1, "late")], "model.graphql")

    assert str(error) == "model.graphql has 2 mistakes:\n  model.graphql:2:5: early\n  model.graphql:9:1: late"
    assert error.problems == (Problem(2, 5, "early"), Problem(9, 1, "late"))
    assert str(ModelError([Problem(1, 1, "only")])).startswith("schema.graphql has 1 mistake:\n")


# --- AWS ----------------------------------------------------------------------------------------------------------

OPERATIONS = sorted(kind.operation for kind in get_args(Request))
STREAM_OPERATIONS = {kind.operation for kind in get_args(StreamRequest)}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_error_that_dynamodb_declares_for_our_operations_has_a_class(operation: str) -> None:
    service = "dynamodbstreams" if operation in STREAM_OPERATIONS else "dynamodb"
    declared = [shape.name for shape in Session().get_service_model(service).operation_model(operation).error_shapes]

    assert declared
    assert [name for name in declared if name not in AWS_ERRORS] == []


def test_every_aws_error_is_one_of_the_store() -> None:
    assert all(issubclass(kind, StoreError) for kind in AWS_ERRORS.values())
