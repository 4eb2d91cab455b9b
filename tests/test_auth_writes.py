"""Writes by the rules of the model: what each caller may do, and that nothing is written of what they may not."""

from __future__ import annotations

import pytest

from tests.conftest import Serve
from tests.following import global_id
from tests.shop import write
from tests.works import ADA, ANN, BEA, BEN, BOTH, NOBODY, STAFF, WORKS, ask, codes, fill
from tests.written import stored

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

    expected = {name: outcomes.get(name, "FORBIDDEN") for name in CALLERS}
    assert told == {name: [] if outcome == OK else [outcome] for name, outcome in expected.items()}
