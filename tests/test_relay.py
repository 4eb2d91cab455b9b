"""The GraphQL Cursor Connections and Global Object Identification specifications of Relay, sentence by sentence.

Sentences are quoted from relay.dev/graphql/connections.htm (ids C…) and relay.dev/graphql/objectidentification.htm
(ids N…), numbered by section. Where we do otherwise, the test says what, and why.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from graphql import (
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    build_schema,
    get_named_type,
    get_nullable_type,
    is_list_type,
)

from graph.client import Transport
from graph.errors import ModelError
from resolvers.schema import print_sdl
from resolvers.sdl import compile_model
from tests.conftest import ROOT, Serve, Served
from tests.fleet import DAYS, FLEET, Loading, World

# --- the API in question ------------------------------------------------------------------------------------------

SCHEMAS = [build_schema(print_sdl(compile_model(path.read_text()))) for path in ROOT.glob("examples/*/schema.graphql")]
SCHEMAS.append(build_schema(print_sdl(compile_model((ROOT / "schema.graphql").read_text()))))


def types() -> Iterator[tuple[GraphQLSchema, GraphQLNamedType]]:
    """List every type of every example's API."""
    for schema in SCHEMAS:
        yield from ((schema, type_) for type_ in schema.type_map.values())


def connections() -> Iterator[GraphQLObjectType]:
    """List every connection type."""
    found = [type_ for _, type_ in types() if type_.name.endswith("Connection")]
    assert len(found) > 20
    for type_ in found:
        assert isinstance(type_, GraphQLObjectType)
        yield type_


def edges() -> Iterator[GraphQLObjectType]:
    """List every edge type."""
    for connection in connections():
        edge = get_named_type(connection.fields["edges"].type)
        assert isinstance(edge, GraphQLObjectType)
        yield edge


NUMBERS = ["1", "2", "3", "4", "5"]


@dataclass
class Ship:
    """A ship with five crates, of which number 3 has an item of its own."""

    served: Served
    transport: Transport

    async def data(self, query: str, variables: Mapping[str, Any] | None = None) -> Any:
        """Execute an operation that must not fail and give its data."""
        return await self.served.data(query, variables)

    async def error_code(self, query: str) -> str:
        """Execute an operation that must fail and give the code of its error."""
        return str((await self.served.error(query))["extensions"]["code"])

    async def delete(self, partition: str, sort: str) -> None:
        """Delete an item."""
        key = {"PK": {"S": partition}, "SK": {"S": sort}}
        await self.transport("DeleteItem", {"TableName": self.served.table, "Key": key})


@pytest.fixture
async def ship(serve: Serve, transport: Transport) -> Ship:
    """Load and serve the ship."""
    crates = frozenset(Loading("1", number, DAYS[0], "X", "DOCKED", None) for number in NUMBERS)
    return Ship(await serve(FLEET, World(frozenset(["1"]), crates, {"3": 7}).wires()), transport)


async def page(ship: Ship, arguments: str = "") -> Any:
    """Ask for a page of the ship's crates; an argument may be {3}, the cursor of the crate with this number."""
    whole = (await ship.data('{ ship(number: "1") { crates { edges { cursor } } } }'))["ship"]["crates"]["edges"]
    for number, edge in zip(NUMBERS, whole, strict=True):
        arguments = arguments.replace(f"{{{number}}}", f'"{edge["cursor"]}"')
    fields = "edges { cursor node { number } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }"
    asked = f"({arguments})" if arguments else ""
    return (await ship.data(f'{{ ship(number: "1") {{ crates{asked} {{ {fields} }} }} }}'))["ship"]["crates"]


async def numbers(ship: Ship, arguments: str) -> list[str]:
    """List the numbers of the crates of a page."""
    return [edge["node"]["number"] for edge in (await page(ship, arguments))["edges"]]


async def introspect(ship: Ship, type_name: str) -> dict[str, Any]:
    """Ask for the fields of a type as the specification does."""
    data = await ship.data(
        f'{{ __type(name: "{type_name}") {{ fields {{ name type {{ name kind ofType {{ name kind }} }} }} }} }}'
    )
    return {field["name"]: field["type"] for field in data["__type"]["fields"]}


# --- the sentences ------------------------------------------------------------------------------------------------

Check = Callable[[Ship], Awaitable[None]]
SENTENCES: list[Any] = []


