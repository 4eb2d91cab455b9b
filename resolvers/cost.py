"""What an operation will read, estimated before it reads anything: an expression over its variables, compiled once.

The estimate takes every list to be as long as its page is asked for, every item to be of a typical size, and nothing
to be read together or shared: what an answer holds costs something wherever it stands. Both executors read alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphql import (
    GraphQLError,
    GraphQLField,
    GraphQLObjectType,
    GraphQLSchema,
    ListValueNode,
    NullValueNode,
    ValueNode,
    VariableNode,
    get_named_type,
    is_abstract_type,
    value_from_ast_untyped,
)
from graphql.execution.values import VariableValues

from graph.entity import Entity
from graph.errors import GraphError
from graph.loaders import Limits
from graph.model import Access, Find, ItemType, Layout, Model, Projection, Relationship
from graph.patterns import fan_out_of
from graph.ranges import MOST_VALUES
from graph.scalars import sample
from graph.sizes import TYPICAL_ITEM_BYTES, read_units
from resolvers import meanings
from resolvers.fields import ResolverField
from resolvers.limits import LIMIT_EXCEEDED
from resolvers.meanings import Lookup, Reference, ToMany, ToOne, field_of, meaning_of
from resolvers.node import PAGE_FIELDS
from resolvers.plan.document import Collector, Details, Fields, Surveyed

ITEM_UNITS = 0.5
"""What a node costs that is read by its key."""
FILTERED = 10
"""Items that a page under a filter is taken to read for each that it keeps."""
COUNTED = 100
"""Items that a list is taken to have which is only counted."""
SCANNED_BYTES = 1_000_000
"""What a scan reads at least, should nothing be found there: one page of DynamoDB's."""
IDS = ("ids", "representations")
"""The arguments that name nodes one by one."""

Variables = Mapping[str, Any]
Back = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Length:
    """How many there will be: what an argument says, or else a default, within bounds."""

    default: int
    most: int
    argument: ValueNode | None = None
    constant: int | None = None

    def of(self, variables: Variables) -> int:
        """Give it for these variables."""
        if self.constant is not None:
            return self.constant
        value = None if self.argument is None else value_from_ast_untyped(self.argument, dict(variables))
        if isinstance(value, list):
            return min(len(value), self.most)
        # A boolean is an int to Python, and a size that is no size is refused when it is read.
        return min(max(0, value), self.most) if type(value) is int else min(self.default, self.most)


def length(default: int, most: int, argument: ValueNode | None = None) -> Length:
    """Make a length, and look at its argument once where that is a constant."""
    made = Length(default, most, argument)
    return made if _has_variable(argument) else Length(default, most, constant=made.of({}))


