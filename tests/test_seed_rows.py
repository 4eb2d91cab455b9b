"""The source documents row by row: each row is shown by a golden file or a test, or belongs to a later issue.

`make golden` writes docs/seed-rows.md from the table below. A golden file whose name begins with `row-09-` shows row 9
without being named here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from tests.conftest import ROOT
from tests.test_golden import GOLDEN, QUERIES, agree

DOCUMENT = ROOT / "docs/seed-rows.md"
ISSUES = {4: "writes", 5: "performance", 6: "streams and search", 7: "operations", 8: "tools"}


@dataclass(frozen=True)
class Row:
    """What a row asks for; what shows it besides the golden files of its number; the later issue that adds to it."""

    asks: str
    shown: tuple[str, ...] = ()
    issue: int | None = None


ROWS: dict[int, Row] = {
    1: Row("ten entity types on one generic key"),
    2: Row("edge items inside the partitions of orders and products"),
    3: Row("a node and its children are read by one Query"),
    4: Row("an overloaded index"),
    5: Row(
        "the limit of 20 global indexes",
        ("tests/test_model_refusals.py::test_more_global_indexes_than_the_quota_are_a_warning",),
    ),
    6: Row("an employee by id"),
    7: Row("employees by name"),
    8: Row("the current job only"),
    9: Row("a customer's orders in a range of dates, for each status"),
    10: Row("open orders of all customers", ("tests/test_fan_outs.py::test_pages_of_a_fan_out_are_the_whole_list",)),
    11: Row("hired recently"),
    12: Row("the staff of a warehouse"),
    13: Row("order items of a product, with its inventories"),
    14: Row("customers of an account rep"),
    15: Row("a rep's orders by date, for each status"),
    16: Row("employees with a job title"),
    17: Row("inventory by product and warehouse"),
    18: Row("total inventory: a stored counter is read; writes keep it"),
    19: Row("reps ranked by order total"),
    20: Row("random write sharding"),
    21: Row("the number of shards, computed", ("tests/test_explain.py::test_shards_are_computed_and_padded",)),
    22: Row("hash sharding", ("tests/test_fan_outs.py::test_a_hashed_shard_is_the_only_one_read",)),
    23: Row("an empty Query costs", ("tests/test_fan_outs.py::test_an_empty_fan_out_costs_a_request_for_each_shard",)),
    24: Row("a sparse index", ("tests/test_fan_outs.py::test_items_without_the_index_key_are_not_in_a_sparse_index",)),
    25: Row("an item by id, whatever its type's suffix"),
    26: Row("a unique id without a type"),
    27: Row("customers of a business"),
    28: Row("orders of a customer and of a business"),
    29: Row("sorted by created time, in pages"),
    30: Row("sorted by name, case-insensitive"),
    31: Row(
        "a new kind of subject without a change of the table",
        ("tests/test_layouts.py::test_a_new_type_is_served_from_the_table_as_it_is",),
    ),
    32: Row("many-to-many as two mirrored items"),
    33: Row(
        "the stores of a customer, the customers of a store",
        ("tests/test_layouts.py::test_what_a_copy_does_not_hold_is_fetched",),
    ),
    34: Row("a copy is of the type that its sort key names"),
    35: Row("updates of copies through an index"),
    36: Row(
        "copies kept by a stream handler",
        (
            "tests/test_copies.py::test_a_mutation_writes_the_core_item_and_the_rest_follows",
            "tests/test_copies.py::test_all_is_in_the_end_as_it_would_be_at_once",
            "tests/test_following.py::test_streamz_tells_how_far_the_reader_is",
        ),
    ),
    37: Row(
        "the delay of copies",
        (
            "tests/test_copies_stale.py::test_what_may_show_copies_tells_how_old_they_are_at_most",
            "tests/test_copies_stale.py::test_other_processes_know_it_from_the_one_that_reads",
            "tests/test_copies_fresh.py::test_a_list_shows_copies_unless_it_is_to_be_fresh",
        ),
    ),
    38: Row("a tag on any subject"),
    39: Row("one kind under a tag"),
    40: Row("several tags at once", ("tests/test_fan_outs.py::test_pages_of_several_tags_are_the_whole_list",)),
    41: Row(
        "what was read beyond the limit is not lost",
        ("tests/test_fan_outs.py::test_pages_of_several_tags_are_the_whole_list",),
    ),
    42: Row("a filter after the limit"),
    43: Row(
        "a part-filled page with a cursor, not an error",
        (
            "tests/test_fan_outs.py::test_a_fan_out_stops_at_the_read_budget_with_a_cursor_that_goes_on",
            "tests/test_sources.py::test_a_page_under_a_filter_ends_part_filled_when_time_runs_out",
        ),
    ),
    44: Row(
        "sorted by many metrics: refused without an index",
        ("tests/test_layouts.py::test_an_order_that_no_index_gives_is_refused_at_start",),
    ),
    45: Row(
        "changes of indexes one at a time",
        (
            "tests/test_apply.py::test_indexes_are_made_one_at_a_time_and_each_is_waited_for",
            "tests/test_apply.py::test_killed_anywhere_the_next_run_ends_it",
            "tests/test_apply_golden.py::test_row_45_a_later_index_is_made_and_backfilled",
        ),
    ),
    46: Row(
        "an index's key schema is fixed",
        (
            "tests/test_apply_golden.py::test_row_46_an_index_of_another_key_is_replaced",
            "tests/test_apply.py::test_an_old_index_goes_only_when_the_servers_have_been_switched",
        ),
    ),
    47: Row("no boolean keys", ("tests/test_layouts.py::test_a_boolean_in_a_template_is_text",)),
    48: Row(
        "text search, of core items only",
        (
            "tests/test_search.py::test_stores_are_found_once_and_never_by_their_copies",
            "tests/test_search_upkeep.py::test_a_store_follows_its_new_key_and_its_copies_do_not_count",
        ),
    ),
    49: Row("what an index projects"),
    50: Row(
        "a Scan only where the model names one",
        ("tests/test_layouts.py::test_an_order_that_no_index_gives_is_refused_at_start",),
    ),
    51: Row(
        "many types and relations, several tables",
        ("tests/test_layouts.py::test_25_types_with_60_relationships_compile",),
    ),
    52: Row("a simple primary key"),
    53: Row("a hierarchical sort key"),
    54: Row("a local secondary index", issue=7),
    55: Row("projections: all, keys only, a list"),
    56: Row("version control"),
    57: Row(
        "large items, compressed",
        ("tests/test_packing.py::test_a_value_reads_back_from_its_attribute_and_from_its_object",),
    ),
    58: Row(
        "large items in S3",
        (
            "tests/test_blobs.py::test_a_large_value_is_an_object_and_the_item_points_to_it",
            "tests/test_sweep.py::test_what_a_kill_between_object_and_item_has_left_is_swept",
        ),
    ),
    59: Row("time series", ("tests/test_time_series.py::test_a_month_without_a_table_is_empty",)),
    60: Row("distribution over partitions: reads are rows 20-22", issue=7),
    61: Row("many-to-many by an adjacency list", ("bananas/a-container-with-its-pallets-and-their-boxes",)),
    62: Row(
        "the same id under two types",
        (
            "bananas/node-by-global-id-is-one-get-item",
            "tests/test_layouts.py::test_one_number_names_a_node_of_each_type",
        ),
    ),
    63: Row("edges with attributes", ("bananas/a-container-with-its-pallets-and-their-boxes",)),
    64: Row(
        "nothing is fetched that the edge holds",
        ("bananas/edge-fields-alone-need-no-batch-get", "bananas/node-id-alone-needs-no-batch-get"),
    ),
    65: Row("the reverse lookup", ("bananas/a-pallet-finds-its-container-through-the-index",)),
    66: Row("two hops", ("bananas/a-path-reads-its-nodes-together",)),
    67: Row("which end comes first"),
    68: Row(
        "the node's own item among its edges",
        ("tests/test_layouts.py::test_a_nodes_own_item_is_not_among_its_edges",),
    ),
    69: Row("the price of an index, unused indexes", issue=7),
    70: Row("aggregates: stored counters, or COUNT", ("bananas/total-count-alone-is-one-count-query",)),
    71: Row("latency and load", issue=5),
    72: Row(
        "on demand, streams, global tables",
        ("tests/test_apply_plan.py::test_a_table_that_is_missing_is_made_with_its_stream_and_its_ttl",),
        issue=7,
    ),
    73: Row("the table's schema as an output", issue=7),
}


def evidence(number: int) -> list[str]:
    """List what shows a row: the golden files of its number, then those and the tests that the table names."""
    named = [f"{path.parent.name}/{path.stem}" for path in QUERIES if path.stem.startswith(f"row-{number:02}-")]
    return [*named, *(one for one in ROWS[number].shown if one not in named)]


def document() -> str:
    """Write docs/seed-rows.md."""
    lines = [
        "# The source documents, row by row",
        "",
        "Written by `make golden` from `tests/test_seed_rows.py`. A golden file holds a query, its response and the",
        "exact requests that it causes.",
        "",
        "| row | asks for | shown by | to come |",
        "| --- | --- | --- | --- |",
    ]
    for number, row in ROWS.items():
        shown = ", ".join(_link(one) for one in evidence(number))
        later = f"issue {row.issue}: {ISSUES[row.issue]}" if row.issue else ""
        lines.append(f"| {number} | {row.asks} | {shown} | {later} |")
    return "\n".join(lines) + "\n"


def _link(name: str) -> str:
    if name.startswith("tests/"):
        path, _, test = name.partition("::")
        return f"[{test}](../{path})"
    return f"[{name}](../tests/golden/{name}.graphql)"


def test_every_row_is_listed() -> None:
    assert list(ROWS) == list(range(1, 74))


@pytest.mark.parametrize("number", ROWS)
def test_every_row_works_or_belongs_to_a_later_issue(number: int) -> None:
    assert evidence(number) or ROWS[number].issue in ISSUES


@pytest.mark.parametrize("number", ROWS)
def test_what_a_row_names_exists(number: int) -> None:
    for one in ROWS[number].shown:
        path, _, test = one.partition("::")
        if test:
            assert re.search(rf"^(?:async )?def {test}\(", (ROOT / path).read_text(), re.MULTILINE), one
        else:
            assert (GOLDEN / f"{one}.json").exists(), one


def test_the_list_of_rows_is_fresh(request: pytest.FixtureRequest) -> None:
    agree(DOCUMENT, document(), update=bool(request.config.getoption("--update-golden")))
