"""Lookups whose arguments are all that the key is made of: many at once, without a look at what they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graph.columns import plain_prefix
from graph.entity import every_layout
from graph.keys import Path
from graph.levels import Outcome, never
from graph.loaders import Operation
from graph.model import ItemType, Layout, Model
from graph.records import are_items
from graph.requests import ItemKey
from graph.shapes import SHORT, fits
from graph.sources import read_layouts


class Direct:
    """Finds items of one type by their keys, each made of literal text and one argument."""

    def __init__(self, model: Model, type_: ItemType, layout: Layout, parts: Sequence[tuple[str, str, Path]]) -> None:
        self.type = type_
        self.layout = layout
        self._table = model.tables[layout.table].name
        self._parts = parts
        """Each attribute of the key, the text before the value, and the path that the value is bound to."""
        self._values = len({path for _, _, path in parts})
        self._fits = fits(model, layout, frozenset(name for name, _, _ in parts)) or never

    @classmethod
    def of(cls, model: Model, type_: ItemType) -> Direct | None:
        """Make the way of a type; None where its keys are made otherwise."""
        layout = type_.layouts[0]
        table = model.tables[layout.table]
        if type_.virtual or table.period is not None:
            return None
        parts: list[tuple[str, str, Path]] = []
        for name in table.key_attributes:
            template = layout.templates[name]
            prefix = plain_prefix(template)
            if prefix is None:
                return None
            parts.append((name, prefix, template.variables[0].path))
        return cls(model, type_, layout, parts)

    def key(self, named: Mapping[Path, Any]) -> ItemKey | None:
        """Make the key; None where a value is missing, or has to be looked at."""
        if len(named) != self._values:
            return None
        texts: list[tuple[str, str]] = []
        for name, prefix, path in self._parts:
            value = named.get(path)
            if type(value) is not str or not value or len(value) > SHORT - len(prefix) or not value.isascii():
                return None
            texts.append((name, prefix + value))
        return self._table, tuple(texts)

    async def load(self, operation: Operation, keys: Sequence[ItemKey]) -> list[Outcome]:
        """Load the items of these keys: each as it came or, where that has to be looked at, as an entity."""
        outcomes: list[Any] = await operation.outcomes(keys)
        if are_items(outcomes, or_none=True) and self._fits([item for item in outcomes if item is not None]):
            return outcomes
        return [
            item
            if item is None or isinstance(item, Exception)
            else read_layouts(operation, every_layout(self.type), item, self.type.name)
            for item in outcomes
        ]
