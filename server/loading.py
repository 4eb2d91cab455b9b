"""A load in two passes: every line is checked before the first item is written, then all are written side by side."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import orjson

from graph.bulk.items import Placed
from graph.bulk.pump import Pump
from graph.bulk.records import Moment
from graph.client import Client, Meter
from graph.errors import GraphError, StoreError, TableMissing
from graph.model import Model
from graph.requests import DescribeTable
from graph.tables import differences
from server.checkpoint import Checkpoint, State
from server.formats import Damaged, Lines
from server.progress import Progress

SHOWN_REFUSALS = 20
CHECKPOINT_SECS = 1.0

Read = Callable[[Any, int], list[Placed]]
"""Makes the items of a line's content; its number decides what is drawn at random. Raises GraphError."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be loaded, and how."""

    model: Model
    lines: Lines
    reader: Callable[[Moment, bool], Read]
    """Makes what reads a line; the second argument says that all lines have been checked before."""
    checkpoint: Checkpoint
    identity: Mapping[str, Any]
    parallel: int = 8
    skip_refused: bool = False
    refused: Path | None = None
    spool: Path | None = None
    """A folder for the items that the first pass makes of records, so that the second need not make them again."""


@dataclass(slots=True)
class Outcome:
    """What became of a load."""

    items: int = 0
    seconds: float = 0.0
    write_units: float = 0.0
    refused: int = 0
    retried: int = 0
    replaced: int = 0
    is_written: bool = False
    resumed_behind: int = 0


@dataclass(slots=True)
class _Checked:
    """What the first pass found."""

    items: int = 0
    refused: int = 0
    tables: set[str] = field(default_factory=set)


async def load(plan: Plan, client: Client) -> Outcome:
    """Check all lines, then write them; go on where an earlier run of the same load was ended.

    Raises: InputError when the input cannot be read, StoreError when DynamoDB does not do what is asked.
    """
    with ExitStack() as stack:
        spool = None if plan.spool is None else stack.enter_context(TemporaryFile(dir=plan.spool))
        return await _load(plan, client, spool)


async def _load(plan: Plan, client: Client, spool: IO[bytes] | None) -> Outcome:
    state = plan.checkpoint.read(plan.identity)
    outcome = Outcome(resumed_behind=state.line if state else 0)
    if state is None:
        if plan.checkpoint.exists:
            _say("the checkpoint is of another input, or of another way to load it: beginning anew")
        state = State(plan.identity, uuid.uuid4().hex, datetime.now(UTC).isoformat(), 0)
        checked = _check(plan, _read(plan, state), spool)
        outcome.refused, state.total = checked.refused, checked.items
        if checked.refused and not plan.skip_refused:
            return outcome
        await _refuse_other_tables(plan.model, client, checked.tables)
        plan.checkpoint.write(state)
    else:
        _say(f"going on behind line {state.line:,}: all up to there is written")
        spool = None
    await _write(plan, client, state, outcome, spool)
    plan.checkpoint.remove()
    outcome.is_written = True
    return outcome


def _read(plan: Plan, state: State, *, again: bool = False) -> Read:
    return plan.reader(Moment(datetime.fromisoformat(state.began), state.seed), again)


# --- the first pass -----------------------------------------------------------------------------------------------


def _check(plan: Plan, read: Read, spool: IO[bytes] | None) -> _Checked:
    """Read every line without keeping any in memory."""
    found = _Checked()
    progress = Progress("checking")
    with _Refusals(plan.lines, plan.refused) as refusals:
        for number, content in plan.lines.read():
            try:
                items = _items(read, content, number)
            except GraphError as error:
                found.refused += 1
                refusals.add(number, content, str(error))
            else:
                found.items += len(items)
                found.tables.update([placed.table for placed in items])
                if spool is not None:
                    entries = [(placed.table, placed.key, placed.size_bytes, placed.item) for placed in items]
                    spool.write(orjson.dumps((number, entries)) + b"\n")
            progress.add(1)
    progress.end()
    refusals.show()
    return found


class _DamagedLine(GraphError):
    """A line cannot be read."""


