"""Writes by the rules of the model: what each caller may do, and that nothing is written of what they may not."""

from __future__ import annotations

import orjson
import pytest

from graph.client import Meter, Response
from graph.codec import Parse, parse_json
from graph.requests import Item, Request, TransactWriteItems
from tests.conftest import Serve, Served
from tests.following import global_id
from tests.shop import write
from tests.works import ADA, ANN, BEA, BEN, BOTH, NOBODY, STAFF, WORKS, ask, codes, fill
from tests.written import s, stored

OK = "OK"


CALLERS = {"ann": ANN, "ada": ADA, "ben": BEN, "bea": BEA, "both": BOTH, "staff": STAFF, "nobody": NOBODY}
IN_A = 'project: { org: "a", number: "1" }'

# Of organisation a are ann and ada, who is an admin and wrote note 1 and the diary; bea is the admin of b. What is told
# to those who are not named is FORBIDDEN. A caller of organisation b who names no organisation names b's.
OF_A = {"ann": OK, "ada": OK, "both": OK, "staff": OK}
OF_BOTH = {"ann": OK, "ada": OK, "ben": OK, "bea": OK, "both": "BAD_INPUT", "staff": "BAD_INPUT"}
OTHERS = ("ann", "ben", "bea", "both", "staff")
ONLY_ADA = {**dict.fromkeys(OTHERS, "NOT_FOUND"), "ada": OK}
EVERYBODY = (*OTHERS, "ada")
MUTATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "create in the tenant of a": ('createPerson(input: { org: "a", number: "9" })', OF_A),
    "create without saying of which tenant": ('createPerson(input: { number: "9" })', OF_BOTH),
    "create with a field for admins": (
        'createProject(input: { org: "a", number: "9", name: "n", budget: 1 })',
        {"ada": OK, "staff": OK},
    ),
    "create with a field for its author": (
        f'createNote(input: {{ {IN_A}, number: "9", author: "ann", secret: "s" }})',
        {"ann": OK},
    ),
    "create behind a relationship": (
        'createProject(input: { org: "a", number: "9", name: "n", notes: [{ number: "1" }], members: '
        '[{ person: { org: "a", number: "1" } }, { person: { create: { org: "a", number: "9" } } }] })',
        OF_A,
    ),
    "create behind a relationship, with a person of another tenant": (
        'createProject(input: { org: "a", number: "9", name: "n", members: [{ person: { org: "b", number: "1" } }] })',
        {"staff": OK},
    ),
    "link the persons of two tenants": (
        'createMember(input: { project: { org: "a", number: "2" }, person: { org: "b", number: "1" } })',
        {"staff": OK},
    ),
    "link": (
        'createMember(input: { project: { org: "a", number: "2" }, person: { org: "a", number: "1" } })',
        OF_A,
    ),
    "link what is not there": (
        'createMember(input: { project: { org: "a", number: "2" }, person: { org: "a", number: "9" } })',
        dict.fromkeys(OF_A, "NOT_FOUND"),
    ),
    "link a tag that is nobody's": (
        'createTagging(input: { tag: { org: "a", name: "new" }, thing: { person: { org: "a", number: "1" } } })',
        {"ann": OK, "ada": OK, "both": OK},
    ),
    "unlink": (
        'deleteMember(key: { project: { org: "a", number: "1" }, person: { org: "a", number: "1" } })',
        OF_A,
    ),
    "change an edge": (
        f'updateMember(key: {{ {IN_A}, person: {{ org: "a", number: "1" }} }}, set: {{ since: "2025-01-01" }})',
        OF_A,
    ),
    "change a node, and the copies of it": (
        'updatePerson(key: { org: "a", number: "1" }, set: { name: "new" })',
        OF_A,
    ),
    "change the caller's own": ('updatePerson(key: { number: "1" }, set: { name: "new" })', OF_BOTH),
    "change what is not there": (
        'updatePerson(key: { org: "a", number: "9" }, set: { name: "new" })',
        dict.fromkeys(OF_A, "NOT_FOUND"),
    ),
    "change by a global id": (
        f'updatePerson(key: {{ id: "{global_id("Person", "PERSON#a#1")}" }}, set: {{ name: "new" }})',
        {**OF_A, "ben": "NOT_FOUND", "bea": "NOT_FOUND"},
    ),
    "change by a global id of nothing": (
        f'updatePerson(key: {{ id: "{global_id("Person", "PERSON#a#9")}" }}, set: {{ name: "new" }})',
        dict.fromkeys((*OF_A, "ben", "bea"), "NOT_FOUND"),
    ),
    "change a field for admins": (
        'updateProject(key: { org: "a", number: "1" }, set: { budget: 1 })',
        {"ada": OK, "staff": OK},
    ),
    "add to a field for admins": (
        'updateProject(key: { org: "a", number: "1" }, increment: { budget: 1 })',
        {"ada": OK, "staff": OK},
    ),
    "change under a condition on a field for admins": (
        'updateProject(key: { org: "a", number: "1" }, set: { name: "new" }, where: { budget: { eq: 7 } })',
        {"ada": OK, "staff": OK},
    ),
    "delete under a condition on a field for admins": (
        'deletePerson(key: { org: "a", number: "2" }, where: { name: { eq: "alpha-Bob" } })',
        OF_A,
    ),
    "give to another tenant": (
        'updatePerson(key: { org: "a", number: "2" }, set: { org: "b", number: "7" })',
        {"staff": OK, "both": OK},
    ),
    "take from another tenant": (
        'updatePerson(key: { org: "b", number: "2" }, set: { org: "a", number: "7" })',
        {"staff": OK, "both": OK},
    ),
    "change of the owner": (
        f'updateNote(key: {{ {IN_A}, number: "1" }}, set: {{ text: "new" }})',
        {"ada": OK, "staff": OK},
    ),
    "change of the owner, where others are": (
        f'updateNote(key: {{ {IN_A}, number: "2" }}, set: {{ text: "new" }})',
        {"staff": OK},
    ),
    "change of the owner's own field": (
        f'updateNote(key: {{ {IN_A}, number: "1" }}, set: {{ secret: "new" }})',
        {"ada": OK},
    ),
    "change under a condition on the owner's own field": (
        f'updateNote(key: {{ {IN_A}, number: "1" }}, set: {{ text: "n" }}, '
        'where: { secret: { beginsWith: "alpha" } })',
        {"ada": OK},
    ),
    "give to another owner": (
        f'updateNote(key: {{ {IN_A}, number: "1" }}, set: {{ author: "ann" }})',
        {"staff": OK},
    ),
    "delete of the owner": (f'deleteNote(key: {{ {IN_A}, number: "1" }})', {"ada": OK, "staff": OK}),
    "delete for admins": ('deleteProject(key: { org: "a", number: "2" })', {"ada": OK, "staff": OK}),
    "delete with children of others": (
        'deleteProject(key: { org: "a", number: "1" }, cascade: true)',
        {"staff": OK},
    ),
    "delete what is linked": (
        'deletePerson(key: { org: "a", number: "1" })',
        dict.fromkeys(OF_A, "HAS_EDGES"),
    ),
    "delete with its edges": ('deletePerson(key: { org: "a", number: "1" }, cascade: true)', OF_A),
    "upsert what is there": ('upsertPerson(input: { org: "a", number: "1", name: "new" })', OF_A),
    "upsert what is not there": ('upsertPerson(input: { org: "a", number: "9", name: "new" })', OF_A),
    "upsert what is another one's": (
        f'upsertNote(input: {{ {IN_A}, number: "2", text: "new" }})',
        {"staff": OK},
    ),
    "upsert with a field for admins": (
        'upsertProject(input: { org: "a", number: "1", name: "new", budget: 8 })',
        {"ada": OK, "staff": OK},
    ),
    "upsert behind a relationship": (
        'upsertProject(input: { org: "a", number: "1", name: "new", notes: [{ number: "2", text: "new" }] })',
        {"staff": OK},
    ),
    "create what nobody else may read": (
        'createDiary(input: { number: "9", text: "x" })',
        dict.fromkeys(EVERYBODY, OK),
    ),
    "create for somebody else": ('createDiary(input: { number: "9", by: "ann" })', {"ann": OK}),
    "create where somebody else's is": (
        'createDiary(input: { number: "ada-1" })',
        dict.fromkeys(EVERYBODY, "ALREADY_EXISTS"),
    ),
    "upsert where somebody else's is": (
        'upsertDiary(input: { number: "ada-1", text: "new" })',
        dict.fromkeys(OTHERS, "ALREADY_EXISTS") | {"ada": OK},
    ),
    "change what only one may read": (
        'updateDiary(key: { number: "ada-1" }, set: { text: "new" })',
        ONLY_ADA,
    ),
    "change what only one may read, under a condition": (
        'updateDiary(key: { number: "ada-1" }, set: { text: "new" }, where: { text: { eq: "no" } })',
        {**ONLY_ADA, "ada": "CONDITION_FAILED"},
    ),
    "change what only one may read, in a version": (
        'updateDiary(key: { number: "ada-1" }, set: { text: "new" }, ifVersion: 7)',
        {**ONLY_ADA, "ada": "VERSION_CONFLICT"},
    ),
    "delete what only one may read": (
        'deleteDiary(key: { number: "ada-1" })',
        ONLY_ADA,
    ),
    "name what only one may read": (
        'createDiary(input: { number: "9", next: { number: "ada-1" } })',
        ONLY_ADA,
    ),
    "name in a change what only one may read": (
        'updateDiary(key: { number: "bea-1" }, set: { next: { number: "ada-1" } })',
        dict.fromkeys(EVERYBODY, "NOT_FOUND"),
    ),
}


