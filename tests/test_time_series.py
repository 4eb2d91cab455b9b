"""What step 5 asks of time and consistency: tables for each period, items that expire, strongly consistent reads."""

from __future__ import annotations

from typing import Any

import pytest

from graph.errors import ModelError
from graph.loaders import Limits
from graph.requests import Item
from resolvers.sdl import compile_model
from tests.conftest import ROOT, Serve, Served, example_items

STEP5 = (ROOT / "examples/step5/schema.graphql").read_text()
PAST, FUTURE = "1641081600", "4102444800"


@pytest.fixture
async def step5(serve: Serve) -> Served:
    return await serve(STEP5, example_items("step5", whole=False), limits=Limits(linger_secs=0))


def reading(time: str, celsius: int = 1) -> Item:
    return {"sensor": {"S": "S9"}, "time": {"S": time}, "celsius": {"N": str(celsius)}}


def alert(raised: str, expires: str | None) -> Item:
    row = {"sensor": {"S": "S9"}, "raised": {"S": raised}, "text": {"S": raised}}
    return row if expires is None else {**row, "expires": {"N": expires}}


def tables_of(served: Served) -> list[str]:
    """List the tables that requests went to, without the test's own prefix."""
    return [sent["TableName"].rpartition("-")[2] for _, sent in served.sent]


# --- time series --------------------------------------------------------------------------------------------------


SERIES = """query ($from: DateTime!, $to: DateTime!, $first: Int, $after: String, $last: Int, $before: String) {
  readings(sensor: "S9", time: { from: $from, to: $to }, first: $first, after: $after, last: $last, before: $before) {
    nodes { time }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}"""
YEAR = {"from": "2022-01-01T00:00:00Z", "to": "2022-12-31T23:59:59Z"}


async def test_a_month_without_a_table_is_empty(step5: Served) -> None:
    await step5.put([reading("2022-01-15T00:00:00Z"), reading("2022-03-15T00:00:00Z")])
    between = {"from": "2022-01-01T00:00:00Z", "to": "2022-03-31T00:00:00Z"}

    listed = await step5.data(SERIES, between)
    step5.sent.clear()
    counted = await step5.data(
        '{ readings(sensor: "S9", time: { from: "2022-01-01T00:00:00Z", to: "2022-08-31T00:00:00Z" }) { totalCount } }'
    )

    assert [node["time"] for node in listed["readings"]["nodes"]] == ["2022-01-15T00:00:00Z", "2022-03-15T00:00:00Z"]
    assert counted["readings"]["totalCount"] == 2
    assert sorted(tables_of(step5)) == [f"readings_20220{month}" for month in range(1, 9)]


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("size", [1, 4])
async def test_pages_over_periods_are_the_whole_series(size: int, backward: bool, step5: Served) -> None:
    moments = [f"2022-{month:02}-{day:02}T12:00:00Z" for month in (1, 2, 5, 6, 12) for day in (1, 15, 28)]
    await step5.put([reading(moment) for moment in moments])

    found: list[str] = []
    place: dict[str, Any] = {}
    while True:
        data = await step5.data(SERIES, {**YEAR, "last" if backward else "first": size, **place})
        page, info = [node["time"] for node in data["readings"]["nodes"]], data["readings"]["pageInfo"]
        found = page + found if backward else found + page
        if not info["hasPreviousPage" if backward else "hasNextPage"]:
            break
        place = {"before": info["startCursor"]} if backward else {"after": info["endCursor"]}

    assert found == moments


async def test_one_period_is_one_query(step5: Served) -> None:
    await step5.data(SERIES, {"from": "2022-02-03T00:00:00Z", "to": "2022-02-05T00:00:00Z"})

    assert tables_of(step5) == ["readings_202202"]


async def test_an_item_of_a_time_series_is_looked_up_in_the_table_of_its_period(step5: Served) -> None:
    data = await step5.data('{ reading(sensor: "S1", time: "2022-04-02T12:00:00Z") { id celsius sensor { kind } } }')
    again = await step5.data(
        "query ($id: ID!) { node(id: $id) { ... on Reading { celsius } } }", {"id": data["reading"]["id"]}
    )

    assert data["reading"]["celsius"] == again["node"]["celsius"] == -12.0
    assert data["reading"]["sensor"] == {"kind": "freezer"}
    assert tables_of(step5) == ["readings_202204"]


async def test_an_item_of_a_period_without_a_table_is_null(step5: Served) -> None:
    data = await step5.data(
        '{ one: reading(sensor: "S1", time: "2021-04-02T12:00:00Z") { celsius }'
        '  other: reading(sensor: "S1", time: "2021-05-02T12:00:00Z") { celsius } }'
    )

    assert data == {"one": None, "other": None}


async def test_a_relationship_over_a_time_series_takes_its_range_from_the_filter(step5: Served) -> None:
    where = '{ time: { between: ["2022-01-31T00:00:00Z", "2022-02-02T00:00:00Z"] } }'

    data = await step5.data(f'{{ sensor(serial: "S1") {{ readings(where: {where}) {{ nodes {{ time }} }} }} }}')

    assert [node["time"] for node in data["sensor"]["readings"]["nodes"]] == [
        "2022-01-31T23:59:59Z",
        "2022-02-01T00:00:00Z",
    ]


