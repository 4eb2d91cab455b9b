"""The doctor's sample: what it says of tables far larger than it, how sure that is, and what it spends."""

from __future__ import annotations

import random
from typing import Any

import pytest

from graph.doctor.examine import Examination
from graph.doctor.findings import Code, Finding, Severity
from graph.doctor.shares import share_of
from graph.loaders import Graph
from graph.requests import Item, Query, Scan
from graph.sharding import shards_needed
from graph.sizes import item_bytes
from tests.big_table import BigTable, Part, described, target_of
from tests.clock import run

ORDERS = """extend schema
  @table(name: "orders", partitionKey: "PK", sortKey: "SK")
  @index(name: "by-status", partitionKey: "status", sortKey: "SK")

type Customer @node(partition: "CUSTOMER#{number}", sort: "self", ref: "CUSTOMER#{number}") {
  number: ID!
  orders: [Order!]! @relationship
}
type Order @node(partition: "{customer}", sort: "ORDER#{number}") {
  customer: Customer!
  number: Int!
  status: String
  note: String
}
type Query { ordersOfStatus(status: String!): [Order!]! @find }
"""
LOCAL = ORDERS.replace(
    "  @index(",
    '  @index(name: "near-by", partitionKey: "PK", sortKey: "status", local: true)\n  @index(',
)
SHARDED = """extend schema
  @table(name: "jobs", partitionKey: "PK", sortKey: "SK")
  @index(name: "open", partitionKey: "shard", sortKey: "due")
type Job @node(partition: "JOB#{number}", sort: "self")
  @indexed(by: "open", partition: "OPEN#{shard(10)}", sort: "{due}") {
  number: ID!
  due: Date
}
type Query { jobs(due: Date): [Job!]! @find }
"""


def order(status: Any = "OPEN", note_bytes: int = 300) -> Any:
    """Makes the orders of a customer; `status` may depend on the number."""

    note = "x" * note_bytes

    def make(partition: str, number: int) -> Item:
        chosen = status(partition, number) if callable(status) else status
        return {
            "PK": {"S": partition},
            "SK": {"S": f"ORDER#{number}"},
            "number": {"N": str(number)},
            "status": {"S": chosen},
            "note": {"S": note},
        }

    return make


def examined(
    sdl: str, parts: list[Part], units: float = 1000, *, seed: int = 1, **also: Any
) -> tuple[Examination, BigTable]:
    """Examine a table, with no time passing."""
    target = target_of(sdl)
    table = BigTable(target, parts, described(target, **also), seed=seed)

    async def main() -> Examination:
        examination = Examination(Graph(target.model, table), units=units, seed=seed)
        await examination.look()
        await examination.read()
        return examination

    return run(main()), table


def found(examination: Examination, code: Code) -> list[Finding]:
    return [one for one in examination.findings() if one.code is code]


# --- shares -------------------------------------------------------------------------------------------------------


def test_the_bounds_hold_the_truth_in_19_of_20_samples() -> None:
    chance, held, tries = random.Random(7), 0, 250
    for _ in range(tries):
        # Segments of uneven size, in which like lies with like.
        population = []
        for _ in range(500):
            size = chance.randrange(5, 60)
            leaning = chance.betavariate(2, 3)
            population.append((sum(chance.random() < leaning for _ in range(size)), size))
        truth = sum(one for one, _ in population) / sum(size for _, size in population)
        drawn = chance.sample(population, 50)
        share = share_of(drawn, 50 / 500)
        held += share.low <= truth <= share.high

    assert held / tries >= 0.92


def test_a_whole_table_gives_exact_shares_and_few_hits_hardly_any() -> None:
    whole = share_of([(1, 4), (3, 4)], 1.0)
    assert (whole.value, whole.low, whole.high, str(whole)) == (0.5, 0.5, 0.5, "50.0%")

    # One segment alone has any: that may be all there is, or only the first of many.
    rare = share_of([(10, 10), *[(0, 10)] * 9], 0.01)
    assert (rare.value, rare.low) == (0.1, 0.1 * 0.01)
    assert rare.high > 0.99
    assert share_of([], 0.5).high == 0.5


