"""A small library, and whether its table is right: what no sequence of writes may break."""

from __future__ import annotations

from tests.conftest import Serve, Served
from tests.written import Stored

LIBRARY = """extend schema
  @table(name: "library", partitionKey: "pk", sortKey: "sk")
  @index(name: "turned", partitionKey: "sk", sortKey: "pk")
type Shelf @node(partition: "SHELF#{name}", sort: "IN#{room}", ref: "SHELF#{name}") {
  name: ID!  room: String!  note: String  visits: Int
  books: [Book!]! @relationship  count: Int! @count(of: "books")
  grams: Int @count(of: "books.grams")  version: Int @version
}
type Book @node(key: "BOOK#{title}") { title: ID!  shelves: [Shelf!]! @relationship  read: Int  about: String }
type Standing @edge(partition: "{shelf}", sort: "{book}", copy: "book") {
  shelf: Shelf!  book: Book!  grams: Int  color: String
}
"""


async def library(serve: Serve) -> Served:
    """Shelf a with the books x and y, shelf b with none, and a book z on none."""
    served = await serve(LIBRARY)
    await served.data(
        """mutation { createShelf(input: { name: "a", room: "r", books: [
          { grams: 1, book: { create: { title: "x", read: 1 } } },
          { grams: 2, book: { create: { title: "y" } } } ] }) { __typename }
        b: createShelf(input: { name: "b", room: "r" }) { __typename }
        z: createBook(input: { title: "z" }) { __typename } }"""
    )
    return served


def faults(found: Stored) -> list[str]:
    """List what does not agree: edges without ends, copies and counters that are wrong."""
    books = {key[0]: one for key, one in found.items() if key[0].startswith("BOOK#")}
    shelves = {key[0]: one for key, one in found.items() if not key[1].startswith("BOOK#")}
    edges = [one for key, one in found.items() if key[0].startswith("SHELF#") and key[1].startswith("BOOK#")]
    said = [f"{name} has a lock" for name, one in (books | shelves).items() if "tablegraph-lock" in one]
    for edge in edges:
        shelf, book = edge["pk"]["S"], edge["sk"]["S"]
        if shelf not in shelves or book not in books:
            said.append(f"{shelf} / {book} lacks an end")
        elif any(edge.get(name) != books[book].get(name) for name in ("read", "about")):
            said.append(f"{shelf} / {book} holds another copy")
    for name, shelf in shelves.items():
        own = [edge for edge in edges if edge["pk"]["S"] == name]
        if int(shelf["count"]["N"]) != len(own):
            said.append(f"{name} counts {shelf['count']} of {len(own)}")
        if int(shelf["grams"]["N"]) != sum(int(edge["grams"]["N"]) for edge in own):
            said.append(f"{name} weighs {shelf['grams']}")
    return said
