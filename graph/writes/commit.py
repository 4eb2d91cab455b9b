"""Carrying mutations out: built, sent as one transaction, and built again when others were faster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from graph.client import MAX_TRIES, back_off, forget_failure
from graph.entity import Entity
from graph.errors import (
    ConditionFailed,
    GraphError,
    NotFound,
    RolledBack,
    WriteConflict,
    WriteError,
)
from graph.loaders import Operation
from graph.model import Relationship
from graph.transaction import Rule
from graph.visible import visible
from graph.writes.draft import Draft
from graph.writes.locks import Locks, Refused, break_stale, send
from graph.writes.receipts import Receipt, add, answered
from graph.writes.writing import Writing, other_version, taken

Build = Callable[[Writing], Awaitable[Draft | Entity]]
"""Puts one mutation into an attempt, and gives the item that is its result."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One mutation of a transaction: how it is built, and the receipt that makes it happen once."""

    build: Build
    receipt: Receipt | None = None


class Blamed(Exception):
    """What went wrong, and which of several mutations is at fault; None where all of them together are."""

    def __init__(self, error: GraphError, mutation: int | None) -> None:
        super().__init__(str(error))
        self.error = error
        self.mutation = mutation


async def write(operation: Operation, mutation: Mutation) -> Entity:
    """Carry one mutation out, as one transaction.

    Cost:   one TransactWriteItems, beside what building it reads.
    Raises: WriteError when it is refused, and nothing of it is done; InputError; StoreError.
    """
    try:
        (written,) = await commit(operation, [mutation])
    except Blamed as blamed:
        raise blamed.error from None
    return written


async def commit(operation: Operation, mutations: list[Mutation]) -> list[Entity]:
    """Build mutations and send them together, again and again while others change what they rest on. Raises Blamed."""
    writer = operation.writer
    locks = Locks(writer)
    try:
        for attempt in range(1, MAX_TRIES + 1):
            try:
                written = await _attempt(Writing(writer, locks, is_alone=len(mutations) == 1), mutations)
                return _tell(operation, written)
            except Refused as refused:
                if (error := _error(refused)) is not None:
                    raise Blamed(error, refused.guard.mutation) from None
                if refused.guard.rule is Rule.UNLOCKED:
                    # Two who wait for each other's locks would wait for ever.
                    await locks.release()
                await break_stale(writer, refused)
                await back_off(attempt, operation.meter)
                writer.forget()
        raise WriteConflict(
            f"others wrote the same items meanwhile, {MAX_TRIES} times in a row: try again later, or write less at once"
        )
    except GraphError as error:
        raise Blamed(error, None) from error
    finally:
        await locks.release()


def _tell(operation: Operation, written: list[Entity]) -> list[Entity]:
    """Give of the items that were written what the caller may read of them; all else they read by themselves."""
    if operation.permissions is None:
        return written
    operation.forget()
    for place, node in operation.writer.inverses.items():
        operation.inverses[place] = None if node is None else _named(node)
    return [visible(operation, one) or _named(one) for one in written]


def _named(entity: Entity) -> Entity:
    """Take of an item only which one it is."""
    return Entity(entity.model, entity.type, named=entity.named, key=entity.key)


async def _attempt(writing: Writing, mutations: list[Mutation]) -> list[Entity]:
    results = []
    for number, mutation in enumerate(mutations):
        writing.transaction.mutation = number
        try:
            results.append(await _result(writing, mutation))
        except GraphError as error:
            raise Blamed(error, number) from error
        except Refused as refused:
            # A lock has a transaction of its own, which knows of no mutations.
            refused.guard = replace(refused.guard, mutation=number)
            raise
    if (unmet := writing.unmet()) is not None:
        raise Blamed(*unmet)
    written = [_as_written(writing, result) for result in results]
    for mutation, entity in zip(mutations, written, strict=True):
        if mutation.receipt is not None and writing.transaction.writes:
            add(writing.transaction, writing.operation, mutation.receipt, entity)
    if writing.transaction.changes:
        # One that writes nothing is sent as well: what the caller asks of the item is still to be decided.
        await send(writing.operation, writing.transaction)
    writing.locks.done()
    _remember(writing)
    return written


