"""Whatever two tenants write, and however they name it: nothing of one is changed by the other, or told to them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graph.entity import Entity
from graph.identity import Identity
from graph.streams.change import entity_of
from tests.conftest import Serve, Served
from tests.following import global_id
from tests.works import ADA, ANN, BEA, BEN, WORKS, ask, codes, fill
from tests.written import Stored, stored

ORGS = {"ann": "a", "ada": "a", "ben": "b", "bea": "b", "x": ""}
WORDS = {"a": "alpha", "b": "beta"}
"""What the texts of each tenant begin with, and nothing of the other's."""
EXPECTED = {
    *("FORBIDDEN", "NOT_FOUND", "ALREADY_EXISTS", "HAS_EDGES", "BAD_INPUT", "BAD_KEY_VALUE", "WRITE_REFUSED"),
    *("ROLLED_BACK", "IDEMPOTENCY_KEY_REUSED", "CONDITION_FAILED", "VERSION_CONFLICT", "TOO_LARGE"),
}

STEPS = 20
_words = itertools.count()


class Caller:
    """Draws what somebody asks for: they say of their own what they like, and try what is others'."""

    def __init__(self, random: Random, identity: Identity) -> None:
        self._random = random
        self.subject = identity.subject or ""
        self.org = ORGS[self.subject]

    def _one(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _may(self, values: dict[str, Callable[[], Any]]) -> dict[str, Any]:
        """Give some of these fields."""
        return {name: value() for name, value in values.items() if self._one(True, False)}

    def _word(self) -> str:
        return f"{WORDS[self.org]}-{next(_words)}"

    def _number(self) -> str:
        return str(self._one(1, 2, 3, 4))

    def _new_number(self) -> str:
        return str(self._one(3, 4, 5, 6, 7, 8))

    def _org(self) -> dict[str, str]:
        return {"org": self._stated()} if self._one(True, False) else {}

    def _stated(self) -> str:
        return str(self._one(*[self.org] * 8, "a", "b"))

    def _somebody(self) -> str:
        return str(self._one(*[self.subject] * 4, *ORGS))

    def _key(self, type_: str) -> dict[str, Any]:
        number = self._number()
        if self._one(True, False, False):
            return {"id": global_id(type_, f"{type_.upper()}#{self._stated()}#{number}")}
        return {**self._org(), "number": number}

    def _reference(self, type_: str) -> dict[str, Any]:
        if self._one(True, False, False, False):
            return {"create": getattr(self, f"new_{type_.lower()}")()}
        return self._key(type_)

    def _diary(self) -> dict[str, Any]:
        return {"number": self._one(f"{self.subject}-1", f"{self.subject}-2", "ada-1", "bea-1", "1", "2", "3", "4")}

    def _date(self) -> str:
        return str(self._one("2024-01-01", "2025-02-02"))

    # --- new items ---

    def new_project(self) -> dict[str, Any]:
        more = {
            "budget": lambda: 3,
            "notes": lambda: [self._note(), self._note()],
            "members": lambda: [self._may({"since": self._date}) | {"person": self._reference("Person")}],
        }
        return {**self._org(), "number": self._new_number(), "name": self._word(), **self._may(more)}

    def new_person(self) -> dict[str, Any]:
        return {**self._org(), "number": self._new_number(), **self._may({"name": self._word})}

    def _note(self) -> dict[str, Any]:
        more = {"text": self._word, "author": self._somebody, "secret": self._word}
        return {"number": self._new_number(), **self._may(more)}

    def new_note(self) -> dict[str, Any]:
        return {"project": self._reference("Project"), **self._note()}

    def new_member(self) -> dict[str, Any]:
        return {
            "project": self._reference("Project"),
            "person": self._reference("Person"),
            **self._may({"since": self._date}),
        }

    def new_tagging(self) -> dict[str, Any]:
        type_ = self._one("Project", "Person")
        return {"tag": {**self._org(), "name": self._word()}, "thing": {type_.lower(): self._reference(type_)}}

    def new_diary(self) -> dict[str, Any]:
        more = {"by": self._somebody, "text": self._word, "next": self._diary}
        return {**self._diary(), **self._may(more)}

    # --- what is changed ---

    def _named(self, type_: str) -> dict[str, Any]:
        if type_ == "Diary":
            return self._diary()
        if type_ == "Note":
            return {"project": self._key("Project"), "number": self._number()}
        if type_ == "Member":
            return {"project": self._key("Project"), "person": self._key("Person")}
        return self._key(type_)

    def _set(self, type_: str) -> dict[str, Any]:
        text = "name" if type_ in ("Project", "Person") else "text"
        parts: dict[str, dict[str, Callable[[], Any]]] = {
            "Project": {"budget": lambda: 4},
            "Person": {},
            "Note": {
                "author": self._somebody,
                "secret": self._word,
                "project": lambda: self._reference("Project"),
            },
            "Member": {"since": self._date, "person": lambda: self._reference("Person")},
            "Diary": {"by": self._somebody, "next": self._diary},
        }
        moves = {} if type_ == "Member" else {"number": self._new_number}
        if type_ in ("Project", "Person"):
            moves["org"] = self._stated
        texts = {} if type_ == "Member" else {text: self._word}
        return self._may({**parts[type_], **texts, **(moves if self._one(True, False, False) else {})})

    def mutation(self) -> str:
        """Write one mutation, with all that its payload could tell."""
        type_ = self._one("Project", "Person", "Note", "Member", "Diary", "Tagging")
        verb = self._one("create", "create", "upsert", "update", "update", "delete")
        if type_ == "Tagging" or verb in ("create", "upsert"):
            verb = "create" if type_ == "Tagging" else verb
            arguments = {"input": getattr(self, f"new_{type_.lower()}")()}
        elif verb == "update":
            arguments = {"key": self._named(type_), "set": self._set(type_)}
            if type_ in ("Note", "Diary"):
                arguments |= self._may({"ifVersion": lambda: self._one(1, 2)})
        else:
            arguments = {"key": self._named(type_)}
            if type_ not in ("Member",):
                arguments["cascade"] = self._one(True, False)
        written = ", ".join(f"{name}: {literal(value)}" for name, value in arguments.items())
        field = type_[0].lower() + type_[1:]
        return f"{verb}{type_}({written}) {{ {field} {{ {SHOWN[type_]} }} }}"


SHOWN = {
    "Project": "org number name notes { totalCount nodes { text author } } members { edges { since node { name } } }",
    "Person": "org number name",
    "Note": "number text author project { org name notes { nodes { text } } }",
    "Member": "since project { name } person { name }",
    "Diary": "number by text",
    "Tagging": "tag { name things { nodes { __typename ... on Project { name } ... on Person { number } } } }",
}


def literal(value: Any) -> str:
    """Write a value as GraphQL does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {literal(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return orjson.dumps(value).decode()


def owners(served: Served, items: Stored) -> dict[tuple[str, ...], set[str]]:
    """Say of every item of whom it is, by all that it says of that."""
    found: dict[tuple[str, ...], set[str]] = {}
    model = served.graph.model
    for key, item in items.items():
        entity = entity_of(model, model.tables[served.table], item)
        if entity is None:
            # An earlier version of a diary.
            found[key] = {ORGS[item["by"]["S"]]}
        else:
            found[key] = {str(entity.at(path)) for path in entity.type.tenants} or _writers(entity)
    return found


def _writers(entity: Entity) -> set[str]:
    return {ORGS[str(entity.at(("by",)))]}


@given(seed=st.integers(0, 2**32))
# There is nothing to shrink in a seed: what failed is told in full instead.
@settings(
    max_examples=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
)
async def test_no_write_crosses_from_one_tenant_to_another(serve: Serve, seed: int) -> None:
    served = await serve(WORKS)
    before = await fill(served)
    random = Random(seed)
    for _ in range(STEPS):
        identity = random.choice((ANN, ADA, BEN, BEA))
        caller = Caller(random, identity)
        mutations = [f"m{number}: {caller.mutation()}" for number in range(random.choice((1, 1, 1, 2)))]
        together = "@transaction " if len(mutations) > 1 and random.random() < 0.5 else ""
        key = random.choice((None, None, None, "k1", "k2"))

        query = f"mutation {together}{{ {' '.join(mutations)} }}"
        body = await ask(served, identity, query, key=key)
        after = await stored(served)

        _check(served, identity, query, body, before, after)
        before = after


def _check(served: Served, identity: Identity, query: str, body: Any, before: Stored, after: Stored) -> None:
    told = f"{identity.subject} asked for {query}, and was told {body}"
    org = ORGS[identity.subject or ""]
    (other,) = WORDS.keys() - {org}
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    for items in (before, after):
        whose = owners(served, items)
        assert all(whose[key] == {org} for key in changed & whose.keys()), told
    assert WORDS[other] not in orjson.dumps(body).decode(), told
    assert WORDS[other] not in orjson.dumps([after[key] for key in changed & after.keys()]).decode(), told
    assert set(codes(body)) <= EXPECTED, told


@pytest.fixture(autouse=True)
def counted_anew() -> None:
    """Begin with the same words in every run."""
    global _words
    _words = itertools.count()
