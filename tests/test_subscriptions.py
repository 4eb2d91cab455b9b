"""Subscriptions on the engine's own stream: what is told to whom, at what cost, and how one goes on."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graph.errors import SubscriberTooSlow
from graph.requests import Item
from graph.streams.hub import Hub
from resolvers.operation import Request, Response
from resolvers.schema import Api
from tests.conftest import BANANAS, ROOT, Serve, banana_items, example_items
from tests.following import Followed, follow, global_id, soon

CONTAINER = global_id("Container", "CONTAINER_009998")
NEW_PALLET = """mutation($number: ID!, $by: String, $container: ID = "009998") {
  createPallet(input: {number: $number, origin: "FR",
    container: {container: {number: $container}, linkedDatetime: "2024-01-01T00:00:00Z", linkedBy: $by}}) {
    pallet { id } }
}"""


@pytest.fixture
async def bananas(serve: Serve, engine: str) -> Followed:
    """The seed's bananas, followed."""
    return await follow(await serve(BANANAS.read_text(), banana_items(0)), engine)


@pytest.fixture
async def b2b(serve: Serve, engine: str) -> Followed:
    """Businesses, customers, stores and tags, followed."""
    sdl = (ROOT / "examples/b2b/schema.graphql").read_text()
    return await follow(await serve(sdl, example_items("b2b", whole=False)), engine)


def kinds(told: list[Any]) -> list[Any]:
    return [one["kind"] for one in told]


# --- nodes --------------------------------------------------------------------------------------------------------


async def test_node_is_told_when_it_comes_changes_and_goes(bananas: Followed) -> None:
    events = await bananas.open(
        "subscription { containerChanged { kind nodeId node { id operator } before { operator } } }"
    )

    await bananas.write('mutation { createContainer(input: {number: "C1", operator: "A"}) { container { id } } }')
    await bananas.write('mutation { updateContainer(key: {number: "C1"}, set: {operator: "B"}) { container { id } } }')
    await bananas.write('mutation { deleteContainer(key: {number: "C1"}) { deletedId } }')

    id_ = global_id("Container", "CONTAINER_C1")
    assert await bananas.told(events) == [
        [
            {"kind": "CREATED", "nodeId": id_, "node": {"id": id_, "operator": "A"}, "before": None},
            {"kind": "CHANGED", "nodeId": id_, "node": {"id": id_, "operator": "B"}, "before": {"operator": "A"}},
            {"kind": "REMOVED", "nodeId": id_, "node": None, "before": {"operator": "B"}},
        ]
    ]


async def test_subscription_to_one_node_is_told_of_no_other(bananas: Followed) -> None:
    events = await bananas.open(
        "subscription($id: ID) { containerChanged(id: $id) { node { number } } }", {"id": CONTAINER}
    )

    await bananas.write('mutation { createContainer(input: {number: "C1"}) { container { id } } }')
    await bananas.write(
        'mutation { updateContainer(key: {number: "009998"}, set: {operator: "B"}) { container { id } } }'
    )

    assert await bananas.told(events) == [[{"node": {"number": "009998"}}]]


async def test_node_that_enters_or_leaves_the_filter_comes_or_goes(bananas: Followed) -> None:
    events = await bananas.open(
        'subscription { containerChanged(where: {operator: {eq: "B"}}) { kind node { operator } before { operator } } }'
    )

    await bananas.write('mutation { createContainer(input: {number: "C1", operator: "A"}) { container { id } } }')
    for operator in ("B", "C", "D"):
        await bananas.write(
            'mutation($to: String) { updateContainer(key: {number: "C1"}, set: {operator: $to}) { container { id } } }',
            {"to": operator},
        )

    assert await bananas.told(events) == [
        [
            {"kind": "CREATED", "node": {"operator": "B"}, "before": {"operator": "A"}},
            {"kind": "REMOVED", "node": {"operator": "C"}, "before": {"operator": "B"}},
        ]
    ]