@pytest.mark.parametrize("what", MUTATIONS)
async def test_mutation_does_what_its_caller_may_and_nothing_else(what: str, serve: Serve) -> None:
    mutation, outcomes = MUTATIONS[what]
    works = await serve(WORKS)
    before = await fill(works)
    told: dict[str, list[str]] = {}
    for name, caller in CALLERS.items():
        body = await ask(works, caller, f"mutation {{ {mutation} {{ __typename }} }}")
        told[name] = codes(body)
        after = await stored(works)
        assert (after == before) is bool(told[name]), (name, body)
        if after != before:
            gone = [item for key, item in after.items() if key not in before]
            await write(works, *(item for key, item in before.items() if after.get(key) != item), gone=gone)

    expected = {name: outcomes.get(name, "FORBIDDEN") for name in CALLERS} | {"nobody": "UNAUTHENTICATED"}
    assert told == {name: [] if outcome == OK else [outcome] for name, outcome in expected.items()}


# --- what refusals and answers tell -------------------------------------------------------------------------------


@pytest.fixture
async def works(serve: Serve) -> Served:
    """Two organisations' works."""
    served = await serve(WORKS)
    await fill(served)
    return served


HIDDEN = [
    'updateDiary(key: {{ number: "{}" }}, set: {{ text: "x" }}, where: {{ text: {{ eq: "y" }} }}) {{ __typename }}',
    'updateDiary(key: {{ number: "{}" }}, set: {{ text: "x" }}, ifVersion: 9) {{ __typename }}',
    'updateDiary(key: {{ number: "{}" }}, set: {{ number: "other" }}) {{ __typename }}',
    'deleteDiary(key: {{ number: "{}" }}, cascade: true) {{ deletedId }}',
    'createDiary(input: {{ number: "9", next: {{ number: "{}" }} }}) {{ __typename }}',
    'upsertDiary(input: {{ number: "9", next: {{ number: "{}" }} }}) {{ __typename }}',
]


