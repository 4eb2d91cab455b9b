"""Writes put together: at most one action for each item, what must hold for it, and the sizes that DynamoDB takes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum

from graph.errors import InputPath, TooLarge, WriteError
from graph.expressions import AllOf, Condition
from graph.requests import NO_UPDATE, Action, ItemKey, TransactWriteItems
from graph.scalars import AttributeValue, number_text
from graph.sizes import item_bytes
from graph.updates import Update, added

MOST_ACTIONS = 100
MOST_BYTES = 4 * 1024 * 1024
MOST_ITEM_BYTES = 400 * 1024


class Rule(Enum):
    """What a guard asks of an item, in the order in which failures are told.

    First what another try may mend: until it is mended, the rest may fail for the same reason.
    """

    UNDONE = "there is no receipt that says that it is done"
    UNLOCKED = "nobody is about to move or delete it"
    UNCHANGED = "it is as it was read"
    ABSENT = "there is no such item"
    PRESENT = "there is such an item"
    VERSION = "it has the version that the caller expects"
    WHERE = "it passes the caller's condition"
    MIRRORED = "its mirror is there"


@dataclass(frozen=True, slots=True)
class Guard:
    """One condition of an action, why it is there, and what in the arguments asked for it; `name` is the item's."""

    rule: Rule
    condition: Condition
    name: str
    at: InputPath = ()
    mutation: int = 0
    """Which of the mutations of the transaction asks."""


@dataclass(slots=True)
class Change:
    """What is to be done to one item, while the transaction is put together; nothing of it is a check."""

    key: ItemKey
    at: InputPath
    guards: list[Guard] = field(default_factory=list)
    item: Mapping[str, AttributeValue] | None = None
    update: Update = NO_UPDATE
    delete: bool = False
    is_updated: bool = False
    """It is there, and more is done to it than to count."""
    is_moved: bool = False
    """It is deleted here and put elsewhere, as it was read."""
    is_linked: bool = False
    """Something that the transaction writes names the item."""
    rests_on: frozenset[str] = frozenset()
    """The attributes on which those that name the item rest."""

    @property
    def writes(self) -> bool:
        """Say whether the item is written, and not only looked at."""
        return self.item is not None or self.delete or bool(self.update)

    @property
    def bytes(self) -> int:
        """Count what the request carries of the item."""
        return item_bytes(self.update.values() if self.item is None else self.item)

    def action(self) -> Action:
        """Make the action, with the guards that it has as one condition."""
        conditions: list[Condition] = []
        for guard in self.guards:
            # Not by a set: a condition that compares with a list has no hash.
            if guard.condition not in conditions:
                conditions.append(guard.condition)
        condition = AllOf(tuple(conditions)) if conditions else None
        return Action(*self.key, self.item, self.update, self.delete, condition)