async def test_write_that_changes_no_field_is_not_told(bananas: Followed) -> None:
    events = await bananas.open("subscription { containerChanged { kind } }")
    item: Item = {"objectId": {"S": "CONTAINER_C1"}, "relatedObjectId": {"S": "CONTAINER_C1"}, "Operator": {"S": "A"}}

    await bananas.served.put([item])
    await bananas.served.put([item])
    await bananas.served.put([{**item, "Nobodys": {"S": "attribute"}}])
    changes = await bananas.reader.hand_to(bananas.hub)

    assert len(changes) == 3, "the engine tells of all of them"
    assert await bananas.told(events) == [[{"kind": "CREATED"}]]


async def test_node_whose_key_changes_goes_and_comes(b2b: Followed) -> None:
    events = await b2b.open("subscription { customerChanged { kind nodeId node { firstName } before { firstName } } }")

    await b2b.write('mutation { updateCustomer(key: {number: "001"}, set: {firstName: "Zoe"}) { customer { id } } }')

    (told,) = await b2b.told(events)
    assert sorted(kinds(told)) == ["CREATED", "REMOVED"]
    assert {one["kind"]: (one["node"] or one["before"])["firstName"] for one in told} == {
        "CREATED": "Zoe",
        "REMOVED": "Joey",
    }
    assert len({one["nodeId"] for one in told}) == 2


async def test_expired_node_is_gone_and_its_deletion_is_told(serve: Serve, engine: str) -> None:
    sdl = """extend schema @table(name: "sessions", partitionKey: "pk", sortKey: "sk")
      type Session @node(key: "SESSION_{number}") { number: ID!  name: String  gone: Int @ttl }"""
    followed = await follow(await serve(sdl), engine)
    events = await followed.open("subscription { sessionChanged { kind nodeId node { name } before { name } } }")
    item: Item = {"pk": {"S": "SESSION_1"}, "sk": {"S": "SESSION_1"}, "name": {"S": "a"}, "gone": {"N": "9999999999"}}

    for written in (item, {**item, "gone": {"N": "1000"}}, {**item, "name": {"S": "b"}}):
        await followed.served.put([written])
    await followed.write('mutation { deleteSession(key: {number: "1"}) { deletedId } }')

    (told,) = await followed.told(events)
    assert [(one["kind"], one["node"], one["before"]) for one in told] == [
        ("CREATED", {"name": "a"}, None),
        ("REMOVED", None, {"name": "a"}),
        ("CREATED", {"name": "b"}, None),
        ("REMOVED", None, {"name": "b"}),
    ]


async def test_node_of_a_type_called_like_a_field_of_the_payload_is_told(serve: Serve, engine: str) -> None:
    sdl = """extend schema @table(name: "kinds", partitionKey: "pk", sortKey: "sk")
      type Kind @node(key: "KIND_{number}") { number: ID!  cursors: [Cursor!]! @relationship }
      type Cursor @node(partition: "KIND_{kind.number}", sort: "CURSOR_{number}") { number: ID!  kind: Kind! }"""
    followed = await follow(await serve(sdl), engine)
    events = [
        await followed.open("subscription { kindChanged { kind node { number } } }"),
        await followed.open("subscription { cursorChanged { kind node { kind { number } } cursor } }"),
    ]

    await followed.write(
        'mutation { createKind(input: {number: "1"}) { kind { id } } '
        'createCursor(input: {number: "2", kind: {number: "1"}}) { cursor { id } } }'
    )

    kind, cursor = await followed.told(*events)
    assert kind == [{"kind": "CREATED", "node": {"number": "1"}}]
    assert [(one["kind"], one["node"]) for one in cursor] == [("CREATED", {"kind": {"number": "1"}})]


async def test_virtual_node_has_no_subscription_and_its_lists_have(b2b: Followed) -> None:
    assert "tagChanged" not in b2b.api.sdl()
    assert "tagSubjectsChanged" in b2b.api.sdl()


# --- edges --------------------------------------------------------------------------------------------------------


