"""The fields of Query that look items up, and fields of which a plan knows only the resolver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphql import FieldNode, FragmentDefinitionNode, GraphQLError

from graph import lookups
from graph.collection import Companion, Gathering, gather, gathering, has_company
from graph.columns import Loose
from graph.direct import Direct
from graph.entity import Entity
from graph.errors import InputError
from graph.keys import Path
from graph.levels import one_by_one
from graph.requests import ItemKey
from graph.tenancy import within_tenant
from resolvers.fields import ResolverField, ValueField
from resolvers.meanings import Lookup
from resolvers.node import companions, named_by
from resolvers.plan.arguments import Arguments
from resolvers.plan.companions import Companions
from resolvers.plan.failures import Step
from resolvers.plan.objects import below
from resolvers.plan.run import Leaf, Run
from resolvers.plan.values import Leaves
from resolvers.plan.written import Found, Read
from resolvers.selection import Possible, Selection


class Selections:
    """Makes the look-ahead of a field, as resolvers take it."""

    def __init__(self, fragments: Mapping[str, FragmentDefinitionNode], possible: Possible) -> None:
        self._fragments = fragments
        self._possible = possible

    def of(self, run: Run, nodes: Sequence[FieldNode], name: str) -> Selection:
        """Make the selection of a field in a run."""
        sets = [node.selection_set for node in nodes if node.selection_set is not None]
        return Selection(sets, self._fragments, run.variables, self._possible, name)


class LookupRead:
    """Reads the items of several lookups that are alike together, each by arguments of its own."""

    def __init__(
        self,
        lookup: Lookup,
        fields: list[tuple[Arguments, list[FieldNode], str]],
        selections: Selections,
        direct: Direct | None,
        companions: Companions,
    ) -> None:
        self._lookup = lookup
        self._fields = fields
        self._selections = selections
        self._direct = direct
        self._companions = companions
        self._constant: list[ItemKey] | None = None
        self._is_constant = not lookup.item.tenants and all(one.constant is not None for one, _, _ in fields)
        """Every caller means the same keys: none has a tenant's in them, which may be the caller's."""
        self._gatherings: dict[tuple[int, ...], tuple[bool, Gathering | None]] = {}

    async def __call__(self, run: Run, batch: Any) -> Found:
        keys = self._keys(run)
        if keys is None or self._direct is None:
            return await self._one_by_one(run), None
        companions = self._companions.of(run.operation.limits, run.variables)
        has_company, shape = self._gathering(run, companions) if companions else (False, None)
        if has_company:
            if shape is None:
                return await self._one_by_one(run), None
            failures = await gather(run.operation, shape, keys)
            return await self._load_gathered(run, self._direct, keys, failures), self._direct.layout
        return await self._direct.load(run.operation, keys), self._direct.layout

    @staticmethod
    async def _load_gathered(
        run: Run, direct: Direct, keys: list[ItemKey], failures: list[Exception | None]
    ) -> list[Any]:
        """Load what the Queries for items and their companions have not brought, unless they failed."""
        found: list[Any] = list(failures)
        rest = [number for number, failure in enumerate(failures) if failure is None]
        if rest:
            loaded = await direct.load(run.operation, [keys[number] for number in rest])
            for number, item in zip(rest, loaded, strict=True):
                found[number] = item
        return found

    def _gathering(self, run: Run, companions: list[Companion]) -> tuple[bool, Gathering | None]:
        """Say whether companions are read along, and how where that is plain."""
        sizes = tuple([companion.want for companion in companions])
        if sizes not in self._gatherings:
            entity = Entity(run.operation.model, self._lookup.item, named=self._named(run, 0))
            self._gatherings[sizes] = (
                has_company(run.operation, entity, companions),
                gathering(run.operation, entity, companions),
            )
        return self._gatherings[sizes]

    def _named(self, run: Run, number: int) -> Mapping[Path, Any]:
        named = named_by(self._lookup.arguments, self._fields[number][0].of(run))
        return within_tenant(run.operation.model, run.operation.permissions, self._lookup.item, named)

    def _keys(self, run: Run) -> list[ItemKey] | None:
        """Make the keys of all lookups; None where one has to be looked at."""
        if self._direct is None or self._constant is not None:
            return self._constant
        keys: list[ItemKey] = []
        for number, _ in enumerate(self._fields):
            try:
                key = self._direct.key(self._named(run, number))
            except (GraphQLError, InputError):
                return None
            if key is None:
                return None
            keys.append(key)
        if self._is_constant:
            self._constant = keys
        return keys

    async def _one_by_one(self, run: Run) -> list[Any]:
        outcomes = await one_by_one(run.operation, range(len(self._fields)), lambda number: self._one(run, number))
        return [outcomes[number] for number in range(len(self._fields))]

    async def _one(self, run: Run, number: int) -> Entity | None:
        _, nodes, name = self._fields[number]
        named, item = self._named(run, number), self._lookup.item
        selection = self._selections.of(run, nodes, name)
        return await lookups.lookup(run.operation, item, named, list(companions(run.operation, item, selection)))


def call_read(
    field: ResolverField, arguments: Arguments, nodes: list[FieldNode], name: str, selections: Selections
) -> Read:
    """Make what calls a field's own resolver for each object."""

    async def read(run: Run, batch: Any) -> Found:
        given = arguments.of(run)
        selection = selections.of(run, nodes, name)

        async def call(number: int) -> Any:
            return await field.resolve(batch.source(number), run.operation, given, selection)

        outcomes = await one_by_one(run.operation, range(len(batch)), call)
        return [outcomes[number] for number in range(len(batch))], None

    return read


def value_leaf(field: ValueField, leaves: Leaves, step: Step) -> Leaf:
    """Make the leaf of a field that is read off each object."""

    def leaf(run: Run, batch: Any) -> list[Any]:
        values = Loose(_value(field, batch.source(number)) for number in range(len(batch)))
        return leaves.write(run, values, below(batch.at, step))

    return leaf


def value_read(field: ValueField) -> Read:
    """Make what reads objects off each object."""

    async def read(run: Run, batch: Any) -> Found:
        return [_value(field, batch.source(number)) for number in range(len(batch))], None

    return read


def _value(field: ValueField, source: Any) -> Any:
    try:
        return field.read(source)
    except Exception as error:
        return error
