"""Receipts: what makes a mutation with an idempotency key happen once, whoever repeats it and however late.

A receipt is an item of its own, written by the transaction that it is for: either both are there, or neither is. Its
partition key begins with "tablegraph-receipt#", and it is kept for a day. Where the model has rules it is its caller's
own: the same key of another one is another key.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal

from graph.entity import Entity, read_entity
from graph.errors import InputError, KeyReused, NotFound
from graph.expressions import AnyOf, Compare, Not, Present
from graph.loaders import Operation
from graph.lookups import by_keys
from graph.model import ItemType
from graph.ours import EXPIRES, RECEIPT, expiring, place
from graph.requests import ItemKey, key_attribute, key_value
from graph.scalars import AttributeValue
from graph.sizes import item_bytes
from graph.transaction import Guard, Rule, Transaction
from graph.writes.guards import name_of

KEPT_SECS = 24 * 60 * 60
MOST_ANSWER_BYTES = 200 * 1024


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a mutation's receipt is known by: the caller's key, and what was asked for with it."""

    type: ItemType
    key: str
    request: str
    """A text that is the same when the same is asked for again."""


async def answered(operation: Operation, receipt: Receipt) -> Entity | None:
    """Give the item that the mutation resulted in, if it has been carried out. Raises KeyReused, NotFound."""
    (item,) = await operation.items([where(operation, receipt)])
    if item is None or Decimal(item[EXPIRES]["N"]) <= operation.now:
        return None
    content = item[RECEIPT]["M"]
    if content["request"]["S"] != _hash(receipt.request):
        raise KeyReused("this idempotency key was given with another mutation before: take a new key for a new write")
    type_ = operation.model.items[content["type"]["S"]]
    if "answer" in content:
        read = (read_entity(operation.model, layout, content["answer"]["M"]) for layout in type_.layouts)
        return next(entity for entity in read if entity is not None)
    key = content["table"]["S"], tuple((name, key_value(value)) for name, value in content["key"]["M"].items())
    (found,) = await by_keys(operation, [Entity(operation.model, type_, key=key)])
    if found is None:
        raise NotFound(f"this mutation has been carried out before, and {name_of(type_, key)} is gone since")
    return found


def add(transaction: Transaction, operation: Operation, receipt: Receipt, result: Entity) -> None:
    """Put the receipt into the transaction that it is for."""
    model, key = operation.model, where(operation, receipt)
    result_key = result.key
    assert result_key is not None, "what was written has a key"
    content: dict[str, AttributeValue] = {
        "type": {"S": result.type.name},
        "table": {"S": result_key[0]},
        "key": {"M": {name: key_attribute(value) for name, value in result_key[1]}},
        "request": {"S": _hash(receipt.request)},
    }
    if result.holds is None and item_bytes(result.wire) <= MOST_ANSWER_BYTES:
        content["answer"] = {"M": dict(result.wire)}
    item: dict[str, AttributeValue] = {name: key_attribute(value) for name, value in key[1]}
    item |= {RECEIPT: {"M": content}, **expiring(model, model.tables[key[0]], operation.now + KEPT_SECS)}
    gone = AnyOf((Not(Present(EXPIRES)), Compare(EXPIRES, "<=", ("N", str(operation.now)))))
    transaction.put(key, item, [Guard(Rule.UNDONE, gone, "the receipt")])


def where(operation: Operation, receipt: Receipt) -> ItemKey:
    """Say where a receipt lies. Raises InputError when no table can hold it."""
    model = operation.model
    own = model.tables[receipt.type.layouts[0].table]
    table = next((one for one in (own, *model.tables.values()) if one.period is None), None)
    if table is None:
        raise InputError("idempotency keys need a table that is there at all times: this model has time series alone")
    return place(model, table, f"receipt#{_hash(_whose(operation) + receipt.key)}")


def _whose(operation: Operation) -> str:
    """Write who a caller is, and of which tenants, so that no two are written alike; nothing where nobody counts."""
    permissions = operation.permissions
    if permissions is None:
        return ""
    rules = (rule for type_ in operation.model.items.values() for rule in type_.auth)
    claims = sorted({match.claim for rule in rules for match in rule.tenant})
    return repr((permissions.subject, [(name, sorted(permissions.claim(name))) for name in claims]))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