def sentence(id_: str, text: str) -> Callable[[Check], Check]:
    """Make a check the test of a sentence."""

    def register(check: Check) -> Check:
        SENTENCES.append(pytest.param(check, id=f"{id_} {text}"))
        return check

    return register


# --- Connections: reserved types ----------------------------------------------------------------------------------


def refuses_type(name: str) -> bool:
    """Say whether a model may not have a type of this name."""
    model = 'extend schema @table(name: "things", partitionKey: "PK")'
    try:
        compile_model(f'{model} type {name} @node(partition: "{{number}}") {{ number: ID! }}')
    except ModelError as refused:
        return "is taken" in str(refused)
    return False


@sentence("C2.1", 'A server must reserve "any object whose name ends in Connection".')
async def _(_: Ship) -> None:
    assert refuses_type("TradeConnection")


@sentence("C2.2", 'A server must reserve "an object named PageInfo".')
async def _(_: Ship) -> None:
    assert refuses_type("PageInfo")


# --- Connections: connection types --------------------------------------------------------------------------------


@sentence("C3.1", 'Connection types must be an "Object".')
async def _(_: Ship) -> None:
    assert all(isinstance(connection, GraphQLObjectType) for connection in connections())


@sentence("C3.2", "Connection types must have fields named edges and pageInfo.")
async def _(_: Ship) -> None:
    assert all({"edges", "pageInfo"} <= connection.fields.keys() for connection in connections())


@sentence("C3.3", "edges must return a list type that wraps an edge type.")
async def _(_: Ship) -> None:
    for connection in connections():
        wrapped = get_nullable_type(connection.fields["edges"].type)
        assert isinstance(wrapped, GraphQLList)
        assert isinstance(get_nullable_type(wrapped.of_type), GraphQLObjectType)


@sentence("C3.4", "pageInfo must return a non-null PageInfo object.")
async def _(_: Ship) -> None:
    assert {str(connection.fields["pageInfo"].type) for connection in connections()} == {"PageInfo!"}


@sentence("C3.5", "A server accepts the introspection of a connection and answers as provided.")
async def _(ship: Ship) -> None:
    fields = await introspect(ship, "ShipCratesConnection")

    assert fields["pageInfo"] == {"name": None, "kind": "NON_NULL", "ofType": {"name": "PageInfo", "kind": "OBJECT"}}
    # Provided is a nullable list. Ours is non-null: an empty connection has an empty list, and clients need no check.
    assert fields["edges"] == {"name": None, "kind": "NON_NULL", "ofType": {"name": None, "kind": "LIST"}}


# --- Connections: edge types --------------------------------------------------------------------------------------


@sentence("C4.1", 'Edge types must be an "Object".')
async def _(_: Ship) -> None:
    assert all(isinstance(edge, GraphQLObjectType) for edge in edges())


@sentence("C4.2", "Edge types must have fields named node and cursor.")
async def _(_: Ship) -> None:
    assert all({"node", "cursor"} <= edge.fields.keys() for edge in edges())


@sentence("C4.3", "node must return a Scalar, Enum, Object, Interface, Union, or a non-null of those, and not a list.")
async def _(_: Ship) -> None:
    assert not any(is_list_type(get_nullable_type(edge.fields["node"].type)) for edge in edges())


@sentence("C4.4", "cursor must return a type that serializes as a String.")
async def _(_: Ship) -> None:
    assert {str(edge.fields["cursor"].type) for edge in edges()} == {"String!"}


@sentence("C4.5", "A server accepts the introspection of an edge type and answers as provided.")
async def _(ship: Ship) -> None:
    fields = await introspect(ship, "ShipCratesEdge")

    assert fields["node"] == {"name": "Crate", "kind": "OBJECT", "ofType": None}
    assert fields["cursor"] == {"name": None, "kind": "NON_NULL", "ofType": {"name": "String", "kind": "SCALAR"}}


# --- Connections: arguments ---------------------------------------------------------------------------------------


def fields_to_connections() -> Iterator[dict[str, str]]:
    """List the arguments of every field that returns a connection type."""
    for _, type_ in types():
        if isinstance(type_, (GraphQLObjectType, GraphQLInterfaceType)):
            for field in type_.fields.values():
                if get_named_type(field.type).name.endswith("Connection"):
                    yield {name: str(argument.type) for name, argument in field.args.items()}


