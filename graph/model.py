"""The immutable Model: tables, indexes, item types and their fields, relationships and access patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from graph.keys import Path, Template
from graph.packing import Blob
from graph.periods import Period
from graph.rules import Rule
from graph.scalars import AttributeValue, Scalar
from graph.seals import UNSIGNED, Seals


class Projection(Enum):
    """What a secondary index holds of an item, where it is not a list of attributes."""

    ALL = "ALL"
    KEYS_ONLY = "KEYS_ONLY"


@dataclass(frozen=True, slots=True)
class Index:
    """One way into a table: a secondary index, or the table's own primary key, whose name is None."""

    table: str
    name: str | None
    partition_keys: tuple[str, ...]
    sort_keys: tuple[str, ...] = ()
    """The attributes that its items are ordered by, one after another; a table or a local index has at most one."""
    projection: Projection | frozenset[str] = Projection.ALL
    local: bool = False
    period: Period | None = None
    """For a time series: which period each of its tables holds; `table` is then the pattern of their names."""

    @property
    def key_attributes(self) -> tuple[str, ...]:
        """List the attributes of its key: an item that lacks one is not in the index."""
        return self.partition_keys + self.sort_keys


class CopyMode(Enum):
    """When what is made of an item elsewhere follows a write of it: in its transaction, or by the table's stream."""

    TRANSACTION = "TRANSACTION"
    STREAM = "STREAM"


@dataclass(frozen=True, slots=True)
class Table:
    """A DynamoDB table: its primary key, its secondary indexes, and the attribute that names an item's type."""

    name: str
    primary: Index
    indexes: tuple[Index, ...]
    type_attribute: str | None = None
    copies: CopyMode = CopyMode.TRANSACTION

    @property
    def period(self) -> Period | None:
        """Give the period of a time series' tables."""
        return self.primary.period

    @property
    def key_attributes(self) -> tuple[str, ...]:
        """List the attributes of the primary key."""
        return self.primary.key_attributes

    @property
    def ways(self) -> tuple[Index, ...]:
        """List every way into the table: its own key, local indexes, then global ones, those that hold all first."""

        def rank(index: Index) -> tuple[bool, bool]:
            return not index.local, index.projection is not Projection.ALL

        return (self.primary, *sorted(self.indexes, key=rank))

    def position_attributes(self, index: Index) -> tuple[str, ...]:
        """List the attributes that, with the index's partition key, place an item in the index: what a cursor holds."""
        names = dict.fromkeys(index.sort_keys + self.key_attributes)
        return tuple(name for name in names if name not in index.partition_keys)


@dataclass(frozen=True, slots=True)
class TypeRef:
    """A field's type as written: a name, or a list of another type; `required` is GraphQL's `!`."""

    required: bool
    name: str = ""
    of: TypeRef | None = None

    @property
    def named(self) -> str:
        """Give the name inside all lists."""
        return self.of.named if self.of else self.name

    def __str__(self) -> str:
        return (f"[{self.of}]" if self.of else self.name) + ("!" if self.required else "")


class FieldKind(Enum):
    """Where a field's value comes from."""

    ATTRIBUTE = "an attribute of the item, or a variable of its key"
    REFERENCE = "another node, named by an attribute or by the key"
    RELATIONSHIP = "other items, found by a Query"


class Moment(Enum):
    """When a field takes the time of the write as its value."""

    CREATE = "CREATE"
    WRITE = "WRITE"


@dataclass(frozen=True, slots=True)
class Default:
    """What a field is when a write does not say: the time of the write, or a new UUID."""

    now: Moment | None = None
    uuid: bool = False


