"""Small models over the real engine: nodes and what links them, in every layout, and the requests that it takes."""

from __future__ import annotations

from graph.requests import Item
from tests.conftest import Serve

TABLE = 'extend schema @table(name: "things", partitionKey: "pk", sortKey: "sk")\n'
INVERSE = TABLE.rstrip() + ' @index(name: "inverse", partitionKey: "sk", sortKey: "pk")\n'


def item(pk: str, sk: str, **attributes: str) -> Item:
    """Write an item whose attributes are all text."""
    return {name: {"S": text} for name, text in {"pk": pk, "sk": sk, **attributes}.items()}


# --- both ends of one type ----------------------------------------------------------------------------------------

USERS = (
    INVERSE
    + """type User @node(key: "USER#{name}") {
      name: ID!  bio: String
      following: [User!]! @relationship(from: "follower")
      followers: [User!]! @relationship(from: "followee")
    }
    type Following @edge(partition: "{follower}", sort: "{followee}") {
      follower: User!  followee: User!  since: Date
    }"""
)
FOLLOWS = [("ann", "bob"), ("ann", "cid"), ("bob", "ann"), ("cid", "bob")]


def users() -> list[Item]:
    """Three users and who follows whom."""
    return [
        *(item(f"USER#{name}", f"USER#{name}", bio=f"I am {name}") for name in ("ann", "bob", "cid")),
        *(item(f"USER#{one}", f"USER#{other}", since="2022-07-19") for one, other in FOLLOWS),
    ]


async def test_followers_and_following_are_told_apart(serve: Serve) -> None:
    served = await serve(USERS, users())

    data = await served.data(
        """{ user(name: "ann") {
          following { edges { since node { name bio } } totalCount }
          followers { nodes { name } }
        } }"""
    )

    assert data["user"] == {
        "following": {
            "edges": [
                {"since": "2022-07-19", "node": {"name": "bob", "bio": "I am bob"}},
                {"since": "2022-07-19", "node": {"name": "cid", "bio": "I am cid"}},
            ],
            "totalCount": 2,
        },
        "followers": {"nodes": [{"name": "bob"}]},
    }


async def test_a_nodes_own_item_is_not_among_its_edges(serve: Serve) -> None:
    served = await serve(USERS, users())

    data = await served.data(
        """{ user(name: "bob") {
          following(first: 1) { nodes { name } pageInfo { hasNextPage } totalCount }
          followers(last: 1) { nodes { name } pageInfo { hasPreviousPage } totalCount }
        } }"""
    )

    assert data["user"] == {
        "following": {"nodes": [{"name": "ann"}], "pageInfo": {"hasNextPage": False}, "totalCount": 1},
        "followers": {"nodes": [{"name": "cid"}], "pageInfo": {"hasPreviousPage": True}, "totalCount": 2},
    }


async def test_two_edge_types_between_the_same_two_nodes_are_two_lists(serve: Serve) -> None:
    sdl = (
        INVERSE
        + """type User @node(key: "USER#{name}") {
          name: ID!
          likes: [Post!]! @relationship(through: "Like")
          saves: [Post!]! @relationship(through: "Save")
        }
        type Post @node(key: "POST#{number}") { number: ID!  likedBy: [User!]! @relationship(through: "Like") }
        type Like @edge(partition: "{user}", sort: "LIKE#{post}") @indexed(by: "inverse", partition: "LIKE#{post}") {
          user: User!  post: Post!
        }
        type Save @edge(partition: "{user}", sort: "SAVE#{post}") { user: User!  post: Post! }"""
    )
    edges = [item("USER#a", f"LIKE#POST#{post}") for post in (1, 2)] + [item("USER#a", "SAVE#POST#2")]
    served = await serve(
        sdl, [item("USER#a", "USER#a"), *(item(f"POST#{post}", f"POST#{post}") for post in (1, 2)), *edges]
    )

    data = await served.data(
        """{ user(name: "a") { likes { nodes { number } } saves { nodes { number } } }
        post(number: "2") { likedBy { nodes { name } } } }"""
    )

    assert data["user"] == {
        "likes": {"nodes": [{"number": "1"}, {"number": "2"}]},
        "saves": {"nodes": [{"number": "2"}]},
    }
    assert data["post"] == {"likedBy": {"nodes": [{"name": "a"}]}}


