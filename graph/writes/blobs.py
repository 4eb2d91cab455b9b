"""Large values on their way into an item: compressed, and written as objects before anything points to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph.errors import InputError
from graph.loaders import Operation
from graph.model import ItemType
from graph.packing import Pointer, Stored
from graph.tasks import together


async def store_blobs(
    operation: Operation, type_: ItemType, values: Mapping[str, Any], owner: object
) -> dict[str, Any]:
    """Give values with the large ones as the attributes that they become; `owner` is what names their item.

    An object that no transaction then points to is left to the sweep.

    Cost:   one PUT for each value that is too large for the table, once in an operation.
    Raises: InputError, BlobUnavailable, DeadlineExceeded.
    """
    known = Stored | Pointer | None
    large = [name for name, value in values.items() if type_.fields[name].blob and not isinstance(value, known)]
    stored = await together([_stored(operation, type_, name, values[name], owner) for name in large])
    return {**values, **dict(zip(large, stored, strict=True))}


async def _stored(operation: Operation, type_: ItemType, name: str, value: Any, owner: object) -> Stored:
    field = type_.fields[name]
    assert field.blob is not None
    try:
        return await operation.pointers.stored(type_.name, field, field.blob, value, owner)
    except ValueError as expected:
        raise InputError(f"`{name}` of {type_.name} cannot be stored: expected {expected}") from None
