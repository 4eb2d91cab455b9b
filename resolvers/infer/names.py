"""Names for types and fields: of attributes, of the words in keys, and of tables."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graph.infer.values import is_field_name
from resolvers.sdl.fields import ATTRIBUTE_CASES
from resolvers.sdl.names import NAMING, WRITING
from resolvers.sdl.words import PAGING_ARGUMENTS, RESERVED_TYPES, RESOLVER_ARGUMENTS, WHERE_FIELDS

TAKEN = frozenset(
    (*WHERE_FIELDS, *RESOLVER_ARGUMENTS, *PAGING_ARGUMENTS, "id", "cursor", "node", "nodes", "versions", "at")
)
"""What no field that we name is called, for the API has it already somewhere."""
_ENDINGS = tuple(one.format("") for one in (*NAMING, *WRITING) if one.startswith("{}"))
TAKEN_ENDINGS = (*_ENDINGS, "Connection", "Edge", "Where", "Change", "Filter", "Input", "Payload")
_IRREGULAR = {"person": "people", "child": "children", "man": "men", "woman": "women", "foot": "feet"}
_SINGULAR = {plural: singular for singular, plural in _IRREGULAR.items()}
_ALIKE = ("series", "species", "news", "data", "metadata", "info", "staff", "history", "equipment", "inventory")


def parts(text: str) -> list[str]:
    """Split a name into its words: "OrderItem", "order_item" and "ORDER-ITEM" are the same two."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text)
    return [word for word in re.split(r"[^A-Za-z0-9]+", spaced) if word]


def pascal(text: str) -> str:
    """Write a name as a type's."""
    made = "".join(word[:1].upper() + (word[1:].lower() if word.isupper() else word[1:]) for word in parts(text))
    return f"T{made}" if made[:1].isdigit() else made


def camel(text: str) -> str:
    """Write a name as a field's."""
    made = pascal(text)
    return made[:1].lower() + made[1:]


def plural(name: str) -> str:
    """Write a name as that of many, by the rules of English."""
    *_, last = parts(name) or [name]
    low = last.lower()
    head = name[: len(name) - len(last)]
    if low in _ALIKE or singular(name) != name:
        return name
    if low in _IRREGULAR:
        return head + last[:1] + _IRREGULAR[low][1:]
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return head + last[:-1] + "ies"
    return head + last + ("es" if low.endswith(("s", "x", "z", "ch", "sh")) else "s")


def singular(name: str) -> str:
    """Write the name of many as that of one."""
    *_, last = parts(name) or [name]
    low = last.lower()
    head = name[: len(name) - len(last)]
    if low in _SINGULAR:
        return head + last[:1] + _SINGULAR[low][1:]
    if low in _ALIKE or low.endswith(("ss", "us", "is")) or not low.endswith("s") or len(low) < 4:
        return name
    if low.endswith("ies"):
        return head + last[:-3] + "y"
    return head + (last[:-2] if low.endswith(("sses", "xes", "zes", "ches", "shes")) else last[:-1])


def same(text: str) -> str:
    """Write a name so that those of one meaning are equal: one, without its case."""
    return singular("".join(part[:1].upper() + part[1:].lower() for part in parts(text))).lower()


def type_name(wish: str, taken: Iterable[str]) -> str:
    """Make the name of a type that is free."""
    name = pascal(wish) or "Item"
    if name in RESERVED_TYPES or name.endswith(TAKEN_ENDINGS) or name in ("Query", "Mutation", "Subscription"):
        name += "Item"
    return unique(name, taken)


def field_name(attribute: str, case: str) -> str:
    """Make the name of a field from that of its attribute."""
    if case == "AS_WRITTEN" and is_field_name(attribute) and attribute[0].islower() and "_" not in attribute:
        return attribute
    made = camel(attribute)
    return made if is_field_name(made) else f"field{pascal(attribute)}"


def unique(name: str, taken: Iterable[str]) -> str:
    """Put a number behind a name that is taken."""
    names = {one.lower() for one in taken}
    number, made = 2, name
    while made.lower() in names:
        made = f"{name}{number}"
        number += 1
    return made


def attribute_case(attributes: Iterable[str]) -> str:
    """Find the rule by which attributes are named."""
    names = list(attributes)
    for case in ("PASCAL", "SNAKE"):
        fits = [name for name in names if ATTRIBUTE_CASES[case](camel(name)) == name and camel(name) != name]
        if names and 2 * len(fits) > len(names):
            return case
    return "AS_WRITTEN"