def _remember(writing: Writing) -> None:
    """Tell the loaders what was just written: it need not be read, and a global index may not show it yet."""
    for key, change in writing.transaction.changes.items():
        if change.item is not None:
            writing.operation.prime_item(key, change.item)
    for draft in writing.created:
        for relationship in writing.model.relationships.values():
            if not relationship.many and not relationship.path and draft.type.name in relationship.item_types:
                _prime(writing, relationship, draft)


def _prime(writing: Writing, relationship: Relationship, draft: Draft) -> None:
    """Tell a node what its to-one relationship leads to since a new item links it."""
    node = draft.values.get(relationship.start)
    if isinstance(node, (Draft, Entity)) and node.type.name == relationship.source:
        key = node.key() if isinstance(node, Draft) else node.key
        item = _as_written(writing, draft)
        found = item if relationship.end is None else item.end(relationship.end)
        if key is not None:
            writing.operation.inverses[relationship.source, relationship.name, key] = found


async def _result(writing: Writing, mutation: Mutation) -> Draft | Entity:
    """Build a mutation, unless a receipt says that it has been carried out."""
    if mutation.receipt is not None:
        found = await answered(writing.operation, mutation.receipt)
        if found is not None:
            return found
    return await mutation.build(writing)


def _as_written(writing: Writing, result: Draft | Entity) -> Entity:
    """Give the item that a mutation results in, with what the transaction counted of it."""
    if isinstance(result, Entity):
        return result
    layout = result.layouts[0]
    wire = writing.transaction.changes[result.key(layout)].item
    return Entity(writing.model, result.type, layout=layout, wire=wire, holds=None)


def _error(refused: Refused) -> WriteError | None:
    """Say what the caller is to be told; None where another try may go well."""
    guard = refused.guard
    match guard.rule:
        case Rule.ABSENT:
            return taken(guard.name, guard.at)
        case Rule.PRESENT:
            return NotFound(f"there is no {guard.name}: expected one that exists", guard.at)
        case Rule.MIRRORED:
            return NotFound(f"a mirror of {guard.name} is missing: run `tablegraph repair`", guard.at)
        case Rule.WHERE:
            return ConditionFailed(f"{guard.name} does not pass `where`", guard.at)
        case Rule.VERSION:
            return other_version(guard.name, guard.at)
        case Rule.UNDONE | Rule.UNLOCKED | Rule.UNCHANGED:
            return None


class Group:
    """Several mutations that become one transaction: each waits until all have joined."""

    def __init__(self, operation: Operation, names: list[str]) -> None:
        self._operation = operation
        self._names = names
        self._mutations: list[Mutation] = []
        self._done: asyncio.Future[list[Entity]] = asyncio.get_running_loop().create_future()
        self._done.add_done_callback(forget_failure)
        self._task: asyncio.Task[None] | None = None

    async def join(self, mutation: Mutation) -> Entity:
        """Add the next mutation, and wait for the transaction.

        Raises: WriteError, RolledBack where another one is at fault.
        """
        number = len(self._mutations)
        self._mutations.append(mutation)
        if len(self._mutations) == len(self._names) and not self._done.done():
            self._task = asyncio.ensure_future(self._commit())
        await asyncio.wait([self._done])
        try:
            return self._done.result()[number]
        except Blamed as blamed:
            if blamed.mutation in (None, number):
                raise blamed.error from None
            raise RolledBack(
                f"nothing is written, for `{self._names[blamed.mutation or 0]}` of the same @transaction is refused: "
                "mend that one"
            ) from None

    def fail(self) -> None:
        """End the transaction before it begins: one of its mutations cannot be."""
        if not self._done.done():
            error = RolledBack("nothing is written, for another mutation of the same @transaction is refused: mend it")
            self._done.set_exception(Blamed(error, None))

    async def _commit(self) -> None:
        try:
            self._done.set_result(await commit(self._operation, self._mutations))
        except Exception as error:
            self._done.set_exception(error)
