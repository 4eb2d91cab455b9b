"""How long the answer of an operation may be kept: the strictest of what `@cacheControl` says of all that it shows.

As Apollo Server has it: a field takes its own hint before that of the type that it gives; a field of Query, or one that
gives items, without any is not to be kept; all else is kept as long as what it belongs to. A connection is a field that
gives its nodes, and an object without items of its own belongs to the item that it lies in.

Source: https://www.apollographql.com/docs/apollo-server/performance/caching
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    get_named_type,
    is_abstract_type,
    is_composite_type,
)

from graph.model import CacheHint, Model, Relationship
from graph.model import Find as FindPattern
from resolvers.meanings import Find, Meaning, Part, ToMany, meaning_of
from resolvers.operation import CachePolicy
from resolvers.operation_visit import OperationVisitor

NOTHING = CacheHint()
NEVER = CacheHint(0)


class Caching:
    """Which answers may be kept: decided by an operation's text, whatever its variables are."""

    def __init__(self, schema: GraphQLSchema, model: Model) -> None:
        self._schema = schema
        self._model = model
        self._hints = model.cache_hints
        self._edge_items: dict[str, str] = {}
        """The item type whose fields the edges of a connection have, by the edges' type."""
        self._known: dict[tuple[str, str], CacheHint] = {}
        for type_ in schema.type_map.values() if self._hints else ():
            for field in type_.fields.values() if isinstance(type_, GraphQLObjectType) else ():
                if (pattern := _pattern(meaning_of(field))) is not None:
                    self._edge_items[_edge(_object(field)).name] = pattern.item_types[0]

    def policy(self, document: DocumentNode, definition: OperationDefinitionNode) -> CachePolicy | None:
        """Give the policy of an operation's answers; a field that is left out by @skip counts all the same.

        Cost: a visit of the operation and of each fragment that it spreads, where the model has any hint.
        """
        if not self._hints or definition.operation is not OperationType.QUERY:
            return None
        fields = _Fields(self._schema)
        fields.visit(document, definition)
        found = _strictest(self._hint(parent, name) for parent, name in fields.found)
        if not found.max_age_secs:
            return None
        return CachePolicy(found.max_age_secs, bool(found.is_private))

    def _hint(self, parent: GraphQLNamedType, name: str) -> CacheHint:
        """Say what showing a field asks for."""
        key = (parent.name, name)
        if key not in self._known:
            if isinstance(parent, GraphQLObjectType):
                self._known[key] = self._hint_of_field(parent, name)
            else:
                # What stands for it has the field, each with a hint of its own.
                possible = self._schema.get_possible_types(parent) if is_abstract_type(parent) else ()
                self._known[key] = _strictest(self._hint(type_, name) for type_ in possible)
        return self._known[key]

    def _hint_of_field(self, parent: GraphQLObjectType, name: str) -> CacheHint:
        if name.startswith("__"):
            return NOTHING if name == "__typename" else NEVER
        field = parent.fields[name]
        meaning = meaning_of(field)
        if isinstance(meaning, Part):
            return NOTHING
        own = self._hints.get((self._edge_items.get(parent.name, parent.name), name), NOTHING)
        given, gives_items = self._given(field, meaning)
        hint = _over(own, given)
        is_due = parent is self._schema.query_type or (gives_items and not hint.inherits)
        return CacheHint(0, hint.is_private) if hint.max_age_secs is None and is_due else hint

    def _given(self, field: GraphQLField, meaning: Meaning | None) -> tuple[CacheHint, bool]:
        """Say what the type asks for that a field gives, and whether that has items."""
        named = get_named_type(field.type)
        if not is_composite_type(named):
            return NOTHING, False
        if not _is_connection(named):
            return self._of_type(named), self._has_items(named)
        nodes = self._of_type(get_named_type(_edge(_object(field)).fields["node"].type))
        pattern = _pattern(meaning)
        if pattern is None:
            return nodes, True
        # What stands between the two ends is shown as the edge, and may make it stricter.
        owners: list[tuple[str, str | None]] = [(pattern.item_types[0], None), (pattern.item_types[0], pattern.end)]
        found = _strictest([nodes, *(self._hints.get(owner, NOTHING) for owner in owners)])
        is_silent = nodes.max_age_secs is None and not nodes.inherits
        return CacheHint(None if is_silent else found.max_age_secs, found.is_private, nodes.inherits), True

    def _of_type(self, named: GraphQLNamedType) -> CacheHint:
        own = self._hints.get((named.name, None))
        if own is not None or not is_abstract_type(named):
            return own or NOTHING
        hints = [self._hints.get((type_.name, None), NOTHING) for type_ in self._schema.get_possible_types(named)]
        found = _strictest(hints)
        # One that says nothing is not to be kept, and may be the one that is shown.
        is_silent = any(hint.max_age_secs is None and not hint.inherits for hint in hints)
        inherits = bool(hints) and all(hint.inherits for hint in hints)
        return CacheHint(None if is_silent else found.max_age_secs, found.is_private, inherits)

    def _has_items(self, named: GraphQLNamedType) -> bool:
        if is_abstract_type(named):
            return any(type_.name in self._model.items for type_ in self._schema.get_possible_types(named))
        return named.name in self._model.items


class _Fields(OperationVisitor):
    """Finds the fields that are selected."""

    def __init__(self, schema: GraphQLSchema) -> None:
        super().__init__(schema)
        self.found: list[tuple[GraphQLNamedType, str]] = []

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        parent = self.info.get_parent_type()
        assert parent is not None, "the document is valid"
        self.found.append((parent, node.name.value))


def _strictest(hints: Iterable[CacheHint]) -> CacheHint:
    """Give what several hints allow together; what says nothing forbids nothing."""
    ages: list[int] = []
    is_private = None
    for hint in hints:
        if hint.max_age_secs is not None:
            ages.append(hint.max_age_secs)
        if hint.is_private is not None:
            is_private = is_private or hint.is_private
    return CacheHint(min(ages, default=None), is_private)


def _over(own: CacheHint, given: CacheHint) -> CacheHint:
    """Put a field's hint over that of the type that it gives."""
    is_private = given.is_private if own.is_private is None else own.is_private
    max_age_secs = given.max_age_secs if own.max_age_secs is None else own.max_age_secs
    return CacheHint(max_age_secs, is_private, own.inherits or given.inherits)


def _object(field: GraphQLField) -> GraphQLObjectType:
    named = get_named_type(field.type)
    assert isinstance(named, GraphQLObjectType)
    return named


def _is_connection(named: GraphQLNamedType) -> bool:
    return isinstance(named, GraphQLObjectType) and "edges" in named.fields and "pageInfo" in named.fields


def _edge(connection: GraphQLObjectType) -> GraphQLObjectType:
    return _object(connection.fields["edges"])


def _pattern(meaning: Meaning | None) -> Relationship | FindPattern | None:
    """Give what a connection is read by at last, where items stand between its two ends."""
    found: Relationship | FindPattern | None = None
    match meaning:
        case ToMany(relationship):
            found = relationship.path[-1] if relationship.path else relationship
        case Find(find) if find.many:
            found = find
    return found if found is not None and found.end is not None else None
