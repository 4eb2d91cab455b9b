"""Indexes: which of them the model can use, which were used, and what the others cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from graph.apply.plan import unnamed
from graph.apply.state import State, Target
from graph.bounds import Bound
from graph.doctor.findings import Code, Finding
from graph.doctor.prices import monthly, shown_bytes, storage
from graph.keys import Literal, Path, Variable
from graph.model import Access, CopyMode, Layout, Model, Projection
from graph.patterns import lookup_arguments
from graph.planner import is_bound, partition_parts

FEW_OPERATIONS = 1000
"""Fewer than these say little of an index that none of them has used."""
DROP = "`tablegraph table apply --drop --yes` drops it, once no other application reads it"


@dataclass(slots=True)
class Usage:
    """Which indexes were read, as logs and metrics tell; a log names the index, and not its table."""

    indexes: Counter[str] = field(default_factory=Counter)
    operations: int = 0
    """Operations in logs, and requests in metrics."""
    is_partial: bool = False
    """Some of what was read is not told apart."""
    first: str = ""
    last: str = ""


def uses_of(model: Model) -> dict[tuple[str, str | None], dict[str, list[Access]]]:
    """List by table and index what may read it, each with the ways that it takes there."""
    found: dict[tuple[str, str | None], dict[str, list[Access]]] = {}
    for name, accesses in _patterns(model):
        for access in accesses:
            uses = found.setdefault((access.index.table, access.index.name), {})
            uses.setdefault(name, []).append(access)
    return found


def layouts_read(uses: Mapping[str, Sequence[Access]]) -> set[str]:
    """Name the layouts whose items are read by these."""
    return {layout.name for accesses in uses.values() for access in accesses for layout in access.layouts}


def _patterns(model: Model) -> Iterator[tuple[str, Sequence[Access]]]:
    for find in model.finds.values():
        # Arguments may be left out, and then another way serves.
        yield f"Query.{find.name}", find.accesses
    for relationship in model.relationships.values():
        for hop in relationship.path or (relationship,):
            known = {(hop.start, *path) for path in hop.needs} | {*hop.asks}
            yield f"{relationship.source}.{relationship.name}", undominated(hop.accesses, known)
    for name, accesses in model.lookups.items():
        item = model.items[name]
        if not item.virtual:
            given = {path for path, is_required in lookup_arguments(model, item).values() if is_required}
            named = item.named_by or given
            yield f"the lookup of {name}", undominated(_bound(accesses, named), named)
    for name, references in model.inward.items():
        named = model.items[name].named_by
        for inward in references:
            known = {(inward.field, *path) for path in named}
            what = f"writes of {name}, which find {inward.item_type}.{inward.field}"
            yield what, undominated(_bound(inward.accesses, known), known)


def _bound(accesses: Iterable[Access], known: set[Path] | frozenset[Path]) -> list[Access]:
    return [one for one in accesses if all(is_bound(layout, one.index, _exact(known)) for layout in one.layouts)]


def _exact(known: Iterable[Path]) -> dict[Path, Bound]:
    return {path: Bound(values=("",)) for path in known}


def undominated(accesses: Sequence[Access], known: Collection[Path]) -> list[Access]:
    """Leave out the ways that another one is always taken before: it binds as much, and filters can bind no less."""
    return [
        one
        for number, one in enumerate(accesses)
        if not any(
            _dominates(other, one, known, is_before=place < number)
            for place, other in enumerate(accesses)
            if place != number
        )
    ]


def _dominates(one: Access, other: Access, known: Collection[Path], *, is_before: bool) -> bool:
    if {layout.name for layout in one.layouts} < {layout.name for layout in other.layouts}:
        return False
    ways = [(_reach(way, known), _open(way, known)) for way in (one, other)]
    (reach, more), (other_reach, other_more) = ways
    if not (_is_known(one, known) and reach >= other_reach and more >= other_more):
        return False
    ranks = [(way.index.name is None, way.index.local, way.index.projection is Projection.ALL) for way in (one, other)]
    is_same = (reach, more) == (other_reach, other_more)
    # Of two that bind the same the planner takes the table, then a local index, then what holds all, then the first.
    return _is_known(other, known) <= _is_known(one, known) and (
        not is_same or ranks[0] > ranks[1] or (ranks[0] == ranks[1] and is_before)
    )


def _is_known(access: Access, known: Collection[Path]) -> bool:
    parts = (part for layout in access.layouts for part in partition_parts(layout, access.index))
    return all(isinstance(part, Literal) or part.path in known for part in parts)


def _reach(access: Access, known: Collection[Path]) -> int:
    """Count the leading parts of the sort key that are known, in the layout where fewest are."""

    def of(layout: Layout) -> int:
        parts = [part for template in layout.sort(access.index) for part in template.parts]
        return len([*takewhile(lambda part: not isinstance(part, Variable) or part.path in known, parts)])

    return min(map(of, access.layouts))


def _open(access: Access, known: Collection[Path]) -> frozenset[Path]:
    """List what a filter could bind besides."""
    variables = (v for one in access.layouts for template in one.sort(access.index) for v in template.variables)
    partition = (
        part for one in access.layouts for part in partition_parts(one, access.index) if isinstance(part, Variable)
    )
    return frozenset(v.path for v in (*variables, *partition)) - frozenset(known)


def useless_of(target: Target, state: State, usage: Usage | None) -> Iterator[Finding]:
    """Find indexes that the model does not name, that nothing in it reads, and that nobody has read."""
    uses = uses_of(target.model)
    for name in unnamed(target, state):
        yield _useless(Code.INDEX_UNKNOWN, target, state.indexes[name], "the model does not name it", DROP)
    for index in target.table.indexes:
        described = state.indexes.get(index.name or "")
        if described is None:
            continue
        used_by = uses.get((target.table.name, index.name), {})
        if not used_by:
            found = "no relationship, find, lookup or write of the model reads it"
            yield _useless(Code.INDEX_UNUSED, target, described, found, f"take @index out of the model; then {DROP}")
        elif usage is not None and not usage.indexes[index.name or ""]:
            yield from _never_read(target, described, used_by, usage)


def _never_read(
    target: Target, described: Mapping[str, Any], used_by: Mapping[str, object], usage: Usage
) -> Iterator[Finding]:
    writes = [name for name in used_by if name.startswith("writes of ")]
    if target.table.copies is CopyMode.STREAM and writes:
        return  # What follows the stream reads it, and is in no log of operations.
    span = f"{usage.operations:,} operations from {usage.first} to {usage.last}" if usage.first else "the logs given"
    shown = ", ".join(list(used_by)[:3]) + (" …" if len(used_by) > 3 else "")
    found = f"none of {span} read it; the model could, for {shown}"
    cure = f"take these out of the model if nobody needs them, and @index with them; then {DROP}"
    numbers = {"operations": usage.operations}
    made = _useless(Code.INDEX_NEVER_READ, target, described, found, cure, numbers)
    if usage.operations < FEW_OPERATIONS or usage.is_partial:
        few = f"{found}. That says little: " + (
            "metrics tell only some tables apart" if usage.is_partial else "give the logs of a week or more"
        )
        made = Finding(Code.NOT_EXAMINED, made.table, made.subject, few, "--log FILE, several times", numbers)
    yield made


def _useless(
    code: Code,
    target: Target,
    described: Mapping[str, Any],
    found: str,
    cure: str,
    numbers: Mapping[str, Any] | None = None,
) -> Finding:
    size, items = described.get("IndexSizeBytes", 0), described.get("ItemCount", 0)
    cost = f"; {items:,} items in {shown_bytes(size)}, {storage(size)}" if size else f"; {items:,} items"
    figures = {"bytes": size, "items": items, "monthlyUsd": round(monthly(size), 4), **(numbers or {})}
    return Finding(code, target.name, described["IndexName"], found + cost, cure, figures, weight=size)
