"""`tablegraph load`: everything is checked before the first write, nothing is lost, and a killed load goes on."""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.bulk.cells import record_of, row_of
from graph.bulk.items import Fitting, ItemReader, Placed, all_layouts
from graph.bulk.pump import Pump
from graph.bulk.records import Moment, RecordReader
from graph.bulk.shapes import columns
from graph.bulk.written import RecordWriter
from graph.client import Client, Transport
from graph.errors import GraphError, InputError
from graph.requests import Item
from resolvers.sdl import compile_model
from server.checkpoint import Checkpoint, State
from server.progress import Progress
from tests.bulk import CREDENTIALS, Place, make_place, write_lines
from tests.conftest import BANANAS, ROOT, banana_items

Make = Callable[..., Place]
BANANA_SDL = BANANAS.read_text()
NEVER = datetime.min.replace(tzinfo=UTC)
ORDER_SDL = (ROOT / "examples/order-entry/schema.graphql").read_text()


@pytest.fixture
def make(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Make a place for a model."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)

    def make_one(sdl: str, items: Iterable[Item] = ()) -> Place:
        return make_place(engine, tmp_path, sdl, items)

    return make_one


def only(place: Place) -> list[Any]:
    """The items of the only table."""
    return [orjson.loads(line) for line in place.items()["0"]]


def box(number: object, **fields: object) -> dict[str, object]:
    return {"__typename": "Box", "number": str(number), **fields}


# --- records ------------------------------------------------------------------------------------------------------


def test_records_become_the_items_that_mutations_would_write(make: Make, tmp_path: Path) -> None:
    place = make(BANANA_SDL)
    path = write_lines(
        tmp_path / "in.jsonl",
        [
            box("1", weightInKg=20.5, isDangerous=False),
            {"__typename": "BoxLoading", "pallet": {"number": "7"}, "box": {"number": "1"},
             "linkedDatetime": "2022-07-19T19:59:58+02:00"},
        ],
    )  # fmt: skip

    assert place.load(path) == 0

    assert only(place) == [
        {"IsDangerous": {"BOOL": False}, "WeightInKg": {"N": "20.5"}, "objectId": {"S": "BOX_1"},
         "relatedObjectId": {"S": "BOX_1"}},
        {"LinkedDatetime": {"S": "2022-07-19T17:59:58Z"}, "objectId": {"S": "PALLET_7"},
         "relatedObjectId": {"S": "BOX_1"}},
    ]  # fmt: skip


def test_csv_has_dotted_columns(make: Make, tmp_path: Path) -> None:
    place = make(BANANA_SDL)
    path = tmp_path / "in.csv"
    path.write_text("pallet.number,box.number,linkedDatetime,linkedBy\r\n7,1,2022-07-19T17:59:58Z,\r\n")

    assert place.load(path, "--type", "BoxLoading") == 0

    assert only(place) == [
        {"LinkedDatetime": {"S": "2022-07-19T17:59:58Z"}, "objectId": {"S": "PALLET_7"},
         "relatedObjectId": {"S": "BOX_1"}},
    ]  # fmt: skip


DEFAULTS = """
extend schema @table(name: "notes", partitionKey: "pk", sortKey: "sk")
type Note @node(partition: "NOTE#{id_}", sort: "note") {
  id_: ID! @default(uuid: true)  made: DateTime! @default(now: CREATE)  version: Int! @version
  replies: [Reply!]! @relationship  count: Int! @count(of: "replies")
}
type Reply @node(partition: "NOTE#{note.id_}", sort: "reply#{number}", ref: "{note.id_}#{number}") {
  note: Note!  number: ID!
}
"""


def test_what_a_record_does_not_say_is_filled_in_once(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make(DEFAULTS)
    path = write_lines(tmp_path / "in.jsonl", [{"__typename": "Note"}, {"__typename": "Note", "count": 3}])

    assert place.load(path) == 0

    notes = only(place)
    assert sorted(note["count"]["N"] for note in notes) == ["0", "3"]
    assert all(note["version"] == {"N": "1"} and note["made"]["S"].endswith("Z") for note in notes)
    assert len({note["pk"]["S"] for note in notes}) == 2
    assert "tablegraph repair --only WRONG_COUNT" in capsys.readouterr().err


def test_a_line_read_again_gives_the_same_items() -> None:
    model = compile_model(DEFAULTS)
    moment = Moment(datetime(2024, 1, 1, tzinfo=UTC), "seed")
    reader = RecordReader(model, moment, "Note")

    again, other = (reader.items({}, line)[0].item for line in (1, 2))

    assert RecordReader(model, moment, "Note").items({}, 1)[0].item == again != other


REFUSED = [
    pytest.param({"__typename": "Bx"}, "is of the type 'Bx': expected one of Container", id="unknown-type"),
    pytest.param({"number": "1"}, "has no `__typename`", id="no-type"),
    pytest.param(box("1", weight=3), "`weight` is no field of Box: expected number, weightInKg", id="unknown-field"),
    pytest.param(box("1", pallet=None), "`pallet` leads to other items", id="relationship"),
    pytest.param(box("1", weightInKg="heavy"), "`weightInKg` is 'heavy': expected a number", id="wrong-type"),
    pytest.param({"__typename": "Box"}, "`number` is missing", id="missing"),
    pytest.param({"__typename": "Box", "number": None}, "`number` is null", id="null"),
    pytest.param(box(""), "may not be empty", id="empty-key"),
    pytest.param([1], "is no record", id="list"),
    pytest.param(
        {"__typename": "BoxLoading", "pallet": {}, "box": 3, "linkedDatetime": "today"},
        "`pallet.number` is missing; `box` is 3: expected an object of the fields that name the node; "
        "`linkedDatetime` is 'today'",
        id="all-at-once",
    ),
    pytest.param(box("1", __attributes={"objectId": {"S": "x"}}), "`objectId` is made of the fields", id="key-beside"),
    pytest.param(box("1", __attributes={"extra": "x"}), "`extra`: expected an object of one type", id="bad-beside"),
    pytest.param(box("x" * 500_000), "may hold 1024 bytes", id="long-key"),
]


@pytest.mark.parametrize(("record", "reason"), REFUSED)
def test_record_that_does_not_fit_is_refused(record: Any, reason: str) -> None:
    reader = RecordReader(compile_model(BANANA_SDL), Moment(NEVER, ""))

    with pytest.raises(InputError) as refused:
        reader.items(record)

    assert reason in str(refused.value)


def test_what_keys_hold_of_other_nodes_has_to_be_given() -> None:
    reader = RecordReader(compile_model(ORDER_SDL), Moment(NEVER, ""))
    record = {"__typename": "OrderItem", "order": {"number": "1"}, "product": {"number": "2"}, "quantity": 1}

    with pytest.raises(InputError, match=r"`order\.status` is missing; `order\.date` is missing"):
        reader.items(record)
    order = {"number": "1", "status": "OPEN", "date": "2020-01-01"}
    (placed,) = reader.items({**record, "order": order})
    assert placed.item["Data"] == {"S": "OPEN-2020-01-01"}


def test_an_edited_field_wins_over_what_is_kept_beside_it() -> None:
    model = compile_model(ORDER_SDL)
    reader = RecordReader(model, Moment(NEVER, ""))
    record = {"__typename": "HireRecord", "employee": {"number": "1"}, "hireDate": "2020-01-01"}

    kept, stale = (
        reader.items({**record, "__attributes": {"Data": {"S": date}, "extra": {"S": "x"}}})[0].item
        for date in ("2020-01-01", "2019-01-01")
    )

    assert kept["extra"] == stale["extra"] == {"S": "x"}
    assert kept["Data"] == stale["Data"] == {"S": "2020-01-01"}


# --- items --------------------------------------------------------------------------------------------------------

KEY = {"objectId": {"S": "BOX_1"}, "relatedObjectId": {"S": "BOX_1"}}
BAD_ITEMS = [
    pytest.param({"objectId": {"S": "BOX_1"}}, "fits no type", id="no-sort-key"),
    pytest.param({"objectId": {"S": "X"}, "relatedObjectId": {"S": "Y"}}, "--allow-unfit", id="unfit"),
    pytest.param({**KEY, "WeightInKg": {"S": "heavy"}}, "Box.weightInKg is declared Float", id="type-of-field"),
    pytest.param({**KEY, "a": {"N": "1" * 39}}, "at most 38 digits", id="digits"),
    pytest.param({**KEY, "a": {"N": 1}}, "a number as a text", id="number-as-number"),
    pytest.param({**KEY, "a": {"Z": "1"}}, "one of the types", id="letter"),
    pytest.param({**KEY, "a": {"SS": []}}, "a set that is not empty", id="empty-set"),
    pytest.param({**KEY, "a": {"NS": ["1", "1"]}}, "without duplicates", id="duplicates"),
    pytest.param({**KEY, "a": {"B": "?"}}, "standard base64", id="base64"),
    pytest.param({**KEY, "a": {"S": "x", "N": "1"}}, "an object of one type", id="two-types"),
    pytest.param({**KEY, "a": {"M": {"b": 1}}}, "an object of one type", id="inside-a-map"),
    pytest.param({**KEY, "a": {"S": "é" * 210_000}}, "expected at most 409,600", id="too-large"),
    pytest.param({}, "is no item", id="empty"),
]


@pytest.mark.parametrize(("item", "reason"), BAD_ITEMS)
def test_item_that_dynamodb_or_the_model_would_refuse_is_refused(item: Any, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        ItemReader(compile_model(BANANA_SDL)).items(item)

    assert reason in str(refused.value)


def test_unfit_items_are_taken_if_allowed_and_still_need_keys() -> None:
    reader = ItemReader(compile_model(ORDER_SDL), allow_unfit=True)
    item = {"PK": {"S": "x"}, "SK": {"S": "y"}}

    assert reader.items({"Item": item})[0].item == item
    for broken, reason in (
        ({"PK": {"S": "x"}}, "has the key attributes of no table"),
        ({**item, "Data": {"N": "1"}}, "expected type S, got N"),
        ({**item, "Data": {"S": ""}}, "expected a text of 1 to 1024 bytes"),
    ):
        with pytest.raises(InputError, match=reason):
            reader.items(broken)


# --- the two passes -----------------------------------------------------------------------------------------------


def test_nothing_is_written_while_any_line_is_refused(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make(BANANA_SDL)
    lines = [orjson.dumps(box(number)) for number in range(60)]
    lines[10:10] = [b'{"__typename": "Box"}', b"{", b""]
    path, refused = tmp_path / "in.jsonl", tmp_path / "refused.jsonl"
    path.write_bytes(b"\n".join(lines))

    assert place.load(path, "--refused", refused) == 1

    told = capsys.readouterr().err
    assert "line 11 is no Box: `number` is missing" in told
    assert "line 12 is not JSON" in told
    assert "2 lines are refused, and nothing is written" in told
    assert [orjson.loads(line)["line"] for line in refused.read_bytes().splitlines()] == [11, 12]
    assert only(place) == []
    assert not path.with_name("in.jsonl.loading").exists()
    assert place.load(path, "--skip-refused") == 0
    assert len(only(place)) == 60


def test_only_the_first_refusals_are_told_in_full(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_lines(tmp_path / "in.jsonl", [{"__typename": "Box"}] * 30)

    assert make(BANANA_SDL).load(path) == 1

    told = capsys.readouterr().err
    assert told.count("`number` is missing") == 20
    assert "and 10 more: --refused FILE lists them all" in told


def test_the_last_of_several_lines_with_one_key_stays(make: Make, tmp_path: Path) -> None:
    place = make(BANANA_SDL)
    numbers = [*range(40), *range(40), 3, 3]
    path = write_lines(tmp_path / "in.jsonl", [box(one, weightInKg=at) for at, one in enumerate(numbers)])

    assert place.load(path, "--parallel", 16) == 0

    weights = {item["objectId"]["S"]: item["WeightInKg"]["N"] for item in only(place)}
    assert weights == {f"BOX_{number}": str(81 if number == 3 else number + 40) for number in range(40)}


def test_standard_input_is_read_twice(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = make(BANANA_SDL)
    path = write_lines(tmp_path / "in.jsonl", [box(1), box(2)])

    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": file}))
        assert place.load("-") == 0

    assert len(only(place)) == 2


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nowhere.jsonl"], "there is no file"),
        (["in.txt"], "say --format"),
        (["in.jsonl", "--type", "Bx"], "--type Bx: expected one of"),
        (["folder"], "expected a folder with AWSDynamoDB"),
        (["empty.csv"], "expected a header"),
    ],
)
def test_misuse_is_told(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    (tmp_path / "in.txt").touch()
    (tmp_path / "in.jsonl").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "folder").mkdir()

    assert make(BANANA_SDL).load(tmp_path / arguments[0], *arguments[1:]) == 2

    assert reason in capsys.readouterr().err


def test_a_table_that_is_not_there_is_told_before_anything_is_written(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make(BANANA_SDL)
    path = write_lines(tmp_path / "in.jsonl", [box(1)])

    assert place.load(path, "--table", "other-table") == 1

    assert "name the right one with --table" in capsys.readouterr().err


def test_a_changed_data_file_of_an_export_is_refused(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = make(BANANA_SDL, banana_items(0))
    assert source.export(tmp_path / "out") == 0
    (data,) = (tmp_path / "out").rglob("*.json.gz")
    (manifest,) = (tmp_path / "out").rglob("manifest-files.json")
    entry = orjson.loads(manifest.read_bytes())

    manifest.write_bytes(orjson.dumps({**entry, "itemCount": 3}))
    assert make(BANANA_SDL).load(tmp_path / "out") == 2
    assert f"holds {entry['itemCount']} items: expected 3" in capsys.readouterr().err
    manifest.write_bytes(orjson.dumps(entry))
    data.write_bytes(data.read_bytes()[:-1])
    assert make(BANANA_SDL).load(tmp_path / "out") == 2
    assert "has the MD5 checksum" in capsys.readouterr().err


# --- what DynamoDB leaves over --------------------------------------------------------------------------------------


class Stingy:
    """Processes only some items of each request, and some requests not at all."""

    def __init__(self, transport: Transport, seed: int) -> None:
        self._transport = transport
        self._random = random.Random(seed)
        self.sent: list[int] = []

    async def __call__(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        if operation != "BatchWriteItem":
            return await self._transport(operation, parameters)
        ((table, writes),) = parameters["RequestItems"].items()
        items = [write["PutRequest"]["Item"] for write in writes]
        keys = [orjson.dumps([item["objectId"], item["relatedObjectId"]]) for item in items]
        assert len(set(keys)) == len(keys) <= 25
        self.sent.append(len(writes))
        self._random.shuffle(writes)
        cut = self._random.choice([0, 1, 10, 25])
        if writes[:cut]:
            await self._transport(operation, {"RequestItems": {table: writes[:cut]}})
        return {"UnprocessedItems": {table: writes[cut:]} if writes[cut:] else {}}


@pytest.mark.parametrize("seed", range(3))
def test_items_that_are_left_over_are_sent_again_in_full_batches(make: Make, transport: Transport, seed: int) -> None:
    place = make(BANANA_SDL)
    stingy = Stingy(transport, seed)
    items = list(itertools.islice(banana_items(1), 600))
    reader = ItemReader(place.model)
    lines: list[int] = []

    async def run() -> Pump:
        pump = Pump(place.model, Client(stingy, 8), 8, lambda count: lines.append(pump.line))
        await pump.run((number, reader.items(item)) for number, item in enumerate(items, 1))
        return pump

    pump = asyncio.run(run())

    assert len(only(place)) == 600
    assert pump.line == 600
    assert lines == sorted(lines), "a line once written stays written"
    assert pump.retried > 0
    assert sum(stingy.sent) / len(stingy.sent) > 15, "what is left over travels with others"


def test_the_line_counts_only_what_is_written(make: Make) -> None:
    place = make(BANANA_SDL)
    reader = ItemReader(place.model)
    first_gone = asyncio.Event()

    class Stuck:
        async def __call__(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
            if any(write["PutRequest"]["Item"]["objectId"]["S"] == "BOX_30" for write in _writes(parameters)):
                await first_gone.wait()
            return {}

    async def run() -> list[int]:
        seen: list[int] = []
        pump = Pump(place.model, Client(Stuck(), 4), 4)

        def entries() -> Iterable[tuple[int, list[Placed]]]:
            for number in range(200):
                key = {"S": f"BOX_{number}"}
                yield number + 1, reader.items({"objectId": key, "relatedObjectId": key})
                seen.append(pump.line)
            first_gone.set()

        await pump.run(entries())
        return [max(seen), pump.line]

    assert asyncio.run(run()) == [25, 200]


def _writes(parameters: dict[str, Any]) -> Iterable[Any]:
    return itertools.chain.from_iterable(parameters["RequestItems"].values())


# --- going on -----------------------------------------------------------------------------------------------------


def test_a_killed_load_goes_on_and_nothing_is_lost(make: Make, tmp_path: Path) -> None:
    place = make(DEFAULTS)
    path = write_lines(tmp_path / "in.jsonl", [{"__typename": "Note"} for _ in range(12_000)])
    checkpoint = tmp_path / "in.jsonl.loading"
    kills = resumed = 0

    while True:
        process = place.start_load(path, "--parallel", 2)
        before = orjson.loads(checkpoint.read_bytes())["line"] if checkpoint.exists() else 0
        while process.poll() is None and kills < 3:
            time.sleep(0.02)
            if checkpoint.exists() and orjson.loads(checkpoint.read_bytes())["line"] > before:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
                break
        _, told = process.communicate()
        resumed += b"going on behind line" in told
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, told

    notes = only(place)
    assert kills > 0
    assert resumed == kills
    # The keys are new UUIDs: were any line written anew, there would be more.
    assert len(notes) == 12_000
    assert not checkpoint.exists()


def test_an_interrupted_load_goes_on(make: Make, tmp_path: Path) -> None:
    place = make(BANANA_SDL)
    path = write_lines(tmp_path / "in.jsonl", [box(number) for number in range(8_000)])
    checkpoint = tmp_path / "in.jsonl.loading"

    process = place.start_load(path, "--parallel", 1)
    while process.poll() is None and not (checkpoint.exists() and orjson.loads(checkpoint.read_bytes())["line"]):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()

    assert process.returncode == 130
    assert b"a load goes on from here" in told
    assert 0 < len(only(place)) < 8_000
    assert place.load(path) == 0
    assert len(only(place)) == 8_000


def test_a_checkpoint_of_another_input_is_not_gone_on_from(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = make(BANANA_SDL)
    path = write_lines(tmp_path / "in.jsonl", [box(1), box(2)])
    Checkpoint(tmp_path / "in.jsonl.loading").write(State({"size": 1}, "seed", "2024-01-01T00:00:00Z", 2, 2, 2))

    assert place.load(path) == 0

    assert "beginning anew" in capsys.readouterr().err
    assert len(only(place)) == 2


# --- any record ---------------------------------------------------------------------------------------------------

ANY = compile_model("""
extend schema @table(name: "any", partitionKey: "pk", sortKey: "sk", type: "kind")
  @index(name: "by-rank", partitionKey: "gpk", sortKey: "gsk")
type Owner @node(partition: "OWNER#{name}", sort: "owner") { name: ID!  rank: Int  born: Date  motto: String }
type Other @node(key: "OTHER#{number}") { number: ID!  label: String }
union Held = Owner | Other
type Thing @node(partition: "THING#{number}", sort: "{owner}")
  @indexed(by: "by-rank", partition: "{owner.rank}", sort: "{owner.born}") {
  number: ID!  owner: Owner!  spare: Held  text: String  whole: BigInt  price: Decimal  ratio: Float  any: JSON
  when: DateTime  texts: [String!]  marks: [String!] @attribute(set: true)  numbers: [Int]  box: Box
}
type Link @edge(partition: "{thing}", sort: "{held}", copy: "held")
  @edge(partition: "{held}", sort: "LINK#{thing}") { thing: Thing!  held: Held!  note: String }
type Box { width: Float!  labels: [String!] }
""")
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="#"), min_size=1, max_size=8)
ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(
    ['""', '"a"', "null", "1", " ", "a\r\nb", "é,;"]
)
MAYBE = st.none
MOMENT = Moment(datetime(2024, 1, 1, tzinfo=UTC), "seed")
OWNER = st.fixed_dictionaries(
    {"name": TEXT, "rank": MAYBE() | st.integers(0, 99), "born": MAYBE() | st.dates().map(str)}
)
OTHER = st.fixed_dictionaries({"number": TEXT})
JSON = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
)
THINGS = st.fixed_dictionaries(
    {"__typename": st.just("Thing"), "number": TEXT, "owner": OWNER},
    optional={
        "spare": MAYBE()
        | st.fixed_dictionaries({"__typename": st.just("Owner"), "name": TEXT})
        | st.fixed_dictionaries({"__typename": st.just("Other"), "number": TEXT}),
        "text": ANY_TEXT,
        "whole": st.integers(-(10**37), 10**37).map(str),
        "price": st.decimals(-1000, 1000, places=3).map(str),
        "ratio": st.floats(-1e9, 1e9).map(lambda number: round(number, 3)),
        "any": JSON,
        "when": st.datetimes(timezones=st.just(UTC)).map(lambda one: one.isoformat()),
        "texts": st.lists(ANY_TEXT, max_size=3),
        "marks": st.lists(TEXT, min_size=1, max_size=3, unique=True),
        "numbers": st.lists(MAYBE() | st.integers(-(2**31), 2**31), max_size=3),
        "box": st.fixed_dictionaries({"width": st.integers(0, 9)}, optional={"labels": st.lists(ANY_TEXT, max_size=2)}),
        "__attributes": st.dictionaries(
            TEXT.map("x".__add__), st.sampled_from([{"S": "a"}, {"NULL": True}]), max_size=2
        ),
    },
)
LINKS = st.fixed_dictionaries(
    {
        "__typename": st.just("Link"),
        "thing": st.fixed_dictionaries({"number": TEXT}),
        "held": st.fixed_dictionaries(
            {"__typename": st.just("Owner"), "name": TEXT, "rank": MAYBE() | st.integers(0, 9), "born": MAYBE()},
            optional={"motto": ANY_TEXT},
        ).map(lambda held: {"motto": None, **held})
        | st.fixed_dictionaries({"__typename": st.just("Other"), "number": TEXT, "label": MAYBE() | ANY_TEXT}),
    },
    optional={"note": ANY_TEXT},
)


@given(record=THINGS | LINKS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_record_comes_back_from_its_items(record: dict[str, Any]) -> None:
    reader = RecordReader(ANY, MOMENT)
    items = [placed.item for placed in reader.items(orjson.loads(orjson.dumps(record)))]
    entities = [Fitting(ANY, all_layouts(ANY)).read(item) for item in items]
    first, *mirrors = [entity for entity in entities if entity is not None]

    written = RecordWriter(ANY, reader).record(first, mirrors)
    paths = columns(ANY, first.type)
    row = row_of(ANY, first.type, paths, orjson.loads(orjson.dumps(written)))

    assert [placed.item for placed in reader.items(orjson.loads(orjson.dumps(written)))] == items
    assert [placed.item for placed in RecordReader(ANY, MOMENT, first.type.name).items(
        record_of(ANY, first.type, paths, row))] == items  # fmt: skip


@given(record=JSON | st.dictionaries(st.sampled_from(["__typename", "number", "owner", "box", "any"]), JSON))
@settings(max_examples=200, deadline=None)
def test_whatever_is_no_record_is_refused_and_nothing_else_happens(record: Any) -> None:
    reader = RecordReader(ANY, MOMENT)

    with suppress(GraphError):
        reader.items(record)
    with suppress(GraphError):
        ItemReader(ANY, allow_unfit=True).items(record)


# --- progress -----------------------------------------------------------------------------------------------------


class Screen(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(
    ("is_terminal", "expected"),
    [(True, "█" * 15 + "░" * 15 + " 500 of 1,000 (50%), 100/s, 0:05 left"), (False, ": 500 of 1,000 (50%), 100/s")],
)
def test_progress_tells_items_rate_and_time(monkeypatch: pytest.MonkeyPatch, is_terminal: bool, expected: str) -> None:
    clock = itertools.count(0, 5)
    monkeypatch.setattr("server.progress.time.monotonic", lambda: next(clock))
    screen = Screen(is_terminal=is_terminal)
    progress = Progress("loading", 1000, file=screen)
    monkeypatch.setattr("server.progress.time.monotonic", lambda: 5)

    progress.add(500)

    assert expected in screen.getvalue()