# --- foreign keys, children, trees --------------------------------------------------------------------------------

LIBRARY = """extend schema
  @table(name: "library", partitionKey: "pk")
  @index(name: "byAuthor", partitionKey: "authorId", sortKey: "year")
type Author @node(partition: "AUTHOR#{name}", ref: "{name}") {
  name: ID!  born: Int  books: [Book!]! @relationship
}
type Book @node(partition: "BOOK#{number}") {
  number: ID!  title: String  year: Int  author: Author @attribute(name: "authorId")
}"""


def library() -> list[Item]:
    """One author with three books, and a book of nobody."""
    return [
        {"pk": {"S": "AUTHOR#ann"}, "born": {"N": "1950"}},
        *(
            {
                "pk": {"S": f"BOOK#{number}"},
                "title": {"S": f"Book {number}"},
                "year": {"N": str(1990 + number)},
                "authorId": {"S": "ann"},
            }
            for number in (3, 1, 2)
        ),
        {"pk": {"S": "BOOK#9"}, "title": {"S": "Beowulf"}},
    ]


async def test_a_foreign_keys_index_yields_the_nodes_themselves(serve: Serve) -> None:
    served = await serve(LIBRARY, library())

    data = await served.data(
        '{ author(name: "ann") { born books(where: { year: { ge: 1992 } }) { nodes { number title year } } } }'
    )

    assert data["author"]["books"]["nodes"] == [
        {"number": "2", "title": "Book 2", "year": 1992},
        {"number": "3", "title": "Book 3", "year": 1993},
    ]
    assert served.operations == ["GetItem", "Query"]


async def test_a_reference_is_followed_and_its_name_alone_costs_nothing(serve: Serve) -> None:
    served = await serve(LIBRARY, library())

    named = await served.data('{ book(number: "1") { author { name } } }')
    named_by = served.operations
    followed = await served.data(
        '{ book(number: "1") { author { born } } none: book(number: "9") { author { born } } }'
    )

    assert named == {"book": {"author": {"name": "ann"}}}
    assert named_by == ["GetItem"]
    assert followed == {"book": {"author": {"born": 1950}}, "none": {"author": None}}


