"""What a field of the API stands for: data by which a compiled plan reads it without its resolver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from graph.keys import Path
from graph.model import Field, ItemType, Relationship
from graph.model import Find as FindPattern
from graph.rules import Right

if TYPE_CHECKING:
    from graphql import GraphQLField

BACKREF = "strawberry-definition"
"""Under which Strawberry leaves its own field in the extensions of graphql-core's."""


@dataclass(frozen=True, slots=True)
class GlobalId:
    """The global id of a node."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A field of an item that it holds itself; of an edge, that of the item which is the edge."""

    field: Field


@dataclass(frozen=True, slots=True)
class Reference:
    """A field of an item that names a node."""

    field: Field


@dataclass(frozen=True, slots=True)
class ToOne:
    """A relationship to one node."""

    relationship: Relationship


@dataclass(frozen=True, slots=True)
class ToMany:
    """A relationship to many nodes: a connection."""

    relationship: Relationship


@dataclass(frozen=True, slots=True)
class Lookup:
    """An item by its key: the paths that the arguments bind, and whether they must be there."""

    item: ItemType
    arguments: Mapping[str, tuple[Path, bool]]


@dataclass(frozen=True, slots=True)
class Find:
    """A named access pattern of the model: a connection."""

    find: FindPattern


@dataclass(frozen=True, slots=True)
class Part:
    """A field of a connection, of an edge or of PageInfo."""

    name: Literal["edges", "nodes", "pageInfo", "totalCount", "cursor", "node"]


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of an object that was read as a mapping."""

    name: str


@dataclass(frozen=True, slots=True)
class Writes:
    """A mutation of items of a type, and the rights that it takes."""

    item: ItemType
    rights: frozenset[Right]


@dataclass(frozen=True, slots=True)
class Follows:
    """A subscription to changes of items of these types."""

    item_types: tuple[str, ...]


Meaning = GlobalId | Attribute | Reference | ToOne | ToMany | Lookup | Find | Part | Entry | Writes | Follows


def field_of(definition: GraphQLField) -> Any:
    """Give Strawberry's field, one of ours, behind graphql-core's; None behind one that is none of ours."""
    return definition.extensions.get(BACKREF)


def meaning_of(definition: GraphQLField) -> Meaning | None:
    """Say what a field stands for; None where only its resolver knows."""
    found: Meaning | None = getattr(field_of(definition), "meaning", None)
    return found