def _items(read: Read, content: Any, number: int) -> list[Placed]:
    if isinstance(content, Damaged):
        raise _DamagedLine(content.reason)
    return read(content, number)


class _Refusals:
    """The lines that are refused: the first ones for standard error, all for a file."""

    def __init__(self, lines: Lines, path: Path | None) -> None:
        self._lines = lines
        self._path = path
        self._file: IO[bytes] | None = None
        self._count = 0
        self._first: list[str] = []

    def __enter__(self) -> _Refusals:
        if self._path is not None:
            self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, number: int, content: Any, reason: str) -> None:
        """Note a refused line."""
        self._count += 1
        where = self._lines.where(number)
        if len(self._first) < SHOWN_REFUSALS:
            self._first.append(f"{where} {reason}")
        if self._file is not None:
            entry: dict[str, Any] = {"line": number, "reason": reason}
            if where != f"line {number}":
                entry["where"] = where
            if not isinstance(content, Damaged):
                entry["content"] = content
            self._file.write(orjson.dumps(entry) + b"\n")

    def show(self) -> None:
        """Print the first ones."""
        for line in self._first:
            _say(line)
        if self._count > len(self._first):
            rest = f"and {self._count - len(self._first):,} more"
            _say(f"{rest}: --refused FILE lists them all" if self._path is None else f"{rest}, all in {self._path}")


async def _refuse_other_tables(model: Model, client: Client, names: set[str]) -> None:
    """Compare the tables that will be written with the model. Raises TableMissing, StoreError."""
    for name in sorted(names):
        try:
            description = await client.send(DescribeTable(name), Meter())
        except TableMissing as error:
            raise TableMissing(f"{error}. Make it, or name the right one with --table") from None
        table = model.tables.get(name)
        if table is not None and (found := list(differences(model, table, description))):
            raise StoreError("\n".join(["the table does not fit the model:", *(f"  {entry}" for entry in found)]))


# --- the second pass ----------------------------------------------------------------------------------------------


async def _write(plan: Plan, client: Client, state: State, outcome: Outcome, spool: IO[bytes] | None) -> None:
    progress = Progress("loading", state.total, state.items)
    before, line = state.items, state.line

    def written(count: int) -> None:
        outcome.items += count
        progress.add(count)

    pump = Pump(plan.model, client, plan.parallel, written)
    keeping = asyncio.create_task(_keep(plan.checkpoint, state, pump, outcome, before))
    try:
        await pump.run(_entries(plan, state, line) if spool is None else _spooled(spool))
    finally:
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping
        _note(state, pump, before + outcome.items)
        plan.checkpoint.write(state)
        progress.end()
        outcome.seconds = progress.seconds
        outcome.write_units, outcome.retried, outcome.replaced = pump.write_units, pump.retried, pump.replaced


def _spooled(spool: IO[bytes]) -> Iterator[tuple[int, list[Placed]]]:
    """Give the items that the first pass made."""
    spool.seek(0)
    for line in spool:
        number, entries = orjson.loads(line)
        yield number, [Placed(table, tuple(key), item, size) for table, key, size, item in entries]


def _entries(plan: Plan, state: State, behind: int) -> Iterator[tuple[int, list[Placed]]]:
    """Read the lines again, those behind one of them."""
    # Where lines are refused, each has to be looked at again.
    read = _read(plan, state, again=not plan.skip_refused)
    for number, content in plan.lines.read():
        if number > behind:
            try:
                yield number, _items(read, content, number)
            except GraphError:
                # Refused and reported in the first pass.
                if not plan.skip_refused:
                    raise


async def _keep(checkpoint: Checkpoint, state: State, pump: Pump, outcome: Outcome, before: int) -> None:
    """Write down again and again how far the load is."""
    while True:
        await asyncio.sleep(CHECKPOINT_SECS)
        _note(state, pump, before + outcome.items)
        await asyncio.to_thread(checkpoint.write, state)


def _note(state: State, pump: Pump, items: int) -> None:
    # Before its first line is taken a pump says nothing of those before.
    if pump.line > state.line:
        state.line, state.items = pump.line, items


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