async def test_edge_is_told_with_its_fields_and_its_node(bananas: Followed) -> None:
    query = """subscription($id: ID!) { containerPalletsChanged(id: $id) {
      kind nodeId edge { linkedBy node { origin container { number } } } before { linkedBy node { origin } } } }"""
    key = 'key: {container: {number: "009998"}, pallet: {number: "P9"}}'
    events = await bananas.open(query, {"id": CONTAINER})
    id_, node = global_id("Pallet", "PALLET_P9"), {"origin": "FR", "container": {"number": "009998"}}

    await bananas.write(NEW_PALLET, {"number": "P9", "by": "me"})

    assert (await soon(events))["data"]["containerPalletsChanged"] == {
        "kind": "CREATED",
        "nodeId": id_,
        "edge": {"linkedBy": "me", "node": node},
        "before": None,
    }

    await bananas.write(
        f'mutation {{ updatePalletLoading({key}, set: {{linkedBy: "you"}}) {{ palletLoading {{ linkedBy }} }} }}'
    )

    assert (await soon(events))["data"]["containerPalletsChanged"] == {
        "kind": "CHANGED",
        "nodeId": id_,
        "edge": {"linkedBy": "you", "node": node},
        "before": {"linkedBy": "me", "node": {"origin": "FR"}},
    }

    await bananas.write(f"mutation {{ deletePalletLoading({key}) {{ palletLoading {{ linkedBy }} }} }}")

    assert (await soon(events))["data"]["containerPalletsChanged"] == {
        "kind": "REMOVED",
        "nodeId": id_,
        "edge": None,
        "before": {"linkedBy": "you", "node": {"origin": "FR"}},
    }


async def test_edges_of_another_node_and_other_items_of_the_partition_are_not_told(bananas: Followed) -> None:
    await bananas.write('mutation { createContainer(input: {number: "C1"}) { container { id } } }')
    events = await bananas.open(
        "subscription($id: ID!) { containerPalletsChanged(id: $id) { kind } }", {"id": CONTAINER}
    )

    await bananas.write(NEW_PALLET, {"number": "P1", "container": "C1"})
    await bananas.write(
        'mutation { updateContainer(key: {number: "009998"}, set: {operator: "B"}) { container { id } } }'
    )
    await bananas.write(NEW_PALLET, {"number": "P2"})

    assert await bananas.told(events) == [[{"kind": "CREATED"}]]


async def test_filter_of_edges_asks_their_nodes_too(bananas: Followed) -> None:
    query = """subscription($id: ID!, $where: PalletLoadingWhere) {
      containerPalletsChanged(id: $id, where: $where) { kind edge { node { number } } } }"""
    events = await bananas.open(query, {"id": CONTAINER, "where": {"pallet": {"origin": {"eq": "FR"}}}})
    none = await bananas.open(query, {"id": CONTAINER, "where": {"pallet": {"origin": {"eq": "IT"}}}})

    await bananas.write(NEW_PALLET, {"number": "P1"})

    assert await bananas.told(events, none) == [[{"kind": "CREATED", "edge": {"node": {"number": "P1"}}}], []]


@pytest.mark.parametrize(
    ("example", "subscription", "connection", "mutation"),
    [
        pytest.param(
            "bananas",
            "containerPalletsChanged",
            'container(number: "009998") { id found: pallets {',
            """createPallet(input: {number: "P9", container: {container: {number: "009998"},
               linkedDatetime: "2024-01-01T00:00:00Z"}}) { pallet { id } }""",
            id="edges",
        ),
        pytest.param(
            "b2b",
            "customerOrdersChanged",
            'customer(number: "001") { id found: orders {',
            """createOrder(input: {number: "999", createdTime: "2024-01-01T00:00:00Z", customer: {number: "001"},
               business: {number: "002"}}) { order { id } }""",
            id="children-of-an-index",
        ),
        pytest.param(
            "b2b",
            "tagSubjectsChanged",
            'tag(name: "red") { id found: subjects {',
            """createTagging(input: {tag: {name: "red"}, subject: {store: {number: "004"}}}) {
               tagging { subject { __typename } } }""",
            id="a-union",
        ),
    ],
)
async def test_edge_has_the_cursor_that_it_has_in_the_connection(
    serve: Serve, engine: str, example: str, subscription: str, connection: str, mutation: str
) -> None:
    sdl = (BANANAS if example == "bananas" else ROOT / "examples" / example / "schema.graphql").read_text()
    followed = await follow(await serve(sdl, example_items(example, whole=False)), engine)
    page = f"{{ {connection} edges {{ cursor node {{ __typename }} }} }} }} }}"
    before = next(iter((await followed.served.data(page)).values()))
    events = await followed.open(
        f"subscription($id: ID!) {{ {subscription}(id: $id) {{ kind edge {{ cursor node {{ __typename }} }} }} }}",
        {"id": before["id"]},
    )

    await followed.write(f"mutation {{ {mutation} }}")

    after = next(iter((await followed.served.data(page)).values()))
    new = [edge for edge in after["found"]["edges"] if edge not in before["found"]["edges"]]
    assert len(new) == 1
    assert await followed.told(events) == [[{"kind": "CREATED", "edge": new[0]}]]


