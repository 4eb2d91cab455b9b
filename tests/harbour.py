"""Random models of a harbour, things in it, and the items that they must be: an oracle that knows nothing of writes.

A `Kind` says how a type lies in the table, as text; the same text becomes schema.graphql and, filled in, the items.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from hypothesis import strategies as st

from graph.requests import Item

HEAD = """extend schema
  @table(name: "harbour", partitionKey: "pk", sortKey: "sk"{type})
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
  @index(name: "by-g1", partitionKey: "g1p", sortKey: "g1s")
  @index(name: "by-g2", partitionKey: "home", sortKey: "g2s")
enum State {{ OPEN SHUT }}
"""
TYPES = {"day": "Date", "made": "DateTime", "state": "State"} | dict.fromkeys(
    ("weight", "seq", "expires", "grams"), "Int"
)
LISTS = {"tags": "[String!] @attribute(set: true)", "names": "[String!]"}
MAY_BE_REQUIRED = ("label", "weight", "day", "made", "state", "home")


Counters = dict[str, tuple[str, str | None]]


@dataclass(frozen=True)
class Kind:
    """A type: its keys, one pair for each mirror, what it is named by, the index g1's and g2's keys, and its fields."""

    name: str
    keys: tuple[tuple[str, str], ...]
    ref: str
    """What names it: for nodes what other items hold, for the others their whole key."""
    fields: tuple[str, ...]
    references: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    g1: tuple[str, str] | None = None
    g2: str | None = None
    copies: tuple[str | None, ...] = (None,)
    is_edge: bool = False
    version: bool = False
    counters: Counters = field(default_factory=dict)
    """By name: the kind that is counted, or a field of its that is summed up."""
    relationships: str = ""

    def declared(self) -> str:
        """Write the type as schema.graphql has it."""
        word = "edge" if self.is_edge else "node"
        parts = []
        for (partition, sort), copy in zip(self.keys, self.copies, strict=True):
            copied = f', copy: "{copy}"' if copy else ""
            ref = "" if self.is_edge or self.name == "Log" else f', ref: "{self.ref}"'
            parts.append(f'@{word}(partition: "{partition}", sort: "{sort}"{ref}{copied})')
        if self.g1:
            parts.append(f'@indexed(by: "by-g1", partition: "{self.g1[0]}", sort: "{self.g1[1]}")')
        if self.g2:
            parts.append(f'@indexed(by: "by-g2", sort: "{self.g2}")')
        fields = [f"{name}: {self._type(name)}" for name in (*self.fields, *self.references)]
        fields += [f'{name}: Int @count(of: "{of}")' for name, (_, _, of) in self._counters()]
        if self.version:
            fields.append("version: Int @version")
        return f"type {self.name} {' '.join(parts)} {{ {'  '.join(fields)}  {self.relationships} }}\n"

    def _counters(self) -> Iterator[tuple[str, tuple[str, str | None, str]]]:
        lists = {"Call": "ships", "Log": "logs"}
        for name, (kind, summed) in self.counters.items():
            yield name, (kind, summed, lists[kind] + (f".{summed}" if summed else ""))

    def _type(self, name: str) -> str:
        if name in LISTS:
            return LISTS[name]
        plain = "ID" if name == "number" else self.references.get(name) or TYPES.get(name, "String")
        must = name in ("number", "seq") or name in self.required
        return plain + ("!" if must else "") + (" @ttl" if name == "expires" else "")

    @property
    def nullable(self) -> frozenset[str]:
        """The fields that may be absent."""
        return frozenset((*self.fields, *self.references)) - self.required - {"number", "seq"}


@dataclass(eq=False)
class Thing:
    """A node, an edge or a child: its values, and for references the things themselves."""

    kind: Kind
    values: dict[str, Any]

    @property
    def name(self) -> str:
        """What names it among its kind."""
        text = fill(self.kind.ref, self)
        assert text is not None
        return text


# --- templates ----------------------------------------------------------------------------------------------------

HOLE = re.compile(r"\{([^}]*)\}")
RANDOM = "\x00"
"""Stands in a key for a random shard."""


def at(thing: Thing, path: str) -> Any:
    """Give the value at the end of a path."""
    name, _, rest = path.partition(".")
    value = thing.values.get(name)
    return at(value, rest) if rest and isinstance(value, Thing) else value


def fill(template: str, thing: Thing) -> str | None:
    """Fill a template in; None where a value is absent."""
    text, end = "", 0
    for hole in HOLE.finditer(template):
        filled = _fill_hole(hole[1], thing)
        if filled is None:
            return None
        text += template[end : hole.start()] + filled
        end = hole.end()
    return text + template[end:]


def _fill_hole(hole: str, thing: Thing) -> str | None:
    if hole.startswith("shard("):
        count, _, by = hole[6:-1].partition(", ")
        if not by:
            return RANDOM
        value = at(thing, by)
        return None if value is None else str(zlib.crc32(str(value).encode()) % int(count))
    path, _, form = hole.partition(":")
    value = at(thing, path)
    if value is None:
        return None
    if isinstance(value, Thing):
        return value.name
    if form == "lower":
        return str(value).lower()
    if form == "epoch":
        return str(int(datetime.fromisoformat(value).timestamp()))
    return str(value).zfill(int(form)) if form else str(value)


# --- items --------------------------------------------------------------------------------------------------------


def attribute(value: Any) -> Any:
    """Store a value; None where there is nothing to store."""
    if isinstance(value, Thing):
        return {"S": value.name}
    if isinstance(value, int):
        return {"N": str(value)}
    if isinstance(value, frozenset):
        return {"SS": sorted(value)} if value else None
    if isinstance(value, list):
        return {"L": [{"S": one} for one in value]}
    return None if value is None else {"S": value}


def kept_by_key(kind: Kind, name: str) -> bool:
    """Say whether the primary key gives a field back as it is."""
    holes = [hole for template in kind.keys[0] for hole in HOLE.findall(template)]
    return any(hole.partition(":")[0] == name and not hole.endswith((":lower", ":epoch")) for hole in holes)


def own(kind: Kind) -> list[str]:
    """List the fields that an item stores."""
    return [name for name in (*kind.fields, *kind.references) if not kept_by_key(kind, name)]


def items_of(thing: Thing, world: World) -> Iterator[Item]:
    """Write the items that a thing must be."""
    kind = thing.kind
    for (partition, sort), copy in zip(kind.keys, kind.copies, strict=True):
        texts = {"pk": fill(partition, thing), "sk": fill(sort, thing)}
        if kind.g1:
            texts |= {"g1p": fill(kind.g1[0], thing), "g1s": fill(kind.g1[1], thing)}
        if kind.g2:
            texts |= {"g2s": fill(kind.g2, thing)}
        found = {name: attribute(text) for name, text in texts.items()}
        found |= {name: attribute(thing.values.get(name)) for name in own(kind)}
        if world.has_types:
            found["type"] = attribute(kind.name)
        if kind.version:
            found["version"] = attribute(thing.values["version"])
        for name in kind.counters:
            found[name] = attribute(world.counted(thing, name))
        if copy:
            end = thing.values[copy]
            taken = {*found, *kind.fields, *kind.references}
            found |= {name: attribute(end.values.get(name)) for name in own(end.kind) if name not in taken}
        yield {name: value for name, value in found.items() if value is not None}


# --- the world ----------------------------------------------------------------------------------------------------


@dataclass
class World:
    """The kinds of a model, and the things that there are."""

    kinds: dict[str, Kind]
    has_types: bool
    things: list[Thing] = field(default_factory=list)

    @property
    def sdl(self) -> str:
        """Write schema.graphql."""
        types = "".join(kind.declared() for kind in self.kinds.values())
        return HEAD.format(type=', type: "type"' if self.has_types else "") + types

    def of(self, kind: str) -> list[Thing]:
        """List the things of a kind."""
        return [thing for thing in self.things if thing.kind.name == kind]

    def find(self, kind: str, name: str) -> Thing | None:
        """Find a thing by what names it."""
        return next((thing for thing in self.of(kind) if thing.name == name), None)

    def counted(self, node: Thing, counter: str) -> int:
        """Count what names a node."""
        kind, summed = node.kind.counters[counter]
        mine = [thing for thing in self.of(kind) if node in thing.values.values()]
        return sum((thing.values.get(summed) or 0) if summed else 1 for thing in mine)

    def items(self) -> list[Item]:
        """List everything that must lie in the table."""
        return [item for thing in self.things for item in items_of(thing, self)]

    def naming(self, node: Thing) -> list[tuple[Thing, str]]:
        """List who names a node, and by which reference."""
        return [(thing, name) for thing in self.things for name in thing.kind.references if at(thing, name) is node]

    def along(self, node: Thing) -> list[Thing] | None:
        """List what goes with a node that is deleted with its edges; None when something is in the way."""
        gone = [node]
        for thing, name in self.naming(node):
            if not (thing.kind.is_edge or any(f"{{{name}" in template for template in thing.kind.keys[0])):
                return None
            further = self.along(thing)
            if further is None:
                return None
            gone += further
        return gone


def differences(world: World, found: list[Item]) -> list[str]:
    """Say where the table is not as it must be."""
    expected = {(item["pk"]["S"], item["sk"]["S"]): item for item in world.items()}
    there = {(item["pk"]["S"], item["sk"]["S"]): item for item in found}
    said = [f"{key} is missing" for key in expected.keys() - there.keys()]
    said += [f"{key} is too much: {there[key]}" for key in there.keys() - expected.keys()]
    for key in expected.keys() & there.keys():
        for name in sorted(expected[key].keys() | there[key].keys()):
            wanted, got = expected[key].get(name), there[key].get(name)
            if not _is_alike(wanted, got):
                said.append(f"{name} of {key} is {got} and must be {wanted}")
    return said


def _is_alike(wanted: Any, got: Any) -> bool:
    if wanted is None or got is None or RANDOM not in wanted.get("S", ""):
        return bool(wanted == got)
    pattern = re.escape(wanted["S"]).replace(re.escape(RANDOM), "[012]")
    return re.fullmatch(pattern, got.get("S", "")) is not None


# --- drawing models -----------------------------------------------------------------------------------------------

G1_PARTITIONS = (
    "{kind}",
    "{kind}-{{state}}",
    "{kind}{{shard(3)}}",
    "{kind}{{shard(3, number)}}",
    "{kind}-{{state}}-{{shard(3)}}",
)
G1_SORTS = ("{state}-{day}", "{label:lower}#{weight:06}", "{made:epoch}", "{weight:04}", "{day}#{label}", "{number}")
SORTS = ("{tag}", "{tag}-{{label}}", "{tag}-{{weight:04}}", "{tag}-{{label:lower}}", "{tag}-{{made:epoch}}", "self")


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Draw a model with ports, ships, what calls and tows, and the ships' logs."""
    port = _node(draw, "Port", home=False)
    ship = _node(draw, "Ship", home=draw(st.booleans()))
    kinds = {"Port": port, "Ship": ship, "Call": _call(draw, ship, port)}
    if draw(st.booleans()):
        g1 = draw(st.sampled_from([None, ("{shard(3)}", "{ship.number}#{seq:02}"), ("LOG-{ship.state}", "{ship.day}")]))
        fields = ("seq", "grams", "note")
        kinds["Log"] = Kind("Log", (("{ship}", "LOG#{seq:03}"),), "{ship}/{seq}", fields, {"ship": "Ship"},
                            frozenset({"ship"}), g1)  # fmt: skip
    if draw(st.booleans()):
        sort = draw(st.sampled_from(["{barge.day}", "{tug.label}", "{tug.number}~{barge.number}"]))
        g1 = draw(st.sampled_from([None, ("TOW", sort)]))
        copies = draw(st.sampled_from([None, "barge", "tug"]))
        kinds["Tow"] = Kind("Tow", (("{tug}", "TOW#{barge}"),), "{tug}/{barge}", ("note",),
                            {"tug": "Ship", "barge": "Ship"}, frozenset({"tug", "barge"}), g1,
                            copies=(copies,), is_edge=True)  # fmt: skip
    return World(_linked(draw, kinds), draw(st.booleans()))


