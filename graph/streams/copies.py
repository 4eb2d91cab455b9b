"""Copies by stream: what is made of an item elsewhere is brought to what the item is now.

A change only says where to look. What is there is read consistently, judged as `verify` judges it, and mended on
condition that it is as it was read. So changes may come twice, late and in any order among items: whoever looks last
looks at what is there last. No node is part of these conditions, for all copies of one would be in each other's way: it
is read once more when its copies are written, and where it has changed they are looked at again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum

from graph.client import MAX_TRIES, back_off
from graph.entity import Entity, read_entity
from graph.errors import ItemError, KeyValueError, RequestRefused, WriteConflict, WriteError
from graph.keys import Path
from graph.loaders import Graph, Operation
from graph.maintenance.findings import Code, Finding, same
from graph.maintenance.judging import judge
from graph.maintenance.mending import build
from graph.maintenance.subjects import Subject, nodes_by_name, subjects_of
from graph.model import CopyMode, Field, FieldKind, Inward, Model
from graph.requests import Item, ItemKey
from graph.streams.change import Change, Place, entity_of, table_of
from graph.streams.progress import Progress
from graph.tasks import together
from graph.transaction import shown
from graph.writes.dependents import dependents, is_made_of_others
from graph.writes.draft import Draft
from graph.writes.inward import linked_keys
from graph.writes.locks import Locks, Refused, send
from graph.writes.writing import Writing

log = logging.getLogger(__name__)

AT_ONCE = 8
"""So many transactions are sent side by side."""
TOGETHER = 20
"""So many items are mended by one transaction: with their mirrors and what is checked they fit in there."""
PAGE_ITEMS = 200
"""So many items that name a node are looked at before it is written down how far that is."""
NO_BUDGET = 2**62

KEPT = frozenset((Code.STALE_KEY, Code.WRONG_COPY, Code.MIRROR_MISSING, Code.WRONG_MIRROR, Code.ORPHAN_MIRROR))
"""What follows by the stream."""


class Outcome(Enum):
    """What has become of an item that is to be another one."""

    MENDED = "it is as it should be of what was read"
    REFUSED = "somebody wrote it, or what it is made of, meanwhile"
    LEFT = "it cannot be what it should: `verify` tells"


Judged = tuple[Subject, list[Finding]]
"""An item, and what of it does not follow."""


@dataclass(frozen=True, slots=True)
class Net:
    """What several changes of one item come to: as it was before each of them, and as it is after the last."""

    key: ItemKey
    befores: list[Item | None]
    after: Item | None
    place: Place


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done about a node: the references whose items hold something of the fields that changed."""

    node: Entity
    key: ItemKey
    fields: frozenset[str]
    inward: tuple[Inward, ...]
    place: Place


