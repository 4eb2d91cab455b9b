"""The API as a caller sees it: all of it or, where that is asked for, without what they may not ask for."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from graphql import GraphQLField, GraphQLInputField, GraphQLInputObjectType, GraphQLSchema, get_named_type
from graphql.utilities.map_schema_config import map_schema_config

from graph.model import Model
from graph.permissions import Permissions
from graph.rules import Right
from resolvers.documents import Documents
from resolvers.federation import SERVICE
from resolvers.filters import where_name
from resolvers.permitted import Permitted
from resolvers.write_inputs import WRITE_INPUTS

MOST_VIEWS = 32
"""Kinds of callers whose views are kept: each is a schema of its own."""


class View:
    """A schema, and the documents that are valid by it."""

    def __init__(self, schema: GraphQLSchema, documents: Documents) -> None:
        self.schema = schema
        self.documents = documents


class Views:
    """The views of an API: one for all callers or, where what is denied them is hidden, one for each kind."""

    def __init__(
        self, schema: GraphQLSchema, model: Model, read: Callable[[GraphQLSchema], Documents], *, are_hiding: bool
    ) -> None:
        """Take the whole schema, and what makes the documents of a schema."""
        self._whole = View(schema, read(schema))
        self._model = model
        self._read = read
        self._are_hiding = are_hiding
        self._views: OrderedDict[frozenset[Any], View] = OrderedDict()
        self.permitted = Permitted(schema, model)

    def of(self, permissions: Permissions | None) -> View:
        """Give the view of a caller.

        Cost: nothing for most; the first caller of a kind waits until their schema is made.
        """
        if not self._are_hiding or permissions is None or not permissions.denied:
            return self._whole
        found = self._views.get(permissions.denied)
        if found is None:
            schema = without_denied(self._whole.schema, self._model, self.permitted, permissions)
            found = self._views[permissions.denied] = View(schema, self._read(schema))
            if len(self._views) > MOST_VIEWS:
                self._views.popitem(last=False)
        self._views.move_to_end(permissions.denied)
        return found


def without_denied(
    schema: GraphQLSchema, model: Model, permitted: Permitted, permissions: Permissions
) -> GraphQLSchema:
    """Make the schema that has nothing but what a caller may ask for: for validation and introspection alone.

    A field that an interface promises stays, for its types must have it; asking for it is refused all the same.
    """
    denied = permissions.denied
    gone = {name for name, field, right in denied if right is Right.READ and not field}
    inputs = {where_name(name): (name, Right.READ) for name in model.items}
    inputs |= {write.format(name): (name, right) for name in model.items for write, right in WRITE_INPUTS.items()}

    def is_denied(type_: Any, field: str) -> bool:
        name, right = inputs.get(type_.name, ("", Right.READ))
        return (name, field, right) in denied

    def is_empty(type_: Any) -> bool:
        return isinstance(type_, GraphQLInputObjectType) and all(is_denied(type_, name) for name in type_.fields)

    def fields_of(config: Any) -> Any:
        parent: Any = schema.type_map[config["name"]]
        promised = {name for interface in parent.interfaces for name in interface.fields}
        kept = [
            name
            for name, field in parent.fields.items()
            if name in promised or permitted.reason(parent, name, field, permissions) is None
            # It tells the whole schema.
            if not (name == SERVICE and parent is schema.query_type)
        ]
        fields: Callable[[], dict[str, GraphQLField]] = config["fields"]

        def made() -> dict[str, GraphQLField]:
            found = {name: field for name, field in fields().items() if name in kept}
            for name, field in found.items():
                of = parent.fields[name].args
                field.args = {one: arg for one, arg in field.args.items() if not is_empty(get_named_type(of[one].type))}
            return found

        return {**config, "fields": made}

    def inputs_of(config: Any) -> Any:
        type_ = schema.type_map[config["name"]]
        fields: Callable[[], dict[str, GraphQLInputField]] = config["fields"]
        return {
            **config,
            "fields": lambda: {name: made for name, made in fields().items() if not is_denied(type_, name)},
        }

    def union_of(config: Any) -> Any:
        members: Callable[[], list[Any]] = config["types"]
        return {**config, "types": lambda: [member for member in members() if member.name not in gone]}

    mapped: Any = map_schema_config(
        schema.to_kwargs(), lambda _: {"OBJECT": fields_of, "INPUT_OBJECT": inputs_of, "UNION": union_of}
    )
    # What nothing leads to any more is not in it either: of all types only nodes are found by their interface alone.
    types = [made for made in mapped["types"] or () if made.name in model.items and made.name not in gone]
    mapped["types"] = types
    # A payload of which the caller may read nothing has no fields, and that is no mistake.
    return GraphQLSchema(**{**mapped, "assume_valid": True})
