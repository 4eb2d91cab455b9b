"""Limits of a document: what it has is counted before it is validated, and one that has too much is refused.

Nothing here asks the schema, and nothing takes longer than the document is long or a limit is high: a fragment is
counted once, however often it is spread, and what is unfolded is walked through only when that is known to be little.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLError,
    InlineFragmentNode,
    OperationDefinitionNode,
    SelectionSetNode,
    parse,
)

LIMIT_EXCEEDED = "LIMIT_EXCEEDED"
LARGEST_TOLD = 2**31 - 1
"""Largest count that an error tells: unfolded fragments soon pass what JSON's readers take for a whole number."""
TOO_LONG = "Syntax Error: Document contains more than "
"""How graphql-core's error begins when it stops at a limit of ours; it has no class of its own."""

Definition = OperationDefinitionNode | FragmentDefinitionNode


def _most(default: int, doc: str, name: str, things: str, cure: str) -> Any:
    return field(default=default, metadata={"doc": doc, "name": name, "things": things, "cure": cure})


@dataclass(frozen=True)
class DocumentLimits:
    """The most that a document may have: of all its operations together, with their fragments unfolded."""

    tokens: int = _most(
        10_000,
        "Most tokens of a document, and most comments.",
        "tokens",
        "tokens, or comments",
        "send values as variables, and what is asked for in several requests",
    )
    definitions: int = _most(
        200,
        "Most operations and fragments in a document.",
        "definitions",
        "operations and fragments",
        "send only the operation that is to be executed, with its fragments",
    )
    depth: int = _most(
        20,
        "Most fields that may be nested, each in the one before.",
        "depth",
        "levels of fields",
        "nest less, and ask for what is further away by another request, with node(id:)",
    )
    root_fields: int = _most(
        50,
        "Most fields of an operation itself.",
        "rootFields",
        "root fields in an operation",
        "ask for many nodes with nodes(ids:), and for the rest in several requests",
    )
    selections: int = _most(
        5_000,
        "Most selections of a document once its fragments are unfolded.",
        "selections",
        "selections with its fragments unfolded",
        "select less, or in several requests",
    )
    aliases: int = _most(
        200,
        "Most aliases of a document once its fragments are unfolded.",
        "aliases",
        "aliases",
        "ask for many nodes with nodes(ids:), and for the rest in several requests",
    )
    directives: int = _most(
        200,
        "Most directives of a document once its fragments are unfolded.",
        "directives",
        "directives",
        "put them on fragments that hold many fields",
    )
    merges: int = _most(
        20_000,
        "Most pairs of equally named selections in one place, which validation has to compare.",
        "merges",
        "pairs of selections to be merged",
        "select a field once in each place",
    )


class Measured(NamedTuple):
    """What a document has, or one of its definitions with all that it spreads."""

    depth: int = 0
    root_fields: int = 0
    selections: int = 0
    aliases: int = 0
    directives: int = 0


class Unmeasurable(Exception):
    """Two fragments of a document have one name, or some form a cycle: validation refuses it."""


def parse_within(query: str, limits: DocumentLimits) -> DocumentNode:
    """Parse a document, no further than the tokens that it may have, and count its definitions.

    Raises: GraphQLError with a code.
    """
    try:
        document = parse(query, max_lexical_tokens=limits.tokens, max_comments=limits.tokens)
    except GraphQLError as syntax:
        if syntax.message.startswith(TOO_LONG):
            raise _exceeded("tokens", limits.tokens + 1, limits.tokens, least=True) from None
        syntax.extensions = {"code": "GRAPHQL_PARSE_FAILED"}
        raise
    # Counted here, for whoever follows fragments wants few of them: a long chain exhausts the stack.
    if len(document.definitions) > limits.definitions:
        raise _exceeded("definitions", len(document.definitions), limits.definitions)
    return document


def exceeded(document: DocumentNode, limits: DocumentLimits) -> list[GraphQLError]:
    """List the limits that a document exceeds, before anything else asks it.

    Cost: a visit of each of its nodes, then one of each selection that is left when fragments are unfolded.
    Raises: Unmeasurable.
    """
    definitions = _Definitions(document)
    found = definitions.measured()
    errors = [
        _exceeded(name, value, most)
        for name, value in found._asdict().items()
        if value > (most := getattr(limits, name))
    ]
    if found.selections <= limits.selections and (merges := definitions.merges(limits.merges)) > limits.merges:
        errors.append(_exceeded("merges", merges, limits.merges, least=True))
    return errors


def measure(document: DocumentNode) -> Measured:
    """Count what a document has. Raises Unmeasurable."""
    return _Definitions(document).measured()


def merges(document: DocumentNode) -> int:
    """Count the pairs that have to be merged, in as many steps as `measure` counts selections. Raises Unmeasurable."""
    return _Definitions(document).merges(LARGEST_TOLD)


def _exceeded(limit: str, value: int, most: int, *, least: bool = False) -> GraphQLError:
    """Tell of a limit; `least`: there was no more counting behind `value`."""
    metadata = next(each.metadata for each in fields(DocumentLimits) if each.name == limit)
    got = min(value, LARGEST_TOLD)
    number = f"at least {got:,}" if least or got < value else f"{got:,}"
    return GraphQLError(
        f"expected at most {most:,} {metadata['things']}, got {number}: {metadata['cure']}",
        extensions={"code": LIMIT_EXCEEDED, "limit": metadata["name"], "value": got, "most": most},
    )