# --- what is spent ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("units", [200, 1000, 2000])
@pytest.mark.parametrize("is_counted", [True, False])
def test_no_more_is_spent_than_was_told(units: int, is_counted: bool) -> None:
    parts = [Part(f"CUSTOMER#{number}", 40, order()) for number in range(3000)]
    counted = {"ItemCount": 120_000, "TableSizeBytes": 120_000 * 360} if is_counted else {}

    examination, table = examined(ORDERS, parts, units, **counted)

    # A page for each of four segments may go beyond it, and so may the last items to be judged.
    assert units / 4 < table.units <= units + 4 * 32 + 25
    assert examination.walk.tally.read_units == pytest.approx(table.units)
    (one,) = examination.examined
    assert one.sample is not None
    assert 0 < one.sample.read < 1
    # Segments all over the table, rather than its beginning.
    scanned = {request.segment for request in table.requests if isinstance(request, Scan)}
    assert len(scanned) > 15


def test_a_small_table_is_read_whole() -> None:
    parts = [Part(f"CUSTOMER#{number}", 10, order()) for number in range(20)]

    examination, _ = examined(ORDERS, parts, ItemCount=200, TableSizeBytes=72_000)

    (one,) = examination.examined
    assert one.sample is not None
    assert (one.sample.is_whole, one.sample.count, one.sample.partitions) == (True, 200, 20)


def test_nothing_is_read_of_a_table_that_is_not_the_models() -> None:
    wrong = [{"AttributeName": "id", "KeyType": "HASH"}]

    examination, table = examined(ORDERS, [], KeySchema=wrong)

    assert not any(isinstance(request, (Scan, Query)) for request in table.requests)
    assert found(examination, Code.KEY_DRIFT) != []


# --- skew ---------------------------------------------------------------------------------------------------------


def test_a_partition_of_an_index_that_holds_most_of_it_is_told_with_its_bounds() -> None:
    def status(partition: str, number: int) -> str:
        return "OPEN" if random.Random(f"{partition}{number}").random() < 0.6 else f"DONE-{number}-{partition}"

    parts = [Part(f"CUSTOMER#{number}", 20, order(status)) for number in range(4000)]
    truth = sum(status(part.partition, number) == "OPEN" for part in parts for number in range(20)) / 80_000

    examination, _ = examined(ORDERS, parts, ItemCount=80_000, TableSizeBytes=80_000 * 360)

    (skew,) = found(examination, Code.PARTITION_SKEWED)
    assert (skew.subject, skew.severity) == ("by-status", Severity.WARNING)
    ((open_,)) = skew.numbers["partitions"]
    assert open_["partition"] == '"OPEN"'
    assert open_["low"] <= truth <= open_["high"]
    assert open_["high"] - open_["low"] < 0.1
    assert "{shard(N)}" in skew.cure


def test_evenly_filled_partitions_are_not_told() -> None:
    parts = [Part(f"CUSTOMER#{number}", 20, order(lambda partition, _: partition)) for number in range(4000)]

    examination, _ = examined(ORDERS, parts, ItemCount=80_000, TableSizeBytes=80_000 * 360)

    assert examination.findings() == []


def test_a_large_partition_is_counted_to_its_end_or_said_to_hold_at_least_so_much() -> None:
    parts = [Part(f"CUSTOMER#{number}", 2, order(lambda p, n: f"{p}{n}", 3000)) for number in range(500)]
    parts.append(Part("CUSTOMER#huge", 4000, order(lambda p, n: f"{p}{n}", 3000)))
    size = {"ItemCount": 5000, "TableSizeBytes": 15_300_000}

    whole, _ = examined(ORDERS, parts, 12_000, **size)
    part, _ = examined(ORDERS, parts, 2600, **size)

    for examination, is_whole in ((whole, True), (part, False)):
        (skew,) = [one for one in found(examination, Code.PARTITION_SKEWED) if one.subject == "the table itself"]
        (huge,) = skew.numbers["partitions"]
        assert (huge["partition"], huge["isWhole"]) == ('"CUSTOMER#huge"', is_whole)
        assert ("at least" in skew.found) is not is_whole
        if is_whole:
            assert huge["bytes"] == pytest.approx(4000 * 3060, rel=0.01)


# --- the limit of 10 GB -------------------------------------------------------------------------------------------

HUGE = [
    # What is read of it counts for the local index as well, which holds all of an item.
    Part("CUSTOMER#huge", 12_000, order(note_bytes=399_000)),
    *(Part(f"CUSTOMER#{number}", 2, order()) for number in range(50)),
]
HUGE_SIZE = {"ItemCount": 12_100, "TableSizeBytes": 4_800_000_000}


def test_a_partition_near_10_gb_is_told_where_there_is_a_local_index() -> None:
    examination, _ = examined(LOCAL, HUGE, 4_000_000, **HUGE_SIZE)

    (limit,) = found(examination, Code.COLLECTION_LIMIT)
    assert (limit.subject, limit.severity) == ('"CUSTOMER#huge"', Severity.SERIOUS)
    assert limit.numbers["isWhole"] is True
    assert limit.numbers["bytes"] == pytest.approx(2 * 12_000 * 399_060, rel=0.01)
    assert found(examination, Code.COLLECTION_UNKNOWN) == []


