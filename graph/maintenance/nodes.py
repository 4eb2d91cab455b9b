"""Nodes: their counters are counted again, and what they cannot be without is looked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from decimal import Decimal
from typing import Protocol

from graph.entity import Entity
from graph.errors import ItemError
from graph.lists import knowing, relationship_list
from graph.loaders import Operation
from graph.lookups import load
from graph.maintenance.findings import Code, Finding, Mend, told
from graph.maintenance.judging import finding
from graph.maintenance.subjects import Subject
from graph.maintenance.truth import as_keyed
from graph.model import Field, FieldKind, ItemType, Model
from graph.paging import read_first
from graph.scalars import number_text
from graph.sources import Reading
from graph.tasks import together
from graph.updates import Update

AT_ONCE = 32
PAGE_ITEMS = 1000


class Counting(Protocol):
    """What begins operations whose cost is counted together."""

    def operation(self, *, consistent: bool = False) -> AbstractAsyncContextManager[Operation]:
        """Begin an operation, and end it."""


def is_looked_behind(type_: ItemType) -> bool:
    """Say whether the items of a type can only be judged together with what lies behind their relationships."""
    return any(entry.count is not None or _is_needed(entry) for entry in type_.fields.values())


def looks_behind(model: Model) -> bool:
    """Say whether any type of the model can only be judged so."""
    return any(is_looked_behind(type_) for type_ in model.items.values())


def _is_needed(entry: Field) -> bool:
    return entry.kind is FieldKind.RELATIONSHIP and entry.type.required and entry.type.of is None


async def judge_nodes(
    counting: Counting, operation: Operation, subjects: Sequence[Subject]
) -> dict[int, list[Finding]]:
    """List what is wrong with the counters and the required relationships of nodes, by the number of the subject.

    Cost: for each a Query, or as many as the list behind it takes; 32 nodes side by side.
    """
    judged = [
        (number, subject)
        for number, subject in enumerate(subjects)
        if subject.entity is not None and not subject.layout.mirror and is_looked_behind(subject.entity.type)
    ]
    found: dict[int, list[Finding]] = {}
    for start in range(0, len(judged), AT_ONCE):
        some = judged[start : start + AT_ONCE]
        answers = await together([_judge_node(counting, operation, subject) for _, subject in some])
        found |= {number: findings for (number, _), findings in zip(some, answers, strict=True)}
    return found


async def _judge_node(counting: Counting, operation: Operation, subject: Subject) -> list[Finding]:
    found: list[Finding] = []
    assert subject.entity is not None
    node = as_keyed(subject.entity)
    for entry in node.type.fields.values():
        if entry.count is not None and entry.name not in subject.unreadable:
            found += await _judge_counter(counting, operation, subject, node, entry)
        elif _is_needed(entry) and not await _has_any(operation, node, entry):
            found.append(finding(subject, Code.REQUIRED, entry.name, f"a {entry.type.named}", "nothing"))
    return found


async def _judge_counter(
    counting: Counting, operation: Operation, subject: Subject, node: Entity, entry: Field
) -> list[Finding]:
    stored = subject.wire.get(entry.attribute)
    # Its own loaders: what a long list brings is forgotten page by page.
    async with counting.operation(consistent=operation.consistent) as apart:
        counted = await recount(apart, node, entry)
    # One that was never written counts nothing.
    is_right = not counted if stored is None or "NULL" in stored else Decimal(stored["N"]) == counted
    if is_right:
        return []
    text = number_text(counted)
    mend = Mend(Update(put={entry.attribute: {"N": text}}))
    return [finding(subject, Code.WRONG_COUNT, entry.name, text, told(stored), mend)]


async def recount(operation: Operation, node: Entity, entry: Field) -> Decimal:
    """Count, or sum up, what a counter is to say.

    Cost: one Query for each megabyte behind the relationship, and BatchGetItems where an index lacks what is summed up.
    """
    assert entry.count is not None, "the field is a counter"
    relationship = operation.model.relationships[node.type.name, entry.count.relationship]
    source = relationship_list(operation, relationship, await knowing(operation, relationship, node))
    reader = source.reader(Reading(want=PAGE_ITEMS))
    total = Decimal(0)
    while True:
        batch = await reader.read()
        total += await _amount(operation, [one.entity for one in batch.entries], entry.count.field)
        if batch.end is None:
            return total
        operation.forget()


async def _amount(operation: Operation, items: Sequence[Entity], summed: str | None) -> Decimal:
    if summed is None:
        return Decimal(len(items))
    whole = await load(operation, items, lambda _: frozenset((summed,)))
    total = Decimal(0)
    for item in whole:
        try:
            value = None if item is None else item.value(item.type.fields[summed])
        except ItemError:
            value = None
        total += Decimal(0 if value is None else str(value))
    return total


async def _has_any(operation: Operation, node: Entity, entry: Field) -> bool:
    relationship = operation.model.relationships[node.type.name, entry.name]
    source = relationship_list(operation, relationship, await knowing(operation, relationship, node))
    return await read_first(source, operation.limits.read_budget) is not None
