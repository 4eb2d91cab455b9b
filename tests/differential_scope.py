"""What stands in a selection set already: whether more can be merged into it."""

from __future__ import annotations

from typing import Any

from graphql import GraphQLField, get_named_type, is_composite_type, is_interface_type, is_union_type

Scope = dict[str, Any]
"""What stands in a selection set already: by response key the name, the arguments, the shape, and the scope below."""


def is_composite(definition: GraphQLField) -> bool:
    """Say whether a field has fields below it."""
    return is_composite_type(get_named_type(definition.type))


def kind_of_type(type_: Any) -> str:
    """Name what kind of composite a type is."""
    return "union" if is_union_type(type_) else "interface" if is_interface_type(type_) else "object"


def shape(definition: GraphQLField) -> str:
    """Write what two fields of one key must have in common: the type of a leaf, or the lists around all else."""
    named, text = get_named_type(definition.type), str(definition.type)
    return text.replace(named.name, "") if is_composite_type(named) else text


def cursor_scope(connection: Any, name: str, leaf: str) -> Scope:
    """Give what a cursor below a connection adds to its scope."""
    target = get_named_type(connection.fields[name].type)
    return {name: (name, {}, shape(connection.fields[name]), {leaf: (leaf, {}, shape(target.fields[leaf]), {})})}


def merged(scope: Scope, other: Scope) -> bool:
    """Take what stands in a fragment into a scope, or say that it cannot stand there."""
    if not all(_agrees(scope, key, entry) for key, entry in other.items()):
        return False
    _take(scope, other)
    return True


def _agrees(scope: Scope, key: str, entry: Any) -> bool:
    if key not in scope:
        return True
    return bool(scope[key][:3] == entry[:3]) and all(_agrees(scope[key][3], *below) for below in entry[3].items())


def _take(scope: Scope, other: Scope) -> None:
    for key, (name, arguments, shape, below) in other.items():
        _take(scope.setdefault(key, (name, arguments, shape, {}))[3], below)
