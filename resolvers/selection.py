"""Look-ahead: what a field's selection asks for, over fragments, with @skip and @include applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from graphql import (
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLIncludeDirective,
    GraphQLResolveInfo,
    GraphQLSkipDirective,
    InlineFragmentNode,
    SelectionNode,
    SelectionSetNode,
    ValueNode,
    get_directive_values,
    value_from_ast_untyped,
)
from graphql.execution.values import VariableValues

Possible = Callable[[str], frozenset[str]]
"""The item types that the name of a type may stand for."""


class Selection:
    """The selection sets of one field, all its occurrences taken together."""

    __slots__ = ("_fragments", "_possible", "_sets", "_variables", "response_name")

    def __init__(
        self,
        sets: list[SelectionSetNode],
        fragments: Mapping[str, FragmentDefinitionNode],
        variables: VariableValues,
        possible: Possible,
        response_name: str = "",
    ) -> None:
        self.response_name = response_name
        """The key of the field in the response: its alias, or its name."""
        self._sets = sets
        self._fragments = fragments
        self._variables = variables
        self._possible = possible

    @classmethod
    def of(cls, info: GraphQLResolveInfo[Any], possible: Possible) -> Selection:
        """Take the selection of the field that is being resolved."""
        sets = [node.selection_set for node in info.field_nodes if node.selection_set is not None]
        return cls(sets, info.fragments, info.variable_values, possible, str(info.path.key))

    def names(self, type_name: str | None = None) -> frozenset[str]:
        """List the fields selected, without `__typename`; with a type, only those that apply to it."""
        return frozenset(node.name.value for node in self._fields(type_name) if not node.name.value.startswith("__"))

    def plain(self, type_name: str) -> Iterator[tuple[str, int | None, Selection]]:
        """List the fields selected without any argument but `first`: the name, `first`, and the selection below."""
        for node in self._fields(type_name):
            arguments = {argument.name.value: argument.value for argument in node.arguments or ()}
            first = arguments.pop("first", None)
            if not arguments and node.selection_set is not None:
                below = Selection([node.selection_set], self._fragments, self._variables, self._possible)
                yield node.name.value, self._integer(first), below

    def _integer(self, node: ValueNode | None) -> int | None:
        value = None if node is None else value_from_ast_untyped(node, self._variables.coerced)
        return value if isinstance(value, int) else None

    def child(self, *path: str) -> Selection:
        """Give the selection below a path of fields; an empty one when it is not selected."""
        found = self
        for name in path:
            sets = [
                node.selection_set
                for node in found._fields(None)
                if node.name.value == name and node.selection_set is not None
            ]
            found = Selection(sets, self._fragments, self._variables, self._possible)
        return found

    def _fields(self, type_name: str | None) -> Iterator[FieldNode]:
        seen: set[str] = set()
        for selection_set in self._sets:
            yield from self._walk(selection_set, type_name, seen)

    def _walk(self, selection_set: SelectionSetNode, type_name: str | None, seen: set[str]) -> Iterator[FieldNode]:
        for node in selection_set.selections:
            if not self._is_included(node):
                continue
            if isinstance(node, FieldNode):
                yield node
            elif isinstance(node, InlineFragmentNode):
                condition = node.type_condition
                if condition is None or self._applies(condition.name.value, type_name):
                    yield from self._walk(node.selection_set, type_name, seen)
            elif isinstance(node, FragmentSpreadNode) and node.name.value not in seen:
                # Each fragment once: fragments that spread each other twice would double the work at every level.
                seen.add(node.name.value)
                fragment = self._fragments[node.name.value]
                if self._applies(fragment.type_condition.name.value, type_name):
                    yield from self._walk(fragment.selection_set, type_name, seen)

    def _applies(self, condition: str, type_name: str | None) -> bool:
        return type_name is None or condition in (type_name, "Node") or type_name in self._possible(condition)

    def _is_included(self, node: SelectionNode) -> bool:
        if not node.directives:
            return True
        skip = get_directive_values(GraphQLSkipDirective, node, self._variables)
        include = get_directive_values(GraphQLIncludeDirective, node, self._variables)
        return not (skip and skip["if"]) and (include is None or bool(include["if"]))
