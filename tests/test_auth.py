"""Who may read what: roles, owners and tenants, on every way to an item, in both executors."""

from __future__ import annotations

from typing import Any

import pytest

from graph.identity import ANONYMOUS, Identity
from graph.requests import Item
from resolvers.operation import Request
from resolvers.schema import Api
from tests.conftest import Serve, Served

SHOP = """
extend schema
  @table(name: "shop", partitionKey: "pk", sortKey: "sk")
  @index(name: "reverse", partitionKey: "sk", sortKey: "pk")
  @index(name: "by-status", partitionKey: "statusPk", sortKey: "statusSk")

interface Named { name: String }
type Customer implements Named
  @node(key: "CUSTOMER#{org}#{number}")
  @auth(tenant: { field: "org", claim: "org_id" })
  @auth(roles: ["support"], rights: [READ]) {
  org: ID!
  number: ID!
  name: String
  group: Tag
  rating: Int @auth(roles: ["support"])
  orders: [Order!]! @relationship
}
type Order
  @node(key: "ORDER#{org}#{number}")
  @indexed(by: "by-status", partition: "ORDERS#{org}#{status}", sort: "{number}")
  @auth(tenant: { field: "org", claim: "org_id" }) {
  org: ID!
  number: ID!
  status: String!
  customers: [Customer!]! @relationship
  notes: [Note!]! @relationship
  tags: [Tag!]! @relationship
}
type Placing
  @edge(partition: "{customer}", sort: "{order}", copy: "order")
  @auth(tenant: { field: "customer.org", claim: "org_id" }) {
  customer: Customer!
  order: Order!
  comment: String
}
type Note
  @node(partition: "{order}", sort: "NOTE#{number}")
  @auth(tenant: { field: "order.org", claim: "org_id" }, owner: { field: "author" }) {
  order: Order!
  number: ID!
  author: ID
  text: String
  draft: String @auth(owner: { field: "author" })
}
type Tag @node(key: "TAG#{org}#{name}", virtual: true) @auth(tenant: { field: "org", claim: "org_id" }) {
  org: ID!
  name: ID!
  orders: [Order!]! @relationship
}
type Tagging @edge(partition: "{tag}", sort: "{order}") @auth(tenant: { field: "tag.org", claim: "org_id" }) {
  tag: Tag!
  order: Order!
}
type Secret @node(key: "SECRET#{number}") @auth(roles: ["admin"]) { number: ID!  text: String }
type Page @node(key: "PAGE#{number}") @auth(anonymous: true, rights: [READ]) @auth(roles: ["admin"]) {
  number: ID!
  title: String
  draft: String @auth(owner: { field: "by" })
  by: ID
}
type Query {
  ordersOf(status: String!): [Order!]! @find
  everyOrder: [Order!]! @find(scan: true) @auth(roles: ["support"])
  pages: [Page!]! @find(scan: true)
}
"""


def caller(subject: str, org: str = "", *roles: str) -> Identity:
    return Identity(subject, frozenset(roles), {"sub": subject} | ({"org_id": org} if org else {}))


ANN, BOB, EVE = caller("ann", "a"), caller("bob", "a"), caller("eve", "b")
SUPPORT, ADMIN, NOBODY = caller("sue", "", "support"), caller("adi", "", "admin"), ANONYMOUS


def text(**fields: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in fields.items()}


def items() -> list[Item]:
    found: list[Item] = []
    for org in ("a", "b"):
        for number in ("1", "2"):
            customer, order = f"CUSTOMER#{org}#{number}", f"ORDER#{org}#{number}"
            found.append(
                text(pk=customer, sk=customer, name=f"name-{org}{number}", group=f"TAG#b#{number}")
                | {"rating": {"N": "5"}}
            )
            status = text(status="OPEN", statusPk=f"ORDERS#{org}#OPEN", statusSk=number)
            found.append(text(pk=order, sk=order) | status)
            found.append(text(pk=customer, sk=order, comment=f"comment-{org}{number}", status="OPEN"))
            found.append(text(pk=f"TAG#{org}#new", sk=order))
            for note, author in (("1", "ann"), ("2", "bob"), ("3", "eve")):
                found.append(text(pk=order, sk=f"NOTE#{note}", author=author, text=f"{author}-{org}", draft="d"))
    # What others wrote, against the rules: an edge across tenants.
    found.append(text(pk="CUSTOMER#a#1", sk="ORDER#b#1", comment="crossing", status="OPEN"))
    found.append(text(pk="SECRET#1", sk="SECRET#1", text="hush"))
    found.append(text(pk="PAGE#1", sk="PAGE#1", title="Welcome", draft="soon", by="ann"))
    return found