@dataclass(frozen=True, slots=True)
class Count:
    """A stored counter: of the items behind a relationship of the same type, or of a number field in them."""

    relationship: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a type in schema.graphql, without its meaning for GraphQL beyond name, type and description."""

    name: str
    type: TypeRef
    kind: FieldKind
    attribute: str
    scalar: Scalar | None = None
    """The scalar, where the type is one, or a list of one."""
    read: Callable[[AttributeValue], Any] = field(compare=False, repr=False, default=lambda value: value)
    refs: Mapping[str, Template] = field(compare=False, repr=False, default_factory=dict)
    """For a reference: how the attribute names a node of each type that may stand here."""
    description: str | None = None
    deprecation_reason: str | None = None
    write: Callable[[Any], AttributeValue] = field(compare=False, repr=False, default=lambda value: value)
    """Stores a value that is not None."""
    is_set: bool = False
    """A list that is stored as a set: of texts, numbers or binaries."""
    default: Default | None = None
    count: Count | None = None
    blob: Blob | None = None
    auth: tuple[Rule, ...] = ()
    """Who may read and write it, besides who may the item; none: everybody."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One shape that the items of a type have in the table.

    A type has several where it is mirrored (`mirror` counts them) and, for a reference to a union, one for each
    member (`ends` says which member stands at which field).
    """

    name: str
    """Its type's name, with its mirror and ends where there are several: "Tagging(subject: Store)"."""
    type_name: str
    table: str
    templates: Mapping[str, Template]
    """The template of every key attribute, of the table and of the indexes that the item is in."""
    ends: Mapping[str, str]
    mirror: int = 0
    copy: str | None = None
    self_keyed: bool = False
    """Partition and sort key are the same text, as in the adjacency list's own items of a node."""

    def is_in(self, index: Index) -> bool:
        """Say whether the items of this shape can be in an index."""
        return all(name in self.templates for name in index.key_attributes)

    def partition(self, index: Index) -> tuple[Template, ...]:
        """List the templates of an index's partition key, one for each attribute."""
        return tuple(self.templates[name] for name in index.partition_keys)

    def sort(self, index: Index) -> tuple[Template, ...]:
        """List the templates of an index's sort key, one for each attribute."""
        return tuple(self.templates[name] for name in index.sort_keys)


@dataclass(frozen=True, slots=True)
class ItemType:
    """A type whose values are items: a node, or an edge between two nodes."""

    name: str
    is_node: bool
    fields: Mapping[str, Field]
    layouts: tuple[Layout, ...]
    type_name: str
    ref: Template | None = None
    virtual: bool = False
    interfaces: tuple[str, ...] = ()
    description: str | None = None
    expiry: str | None = None
    """The attribute that says from which second on an item no longer exists."""
    version: str | None = None
    """The field that counts the writes of an item."""
    history: Layout | None = None
    """How the earlier versions of an item lie beside it: its key with the version's number in the place of 0."""
    searched: Mapping[str, float] = field(default_factory=dict)
    """The fields whose texts are searched, and how much each of them counts; none where the type is not searched."""
    auth: tuple[Rule, ...] = ()
    """Who may do what to its items; none: everybody everything."""
    must_be_seen: bool = False
    """That a node is named does not tell whether the caller may read it: its own item does."""

    @property
    def tenants(self) -> frozenset[Path]:
        """Give the fields of its keys that hold the tenant: who belongs to one need not say which."""
        return frozenset(match.path for rule in self.auth for match in rule.tenant)

    @property
    def named_by(self) -> frozenset[Path]:
        """Give the fields that other items name a node by."""
        return frozenset(variable.path for variable in self.ref.variables) if self.ref is not None else frozenset()

    @property
    def references(self) -> tuple[Field, ...]:
        """List the fields that name other nodes."""
        return tuple(entry for entry in self.fields.values() if entry.kind is FieldKind.REFERENCE)


@dataclass(frozen=True, slots=True)
class ObjectType:
    """A type without items of its own: a map inside an item (is_interface: an interface of any types)."""

    name: str
    fields: Mapping[str, Field]
    interfaces: tuple[str, ...] = ()
    is_interface: bool = False
    description: str | None = None


@dataclass(frozen=True, slots=True)
class EnumValue:
    """One value of an enum."""

    name: str
    description: str | None = None
    deprecation_reason: str | None = None


