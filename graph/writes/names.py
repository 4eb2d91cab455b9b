"""Names that only one node may have, where its key holds more than the name and so does not keep them apart.

A name has one of a thousand slots. Who gives a name reads its slot, looks for a node of that name, and writes the slot
in his transaction on condition that it is as it was read: of two who give the same name at once one has to look again.
"""

from __future__ import annotations

import uuid
import zlib

from graph.entity import Entity
from graph.errors import AlreadyExists, InputPath
from graph.expressions import Compare, Condition, Not, Present, value_of
from graph.lookups import by_keys
from graph.ours import NAME, place
from graph.transaction import Guard, Rule
from graph.updates import Update
from graph.writes.writing import Writing, describe

SLOTS = 1024


async def claim(writing: Writing, named: Entity, at: InputPath) -> Entity | None:
    """Make sure that a name stays with one node, and give the one that has it.

    Cost:   reads the slot, then searches for the node by a Query; one small item more in the transaction.
    Raises: AlreadyExists when the transaction itself has given the name already.
    """
    writing.claim(named, at)
    table = writing.model.tables[named.type.layouts[0].table]
    if table.period is None:
        await _hold(writing, named, at)
    (found,) = await by_keys(writing.operation, [named])
    return None if writing.operation.is_imagined else found


async def refuse_taken(writing: Writing, named: Entity, at: InputPath) -> None:
    """Refuse a name that a node has. Raises AlreadyExists."""
    if await claim(writing, named, at) is not None:
        raise is_taken(named, at)


def is_taken(named: Entity, at: InputPath) -> AlreadyExists:
    """Say that a node has the name already."""
    return AlreadyExists(f"there is a {describe(named)} already: change it by update or upsert", at)


async def _hold(writing: Writing, named: Entity, at: InputPath) -> None:
    table = writing.model.tables[named.type.layouts[0].table]
    name = ", ".join(f"{'.'.join(path)}={value}" for path, value in sorted(named.paths.items()))
    slot = zlib.crc32(f"{named.type.name} {name}".encode()) % SLOTS
    key = place(writing.model, table, f"names#{slot}")
    if key in writing.transaction.changes:
        return
    (item,) = await writing.operation.items([key])
    held = (item or {}).get(NAME)
    as_read: Condition = Not(Present(NAME)) if held is None else Compare(NAME, "=", value_of(held))
    update = Update(put={NAME: {"S": str(uuid.uuid4())}})
    writing.transaction.update(key, update, [Guard(Rule.UNCHANGED, as_read, "the slot of a name")], at)
