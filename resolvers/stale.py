"""`extensions.stale`: how old what an answer shows of copies may be, where these follow by the stream."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any

from graphql import (
    BooleanValueNode,
    DocumentNode,
    FieldNode,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    OperationDefinitionNode,
    is_abstract_type,
)

from resolvers.operation_visit import OperationVisitor

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

    def __init__(self, schema: GraphQLSchema) -> None:
        self._schema = schema
        types = [type_ for type_ in schema.type_map.values() if isinstance(type_, GraphQLObjectType)]
        self._are_any = any(FRESH in field.args for type_ in types for field in type_.fields.values())

    def by(self, document: DocumentNode, definition: OperationDefinitionNode) -> bool:
        """Say whether an operation may show some."""
        if not self._are_any:
            return False
        search = _Search(self._schema)
        search.visit(document, definition)
        return search.has_found


class _Search(OperationVisitor):
    def __init__(self, schema: GraphQLSchema) -> None:
        super().__init__(schema)
        self.has_found = False
        self._schema = schema

    def enter_field(self, node: FieldNode, *_: Any) -> None:
        self.has_found = self.has_found or self._may_show(self.info.get_parent_type(), node)

    def _may_show(self, parent: GraphQLNamedType | None, node: FieldNode) -> bool:
        if is_abstract_type(parent):
            # It has no such argument, but those have that stand for it.
            return any(self._may_show(type_, node) for type_ in self._schema.get_possible_types(parent))
        field = parent.fields.get(node.name.value) if isinstance(parent, GraphQLObjectType) else None
        if field is None or FRESH not in field.args:
            return False
        given = {argument.name.value: argument.value for argument in node.arguments or ()}.get(FRESH)
        return not (isinstance(given, BooleanValueNode) and given.value)
