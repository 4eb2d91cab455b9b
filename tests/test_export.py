"""`tablegraph export`: what comes out of a table goes into an empty one as the same items."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path

import orjson
import pytest

from graph.keys import OURS
from graph.requests import Item
from graph.writes.guards import LOCK
from tests.bulk import CREDENTIALS, Place, make_months, make_place
from tests.conftest import ROOT, banana_items, example_items

EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "seed.jsonl").exists())
MONTHS = [f"{year}{month:02}" for year in (2022, 2023, 2024) for month in range(1, 13)]

Make = Callable[..., Place]


@pytest.fixture
def make(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a place for a model."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)

    def make_one(sdl: str, items: Iterable[Item] = ()) -> Place:
        return make_place(engine, tmp_path, sdl, items)

    return make_one


def example_sdl(example: str) -> str:
    return (ROOT / "examples" / example / "schema.graphql").read_text()


def items_of(example: str) -> Iterable[Item]:
    if example == "bananas":
        return banana_items(1)
    # The document's rows, and as many of the larger set as are quickly gone through.
    seed = [item for item in example_items(example, whole=False) if item.get("expires") != {"N": "1641081600"}]
    return itertools.chain(seed, itertools.islice(example_items(example), 1200))


def empty_like(make: Make, example: str, source: Place) -> Place:
    target = make(example_sdl(example))
    make_months(target, *MONTHS)
    return target


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("name", ["all.jsonl", "folder", "items.json"])
def test_what_is_exported_is_loaded_as_the_same_items(make: Make, tmp_path: Path, example: str, name: str) -> None:
    source = make(example_sdl(example), items_of(example))
    target = empty_like(make, example, source)
    format_ = ["--format", "dynamodb-json"] if name == "items.json" else []

    assert source.export(tmp_path / name, *format_) == 0
    assert target.load(tmp_path / name) == 0

    assert target.items() == source.items()
    assert not list(tmp_path.glob("*.loading")) + list(tmp_path.glob("*.writing"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_csv_of_every_type_together_is_the_same_items(make: Make, tmp_path: Path, example: str) -> None:
    source = make(example_sdl(example), items_of(example))
    target = empty_like(make, example, source)

    for type_ in source.model.items.values():
        if not type_.virtual:
            path = tmp_path / f"{type_.name}.csv"
            assert source.export(path, "--type", type_.name) == 0
            assert target.load(path, "--type", type_.name) == 0

    assert target.items() == source.items()


HARD = """
extend schema @table(name: "hard", partitionKey: "pk", sortKey: "sk", type: "kind")
  @index(name: "by-state", partitionKey: "shard", sortKey: "rank")