async def test_mirrored_edge_is_told_once_from_either_side(b2b: Followed) -> None:
    ids = await b2b.served.data('{ customer(number: "005") { id } store(number: "007") { id } }')
    customers = await b2b.open(
        "subscription($id: ID!) { customerStoresChanged(id: $id) { kind edge { node { storeName } } } }",
        ids["customer"],
    )
    stores = await b2b.open(
        "subscription($id: ID!) { storeCustomersChanged(id: $id) { kind edge { node { firstName } } } }", ids["store"]
    )

    await b2b.write(
        'mutation { createManagement(input: {customer: {number: "005"}, store: {number: "007"}}) '
        "{ management { customer { id } } } }"
    )

    assert await b2b.told(customers, stores) == [
        [{"kind": "CREATED", "edge": {"node": {"storeName": "Sydney"}}}],
        [{"kind": "CREATED", "edge": {"node": {"firstName": "Joanna"}}}],
    ]


async def test_copy_that_follows_its_node_is_no_change_of_the_edge(b2b: Followed) -> None:
    ids = await b2b.served.data(
        '{ customer(number: "001") { id } order(number: "003") { id } tag(name: "music") { id } }'
    )
    tagged = await b2b.open("subscription($id: ID!) { tagSubjectsChanged(id: $id) { kind } }", ids["tag"])
    orders = await b2b.open("subscription($id: ID!) { customerOrdersChanged(id: $id) { kind } }", ids["customer"])
    nodes = await b2b.open("subscription { orderChanged { kind } }")

    await b2b.write('mutation { updateOrder(key: {number: "003"}, set: {status: "LOST"}) { order { id } } }')
    changes = [one async for one in b2b.reader.replay({})]

    assert [one for one in changes if one.key[1][0] == ("id", "tag#music")], "the copy under the tag was written"
    # The list of orders has the orders' own items for edges.
    assert await b2b.told(tagged, orders, nodes) == [[], [{"kind": "CHANGED"}], [{"kind": "CHANGED"}]]


async def test_list_of_a_fan_out_is_followed_in_all_its_partitions(serve: Serve, engine: str) -> None:
    sdl = """extend schema @table(name: "shops", partitionKey: "pk", sortKey: "sk")
        @index(name: "by-shop", partitionKey: "g1p", sortKey: "g1s")
      type Shop @node(key: "SHOP_{number}") { number: ID!  sales: [Sale!]! @relationship }
      type Sale @node(key: "SALE_{number}") @indexed(by: "by-shop", partition: "{shop}-{shard(4)}", sort: "{day}") {
        number: ID!  day: Date!  shop: Shop }"""
    followed = await follow(await serve(sdl), engine)
    await followed.write('mutation { createShop(input: {number: "1"}) { shop { id } } }')
    events = await followed.open(
        "subscription($id: ID!) { shopSalesChanged(id: $id) { kind edge { cursor node { number } } } }",
        {"id": global_id("Shop", "SHOP_1")},
    )

    for number in range(12):
        await followed.write(
            "mutation($number: ID!) { createSale(input: "
            '{number: $number, day: "2026-01-01", shop: {number: "1"}}) { sale { id } } }',
            {"number": str(number)},
        )

    page = '{ shop(number: "1") { sales { edges { cursor node { number } } } } }'
    edges = (await followed.served.data(page))["shop"]["sales"]["edges"]
    (told,) = await followed.told(events)
    assert kinds(told) == ["CREATED"] * 12
    assert sorted((one["edge"] for one in told), key=lambda edge: edge["cursor"]) == sorted(
        edges, key=lambda edge: edge["cursor"]
    )


# --- what it costs ------------------------------------------------------------------------------------------------


async def test_own_fields_of_a_node_cost_no_request(bananas: Followed) -> None:
    events = await bananas.open("subscription { palletChanged { nodeId node { id number origin } before { origin } } }")

    await bananas.write(NEW_PALLET, {"number": "P9"})
    await soon(events)

    assert bananas.served.operations == []


