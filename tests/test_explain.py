"""What the command line tells of a model without a table: its access patterns, a query's requests, shards."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from graph.imagined import ImaginedTable
from graph.loaders import Graph
from graph.requests import Item
from resolvers.operation import Request
from resolvers.schema import Api
from resolvers.sdl import compile_model
from server.cli import main
from tests.conftest import BANANAS, PATIENT, ROOT, Serve

EXAMPLES = {name: ROOT / "examples" / name for name in ("bananas", "order-entry", "b2b", "step5")}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run a command and give its exit code, its output and its complaints."""
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


# --- shards -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "share", "size", "expected"),
    [
        pytest.param("3e6", "0.2", "250", "13 shards are needed (12.5); 15 leave room", id="the-documents-own-figures"),
        pytest.param("3e6", "1", "250", "63 shards are needed (62.5); 73 leave room", id="all-of-them"),
        pytest.param("1000", "0.5", "250", "1 shards are needed (0.0); 2 leave room", id="few"),
        pytest.param("1e6", "1", "4096", "334 shards are needed (333.3); 385 leave room", id="a-read-unit-each"),
        pytest.param("1e6", "1", "8192", "667 shards are needed (666.7); 768 leave room", id="more-than-a-read-unit"),
    ],
)
def test_shards_are_computed_and_padded(
    items: str, share: str, size: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(capsys, "shards", "--items", items, "--share", share, "--size", size)

    assert code == 0
    assert out.startswith(expected)


@pytest.mark.parametrize(
    ("items", "share", "size"),
    [("0", "0.2", "250"), ("3e6", "0", "250"), ("3e6", "1.5", "250"), ("3e6", "0.2", "0"), ("nan", "0.2", "250")],
)
def test_shards_of_impossible_figures_are_refused(
    items: str, share: str, size: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, "shards", "--items", items, "--share", share, "--size", size)

    assert (code, out) == (2, "")
    assert "expected" in err


# --- explain ------------------------------------------------------------------------------------------------------


CONTAINER = '{ container(number: "1") { pallets { nodes { origin boxes { nodes { weightInKg } } } } } }'


def test_explain_prints_each_shape_of_request_with_its_read_units(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "--schema", str(BANANAS), "--length", "3", CONTAINER)

    assert code == 0
    assert out.splitlines() == [
        "    1 x Query: objectId = … and relatedObjectId from … to PALLET_…, limit 52  (0.5 read units)",
        # Each pallet with its boxes' links.
        "    3 x Query: objectId = … and relatedObjectId from BOX_ to …, limit 52  (1.5 read units)",
        "    1 x BatchGetItem of 9 keys  (4.5 read units)",
        "    5 requests, 6.5 read units, eventually consistent, if every list holds 3 items of 400 bytes",
    ]


def test_explain_tells_what_a_mutation_would_write(capsys: pytest.CaptureFixture[str]) -> None:
    query = 'mutation { deletePallet(key: { number: "1" }, cascade: true) { deletedId } }'

    assert main(["explain", "--schema", str(ROOT / "schema.graphql"), query]) == 0

    lines = capsys.readouterr().out.splitlines()
    # The pallet, ten boxes' edges and ten containers': each 400 bytes, and twice a unit in a transaction.
    assert "    1 x TransactWriteItems of 21 Delete  (42 write units)" in lines
    assert lines[-1].startswith("    6 requests, 12.5 read units, 44 write units without those of indexes")


def test_explain_of_a_create_takes_the_item_as_new(capsys: pytest.CaptureFixture[str]) -> None:
    query = """mutation { createCustomer(input: {
      number: "1", firstName: "a", lastName: "b", business: { number: "2" } }) { customer { id } } }"""

    assert main(["explain", "--schema", str(ROOT / "examples/b2b/schema.graphql"), query]) == 0

    assert "TransactWriteItems of 1 Update, 1 Put, 1 ConditionCheck  (6 write units)" in capsys.readouterr().out


def test_explain_reads_a_file_and_variables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "query.graphql"
    path.write_text("query ($number: ID!) { container(number: $number) { operator } }")

    code, out, _ = run(capsys, "explain", "--schema", str(BANANAS), "--variables", '{"number": "1"}', f"@{path}")

    assert code == 0
    assert "1 x GetItem objectId, relatedObjectId" in out


def test_explain_counts_a_time_series_by_its_periods(capsys: pytest.CaptureFixture[str]) -> None:
    schema, query = EXAMPLES["step5"] / "schema.graphql", EXAMPLES["step5"] / "queries/5-readings.graphql"

    _, out, _ = run(capsys, "explain", "--schema", str(schema), f"@{query}")

    assert "4 x Query: sensor = … and time from 2022-01-01T00:00:00 to 2022-04-30T23:59:59…" in out


def test_explain_knows_what_an_index_projects(capsys: pytest.CaptureFixture[str]) -> None:
    schema = str(EXAMPLES["step5"] / "schema.graphql")

    _, keys, _ = run(capsys, "explain", "--schema", schema, '{ placesOfChain(chain: "x") { nodes { name city } } }')
    _, more, _ = run(capsys, "explain", "--schema", schema, '{ placesOfChain(chain: "x") { nodes { name opened } } }')

    assert "BatchGetItem" not in keys
    assert "1 x BatchGetItem of 10 keys" in more


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["{ nope }"], 1, "Cannot query field 'nope'", id="unknown-field"),
        pytest.param(['{ container(number: "") { operator } }'], 1, "number", id="impossible-key"),
        pytest.param(["--variables", "x", CONTAINER], 2, "--variables: expected a JSON object", id="damaged-variables"),
        pytest.param(["@nowhere.graphql"], 2, "there is no file nowhere.graphql", id="no-such-file"),
    ],
)
def test_explain_refuses_what_cannot_run(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(capsys, "explain", "--schema", str(BANANAS), *arguments)

    assert (found, out) == (code, "")
    assert message in err


LENGTH = 3


def regular_bananas() -> list[Item]:
    """A container of three pallets of three boxes: every list is as long as every other."""
    rows = [("CONTAINER_1", "CONTAINER_1")]
    for pallet in range(1, LENGTH + 1):
        rows += [(f"PALLET_{pallet}", f"PALLET_{pallet}"), ("CONTAINER_1", f"PALLET_{pallet}")]
        for box in range(1, LENGTH + 1):
            key = f"BOX_{pallet}{box}"
            rows += [(key, key), (f"PALLET_{pallet}", key)]
    return [{"objectId": {"S": one}, "relatedObjectId": {"S": other}} for one, other in rows]


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(CONTAINER, id="three-levels"),
        pytest.param('{ container(number: "1") { operator } }', id="lookup"),
        pytest.param('{ container(number: "1") { pallets(first: 2) { edges { linkedBy } } } }', id="edges-alone"),
        pytest.param('{ container(number: "1") { pallets { totalCount } } }', id="count-alone"),
        pytest.param('{ container(number: "1") { pallets(last: 2) { nodes { origin } } } }', id="backward"),
        pytest.param('{ container(number: "1") { boxes { nodes { weightInKg } } } }', id="path"),
        pytest.param('{ pallet(number: "1") { container { operator } } }', id="reverse"),
        pytest.param('{ a: box(number: "11") { weightInKg } b: box(number: "12") { weightInKg } }', id="two-lookups"),
        pytest.param('{ box(number: "11") { pallet { origin container { operator } } } }', id="two-hops-up"),
        pytest.param("{ containers { nodes { operator } } }", id="scan"),
    ],
)
async def test_explained_requests_are_those_sent(query: str, serve: Serve) -> None:
    served = await serve(BANANAS.read_text(), regular_bananas())
    table = ImaginedTable(compile_model(BANANAS.read_text()), LENGTH)

    await served.data(query)
    await Api(Graph(compile_model(BANANAS.read_text()), table, PATIENT)).execute(Request(query))

    assert Counter(request.operation for request, _ in table.sent) == Counter(served.operations)


