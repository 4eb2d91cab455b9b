"""From the fields of an operation to the steps of its plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from graphql import (
    FieldNode,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    ValueNode,
    get_named_type,
    is_abstract_type,
    print_ast,
)

from graph.direct import Direct
from graph.lookups import Needs
from graph.model import Find, ItemType, Model, Relationship
from graph.reads import Asked
from resolvers import meanings
from resolvers.fields import ResolverField, ValueField
from resolvers.meanings import Attribute, Entry, GlobalId, Lookup, Meaning, Part, Reference, ToMany, ToOne, field_of
from resolvers.node import PAGE_FIELDS
from resolvers.plan.arguments import Arguments
from resolvers.plan.companions import Companions
from resolvers.plan.connections import (
    cursor_leaf,
    edges_branch,
    node_branch,
    nodes_branch,
    page_info_leaf,
    pages_of,
    total_leaf,
)
from resolvers.plan.document import Collector, Details, Fields
from resolvers.plan.failures import Step
from resolvers.plan.items import ReferenceRead, ToOneRead, attribute_leaf, attribute_read, id_leaf
from resolvers.plan.objects import Nodes, Selection
from resolvers.plan.pages import Wanted, find_read, to_many_read
from resolvers.plan.roots import LookupRead, Selections, call_read, value_leaf, value_read
from resolvers.plan.run import Branch, Leaf, Run
from resolvers.plan.sought import Sought
from resolvers.plan.values import Leaves
from resolvers.plan.written import Read, Write, Written, branch_of, in_two, is_leaf, objects_of

T = TypeVar("T")


class Compiler:
    """Compiles one operation; the selections of types that may stand at a place are compiled when one does."""

    def __init__(self, schema: GraphQLSchema, model: Model, collector: Collector) -> None:
        self._schema = schema
        self._model = model
        self._collector = collector
        self._selections = Selections(collector.fragments, model.possible)
        self.sought = Sought(schema, collector)

    # --- the root ---

    def roots(self) -> tuple[tuple[str, ...], list[tuple[tuple[str, ...], Branch]], dict[str, Leaf]]:
        """Compile the operation: the names of its fields, the branches with those that each gives, and the leaves."""
        fields = self._collector.root()
        type_ = self._schema.query_type
        assert type_ is not None
        leaves: dict[str, Leaf] = {}
        branches: list[tuple[tuple[str, ...], Branch]] = []
        lookups: dict[str, list[str]] = {}
        for name, details in fields.items():
            if details[0].node.name.value == "__typename":
                leaves[name] = typename_leaf(type_.name)
            elif isinstance(self._meaning(type_, details), Lookup):
                lookups.setdefault(_likeness(details), []).append(name)
            else:
                branches.append(((name,), self._branch(type_, name, details)))
        for names in lookups.values():
            branches.append((tuple(names), self._lookups(type_, fields, names)))
        return tuple(fields), branches, leaves

    def _lookups(self, type_: GraphQLObjectType, fields: Fields, names: list[str]) -> Branch:
        """Read lookups that select the same of the same type together: they are one level."""
        details = fields[names[0]]
        definition = type_.fields[details[0].node.name.value]
        meaning = self._meaning(type_, details)
        assert isinstance(meaning, Lookup)
        asked = [(Arguments(definition, fields[name][0].node), _nodes(fields[name]), name) for name in names]
        direct, companions = Direct.of(self._model, meaning.item), self._companions(_object(definition), details)
        read = LookupRead(meaning, asked, self._selections, direct, companions)
        written = self._written(definition, type_, details)

        async def branch(run: Run, batch: Any) -> list[Any]:
            found, layout = await read(run, batch)
            run.failures.time += 1
            return await written.write(run, found, lambda number: ((type_.name, names[number]),), layout)

        return branch

    def _companions(self, item: GraphQLObjectType, *details: Details) -> Companions:
        """List the relationships that are selected without any argument but `first`."""
        asked: list[tuple[Relationship, ValueNode | None]] = []
        for found in (found for one in details for found in self._collector.below(item, one).values()):
            meaning = self._meaning(item, found)
            if not isinstance(meaning, (ToOne, ToMany)):
                continue
            for one in found:
                arguments = {argument.name.value: argument.value for argument in one.node.arguments or ()}
                first = arguments.pop("first", None)
                field = item.fields[one.node.name.value]
                if not arguments and (isinstance(meaning, ToOne) or self._reads_page(field, [one])):
                    asked.append((meaning.relationship, first))
        return Companions(asked)

    def _type(self, name: str) -> GraphQLObjectType:
        type_ = self._schema.type_map[name]
        assert isinstance(type_, GraphQLObjectType)
        return type_

    def _reads_page(self, field: GraphQLField, details: Details) -> bool:
        fields = self._collector.below(_object(field), details).values()
        return any(one[0].node.name.value in PAGE_FIELDS for one in fields)

    # --- any type ---

    def selection(self, type_: GraphQLObjectType, details: Details) -> Selection:
        """Compile what is selected of objects of a type below a field."""
        fields = self._collector.below(type_, details)
        leaves: dict[int, Leaf] = {}
        branches: dict[int, Branch] = {}
        for place, (name, found) in enumerate(fields.items()):
            leaf = self._leaf(type_, name, found)
            if leaf is None:
                branches[place] = self._branch(type_, name, found)
            else:
                leaves[place] = leaf
        return Selection(tuple(fields), leaves, branches)

    def _leaf(self, type_: GraphQLObjectType, name: str, details: Details) -> Leaf | None:
        """Compile a field that is written without further reading; None where it is not one."""
        if details[0].node.name.value == "__typename":
            return typename_leaf(type_.name)
        field, definition = self._field(type_, details)
        if field.meaning == Part("pageInfo"):
            return self.selection(_object(definition), details).now
        if not is_leaf(definition.type) or isinstance(field, ResolverField):
            return None
        step = (type_.name, name)
        leaves = Leaves(definition.type, f"{type_.name}.{details[0].node.name.value}")
        match field.meaning:
            case GlobalId():
                return id_leaf(leaves, step)
            case Attribute(attribute):
                return attribute_leaf(self._model, attribute, leaves, step)
            case Part("cursor"):
                return cursor_leaf
            case Part("totalCount"):
                return total_leaf(leaves, step)
            case Entry(entry) if type_.name == "PageInfo":
                return page_info_leaf(entry)
            case _:
                return value_leaf(field, leaves, step)

    def _branch(self, type_: GraphQLObjectType, name: str, details: Details) -> Branch:
        """Compile a field that reads further, or holds objects."""
        field, definition = self._field(type_, details)
        step: Step = (type_.name, name)
        what = f"{type_.name}.{details[0].node.name.value}"
        match field.meaning:
            case Part("edges"):
                edge = _object(definition)
                own = self._edge_type(edge, details)
                return edges_branch(self._model, own, self.selection(edge, details), step, what)
            case Part("nodes"):
                return nodes_branch(self._model, self._nodes(definition, details), step, what)
            case Part("node"):
                return node_branch(self._nodes(definition, details), step)
            case _:
                read = self._read(field, definition, name, details)
                branch = branch_of(read, self._written(definition, type_, details), step)
                return in_two(branch, read.ready) if isinstance(read, ReferenceRead) else branch

    def _read(self, field: ValueField | ResolverField, definition: GraphQLField, name: str, details: Details) -> Read:
        arguments = Arguments(definition, details[0].node)
        match field.meaning:
            case Reference(reference):
                return ReferenceRead(self._model, reference, self._needs(details))
            case ToOne(relationship):
                return ToOneRead(relationship, self._needs(details), arguments)
            case ToMany(relationship):
                return to_many_read(relationship, arguments, self._wanted(definition, details, relationship))
            case meanings.Find(find):
                return find_read(find, arguments, self._wanted(definition, details, find))
            case Attribute(attribute) if isinstance(field, ValueField):
                return attribute_read(self._model, attribute)
        if isinstance(field, ValueField):
            return value_read(field)
        return call_read(field, arguments, _nodes(details), name, self._selections)

    def _written(self, definition: GraphQLField, type_: GraphQLObjectType, details: Details) -> Written:
        what = f"{type_.name}.{details[0].node.name.value}"
        objects = None if is_leaf(definition.type) else self._objects(definition, details)
        return Written(definition.type, what, objects)

    def _objects(self, definition: GraphQLField, details: Details) -> Write:
        named = get_named_type(definition.type)
        if self._is_of_items(named):
            return self._nodes(definition, details).write
        assert isinstance(named, GraphQLObjectType)
        selection = self.selection(named, details)
        return pages_of(selection) if "edges" in named.fields and "pageInfo" in named.fields else objects_of(selection)

    def _is_of_items(self, named: GraphQLNamedType) -> bool:
        return is_abstract_type(named) or named.name in self._model.items

    def _nodes(self, definition: GraphQLField, details: Details) -> Nodes:
        return Nodes(self._model, lambda name: self.selection(self._type(name), details))

    # --- what is asked for ---

    def _needs(self, *details: Details) -> Needs:
        """Say what is selected of the nodes at a field, by their type."""

        def names(type_name: str) -> frozenset[str]:
            found = (self._collector.below(self._type(type_name), one) for one in details)
            selected = {one[0].node.name.value for fields in found for one in fields.values()}
            return frozenset(name for name in selected if not name.startswith("__"))

        return _ByType(names)

    def _wanted(self, definition: GraphQLField, details: Details, pattern: Relationship | Find) -> Wanted:
        connection = _object(definition)
        fields = self._collector.below(connection, details)
        names = {found[0].node.name.value for found in fields.values()}
        edge = _object(connection.fields["edges"])
        below: list[Details] = []
        edge_names: set[str] = set()
        for found in fields.values():
            if found[0].node.name.value == "nodes":
                below.append(found)
            if found[0].node.name.value == "edges":
                for inner in self._collector.below(edge, found).values():
                    edge_names.add(inner[0].node.name.value)
                    if inner[0].node.name.value == "node":
                        below.append(inner)
        own = frozenset(name for name in edge_names - {"cursor", "node"} if not name.startswith("__"))
        asked = Asked(
            needs=self._needs(*below),
            edge_needs=lambda _: own,
            wants_nodes="nodes" in names or "node" in edge_names,
            wants_page=bool(names & {"edges", "nodes", "pageInfo"}),
            wants_count="totalCount" in names,
        )
        last = pattern.path[-1] if isinstance(pattern, Relationship) and pattern.path else pattern
        inverses = frozenset(last.inverses) & self.sought.names if isinstance(last, Relationship) else frozenset()
        companions = _ByType(lambda name: self._companions(self._type(name), *below))
        is_constant = not self._collector.definition.variable_definitions
        return Wanted(asked, companions, inverses, is_constant)

    def _edge_type(self, edge: GraphQLObjectType, details: Details) -> ItemType | None:
        """Give the type of the items that edges are, where a field of theirs is selected."""
        for found in self._collector.below(edge, details).values():
            if found[0].node.name.value not in ("cursor", "node", "__typename"):
                own = self._field(edge, found)[0]
                for item in self._model.items.values():
                    if any(field is getattr(own.meaning, "field", None) for field in item.fields.values()):
                        return item
        return None

    def _field(self, type_: GraphQLObjectType, details: Details) -> tuple[ValueField | ResolverField, GraphQLField]:
        definition = type_.fields[details[0].node.name.value]
        field = field_of(definition)
        assert isinstance(field, (ValueField, ResolverField)), "every field of the API is made here"
        return field, definition

    def _meaning(self, type_: GraphQLObjectType, details: Details) -> Meaning | None:
        """Say what a field stands for; nothing of `__typename`."""
        if details[0].node.name.value.startswith("__"):
            return None
        return self._field(type_, details)[0].meaning


class _ByType(Generic[T]):
    """Remembers what was made for a type."""

    def __init__(self, make: Callable[[str], T]) -> None:
        self._make = make
        self._known: dict[str, T] = {}

    def __call__(self, type_name: str) -> T:
        if type_name not in self._known:
            self._known[type_name] = self._make(type_name)
        return self._known[type_name]


def typename_leaf(name: str) -> Leaf:
    """Make the leaf of `__typename`."""

    def leaf(run: Run, batch: Any) -> list[Any]:
        return [name] * len(batch)

    return leaf


def _object(definition: GraphQLField) -> GraphQLObjectType:
    named = get_named_type(definition.type)
    assert isinstance(named, GraphQLObjectType)
    return named


def _nodes(details: Details) -> list[FieldNode]:
    return [one.node for one in details]


def _likeness(details: Details) -> str:
    """Write a lookup without its alias and arguments: those written alike can be read together."""
    sets = [print_ast(one.node.selection_set) for one in details if one.node.selection_set is not None]
    return "\n".join([details[0].node.name.value, *sets])
