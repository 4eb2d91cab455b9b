"""Columns: one field of many items at once, straight from the wire where nothing stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from itertools import compress
from typing import Any

from graph.entity import UNKNOWN
from graph.keys import Literal, Template, Variable
from graph.model import Field, Layout, Model
from graph.records import contents, presence
from graph.requests import Item
from graph.rows import KeyOnly, Rows
from graph.scalars import instant


class Loose(list[Any]):
    """A column of which some values may be None, or the exceptions that kept them from being read."""


Read = Callable[[Sequence[Item]], list[Any]]

Column = Callable[[Rows], list[Any]]
"""Reads a field of all rows; a plain list has a value of the field's type everywhere."""


def column(model: Model, field: Field, layout: Layout | None) -> Column:
    """Make the column of a field of rows of a layout."""
    read = None if layout is None else _reader(model, field, layout)
    is_in_key = layout is None or _is_in_key(field, layout)

    def read_column(rows: Rows) -> list[Any]:
        if read is None:
            return _one_by_one(rows, field, is_in_key=is_in_key)
        try:
            return read(rows.wires)
        except KeyError:
            # Missing here and there, or of another type.
            part = None if is_in_key else _where_there(rows, field.attribute, read)
        except (ValueError, ArithmeticError):
            part = None
        return _one_by_one(rows, field, is_in_key=is_in_key) if part is None else part

    return read_column


def _where_there(rows: Rows, name: str, read: Read) -> Loose | None:
    """Read the items that have an attribute, None for the others; None where that does not do."""
    if not all(rows.wires) or type(rows.wires[0]) is KeyOnly:
        return None
    is_there = presence(name)(rows.wires)
    try:
        values = iter(read(list(compress(rows.wires, is_there))))
    except (KeyError, ValueError, ArithmeticError):
        return None
    return Loose([next(values) if there else None for there in is_there])


def _one_by_one(rows: Rows, field: Field, *, is_in_key: bool) -> Loose:
    values = Loose()
    for number, wire in enumerate(rows.wires):
        if wire and not is_in_key and field.attribute not in wire and type(wire) is not KeyOnly:
            values.append(None)
            continue
        try:
            value = rows.entity(number).value(field)
            assert value is not UNKNOWN, f"{field.name} was not asked for by the look-ahead"
        except Exception as error:
            value = error
        values.append(value)
    return values


def _is_in_key(field: Field, layout: Layout) -> bool:
    return any(variable.path == (field.name,) for one in layout.templates.values() for variable in one.variables)


def _reader(model: Model, field: Field, layout: Layout) -> Read:
    by_attribute = _reader_of_attribute(field)
    held_by = _held_by(model, field, layout)
    if held_by is None or held_by == field.attribute:
        return by_attribute
    begin = len(plain_prefix(layout.templates[held_by]) or "")
    is_there, texts = presence(field.attribute), contents(held_by)

    def read(wires: Sequence[Item]) -> list[Any]:
        if True in is_there(wires):
            return by_attribute(wires)
        return [text[begin:] for text in texts(wires)]

    return read


def _reader_of_attribute(field: Field) -> Read:
    name, read, scalar = field.attribute, field.read, field.scalar
    if field.blob is not None or field.type.of is not None or scalar is None:
        return lambda wires: [read(wire[name]) for wire in wires]
    texts, numbers = contents(name), contents(name, "N")
    if scalar.values:
        values = frozenset(scalar.values)
        return lambda wires: _checked(texts(wires), values)
    match scalar.name:
        case "String" | "ID":
            return texts
        case "Boolean":
            return contents(name, "BOOL")
        case "Int":
            return lambda wires: list(map(int, numbers(wires)))
        case "Float":
            return lambda wires: list(map(float, numbers(wires)))
        case "DateTime":
            return lambda wires: list(map(_second, texts(wires)))
        case "Date":
            return lambda wires: list(map(_day, texts(wires)))
        case _:
            return lambda wires: [read(wire[name]) for wire in wires]


def _checked(texts: list[str], values: frozenset[str]) -> list[str]:
    if not values.issuperset(texts):
        raise ValueError("one of the values")
    return texts


def _second(text: str) -> str:
    """Take a moment, without a look at each letter where it is in the form that nearly all are written in."""
    if len(text) == 20 and text[10] == "T" and text[19] == "Z" and text[4] == "-" == text[7] and text[13] == ":":
        datetime.fromisoformat(text)
    else:
        instant(text)
    return text


def _day(text: str) -> str:
    if len(text) != 10 or text[7] != "-":
        raise ValueError("2022-07-19")
    date.fromisoformat(text)
    return text


# --- fields that a key holds --------------------------------------------------------------------------------------


def _held_by(model: Model, field: Field, layout: Layout) -> str | None:
    """Name the attribute of the primary key that is a plain text with the field's value at its end, if it is the one.

    The value is that of the first template which holds it whole.
    """
    for name, template in layout.templates.items():
        if any(variable.path == (field.name,) and not variable.lossy for variable in template.variables):
            is_primary = name in model.tables[layout.table].key_attributes
            return name if is_primary and plain_prefix(template) is not None else None
    return None


def plain_prefix(template: Template) -> str | None:
    """Give the literal before the only variable of a key, where any text may stand behind it; else None."""
    match template.parts:
        case (Variable() as variable,):
            prefix = ""
        case (Literal(text), Variable() as variable):
            prefix = text
        case _:
            return None
    is_text = variable.is_free and not variable.format and variable.scalar.name in ("ID", "String")
    return prefix if is_text else None