class Copies:
    """Brings mirrors, copies and keys to what the items are that they are made of; belongs to one event loop."""

    def __init__(self, graph: Graph, *, at_once: int = AT_ONCE, page_items: int = PAGE_ITEMS) -> None:
        self._graph = graph
        self._model = graph.model
        self._slots = asyncio.Semaphore(at_once)
        self._page_items = page_items
        self.mended = 0
        """How many items have been written."""

    async def follow(self, changes: Sequence[Change]) -> None:
        """Have everything follow that is made of the items changed; a Handler.

        Cost:   nothing for items that nothing is made of; else a read of each and of its mirrors, for a node whose
                copied fields changed a Query for each kind of reference to it, and with each page of these a read of
                the items; one conditional write for each item that is to be another.
        Raises: StoreError; WriteConflict when others write the same items all the time.
        """
        own: dict[ItemKey, None] = {}
        works: list[Work] = []
        for net in _nets(self._model, changes):
            own |= dict.fromkeys(_concerned(self._model, net))
            if (work := _work(self._model, net)) is not None:
                works.append(work)
        await self._settle(list(own))
        await together([self._follow_node(work) for work in works])

    @asynccontextmanager
    async def _operation(self) -> AsyncIterator[Operation]:
        operation = self._graph.operation(consistent=True)
        operation.limits = replace(operation.limits, read_budget=NO_BUDGET)
        try:
            yield operation
        finally:
            await operation.close()

    # --- all that names a node ---

    async def _follow_node(self, work: Work) -> None:
        """Look at every item that holds something of a node, page by page, and go on where one that ended stopped."""
        progress = Progress(self._graph, work.key, work.place, (sorted(work.fields), work.inward))
        number, after = 0, None
        while number < len(work.inward):
            async with self._operation() as operation:
                node = await _as_it_is(operation, work)
                if node is None:
                    break
                try:
                    keys, after = await linked_keys(operation, work.inward[number], node, self._page_items, after)
                except (ItemError, KeyValueError, WriteError) as error:
                    log.warning("what holds copies of %s is not found: %s", shown(work.key), error)
                    keys, after = [], None
            await self._settle(keys)
            number, after = (number + 1, None) if after is None else await progress.reach(number, after)
        await progress.end()

    # --- items that are to be as they should ---

    async def _settle(self, keys: Sequence[ItemKey]) -> None:
        """Look at items and their mirrors, and mend them, until nothing is wrong with them."""
        for name, own in _by_table(keys).items():
            for start in range(0, len(own), self._page_items):
                await self._settle_some(name, own[start : start + self._page_items])

    async def _settle_some(self, name: str, pending: list[ItemKey]) -> None:
        for attempt in range(1, MAX_TRIES + 1):
            async with self._operation() as operation:
                wrong = [one for one in await _looked_at(operation, name, pending) if one[1]]
            groups = [wrong[start : start + TOGETHER] for start in range(0, len(wrong), TOGETHER)]
            outcomes = [one for some in await together([self._mend(group) for group in groups]) for one in some]
            async with self._operation() as operation:
                refused = [subject for subject, outcome in outcomes if outcome is Outcome.REFUSED]
                mended = [subject for subject, outcome in outcomes if outcome is Outcome.MENDED]
                pending = [subject.key for subject in (*refused, *await _outdated(operation, mended))]
                if not pending:
                    return
                if refused:
                    await back_off(attempt, operation.meter)
        raise WriteConflict(
            f"others wrote the items that follow by the stream of {name} meanwhile, {MAX_TRIES} times in a row: they "
            "are looked at again when the changes come again"
        )

    async def _mend(self, wrong: Sequence[Judged]) -> list[tuple[Subject, Outcome]]:
        """Mend items by one transaction, or, where that is refused, each by its own."""
        async with self._slots, self._operation() as operation:
            writing = Writing(operation, Locks(operation))
            try:
                for subject, findings in wrong:
                    await build(writing, subject, findings, checks_nodes=False)
                await send(operation, writing.transaction)
            except (Refused, WriteError, KeyValueError, RequestRefused) as error:
                if len(wrong) == 1:
                    subject = wrong[0][0]
                    if isinstance(error, Refused):
                        return [(subject, Outcome.REFUSED)]
                    log.warning("%s is left as it is: %s", shown(subject.key), error)
                    return [(subject, Outcome.LEFT)]
            else:
                self.mended += len(wrong)
                return [(subject, Outcome.MENDED) for subject, _ in wrong]
        return [one for alone in wrong for one in await self._mend([alone])]


def _by_table(keys: Iterable[ItemKey]) -> dict[str, list[ItemKey]]:
    found: dict[str, list[ItemKey]] = {}
    for key in keys:
        found.setdefault(key[0], []).append(key)
    return found


async def _looked_at(operation: Operation, name: str, keys: Sequence[ItemKey]) -> list[Judged]:
    """Judge items of a table, and the mirrors of those that have some."""
    subjects = await _subjects(operation, name, keys)
    known = {*keys}
    mirrors = [key for subject in subjects for _, key, is_there in subject.mirrors if is_there and key not in known]
    for other, further in _by_table(mirrors).items():
        subjects += await _subjects(operation, other, further)
    return [(subject, list(filter(_follows, _judged(subject)))) for subject in subjects]


def _judged(subject: Subject) -> list[Finding]:
    try:
        return judge(subject, lacks_no_copy=True)
    except ItemError as error:
        # What a node holds is not what the model says: nothing can be made of it.
        log.warning("%s is left as it is: %s", shown(subject.key), error)
        return []


async def _subjects(operation: Operation, name: str, keys: Sequence[ItemKey]) -> list[Subject]:
    items = [item for item in await operation.items(keys) if item is not None]
    return await subjects_of(operation, table_of(operation.model, name), name, items)


async def _outdated(operation: Operation, mended: Sequence[Subject]) -> list[Subject]:
    """List the items that were made of a node which is no longer as it was read."""
    named = {node.key: node for subject in mended for node in _nodes_behind(subject.nodes.values())}
    now = dict(zip(named, await nodes_by_name(operation, list(named.values())), strict=True))
    others = {key for key, node in now.items() if not isinstance(node, Entity) or node.wire != named[key].wire}
    return [subject for subject in mended if any(one.key in others for one in _nodes_behind(subject.nodes.values()))]


