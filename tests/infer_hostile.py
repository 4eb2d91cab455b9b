"""Tables that nobody would make: names that are taken, keys of junk, values of every type in one attribute."""

from __future__ import annotations

import json
from random import Random

from graph.infer.sample import Sample
from graph.model import Index, Projection
from graph.requests import Item
from graph.scalars import AttributeValue

LETTERS = "ab{}\"'\\#:|/._- \n\té字\U0001f600A0_9"
NAMES = (
    *("id", "node", "cursor", "and", "or", "not", "info", "__typename", "first", "after", "where", "name", "Name"),
    *("NAME", "1st", "a-b", "a.b", "é", "type", "Type", "versions", "at", "edges", "true", "null", "GSI1PK", "data"),
    *("customerId", "number", "_id", "order", "match", "fresh", "_source", " "),
)
NUMBERS = ("0", "-1", "1.5", "1E+20", "1E-130", "9.9E+125", "12345678901234567890123456789012345678", "1700000000")
HEADS = ("USER#", "u#", "ORDER-", "a", "", "{", "X_", "tag.")
MOST_DEPTH = 4


def text(dice: Random, most: int = 12) -> str:
    return "".join(dice.choice(LETTERS) for _ in range(dice.randint(1, most)))


def value(dice: Random, depth: int = 0) -> AttributeValue:
    kinds = ("S", "N", "BOOL", "NULL", "B", "SS", "NS", "BS", "L", "M")
    kind = dice.choice(kinds if depth < MOST_DEPTH else kinds[:2])
    if kind == "L":
        return {"L": [value(dice, depth + 1) for _ in range(dice.randint(0, 4))]}
    if kind == "M":
        names = [dice.choice(NAMES) + dice.choice(("", "", "", text(dice, 3))) for _ in range(dice.randint(0, 5))]
        return {"M": {name: value(dice, depth + 1) for name in names}}
    made: dict[str, AttributeValue] = {
        "S": {"S": dice.choice(("", text(dice), text(dice)))},
        "N": {"N": dice.choice(NUMBERS)},
        "BOOL": {"BOOL": dice.random() < 0.5},
        "NULL": {"NULL": True},
        "B": {"B": "YWJj"},
        "SS": {"SS": [text(dice)]},
        "NS": {"NS": ["1", "2.5"]},
        "BS": {"BS": ["YWJj"]},
    }
    return made[kind]


def hostile(dice: Random) -> Sample:
    """Make a table of junk."""
    types = {dice.choice(("pk", "id", "node", "PK", "type", "number", "a-b", "é")): dice.choice(("S", "S", "N"))}
    if (sort := dice.choice(("S", "S", "N", None))) is not None:
        types[dice.choice(("sk", "SK", "name", "cursor", "version"))] = sort
    keys = tuple(types)
    heads = [dice.choice(HEADS) for _ in range(dice.randint(1, 12))]
    pool = [head + text(dice, dice.choice((1, 3, 12))) for head in heads] + ["META", "metadata", "v0_A"]

    def key(kind: str) -> AttributeValue:
        return (
            {"S": dice.choice(pool)} if kind == "S" else {"N": dice.choice(NUMBERS)} if kind == "N" else {"B": "YQ=="}
        )

    items: dict[str, dict[str, AttributeValue]] = {}
    for _ in range(dice.choice((0, 1, 3, 30, 120))):
        item = {name: value(dice) for name in dice.sample(NAMES, 6) if name not in keys}
        item |= {name: key(kind) for name, kind in types.items()}
        items[json.dumps([item[name] for name in keys])] = item
    indexes = []
    if (indexed := dice.choice(("GSI1PK", "name2", "customerId", "data", None))) is not None:
        types[indexed] = dice.choice(("S", "N", "B"))
        for item in items.values():
            item.pop(indexed, None)
            item |= {indexed: key(types[indexed])} if dice.random() < 0.7 else {}
        shown = dice.choice((Projection.ALL, Projection.KEYS_ONLY, frozenset(["z"])))
        indexes.append(Index("hostile", "by-x", (indexed,), dice.choice(((), keys[:1])), shown))
    made: tuple[Item, ...] = tuple(items.values())
    name = dice.choice(("hostile", "123.x", "hostile-2022"))
    return Sample(name, Index(name, None, keys[:1], keys[1:]), tuple(indexes), types, made, is_whole=True)
