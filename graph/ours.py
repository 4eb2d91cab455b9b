"""Items that are nobody's data: what mutations and the streams' reader keep in the table, and where it lies."""

from __future__ import annotations

import hashlib
from decimal import Decimal

from graph.keys import OURS, KeyValue
from graph.model import Model, Table
from graph.requests import Item, ItemKey
from graph.scalars import AttributeValue
from graph.tables import key_type

RECEIPT = f"{OURS}receipt"
"""What a receipt holds: that a mutation with an idempotency key is done."""
STREAM = f"{OURS}stream"
"""What the reader's item holds: how far the streams are read."""
NAME = f"{OURS}name"
"""What a slot of names holds: the last name that was given in it."""

EXPIRES = f"{OURS}expires"
"""The second from which on an item of ours is spent, and may be swept away."""
COPIES = f"{OURS}copies"
"""What an item holds that says how far the copies of a node have been brought up to date."""


def place(model: Model, table: Table, name: str) -> ItemKey:
    """Say where an item of ours lies: under its name, or where keys are numbers under one that is made of it."""
    number = int(hashlib.sha256(name.encode()).hexdigest()[:30], 16)

    def value(attribute: str) -> KeyValue:
        # Below zero, and far: nobody counts there.
        return -Decimal(number) if key_type(model, table, attribute) == "N" else f"{OURS}{name}"

    return table.name, tuple((attribute, value(attribute)) for attribute in table.key_attributes)


def expiring(model: Model, table: Table, when: int) -> dict[str, AttributeValue]:
    """Say in an item of ours from which second on it is spent: to the table's TTL too, where it has one."""
    names = (item.expiry for item in model.items.values() if item.layouts and item.layouts[0].table == table.name)
    expiry = next((name for name in names if name is not None), None)
    return {name: {"N": str(when)} for name in (EXPIRES, expiry) if name is not None}


def is_ours(item: Item, table: Table) -> bool:
    """Say whether an item is one of ours."""
    return is_ours_in(item, table.key_attributes)


def is_ours_in(item: Item, key_attributes: tuple[str, ...]) -> bool:
    """Say whether an item of a table with this key is one of ours."""
    partition = item.get(key_attributes[0], {})
    kinds = (RECEIPT, NAME, STREAM, COPIES)
    return any(kind in item for kind in kinds) or str(partition.get("S", "")).startswith(OURS)
