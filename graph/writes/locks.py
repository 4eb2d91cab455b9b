"""Locks: while a node is moved or deleted, or copies of it are rewritten, nothing new may link it.

A lock is an attribute of the node's item. Who links a node asks that there is none; who finds one that has been there
for too long takes it away, and its owner, should he still be alive, then fails and begins again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from graph.entity import Entity
from graph.errors import DeadlineExceeded, GraphError, InputPath, TransactionCancelled, Unavailable
from graph.expressions import Compare, value_of
from graph.loaders import Operation
from graph.model import ItemType
from graph.requests import ItemKey
from graph.scalars import AttributeValue
from graph.transaction import Guard, Rule, Transaction
from graph.updates import Update
from graph.writes.guards import LOCK, blamed, locked, name_of, present, unlocked

LEASE_SECS = 3.0


class Locks:
    """The nodes that one mutation has locked."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._held: dict[ItemKey, tuple[ItemType, str]] = {}

    def free(self, type_: ItemType, key: ItemKey, at: InputPath) -> Guard:
        """Ask that nobody else has locked a node."""
        held = self._held.get(key)
        return unlocked(type_, key, at) if held is None else locked(type_, key, held[1], at)

    async def take(self, node: Entity, key: ItemKey, at: InputPath) -> Guard:
        """Lock a node, and give the guard that it still is.

        Cost:   one transaction of one item.
        Raises: Refused when somebody else has, or when the node is gone.
        """
        if key not in self._held:
            lock = f"{time.time():.3f} {uuid.uuid4()}"
            transaction = Transaction()
            guards = [present(node.type, key, self._operation.now, at), unlocked(node.type, key, at)]
            transaction.update(key, Update(put={LOCK: {"S": lock}}), guards, at)
            await send(self._operation, transaction)
            self._held[key] = node.type, lock
        return locked(node.type, key, self._held[key][1], at)

    async def release(self) -> None:
        """Take away the locks that no transaction has taken away; those of items that are gone are gone as well."""
        for key, (type_, lock) in self._held.items():
            transaction = Transaction()
            guard = Guard(Rule.UNCHANGED, Compare(LOCK, "=", ("S", lock)), name_of(type_, key))
            transaction.update(key, Update(remove=frozenset((LOCK,))), [guard])
            with suppress(Refused, GraphError):
                await send(self._operation, transaction)
        self._held.clear()

    def done(self) -> None:
        """Forget the locks: the transaction that they were for has taken them away."""
        self._held.clear()


class Refused(Exception):
    """A transaction whose conditions do not hold: the guard to blame, and what lies there."""

    def __init__(self, guard: Guard, key: ItemKey, item: Mapping[str, Any]) -> None:
        super().__init__(guard.name)
        self.guard = guard
        self.key = key
        self.item = item


async def send(operation: Operation, transaction: Transaction) -> None:
    """Send a transaction. Raises Refused, TooLarge, StoreError."""
    request = transaction.request()
    try:
        await operation.write(request)
    except TransactionCancelled as error:
        changes = list(transaction.changes.values())
        refused = [
            Refused(blamed(changes[number].guards, item), changes[number].key, item)
            for number, item in error.items.items()
        ]
        raise min(refused, key=lambda one: list(Rule).index(one.guard.rule)) from None
    except (Unavailable, DeadlineExceeded) as error:
        raise type(error)(
            f"{error}. Whether the write was done is not known: look, or send it again with the same idempotency key"
        ) from error


async def break_stale(operation: Operation, refused: Refused) -> None:
    """Take away a lock whose owner has not come back for it."""
    lock = refused.item.get(LOCK)
    if lock is not None and is_stale(lock):
        transaction = Transaction()
        still = Guard(Rule.UNCHANGED, Compare(LOCK, "=", value_of(lock)), refused.guard.name)
        transaction.update(refused.key, Update(remove=frozenset((LOCK,))), [still])
        with suppress(Refused):
            await send(operation, transaction)


def is_stale(lock: AttributeValue) -> bool:
    """Say whether the owner of a lock has let its time go by; what is no lock of ours has no owner."""
    since, _, _ = str(lock.get("S", "")).partition(" ")
    try:
        return time.time() - float(since) > LEASE_SECS
    except ValueError:
        return True