def _node(draw: st.DrawFn, name: str, *, home: bool) -> Kind:
    tag = name.upper()
    sort = draw(st.sampled_from(SORTS)).format(tag=tag)
    partition = f"{tag}#{{number}}"
    g1 = None
    if draw(st.booleans()):
        g1 = draw(st.sampled_from(G1_PARTITIONS)).format(kind=tag), draw(st.sampled_from(G1_SORTS))
    g2 = draw(st.sampled_from(["SHIP#{number}", "{number}", "{home.number}~{number}"])) if home else None
    in_key = {hole.partition(":")[0] for hole in HOLE.findall(sort)}
    required = frozenset(draw(st.sets(st.sampled_from(MAY_BE_REQUIRED)))) | in_key
    fields = ["number", "label", "weight", "day", "made", "state", "tags", "names", "note"]
    if draw(st.booleans()):
        fields.append("expires")
    references = {"home": "Port"} if home else {}
    key = (partition, partition if sort == "self" else sort)
    version = draw(st.booleans())
    return Kind(name, (key,), partition, tuple(fields), references, required, g1, g2, version=version)


def _call(draw: st.DrawFn, ship: Kind, port: Kind) -> Kind:
    keys: list[tuple[str, str]] = [("{port}", "{ship}")]
    copies = [draw(st.sampled_from([None, "ship"]))]
    if draw(st.booleans()):
        keys.append(("{ship}", "{port}"))
        copies.append(draw(st.sampled_from([None, "port"])))
    sorts = ["{ship.state}-{ship.day}", "{port.label}~{grams:05}", "{ship.made:epoch}", "{note}", "{ship.weight:04}"]
    g1 = draw(st.sampled_from([None, ("CALL", draw(st.sampled_from(sorts))), ("CALL{shard(3)}", sorts[0])]))
    return Kind("Call", tuple(keys), "{port}/{ship}", ("grams", "note"), {"port": "Port", "ship": "Ship"},
                frozenset({"port", "ship"}), g1, copies=tuple(copies), is_edge=True)  # fmt: skip


