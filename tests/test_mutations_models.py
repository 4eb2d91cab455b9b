"""Any mutations on any model: after each the whole table is what an oracle says, and reading agrees with it.

TABLEGRAPH_EXAMPLES multiplies the number of models.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.conftest import Serve, Served
from tests.harbour import LISTS, Kind, Thing, World, differences, worlds
from tests.written import Stored, codes, stored

EXAMPLES = 60 * int(os.environ.get("TABLEGRAPH_EXAMPLES", "1"))
STEPS = 14
LATER = 2_100_000_000

WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "number": st.sampled_from("123"),
    "seq": st.integers(0, 2),
    "label": st.sampled_from(["x", "X", "Éa#1", "-y"]),
    "weight": st.integers(0, 30),
    "grams": st.integers(0, 30),
    "day": st.sampled_from(["2022-07-19", "2023-01-01"]),
    "made": st.sampled_from(["2022-07-19T17:59:58Z", "2022-07-19T17:59:58.250000Z", "2023-01-01T00:00:00Z"]),
    "state": st.sampled_from(["OPEN", "SHUT"]),
    "tags": WORDS.map(frozenset),
    "names": WORDS,
    "note": st.sampled_from(["n", "N", "o-p"]),
    "expires": st.integers(LATER, LATER + 1),
}


# --- what is sent -------------------------------------------------------------------------------------------------


def key_of(thing: Thing) -> dict[str, Any]:
    """Name a thing as a key input does."""
    names = [*thing.kind.references] if thing.kind.name != "Ship" and thing.kind.name != "Port" else ["number"]
    if thing.kind.name == "Log":
        names.append("seq")
    return {name: _sent(thing.values[name]) for name in names}


def _sent(value: Any) -> Any:
    if isinstance(value, Thing):
        return {"number": value.values["number"]}
    return sorted(value) if isinstance(value, frozenset) else value


def sent(values: dict[str, Any]) -> dict[str, Any]:
    """Write values as an input does."""
    return {name: _sent(value) for name, value in values.items()}


def asked(kind: Kind) -> str:
    """Ask for every field that a thing has of its own, and whom it names."""
    names = [*kind.fields, *kind.counters, *(["version"] if kind.version else [])]
    return " ".join([*names, *(f"{name} {{ number }}" for name in kind.references)])


def answer(thing: Thing, world: World) -> dict[str, Any]:
    """Say what is answered to `asked`."""
    kind = thing.kind
    found = {name: _sent(thing.values.get(name)) for name in (*kind.fields, *kind.references)}
    found |= {name: found[name] or None for name in found if name == "tags"}
    found |= {name: world.counted(thing, name) for name in kind.counters}
    return found | ({"version": thing.values["version"]} if kind.version else {})


def in_order(found: dict[str, Any]) -> dict[str, Any]:
    return {name: sorted(value) if name == "tags" and value else value for name, value in found.items()}


# --- what is to come of it ----------------------------------------------------------------------------------------


class Step:
    """One mutation: what is sent, and what it must come to."""

    def __init__(self, world: World, data: st.DataObject) -> None:
        self.world = world
        self.draw = data.draw
        self.codes: set[str] = set()
        self.result: Thing | None = None
        self.variables: dict[str, Any] = {}
        self.carry_out: Callable[[], None] = lambda: None
        self.kind = self.draw(st.sampled_from([*world.kinds.values(), world.kinds["Ship"], world.kinds["Call"]]))
        verbs = ["create", "create", "upsert", "update", "update", "update", "delete"]
        verb = self.draw(st.sampled_from(verbs))
        self.query = getattr(self, f"_{verb}")()

    def _value(self, name: str) -> Any:
        kind = self.kind
        if name in kind.nullable and self.draw(st.integers(0, 3)) == 0:
            return None
        if name in kind.references:
            return self._node(kind.references[name])
        return self.draw(VALUES[name])

    def _node(self, kind: str) -> Thing:
        """Choose a node, seldom one that is not there."""
        there = self.world.of(kind)
        if there and self.draw(st.integers(0, 9)) > 0:
            return self.draw(st.sampled_from(there))
        absent = Thing(self.world.kinds[kind], {"number": self.draw(VALUES["number"])})
        return self.world.find(kind, absent.name) or absent

    def _is_there(self, values: dict[str, Any]) -> bool:
        return all(one in self.world.things for one in values.values() if isinstance(one, Thing))

    def _new(self) -> dict[str, Any]:
        kind = self.kind
        names = [*kind.fields, *kind.references]
        needed = [name for name in names if name not in kind.nullable]
        more = self.draw(st.lists(st.sampled_from(sorted(kind.nullable)), unique=True)) if kind.nullable else []
        return {name: self._value(name) for name in [*needed, *more]}

    def _create(self) -> str:
        return self._write("create")

    def _upsert(self) -> str:
        return self._write("upsert")

    def _write(self, verb: str) -> str:
        values, kind = self._new(), self.kind
        self.carry_out = lambda: self._carry_out_write(verb, self._found(values))
        self.carry_out()
        self.variables = {"input": sent(values)}
        name = kind.name
        return (
            f"mutation ($input: Create{name}Input!) {{ done: {verb}{name}(input: $input) "
            f"{{ {name.lower()} {{ {asked(kind)} }} }} }}"
        )

    def _found(self, values: dict[str, Any]) -> dict[str, Any]:
        """Take the nodes that are there now for those that were not."""
        return {
            name: self.world.find(value.kind.name, value.name) or value if isinstance(value, Thing) else value
            for name, value in values.items()
        }

    def _carry_out_write(self, verb: str, values: dict[str, Any]) -> None:
        kind, thing = self.kind, Thing(self.kind, dict(values))
        self.codes = set()
        known = self.world.find(kind.name, thing.name)
        if not self._is_there(values):
            self.codes.add("NOT_FOUND")
        if known is not None and verb == "create":
            self.codes.add("ALREADY_EXISTS")
        if not self.codes:
            self.result = known or thing
            self.result.values |= values | {"version": self.result.values.get("version", 0) + 1}
            if known is None:
                self.world.things.append(thing)

    def _target(self) -> Thing:
        there = self.world.of(self.kind.name)
        if there and self.draw(st.integers(0, 14)) > 0:
            return self.draw(st.sampled_from(there))
        thing = Thing(self.kind, self._new())
        return self.world.find(self.kind.name, thing.name) or thing

    def _update(self) -> str:
        kind, target = self.kind, self._target()
        names = self.draw(st.lists(st.sampled_from([*kind.fields, *kind.references]), max_size=3, unique=True))
        changed = {name: self._value(name) for name in names}
        more = self._relative(target, [name for name in kind.fields if name not in changed])
        self.variables = {"key": key_of(target), "set": sent(changed)} | more
        self.carry_out = lambda: self._carry_out_update(target, self._found(changed), more)
        self.carry_out()
        name = kind.name
        verbs = {"increment": "Increment", "append": "Append", "remove": "Remove"}
        declared = "".join(f", ${one}: {verbs[one]}{name}Input" for one in more)
        given_ = "".join(f", {one}: ${one}" for one in more)
        return (
            f"mutation ($key: {name}Key!, $set: Update{name}Input{declared}) {{ "
            f"done: update{name}(key: $key, set: $set{given_}) {{ {name.lower()} {{ {asked(kind)} }} }} }}"
        )

    def _carry_out_update(self, target: Thing, changed: dict[str, Any], more: dict[str, dict[str, Any]]) -> None:
        kind, values = self.kind, {**target.values, **changed, **self._after(target, more)}
        self.codes = set()
        if target not in self.world.things or not self._is_there(changed):
            self.codes.add("NOT_FOUND")
        if self.world.find(kind.name, Thing(kind, values).name) not in (None, target):
            self.codes.add("ALREADY_EXISTS")
        if not self.codes:
            self.result = target
            target.values |= values | {"version": values["version"] + 1}

    def _relative(self, target: Thing, names: list[str]) -> dict[str, dict[str, Any]]:
        """Choose what is added to numbers and lists, and what is taken out."""
        numbers = [name for name in names if name in ("weight", "grams")]
        lists = [name for name in names if name in LISTS]
        more: dict[str, dict[str, Any]] = {}
        if numbers and self.draw(st.integers(0, 3)) == 0:
            more["increment"] = {numbers[0]: self.draw(st.integers(0, 5))}
        if lists and self.draw(st.integers(0, 3)) == 0:
            verb = self.draw(st.sampled_from(["append", "remove"]))
            more[verb] = {self.draw(st.sampled_from(lists)): self.draw(WORDS)}
        return more

    @staticmethod
    def _after(target: Thing, more: dict[str, dict[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, delta in more.get("increment", {}).items():
            found[name] = (target.values.get(name) or 0) + delta
        for name, words in more.get("append", {}).items():
            old = target.values.get(name)
            if name == "tags":
                found[name] = frozenset(old or ()) | frozenset(words)
            elif words or old is not None:
                found[name] = [*(old or []), *words]
        for name, words in more.get("remove", {}).items():
            old = target.values.get(name)
            if name == "tags":
                found[name] = frozenset(old or ()) - frozenset(words)
            elif old is not None:
                found[name] = [word for word in old if word not in words]
        return found

    def _delete(self) -> str:
        kind, target, world = self.kind, self._target(), self.world
        cascade = not kind.is_edge and self.draw(st.booleans())
        along = world.along(target) if cascade else [target] if not world.naming(target) else None
        self.variables = {"key": key_of(target)}
        if target not in world.things:
            self.codes.add("NOT_FOUND")
        elif along is None:
            self.codes.add("HAS_EDGES")
        else:
            world.things[:] = [thing for thing in world.things if thing not in along]
        name, more = kind.name, ", cascade: true" if cascade else ""
        return (
            f"mutation ($key: {name}Key!) {{ done: delete{name}(key: $key{more}) "
            f"{{ {name.lower()} {{ __typename }} }} }}"
        )


# --- what is read -------------------------------------------------------------------------------------------------


def linked(world: World, node: Thing) -> dict[str, list[str]]:
    """List the numbers behind each relationship of a node."""
    calls, tows, logs = world.of("Call"), world.of("Tow"), world.of("Log")
    if node.kind.name == "Port":
        found = {"ships": [one.values["ship"] for one in calls if one.values["port"] is node]}
    else:
        found = {"ports": [one.values["port"] for one in calls if one.values["ship"] is node]}
        if "Tow" in world.kinds:
            found["tows"] = [one.values["barge"] for one in tows if one.values["tug"] is node]
            found["tugs"] = [one.values["tug"] for one in tows if one.values["barge"] is node]
    names = {name: sorted(one.values["number"] for one in ends) for name, ends in found.items()}
    if node.kind.name == "Ship" and "Log" in world.kinds:
        names["logs"] = sorted(str(one.values["seq"]) for one in logs if one.values["ship"] is node)
    return names


async def read(served: Served, world: World, node: Thing) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a node and what is behind its relationships, and say what must be there."""
    lists = linked(world, node)
    name = node.kind.name.lower()
    below = " ".join(f"{one} {{ totalCount nodes {{ {'seq' if one == 'logs' else 'number'} }} }}" for one in lists)
    data = await served.data(f'{{ {name}(number: "{node.values["number"]}") {{ {asked(node.kind)} {below} }} }}')
    found = in_order(data[name])
    for one in lists:
        numbers = sorted(str(next(iter(entry.values()))) for entry in found[one]["nodes"])
        assert found[one]["totalCount"] == len(numbers)
        found[one] = numbers
    return found, answer(node, world) | lists


