"""`tablegraph infer`: a schema made from a table's items serves every one of them."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph.client import Client
from graph.errors import InferError
from graph.infer.sample import Sample
from graph.loaders import Graph
from graph.model import Index, Model
from graph.requests import Item, UpdateTimeToLive
from graph.tables import key_names, key_type
from resolvers.infer.trial import infer
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.cli import main
from tests.bulk import CREDENTIALS, Place, make_place
from tests.conftest import ROOT, Serve, banana_items, example_items, way_to
from tests.differential_data import Filler
from tests.differential_designs import designed
from tests.infer_hostile import hostile
from tests.reaching import counts, names_of, stored, unreached

EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "seed.jsonl").exists())
Run = Callable[..., str]


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def run(engine: str, tmp_path: Path) -> Run:
    """Infer the schema of tables by the command, and give its text."""

    def inferred(*tables: str, options: Iterable[str] = ("--all",)) -> str:
        out = tmp_path / "inferred.graphql"
        named = [word for table in tables for word in ("--table", table)]
        assert main(["infer", *named, "--endpoint-url", engine, "--out", str(out), "--force", *options]) == 0
        return out.read_text()

    return inferred


def example_sdl(example: str) -> str:
    return (ROOT / "examples" / example / "schema.graphql").read_text()


def items_of(example: str) -> Iterable[Item]:
    if example == "bananas":
        return banana_items(1)
    return itertools.chain(example_items(example, whole=False), itertools.islice(example_items(example), 1200))


def tables_of(place: Place) -> list[str]:
    """The names of all tables of a model, those of a time series among them."""

    async def names() -> list[str]:
        graph, transport = place.graph()
        found = [name for table in place.model.tables.values() for name in await names_of(graph, table)]
        transport.close()
        return found

    return asyncio.run(names())


def problems_of(engine: str, text: str) -> list[str]:
    """What the API of a schema does not show of its tables."""

    async def ask() -> list[str]:
        transport = way_to(engine)
        graph = Graph(compile_model(text), Client(transport))
        try:
            return await unreached(Api(graph), graph)
        finally:
            transport.close()

    return asyncio.run(ask())


def sample_of(model: Model, name: str, items: Iterable[Item]) -> Sample:
    table = model.tables[name]
    keys = {key: key_type(model, table, key) for key in key_names(table)}
    distinct = {tuple(str(item[key]) for key in table.key_attributes): item for item in items}
    expiry = next((one.expiry for one in model.items.values() if one.expiry and one.layouts[0].table == name), None)
    items = tuple(distinct.values())
    return Sample(name, table.primary, table.indexes, keys, items, is_whole=True, expiry=expiry)


# --- the examples -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_item_of_an_example_is_served(engine: str, tmp_path: Path, run: Run, example: str) -> None:
    place = make_place(engine, tmp_path, example_sdl(example), items_of(example))

    text = run(*tables_of(place))

    assert problems_of(engine, text) == []
    # Every key, copy and mirror is also what a mutation over this schema would have written.
    assert main(["verify", "--schema", str(tmp_path / "inferred.graphql"), "--endpoint-url", engine]) == 0


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_found_again(engine: str, tmp_path: Path, example: str, request: pytest.FixtureRequest) -> None:
    """What is found of the documents' own rows, to be compared with what a person wrote."""
    model = compile_model(example_sdl(example))
    place = make_place(engine, tmp_path, example_sdl(example), example_items(example, whole=False))

    async def rows() -> list[tuple[str, Item]]:
        graph, transport = place.graph()
        found = await stored(graph)
        transport.close()
        return found

    names = dict(zip(place.model.tables, model.tables, strict=True))
    items: dict[str, list[Item]] = {}
    for name, item in asyncio.run(rows()):
        items.setdefault(names[name], []).append(item)
    samples = [sample_of(model, name, sorted(found, key=str)) for name, found in items.items()]

    text = infer(samples).text

    golden = ROOT / "tests/inferred" / f"{example}.graphql"
    if request.config.getoption("--update-golden"):
        golden.write_text(text)
    assert text == golden.read_text(), "run `make golden`"


def test_the_types_of_an_example_hold_the_same_items_as_those_that_a_person_wrote(
    engine: str, tmp_path: Path, run: Run
) -> None:
    place = make_place(engine, tmp_path, example_sdl("order-entry"), items_of("order-entry"))

    model = compile_model(run(*tables_of(place)))

    async def count(one: Model) -> dict[str, int]:
        graph, transport = place.graph()
        items = await stored(graph)
        transport.close()
        return counts(one, items)

    assert asyncio.run(count(model)) == asyncio.run(count(place.model))


# --- the command --------------------------------------------------------------------------------------------------