@pytest.mark.parametrize("mutation", HIDDEN)
async def test_what_may_not_be_read_answers_as_what_is_not_there(mutation: str, works: Served) -> None:
    hidden = await ask(works, ANN, f"mutation {{ m: {mutation.format('ada-1')} }}")
    absent = await ask(works, ANN, f"mutation {{ m: {mutation.format('ada-2')} }}")

    assert codes(hidden) == ["NOT_FOUND"]
    assert orjson.dumps(hidden).replace(b"ada-1", b"ada-2") == orjson.dumps(absent)


async def test_what_is_another_tenants_is_not_even_looked_at(works: Served) -> None:
    person = global_id("Person", "PERSON#b#1")

    body = await ask(
        works, ANN, f'mutation {{ deletePerson(key: {{ id: "{person}" }}, cascade: true) {{ deletedId }} }}'
    )

    assert codes(body) == ["NOT_FOUND"]
    assert works.sent == []


async def test_field_that_the_caller_may_not_give_is_refused_before_anything_is_read(works: Served) -> None:
    body = await ask(works, ANN, 'mutation { updateProject(key: { number: "1" }, set: { budget: 1 }) { __typename } }')

    assert body["errors"][0]["message"] == (
        "you may not UPDATE this Project.budget: expected a caller whom its @auth lets"
    )
    assert works.sent == []


BOXES = """extend schema @table(name: "boxes", partitionKey: "pk")
type Box @node(partition: "BOX#{org}#{number}") @auth(tenant: { field: "org", claim: "org" }) {
  org: ID!  number: ID!  label: String }"""


async def test_what_the_key_gives_the_right_to_is_written_without_reading(serve: Serve) -> None:
    boxes = await serve(BOXES)
    assert codes(await ask(boxes, ANN, 'mutation { createBox(input: { number: "1" }) { box { label } } }')) == []
    assert boxes.operations == ["TransactWriteItems"]

    update = 'mutation { updateBox(key: { number: "1" }, set: { label: "l" }) { box { label } } }'
    assert codes(await ask(boxes, ANN, update)) == []
    assert boxes.operations == ["TransactWriteItems"]


