"""Items as DynamoDB's JSON: checked against DynamoDB's rules and the model, and placed in their tables."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from graph.entity import Entity, read_entity
from graph.errors import InputError, ItemError
from graph.keys import PARTITION_KEY_BYTES, SORT_KEY_BYTES
from graph.model import FieldKind, Layout, Model, Table
from graph.requests import Item
from graph.scalars import number_text, storable
from graph.sizes import item_bytes
from graph.tables import key_type

MOST_ITEM_BYTES = 400 * 1024
MOST_DEPTH = 32


@dataclass(slots=True, eq=False)
class Placed:
    """An item with the table that it goes to, what tells its key from others, and its size."""

    table: str
    key: tuple[str, ...]
    item: Item
    size_bytes: int
    line: int = 0
    tries: int = 0


def all_layouts(model: Model) -> Iterator[Layout]:
    """List the shapes of all items, earlier versions among them."""
    for type_ in model.items.values():
        yield from type_.layouts
        if type_.history is not None:
            yield type_.history


class Fitting:
    """Takes items as what they are of some layouts."""

    def __init__(self, model: Model, layouts: Iterable[Layout]) -> None:
        self._model = model
        self._layouts = list(layouts)

    def read(self, item: Item) -> Entity | None:
        """Take an item as one of the layouts, or None when it is of none."""
        for number, layout in enumerate(self._layouts):
            entity = read_entity(self._model, layout, item)
            if entity is not None:
                # What fitted last is tried first: items of a type come together.
                if number:
                    self._layouts.insert(0, self._layouts.pop(number))
                return entity
        return None


class ItemReader:
    """Takes items in as they are, after checking that DynamoDB will take them and that they fit the model."""

    def __init__(self, model: Model, *, allow_unfit: bool = False) -> None:
        self._model = model
        self._allow_unfit = allow_unfit
        self._fitting = Fitting(model, all_layouts(model))
        self._only = next(iter(model.tables.values()))
        self._key_types = {table.name: _key_types(model, table) for table in model.tables.values()}

    def items(self, content: Any, table: str | None = None) -> list[Placed]:
        """Check an item and place it; `table` is where one that fits no type goes. Raises InputError."""
        content, table = _unwrapped(content, table)
        item = checked(content)
        entity = self._fitting.read(item)
        if entity is None:
            home = self._home(item, table)
            name = home.name if home.period is None or table is None else table
        else:
            assert entity.layout is not None, "what was read from an item has a layout"
            home = self._model.tables[entity.layout.table]
            self._refuse_unreadable(entity)
            name = home.name if home.period is None else home.period.name(entity.at((home.period.field,)))
        self._refuse_keys(home, item)
        return [placed(home, name, item)]

    def again(self, content: Any) -> list[Placed]:
        """Place an item that has been checked before."""
        if len(self._model.tables) == 1 and self._only.period is None:
            item, _ = _unwrapped(content, None)
            return [placed(self._only, self._only.name, item)]
        return self.items(content)

    def _home(self, item: Item, name: str | None) -> Table:
        """Find the table of an item that fits no type. Raises InputError when that is not allowed."""
        if not self._allow_unfit:
            keys = {name: item.get(name) for table in self._model.tables.values() for name in table.key_attributes}
            raise InputError(
                f"fits no type of the model: its key is {_shown(keys)}. Mend it, or allow it with --allow-unfit"
            )
        for table in self._model.tables.values():
            if table.name == name or (table.period is not None and name and table.period.names_table(name)):
                return table
        for table in self._model.tables.values():
            if table.period is None and all(name in item for name in table.key_attributes):
                return table
        raise InputError("has the key attributes of no table of the model")

    def _refuse_unreadable(self, entity: Entity) -> None:
        missing = []
        for entry in entity.type.fields.values():
            if entry.kind is FieldKind.RELATIONSHIP:
                continue
            try:
                value = entity.value(entry) if entry.kind is FieldKind.ATTRIBUTE else entity.reference(entry)
            except ItemError as error:
                raise InputError(str(error)) from None
            # Counters are made right afterwards.
            if value is None and entry.type.required and entry.count is None:
                missing.append(f"`{entry.name}`")
        if missing and not self._allow_unfit:
            raise InputError(
                f"is a {entity.type.name} without {' and '.join(missing)}, which the model requires. Add what is "
                "missing, or allow it with --allow-unfit"
            )

    def _refuse_keys(self, table: Table, item: Item) -> None:
        for name, (letter, limit, is_primary) in self._key_types[table.name].items():
            value = item.get(name)
            if value is None:
                if is_primary:
                    raise InputError(f"has no `{name}`, which is part of the key of the table `{table.name}`")
                continue
            ((found, content),) = value.items()
            if found != letter:
                raise InputError(f"`{name}` is a key of the table `{table.name}`: expected type {letter}, got {found}")
            if letter == "S" and not 0 < len(content.encode()) <= limit:
                raise InputError(f"`{name}` is a key: expected a text of 1 to {limit} bytes, got {content[:50]!r}")


def _unwrapped(content: Any, table: str | None) -> tuple[Any, str | None]:
    """Take an item out of `{"Item": …}`, with the name of its table, where that is said."""
    if isinstance(content, dict) and isinstance(content.get("Item"), dict) and _is_wrapped(content):
        return content["Item"], content.get("TableName", table)
    return content, table


def _is_wrapped(content: Mapping[str, Any]) -> bool:
    """Say whether an object has an item, and is none itself whose key is called Item."""
    return content.keys() <= {"Item", "TableName"} and not any(
        isinstance(content["Item"].get(letter), str) for letter in ("S", "N", "B")
    )


def _key_types(model: Model, table: Table) -> dict[str, tuple[str, int, bool]]:
    """Give the type and the size of every key attribute, and whether the table itself needs it."""
    found: dict[str, tuple[str, int, bool]] = {}
    for way in table.ways:
        for names, limit in ((way.partition_keys, PARTITION_KEY_BYTES), (way.sort_keys, SORT_KEY_BYTES)):
            for name in names:
                before = found.get(name, ("", limit, False))
                found[name] = (key_type(model, table, name), min(limit, before[1]), before[2] or way is table.primary)
    return found


def placed(table: Table, name: str, item: Item) -> Placed:
    """Place an item in a table, by its name. Raises InputError when it is too large."""
    size_bytes = item_bytes(item)
    if size_bytes > MOST_ITEM_BYTES:
        raise InputError(f"makes an item of {size_bytes:,} bytes: expected at most {MOST_ITEM_BYTES:,}")
    return Placed(name, key_of(name, table.key_attributes, item), item, size_bytes)


def key_of(table: str, names: tuple[str, ...], item: Item) -> tuple[str, ...]:
    """Give what tells an item's key from those of all others."""
    return (table, *(_key_text(item[name]) for name in names))