def make_table(engine: str, name: str, keys: dict[str, str], items: Iterable[dict[str, Any]]) -> str:
    """Make a table of some key attributes with their types, and write items."""
    definition = {
        "TableName": name,
        "KeySchema": [
            {"AttributeName": key, "KeyType": kind} for key, kind in zip(keys, ("HASH", "RANGE"), strict=False)
        ],
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": one} for key, one in keys.items()],
        "BillingMode": "PAY_PER_REQUEST",
    }

    async def make() -> None:
        transport = way_to(engine)
        await transport("CreateTable", definition)
        for item in items:
            await transport("PutItem", {"TableName": name, "Item": item})
        transport.close()

    asyncio.run(make())
    return name


def user(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"USER#{number}"}, "SK": {"S": "PROFILE"}, "name": {"S": f"N{number}"}}


def order(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"USER#{number % 9}"}, "SK": {"S": f"ORDER#{number}"}, "total": {"N": str(number)}}


TEXTS = {"PK": "S", "SK": "S"}


def test_nothing_is_written_over_without_force(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "schema.graphql"
    out.write_text("mine")

    assert main(["infer", "--table", "any", "--endpoint-url", engine, "--out", str(out)]) == 2

    assert out.read_text() == "mine"
    assert "--force" in capsys.readouterr().err


def test_a_folder_that_is_not_there_is_told_before_anything_is_read(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "nowhere" / "schema.graphql"

    assert main(["infer", "--table", "any", "--endpoint-url", engine, "--out", str(out)]) == 2

    assert "nowhere" in capsys.readouterr().err


def test_the_command_tells_its_cost_beforehand_and_what_to_do_then(
    engine: str, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    name = make_table(engine, "infer-told", TEXTS, [*map(user, range(9)), *map(order, range(40))])

    text = run(name)
    assert main(["check", "--schema", str(tmp_path / "inferred.graphql")]) == 0

    told = capsys.readouterr()
    before, after = told.err.splitlines()
    assert re.search(r"reading all items in 4 segments, about \d+ read units", before)
    assert re.search(r"read 49 items, all there are, for [\d.]+ read units", after)
    assert "2 types; 49 of 49 items fit exactly one of them" in told.out
    assert "tablegraph check --schema" in told.out
    assert re.search(r'{ user\(number: "\d"\) { number name } }', told.out)
    assert 'type User\n  @node(partition: "USER#{number}", sort: "PROFILE")' in text
    assert "orders: [Order!]! @relationship" in text
    assert problems_of(engine, text) == []


def test_a_sample_stays_within_its_read_units(engine: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    heavy = [{**order(number), "text": {"S": "x" * 40_000}} for number in range(60)]
    name = make_table(engine, "infer-bounded", TEXTS, heavy)

    run(name, options=["--sample", "60", "--segments", "2", "--read-units", "130"])

    told = capsys.readouterr().err
    spent = re.search(r"a sample, for ([\d.]+) read units", told)
    assert spent is not None
    assert 0 < float(spent[1]) <= 130


def test_a_table_that_is_missing_is_an_error_with_its_code(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "schema.graphql"

    assert main(["infer", "--table", "nowhere-at-all", "--endpoint-url", engine, "--out", str(out)]) == 1

    assert "[TABLE_MISSING]" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("arguments", [[], ["--table", "one", "--workbench", "two.json"]])
def test_one_source_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["infer", *arguments, "--out", str(tmp_path / "schema.graphql")]) == 2

    assert "--table NAME, or --workbench FILE" in capsys.readouterr().err


def test_binary_keys_are_refused_with_a_code(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = make_table(engine, "infer-binary", {"PK": "B"}, [{"PK": {"B": "YWJj"}}])

    assert main(["infer", "--table", name, "--endpoint-url", engine, "--out", str(tmp_path / "s.graphql")]) == 1

    assert "[CANNOT_INFER]" in capsys.readouterr().err


def test_the_attribute_of_ttl_is_found(engine: str, run: Run) -> None:
    items = [{"PK": {"S": f"s{number}"}, "gone": {"N": "4102444800"}} for number in range(4)]
    name = make_table(engine, "infer-sessions", {"PK": "S"}, items)

    async def expire() -> None:
        transport = way_to(engine)
        await transport("UpdateTimeToLive", UpdateTimeToLive(name, "gone").parameters())
        transport.close()

    asyncio.run(expire())

    assert "gone: DateTime! @ttl" in run(name)


@pytest.mark.parametrize(
    ("keys", "items"),
    [
        pytest.param({"PK": "S"}, [], id="empty"),
        pytest.param({"PK": "S", "SK": "S"}, [{"PK": {"S": "a"}, "SK": {"S": "b"}}], id="one-item"),
        pytest.param({"n": "N"}, [{"n": {"N": str(n)}} for n in (1, -5, 7)], id="numbers"),
        pytest.param({"n": "N"}, [{"n": {"N": n}} for n in ("1.5", "12345678901234567890")], id="large-numbers"),
        pytest.param({"n": "N", "t": "N"}, [{"n": {"N": "1"}, "t": {"N": "2"}, "x": {"S": ""}}], id="two-numbers"),
        pytest.param({"PK": "S"}, [{"PK": {"S": "big"}, "x": {"S": "x" * 390_000}}], id="400-KB"),
        pytest.param(
            {"id": "S"}, [{"id": {"S": n}} for n in ('"quoted"', "{braced}", "back\\slash", "é\n")], id="signs"
        ),
    ],
)
def test_odd_tables_are_served(
    engine: str, run: Run, keys: dict[str, str], items: list[dict[str, Any]], request: pytest.FixtureRequest
) -> None:
    name = make_table(engine, f"infer-odd-{request.node.callspec.id}", keys, items)

    assert problems_of(engine, run(name)) == []


def test_a_few_items_that_are_like_no_others_are_kept_out_and_named() -> None:
    odd = [{"PK": {"S": f"{number}x"}, "SK": {"S": f"{number}y"}} for number in range(3)]
    items = [*map(user, range(9)), *map(order, range(90)), *odd]

    found = infer([Sample("t12", Index("t12", None, ("PK",), ("SK",)), (), TEXTS, tuple(items))])

    assert sorted(found.unfit) == ["0x / 0y", "1x / 1y", "2x / 2y"]
    assert "# unsure: 3 of 102 items of t12 fit no type, keys like 0x / 0y" in found.text
    assert found.counts == {"User": 9, "Order": 90}


def of_the_readme() -> tuple[list[Item], str]:
    """The items of the README's example, and the schema that it shows."""
    (part,) = re.findall(r"## I already have a table\n(.*?)\n## ", (ROOT / "README.md").read_text(), re.DOTALL)
    lines, schema = (re.findall(rf"```{language}\n(.*?)```", part, re.DOTALL)[0] for language in ("jsonl", "graphql"))
    return [json.loads(line) for line in lines.splitlines()], schema


def test_the_schema_of_the_readme_is_what_comes_out() -> None:
    items, schema = of_the_readme()
    keys = dict.fromkeys(("PK", "SK", "GSI1PK", "GSI1SK"), "S")
    indexes = (Index("market", "GSI1", ("GSI1PK",), ("GSI1SK",)),)
    primary = Index("market", None, ("PK",), ("SK",))

    found = infer([Sample("market", primary, indexes, keys, tuple(items), is_whole=True)])

    assert found.text == schema
    assert found.unfit == ()


async def test_what_is_written_by_an_inferred_schema_is_like_what_was_there(serve: Serve) -> None:
    items, schema = of_the_readme()
    served = await serve(schema, items)

    await served.data(
        """mutation { createOrder(input: {
          orderId: "104", user: { number: "7" }, date: "2024-06-01", total: 3, shop: { name: "south" }
        }) { order { total } } }"""
    )
    found = await served.data('{ shop(name: "south") { orders { nodes { orderId user { name } } } } }')

    written = next(item for _, item in await stored(served.graph) if item["SK"]["S"].endswith("#104"))
    assert written["PK"] == {"S": "USER#7"}
    assert written["SK"] == {"S": "ORDER#2024-06-01#104"}
    assert written["GSI1PK"] == {"S": "SHOP#south"}
    assert written["GSI1SK"] == {"S": "104"}
    assert found["shop"]["orders"]["nodes"] == [
        {"orderId": "102", "user": {"name": "Ann Lee"}},
        {"orderId": "104", "user": {"name": "Ann Lee"}},
    ]


# --- any table ----------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_the_items_of_random_models_all_fit(seed: int) -> None:
    dice = Random(seed)
    _, model = designed(dice)
    data = Filler(model, dice).fill(8)
    samples = [sample_of(model, name, items) for name, items in data.tables.items()]

    if samples:
        found = infer(samples)

        assert found.unfit == ()
        assert sum(found.counts.values()) == sum(len(sample.items) for sample in samples)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32))
def test_hostile_tables_give_a_schema_that_all_items_fit(seed: int) -> None:
    sample = hostile(Random(seed))

    found = infer([sample])

    assert found.unfit == ()
    assert compile_model(found.text).items


def test_a_binary_key_is_the_only_thing_that_is_refused() -> None:
    with pytest.raises(InferError, match="binary"):
        infer([Sample("t", Index("t", None, ("PK",)), (), {"PK": "B"})])
