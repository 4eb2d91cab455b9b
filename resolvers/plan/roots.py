"""The fields of Query that look items up, and fields of which a plan knows only the resolver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphql import FieldNode, FragmentDefinitionNode

from graph import lookups
from graph.columns import Loose
from graph.entity import Entity
from graph.keys import Path
from graph.levels import one_by_one
from graph.model import ItemType
from resolvers.fields import ResolverField, ValueField
from resolvers.node import companions, named_by
from resolvers.plan.arguments import Arguments
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
        return Selection(sets, self._fragments, run.variables, self._possible, name)  # type: ignore[arg-type]


class LookupRead:
    """Reads the items of several equal lookups together, each by arguments of its own."""

    def __init__(
        self,
        item: ItemType,
        known: Mapping[str, tuple[Path, bool]],
        fields: list[tuple[Arguments, list[FieldNode], str]],
        selections: Selections,
    ) -> None:
        self._item = item
        self._known = known
        self._fields = fields
        self._selections = selections

    async def __call__(self, run: Run, batch: Any) -> Found:
        outcomes = await one_by_one(range(len(self._fields)), lambda number: self._one(run, number))
        return [outcomes[number] for number in range(len(self._fields))], None

    async def _one(self, run: Run, number: int) -> Entity | None:
        arguments, nodes, name = self._fields[number]
        named = named_by(self._known, arguments.of(run))
        selection = self._selections.of(run, nodes, name)
        return await lookups.lookup(
            run.operation, self._item, named, list(companions(run.operation, self._item, selection))
        )


def call_read(
    field: ResolverField, arguments: Arguments, nodes: list[FieldNode], name: str, selections: Selections
) -> Read:
    """Make what calls a field's own resolver for each object."""

    async def read(run: Run, batch: Any) -> Found:
        given = arguments.of(run)
        selection = selections.of(run, nodes, name)

        async def call(number: int) -> Any:
            return await field.resolve(batch.source(number), run.operation, given, selection)

        outcomes = await one_by_one(range(len(batch)), call)
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
