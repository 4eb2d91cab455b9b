"""The API as a subgraph of Apollo Federation 2: the keys of its node types, and what only a gateway asks for.

Source: https://www.apollographql.com/docs/graphos/schema-design/federated-schemas/reference/subgraph-spec
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

import strawberry
from graphql import FieldNode, GraphQLError, ValidationContext, ValidationRule
from strawberry import UNSET
from strawberry.federation import Schema
from strawberry.federation.schema import FederationAny
from strawberry.federation.schema_directives import Key, Shareable
from strawberry.federation.types import FieldSet
from strawberry.printer import print_schema
from strawberry.types.field import StrawberryField
from strawberry.types.union import StrawberryUnion

from graph.entity import Entity
from graph.errors import GraphError, IdError
from graph.keys import Path
from graph.levels import Outcome, get_each
from graph.loaders import Operation
from graph.lookups import has_fields
from graph.model import FieldKind, ItemType, Model, TypeRef
from graph.patterns import lookup_arguments
from graph.permissions import Permissions
from graph.rules import Right
from graph.scalars import ID, Scalar
from resolvers.fields import annotation, argument, entry_field, resolver_field, value_field
from resolvers.inputs import definition
from resolvers.node import read_id
from resolvers.selection import Selection

Federation = Literal["off", "on", "without-node"]
"""Whether an API is a subgraph, and whether it then has `node` and `nodes`: one subgraph of a supergraph may."""

VERSION: Final = "2.0"
"""The specification that the schema links to: the first that has all that is said here, so any gateway knows it."""
SERVICE = "_service"
BAD_REPRESENTATION = "BAD_REPRESENTATION"

FieldKey = Mapping[Path, Scalar]
"""The fields that make up a key, by their paths through other nodes."""


def key_of(model: Model, item: ItemType) -> FieldKey | None:
    """Give the fields that a node is known by, those that its root lookup asks for; None where none can be selected.

    The tenant is among them: a gateway takes what has the same key for the same entity.
    """
    found: dict[Path, Scalar] = {}
    for path, is_required in lookup_arguments(model, item).values():
        if is_required or path in item.tenants:
            scalar = _scalar_at(model, item, path)
            if scalar is None:
                return None
            found[path] = scalar
    return found


def _scalar_at(model: Model, item: ItemType, path: Path) -> Scalar | None:
    """Give the scalar at the end of a path; None where a node on the way is of a union or an interface."""
    field = item.fields[path[0]]
    if len(path) == 1:
        return field.scalar if field.kind is FieldKind.ATTRIBUTE else None
    node = model.items.get(field.type.named)
    return None if node is None else _scalar_at(model, node, path[1:])


def field_set(paths: Sequence[Path]) -> str:
    """Write paths as a selection: `order { number } position`."""
    below: dict[str, list[Path]] = {}
    for path in paths:
        below.setdefault(path[0], []).append(path[1:])
    return " ".join(name if rest == [()] else f"{name} {{ {field_set(rest)} }}" for name, rest in below.items())


class Entities:
    """Finds the nodes that gateways name by representations, like `{"__typename": "Pallet", "number": "B021002"}`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._keys = {item.name: key_of(model, item) for item in model.nodes}

    def field_sets(self, name: str) -> Iterator[str]:
        """List the keys of a type."""
        yield "id"
        key = self._keys[name]
        if key is not None:
            yield field_set([*key])

    async def of(self, operation: Operation, representations: Sequence[Any]) -> list[Any]:
        """Get the entities, in order: None for one that does not exist, its error for one that cannot be read.

        Cost: BatchGetItems of 100 for all of them together; a Query for each of which the key gives only fields.
        """
        permissions = operation.permissions
        found: list[Any] = [self._read(representation, permissions) for representation in representations]
        numbers = [number for number, one in enumerate(found) if isinstance(one, Entity)]
        named = [found[number] for number in numbers]
        for number, one, outcome in zip(numbers, named, await get_each(operation, named), strict=True):
            found[number] = _if_named(outcome, one)
        return found

    def _read(self, representation: Any, permissions: Permissions | None) -> Entity | Exception | None:
        try:
            return self._named(representation, permissions)
        except (GraphQLError, IdError) as error:
            return error

    def _named(self, representation: Any, permissions: Permissions | None) -> Entity | None:
        """Read the node that a representation names; None for a type of which the caller may read nothing.

        Raises: GraphQLError, or IdError.
        """
        if not isinstance(representation, dict):
            raise _refused(f"expected an object with __typename and a key, got {reprlib.repr(representation)}")
        name = representation.get("__typename")
        if not isinstance(name, str) or name not in self._keys:
            raise _refused(f"expected the __typename of a type with @key of this subgraph, got {reprlib.repr(name)}")
        if permissions is not None and permissions.of(name, Right.READ).never:
            return None
        if representation.get("id") is not None:
            entity = read_id(self._model, _checked(representation["id"], ID, f"{name}.id"))
            if entity.type.name != name:
                raise _refused(f"expected the id of a {name}, got that of a {entity.type.name}")
            return entity
        key = self._keys[name]
        if key is None:
            raise _refused(f"expected a {name} by its `id`, got none")
        named: dict[Path, Any] = {}
        for path, scalar in key.items():
            value: Any = representation
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            what = ".".join((name, *path))
            if value is None:
                raise _refused(f"expected a {name} by its `id`, or by `{field_set([*key])}`: got no {what}")
            named[path] = _checked(value, scalar, what)
        return Entity(self._model, self._model.items[name], named=named)


