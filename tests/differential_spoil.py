"""Tables as others leave them: items that are gone, of a wrong type, without what they need, or of no type at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from graph.model import Model, Table
from graph.requests import Item
from graph.tables import key_type
from tests.differential_data import Tables

WRONG: tuple[dict[str, Any], ...] = (
    {"S": "what is this?"},
    {"N": "1.5"},
    {"N": "99999999999"},
    {"BOOL": True},
    {"NULL": True},
    {"L": [{"S": "a"}, {"NULL": True}]},
    {"M": {"width": {"N": "1"}}},
    {"SS": ["a", "b"]},
    {"B": "H4sIAGJsb2IAA2Zvbw=="},
)


class Spoiler:
    """Spoils some of the items of a model's tables."""

    def __init__(self, model: Model, dice: Random) -> None:
        self._model = model
        self._dice = dice
        self.tally: Counter[str] = Counter()
        self._versions = {
            type_.fields[type_.version].attribute for type_ in model.items.values() if type_.version is not None
        }

    def spoil(self, tables: Tables, share: float) -> None:
        """Spoil about that share of the items."""
        for name, items in tables.items():
            table = next(
                one
                for one in self._model.tables.values()
                if one.name == name or (one.period is not None and one.period.names_table(name))
            )
            tables[name] = [made for item in items for made in self._spoilt(table, item, share)]

    def _spoilt(self, table: Table, item: Item, share: float) -> list[Item]:
        if self._dice.random() > share:
            return [item]
        ways: list[Callable[[Table, dict[str, Any]], list[Item]]] = [
            self._gone, self._of_a_wrong_type, self._of_a_wrong_type, self._lacking, self._foreign, self._renamed,
        ]  # fmt: skip
        way = self._dice.choice(ways)
        self.tally[way.__name__.lstrip("_")] += 1
        return way(table, dict(item))

    def _loose(self, table: Table, item: Item) -> list[str]:
        """List the attributes that are in no key of the table itself."""
        return sorted(name for name in item if name not in table.key_attributes)

    def _gone(self, table: Table, item: dict[str, Any]) -> list[Item]:
        return []

    def _of_a_wrong_type(self, table: Table, item: dict[str, Any]) -> list[Item]:
        names = self._loose(table, item)
        if names:
            name = self._dice.choice(names)
            is_key = any(name in way.key_attributes for way in table.ways)
            # DynamoDB keeps whatever is of a wrong type out of its keys.
            letter = key_type(self._model, table, name) if is_key else ""
            item[name] = {letter: "7" if letter == "N" else "odd one"} if is_key else self._dice.choice(WRONG)
            if name in self._versions and "N" in item[name]:
                # Its history would be as long as the number says.
                item[name] = {"N": "5"}
        return [item]

    def _lacking(self, table: Table, item: dict[str, Any]) -> list[Item]:
        names = self._loose(table, item)
        for name in self._dice.sample(names, min(len(names), 2)):
            del item[name]
        return [item]

    def _foreign(self, table: Table, item: dict[str, Any]) -> list[Item]:
        """Add an item beside this one that no type knows."""
        other = {name: item[name] for way in table.ways for name in way.key_attributes if name in item}
        name = table.key_attributes[-1]
        if "S" in other[name]:
            other[name] = {"S": other[name]["S"] + self._dice.choice(["~", "/x", "#9"])}
        else:
            other[name] = {"N": str(self._dice.randrange(100, 200))}
        return [item, other | {"nobody": {"S": "knows"}}]

    def _renamed(self, table: Table, item: dict[str, Any]) -> list[Item]:
        """Give it the name of another type."""
        if table.type_attribute is None:
            return self._of_a_wrong_type(table, item)
        names = [type_.type_name for type_ in self._model.items.values()]
        item[table.type_attribute] = self._dice.choice([{"S": self._dice.choice([*names, "Else"])}, {"N": "1"}])
        return [item]