@pytest.mark.parametrize(
    ("range_", "message"),
    [
        pytest.param('from: "2022-01-01T00:00:00Z"', "expected both ends of a range", id="no-end"),
        pytest.param('to: "2022-01-01T00:00:00Z"', "expected both ends of a range", id="no-beginning"),
        pytest.param(
            'from: "1990-01-01T00:00:00Z", to: "2022-01-01T00:00:00Z"', "reaches more than 100 tables", id="too-long"
        ),
    ],
)
async def test_a_range_that_does_not_say_which_tables_is_refused(range_: str, message: str, step5: Served) -> None:
    error = await step5.error(f'{{ readings(sensor: "S1", time: {{ {range_} }}) {{ nodes {{ time }} }} }}')

    assert error["extensions"]["code"] == "BAD_INPUT"
    assert message in error["message"]
    assert step5.sent == []


async def test_a_relationship_over_a_time_series_without_a_range_is_refused(step5: Served) -> None:
    body = await step5('{ sensor(serial: "S1") { kind readings { nodes { time } } } }')

    assert [error["extensions"]["code"] for error in body["errors"]] == ["BAD_INPUT"]


async def test_a_range_that_ends_before_it_begins_is_empty(step5: Served) -> None:
    data = await step5.data(SERIES, {"from": YEAR["to"], "to": YEAR["from"]})

    assert data["readings"]["nodes"] == []
    assert step5.sent == []


# --- expiry -------------------------------------------------------------------------------------------------------


@pytest.fixture
async def alerts(step5: Served) -> Served:
    """A sensor with four alerts, of which only those of March and April are still there."""
    await step5.put(
        [
            {"serial": {"S": "S9"}, "kind": {"S": "shelf"}, "place": {"S": "US#WA#Seattle#Pike Market"}},
            alert("2022-01-01T00:00:00Z", PAST),
            alert("2022-02-01T00:00:00Z", PAST),
            alert("2022-03-01T00:00:00Z", FUTURE),
            alert("2022-04-01T00:00:00Z", None),
        ]
    )
    return step5


async def test_expired_items_are_not_listed_and_pages_are_full_without_them(alerts: Served) -> None:
    data = await alerts.data(
        '{ sensor(serial: "S9") { alerts(first: 1) { nodes { text } pageInfo { hasNextPage } } } }'
    )

    assert data["sensor"]["alerts"] == {
        "nodes": [{"text": "2022-03-01T00:00:00Z"}],
        "pageInfo": {"hasNextPage": True},
    }


async def test_expired_items_are_not_counted(alerts: Served) -> None:
    data = await alerts.data('{ sensor(serial: "S9") { alerts { totalCount } } }')

    assert data["sensor"]["alerts"]["totalCount"] == 2
    assert [sent["Select"] for operation, sent in alerts.sent if operation == "Query"] == ["COUNT"]


async def test_expired_items_are_not_looked_up(alerts: Served) -> None:
    data = await alerts.data(
        '{ gone: alert(sensor: "S9", raised: "2022-01-01T00:00:00Z") { text }'
        '  here: alert(sensor: "S9", raised: "2022-03-01T00:00:00Z") { text } }'
    )

    assert data == {"gone": None, "here": {"text": "2022-03-01T00:00:00Z"}}


async def test_an_expired_node_is_null_by_its_id(alerts: Served) -> None:
    listed = await alerts.data('{ sensor(serial: "S9") { alerts { nodes { id raised } } } }')
    ids = [node["id"] for node in listed["sensor"]["alerts"]["nodes"]]
    await alerts.put([alert("2022-03-01T00:00:00Z", PAST)])

    data = await alerts.data("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": ids})

    assert data == {"nodes": [None, {"id": ids[1]}]}


# --- consistent reads ---------------------------------------------------------------------------------------------


def consistencies(served: Served) -> dict[str, Any]:
    """Say of each table or index read whether the read was consistent."""
    return {
        sent.get("IndexName") or sent["TableName"].rpartition("-")[2]: sent.get("ConsistentRead")
        for operation, sent in served.sent
        if operation == "Query"
    }


async def test_a_consistent_relationship_says_so_in_its_request(step5: Served) -> None:
    await step5.data(
        '{ sensor(serial: "S1") { alerts { totalCount nodes { text } } place { sensors { totalCount } } } }'
    )

    assert consistencies(step5) == {"alerts": True, "by-place": None}


async def test_a_local_index_is_read_consistently(step5: Served) -> None:
    await step5.data('{ newPlaces(country: "US", opened: { from: "1980-01-01" }) { nodes { name } } }')

    assert consistencies(step5) == {"by-opening": True}


@pytest.mark.parametrize(
    ("field", "index"),
    [
        pytest.param(
            (
                "placesOfChain(chain: String!): [Place!]! @find",
                "placesOfChain(chain: String!): [Place!]! @find(consistent: true)",
            ),
            "by-chain",
            id="find",
        ),
        pytest.param(
            ("sensors: [Sensor!]! @relationship", "sensors: [Sensor!]! @relationship(consistent: true)"),
            "by-place",
            id="relationship",
        ),
    ],
)
def test_a_consistent_read_of_a_global_index_is_refused(field: tuple[str, str], index: str) -> None:
    with pytest.raises(ModelError, match=f"the global index `{index}`, which is always a little behind"):
        compile_model(STEP5.replace(*field))
