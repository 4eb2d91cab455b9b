"""The words of schema.graphql: the mapping directives and scalars, written in the language that they extend."""

from __future__ import annotations

from functools import cache

from graphql import GraphQLSchema, build_schema

WORDS = '''
"""How field names become attribute names: as written, WeightInKg, or weight_in_kg."""
enum AttributeCase { AS_WRITTEN PASCAL SNAKE }

enum SortOrder { ASC DESC }

"""Whether mirrors, copies and the keys made of them are written together with an item, or follow by the stream."""
enum CopyMode { TRANSACTION STREAM }

"""The time of an item's creation, or of every write of it."""
enum Moment { CREATE WRITE }

"""Who may keep an answer: everybody on the way to the client, or the client alone."""
enum CacheControlScope { PUBLIC PRIVATE }

"""What may be done to an item, or to a field of it."""
enum AuthRight { READ CREATE UPDATE DELETE }

"""A field of the item, or of a node that it names (`order.author`), and the claim of the caller that it equals."""
input AuthField { field: String!  claim: String! = "sub" }

"""A claim that the caller has, with one of these values."""
input AuthClaim { name: String!  in: [String!] }

"""The table: its key attributes, and the attribute that names an item's type, if it has one."""
directive @table(
  name: String!
  partitionKey: String!
  sortKey: String
  type: String
  attributeCase: AttributeCase! = AS_WRITTEN
  copies: CopyMode! = TRANSACTION
) repeatable on SCHEMA

"""
A secondary index. `projection` is "ALL", "KEYS_ONLY" or a list of attributes. A global index may have up to four
attributes in its partition key and as many in its sort key.
"""
directive @index(
  name: String!
  partitionKey: [String!]!
  sortKey: [String!]
  projection: [String!]! = ["ALL"]
  local: Boolean! = false
  table: String
) repeatable on SCHEMA

"""A type with items of its own."""
directive @node(
  partition: String
  sort: String
  key: String
  ref: String
  typeName: String
  virtual: Boolean! = false
  table: String
) repeatable on OBJECT

"""A type whose items stand between two nodes."""
directive @edge(
  partition: String
  sort: String
  key: String
  copy: String
  typeName: String
  table: String
) repeatable on OBJECT

"""
Fills the attributes of an index that neither the item's own key nor a field fills: a template for each, in their order.
"""
directive @indexed(by: String!, partition: [String!], sort: [String!]) repeatable on OBJECT

"""A link to other nodes."""
directive @relationship(
  through: String
  from: String
  path: String
  consistent: Boolean! = false
) on FIELD_DEFINITION

"""The stored attribute's name; how the attribute of a field that names a node does so; whether a list is a set."""
directive @attribute(name: String, ref: String, set: Boolean! = false) on FIELD_DEFINITION

"""A named access pattern."""
directive @find(
  sort: SortOrder! = ASC
  scan: Boolean! = false
  consistent: Boolean! = false
) on FIELD_DEFINITION

"""A stored counter of other items or of a number in them."""
directive @count(of: String!) on FIELD_DEFINITION

"""The number of the item's writes: one is refused that expects another."""
directive @version on FIELD_DEFINITION

"""What the field is when a write does not say: the time, or a new UUID."""
directive @default(now: Moment, uuid: Boolean! = false) on FIELD_DEFINITION

"""A value that may be large: compressed, and with more than `over` bytes an object in a bucket of S3."""
directive @blob(gzip: Boolean! = false, s3: String, over: Int) on FIELD_DEFINITION

"""The second from which on the item no longer exists: DynamoDB deletes it some time later."""
directive @ttl on FIELD_DEFINITION

"""Keeps every version of the items: `versions` lists them, `at(version:)` gives one."""
directive @history on OBJECT

"""
Full-text search: of a type all its texts, or of single fields these alone. `weight` is how much a field counts beside
the others.
"""
directive @search(weight: Float! = 1) on OBJECT | FIELD_DEFINITION

"""
Who may do what. All that one @auth says must hold, and of several any one lets in; nobody else is. `tenant` is a field
that the partition key holds.
"""
directive @auth(
  rights: [AuthRight!]! = [READ, CREATE, UPDATE, DELETE]
  roles: [String!]
  claim: AuthClaim
  owner: AuthField
  tenant: AuthField
  anonymous: Boolean! = false
) repeatable on OBJECT | FIELD_DEFINITION

"""How long an answer may be kept that shows the field, or anything of the type: the strictest of all that it shows."""
directive @cacheControl(
  maxAge: Int
  scope: CacheControlScope
  inheritMaxAge: Boolean
) on FIELD_DEFINITION | OBJECT | INTERFACE | UNION

scalar DateTime
scalar Date
scalar Decimal
scalar BigInt
scalar JSON
scalar Base64
'''

SCALAR_NAMES = ("ID", "String", "Int", "Float", "Boolean", "DateTime", "Date", "Decimal", "BigInt", "JSON", "Base64")

DIRECTIVE_NAMES = (
    *("table", "index", "node", "edge", "indexed", "relationship", "attribute", "find"),
    *("count", "version", "default", "history", "ttl", "blob", "search", "auth", "cacheControl"),
)

RESERVED_TYPES = {
    "Node": "Relay's interface of everything that has a global id",
    "PageInfo": "Relay's type of what lies around a page",
    "ChangeKind": "the enum of what became of a node or an edge",
    "Match": "the enum of the `match` argument",
    **dict.fromkeys(SCALAR_NAMES, "a scalar"),
}

PAGING_ARGUMENTS = ("first", "after", "last", "before", "where", "order", "match", "fresh")

RESOLVER_ARGUMENTS = ("info", "_source")
"""What Strawberry hands to every resolver by name."""

WHERE_FIELDS = ("and", "or", "not")


@cache
def words_schema() -> GraphQLSchema:
    """Build the schema that holds nothing but the words, to read directive arguments by."""
    return build_schema(WORDS + "type Query { words: Boolean }")