@pytest.fixture(params=["plan", "reference"])
async def shop(request: pytest.FixtureRequest, serve: Serve) -> Served:
    served = await serve(SHOP, items())
    return Served(Api(served.graph, executor=request.param), served.graph, served.table, served.sent)


async def ask(shop: Served, who: Identity, query: str, **variables: Any) -> dict[str, Any]:
    return (await shop.api.execute(Request(query, variables, identity=who))).body


async def test_a_tenant_reads_its_own(shop: Served) -> None:
    orders = "orders { totalCount edges { comment node { number status } } }"
    query = f'{{ customer(org: "a", number: "1") {{ name {orders} }} }}'
    assert (await ask(shop, ANN, query))["data"]["customer"] == {
        "name": "name-a1",
        "orders": {"totalCount": 1, "edges": [{"comment": "comment-a1", "node": {"number": "1", "status": "OPEN"}}]},
    }


async def test_nothing_is_asked_of_another_tenants_partitions(shop: Served) -> None:
    answer = await ask(shop, EVE, '{ customer(org: "a", number: "1") { name orders { totalCount } } }')
    assert answer == {"data": {"customer": None}}
    assert shop.sent == []


async def test_a_global_id_opens_no_other_tenants_node(shop: Served) -> None:
    (id_,) = (await ask(shop, ANN, '{ order(org: "a", number: "1") { id } }'))["data"]["order"].values()
    assert (await ask(shop, ANN, "query ($id: ID!) { node(id: $id) { __typename } }", id=id_))["data"]["node"]
    shop.sent.clear()
    both = await ask(shop, EVE, "query ($id: ID!) { node(id: $id) { id } nodes(ids: [$id]) { __typename } }", id=id_)
    assert both == {"data": {"node": None, "nodes": [None]}}
    assert shop.sent == []


async def test_staff_reads_across_tenants_what_they_may_and_no_more(shop: Served) -> None:
    query = '{ customer(org: "b", number: "2") { name rating } }'
    assert (await ask(shop, SUPPORT, query))["data"]["customer"] == {"name": "name-b2", "rating": 5}
    denied = await ask(shop, SUPPORT, '{ customer(org: "b", number: "2") { orders { totalCount } } }')
    assert [error["extensions"]["code"] for error in denied["errors"]] == ["FORBIDDEN"]


async def test_a_field_of_others_is_refused_before_anything_is_read(shop: Served) -> None:
    answer = await ask(shop, ANN, '{ customer(org: "a", number: "1") { name rating } }')
    assert "data" not in answer
    assert answer["errors"][0]["message"].startswith("`Customer.rating` is not yours to ask for")
    assert shop.sent == []
    where = '{ order(org: "a", number: "1") { customers(where: { customer: { rating: { gt: 1 } } }) { totalCount } } }'
    assert (await ask(shop, ANN, where))["errors"][0]["extensions"]["code"] == "FORBIDDEN"


async def test_an_owner_sees_their_own_items_and_others_see_none(shop: Served) -> None:
    query = '{ order(org: "a", number: "1") { notes { totalCount nodes { author text } } } }'
    for who, expected in ((ANN, ["ann"]), (BOB, ["bob"]), (caller("zoe", "a"), [])):
        notes = (await ask(shop, who, query))["data"]["order"]["notes"]
        assert [note["author"] for note in notes["nodes"]] == expected
        assert notes["totalCount"] == len(expected)
    only = '{ order(org: "a", number: "1") { notes { totalCount } } }'
    assert (await ask(shop, ANN, only))["data"]["order"]["notes"] == {"totalCount": 1}
    assert (await ask(shop, EVE, query))["data"]["order"] is None


async def test_pages_are_full_although_items_of_others_lie_between(shop: Served) -> None:
    query = '{ order(org: "a", number: "1") { notes(first: 1) { nodes { text } pageInfo { hasNextPage } } } }'
    assert (await ask(shop, BOB, query))["data"]["order"]["notes"] == {
        "nodes": [{"text": "bob-a"}],
        "pageInfo": {"hasNextPage": False},
    }