type Thing @node(partition: "THING#{number}", sort: "{made}")
  @indexed(by: "by-state", partition: "{shard(8)}", sort: "{state:lower}#{big}") {
  number: ID!  made: DateTime!  state: String  big: BigInt  price: Decimal  ratio: Float  any: JSON  raw: Base64
  notes: [String!]  marks: [String!] @attribute(set: true)  size: Size  sizes: [Size!]
}
type Size { width: Int!  unit: String }
type Query { things(number: ID!): [Thing!]! @find }
"""


def hard_item(**attributes: object) -> Item:
    return {"pk": {"S": "THING#1"}, "sk": {"S": "2022-07-19T17:59:58Z"}, "kind": {"S": "Thing"}, **attributes}  # type: ignore[dict-item]


AWKWARD = [
    hard_item(),
    hard_item(state={"S": ""}, notes={"L": []}),
    hard_item(notes={"L": [{"S": '"'}, {"S": ""}, {"S": "a,b\r\nc"}]}),
    hard_item(any={"NULL": True}),
    hard_item(any={"S": '"quoted"'}),
    hard_item(any={"M": {"a": {"N": "12345678901234567890123456789012345678"}, "b": {"NULL": True}}}),
    hard_item(big={"N": "12345678901234567890123456789012345678"}, price={"N": "0.10"}),
    hard_item(ratio={"N": "1.50"}, raw={"B": "AAEC"}, marks={"SS": ["a", "b"]}),
    hard_item(size={"M": {"width": {"N": "3"}, "colour": {"S": "red"}}}, sizes={"L": [{"M": {"width": {"N": "1"}}}]}),
    hard_item(undeclared={"SS": ["x", "y"]}, **{"a.b": {"S": "dotted"}}),
    hard_item(number={"S": "1"}, made={"S": "2022-07-19T17:59:58Z"}),
    hard_item(state={"S": "Open"}, big={"N": "7"}, shard={"S": "3"}, rank={"S": "open#7"}),
    hard_item(state={"S": "null"}, shard={"S": "of another kind"}, rank={"S": "-"}),
]


@pytest.mark.parametrize("name", ["all.jsonl", "all.csv"])
@pytest.mark.parametrize("item", AWKWARD, ids=lambda item: ",".join(item.keys() - {"pk", "sk", "kind"}) or "bare")
def test_awkward_items_come_back_just_so(make: Make, tmp_path: Path, name: str, item: Item) -> None:
    source, target = make(HARD, [item]), make(HARD)

    assert source.export(tmp_path / name, "--type", "Thing") == 0
    assert target.load(tmp_path / name, "--type", "Thing") == 0

    assert target.items() == source.items()


def test_what_mutations_keep_for_themselves_is_not_exported(make: Make, tmp_path: Path) -> None:
    locked = hard_item(**{LOCK: {"S": "1 x"}})
    receipt: Item = {"pk": {"S": f"{OURS}receipt#1"}, "sk": {"S": f"{OURS}receipt#1"}}
    source = make(HARD, [locked, receipt])

    for name, format_ in (("records.jsonl", "jsonl"), ("items.jsonl", "dynamodb-json")):
        assert source.export(tmp_path / name, "--format", format_) == 0

        (line,) = (tmp_path / name).read_text().splitlines()
        assert OURS not in line


def test_expired_items_are_left_out(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sdl = """extend schema @table(name: "alerts", partitionKey: "id")
    type Alert @node(partition: "{number}") { number: ID!  expires: DateTime! @ttl }
    type Query { alerts: [Alert!]! @find(scan: true) }"""
    alive, gone = ({"id": {"S": name}, "expires": {"N": second}} for name, second in (("a", "4102444800"), ("b", "9")))
    source = make(sdl, [alive, gone])

    source.export(tmp_path / "all.jsonl")

    (line,) = (tmp_path / "all.jsonl").read_bytes().splitlines()
    assert orjson.loads(line) == {"__typename": "Alert", "number": "a", "expires": "2100-01-01T00:00:00Z"}
    assert "1 items have expired" in capsys.readouterr().err


def test_items_of_no_type_are_told_of_and_exported_as_items(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign: Item = {"pk": {"S": "OTHER"}, "sk": {"S": "x"}}
    source, target = make(HARD, [foreign]), make(HARD)

    source.export(tmp_path / "records.jsonl")
    source.export(tmp_path / "items.jsonl", "--format", "dynamodb-json")

    assert (tmp_path / "records.jsonl").read_bytes() == b""
    assert "1 items fit no type and are left out" in capsys.readouterr().err
    assert target.load(tmp_path / "items.jsonl") == 1
    assert target.load("--allow-unfit", tmp_path / "items.jsonl") == 0
    assert target.items() == source.items()


def test_an_unreadable_item_is_told_of_and_the_export_fails(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make(HARD, [hard_item(big={"S": "many"})])

    assert source.export(tmp_path / "all.jsonl") == 1

    assert "Thing.big is declared BigInt" in capsys.readouterr().err


def test_mirrors_are_no_records_of_their_own(make: Make, tmp_path: Path) -> None:
    source = make(example_sdl("b2b"), example_items("b2b", whole=False))

    source.export(tmp_path / "all.jsonl", "--type", "Management")

    records = [orjson.loads(line) for line in (tmp_path / "all.jsonl").read_bytes().splitlines()]
    assert len({(one["customer"]["number"], one["store"]["number"]) for one in records}) == len(records) > 0
    assert all("storeName" in one["store"] and "lastName" in one["customer"] for one in records)


def test_csv_has_a_column_for_every_path(make: Make, tmp_path: Path) -> None:
    source = make(example_sdl("b2b"), example_items("b2b", whole=False))

    source.export(tmp_path / "all.csv", "--type", "Tagging")

    with (tmp_path / "all.csv").open(newline="") as file:
        header, first, *_ = csv.reader(file)
    assert header[:3] == ["tag.name", "subject.__typename", "subject.number"]
    assert "subject.business.number" in header
    assert header[-1] == "__attributes"
    assert first[1] in ("Business", "Customer", "Order", "Store")


def test_csv_wants_one_type(make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert make(HARD).export(tmp_path / "all.csv") == 2
    assert make(HARD).export(tmp_path / "all.csv", "--type", "Thong") == 2

    assert "name it with --type" in capsys.readouterr().err
    assert list(tmp_path.glob("*.csv")) == []


def test_the_folder_is_what_dynamodb_makes(make: Make, tmp_path: Path) -> None:
    source = make(HARD, [hard_item()])

    assert source.export(tmp_path / "out") == 0

    (home,) = (tmp_path / "out" / "AWSDynamoDB").iterdir()
    (entry,) = map(orjson.loads, (home / "manifest-files.json").read_bytes().splitlines())
    data = (tmp_path / "out" / entry["dataFileS3Key"]).read_bytes()
    assert orjson.loads(gzip.decompress(data)) == {"Item": orjson.loads(source.items()["0"][0])}
    assert entry["md5Checksum"] == base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
    assert orjson.loads((home / "manifest-summary.json").read_bytes())["itemCount"] == entry["itemCount"] == 1
    assert (home / "manifest-summary.checksum").exists()
    assert source.export(tmp_path / "out") == 2, "a folder with something in it is not written over"


def test_standard_output_takes_records(make: Make, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = make(HARD, [hard_item()])

    assert source.export("-") == 0

    assert orjson.loads(capfdbinary.readouterr().out)["number"] == "1"