def _checked(value: Any, scalar: Scalar, what: str) -> Any:
    try:
        return scalar.check(value)
    except ValueError as error:
        raise _refused(f"{what} expects {error}, got {reprlib.repr(value)}") from None


def _if_named(outcome: Outcome, named: Entity) -> Outcome:
    """Give what was found for a representation, unless it is another node: its key was not all known."""
    try:
        return None if isinstance(outcome, Entity) and not has_fields(outcome, named) else outcome
    except GraphError as error:
        return error


def _refused(message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"code": BAD_REPRESENTATION})


class Subgraph:
    """What an API has besides as a subgraph: keys on its types, and two fields of Query."""

    def __init__(self, model: Model, class_of: Callable[[str], Any]) -> None:
        """Take the model and its types, to which the directives are added."""
        self._entities = Entities(model)
        self._model = model
        self._nodes = [class_of(item.name) for item in model.nodes]
        self._schema: strawberry.Schema | None = None
        for item in model.nodes:
            keys = self._entities.field_sets(item.name)
            definition(class_of(item.name)).directives = [Key(fields=FieldSet(key), resolvable=UNSET) for key in keys]
        definition(class_of("PageInfo")).directives = [Shareable()]

    def schema(self, query: Any, mutation: Any, subscription: Any, **options: Any) -> strawberry.Schema:
        """Make the schema, as Strawberry does."""
        self._schema = Schema(query, mutation, subscription, federation_version=VERSION, **options)
        return self._schema

    @cached_property
    def sdl(self) -> str:
        """Print the schema."""
        assert self._schema is not None, "nobody asks before it is made"
        return print_schema(self._schema) + "\n"

    def fields(self) -> list[StrawberryField]:
        """Make the fields of Query that only gateways ask for."""
        return [self._service_field(), *([self._entities_field()] if self._nodes else [])]

    def _service_field(self) -> StrawberryField:
        service = strawberry.type(type("Service", (), {}), name="_Service", description="What a gateway composes.")
        definition(service).fields = [entry_field("sdl", annotation(str), "The schema, with federation's directives.")]
        return value_field(SERVICE, annotation(service), lambda _: {"sdl": self.sdl})

    def _entities_field(self) -> StrawberryField:
        async def resolve(_: Any, operation: Operation, arguments: Mapping[str, Any], __: Selection) -> Any:
            return await self._entities.of(operation, arguments["representations"])

        entity = StrawberryUnion("_Entity", tuple(annotation(node) for node in self._nodes), "Any type with @key.")
        return resolver_field(
            "_entities",
            annotation(entity, TypeRef(True, of=TypeRef(False))),
            resolve,
            self._model.possible,
            [argument("representations", annotation(FederationAny, TypeRef(True, of=TypeRef(True))))],
            "The entities that a gateway names, in its order, with null for those that do not exist.",
        )


class NoServiceRule(ValidationRule):
    """Refuses `_service` where introspection is refused: it tells as much."""

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        """Refuse the field."""
        context: ValidationContext = self.context
        if node.name.value == SERVICE and context.get_parent_type() is context.schema.query_type:
            message = (
                "introspection is switched off, and `_service` tells the whole schema: compose the supergraph of what "
                "`tablegraph schema --federation` prints, or switch introspection on"
            )
            self.report_error(GraphQLError(message, node))
