"""Carrying mutations out: built, sent as one transaction, and built again when others were faster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from graph.client import MAX_TRIES, back_off
from graph.errors import AlreadyExists, ConditionFailed, NotFound, VersionConflict, WriteConflict, WriteError
from graph.loaders import Operation
from graph.transaction import Rule
from graph.writes.locks import Locks, Refused, break_stale, send
from graph.writes.writing import Writing

T = TypeVar("T")


async def commit(operation: Operation, build: Callable[[Writing], Awaitable[T]]) -> T:
    """Build a mutation and send it, again and again while others change what it rests on.

    Cost:   one TransactWriteItems, beside what building it reads.
    Raises: WriteError when it is refused, and nothing of it is done; StoreError.
    """
    locks = Locks(operation)
    try:
        for attempt in range(1, MAX_TRIES + 1):
            writing = Writing(operation, locks)
            try:
                result = await build(writing)
                writing.refuse_unmet()
                if writing.transaction.writes:
                    await send(operation, writing.transaction)
                locks.done()
                return result
            except Refused as refused:
                if (error := _error(refused)) is not None:
                    raise error from None
                await break_stale(operation, refused)
                await back_off(attempt, operation.meter)
                operation.forget()
        raise WriteConflict(
            f"others wrote the same items meanwhile, {MAX_TRIES} times in a row: try again later, or write less at once"
        )
    finally:
        await locks.release()


def _error(refused: Refused) -> WriteError | None:
    """Say what the caller is to be told; None where another try may go well."""
    guard = refused.guard
    match guard.rule:
        case Rule.ABSENT:
            return AlreadyExists(f"{guard.name} is there already: change it by update or upsert", guard.at)
        case Rule.PRESENT:
            return NotFound(f"there is no {guard.name}: expected one that exists", guard.at)
        case Rule.MIRRORED:
            return NotFound(f"a mirror of {guard.name} is missing: run `tablegraph repair`", guard.at)
        case Rule.WHERE:
            return ConditionFailed(f"{guard.name} does not pass `where`", guard.at)
        case Rule.VERSION:
            return VersionConflict(
                f"{guard.name} has another version than `ifVersion`: read it again, and decide anew", guard.at
            )
        case Rule.UNLOCKED | Rule.UNCHANGED:
            return None