def _key_text(value: Mapping[str, Any]) -> str:
    # Of a number there is more than one text.
    return number_text(storable(value["N"])) if "N" in value else str(value.get("S") or value.get("B"))


def _shown(keys: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {'nothing' if value is None else value}" for name, value in keys.items())


# --- DynamoDB's rules ---------------------------------------------------------------------------------------------


def checked(content: Any) -> Item:
    """Take an item of DynamoDB's JSON. Raises InputError when DynamoDB would not."""
    if not isinstance(content, dict) or not content:
        raise InputError('is no item: expected an object of attributes, like {"name": {"S": "…"}}')
    for name, value in content.items():
        try:
            check_attribute(value)
        except ValueError as expected:
            raise InputError(f"`{name}`: expected {expected}, got {str(value)[:100]}") from None
    return content


def check_attribute(value: Any, depth: int = 0) -> None:
    """Check an attribute's value. Raises ValueError with the expectation as its message."""
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"an object of one type and its value, the type one of {', '.join(_LETTERS)}")
    ((letter, content),) = value.items()
    check = _LETTERS.get(letter)
    if check is None:
        raise ValueError(f"one of the types {', '.join(_LETTERS)}")
    if depth > MOST_DEPTH:
        raise ValueError(f"maps and lists that are nested {MOST_DEPTH} levels deep at most")
    check(content, depth)


def _text(content: Any, _: int) -> None:
    if not isinstance(content, str):
        raise ValueError("a text")


_PLAIN_NUMBER = re.compile(r"-?\d{1,38}(?:\.\d{1,20})?", re.ASCII)


def _number(content: Any, _: int) -> None:
    if not isinstance(content, str):
        raise ValueError("a number as a text")
    # Most numbers are short: only the others need to be counted.
    if len(content) > 38 or not _PLAIN_NUMBER.fullmatch(content):
        storable(content)


def _binary(content: Any, _: int) -> None:
    try:
        base64.b64decode(content, validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise ValueError("standard base64") from None


def _boolean(content: Any, _: int) -> None:
    if not isinstance(content, bool):
        raise ValueError("true or false")


def _null(content: Any, _: int) -> None:
    if content is not True:
        raise ValueError('{"NULL": true}')


def _set(check: Any) -> Any:
    def check_set(content: Any, depth: int) -> None:
        if not isinstance(content, list) or not content:
            raise ValueError("a set that is not empty, as a list")
        for entry in content:
            check(entry, depth)
        if len(set(content)) < len(content):
            raise ValueError("a set without duplicates")

    return check_set


def _list(content: Any, depth: int) -> None:
    if not isinstance(content, list):
        raise ValueError("a list")
    for entry in content:
        check_attribute(entry, depth + 1)


def _map(content: Any, depth: int) -> None:
    if not isinstance(content, dict):
        raise ValueError("a map")
    for entry in content.values():
        check_attribute(entry, depth + 1)


_LETTERS: Mapping[str, Any] = {
    "S": _text,
    "N": _number,
    "B": _binary,
    "BOOL": _boolean,
    "NULL": _null,
    "SS": _set(_text),
    "NS": _set(_number),
    "BS": _set(_binary),
    "L": _list,
    "M": _map,
}
