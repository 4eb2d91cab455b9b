"""Strawberry's fields with resolvers of ours: a leaf is a look-up, all else gets the operation and its selection."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from strawberry import UNSET
from strawberry.annotation import StrawberryAnnotation
from strawberry.types.arguments import StrawberryArgument
from strawberry.types.base import StrawberryList, StrawberryOptional
from strawberry.types.field import StrawberryField
from strawberry.types.info import Info

from graph.loaders import Operation
from graph.model import TypeRef
from resolvers.meanings import Entry, Meaning
from resolvers.selection import Possible, Selection

Resolve = Callable[[Any, Operation, Mapping[str, Any], Selection], Awaitable[Any]]
"""(source, operation, arguments, selection) → the value."""


def annotation(type_: Any, ref: TypeRef | None = None, *, required: bool = True) -> StrawberryAnnotation:
    """Make Strawberry's annotation of a type, wrapped as the reference says."""
    return StrawberryAnnotation(wrap(type_, ref or TypeRef(required)))


def wrap(type_: Any, ref: TypeRef) -> Any:
    """Put a type into the lists and nullability of a reference."""
    inner = type_ if ref.of is None else StrawberryList(wrap(type_, ref.of))
    return inner if ref.required else StrawberryOptional(inner)


class ValueField(StrawberryField):
    """A field that is read off its source."""

    read: Callable[[Any], Any]
    meaning: Meaning | None

    def get_result(self, source: Any, info: Info[Any, Any] | None, args: list[Any], kwargs: Any) -> Any:
        """Read the value."""
        return self.read(source)


class ResolverField(StrawberryField):
    """A field that reads the graph."""

    resolve: Resolve
    possible: Possible
    meaning: Meaning | None

    @property
    def is_basic_field(self) -> bool:
        """Ask Strawberry for the info object and the arguments."""
        return False

    def get_result(self, source: Any, info: Info[Any, Any] | None, args: list[Any], kwargs: Any) -> Any:
        """Call the resolver."""
        assert info is not None
        return self.resolve(source, info.context, kwargs, Selection.of(info._raw_info, self.possible))


def value_field(
    name: str,
    type_: StrawberryAnnotation,
    read: Callable[[Any], Any],
    description: str | None = None,
    deprecation_reason: str | None = None,
    meaning: Meaning | None = None,
) -> StrawberryField:
    """Make a leaf."""
    field = ValueField(
        python_name=name,
        graphql_name=name,
        type_annotation=type_,
        description=description,
        deprecation_reason=deprecation_reason,
    )
    field.read = read
    field.meaning = meaning
    return field


def entry_field(
    name: str, type_: StrawberryAnnotation, description: str | None = None, deprecation_reason: str | None = None
) -> StrawberryField:
    """Make a field of an object that is read as a mapping."""
    return value_field(name, type_, lambda source: source.get(name), description, deprecation_reason, Entry(name))


def resolver_field(
    name: str,
    type_: StrawberryAnnotation,
    resolve: Resolve,
    possible: Possible,
    arguments: list[StrawberryArgument] | None = None,
    description: str | None = None,
    deprecation_reason: str | None = None,
    meaning: Meaning | None = None,
) -> StrawberryField:
    """Make a field that reads the graph."""
    field = ResolverField(
        python_name=name,
        graphql_name=name,
        type_annotation=type_,
        description=description,
        deprecation_reason=deprecation_reason,
    )
    field.resolve = resolve
    field.possible = possible
    field.meaning = meaning
    field.arguments = arguments or []
    return field


def argument(
    name: str,
    type_: StrawberryAnnotation,
    description: str | None = None,
    deprecation_reason: str | None = None,
) -> StrawberryArgument:
    """Make an argument without a default."""
    return StrawberryArgument(name, name, type_, description=description, deprecation_reason=deprecation_reason)


def input_field(name: str, type_: StrawberryAnnotation, description: str | None = None) -> StrawberryField:
    """Make a field of an input type; leaving it out and giving null stay apart."""
    return StrawberryField(
        python_name=name, graphql_name=name, type_annotation=type_, description=description, default=UNSET
    )
