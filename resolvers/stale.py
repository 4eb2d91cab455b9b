"""`extensions.stale`: how old what an answer shows of copies may be, where these follow by the stream."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from typing import Any

from graphql import (
    BooleanValueNode,
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLField,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    Node,
    OperationDefinitionNode,
    TypeInfo,
    TypeInfoVisitor,
    Visitor,
    is_abstract_type,
    visit,
)

from graph.model import Field, Model
from resolvers.meanings import Reference
from resolvers.plan.sought import BACKREF

FRESH = "fresh"
"""The argument of what takes nodes from copies that may be behind, and of nothing else."""

Watermark = Callable[[], float | None]
"""Gives the moment, by the event loop's clock, before which all was written that the copies show; None: not known."""


class Stale:
    """What one answer tells of the copies in it: made before any is read, for they are shown as they are then."""

    __slots__ = ("_watermark",)

    def __init__(self, watermark: Watermark | None) -> None:
        self._watermark = None if watermark is None else watermark()

    def told(self) -> dict[str, float | None]:
        """Tell how many seconds ago a copy that is shown may have ceased to be right, at most; None: not known."""
        if self._watermark is None:
            return {"atMostSecs": None}
        age_secs = asyncio.get_running_loop().time() - self._watermark
        return {"atMostSecs": math.ceil(age_secs * 1000) / 1000}


class CopiesShown:
    """Which operations may show copies that follow by the stream: decided by their text, whatever the variables are."""

    def __init__(self, schema: GraphQLSchema, model: Model) -> None:
        self._schema = schema
        self._is_anything_followed = any(model.is_followed(item) for item in model.items.values())
        self._copied = list(_copied(model))

    def by(self, document: DocumentNode, definition: OperationDefinitionNode) -> bool:
        """Say whether an operation may show some."""
        if not self._is_anything_followed:
            return False
        fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
        search = _Search(self, TypeInfo(self._schema))
        parts: list[Node] = [definition]
        for part in parts:
            visit(part, TypeInfoVisitor(search.info, search))
            parts += [fragments.pop(name) for name in search.spread if name in fragments]
        return search.has_found

    def at(self, parent: GraphQLNamedType | None, node: FieldNode) -> bool:
        """Say whether a field of a type may."""
        if is_abstract_type(parent):
            return any(self.at(type_, node) for type_ in self._schema.get_possible_types(parent))
        definition = parent.fields.get(node.name.value) if isinstance(parent, GraphQLObjectType) else None
        return definition is not None and (_may_be_behind(definition, node) or self._is_copied(definition))

    def _is_copied(self, definition: GraphQLField) -> bool:
        meaning = getattr(definition.extensions.get(BACKREF), "meaning", None)
        return isinstance(meaning, Reference) and any(meaning.field is field for field in self._copied)


class _Search(Visitor):
    def __init__(self, shown: CopiesShown, info: TypeInfo) -> None:
        super().__init__()
        self.info = info
        self.spread: list[str] = []
        self.has_found = False
        self._shown = shown

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        self.has_found = self.has_found or self._shown.at(self.info.get_parent_type(), node)

    def enter_fragment_spread(self, node: FragmentSpreadNode, *_: Any) -> None:
        self.spread.append(node.name.value)


def _may_be_behind(definition: GraphQLField, node: FieldNode) -> bool:
    given = {argument.name.value: argument.value for argument in node.arguments or ()}.get(FRESH)
    return FRESH in definition.args and not (isinstance(given, BooleanValueNode) and given.value)


def _copied(model: Model) -> Iterator[Field]:
    """List the references of items that hold a copy of the node which they name."""
    for item in model.items.values():
        for name in {layout.copy for layout in item.layouts if layout.copy is not None}:
            if any(model.is_followed(model.items[target]) for target in item.fields[name].refs):
                yield item.fields[name]
