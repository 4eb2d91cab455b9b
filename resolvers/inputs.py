"""The input types of the API: filters, ranges, and the arguments of connections."""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import Enum
from typing import Any

import strawberry
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.base import StrawberryObjectDefinition
from strawberry.types.field import StrawberryField

from graph.model import Field, Find, Model, Relationship, TypeRef
from graph.reads import shows_copies
from resolvers import filters
from resolvers.fields import annotation, argument, input_field

PAGING_TEXTS = {
    "first": "How many edges from the beginning, or behind `after`.",
    "after": "The cursor to go on behind.",
    "last": "How many edges from the end, or before `before`.",
    "before": "The cursor to end before.",
}

_LIST = TypeRef(False, of=TypeRef(True))
_NULLABLE = TypeRef(False)
_OPERATOR_TYPES = {"in": TypeRef(False, of=TypeRef(False)), "between": _LIST}


class SortOrder(Enum):
    """The values of the `order` argument."""

    ASC = "ASC"
    DESC = "DESC"


class Match(Enum):
    """The values of the `match` argument."""

    ANY = "ANY"
    ALL = "ALL"


class InputBuilder:
    """Makes each input type once; `scalars` are the classes that stand for scalars and enums."""

    def __init__(self, model: Model, scalars: Mapping[str, Any]) -> None:
        self._model = model
        self._scalars = scalars
        self._wheres: dict[str, Any] = {}
        self._filters: dict[str, Any] = {}
        self._match = strawberry.enum(Match, description="Whether one of several values is enough, or all are needed.")
        self._order = strawberry.enum(SortOrder, description="The direction of a connection's order.")

    def match_argument(self) -> StrawberryArgument:
        """Make the argument of a find that reads several partitions which may lead to the same node."""
        return argument(
            "match", annotation(self._match, _NULLABLE), "Whether one of the values is enough; ANY unless given."
        )

    def fresh_arguments(self, pattern: Relationship | Find) -> list[StrawberryArgument]:
        """Make the argument of what may show copies that are behind; elsewhere none."""
        if not shows_copies(self._model, pattern):
            return []
        text = "Takes each node as it is, and not from a copy, which may be behind."
        return [argument("fresh", annotation(bool, _NULLABLE), text)]

    def connection_arguments(
        self, item_types: tuple[str, ...], *, is_forward: bool = False
    ) -> list[StrawberryArgument]:
        """Make the arguments that every connection has; one that is read forward only has no order to turn round."""
        names = ("first", "after") if is_forward else ("first", "after", "last", "before")
        arguments = [
            argument(name, annotation(int if name in ("first", "last") else str, _NULLABLE), PAGING_TEXTS[name])
            for name in names
        ]
        if len(item_types) == 1:
            where = annotation(self.where(item_types[0]), _NULLABLE)
            arguments.append(argument("where", where, "Only what this filter accepts."))
        if not is_forward:
            arguments.append(argument("order", annotation(self._order, _NULLABLE), "The direction of the sort key."))
        return arguments

    def where(self, type_name: str) -> Any:
        """Make the filter input of a type."""
        if type_name in self._wheres:
            return self._wheres[type_name]
        cls = self._wheres[type_name] = new_input(filters.where_name(type_name), [], f"Filters {type_name}.")
        fields = [
            input_field(field.name, annotation(self._filter(field), _NULLABLE), field.description)
            for field in (self._model.items.get(type_name) or self._model.objects[type_name]).fields.values()
            if filters.is_filterable(self._model, field)
        ]
        definition(cls).fields = [
            *fields,
            input_field("and", annotation(cls, _LIST), "All of these hold."),
            input_field("or", annotation(cls, _LIST), "At least one of these holds."),
            input_field("not", annotation(cls, _NULLABLE), "This does not hold."),
        ]
        return cls

    def _filter(self, field: Field) -> Any:
        if field.scalar is None:
            return self.where(field.type.named)
        scalar, is_list = field.scalar, field.type.of is not None
        name = filters.filter_name(scalar, is_list=is_list)
        if name not in self._filters:
            value = self._scalars[scalar.name]
            fields = [
                input_field(
                    operator,
                    annotation(bool if operator == "exists" else value, _OPERATOR_TYPES.get(operator, _NULLABLE)),
                    filters.OPERATOR_TEXTS[operator],
                )
                for operator in filters.operators(scalar, is_list=is_list)
            ]
            self._filters[name] = new_input(name, fields, f"Filters {'lists of ' if is_list else ''}{scalar.name}.")
        return self._filters[name]


def definition(cls: Any) -> StrawberryObjectDefinition:
    """Give Strawberry's definition of a class."""
    found: StrawberryObjectDefinition = cls.__strawberry_definition__
    return found


def new_input(name: str, fields: list[StrawberryField], description: str | None) -> Any:
    """Make an input type whose values stay the mappings that graphql-core made of them."""
    cls = strawberry.input(types.new_class(name), name=name, description=description)
    definition(cls).fields = fields
    # A field that was left out is not in the mapping: absent and null stay apart.
    definition(cls).from_input = lambda _, value, context: value
    return cls
