"""Mending: the transaction that mends an item, under the condition that all is as it was read."""

from __future__ import annotations

from collections.abc import Sequence

from graph.entity import Entity
from graph.maintenance.findings import Code, Finding, Mend
from graph.maintenance.subjects import Subject
from graph.model import Layout
from graph.requests import NO_UPDATE, Item, ItemKey
from graph.transaction import Guard, Rule
from graph.updates import Update
from graph.writes.counters import shares
from graph.writes.draft import Draft
from graph.writes.guards import LOCK, absent, present, unchanged
from graph.writes.stored import own_attributes
from graph.writes.writing import Writing

MADE_OF_NODES = frozenset((Code.STALE_KEY, Code.WRONG_COPY, Code.MIRROR_MISSING, Code.WRONG_MIRROR))


async def build(writing: Writing, subject: Subject, findings: Sequence[Finding], *, checks_nodes: bool = True) -> None:
    """Put into a transaction what mends these findings of one item.

    Without `checks_nodes` the nodes may change meanwhile: who mends so has to look at the item again.

    Raises: WriteError, KeyValueError when that cannot be written.
    """
    mends = [finding.mend for finding in findings if finding.mend is not None]
    if any(mend.delete for mend in mends):
        await _delete(writing, subject)
        return
    update = _update(mends)
    guards = _as_read(writing, subject, update)
    if any(mend.move for mend in mends):
        _move(writing, subject, guards)
    elif update:
        writing.transaction.update(subject.key, update, guards)
    else:
        writing.transaction.check(subject.key, guards)
    for mend in mends:
        if mend.mirror is not None:
            _put_mirror(writing, subject, mend.mirror)
    if any(finding.code in MADE_OF_NODES for finding in findings):
        if checks_nodes:
            await _check_nodes(writing, subject)
        if subject.first is not None:
            writing.transaction.check(subject.first.key, _as_read(writing, subject.first))


def _update(mends: Sequence[Mend]) -> Update:
    """Make one change of all; of two that would write the same attribute the first is taken."""
    update = NO_UPDATE
    for mend in mends:
        update = update.merged(mend.update) or update
    return update


def _entity(subject: Subject) -> Entity:
    """Give the item as it lies there, whatever it was taken for."""
    assert subject.entity is not None, "what fits no type is never mended"
    entity = subject.entity
    return Entity(entity.model, entity.type, layout=entity.layout, wire=subject.wire, holds=None)


def _draft(subject: Subject) -> Draft:
    assert subject.draft is not None, "what fits no type is never mended"
    return subject.draft


def _as_read(writing: Writing, subject: Subject, update: Update = NO_UPDATE) -> list[Guard]:
    """Ask that an item is there, and that all is as it was read that it is judged by; counters may move."""
    entity = _entity(subject)
    counters = {entry.attribute for entry in entity.type.fields.values() if entry.count is not None}
    names = own_attributes(writing.model, subject.layout) - counters | {*update.put, *update.remove}
    there = present(entity.type, subject.key, writing.operation.now, (), Rule.UNCHANGED)
    return [there, *unchanged(entity, subject.key, names, ())]


def _kept(subject: Subject) -> Item:
    return {name: value for name, value in subject.wire.items() if name != LOCK}


def _move(writing: Writing, subject: Subject, guards: list[Guard]) -> None:
    """Put an item where its values say, with all else mended as well."""
    entity, draft = _entity(subject), _draft(subject)
    moved = Draft(draft.model, draft.type, draft.values, _kept(subject))
    item, key = moved.item(subject.layout), moved.key(subject.layout)
    guards = [*guards, *unchanged(entity, subject.key, subject.wire.keys(), ())]
    writing.transaction.delete(subject.key, guards)
    writing.transaction.put(key, item, [_nothing_at(writing, subject, key)])


def _nothing_at(writing: Writing, subject: Subject, key: ItemKey) -> Guard:
    return absent(_entity(subject).type, key, writing.operation.now, ())


def _put_mirror(writing: Writing, subject: Subject, layout: Layout) -> None:
    # What nobody declared belongs to the first item, copies of its other end among it.
    draft = Draft(writing.model, _draft(subject).type, _draft(subject).values)
    key = draft.key(layout)
    writing.transaction.put(key, draft.item(layout), [_nothing_at(writing, subject, key)])


async def _check_nodes(writing: Writing, subject: Subject) -> None:
    """Ask that the nodes that the item is made of are as they were read."""
    draft = _draft(subject)
    for entry in draft.type.references:
        if subject.nodes.get(entry.name) is not None:
            await writing.check_node(draft, entry, (), draft.layouts)


# --- what goes ----------------------------------------------------------------------------------------------------


async def _delete(writing: Writing, subject: Subject) -> None:
    """Delete an orphan mirror; or an edge that leads to no node, with its mirrors and off the counters."""
    writing.transaction.delete(subject.key, _as_read(writing, subject))
    if subject.layout.mirror and subject.first is not None:
        writing.transaction.check(subject.first.key, _as_read(writing, subject.first))
        return
    if subject.layout.mirror:
        assert subject.first_key is not None, "it is an orphan because nothing is there"
        writing.transaction.check(subject.first_key, [_nothing_at(writing, subject, subject.first_key)])
        return
    for _, key, is_there in subject.mirrors:
        if is_there:
            writing.transaction.delete(key)
    draft = _draft(subject)
    for name, node in subject.nodes.items():
        named = draft.values[name]
        if node is None and named.key is not None:
            gone = absent(named.type, named.key, writing.operation.now, (), Rule.UNCHANGED)
            writing.transaction.check(named.key, [gone])
    there = {id(node) for node in subject.nodes.values() if node is not None}
    for share in shares(writing.model, draft):
        if id(share.node) in there and share.amount:
            key = share.node.key
            alive = present(share.node.type, key, writing.operation.now, (), Rule.UNCHANGED)
            writing.transaction.count(key, share.field.attribute, -share.amount, [alive])