# --- the rule -----------------------------------------------------------------------------------------------------


async def together(served: Served, world: World, data: st.DataObject, before: Stored) -> tuple[World, Stored]:
    """Send two mutations as one transaction: both are done as if one after the other, or nothing is."""
    kept = deepcopy(world)
    steps = [Step(world, data), Step(world, data)]
    heads: list[str] = []
    fields: list[str] = []
    variables: dict[str, Any] = {}
    for number, step in enumerate(steps):
        parts = re.fullmatch(r"mutation \((.*?)\) \{ done: (.*) \}", step.query)
        assert parts is not None
        heads.append(parts[1].replace("$", f"$v{number}"))
        fields.append(f"v{number}: " + parts[2].replace("$", f"$v{number}"))
        variables |= {f"v{number}{name}": value for name, value in step.variables.items()}

    body = await served(f"mutation ({', '.join(heads)}) @transaction {{ {' '.join(fields)} }}", variables)

    after, said = await stored(served), f"{body} {fields} {variables} {world.sdl}"
    if "errors" in body:
        assert after == before, said
        assert "INTERNAL" not in {one[0] for one in codes(body).values()}, said
        return kept, after
    if steps[0].codes:
        # What the second one creates the first one may name.
        steps[0].carry_out()
    wrong = differences(world, list(after.values()))
    assert wrong == [], f"{wrong} {said}"
    assert not any(step.codes for step in steps), said
    return world, after


@given(world=worlds(), data=st.data())
# To shrink an example takes minutes: what failed is told in full instead.
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
)
async def test_any_mutations_leave_the_table_as_it_must_be(serve: Serve, world: World, data: st.DataObject) -> None:
    served = await serve(world.sdl)
    found = await stored(served)

    for _ in range(data.draw(st.integers(1, STEPS))):
        if data.draw(st.integers(0, 3)) == 0:
            world, found = await together(served, world, data, found)
            continue
        step = Step(world, data)
        body = await served(step.query, step.variables)
        before, found = found, await stored(served)

        said = f"{step.query} {step.variables} {world.sdl}"
        wrong = differences(world, list(found.values()))
        assert wrong == [], f"{wrong} {body} {said}"
        if step.codes:
            assert {one[0] for one in codes(body).values()} & step.codes, f"{step.codes} {body} {said}"
            assert found == before, said
        else:
            assert "errors" not in body, f"{body} {said}"
            if step.result is not None:
                payload = in_order(body["data"]["done"][step.kind.name.lower()])
                assert payload == answer(step.result, world), said

    for node in (*world.of("Port"), *world.of("Ship")):
        was, must_be = await read(served, world, node)
        assert was == must_be, world.sdl