def test_what_the_sample_cannot_say_of_the_limit_is_told() -> None:
    local = [{**described(target_of(LOCAL))["LocalSecondaryIndexes"][0], "IndexSizeBytes": 4_800_000_000}]

    examination, _ = examined(LOCAL, HUGE, 500, **HUGE_SIZE, LocalSecondaryIndexes=local)

    assert found(examination, Code.COLLECTION_LIMIT) == []
    (unknown,) = found(examination, Code.COLLECTION_UNKNOWN)
    assert "the table and its local indexes hold 9.6 GB" in unknown.found
    assert "--sample 1171876 (at most $0.15" in unknown.cure
    # Without a local index there is no limit, however large it is.
    assert found(examined(ORDERS, HUGE, 500, **HUGE_SIZE)[0], Code.COLLECTION_UNKNOWN) == []


# --- shards -------------------------------------------------------------------------------------------------------


def jobs(shard: Any, count: int = 5000) -> list[Part]:
    def make(partition: str, _: int) -> Item:
        number = int(partition.rpartition("#")[2])
        return {
            "PK": {"S": partition},
            "SK": {"S": "self"},
            "shard": {"S": f"OPEN#{shard(number)}"},
            "due": {"S": "2026-01-01"},
            "note": {"S": "x" * 500},
        }

    return [Part(f"JOB#{number}", 1, make) for number in range(count)]


@pytest.mark.parametrize(
    ("shard", "expected"),
    [
        pytest.param(lambda number: number * 7 % 10, None, id="even"),
        pytest.param(lambda number: 0 if number % 2 else number % 4, (0, 8), id="two-of-ten"),
        pytest.param(lambda number: 4 if number % 3 else number % 10, (4, 0), id="one-too-full"),
    ],
)
def test_uneven_shards_are_told(shard: Any, expected: tuple[int, int] | None) -> None:
    examination, _ = examined(SHARDED, jobs(shard), 400, ItemCount=5000, TableSizeBytes=2_800_000)

    skewed = [(one.numbers["fullest"], one.numbers["empty"]) for one in found(examination, Code.SHARDS_SKEWED)]
    assert skewed == ([] if expected is None else [expected])
    # That shards share the partitions of an index is what they are for.
    assert found(examination, Code.PARTITION_SKEWED) == []


def test_shards_that_are_too_few_are_told_with_the_command_that_computes_them() -> None:
    size = {"ItemCount": 3_000_000, "TableSizeBytes": 3_000_000 * 560}

    examination, _ = examined(SHARDED, jobs(lambda number: number * 7 % 10), 1000, **size)

    (few,) = found(examination, Code.SHARDS_FEW)
    assert few.severity is Severity.HINT
    assert few.numbers["needed"] == pytest.approx(shards_needed(3_000_000, 560), rel=0.1)
    assert "tablegraph shards --items 3000000" in few.cure.replace(str(few.numbers["items"]), "3000000")


# --- what lies in an index for nothing ----------------------------------------------------------------------------


@pytest.mark.parametrize("index_bytes", [50_000_000, 40_000_000_000])
def test_what_an_index_holds_for_nothing_is_told_where_it_costs(index_bytes: int) -> None:
    def with_junk(partition: str, number: int) -> Item:
        return {**order(f"S{number % 50}")(partition, number), "junk": {"S": "x" * 1000}}

    indexes = [{**one, "IndexSizeBytes": index_bytes} for one in described(target_of(ORDERS))["GlobalSecondaryIndexes"]]
    parts = [Part(f"CUSTOMER#{number}", 20, with_junk) for number in range(1000)]
    size = {"ItemCount": 20_000, "TableSizeBytes": 20_000 * 1350}

    examination, _ = examined(ORDERS, parts, 400, **size, GlobalSecondaryIndexes=indexes)

    assert [one.subject for one in found(examination, Code.ATTRIBUTES_UNREAD)] == [""]
    overfull = found(examination, Code.INDEX_OVERFULL)
    assert [one.subject for one in overfull] == (["by-status"] if index_bytes > 10**9 else [])
    for one in overfull:
        truth = 1004 / item_bytes(with_junk("CUSTOMER#500", 10))
        assert one.numbers["share"] == pytest.approx(truth, rel=0.01)
        assert one.numbers["monthlyUsd"] == pytest.approx(truth * 40 * 0.25, rel=0.02)