def _nodes_behind(nodes: Iterable[Entity | None]) -> Iterator[Entity]:
    """List nodes, and those behind them that keys were made of."""
    for node in nodes:
        if node is not None:
            yield node
            yield from _nodes_behind(node.nodes.values())


def _follows(finding: Finding) -> bool:
    return finding.code in KEPT and finding.mend is not None and not finding.mend.move


async def _as_it_is(operation: Operation, work: Work) -> Entity | None:
    """Read a node, None where it is gone.

    It may have changed again, and the work goes on all the same: a node that is written all the time would else leave
    its copies as they were until that ceases.
    """
    (item,) = await operation.items([work.key])
    assert work.node.layout is not None, "it was read from its table"
    return None if item is None else read_entity(operation.model, work.node.layout, item)


# --- what a change concerns ---------------------------------------------------------------------------------------


def _nets(model: Model, changes: Iterable[Change]) -> Iterator[Net]:
    """Take the changes of each item together, in tables of copies by stream."""
    nets: dict[ItemKey, Net] = {}
    for change in changes:
        if table_of(model, change.key[0]).copies is CopyMode.STREAM:
            befores = nets[change.key].befores if change.key in nets else []
            nets[change.key] = Net(change.key, [*befores, change.before], change.after, change.place)
    return iter(nets.values())


def _concerned(model: Model, net: Net) -> Iterator[ItemKey]:
    """List the items that are made of an item that changed: itself, and its mirrors where they are and where they were.

    A mirror's own change is of our making, or nothing that anything follows.
    """
    table = table_of(model, net.key[0])
    images = [entity_of(model, table, item) for item in [*net.befores, net.after]]
    known = [one for one in images if one is not None and model.is_followed(one.type)]
    if not known or any(one.layout and one.layout.mirror for one in known):
        return
    is_written = any(_is_other(images[-1], one) for one in images[:-1])
    if is_written and any(is_made_of_others(model, one.type) for one in known):
        yield net.key
        for one in known:
            yield from _mirror_keys(one)


def _is_other(one: Entity | None, other: Entity | None) -> bool:
    if one is None or other is None or one.type is not other.type:
        return one is not other
    return bool(_changed_fields(one, other))


def _mirror_keys(entity: Entity) -> Iterator[ItemKey]:
    try:
        draft = Draft.of(entity)
        for layout in draft.layouts:
            if layout.mirror:
                yield draft.key(layout)
    except (ItemError, KeyValueError):
        # An item that is not what the model says has no mirrors that anybody could find.
        return


def _work(model: Model, net: Net) -> Work | None:
    """Say what is to be done about a node that changed; one that is gone leaves nothing behind that holds copies."""
    node = entity_of(model, table_of(model, net.key[0]), net.after)
    if (
        node is None
        or not node.type.is_node
        or (node.layout and node.layout.mirror)
        or not model.is_followed(node.type)
    ):
        return None
    fields = frozenset(name for item in net.befores for name in _changed_since(model, net, item, node))
    inward = tuple(one for one in dependents(model, node.type, fields) if one.accesses)
    return Work(node, net.key, fields, inward, net.place) if inward else None


def _changed_since(model: Model, net: Net, item: Item | None, node: Entity) -> Collection[str]:
    before = entity_of(model, table_of(model, net.key[0]), item)
    # One that was not there may have been named, or have lain under another key.
    return node.type.fields if before is None or before.type is not node.type else _changed_fields(before, node)


def _changed_fields(one: Entity, other: Entity) -> frozenset[str]:
    """List the fields of which two images of an item hold something else."""
    fields = (entry for entry in one.type.fields.values() if entry.kind is not FieldKind.RELATIONSHIP)
    return frozenset(entry.name for entry in fields if _differs(entry, one, other))


def _differs(entry: Field, one: Entity, other: Entity) -> bool:
    left, right = one.wire.get(entry.attribute), other.wire.get(entry.attribute)
    if left is None and right is None:
        # It may lie in a key alone.
        return _held(entry, one) != _held(entry, other)
    return not same(left, right)


def _held(entry: Field, entity: Entity) -> dict[Path, object]:
    return {path: value for path, value in entity.paths.items() if path[0] == entry.name}