class _Definitions:
    """The operations and fragments of a document. Raises Unmeasurable."""

    def __init__(self, document: DocumentNode) -> None:
        all_ = [one for one in document.definitions if isinstance(one, Definition)]
        self._own = {id(one): _own(one) for one in all_}
        fragments = [one for one in all_ if isinstance(one, FragmentDefinitionNode)]
        self._fragments = {one.name.value: one for one in fragments}
        if len(self._fragments) < len(fragments):
            raise Unmeasurable
        graph = {name: self._spread(one) for name, one in self._fragments.items()}
        try:
            # Those first that spread no other. One that is not there is left out: validation refuses it.
            self._inner_first = [name for name in TopologicalSorter(graph).static_order() if name in self._fragments]
        except CycleError:
            raise Unmeasurable from None
        spread = {name for one in all_ for name in self._spread(one)}
        self._operations = [one for one in all_ if isinstance(one, OperationDefinitionNode)]
        self._unused = [one for one in fragments if one.name.value not in spread]
        """What validation will refuse, but only when it has compared their fields."""

    def _spread(self, one: Definition) -> set[str]:
        _, spreads = self._own[id(one)]
        return {name for name, _ in spreads}

    def measured(self) -> Measured:
        """Count what the document has, each fragment once."""
        known: dict[str, Measured] = {}
        for name in self._inner_first:
            known[name] = self._unfolded(self._fragments[name], known)
        operations = [self._unfolded(one, known) for one in self._operations]
        found = [*operations, *(self._unfolded(one, known) for one in self._unused)]
        return Measured(
            max((one.depth for one in found), default=0),
            max((one.root_fields for one in operations), default=0),
            sum(one.selections for one in found),
            sum(one.aliases for one in found),
            sum(one.directives for one in found),
        )

    def _unfolded(self, one: Definition, known: Mapping[str, Measured]) -> Measured:
        own, spreads = self._own[id(one)]
        depth, root_fields, selections, aliases, directives = own
        for (name, level), times in spreads.items():
            inner = known.get(name, Measured())
            depth = max(depth, level + inner.depth if inner.depth else 0)
            root_fields += 0 if level else times * inner.root_fields
            selections += times * inner.selections
            aliases += times * inner.aliases
            directives += times * inner.directives
        return Measured(depth, root_fields, selections, aliases, directives)

    def merges(self, most: int) -> int:
        """Count the pairs of equally named selections, and of fragments, in one place; not much further than `most`."""
        count = 0
        places: list[list[SelectionSetNode]] = [[one.selection_set] for one in (*self._operations, *self._unused)]
        while places and count <= most:
            below: dict[str, list[SelectionSetNode]] = {}
            names: Counter[str] = Counter()
            spread: set[str] = set()
            for selection in self._in_one_place(places.pop(), spread):
                name = selection.alias.value if selection.alias else selection.name.value
                names[name] += 1
                if selection.selection_set:
                    below.setdefault(name, []).append(selection.selection_set)
            count += sum(_pairs(times) for times in names.values()) + _pairs(len(spread))
            places.extend(below.values())
        return count

    def _in_one_place(self, sets: list[SelectionSetNode], spread: set[str]) -> Iterator[FieldNode]:
        """Give the fields of selection sets that stand in one place, each fragment's once; adds to `spread`."""
        while sets:
            for selection in sets.pop().selections:
                if isinstance(selection, FieldNode):
                    yield selection
                elif isinstance(selection, InlineFragmentNode):
                    sets.append(selection.selection_set)
                elif isinstance(selection, FragmentSpreadNode) and (name := selection.name.value) not in spread:
                    spread.add(name)
                    if name in self._fragments:
                        sets.append(self._fragments[name].selection_set)


def _own(definition: Definition) -> tuple[Measured, Counter[tuple[str, int]]]:
    """Count what a definition has itself, and how often it spreads which fragment below how many fields."""
    depth = root_fields = selections = aliases = 0
    directives = len(definition.directives or ())
    directives += sum(len(one.directives or ()) for one in definition.variable_definitions or ())
    spreads: Counter[tuple[str, int]] = Counter()
    sets = [(definition.selection_set, 0)]
    while sets:
        set_, level = sets.pop()
        selections += len(set_.selections)
        for selection in set_.selections:
            directives += len(selection.directives or ())
            if isinstance(selection, FieldNode):
                depth = max(depth, level + 1)
                root_fields += level == 0
                aliases += selection.alias is not None
                if selection.selection_set:
                    sets.append((selection.selection_set, level + 1))
            elif isinstance(selection, InlineFragmentNode):
                sets.append((selection.selection_set, level))
            elif isinstance(selection, FragmentSpreadNode):
                spreads[selection.name.value, level] += 1
    return Measured(depth, root_fields, selections, aliases, directives), spreads


def _pairs(count: int) -> int:
    return count * (count - 1) // 2