# --- check --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("example", "line"),
    [
        pytest.param("bananas", "Pallet.container 1 Query reverse-lookup-index", id="reverse-index"),
        pytest.param("order-entry", "Query.orders(status, date) 15 Queries side by side GSI-2", id="shards"),
        pytest.param("order-entry", "stock(product, warehouse) 1 GetItem table", id="whole-key"),
        pytest.param("b2b", "Query.tagged(tag) 1 Query for each of `tag` table id = tag#{tag.name}", id="several-tags"),
        pytest.param("b2b", "Business.customers 1 Query businessIdGsi", id="foreign-key"),
        pytest.param("step5", "Query.newPlaces(country, opened) 1 Query by-opening", id="local-index"),
        pytest.param("step5", "Query.readings(sensor, time) 1 Query for each yyyyMM of the range table", id="periods"),
    ],
)
def test_check_prints_every_access_pattern(example: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "check", "--schema", str(EXAMPLES[example] / "schema.graphql"))

    assert code == 0
    assert "no mistakes" in out
    assert any(" ".join(row.split()).startswith(line) for row in out.splitlines())


@pytest.mark.parametrize(
    ("example", "field", "then"),
    [
        pytest.param("bananas", "Container.pallets", "1 BatchGetItem for each 100 nodes", id="the-name-is-the-key"),
        pytest.param("order-entry", "Warehouse.staff", "1 Query for each node", id="the-name-is-not-the-key"),
        pytest.param(
            "b2b", "Customer.stores", "1 Query for each node, for what the copy does not hold", id="the-edge-has-a-copy"
        ),
        pytest.param("b2b", "Business.tags", "", id="a-tag-is-its-name"),
        pytest.param(
            "step5",
            "Query.placesOfChain(chain)",
            "1 BatchGetItem for each 100 nodes, for what the index does not hold",
            id="keys-only",
        ),
    ],
)
def test_check_says_what_the_nodes_cost(
    example: str, field: str, then: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, "check", "--schema", str(EXAMPLES[example] / "schema.graphql"))

    column = next(row.index("THEN") for row in out.splitlines() if row.startswith("FIELD"))
    (row,) = [row for row in out.splitlines() if row.startswith(f"{field} ")]
    assert row[column:] == then


