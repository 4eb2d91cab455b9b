"""Limits of a document: abusive ones with the answer to each, and counting that equals counting the naive way."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import pytest
from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    OperationDefinitionNode,
    SelectionNode,
    get_introspection_query,
    parse,
    validate,
)
from hypothesis import given
from hypothesis import strategies as st

from graph.imagined import ImaginedTable
from graph.loaders import Graph
from resolvers import documents, limits
from resolvers.limits import DocumentLimits, Measured, Unmeasurable, exceeded, measure, merges
from resolvers.operation import Request, Response
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.settings import load_settings
from tests.conftest import BANANAS, ROOT

MODEL = compile_model(BANANAS.read_text())
API = Api(Graph(MODEL, ImaginedTable(MODEL, 1, 100)))
NONE = DocumentLimits(*[sys.maxsize] * len(fields(DocumentLimits)))


def of_container(selections: str) -> str:
    return f'{{ container(number: "1") {{ {selections} }} }}'


def fragments(count: int, selections: str, last: str = "number") -> str:
    """Fragments of which each has these selections, `NEXT` being the name of the next one."""
    each = [f"fragment F{n} on Container {{ {selections} }}".replace("NEXT", f"F{n + 1}") for n in range(count)]
    return " ".join([*each, f"fragment F{count} on Container {{ {last} }}"])


def nested(levels: int) -> str:
    return (
        "{ container(number: 1) { " + "pallets { nodes { container { " * levels + "number" + " } } }" * levels + " } }"
    )


def numbered(count: int, text: str) -> str:
    return " ".join(text.replace("N", str(n)) for n in range(count))


INVALID = ("GRAPHQL_VALIDATION_FAILED",)
ABUSIVE: dict[str, tuple[str, tuple[Any, ...]]] = {
    # What is refused before the document is parsed to its end.
    "100,000 tokens": (of_container("number " * 100_000), (("tokens", 10_001, 10_000),)),
    "400,000 comments": ("#\n" * 400_000 + of_container("number"), (("tokens", 10_001, 10_000),)),
    "a list of 100,000 values": (f"{{ nodes(ids: [{'1 ' * 100_000}]) {{ id }} }}", (("tokens", 10_001, 10_000),)),
    "10,000 aliases": (of_container(numbered(10_000, "aN: number")), (("tokens", 10_001, 10_000),)),
    "5,000 directives": (of_container("number " + "@skip(if: false) " * 5_000), (("tokens", 10_001, 10_000),)),
    "3,000 lists in each other": (f"{{ nodes(ids: {'[' * 3_000}", ("GRAPHQL_PARSE_FAILED",)),
    "300 levels": (nested(100), ("GRAPHQL_PARSE_FAILED",)),
    "500 operations": (numbered(500, "query QN { __typename }"), (("definitions", 500, 200),)),
    "500 fragments in a chain": (
        of_container("...F0") + fragments(499, "...NEXT"),
        (("definitions", 501, 200),),
    ),
    # What is counted.
    "200 levels": (nested(66), (("depth", 200, 20),)),
    "25 fragments that spread the next one twice": (
        of_container("...F0 ...F0") + fragments(25, "...NEXT ...NEXT"),
        (("selections", 201_326_591, 5_000),),
    ),
    "190 fragments that spread the next one twice": (
        of_container("...F0") + fragments(190, "...NEXT ...NEXT"),
        (("selections", 2_147_483_647, 5_000),),
    ),
    "25 fragments that double on two paths": (
        of_container("...F0")
        + fragments(25, "a: pallets { nodes { container { ...NEXT } } } b: pallets { nodes { id } }"),
        (("depth", 77, 20),),
    ),
    "fragments that nest the next one, in few levels each": (
        of_container("...F0") + fragments(80, "pallets { nodes { container { ...NEXT } } }"),
        (("depth", 242, 20),),
    ),
    "2,000 aliases": (of_container(numbered(2_000, "aN: number")), (("aliases", 2_000, 200),)),
    "aliases multiplied by fragments": (
        of_container("a: id " + "...F0 " * 10) + fragments(2, "...NEXT " * 10, last="a: number b: number c: number"),
        (("aliases", 3_001, 200),),
    ),
    "1,000 root fields": (
        f"{{ {numbered(1_000, 'aN: __typename')} }}",
        (("rootFields", 1_000, 50), ("aliases", 1_000, 200)),
    ),
    "root fields out of fragments": (
        "{ " + "...F " * 30 + "} fragment F on Query { __typename ... { a: __typename } }",
        (("rootFields", 60, 50),),
    ),
    "a thousand writes in one mutation": (
        "mutation { " + numbered(1_000, 'aN: deleteBox(key: { number: "1" }) { deletedId }') + " }",
        (("tokens", 10_001, 10_000),),
    ),
    "a hundred writes in one mutation": (
        "mutation { " + numbered(100, 'aN: deleteBox(key: { number: "1" }) { deletedId }') + " }",
        (("rootFields", 100, 50),),
    ),
    "1,000 directives at one field": (
        of_container("number " + "@skip(if: false) " * 1_000),
        (("directives", 1_000, 200),),
    ),
    "directives on everything": (
        of_container("number @skip(if: false) ... @skip(if: false) { id } ...F0 @skip(if: false) " * 80)
        + fragments(0, "", last="number"),
        (("directives", 240, 200),),
    ),
    "directives on variables": (
        f"query ({numbered(300, '$vN: Int @live')}) {{ __typename }}",
        (("directives", 300, 200),),
    ),
    "a field 500 times": (of_container("number " * 500), (("merges", 124_750, 20_000),)),
    "lists 200 times": (of_container("pallets { nodes { number } } " * 200), (("merges", 39_800, 20_000),)),
    "lists 150 times beside a deep one": (
        of_container("pallets { nodes { " * 5 + "number " * 150 + "} } " * 5 + ("pallets { nodes { number } } " * 150)),
        (("merges", 22_650, 20_000),),
    ),
    "one field from each of 199 fragments": (
        of_container(numbered(199, "...FN ")) + fragments(198, "number"),
        (("merges", 39_402, 20_000),),
    ),
    "1,000 fragments that are not there": (of_container(numbered(1_000, "...FN")), (("merges", 499_500, 20_000),)),
    "a fragment that nobody spreads": (
        "{ __typename } fragment Unused on Container { " + "number " * 500 + "}",
        (("merges", 124_750, 20_000),),
    ),
    "a subscription": (
        "subscription { boxChanged { node { " + numbered(300, "aN: number") + " } } }",
        (("aliases", 300, 200),),
    ),
    "a live query": ("query @live " + of_container("number " * 500), (("merges", 124_750, 20_000),)),
    "several at once": (
        f"{{ {numbered(300, 'aN: __typename @skip(if: false)')} }}",
        (("rootFields", 300, 50), ("aliases", 300, 200), ("directives", 300, 200)),
    ),
    # What is not counted: validation refuses it, and is not slow about it.
    "a cycle of fragments": (of_container("...F0") + fragments(9, "...NEXT", last="...F0"), INVALID),
    "a cycle of fragments that grows": (
        of_container("...F0") + fragments(9, "a: pallets { nodes { container { ...NEXT } } } ...NEXT", last="...F0"),
        INVALID,
    ),
    "a fragment that spreads itself": (
        of_container("...F0") + fragments(0, "", last="container { ...F0 }"),
        INVALID,
    ),
    "fragments of one name": (of_container("...F0") + fragments(0, "") * 150, INVALID * 11),
    "introspection that goes in circles": (
        "{ __schema { types { fields { type { fields { type { fields { type { fields { name } } } } } } } } } }",
        INVALID,
    ),
    "1,000 unknown fields": (of_container(numbered(1_000, "xN")), INVALID * 11),
    "an unknown field of 900,000 letters": (of_container("x" * 900_000), INVALID),
    "a value that is quoted in each of its errors": (
        of_container(f"pallets(where: {{ {numbered(1_000, 'xN: {}')} }}) {{ nodes {{ id }} }}"),
        INVALID * 11,
    ),
}


def told(error: Any) -> Any:
    """What the table says of an error: its code, or of a limit its name, the value and the most."""
    extensions = error["extensions"]
    if extensions["code"] != limits.LIMIT_EXCEEDED:
        return extensions["code"]
    return tuple(extensions[name] for name in ("limit", "value", "most"))


@pytest.mark.parametrize("name", ABUSIVE)
async def test_an_abusive_document_is_refused_with_what_it_has_too_much_of(name: str) -> None:
    query, answers = ABUSIVE[name]

    for response in (await API.execute(Request(query)), await API.open(Request(query))):
        assert isinstance(response, Response)
        assert response.outcome == "refused"
        assert tuple(map(told, response.body["errors"])) == answers
        assert max(len(error["message"]) for error in response.body["errors"]) < 1_100


@pytest.mark.parametrize("name", [name for name, (_, answers) in ABUSIVE.items() if isinstance(answers[0], tuple)])
async def test_what_has_too_much_is_not_validated(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "validate", lambda *_, **__: pytest.fail("validated"))

    response = await Api(API._graph).execute(Request(ABUSIVE[name][0]))

    assert {error["extensions"]["code"] for error in response.body["errors"]} == {"LIMIT_EXCEEDED"}


@pytest.mark.parametrize("name", ABUSIVE)
def test_counting_takes_steps_by_the_length_of_the_document_and_the_limits(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        document = limits.parse_within(ABUSIVE[name][0], DocumentLimits())
    except GraphQLError:
        return
    steps = 0

    def count(frame: Any, event: str, _: object) -> Any:
        nonlocal steps
        steps += event == "line" and frame.f_code.co_filename == limits.__file__
        return count

    nodes = len(re.findall(r"\w+", ABUSIVE[name][0]))
    sys.settrace(count)
    try:
        exceeded(document, DocumentLimits())
    except Unmeasurable:
        pass
    finally:
        sys.settrace(None)

    assert steps < 60 * nodes + 20 * DocumentLimits.selections


def _sources() -> Iterator[Any]:
    """Every document that we have written for others to send."""
    yield pytest.param(get_introspection_query(), id="introspection")
    yield pytest.param(
        get_introspection_query(
            specified_by_url=True, directive_is_repeatable=True, schema_description=True, input_value_deprecation=True
        ),
        id="introspection-in-full",
    )
    for path in sorted(ROOT.glob("tests/golden*/*/*.graphql")) + sorted(ROOT.glob("examples/*/queries/*")):
        yield pytest.param(path.read_text(), id=str(path.relative_to(ROOT)))
    for number, block in enumerate(re.findall(r"```graphql\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)):
        yield pytest.param(block, id=f"readme-{number}")


@pytest.mark.parametrize("query", list(_sources()))
def test_documents_as_clients_send_them_are_far_from_every_limit(query: str) -> None:
    most = DocumentLimits()
    third = DocumentLimits(**{one.name: getattr(most, one.name) // 3 for one in fields(most)})
    third = replace(third, depth=most.depth)

    assert exceeded(limits.parse_within(query, third), third) == []


async def test_introspection_passes() -> None:
    response = await API.execute(Request(get_introspection_query()))

    assert response.body["data"]["__schema"]["queryType"] == {"name": "Query", "kind": "OBJECT"}


async def test_every_limit_is_a_setting_that_is_obeyed() -> None:
    query = of_container("a: number @skip(if: false) number number operator ...F") + "fragment F on Container { id }"
    has = {"tokens": 32, "definitions": 2, "depth": 2, "root_fields": 1, "selections": 7, "aliases": 1, "directives": 1}
    has["merges"] = 1
    tight = load_settings({}, {f"max_{name}": str(most) for name, most in has.items()}).document_limits

    assert tight == DocumentLimits(**has)
    assert "errors" not in (await Api(API._graph, limits=tight).execute(Request(query))).body
    for one in fields(DocumentLimits):
        # A limit of zero for what there is one of; no setting is below one.
        below = replace(tight, **{one.name: has[one.name] - 1})
        response = await Api(API._graph, limits=below).execute(Request(query))
        (error,) = response.body["errors"]
        assert told(error) == (one.metadata["name"], has[one.name], has[one.name] - 1)
        assert re.fullmatch(r"expected at most .+, got (at least )?\d+: .+", error["message"])


async def test_a_known_document_is_not_measured_again(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(API._graph)
    query = of_container("number")
    first = await api.execute(Request(query))
    monkeypatch.setattr(documents, "parse_within", lambda *_: pytest.fail("parsed"))
    monkeypatch.setattr(documents, "exceeded", lambda *_: pytest.fail("measured"))

    assert (await api.execute(Request(query))).body == first.body


async def test_documents_of_great_length_are_served_and_not_kept() -> None:
    api = Api(API._graph)
    query = of_container("number") + " " * documents.CHARACTERS_CACHED

    assert "errors" not in (await api.execute(Request(query))).body
    assert (list(api.documents._documents), list(api.documents._prepared)) == ([], [])


@pytest.mark.parametrize("query", ["{ a", of_container("number " * 11_000)], ids=["syntax", "tokens"])
async def test_what_is_refused_is_kept_without_what_was_read_of_it(query: str) -> None:
    api = Api(API._graph)

    await api.execute(Request(query))

    (kept,) = api.documents._documents.values()
    assert isinstance(kept, list)
    assert [(error.__traceback__, error.__context__, error.__cause__) for error in kept] == [(None, None, None)]


# --- Counting, the naive way ----------------------------------------------------------------------------------------


@st.composite
def selection_sets(draw: st.DrawFn, deepest: int, spreadable: tuple[str, ...]) -> str:
    """Selections that may spread some fragments."""
    kinds = ["leaf", "leaf", *["field", "inline"] * (deepest > 0), *["spread"] * (2 * bool(spreadable))]
    chosen: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        directives = " @skip(if: false)" * draw(st.integers(0, 1))
        name = draw(st.sampled_from(["a", "b", "a: b", "b: b", "c: a"]))
        match draw(st.sampled_from(kinds)):
            case "leaf":
                chosen.append(f"{name}{directives}")
            case "field":
                chosen.append(f"{name}{directives} {{ {draw(selection_sets(deepest - 1, spreadable))} }}")
            case "inline":
                chosen.append(f"...{directives} {{ {draw(selection_sets(deepest - 1, spreadable))} }}")
            case _:
                chosen.append(f"...{draw(st.sampled_from(spreadable))}{directives}")
    return " ".join(chosen)


@st.composite
def random_documents(draw: st.DrawFn) -> str:
    """Operations, and fragments that spread only those behind them, or one that is not there."""
    names = tuple(f"F{n}" for n in range(draw(st.integers(0, 4))))
    parts = [
        f"fragment {name} on T {{ {draw(selection_sets(2, (*names[number + 1 :], 'Missing')))} }}"
        for number, name in enumerate(names)
    ]
    for number in range(draw(st.integers(1, 2))):
        parts.append(f"query Q{number} {{ {draw(selection_sets(3, names))} }}")
    return " ".join(draw(st.permutations(parts)))


class Unfolded:
    """A document of which every fragment is written out wherever it is spread."""

    def __init__(self, query: str) -> None:
        document = parse(query)
        self.fragments = {
            one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)
        }
        spread = set(re.findall(r"\.\.\.(F\d)", query))
        self.roots = [
            one
            for one in document.definitions
            if isinstance(one, OperationDefinitionNode)
            or (isinstance(one, FragmentDefinitionNode) and one.name.value not in spread)
        ]

    def walk(self, node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], SelectionNode]]:
        """Give every selection below a node as often as it is there, with the response names above it."""
        for selection in node.selection_set.selections if node and node.selection_set else ():
            yield path, selection
            if isinstance(selection, FragmentSpreadNode):
                yield from self.walk(self.fragments.get(selection.name.value), path)
            else:
                below = (*path, _name(selection)) if isinstance(selection, FieldNode) else path
                yield from self.walk(selection, below)

    def merging(self, sets: list[Any]) -> int:
        """Count the pairs in one place, and in every place below."""
        found: list[FieldNode] = []
        spread: set[str] = set()

        def gather(node: Any) -> None:
            for selection in node.selection_set.selections if node else ():
                if isinstance(selection, FieldNode):
                    found.append(selection)
                elif not isinstance(selection, FragmentSpreadNode):
                    gather(selection)
                elif selection.name.value not in spread:
                    spread.add(selection.name.value)
                    gather(self.fragments.get(selection.name.value))

        for one in sets:
            gather(one)
        pairs = sum(_name(one) == _name(other) for one, other in combinations(found, 2))
        below = [[one for one in found if _name(one) == name and one.selection_set] for name in {*map(_name, found)}]
        return pairs + len(list(combinations(spread, 2))) + sum(self.merging(one) for one in below if one)


def _name(field: FieldNode) -> str:
    return field.alias.value if field.alias else field.name.value


@given(random_documents())
def test_measuring_equals_measuring_what_is_written_out(query: str) -> None:
    unfolded = Unfolded(query)
    walked = [list(unfolded.walk(root)) for root in unfolded.roots]
    every = [selection for one in walked for _, selection in one]
    fields_of = [[path for path, selection in one if isinstance(selection, FieldNode)] for one in walked]

    assert measure(parse(query)) == Measured(
        depth=max(len(path) + 1 for one in fields_of for path in (*one, ())) if any(fields_of) else 0,
        root_fields=max(
            sum(not path for path in one)
            for root, one in zip(unfolded.roots, fields_of, strict=True)
            if isinstance(root, OperationDefinitionNode)
        ),
        selections=len(every),
        aliases=sum(isinstance(selection, FieldNode) and selection.alias is not None for selection in every),
        directives=sum(len(selection.directives or ()) for selection in every),
    )
    assert merges(parse(query)) == sum(unfolded.merging([root]) for root in unfolded.roots)


@given(random_documents())
def test_without_limits_nothing_is_exceeded(query: str) -> None:
    assert exceeded(parse(query), NONE) == []


@pytest.mark.parametrize("name", ["a cycle of fragments", "fragments of one name", "a fragment that spreads itself"])
def test_what_cannot_be_measured_is_what_validation_refuses(name: str) -> None:
    document = parse(ABUSIVE[name][0])

    with pytest.raises(Unmeasurable):
        measure(document)
    assert validate(API._schema, document, documents.MEASURABLE)