def _linked(draw: st.DrawFn, kinds: dict[str, Kind]) -> dict[str, Kind]:
    """Add what the nodes count, and the relationships between them."""
    port, ship = kinds["Port"], kinds["Ship"]
    at_port = 'ships: [Ship!]! @relationship(through: "Call")'
    at_ship = 'ports: [Port!]! @relationship(through: "Call")'
    if "Log" in kinds:
        at_ship += "  logs: [Log!]! @relationship"
    if "Tow" in kinds:
        at_ship += '  tows: [Ship!]! @relationship(through: "Tow", from: "tug")'
        at_ship += '  tugs: [Ship!]! @relationship(through: "Tow", from: "barge")'
    possible: Counters = {"calls": ("Call", None)}
    if "grams" not in str(kinds["Call"].g1):
        # What a key holds is not added up.
        possible["callGrams"] = ("Call", "grams")
    logs: Counters = {"logCount": ("Log", None), "logGrams": ("Log", "grams")} if "Log" in kinds else {}
    port_counters = {name: possible[name] for name in draw(st.sets(st.sampled_from(sorted(possible))))}
    ship_counters = {name: logs[name] for name in draw(st.sets(st.sampled_from(sorted(logs))))} if logs else {}

    return kinds | {
        "Port": replace(port, counters=port_counters, relationships=at_port),
        "Ship": replace(ship, counters=ship_counters, relationships=at_ship),
    }
