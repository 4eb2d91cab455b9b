"""What a caller may ask for: fields that nobody of their kind may read are refused, before anything is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    GraphQLError,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    get_named_type,
    visit,
)

from graph.errors import Forbidden
from graph.model import Field, Model
from graph.permissions import Permissions
from graph.rules import Right
from resolvers import meanings
from resolvers.meanings import Attribute, Follows, Meaning, Reference, ToMany, ToOne, Writes, meaning_of


class Permitted:
    """Says which fields of a schema a caller may ask for at all."""

    def __init__(self, schema: GraphQLSchema, model: Model) -> None:
        self._schema = schema
        self._model = model

    def errors(self, document: DocumentNode, permissions: Permissions) -> list[GraphQLError]:
        """List what a document asks for and its caller may not read, whichever item it is of."""
        if not permissions.denied:
            return []
        info = TypeInfo(self._schema)
        errors: list[GraphQLError] = []
        permitted = self

        class Fields(Visitor):
            def enter_field(self, node: FieldNode, *_: Any) -> Any:
                parent, definition = info.get_parent_type(), info.get_field_def()
                if parent is None or definition is None:
                    return None
                reason = permitted.reason(parent, node.name.value, definition, permissions)
                if reason is None:
                    return None
                errors.append(refusal(reason, node, permissions))
                # One error tells enough of what lies below.
                return self.SKIP

        for node in document.definitions:
            visit(node, TypeInfoVisitor(info, Fields()))
        return errors

    def reason(self, parent: GraphQLNamedType, name: str, field: GraphQLField, permissions: Permissions) -> str | None:
        """Say what keeps the caller from a field: `Order`, or `Order.total`; None where nothing does."""
        if name.startswith("__"):
            return None
        if self._never_read(permissions, [parent.name] if parent.name in self._model.items else []):
            return parent.name
        meaning = meaning_of(field)
        if parent is self._schema.query_type and permissions.of_find(name).never:
            return f"Query.{name}"
        if (own := self._own(meaning)) is not None and permissions.by(own.auth, Right.READ).never:
            return f"{parent.name}.{name}"
        for types in (_read_for(meaning), self._found(get_named_type(field.type))):
            if self._never_read(permissions, types):
                return " or ".join(types)
        if isinstance(meaning, Writes) and any(permissions.of(meaning.item.name, one).never for one in meaning.rights):
            return f"{parent.name}.{name}"
        return None

    @staticmethod
    def _never_read(permissions: Permissions, types: Sequence[str]) -> bool:
        return bool(types) and all(permissions.of(name, Right.READ).never for name in types)

    def _own(self, meaning: Meaning | None) -> Field | None:
        """Give the field of the model that a field of the API stands for."""
        match meaning:
            case Attribute(field) | Reference(field):
                return field
            case ToOne(relationship) | ToMany(relationship):
                return self._model.items[relationship.source].fields[relationship.name]
        return None

    def _found(self, named: GraphQLNamedType) -> Sequence[str]:
        """List the item types that a type stands for: itself, or what a connection leads to."""
        if isinstance(named, GraphQLObjectType) and "pageInfo" in named.fields and "nodes" in named.fields:
            named = get_named_type(named.fields["nodes"].type)
        return () if named.name == "Node" else sorted(self._model.possible(named.name))


def _read_for(meaning: Meaning | None) -> Sequence[str]:
    """List the types of the items that are read for a field, whatever they lead to."""
    match meaning:
        case ToOne(relationship) | ToMany(relationship):
            return (relationship.path or (relationship,))[0].item_types
        case meanings.Find(find):
            return find.item_types
        case Follows(item_types):
            return item_types
    return ()


def refusal(subject: str, node: FieldNode, permissions: Permissions) -> GraphQLError:
    """Say that a caller may not ask for something."""
    if permissions.subject is None:
        message = f"`{subject}` is not for callers without credentials: send them with the request"
        return GraphQLError(message, node, extensions={"code": "UNAUTHENTICATED"})
    message = (
        f"`{subject}` is not yours to ask for: leave it out, or ask whoever gave you your credentials for the right"
    )
    return GraphQLError(message, node, extensions={"code": Forbidden.code})