async def test_what_lies_behind_a_node_is_read_anew_for_each_event(bananas: Followed) -> None:
    events = await bananas.open("subscription { containerChanged { node { pallets { totalCount } } } }", cost=True)
    write = (
        'mutation {{ updateContainer(key: {{number: "009998"}}, set: {{operator: "{}"}}) {{ container {{ id }} }} }}'
    )

    await bananas.write(write.format("A"))
    first = await soon(events)
    await bananas.write(NEW_PALLET, {"number": "P9"})
    await bananas.write(write.format("B"))
    second = await soon(events)

    counts = [body["data"]["containerChanged"]["node"]["pallets"]["totalCount"] for body in (first, second)]
    assert counts[1] == counts[0] + 1
    assert [body["extensions"]["cost"]["requests"] for body in (first, second)] == [{"total": 1, "Query": 1}] * 2


async def test_events_are_read_consistently(bananas: Followed) -> None:
    events = await bananas.open(
        "subscription($id: ID!) { containerPalletsChanged(id: $id) { edge { node { origin } } } }", {"id": CONTAINER}
    )

    await bananas.write(NEW_PALLET, {"number": "P9"})
    await soon(events)

    assert [(name, sent["ConsistentRead"]) for name, sent in bananas.served.sent] == [("GetItem", True)]


# --- errors -------------------------------------------------------------------------------------------------------


async def test_error_in_an_event_does_not_end_the_subscription(bananas: Followed) -> None:
    events = await bananas.open(
        "subscription { boxChanged(where: {isDangerous: {ne: true}}) { node { number weightInKg } } }"
    )
    item: Item = {"objectId": {"S": "BOX_1"}, "relatedObjectId": {"S": "BOX_1"}}

    await bananas.served.put([{**item, "WeightInKg": {"S": "heavy"}}])
    await bananas.served.put([{**item, "IsDangerous": {"S": "perhaps"}}])
    await bananas.served.put([{**item, "WeightInKg": {"N": "3"}}])
    await bananas.reader.hand_to(bananas.hub)
    ((wrong, undecided, right),) = await bananas.bodies(events)

    assert wrong["data"] == {"boxChanged": {"node": {"number": "1", "weightInKg": None}}}
    assert [error["extensions"]["code"] for error in wrong["errors"]] == ["BAD_ITEM_VALUE"]
    assert undecided["data"] is None
    assert [(error["path"], error["extensions"]["code"]) for error in undecided["errors"]] == [
        (["boxChanged"], "BAD_ITEM_VALUE")
    ]
    # What it was cannot be decided either.
    assert [error["extensions"]["code"] for error in right["errors"]] == ["BAD_ITEM_VALUE"]


@pytest.mark.parametrize(
    ("query", "variables", "code"),
    [
        pytest.param("subscription { containerChanged(", {}, "GRAPHQL_PARSE_FAILED", id="syntax"),
        pytest.param("subscription { nobodyChanged { kind } }", {}, "GRAPHQL_VALIDATION_FAILED", id="unknown-field"),
        pytest.param(
            "subscription { a: boxChanged { kind } b: boxChanged { kind } }",
            {},
            "GRAPHQL_VALIDATION_FAILED",
            id="two-fields",
        ),
        pytest.param(
            "subscription($id: ID!) { containerPalletsChanged(id: $id) { kind } }", {}, "BAD_USER_INPUT", id="variable"
        ),
        pytest.param('subscription { boxChanged(id: "x") { kind } }', {}, "BAD_ID", id="damaged-id"),
        pytest.param(
            "subscription($id: ID!) { boxChanged(id: $id) { kind } }",
            {"id": CONTAINER},
            "BAD_ID",
            id="id-of-another-type",
        ),
        pytest.param('subscription { boxChanged(after: "x") { kind } }', {}, "BAD_CURSOR", id="damaged-cursor"),
        pytest.param(
            "subscription { boxChanged(where: {weightInKg: {between: [1]}}) { kind } }", {}, "BAD_INPUT", id="filter"
        ),
    ],
)
async def test_what_cannot_be_followed_is_refused_before_the_first_event(
    bananas: Followed, query: str, variables: dict[str, Any], code: str
) -> None:
    assert (await bananas.refusal(query, variables))["extensions"]["code"] == code