class Transaction:
    """Every change of one mutation, or of several under @transaction."""

    def __init__(self) -> None:
        self.changes: dict[ItemKey, Change] = {}
        self.mutation = 0
        """The number of the mutation that is being put in."""

    def _asked(self, guards: Iterable[Guard]) -> list[Guard]:
        return [replace(guard, mutation=self.mutation) for guard in guards]

    @property
    def writes(self) -> bool:
        """Say whether anything is to be written."""
        return any(change.writes for change in self.changes.values())

    def _change(self, key: ItemKey, at: InputPath = ()) -> Change:
        return self.changes.setdefault(key, Change(key, at))

    def check(self, key: ItemKey, guards: list[Guard], rests_on: frozenset[str] = frozenset()) -> None:
        """Ask something of an item that is named; what the transaction itself puts there is as it must be.

        Raises: WriteError when the transaction deletes it, or changes an attribute that the naming rests on.
        """
        change = self._change(key)
        if change.delete:
            raise _linked(guards[0].name, "deleted", guards[0].at)
        if change.item is None:
            if change.update.names & rests_on:
                raise _linked(guards[0].name, "changed", guards[0].at)
            change.is_linked = True
            change.rests_on |= rests_on
            change.guards += self._asked(guards)

    def put(
        self, key: ItemKey, item: Mapping[str, AttributeValue], guards: Iterable[Guard] = (), at: InputPath = ()
    ) -> None:
        """Write an item whole; what was counted of it so far is in it. Raises WriteError when it is written twice."""
        change = self._change(key, at)
        if change.item is not None or change.is_updated:
            raise _twice(at)
        if change.delete:
            # What is moved here takes the place of what leaves it, under the conditions for that to leave.
            change.delete = change.is_moved = False
        else:
            change.guards = self._asked(guards)
        counted = {name: added(item.get(name), delta) for name, delta in change.update.add.items()}
        change.item, change.update = {**item, **counted}, NO_UPDATE

    def update(self, key: ItemKey, update: Update, guards: Iterable[Guard] = (), at: InputPath = ()) -> None:
        """Change attributes of an item. Raises WriteError when it is written twice."""
        self._update(key, update, guards, at)
        self._change(key).is_updated = True

    def _update(self, key: ItemKey, update: Update, guards: Iterable[Guard], at: InputPath = ()) -> None:
        change = self._change(key, at)
        if change.rests_on & update.names:
            raise _linked(change.guards[0].name, "changed", at)
        merged = change.update.merged(update)
        if change.item is not None or change.delete or merged is None:
            raise _twice(at)
        change.update = merged
        change.guards += self._asked(guards)

    def count(self, key: ItemKey, attribute: str, delta: Decimal, guards: Iterable[Guard] = ()) -> None:
        """Add to a counter, which any part of the transaction may do; what is deleted counts no more.

        Raises: WriteError when the transaction moves the item, with the count that was read.
        """
        change, number = self._change(key), {"N": number_text(delta)}
        if change.item is not None:
            change.item = {**change.item, attribute: added(change.item.get(attribute), number)}
        elif change.is_moved:
            raise _moved(key)
        elif not change.delete:
            self._update(key, Update(add={attribute: number}), guards)

    def delete(self, key: ItemKey, guards: Iterable[Guard] = (), at: InputPath = (), *, is_moved: bool = False) -> None:
        """Delete an item; what was counted of it goes with it. Raises WriteError when it is written or named as well.

        One that `is_moved` is put elsewhere as it was read: then nothing may have been added to it either.
        """
        change = self._change(key, at)
        if change.is_linked:
            raise _linked(change.guards[0].name, "moved" if is_moved else "deleted", at)
        if change.item is not None or change.update.names - change.update.add.keys():
            raise _twice(at)
        if is_moved and change.update:
            raise _moved(key, at)
        change.update, change.is_updated = NO_UPDATE, False
        change.delete, change.is_moved = True, is_moved
        change.guards += self._asked(guards)

    def request(self) -> TransactWriteItems:
        """Make the request, with a token of its own. Raises TooLarge before anything is sent."""
        self._refuse_too_large()
        return TransactWriteItems(tuple(change.action() for change in self.changes.values()), str(uuid.uuid4()))

    def _refuse_too_large(self) -> None:
        if len(self.changes) > MOST_ACTIONS:
            raise TooLarge(
                f"the write touches {len(self.changes)} items, with those that it only checks, and DynamoDB takes "
                f"{MOST_ACTIONS} in a transaction: split it into several"
            )
        for change in self.changes.values():
            if change.bytes > MOST_ITEM_BYTES:
                raise TooLarge(
                    f"the item {shown(change.key)} would have {change.bytes:,} bytes, and DynamoDB takes "
                    f"{MOST_ITEM_BYTES:,}: keep its large values elsewhere, or compressed",
                    change.at,
                )
        total = sum(change.bytes for change in self.changes.values())
        if total > MOST_BYTES:
            raise TooLarge(
                f"the write has {total:,} bytes, and DynamoDB takes {MOST_BYTES:,} in a transaction: split it into "
                "several"
            )


def shown(key: ItemKey) -> str:
    """Write an item's key for a message."""
    return " / ".join(dict.fromkeys(str(value) for _, value in key[1]))


def _linked(name: str, what: str, at: InputPath) -> WriteError:
    return WriteError(f"{name} is {what} by the transaction that links it: send the two one after the other", at)


def _moved(key: ItemKey, at: InputPath = ()) -> WriteError:
    return WriteError(
        f"the item {shown(key)} is moved by the transaction that adds to it: send the two one after the other", at
    )


def _twice(at: InputPath) -> WriteError:
    return WriteError("the same item is written twice in one transaction: put both writes into one", at)
