"""Types and fields with @search: which texts of which nodes are searched, and how much each field counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from graph.model import Field, FieldKind, ItemType
from resolvers.sdl.declarations import Declarations, DeclaredField, DeclaredType, Directive
from resolvers.sdl.report import Report
from resolvers.sdl.tables import Tables

TEXTS = ("ID", "String")
MOST_WEIGHT = 1_000


class Search:
    """Finds out what is searched, and reports what cannot be."""

    def __init__(self, declared: Declarations, tables: Tables, items: Mapping[str, ItemType], report: Report) -> None:
        self._declared = declared
        self._tables = tables
        self._items = items
        self._report = report

    def all(self) -> dict[str, ItemType]:
        """Give the item types with what is searched of them."""
        for type_ in (*self._declared.objects.values(), *self._declared.interfaces.values()):
            self._refuse(type_, "and no items", "expected it on a type with @node. Add @node, or remove @search")
        if self._declared.query is not None:
            # What its fields may have is looked at with the finds.
            query = replace(self._declared.query, fields={})
            self._refuse(query, "and is the root", "expected it on the type that is searched. Move it there")
        return {name: self._item(self._declared.items[name], item) for name, item in self._items.items()}

    def _refuse(self, type_: DeclaredType, why: str, cure: str) -> None:
        """Report every @search of a type that cannot be searched at all."""
        for use in (*type_.uses("search"), *(use for _, use in _marked(type_))):
            if not self._report.blames(*self._declared.directives(type_.name)):
                self._report.add(use.node, f"`{type_.name}` has @search {why}: {cure}")

    def _item(self, type_: DeclaredType, item: ItemType) -> ItemType:
        if not type_.uses("search") and not _marked(type_):
            return item
        if not type_.is_node:
            self._refuse(
                type_,
                "and stands between two nodes",
                "expected it on a type with @node, for what is found is a node. Move it to the nodes at its ends",
            )
        elif item.virtual:
            self._refuse(
                type_,
                "and no item, for it is virtual",
                "expected a type whose items tell when one comes or goes. Remove @search, or `virtual`",
            )
        elif any(self._tables.stored(layout.table).period is not None for layout in item.layouts):
            self._refuse(
                type_,
                "and lies in a table for each period",
                "expected a type in a table that stays, for its stream keeps the index. Remove @search, and filter "
                "with `where`",
            )
        else:
            return replace(item, searched=self._searched(type_, item))
        return item

    def _searched(self, type_: DeclaredType, item: ItemType) -> dict[str, float]:
        weights = {
            field.name: self._weight(field, use)
            for field, use in _marked(type_)
            if self._is_searchable(type_, field, item.fields[field.name], use)
        }
        for use in type_.uses("search"):
            if use.get("weight") != 1:
                self._report.add(
                    use.at("weight"),
                    f"`weight` of `{type_.name}` would count for all its fields alike: expected it on single fields. "
                    "Move it to the fields that count more than the others",
                )
            texts = [name for name, field in item.fields.items() if _is_text(self._declared, field)]
            if not texts and not self._report.blames(type_.node):
                self._report.add(
                    use.node,
                    f"`{type_.name}` has @search and no text: expected a field of type String, ID or an enum, or a "
                    "list of them, without @blob. Add one, or remove @search",
                )
            # In the order of the file, whichever of them are marked as well.
            return {name: weights.get(name, 1.0) for name in texts}
        return weights

    def _is_searchable(self, type_: DeclaredType, field: DeclaredField, made: Field, use: Directive) -> bool:
        where = f"`{type_.name}.{field.name}`"
        if _is_text(self._declared, made):
            return True
        if not self._report.blames(field.node):
            if made.blob is not None:
                why = "has @blob, and what is compressed or lies elsewhere is not looked into"
                cure = "Remove one of the two, or search a shorter field"
            else:
                why, cure = f"is {field.type}, which holds no words", "Search it with `where`, or remove @search"
            self._report.add(
                use.node,
                f"{where} {why}: expected String, ID, an enum, or a list of them, without @blob. {cure}",
            )
        return False

    def _weight(self, field: DeclaredField, use: Directive) -> float:
        weight = float(use.get("weight"))
        if not (math.isfinite(weight) and 0 < weight <= MOST_WEIGHT):
            self._report.add(
                use.at("weight"),
                f"`weight` of `{field.name}` is {weight:g}: expected more than 0, and at most {MOST_WEIGHT:,}. A field "
                "that is not to count has no @search",
            )
        return weight


def _marked(type_: DeclaredType) -> list[tuple[DeclaredField, Directive]]:
    fields = type_.fields.values()
    return [(field, field.directives["search"]) for field in fields if "search" in field.directives]


def _is_text(declared: Declarations, field: Field) -> bool:
    """Say whether a field of an item holds words: text, an enum, or a list of them."""
    is_flat = field.type.of is None or field.type.of.of is None
    is_worded = field.type.named in TEXTS or field.type.named in declared.enums
    return field.kind is FieldKind.ATTRIBUTE and is_flat and is_worded and field.blob is None
