"""What subscriptions and live queries tell to whom: what they may read, before the change or after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from graph.identity import Identity
from resolvers.operation import Events, Request, Response
from tests.conftest import Serve
from tests.following import Followed, follow, global_id, soon
from tests.shop import write as put
from tests.works import ADA, ANN, BEN, NOBODY, STAFF, WORKS, ask, codes, fill
from tests.written import s, stored

IN_A = 'project: { org: "a", number: "1" }'
NOTE_1 = f'key: {{ {IN_A}, number: "1" }}'


@pytest.fixture
async def works(serve: Serve, engine: str) -> Followed:
    """Two organisations' works, followed."""
    served = await serve(WORKS)
    await fill(served)
    return await follow(served, engine)


async def begin(works: Followed, identity: Identity, query: str, variables: Mapping[str, Any] | None = None) -> Events:
    """Begin what must not be refused."""
    opened = await works.api.open(Request(query, variables, identity=identity))
    assert not isinstance(opened, Response), opened.body
    return opened


async def write(works: Followed, identity: Identity, *mutations: str) -> None:
    """Write as somebody, and have it told."""
    for mutation in mutations:
        body = await ask(works.served, identity, f"mutation {{ {mutation} {{ __typename }} }}")
        assert "errors" not in body, body
    await works.reader.hand_to(works.hub)


async def test_nodes_of_other_tenants_are_not_told(works: Followed) -> None:
    query = "subscription { personChanged { kind node { org name } before { name } } }"
    of_a, of_b, of_all = [await begin(works, who, query) for who in (ANN, BEN, STAFF)]

    await write(works, ANN, 'updatePerson(key: { number: "2" }, set: { name: "alpha-new" })')
    await write(works, BEN, 'deletePerson(key: { number: "2" })')

    changed = {"kind": "CHANGED", "node": {"org": "a", "name": "alpha-new"}, "before": {"name": "alpha-Bob"}}
    removed = {"kind": "REMOVED", "node": None, "before": {"name": "beta-Bob"}}
    assert await works.told(of_a, of_b, of_all) == [[changed], [removed], [changed, removed]]


async def test_what_leaves_the_sight_of_somebody_is_gone_and_what_enters_it_comes(works: Followed) -> None:
    query = "subscription { diaryChanged { kind nodeId node { by text } before { text } } }"
    of_ada, of_ann = [await begin(works, who, query) for who in (ADA, ANN)]

    # Nobody may give a diary away: the rules of the model say so. What an operator does goes past them.
    diary = (await stored(works.served))["DIARY#ada-1", "v0_diary"]
    await put(works.served, {**diary, "by": s("ann")})
    await works.reader.hand_to(works.hub)
    await write(works, ANN, 'updateDiary(key: { number: "ada-1" }, set: { text: "hers" })')

    id_ = global_id("Diary", "DIARY#ada-1", "v0_diary")
    assert await works.told(of_ada, of_ann) == [
        [{"kind": "REMOVED", "nodeId": id_, "node": None, "before": {"text": "alpha-dear"}}],
        [
            {"kind": "CREATED", "nodeId": id_, "node": {"by": "ann", "text": "alpha-dear"}, "before": None},
            {"kind": "CHANGED", "nodeId": id_, "node": {"by": "ann", "text": "hers"}, "before": {"text": "alpha-dear"}},
        ],
    ]


async def test_fields_are_told_to_those_who_may_read_them(works: Followed) -> None:
    shown = "subscription { noteChanged { kind node { text secret } before { secret } } }"
    for_ada, for_ann = [await begin(works, who, shown) for who in (ADA, ANN)]

    await write(works, ADA, f'updateNote({NOTE_1}, set: {{ text: "t" }})')
    await write(works, ADA, f'updateNote({NOTE_1}, set: {{ secret: "alpha-other" }})')

    told = await works.told(for_ada, for_ann)
    first, second = "alpha-secret", "alpha-other"
    assert told[0] == [
        {"kind": "CHANGED", "node": {"text": "t", "secret": first}, "before": {"secret": first}},
        {"kind": "CHANGED", "node": {"text": "t", "secret": second}, "before": {"secret": first}},
    ]
    # That the version is another one is told to all who may read the note.
    assert told[1] == [{"kind": "CHANGED", "node": {"text": "t", "secret": None}, "before": {"secret": None}}] * 2


async def test_edges_are_told_to_those_who_may_read_them_and_where_they_come_from(works: Followed) -> None:
    query = "subscription ($id: ID!) { projectMembersChanged(id: $id) { kind edge { since node { name } } } }"
    project = {"id": global_id("Project", "PROJECT#a#2")}
    of_a = await begin(works, ANN, query, project)

    refused = await works.api.open(Request(query, project, identity=BEN))
    absent = await works.api.open(Request(query, {"id": global_id("Project", "PROJECT#a#9")}, identity=BEN))
    await write(works, ANN, 'createMember(input: { project: { number: "2" }, person: { number: "1" } })')

    assert isinstance(refused, Response)
    assert isinstance(absent, Response)
    assert codes(refused.body) == ["BAD_INPUT"]
    assert refused.body == absent.body
    assert await works.told(of_a) == [[{"kind": "CREATED", "edge": {"since": None, "node": {"name": "alpha-Ann"}}}]]


async def test_who_may_read_nothing_of_it_follows_nothing(works: Followed) -> None:
    budget = "subscription { projectChanged(where: { budget: { gt: 5 } }) { kind } }"

    secret = 'subscription { noteChanged(where: { secret: { beginsWith: "alpha" } }) { kind } }'

    for who, query, code in (
        (NOBODY, "subscription { personChanged { kind } }", "UNAUTHENTICATED"),
        (ANN, budget, "FORBIDDEN"),
        (ANN, secret, "FORBIDDEN"),
    ):
        refused = await works.api.open(Request(query, identity=who))
        assert isinstance(refused, Response)
        assert codes(refused.body) == [code]


async def test_live_query_is_executed_as_whoever_asks(works: Followed) -> None:
    query = 'query @live(throttle: 0) { project(number: "1") { org name } }'
    of_a, of_b = [await begin(works, who, query) for who in (ADA, BEN)]
    assert [(await soon(events))["data"]["project"]["org"] for events in (of_a, of_b)] == ["a", "b"]

    await write(works, ADA, 'updateProject(key: { number: "1" }, set: { name: "alpha-new" })')

    assert (await soon(of_a))["data"]["project"] == {"org": "a", "name": "alpha-new"}
    for events in (of_a, of_b):
        await events.aclose()
