"""A small table with everything that verify looks at, as mutations write it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from graph.loaders import Limits
from graph.maintenance.findings import Finding
from graph.maintenance.repair import Outcome, Wish, repair
from graph.maintenance.verify import verify
from graph.maintenance.walk import Walk
from graph.requests import Action, Item, TransactWriteItems, key_value
from tests.conftest import Serve, Served
from tests.written import Stored, stored

SHOP = """extend schema
  @table(name: "shop", partitionKey: "pk", sortKey: "sk", type: "kind")
  @index(name: "by-data", partitionKey: "sk", sortKey: "data")
  @index(name: "by-shard", partitionKey: "shard", sortKey: "data")
  @index(name: "by-owner", partitionKey: "owner", sortKey: "pk")
type Person @node(partition: "PERSON#{number}", sort: "person") @indexed(by: "by-data", sort: "{name:lower}") {
  number: ID!
  name: String!
  skills: [String!] @attribute(set: true)
  shops: [Shop!]! @relationship(through: "Job")
  owns: [Shop!]! @relationship(through: "Shop", from: "owner")
}
type Shop @node(partition: "SHOP#{number}", sort: "shop")
  @indexed(by: "by-shard", partition: "{shard(4)}", sort: "{city}#{name}") {
  number: ID!
  name: String!
  city: String
  founded: Date
  owner: Person
  jobs: [Job!]! @relationship
  notes: [Note!]! @relationship
  staff: Int @count(of: "jobs")
  hours: Int! @count(of: "jobs.hours")
}
type Job @edge(partition: "{shop}", sort: "{person}", copy: "person")
  @edge(partition: "{person}", sort: "{shop}", copy: "shop")
  @indexed(by: "by-shard", partition: "{shard(4)}", sort: "{person.name:lower}") {
  shop: Shop!
  person: Person!
  hours: Int
  since: Date
}
type Note @node(partition: "{shop}", sort: "NOTE#{number}") @indexed(by: "by-data", sort: "{shop.city}#{number}") {
  shop: Shop!
  number: ID!
  text: String!
  about: Person
}
"""

FILL = """mutation {
  p1: createPerson(input: { number: "1", name: "Ann", skills: ["till", "baking"] }) { person { number } }
  p2: createPerson(input: { number: "2", name: "Bob" }) { person { number } }
  s1: createShop(input: { number: "1", name: "Bread", city: "Ulm", owner: { number: "1" } }) { shop { number } }
  s2: createShop(input: { number: "2", name: "Cakes", city: "Bonn", founded: "1999-01-02" }) { shop { number } }
  j1: createJob(input: { shop: { number: "1" }, person: { number: "1" }, hours: 10 }) { job { hours } }
  j2: createJob(input: { shop: { number: "1" }, person: { number: "2" }, hours: 20, since: "2001-02-03" }) {
    job { hours }
  }
  j3: createJob(input: { shop: { number: "2" }, person: { number: "2" } }) { job { hours } }
  n1: createNote(input: { shop: { number: "1" }, number: "1", text: "Hello", about: { number: "2" } }) {
    note { text }
  }
}"""


async def shop(serve: Serve) -> Served:
    """Serve a shop that its mutations have filled."""
    served = await serve(SHOP, limits=Limits())
    await served.data(FILL)
    return served


async def found(served: Served, segments: int = 2) -> list[Finding]:
    """Verify a table and give what it reports, in order."""
    findings: list[Finding] = []
    await verify(Walk(served.graph, segments), findings.append)
    return sorted(findings, key=lambda one: (one.code.name, one.key, one.field))


async def brief(served: Served) -> list[str]:
    """Verify a table and give each finding in a few words."""
    return [f"{one.code.name} {_place(one)}: {one.expected}, {one.found}" for one in await found(served)]


def _place(finding: Finding) -> str:
    key = "/".join(str(value) for _, value in finding.key[1])
    return f"{key} {finding.field}".strip()


async def repaired(served: Served, **wish: Any) -> dict[str, Outcome]:
    """Repair a table and give what became of each finding: by its code, its key and its field."""
    outcomes: dict[str, Outcome] = {}

    def report(finding: Finding, outcome: Outcome) -> None:
        outcomes[f"{finding.code.name} {_place(finding)}"] = outcome

    await repair(Walk(served.graph, 2), Wish(**wish), report)
    return outcomes


async def write(served: Served, *items: Item, gone: Iterable[Item] = ()) -> None:
    """Put items behind the mutations' back, and delete others."""
    table = served.graph.model.tables[served.table]
    puts = [Action(served.table, _key(table.key_attributes, item), item) for item in items]
    deletes = [Action(served.table, _key(table.key_attributes, item), delete=True) for item in gone]
    await served.graph.send(TransactWriteItems((*puts, *deletes), str(uuid.uuid4())))


def _key(names: Iterable[str], item: Item) -> tuple[tuple[str, Any], ...]:
    return tuple((name, key_value(item[name])) for name in names)


async def changed(served: Served, pk: str, sk: str, put: Mapping[str, Any] | None = None, *gone: str) -> Stored:
    """Change attributes of one item behind the mutations' back, and give the table as it was."""
    before = await stored(served)
    item = {name: value for name, value in before[pk, sk].items() if name not in gone}
    await write(served, {**item, **(put or {})})
    return before
