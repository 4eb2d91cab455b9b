"""Model files as nobody should write them: each works or is refused with its cures, and nothing else happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from graphql import Source
from graphql.language import Lexer, TokenKind
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.errors import ModelError
from graph.model import Model
from resolvers.schema import print_sdl
from resolvers.sdl import compile_model

ROOT = Path(__file__).parent.parent
MODELS = [ROOT / "schema.graphql", ROOT / "examples/order-entry/schema.graphql", ROOT / "examples/b2b/schema.graphql"]
TABLE = 'extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")\n'
BOX = 'type Box @node(partition: "BOX#{number}", sort: "box") { number: ID! }\n'


def compiled(text: str) -> Model | ModelError:
    """Compile a file; any other outcome than a model or its mistakes is a failure of the test."""
    try:
        model = compile_model(text)
    except ModelError as refused:
        return refused
    # What compiles can also be served: the types of its API are made without complaint.
    print_sdl(model)
    return model


# --- random mistakes ----------------------------------------------------------------------------------------------


def tokens(text: str) -> list[str]:
    """Split a file into its tokens."""
    lexer = Lexer(Source(text))
    found: list[str] = []
    while (token := lexer.advance()).kind is not TokenKind.EOF:
        found.append(text[token.start : token.end])
    return found


def kind(token: str) -> str:
    """Say what a token may be exchanged for without a syntax error: a name, a string, or nothing but itself."""
    return "string" if token.startswith('"') else "name" if token.isidentifier() else token


FILES = [tokens(path.read_text()) for path in MODELS]
STRANGE = """5 null true "" "{" "{}" "{shard(3)}" "{shard(3,number)}" "{number:lower}" "{number:03}" "ALL" "a.b" "id"
    extend interface implements input scalar directive fragment on | & = $ ... ! [ ] ( ) { } : @ 1.5 __x id info first
    Query Mutation Node PageInfo JSON Boolean Float Decimal deprecated ttl indexed count copy local projection virtual
    typeName consistent path from through and "KEYS_ONLY" """
WORDS = sorted({token for file in FILES for token in file} | set(STRANGE.split()))
KINDS = {name: [word for word in WORDS if kind(word) == name] for name in map(kind, WORDS)}


@st.composite
def broken_files(draw: st.DrawFn) -> str:
    """A model file in which some tokens are left out, doubled, or exchanged."""
    file = list(draw(st.sampled_from(FILES)))
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(file) - 1))
        token = file[place]
        others = [[], [token, token], [draw(st.sampled_from(WORDS))], [draw(st.sampled_from(KINDS[kind(token)]))]]
        file[place : place + 1] = draw(st.sampled_from([*others, others[-1], others[-1]]))
    return " ".join(file)


@settings(max_examples=400, deadline=None)
@given(broken_files())
def test_any_file_gives_a_model_or_mistakes_that_lie_in_it(text: str) -> None:
    outcome = compiled(text)

    problems = outcome.problems if isinstance(outcome, ModelError) else ()
    assert isinstance(outcome, Model) or problems
    assert len({str(problem) for problem in problems}) == len(problems)
    assert all(problem.line == 1 and 1 <= problem.column <= len(text) + 1 for problem in problems)


@given(st.text(max_size=200))
def test_any_text_gives_its_mistakes(text: str) -> None:
    assert isinstance(compiled(text), ModelError)


# --- size ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("#" * 1_000_000 + "\n", id="comment"),
        pytest.param('"' + "x" * 1_000_000 + '" enum Big { A }', id="description"),
        pytest.param("enum Big { " + " ".join(f"V{n}" for n in range(50_000)) + " }", id="enum"),
        pytest.param("type Big { " + " ".join(f"field{n}: Int" for n in range(15_000)) + " }", id="type"),
        pytest.param("".join(f"type Big{n} {{ a: Int b: Big{n // 2} }}\n" for n in range(6_000)), id="types"),
    ],
)
def test_a_huge_file_compiles(text: str) -> None:
    model = compile_model(TABLE + BOX + text)

    assert list(model.items) == ["Box"]


def test_a_thousand_mistakes_are_all_reported() -> None:
    fields = " ".join(f"field{n}: Unknown{n}" for n in range(1000))

    outcome = compiled(TABLE + f'type Box @node(key: "BOX_{{number}}") {{ number: ID! {fields} }}')

    assert isinstance(outcome, ModelError)
    assert len(outcome.problems) == 1000


def test_references_sixty_types_deep_are_resolved() -> None:
    chain = "".join(f'type T{n} @node(partition: "{{next}}", sort: "T{n}") {{ next: T{n + 1}! }}\n' for n in range(60))

    model = compile_model(TABLE + chain + 'type T60 @node(partition: "END#{number}", sort: "T60") { number: ID! }')

    (layout,) = model.items["T0"].layouts
    assert layout.templates["pk"].variables[0].path == (*["next"] * 60, "number")


def test_two_hundred_types_are_told_apart() -> None:
    types = "".join(f'type T{n} @node(partition: "T{n}#{{number}}", sort: "T") {{ number: ID! }}\n' for n in range(200))

    model = compile_model(TABLE + types)

    assert len(model.items) == 200
    assert model.rivals == {}


# --- names --------------------------------------------------------------------------------------------------------

ODD_NAMES = "class from self None info type import lambda name value on fields kwargs Order Edge Enum Any object"


@pytest.mark.parametrize("name", ODD_NAMES.split())
def test_a_field_a_type_and_a_value_may_be_called_as_they_like(name: str) -> None:
    others = f"type {name} {{ {name}: Int }} enum {name}s {{ {name} }} "
    key = "number" if name == "info" else name
    fields = "number: ID!" if name == "info" else ""
    box = f'type Box @node(partition: "{{{key}}}", sort: "box") {{ {fields} {name}: ID!  a: {name}  b: {name}s }}'

    outcome = compiled(TABLE + others + box)

    assert isinstance(outcome, Model)


@pytest.mark.parametrize("name", ["Order", "Edge", "QueryLog", "NodeList", "Where", "Filter", "Type", "_"])
def test_items_may_be_called_as_they_like(name: str) -> None:
    lids = f'type Lid @node(partition: "{{box}}", sort: "LID#{{number}}") {{ box: {name}!  number: ID! }}'
    box = f'type {name} @node(partition: "BOX#{{number}}", sort: "box") {{ number: ID!  lids: [Lid!]! @relationship }}'

    outcome = compiled(TABLE + lids + box + f"type Query {{ all: [{name}!]! @find(scan: true) }}")

    assert isinstance(outcome, Model)


@pytest.mark.parametrize(
    "name", ["GSI1-PK", "follower#", "Größe", "a.b", "with space", "{x}", "€", "💶", "SELECT", "0"]
)
def test_an_attribute_may_be_called_as_it_likes(name: str) -> None:
    model = compile_model(
        f"""extend schema
          @table(name: "things", partitionKey: "{name}", sortKey: "{name}+")
          @index(name: "by-size", partitionKey: "{name}-", sortKey: "{name}")
        type Box @node(partition: "BOX#{{number}}", sort: "box") {{
          number: ID!
          size: Int @attribute(name: "{name}-")
        }}
        type Query {{ ofSize(size: Int!): [Box!]! @find }}"""
    )

    (access,) = model.finds["ofSize"].accesses
    assert access.index.partition_keys == (f"{name}-",)
    assert model.items["Box"].fields["size"].attribute == f"{name}-"


def test_an_argument_that_is_null_is_one_that_is_left_out() -> None:
    model = compile_model(
        """extend schema @table(name: "things", partitionKey: "pk", sortKey: null, type: null)
        type Box @node(partition: "BOX#{crate}", sort: null, key: null, ref: null, typeName: null, table: null) {
          crate: Crate! @attribute(name: null, ref: "{number}")
        }
        type Crate @node(partition: "CRATE#{number}") {
          number: ID!
          box: Box @relationship(through: null, from: null, path: null)
        }"""
    )

    assert model.relationships["Crate", "box"].accesses[0].index.name is None


def test_a_schema_block_is_as_good_as_its_extension() -> None:
    query = "type Query { boxes: [Box!]! @find(scan: true) }"

    model = compile_model(TABLE.replace("extend schema", "schema") + "{ query: Query }\n" + BOX + query)

    assert list(model.finds) == ["boxes"]


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    assert list(compile_model("\ufeff" + TABLE + BOX).items) == ["Box"]