async def test_subscription_is_refused_where_one_answer_is_all(bananas: Followed) -> None:
    response = await bananas.api.execute(Request("subscription { boxChanged { kind } }"))

    assert response.outcome == "refused"
    assert response.body["errors"][0]["extensions"] == {"code": "SUBSCRIPTION_TRANSPORT"}
    assert "text/event-stream" in response.body["errors"][0]["message"]


async def test_subscription_is_refused_where_nobody_follows_the_streams(bananas: Followed) -> None:
    response = await Api(bananas.served.graph).open(Request("subscription { boxChanged { kind } }"))

    assert isinstance(response, Response)
    assert response.body["errors"][0]["extensions"] == {"code": "STREAM_UNAVAILABLE"}
    assert response.body["errors"][0]["path"] == ["boxChanged"]


async def test_query_and_mutation_are_answered_at_once(bananas: Followed) -> None:
    response = await bananas.api.open(Request('{ container(number: "009998") { number } }'))

    assert response == Response({"data": {"container": {"number": "009998"}}}, "executed")


async def test_slow_subscriber_is_told_so(serve: Serve, engine: str) -> None:
    bananas = await follow(await serve(BANANAS.read_text()), engine, most_waiting=2)
    events = await bananas.open("subscription { palletChanged { node { number } cursor } }")

    await bananas.served.data('mutation { createContainer(input: {number: "009998"}) { container { id } } }')
    for number in range(4):
        await bananas.write(NEW_PALLET, {"number": f"P{number}"})
    first, second = [(await soon(events))["data"]["palletChanged"] for _ in range(2)]

    assert [first["node"]["number"], second["node"]["number"]] == ["P0", "P1"]
    with pytest.raises(SubscriberTooSlow):
        await soon(events)
    again = await bananas.open(
        "subscription($after: String) { palletChanged(after: $after) { node { number } cursor } }",
        {"after": second["cursor"]},
    )
    assert [one["node"]["number"] for one in (await bananas.told(again))[0]] == ["P2", "P3"]


# --- going on -----------------------------------------------------------------------------------------------------

PALLETS = "subscription($after: String) { palletChanged(after: $after) { node { number } cursor } }"


async def pallets(followed: Followed, *numbers: int) -> None:
    for number in numbers:
        await followed.write(NEW_PALLET, {"number": f"P{number}"})


def numbers(told: list[Any]) -> list[int]:
    return [int(one["node"]["number"][1:]) for one in told]


async def test_subscriber_that_was_away_for_a_moment_misses_nothing(bananas: Followed) -> None:
    events = await bananas.open(PALLETS)
    await pallets(bananas, 1, 2)
    cursor = (await soon(events))["data"]["palletChanged"]["cursor"]
    await events.aclose()

    await pallets(bananas, 3)
    again = await bananas.open(PALLETS, {"after": cursor})
    await pallets(bananas, 4)

    assert [numbers(told) for told in await bananas.told(again)] == [[2, 3, 4]]


async def test_subscriber_goes_on_with_another_process_by_what_the_stream_holds(
    bananas: Followed, serve: Serve, engine: str
) -> None:
    events = await bananas.open(PALLETS)
    await pallets(bananas, 1, 2, 3)
    cursor = (await soon(events))["data"]["palletChanged"]["cursor"]

    # A process that begins where the first one's reader was: behind what the subscriber has not had yet.
    other = await follow_again(bananas)
    other.hub.begin(bananas.hub.places)
    again = await other.open(PALLETS, {"after": cursor})
    await pallets(other, 4)
    # The reader tells the last ones twice.
    await other.reader.again()
    await pallets(other, 5)

    assert [numbers(told) for told in await other.told(again)] == [[2, 3, 4, 5]]


async def test_cursors_of_what_was_read_again_go_on_as_well(bananas: Followed) -> None:
    events = await bananas.open(PALLETS)
    await pallets(bananas, *range(1, 7))
    cursor = (await soon(events))["data"]["palletChanged"]["cursor"]
    got = [1]

    for _ in range(5):
        # Nothing is remembered: each goes on by what the stream holds.
        fresh = await follow_again(bananas)
        again = await fresh.open(PALLETS, {"after": cursor})
        told = (await soon(again))["data"]["palletChanged"]
        got.append(int(told["node"]["number"][1:]))
        cursor = told["cursor"]
        await again.aclose()

    assert got == [1, 2, 3, 4, 5, 6]