@sentence("C5.1", "A field that returns a connection must include forward or backward pagination arguments, or both.")
async def _(_: Ship) -> None:
    found = list(fields_to_connections())

    assert len(found) > 20
    for arguments in found:
        assert {"first", "after"} <= arguments.keys()
        assert ("last" in arguments) is ("before" in arguments)


@sentence("C5.2", "first and last take a non-negative integer.")
async def _(ship: Ship) -> None:
    assert {arguments["first"] for arguments in fields_to_connections()} == {"Int"}
    assert {arguments.get("last", "Int") for arguments in fields_to_connections()} == {"Int"}
    assert await numbers(ship, "first: 0") == await numbers(ship, "last: 0") == []


@sentence("C5.3", "after and before take the cursor type.")
async def _(ship: Ship) -> None:
    assert {arguments["after"] for arguments in fields_to_connections()} == {"String"}
    assert {arguments.get("before", "String") for arguments in fields_to_connections()} == {"String"}


@sentence("C5.4", "The server returns edges after the after cursor, and at most first edges.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "first: 2, after: {2}") == ["3", "4"]


@sentence("C5.5", "The server returns edges before the before cursor, and at most last edges.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "last: 2, before: {5}") == ["3", "4"]


@sentence("C5.6", "The ordering must be consistent from page to page.")
async def _(ship: Ship) -> None:
    pages = ["first: 2", "first: 2, after: {2}", "first: 2, after: {4}"]

    assert [number for arguments in pages for number in await numbers(ship, arguments)] == NUMBERS


@sentence("C5.7", "The ordering of edges should be the same when using first/after as when using last/before.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "first: 5") == await numbers(ship, "last: 5") == NUMBERS


@sentence("C5.8", "When before: cursor is used, the edge closest to cursor must come last.")
async def _(ship: Ship) -> None:
    assert (await numbers(ship, "last: 3, before: {5}"))[-1] == "4"


@sentence("C5.9", "When after: cursor is used, the edge closest to cursor must come first.")
async def _(ship: Ship) -> None:
    assert (await numbers(ship, "first: 3, after: {1}"))[0] == "2"


# --- Connections: pagination algorithm ----------------------------------------------------------------------------


@sentence("C6.1", "If first is less than 0: throw an error.")
async def _(ship: Ship) -> None:
    assert await ship.error_code('{ ship(number: "1") { crates(first: -1) { nodes { number } } } }') == "BAD_PAGE"


@sentence("C6.2", "If last is less than 0: throw an error.")
async def _(ship: Ship) -> None:
    assert await ship.error_code('{ ship(number: "1") { crates(last: -1) { nodes { number } } } }') == "BAD_PAGE"


@sentence("C6.3", "If edges has length greater than first: remove edges from the end.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "first: 3") == ["1", "2", "3"]
    assert await numbers(ship, "first: 9") == NUMBERS


@sentence("C6.4", "If edges has length greater than last: remove edges from the start.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "last: 3") == ["3", "4", "5"]
    assert await numbers(ship, "last: 9") == NUMBERS


@sentence("C6.5", "If afterEdge exists: remove all elements of edges before and including afterEdge.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "after: {2}") == ["3", "4", "5"]


@sentence("C6.6", "If beforeEdge exists: remove all elements of edges after and including beforeEdge.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "before: {4}") == ["1", "2", "3"]


@sentence("C6.7", "The cursors filter the edges, then first slices them, then last.")
async def _(ship: Ship) -> None:
    assert await numbers(ship, "first: 2, after: {1}, before: {5}") == ["2", "3"]
    assert await numbers(ship, "last: 2, after: {1}, before: {5}") == ["3", "4"]


@sentence("C6.8", "Including a value for both first and last is strongly discouraged.")
async def _(ship: Ship) -> None:
    # Discouraged as confusing, and refused here: whoever sends both has mistaken one for the other.
    assert (
        await ship.error_code('{ ship(number: "1") { crates(first: 1, last: 1) { nodes { number } } } }') == "BAD_PAGE"
    )


@sentence("C6.9", "If afterEdge does not exist, nothing is removed.")
async def _(ship: Ship) -> None:
    # A deleted edge would then begin the list anew. A cursor is a place here, and the page goes on from it.
    cursor = (await page(ship, "first: 2"))["pageInfo"]["endCursor"]
    await ship.delete("SHIP#1", "CRATE#2")

    data = await ship.data(f'{{ ship(number: "1") {{ crates(after: "{cursor}") {{ nodes {{ number }} }} }} }}')

    assert [node["number"] for node in data["ship"]["crates"]["nodes"]] == ["3", "4", "5"]


@sentence("C6.10", "If beforeEdge is not among the edges after afterEdge, nothing more is removed.")
async def _(ship: Ship) -> None:
    # By the letter, cursors the wrong way round give all after the first. As in graphql-relay-js nothing lies between.
    assert await numbers(ship, "after: {4}, before: {2}") == []
    assert await numbers(ship, "after: {3}, before: {3}") == []


# --- Connections: PageInfo ----------------------------------------------------------------------------------------


@sentence("C7.1", "PageInfo must contain fields hasPreviousPage and hasNextPage, which return non-null booleans.")
async def _(ship: Ship) -> None:
    fields = await introspect(ship, "PageInfo")

    boolean = {"name": None, "kind": "NON_NULL", "ofType": {"name": "Boolean", "kind": "SCALAR"}}
    assert (fields["hasNextPage"], fields["hasPreviousPage"]) == (boolean, boolean)


@sentence("C7.2", "PageInfo must contain fields startCursor and endCursor, which return opaque strings.")
async def _(ship: Ship) -> None:
    fields = await introspect(ship, "PageInfo")

    # Nullable since facebook/relay#2655: there is no cursor of no edge.
    string = {"name": "String", "kind": "SCALAR", "ofType": None}
    assert (fields["startCursor"], fields["endCursor"]) == (string, string)


@sentence("C7.3", "If last is set: hasPreviousPage is whether edges contains more than last elements.")
async def _(ship: Ship) -> None:
    pages = [await page(ship, f"last: {last}, before: {{4}}") for last in (2, 3)]

    assert [each["pageInfo"]["hasPreviousPage"] for each in pages] == [True, False]


@sentence("C7.4", "If after is set: if elements exist prior to after, hasPreviousPage may be true.")
async def _(ship: Ship) -> None:
    assert (await page(ship, "first: 1, after: {2}"))["pageInfo"]["hasPreviousPage"] is True


@sentence("C7.5", "Else hasPreviousPage is false.")
async def _(ship: Ship) -> None:
    assert (await page(ship, "first: 1"))["pageInfo"]["hasPreviousPage"] is False


@sentence("C7.6", "If first is set: hasNextPage is whether edges contains more than first elements.")
async def _(ship: Ship) -> None:
    pages = [await page(ship, f"first: {first}, after: {{2}}") for first in (2, 3)]

    assert [each["pageInfo"]["hasNextPage"] for each in pages] == [True, False]
    assert (await page(ship, "first: 2, after: {1}, before: {4}"))["pageInfo"]["hasNextPage"] is False


@sentence("C7.7", "If before is set: if elements exist following before, hasNextPage may be true.")
async def _(ship: Ship) -> None:
    assert (await page(ship, "last: 1, before: {4}"))["pageInfo"]["hasNextPage"] is True


@sentence("C7.8", "Else hasNextPage is false.")
async def _(ship: Ship) -> None:
    assert (await page(ship, "last: 1"))["pageInfo"]["hasNextPage"] is False


@sentence("C7.9", "startCursor and endCursor must be the cursors of the first and last nodes in edges.")
async def _(ship: Ship) -> None:
    for arguments in ("first: 2, after: {1}", "last: 2, before: {5}"):
        found = await page(ship, arguments)
        cursors = [edge["cursor"] for edge in found["edges"]]
        assert [found["pageInfo"]["startCursor"], found["pageInfo"]["endCursor"]] == [cursors[0], cursors[-1]]


@sentence("C7.10", "startCursor and endCursor can be null if there are no results.")
async def _(ship: Ship) -> None:
    info = (await page(ship, "after: {5}"))["pageInfo"]

    assert (info["startCursor"], info["endCursor"]) == (None, None)


# --- Object identification ----------------------------------------------------------------------------------------


@sentence("N2.1", "A server must reserve an interface named Node.")
async def _(_: Ship) -> None:
    assert refuses_type("Node")


@sentence("N3.1", "Node must include exactly one field, called id, that returns a non-null ID.")
async def _(_: Ship) -> None:
    for schema in SCHEMAS:
        node = schema.type_map["Node"]
        assert isinstance(node, GraphQLInterfaceType)
        assert {name: str(field.type) for name, field in node.fields.items()} == {"id": "ID!"}


@sentence("N3.2", "A server accepts the introspection of Node and answers as provided.")
async def _(ship: Ship) -> None:
    data = await ship.data('{ __type(name: "Node") { name kind fields { name type { kind ofType { name kind } } } } }')

    id_ = {"name": "id", "type": {"kind": "NON_NULL", "ofType": {"name": "ID", "kind": "SCALAR"}}}
    assert data == {"__type": {"name": "Node", "kind": "INTERFACE", "fields": [id_]}}


@sentence("N3.3", "id should be a globally unique identifier for this object.")
async def _(ship: Ship) -> None:
    data = await ship.data('{ ship(number: "3") { id } crate(number: "3") { id } }')

    assert data["ship"]["id"] != data["crate"]["id"]


@sentence("N4.1", "node returns Node, and must take exactly one argument, a non-null ID named id.")
async def _(_: Ship) -> None:
    for schema in SCHEMAS:
        assert schema.query_type is not None
        field = schema.query_type.fields["node"]
        assert (str(field.type), {name: str(argument.type) for name, argument in field.args.items()}) == (
            "Node",
            {"id": "ID!"},
        )


@sentence("N4.2", "node should refetch the identical object when its id is passed as the id parameter.")
async def _(ship: Ship) -> None:
    crate = (await ship.data('{ crate(number: "3") { __typename id number load } }'))["crate"]

    refetched = await ship.data(
        "query ($id: ID!) { node(id: $id) { __typename id ... on Crate { number load } } }", {"id": crate["id"]}
    )

    assert refetched == {"node": crate}
    assert crate["load"] == 7


@sentence("N4.3", "If the object is gone, the result of querying this field should be null.")
async def _(ship: Ship) -> None:
    id_ = (await ship.data('{ crate(number: "3") { id } }'))["crate"]["id"]
    await ship.delete("CRATE#3", "CRATE#3")

    assert await ship.data("query ($id: ID!) { node(id: $id) { id } }", {"id": id_}) == {"node": None}


@sentence("N4.4", "A server accepts the introspection of node and answers as provided.")
async def _(ship: Ship) -> None:
    data = await ship.data(
        """{ __schema { queryType { fields {
        name type { name kind } args { name type { kind ofType { name kind } } } } } } }"""
    )

    assert {
        "name": "node",
        "type": {"name": "Node", "kind": "INTERFACE"},
        "args": [{"name": "id", "type": {"kind": "NON_NULL", "ofType": {"name": "ID", "kind": "SCALAR"}}}],
    } in data["__schema"]["queryType"]["fields"]


@sentence("N5.1", "If two objects appear in a query with identical ids, then the two objects must be equal.")
async def _(ship: Ship) -> None:
    fields = "id number load"
    data = await ship.data(
        f'{{ crate(number: "3") {{ {fields} }} ship(number: "1") {{ crates {{ nodes {{ {fields} }} }} }} }}'
    )

    assert [node for node in data["ship"]["crates"]["nodes"] if node["id"] == data["crate"]["id"]] == [data["crate"]]


@sentence("N6.1", "A plural identifying root field has one argument, a non-null list of non-nulls, and returns a list.")
async def _(_: Ship) -> None:
    for schema in SCHEMAS:
        assert schema.query_type is not None
        field = schema.query_type.fields["nodes"]
        assert {name: str(argument.type) for name, argument in field.args.items()} == {"ids": "[ID!]!"}
        # Not of non-nulls: what cannot be fetched still has its place.
        assert str(field.type) == "[Node]!"


@sentence("N6.2", "The lists of responses and of arguments have the same length, and each item has its own place.")
async def _(ship: Ship) -> None:
    found = await ship.data('{ crate(number: "3") { id } ship(number: "1") { id } none: ship(number: "9") { id } }')
    ids = [found["crate"]["id"], found["ship"]["id"], "WyJDcmF0ZSIsIkNSQVRFI2dvbmUiXQ", found["crate"]["id"]]

    for given in (ids, ids[::-1]):
        data = await ship.data("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", {"ids": given})
        expected = [None if id_ == ids[2] else {"id": id_} for id_ in given]
        assert data["nodes"] == expected


@pytest.mark.parametrize("check", SENTENCES)
async def test_relay(check: Check, ship: Ship) -> None:
    await check(ship)