@dataclass(frozen=True, slots=True)
class EnumType:
    """An enum, stored as the names of its values."""

    name: str
    values: tuple[EnumValue, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class UnionType:
    """A union of item types."""

    name: str
    members: tuple[str, ...]
    description: str | None = None


@dataclass(frozen=True, slots=True)
class CacheHint:
    """What `@cacheControl` says of a field, or of all fields that lead to a type; None: nothing."""

    max_age_secs: int | None = None
    is_private: bool | None = None
    inherits: bool = False
    """It is kept as long as what it belongs to, whatever its type says nothing of."""


@dataclass(frozen=True, slots=True)
class Access:
    """One way to read an access pattern: an index and, for each layout found there, what its keys look like in it."""

    index: Index
    layouts: tuple[Layout, ...]
    """The layouts of one mirror; more than one where a union's members share the pattern."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """A field that leads to other items.

    `start` is the field of the items read that names the source, `end` the one that names the target; without an
    `end` the items read are the targets themselves. With a `path` it is its hops, one after the other.
    """

    source: str
    name: str
    item_types: tuple[str, ...]
    targets: tuple[str, ...]
    many: bool
    start: str = ""
    end: str | None = None
    accesses: tuple[Access, ...] = ()
    needs: tuple[Path, ...] = ()
    """What must be known of the source before it can be read: the paths below `start` that bind the partition."""
    asks: tuple[Path, ...] = ()
    """What a filter must bind besides, where every way has more than the source in its partition key."""
    path: tuple[Relationship, ...] = ()
    consistent: bool = False
    """Read consistently: from the table or a local index."""
    inverses: tuple[str, ...] = ()
    """The to-one relationships of the target that lead straight back to the source."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a `@find` field: the path that it binds, and how."""

    name: str
    path: Path
    type: TypeRef
    scalar: Scalar
    range_fields: tuple[str, str] | None = None
    """For an argument of an input type: the fields that hold the inclusive bounds, from and to."""
    description: str | None = None
    deprecation_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Find:
    """A named access pattern: a field of Query."""

    name: str
    type: TypeRef
    item_types: tuple[str, ...]
    targets: tuple[str, ...]
    many: bool
    arguments: tuple[Argument, ...]
    accesses: tuple[Access, ...]
    end: str | None = None
    scan: bool = False
    descending: bool = False
    consistent: bool = False
    is_distinct: bool = False
    """Several partitions are read that may lead to the same node: it is found once, in any or in all of them."""
    description: str | None = None
    deprecation_reason: str | None = None
    auth: tuple[Rule, ...] = ()
    """Who may ask; none: everybody."""


@dataclass(frozen=True, slots=True)
class Inward:
    """A reference that leads to a node: the items of a type whose `field` names it, and the ways to find them all.

    Without `accesses` no index finds them.
    """

    item_type: str
    field: str
    accesses: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class RangeInput:
    """An input type of the user's whose two fields are the inclusive bounds of a range."""

    name: str
    fields: Mapping[str, TypeRef]
    description: str | None = None
    field_descriptions: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Model:
    """Everything that schema.graphql says; all else is made from it."""

    tables: Mapping[str, Table]
    items: Mapping[str, ItemType]
    objects: Mapping[str, ObjectType]
    enums: Mapping[str, EnumType]
    unions: Mapping[str, UnionType]
    inputs: Mapping[str, RangeInput]
    relationships: Mapping[tuple[str, str], Relationship]
    finds: Mapping[str, Find]
    lookups: Mapping[str, tuple[Access, ...]]
    """For each node type: the ways to its item from the fields that name it."""
    rivals: Mapping[tuple[str, str | None], tuple[Layout, ...]] = field(default_factory=dict)
    """By the name of a layout and of an index (None: the primary key): the layouts of other types that might look the
    same there."""
    inward: Mapping[str, tuple[Inward, ...]] = field(default_factory=dict)
    """For each node type: the references of other items that may lead to it."""
    cache_hints: Mapping[tuple[str, str | None], CacheHint] = field(default_factory=dict)
    """By the name of a type and of a field of it (None: the type itself): how long it may be kept, and by whom."""
    seals: Seals = UNSIGNED
    """What signs the ids and cursors that are made by it: the server adds its keys to what the file says."""

    @property
    def has_rules(self) -> bool:
        """Say whether anything is not everybody's: it then matters who asks."""
        fields = (field for type_ in self.items.values() for field in type_.fields.values())
        ruled: Iterable[ItemType | Find | Field] = (*self.items.values(), *self.finds.values(), *fields)
        return any(one.auth for one in ruled)

    @property
    def nodes(self) -> tuple[ItemType, ...]:
        """List the node types in the order of the file."""
        return tuple(item for item in self.items.values() if item.is_node)

    def is_followed(self, type_: ItemType) -> bool:
        """Say whether mirrors, copies and keys that are made of items of a type follow their writes by the stream."""
        return bool(type_.layouts) and self.tables[type_.layouts[0].table].copies is CopyMode.STREAM

    def rivals_of(self, layout: Layout, index: str | None = None) -> tuple[Layout, ...]:
        """List the layouts of other types that items of a layout might be taken for, by their keys in an index."""
        return self.rivals.get((layout.name, index), ())

    def possible(self, name: str) -> frozenset[str]:
        """List the item types that a type's name may stand for: itself, a union's members, an interface's types."""
        if name in self.unions:
            return frozenset(self.unions[name].members)
        if name in self.items:
            return frozenset((name,))
        return frozenset(item.name for item in self.items.values() if name in item.interfaces)