def test_check_prints_every_refusal_with_its_cure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "schema.graphql"
    path.write_text(BANANAS.read_text().replace("BOX_{number}", "BOX_{nmuber}").replace("@find(scan: true)", "@find"))

    code, out, err = run(capsys, "check", "--schema", str(path))

    assert (code, out) == (1, "")
    assert "Did you mean 'number'?" in err
    assert "2 mistakes" in err


def test_check_of_a_folder_says_which_file_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "check", "--schema", str(ROOT / "examples"))

    assert code == 2
    assert "say which one with --schema" in err


def test_explain_shows_the_requests_of_a_caller(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    schema = tmp_path / "schema.graphql"
    schema.write_text(
        'extend schema @table(name: "notes", partitionKey: "pk")\n'
        'type Note @node(key: "NOTE#{org}#{number}") @auth(tenant: { field: "org", claim: "org" })\n'
        '  @auth(roles: ["support"]) { org: ID!  number: ID!  text: String }\n'
    )
    query = '{ note(number: "1") { text } }'
    code, _, told = run(capsys, "explain", "--schema", str(schema), query)
    assert (code, "callers without credentials" in told) == (1, True)
    code, out, _ = run(capsys, "explain", "--schema", str(schema), "--claims", '{"org": "acme"}', query)
    assert (code, "GetItem" in out) == (0, True)
    code, _, told = run(capsys, "explain", "--schema", str(schema), "--roles", "support", query)
    assert (code, "org" in told) == (1, True)
    code, _, told = run(capsys, "explain", "--schema", str(schema), "--claims", "[]", query)
    assert (code, told) == (2, "--claims: expected a JSON object, got '[]'\n")
