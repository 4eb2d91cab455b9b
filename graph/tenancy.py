"""The tenant of the caller, where a read need not say it: bound into keys like any other value that names an item."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from graph.errors import InputError, KeyValueError
from graph.filters import Filter, bounds
from graph.keys import Path, Template
from graph.loaders import Operation
from graph.model import Find, ItemType, Model
from graph.permissions import Permissions
from graph.planner import plan
from graph.rules import Right
from graph.scalars import Scalar


def within_tenant(
    model: Model, permissions: Permissions | None, type_: ItemType, named: Mapping[Path, Any]
) -> Mapping[Path, Any]:
    """Add the caller's tenant to what names an item, where its key holds that and nobody says which.

    Raises: InputError where the caller's credentials do not say it either.
    """
    if not type_.tenants:
        return named
    scalars = _scalars(_naming(model, type_))
    left_out = [path for path in sorted(type_.tenants) if path in scalars and path not in named]
    if not left_out:
        return named
    known = _bound(permissions, type_, left_out, scalars)
    if unsaid := [path for path in left_out if path not in known]:
        names = " and ".join(f"`{'.'.join(path)}`" for path in unsaid)
        raise InputError(
            f"a {type_.name} is named without {names}: expected it, for your credentials do not say which one"
        )
    return {**named, **known}


def tenant_of(operation: Operation, find: Find, where: Filter) -> Mapping[Path, Any]:
    """Give what all items have that a find may give, where no rule of its own lets it read across tenants.

    Raises: InputError where neither the arguments nor the caller's credentials say which tenant it is.
    """
    if find.auth or find.scan:
        return {}
    known: dict[Path, Any] = {}
    for name in find.item_types:
        type_ = operation.model.items[name]
        if type_.tenants:
            templates = (template for layout in type_.layouts for template in layout.templates.values())
            scalars = _scalars(templates)
            known |= _bound(operation.permissions, type_, [path for path in type_.tenants if path in scalars], scalars)
    tenants = {path for name in find.item_types for path in operation.model.items[name].tenants}
    if tenants and plan(find.accesses, bounds(where, known)) is None:
        said = bounds(where, known)
        unsaid = " and ".join(sorted(f"`{'.'.join(path)}`" for path in tenants if path not in said))
        raise InputError(
            f"`Query.{find.name}` reads within one tenant: expected {unsaid} as an argument, if it has one, or as what "
            "your credentials say, which leave it open"
        )
    return known


def _bound(
    permissions: Permissions | None, type_: ItemType, paths: Collection[Path], scalars: Mapping[Path, Scalar]
) -> dict[Path, Any]:
    if permissions is None:
        return {}
    bound = permissions.of(type_.name, Right.READ).bound
    return {path: of_text(scalars[path], bound[path]) for path in paths if path in bound}


def of_text(scalar: Scalar, text: str) -> Any:
    """Take the text of a claim as a value. Raises KeyValueError where it is none."""
    try:
        return scalar.check(text)
    except (ValueError, ArithmeticError) as expected:
        raise KeyValueError(
            f"your credentials say {text!r}, which the model has no place for: expected {expected}"
        ) from None


def _naming(model: Model, type_: ItemType) -> Iterator[Template]:
    """List what names an item: its key, and what others name it by."""
    layout = type_.layouts[0]
    yield from (layout.templates[name] for name in model.tables[layout.table].key_attributes)
    if type_.ref is not None:
        yield type_.ref


def _scalars(templates: Iterable[Template]) -> dict[Path, Scalar]:
    return {variable.path: variable.scalar for template in templates for variable in template.variables}
