"""Progress: how far what names a node has been looked at, written down so that whoever is killed goes on from there."""

from __future__ import annotations

import hashlib
import time
import uuid

from graph.cursor import fingerprint
from graph.loaders import Graph
from graph.ours import COPIES, expiring, place
from graph.requests import Action, GetItem, ItemKey, TransactWriteItems, key_attribute
from graph.scalars import AttributeValue
from graph.streams.change import Place, table_of

KEPT_SECS = 2 * 24 * 60 * 60
"""Longer than a stream keeps the change that it is about."""


class Progress:
    """How far one change of a node is followed; another change of the node begins anew.

    `work` is what is gone through, and in which order: what was written down about something else does not count.
    """

    def __init__(self, graph: Graph, key: ItemKey, change: Place, work: object) -> None:
        table = table_of(graph.model, key[0])
        name = hashlib.sha256(repr(key).encode(errors="backslashreplace")).hexdigest()
        self._graph = graph
        self._table = table
        self._key = key[0], place(graph.model, table, f"copies#{name}")[1]
        self._work = fingerprint(change, work)
        self._is_known = False

    async def reach(self, number: int, after: str) -> tuple[int, str]:
        """Write down how far it is, and give where to go on: further, where somebody was further already.

        Cost: one transaction of one item, before the first of them one GetItem.
        """
        if not self._is_known:
            self._is_known = True
            if (further := await self._read()) is not None:
                return further
        content: dict[str, AttributeValue] = {
            "work": {"S": self._work},
            "number": {"N": str(number)},
            "after": {"S": after},
        }
        item: dict[str, AttributeValue] = {name: key_attribute(value) for name, value in self._key[1]}
        item |= {COPIES: {"M": content}}
        await self._write(
            Action(*self._key, item | expiring(self._graph.model, self._table, int(time.time()) + KEPT_SECS))
        )
        return number, after

    async def _read(self) -> tuple[int, str] | None:
        answer = await self._graph.send(GetItem(*self._key, consistent=True))
        content = answer["Item"][COPIES]["M"] if "Item" in answer else None
        if content is None or content["work"]["S"] != self._work:
            return None
        return int(content["number"]["N"]), content["after"]["S"]

    async def end(self) -> None:
        """Take away what was written down, if anything was. Cost: one transaction of one item."""
        if self._is_known:
            await self._write(Action(*self._key, delete=True))

    async def _write(self, action: Action) -> None:
        await self._graph.send(TransactWriteItems((action,), str(uuid.uuid4())))