async def test_a_reference_by_what_an_index_leads_by_is_followed(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "things", partitionKey: "pk")
      @index(name: "byMail", partitionKey: "mail")
    type User @node(partition: "USER#{name}") { name: ID!  mail: String! }
    type Post @node(partition: "POST#{number}") {
      number: ID!  author: User @attribute(name: "authorMail", ref: "{mail}")
    }"""
    user = {"pk": {"S": "USER#ann"}, "mail": {"S": "ann@example.org"}}
    post = {"pk": {"S": "POST#1"}, "authorMail": {"S": "ann@example.org"}}
    served = await serve(sdl, [user, post, {"pk": {"S": "POST#2"}, "authorMail": {"S": "nobody@example.org"}}])

    data = await served.data(
        '{ post(number: "1") { author { name mail } } other: post(number: "2") { author { name } } }'
    )

    assert data == {"post": {"author": {"name": "ann", "mail": "ann@example.org"}}, "other": {"author": None}}


async def test_a_tree_is_walked_up_and_down(serve: Serve) -> None:
    sdl = """extend schema
      @table(name: "staff", partitionKey: "pk")
      @index(name: "byManager", partitionKey: "managerId")
    type Employee @node(partition: "E#{number}") {
      number: ID!  manager: Employee @attribute(name: "managerId")  reports: [Employee!]! @relationship
      below: [Employee!]! @relationship(path: "reports.reports")
    }"""
    managers = {"1": None, "2": "1", "3": "1", "4": "2"}
    served = await serve(
        sdl,
        [
            {"pk": {"S": f"E#{number}"}} | ({"managerId": {"S": f"E#{manager}"}} if manager else {})
            for number, manager in managers.items()
        ],
    )

    data = await served.data(
        """{ employee(number: "1") {
          reports { nodes { number } }
          below { nodes { number manager { manager { number } } } }
        } }"""
    )

    employee = data["employee"]
    assert sorted(node["number"] for node in employee["reports"]["nodes"]) == ["2", "3"]
    assert employee["below"]["nodes"] == [{"number": "4", "manager": {"manager": {"number": "1"}}}]


FILES = (
    TABLE
    + """type User @node(partition: "USER#{name}", sort: "user") {
      name: ID!
      profile: Profile @relationship
      files: [File!]! @relationship
    }
    type Profile @node(partition: "{user.partition}", sort: "profile") { user: User!  bio: String }
    type File @node(partition: "{user.partition}", sort: "file#{path}") { user: User!  path: String!  size: Int }"""
)


async def test_a_child_with_a_literal_sort_key_is_one_by_its_key(serve: Serve) -> None:
    served = await serve(
        FILES, [item("USER#a", "user"), item("USER#a", "profile", bio="hello"), item("USER#b", "user")]
    )

    data = await served.data(
        """{ user(name: "a") { profile { bio user { name } } } other: user(name: "b") { profile { bio } }
        profile(user: "a") { bio } }"""
    )

    assert data["user"] == {"profile": {"bio": "hello", "user": {"name": "a"}}}
    assert data["other"] == {"profile": None}
    assert data["profile"] == {"bio": "hello"}


async def test_children_are_a_connection_in_the_order_of_their_sort_key(serve: Serve) -> None:
    paths = ["b", "a", "a#1", "c"]
    served = await serve(FILES, [item("USER#a", "user"), *(item("USER#a", f"file#{path}") for path in paths)])

    data = await served.data('{ user(name: "a") { files(first: 3) { nodes { path user { name } } totalCount } } }')

    assert [node["path"] for node in data["user"]["files"]["nodes"]] == ["a", "a#1", "b"]
    assert data["user"]["files"]["totalCount"] == 4


# --- edges as types -----------------------------------------------------------------------------------------------


STOCK = (
    INVERSE
    + """type Product @node(partition: "PRODUCT#{number}", sort: "product", ref: "P#{number}") {
      number: ID!  name: String  stock: [Stock!]! @relationship  main: Stock @relationship
    }
    type Warehouse @node(partition: "WAREHOUSE#{number}", sort: "warehouse", ref: "W#{number}") {
      number: ID!  city: String  stock: [Stock!]! @relationship
    }
    type Stock @edge(partition: "{product}", sort: "{warehouse}") {
      product: Product!  warehouse: Warehouse!  quantity: String
    }"""
)
STOCKED = [
    item("PRODUCT#1", "product", name="Banana"),
    item("WAREHOUSE#7", "warehouse", city="Oslo"),
    item("P#1", "W#7", quantity="12"),
]


async def test_edge_items_are_reached_where_a_field_is_of_their_type(serve: Serve) -> None:
    served = await serve(STOCK, STOCKED)

    data = await served.data(
        """{ product(number: "1") {
          stock { nodes { quantity warehouse { number city } product { name } } }
          main { quantity }
        }
        warehouse(number: "7") { stock { edges { node { quantity product { number name } } } } }
        stock(product: "1", warehouse: "7") { quantity } }"""
    )

    nodes = [{"quantity": "12", "warehouse": {"number": "7", "city": "Oslo"}, "product": {"name": "Banana"}}]
    assert data["product"] == {"stock": {"nodes": nodes}, "main": {"quantity": "12"}}
    edges = [{"node": {"quantity": "12", "product": {"number": "1", "name": "Banana"}}}]
    assert data["warehouse"] == {"stock": {"edges": edges}}
    assert data["stock"] == {"quantity": "12"}


async def test_an_end_that_is_gone_is_an_error_only_where_the_model_promises_it(serve: Serve) -> None:
    served = await serve(STOCK, [*STOCKED, item("P#1", "W#8", quantity="5")])

    body = await served('{ product(number: "1") { stock { nodes { quantity warehouse { city } } } } }')

    present = {"quantity": "12", "warehouse": {"city": "Oslo"}}
    assert body["data"] == {"product": {"stock": {"nodes": [present, None]}}}
    (error,) = body["errors"]
    assert error["path"] == ["product", "stock", "nodes", 1, "warehouse"]