async def test_an_edge_across_tenants_leads_nowhere(shop: Served) -> None:
    backward = '{ order(org: "b", number: "1") { customers { nodes { name } } } }'
    assert (await ask(shop, EVE, backward))["data"]["order"]["customers"]["nodes"] == [{"name": "name-b1"}]
    assert "crossing" not in str(
        await ask(shop, EVE, '{ order(org: "b", number: "1") { customers { edges { comment } } } }')
    )


async def test_a_field_that_is_the_owners_alone_is_null_for_others(shop: Served) -> None:
    query = '{ page(number: "1") { title draft } }'
    assert (await ask(shop, ANN, query))["data"]["page"] == {"title": "Welcome", "draft": "soon"}
    assert (await ask(shop, BOB, query))["data"]["page"] == {"title": "Welcome", "draft": None}
    nobody = await ask(shop, NOBODY, query)
    assert nobody["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
    assert (await ask(shop, NOBODY, '{ page(number: "1") { title } }'))["data"]["page"] == {"title": "Welcome"}


async def test_virtual_nodes_are_a_tenants_too(shop: Served) -> None:
    query = '{ order(org: "a", number: "1") { tags { nodes { id name } } } }'
    (tag,) = (await ask(shop, ANN, query))["data"]["order"]["tags"]["nodes"]
    assert tag["name"] == "new"
    node = "query ($id: ID!) { node(id: $id) { ... on Tag { name orders { totalCount } } } }"
    assert await ask(shop, EVE, node, id=tag["id"]) == {"data": {"node": None}}
    own = (await ask(shop, ANN, node, id=tag["id"]))["data"]["node"]
    assert own == {"name": "new", "orders": {"totalCount": 2}}
    # Both customers' items name a tag of the one tenant.
    for who, org, group in ((ANN, "a", None), (EVE, "b", {"name": "1"})):
        named = f'{{ customer(org: "{org}", number: "1") {{ group {{ name }} }} }}'
        assert (await ask(shop, who, named))["data"]["customer"] == {"group": group}


async def test_types_and_finds_of_roles(shop: Served) -> None:
    for who, code in ((ANN, "FORBIDDEN"), (NOBODY, "UNAUTHENTICATED")):
        for query in ('{ secret(number: "1") { text } }', "{ everyOrder { totalCount } }"):
            assert (await ask(shop, who, query))["errors"][0]["extensions"]["code"] == code
    assert (await ask(shop, ADMIN, '{ secret(number: "1") { text } }'))["data"]["secret"] == {"text": "hush"}
    assert (await ask(shop, ANN, "{ pages { nodes { number } } }"))["data"]["pages"]["nodes"]


async def test_an_unruled_item_of_an_interface_does_not_show_the_denied_type(shop: Served) -> None:
    (id_,) = (await ask(shop, ADMIN, '{ secret(number: "1") { id } }'))["data"]["secret"].values()
    assert (await ask(shop, ANN, "query ($id: ID!) { node(id: $id) { __typename id } }", id=id_)) == {
        "data": {"node": None}
    }


async def test_hidden_means_that_nothing_tells_of_it(shop: Served) -> None:
    api = Api(shop.graph, hide_forbidden=True)

    async def told(who: Identity, query: str, **variables: Any) -> dict[str, Any]:
        return (await api.execute(Request(query, variables, identity=who))).body

    schema = "{ __schema { types { name fields { name } inputFields { name } } queryType { fields { name } } } }"
    for word in ("Secret", "rating", "everyOrder"):
        assert word not in str(await told(ANN, schema)), word
    assert "Secret" in str(await told(ADMIN, schema))
    for word in ("Secret", "Customer", "draft"):
        assert word not in str(await told(NOBODY, schema)), word
    typo = await told(ANN, '{ customer(org: "a", number: "1") { ratin } }')
    assert "rating" not in str(typo)
    direct = await told(ANN, '{ customer(org: "a", number: "1") { rating } }')
    assert direct["errors"][0]["extensions"]["code"] == "GRAPHQL_VALIDATION_FAILED"
    hidden = 'query ($where: PlacingWhere) { order(org: "a", number: "1") { customers(where: $where) { totalCount } } }'
    refused = await told(ANN, hidden, where={"customer": {"rating": {"gt": 1}}})
    assert "data" not in refused
    assert "FORBIDDEN" not in str(refused)
    assert (await told(ANN, '{ customer(org: "a", number: "1") { name } }'))["data"]["customer"] == {"name": "name-a1"}