async def follow_again(followed: Followed) -> Followed:
    """Follow with a hub that has nothing yet."""
    hub = Hub(followed.api.model, replay=followed.reader.replay)
    return Followed(followed.served, followed.reader, hub, Api(followed.served.graph, hub=hub))


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("subscription($after: String) { boxChanged(after: $after) { kind } }", id="another-field"),
        pytest.param(
            'subscription($after: String) { palletChanged(after: $after, where: {origin: {eq: "FR"}}) { kind } }',
            id="another-filter",
        ),
    ],
)
async def test_cursor_of_another_subscription_is_refused(bananas: Followed, query: str) -> None:
    events = await bananas.open(PALLETS)
    await pallets(bananas, 1)
    cursor = (await soon(events))["data"]["palletChanged"]["cursor"]

    error = await bananas.refusal(query, {"after": cursor})

    assert error["extensions"]["code"] == "BAD_CURSOR"
    assert "belongs to another" in error["message"]


async def test_closed_subscription_waits_for_nothing(bananas: Followed) -> None:
    events = await bananas.open(PALLETS)

    await events.aclose()
    await pallets(bananas, 1)

    assert [body async for body in events] == []


# --- everything together ------------------------------------------------------------------------------------------

STEPS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(("A", "B", None, "gone"))), min_size=1, max_size=10)
_runs = itertools.count()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
async def test_events_are_the_changes_of_what_passes_the_filter(shared: Followed, steps: list[Any]) -> None:
    run = next(_runs)
    followed = await follow_again(shared)
    followed.hub.begin(shared.hub.places)
    every = await followed.open(
        "subscription { containerChanged { kind nodeId node { operator } before { operator } } }"
    )
    some = await followed.open('subscription { containerChanged(where: {operator: {eq: "A"}}) { kind nodeId } }')
    one = await followed.open(
        "subscription($id: ID) { containerChanged(id: $id) { kind nodeId } }",
        {"id": global_id("Container", f"CONTAINER_{run}-0")},
    )
    there: dict[str, str | None] = {}
    expected: list[list[Any]] = [[], [], []]
    for number, operator in steps:
        name = f"{run}-{number}"
        id_ = global_id("Container", f"CONTAINER_{name}")
        await _write(followed, name, operator, is_there=id_ in there)
        before, was = there.get(id_, "gone"), id_ in there
        if operator == "gone":
            there.pop(id_, None)
        else:
            there[id_] = operator
        is_, after = id_ in there, there.get(id_, "gone")
        if kind := _kind(was, is_, before != after):
            node, last = ({"operator": after} if is_ else None), ({"operator": before} if was else None)
            expected[0].append({"kind": kind, "nodeId": id_, "node": node, "before": last})
            expected[2] += [{"kind": kind, "nodeId": id_}] if number == 0 else []
        if kind := _kind(before == "A", after == "A", before != after):
            expected[1].append({"kind": kind, "nodeId": id_})

    await followed.reader.hand_to(followed.hub)

    assert await followed.told(every, some, one) == expected


def _kind(was: bool, is_: bool, has_changed: bool) -> str | None:
    if was and is_:
        return "CHANGED" if has_changed else None
    return ("CREATED" if is_ else "REMOVED") if was or is_ else None


async def _write(followed: Followed, name: str, operator: str | None, *, is_there: bool) -> None:
    if operator == "gone":
        if is_there:
            await followed.served.data(f'mutation {{ deleteContainer(key: {{number: "{name}"}}) {{ deletedId }} }}')
        return
    await followed.served.data(
        "mutation($number: ID!, $operator: String) "
        "{ upsertContainer(input: {number: $number, operator: $operator}) { container { id } } }",
        {"number": name, "operator": operator},
    )


@pytest.fixture
async def shared(serve: Serve, engine: str) -> Followed:
    """An empty table that all examples write to, each under names of its own."""
    return await follow(await serve(BANANAS.read_text()), engine)
