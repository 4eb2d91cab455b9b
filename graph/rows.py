"""Items of one type side by side: what a compiled plan reads its columns from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from graph.entity import Entity, read_entity
from graph.keys import Path
from graph.model import ItemType, Layout, Model
from graph.requests import Item, KeyAttributes

NOTHING: Final[Item] = {}
"""Stands for an item of which only its entity knows what may be read."""


class KeyOnly(dict[str, Any]):
    """The key of an item in the place of the item: nothing else of it is asked for."""

    @classmethod
    def of(cls, key: KeyAttributes) -> KeyOnly:
        """Write a key of texts."""
        return cls({name: {"S": text} for name, text in key})


class Rows:
    """Items of one type, in order.

    Each is a whole item of the one `layout`, which columns read straight from the wire, or the key of one, or else an
    entity: a name, a copy, an item of another layout. Its wire is then NOTHING.
    """

    __slots__ = ("_entities", "layout", "model", "type", "wires")

    def __init__(
        self,
        model: Model,
        type_: ItemType,
        layout: Layout | None,
        wires: Sequence[Item],
        entities: Mapping[int, Entity] | None = None,
    ) -> None:
        self.model = model
        self.type = type_
        self.layout = layout
        self.wires = wires
        self._entities: dict[int, Entity] = dict(entities) if entities else {}

    def __len__(self) -> int:
        return len(self.wires)

    @classmethod
    def of(cls, entities: Sequence[Entity]) -> Rows:
        """Take entities of one type, of which there is at least one."""
        first = entities[0]
        return cls(first.model, first.type, None, [NOTHING] * len(entities), dict(enumerate(entities)))

    def entity(self, number: int) -> Entity:
        """Give an item as an entity, made when somebody asks."""
        found = self._entities.get(number)
        if found is None:
            assert self.layout is not None, "an item without a layout has its entity from the beginning"
            wire = self.wires[number]
            found = self._named(self.layout, wire) if type(wire) is KeyOnly else self._read(self.layout, wire)
            self._entities[number] = found
        return found

    def _read(self, layout: Layout, wire: Item) -> Entity:
        found = read_entity(self.model, layout, wire)
        assert found is not None, "rows are made of items that fit their layout"
        return found

    def _named(self, layout: Layout, wire: Item) -> Entity:
        named: dict[Path, Any] = {}
        for name, attribute in wire.items():
            named |= layout.templates[name].parse(attribute["S"]) or {}
        return Entity(self.model, self.type, named=named)

    def take(self, numbers: Sequence[int]) -> Rows:
        """Take some of the items."""
        if len(numbers) == len(self.wires):
            return self
        entities = {place: self._entities[number] for place, number in enumerate(numbers) if number in self._entities}
        return Rows(self.model, self.type, self.layout, [self.wires[number] for number in numbers], entities)