ONE = Length(1, 1, constant=1)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one field reads for each object that it stands in, and what is read below it."""

    field: str
    times: Length = ONE
    """How many objects it leads to."""
    queries: float = 0
    """Queries that it sends."""
    each: Length = ONE
    """For each of these, where an argument lists several partitions."""
    per_object: float = 0
    """Items that a Query reads for each object that it leads to, and one more; 0 where no page is read."""
    most_items: float = 0
    """Most items that one page reads."""
    counts: bool = False
    """Whether the list is counted besides."""
    units_per_object: float = 0
    """What each object costs besides."""
    flat: float = 0
    below: tuple[int, ...] = ()
    """The numbers of what is read below it."""
    either: tuple[tuple[int, ...], ...] = ()
    """Those where an object is of one of several types: the dearest of these counts."""

    def own(self, variables: Variables) -> tuple[float, int]:
        """Give the units that the field takes for one object, and the objects that it leads to."""
        times = self.times.of(variables)
        units = self.flat + times * self.units_per_object
        if self.queries:
            sent = self.queries * self.each.of(variables)
            if self.per_object:
                items = min((times + 1) * self.per_object, self.most_items)
                units += sent * read_units(items * TYPICAL_ITEM_BYTES)
            if self.counts:
                units += sent * read_units(COUNTED * TYPICAL_ITEM_BYTES)
        return units, times


@dataclass(slots=True)
class Cost:
    """The estimate of one operation for one set of the variables that decide what is selected."""

    readings: Sequence[Reading]
    """Each behind all that is read below it: what is selected of several types in one place is there once."""
    roots: tuple[int, ...]
    factor: int
    """2 where all is read consistently."""
    is_constant: bool
    _known: float | None = None

    def units(self, variables: Variables) -> float:
        """Estimate the read units for these variables. Cost: once where there are none, else a microsecond a field."""
        if self._known is not None:
            return self._known
        values = self._values(variables)
        units = self.factor * sum([values[number] for number in self.roots])
        if self.is_constant:
            self._known = units
        return units

    def _values(self, variables: Variables) -> list[float]:
        """Estimate for each reading what it takes for one object, with all below it."""
        values: list[float] = []
        for reading in self.readings:
            units, times = reading.own(variables)
            if times:
                if reading.below:
                    units += times * sum([values[number] for number in reading.below])
                if reading.either:
                    units += times * max([_sum(values, numbers) for numbers in reading.either])
            values.append(units)
        return values

    def check(self, variables: Variables, most: float) -> float:
        """Give the estimate. Raises: GraphQLError when it is above what an operation may cost."""
        units = self.units(variables)
        if units > most:
            raise self._exceeded(units, most, variables)
        return units

    def _exceeded(self, units: float, most: float, variables: Variables) -> GraphQLError:
        by_field = self._by_field(variables)
        dearest = max(by_field, key=lambda name: by_field[name])
        return GraphQLError(
            f"expected an operation of at most {most:,.10g} read units, estimated {units:,.10g} before anything was "
            f"read, of which {dearest} takes {by_field[dearest]:,.10g}: "
            "ask for smaller pages with `first`, or nest less",
            extensions={"code": LIMIT_EXCEEDED, "limit": "cost", "value": units, "most": most, "field": dearest},
        )

    def _by_field(self, variables: Variables) -> dict[str, float]:
        """Add up what each field takes itself."""
        values, objects = self._values(variables), [0.0] * len(self.readings)
        for number in self.roots:
            objects[number] += self.factor
        found: dict[str, float] = {}
        for number in range(len(self.readings) - 1, -1, -1):
            reading = self.readings[number]
            units, times = reading.own(variables)
            found[reading.field] = found.get(reading.field, 0) + objects[number] * units
            dearest = max(reading.either, key=lambda numbers: _sum(values, numbers), default=())
            for below in (*reading.below, *dearest):
                objects[below] += objects[number] * times
        return found


def _sum(values: Sequence[float], numbers: Sequence[int]) -> float:
    return sum([values[number] for number in numbers])


def compile_cost(
    schema: GraphQLSchema, model: Model, limits: Limits, operation: Surveyed, variables: VariableValues
) -> Cost:
    """Compile the estimate of an operation."""
    definition = operation.definition
    root = schema.get_root_type(definition.operation)
    assert root is not None
    compiler = _Compiler(model, limits, Collector(schema, operation, variables))
    roots = compiler.root(root)
    # What a mutation or an event reads is read consistently.
    factor = 1 if root is schema.query_type else 2
    return Cost(compiler.readings, roots, factor, not definition.variable_definitions)


class _Compiler:
    def __init__(self, model: Model, limits: Limits, collector: Collector) -> None:
        self._model = model
        self._limits = limits
        self._collector = collector
        self._known: dict[tuple[Any, ...], tuple[int, ...]] = {}
        self.readings: list[Reading] = []

    def root(self, type_: GraphQLObjectType) -> tuple[int, ...]:
        """Compile the operation's own fields."""
        return self._all(type_, self._collector.root(), ())

    def _fields(self, type_: GraphQLObjectType, details: Details, back: Back) -> tuple[int, ...]:
        """Compile what is selected of a type below a field; what is selected of several types at once, once."""
        key = (type_.name, back, *[id(one.node) for one in details])
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._all(type_, self._collector.below(type_, details), back)
        return found

    def _all(self, type_: GraphQLObjectType, fields: Fields, back: Back) -> tuple[int, ...]:
        numbers: list[int] = []
        for details in fields.values():
            name = details[0].node.name.value
            if not name.startswith("__"):
                numbers += self._field(f"{type_.name}.{name}", type_.fields[name], details, back)
        return tuple(numbers)

    def _field(self, name: str, definition: GraphQLField, details: Details, back: Back) -> tuple[int, ...]:
        """Compile a field; `back` are the relationships that lead back where it was come from."""
        source, meaning = field_of(definition), meaning_of(definition)
        match meaning:
            case Lookup(item):
                return self._to(name, definition, details, flat=0 if item.virtual else ITEM_UNITS)
            case ToOne():
                return self._to_one(name, definition, details, meaning.relationship, back)
            case Reference(attribute):
                items = [self._model.items[target] for target in attribute.refs]
                lacks = any(self._lacks_by_name(item, self._names(item, [details])) for item in items)
                return self._to(name, definition, details, flat=ITEM_UNITS if lacks else 0)
            case ToMany(relationship):
                return self._page(name, definition, details, relationship)
            case meanings.Find(find):
                return self._page(name, definition, details, find)
            case None if isinstance(source, ResolverField):
                return self._called(name, definition, details)
            case _:
                # What a page holds is counted with it.
                return self._below(definition, details, back)

    def _to(self, name: str, definition: GraphQLField, details: Details, *, flat: float) -> tuple[int, ...]:
        return self._around(Reading(name, flat=flat), definition, details, ())

    def _called(self, name: str, definition: GraphQLField, details: Details) -> tuple[int, ...]:
        """Take a field of which only its resolver knows what it reads as one item, several ids, or a page of nodes."""
        named = get_named_type(definition.type)
        if isinstance(named, GraphQLObjectType) and "pageInfo" in named.fields:
            size = self._size(details)
            reading = Reading(
                name, size, queries=1, per_object=1, most_items=self._most_items(details), units_per_object=ITEM_UNITS
            )
        elif (ids := next(filter(None, (_argument(details, name) for name in IDS)), None)) is not None:
            reading = Reading(name, length(0, self._limits.read_budget, ids), units_per_object=ITEM_UNITS)
        else:
            reading = Reading(name, flat=ITEM_UNITS)
        return self._around(reading, definition, details, ())

    def _to_one(
        self, name: str, definition: GraphQLField, details: Details, relationship: Relationship, back: Back
    ) -> tuple[int, ...]:
        if relationship.name in back:
            return self._to(name, definition, details, flat=0)
        lacks = any(
            self._lacks(access, relationship.end, target, [details])
            for access in relationship.accesses[:1]
            for target in relationship.targets
        )
        return self._to(name, definition, details, flat=ITEM_UNITS + (ITEM_UNITS if lacks else 0))

    def _page(
        self, name: str, definition: GraphQLField, details: Details, pattern: Relationship | Find
    ) -> tuple[int, ...]:
        names, nodes = self._selected(definition, details)
        hops = pattern.path if isinstance(pattern, Relationship) else ()
        last = hops[-1] if hops else pattern
        lacks = any(
            self._lacks(access, last.end, target, nodes) for access in last.accesses[:1] for target in last.targets
        )
        first = hops[0] if hops else pattern
        known = (
            {argument.path for argument in pattern.arguments}
            if isinstance(pattern, Find)
            else {(first.start, *path) for path in first.needs} | {*first.asks}
            if isinstance(first, Relationship)
            else set()
        )
        is_read = bool(names & PAGE_FIELDS)
        size = self._size(details) if is_read else length(0, 0)
        is_scan = isinstance(pattern, Find) and pattern.scan
        dropped = FILTERED if is_scan or _argument(details, "where") is not None else 1
        # On a path at most one Query more for each that is found, on every further hop; a filter may have to see them.
        hopped = ITEM_UNITS * max(0, len(hops) - 1)
        loaded = ITEM_UNITS if lacks and nodes else 0
        reading = Reading(
            name,
            size,
            queries=fan_out_of(first.accesses[0], known) if first.accesses else 1,
            each=self._partitions(pattern, details),
            per_object=dropped if is_read else 0,
            most_items=self._most_items(details),
            counts="totalCount" in names,
            units_per_object=dropped * (hopped + loaded),
            flat=read_units(SCANNED_BYTES) if is_scan else 0,
        )
        inverses = last.inverses if isinstance(last, Relationship) else ()
        return self._around(reading, definition, details, inverses)

    # --- what is asked for ---

    def _size(self, details: Details) -> Length:
        asked = _argument(details, "first") or _argument(details, "last")
        return length(self._limits.default_page_size, self._limits.max_page_size, asked)

    def _most_items(self, details: Details) -> float:
        return max(self._limits.read_budget, self._limits.max_page_size + 1)

    @staticmethod
    def _partitions(pattern: Relationship | Find, details: Details) -> Length:
        """Count the values of an argument that lists what to look for: each has a partition of its own."""
        for argument in pattern.arguments if isinstance(pattern, Find) else ():
            if argument.type.of is not None:
                return length(1, MOST_VALUES, _argument(details, argument.name))
        return ONE

    def _selected(self, definition: GraphQLField, details: Details) -> tuple[set[str], list[Details]]:
        """List what is selected of a connection, and where its nodes are."""
        connection = get_named_type(definition.type)
        assert isinstance(connection, GraphQLObjectType)
        names: set[str] = set()
        nodes: list[Details] = []
        for found in self._collector.below(connection, details).values():
            name = found[0].node.name.value
            names.add(name)
            if name == "nodes":
                nodes.append(found)
            if name == "edges":
                edge = get_named_type(connection.fields["edges"].type)
                assert isinstance(edge, GraphQLObjectType)
                inner = self._collector.below(edge, found).values()
                nodes += [one for one in inner if one[0].node.name.value == "node"]
        return names, nodes

    def _around(self, reading: Reading, definition: GraphQLField, details: Details, back: Back) -> tuple[int, ...]:
        """Number a reading, behind what is read below it."""
        below, either = self._inner(definition, details, back)
        self.readings.append(replace(reading, below=below, either=either))
        return (len(self.readings) - 1,)

    def _below(self, definition: GraphQLField, details: Details, back: Back) -> tuple[int, ...]:
        """Give what is read below a field that reads nothing itself."""
        below, either = self._inner(definition, details, back)
        if either:
            self.readings.append(Reading(details[0].node.name.value, below=below, either=either))
            return (len(self.readings) - 1,)
        return below

    def _inner(
        self, definition: GraphQLField, details: Details, back: Back
    ) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        named = get_named_type(definition.type)
        if is_abstract_type(named):
            possible = self._collector.schema.get_possible_types(named)
            return (), tuple(dict.fromkeys(filter(None, (self._fields(one, details, back) for one in possible))))
        return (self._fields(named, details, back) if isinstance(named, GraphQLObjectType) else ()), ()

    # --- what must be loaded ---

    def _names(self, item: ItemType, places: list[Details]) -> frozenset[str]:
        type_ = self._collector.schema.type_map[item.name]
        assert isinstance(type_, GraphQLObjectType)
        found = (one for place in places for one in self._collector.below(type_, place).values())
        names = (one[0].node.name.value for one in found)
        return frozenset(name for name in names if not name.startswith("__"))

    def _lacks(self, access: Access, end: str | None, target: str, nodes: list[Details]) -> bool:
        """Say whether nodes that items lead to must be loaded for what is selected of them."""
        item = self._model.items[target]
        names = self._names(item, nodes)
        layout = access.layouts[0]
        if end is None:
            return access.index.projection is not Projection.ALL and not names <= _held(layout)
        return layout.copy != end and self._lacks_by_name(item, names)

    def _lacks_by_name(self, item: ItemType, names: frozenset[str]) -> bool:
        variables = item.ref.variables if item.ref is not None else ()
        named = {variable.path: sample(variable.scalar, "1") for variable in variables}
        try:
            return Entity(self._model, item, named=named).lacks(names)
        except GraphError:
            # A name that cannot be made up.
            return True


def _held(layout: Layout) -> frozenset[str]:
    """List the fields that the keys of a layout hold."""
    variables = (variable for template in layout.templates.values() for variable in template.variables)
    return frozenset({"id", *(variable.path[0] for variable in variables)})


def _argument(details: Details, name: str) -> ValueNode | None:
    for argument in details[0].node.arguments or ():
        if argument.name.value == name and not isinstance(argument.value, NullValueNode):
            return argument.value
    return None


def _has_variable(node: ValueNode | None) -> bool:
    if isinstance(node, ListValueNode):
        # How many there are is known, whatever they are.
        return False
    return isinstance(node, VariableNode)
