"""A model with every kind of rule, callers of two tenants and of none, and the table that they work on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph.identity import ANONYMOUS, Identity
from resolvers.operation import Request
from tests.conftest import Served
from tests.written import Stored, stored

WORKS = """extend schema
  @table(name: "works", partitionKey: "pk", sortKey: "sk", type: "kind")
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
  @index(name: "by-next", partitionKey: "next", sortKey: "pk")
  @index(name: "by-data", partitionKey: "data", sortKey: "sk")
type Project @node(key: "PROJECT#{org}#{number}", ref: "PROJECT#{org}#{number}")
  @auth(tenant: { field: "org", claim: "org" }, rights: [READ, CREATE, UPDATE])
  @auth(tenant: { field: "org", claim: "org" }, roles: ["admin"], rights: [DELETE])
  @auth(roles: ["staff"]) {
  org: ID!
  number: ID!
  name: String! @search
  budget: Int @auth(roles: ["admin", "staff"])
  notes: [Note!]! @relationship
  members: [Person!]! @relationship(through: "Member")
  size: Int @count(of: "notes")
}
type Person @node(key: "PERSON#{org}#{number}", ref: "PERSON#{org}#{number}")
  @auth(tenant: { field: "org", claim: "org" })
  @auth(roles: ["staff"]) {
  org: ID!
  number: ID!
  name: String
}
type Member
  @edge(partition: "{project}", sort: "{person}", copy: "person")
  @edge(partition: "{person}", sort: "{project}", copy: "project")
  @auth(tenant: { field: "project.org", claim: "org" })
  @auth(roles: ["staff"]) {
  project: Project!
  person: Person!
  since: Date
}
type Note @node(partition: "{project}", sort: "NOTE#{number}") @indexed(by: "by-data", partition: "NOTES#{project.org}")
  @auth(tenant: { field: "project.org", claim: "org" }, rights: [READ, CREATE])
  @auth(tenant: { field: "project.org", claim: "org" }, owner: { field: "author" }, rights: [UPDATE, DELETE])
  @auth(roles: ["staff"]) {
  project: Project!
  number: ID!
  text: String @search
  author: ID
  secret: String @auth(owner: { field: "author" })
  version: Int! @version
}
type Diary @node(partition: "DIARY#{number}", sort: "v0_diary") @history @auth(owner: { field: "by" }) {
  number: ID!
  by: ID!
  text: String
  next: Diary
  version: Int! @version
}
union Thing = Project | Person
type Tag @node(key: "TAG#{org}#{name}", virtual: true) @auth(tenant: { field: "org", claim: "org" }) {
  org: ID!
  name: ID!
  things: [Thing!]! @relationship
}
type Tagging @edge(partition: "{tag}", sort: "{thing}") @auth(tenant: { field: "tag.org", claim: "org" }) {
  tag: Tag!
  thing: Thing!
}
type Query { notes: [Note!]! @find }
"""

FILL = """mutation {
  p1: createProject(input: { number: "1", name: "WORDS-plans", budget: 7, notes: [
    { number: "1", text: "WORDS first", author: "SUB", secret: "WORDS-secret" }
    { number: "2", text: "WORDS second", author: "x" }
  ] }) { __typename }
  p2: createProject(input: { number: "2", name: "WORDS-bare" }) { project { number } }
  a: createPerson(input: { number: "1", name: "WORDS-Ann" }) { person { number } }
  b: createPerson(input: { number: "2", name: "WORDS-Bob" }) { person { number } }
  m: createMember(input: { project: { number: "1" }, person: { number: "1" }, since: "2024-01-01" }) { __typename }
  t: createTagging(input: { tag: { name: "WORDS-tag" }, thing: { project: { number: "1" } } }) { __typename }
  d: createDiary(input: { number: "SUB-1", text: "WORDS-dear" }) { diary { number } }
}"""


def member(org: str, subject: str, *roles: str) -> Identity:
    """Somebody of an organisation."""
    return Identity(subject, frozenset(roles), {"org": org})


ANN = member("a", "ann")
ADA = member("a", "ada", "admin")
BEN = member("b", "ben")
BEA = member("b", "bea", "admin")
BOTH = Identity("cat", frozenset(), {"org": ["a", "b"]})
STAFF = Identity("sam", frozenset({"staff"}))
NOBODY = ANONYMOUS


async def fill(served: Served) -> Stored:
    """Have two organisations write the same, each in words of its own."""
    for identity, words in ((ADA, "alpha"), (BEA, "beta")):
        body = await ask(served, identity, FILL.replace("WORDS", words).replace("SUB", identity.subject or ""))
        assert "errors" not in body, body["errors"]
    return await stored(served)


async def ask(
    served: Served,
    identity: Identity,
    query: str,
    variables: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Any:
    """Execute an operation as somebody, and give the response's body."""
    served.sent.clear()
    request = Request(query, variables, identity=identity, idempotency_key=key)
    return (await served.api.execute(request)).body


def codes(body: Any) -> list[str]:
    """Give the codes of the errors of a response."""
    return [error["extensions"]["code"] for error in body.get("errors", ())]