class Meanwhile:
    """Sends requests, and has something written before the first transaction."""

    def __init__(self, served: Served, item: Item) -> None:
        self._client = served.graph._client
        self._served = served
        self._item: Item | None = item

    async def send(self, request: Request, meter: Meter, parse: Parse = parse_json) -> Response:
        """Send a request."""
        if isinstance(request, TransactWriteItems) and self._item is not None:
            item, self._item = self._item, None
            await write(self._served, item)
        return await self._client.send(request, meter, parse)


async def test_owner_is_part_of_the_condition_of_the_write(works: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    note = {**(await stored(works))["PROJECT#a#1", "NOTE#1"], "author": s("ann")}
    monkeypatch.setattr(works.graph, "_client", Meanwhile(works, note))

    update = f'updateNote(key: {{ {IN_A}, number: "1" }}, set: {{ text: "mine" }})'
    body = await ask(works, ADA, f"mutation {{ {update} {{ __typename }} }}")

    assert codes(body) == ["FORBIDDEN"]
    assert (await stored(works))["PROJECT#a#1", "NOTE#1"] == note


async def test_right_to_name_a_node_is_part_of_the_condition_of_the_write(
    works: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    diary = (await stored(works))["DIARY#ada-1", "v0_diary"]
    monkeypatch.setattr(works.graph, "_client", Meanwhile(works, {**diary, "by": s("ann")}))

    create = 'createDiary(input: { number: "9", next: { number: "ada-1" } })'
    body = await ask(works, ADA, f"mutation {{ {create} {{ __typename }} }}")

    assert codes(body) == ["NOT_FOUND"]
    assert ("DIARY#9", "v0_diary") not in await stored(works)


async def test_payload_shows_of_what_was_written_what_the_caller_may_read(works: Served) -> None:
    note = f'key: {{ {IN_A}, number: "1" }}'
    text = "note { text secret project { budget number } }"

    by_ada = await ask(works, ADA, f'mutation {{ updateNote({note}, set: {{ text: "t" }}) {{ {text} }} }}')
    by_staff = await ask(works, STAFF, f'mutation {{ updateNote({note}, set: {{ text: "u" }}) {{ {text} }} }}')
    deleted = await ask(works, STAFF, f"mutation {{ deleteNote({note}) {{ deletedId {text} }} }}")

    shown = {"text": "t", "secret": "alpha-secret", "project": {"budget": 7, "number": "1"}}
    assert by_ada["data"]["updateNote"]["note"] == shown
    assert by_staff["data"]["updateNote"]["note"] == {**shown, "text": "u", "secret": None}
    assert deleted["data"]["deleteNote"]["note"] == {**shown, "text": "u", "secret": None}


async def test_refusal_of_a_delete_names_no_items_that_the_caller_may_not_read(works: Served) -> None:
    await ask(
        works, ADA, 'mutation { createDiary(input: { number: "ada-2", next: { number: "ada-1" } }) { __typename } }'
    )
    diary = (await stored(works))["DIARY#ada-1", "v0_diary"]
    await write(works, {**diary, "by": {"S": "ann"}})

    body = await ask(works, ANN, 'mutation { deleteDiary(key: { number: "ada-1" }) { deletedId } }')

    assert codes(body) == ["HAS_EDGES"]
    assert "ada-2" not in str(body)


async def test_transaction_is_refused_as_a_whole(works: Served) -> None:
    before = await stored(works)

    body = await ask(
        works,
        ANN,
        """mutation @transaction {
          one: createPerson(input: { number: "9" }) { __typename }
          two: updateProject(key: { number: "1" }, set: { budget: 9 }) { __typename }
        }""",
    )

    assert codes(body) == ["ROLLED_BACK", "FORBIDDEN"]
    assert await stored(works) == before


# --- idempotency keys ---------------------------------------------------------------------------------------------


async def test_idempotency_key_is_its_callers_own(works: Served) -> None:
    create = 'mutation { createPerson(input: { number: "9", name: "NAME" }) { person { org name } } }'

    first = [await ask(works, who, create.replace("NAME", name), key="k") for who, name in ((ANN, "x"), (BEN, "y"))]
    again = [await ask(works, who, create.replace("NAME", name), key="k") for who, name in ((ANN, "x"), (BEN, "y"))]

    assert first == again
    assert [body["data"]["createPerson"]["person"]["org"] for body in first] == ["a", "b"]


async def test_answer_to_a_repetition_shows_what_the_caller_may_read_by_then(works: Served) -> None:
    new = f'createNote(input: {{ {IN_A}, number: "9", author: "ann", secret: "s" }}) {{ note {{ secret }} }}'
    create = f"mutation {{ {new} }}"
    first = await ask(works, ANN, create, key="k")
    again = await ask(works, ANN, create, key="k")

    assert first == again == {"data": {"createNote": {"note": {"secret": "s"}}}}
